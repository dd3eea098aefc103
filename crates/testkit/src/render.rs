//! Responses as bytes. They are made before they are asked for, so that an answer costs nothing but its writes.

use std::time::Duration;

use windlass_models::{Playback, PlaybackEnd, PlaybackStart, StatusError};

/// A response, ready to be written.
#[derive(Debug)]
pub(crate) struct RenderedResponse {
    pub(crate) delay: Duration,
    pub(crate) head: Option<RenderedHead>,
    /// Each event as one chunk, with the wait before it.
    pub(crate) events: Vec<(Duration, Vec<u8>)>,
    /// What is left to write after the events.
    pub(crate) rest: Vec<u8>,
    pub(crate) after: ConnectionEnd,
}

#[derive(Debug)]
pub(crate) struct RenderedHead {
    pub(crate) status: u16,
    pub(crate) bytes: Vec<u8>,
}

/// What happens to the connection after everything is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConnectionEnd {
    Keep,
    Close,
    Stall(Option<Duration>),
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
    cache-control: no-cache\r\nrequest-id: req_script\r\ntransfer-encoding: chunked\r\n";

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

impl RenderedResponse {
    /// A response, with these headers besides its own.
    pub(crate) fn new(playback: &Playback, headers: &[(String, String)]) -> Self {
        match &playback.opening {
            PlaybackStart::Refuse => Self {
                delay: playback.delay,
                head: None,
                events: Vec::new(),
                rest: Vec::new(),
                after: ConnectionEnd::Close,
            },
            PlaybackStart::Status(status) => Self { delay: playback.delay, ..Self::status(status, headers) },
            PlaybackStart::Whole(message) => Self::whole(playback, message, headers),
            PlaybackStart::Stream => Self::stream(playback, headers),
        }
    }

    /// An error status.
    pub(crate) fn status(error: &StatusError, headers: &[(String, String)]) -> Self {
        let given = |name: &str| error.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        let usual = [("content-type", "application/json"), ("request-id", "req_script")];
        let usual = usual.into_iter().filter(|(name, _)| !given(name));
        let besides = headers.iter().filter(|(name, _)| !given(name));
        let wanted = error.headers.iter().chain(besides).map(|(name, value)| (name.as_str(), value.as_str()));
        let lines: String =
            usual.chain(wanted).flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
        let length = error.body.len();
        let head = format!("HTTP/1.1 {} Scripted\r\n{lines}content-length: {length}\r\n\r\n", error.code);
        Self {
            delay: Duration::ZERO,
            head: Some(RenderedHead { status: error.code, bytes: head.into_bytes() }),
            events: Vec::new(),
            rest: error.body.clone().into_bytes(),
            after: ConnectionEnd::Keep,
        }
    }

    /// A message in one piece. If it stalls, not even its head comes.
    fn whole(playback: &Playback, message: &str, headers: &[(String, String)]) -> Self {
        let length = message.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nrequest-id: req_script\r\n{}content-length: {length}\r\n\r\n",
            lines(headers)
        );
        let head = Some(RenderedHead { status: 200, bytes: head.into_bytes() });
        let (head, rest, after) = match &playback.ending {
            PlaybackEnd::End => (head, message.as_bytes().to_vec(), ConnectionEnd::Keep),
            PlaybackEnd::Cut(piece) => (head, piece.clone().into_bytes(), ConnectionEnd::Close),
            PlaybackEnd::Stall(ping) => (None, Vec::new(), ConnectionEnd::Stall(*ping)),
        };
        Self { delay: playback.delay, head, events: Vec::new(), rest, after }
    }

    fn stream(playback: &Playback, headers: &[(String, String)]) -> Self {
        let head = format!("{STREAM_HEAD}{}\r\n", lines(headers));
        let head = RenderedHead { status: 200, bytes: head.into() };
        let mut events: Vec<_> =
            playback.events.iter().map(|event| (event.delay, chunk(&event.wire()))).collect();
        let mut rest = Vec::new();
        let after = match &playback.ending {
            PlaybackEnd::End => {
                // One write for the last event and the end of the body, so that "the last byte" is one moment.
                events.last_mut().map_or(&mut rest, |(_, bytes)| bytes).extend_from_slice(LAST_CHUNK);
                ConnectionEnd::Keep
            }
            PlaybackEnd::Cut(piece) => {
                rest = if piece.is_empty() { Vec::new() } else { chunk(piece) };
                ConnectionEnd::Close
            }
            PlaybackEnd::Stall(ping) => ConnectionEnd::Stall(*ping),
        };
        Self { delay: playback.delay, head: Some(head), events, rest, after }
    }
}

fn lines(headers: &[(String, String)]) -> String {
    headers.iter().flat_map(|(name, value)| [name.as_str(), ": ", value.as_str(), "\r\n"]).collect()
}

/// A piece of a body in chunks.
pub(crate) fn chunk(text: &str) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", text.len()).into_bytes();
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    bytes
}
