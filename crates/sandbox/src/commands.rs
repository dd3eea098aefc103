//! A command to run, and the process that runs it: bash with its prelude, or the program itself.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::pipe::PipeFlags;

use crate::launch_plan::{CommandToRun, ShellScript};
use crate::sandbox::Sandbox;
use crate::unsafe_calls::{self, ChildSetup, Leader};

/// One command line for bash.
#[derive(Clone, Debug)]
pub struct ShellCommand {
    /// The command, exactly as bash gets it.
    pub script: String,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment. A sandbox changes what must be different inside.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether to report the working directory bash ends in. Without it bash becomes the command where it can.
    pub should_track_cwd: bool,
    /// A file that is sourced first.
    pub source: Option<PathBuf>,
    /// What confines it.
    pub sandbox: Option<Sandbox>,
}

/// One program with its arguments; no shell reads them.
#[derive(Clone, Debug)]
pub struct ProgramCommand {
    /// The program, looked for in `PATH` if it has no slash, and its arguments.
    pub argv: Vec<OsString>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment. A sandbox changes what must be different inside.
    pub environment: Vec<(OsString, OsString)>,
    /// What it reads.
    pub input: ProgramInput,
    /// What confines it.
    pub sandbox: Option<Sandbox>,
}

/// The standard input of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramInput {
    /// Nothing: it is at its end at once.
    Nothing,
    /// What is written to [`ProgramProcess::input`](crate::ProgramProcess).
    Pipe,
}

/// Where the final working directory is written. Numbers that scripts do not choose.
const CWD_FD: i32 = 250;
/// Where bash finds its prelude.
const PRELUDE_FD: i32 = 251;
/// No fixed number is higher, here or elsewhere.
const FIXED_FD_MAX: i32 = 255;
/// Longer than any path the kernel accepts.
const PATH_BYTES_MAX: usize = 8192;

const BASH: &[&str] = &["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];

/// What is to be started, with everything it does before it is the program; and the pipe on which the last working
/// directory will arrive. Without an environment it has that of this process, and without an input that is at its end at once.
pub(crate) fn prepare(
    run: &CommandToRun,
    environment: Option<&[(OsString, OsString)]>,
    input: Option<OwnedFd>,
    leader: Leader,
) -> io::Result<(Command, Option<OwnedFd>)> {
    let mut command = match run {
        CommandToRun::Shell(script) => bash(&script.text),
        CommandToRun::Program(argv) => program(argv)?,
    };
    command.stdin(input.map_or_else(Stdio::null, Stdio::from));
    if let Some(environment) = environment {
        command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    }
    let mut setup = ChildSetup::new(leader);
    let cwd = match run {
        CommandToRun::Shell(script) => attach(&mut command, script, &mut setup)?,
        CommandToRun::Program(_) => None,
    };
    unsafe_calls::before_exec(&mut command, setup);
    Ok((command, cwd))
}

fn bash(script: &str) -> Command {
    let bash = BASH.iter().find(|path| Path::new(path).exists()).unwrap_or(&"bash");
    let mut command = Command::new(bash);
    command.arg0("bash").args(["--noprofile", "--norc", "-c", "--"]).arg(script);
    command
}

fn program(argv: &[OsString]) -> io::Result<Command> {
    let (name, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(name);
    command.args(arguments);
    Ok(command)
}

/// Attaches what happens around the script: sourcing a file, and reporting the last directory on the returned pipe.
///
/// It is done in a prelude that `BASH_ENV` names, so the script stays the argument of `-c`, byte for byte: line
/// numbers, `$0`, `$?` and here-documents are untouched. With an `EXIT` trap of its own, or `exec`, it leaves no
/// report.
fn attach(bash: &mut Command, script: &ShellScript, setup: &mut ChildSetup) -> io::Result<Option<OwnedFd>> {
    let mut cwd = None;
    if script.should_track_cwd {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        setup.inherited.push((out_of_the_way(&writer)?, CWD_FD));
        cwd = Some(reader);
    }
    if script.should_track_cwd || script.source.is_some() {
        let mut prelude = File::from(rustix::fs::memfd_create("prelude", MemfdFlags::CLOEXEC)?);
        prelude.write_all(&prelude_text(script.should_track_cwd, script.source.as_deref()))?;
        setup.inherited.push((out_of_the_way(&prelude)?, PRELUDE_FD));
        bash.env("BASH_ENV", format!("/proc/self/fd/{PRELUDE_FD}"));
    }
    Ok(cwd)
}

/// The same descriptor under a number that is none of the fixed ones.
pub(crate) fn out_of_the_way(descriptor: &impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, FIXED_FD_MAX + 1)?)
}

fn prelude_text(should_track_cwd: bool, source: Option<&Path>) -> Vec<u8> {
    let mut text = format!("unset BASH_ENV; exec {PRELUDE_FD}<&-\n").into_bytes();
    if let Some(source) = source {
        text.extend(b". ");
        text.extend(quote(source));
        text.push(b'\n');
    }
    if should_track_cwd {
        // The redirection keeps `set -x` from showing a line nobody wrote.
        text.extend(format!("trap '{{ builtin pwd -P >&{CWD_FD}; }} 2>/dev/null' EXIT\n").bytes());
    }
    text
}

fn quote(path: &Path) -> Vec<u8> {
    let parts: Vec<&[u8]> = path.as_os_str().as_bytes().split(|&byte| byte == b'\'').collect();
    [b"'", &parts.join(&br"'\''"[..])[..], b"'"].concat()
}

/// The working directory that arrived on the pipe, if any did.
pub(crate) fn read_cwd(pipe: Option<OwnedFd>) -> Option<PathBuf> {
    let pipe = pipe?;
    let mut bytes = vec![0; PATH_BYTES_MAX];
    let length = rustix::io::read(&pipe, &mut bytes).ok()?;
    bytes.truncate(length);
    let path = bytes.strip_suffix(b"\n")?;
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    path.is_absolute().then_some(path)
}
