//! The export as plain text.

use std::io;

use super::{Out, Page, REWOUND, about, compaction, heading, speaker, time};
use crate::catalogue::SessionInfo;
use crate::history::{Compacted, Piece, Said};

pub(super) struct Text;

impl Page for Text {
    fn begin(&mut self, session: &SessionInfo, out: &mut Out<'_>) -> io::Result<()> {
        writeln!(out.to, "{}\n", heading(session, out.redact))?;
        for (name, value) in about(session, out.redact) {
            writeln!(out.to, "{name:12} {value}")?;
        }
        Ok(())
    }

    fn said(&mut self, said: &Said, retracted: bool, out: &mut Out<'_>) -> io::Result<()> {
        if retracted {
            return Ok(());
        }
        let when = said.at_ms.map(|at_ms| format!(" ({})", time(at_ms))).unwrap_or_default();
        writeln!(out.to, "\n== {}{when}", speaker(said))?;
        for piece in &said.pieces {
            let text = (out.redact)(piece.text());
            match piece {
                Piece::Text(_) | Piece::Result { is_error: false, .. } => writeln!(out.to, "{text}")?,
                Piece::Result { is_error: true, .. } => writeln!(out.to, "(failed)\n{text}")?,
                Piece::Thinking(_) => writeln!(out.to, "(thinking)\n{text}")?,
                Piece::Call { name, .. } => writeln!(out.to, "(calls {name})\n{text}")?,
                Piece::Other(kind) => writeln!(out.to, "[{kind}]")?,
            }
        }
        Ok(())
    }

    fn compacted(&mut self, compacted: &Compacted, out: &mut Out<'_>) -> io::Result<()> {
        writeln!(out.to, "\n---- {} ----", compaction(compacted))
    }

    fn rewound(&mut self, out: &mut Out<'_>) -> io::Result<()> {
        writeln!(out.to, "\n---- {REWOUND} ----")
    }

    fn end(&mut self, _: &mut Out<'_>) -> io::Result<()> {
        Ok(())
    }
}
