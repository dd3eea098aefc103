//! `windlass sessions show`.

use std::fmt::Write as _;

use windlass::SessionStore;
use windlass::session_store::{SessionInfo, SessionOutline};
use windlass_text::time::now_ms;

use super::list::summary;
use super::print;
use crate::arguments::help;
use crate::display;

/// As many lines of the last answer are shown.
const LINES_MAX: usize = 20;

pub(super) fn run(store: &SessionStore, query: &str, is_json: bool) -> anyhow::Result<()> {
    let session = store.find(query)?;
    let outline = store.outline(&session)?;
    if is_json {
        return print(&format!("{}\n", display::json(&as_json(&session, &outline))));
    }
    print(&help::page(&as_text(&session, &outline)))
}

fn as_json(session: &SessionInfo, outline: &SessionOutline) -> serde_json::Value {
    let mut value = session.to_json();
    value["prompts"] = outline.prompts.into();
    value["calls"] = outline.calls.into();
    value["compactions"] = outline.compactions.into();
    value["lastPrompt"] = outline.last_prompt.clone().into();
    value["lastAnswer"] = outline.last_answer.clone().into();
    value
}

fn as_text(session: &SessionInfo, outline: &SessionOutline) -> String {
    let now = now_ms();
    let mut text = format!("{}\n\n", summary(session));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:12}  {}", display::line(value));
    };
    line("Session", &session.id.to_string());
    if let Some(created_ms) = session.preview.created_ms {
        line("Started", &display::ago(created_ms, now));
    }
    line("Last change", &display::ago(session.modified_ms, now));
    for (name, value) in [
        ("Branch", &session.preview.branch),
        ("Tag", &session.preview.tag),
        ("Started by", &session.preview.entrypoint),
    ] {
        if let Some(value) = value {
            line(name, value);
        }
    }
    if let Some(cwd) = &session.preview.cwd {
        line("Directory", &display::home_as_tilde(cwd));
    }
    line("Log", &format!("{} ({})", display::home_as_tilde(&session.path), display::bytes(session.size)));
    let mut counts =
        vec![display::quantity(outline.prompts, "prompt"), display::quantity(outline.calls, "call")];
    if outline.compactions > 0 {
        counts.push(display::quantity(outline.compactions, "compaction"));
    }
    line("Holds", &counts.join(", "));
    for (name, said) in [("Last prompt", &outline.last_prompt), ("Last answer", &outline.last_answer)] {
        if let Some(said) = said.as_deref().filter(|said| !said.trim().is_empty()) {
            let _ = write!(text, "\n{name}:\n{}", beginning(said));
        }
    }
    let _ = write!(text, "\nContinue with `windlass -p --resume {} \"your prompt\"`\n", session.id);
    text
}

/// The first lines of a text, indented.
fn beginning(text: &str) -> String {
    let text = display::paragraph(text.trim());
    let mut lines: Vec<String> = text.lines().take(LINES_MAX).map(|line| format!("  {line}\n")).collect();
    if text.lines().count() > LINES_MAX {
        lines.push("  ...\n".into());
    }
    lines.concat()
}
