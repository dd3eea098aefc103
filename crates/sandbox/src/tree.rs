//! Finding and signalling all processes below one, as the process file system shows them.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal};

/// A process, by what identifies it even when its number is used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessEntry {
    pid: i32,
    parent: i32,
    session: i32,
    started: u64,
    has_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TreeState {
    Alive,
    Gone,
}

/// All living processes below `root`, which itself is not among them.
pub(crate) fn descendants(root: Pid) -> Vec<ProcessEntry> {
    let root = root.as_raw_pid();
    let mut below = with_descendants(all_processes(), BTreeSet::from([root]));
    below.retain(|entry| !entry.has_ended && entry.pid != root);
    below
}

/// What this process adopted, living with everything below, and those children that have ended and wait to be collected: children that it did not start (`own` lists those it did) and that began at `since` or
/// later. A command leads a session of its own, and no process can enter another's session, so children in the session
/// of this process are not adopted ones. Neither is who is in a session that an own child leads.
pub(crate) fn adopted_processes(own: &[i32], since: u64) -> (Vec<ProcessEntry>, Vec<Pid>) {
    let all = all_processes();
    let me = rustix::process::getpid().as_raw_pid();
    // Read like all others: a session whose leader is outside this namespace is 0 here, which is no process number.
    let session = all.iter().find(|entry| entry.pid == me).map(|entry| entry.session);
    let is_root = |entry: &&ProcessEntry| {
        entry.parent == me
            && Some(entry.session) != session
            && entry.started >= since
            && !own.contains(&entry.pid)
            && !own.contains(&entry.session)
    };
    let roots: Vec<ProcessEntry> = all.iter().filter(is_root).copied().collect();
    let ended =
        roots.iter().filter(|entry| entry.has_ended).filter_map(|entry| Pid::from_raw(entry.pid)).collect();
    let mut living = with_descendants(all, roots.iter().map(|entry| entry.pid).collect());
    living.retain(|entry| !entry.has_ended);
    (living, ended)
}

fn with_descendants(all: Vec<ProcessEntry>, roots: BTreeSet<i32>) -> Vec<ProcessEntry> {
    let mut inside = roots;
    loop {
        let before = inside.len();
        for entry in &all {
            if inside.contains(&entry.parent) {
                inside.insert(entry.pid);
            }
        }
        if inside.len() == before {
            break;
        }
    }
    all.into_iter().filter(|entry| inside.contains(&entry.pid)).collect()
}

/// When a process began, in the kernel's own unit. It may have ended, as long as nobody collected it.
pub(crate) fn start_time(pid: Pid) -> Option<u64> {
    read_entry(pid.as_raw_pid()).map(|entry| entry.started)
}

/// All living processes of the session that `leader` leads.
pub(crate) fn in_session(leader: Pid) -> Vec<ProcessEntry> {
    let session = leader.as_raw_pid();
    all_processes().into_iter().filter(|entry| !entry.has_ended && entry.session == session).collect()
}

/// Signals exactly these processes: ended ones, reused numbers, and what may not be signalled are skipped.
pub(crate) fn signal(entries: &[ProcessEntry], signal: Signal) {
    for entry in entries {
        let Some(pid) = Pid::from_raw(entry.pid) else { continue };
        // The handle is opened first and the identity checked after, so that it holds when the signal is sent.
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) if is_same(entry) => {
                let _ = rustix::process::pidfd_send_signal(handle, signal);
            }
            Err(rustix::io::Errno::NOSYS) if is_same(entry) => {
                let _ = rustix::process::kill_process(pid, signal);
            }
            _ => {}
        }
    }
}

/// Kills what `list` finds, stopping it first until nothing new appears: so nothing can outgrow the kill.
pub(crate) fn kill(list: impl Fn() -> Vec<ProcessEntry>) {
    const ROUNDS_MAX: usize = 64;
    let mut stopped = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let new: Vec<ProcessEntry> = list().into_iter().filter(|entry| !stopped.contains(entry)).collect();
        if new.is_empty() {
            break;
        }
        signal(&new, Signal::STOP);
        stopped.extend(new);
    }
    signal(&list(), Signal::KILL);
}

pub(crate) fn count_of_user() -> u64 {
    let user = rustix::process::getuid().as_raw().to_string();
    let threads = |pid: i32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        if field("Uid:")? == user { field("Threads:")?.parse().ok() } else { None }
    };
    all_processes().into_iter().filter_map(|entry| threads(entry.pid)).sum()
}

fn is_same(entry: &ProcessEntry) -> bool {
    read_entry(entry.pid).is_some_and(|now| now.started == entry.started)
}

fn all_processes() -> Vec<ProcessEntry> {
    let Ok(directory) = fs::read_dir("/proc") else { return Vec::new() };
    directory
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(read_entry)
        .collect()
}

fn read_entry(pid: i32) -> Option<ProcessEntry> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(pid, &String::from_utf8_lossy(&text))
}

/// The name of the program stands in parentheses and may contain anything, parentheses too.
fn parse_stat(pid: i32, text: &str) -> Option<ProcessEntry> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(ProcessEntry {
        pid,
        has_ended: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let text =
            "77 (a) Z 1 (b) S 5 6 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1000 1 18446744073709551615";
        let entry = parse_stat(77, text).unwrap();
        assert_eq!((entry.parent, entry.session, entry.started, entry.has_ended), (5, 7, 4242, false));
    }
}
