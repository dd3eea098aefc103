//! The place in a script: which response the next request gets, and whether the request is the expected one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::expand::Playback;
use super::format::{Response, Script};

/// Goes through the responses of a script in the order of the requests. Clones share the place, and a retry is a
/// request like any other: it gets the next response.
#[derive(Clone, Debug)]
pub struct Player {
    script: Arc<Script>,
    position: Arc<AtomicUsize>,
}

/// The turn of one request.
#[derive(Clone, Copy, Debug)]
pub struct Play<'a> {
    script: &'a Script,
    /// The number of the request, counted from 0.
    pub number: usize,
    /// Its response.
    pub response: &'a Response,
}

/// Why a request gets no response of the script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// There is none left.
    #[error(
        "the script is used up: it has responses for {plays} requests and this is request {}; \
         add a response or \"then\": \"repeat\"", number + 1
    )]
    UsedUp {
        /// How many requests the script answers.
        plays: usize,
        /// The number of the request, counted from 0.
        number: usize,
    },
    /// The newest user message does not hold what the script says.
    #[error(
        "the script expects the newest user message of request {} to contain {expected:?}, but it is {found:?}",
        number + 1
    )]
    Unexpected {
        /// What it should contain.
        expected: String,
        /// What it is, shortened.
        found: String,
        /// The number of the request, counted from 0.
        number: usize,
    },
}

impl Player {
    /// Starts at the first response.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { script: Arc::new(script), position: Arc::default() }
    }

    /// The script.
    #[must_use]
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// How many requests have had their turn.
    #[must_use]
    pub fn played(&self) -> usize {
        self.position.load(Ordering::SeqCst)
    }

    /// The turn of the next request.
    pub fn next(&self) -> Result<Play<'_>, Mismatch> {
        let number = self.position.fetch_add(1, Ordering::SeqCst);
        let used_up = Mismatch::UsedUp { plays: self.script.plays(), number };
        let response = self.script.response(number).ok_or(used_up)?;
        Ok(Play { script: &self.script, number, response })
    }
}

impl Play<'_> {
    /// Checks the request against what the script expects; `newest` makes the text of its newest user message.
    pub fn check(&self, newest: impl FnOnce() -> String) -> Result<(), Mismatch> {
        let Some(expect) = &self.response.expect else {
            return Ok(());
        };
        let found = newest();
        if found.contains(&expect.contains) {
            return Ok(());
        }
        let found = shortened(&found);
        Err(Mismatch::Unexpected { expected: expect.contains.clone(), found, number: self.number })
    }

    /// What is to be played.
    #[must_use]
    pub fn playback(&self) -> Playback {
        self.script.expand(self.response, self.number)
    }
}

fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 400;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text of a user message, from its blocks: prose and the text of tool results, one per line.
pub fn newest_user_text<'a>(blocks: impl IntoIterator<Item = &'a Value>) -> String {
    let mut lines = Vec::new();
    for block in blocks {
        collect_text(block, &mut lines);
    }
    lines.join("\n")
}

fn collect_text<'a>(block: &'a Value, lines: &mut Vec<&'a str>) {
    match block {
        Value::String(text) => lines.push(text),
        Value::Array(blocks) => blocks.iter().for_each(|block| collect_text(block, lines)),
        Value::Object(fields) => {
            for field in ["text", "content"] {
                if let Some(inner) = fields.get(field) {
                    collect_text(inner, lines);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
