//! A whole session for people and for other programs: everything that was said, what was compacted away included.

use std::borrow::Cow;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::catalogue::SessionInfo;
use crate::history::{CompactionNote, ContentPiece, HistoryItem, SearchSpeaker, SessionHistory, Utterance};
use crate::time::{iso, moment};

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
    /// One JSON object with every message as it was written.
    Json,
}

/// Hides what must not leave: is given texts and pieces of JSON, and gives the same back without secrets.
pub type Redact<'a> = &'a dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// Writes a session. Every text goes through `redact` first.
pub fn export(
    session: &SessionInfo,
    format: ExportFormat,
    redact: Redact<'_>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut history = SessionHistory::open(&session.path)?;
    begin(session, format, redact, to)?;
    let mut separator = "\n";
    while let Some(item) = history.next(|_| true)? {
        let is_retracted = matches!(&item, HistoryItem::Said(said) if history.has_retracted(said)?);
        match (format, &item) {
            (ExportFormat::Json, item) => {
                write!(to, "{separator}{}", to_json(item, is_retracted, redact))?;
                separator = ",\n";
            }
            (_, HistoryItem::Said(_)) if is_retracted => {}
            (ExportFormat::Text, HistoryItem::Said(said)) => write_text(said, redact, to)?,
            (ExportFormat::Markdown, HistoryItem::Said(said)) => write_markdown(said, redact, to)?,
            (_, HistoryItem::Compacted(compacted)) => write_note(format, &compaction(compacted), to)?,
            (_, HistoryItem::Rewound) => write_note(format, REWOUND, to)?,
        }
    }
    if format == ExportFormat::Json { writeln!(to, "\n]}}") } else { Ok(()) }
}

fn begin(
    session: &SessionInfo,
    format: ExportFormat,
    redact: Redact<'_>,
    to: &mut dyn Write,
) -> io::Result<()> {
    let preview = &session.preview;
    let heading = redact(preview.title.as_deref().or(preview.first_prompt.as_deref()).unwrap_or("Session"));
    match format {
        ExportFormat::Json => {
            let about = session.to_json().to_string();
            return write!(to, "{{\"session\":{},\n\"messages\":[", redact(&about));
        }
        ExportFormat::Text => writeln!(to, "{heading}\n")?,
        ExportFormat::Markdown => writeln!(to, "# {}\n\n| | |\n|---|---|", heading.replace('\n', " "))?,
    }
    for (name, value) in session_facts(session) {
        let value = redact(&value);
        if format == ExportFormat::Text {
            writeln!(to, "{name:12} {value}")?;
        } else {
            writeln!(to, "| {name} | {} |", value.replace('|', "\\|").replace('\n', " "))?;
        }
    }
    Ok(())
}

/// The speaker of a message, in its heading and in JSON.
fn speaker(said: &Utterance) -> (Cow<'static, str>, &'static str) {
    match &said.who {
        SearchSpeaker::User => ("You".into(), "user"),
        SearchSpeaker::Assistant => ("Assistant".into(), "assistant"),
        SearchSpeaker::Tool(name) => (format!("Result of {name}").into(), "tool"),
        SearchSpeaker::Engine => ("Note to the model".into(), "engine"),
        SearchSpeaker::Summary => ("Summary of the compacted conversation".into(), "summary"),
        SearchSpeaker::Title => ("Title".into(), "title"),
    }
}

/// What is said at the place of a compaction.
fn compaction(compacted: &CompactionNote) -> String {
    let trigger = compacted.trigger.as_deref().map(|trigger| format!(", {trigger}")).unwrap_or_default();
    let tokens =
        compacted.tokens_before.map(|tokens| format!(", {tokens} tokens before")).unwrap_or_default();
    let when = compacted.at_ms.map(|at_ms| format!(" at {}", moment(at_ms))).unwrap_or_default();
    format!("Compacted{when}{trigger}{tokens}: the model continued from a summary")
}

const REWOUND: &str = "The conversation was rewound to an earlier message and continues from there";

fn write_note(format: ExportFormat, note: &str, to: &mut dyn Write) -> io::Result<()> {
    match format {
        ExportFormat::Markdown => writeln!(to, "\n---\n\n**{note}**\n"),
        _ => writeln!(to, "\n---- {note} ----"),
    }
}

