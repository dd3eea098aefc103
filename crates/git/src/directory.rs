//! Where the directory of git is, and what it says of its work trees. Anybody may have put its files there, so only
//! ordinary ones are read, and only so much.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use windlass_text::paths::clean;

/// A longer `HEAD` is none.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
/// A file that names a path is short.
const POINTER_BYTES_MAX: u64 = 64 * 1024;

/// The nearest `.git` in a directory or above it, of whatever kind.
pub fn dot_git_above(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().map(|above| above.join(".git")).find(|git| git.symlink_metadata().is_ok())
}

/// The directory that a `.git` is, or points to.
pub fn git_directory(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() { Some(dot_git.to_owned()) } else { named_path(dot_git, "gitdir: ") }
}

/// The directory of git that all work trees share.
pub fn common_directory(git_directory: &Path) -> PathBuf {
    named_path(&git_directory.join("commondir"), "").unwrap_or_else(|| git_directory.to_owned())
}

/// Whether a directory holds a whole repository: a bare one, a `.git`, or that of a submodule, but not of a linked work tree.
pub fn is_repository(directory: &Path) -> bool {
    directory.join("HEAD").symlink_metadata().is_ok()
        && directory.join("objects").is_dir()
        && directory.join("refs").is_dir()
}

/// Whether git takes a directory for one of its own, also for that of a linked work tree.
pub fn is_git_directory(directory: &Path) -> bool {
    would_be_git_directory(directory, &[])
}

/// Whether git would do so once some parts are in it: the command that adds the last one makes it one.
pub fn would_be_git_directory(directory: &Path, parts: &[String]) -> bool {
    let has = |name: &str| {
        // What `HEAD` names need not exist where it is a link.
        parts.iter().any(|part| part.eq_ignore_ascii_case(name))
            || directory.join(name).symlink_metadata().is_ok()
    };
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// The branch that is checked out; the beginning of the commit if none is.
pub fn branch(git_directory: &Path) -> Option<String> {
    const SHORT: usize = 12;
    let head = read_text(&git_directory.join("HEAD"), HEAD_BYTES_MAX).ok()?;
    let head = head.trim();
    Some(match head.strip_prefix("ref:") {
        Some(name) => name.trim().strip_prefix("refs/heads/").unwrap_or(name.trim()).to_owned(),
        None => head.get(..SHORT)?.to_owned(),
    })
}

/// The tops of the work trees that share a directory of git: the main one, and those it says are linked to it.
pub fn linked_work_trees(common: &Path) -> Vec<PathBuf> {
    let main = common.parent().filter(|_| common.file_name().is_some_and(|name| name == ".git"));
    let linked = std::fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let tops = linked.filter_map(|entry| {
        let dot_git = clean(named_path(&entry.path().join("gitdir"), "")?);
        dot_git.parent().map(Path::to_owned)
    });
    main.map(Path::to_owned).into_iter().chain(tops).collect()
}

/// The path that a file such as `commondir` names, relative to the directory it is in; behind `gitdir: ` in a file `.git`.
pub fn named_path(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = read_text(file, POINTER_BYTES_MAX).ok()?;
    Some(file.parent()?.join(text.strip_prefix(prefix)?.trim_end_matches(['\n', '\r'])))
}

pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_bytes(path, bytes_max)?).map_err(|_| ErrorKind::InvalidData.into())
}

pub(crate) fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Opens an ordinary file, without waiting for anybody who should write into a pipe.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidData.into()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_points_to_the_directory_and_that_to_the_common_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("main/.git/worktrees/x")).unwrap();
        fs::create_dir_all(root.join("linked/deep")).unwrap();
        let git = root.join("main/.git");
        fs::write(git.join("worktrees/x/commondir"), "../..\n").unwrap();
        fs::write(git.join("worktrees/x/gitdir"), "../../../../linked/.git\n").unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/a/b\n").unwrap();
        fs::write(git.join("worktrees/x/HEAD"), "0123456789abcdef\n").unwrap();
        let dot_git = root.join("linked/.git");
        let target = git.join("worktrees/x");
        fs::write(&dot_git, format!("gitdir: {}\r\n", target.display())).unwrap();
        assert_eq!(dot_git_above(&root.join("linked/deep")), Some(dot_git.clone()));
        assert_eq!(git_directory(&dot_git), Some(target.clone()));
        assert_eq!(git_directory(&git), Some(git.clone()));
        assert_eq!(common_directory(&target).canonicalize().unwrap(), git.canonicalize().unwrap());
        assert_eq!(common_directory(&git), git);
        assert_eq!((branch(&git), branch(&target)), (Some("a/b".into()), Some("0123456789ab".into())));
        assert_eq!(linked_work_trees(&git), [root.join("main"), root.join("linked")]);
        assert!(is_git_directory(&target) && !is_repository(&target));
        for wrong in ["gitdir:x", "x", &format!("gitdir: {}", "x".repeat(100_000))] {
            fs::write(&dot_git, wrong).unwrap();
            assert_eq!(git_directory(&dot_git), None);
        }
    }

    #[test]
    fn a_git_directory_is_known_by_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let check = |parts: &[&str], expected: bool| {
            let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(would_be_git_directory(folder.path(), &parts), expected, "{parts:?}");
        };
        check(&["head", "objects", "refs"], true);
        check(&["head", "commondir"], true);
        check(&["objects", "refs"], false);
        fs::create_dir(folder.path().join("objects")).unwrap();
        check(&["HEAD", "refs"], true);
        fs::create_dir(folder.path().join("refs")).unwrap();
        assert!(!is_repository(folder.path()));
        std::os::unix::fs::symlink("nowhere", folder.path().join("HEAD")).unwrap();
        assert!(is_repository(folder.path()) && is_git_directory(folder.path()));
    }
}
