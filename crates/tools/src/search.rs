//! What Glob and Grep have in common: looking through a tree within a time limit, and naming what was found.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ignore::WalkBuilder;
use windlass_git::dot_git_above;
use windlass_ports::{CancellationToken, HiddenPaths, ToolContext};
use windlass_protocol::PathFact;

use crate::paths::{fact, locate, relative, with_bytes};

/// More threads than this wait for the disk, not for each other.
const THREADS_MAX: usize = 8;

/// Directories of version control, which hold no text worth finding.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".jj", ".svn"];

/// When a search ends before it has seen everything.
pub(crate) struct SearchStop {
    cancel: CancellationToken,
    deadline: Instant,
}

impl SearchStop {
    pub(crate) fn new(cx: &ToolContext, timeout: Duration) -> Self {
        Self { cancel: cx.cancel.clone(), deadline: Instant::now() + timeout }
    }

    /// Whether nobody waits for the result any more, or time is up.
    pub(crate) fn is_reached(&self) -> bool {
        self.is_late() || self.cancel.is_cancelled()
    }

    pub(crate) fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
    }
}

/// As many threads as are of use for this many pieces of work.
pub(crate) fn threads_for(pieces: usize) -> usize {
    const PIECES_EACH: usize = 4;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.min(THREADS_MAX).min(pieces.div_ceil(PIECES_EACH)).max(1)
}

/// Ignore files count without a repository; those above `root` only in one: a home may ignore everything.
pub(crate) fn honour_ignore_files(walker: &mut WalkBuilder, root: &Path) {
    let in_repository = dot_git_above(root).is_some();
    walker.require_git(false).parents(in_repository);
}

/// Leaves out what may not be read and, unless `all` is wanted, version control directories inside the tree.
pub(crate) fn leave_out(walker: &mut WalkBuilder, is_everything: bool, hidden: &HiddenPaths) {
    let hidden = hidden.clone();
    walker.filter_entry(move |entry| {
        let is_searched = is_everything || entry.depth() == 0;
        (is_searched || VERSION_CONTROL.iter().all(|name| entry.file_name() != *name))
            && !hidden.hides(entry.path())
    });
}

/// Whether a path or pattern names a version control directory, so that somebody wants to look into it.
pub(crate) fn names_version_control(text: &str) -> bool {
    text.split('/').any(|part| VERSION_CONTROL.contains(&part))
}

/// The path on one line: what is not text, or would break it, becomes an escape such as `\xff`, as in `$'…'`.
pub(crate) fn printable(path: &Path, cwd: &Path) -> String {
    let mut text = String::new();
    for chunk in relative(path, cwd).as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Both names of a given `path`, literal if that exists, else read back from how [`printable`] shows it.
pub(crate) fn place(path: &str, cwd: &Path) -> Result<PathFact, String> {
    let literal = locate("path", path, cwd)?;
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    if exists(&literal.lexical) {
        return Ok(literal);
    }
    let meant = with_bytes(&literal.lexical).filter(|path| exists(path));
    Ok(meant.map_or(literal, fact))
}

/// The newest of many files, of which only so many are held.
pub(crate) struct NewestFiles {
    kept: BinaryHeap<Reverse<(SystemTime, Reverse<PathBuf>)>>,
    kept_max: usize,
    /// All that were seen.
    pub(crate) count: u64,
}

impl NewestFiles {
    pub(crate) fn new(kept_max: usize) -> Self {
        Self { kept: BinaryHeap::new(), kept_max, count: 0 }
    }

    pub(crate) fn add(&mut self, path: PathBuf, modified: SystemTime) {
        self.count += 1;
        self.kept.push(Reverse((modified, Reverse(path))));
        if self.kept.len() > self.kept_max {
            self.kept.pop();
        }
    }

    /// Newest first; files of the same age by name.
    pub(crate) fn into_paths(self) -> Vec<PathBuf> {
        self.kept.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(path)))| path).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn every_name_fits_on_a_line() {
        let check = |path: &[u8], expected: &str| {
            let path = Path::new(OsStr::from_bytes(path));
            assert_eq!(printable(path, Path::new("/app")), expected);
        };
        check(b"/app/src/a b.rs", "src/a b.rs");
        check(b"/other/a", "/other/a");
        check(b"/app", "/app");
        check("/app/é日".as_bytes(), "é日");
        check(b"/app/a\xff\xfeb", "a\\xff\\xfeb");
        check(b"/app/a\nb\x1b", "a\\nb\\u{1b}");
    }

    #[test]
    fn a_name_leads_back_to_what_was_shown() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        let name = |bytes: &[u8]| cwd.join(OsStr::from_bytes(bytes));
        for made in [&b"d\xff\xc3\xa9"[..], b"e\xfe", b"e\\xfe"] {
            std::fs::create_dir(name(made)).unwrap();
        }
        let check = |path: &str, expected: &[u8]| {
            assert_eq!(place(path, &cwd).unwrap(), fact(name(expected)), "{path}");
        };
        check(&printable(&name(b"d\xff\xc3\xa9"), &cwd), b"d\xff\xc3\xa9");
        check("e\\xfe", b"e\\xfe");
        check("none\\xff", b"none\\xff");
        check("d\\xff\\x", b"d\\xff\\x");
        check("a\\x41", b"a\\x41");
    }

    #[test]
    fn only_the_newest_are_held() {
        let mut newest = NewestFiles::new(3);
        for n in [5, 1, 4, 4, 2, 3] {
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(n);
            newest.add(PathBuf::from(format!("{}-{n}", newest.count)), modified);
        }
        assert_eq!(newest.count, 6);
        assert_eq!(newest.into_paths(), ["0-5", "2-4", "3-4"].map(PathBuf::from));
    }
}
