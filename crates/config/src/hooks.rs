//! Answers that stand in for hooks, from a file: for trying what hooks can do without any.

use std::collections::BTreeMap;
use std::path::Path;

use windlass_protocol::{HookAnswer, HookEvent};

use crate::ConfigError;
use crate::config::read_text;

/// The answers of each event, in the order in which they are given. After the last there is nothing more to say.
pub(crate) fn read(path: &Path, cwd: &Path) -> Result<BTreeMap<HookEvent, Vec<HookAnswer>>, ConfigError> {
    let parsed = read_text(&cwd.join(path)).and_then(|text| parse(&text));
    parsed.map_err(|problem| {
        let path = path.display();
        let advice = "`docs/environment.md` shows the format.";
        ConfigError::Variable(format!("WINDLASS_SCRIPTED_HOOKS={path}: {problem}. {advice}"))
    })
}

fn parse(text: &str) -> Result<BTreeMap<HookEvent, Vec<HookAnswer>>, String> {
    let lists: BTreeMap<String, Vec<HookAnswer>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = |(name, answers): (String, Vec<HookAnswer>)| {
        let event = HookEvent::from_name(&name).ok_or_else(|| {
            let known = HookEvent::ALL.map(HookEvent::name).join(", ");
            format!("there is no event {name}; the events are {known}")
        })?;
        Ok((event, answers))
    };
    lists.into_iter().map(list).collect()
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
