//! What is at a path, as far as it can be brought back.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

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

/// The SHA-256 of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

impl Digest {
    pub(crate) fn of(sha256: ring::digest::Digest) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(sha256.as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("not a hash of 64 hex digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// Whether a path leads into the files of a repository, which are never kept nor brought back.
pub(crate) fn is_in_repository(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == ".git")
}
