//! The place in a script: which response the next request gets, and whether the request is the expected one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use windlass_protocol::Delivery;
use windlass_text::shorten::shorten;

use super::expand::Playback;
use super::format::{AfterLast, RequestCondition, Script, ScriptResponse};

/// How much of a message a mismatch shows.
const EXCERPT_CHARS_MAX: usize = 400;

/// Goes through the responses of a script in the order of the requests. Clones share the place, and a retry is a
/// request like any other: it gets the next response.
#[derive(Clone, Debug)]
pub struct ScriptPlayer {
    script: Arc<Script>,
    position: Arc<Mutex<Position>>,
}

#[derive(Debug, Default)]
struct Position {
    /// How many responses in order were given.
    in_order: usize,
    /// How often each response with a condition was given, by its place in the file.
    conditional: Vec<usize>,
}

/// What a script can look at in a request.
#[derive(Clone, Debug, Default)]
pub struct RequestView {
    /// The model that is asked.
    pub model: String,
    /// The text of the newest user message.
    pub newest: String,
}

/// The turn of one request.
#[derive(Clone, Debug)]
pub struct ScriptTurn<'a> {
    script: &'a Script,
    /// The place of the response in the order, counted from 0; `None` for a response with a condition.
    pub number: Option<usize>,
    /// Its response.
    pub response: &'a ScriptResponse,
    /// What makes the ids of this answer different from all others.
    label: String,
    /// How many responses in order came before.
    before: usize,
}

/// Why a request gets no response of the script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptMismatch {
    /// There is none left.
    #[error(
        "the script has responses for {plays} requests, and this is request {}. Add a response or \"then\": \
         \"repeat\"", number + 1
    )]
    UsedUp {
        /// How many requests the script answers.
        plays: usize,
        /// The number of the request, counted from 0.
        number: usize,
    },
    /// The newest user message does not hold what the script says.
    #[error(
        "request {}: the script expects the last user message to contain {expected:?}, but it is {found:?}",
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
    /// Another model is asked than the script says.
    #[error("request {}: the script expects the model {expected:?}, but the request is for {found:?}", number + 1)]
    UnexpectedModel {
        /// A part of its name.
        expected: String,
        /// The model that is asked.
        found: String,
        /// The number of the request, counted from 0.
        number: usize,
    },
}

impl ScriptPlayer {
    /// Starts at the first response.
    #[must_use]
    pub fn new(script: Script) -> Self {
        let conditional = vec![0; script.responses.len()];
        let position = Position { in_order: 0, conditional };
        Self { script: Arc::new(script), position: Arc::new(Mutex::new(position)) }
    }

    /// The script.
    #[must_use]
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// How many requests have had their turn.
    #[must_use]
    pub fn played(&self) -> usize {
        let position = self.lock();
        position.in_order + position.conditional.iter().sum::<usize>()
    }

    /// Whether every response that comes in order has been asked for.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.lock().in_order >= self.script.plays()
    }

    /// The turn of the next request. `asked` is called only if the script looks at requests.
    pub fn next(&self, asked: impl FnOnce() -> RequestView) -> Result<ScriptTurn<'_>, ScriptMismatch> {
        let asked = self.script.looks_at_requests().then(asked).unwrap_or_default();
        let mut position = self.lock();
        if let Some(play) = self.conditional(&mut position, &asked) {
            return Ok(play);
        }
        let number = position.in_order;
        position.in_order += 1;
        let used_up = ScriptMismatch::UsedUp { plays: self.script.plays(), number };
        let response = self.script.response(number).ok_or(used_up)?;
        if let Some(expect) = &response.expect {
            check(expect, &asked, number)?;
        }
        let label = (number + 1).to_string();
        Ok(ScriptTurn { script: &self.script, number: Some(number), response, label, before: number })
    }

    /// The first response whose condition fits and that is not used up.
    fn conditional(&self, position: &mut Position, asked: &RequestView) -> Option<ScriptTurn<'_>> {
        for (place, response) in self.script.responses.iter().enumerate() {
            let Some(when) = &response.when else { continue };
            let given = position.conditional.get_mut(place)?;
            let left = *given < response.repeat as usize || self.script.then == AfterLast::Repeat;
            if left && check(when, asked, 0).is_ok() {
                *given += 1;
                let label = format!("w{}_{given}", place + 1);
                let before = position.in_order;
                return Some(ScriptTurn { script: &self.script, number: None, response, label, before });
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptTurn<'_> {
    /// What is to be played.
    #[must_use]
    pub fn playback(&self, delivery: Delivery) -> Playback {
        self.playback_of(self.response, delivery)
    }

    /// What is to be played if the response were this one.
    #[must_use]
    pub fn playback_of(&self, response: &ScriptResponse, delivery: Delivery) -> Playback {
        self.script.expand(response, self.label.clone(), self.before, delivery)
    }
}

/// Checks a request against what the script says about it.
fn check(expect: &RequestCondition, asked: &RequestView, number: usize) -> Result<(), ScriptMismatch> {
    if let Some(expected) = expect.model.as_ref().filter(|part| !asked.model.contains(*part)) {
        let (expected, found) = (expected.clone(), asked.model.clone());
        return Err(ScriptMismatch::UnexpectedModel { expected, found, number });
    }
    match expect.contains.as_ref().filter(|part| !asked.newest.contains(*part)) {
        Some(expected) => {
            let found = shorten(&asked.newest, EXCERPT_CHARS_MAX, "…").into_owned();
            Err(ScriptMismatch::Unexpected { expected: expected.clone(), found, number })
        }
        None => Ok(()),
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
