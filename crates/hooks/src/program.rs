//! The one place that starts a program: in a group of its own, without a terminal, with an end to its time and its output.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// After the program itself has ended, something it left behind may hold its output. Nobody waits longer for that.
const OUTPUT_TIME: Duration = Duration::from_millis(500);
/// How long a program that was asked to stop may take.
const STOP_TIME: Duration = Duration::from_secs(2);
/// As many bytes of each output are kept; the rest is read and dropped.
const KEPT_BYTES: usize = 1 << 20;

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
}

/// What came of a program.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It could not be started, and why.
    NotStarted(String),
    /// Its time was over; it was ended with everything it had started.
    TimedOut,
    /// It ended by itself: its exit code, or nothing if a signal ended it.
    Exited { code: Option<i32>, signal: Option<i32>, stdout: Vec<u8>, stderr: Vec<u8> },
}

/// Runs a program to its end. Should the future be dropped, the program is ended with its whole group.
pub(crate) async fn run_program(program: Program) -> Ended {
    let Program { argv, cwd, environment, input, time } = program;
    let Some((name, arguments)) = argv.split_first() else {
        return Ended::NotStarted("there is no program to start".into());
    };
    let mut command = Command::new(name);
    command.args(arguments).current_dir(cwd).env_clear().envs(environment).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ended::NotStarted(error.to_string()),
    };
    let mut group = Group::of(&child);
    let ended = timeout(time, watch(&mut child, &input)).await.ok();
    if ended.is_none() {
        group.stop(&mut child).await;
    }
    group.end();
    ended.unwrap_or(Ended::TimedOut)
}

/// Waits for the program, and not much longer for its output.
async fn watch(child: &mut Child, input: &[u8]) -> Ended {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let streams = async {
        let give = async {
            if let Some(mut stdin) = stdin {
                // A program need not read its input.
                let _ = stdin.write_all(input).await;
            }
        };
        tokio::join!(give, keep(stdout, &mut output), keep(stderr, &mut errors));
    };
    let status = {
        tokio::pin!(streams);
        let mut is_read = false;
        let status = loop {
            tokio::select! {
                () = &mut streams, if !is_read => is_read = true,
                status = child.wait() => break status,
            }
        };
        if !is_read {
            let _ = timeout(OUTPUT_TIME, &mut streams).await;
        }
        status
    };
    match status {
        Ok(status) => Ended::Exited {
            code: status.code(),
            signal: std::os::unix::process::ExitStatusExt::signal(&status),
            stdout: output,
            stderr: errors,
        },
        Err(error) => Ended::NotStarted(error.to_string()),
    }
}

async fn keep(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    let mut piece = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut piece).await {
        let room = KEPT_BYTES.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(piece.get(..room).unwrap_or_default());
    }
}

/// The process group of a program. Whatever is left of it ends with this.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Asks everybody to stop, and ends who does not.
    async fn stop(&mut self, child: &mut Child) {
        self.signal(Signal::TERM);
        tokio::select! {
            _ = child.wait() => (),
            () = sleep(STOP_TIME) => (),
        }
    }

    fn end(&mut self) {
        self.signal(Signal::KILL);
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // Nobody may be left.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
