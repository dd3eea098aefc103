//! What has to be known about a repository, read from its files. Nothing is run: a repository may configure git to run programs.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::read;

/// A repository around a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The top of the work tree.
    pub(crate) top: PathBuf,
    /// The folder of git for this work tree; none if it cannot be found.
    pub(crate) folder: Option<PathBuf>,
    /// For a linked work tree: the main one, and its folder of git.
    pub(crate) main: Option<(PathBuf, PathBuf)>,
}

impl Repository {
    /// Finds the repository around a resolved directory.
    pub(crate) fn around(directory: &Path) -> Option<Self> {
        directory.ancestors().find_map(Self::at)
    }

    fn at(top: &Path) -> Option<Self> {
        let entry = top.join(".git");
        let facts = std::fs::metadata(&entry).ok()?;
        if facts.is_dir() {
            // git itself looks further up if it finds no repository in there.
            let folder = entry.join("HEAD").exists().then_some(entry)?;
            return Some(Self { top: top.to_owned(), folder: Some(folder), main: None });
        }
        let folder = line(&entry).and_then(|text| {
            let named = text.strip_prefix("gitdir:")?.trim();
            top.join(named).canonicalize().ok()
        });
        let main = folder.as_deref().and_then(|folder| main(&entry, folder));
        Some(Self { top: top.to_owned(), folder, main })
    }

    /// Whether git keeps a file of the work tree. What cannot be known counts as kept.
    pub(crate) fn tracks(&self, file: &Path) -> bool {
        let (top, folder) = match &self.main {
            Some((main, folder)) if !file.starts_with(&self.top) && file.starts_with(main) => {
                (main, Some(folder))
            }
            _ => (&self.top, self.folder.as_ref()),
        };
        let inside = file.strip_prefix(top).ok().and_then(Path::to_str);
        match (folder, inside) {
            (Some(folder), Some(inside)) => index_holds(folder, inside).unwrap_or(true),
            _ => true,
        }
    }
}

/// The main work tree that a linked one belongs to. A link counts only if the other side knows of it: otherwise any folder could
/// claim to belong to a repository of the user.
fn main(entry: &Path, folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let common = folder.join(line(&folder.join("commondir"))?).canonicalize().ok()?;
    let back = folder.join(line(&folder.join("gitdir"))?).canonicalize().ok()?;
    let is_known = back == entry.canonicalize().ok()? && folder.starts_with(common.join("worktrees"));
    let top = common.parent().filter(|_| common.file_name().is_some_and(|name| name == ".git"))?;
    is_known.then(|| (top.to_owned(), common.clone()))
}

/// The one line of a small file of git.
fn line(path: &Path) -> Option<String> {
    const BYTES_MAX: u64 = 64 * 1024;
    let text = read::read(path, BYTES_MAX).ok()??;
    Some(text.trim().to_owned())
}

