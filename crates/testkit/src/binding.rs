//! Thinking that is bound to what stood before it: each block is sealed with a hash of the exact prefix, and a request that
//! replays one behind another prefix is refused, or the block dropped if the request asks for that.
//!
//! System prompt, tools and all earlier blocks count; cache markers do not, and thinking itself does not, so that it may
//! be dropped from the front. Each block also names the one before it: a gap in the middle breaks the chain.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;
use windlass_models::{ScriptContent, ScriptResponse};

use crate::check::{RequestMessage, is_thinking, merge_messages};

/// What came of checking the thinking of a request.
#[derive(Debug)]
pub(crate) struct CheckedThinking {
    /// The blocks that were dropped, and why.
    pub(crate) dropped: Vec<(String, &'static str)>,
    signer: Signer,
}

/// Seals the thinking of the answer to one request.
#[derive(Clone, Copy, Debug)]
struct Signer {
    model: u64,
    prefix: u64,
    previous: u64,
}

/// What the signature of a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seal {
    model: u64,
    prefix: u64,
    previous: u64,
    id: u64,
}

impl Seal {
    fn new(signer: Signer, text: &str) -> Self {
        let Signer { model, prefix, previous } = signer;
        let mut hasher = DefaultHasher::new();
        (model, prefix, previous, text).hash(&mut hasher);
        Self { model, prefix, previous, id: hasher.finish() }
    }

    fn text(self) -> String {
        let Self { model, prefix, previous, id } = self;
        format!("bound.{model:016x}.{prefix:016x}.{previous:016x}.{id:016x}")
    }

    /// The seal of a block, unless it is none of this server or the thinking was changed.
    fn of(block: &Value) -> Option<Self> {
        let signature = block["signature"].as_str().or_else(|| block["data"].as_str())?;
        let numbers: Vec<u64> = signature
            .strip_prefix("bound.")?
            .split('.')
            .map(|number| u64::from_str_radix(number, 16).ok())
            .collect::<Option<_>>()?;
        let [model, prefix, previous, _] = numbers[..] else { return None };
        let text = block["thinking"].as_str().unwrap_or_default();
        let seal = Self::new(Signer { model, prefix, previous }, text);
        (seal.text() == signature).then_some(seal)
    }
}

/// Checks the thinking of a request. The error is what the API says.
pub(crate) fn check(body: &Value) -> Result<CheckedThinking, String> {
    let messages = merge_messages(body["messages"].as_array().map(Vec::as_slice).unwrap_or_default())?;
    let drops = body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    let mut walk = Walk::new(body);
    let mut dropped = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for (index, reason) in walk.pass(message) {
            let place = format!("messages.{at}.content.{index}");
            if !drops {
                return Err(format!(
                    "{place}: Invalid `signature` in `thinking` block. The block was created in a different conversation; it \
                     is only valid behind the system prompt, tools and messages that it was created with."
                ));
            }
            dropped.push((place, reason));
        }
    }
    Ok(CheckedThinking { dropped, signer: walk.signer() })
}

impl CheckedThinking {
    /// Seals the thinking of the answer.
    pub(crate) fn seal(&self, response: &mut ScriptResponse) {
        let mut signer = self.signer;
        for block in response.blocks.iter_mut().flatten() {
            let (text, signature) = match &mut block.content {
                ScriptContent::Thinking { thinking, signature } => (thinking.as_str(), signature),
                ScriptContent::RedactedThinking(data) => ("", data),
                _ => continue,
            };
            let seal = Seal::new(signer, text);
            *signature = seal.text();
            signer.previous = seal.id;
        }
    }
}

/// A walk over a request, from its beginning.
struct Walk {
    model: u64,
    prefix: DefaultHasher,
    /// The last thinking block that stands, or 0.
    last: u64,
}

impl Walk {
    fn new(body: &Value) -> Self {
        let mut model = DefaultHasher::new();
        body["model"].as_str().hash(&mut model);
        let mut prefix = DefaultHasher::new();
        for part in [&body["system"], &body["tools"]] {
            remove_cache_marks(part).to_string().hash(&mut prefix);
        }
        Self { model: model.finish(), prefix, last: 0 }
    }

    /// Goes over a message and gives the places of thinking that does not fit, and why.
    fn pass(&mut self, message: &RequestMessage<'_>) -> Vec<(usize, &'static str)> {
        // An answer may go on where a paused one stopped, so it may begin behind any block of its message.
        let mut beginnings = vec![self.prefix.finish()];
        let mut wrong = Vec::new();
        for (index, block) in message.blocks.iter().enumerate() {
            if is_thinking(block) {
                match self.fits(block, &beginnings) {
                    Ok(id) => self.last = id,
                    Err(reason) => wrong.push((index, reason)),
                }
                continue;
            }
            message.role.hash(&mut self.prefix);
            remove_cache_marks(block).to_string().hash(&mut self.prefix);
            beginnings.push(self.prefix.finish());
        }
        wrong
    }

    fn fits(&self, block: &Value, beginnings: &[u64]) -> Result<u64, &'static str> {
        let seal = Seal::of(block).ok_or("prefix_binding_mismatch")?;
        if seal.model != self.model {
            return Err("model_binding_mismatch");
        }
        let unbroken = self.last == 0 || seal.previous == self.last;
        if !unbroken || !beginnings.contains(&seal.prefix) {
            return Err("prefix_binding_mismatch");
        }
        Ok(seal.id)
    }

    fn signer(&self) -> Signer {
        Signer { model: self.model, prefix: self.prefix.finish(), previous: self.last }
    }
}

/// The same without cache markers.
pub(crate) fn remove_cache_marks(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(remove_cache_marks).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            let inner = |name: &str, value: &Value| match name {
                // What a tool is called with or described by is data, whatever its keys are called.
                "input" | "input_schema" => value.clone(),
                _ => remove_cache_marks(value),
            };
            kept.map(|(name, value)| (name.clone(), inner(name, value))).collect()
        }
        other => other.clone(),
    }
}
