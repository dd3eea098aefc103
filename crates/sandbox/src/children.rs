//! The children of this process: those started for commands, and those adopted because a supervisor was lost.
//!
//! Each is listed from before it can run until it is collected, so whatever else turns up can be told from it. They are
//! started, collected and killed under the list's lock: no number is signalled that may belong to another by now.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use crate::tree::{self, TreeState};

static CHILDREN: Mutex<Children> =
    Mutex::new(Children { own: Vec::new(), should_adopt: false, lost_since: None });

/// After the time given to [`wait_for_trees`], what was killed gets this long to disappear.
const LAST_TIME: Duration = Duration::from_millis(300);
const LOOK_AGAIN: Duration = Duration::from_millis(1);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildRole {
    /// It ends everything below it, and itself when that is done.
    Supervisor,
    /// A command that leads a session and has nobody above it but us.
    Session,
}

struct OwnChild {
    child: Child,
    role: ChildRole,
}

struct Children {
    own: Vec<OwnChild>,
    /// Whether this process adopts what a lost supervisor leaves.
    should_adopt: bool,
    /// When the first of the lost supervisors began whose processes may still be there.
    lost_since: Option<u64>,
}

fn children() -> MutexGuard<'static, Children> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn spawn(command: &mut Command, role: ChildRole) -> io::Result<Pid> {
    let mut children = children();
    if role == ChildRole::Supervisor && !children.should_adopt {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        children.should_adopt = true;
    }
    let child = command.spawn()?;
    let pid = Pid::from_child(&child);
    children.own.push(OwnChild { child, role });
    Ok(pid)
}

pub(crate) fn signal(pid: Pid, signal: Signal) {
    if children().own.iter().any(|own| own.pid() == pid) {
        // It may have ended.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// How a child of ours ended; `None` while it has not.
pub(crate) fn collect(pid: Pid) -> io::Result<Option<ExitStatus>> {
    let mut children = children();
    let place = children.own.iter().position(|own| own.pid() == pid).ok_or(io::ErrorKind::NotFound)?;
    children.collect(place)
}

pub(crate) fn end_adopted() -> TreeState {
    children().end_adopted()
}

impl OwnChild {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Children {
    fn collect(&mut self, place: usize) -> io::Result<Option<ExitStatus>> {
        let own = &mut self.own[place];
        let pid = own.pid();
        // Looked up as long as it has not been collected.
        let started = tree::start_time(pid);
        let Some(status) = own.child.try_wait()? else { return Ok(None) };
        let own = self.own.swap_remove(place);
        if own.role == ChildRole::Supervisor && !status.success() {
            let started = started.unwrap_or(0);
            self.lost_since = Some(self.lost_since.map_or(started, |since| since.min(started)));
        }
        Ok(Some(status))
    }

    fn end_adopted(&mut self) -> TreeState {
        let Some(since) = self.lost_since else { return TreeState::Gone };
        let own: Vec<i32> = self.own.iter().map(|own| own.pid().as_raw_pid()).collect();
        tree::kill(|| tree::adopted_processes(&own, since).0);
        let (living, ended) = tree::adopted_processes(&own, since);
        for pid in &ended {
            let _ = waitid(WaitId::Pid(*pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        if living.is_empty() && ended.is_empty() {
            self.lost_since = None;
            return TreeState::Gone;
        }
        TreeState::Alive
    }

    /// Collects what has ended and kills what is lost.
    fn settle(&mut self) -> TreeState {
        for place in (0..self.own.len()).rev() {
            let own = &self.own[place];
            if own.role == ChildRole::Supervisor || tree::in_session(own.pid()).is_empty() {
                // What cannot be collected stays in the list.
                let _ = self.collect(place);
            }
        }
        match self.end_adopted() {
            TreeState::Gone if self.own.is_empty() => TreeState::Gone,
            _ => TreeState::Alive,
        }
    }

    fn signal_all(&self, signal: Signal) {
        for own in &self.own {
            match own.role {
                ChildRole::Supervisor => {
                    let _ = rustix::process::kill_process(own.pid(), signal);
                }
                ChildRole::Session => tree::signal(&tree::in_session(own.pid()), signal),
            }
        }
    }
}

/// Ends everything that was started in this process, and waits for it; after `limit` it kills the rest and returns soon.
/// For the very end of a program, when its runtime is gone. Commands have two seconds: a limit of two and a half suffices.
pub fn wait_for_trees(limit: Duration) {
    let deadline = Instant::now() + limit;
    children().signal_all(Signal::TERM);
    if wait_until(deadline) == TreeState::Gone {
        return;
    }
    children().signal_all(Signal::KILL);
    wait_until(deadline + LAST_TIME);
}

fn wait_until(deadline: Instant) -> TreeState {
    let mut pause = LOOK_AGAIN;
    loop {
        let mut children = children();
        if children.settle() == TreeState::Gone {
            return TreeState::Gone;
        }
        // Whoever is stopped would not notice that it is to end.
        children.signal_all(Signal::CONT);
        drop(children);
        if Instant::now() >= deadline {
            return TreeState::Alive;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK_AGAIN_MAX);
    }
}
