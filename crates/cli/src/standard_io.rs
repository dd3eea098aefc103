//! Standard input and output that never hold up the rest.
//!
//! Waiting for the other side must leave room for signals, and must not change the mode of a pipe that other processes
//! share; so a piece is read or written only when that surely does not block.

use std::io::{self, Stdin, Stdout};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use windlass::host_conversation::{HostChannel, HostLine};
use windlass::wire::LINE_BYTES_MAX;

use crate::complain;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// A pipe that is ready for writing takes at least this much without blocking.
const WRITE_BYTES: usize = 4096;

/// From here on the buffer is written out although more is ready.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;

/// Standard input or output.
enum StandardStream<T: AsRawFd> {
    /// A pipe, socket or terminal, whose readiness can be waited for.
    Waitable(AsyncFd<T>),
    /// A file, which is always ready.
    Plain(T),
}

impl<T: AsRawFd + AsFd> StandardStream<T> {
    /// Must be called inside a tokio runtime with I/O.
    #[expect(
        deprecated,
        reason = "the safe way to register is deprecated for descriptors that get closed; this one never is"
    )]
    fn new(stream: fn() -> T, interest: Interest) -> Self {
        match AsyncFd::with_interest(stream(), interest) {
            Ok(waitable) => Self::Waitable(waitable),
            Err(_) => Self::Plain(stream()),
        }
    }

    /// Reads or writes once the stream is ready. Can be dropped at any point: nothing is lost or done twice.
    async fn perform<R>(&self, interest: Interest, act: impl Fn(&T) -> io::Result<R>) -> io::Result<R> {
        let act_if_ready = |stream: &T| {
            if is_ready(stream, interest)? { act(stream) } else { Err(io::ErrorKind::WouldBlock.into()) }
        };
        match self {
            Self::Waitable(waitable) => waitable.async_io(interest, act_if_ready).await,
            Self::Plain(stream) => act(stream),
        }
    }
}

fn is_ready(stream: &impl AsFd, interest: Interest) -> io::Result<bool> {
    let flags = if interest.is_readable() { PollFlags::IN } else { PollFlags::OUT };
    let mut watched = [PollFd::new(stream, flags)];
    // Asked again when a signal came in between: a wrong "no" would wait for news that does not come.
    let ready = retry_on_intr(|| poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })))?;
    Ok(ready > 0)
}

/// Standard input as it comes.
pub(crate) struct StandardInput(StandardStream<Stdin>);

impl StandardInput {
    /// Must be called inside a tokio runtime with I/O.
    pub(crate) fn new() -> Self {
        Self(StandardStream::new(io::stdin, Interest::READABLE))
    }

    /// A piece of what is there; nothing at the end. Can be dropped at any point: nothing is lost.
    pub(crate) async fn read(&self) -> io::Result<Vec<u8>> {
        let read = |stdin: &Stdin| {
            let mut piece = vec![0; READ_BYTES];
            let length = retry_on_intr(|| rustix::io::read(stdin, &mut piece[..]))?;
            piece.truncate(length);
            Ok(piece)
        };
        self.0.perform(Interest::READABLE, read).await
    }
}

/// A host at standard input and output. Nothing is read before a line is asked for.
pub(crate) struct HostAtStdio {
    source: StandardInput,
    buffer: Vec<u8>,
    /// So much of the buffer is known to hold no end of a line.
    searched: usize,
    is_at_end: bool,
    aside: SideOutput,
}

impl HostAtStdio {
    /// Must be called inside a tokio runtime with I/O.
    pub(crate) fn new(aside: SideOutput) -> Self {
        Self { source: StandardInput::new(), buffer: Vec::new(), searched: 0, is_at_end: false, aside }
    }
}

impl HostChannel for HostAtStdio {
    const SOURCE: &'static str = "standard input";

    async fn next_line(&mut self) -> HostLine {
        loop {
            if let Some(next) = take_line(&mut self.buffer, &mut self.searched, self.is_at_end) {
                return next;
            }
            match self.source.read().await {
                Ok(piece) if piece.is_empty() => self.is_at_end = true,
                Ok(piece) => self.buffer.extend_from_slice(&piece),
                Err(error) => {
                    self.is_at_end = true;
                    self.buffer.clear();
                    return HostLine::Unreadable(format!("cannot read standard input: {error}"));
                }
            }
        }
    }

