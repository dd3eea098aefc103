//! From the text a model gave as a path to the object it means.
//!
//! A path has two names: the lexical one (absolute, `.` and `..` removed by name alone) and the resolved one
//! (links followed). Rules look at both, and tools open the resolved one. What cannot be resolved with
//! certainty — a link to nowhere, a loop, a magic link of the process file system — has no resolved name.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use windlass_ports::ToolContext;
use windlass_protocol::PathFact;
use windlass_text::paths::clean;

/// As many links as Linux follows in one path.
const LINKS_MAX: u32 = 40;

/// Both names of the path a model wrote into `field`. An error is for the model and names the field.
pub(crate) fn locate(field: &str, input: &str, cwd: &Path) -> Result<PathFact, String> {
    absolute(field, input, cwd).map(fact)
}

/// Both names of a path that is absolute already.
pub(crate) fn fact(path: PathBuf) -> PathFact {
    let lexical = clean(path);
    let resolved = resolve(&lexical);
    path_fact(lexical, resolved)
}

pub(crate) fn path_fact(lexical: PathBuf, resolved: Option<PathBuf>) -> PathFact {
    let is_directory = resolved.as_ref().is_some_and(|path| path.is_dir());
    PathFact { lexical, resolved, is_directory }
}

/// The path, if it still is what it was when the call was allowed: what a tool opens must be what was decided on.
pub(crate) fn check_decided(path: PathFact, cx: &ToolContext) -> Result<PathFact, String> {
    if cx.is_decided(&path) {
        return Ok(path);
    }
    Err(format!(
        "Nothing was done: {} now leads to another file than when the call was allowed, because a link \
         changed. Check the link, then call the tool again.",
        display_path(&path.lexical, &cx.cwd)
    ))
}

/// The path with the bytes of escapes such as `\xff`, if it has any; those of ASCII are never escaped.
pub(crate) fn with_bytes(path: &Path) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    let mut rest = path.as_os_str().as_bytes();
    let mut found = false;
    while let Some((first, after)) = rest.split_first() {
        let digits = rest.strip_prefix(b"\\x").and_then(|digits| std::str::from_utf8(digits.get(..2)?).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let byte = byte.filter(|byte| !byte.is_ascii());
        found |= byte.is_some();
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &rest[4..] } else { after };
    }
    found.then(|| OsString::from_vec(bytes).into())
}

/// The lexical name: `~` expanded, relative paths joined to `cwd`, `.` and `..` removed.
pub(crate) fn absolute(field: &str, input: &str, cwd: &Path) -> Result<PathBuf, String> {
    if input.is_empty() {
        return Err(format!("`{field}` is empty. Give the path of a file or directory."));
    }
    if input.contains('\0') {
        return Err(format!("`{field}` contains a NUL character, which no path can hold."));
    }
    let below_home = input.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let Some(below_home) = below_home else { return Ok(clean(cwd.join(input))) };
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.ok_or("HOME is not set, so `~` has no meaning. Give an absolute path.")?;
    Ok(clean(home.join(below_home.trim_start_matches('/'))))
}

/// Follows every link of an absolute path; parts that do not exist are appended. `None` for a link to nowhere, a loop,
/// a magic link, or a directory that may not be searched. `..` means the parent of what was reached, as for the kernel.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    resolve_from(path, has_no_links)
}

fn resolve_from(path: &Path, mut is_plain: impl FnMut(&Path) -> bool) -> Option<PathBuf> {
    if !path.is_absolute() || is_magic(path) {
        return None;
    }
    // Mostly the directory is there and only the last name is in question.
    match (path.parent(), path.file_name()) {
        // Single dots and doubled slashes are no part of the name that was reached.
        (Some(parent), Some(name)) if is_plain(parent) => {
            follow(parent.components().collect(), Path::new(name))
        }
        _ => follow(PathBuf::from("/"), path),
    }
}

/// Looks paths up, each once: the words of a command line name the same few again and again.
#[derive(Default)]
pub(crate) struct PathLookup {
    facts: HashMap<PathBuf, PathFact>,
    plain: HashMap<PathBuf, bool>,
}

impl PathLookup {
    /// Both names of an absolute path whose `..` means what it means to the kernel.
    pub(crate) fn fact(&mut self, path: PathBuf) -> PathFact {
        let Self { facts, plain } = self;
        let is_plain =
            |directory: &Path| *plain.entry(directory.to_owned()).or_insert_with(|| has_no_links(directory));
        let look_up = |path: &PathBuf| path_fact(clean(path.clone()), resolve_from(path, is_plain));
        facts.entry(path).or_insert_with_key(look_up).clone()
    }
}

/// One system call tells for the ordinary case that a directory is its own resolved name.
fn has_no_links(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let plain = path.components().all(|part| part != Component::ParentDir);
    plain && rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).is_ok()
}

