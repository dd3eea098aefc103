//! The export as Markdown.

use std::io;

use super::{ExportForm, Out, REWOUND, about, compaction, heading, speaker, time};
use crate::catalogue::SessionInfo;
use crate::history::{ContentPiece, HistoryItem, Utterance, Who};

pub(super) struct MarkdownExport;

impl ExportForm for MarkdownExport {
    fn begin(&mut self, session: &SessionInfo, out: &mut Out<'_>) -> io::Result<()> {
        let heading = heading(session, out.redact).replace('\n', " ");
        writeln!(out.to, "# {heading}\n\n| | |\n|---|---|")?;
        for (name, value) in about(session, out.redact) {
            writeln!(out.to, "| {name} | {} |", value.replace('|', "\\|").replace('\n', " "))?;
        }
        Ok(())
    }

    fn item(&mut self, item: &HistoryItem, retracted: bool, out: &mut Out<'_>) -> io::Result<()> {
        match item {
            HistoryItem::Said(_) if retracted => Ok(()),
            HistoryItem::Said(said) => write_message(said, out),
            HistoryItem::Compacted(compacted) => writeln!(out.to, "\n---\n\n**{}**\n", compaction(compacted)),
            HistoryItem::Rewound => writeln!(out.to, "\n---\n\n**{REWOUND}**\n"),
        }
    }
}

fn write_message(said: &Utterance, out: &mut Out<'_>) -> io::Result<()> {
    let when = said.at_ms.map(|at_ms| format!(" \u{b7} {}", time(at_ms))).unwrap_or_default();
    writeln!(out.to, "\n### {}{when}\n", speaker(said))?;
    for piece in &said.pieces {
        let text = (out.redact)(piece.text());
        match piece {
            // What the model writes is Markdown already; what others write is shown as it is.
            ContentPiece::Text(_) if said.who == Who::Assistant || said.who == Who::Summary => {
                writeln!(out.to, "{text}\n")?;
            }
            ContentPiece::Text(_) => writeln!(out.to, "{}", quoted(&text))?,
            ContentPiece::Thinking(_) => writeln!(out.to, "*Thinking:*\n\n{}", quoted(&text))?,
            ContentPiece::Call { name, .. } => {
                writeln!(out.to, "Calls **{name}**:\n\n{}", fenced(&text, "json"))?;
            }
            ContentPiece::Result { is_error, .. } => {
                let failed = if *is_error { "Failed:\n\n" } else { "" };
                writeln!(out.to, "{failed}{}", fenced(&text, ""))?;
            }
            ContentPiece::Other(kind) => writeln!(out.to, "*[{kind}]*\n")?,
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    text.lines().flat_map(|line| ["> ", line, "\n"]).collect()
}

/// A block of code whose fence is longer than any in the text.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
