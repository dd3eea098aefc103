//! Looks around between two requests: which files changed on disk, what others say, and which background tasks run.
//!
//! A file that looks from outside as it did costs one `stat`, done at once. Only one that looks different is read, on a
//! thread. A change within one tick of the file system's clock that keeps the size is missed; Edit and Write are not
//! fooled.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_ports::{BoxFuture, ChangeWatcher};
use windlass_protocol::{AmbientChanges, FileChange, FileSeen, FileStamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::fingerprint::describe_change;
use crate::open::{OpenError, OpenFile, open_regular, stamp};
use crate::read::is_text;
use crate::tasks::Tasks;
use crate::text_encoding::TextEncoding;

/// As many of the files seen last are looked at.
const FILES_MAX: usize = 50;
/// Larger files are not read only to say what changed in them.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The longest a character can be in any encoding.
const CHAR_BYTES_MAX: usize = 4;

/// Looks around for the sessions of one engine.
#[derive(Clone, Debug, Default)]
pub struct FileChangeWatcher {
    tasks: Option<Arc<Tasks>>,
    found: Arc<Mutex<ChangesByPath>>,
}

/// What was found of files that do not look any more as they did when they were seen, so that each is read once.
type ChangesByPath = BTreeMap<PathBuf, LookedUpChange>;

#[derive(Clone, Debug)]
struct LookedUpChange {
    /// The content that was known.
    known: u64,
    /// What the file looked like then; nothing if it was gone.
    stamp: Option<FileStamp>,
    /// What had changed, if anything had.
    change: Option<FileChange>,
}

impl FileChangeWatcher {
    /// With the background tasks of a session.
    pub fn new(tasks: Arc<Tasks>) -> Self {
        Self { tasks: Some(tasks), ..Self::default() }
    }

    /// The tasks that are running, as lines for the model.
    fn running(&self) -> Option<Arc<str>> {
        let running = self.tasks.as_ref()?.running();
        if running.is_empty() {
            return None;
        }
        let mut text = String::from("Running background tasks:");
        for task in running {
            let _ =
                write!(text, "\n- {}: {} (output: {})", task.id, task.command, task.output_file.display());
        }
        Some(text.into())
    }

    fn lock_found(&self) -> MutexGuard<'_, ChangesByPath> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The changes that are known already, and the files that must be read to know.
    fn compare(&self, known: Vec<FileSeen>) -> (Vec<FileChange>, Vec<FileSeen>) {
        let (mut changes, mut unclear) = (Vec::new(), Vec::new());
        let mut found = self.lock_found();
        found.retain(|path, finding| {
            known.iter().any(|seen| seen.path == *path && seen.hash == finding.known)
        });
        for seen in known {
            let now = seen.path.symlink_metadata().ok().map(|meta| stamp(&meta));
            if now.is_some() && now == seen.stamp {
                continue;
            }
            match found.get(&seen.path) {
                Some(finding) if finding.stamp == now => changes.extend(finding.change.clone()),
                _ => unclear.push(seen),
            }
        }
        (changes, unclear)
    }

    /// Reads the files that look different. Blocks.
    fn read_changed(&self, unclear: Vec<FileSeen>) -> Vec<FileChange> {
        let findings: Vec<(PathBuf, LookedUpChange)> =
            unclear.into_iter().filter_map(|seen| Some((seen.path.clone(), finding(&seen)?))).collect();
        let changes = findings.iter().filter_map(|(_, finding)| finding.change.clone()).collect();
        self.lock_found().extend(findings);
        changes
    }
}

impl ChangeWatcher for FileChangeWatcher {
    fn look(
        &self,
        mut known: Vec<FileSeen>,
        show: Vec<(PathBuf, usize)>,
    ) -> BoxFuture<'static, AmbientChanges> {
        let change_watcher = self.clone();
        Box::pin(async move {
            known.truncate(FILES_MAX);
            let (changed, unclear) = change_watcher.compare(known);
            let background = change_watcher.running();
            let mut around = AmbientChanges { changed, background, ..AmbientChanges::default() };
            if unclear.is_empty() && show.is_empty() {
                return around;
            }
            let work = move || {
                let shown =
                    show.into_iter().filter_map(|(path, max)| text_of(&path, max).map(|text| (path, text)));
                (change_watcher.read_changed(unclear), shown.collect())
            };
            if let Ok((changed, shown)) = tokio::task::spawn_blocking(work).await {
                around.changed.extend(changed);
                around.shown = shown;
            }
            around
        })
    }
}

