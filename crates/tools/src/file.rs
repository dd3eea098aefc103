//! What Read, Write and Edit have in common: the file they are about, and the thread they work on.

use std::path::{Path, PathBuf};

use windlass_ports::{ExamineContext, ToolContext};
use windlass_protocol::{CallFacts, CallKind, PathFact, ToolOutcome};

use crate::paths;

/// The field of all three tools that names the file.
const FIELD: &str = "file_path";
/// Entries of a directory that are looked at for a similar name.
const ENTRIES_MAX: usize = 2000;
const SUGGESTIONS_MAX: usize = 3;

/// The facts of a call about one file.
pub(crate) fn facts(kind: CallKind, file_path: &str, cx: &ExamineContext) -> Result<CallFacts, String> {
    let path = paths::locate(FIELD, file_path, &cx.cwd)?;
    Ok(CallFacts {
        kind,
        shared: kind.is_read_only(),
        target: paths::shown(&path.lexical, &cx.cwd),
        paths: vec![path],
    })
}

/// The file a call is about.
pub(crate) struct Subject {
    /// Its absolute name, links and all.
    pub(crate) lexical: PathBuf,
    /// The object itself.
    pub(crate) resolved: PathBuf,
    /// Its name for people and models.
    pub(crate) shown: String,
}

impl Subject {
    pub(crate) fn new(file_path: &str, cwd: &Path) -> Result<Self, String> {
        let PathFact { lexical, resolved } = paths::locate(FIELD, file_path, cwd)?;
        let shown = paths::shown(&lexical, cwd);
        let Some(resolved) = resolved else {
            return Err(format!(
                "{shown} cannot be resolved: a symbolic link in it leads nowhere or in a circle, a directory in it may \
                 not be entered, or it leads through a magic link of /proc or /dev/fd. Name the file itself."
            ));
        };
        Ok(Self { lexical, resolved, shown })
    }

    /// The absolute name as text, for structured output.
    pub(crate) fn file_path(&self) -> String {
        self.lexical.to_string_lossy().into_owned()
    }

    /// The error for a file that does not exist, with what may have been meant.
    pub(crate) fn missing(&self, cwd: &Path) -> String {
        let mut text = format!("{} does not exist. The working directory is {}.", self.shown, cwd.display());
        if self.shown.contains('\u{fffd}') {
            text.push_str(
                " Its name holds the replacement character, which stands for bytes that are not UTF-8; such names \
                 cannot be given here. Use Bash, where a pattern can match them.",
            );
            return text;
        }
        let parent = self.resolved.parent().unwrap_or(Path::new("/"));
        if !parent.is_dir() {
            text.push_str(" Neither does its directory.");
            return text;
        }
        let similar = similar_names(&self.resolved);
        if !similar.is_empty() {
            text.push_str(" Did you mean ");
            text.push_str(&similar.join(" or "));
            text.push('?');
        }
        text
    }
}

/// Names next to a missing file that differ in case or extension only, or contain its stem.
fn similar_names(missing: &Path) -> Vec<String> {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let (Some(parent), Some(wanted)) = (missing.parent(), stem(missing)) else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(parent) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .take(ENTRIES_MAX)
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| stem(path).is_some_and(|stem| stem == wanted))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names.truncate(SUGGESTIONS_MAX);
    names
}

/// Whether a call that does not wait for its thread leaves something undone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCancel {
    /// Return at once; the thread notices and ends on its own.
    Leave,
    /// Wait for the thread, so that the outcome tells what really happened.
    Wait,
}

/// Runs `work` on a thread where it may block. Its error is text for the model.
pub(crate) async fn blocking(
    cx: ToolContext,
    on_cancel: OnCancel,
    work: impl FnOnce(&ToolContext) -> Result<ToolOutcome, String> + Send + 'static,
) -> ToolOutcome {
    let cancel = cx.cancel.child_token();
    // If this future is dropped, the thread is told.
    let _told = cancel.clone().drop_guard();
    let inner = ToolContext { cancel: cancel.clone(), ..cx };
    let thread = tokio::task::spawn_blocking(move || work(&inner));
    let joined = if on_cancel == OnCancel::Wait {
        thread.await
    } else {
        tokio::select! {
            joined = thread => joined,
            () = cancel.cancelled() => return ToolOutcome::error(CANCELLED),
        }
    };
    match joined {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => ToolOutcome::error(&error),
        Err(_) => ToolOutcome::error("The tool broke down on this input. Try another way."),
    }
}

/// What a cancelled call says.
pub(crate) const CANCELLED: &str = "The call was cancelled.";
