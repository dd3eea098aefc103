//! The list of files that a repository tracks, as it stands in its index.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::directory::{common_directory, dot_git_above, git_directory, open, read_bytes, read_text};
use crate::programs::has_other_objects;
use crate::settings::CONFIG_BYTES_MAX;

/// A larger index is not looked through as a whole.
pub(crate) const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The length of the checksum at the end, of the usual kind and of the other one.
const CHECKSUM: usize = 20;
const LONG_CHECKSUM: usize = 32;

/// The tracked files, and which are symlinks; none without a repository, `None` for an unknown index.
pub fn tracked_files(directory: &Path) -> Option<Vec<(PathBuf, bool)>> {
    let Some(dot_git) = dot_git_above(directory) else { return Some(Vec::new()) };
    if has_other_objects(&dot_git) {
        return None;
    }
    let bytes = match read_bytes(&git_directory(&dot_git)?.join("index"), BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(Vec::new()),
        read => read.ok()?,
    };
    let mut index = IndexReader::new(&*bytes, CHECKSUM).ok()?;
    let mut files = Vec::new();
    while index.read_entry().ok()? {
        let path = dot_git.with_file_name(std::str::from_utf8(&index.name).ok()?);
        files.push((path, index.mode & 0o170_000 == 0o120_000));
    }
    (!is_split(&bytes)).then_some(files)
}

