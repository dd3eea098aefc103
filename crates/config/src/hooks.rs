//! Answers that stand in for hooks, from a file: for trying what hooks can do without any.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use windlass_protocol::{HookAnswer, HookEvent, HookPermission, RawValue};

use crate::ConfigError;
use crate::config::read_text;

/// One answer as the file says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    stop: Option<String>,
    #[serde(default)]
    blocks: Vec<String>,
    permission: Option<Permission>,
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
    first_prompt: Option<String>,
    #[serde(default)]
    context: Vec<String>,
    #[serde(default)]
    notices: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Permission {
    Allow,
    Deny(String),
    Ask(String),
    Defer,
}

/// The answers of each event, in the order in which they are given. After the last there is nothing more to say.
pub(crate) fn read(path: &Path, cwd: &Path) -> Result<BTreeMap<HookEvent, Vec<HookAnswer>>, ConfigError> {
    let parsed = read_text(&cwd.join(path)).and_then(|text| parse(&text));
    parsed.map_err(|problem| ConfigError::ScriptedHooks { path: path.to_owned(), problem })
}

fn parse(text: &str) -> Result<BTreeMap<HookEvent, Vec<HookAnswer>>, String> {
    let lists: BTreeMap<String, Vec<Answer>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = |(name, answers): (String, Vec<Answer>)| {
        let event = HookEvent::ALL.into_iter().find(|event| event.name() == name).ok_or_else(|| {
            let known = HookEvent::ALL.map(HookEvent::name).join(", ");
            format!("there is no event {name}; the events are {known}")
        })?;
        Ok((event, answers.into_iter().map(HookAnswer::from).collect()))
    };
    lists.into_iter().map(list).collect()
}

impl From<Answer> for HookAnswer {
    fn from(answer: Answer) -> Self {
        Self {
            stop: answer.stop,
            blocks: answer.blocks,
            permission: answer.permission.map(|permission| match permission {
                Permission::Allow => HookPermission::Allow,
                Permission::Deny(why) => HookPermission::Deny(why),
                Permission::Ask(why) => HookPermission::Ask(why),
                Permission::Defer => HookPermission::Defer,
            }),
            input: answer.input.map(Arc::from),
            updates: Vec::new(),
            output: answer.output.map(Arc::from),
            first_prompt: answer.first_prompt,
            context: answer.context,
            notices: answer.notices,
            failures: Vec::new(),
            runs: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let seen = match parse(text) {
            Ok(answers) => format!("{answers:?}"),
            Err(problem) => problem,
        };
        assert!(seen.contains(expected), "{expected} is not in {seen}");
    }

    #[test]
    fn every_field_of_an_answer_can_be_given() {
        check(r#"{"Stop": [{"blocks": ["b"]}, {"stop": "s"}]}"#, r#"stop: None, blocks: ["b"]"#);
        check(r#"{"Stop": [{"blocks": ["b"]}, {"stop": "s"}]}"#, r#"stop: Some("s"), blocks: []"#);
        check(r#"{"PreToolUse": [{"permission": "defer"}]}"#, "permission: Some(Defer)");
        check(r#"{"PreToolUse": [{"permission": "allow"}]}"#, "permission: Some(Allow)");
        check(r#"{"PreToolUse": [{"permission": {"deny": "no"}}]}"#, r#"Some(Deny("no"))"#);
        check(r#"{"PreToolUse": [{"permission": {"ask": "eh"}}]}"#, r#"Some(Ask("eh"))"#);
        check(r#"{"PreToolUse": [{"input": {"b": 1, "a": 2}}]}"#, r#"{"b": 1, "a": 2}"#);
        check(
            r#"{"PostToolUse": [{"context": ["c"], "notices": ["n"]}]}"#,
            r#"context: ["c"], notices: ["n"]"#,
        );
        check("{}", "{}");
    }

    #[test]
    fn what_is_no_answer_is_named() {
        check("[]", "invalid type");
        check(r#"{"Start": []}"#, "there is no event Start; the events are SessionStart,");
        check(r#"{"Stop": [{"block": ["b"]}]}"#, "unknown field `block`");
        check(r#"{"PreToolUse": [{"permission": "maybe"}]}"#, "unknown variant `maybe`");
    }
}