/// A name on the way, and whether it comes from the target of a link, so that it must exist.
type PendingName = (OsString, bool);

fn follow(mut reached: PathBuf, path: &Path) -> Option<PathBuf> {
    let mut pending = Vec::new();
    push_names(&mut pending, path, false);
    let mut links = 0;
    // So many of the last names do not exist. Below such a name there are no links, until `..` leads back above it.
    let mut missing = 0_usize;
    while let Some((name, linked)) = pending.pop() {
        if name == ".." {
            reached.pop();
            missing = missing.saturating_sub(1);
            continue;
        }
        reached.push(&name);
        if missing > 0 {
            missing += 1;
            continue;
        }
        if is_magic(&reached) {
            return None;
        }
        match rustix::fs::readlinkat(CWD, &reached, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > LINKS_MAX {
                    return None;
                }
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    reached = PathBuf::from("/");
                } else {
                    reached.pop();
                }
                push_names(&mut pending, &target, true);
            }
            // Exists and is not a link.
            Err(Errno::INVAL) => {}
            Err(Errno::NOENT | Errno::NOTDIR) if !linked => missing = 1,
            Err(_) => return None,
        }
    }
    Some(reached)
}

fn push_names(pending: &mut Vec<PendingName>, path: &Path, is_linked: bool) {
    let parts = path.components().rev();
    let parts = parts.filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    pending.extend(parts.map(|part| (part.as_os_str().to_owned(), is_linked)));
}

/// Whether a path leads through a part of the process file system that stands for another object (a descriptor,
/// a root, a memory image) or that shows this process's own environment. Its name says nothing about what it is.
fn is_magic(path: &Path) -> bool {
    const MAGIC: [&str; 9] = ["root", "cwd", "exe", "fd", "fdinfo", "map_files", "ns", "mem", "environ"];
    let Ok(below) = path.strip_prefix("/proc") else { return path.starts_with("/dev/fd") };
    let mut names = below.components().map(Component::as_os_str);
    let is_process = |name: &OsStr| {
        matches!(name.as_bytes(), b"self" | b"thread-self") || name.as_bytes().iter().all(u8::is_ascii_digit)
    };
    let mut name = names.next().filter(|name| is_process(name)).and_then(|_| names.next());
    if name.is_some_and(|name| name == "task") {
        name = names.nth(1);
    }
    name.and_then(OsStr::to_str).is_some_and(|name| MAGIC.contains(&name))
}

/// The path as a person likes to see it. Bytes that are not UTF-8 are shown as the replacement character.
pub(crate) fn display_path(path: &Path, cwd: &Path) -> String {
    relative(path, cwd).to_string_lossy().into_owned()
}

