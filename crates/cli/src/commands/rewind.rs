//! Files as they were when a prompt was given: `--rewind-files`, and what `/rewind` says and does about files.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;
use uuid::Uuid;
use windlass_protocol::{SessionKey, SessionSeed};
use windlass_session::{
    Action, Checkpoints, Lease, LeaseError, PointInfo, RewindChange, RewindError, RewindPlan, RewindPoint,
    RewindResult, SessionInfo,
};

use crate::arguments::help;
use crate::commands::sessions::{Ground, print};
use crate::display;
use crate::error::CommandError;
use windlass::sessions::SessionSource;

/// What takes the last rewind back.
const UNDO: &str = "undo";
/// As many commands that cannot be undone are shown.
const COMMANDS_MAX: usize = 10;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct RewindArguments {
    session: SessionSource,
    /// Nothing: say what there is to go back to.
    to: Option<RewindPoint>,
    dry_run: bool,
    json: bool,
}

impl RewindArguments {
    /// Checks what was given. Each error is for the user.
    pub(crate) fn new(
        session: SessionSource,
        to: &str,
        dry_run: bool,
        json: bool,
    ) -> Result<Self, CommandError> {
        if session == SessionSource::New {
            return Err("--rewind-files needs a session: add --resume ID or --continue.".into());
        }
        Ok(Self { session, to: parse(to)?, dry_run, json })
    }
}

/// The point in time that a word means; none for no word.
pub(crate) fn parse(word: &str) -> Result<Option<RewindPoint>, CommandError> {
    match word.trim() {
        "" => Ok(None),
        UNDO => Ok(Some(RewindPoint::Undo)),
        word => Uuid::parse_str(word).map(|uuid| Some(RewindPoint::Prompt(uuid))).map_err(|_| {
            CommandError::Usage(format!(
                "{} is not the UUID of a prompt. --rewind-files without a value lists the prompts; \
                 --rewind-files {UNDO} undoes the last rewind.",
                display::line(word)
            ))
        }),
    }
}

/// Brings files back, or says what there is to go back to. Returns the exit code.
pub(crate) fn run(wanted: &RewindArguments) -> Result<i32, CommandError> {
    let ground = Ground::new()?;
    let session = match &wanted.session {
        SessionSource::Named(words) => ground.find(words)?,
        _ => ground.newest().ok_or("this directory has no sessions.")?,
    };
    let checkpoints = checkpoints(&session);
    let Some(to) = wanted.to else {
        print(&help::page(&listed(&checkpoints)?))?;
        return Ok(0);
    };
    let _lease = if wanted.dry_run { None } else { Some(lease(&session)?) };
    let done = match rewind(&checkpoints, to, wanted.dry_run) {
        Ok(done) => done,
        Err(error) if wanted.json => {
            print(&format!(
                "{}\n",
                display::json(&json!({ "canRewind": false, "error": error.to_string() }))
            ))?;
            return Ok(1);
        }
        Err(error) => return Err(error),
    };
    let failed = done.rewound.as_ref().is_some_and(|rewound| !rewound.failed.is_empty());
    if wanted.json {
        print(&format!("{}\n", display::json(&done.to_json())))?;
    } else {
        print(&help::page(&done.to_text(ground.cwd(), &session.id.to_string())))?;
    }
    Ok(i32::from(failed))
}

/// The checkpoints of a session in which nothing is said here.
fn checkpoints(session: &SessionInfo) -> Checkpoints {
    let key = SessionKey::from(SessionSeed(session.id.as_u128()));
    Checkpoints::new(&session.paths(), key)
}

fn lease(session: &SessionInfo) -> Result<Lease, CommandError> {
    Lease::take(session.paths().file()).map_err(|error| match error {
        LeaseError::Busy(_) => CommandError::Usage(format!(
            "another process is using the session {}, so its files were not rewound. Stop that process \
             first; --dry-run works now.",
            session.id
        )),
        error @ LeaseError::Failed { .. } => {
            CommandError::Machine(format!("cannot open the session {}: {error}.", session.id))
        }
    })
}

/// What there is to go back to, for people.
pub(crate) fn listed(checkpoints: &Checkpoints) -> Result<String, CommandError> {
    let points = checkpoints.points().map_err(|error| sentence(&error))?;
    if points.is_empty() {
        return Ok("This session has no checkpoints.\n".into());
    }
    let mut text = String::new();
    for PointInfo { uuid, text: said, files, commands, .. } in &points {
        let mut what = vec![display::counted(*files as u64, "file") + " changed"];
        if *commands > 0 {
            what.push(display::counted(*commands as u64, "command"));
        }
        let _ = writeln!(text, "{uuid}  {} ({})", display::line(said), what.join(", "));
    }
    text.push_str("\nRewind the files to a prompt with --rewind-files UUID; preview with --dry-run.\n");
    Ok(text)
}

/// What was done, or would be.
pub(crate) struct RewindReport {
    plan: RewindPlan,
    /// Nothing if it was only looked at.
    rewound: Option<RewindResult>,
}

/// Brings files back to a point, or only looks. Each error is for the user. Whoever calls it holds the session's lease, unless it
/// only looks.
pub(crate) fn rewind(
    checkpoints: &Checkpoints,
    to: RewindPoint,
    dry_run: bool,
) -> Result<RewindReport, CommandError> {
    let plan = checkpoints.plan(to).map_err(|error| sentence(&error))?;
    let rewound =
        if dry_run { None } else { Some(checkpoints.apply(&plan).map_err(|error| sentence(&error))?) };
    Ok(RewindReport { plan, rewound })
}

