//! A shell command to run, and how bash is told to run it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::MemfdFlags;
use rustix::pipe::PipeFlags;

use crate::system::{self, Inherited, Leader};

/// One command line for bash.
#[derive(Clone, Debug)]
pub struct ShellJob {
    /// The command, exactly as bash gets it.
    pub script: String,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether to report the working directory bash ends in. Without it bash becomes the command where it can.
    pub track_cwd: bool,
    /// A file that is sourced first.
    pub source: Option<PathBuf>,
}

/// Where the final working directory is written. Numbers that scripts do not choose.
const CWD_FD: i32 = 250;
/// Where bash finds its prelude.
const PRELUDE_FD: i32 = 251;
/// Longer than any path the kernel accepts.
const PATH_BYTES_MAX: usize = 8192;

const BASH: &[&str] = &["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];

/// Bash for `script`, without start-up files and with standard input at its end.
pub(crate) fn bash(script: &OsStr) -> Command {
    let bash = BASH.iter().find(|path| Path::new(path).exists()).unwrap_or(&"bash");
    let mut command = Command::new(bash);
    command.arg0("bash").args(["--noprofile", "--norc", "-c", "--"]).arg(script).stdin(Stdio::null());
    command
}

/// Attaches what must happen around the script: sourcing a file, and noting the last working directory, which will
/// arrive on the returned pipe. Everything else the child does before it is bash is arranged too.
///
/// It is done in a prelude that bash reads because `BASH_ENV` names it. So the script itself stays the argument of
/// `-c`, byte for byte: line numbers, `$0`, `$?`, here-documents and `exit` are what they would be without it. A script
/// that sets its own `EXIT` trap or replaces the shell by `exec` leaves no report.
pub(crate) fn attach(
    command: &mut Command,
    track_cwd: bool,
    source: Option<&Path>,
    leader: Leader,
) -> io::Result<Option<OwnedFd>> {
    let mut inherited = Vec::new();
    let mut cwd = None;
    if track_cwd {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        inherited.push(Inherited { descriptor: out_of_the_way(&writer)?, number: CWD_FD });
        cwd = Some(reader);
    }
    if track_cwd || source.is_some() {
        let mut prelude = File::from(rustix::fs::memfd_create("prelude", MemfdFlags::CLOEXEC)?);
        prelude.write_all(&prelude_text(track_cwd, source))?;
        inherited.push(Inherited { descriptor: out_of_the_way(&prelude)?, number: PRELUDE_FD });
        command.env("BASH_ENV", format!("/proc/self/fd/{PRELUDE_FD}"));
    }
    system::before_exec(command, leader, inherited);
    Ok(cwd)
}

/// The same descriptor under a number that is none of the fixed ones.
fn out_of_the_way(descriptor: &impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, PRELUDE_FD + 1)?)
}

fn prelude_text(track_cwd: bool, source: Option<&Path>) -> Vec<u8> {
    let mut text = format!("unset BASH_ENV; exec {PRELUDE_FD}<&-\n").into_bytes();
    if let Some(source) = source {
        text.extend(b". ");
        text.extend(quoted(source));
        text.push(b'\n');
    }
    if track_cwd {
        // The redirection keeps `set -x` from showing a line nobody wrote.
        text.extend(format!("trap '{{ builtin pwd -P >&{CWD_FD}; }} 2>/dev/null' EXIT\n").bytes());
    }
    text
}

fn quoted(path: &Path) -> Vec<u8> {
    let mut text = vec![b'\''];
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'\'' => text.extend(br"'\''"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
    text
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
