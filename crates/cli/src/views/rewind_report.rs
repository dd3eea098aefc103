//! What is said about `/rewind` and `--rewind-files`: the prompts there are, and what became of files and conversation.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use uuid::Uuid;
use windlass::rewind::{PromptLine, RewindAction, RewindPlan};
use windlass::rewind::{RewindOutcome, RewindReport};
use windlass_text::shorten::shorten;

use crate::display;

/// What takes the last rewind back.
pub(crate) const UNDO: &str = "undo";
/// As much of a prompt is shown.
const PROMPT_CHARS: usize = 60;
/// As many commands that cannot be undone are shown.
const COMMANDS_MAX: usize = 10;

/// What there is to go back to.
pub(crate) fn list_prompts(prompts: &[PromptLine]) -> String {
    if prompts.is_empty() {
        return "This session has no prompts yet, so there is nothing to rewind.\n".into();
    }
    let mut text = String::from("Prompts of this session:\n");
    for (place, PromptLine { uuid, text: said, is_standing, .. }) in prompts.iter().enumerate() {
        let left = if *is_standing { "" } else { " (no longer in the conversation)" };
        let _ = writeln!(text, "{:>4}  {uuid}  {}{left}", place + 1, short(said));
    }
    text.push_str(
        "\nGo back to before a prompt with /rewind NUMBER; add files or conversation to rewind \
                   only one of them.\n",
    );
    text
}

/// What became of the files and the conversation.
pub(crate) fn tell(outcome: &RewindOutcome, cwd: &Path, session: Uuid) -> String {
    let mut text = match &outcome.files {
        Some(Ok(report)) => to_text(report, cwd, session),
        Some(Err(error)) => format!("Files were not rewound: {error}\n"),
        None => String::new(),
    };
    if let Some(prompt) = &outcome.prompt {
        let _ = writeln!(text, "The conversation was rewound to before: {}", short(&prompt.text));
    }
    text
}

fn short(text: &str) -> String {
    shorten(&display::line(text.trim()), PROMPT_CHARS, "...").into_owned()
}

/// The answer that hosts know.
pub(crate) fn to_json(report: &RewindReport) -> serde_json::Value {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let changed: Vec<String> = report.changes().map(|change| path(&change.path)).collect();
    let mut value = json!({
        "canRewind": true,
        "filesChanged": changed,
        "insertions": report.changes().map(|change| change.insertions).sum::<u64>(),
        "deletions": report.changes().map(|change| change.deletions).sum::<u64>(),
    });
    let links: Vec<String> = report.plan.skipped_links().into_iter().map(path).collect();
    if !links.is_empty() {
        value["skippedLinks"] = links.into();
    }
    if let Some(failed) = report.rewound.as_ref().and_then(|rewound| rewound.failed.first()) {
        value["error"] = format!("{} was not rewound: {}", failed.path.display(), failed.reason).into();
    }
    value
}

/// What to tell people. Paths are shown as seen from a directory.
pub(crate) fn to_text(report: &RewindReport, cwd: &Path, session: Uuid) -> String {
    let mut text = changes(report, cwd);
    write_left(report, &mut text, cwd);
    write_commands(&report.plan, &mut text);
    if report.plan.unread > 0 {
        let lines = display::quantity(report.plan.unread as u64, "line");
        let _ = writeln!(
            text,
            "\n{lines} of the checkpoints are damaged; changes recorded there may not be rewound."
        );
    }
    if let Some(rewound) = &report.rewound {
        for notice in &rewound.notices {
            let _ = writeln!(text, "{}", display::line(notice));
        }
        if !rewound.done.is_empty() {
            let _ = writeln!(text, "\nUndo with `windlass --resume {session} --rewind-files {UNDO}`");
        }
    }
    text
}

fn changes(report: &RewindReport, cwd: &Path) -> String {
    let dry = report.rewound.is_none();
    let count = report.changes().count();
    if count == 0 && report.rewound.as_ref().is_none_or(|rewound| rewound.failed.is_empty()) {
        return "Nothing to rewind: the files are already as they were then.\n".into();
    }
    let verb = if dry { "Would rewind" } else { "Rewound" };
    let mut text = format!("{verb} {}:\n", display::quantity(count as u64, "path"));
    for change in report.changes() {
        let mut note = String::new();
        if change.insertions + change.deletions > 0 {
            let _ = write!(note, " (+{} -{})", change.insertions, change.deletions);
        }
        if change.is_changed_by_others {
            note.push_str(" (another program changed it later)");
        }
        let _ = writeln!(text, "  {:16}  {}{note}", verb_of(change.action), path_text(&change.path, cwd));
    }
    text
}

fn write_left(report: &RewindReport, text: &mut String, cwd: &Path) {
    let failed = report.rewound.iter().flat_map(|rewound| &rewound.failed);
    let failed = failed.map(|failed| (&failed.path, &failed.reason));
    let left = report.plan.skipped.iter().map(|skipped| (&skipped.path, &skipped.reason)).chain(failed);
    let mut left = left.peekable();
    if left.peek().is_some() {
        text.push_str("\nNot rewound:\n");
    }
    for (path, reason) in left {
        let _ = writeln!(text, "  {}: {}", path_text(path, cwd), display::line(reason));
    }
}

fn write_commands(plan: &RewindPlan, text: &mut String) {
    let commands = &plan.commands;
    if commands.is_empty() {
        return;
    }
    let count = display::quantity(commands.len() as u64, "command");
    let _ = writeln!(text, "\n{count} ran since then. Effects beyond the paths above are not undone:");
    for command in commands.iter().take(COMMANDS_MAX) {
        let unfinished = if command.is_finished { "" } else { " (no end recorded)" };
        let _ = writeln!(text, "  {}{unfinished}", display::line(&command.text));
    }
    if commands.len() > COMMANDS_MAX {
        let _ = writeln!(text, "  and {} more", commands.len() - COMMANDS_MAX);
    }
}

fn verb_of(action: RewindAction) -> &'static str {
    match action {
        RewindAction::Delete => "delete",
        RewindAction::RemoveDirectory => "delete directory",
        RewindAction::MakeDirectory => "create directory",
        RewindAction::RestoreContent => "restore",
        RewindAction::Recreate => "recreate",
        RewindAction::RestoreMode => "restore mode",
    }
}

fn path_text(path: &Path, cwd: &Path) -> String {
    display::line(&path.strip_prefix(cwd).unwrap_or(path).to_string_lossy())
}
