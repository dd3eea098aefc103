//! Files for results that are too large for the transcript. Only the user can read them.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir};
use windlass_protocol::{Block, RawObject};

/// How the names of our directories begin.
const PREFIX: &str = "windlass-results-";
/// A directory that is not locked and younger than this may be one that somebody is just making.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);
/// Looking for abandoned directories ends after so many names.
const NAMES_MAX: usize = 10_000;
/// Only the user may enter.
const PRIVATE: u32 = 0o700;
/// File systems take names of 255 bytes.
const NAME_BYTES_MAX: usize = 200;

/// The files of one session. A directory that nobody named is deleted with it; if the session is killed, by a later one.
#[derive(Debug)]
pub(crate) struct ResultFiles {
    place: Mutex<Place>,
}

#[derive(Debug)]
enum Place {
    /// A temporary directory, once it is needed.
    Later,
    Temporary {
        directory: TempDir,
        /// Says that somebody uses the directory: the kernel gives it back however its holder ends.
        _lock: File,
    },
    Given(PathBuf),
}

impl ResultFiles {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { place: Mutex::new(directory.map_or(Place::Later, Place::Given)) }
    }

    /// Writes the results and returns the file of each, resolved; none where it could not be written. Blocks.
    pub(crate) fn store(&self, results: &[(Arc<str>, Block)]) -> Vec<Option<PathBuf>> {
        let Ok(directory) = self.directory() else { return vec![None; results.len()] };
        results.iter().map(|(id, result)| write(&directory, id, &text_of(result)).ok()).collect()
    }

    fn directory(&self) -> io::Result<PathBuf> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Place::Later = *place {
            *place = make_temporary(&std::env::temp_dir())?;
        }
        match &*place {
            Place::Temporary { directory, .. } => directory.path().canonicalize(),
            Place::Given(directory) => {
                DirBuilder::new().recursive(true).mode(PRIVATE).create(directory)?;
                directory.canonicalize()
            }
            Place::Later => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn make_temporary(parent: &Path) -> io::Result<Place> {
    let private = Permissions::from_mode(PRIVATE);
    let directory = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(parent)?;
    let lock = File::open(directory.path())?;
    // Where nothing can be locked, nobody will take the directory for abandoned either.
    let _ = lock.try_lock();
    remove_abandoned(parent, &lock.metadata()?);
    Ok(Place::Temporary { directory, _lock: lock })
}

/// Deletes what killed sessions left in `parent`; `ours` is what such a directory looks like.
fn remove_abandoned(parent: &Path, ours: &Metadata) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    let is_like = |meta: &Metadata| meta.is_dir() && meta.uid() == ours.uid() && meta.mode() == ours.mode();
    let is_old = |meta: &Metadata| {
        let age = meta.modified().ok().and_then(|modified| modified.elapsed().ok());
        age.is_some_and(|age| age > ABANDONED_AFTER)
    };
    for entry in entries.flatten().take(NAMES_MAX) {
        let is_named = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_named && entry.metadata().is_ok_and(|meta| is_like(&meta) && is_old(&meta)) {
            // What cannot be deleted stays.
            let _ = remove_if_unused(&entry.path());
        }
    }
}

/// Deletes texts and, if nothing else is in it, their directory.
fn remove_if_unused(directory: &Path) -> io::Result<()> {
    let lock = File::open(directory)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    for entry in std::fs::read_dir(directory)?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "txt") {
            std::fs::remove_file(entry.path())?;
        }
    }
    std::fs::remove_dir(directory)
}

/// The file is there whole or not at all.
fn write(directory: &Path, tool_use_id: &str, text: &str) -> io::Result<PathBuf> {
    let path = directory.join(format!("{}.txt", name_of(tool_use_id)?));
    let mut draft = NamedTempFile::new_in(directory)?;
    draft.write_all(text.as_bytes())?;
    draft.persist(&path)?;
    Ok(path)
}

/// The id as a name: what could mean something to a file system is escaped, so that different ids have different names.
fn name_of(tool_use_id: &str) -> io::Result<String> {
    let mut name = String::new();
    for byte in tool_use_id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        Err(io::ErrorKind::InvalidFilename.into())
    } else {
        Ok(name)
    }
}

