//! Standard input and output that never hold up the rest.
//!
//! Waiting for the other side must leave room for signals, and must not change the mode of a pipe that other processes
//! share; so a piece is read or written only when that surely does not block.

use std::io::{self, Stdin, Stdout};
use std::os::fd::{AsFd, AsRawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use windlass::host_conversation::{HostInput, HostLine};
use windlass::output::OutputSink;
use windlass::wire::LINE_BYTES_MAX;

use crate::complain;

/// How much is read at once.
const READ_BYTES: usize = 64 * 1024;

/// A pipe that is ready for writing takes at least this much without blocking.
const WRITE_BYTES: usize = 4096;

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

/// A host at standard input. Nothing is read before a line is asked for.
pub(crate) struct HostAtStdio {
    source: StandardInput,
    buffer: Vec<u8>,
    /// So much of the buffer is known to hold no end of a line.
    searched: usize,
    is_at_end: bool,
}

impl HostAtStdio {
    /// Must be called inside a tokio runtime with I/O.
    pub(crate) fn new() -> Self {
        Self { source: StandardInput::new(), buffer: Vec::new(), searched: 0, is_at_end: false }
    }
}

impl HostInput for HostAtStdio {
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

/// Standard output as it goes.
pub(crate) struct StandardOutput(StandardStream<Stdout>);

impl StandardOutput {
    /// Must be called inside a tokio runtime with I/O.
    pub(crate) fn new() -> Self {
        Self(StandardStream::new(io::stdout, Interest::WRITABLE))
    }
}

impl OutputSink for StandardOutput {
    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let piece = match &self.0 {
            StandardStream::Waitable(_) => &bytes[..bytes.len().min(WRITE_BYTES)],
            StandardStream::Plain(_) => bytes,
        };
        let write = |stdout: &Stdout| Ok(retry_on_intr(|| rustix::io::write(stdout, piece))?);
        self.0.perform(Interest::WRITABLE, write).await
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
