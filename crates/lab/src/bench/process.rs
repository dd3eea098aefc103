//! Running a program and watching its output with a clock.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longer than any run takes that is not stuck.
const TIMEOUT: Duration = Duration::from_mins(2);

/// One of the two that are compared.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Which of the two.
    pub program: BenchProgram,
    /// Its binary.
    pub binary: PathBuf,
}

/// The two that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchProgram {
    /// The release binary.
    Windlass,
    /// The bare client.
    Bare,
}

/// A run of a program.
#[derive(Debug)]
pub(crate) struct ProcessRun {
    /// Just before its start.
    pub(crate) began: Instant,
    /// From before its start to after its end.
    pub(crate) elapsed: Duration,
    /// Everything it printed, or only the end if lines were watched.
    pub(crate) stdout: Vec<u8>,
    /// What it said beside.
    pub(crate) stderr: String,
    /// When each line came that holds the text watched for.
    pub(crate) lines: Vec<Instant>,
}

/// Runs a command to its end. If `watch` is given, takes the time of each line of output that holds it.
pub(crate) fn run(mut command: Command, watch: Option<&str>) -> Result<ProcessRun> {
    let mut said = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said.try_clone()?);
    let began = Instant::now();
    let mut child =
        command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let guard = kill_after(child.id(), TIMEOUT)?;
    let mut output = Output { watch: watch.map(str::as_bytes), bytes: Vec::new(), lines: Vec::new() };
    if let Some(mut pipe) = child.stdout.take() {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = pipe.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            output.on_bytes(&buffer[..count], Instant::now());
        }
    }
    let status = child.wait()?;
    let elapsed = began.elapsed();
    drop(guard);
    let stderr = read_all(&mut said)?;
    if !status.success() {
        let stdout = String::from_utf8_lossy(&output.bytes).into_owned();
        bail!(
            "{} failed ({status})\n--- stdout\n{stdout}\n--- stderr\n{stderr}",
            command.get_program().display()
        );
    }
    Ok(ProcessRun { began, elapsed, stdout: output.bytes, stderr, lines: output.lines })
}

pub(crate) fn read_all(file: &mut File) -> Result<String> {
    file.rewind()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Kills a process that is stuck, unless the guard is dropped in time.
pub(crate) fn kill_after(pid: u32, timeout: Duration) -> Result<SyncSender<()>> {
    let pid = Pid::from_raw(i32::try_from(pid)?);
    let (guard, dropped) = sync_channel(0);
    std::thread::Builder::new().spawn(move || {
        if let Err(RecvTimeoutError::Timeout) = dropped.recv_timeout(timeout) {
            // It may have ended this very moment.
            let _ = kill(pid, Signal::SIGKILL);
        }
    })?;
    Ok(guard)
}

struct Output<'a> {
    watch: Option<&'a [u8]>,
    /// All bytes, or the last incomplete line while watching.
    bytes: Vec<u8>,
    lines: Vec<Instant>,
}

impl Output<'_> {
    fn on_bytes(&mut self, bytes: &[u8], at: Instant) {
        self.bytes.extend_from_slice(bytes);
        let Some(watch) = self.watch else { return };
        let mut start = 0;
        while let Some(length) = self.bytes[start..].iter().position(|byte| *byte == b'\n') {
            let line = &self.bytes[start..start + length];
            if line.windows(watch.len()).any(|window| window == watch) {
                self.lines.push(at);
            }
            start += length + 1;
        }
        self.bytes.drain(..start);
    }
}
