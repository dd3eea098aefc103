//! Handlers that are programs, and the one place that starts one: supervised, without terminal, limited.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_protocol::{HookAnswer, HookPrinted};
use windlass_sandbox::{CommandStatus, Launcher, ProgramBounds, ProgramCommand, ProgramInput, Sandbox};

use crate::answers::{self, HandlerFailure};
use crate::handler::{CommandForm, CommandHandler, Handler};
use crate::report::{ObservedEnd, RunObserver, printed_text};

/// The codes by which a shell says that it found nothing to run.
const NOT_FOUND: [i32; 2] = [126, 127];
pub(crate) const OBJECTION: i32 = 2;

pub(crate) fn program(
    command: &CommandHandler,
    input: &str,
    around: ProgramSurroundings,
    time: Duration,
) -> HookProgram {
    let argv = match &command.form {
        CommandForm::Shell { line, shell } => vec![(*shell).into(), "-c".into(), line.into()],
        CommandForm::Exec { argv } => argv.iter().map(|word| with_project(word, &around.project)).collect(),
    };
    HookProgram { argv, input: format!("{input}\n").into_bytes(), time, around }
}

/// Puts the project's directory into a word of a whole program; a shell safely reads the variable.
fn with_project(word: &str, project: &Path) -> OsString {
    let mut pieces = word.split("${CLAUDE_PROJECT_DIR}");
    let mut placed = OsString::from(pieces.next().unwrap_or_default());
    for piece in pieces {
        placed.push(project);
        placed.push(piece);
    }
    placed
}

/// Runs a program and reads its answer.
pub(crate) async fn ask(
    handler: &Handler,
    command: &CommandHandler,
    program: HookProgram,
    observer: &RunObserver,
) -> (HookAnswer, ObservedEnd) {
    let exit = match run_program(program, observer).await {
        Ok(exit) => exit,
        Err(failure) => return answers::failure(handler, "", &failure),
    };
    let is_objection = exit.code == Some(OBJECTION);
    let is_lost = exit.is_cut && !is_objection && answers::can_be_answer(handler, &exit.printed.output);
    let answer =
        if is_lost { Err(HandlerFailure::TooLong) } else { read_exit(handler, &command.form, &exit) };
    let (answer, has_failed) = match answer {
        Ok(answer) => (answer, is_objection),
        Err(failure) => (answers::from_failure(handler, &failure), true),
    };
    (answer, ObservedEnd { printed: exit.printed, code: exit.code, has_failed })
}

/// What a program that ended by itself said.
fn read_exit(
    handler: &Handler,
    form: &CommandForm,
    exit: &ProgramExit,
) -> Result<HookAnswer, HandlerFailure> {
    let HookPrinted { output: stdout, errors: stderr } = &exit.printed;
    match (exit.code, answers::parse(handler, stdout)) {
        (Some(OBJECTION), parsed) => {
            Ok(answers::from_objection(handler, parsed.and_then(Result::ok), stderr))
        }
        (_, Some(Ok(parsed))) => {
            handler.note_success();
            Ok(answers::from_parsed(handler, parsed))
        }
        (_, Some(Err(why))) => Err(HandlerFailure::Misspoke(why)),
        (Some(0), None) => {
            handler.note_success();
            Ok(answers::from_plain_text(handler, stdout))
        }
        (Some(code), None) if NOT_FOUND.contains(&code) && matches!(form, CommandForm::Shell { .. }) => {
            Err(HandlerFailure::NotStarted(first_line(stderr, &format!("exit code {code}"))))
        }
        (Some(code), None) => {
            let how = first_line(stderr, "no output");
            Err(HandlerFailure::Crashed(format!("exit code {code}: {how}")))
        }
        (None, None) => {
            let how = exit.signal.map_or_else(|| "a signal".to_owned(), |signal| format!("signal {signal}"));
            Err(HandlerFailure::Crashed(format!("ended by {how}")))
        }
    }
}

pub(crate) fn first_line(text: &str, otherwise: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or(otherwise).chars().take(300).collect()
}

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

#[derive(Debug)]
pub(crate) struct HookProgram {
    /// The program, looked for in `PATH` if it has no slash, and its arguments.
    pub(crate) argv: Vec<OsString>,
    pub(crate) input: Vec<u8>,
    pub(crate) time: Duration,
    pub(crate) around: ProgramSurroundings,
}

#[derive(Clone, Debug)]
pub(crate) struct ProgramSurroundings {
    pub(crate) project: PathBuf,
    pub(crate) cwd: PathBuf,
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) launcher: Launcher,
    pub(crate) confinement: Confinement,
}

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
    let command = ProgramCommand { argv, cwd, environment, input: ProgramInput::Pipe, sandbox };
    let bounds = ProgramBounds { time, output_bytes: KEPT_BYTES, error_bytes: KEPT_BYTES };
    let see = |output: &[u8], errors: &[u8]| observer.note_printed(output, errors);
    let outcome = around.launcher.run_seen(&command, &input, bounds, see).await;
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
    let printed = printed_text(&outcome.output.bytes, &outcome.errors.bytes);
    let (stdout, is_cut) = (outcome.output.bytes, outcome.output.is_cut);
    Ok(ProgramExit { code, signal, printed, stdout, is_cut })
}