/// Whether the index in a directory of git names a file, or a folder or submodule that it is in.
pub(crate) fn index_names(git_directory: &Path, file: &str) -> io::Result<bool> {
    let index = match open(&git_directory.join("index")) {
        Ok(index) => index,
        // Nothing was ever added.
        Err(error) if is_missing(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    // The rest of a split index lies in another file.
    for entry in std::fs::read_dir(git_directory)? {
        if entry?.file_name().as_encoded_bytes().starts_with(b"sharedindex.") {
            return Ok(true);
        }
    }
    let has_long_ids = match read_text(&common_directory(git_directory).join("config"), CONFIG_BYTES_MAX) {
        Ok(text) => text.to_ascii_lowercase().contains("sha256"),
        Err(error) if is_missing(&error) => false,
        Err(error) => return Err(error),
    };
    let id_bytes = if has_long_ids { LONG_CHECKSUM } else { CHECKSUM };
    IndexReader::new(BufReader::new(index), id_bytes)?.names(file.as_bytes())
}

/// Whether there is no such file: its folder may be missing or be a file.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The entries of an index, read one by one. They are sorted by name.
struct IndexReader<R> {
    input: R,
    version: u32,
    entries_left: u32,
    id_bytes: usize,
    /// Of the entry read last.
    name: Vec<u8>,
    mode: usize,
}

impl<R: BufRead> IndexReader<R> {
    fn new(mut input: R, id_bytes: usize) -> io::Result<Self> {
        let mut word = || {
            let mut bytes = [0; 4];
            input.read_exact(&mut bytes).map(|()| u32::from_be_bytes(bytes))
        };
        let [magic, version, entries_left] = [word()?, word()?, word()?];
        if magic != u32::from_be_bytes(*b"DIRC") || !(2..=4).contains(&version) {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(Self { input, version, entries_left, id_bytes, name: Vec::new(), mode: 0 })
    }

    fn names(mut self, file: &[u8]) -> io::Result<bool> {
        while self.read_entry()? {
            if self.covers(file) {
                return Ok(true);
            }
            if self.name.as_slice() > file {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Whether the entry is the file, or a folder or submodule around it. Case may not matter to the disk.
    fn covers(&self, file: &[u8]) -> bool {
        let name = self.name.strip_suffix(b"/").unwrap_or(&self.name);
        let begins = file.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        begins && matches!(file.get(name.len()), None | Some(b'/'))
    }

    /// Reads the next entry; false behind the last.
    fn read_entry(&mut self) -> io::Result<bool> {
        const FACTS: usize = 40;
        const MODE_AT: usize = 24;
        const EXTENDED: u16 = 0x4000;
        let Some(entries_left) = self.entries_left.checked_sub(1) else { return Ok(false) };
        self.entries_left = entries_left;
        let mut facts = [0; FACTS + LONG_CHECKSUM];
        self.input.read_exact(&mut facts[..FACTS + self.id_bytes])?;
        self.mode = number(&facts, MODE_AT).unwrap_or_default();
        let mut length = FACTS + self.id_bytes + 2;
        let mut flags = [0; 2];
        self.input.read_exact(&mut flags)?;
        if self.version >= 3 && u16::from_be_bytes(flags) & EXTENDED != 0 {
            self.input.read_exact(&mut flags)?;
            length += 2;
        }
        if self.version == 4 {
            // A name is told by how it differs from the one before.
            let shared = self.name.len().checked_sub(self.read_packed()?);
            self.name.truncate(shared.ok_or(ErrorKind::InvalidData)?);
            self.read_name()?;
        } else {
            self.name.clear();
            length += self.read_name()?;
            // The zero behind the name is one of up to eight that fill the entry up.
            let filling = 7 - length % 8;
            self.input.read_exact(&mut [0; 8][..filling])?;
        }
        Ok(true)
    }

    /// Reads up to the next zero and says how many bytes stood before it.
    fn read_name(&mut self) -> io::Result<usize> {
        const NAME_BYTES_MAX: u64 = 64 * 1024;
        let before = self.name.len();
        (&mut self.input).take(NAME_BYTES_MAX + 1).read_until(0, &mut self.name)?;
        match self.name.pop() {
            Some(0) if self.name.len() as u64 <= NAME_BYTES_MAX => Ok(self.name.len() - before),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }

    /// A number as git packs it: seven bits in each byte, and one more for each byte that follows.
    fn read_packed(&mut self) -> io::Result<usize> {
        let mut number = 0_usize;
        loop {
            let mut byte = [0];
            self.input.read_exact(&mut byte)?;
            let bits = usize::from(byte[0] & 0x7f);
            let shifted = number.checked_mul(128).ok_or(ErrorKind::InvalidData)?;
            number = shifted.checked_add(bits).ok_or(ErrorKind::InvalidData)?;
            if byte[0] & 0x80 == 0 {
                return Ok(number);
            }
            number = number.checked_add(1).ok_or(ErrorKind::InvalidData)?;
        }
    }
}

/// Whether the index is split: behind its entries stands the extension `link`, then only extensions.
pub(crate) fn is_split(index: &[u8]) -> bool {
    memchr::memmem::find_iter(index, b"link").any(|at| {
        // It begins with the checksum of the other file.
        let Some(length) = number(index, at + 4).filter(|length| *length >= CHECKSUM) else { return false };
        ends_in_extensions(index, at + 8 + length)
    })
}

/// Whether nothing but extensions and the checksum stands behind a place. Git knows some and skips what begins with a capital letter.
fn ends_in_extensions(index: &[u8], mut at: usize) -> bool {
    loop {
        let Some(rest) = index.get(at..).filter(|rest| rest.len() >= CHECKSUM) else { return false };
        if rest.len() < CHECKSUM + 8 {
            return true;
        }
        let is_known = rest[0].is_ascii_uppercase() || rest.starts_with(b"link") || rest.starts_with(b"sdir");
        match number(rest, 4) {
            Some(length) if is_known && length < rest.len() => at += 8 + length,
            // Git stops there and complains of nothing.
            _ => return is_known || rest.len() == LONG_CHECKSUM,
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(directory).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes a repository with some files, does so with it, and says which names and links are tracked.
    fn tracked(then: &[&[&str]]) -> Option<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "-q"]);
        assert!(tracked_files(root).unwrap().is_empty());
        std::fs::create_dir(root.join("deep")).unwrap();
        for name in ["a", "deep/long-enough-to-be-filled-up", "deep/long-enough-too"] {
            std::fs::write(root.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        git(root, &["add", "."]);
        for arguments in then {
            git(root, arguments);
        }
        let shown = |(path, is_link): (PathBuf, bool)| {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if is_link { format!("{name}@") } else { name }
        };
        Some(tracked_files(&root.join("deep"))?.into_iter().map(shown).collect())
    }

    #[test]
    fn every_version_is_read_and_what_is_elsewhere_is_not_guessed() {
        let all = ["a", "deep/long-enough-to-be-filled-up", "deep/long-enough-too", "link@"];
        for version in ["2", "3", "4"] {
            let found = tracked(&[&["update-index", "--index-version", version]]);
            assert_eq!(found.as_deref(), Some(&all.map(str::to_owned)[..]), "{version}");
        }
        assert_eq!(tracked(&[&["update-index", "--split-index"]]), None);
        assert_eq!(tracked(&[&["config", "extensions.objectFormat", "sha256"]]), None);
    }

    proptest! {
        #[test]
        fn no_index_breaks_the_reader(version in 0_u32..6, count: u32, long: bool, rest: Vec<u8>) {
            let mut bytes = b"DIRC".to_vec();
            bytes.extend(version.to_be_bytes());
            bytes.extend(count.to_be_bytes());
            bytes.extend(rest);
            let id_bytes = if long { LONG_CHECKSUM } else { CHECKSUM };
            let index = IndexReader::new(&*bytes, id_bytes);
            let _ = index.and_then(|index| index.names(b".claude/settings.local.json"));
        }
    }
}
