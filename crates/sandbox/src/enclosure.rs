//! The outside of a sandbox: what the supervisor does to start a confined command, and what it hears from inside.
//!
//! ```text
//!   supervisor ──► bwrap ──┊──► the inside (`confine`) ──► bash ──► …
//!        ▲                 ┊          │
//!        └─── what is said ┊ ◄────────┘
//! ```
//!
//! With Landlock there is no `bwrap`, and the inside is a child of the supervisor.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::net::RecvFlags;
use rustix::process::Pid;

use crate::cgroup::ControlGroup;
use crate::commands::out_of_the_way;
use crate::confine::{self, CHANNEL_FD, ERRORS_FD, InnerRequest, PROGRAM_FD};
use crate::launch_plan::{Backend, CommandToRun, ConfinedRun};
use crate::messages::{self, CommandReport, MessageBuffer};
use crate::mounts::{self, Mounts};
use crate::process::{CommandStatus, Exit};
use crate::stubs::Stubs;
use crate::unsafe_calls::{self, ChildSetup, Leader};

/// Of what `bwrap` complains about, no more is told.
const COMPLAINT_BYTES_MAX: u64 = 2000;

/// Everything outside that belongs to one confined command.
pub(crate) struct Enclosure {
    channel: Option<UnixStream>,
    buffer: MessageBuffer,
    complaints: File,
    is_standing: bool,
    is_namespaced: bool,
    _stubs: Stubs,
    _group: Option<ControlGroup>,
}

/// Starts a confined command; the number is that of the process directly below us.
pub(crate) fn start(
    command: CommandToRun,
    confined: ConfinedRun,
    input: Option<OwnedFd>,
) -> io::Result<(Pid, Enclosure)> {
    let mounts = match &confined.plan.backend {
        Backend::Bubblewrap(_) => mounts::arrange(&confined.plan.files).map_err(io::Error::other)?,
        Backend::Landlock(_) => Mounts::default(),
    };
    let (ours, theirs) = UnixStream::pair()?;
    let complaints = File::from(rustix::fs::memfd_create("complaints", MemfdFlags::CLOEXEC)?);
    let group = ControlGroup::make(confined.plan.limits.processes);
    let program = File::open("/proc/self/exe")?;
    let mut setup = ChildSetup { should_hold_signals: true, ..ChildSetup::new(Leader::Group) };
    setup.group = group.as_ref().map(ControlGroup::list).transpose()?;
    setup.inherited = vec![
        (out_of_the_way(&theirs)?, CHANNEL_FD),
        (out_of_the_way(&program)?, PROGRAM_FD),
        (out_of_the_way(&rustix::stdio::stderr())?, ERRORS_FD),
    ];
    let is_namespaced = matches!(confined.plan.backend, Backend::Bubblewrap(_));
    let mut outer = outermost(&confined, &mounts);
    outer.stdin(input.map_or_else(Stdio::null, Stdio::from)).stderr(complaints.try_clone()?);
    unsafe_calls::before_exec(&mut outer, setup);
    let child = outer.spawn()?;
    drop((outer, theirs));
    let has_group = group.is_some();
    let symlinks = mounts.symlinks.into_iter().collect();
    let inside = InnerRequest { command, confined, symlinks, has_group };
    // If it cannot be written, whoever was to read it has failed and will have said why.
    let _ = messages::send(&ours, &inside, None);
    let enclosure = Enclosure {
        channel: Some(ours),
        buffer: MessageBuffer::default(),
        complaints,
        is_standing: false,
        is_namespaced,
        _stubs: mounts.stubs,
        _group: group,
    };
    Ok((Pid::from_child(&child), enclosure))
}

/// How a command ended whose sandbox could not be set up.
pub(crate) fn not_started(reason: &str) -> Exit {
    Exit {
        reason: Some(format!("the sandbox could not be set up: {reason}")),
        ..Exit::new(CommandStatus::NotStarted(libc::EPERM))
    }
}

/// The program directly below the supervisor.
fn outermost(confined: &ConfinedRun, mounts: &Mounts) -> Command {
    let inside = [format!("/proc/self/fd/{PROGRAM_FD}"), confine::ARGUMENT.to_owned()];
    match &confined.plan.backend {
        Backend::Bubblewrap(bubblewrap) => {
            let mut command = Command::new(&bubblewrap.program);
            command.args(mounts::base_arguments(bubblewrap, confined.plan.network, mounts.has_few_devices()));
            command.args(mounts.arguments()).arg("--").args(inside).current_dir("/");
            command
        }
        Backend::Landlock(_) => {
            let [program, argument] = inside;
            let mut command = Command::new(program);
            command.arg(argument);
            command
        }
    }
}

impl Enclosure {
    pub(crate) fn channel(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().map(AsFd::as_fd)
    }

    /// The next thing said inside, if there is one.
    pub(crate) fn hear(&mut self) -> Option<(CommandReport, Option<OwnedFd>)> {
        loop {
            match self.buffer.take() {
                Ok(Some(CommandReport::Confined)) => self.is_standing = true,
                Ok(Some(message)) => return Some((message, self.buffer.descriptor.take())),
                Ok(None) => {}
                Err(_) => self.channel = None,
            }
            match self.buffer.receive(self.channel.as_ref()?, RecvFlags::DONTWAIT) {
                Ok(true) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Ok(false) | Err(_) => self.channel = None,
            }
        }
    }

    /// How the process directly below us ended that confined nothing.
    fn in_words(&self, status: CommandStatus) -> String {
        let who = if self.is_namespaced { "bwrap" } else { "the process that confines the command" };
        match status {
            CommandStatus::Code(code) => {
                format!("{who} ended with code {code} before it confined the command")
            }
            CommandStatus::Signal(signal) => {
                format!("{who} was killed by signal {signal} before it confined the command")
            }
            CommandStatus::NotStarted(errno) => {
                format!("{who} could not be started: {}", io::Error::from_raw_os_error(errno))
            }
            CommandStatus::Lost => format!("it is unknown how {who} ended"),
        }
    }

    /// How the command ended if nobody inside said so.
    pub(crate) fn end(&mut self, status: CommandStatus) -> Exit {
        if !self.is_standing {
            let mut text = String::new();
            let read = self
                .complaints
                .rewind()
                .and_then(|()| (&mut self.complaints).take(COMPLAINT_BYTES_MAX).read_to_string(&mut text));
            let text = read.map_or("", |_| text.trim());
            return if text.is_empty() { not_started(&self.in_words(status)) } else { not_started(text) };
        }
        match status {
            // `bwrap` tells of signals as shells do.
            CommandStatus::Code(code @ 129..=192) if self.is_namespaced => {
                Exit::new(CommandStatus::Signal(code - 128))
            }
            status => Exit::new(status),
        }
    }
}
