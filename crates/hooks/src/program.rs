//! The one place that starts a program: below the supervisor, without a terminal, with an end to its time and its output.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use windlass_sandbox::{Bounds, Input, Launcher, ProgramJob, Sandbox, Status};

use crate::witness::Witness;

/// As many bytes of each output are kept; the rest is read and dropped.
pub(crate) const KEPT_BYTES: usize = 1 << 20;

/// What hooks that are programs run in.
#[derive(Clone, Debug, Default)]
pub enum Confinement {
    /// Nothing: they are the user's own programs.
    #[default]
    Free,
    /// This sandbox.
    In(Sandbox),
    /// A sandbox that cannot be had here: none of them is started.
    Missing,
}

const NO_SANDBOX: &str = "it belongs into a sandbox, and there is none here; `windlass sandbox status` says what is missing, \
    and the setting sandbox.hooks lets hooks run without";

/// A program and what it is given.
#[derive(Debug)]
pub(crate) struct Program {
    /// The program, looked for in `PATH` if it has no slash, and its arguments.
    pub(crate) argv: Vec<OsString>,
    /// Where it starts.
    pub(crate) cwd: PathBuf,
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// What it reads.
    pub(crate) input: Vec<u8>,
    /// How long it may run.
    pub(crate) time: Duration,
    /// What it runs in.
    pub(crate) confinement: Confinement,
}

/// What came of a program.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It could not be started, and why.
    NotStarted(String),
    /// Its time was over; it was ended with everything it had started.
    TimedOut,
    /// It ended by itself: its exit code, or nothing if a signal ended it; and whether the end of its output is missing.
    Exited { code: Option<i32>, signal: Option<i32>, stdout: Vec<u8>, stderr: Vec<u8>, is_cut: bool },
}

/// Runs a program to its end. Should the future be dropped, the program is ended with everything it started.
pub(crate) async fn run_program(launcher: &Launcher, program: Program, witness: &Witness) -> Ended {
    let Program { argv, cwd, environment, input, time, confinement } = program;
    let sandbox = match confinement {
        Confinement::Free => None,
        Confinement::In(sandbox) => Some(sandbox),
        Confinement::Missing => return Ended::NotStarted(NO_SANDBOX.into()),
    };
    let job = ProgramJob { argv, cwd, environment, input: Input::Pipe, sandbox };
    let bounds = Bounds { time, output_bytes: KEPT_BYTES, error_bytes: KEPT_BYTES };
    let see = |output: &[u8], errors: &[u8]| witness.printed(output, errors);
    let finished = match launcher.run_seen(&job, &input, bounds, see).await {
        Ok(finished) => finished,
        Err(error) => return Ended::NotStarted(error.to_string()),
    };
    let is_cut = finished.output.is_cut;
    let (stdout, stderr) = (finished.output.bytes, finished.errors.bytes);
    let Some(exit) = finished.exit else { return Ended::TimedOut };
    let (code, signal) = match exit.status {
        Status::Code(code) => (Some(code), None),
        Status::Signal(signal) => (None, Some(signal)),
        Status::Lost => (None, None),
        Status::NotStarted(errno) => {
            let why = || std::io::Error::from_raw_os_error(errno).to_string();
            return Ended::NotStarted(exit.reason.unwrap_or_else(why));
        }
    };
    Ended::Exited { code, signal, stdout, stderr, is_cut }
}
