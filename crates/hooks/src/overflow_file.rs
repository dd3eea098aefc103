//! What is too long for the conversation goes into a file, and its beginning stays.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tempfile::TempDir;
use windlass_protocol::{HookAnswer, HookPermission};
use windlass_text::folders::{create_private, create_temporary};

/// More letters of one text are not told.
const LETTERS_MAX: usize = 10_000;
/// As much of a longer one is shown.
const PREVIEW: usize = 2_000;

#[derive(Debug, Default)]
pub(crate) struct OverflowFiles {
    directory: Option<PathBuf>,
    own: OnceLock<Option<TempDir>>,
}

impl OverflowFiles {
    /// Into this directory; without one, into a private one that goes with the runner.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self { directory, ..Self::default() }
    }

    /// Makes everything that an answer says short enough.
    pub(crate) fn fit(&self, answer: &mut HookAnswer) {
        let texts = answer.blocks.iter_mut().chain(&mut answer.context).chain(&mut answer.notices);
        let reason = match &mut answer.permission {
            Some(HookPermission::Deny(reason) | HookPermission::Ask(reason)) => Some(reason),
            Some(HookPermission::Allow | HookPermission::Defer) | None => None,
        };
        let failures = answer.failures.iter_mut().map(|failure| &mut failure.text);
        for text in texts.chain(failures).chain(&mut answer.stop).chain(reason) {
            self.shorten(text);
        }
    }

    pub(crate) fn shorten(&self, text: &mut String) {
        if text.len() <= LETTERS_MAX || text.chars().count() <= LETTERS_MAX {
            return;
        }
        let preview: String = text.chars().take(PREVIEW).collect();
        let letters = text.chars().count();
        *text = match self.write(text) {
            Some(file) => {
                format!("{preview}\n… ({letters} characters; full text in the file {})", file.display())
            }
            None => format!("{preview}\n… ({letters} characters; the rest could not be saved)"),
        };
    }

    fn write(&self, text: &str) -> Option<PathBuf> {
        let mut file =
            tempfile::Builder::new().prefix("hook-").suffix(".txt").tempfile_in(self.directory()?).ok()?;
        file.write_all(text.as_bytes()).ok()?;
        file.into_temp_path().keep().ok()
    }

    fn directory(&self) -> Option<&Path> {
        if let Some(directory) = &self.directory {
            return create_private(directory).is_ok().then_some(directory.as_path());
        }
        let own = self.own.get_or_init(|| create_temporary("windlass-hooks-").ok());
        own.as_ref().map(TempDir::path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_kept_in_a_file_and_begins_in_the_conversation() {
        let place = tempfile::tempdir().unwrap();
        let overflow_files = OverflowFiles::new(Some(place.path().join("outputs")));
        let mut short = "é".repeat(LETTERS_MAX);
        overflow_files.shorten(&mut short);
        assert_eq!(short.chars().count(), LETTERS_MAX);

        let whole = "é".repeat(LETTERS_MAX + 1);
        let mut long = whole.clone();
        overflow_files.shorten(&mut long);
        assert!(long.starts_with(&"é".repeat(PREVIEW)) && long.contains("10001 characters"), "{long}");
        let file = std::fs::read_dir(place.path().join("outputs")).unwrap().next().unwrap().unwrap();
        assert!(long.contains(file.path().to_str().unwrap()));
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), whole);
    }

    #[test]
    fn without_a_place_of_its_own_a_private_one_is_made() {
        let overflow_files = OverflowFiles::new(None);
        let mut long = "x".repeat(LETTERS_MAX + 1);
        overflow_files.shorten(&mut long);
        let path = long.rsplit_once("the file ").unwrap().1.trim_end_matches(')').to_owned();
        assert!(Path::new(&path).exists());
        drop(overflow_files);
        assert!(!Path::new(&path).exists());
    }
}