/// The path from `cwd` on when it is inside.
pub(crate) fn relative<'a>(path: &'a Path, cwd: &Path) -> &'a Path {
    path.strip_prefix(cwd).ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lexical_names() {
        let check = |input: &str, expected: &str| {
            let path = absolute("file_path", input, Path::new("/srv/app"));
            assert_eq!(path.as_deref(), Ok(Path::new(expected)), "{input}");
        };
        check("a.rs", "/srv/app/a.rs");
        check("./a//b/./c.rs", "/srv/app/a/b/c.rs");
        check("../x", "/srv/x");
        check("../../../../x", "/x");
        check("/etc/../etc/passwd", "/etc/passwd");
        check("/a/b/", "/a/b");
        check("..", "/srv");
        check(".", "/srv/app");
        check("/", "/");
        check("~x", "/srv/app/~x");
        check("a~/~", "/srv/app/a~/~");
        check(" a ", "/srv/app/ a ");
    }

    #[test]
    fn home_is_expanded() {
        let home = std::env::home_dir().unwrap();
        let check = |input: &str, expected: PathBuf| {
            assert_eq!(absolute("p", input, Path::new("/w")), Ok(clean(expected)));
        };
        check("~", home.clone());
        check("~/", home.clone());
        check("~/a/../b", home.join("b"));
    }

    #[test]
    fn impossible_paths_are_refused_by_name() {
        let check = |input: &str, expected: &str| {
            let error = absolute("file_path", input, Path::new("/w")).unwrap_err();
            assert!(error.contains(expected) && error.contains("`file_path`"), "{error}");
        };
        check("", "is empty");
        check("a\0b", "NUL");
    }

    /// `links` are pairs of link and target below a fresh directory; `expected` is below it too.
    fn check_resolve(links: &[(&str, &str)], input: &str, expected: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        fs::write(root.join("real/file"), "x").unwrap();
        for (link, target) in links {
            let target = target.replace("ROOT", root.to_str().unwrap());
            symlink(target, root.join(link)).unwrap();
        }
        let expected = expected.map(|name| root.join(name));
        assert_eq!(resolve(&root.join(input)), expected, "{input} with {links:?}");
    }

    #[test]
    fn resolved_names() {
        let link = [("l", "real")];
        check_resolve(&[], "real/file", Some("real/file"));
        check_resolve(&[], "real/none/at/all", Some("real/none/at/all"));
        check_resolve(&[], "real/file/below", Some("real/file/below"));
        check_resolve(&link, "l/file", Some("real/file"));
        check_resolve(&link, "l", Some("real"));
        check_resolve(&link, "l/new.txt", Some("real/new.txt"));
        check_resolve(&[("l", "ROOT/real/deep")], "l/new", Some("real/deep/new"));
        check_resolve(&[("l", "real/deep/../file")], "l", Some("real/file"));
        check_resolve(&[("a", "b"), ("b", "real")], "a/file", Some("real/file"));
        // The kernel's meaning of `..` behind a link.
        check_resolve(&[("l", "real/deep")], "l/../file", Some("real/file"));
        // Below what does not exist names are all there is; back above it links count again.
        check_resolve(&[], "real/none/../file", Some("real/file"));
        check_resolve(&[], "real/none/at/../../new", Some("real/new"));
        check_resolve(&link, "none/../l/file", Some("real/file"));
        check_resolve(&[("l", "real/deep")], "none/../l/../file", Some("real/file"));
    }

    #[test]
    fn what_cannot_be_resolved_has_no_name() {
        check_resolve(&[("l", "nowhere")], "l", None);
        check_resolve(&[("l", "nowhere/below")], "l/more", None);
        check_resolve(&[("a", "b"), ("b", "a")], "a", None);
        check_resolve(&[("a", "a")], "a/x", None);
        check_resolve(&[("l", "/proc/self/cwd")], "l/x", None);
        check_resolve(&[("l", "/dev/fd")], "l/0", None);
        check_resolve(&[("l", "nowhere/../real")], "l/file", None);
    }

    #[test]
    fn magic_links_have_no_name() {
        let check = |path: &str, magic: bool| {
            assert_eq!(resolve(Path::new(path)).is_none(), magic, "{path}");
        };
        check("/proc/self/root/etc/passwd", true);
        check("/proc/self/cwd", true);
        check("/proc/self/fd/0", true);
        check("/proc/1/fd", true);
        check("/proc/thread-self/root", true);
        check("/proc/self/task/1/cwd/x", true);
        check("/proc/self/environ", true);
        check("/dev/fd/0", true);
        check("/dev/stdin", true);
        check("/proc/meminfo", false);
        check("/dev/null", false);
    }

    #[test]
    fn shown_relative_only_inside() {
        let check = |path: &str, expected: &str| {
            assert_eq!(display_path(Path::new(path), Path::new("/srv/app")), expected);
        };
        check("/srv/app/src/a.rs", "src/a.rs");
        check("/srv/app2/a.rs", "/srv/app2/a.rs");
        check("/srv/app", "/srv/app");
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_lossily_and_still_resolve() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let odd = root.join(OsString::from_vec(b"caf\xe9".to_vec()));
        fs::write(&odd, "x").unwrap();
        assert_eq!(fact(odd.clone()).resolved, Some(odd.clone()));
        assert_eq!(display_path(&odd, &root), "caf\u{fffd}");
    }

    proptest! {
        #[test]
        fn cleaning_is_idempotent_and_leaves_no_dots(parts in prop::collection::vec("[a-c.]{0,3}", 0..8)) {
            let input = format!("/{}", parts.join("/"));
            let once = clean(PathBuf::from(&input));
            prop_assert_eq!(clean(once.clone()), once.clone());
            prop_assert!(once.is_absolute());
            let text = once.to_str().unwrap();
            prop_assert!(text.split('/').all(|name| name != "." && name != ".."), "{}", text);
            prop_assert!(text == "/" || !text.ends_with('/'));
        }

        #[test]
        fn resolving_agrees_with_the_kernel(
            links in prop::collection::vec(("[a-d]", "(\\.\\./)?[a-d](/[a-d])?"), 0..5),
            input in "(\\./)?[a-d](/(\\./)?[a-d]){0,2}",
        ) {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap();
            fs::create_dir_all(root.join("a/b")).unwrap();
            fs::create_dir_all(root.join("b/c")).unwrap();
            for (link, target) in &links {
                // A name that is taken already simply stays what it is.
                let _ = symlink(target, root.join("b").join(link));
                let _ = symlink(target, root.join(link));
            }
            if let Ok(kernel) = root.join(&input).canonicalize() {
                prop_assert_eq!(resolve(&root.join(&input)), Some(kernel));
            } else if let Some(resolved) = resolve(&root.join(&input)) {
                // Not existing: resolving again changes nothing, so no link is left in the name.
                prop_assert_eq!(resolve(&resolved), Some(resolved.clone()));
                prop_assert!(fs::symlink_metadata(&resolved).is_err());
            }
        }
    }
}
