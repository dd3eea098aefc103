//! What the user is told about a session that was opened: what was damaged, what was cut off, what is different now.

use std::path::Path;

use uuid::Uuid;
use windlass_engine::RecalledSession;
use windlass_protocol::{Fate, ToolUse};
use windlass_session::{LoadedLog, SessionBusy};
use windlass_text::shorten::shorten;

use crate::display;

/// As much of a call's input is shown.
const INPUT_CHARS: usize = 80;

/// Another process has the session open.
pub(super) fn busy(id: Uuid, copy: Uuid, busy: &SessionBusy) -> String {
    let pid = if busy.pid == 0 { String::new() } else { format!(" (pid {})", busy.pid) };
    format!("Another process{pid} is using the session {id}; continuing in a copy: {copy}.")
}

/// What could not be read.
pub(super) fn damage(loaded: &LoadedLog, path: &Path) -> Vec<String> {
    let mut notices = Vec::new();
    if let Some(torn) = &loaded.torn {
        notices.push(format!(
            "The session log {} ends with an incomplete line ({} bytes). Windlass keeps it in a file beside \
             the log and continues without it.",
            path.display(),
            torn.length
        ));
    }
    if let Some(first) = loaded.damage.first() {
        let places = display::quantity(u64::try_from(loaded.damage.len()).unwrap_or(u64::MAX), "place");
        notices.push(format!(
            "The session log {} is damaged in {places} (byte {}: {}). Windlass uses the lines it can read \
             and does not change the file.",
            path.display(),
            first.offset,
            first.what
        ));
    }
    notices
}

/// There is nothing that `--continue` could mean.
pub(super) const NOTHING_TO_CONTINUE: &str = "No session of this directory to continue; starting a new one. \
     `windlass sessions list --all` lists those of other directories.";

/// What was going on when the session was cut off. What was left out, or goes on elsewhere, was not.
pub(super) fn cut_off(recalled: &RecalledSession, is_whole: bool) -> Vec<String> {
    let told = [
        (
            Fate::Unknown,
            "The session was cut off while these calls ran; whether they took effect is unknown",
            " The model knows this; windlass asks before it runs one of them again.",
        ),
        (Fate::NeverStarted, "These calls had not started when the session was cut off", ""),
        (
            Fate::ReadOnly,
            "These calls were only reading when the session was cut off and are safe to repeat",
            "",
        ),
    ];
    let mut notices = Vec::new();
    for (fate, about, advice) in told {
        let calls = recalled.open.iter().filter(|(_, seen)| *seen == fate);
        let calls: Vec<String> = calls.map(|(tool_use, _)| call(tool_use)).collect();
        if !calls.is_empty() {
            notices.push(format!("{about}: {}.{advice}", calls.join("; ")));
        }
    }
    if notices.is_empty() && recalled.is_cut_off && is_whole {
        notices.push("The last run of this session was cut off. Continuing from its last message.".into());
    }
    notices
}

/// The working directory comes back where it still makes sense.
pub(super) fn directory(recalled: &mut RecalledSession, project: &Path) -> Option<String> {
    let former = recalled.state.cwd().clone();
    if former == project || (former.starts_with(project) && former.is_dir()) {
        return None;
    }
    recalled.state.set_cwd(project.to_owned());
    Some(format!(
        "The session last worked in {}; it now works in {}.",
        display::line(&former.to_string_lossy()),
        display::line(&project.to_string_lossy())
    ))
}

fn call(tool_use: &ToolUse) -> String {
    let input = shorten(tool_use.input.get(), INPUT_CHARS, "...");
    display::line(&format!("{} {input}", tool_use.name))
}
