//! Running one confined command for a person at a terminal.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;

use crate::children::wait_for_trees;
use crate::job::{Input, ProgramJob};
use crate::launch::{Launcher, Streams};
use crate::policy::Policy;
use crate::process::{Exit, Status, TERMINATE_TIME};
use crate::sandbox::Sandbox;

/// What is returned when nothing was run.
const NOT_RUN: i32 = 126;

/// Runs a program in a sandbox, with the standard streams of this process, and returns what to exit with. What the
/// sandbox is made of is said first, in one line on standard error; where there is none, that is all.
///
/// This very program must call [`run_if_supervisor`](crate::run_if_supervisor) first thing in `main`. Must not be called
/// inside a tokio runtime.
#[must_use]
pub fn run_command(policy: &Policy, argv: Vec<OsString>, environment: Vec<(OsString, OsString)>) -> i32 {
    let sandbox = match Sandbox::prepare(policy) {
        Ok(sandbox) => sandbox,
        Err(unavailable) => return give_up(&unavailable),
    };
    say(&sandbox.summary());
    let program = argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    let outcome = run(sandbox, argv, environment);
    wait_for_trees(TERMINATE_TIME * 5 / 4);
    match outcome {
        Ok(exit) => conclude(&exit, &program),
        Err(error) => give_up(&error),
    }
}

fn run(
    sandbox: Sandbox,
    argv: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
) -> Result<Exit, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let streams = Streams {
            input: Some(io::stdin().as_fd().try_clone_to_owned()?),
            output: io::stdout().as_fd().try_clone_to_owned()?,
            errors: io::stderr().as_fd().try_clone_to_owned()?,
        };
        let cwd = std::env::current_dir()?;
        let job = ProgramJob { argv, cwd, environment, input: Input::Nothing, sandbox: Some(sandbox) };
        let launcher = Launcher::supervised("/proc/self/exe".into());
        let (mut exit, tree) = launcher.launch_program(&job, streams)?;
        let exit = exit.recv().await;
        tree.stop().await;
        Ok(exit)
    })
}

fn conclude(exit: &Exit, program: &str) -> i32 {
    for refused in &exit.refused {
        say(&refused.to_string());
    }
    if let Some(reason) = &exit.reason {
        return give_up(reason);
    }
    match exit.status {
        Status::Code(code) => code,
        Status::Signal(signal) => 128 + signal,
        Status::NotStarted(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            say(&format!(
                "the program {program:?} could not be started: {error}. Give a program and its arguments; \
                 a whole command line goes to a shell: sh -c '...'."
            ));
            if errno == libc::ENOENT { NOT_RUN + 1 } else { NOT_RUN }
        }
        Status::Lost => give_up(&"how the program ended is not known"),
    }
}

fn give_up(reason: &dyn std::fmt::Display) -> i32 {
    say(&reason.to_string());
    NOT_RUN
}

fn say(text: &str) {
    // There is nobody else to tell.
    let _ = writeln!(io::stderr(), "{text}");
}
