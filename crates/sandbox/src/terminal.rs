//! Running one confined command for a person at a terminal, or trying whether one would be confined.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use crate::children::wait_for_trees;
use crate::commands::{ProgramCommand, ProgramInput};
use crate::launch::{Launcher, StandardStreams};
use crate::policy::SandboxPolicy;
use crate::process::{CommandStatus, Exit, TERMINATE_TIME};
use crate::sandbox::Sandbox;

/// What is returned when nothing was run.
const NOT_RUN: i32 = 126;

/// Runs a program in a sandbox, with the standard streams of this process, and returns what to exit with. The sandbox,
/// or why there is none, is printed first on standard error. Must not be called inside a tokio runtime, and this program
/// must call [`run_if_supervisor`](crate::run_if_supervisor) first thing in `main`.
#[must_use]
pub fn run_command(policy: &SandboxPolicy, argv: Vec<OsString>, variables: Vec<(OsString, OsString)>) -> i32 {
    let sandbox = match Sandbox::prepare(policy) {
        Ok(sandbox) => sandbox,
        Err(unavailable) => return give_up(&unavailable),
    };
    say(&sandbox.summary());
    let program = argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    match own_streams().map_err(Into::into).and_then(|streams| run(sandbox, argv, variables, streams)) {
        Ok(exit) => conclude(&exit, &program),
        Err(error) => give_up(&error),
    }
}

/// A sandbox in which a program that does nothing was really confined: its process looked around in there and gave up
/// its rights. The error says why it was not. The same holds for callers as for [`run_command`].
pub fn tried_sandbox(policy: &SandboxPolicy) -> Result<Sandbox, Box<dyn std::error::Error>> {
    let sandbox = Sandbox::prepare(policy)?;
    let (null, path) = (File::options().read(true).write(true).open("/dev/null")?, std::env::var_os("PATH"));
    let environment = path.map(|path| ("PATH".into(), path)).into_iter().collect();
    let streams = StandardStreams { input: None, output: null.try_clone()?.into(), errors: null.into() };
    let exit = run(sandbox.clone(), vec!["true".into()], environment, streams)?;
    match (exit.reason, exit.status) {
        (Some(reason), _) => Err(reason.into()),
        (None, CommandStatus::Lost) => Err("how a program in the sandbox ended is not known".into()),
        // Without such a program here, it was confined all the same.
        (None, CommandStatus::Code(_) | CommandStatus::Signal(_) | CommandStatus::NotStarted(_)) => {
            Ok(sandbox)
        }
    }
}

fn own_streams() -> io::Result<StandardStreams> {
    Ok(StandardStreams {
        input: Some(io::stdin().as_fd().try_clone_to_owned()?),
        output: io::stdout().as_fd().try_clone_to_owned()?,
        errors: io::stderr().as_fd().try_clone_to_owned()?,
    })
}

fn run(
    sandbox: Sandbox,
    argv: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    streams: StandardStreams,
) -> Result<Exit, Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let cwd = std::env::current_dir()?;
        let command =
            ProgramCommand { argv, cwd, environment, input: ProgramInput::Nothing, sandbox: Some(sandbox) };
        let launcher = Launcher::supervised("/proc/self/exe".into());
        let (mut exit, tree) = launcher.launch_program(&command, streams)?;
        let exit = exit.recv().await;
        tree.stop().await;
        Ok(exit)
    });
    drop(runtime);
    wait_for_trees(TERMINATE_TIME * 5 / 4);
    outcome
}

fn conclude(exit: &Exit, program: &str) -> i32 {
    for refused in &exit.refused {
        say(&refused.to_string());
    }
    if let Some(reason) = &exit.reason {
        return give_up(reason);
    }
    match exit.status {
        CommandStatus::Code(code) => code,
        CommandStatus::Signal(signal) => 128 + signal,
        CommandStatus::NotStarted(errno) => {
            let error = io::Error::from_raw_os_error(errno);
            say(&format!(
                "the program {program:?} could not be started: {error}. Give a program and its arguments; \
                 a whole command line goes to a shell: sh -c '...'."
            ));
            if errno == libc::ENOENT { NOT_RUN + 1 } else { NOT_RUN }
        }
        CommandStatus::Lost => give_up(&"how the program ended is not known"),
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
