//! The manifest of the checkpoints: which prompt was given, what each call found at the paths it named, and what it left there.
//!
//! One JSON object per line, with a checksum at its end; it is only appended to. A line that is torn or damaged is skipped.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use windlass_text::numbers::hex;

use crate::create_private;
use crate::disk::{ends_in_a_line, if_there, sync_directory};
use crate::format::{FieldForm as _, PlainForm, check_sum, put_sum};
use crate::read::LineReader;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ManifestLine {
    /// A prompt: a point in time that a user can go back to.
    Prompt {
        n: u64,
        #[serde(with = "PlainForm")]
        uuid: Uuid,
        /// Further ids under which it is known.
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "PlainForm")]
        also: Vec<Uuid>,
        text: String,
        wall: u64,
    },
    /// A call is about to start; this is what it finds.
    Before {
        id: String,
        tool: String,
        /// It runs something that can do anything.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        execute: bool,
        /// What it is about, for people.
        about: String,
        files: Vec<PathSnapshot>,
    },
    /// A call is over; this is what it changed.
    After { id: String, files: Vec<PathChange> },
    /// Files are about to be brought back; this is what they are.
    Rewind { to: String, files: Vec<PathSnapshot> },
    /// They were brought back.
    Rewound { files: Vec<PathChange> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathSnapshot {
    #[serde(with = "PlainForm")]
    pub(crate) path: PathBuf,
    #[serde(flatten)]
    pub(crate) state: FileState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathChange {
    #[serde(with = "PlainForm")]
    pub(crate) path: PathBuf,
    pub(crate) was: FileState,
    pub(crate) now: FileState,
}

pub(crate) struct CheckpointManifest {
    pub(crate) path: PathBuf,
    file: Option<File>,
    /// The file may end in the middle of a line.
    is_torn: bool,
    /// Its name is on the disk.
    is_named: bool,
}

impl CheckpointManifest {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, is_torn: false, is_named: false }
    }

    /// Whether anything was ever written.
    pub(crate) fn is_there(&self) -> bool {
        self.file.is_some() || self.path.exists()
    }

    /// Puts lines behind all others, with one write.
    pub(crate) fn append(&mut self, lines: &[ManifestLine], should_sync: bool) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        self.open()?;
        if self.is_torn {
            bytes.push(b'\n');
        }
        for line in lines {
            let start = bytes.len();
            serde_json::to_writer(&mut bytes, line)?;
            put_sum(start, &mut bytes);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        self.is_torn = true;
        file.write_all(&bytes)?;
        self.is_torn = false;
        if should_sync {
            file.sync_data()?;
            self.sync_name()?;
        }
        Ok(())
    }

    /// The file's directory may be as new as the file.
    fn sync_name(&mut self) -> io::Result<()> {
        if !self.is_named {
            let directories = self.path.ancestors().skip(1).take(2);
            directories.map(File::open).try_for_each(|directory| sync_directory(&directory?))?;
            self.is_named = true;
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        if let Some(directory) = self.path.parent() {
            create_private(directory)?;
        }
        let file = OpenOptions::new().append(true).read(true).create(true).mode(0o600).open(&self.path)?;
        self.is_torn = ends_in_a_line(&file)?;
        self.file = Some(file);
        Ok(())
    }
}

/// A line as it was written; nothing if it is torn or damaged.
fn decode(line: &[u8]) -> Option<ManifestLine> {
    let line = std::str::from_utf8(line).ok()?;
    check_sum(line)?.ok()?;
    serde_json::from_str(line).ok()
}

/// Hands over the good lines of a manifest, the oldest first, starting at most `tail` bytes before its end. Returns how many
/// lines were skipped. Without a file there are none.
pub(crate) fn read(path: &Path, tail: Option<u64>, mut take: impl FnMut(ManifestLine)) -> io::Result<usize> {
    let Some(file) = if_there(File::open(path))? else { return Ok(0) };
    let length = file.metadata()?.len();
    let start = tail.map_or(0, |tail| length.saturating_sub(tail));
    let mut lines = LineReader::new(file, start, length)?;
    if start > 0 {
        // It may be the end of a line.
        lines.next()?;
    }
    let mut skipped = 0;
    while let Some(raw) = lines.next()? {
        match raw.bytes.and_then(decode) {
            Some(line) => take(line),
            None => skipped += usize::from(raw.length > 0),
        }
    }
    Ok(skipped)
}

/// What is at a path, as far as it can be brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum FileState {
    /// Nothing.
    Absent {
        /// So many directories above it are missing, too.
        #[serde(default, skip_serializing_if = "is_zero")]
        missing: u32,
    },
    /// A regular file whose content is kept.
    File {
        sum: Digest,
        size: u64,
        mode: u32,
    },
    Directory {
        mode: u32,
    },
    /// A symbolic link, or something behind one.
    Link,
    /// A file with further names.
    HardLinked,
    /// A pipe, socket or device.
    Special,
    /// A file that is too large to be kept.
    TooLarge {
        size: u64,
    },
    Unreadable {
        why: String,
    },
    /// A part of a repository's own files.
    Repository,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What kind of thing it is, when two states are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileStateKind {
    Absent,
    File,
    Directory,
    Other,
}

impl FileState {
    pub(crate) fn kind(&self) -> FileStateKind {
        match self {
            Self::Absent { .. } => FileStateKind::Absent,
            Self::File { .. } | Self::TooLarge { .. } => FileStateKind::File,
            Self::Directory { .. } => FileStateKind::Directory,
            _ => FileStateKind::Other,
        }
    }

    /// Whether there is no difference that could be brought back.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.kind() == FileStateKind::Absent && other.kind() == FileStateKind::Absent) || self == other
    }

    /// Whether both are files of the same content, whatever their modes.
    pub(crate) fn same_content(&self, other: &Self) -> bool {
        matches!((self, other), (Self::File { sum: a, .. }, Self::File { sum: b, .. }) if a == b)
    }

    /// Why nothing can be done about it, if so.
    pub(crate) fn obstacle(&self) -> Option<String> {
        Some(match self {
            Self::Link => "it is a symbolic link or below one; windlass does not follow links".to_owned(),
            Self::HardLinked => "it has several hard links".to_owned(),
            Self::Special => "it is not a regular file".to_owned(),
            Self::TooLarge { size } => format!("it is too large ({} MiB)", size >> 20),
            Self::Unreadable { why } => format!("it cannot be read: {why}"),
            Self::Repository => "it is one of git's own files".to_owned(),
            Self::Absent { .. } | Self::File { .. } | Self::Directory { .. } => return None,
        })
    }

    pub(crate) fn is_link(&self) -> bool {
        matches!(self, Self::Link | Self::HardLinked)
    }
}

/// The SHA-256 of a content, as 64 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Digest(pub(crate) String);

impl Digest {
    pub(crate) fn of(sha256: ring::digest::Digest) -> Self {
        Self(hex(sha256.as_ref()))
    }
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_hash = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then_some(Self(text)).ok_or("not a hash of 64 hex digits")
    }
}

/// Whether a path leads into the files of a repository, which are never kept nor brought back.
pub(crate) fn is_in_repository(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}
