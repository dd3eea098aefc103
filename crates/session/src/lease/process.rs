//! Which process holds a lock, as far as the system tells, and what tells it from one that got the same number later.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use super::SessionBusy;

/// The process that has a lock on this file. On another machine, or in another container, it cannot be known.
pub(super) fn holder_of(file: &File) -> SessionBusy {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let pid = file.metadata().ok().and_then(|found| {
        let device = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
        holder_in(&locks, device, found.ino())
    });
    SessionBusy { pid: pid.unwrap_or(0), host: host() }
}

/// Lines look like `7: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF`. Some file systems give another device there than elsewhere;
/// then the number of the file decides.
fn holder_in(locks: &str, (major, minor): (u32, u32), inode: u64) -> Option<u32> {
    let holders = locks.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next()? != "FLOCK" {
            return None;
        }
        let pid: u32 = fields.nth(2)?.parse().ok().filter(|pid| *pid > 0)?;
        Some((fields.next()?, pid))
    });
    let exact = format!("{major:02x}:{minor:02x}:{inode}");
    let alike = format!(":{inode}");
    let found = holders.filter(|(file, _)| file.ends_with(&alike)).min_by_key(|(file, _)| *file != exact);
    found.map(|(_, pid)| pid)
}

/// When a process started, in the system's own count; nothing if it does not run.
pub(super) fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    start_in(&text)
}

/// The name of the program stands in parentheses and may hold anything, closing ones too.
fn start_in(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    // `starttime` is field 22; the state just taken is field 3.
    fields.nth(18)?.parse().ok()
}

/// Which start of the machine this is.
pub(super) fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.map(|text| text.trim().to_owned()).unwrap_or_default()
}

pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_among_all_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 22 fe:01:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 33 fe:00:77 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 44 fe:00:77 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 0 fe:00:99 0 EOF\n\
                     5: FLOCK\n";
        let check =
            |device, inode, expected| assert_eq!(holder_in(locks, device, inode), expected, "{inode}");
        check((0xfe, 0), 77, Some(33));
        check((0xfe, 1), 77, Some(22));
        check((0, 44), 77, Some(22));
        check((0xfe, 0), 7, None);
        check((0xfe, 0), 99, None);
    }

    #[test]
    fn the_start_is_found_behind_any_name() {
        let tail = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        for name in ["sh", "a b", ") S 1 2 (", "))"] {
            assert_eq!(start_in(&format!("7 ({name}) {tail}")), Some(4711), "{name}");
        }
        assert_eq!(start_in("7 (sh) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"), None);
        assert_eq!(start_in("7 (sh"), None);
    }

    #[test]
    fn this_process_runs_and_a_process_that_ended_does_not() {
        assert_eq!(start_of(std::process::id()), start_of(std::process::id()));
        assert!(start_of(std::process::id()).is_some());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(start_of(pid), None);
    }
}
