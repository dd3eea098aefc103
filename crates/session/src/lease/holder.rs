//! Who holds a lock on a file, as far as the system tells.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use super::{SessionBusy, process};

/// The process that has a lock on this file. On another machine, or in another container, it cannot be known.
pub(super) fn of(file: &File) -> SessionBusy {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let pid = file.metadata().ok().and_then(|found| {
        let device = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
        holder_in(&locks, device, found.ino())
    });
    SessionBusy { pid: pid.unwrap_or(0), host: process::host() }
}

/// Lines look like `7: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF`. Some file systems give another device there than elsewhere;
/// then the number of the file decides.
fn holder_in(locks: &str, (major, minor): (u32, u32), inode: u64) -> Option<u32> {
    let holders: Vec<(&str, u32)> = locks
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            if fields.next()? != "FLOCK" {
                return None;
            }
            let pid: u32 = fields.nth(2)?.parse().ok().filter(|pid| *pid > 0)?;
            Some((fields.next()?, pid))
        })
        .collect();
    let exact = format!("{major:02x}:{minor:02x}:{inode}");
    let alike = format!(":{inode}");
    let find =
        |is_it: &dyn Fn(&str) -> bool| holders.iter().find(|(file, _)| is_it(file)).map(|(_, pid)| *pid);
    find(&|file| file == exact).or_else(|| find(&|file| file.ends_with(&alike)))
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
}