/// Everything a result says: texts as they are, anything else as JSON.
fn text_of(result: &Block) -> String {
    let inside = result.result_blocks();
    if inside.is_empty() {
        let content = RawObject::parse(result.json()).ok().and_then(|result| result.get("content"));
        let text = content.and_then(|content| serde_json::from_str(content.get()).ok());
        return text.unwrap_or_else(|| result.json().to_owned());
    }
    let texts: Vec<&str> = inside.iter().map(|block| block.as_text().unwrap_or(block.json())).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless_and_differ() {
        let check = |id: &str, expected: Option<&str>| assert_eq!(name_of(id).ok().as_deref(), expected);
        check("toolu_01-aB", Some("toolu_01-aB"));
        check("../x", Some("%2E%2E%2Fx"));
        check("a.b", Some("a%2Eb"));
        check("ä", Some("%C3%A4"));
        check("", None);
        check(&"x".repeat(300), None);
    }

    #[test]
    fn all_blocks_of_a_result_are_kept() {
        let check =
            |json: &str, expected: &str| assert_eq!(text_of(&Block::from_json(json).unwrap()), expected);
        check(r#"{"type":"tool_result","tool_use_id":"a","content":"one\ntwo"}"#, "one\ntwo");
        check(
            r#"{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"one"},{"type":"image","source":{}},{"type":"text","text":"two"}]}"#,
            "one\n{\"type\":\"image\",\"source\":{}}\ntwo",
        );
        check(r#"{"type":"tool_result","tool_use_id":"a"}"#, r#"{"type":"tool_result","tool_use_id":"a"}"#);
    }

    #[test]
    fn files_are_private_and_go_with_the_session() {
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let files = ResultFiles::new(None);
        let stored = files.store(&[
            ("a".into(), Block::tool_result("a", &[Block::text("text")], false)),
            ("".into(), Block::tool_result("", &[Block::text("text")], false)),
        ]);
        let [Some(path), None] = &stored[..] else { panic!("{stored:?}") };
        let directory = path.parent().unwrap();
        assert_eq!((mode(directory), mode(path)), (0o700, 0o600));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "text");
        assert_eq!(std::fs::read_dir(directory).unwrap().count(), 1, "no draft is left");
        drop(files);
        assert!(!directory.exists());
    }

    #[test]
    fn files_in_a_given_directory_stay_and_a_place_that_cannot_be_made_is_no_crash() {
        let dir = tempfile::tempdir().unwrap();
        let result = [("a".into(), Block::tool_result("a", &[Block::text("text")], false))];
        let place = dir.path().join("made/when/needed");
        let files = ResultFiles::new(Some(place.clone()));
        assert_eq!(files.store(&result), [Some(place.canonicalize().unwrap().join("a.txt"))]);
        drop(files);
        assert!(place.join("a.txt").exists());
        let files = ResultFiles::new(Some(place.join("a.txt/below")));
        assert_eq!(files.store(&result), [None]);
    }

    #[test]
    fn what_a_killed_session_left_is_deleted_by_the_next() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str| {
            let path = parent.path().join(name);
            DirBuilder::new().mode(PRIVATE).create(&path).unwrap();
            std::fs::write(path.join(file), "x").unwrap();
            path
        };
        let past = std::time::SystemTime::now() - 2 * ABANDONED_AFTER;
        let abandoned = make("windlass-results-a", "toolu_1.txt");
        let young = make("windlass-results-b", "toolu_1.txt");
        let foreign = make("windlass-results-c", "notes.md");
        let used = make("windlass-results-d", "toolu_1.txt");
        let other = make("notes", "toolu_1.txt");
        for path in [&abandoned, &foreign, &used, &other] {
            File::open(path).unwrap().set_modified(past).unwrap();
        }
        let lock = File::open(&used).unwrap();
        lock.try_lock().unwrap();
        let _place = make_temporary(parent.path()).unwrap();
        assert!(!abandoned.exists());
        for path in [young, foreign, used, other] {
            assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "{}", path.display());
        }
    }
}
