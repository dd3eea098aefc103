//! Files for results that are too large for the transcript. Only the user can read them.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::NamedTempFile;
use windlass_protocol::{Block, RawObject};
use windlass_text::folders::SessionFolder;

/// File systems take names of 255 bytes.
const NAME_BYTES_MAX: usize = 200;

/// The files of one session. A directory that nobody named is deleted with it; if the session is killed, by a later one.
#[derive(Debug)]
pub(crate) struct ResultFiles {
    folder: Mutex<SessionFolder>,
}

impl ResultFiles {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { folder: Mutex::new(SessionFolder::new(directory, "windlass-results-", is_result)) }
    }

    /// Writes the results and returns the file of each, resolved; none where it could not be written. Blocks.
    pub(crate) fn store(&self, results: &[(Arc<str>, Block)]) -> Vec<Option<PathBuf>> {
        let directory =
            self.folder.lock().unwrap_or_else(PoisonError::into_inner).path().and_then(Path::canonicalize);
        let Ok(directory) = directory else { return vec![None; results.len()] };
        results.iter().map(|(id, result)| write(&directory, id, &text_of(result)).ok()).collect()
    }
}

fn is_result(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "txt")
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
        let text = RawObject::parse(result.json()).ok().and_then(|result| result.read("content"));
        return text.unwrap_or_else(|| result.json().to_owned());
    }
    let texts: Vec<&str> = inside.iter().map(|block| block.as_text().unwrap_or(block.json())).collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
}
