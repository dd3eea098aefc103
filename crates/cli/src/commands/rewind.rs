//! Files as they were when a prompt was given: `--rewind-files`.

use std::fmt::Write as _;

use anyhow::{Context as _, anyhow, ensure};
use serde_json::json;
use uuid::Uuid;
use windlass::rewind;
use windlass::rewind::{PointInfo, RewindPoint};
use windlass::sessions::SessionSource;
use windlass::{SessionError, SessionStore};

use crate::arguments::help;
use crate::commands::sessions::print;
use crate::display;
use crate::views::rewind_report::{self, UNDO};

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct RewindArguments {
    session: SessionSource,
    /// Nothing: say what there is to go back to.
    to: Option<RewindPoint>,
    is_dry_run: bool,
    is_json: bool,
}

impl RewindArguments {
    /// Checks what was given. Each error is for the user.
    pub(crate) fn new(
        session: SessionSource,
        to: &str,
        is_dry_run: bool,
        is_json: bool,
    ) -> anyhow::Result<Self> {
        ensure!(session != SessionSource::New, SessionError::NeedsSession("--rewind-files"));
        Ok(Self { session, to: parse(to)?, is_dry_run, is_json })
    }
}

/// The point in time that a word means; none for no word.
fn parse(word: &str) -> anyhow::Result<Option<RewindPoint>> {
    match word.trim() {
        "" => Ok(None),
        UNDO => Ok(Some(RewindPoint::Undo)),
        word => Uuid::parse_str(word).map(|uuid| Some(RewindPoint::Prompt(uuid))).map_err(|_| {
            anyhow!(
                "{} is not the UUID of a prompt. --rewind-files without a value lists the prompts; \
                 --rewind-files {UNDO} undoes the last rewind.",
                display::line(word)
            )
        }),
    }
}

/// Brings files back, or says what there is to go back to. Returns the exit code.
pub(crate) fn run(wanted: &RewindArguments) -> anyhow::Result<i32> {
    let store = SessionStore::open()?;
    let session = match &wanted.session {
        SessionSource::Named(words) => store.find(words)?,
        _ => store.latest().context("this directory has no sessions.")?,
    };
    let Some(to) = wanted.to else {
        print(&help::page(&list_points(&rewind::points(&session)?)))?;
        return Ok(0);
    };
    let bring_back = if wanted.is_dry_run { rewind::preview_saved } else { rewind::rewind_saved };
    let report = match bring_back(&session, to) {
        Err(error @ SessionError::Files(_)) if wanted.is_json => {
            let answer = json!({ "canRewind": false, "error": error.to_string() });
            print(&format!("{}\n", display::json(&answer)))?;
            return Ok(1);
        }
        done => done?,
    };
    if wanted.is_json {
        print(&format!("{}\n", display::json(&rewind_report::to_json(&report))))?;
    } else {
        print(&help::page(&rewind_report::to_text(&report, store.cwd(), session.id)))?;
    }
    Ok(i32::from(report.rewound.is_some_and(|rewound| !rewound.failed.is_empty())))
}

/// What there is to go back to, for people.
fn list_points(points: &[PointInfo]) -> String {
    if points.is_empty() {
        return "This session has no checkpoints.\n".into();
    }
    let mut text = String::new();
    for PointInfo { uuid, text: said, files, commands, .. } in points {
        let mut what = vec![display::quantity(*files as u64, "file") + " changed"];
        if *commands > 0 {
            what.push(display::quantity(*commands as u64, "command"));
        }
        let _ = writeln!(text, "{uuid}  {} ({})", display::line(said), what.join(", "));
    }
    text.push_str("\nRewind the files to a prompt with --rewind-files UUID; preview with --dry-run.\n");
    text
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
