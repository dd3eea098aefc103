//! The inside of a sandbox: the process that confines itself and then starts the command.
//!
//! It is the first process in the namespaces of `bwrap`, whose end is the end of all inside, or a child of the
//! supervisor with Landlock. It gives up every right to undo the sandbox, and reports how the command ended.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::mount::MountFlags;
use rustix::process::{Pid, Resource, Rlimit, WaitOptions, wait};
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use crate::launch_plan::{Backend, CommandToRun, ConfinedRun, ConfinementPlan, NetworkReach};
use crate::messages::{self, CommandReport, MessageBuffer};
use crate::process::{CommandStatus, Exit};
use crate::unsafe_calls::{self, Leader, close_to_others};
use crate::{commands, filter, landlock_rules, raw_text, tree};

/// The first argument that makes a binary the inside.
pub(crate) const ARGUMENT: &str = "__confine";

/// Where it finds the socket to the supervisor.
pub(crate) const CHANNEL_FD: i32 = 252;
/// Where it finds its own program, whose file may not be visible inside.
pub(crate) const PROGRAM_FD: i32 = 253;
/// Where it finds the standard error of the command.
pub(crate) const ERRORS_FD: i32 = 254;

/// The port inside on which the proxy is found. Nobody else is there.
pub(crate) const PROXY_PORT: u16 = 3128;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InnerRequest {
    pub(crate) command: CommandToRun,
    pub(crate) confined: ConfinedRun,
    #[serde(with = "raw_text")]
    pub(crate) symlinks: Vec<PathBuf>,
    /// Whether a control group counts the processes.
    pub(crate) has_group: bool,
}

/// Confines this process, runs the command, and returns what to exit with.
pub(crate) fn run() -> i32 {
    let Ok(channel) = unsafe_calls::take_inherited(CHANNEL_FD) else { return 1 };
    let message = match enter(&channel) {
        Ok(exit) => CommandReport::Ended(exit),
        Err(reason) => CommandReport::Failed(reason),
    };
    i32::from(messages::send(&channel, &message, None).is_err())
}

fn failed<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

fn enter(channel: &OwnedFd) -> Result<Exit, String> {
    close_to_others();
    drop(unsafe_calls::take_inherited(PROGRAM_FD));
    let errors = unsafe_calls::take_inherited(ERRORS_FD).map_err(failed("standard error"))?;
    rustix::stdio::dup2_stderr(&errors).map_err(failed("standard error"))?;
    drop(errors);
    let null = File::options().read(true).write(true).open("/dev/null").map_err(failed("/dev/null"))?;
    let request = MessageBuffer::default().wait(channel).map_err(failed("what to run"))?;
    let InnerRequest { command, confined, symlinks, has_group } =
        request.ok_or("the command to run is missing")?;
    std::env::set_current_dir(&confined.cwd)
        .map_err(failed(&format!("{} cannot be entered", confined.cwd.display())))?;
    if matches!(confined.plan.backend, Backend::Bubblewrap(_)) {
        look_around(confined.plan.network)?;
    }
    for link in &symlinks {
        cover(link).map_err(failed(&format!("{} cannot be covered", link.display())))?;
    }
    limit(&confined.plan, has_group).map_err(failed("limits"))?;
    rustix::thread::set_no_new_privs(true).map_err(failed("no new privileges"))?;
    if confined.plan.network == NetworkReach::Proxied {
        open_door(channel).map_err(failed("the way to the proxy"))?;
    }
    drop_capabilities()?;
    match &confined.plan.backend {
        Backend::Landlock(landlock) => {
            landlock_rules::restrict(&confined.plan.files, *landlock).map_err(failed("Landlock"))?;
        }
        Backend::Bubblewrap(_) if confined.plan.shares_abstract_sockets() => {
            landlock_rules::close_abstract_sockets().map_err(failed("Landlock"))?;
        }
        Backend::Bubblewrap(_) => {}
    }
    filter::apply(&confined.plan).map_err(failed("the system call filter"))?;
    messages::send(channel, &CommandReport::Confined, None).map_err(failed("the supervisor"))?;
    Ok(match start(&command, &confined) {
        Ok((direct, cwd)) => watch(direct, cwd, &null),
        Err(error) => Exit::new(CommandStatus::NotStarted(error.raw_os_error().unwrap_or(0))),
    })
}