/// What became of a file that looks different; nothing if that cannot be found out.
fn finding(seen: &FileSeen) -> Option<LookedUpChange> {
    let changed = |hash: u64, note: String| FileChange { path: seen.path.clone(), hash, note };
    let gone = |note| Some(LookedUpChange { known: seen.hash, stamp: None, change: Some(changed(0, note)) });
    let OpenFile { file, stamp } = match open_regular(&seen.path) {
        Ok(open) => open,
        Err(OpenError::Missing) => return gone("It no longer exists.".to_owned()),
        Err(error @ (OpenError::Directory | OpenError::Special(_))) => {
            return gone(format!("It {error} now."));
        }
        Err(OpenError::Io(_)) => return None,
    };
    let size = stamp.size;
    let change = if size > BYTES_MAX {
        let looks = format!("{stamp:?}");
        Some(changed(xxh3_64(looks.as_bytes()), format!("It now has {size} bytes.")))
    } else {
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        (&file).take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let hash = xxh3_64(&bytes);
        let describe = || describe_change(seen, &bytes, TextEncoding::detect(&bytes));
        (hash != seen.hash).then(|| changed(hash, describe()))
    };
    Some(LookedUpChange { known: seen.hash, stamp: Some(stamp), change })
}

/// The beginning of a text file; nothing if it is no text or cannot be read.
fn text_of(path: &Path, chars_max: usize) -> Option<Arc<str>> {
    let OpenFile { file, stamp } = open_regular(path).ok()?;
    let bytes_max = chars_max.saturating_mul(CHAR_BYTES_MAX).saturating_add(CHAR_BYTES_MAX);
    let mut bytes = Vec::new();
    (&file).take(bytes_max as u64).read_to_end(&mut bytes).ok()?;
    let complete = bytes.len() < bytes_max;
    if !is_text(&bytes, complete) {
        return None;
    }
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
        && !complete
    {
        // Half a character says nothing about the encoding.
        bytes.truncate(error.valid_up_to());
    }
    let encoding = TextEncoding::detect(&bytes);
    let text = encoding.decode_lossy(&bytes[encoding.bom().len()..]);
    match text.char_indices().nth(chars_max) {
        None => Some(text.into()),
        Some((end, _)) => {
            let (start, size) = (&text[..end], stamp.size);
            Some(format!("{start}\n[The first {chars_max} characters of a file of {size} bytes.]").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;
    use crate::fingerprint::seen_file;
    use crate::fixture::Fixture;

    fn seen(fixture: &Fixture, names: &[&str]) -> Vec<FileSeen> {
        names.iter().map(|name| seen_file(&fixture.path(name), true).unwrap()).collect()
    }

    /// The names and notes of the files that changed.
    async fn changes(change_watcher: &FileChangeWatcher, known: &[FileSeen]) -> Vec<(String, String)> {
        let around = change_watcher.look(known.to_vec(), Vec::new()).await;
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        around.changed.into_iter().map(|change| (name(&change.path), change.note)).collect()
    }

    #[tokio::test]
    async fn changed_and_missing_files_are_named_with_what_changed() {
        let fixture =
            Fixture::new(&[("same", b"a\n"), ("other", b"a\nb\nc\n"), ("gone", b"x\n"), ("dir", b"x\n")]);
        let known = seen(&fixture, &["same", "other", "gone", "dir"]);
        let change_watcher = FileChangeWatcher::default();
        assert_eq!(changes(&change_watcher, &known).await, []);
        fs::write(fixture.path("other"), "a\nB\nc\nd\n").unwrap();
        fs::remove_file(fixture.path("gone")).unwrap();
        fs::remove_file(fixture.path("dir")).unwrap();
        fs::create_dir(fixture.path("dir")).unwrap();
        let expected = [
            ("other", "Changed line 2 (was line 2):\n2\tB\nNew line 4:\n4\td"),
            ("gone", "It no longer exists."),
            ("dir", "It is a directory now."),
        ];
        let expected = expected.map(|(name, note)| (name.to_owned(), note.to_owned()));
        for _ in 0..2 {
            let mut found = changes(&change_watcher, &known).await;
            found.sort_by_key(|(name, _)| expected.iter().position(|(expected, _)| expected == name));
            assert_eq!(found, expected, "a change is told as long as it is asked for");
        }
        let known = seen(&fixture, &["same", "other"]);
        assert_eq!(changes(&change_watcher, &known).await, [], "what was read again is known");
    }

    #[tokio::test]
    async fn a_file_that_was_only_touched_has_not_changed_and_one_that_looks_the_same_is_not_read() {
        let fixture = Fixture::new(&[("f", b"one\n")]);
        let mut known = seen(&fixture, &["f"]);
        let file = fs::File::options().write(true).open(fixture.path("f")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(changes(&FileChangeWatcher::default(), &known).await, []);
        known[0].stamp = Some(stamp(&file.metadata().unwrap()));
        known[0].hash += 1;
        assert_eq!(changes(&FileChangeWatcher::default(), &known).await, [], "only its look was compared");
        known[0].stamp = None;
        assert_eq!(
            changes(&FileChangeWatcher::default(), &known).await.len(),
            1,
            "without a stamp it is read"
        );
    }

    #[tokio::test]
    async fn a_file_that_came_back_is_looked_at_again() {
        let fixture = Fixture::new(&[("f", b"one\n")]);
        let known = seen(&fixture, &["f"]);
        let change_watcher = FileChangeWatcher::default();
        fs::remove_file(fixture.path("f")).unwrap();
        assert_eq!(changes(&change_watcher, &known).await.len(), 1);
        fs::write(fixture.path("f"), "one\n").unwrap();
        assert_eq!(changes(&change_watcher, &known).await, []);
    }

    #[tokio::test]
    async fn only_the_latest_files_are_looked_at() {
        let names: Vec<String> = (0..60).map(|number| format!("f{number}")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
        let fixture = Fixture::new(&files);
        let known = seen(&fixture, &names.iter().map(String::as_str).collect::<Vec<_>>());
        for name in &names {
            fs::write(fixture.path(name), "changed").unwrap();
        }
        assert_eq!(changes(&FileChangeWatcher::default(), &known).await.len(), FILES_MAX);
    }

    #[tokio::test]
    async fn texts_are_shown_as_far_as_asked_and_nothing_else_is() {
        let fixture = Fixture::new(&[
            ("text", "häuser".as_bytes()),
            ("binary", b"a\0b"),
            ("old", b"caf\xe9"),
            ("wide", "日本語日本語日本語".as_bytes()),
        ]);
        let shown = async |name: &str, chars: usize| {
            let around =
                FileChangeWatcher::default().look(Vec::new(), vec![(fixture.path(name), chars)]).await;
            around.shown.first().map(|(_, text)| text.to_string())
        };
        assert_eq!(shown("text", 6).await.unwrap(), "häuser");
        assert_eq!(shown("text", 2).await.unwrap(), "hä\n[The first 2 characters of a file of 7 bytes.]");
        assert_eq!(shown("old", 9).await.unwrap(), "café");
        assert!(shown("wide", 4).await.unwrap().starts_with("日本語日\n"));
        assert_eq!(shown("binary", 9).await, None);
        assert_eq!(shown("missing", 9).await, None);
    }

    #[tokio::test]
    async fn running_tasks_are_listed() {
        let tasks = Tasks::new(None);
        let change_watcher = FileChangeWatcher::new(tasks.clone());
        let listed = async || change_watcher.look(Vec::new(), Vec::new()).await.background;
        assert_eq!(listed().await, None);
        let _signals = tasks.begin(7, "make watch".into(), "/tmp/out".into()).unwrap();
        assert_eq!(
            &*listed().await.unwrap(),
            "Running background tasks:\n- bash-7: make watch (output: /tmp/out)"
        );
    }
}
