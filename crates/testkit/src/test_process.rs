//! A process under test: its output as it comes, and its end within a limit.

use std::io::{self, Read};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// More than any test prints; a process that prints more is made to wait.
const OUTPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A process that was started for a test. It is killed when this is dropped.
#[derive(Debug)]
pub struct TestProcess {
    child: Child,
    stdout: Collector,
    stderr: Collector,
    began: Instant,
    timeout: Duration,
}

/// A process that has ended.
#[derive(Clone, Debug)]
pub struct FinishedProcess {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// What it said beside.
    pub stderr: String,
    /// How long it took.
    pub elapsed: Duration,
}

impl FinishedProcess {
    /// The exit code; `None` if a signal ended it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The lines of its output as JSON; an error names the first line that is none.
    pub fn json_lines(&self) -> io::Result<Vec<serde_json::Value>> {
        let parse = |line: &str| {
            serde_json::from_str(line).map_err(|error| io::Error::other(format!("{error} in line {line:?}")))
        };
        self.stdout.lines().map(parse).collect()
    }
}

impl TestProcess {
    /// Watches a child whose output is piped.
    pub(crate) fn new(mut child: Child, timeout: Duration) -> io::Result<Self> {
        let stdout = Collector::start(child.stdout.take())?;
        let stderr = Collector::start(child.stderr.take())?;
        Ok(Self { child, stdout, stderr, began: Instant::now(), timeout })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) -> io::Result<()> {
        self.signal(Signal::INT)
    }

    /// Asks it to end, as a service manager would.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Ends it the hard way.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits until its output contains a text.
    pub fn wait_for_output(&self, text: &str) -> io::Result<()> {
        let left = self.timeout.saturating_sub(self.began.elapsed());
        if self.stdout.wait(left, |output| find(output, text.as_bytes())) {
            return Ok(());
        }
        Err(self.late(&format!("did not print {text:?}")))
    }

    /// Waits for its end and takes its output.
    pub fn finish(mut self) -> io::Result<FinishedProcess> {
        let left = self.timeout.saturating_sub(self.began.elapsed());
        // Its output ends when the process and all that inherited it are gone.
        let until = Instant::now() + left;
        let closed = self.stdout.wait_closed(left)
            && self.stderr.wait_closed(until.saturating_duration_since(Instant::now()));
        if !closed {
            let error = self.late("did not end");
            self.child.kill()?;
            self.child.wait()?;
            return Err(error);
        }
        let status = self.child.wait()?;
        let elapsed = self.began.elapsed();
        Ok(FinishedProcess { status, stdout: self.stdout.text(), stderr: self.stderr.text(), elapsed })
    }

    fn late(&self, what: &str) -> io::Error {
        let message = format!(
            "the process {what} within {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.timeout,
            self.stdout.text(),
            self.stderr.text()
        );
        io::Error::new(io::ErrorKind::TimedOut, message)
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        // It has usually ended by now, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a pipe to its end on a thread of its own.
#[derive(Debug)]
struct Collector {
    shared: Arc<Collected>,
    _thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Collected {
    output: Mutex<Output>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    is_closed: bool,
}

impl Collector {
    fn start(pipe: Option<impl Read + Send + 'static>) -> io::Result<Self> {
        let shared = Arc::new(Collected::default());
        let Some(pipe) = pipe else {
            shared.lock().is_closed = true;
            return Ok(Self { shared, _thread: None });
        };
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().spawn(move || for_thread.collect(pipe))?;
        Ok(Self { shared, _thread: Some(thread) })
    }

    fn wait(&self, timeout: Duration, enough: impl Fn(&[u8]) -> bool) -> bool {
        self.shared.wait(timeout, |output| enough(&output.bytes))
    }

    fn wait_closed(&self, timeout: Duration) -> bool {
        self.shared.wait(timeout, |output| output.is_closed)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shared.lock().bytes).into_owned()
    }
}

impl Collected {
    fn collect(&self, mut pipe: impl Read) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = pipe.read(&mut buffer).unwrap_or(0);
            let mut output = self.lock();
            let fits = output.bytes.len() + count <= OUTPUT_BYTES_MAX;
            if fits {
                output.bytes.extend_from_slice(&buffer[..count]);
            }
            output.is_closed = count == 0;
            self.news.notify_all();
            if count == 0 || !fits {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, timeout: Duration, enough: impl Fn(&Output) -> bool) -> bool {
        let until = Instant::now() + timeout;
        let mut output = self.lock();
        while !enough(&output) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || output.is_closed {
                return false;
            }
            output = self.news.wait_timeout(output, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes.windows(pattern.len()).any(|window| window == pattern)
}