    fn send(&self, lines: &[u8]) {
        self.aside.leave(|out| out.extend_from_slice(lines));
    }

    fn complain(&self, problem: &str) {
        complain(problem);
    }
}

/// The first line of the buffer, once it is there; at the end, what is left of it.
fn take_line(buffer: &mut Vec<u8>, searched: &mut usize, is_at_end: bool) -> Option<HostLine> {
    let end = buffer[*searched..].iter().position(|byte| *byte == b'\n').map(|at| *searched + at);
    let length = match end {
        _ if end.unwrap_or(buffer.len()) > LINE_BYTES_MAX => {
            buffer.clear();
            *searched = 0;
            return Some(HostLine::Unreadable(format!(
                "a line on standard input is longer than {LINE_BYTES_MAX} bytes"
            )));
        }
        Some(end) => end + 1,
        None if !is_at_end => {
            *searched = buffer.len();
            return None;
        }
        None if buffer.is_empty() => return Some(HostLine::End),
        None => buffer.len(),
    };
    *searched = 0;
    let line: Vec<u8> = buffer.drain(..length).collect();
    Some(match String::from_utf8(line) {
        Ok(line) => HostLine::Text(line),
        Err(_) => HostLine::Unreadable("a line on standard input is not UTF-8 text".into()),
    })
}

/// Standard output with a buffer that is kept and reused.
pub(crate) struct Output {
    /// What is to be written. Append to it, then flush.
    pub(crate) buffer: Vec<u8>,
    /// Whether everything is written at once: on a terminal, other things are written beside it and keep their order.
    pub(crate) is_unbuffered: bool,
    /// Where others leave lines.
    pub(crate) aside: SideOutput,
    written: usize,
    target: StandardStream<Stdout>,
}

/// Lines for standard output from somebody who does not hold it. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct SideOutput(Arc<(Mutex<Vec<u8>>, Notify)>);

impl SideOutput {
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

impl Output {
    /// Must be called inside a tokio runtime with I/O.
    pub(crate) fn new() -> Self {
        let target = StandardStream::new(io::stdout, Interest::WRITABLE);
        Self { buffer: Vec::new(), is_unbuffered: false, aside: SideOutput::default(), written: 0, target }
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
            let piece = match &self.target {
                StandardStream::Waitable(_) => &rest[..rest.len().min(WRITE_BYTES)],
                StandardStream::Plain(_) => rest,
            };
            let write = |stdout: &Stdout| Ok(retry_on_intr(|| rustix::io::write(stdout, piece))?);
            self.written += self.target.perform(Interest::WRITABLE, write).await?;
        }
        self.buffer.clear();
        self.written = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of pieces that arrive one after the other.
    fn check(pieces: &[&[u8]], expected: &[HostLine]) {
        let (mut buffer, mut searched, mut seen) = (Vec::new(), 0, Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            seen.extend(std::iter::from_fn(|| take_line(&mut buffer, &mut searched, false)));
        }
        loop {
            let last = take_line(&mut buffer, &mut searched, true);
            let is_end = matches!(last, Some(HostLine::End));
            seen.extend(last);
            if is_end {
                break;
            }
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        let line = |text: &str| HostLine::Text(text.into());
        check(&[], &[HostLine::End]);
        check(&[b"a\nb", b"c\n\nd"], &[line("a\n"), line("bc\n"), line("\n"), line("d"), HostLine::End]);
        let bad = HostLine::Unreadable("a line on standard input is not UTF-8 text".into());
        check(&[b"\xff\nok\n"], &[bad, line("ok\n"), HostLine::End]);
    }

    #[test]
    fn a_line_has_a_longest_length() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let bad = HostLine::Unreadable("a line on standard input is longer than 33554432 bytes".into());
        check(&[&long, b"\n"], &[bad, HostLine::Text("\n".into()), HostLine::End]);
    }
}