/// What is known about a session, line by line.
fn session_facts(session: &SessionInfo) -> Vec<(&'static str, String)> {
    let mut about = vec![("Session", session.id.to_string())];
    about.extend(session.preview.created_ms.map(|at_ms| ("Started", moment(at_ms))));
    about.push(("Last change", moment(session.modified_ms)));
    about.extend(session.preview.cwd.as_ref().map(|cwd| ("Directory", cwd.display().to_string())));
    about.extend(session.preview.branch.clone().map(|branch| ("Branch", branch)));
    about.extend(session.preview.tag.clone().map(|tag| ("Tag", tag)));
    about
}

fn write_text(said: &Utterance, redact: Redact<'_>, to: &mut dyn Write) -> io::Result<()> {
    let when = said.at_ms.map(|at_ms| format!(" ({})", moment(at_ms))).unwrap_or_default();
    writeln!(to, "\n== {}{when}", speaker(said).0)?;
    for piece in &said.pieces {
        let text = redact(piece.text());
        match piece {
            ContentPiece::Text(_) | ContentPiece::Result { is_error: false, .. } => writeln!(to, "{text}")?,
            ContentPiece::Result { is_error: true, .. } => writeln!(to, "(failed)\n{text}")?,
            ContentPiece::Thinking(_) => writeln!(to, "(thinking)\n{text}")?,
            ContentPiece::Call { name, .. } => writeln!(to, "(calls {name})\n{text}")?,
            ContentPiece::Other(kind) => writeln!(to, "[{kind}]")?,
        }
    }
    Ok(())
}

fn write_markdown(said: &Utterance, redact: Redact<'_>, to: &mut dyn Write) -> io::Result<()> {
    let when = said.at_ms.map(|at_ms| format!(" \u{b7} {}", moment(at_ms))).unwrap_or_default();
    writeln!(to, "\n### {}{when}\n", speaker(said).0)?;
    for piece in &said.pieces {
        let text = redact(piece.text());
        match piece {
            // What the model writes is Markdown already; what others write is shown as it is.
            ContentPiece::Text(_)
                if said.who == SearchSpeaker::Assistant || said.who == SearchSpeaker::Summary =>
            {
                writeln!(to, "{text}\n")?;
            }
            ContentPiece::Text(_) => writeln!(to, "{}", quote(&text))?,
            ContentPiece::Thinking(_) => writeln!(to, "*Thinking:*\n\n{}", quote(&text))?,
            ContentPiece::Call { name, .. } => {
                writeln!(to, "Calls **{name}**:\n\n{}", fence(&text, "json"))?;
            }
            ContentPiece::Result { is_error, .. } => {
                let failed = if *is_error { "Failed:\n\n" } else { "" };
                writeln!(to, "{failed}{}", fence(&text, ""))?;
            }
            ContentPiece::Other(kind) => writeln!(to, "*[{kind}]*\n")?,
        }
    }
    Ok(())
}

fn quote(text: &str) -> String {
    text.lines().flat_map(|line| ["> ", line, "\n"]).collect()
}

/// A block of code whose fence is longer than any in the text.
fn fence(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// An item as a line of the JSON export.
fn to_json(item: &HistoryItem, is_retracted: bool, redact: Redact<'_>) -> Value {
    let said = match item {
        HistoryItem::Said(said) => said,
        HistoryItem::Compacted(compacted) => {
            return json!({
                "type": "compacted",
                "timestamp": compacted.at_ms.map(iso),
                "trigger": compacted.trigger,
                "tokensBefore": compacted.tokens_before,
            });
        }
        HistoryItem::Rewound => return json!({"type": "rewound"}),
    };
    let message = redact(&said.message);
    let message: Value =
        serde_json::from_str(&message).unwrap_or_else(|_| Value::String(message.into_owned()));
    let mut line = json!({
        "type": "message",
        "uuid": said.uuid,
        "timestamp": said.at_ms.map(iso),
        "who": speaker(said).1,
        "message": message,
    });
    if let SearchSpeaker::Tool(tool) = &said.who {
        line["tool"] = tool.as_str().into();
    }
    if is_retracted {
        line["retracted"] = true.into();
    }
    line
}
