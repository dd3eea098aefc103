//! Calls, facts and outcomes, made from the words of a scenario.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::Event;
use windlass_protocol::{
    Admission, CallFacts, CallId, CallKind, CommandEffect, CommandFacts, CommandWord, ModelEvent, ModelSpend,
    Outcome, PathFact, PlainCommand, RawValue, Terminal, ToolUse,
};

use super::words::phrase;

/// What the small model took.
pub(super) fn costing(usd: f64) -> BTreeMap<Arc<str>, ModelSpend> {
    [("small".into(), ModelSpend { cost_usd: Some(usd), ..ModelSpend::default() })].into()
}

/// What a fork came to.
pub(super) fn outcome(terminal: Terminal, text: &str) -> Outcome {
    Outcome { text: text.into(), ..Outcome::new(terminal) }
}

/// `tool argument` as a tool use with the whole phrase in its input.
pub(super) fn tool_use(words: &str) -> ToolUse {
    let name = words.split(' ').next().unwrap_or(words);
    ToolUse {
        id: "toolu".into(),
        name: name.into(),
        input: raw(&format!("{{\"words\":\"{words}\"}}")).into(),
    }
}

pub(super) fn examination(call: CallId, tool_use: &ToolUse) -> (String, Event) {
    let words = phrase(tool_use);
    let path = if words.contains("/etc") { "/etc/a" } else { "/project/a" };
    let (kind, is_shared) =
        if words.starts_with("write") { (CallKind::Edit, false) } else { (CallKind::Read, true) };
    let facts = CallFacts {
        is_shared,
        paths: vec![PathFact { lexical: path.into(), resolved: Some(path.into()), is_directory: false }],
        target: words.clone(),
        commands: words.starts_with("sleep").then(|| Arc::new(looking(&words))),
        ..CallFacts::new(kind)
    };
    let (answer, admission) = match &*tool_use.name {
        "read" | "peek" | "write" | "sleep" => {
            (words, Admission::Ready { tool: tool_use.name.clone(), facts })
        }
        "broken" => ("invalid".into(), Admission::Invalid("`words` is wrong".into())),
        _ => ("unknown".into(), Admission::Unknown),
    };
    (format!("> c{} is {answer}", call.0), Event::Examined(call, admission))
}

/// A command line that only looks.
fn looking(line: &str) -> CommandFacts {
    let words: Vec<_> = line.split_whitespace().map(CommandWord::from).collect();
    let command = PlainCommand {
        text: line.into(),
        whole: words.clone(),
        words,
        is_exact_only: false,
        spelled: None,
        effect: CommandEffect::Looks,
        reads: Vec::new(),
        writes: Vec::new(),
        has_network: false,
    };
    CommandFacts {
        line: line.into(),
        plain: Ok(vec![command]),
        found: Vec::new(),
        unseen: None,
        has_hidden: false,
    }
}

pub(super) fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.into()).expect("JSON").into()
}

/// An event whose request id is filled in when it is played.
pub(super) enum Told {
    Model(ModelEvent),
    Other(Event),
    /// The process ends, and so many records of the last step are not in the log.
    CutOff(usize),
    /// So many milliseconds pass.
    Pause(u64),
}