/// Whether the index in a folder of git names a file.
fn index_holds(folder: &Path, file: &str) -> io::Result<bool> {
    let index = match read::open(&folder.join("index")) {
        Ok(index) => index,
        // Nothing was ever added.
        Err(error) if read::is_missing(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    // The rest of a split index lies in another file.
    for entry in std::fs::read_dir(folder)? {
        if entry?.file_name().as_encoded_bytes().starts_with(b"sharedindex.") {
            return Ok(true);
        }
    }
    let common = line(&folder.join("commondir")).map_or_else(|| folder.to_owned(), |name| folder.join(name));
    let config = read::read(&common.join("config"), read::BYTES_MAX).map_err(io::Error::other)?;
    let long_ids = config.is_some_and(|text| text.to_ascii_lowercase().contains("sha256"));
    Index::new(index, long_ids)?.holds(file.as_bytes())
}

/// The list of files that git keeps, read one by one. They are sorted by name.
struct Index<R> {
    input: BufReader<R>,
    version: u32,
    count: u32,
    id_bytes: usize,
    /// The name of the entry read last.
    name: Vec<u8>,
}

impl<R: Read> Index<R> {
    fn new(input: R, long_ids: bool) -> io::Result<Self> {
        let mut input = BufReader::new(input);
        let [magic, version, count] = [word(&mut input)?, word(&mut input)?, word(&mut input)?];
        if magic != u32::from_be_bytes(*b"DIRC") || !(2..=4).contains(&version) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self { input, version, count, id_bytes: if long_ids { 32 } else { 20 }, name: Vec::new() })
    }

    fn holds(mut self, file: &[u8]) -> io::Result<bool> {
        for _ in 0..self.count {
            self.entry()?;
            if self.covers(file) {
                return Ok(true);
            }
            if self.name.as_slice() > file {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Whether the entry stands for a file: a folder or a submodule stands for everything in it. On some file systems names that
    /// differ in case are the same.
    fn covers(&self, file: &[u8]) -> bool {
        let name = self.name.strip_suffix(b"/").unwrap_or(&self.name);
        let begins = file.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        begins && matches!(file.get(name.len()), None | Some(b'/'))
    }

    /// Reads the next entry.
    fn entry(&mut self) -> io::Result<()> {
        const FACTS: usize = 40;
        const EXTENDED: u16 = 0x4000;
        let mut facts = [0; FACTS + 32];
        self.input.read_exact(&mut facts[..FACTS + self.id_bytes])?;
        let mut length = FACTS + self.id_bytes + 2;
        let mut flags = [0; 2];
        self.input.read_exact(&mut flags)?;
        if self.version >= 3 && u16::from_be_bytes(flags) & EXTENDED != 0 {
            self.input.read_exact(&mut flags)?;
            length += 2;
        }
        if self.version == 4 {
            let shared = self.name.len().checked_sub(self.number()?);
            self.name.truncate(shared.ok_or(io::ErrorKind::InvalidData)?);
            self.rest_of_name()?;
        } else {
            self.name.clear();
            length += self.rest_of_name()?;
            // The zero behind the name is one of up to eight that fill the entry up.
            let filling = 7 - length % 8;
            self.input.read_exact(&mut [0; 8][..filling])?;
        }
        Ok(())
    }

    /// Reads up to the next zero and says how many bytes stood before it.
    fn rest_of_name(&mut self) -> io::Result<usize> {
        const NAME_BYTES_MAX: usize = 64 * 1024;
        let before = self.name.len();
        loop {
            let mut byte = [0];
            self.input.read_exact(&mut byte)?;
            match byte {
                [0] => return Ok(self.name.len() - before),
                _ if self.name.len() >= NAME_BYTES_MAX => return Err(io::ErrorKind::InvalidData.into()),
                [byte] => self.name.push(byte),
            }
        }
    }

    /// A number as git packs it: seven bits in each byte, and one more for each byte that follows.
    fn number(&mut self) -> io::Result<usize> {
        let mut number = 0_usize;
        loop {
            let mut byte = [0];
            self.input.read_exact(&mut byte)?;
            let bits = usize::from(byte[0] & 0x7f);
            number = number
                .checked_mul(128)
                .and_then(|number| number.checked_add(bits))
                .ok_or(io::ErrorKind::InvalidData)?;
            if byte[0] & 0x80 == 0 {
                return Ok(number);
            }
            number = number.checked_add(1).ok_or(io::ErrorKind::InvalidData)?;
        }
    }
}

fn word(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_index_breaks_the_reader(version in 0_u32..6, count: u32, long: bool, rest: Vec<u8>) {
            let mut bytes = b"DIRC".to_vec();
            bytes.extend(version.to_be_bytes());
            bytes.extend(count.to_be_bytes());
            bytes.extend(rest);
            let _ = Index::new(&*bytes, long).and_then(|index| index.holds(b".claude/settings.local.json"));
        }
    }
}
