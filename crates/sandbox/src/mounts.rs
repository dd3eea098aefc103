//! Which part of the file system is mounted how, for `bwrap`.
//!
//! Everything is mounted read-only, then the writable places again, then inside of those what stays read-only or
//! hidden. Renaming a directory above such a place would replace it, so each one between a writable place and a
//! protected one is mounted on itself: a mount point can be neither renamed nor removed. A symbolic link on the way is
//! covered from inside (`confine`), for `bwrap` would follow it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use windlass_text::paths::clean;

use crate::launch_plan::{Bubblewrap, FileAccess, NetworkReach};
use crate::policy::StandIn;
use crate::stubs::{self, Stubs};

/// Links that lead to links are followed no further.
const LINKS_MAX: u8 = 8;

/// What is mounted, and what has to be done besides.
#[derive(Default)]
pub(crate) struct Mounts {
    /// Writable places as they were named and as they are.
    writable: Vec<(PathBuf, PathBuf)>,
    entries: BTreeMap<PathBuf, MountAccess>,
    /// Links to be covered inside.
    pub(crate) symlinks: BTreeSet<PathBuf>,
    pub(crate) stubs: Stubs,
}

/// How a place is mounted; of two for the same place the later counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MountAccess {
    /// As what it is in, only to hold it in its place.
    Pin,
    Write,
    Read,
    Hide,
}

/// What is made sure of for a path.
#[derive(Clone, Copy)]
struct Goal {
    access: MountAccess,
    /// What stands in for it where it does not exist, so that it cannot be made; nothing if it may be.
    stand_in: Option<StandIn>,
}

