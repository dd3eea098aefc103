//! The place in a script: which response the next request gets, and whether the request is the expected one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use windlass_text::shorten::shorten;

use super::format::{AfterLast, RequestCondition, Script, ScriptResponse};

/// How much of a message a mismatch shows.
const EXCERPT_CHARS_MAX: usize = 400;

/// Goes through a script in the order of the requests, retries included. Clones share the place.
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
    pub(super) script: &'a Script,
    /// The place of the response in the order, counted from 0; `None` for a response with a condition.
    pub number: Option<usize>,
    /// Its response.
    pub response: &'a ScriptResponse,
    /// What makes the ids of this answer different from all others.
    pub(super) label: String,
    /// How many responses in order came before.
    pub(super) before: usize,
}

/// Why a request gets no response of the script: it is not the expected one, or there is no response left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptMismatch(String);

impl ScriptPlayer {
    /// Starts at the first response.
    pub fn new(script: Script) -> Self {
        let conditional = vec![0; script.responses.len()];
        let position = Position { in_order: 0, conditional };
        Self { script: Arc::new(script), position: Arc::new(Mutex::new(position)) }
    }

    /// The script.
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// How many requests have had their turn.
    pub fn played_count(&self) -> usize {
        let position = self.lock();
        position.in_order + position.conditional.iter().sum::<usize>()
    }

    /// Whether every response that comes in order has been asked for.
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
        let turn = self.script.turn(number).ok_or_else(|| {
            ScriptMismatch(format!(
                "the script has responses for {} requests, and this is request {}. Add a response or \"then\": \"repeat\"",
                self.script.plays(),
                number + 1
            ))
        })?;
        match turn.response.expect.as_ref().and_then(|expect| mismatch(expect, &asked)) {
            Some(problem) => {
                Err(ScriptMismatch(format!("request {}: the script expects {problem}", turn.label)))
            }
            None => Ok(turn),
        }
    }

    /// The first response whose condition fits and that is not used up.
    fn conditional(&self, position: &mut Position, asked: &RequestView) -> Option<ScriptTurn<'_>> {
        for (place, response) in self.script.responses.iter().enumerate() {
            let Some(when) = &response.when else { continue };
            let given = position.conditional.get_mut(place)?;
            let left = *given < response.repeat as usize || self.script.then == AfterLast::Repeat;
            if left && mismatch(when, asked).is_none() {
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

/// What a script expects of a request, and what it is instead, if it is not that.
fn mismatch(expect: &RequestCondition, asked: &RequestView) -> Option<String> {
    if let Some(part) = expect.model.as_ref().filter(|part| !asked.model.contains(*part)) {
        return Some(format!("the model {part:?}, but the request is for {:?}", asked.model));
    }
    let part = expect.contains.as_ref().filter(|part| !asked.newest.contains(*part))?;
    let found = shorten(&asked.newest, EXCERPT_CHARS_MAX, "…");
    Some(format!("the last user message to contain {part:?}, but it is {found:?}"))
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
