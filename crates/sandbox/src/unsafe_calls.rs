//! The few system calls that Rust cannot check, each with the reason why it is right.
#![expect(unsafe_code, reason = "what happens between fork and exec has no safe interface")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, Signal};
use tokio::io::unix::AsyncFd;

/// Signals that somebody may have ignored before us.
const ORDINARY_SIGNALS: [[libc::c_int; 5]; 2] = [
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGALRM],
    [libc::SIGTERM, libc::SIGCHLD, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU],
];

const TERMINATING_SIGNALS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// Of what the child becomes the leader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leader {
    /// Of a process group in the supervisor's session.
    Group,
    Session,
}

pub(crate) struct ChildSetup {
    pub(crate) leader: Leader,
    /// Descriptors, with the fixed numbers under which the child finds them.
    pub(crate) inherited: Vec<(OwnedFd, i32)>,
    /// Whether requests to terminate wait, so that whoever watches a command does not end before it.
    pub(crate) should_hold_signals: bool,
    /// The list of a control group that the child puts itself on.
    pub(crate) group: Option<OwnedFd>,
}

impl ChildSetup {
    pub(crate) fn new(leader: Leader) -> Self {
        Self { leader, inherited: Vec::new(), should_hold_signals: false, group: None }
    }
}

/// Arranges what the child does before exec: lead, die with its parent, leave no core, inherit only these.
pub(crate) fn before_exec(command: &mut Command, setup: ChildSetup) {
    let parent = rustix::process::getpid();
    let run = move || {
        match setup.leader {
            Leader::Group => rustix::process::setpgid(None, None)?,
            Leader::Session => rustix::process::setsid().map(drop)?,
        }
        die_with(parent)?;
        no_core_file()?;
        forget_signal_setup(setup.should_hold_signals);
        if let Some(group) = &setup.group {
            rustix::io::write(group, b"0")?;
        }
        close_from_three_on_exec();
        for (descriptor, number) in &setup.inherited {
            // SAFETY: both are plain numbers, and nothing in this single-threaded child owns `number`.
            if unsafe { libc::dup2(descriptor.as_raw_fd(), *number) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: in the forked child it allocates nothing, takes no lock, and makes only safe system calls.
    unsafe { command.pre_exec(run) };
}

/// The child is killed when the thread that started it ends.
fn die_with(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before it could be noticed.
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

fn no_core_file() -> io::Result<()> {
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    Ok(rustix::process::setrlimit(Resource::Core, none)?)
}

/// Closes this process to other processes of the same user: its environment and memory cannot be read through `/proc`,
/// nothing can attach to it, and a crash leaves no core file. A process of root can still look.
///
/// A program that holds keys calls this first thing in `main`. Where the system refuses, only the protection is lost.
pub fn close_to_others() {
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = no_core_file();
}

/// Undoes inherited signal setup, such as of `nohup`: commands can be asked to end, unless it `holds` that.
fn forget_signal_setup(should_hold: bool) {
    // SAFETY: the set is initialised before use and lives on this stack; default handling needs no handler to exist.
    unsafe {
        let mut held: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut held);
        for signal in TERMINATING_SIGNALS.into_iter().filter(|_| should_hold) {
            libc::sigaddset(&raw mut held, signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const held, std::ptr::null_mut());
        for signal in ORDINARY_SIGNALS.into_iter().flatten() {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Makes every descriptor but the standard ones end with `exec`.
fn close_from_three_on_exec() {
    // SAFETY: no descriptor is closed now, so whoever owns one still does. Old kernels refuse, and nothing changes.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Closes all but the standard descriptors. Only for the start of a process, when nobody owns the others.
pub(crate) fn close_inherited() {
    // SAFETY: called first thing in `main`; no object of this process owns a descriptor from three upwards yet.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// The descriptor inherited under a fixed number. Only for the start of a process, and once for each number.
pub(crate) fn take_inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: asking about a number changes nothing.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and whoever started this process left it to nobody but the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Holds back the end of children and requests to terminate, to be read from the descriptor instead.
pub(crate) fn signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised before use and lives on this stack; nobody else owns a new descriptor.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in TERMINATING_SIGNALS.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(&raw mut set, signal);
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Watches a descriptor for being readable.
pub(crate) fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor for as long as it lives, and the watcher owns it.
    unsafe { AsyncFd::register(descriptor) }.map_err(io::Error::from)
}

/// The size of one record read from [`signals`], whose first four bytes are the signal's number.
pub(crate) const SIGNAL_RECORD: usize = size_of::<libc::signalfd_siginfo>();
/// The number that says a child ended.
pub(crate) const CHILD_ENDED: u32 = libc::SIGCHLD.unsigned_abs();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_can_neither_be_looked_into_nor_dumped() {
        close_to_others();
        assert_eq!(rustix::process::dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
        assert_eq!(rustix::process::getrlimit(Resource::Core).current, Some(0));
    }
}