/// The few devices that there are inside where `bwrap` does not set them up.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Links among the devices that programs rely on.
const LINKS: &[(&str, &str)] = &[
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

pub(crate) fn base_arguments(
    bubblewrap: &Bubblewrap,
    network: NetworkReach,
    has_few_devices: bool,
) -> Vec<&'static str> {
    let mut arguments = vec!["--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"];
    arguments.extend(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
    if bubblewrap.has_user_namespace {
        arguments.push("--unshare-user");
    }
    if network != NetworkReach::Open {
        arguments.push("--unshare-net");
    }
    arguments.extend(["--ro-bind", "/", "/"]);
    if has_few_devices {
        arguments.extend(["--tmpfs", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"]);
        arguments.extend(DEVICES.iter().flat_map(|device| ["--dev-bind", device, device]));
        arguments.extend(LINKS.iter().flat_map(|(target, link)| ["--symlink", target, link]));
    } else {
        arguments.extend(["--dev", "/dev"]);
    }
    // Root owns the kernel's settings in there, and needs no capability to write them.
    arguments.extend(["--proc", "/proc", "--remount-ro", "/proc"]);
    arguments
}

/// The writable places, as they are named and as they are, outer ones first. What does not exist is left out, and so is
/// what is reached over a link inside of another writable place: whoever writes there could have made that link.
pub(crate) fn writable_places(files: &FileAccess) -> Result<Vec<(PathBuf, PathBuf)>, String> {
    let mut found = Vec::new();
    for place in files.writable.iter().chain([&files.temp]) {
        match place.canonicalize() {
            Ok(real) if real == Path::new("/") => {
                return Err("the root directory cannot be writable".to_owned());
            }
            Ok(real) => found.push((place.clone(), real)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(lookup_error(place, &error)),
        }
    }
    found.sort_by_key(|(_, real)| real.components().count());
    let all = found.clone();
    found.retain(|(place, real)| !leads_over_link(place, real, &all));
    Ok(found)
}

/// Whether a path leads into one of the places, and over a link from there.
fn leads_over_link(path: &Path, real: &Path, places: &[(PathBuf, PathBuf)]) -> bool {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    let entered = above.into_iter().find_map(|prefix| {
        let resolved = prefix.canonicalize().ok()?;
        let is_inside = places.iter().any(|(named, root)| named != path && resolved.starts_with(root));
        is_inside.then(|| path.strip_prefix(prefix).map(|rest| resolved.join(rest)))
    });
    entered.is_some_and(|straight| straight.is_ok_and(|straight| straight != real))
}

/// Finds out what has to be mounted how. Fails if something cannot be protected.
pub(crate) fn arrange(files: &FileAccess) -> Result<Mounts, String> {
    let mut mounts = Mounts { writable: writable_places(files)?, ..Mounts::default() };
    mounts.hold_writable();
    let hidden = files.hidden.iter().map(|path| (path, MountAccess::Hide, Some(StandIn::Directory)));
    let readable = files.readable.iter().map(|path| (path, MountAccess::Read, None));
    let protected = files
        .protected
        .iter()
        .map(|protected| (&protected.path, MountAccess::Read, Some(protected.stand_in)));
    for (path, access, stand_in) in hidden.chain(readable).chain(protected) {
        mounts.lead(path, Goal { access, stand_in }, 0)?;
    }
    mounts.settle();
    Ok(mounts)
}

impl Mounts {
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |parts: &[&OsStr]| arguments.extend(parts.iter().map(|&part| part.to_owned()));
        let words = |text: &'static str| OsStr::new(text);
        for (path, access) in &self.entries {
            let path = path.as_os_str();
            match access {
                MountAccess::Pin | MountAccess::Write => add(&[words("--bind"), path, path]),
                MountAccess::Read => add(&[words("--ro-bind"), path, path]),
                MountAccess::Hide if Path::new(path).is_dir() => {
                    // What is inside of it and not hidden can still be reached.
                    let is_inside = |other: &PathBuf| other != path && other.starts_with(path);
                    let mode = if self.entries.keys().any(is_inside) { "0111" } else { "0000" };
                    add(&[words("--perms"), words(mode), words("--tmpfs"), path]);
                }
                MountAccess::Hide => add(&[words("--ro-bind"), words("/dev/null"), path]),
            }
        }
        let hidden =
            self.entries.iter().filter(|(path, access)| **access == MountAccess::Hide && path.is_dir());
        for (path, _) in hidden {
            add(&[words("--remount-ro"), path.as_os_str()]);
        }
        if !self.symlinks.is_empty() {
            add(&["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"].map(OsStr::new));
        }
        arguments
    }

    /// Whether only simple devices exist: setting up terminals, `bwrap` enters a namespace that cannot mount.
    pub(crate) fn has_few_devices(&self) -> bool {
        !self.symlinks.is_empty()
    }

    /// Mounts the writable places, and holds those that are inside of another where they are.
    fn hold_writable(&mut self) {
        for (_, real) in self.writable.clone() {
            self.add(&real, MountAccess::Write);
            let around = self.writable.iter().map(|(_, root)| root);
            let around = around.filter(|root| real != **root && real.starts_with(root)).max().cloned();
            let Some(root) = around else { continue };
            for directory in real.ancestors().skip(1).take_while(|path| *path != root) {
                self.add(directory, MountAccess::Pin);
            }
        }
    }

    fn add(&mut self, path: &Path, access: MountAccess) {
        let entry = self.entries.entry(path.to_owned()).or_insert(access);
        *entry = (*entry).max(access);
    }

    /// Makes sure of a path, whatever is on the way to it.
    fn lead(&mut self, path: &Path, goal: Goal, links: u8) -> Result<(), String> {
        let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(is_plain) || links > LINKS_MAX {
            return Err(format!("{} cannot be protected: its location is uncertain", path.display()));
        }
        if let Some((root, rest)) = self.inside(path) {
            return self.walk(root, &rest, goal, links);
        }
        let real = resolve(path).map_err(|error| lookup_error(path, &error))?;
        if let Some((root, rest)) = self.inside(&real.path) {
            return self.walk(root, &rest, goal, links);
        }
        // Where nothing can be written, nothing can be made.
        if real.is_there {
            self.add(&real.path, goal.access);
        }
        Ok(())
    }

    /// The innermost writable place around a path, and the rest of the path.
    fn inside(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let candidates = self.writable.iter().flat_map(|(named, real)| {
            [named, real].map(|root| path.strip_prefix(root).ok().map(|rest| (real.clone(), rest.to_owned())))
        });
        candidates.flatten().min_by_key(|(_, rest)| rest.components().count())
    }

    /// Goes from a writable place to a path inside of it.
    fn walk(&mut self, root: PathBuf, rest: &Path, goal: Goal, links: u8) -> Result<(), String> {
        let mut here = root;
        let mut parts = rest.components().peekable();
        if parts.peek().is_none() {
            self.add(&here, goal.access);
        }
        while let Some(part) = parts.next() {
            let next = here.join(part);
            let is_last = parts.peek().is_none();
            let found = match fs::symlink_metadata(&next) {
                // What is empty may stand in for something missing, and then somebody will remove it.
                Ok(found) if goal.stand_in.is_none() || !stubs::is_blank(&found, &next) => found,
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(lookup_error(&next, &error));
                }
                _ => {
                    let stand_in = goal.stand_in.map(|own| if is_last { own } else { StandIn::Directory });
                    return self.keep_missing(&next, Goal { stand_in, ..goal }, links);
                }
            };
            if found.is_symlink() {
                self.symlinks.insert(next.clone());
                let target = resolve(&parts.fold(next.clone(), |path, part| path.join(part)));
                let target = target.map_err(|error| lookup_error(&next, &error))?;
                return self.lead(&target.path, goal, links + 1);
            }
            if is_last || !found.is_dir() {
                self.add(&next, goal.access);
                return Ok(());
            }
            self.add(&next, MountAccess::Pin);
            here = next;
        }
        Ok(())
    }

    /// Keeps something from being made.
    fn keep_missing(&mut self, path: &Path, goal: Goal, links: u8) -> Result<(), String> {
        let Some(stand_in) = goal.stand_in else { return Ok(()) };
        match self.stubs.put(path, stand_in) {
            Ok(true) => {
                self.add(path, goal.access);
                Ok(())
            }
            // Something real has turned up.
            Ok(false) => self.lead(path, goal, links + 1),
            Err(error) if cannot_be_made(path, &error) => Ok(()),
            Err(error) => Err(lookup_error(path, &error)),
        }
    }

    /// Drops mounts without effect, and pins in places that are not writable, which must not become so.
    fn settle(&mut self) {
        let mut kept: BTreeMap<PathBuf, MountAccess> = BTreeMap::new();
        for (path, access) in std::mem::take(&mut self.entries) {
            let around = kept.iter().rev().find(|(other, _)| path.starts_with(other));
            let around = around.map_or(MountAccess::Read, |(_, access)| *access);
            let has_effect = match access {
                MountAccess::Pin => matches!(around, MountAccess::Pin | MountAccess::Write),
                MountAccess::Write => true,
                MountAccess::Read => around != MountAccess::Read,
                MountAccess::Hide => around != MountAccess::Hide,
            };
            if has_effect {
                kept.insert(path, access);
            }
        }
        self.entries = kept;
    }
}

/// A path without links, of which the last parts may not exist.
pub(crate) struct ResolvedPath {
    pub(crate) path: PathBuf,
    pub(crate) is_there: bool,
}

pub(crate) fn resolve(path: &Path) -> io::Result<ResolvedPath> {
    let mut missing = Vec::new();
    let mut links = 0;
    let mut rest = path.to_owned();
    loop {
        match rest.canonicalize() {
            Ok(real) => {
                let path = missing.iter().rev().fold(real, |path, part| path.join(part));
                return Ok(ResolvedPath { path, is_there: missing.is_empty() });
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            // What cannot be looked into cannot be reached from inside either, with fewer rights.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
        if let Ok(target) = fs::read_link(&rest) {
            // It leads to something missing.
            rest.pop();
            rest = clean(rest.join(target));
            links += 1;
            if links > LINKS_MAX {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            continue;
        }
        let Some(name) = rest.file_name().map(OsStr::to_owned) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        missing.push(name);
        rest.pop();
    }
}

/// Whether the command will fail to make it, too: the directory is not ours, or the file system is read-only.
fn cannot_be_made(path: &Path, error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => true,
        io::ErrorKind::PermissionDenied => {
            let owner = path.parent().and_then(|parent| fs::metadata(parent).ok()).map(|found| found.uid());
            owner.is_some_and(|owner| owner != rustix::process::geteuid().as_raw())
        }
        _ => false,
    }
}

fn lookup_error(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
