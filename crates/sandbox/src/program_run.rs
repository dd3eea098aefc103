//! Running a program to its end: what hooks and short helpers need.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, interval_at, sleep_until, timeout_at};

use crate::commands::ProgramCommand;
use crate::launch::{LaunchError, Launcher};
use crate::process::{Exit, ProgramProcess};
use crate::{InputPipe, OutputPipe};

/// After the program itself has ended, something it left behind may hold its output. Nobody waits longer for that.
const OUTPUT_TIME: Duration = Duration::from_millis(500);
/// How often it is looked whether a program has printed more.
const SEEN_EVERY: Duration = Duration::from_secs(1);

/// How long a program may run and how much of what it prints is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramBounds {
    /// Until it is ended with everything it started.
    pub time: Duration,
    /// Bytes of its standard output; the rest is read and dropped.
    pub output_bytes: usize,
    /// Bytes of its standard error; the rest is read and dropped.
    pub error_bytes: usize,
}

/// What came of a program that was run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutcome {
    /// How it ended; `None` if its time was over, and it was ended with everything it started.
    pub exit: Option<Exit>,
    /// Its standard output.
    pub output: CapturedOutput,
    /// Its standard error.
    pub errors: CapturedOutput,
}

/// What is kept of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// Its beginning.
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub is_cut: bool,
}

impl Launcher {
    /// Runs a program to its end, with `input` if the command has a pipe. Nothing it started outlives this future. Must be
    /// called inside a tokio runtime with I/O and time enabled.
    pub async fn run(
        &self,
        command: &ProgramCommand,
        input: &[u8],
        bounds: ProgramBounds,
    ) -> Result<ProgramOutcome, LaunchError> {
        self.run_seen(command, input, bounds, |_, _| ()).await
    }

    /// The same, and shows what the program has printed on both streams so far: about once a second, while there is news.
    pub async fn run_seen(
        &self,
        command: &ProgramCommand,
        input: &[u8],
        bounds: ProgramBounds,
        see: impl Fn(&[u8], &[u8]) + Send,
    ) -> Result<ProgramOutcome, LaunchError> {
        let ProgramProcess { input: pipe, output: out, errors: err, mut exit, tree } =
            self.start_program(command)?;
        let deadline = Instant::now() + bounds.time;
        let (output, errors) = (Mutex::default(), Mutex::default());
        let mut ticks = interval_at(Instant::now() + SEEN_EVERY, SEEN_EVERY);
        let mut seen_bytes = 0;
        let ended = {
            let streams = async {
                tokio::join!(
                    give(pipe, input),
                    keep(out, bounds.output_bytes, &output),
                    keep(err, bounds.error_bytes, &errors)
                );
            };
            tokio::pin!(streams);
            let mut streams_end = false;
            loop {
                tokio::select! {
                    () = &mut streams, if !streams_end => streams_end = true,
                    exit = exit.recv() => {
                        if !streams_end {
                            let _ = timeout_at(Instant::now() + OUTPUT_TIME, &mut streams).await;
                        }
                        break Some(exit);
                    }
                    () = sleep_until(deadline) => break None,
                    _ = ticks.tick() => {
                        let (output, errors) = (lock(&output), lock(&errors));
                        let bytes = output.bytes.len() + errors.bytes.len();
                        if std::mem::replace(&mut seen_bytes, bytes) != bytes {
                            see(&output.bytes, &errors.bytes);
                        }
                    }
                }
            }
        };
        tree.stop().await;
        Ok(ProgramOutcome { exit: ended, output: take(output), errors: take(errors) })
    }
}

fn lock(kept: &Mutex<CapturedOutput>) -> MutexGuard<'_, CapturedOutput> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(kept: Mutex<CapturedOutput>) -> CapturedOutput {
    kept.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A program need not read its input.
async fn give(pipe: Option<InputPipe>, input: &[u8]) {
    if let Some(mut pipe) = pipe {
        let _ = pipe.write_all(input).await;
    }
}

async fn keep(mut pipe: OutputPipe, most: usize, kept: &Mutex<CapturedOutput>) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut piece).await {
        let mut kept = lock(kept);
        let room = most - kept.bytes.len();
        kept.is_cut |= count > room;
        kept.bytes.extend(&piece[..count.min(room)]);
    }
}