fn sentence(error: &RewindError) -> String {
    format!("{error}.")
}

impl RewindReport {
    /// The answer that hosts know.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let changed: Vec<String> = self.brought_back().map(|change| path(&change.path)).collect();
        let mut value = json!({
            "canRewind": true,
            "filesChanged": changed,
            "insertions": self.brought_back().map(|change| change.insertions).sum::<u64>(),
            "deletions": self.brought_back().map(|change| change.deletions).sum::<u64>(),
        });
        let links: Vec<String> = self.plan.skipped_links().into_iter().map(path).collect();
        if !links.is_empty() {
            value["skippedLinks"] = links.into();
        }
        if let Some(failed) = self.rewound.as_ref().and_then(|rewound| rewound.failed.first()) {
            value["error"] = format!("{} was not rewound: {}", failed.path.display(), failed.reason).into();
        }
        value
    }

    fn brought_back(&self) -> impl Iterator<Item = &RewindChange> {
        let is_done = |change: &&RewindChange| match &self.rewound {
            Some(rewound) => rewound.done.contains(&change.path),
            None => true,
        };
        self.plan.changes.iter().filter(is_done)
    }

    /// What to tell people. Paths are shown as seen from a directory.
    pub(crate) fn to_text(&self, cwd: &Path, session: &str) -> String {
        let mut text = self.changes(cwd);
        self.write_left(&mut text, cwd);
        self.write_commands(&mut text);
        if self.plan.unread > 0 {
            let lines = display::counted(self.plan.unread as u64, "line");
            let _ = writeln!(
                text,
                "\n{lines} of the checkpoints are damaged; changes recorded there may not be rewound."
            );
        }
        if let Some(rewound) = &self.rewound {
            for notice in &rewound.notices {
                let _ = writeln!(text, "{}", display::line(notice));
            }
            if !rewound.done.is_empty() {
                let _ = writeln!(text, "\nUndo with `windlass --resume {session} --rewind-files {UNDO}`");
            }
        }
        text
    }

    fn changes(&self, cwd: &Path) -> String {
        let dry = self.rewound.is_none();
        let count = self.brought_back().count();
        if count == 0 && self.rewound.as_ref().is_none_or(|rewound| rewound.failed.is_empty()) {
            return "Nothing to rewind: the files are already as they were then.\n".into();
        }
        let verb = if dry { "Would rewind" } else { "Rewound" };
        let mut text = format!("{verb} {}:\n", display::counted(count as u64, "path"));
        for change in self.brought_back() {
            let mut note = String::new();
            if change.insertions + change.deletions > 0 {
                let _ = write!(note, " (+{} -{})", change.insertions, change.deletions);
            }
            if change.changed_by_others {
                note.push_str(" (another program changed it later)");
            }
            let _ = writeln!(text, "  {:16}  {}{note}", verb_of(change.action), shown(&change.path, cwd));
        }
        text
    }

    fn write_left(&self, text: &mut String, cwd: &Path) {
        let failed = self.rewound.iter().flat_map(|rewound| &rewound.failed);
        let failed = failed.map(|failed| (&failed.path, &failed.reason));
        let left = self.plan.skipped.iter().map(|skipped| (&skipped.path, &skipped.reason)).chain(failed);
        let mut left = left.peekable();
        if left.peek().is_some() {
            text.push_str("\nNot rewound:\n");
        }
        for (path, reason) in left {
            let _ = writeln!(text, "  {}: {}", shown(path, cwd), display::line(reason));
        }
    }

    fn write_commands(&self, text: &mut String) {
        let commands = &self.plan.commands;
        if commands.is_empty() {
            return;
        }
        let count = display::counted(commands.len() as u64, "command");
        let _ = writeln!(text, "\n{count} ran since then. Effects beyond the paths above are not undone:");
        for command in commands.iter().take(COMMANDS_MAX) {
            let unfinished = if command.finished { "" } else { " (no end recorded)" };
            let _ = writeln!(text, "  {}{unfinished}", display::line(&command.text));
        }
        if commands.len() > COMMANDS_MAX {
            let _ = writeln!(text, "  and {} more", commands.len() - COMMANDS_MAX);
        }
    }
}

fn verb_of(action: Action) -> &'static str {
    match action {
        Action::Delete => "delete",
        Action::RemoveDirectory => "delete directory",
        Action::MakeDirectory => "create directory",
        Action::RestoreContent => "restore",
        Action::Recreate => "recreate",
        Action::RestoreMode => "restore mode",
    }
}

fn shown(path: &Path, cwd: &Path) -> String {
    display::line(&path.strip_prefix(cwd).unwrap_or(path).to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_a_point() {
        let uuid = "11111111-2222-4333-8444-555555555555";
        assert_eq!(parse("").unwrap(), None);
        assert_eq!(parse(" undo ").unwrap(), Some(RewindPoint::Undo));
        assert_eq!(parse(uuid).unwrap(), Some(RewindPoint::Prompt(Uuid::parse_str(uuid).unwrap())));
        assert!(parse("yesterday").unwrap_err().to_string().contains("yesterday is not the UUID"));
        assert!(
            RewindArguments::new(SessionSource::New, uuid, false, false)
                .unwrap_err()
                .to_string()
                .contains("--resume ID")
        );
    }
}
