//! The one place that starts a program: below the supervisor, without a terminal, with an end to its time and its output.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use windlass_protocol::HookPrinted;
use windlass_sandbox::{CommandStatus, Launcher, ProgramBounds, ProgramInput, ProgramJob, Sandbox};

use crate::answers::HandlerFailure;
use crate::observer::{RunObserver, printed};

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
pub(crate) struct HookProgram {
    /// The program, looked for in `PATH` if it has no slash, and its arguments.
    pub(crate) argv: Vec<OsString>,
    pub(crate) input: Vec<u8>,
    pub(crate) time: Duration,
    pub(crate) around: ProgramSurroundings,
}

/// What every program of a hook is started with.
#[derive(Clone, Debug)]
pub(crate) struct ProgramSurroundings {
    pub(crate) project: PathBuf,
    pub(crate) cwd: PathBuf,
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) launcher: Launcher,
    pub(crate) confinement: Confinement,
}

/// How a program ended by itself.
#[derive(Debug)]
pub(crate) struct ProgramExit {
    /// Nothing if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) printed: HookPrinted,
    /// Standard output as it was printed.
    pub(crate) stdout: Vec<u8>,
    /// Whether the end of its output is missing.
    pub(crate) is_cut: bool,
}

/// Runs a program to its end. Should the future be dropped, the program is ended with everything it started.
pub(crate) async fn run_program(
    program: HookProgram,
    observer: &RunObserver,
) -> Result<ProgramExit, HandlerFailure> {
    let HookProgram { argv, input, time, around } = program;
    let sandbox = match around.confinement {
        Confinement::Free => None,
        Confinement::In(sandbox) => Some(sandbox),
        Confinement::Missing => return Err(HandlerFailure::NotStarted(NO_SANDBOX.into())),
    };
    let (cwd, environment) = (around.cwd, around.environment);
    let job = ProgramJob { argv, cwd, environment, input: ProgramInput::Pipe, sandbox };
    let bounds = ProgramBounds { time, output_bytes: KEPT_BYTES, error_bytes: KEPT_BYTES };
    let see = |output: &[u8], errors: &[u8]| observer.printed(output, errors);
    let outcome = around.launcher.run_seen(&job, &input, bounds, see).await;
    let outcome = outcome.map_err(|error| HandlerFailure::NotStarted(error.to_string()))?;
    let exit = outcome.exit.ok_or(HandlerFailure::TimedOut(time))?;
    let (code, signal) = match exit.status {
        CommandStatus::Code(code) => (Some(code), None),
        CommandStatus::Signal(signal) => (None, Some(signal)),
        CommandStatus::Lost => (None, None),
        CommandStatus::NotStarted(errno) => {
            let why = || std::io::Error::from_raw_os_error(errno).to_string();
            return Err(HandlerFailure::NotStarted(exit.reason.unwrap_or_else(why)));
        }
    };
    let printed = printed(&outcome.output.bytes, &outcome.errors.bytes);
    let (stdout, is_cut) = (outcome.output.bytes, outcome.output.is_cut);
    Ok(ProgramExit { code, signal, printed, stdout, is_cut })
}
