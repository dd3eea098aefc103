//! Handlers that are programs.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use windlass_protocol::{HookAnswer, HookPrinted};

use crate::answers::{self, HandlerFailure};
use crate::handler::{CommandForm, CommandHandler, Handler};
use crate::observer::{ObservedEnd, RunObserver};
use crate::program::{HookProgram, ProgramExit, ProgramSurroundings, run_program};

/// The codes by which a shell says that it found nothing to run.
const NOT_FOUND: [i32; 2] = [126, 127];
/// The code of an objection.
pub(crate) const OBJECTION: i32 = 2;

pub(crate) fn program(
    command: &CommandHandler,
    input: &str,
    around: ProgramSurroundings,
    time: Duration,
) -> HookProgram {
    let argv = match &command.form {
        CommandForm::Shell { line, shell } => vec![(*shell).into(), "-c".into(), line.into()],
        CommandForm::Exec { argv } => argv.iter().map(|word| placed(word, &around.project)).collect(),
    };
    HookProgram { argv, input: format!("{input}\n").into_bytes(), time, around }
}

/// A word with the project's directory in its place. Only whole programs are filled in: a shell reads the variable itself, so that
/// no name of a directory can be taken for a command.
fn placed(word: &str, project: &Path) -> OsString {
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
        Err(failure) => return answers::failed(handler, "", &failure),
    };
    let is_objection = exit.code == Some(OBJECTION);
    let is_lost = exit.is_cut && !is_objection && answers::may_be_answer(handler, &exit.printed.output);
    let answer =
        if is_lost { Err(HandlerFailure::TooLong) } else { read_exit(handler, &command.form, &exit) };
    let (answer, failed) = match answer {
        Ok(answer) => (answer, is_objection),
        Err(failure) => (answers::from_failure(handler, &failure), true),
    };
    (answer, ObservedEnd { printed: exit.printed, code: exit.code, failed })
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
            handler.worked();
            Ok(answers::from_parsed(handler, parsed))
        }
        (_, Some(Err(why))) => Err(HandlerFailure::Misspoke(why)),
        (Some(0), None) => {
            handler.worked();
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

fn first_line(text: &str, otherwise: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or(otherwise).chars().take(300).collect()
}
