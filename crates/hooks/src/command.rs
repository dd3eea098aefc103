//! Handlers that are programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use windlass_protocol::{HookAnswer, HookPrinted};
use windlass_sandbox::Launcher;

use crate::handler::{CommandForm, CommandHandler, Handler};
use crate::program::{Confinement, Ended, Program, run_program};
use crate::voice::{self, Failed};
use crate::witness::{Seen, Witness, printed};

/// What a program of a hook is started with.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) project: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) launcher: Launcher,
    pub(crate) confinement: Confinement,
}

/// The codes by which a shell says that it found nothing to run.
const NOT_FOUND: [i32; 2] = [126, 127];
/// The code of an objection.
const OBJECTION: i32 = 2;

/// Runs a program and hears what it says.
pub(crate) async fn ask(
    handler: &Handler,
    command: &CommandHandler,
    program: Program,
    launcher: &Launcher,
    witness: &Witness,
) -> (HookAnswer, Seen) {
    let time = program.time;
    let ended = run_program(launcher, program, witness).await;
    hear(handler, &command.form, ended, time)
}

pub(crate) fn program(
    command: &CommandHandler,
    input: &str,
    around: Surroundings,
    time: Duration,
) -> Program {
    let Surroundings { project, cwd, environment, confinement, .. } = around;
    let argv = match &command.form {
        CommandForm::Shell { line, shell } => vec![(*shell).into(), "-c".into(), line.into()],
        CommandForm::Exec { argv } => argv.iter().map(|word| placed(word, &project)).collect(),
    };
    Program { argv, cwd, environment, input: format!("{input}\n").into_bytes(), time, confinement }
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

fn hear(handler: &Handler, form: &CommandForm, ended: Ended, time: Duration) -> (HookAnswer, Seen) {
    let failed = |failed: Failed| (voice::failed(handler, &failed), Seen::failed("", &failed));
    let (code, signal, printed, is_cut) = match ended {
        Ended::NotStarted(why) => return failed(Failed::NotStarted(why)),
        Ended::TimedOut => return failed(Failed::TimedOut(time)),
        Ended::Exited { code, signal, stdout, stderr, is_cut } => {
            (code, signal, printed(&stdout, &stderr), is_cut)
        }
    };
    let said = if is_cut && code != Some(OBJECTION) && voice::may_be_answer(handler, &printed.output) {
        Err(Failed::TooLong)
    } else {
        heard(handler, form, (code, signal), &printed)
    };
    let (answer, failed) = match said {
        Ok(answer) => (answer, code == Some(OBJECTION)),
        Err(failed) => (voice::failed(handler, &failed), true),
    };
    (answer, Seen { printed, code, failed })
}

/// What a program that ended by itself said.
fn heard(
    handler: &Handler,
    form: &CommandForm,
    (code, signal): (Option<i32>, Option<i32>),
    printed: &HookPrinted,
) -> Result<HookAnswer, Failed> {
    let HookPrinted { output: stdout, errors: stderr } = printed;
    let spoken = voice::read(handler, stdout);
    match (code, spoken) {
        (Some(OBJECTION), spoken) => Ok(voice::objected(handler, spoken.and_then(Result::ok), stderr)),
        (_, Some(Ok(spoken))) => {
            handler.worked();
            Ok(voice::spoke(handler, spoken))
        }
        (_, Some(Err(why))) => Err(Failed::Misspoke(why)),
        (Some(0), None) => {
            handler.worked();
            Ok(voice::plain(handler, stdout))
        }
        (Some(code), None) if NOT_FOUND.contains(&code) && is_shell(form) => {
            Err(Failed::NotStarted(first_line(stderr, &format!("exit code {code}"))))
        }
        (Some(code), None) => {
            let how = first_line(stderr, "no output");
            Err(Failed::Crashed(format!("exit code {code}: {how}")))
        }
        (None, None) => {
            let how = signal.map_or_else(|| "a signal".to_owned(), |signal| format!("signal {signal}"));
            Err(Failed::Crashed(format!("ended by {how}")))
        }
    }
}

fn is_shell(form: &CommandForm) -> bool {
    matches!(form, CommandForm::Shell { .. })
}

fn first_line(text: &str, otherwise: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or(otherwise).chars().take(300).collect()
}
