//! What tells one process from another that got the same number later.

use std::fs;

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
    read("/proc/sys/kernel/random/boot_id")
}

pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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
