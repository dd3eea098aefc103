//! The tool a rule is about.

use windlass_protocol::{RawObject, RawValue, ToolProfile, ToolSubject};

use super::text::{covers, fold};
use super::{Behaviour, RuleSubject};

/// The tools a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolPattern {
    pub(crate) text: String,
    folded: String,
    /// So long is what comes before the first star: most tools are told apart by it.
    head: usize,
}

/// Names that rules about paths go by, whatever tool touches the path.
const FAMILIES: [&str; 2] = ["Edit", "Read"];

impl ToolPattern {
    pub(crate) fn of(text: &str) -> Self {
        let text = ToolProfile::present_name(text);
        let head = text.find('*').unwrap_or(text.len());
        Self { text: text.to_owned(), folded: fold(text), head }
    }

    /// Whether the rule is about every tool that reads, or changes, files.
    pub(crate) fn is_family(&self) -> bool {
        FAMILIES.contains(&self.text.as_str())
    }

    /// A permission means this very name or a server's star; a restriction a star anywhere, in any case.
    pub(crate) fn names(&self, tool: &str, behaviour: Behaviour) -> bool {
        let head = &self.text.as_bytes()[..self.head];
        let same = tool.as_bytes().get(..self.head);
        if behaviour == Behaviour::Allow {
            return same == Some(head) && is_meant(&self.text, tool);
        }
        if tool.is_ascii() && !same.is_some_and(|same| same.eq_ignore_ascii_case(head)) {
            return false;
        }
        // Without this, a ban of a whole server would need the exact case.
        is_meant(&self.folded, &fold(tool))
    }
}

fn is_meant(pattern: &str, tool: &str) -> bool {
    if covers(pattern, tool) {
        return true;
    }
    // The name of a server means all of its tools.
    let server =
        pattern.strip_prefix("mcp__").is_some_and(|rest| !rest.contains("__") && !rest.contains('*'));
    server && tool.strip_prefix(pattern).is_some_and(|rest| rest.starts_with("__"))
}

/// Tools of servers: what they do with a path is not ours to know.
pub(crate) fn is_foreign(tool: &str) -> bool {
    tool.starts_with("mcp__")
}

/// Whether a call is about the agent or the skill of this name.
pub(crate) fn is_named(subject: &RuleSubject<'_>, name: &str, is_prefix: bool, behaviour: Behaviour) -> bool {
    let Some((given, has_more)) = given_name(subject) else { return false };
    let given = if behaviour == Behaviour::Allow { given } else { fold(&given) };
    covers(name, &given) && (is_prefix || !has_more || behaviour != Behaviour::Allow)
}

pub(crate) fn is_skill(subject: &RuleSubject<'_>) -> bool {
    subject.profile.subject == ToolSubject::Skill
}

/// The agent or the skill that a call is about, and whether it gets arguments.
fn given_name(subject: &RuleSubject<'_>) -> Option<(String, bool)> {
    let (field, default) = if is_skill(subject) {
        ("skill", None)
    } else {
        ("subagent_type", Some("general-purpose".to_owned()))
    };
    let given = string(subject.input, field).or_else(|| string(subject.input, "command")).or(default)?;
    let arguments = string(subject.input, "args").is_some_and(|args| !args.trim().is_empty());
    let given = given.trim();
    let (word, rest) = given.split_once(char::is_whitespace).unwrap_or((given, ""));
    Some((word.trim_start_matches('/').to_owned(), arguments || !rest.trim().is_empty()))
}

/// What a rule for the skill of a call has in its parentheses; `None` if it would mean others too.
pub(crate) fn skill_text(subject: &RuleSubject<'_>) -> Option<String> {
    let (name, has_more) = given_name(subject).filter(|_| is_skill(subject))?;
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    let is_name = !name.is_empty() && name.chars().all(is_plain);
    is_name.then(|| if has_more { format!("{name} *") } else { name })
}

/// Whether a top-level value of the input is what a rule says, as it was written.
pub(crate) fn has_value(input: &RawValue, name: &str, value: &str) -> bool {
    let Some(raw) = RawObject::parse(input.get()).ok().and_then(|object| object.get(name)) else {
        return false;
    };
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(text).is_ok_and(|text| covers(value, &text)),
        Some(b'{' | b'[') | None => false,
        Some(_) => covers(value, text),
    }
}

fn string(input: &RawValue, name: &str) -> Option<String> {
    RawObject::parse(input.get()).ok()?.read(name)
}
