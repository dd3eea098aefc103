//! A whole session for people and for other programs: everything that was said, what was compacted away included.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::catalogue::SessionInfo;
use crate::history::{CompactionNote, HistoryItem, RetractedMessages, SessionHistory, Utterance};

mod json;
mod markdown;
mod text;

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
    let retracted = RetractedMessages::of(&session.path)?;
    let mut history = SessionHistory::open(&session.path)?;
    let page: &mut dyn ExportForm = match format {
        ExportFormat::Text => &mut text::TextExport,
        ExportFormat::Markdown => &mut markdown::MarkdownExport,
        ExportFormat::Json => &mut json::JsonExport::default(),
    };
    let mut out = Out { to, redact };
    page.begin(session, &mut out)?;
    while let Some(item) = history.next(|_| true)? {
        let retracted = matches!(&item, HistoryItem::Said(said) if retracted.holds(said));
        page.item(&item, retracted, &mut out)?;
    }
    page.end(&mut out)
}

/// Where an export goes, and what every text passes on its way.
struct Out<'a> {
    to: &'a mut dyn Write,
    redact: Redact<'a>,
}

trait ExportForm {
    fn begin(&mut self, session: &SessionInfo, out: &mut Out<'_>) -> io::Result<()>;
    /// Something that happened; `retracted` if it is a message that did not stand.
    fn item(&mut self, item: &HistoryItem, retracted: bool, out: &mut Out<'_>) -> io::Result<()>;
    fn end(&mut self, _: &mut Out<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// `2026-11-13 10:20:30 UTC`.
fn time(at_ms: u64) -> String {
    let iso = crate::time::iso(at_ms);
    format!("{} {} UTC", &iso[..10], &iso[11..19])
}

/// Whom the heading of a message names.
fn speaker(said: &Utterance) -> String {
    use crate::history::Who;
    match &said.who {
        Who::User => "You".into(),
        Who::Assistant => "Assistant".into(),
        Who::Tool(name) => format!("Result of {name}"),
        Who::Engine => "Note to the model".into(),
        Who::Summary => "Summary of the compacted conversation".into(),
        Who::Title => "Title".into(),
    }
}

/// What is said at the place of a compaction.
fn compaction(compacted: &CompactionNote) -> String {
    let trigger = compacted.trigger.as_deref().map(|trigger| format!(", {trigger}")).unwrap_or_default();
    let tokens =
        compacted.tokens_before.map(|tokens| format!(", {tokens} tokens before")).unwrap_or_default();
    let when = compacted.at_ms.map(|at_ms| format!(" at {}", time(at_ms))).unwrap_or_default();
    format!("Compacted{when}{trigger}{tokens}: the model continued from a summary")
}

const REWOUND: &str = "The conversation was rewound to an earlier message and continues from there";

/// What is known about a session, line by line.
fn about(session: &SessionInfo, redact: Redact<'_>) -> Vec<(&'static str, String)> {
    let mut about = vec![("Session", session.id.to_string())];
    about.extend(session.glance.created_ms.map(|at_ms| ("Started", time(at_ms))));
    about.push(("Last change", time(session.modified_ms)));
    about.extend(session.glance.cwd.as_ref().map(|cwd| ("Directory", cwd.display().to_string())));
    about.extend(session.glance.branch.clone().map(|branch| ("Branch", branch)));
    about.extend(session.glance.tag.clone().map(|tag| ("Tag", tag)));
    about.into_iter().map(|(name, value)| (name, redact(&value).into_owned())).collect()
}

/// What stands above everything.
fn heading(session: &SessionInfo, redact: Redact<'_>) -> String {
    let name =
        session.glance.title.as_deref().or(session.glance.first_prompt.as_deref()).unwrap_or("Session");
    redact(name).into_owned()
}
