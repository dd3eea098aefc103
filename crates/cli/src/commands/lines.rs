//! Standard input, line by line, without holding up the rest.

use std::io::{self, Stdin};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use windlass_wire::LINE_BYTES_MAX;

/// How much is read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Standard input, read no further than somebody asks for.
pub(crate) struct Lines {
    source: StdinReader,
    buffer: Vec<u8>,
    /// So much of the buffer is known to hold no end of a line.
    searched: usize,
    ended: bool,
}

/// Standard input as it comes.
pub(crate) enum StdinReader {
    /// A pipe, socket or terminal, whose readiness can be waited for.
    Waitable(AsyncFd<Stdin>),
    /// A file, which is always ready.
    Plain(Stdin),
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Line(String),
    /// Nothing more.
    End,
    /// Something that cannot be read as a line, and why. Nothing more comes.
    Bad(String),
}

impl Lines {
    /// Must be called inside a tokio runtime with I/O.
    pub(crate) fn new() -> Self {
        Self { source: StdinReader::stdin(), buffer: Vec::new(), searched: 0, ended: false }
    }

    /// The next line. Can be dropped at any point and called again: nothing is lost.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            if let Some(next) = take_line(&mut self.buffer, &mut self.searched, self.ended) {
                return next;
            }
            match self.source.read().await {
                Ok(piece) if piece.is_empty() => self.ended = true,
                Ok(piece) => self.buffer.extend_from_slice(&piece),
                Err(error) => {
                    self.ended = true;
                    self.buffer.clear();
                    return Next::Bad(format!("cannot read standard input: {error}"));
                }
            }
        }
    }
}

/// The first line of the buffer, once it is there; at the end, what is left of it.
fn take_line(buffer: &mut Vec<u8>, searched: &mut usize, ended: bool) -> Option<Next> {
    let end = buffer[*searched..].iter().position(|byte| *byte == b'\n').map(|at| *searched + at);
    let length = match end {
        _ if end.unwrap_or(buffer.len()) > LINE_BYTES_MAX => {
            buffer.clear();
            *searched = 0;
            return Some(Next::Bad(format!(
                "a line on standard input is longer than {LINE_BYTES_MAX} bytes"
            )));
        }
        Some(end) => end + 1,
        None if !ended => {
            *searched = buffer.len();
            return None;
        }
        None if buffer.is_empty() => return Some(Next::End),
        None => buffer.len(),
    };
    *searched = 0;
    let line: Vec<u8> = buffer.drain(..length).collect();
    Some(match String::from_utf8(line) {
        Ok(line) => Next::Line(line),
        Err(_) => Next::Bad("a line on standard input is not UTF-8 text".into()),
    })
}

impl StdinReader {
    /// Must be called inside a tokio runtime with I/O.
    #[expect(
        deprecated,
        reason = "the safe way to register is deprecated for descriptors that get closed; this one never is"
    )]
    pub(crate) fn stdin() -> Self {
        match AsyncFd::with_interest(io::stdin(), Interest::READABLE) {
            Ok(waitable) => Self::Waitable(waitable),
            Err(_) => Self::Plain(io::stdin()),
        }
    }

    /// A piece of what is there; nothing at the end. Can be dropped at any point: nothing is lost.
    pub(crate) async fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Waitable(waitable) => read_when_ready(waitable).await,
            Self::Plain(stdin) => read(stdin),
        }
    }
}

async fn read_when_ready(waitable: &AsyncFd<Stdin>) -> io::Result<Vec<u8>> {
    loop {
        let mut ready = waitable.readable().await?;
        let attempt = ready.try_io(|stdin| {
            if is_ready(stdin.get_ref())? {
                read(stdin.get_ref())
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            }
        });
        if let Ok(piece) = attempt {
            return piece;
        }
    }
}

fn is_ready(stdin: &Stdin) -> io::Result<bool> {
    let mut watched = [PollFd::new(stdin, PollFlags::IN)];
    let ready = retry_on_intr(|| poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })))?;
    Ok(ready > 0)
}

fn read(stdin: &Stdin) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; PIECE_BYTES];
    let length = retry_on_intr(|| rustix::io::read(stdin, &mut piece[..]))?;
    piece.truncate(length);
    Ok(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of pieces that arrive one after the other.
    fn check(pieces: &[&[u8]], expected: &[Next]) {
        let (mut buffer, mut searched, mut seen) = (Vec::new(), 0, Vec::new());
        for piece in pieces {
            buffer.extend_from_slice(piece);
            seen.extend(std::iter::from_fn(|| take_line(&mut buffer, &mut searched, false)));
        }
        loop {
            let last = take_line(&mut buffer, &mut searched, true);
            let is_end = matches!(last, Some(Next::End));
            seen.extend(last);
            if is_end {
                break;
            }
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        let line = |text: &str| Next::Line(text.into());
        check(&[], &[Next::End]);
        check(&[b"a\nb", b"c\n\nd"], &[line("a\n"), line("bc\n"), line("\n"), line("d"), Next::End]);
        let bad = Next::Bad("a line on standard input is not UTF-8 text".into());
        check(&[b"\xff\nok\n"], &[bad, line("ok\n"), Next::End]);
    }

    #[test]
    fn a_line_has_a_longest_length() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let bad = Next::Bad("a line on standard input is longer than 33554432 bytes".into());
        check(&[&long, b"\n"], &[bad, Next::Line("\n".into()), Next::End]);
    }
}
