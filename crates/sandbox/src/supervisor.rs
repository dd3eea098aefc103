//! The supervisor: the process above one command that ends the command's whole tree.
//!
//! ```text
//!            control socket (its standard input)
//!   engine ◄──────────────────────────────────────► supervisor ──► bash ──► …
//!      ▲                                                              │
//!      └───────────────────────── output pipe ◄───────────────────────┘
//! ```
//!
//! Where the command is confined, more processes stand between the supervisor and bash; see `enclosure`.
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

use crate::enclosure::{self, Enclosure};
use crate::launch_plan::{self, SupervisorRequest};
use crate::messages::{self, CommandReport};
use crate::process::{CommandStatus, Exit, TERMINATE_TIME};
use crate::tree::{self, TreeState};
use crate::unsafe_calls::{self, CHILD_ENDED, Leader, SIGNAL_RECORD, close_to_others};
use crate::{commands, confine};

/// The first argument that makes a binary the supervisor.
pub(crate) const ARGUMENT: &str = "__supervise";

/// The first look after killing comes soon, later ones less and less often.
const KILL_AGAIN: Duration = Duration::from_millis(5);
const KILL_AGAIN_MAX: Duration = Duration::from_secs(10);

/// Becomes the supervisor, or the process that starts a command in a sandbox, if started as one; then never returns. A
/// binary for [`Launcher::supervised`](crate::Launcher::supervised) calls this before it opens files or starts threads.
pub fn run_if_supervisor() {
    let code = match std::env::args_os().nth(1) {
        Some(first) if first == ARGUMENT => i32::from(supervise().is_err()),
        Some(first) if first == confine::ARGUMENT => confine::run(),
        _ => return,
    };
    std::process::exit(code);
}

fn supervise() -> io::Result<()> {
    unsafe_calls::close_inherited();
    // Nor can the command reach into this process and make it end as if all were well.
    close_to_others();
    let signals = unsafe_calls::signals()?;
    // Fails only for a process group's leader, which has been started by hand.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // A stopped supervisor would miss the engine's end. Early, when only a thread ended, it does nothing.
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    let Some((request, input)) = launch_plan::read_request(rustix::stdio::stdin())? else { return Ok(()) };
    let mut supervisor = match start(request, input, signals) {
        Ok(supervisor) => supervisor,
        Err(exit) => return send(exit),
    };
    let_go()?;
    supervisor.run()
}

fn start(request: SupervisorRequest, input: Option<OwnedFd>, signals: OwnedFd) -> Result<Supervisor, Exit> {
    let (direct, cwd, enclosure) = if let Some(confined) = request.confined {
        let (direct, enclosure) = enclosure::start(request.command, confined, input)
            .map_err(|error| enclosure::not_started(&error.to_string()))?;
        (direct, None, Some(enclosure))
    } else {
        let started = commands::prepare(&request.command, None, input, Leader::Group)
            .and_then(|(mut command, cwd)| Ok((Pid::from_child(&command.spawn()?), cwd, None)));
        started.map_err(|error| Exit::new(CommandStatus::NotStarted(error.raw_os_error().unwrap_or(0))))?
    };
    Ok(Supervisor { signals, direct: Some(direct), cwd, enclosure, has_reported: false })
}

/// Holds on to nothing of the command's: neither its output, whose end would never be seen, nor its directory.
fn let_go() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    std::env::set_current_dir("/")
}

fn send(exit: Exit) -> io::Result<()> {
    messages::send(rustix::stdio::stdin(), &CommandReport::Ended(exit), None)
}

struct Supervisor {
    signals: OwnedFd,
    /// The command itself, or what stands between it and us, until it has ended.
    direct: Option<Pid>,
    cwd: Option<OwnedFd>,
    enclosure: Option<Enclosure>,
    has_reported: bool,
}

impl Supervisor {
    fn run(&mut self) -> io::Result<()> {
        while self.reap() == TreeState::Alive {
            if self.is_to_stop()? {
                return self.end_tree();
            }
        }
        Ok(())
    }

    fn reap(&mut self) -> TreeState {
        loop {
            match rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG)) {
                Ok(Some((pid, status))) if self.direct == Some(pid) => {
                    self.direct = None;
                    self.end_of_direct(ExitStatus::from_raw(status.as_raw()).into());
                }
                Ok(Some(_)) => {}
                Ok(None) => return TreeState::Alive,
                Err(_) => return TreeState::Gone,
            }
        }
    }

    fn end_of_direct(&mut self, status: CommandStatus) {
        self.hear();
        let exit = match &mut self.enclosure {
            Some(enclosure) => enclosure.end(status),
            None => Exit { cwd: commands::read_cwd(self.cwd.take()), ..Exit::new(status) },
        };
        self.report(exit);
    }

    fn report(&mut self, exit: Exit) {
        if !self.has_reported {
            self.has_reported = true;
            // An engine that is gone is noticed by the socket.
            let _ = send(exit);
        }
    }

    /// Passes on what is said inside the sandbox.
    fn hear(&mut self) {
        while let Some((message, descriptor)) = self.enclosure.as_mut().and_then(Enclosure::hear) {
            match message {
                CommandReport::Ended(exit) => self.report(exit),
                CommandReport::Failed(reason) => self.report(enclosure::not_started(&reason)),
                CommandReport::Listening => {
                    let descriptor = descriptor.as_ref().map(AsFd::as_fd);
                    let _ = messages::send(rustix::stdio::stdin(), &message, descriptor);
                }
                CommandReport::Confined => {}
            }
        }
    }

    /// Waits for news; true if everything is to end.
    fn is_to_stop(&mut self) -> io::Result<bool> {
        let control = rustix::stdio::stdin();
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&control, PollFlags::IN)];
        let inside = self.enclosure.as_ref().and_then(Enclosure::channel);
        fds.extend(inside.map(|channel| PollFd::from_borrowed_fd(channel, PollFlags::IN)));
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        let [signals, control] = [&fds[0], &fds[1]].map(|fd| !fd.revents().is_empty());
        drop(fds);
        self.hear();
        let asked = signals && self.asked_to_terminate();
        // The engine writes nothing more; whatever comes from it means its end of the socket is closed.
        Ok(control || asked)
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
        let below = tree::descendants(me);
        tree::signal(&below, Signal::TERM);
        // What is stopped would not notice.
        tree::signal(&below, Signal::CONT);
        let deadline = Instant::now() + TERMINATE_TIME;
        while let Some(rest) = deadline.checked_duration_since(Instant::now()) {
            if self.reap() == TreeState::Gone {
                return Ok(());
            }
            self.wait_for_child(rest)?;
        }
        let mut again = KILL_AGAIN;
        while self.reap() == TreeState::Alive {
            tree::kill(|| tree::descendants(me));
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
