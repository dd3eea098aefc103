//! A control group of version 1 or 2 that limits the processes of one command; none where it cannot be made.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "windlass-";

/// A group, removed when it is dropped. Everything in it must have ended.
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes a group for at most `processes` processes and threads.
    pub(crate) fn make(processes: u32) -> Option<Self> {
        parents().into_iter().find_map(|parent| Self::make_in(&parent, processes))
    }

    fn make_in(parent: &Path, processes: u32) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        remove_left(parent);
        let path = parent.join(format!("{PREFIX}{}-{count}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let group = Self(path);
        fs::write(group.0.join("pids.max"), processes.to_string()).ok()?;
        group.list().ok()?;
        Some(group)
    }

    /// The list on which a process puts itself.
    pub(crate) fn list(&self) -> io::Result<OwnedFd> {
        OpenOptions::new().write(true).open(self.0.join("cgroup.procs")).map(File::into)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes empty groups of supervisors that were killed. Those in use cannot be removed.
fn remove_left(parent: &Path) {
    let list = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in list {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Where a group could be made: in our own group or beside it.
fn parents() -> Vec<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut parents = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(own)) = (fields.next(), fields.next()) else { continue };
        let Some(top) = mount_of(controllers, &mounts) else { continue };
        let own = top.join(own.trim_start_matches('/'));
        let beside = own.parent().filter(|parent| parent.starts_with(&top)).map(Path::to_owned);
        parents.extend([Some(own), beside].into_iter().flatten());
    }
    parents
}

/// Where the hierarchy is mounted that counts processes; `controllers` is empty for version 2.
fn mount_of(controllers: &str, mounts: &str) -> Option<PathBuf> {
    let counts = |options: &str| options.split(',').any(|option| option == "pids");
    if !controllers.is_empty() && !counts(controllers) {
        return None;
    }
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let &[_, place, kind, options, ..] = &fields[..] else { return None };
        let fits = match kind {
            "cgroup" => !controllers.is_empty() && counts(options),
            "cgroup2" => controllers.is_empty(),
            _ => false,
        };
        fits.then(|| PathBuf::from(place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_that_counts_is_found() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let check = |controllers: &str, expected: Option<&str>| {
            assert_eq!(mount_of(controllers, mounts), expected.map(PathBuf::from), "{controllers}");
        };
        check("pids", Some("/sys/fs/cgroup/pids"));
        check("", Some("/sys/fs/cgroup/unified"));
        check("cpu", None);
        check("name=systemd", None);
    }
}
