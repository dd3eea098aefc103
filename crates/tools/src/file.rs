//! What Read, Write and Edit have in common: the file they are about, and the thread they work on.

use std::path::{Path, PathBuf};

use serde_json::Value;
use windlass_ports::{ExamineContext, ToolContext};
use windlass_protocol::{CallFacts, CallKind, CommandPath, PathFact, ToolOutput};

use crate::git_directory::git_directories;
use crate::paths;

/// The field of all three tools that names the file.
const FIELD: &str = "file_path";
/// Entries of a directory that are looked at for a similar name.
const ENTRIES_MAX: usize = 2000;
const SUGGESTIONS_MAX: usize = 3;
/// The structured form travels in one line of JSON with the result itself, which must stay below 1 MiB.
const STRUCTURED_JSON_BYTES_MAX: usize = 640 * 1024;

/// What a call that reads or edits one file would do. The path is absolute, relative to the working directory, or begins with `~/`.
pub fn facts(kind: CallKind, file_path: &str, cx: &ExamineContext) -> Result<CallFacts, String> {
    let path = paths::locate(FIELD, file_path, &cx.cwd)?;
    let edited = Some(&path).filter(|_| !kind.is_read_only());
    Ok(CallFacts {
        is_shared: kind.is_read_only(),
        changes: edited.and_then(|path| path.resolved.clone()).into_iter().collect(),
        git_directories: git_directories(edited.cloned().map(CommandPath::Known).as_ref()),
        target: paths::display_path(&path.lexical, &cx.cwd),
        paths: vec![path],
        ..CallFacts::new(kind)
    })
}

pub(crate) struct TargetFile {
    /// Its absolute name, links and all.
    pub(crate) lexical: PathBuf,
    pub(crate) resolved: PathBuf,
    /// Its name for people and models.
    pub(crate) shown: String,
}

impl TargetFile {
    pub(crate) fn new(file_path: &str, cx: &ToolContext) -> Result<Self, String> {
        let path = paths::locate(FIELD, file_path, &cx.cwd)?;
        let PathFact { lexical, resolved, .. } = paths::check_decided(path, cx)?;
        let shown = paths::display_path(&lexical, &cx.cwd);
        let Some(resolved) = resolved else {
            return Err(format!(
                "Cannot resolve {shown}: a symbolic link in it is broken or circular, a directory in it \
                 cannot be entered, or it goes through a magic link of /proc or /dev/fd. Name the file \
                 itself."
            ));
        };
        Ok(Self { lexical, resolved, shown })
    }

    /// The absolute name as text, for structured output.
    pub(crate) fn file_path(&self) -> String {
        self.lexical.to_string_lossy().into_owned()
    }

    /// A file is not created under the name by which one that is not text was shown: the other would be meant.
    pub(crate) fn check_new_name(&self) -> Result<(), String> {
        let meant = || paths::with_bytes(&self.lexical).is_some_and(|path| path.symlink_metadata().is_ok());
        if !self.shown.contains('\u{fffd}') && !meant() {
            return Ok(());
        }
        Err(format!(
            "Not created: the name {} stands for bytes that are not UTF-8, which this tool cannot name. Use \
             Bash, which understands escapes such as `\\xff` inside `$'…'`.",
            self.shown
        ))
    }

    /// The error for a file that does not exist, with what may have been meant.
    pub(crate) fn missing(&self, cwd: &Path) -> String {
        let hint = if self.shown.contains('\u{fffd}') {
            " Its name contains the replacement character, which stands for bytes that are not UTF-8; this \
             tool cannot name such files. Use Bash, where a pattern can match them."
                .to_owned()
        } else if has_byte_escape(&self.shown) {
            " If it was listed like this, escapes such as `\\xff` stand for bytes that are not UTF-8; this tool \
             cannot name such files. Use Bash, which understands the escapes inside `$'…'`."
                .to_owned()
        } else if !self.resolved.parent().is_some_and(Path::is_dir) {
            " Its directory does not exist either.".to_owned()
        } else {
            match similar_names(&self.resolved) {
                similar if similar.is_empty() => String::new(),
                similar => format!(" Did you mean {}?", similar.join(" or ")),
            }
        };
        format!("{} does not exist. The working directory is {}.{hint}", self.shown, cwd.display())
    }
}

/// Whether a name looks as Glob and Grep show one that is not text.
fn has_byte_escape(name: &str) -> bool {
    let mut escapes = name.split("\\x").skip(1);
    escapes.any(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

/// Names next to a missing file that differ in case or extension only, or contain its stem.
fn similar_names(missing: &Path) -> Vec<String> {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let (Some(parent), Some(wanted)) = (missing.parent(), stem(missing)) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
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
    /// Wait for the thread, so that the output tells what really happened.
    Wait,
}

/// Runs `work` on a thread where it may block. Its error is text for the model.
pub(crate) async fn blocking(
    cx: ToolContext,
    on_cancel: OnCancel,
    work: impl FnOnce(&ToolContext) -> Result<ToolOutput, String> + Send + 'static,
) -> ToolOutput {
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
            () = cancel.cancelled() => return ToolOutput::error(CANCELLED),
        }
    };
    match joined {
        Ok(Ok(mut output)) => {
            // Texts full of control characters grow sixfold as JSON; then the structured form is left out.
            output.structured.take_if(|json| json.0.get().len() > STRUCTURED_JSON_BYTES_MAX);
            output
        }
        Ok(Err(error)) => ToolOutput::error(&error),
        Err(_) => ToolOutput::error("The tool failed on this input. Try another way."),
    }
}

/// A structured form without the fields that say nothing.
pub(crate) fn without_nulls(mut output: Value) -> Value {
    if let Some(fields) = output.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    output
}

pub(crate) const CANCELLED: &str = "The call was cancelled.";

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_huge_structured_form_is_left_out() {
        let keeps = async |size: usize| {
            let work = move |_: &ToolContext| Ok(ToolOutput::text("x").with_structured(&"y".repeat(size)));
            let outcome = blocking(ToolContext::detached("/".into()), OnCancel::Wait, work).await;
            outcome.structured.is_some()
        };
        assert!(keeps(1000).await);
        assert!(!keeps(STRUCTURED_JSON_BYTES_MAX).await);
    }

    #[test]
    fn a_link_that_was_swapped_after_the_decision_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join("mine"), "").unwrap();
        std::os::unix::fs::symlink("mine", root.join("link")).unwrap();
        let mut cx = ToolContext::detached(root.clone());
        let paths = vec![paths::locate(FIELD, "link", &root).unwrap()];
        cx.facts = std::sync::Arc::new(CallFacts { paths, ..CallFacts::new(CallKind::Read) });
        assert!(TargetFile::new("link", &cx).is_ok());
        std::fs::remove_file(root.join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
        let error = TargetFile::new("link", &cx).map(|_| ()).unwrap_err();
        assert!(error.contains("link now leads to another file"), "{error}");
    }

    #[tokio::test]
    async fn dropping_the_call_tells_the_thread() {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let work = move |cx: &ToolContext| {
            while !cx.cancel.is_cancelled() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let _ = sender.send(());
            Err(CANCELLED.to_owned())
        };
        let call = blocking(ToolContext::detached("/".into()), OnCancel::Leave, work);
        let early = tokio::time::timeout(std::time::Duration::from_millis(20), call).await;
        assert!(early.is_err(), "dropped while it was running");
        receiver.recv_timeout(std::time::Duration::from_secs(5)).unwrap();
    }
}
