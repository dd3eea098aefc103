//! The supervisor: the process above one command that ends the command's whole tree.
//!
//! ```text
//!            control socket (its standard input)
//!   engine ◄──────────────────────────────────────► supervisor ──► bash ──► …
//!      ▲                                                              │
//!      └───────────────────────── output pipe ◄───────────────────────┘
//! ```
//!
//! What to run comes over the socket, not as arguments: nobody who looks for the command by its text finds the
//! supervisor. It leads a session of its own, so there is no terminal, and it adopts every process whose parent ended,
//! so nothing below it can escape by starting a session or daemonising. It reports once, when the command itself ends,
//! and stays as long as anything below it lives. When the engine's end of the socket is closed — on request, or because
//! the engine is gone — it asks everything to terminate, waits two seconds, and kills what is left.
//!
//! A command runs as the same user and can stop or kill its supervisor. The engine sets a stopped one going again, and
//! when one is lost the engine itself adopts and kills what was below (see `children`). If the engine is killed while
//! the supervisor is stopped, the kernel wakes the supervisor. What remains is a command that kills its supervisor and
//! the engine, or stops its supervisor once the engine is gone: then nobody is left to end it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, wait};

use crate::job;
use crate::process::{Exit, Status, TERMINATE_TIME};
use crate::report;
use crate::request::{self, Request};
use crate::secrecy::close_to_others;
use crate::system::{self, CHILD_ENDED, Leader, SIGNAL_RECORD};
use crate::tree::{self, Left};

/// The first argument that makes a binary the supervisor.
pub(crate) const ARGUMENT: &str = "__supervise";

/// The first look after killing comes soon, later ones less and less often.
const KILL_AGAIN: Duration = Duration::from_millis(5);
const KILL_AGAIN_MAX: Duration = Duration::from_secs(10);

/// Becomes the supervisor if this process was started as one, and never returns then.
///
/// A binary that is given to [`Launcher::supervised`](crate::Launcher::supervised) calls this first thing in `main`,
/// before it opens a file or starts a thread.
pub fn run_if_supervisor() {
    if std::env::args_os().nth(1).is_none_or(|first| first != ARGUMENT) {
        return;
    }
    let code = match supervise() {
        Ok(()) => 0,
        Err(_) => 1,
    };
    std::process::exit(code);
}

fn supervise() -> io::Result<()> {
    system::close_inherited();
    // Nor can the command reach into this process and make it end as if all were well.
    close_to_others();
    let signals = system::signals()?;
    // Fails only for a process group's leader, which has been started by hand.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // Whoever is stopped does not notice that the engine is gone. It may come early, when only the thread that
    // started this process ends; then it does nothing.
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    let Some(request) = request::read(rustix::stdio::stdin())? else { return Ok(()) };
    let mut supervisor = match start(&request) {
        Ok((direct, cwd)) => Supervisor { signals, direct: Some(direct), cwd },
        Err(error) => {
            let status = Status::NotStarted(error.raw_os_error().unwrap_or(0));
            return send(&Exit { status, cwd: None });
        }
    };
    let_go()?;
    supervisor.run()
}

fn start(request: &Request) -> io::Result<(Pid, Option<OwnedFd>)> {
    let mut command = job::bash(&request.script);
    let cwd = job::attach(&mut command, request.track_cwd, request.source.as_deref(), Leader::Group)?;
    let child = command.spawn()?;
    Ok((Pid::from_child(&child), cwd))
}

/// Holds on to nothing of the command's: neither its output, whose end would never be seen, nor its directory.
fn let_go() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    std::env::set_current_dir("/")
}

fn send(exit: &Exit) -> io::Result<()> {
    let bytes = report::encode(exit);
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::write(rustix::stdio::stdin(), rest))?;
        rest = &rest[count..];
    }
    Ok(())
}

/// What woke the supervisor.
enum Wake {
    ChildEnded,
    Stop,
}

struct Supervisor {
    signals: OwnedFd,
    /// The command itself, until it has ended.
    direct: Option<Pid>,
    cwd: Option<OwnedFd>,
}

impl Supervisor {
    fn run(&mut self) -> io::Result<()> {
        while self.reap() == Left::Something {
            if let Wake::Stop = self.wait()? {
                return self.end_tree();
            }
        }
        Ok(())
    }

    /// Collects every child that has ended.
    fn reap(&mut self) -> Left {
        loop {
            match rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG)) {
                Ok(Some((pid, status))) if self.direct == Some(pid) => {
                    self.direct = None;
                    let status = status_of(ExitStatus::from_raw(status.as_raw()));
                    let cwd = job::read_cwd(self.cwd.take());
                    // An engine that is gone is noticed by the socket.
                    let _ = send(&Exit { status, cwd });
                }
                Ok(Some(_)) => {}
                Ok(None) => return Left::Something,
                Err(_) => return Left::Nothing,
            }
        }
    }

    fn wait(&self) -> io::Result<Wake> {
        let control = rustix::stdio::stdin();
        let mut fds = [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&control, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        let [signals, control] = fds.map(|fd| !fd.revents().is_empty());
        let asked = signals && self.asked_to_terminate();
        // The engine writes nothing more; whatever comes from it means its end of the socket is closed.
        Ok(if control || asked { Wake::Stop } else { Wake::ChildEnded })
    }

    /// Empties the signals; true if one of them was more than the end of a child.
    fn asked_to_terminate(&self) -> bool {
        let mut asked = false;
        let mut records = [0; SIGNAL_RECORD * 8];
        while let Ok(count @ 1..) = rustix::io::read(&self.signals, &mut records) {
            for record in records[..count].chunks_exact(SIGNAL_RECORD) {
                let number = record.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
                asked |= number != Some(CHILD_ENDED);
            }
        }
        asked
    }

    fn end_tree(&mut self) -> io::Result<()> {
        let me = rustix::process::getpid();
        let below = tree::below(me);
        tree::signal(&below, Signal::TERM);
        // What is stopped would not notice.
        tree::signal(&below, Signal::CONT);
        let deadline = Instant::now() + TERMINATE_TIME;
        while let Some(rest) = deadline.checked_duration_since(Instant::now()) {
            if self.reap() == Left::Nothing {
                return Ok(());
            }
            self.wait_for_child(rest)?;
        }
        let mut again = KILL_AGAIN;
        while self.reap() == Left::Something {
            tree::kill(|| tree::below(me));
            self.wait_for_child(again)?;
            again = (again * 2).min(KILL_AGAIN_MAX);
        }
        Ok(())
    }

    fn wait_for_child(&self, time: Duration) -> io::Result<()> {
        let time = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: time.subsec_nanos().into() };
        let mut fds = [PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.asked_to_terminate();
        Ok(())
    }
}

pub(crate) fn status_of(status: ExitStatus) -> Status {
    match (status.code(), status.signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Lost,
    }
}
