//! Standard output that never holds up the rest.
//!
//! A reader may be slow or stop reading for a while. Waiting for it must leave room for signals, and must not
//! change the mode of a pipe that other processes share; so a piece is written only when it surely fits.

use std::io::{self, Stdout};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

/// A pipe that is ready for writing takes at least this much without blocking.
const PIECE_BYTES: usize = 4096;

/// From here on the buffer is written out although more is ready.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;

/// Standard output with a buffer that is kept and reused.
pub(crate) struct Output {
    /// What is to be written. Append to it, then flush.
    pub(crate) buffer: Vec<u8>,
    /// Whether everything is written at once: on a terminal, other things are written beside it and keep their order.
    pub(crate) at_once: bool,
    written: usize,
    target: Target,
    aside: Aside,
}

/// Lines for standard output from somebody who does not hold it. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Aside(Arc<(Mutex<Vec<u8>>, Notify)>);

impl Aside {
    /// Leaves whole lines to be written.
    pub(crate) fn leave(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let (lines, notify) = &*self.0;
        write(&mut lines.lock().unwrap_or_else(PoisonError::into_inner));
        notify.notify_one();
    }

    /// Waits until there is something to write.
    pub(crate) async fn left(&self) {
        self.0.1.notified().await;
    }
}

enum Target {
    /// A pipe, socket or terminal, whose readiness can be waited for.
    Waitable(AsyncFd<Stdout>),
    /// A file, which is always ready.
    Plain(Stdout),
}

impl Output {
    /// Must be called inside a tokio runtime with I/O.
    #[expect(
        deprecated,
        reason = "the safe way to register is deprecated for descriptors that get closed; this one never is"
    )]
    pub(crate) fn new() -> Self {
        let target = match AsyncFd::with_interest(io::stdout(), Interest::WRITABLE) {
            Ok(waitable) => Target::Waitable(waitable),
            Err(_) => Target::Plain(io::stdout()),
        };
        Self { buffer: Vec::new(), at_once: false, written: 0, target, aside: Aside::default() }
    }

    /// Where others leave lines.
    pub(crate) fn aside(&self) -> Aside {
        self.aside.clone()
    }

    /// Writes what others have left since, as far as somebody still reads.
    pub(crate) async fn flush_aside(&mut self) {
        self.take_aside();
        let _ = self.flush().await;
    }

    /// Adds what others left to the buffer.
    pub(crate) fn take_aside(&mut self) {
        self.buffer.append(&mut self.aside.0.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes the buffer out. Can be dropped at any point and called again: nothing is written twice.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while self.written < self.buffer.len() {
            let rest = &self.buffer[self.written..];
            self.written += match &self.target {
                Target::Waitable(waitable) => write_when_ready(waitable, rest).await?,
                Target::Plain(stdout) => write(stdout, rest)?,
            };
        }
        self.buffer.clear();
        self.written = 0;
        Ok(())
    }
}

async fn write_when_ready(waitable: &AsyncFd<Stdout>, rest: &[u8]) -> io::Result<usize> {
    let piece = &rest[..rest.len().min(PIECE_BYTES)];
    loop {
        let mut ready = waitable.writable().await?;
        let attempt = ready.try_io(|stdout| {
            if is_ready(stdout.get_ref())? {
                write(stdout.get_ref(), piece)
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            }
        });
        if let Ok(written) = attempt {
            return written;
        }
    }
}

fn is_ready(stdout: &Stdout) -> io::Result<bool> {
    let mut watched = [PollFd::new(stdout, PollFlags::OUT)];
    // Asked again when a signal came in between: a wrong "no" would wait for news that does not come.
    let ready = retry_on_intr(|| poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })))?;
    Ok(ready > 0)
}

fn write(stdout: &Stdout, bytes: &[u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::write(stdout, bytes))?)
}
