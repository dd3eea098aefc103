//! JSON files that several processes change: each change is whole, and none is lost.
//!
//! A change happens under a lock that lies beside the file. The file is read again, changed, and replaced by a new one, so that
//! whoever reads it sees the old or the new content and nothing between. What a change does not touch stays as it is: names that
//! nobody here knows, their order, the indentation, the mode of the file, a link that leads to it.

mod files;

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

use files::FileLocation;

/// A JSON file that others may change at the same time.
///
/// ```
/// use windlass_config::SharedFile;
/// # let directory = tempfile::tempdir()?;
/// let file = SharedFile::new(directory.path().join("counts.json"));
/// file.update(|json| json["seen"] = 1.into())?;
/// assert_eq!(file.read()?["seen"], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedFile {
    path: PathBuf,
    leaves_lock: bool,
}

/// Why a shared file cannot be read or changed. It is as it was, unless the text says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum SharedFileError {
    /// Its content is no JSON. It is never overwritten.
    #[error("{}:{line}: {problem}. Correct the file or move it away; nothing was changed.", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where it stops to be JSON, counted from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Something else is in its place.
    #[error("cannot use {}: {problem}. Move it away; nothing was changed.", .path.display())]
    Foreign {
        /// The file, or where its link leads.
        path: PathBuf,
        /// What it is.
        problem: &'static str,
    },
    /// The system refuses.
    #[error("cannot {action} {}: {source}.", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl SharedFile {
    /// The file at a path. It need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), leaves_lock: true }
    }

    /// Takes the file of the lock away after each change: for folders in which others would wonder about it.
    #[must_use]
    pub fn leaving_no_lock(self) -> Self {
        Self { leaves_lock: false, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says now; an empty object if it is not there or has nothing in it.
    pub fn read(&self) -> Result<Value, SharedFileError> {
        // Without its directory it is not there either.
        let is_missing = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        match FileLocation::find(&self.path) {
            Ok(place) => place.read().map(|found| found.value),
            Err(SharedFileError::Io { source, .. }) if is_missing(&source) => {
                Ok(Value::Object(serde_json::Map::default()))
            }
            Err(error) => Err(error),
        }
    }

    /// Changes it: `change` is given what it says now, however many others change it. When this returns, the change is on the
    /// disk. A change that changes nothing writes nothing.
    ///
    /// Other changes wait meanwhile, so `change` must be quick. It must not update the same file.
    pub fn update<T>(&self, change: impl FnOnce(&mut Value) -> T) -> Result<T, SharedFileError> {
        files::create_directory(&self.path)?;
        let locked = FileLocation::lock(&self.path)?;
        let changed = Self::change(&locked, change);
        if !self.leaves_lock {
            locked.remove();
        }
        // Whoever comes next need not wait for the disk to remember the name; one wait serves several.
        let place = locked.release();
        let (result, is_new) = changed?;
        if is_new {
            place.sync_directory()?;
        }
        Ok(result)
    }

    /// Makes the change, and says whether anything is new.
    fn change<T>(
        locked: &files::LockedFile,
        change: impl FnOnce(&mut Value) -> T,
    ) -> Result<(T, bool), SharedFileError> {
        let mut found = locked.place.read()?;
        let before = found.value.clone();
        let result = change(&mut found.value);
        let is_new = found.value != before;
        if is_new {
            locked.replace(&found)?;
        }
        Ok((result, is_new))
    }
}

/// What a file says, and how.
struct SharedText {
    value: Value,
    /// What stands in front of the line of each field; nothing if everything is in one line.
    indent: Option<Vec<u8>>,
}

impl SharedText {
    /// Reads JSON; an error says in which line and why.
    fn parse(bytes: &[u8]) -> Result<Self, (usize, String)> {
        if bytes.trim_ascii().is_empty() {
            let value = Value::Object(serde_json::Map::default());
            return Ok(Self { value, indent: Some(b"  ".to_vec()) });
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| (error.line(), problem(&error)))?;
        Ok(Self { value, indent: indent(bytes.trim_ascii()) })
    }

    fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match &self.indent {
            None => self.value.serialize(&mut serde_json::Serializer::new(&mut bytes))?,
            Some(indent) => {
                let format = PrettyFormatter::with_indent(indent);
                self.value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, format))?;
            }
        }
        bytes.push(b'\n');
        Ok(bytes)
    }
}

fn indent(bytes: &[u8]) -> Option<Vec<u8>> {
    let newline = bytes.iter().position(|byte| *byte == b'\n')?;
    let behind = &bytes[newline + 1..];
    let blanks = behind.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(if blanks == 0 { b"  ".to_vec() } else { behind[..blanks].to_vec() })
}

/// The parser's words without the place, which is told in another way.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
