//! The export as plain text.

use std::io;

use super::{ExportForm, Out, REWOUND, about, compaction, heading, speaker, time};
use crate::catalogue::SessionInfo;
use crate::history::{ContentPiece, HistoryItem, Utterance};

pub(super) struct TextExport;

impl ExportForm for TextExport {
    fn begin(&mut self, session: &SessionInfo, out: &mut Out<'_>) -> io::Result<()> {
        writeln!(out.to, "{}\n", heading(session, out.redact))?;
        for (name, value) in about(session, out.redact) {
            writeln!(out.to, "{name:12} {value}")?;
        }
        Ok(())
    }

    fn item(&mut self, item: &HistoryItem, retracted: bool, out: &mut Out<'_>) -> io::Result<()> {
        match item {
            HistoryItem::Said(_) if retracted => Ok(()),
            HistoryItem::Said(said) => write_message(said, out),
            HistoryItem::Compacted(compacted) => writeln!(out.to, "\n---- {} ----", compaction(compacted)),
            HistoryItem::Rewound => writeln!(out.to, "\n---- {REWOUND} ----"),
        }
    }
}

fn write_message(said: &Utterance, out: &mut Out<'_>) -> io::Result<()> {
    let when = said.at_ms.map(|at_ms| format!(" ({})", time(at_ms))).unwrap_or_default();
    writeln!(out.to, "\n== {}{when}", speaker(said))?;
    for piece in &said.pieces {
        let text = (out.redact)(piece.text());
        match piece {
            ContentPiece::Text(_) | ContentPiece::Result { is_error: false, .. } => {
                writeln!(out.to, "{text}")?;
            }
            ContentPiece::Result { is_error: true, .. } => writeln!(out.to, "(failed)\n{text}")?,
            ContentPiece::Thinking(_) => writeln!(out.to, "(thinking)\n{text}")?,
            ContentPiece::Call { name, .. } => writeln!(out.to, "(calls {name})\n{text}")?,
            ContentPiece::Other(kind) => writeln!(out.to, "[{kind}]")?,
        }
    }
    Ok(())
}
