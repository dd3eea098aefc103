//! What is wrong with a settings file, and how its text is shown: so that nothing in it can pretend to be something else.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use windlass_text::invisible::{self, Invisible};
use windlass_text::shorten::shorten;

use super::origin::SettingOrigin;

/// What becomes of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A key is unknown or not supported yet: other programs may read the file too. Everything else holds.
    Ignored,
    /// Everything holds; the user should know.
    Notice,
    /// A value is left out; the rest of the file holds.
    Warning,
    /// Nothing may start: a rule that forbids something could be lost.
    Fatal,
}

/// Something wrong with a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem {
    /// The file; none for JSON on the command line.
    pub file: Option<PathBuf>,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: u32,
    /// The character in the line, counted from 1; 0 for the file as a whole.
    pub column: u32,
    /// What is wrong.
    pub what: String,
    /// What to do about it; empty if there is nothing to do.
    pub advice: String,
    /// What becomes of it.
    pub severity: Severity,
}

impl SettingsProblem {
    /// A problem with a value.
    pub(crate) fn at(origin: &SettingOrigin, severity: Severity, what: String, advice: &str) -> Self {
        let file = origin.file.as_deref().map(Path::to_owned);
        Self { file, line: origin.line, column: origin.column, what, advice: advice.to_owned(), severity }
    }

    /// A problem with a file as a whole.
    pub(crate) fn with_file(file: &Path, severity: Severity, what: String, advice: &str) -> Self {
        let (file, advice) = (Some(file.to_owned()), advice.to_owned());
        Self { file, line: 0, column: 0, what, advice, severity }
    }
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => f.write_str(&visible(&file.to_string_lossy()))?,
            None => f.write_str("--settings")?,
        }
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}.", visible(&self.what))?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, " {}", visible(&self.advice)) }
    }
}

/// The text with everything that cannot be seen written out, as `<U+202E>`.
pub(crate) fn visible(text: &str) -> String {
    invisible::visible(text, Invisible::Blank)
}

/// The beginning of a text, for one line.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    const CHARS_MAX: usize = 60;
    shorten(text, CHARS_MAX, "...")
}