/// Makes sure that this process is where `bwrap` was to put it.
fn look_around(network: NetworkReach) -> Result<(), String> {
    let is_first = rustix::process::getpid().as_raw_pid() == 1;
    let top = rustix::fs::statvfs("/").map_err(failed("/"))?;
    let is_fixed = top.f_flag.contains(StatVfsMountFlags::RDONLY);
    // Two lines of heading, and one for each interface.
    let interfaces = std::fs::read_to_string("/proc/self/net/dev").map_err(failed("interfaces"))?;
    let is_alone = interfaces.lines().skip(2).all(|line| line.trim_start().starts_with("lo:"));
    if is_first && is_fixed && (is_alone || network == NetworkReach::Open) {
        Ok(())
    } else {
        Err("bwrap did not make the namespaces it was asked for".to_owned())
    }
}

/// Puts something that cannot be opened in front of a link, which can then be neither followed nor replaced.
fn cover(link: &Path) -> io::Result<()> {
    let open = || rustix::fs::open(link, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    let name = |descriptor: &OwnedFd| format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    rustix::mount::mount_bind("/dev/null", name(&open()?))?;
    let cover = open()?;
    let before = rustix::fs::fstatvfs(&cover)?.f_flag;
    // What was restricted outside must stay so.
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|(there, _)| before.contains(*there)).map(|(_, flag)| flag);
    let flags = MountFlags::BIND | MountFlags::NODEV | MountFlags::RDONLY | kept.collect();
    Ok(rustix::mount::mount_remount(name(&cover), flags, "")?)
}

fn limit(plan: &ConfinementPlan, has_group: bool) -> io::Result<()> {
    lower(Resource::Nofile, plan.limits.open_files)?;
    if let Some(bytes) = plan.limits.file_bytes {
        lower(Resource::Fsize, bytes)?;
    }
    if !has_group {
        let own_count = match &plan.backend {
            Backend::Bubblewrap(bubblewrap) if bubblewrap.has_user_namespace => 0,
            _ => tree::count_of_user(),
        };
        lower(Resource::Nproc, own_count + u64::from(plan.limits.processes))?;
    }
    Ok(())
}

/// Lowers a limit, which never becomes higher than it was.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let before = rustix::process::getrlimit(resource);
    let lowered = |old: Option<u64>| Some(old.map_or(limit, |old| old.min(limit)));
    let after = Rlimit { current: lowered(before.current), maximum: lowered(before.maximum) };
    Ok(rustix::process::setrlimit(resource, after)?)
}

/// Opens the port where the command looks for its proxy, and hands it to the engine, which listens there from outside.
fn open_door(channel: &OwnedFd) -> io::Result<()> {
    let door = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    messages::send(channel, &CommandReport::Listening, Some(door.as_fd()))
}

fn drop_capabilities() -> Result<(), String> {
    for capability in CapabilitySet::all().iter() {
        // Who may not do this has no way to get them back either, since there are no new privileges.
        let _ = rustix::thread::remove_capability_from_bounding_set(capability);
    }
    // Without inheritable capabilities there are no ambient ones.
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).map_err(failed("capabilities"))?;
    let left = rustix::thread::capabilities(None).map_err(failed("capabilities"))?;
    if left == sets { Ok(()) } else { Err("capabilities could not be given up".to_owned()) }
}

fn start(command: &CommandToRun, confined: &ConfinedRun) -> io::Result<(Pid, Option<OwnedFd>)> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let (mut command, cwd) =
        commands::prepare(command, Some(&confined.environment), Some(input), Leader::Group)?;
    Ok((Pid::from_child(&command.spawn()?), cwd))
}

/// Waits for the command to end. Whatever else ends meanwhile, and was left to this process, is collected.
fn watch(direct: Pid, cwd: Option<OwnedFd>, null: &File) -> Exit {
    // Nothing of the command's is held on to; the end of its output would never be seen.
    let _ = rustix::stdio::dup2_stdin(null);
    let _ = rustix::stdio::dup2_stdout(null);
    let _ = rustix::stdio::dup2_stderr(null);
    loop {
        match rustix::io::retry_on_intr(|| wait(WaitOptions::empty())) {
            Ok(Some((pid, status))) if pid == direct => {
                let status = ExitStatus::from_raw(status.as_raw());
                return Exit { cwd: commands::read_cwd(cwd), ..Exit::new(status.into()) };
            }
            Ok(_) => {}
            Err(_) => return Exit::new(CommandStatus::Lost),
        }
    }
}
