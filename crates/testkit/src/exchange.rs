//! What the server remembers of each request and its response.

use std::sync::Arc;
use std::time::Instant;

use crate::counting::prompt_text;

/// A request and what came of it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The number of the connection, counted from 0.
    pub connection: usize,
    /// The method, for example `POST`.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// The headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; empty if the server does not keep bodies.
    pub body: Arc<[u8]>,
    /// How long the body was.
    pub body_bytes: usize,
    /// Whether the request asked for a stream.
    pub is_streamed: bool,
    /// The error body with which the server itself refused the request, not its script.
    pub refusal: Option<String>,
    /// When the first byte of the request was read.
    pub first_byte: Instant,
    /// When the last byte of the request was read.
    pub read: Instant,
    /// The response; `None` until it is over.
    pub reply: Option<Reply>,
}

/// A response that is over.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The HTTP status; `None` if the connection was closed instead.
    pub status: Option<u16>,
    /// When each event was handed to the kernel.
    pub events: Vec<Instant>,
    /// When the last bytes were handed to the kernel: taken right before that write, so that no reader can be seen
    /// to react before it.
    pub ended: Instant,
    /// How it ended.
    pub end: ReplyEnd,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyEnd {
    /// It was sent as a whole.
    Complete,
    /// The script closed the connection.
    Cut,
    /// The client closed the connection first.
    ClientLeft,
}

impl Exchange {
    /// The value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The betas it asked for.
    #[must_use]
    pub fn betas(&self) -> Vec<&str> {
        let names = self.header("anthropic-beta").unwrap_or_default().split(',').map(str::trim);
        names.filter(|name| !name.is_empty()).collect()
    }

    /// The model it asked; empty if the body was not kept.
    #[must_use]
    pub fn model(&self) -> String {
        self.json()["model"].as_str().unwrap_or_default().to_owned()
    }

    /// What the model reads: tools, system prompt and messages as JSON, without cache markers. As long as nothing but appending
    /// happens, each begins with the whole of the one before it, up to the bracket that closes the messages.
    #[must_use]
    pub fn prompt(&self) -> String {
        prompt_text(&self.json())
    }

    /// The body as JSON; `Null` if it is none or was not kept.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}
