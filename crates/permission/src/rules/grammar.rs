//! From the text of a rule to the rule.

use windlass_protocol::{CallKind, KNOWN_TOOLS, ToolProfile, ToolSubject};

use super::command::CommandPattern;
use super::host::HostPattern;
use super::path::PathPattern;
use super::text::is_listed;
use super::tool::ToolPattern;
use super::{Anchors, Behaviour, PathAccess, Rule, RuleScope, RuleSource};

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The text.
    pub text: String,
    /// Where it stands.
    pub source: RuleSource,
    /// In which list.
    pub behaviour: Behaviour,
    /// What is wrong, and what to write instead.
    pub problem: String,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { text, source, behaviour, problem } = self;
        write!(f, "{source}: the {} rule `{text}` is invalid: {problem}", behaviour.name())
    }
}

impl std::error::Error for RuleError {}

/// The parameters of tools that run command lines, and of those that touch files, that a rule may name.
const COMMAND_PARAMETERS: &str = "dangerouslyDisableSandbox description run_in_background timeout";
const FILE_PARAMETERS: &str =
    "cell_type edit_mode glob limit multiline offset output_mode pages pattern replace_all type";

impl Rule {
    /// Reads a rule.
    pub fn parse(
        behaviour: Behaviour,
        text: &str,
        source: RuleSource,
        anchors: &Anchors,
    ) -> Result<Self, RuleError> {
        let text = text.trim();
        match read(behaviour, text, anchors) {
            Ok((tool, what)) => Ok(Self { text: text.into(), source, behaviour, tool, what }),
            Err(problem) => Err(RuleError { text: text.to_owned(), source, behaviour, problem }),
        }
    }
}

fn read(behaviour: Behaviour, text: &str, anchors: &Anchors) -> Result<(ToolPattern, RuleScope), String> {
    let (name, inside) = split(text)?;
    check_name(name, behaviour)?;
    let name =
        if inside.is_some() || behaviour != Behaviour::Allow { known_tool(name, behaviour)? } else { name };
    let tool = ToolPattern::of(name);
    let what = match inside {
        None | Some("*") => RuleScope::Every,
        Some(inside) => what(name, inside, behaviour, anchors)?,
    };
    Ok((tool, what))
}

/// The name as the tool spells it: a restriction must not miss it by its case. Alone, it may be a caller's tool.
fn known_tool(name: &str, behaviour: Behaviour) -> Result<&str, String> {
    match KNOWN_TOOLS.into_iter().find(|known| known.eq_ignore_ascii_case(name)) {
        Some(known) if behaviour == Behaviour::Allow && known != name => {
            Err(format!("the tool is called {known}; write {known}"))
        }
        Some(known) => Ok(known),
        None => Ok(name),
    }
}

fn split(text: &str) -> Result<(&str, Option<&str>), String> {
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Err("it contains a control character; remove it".into());
    }
    let Some((name, rest)) = text.split_once('(') else {
        if text.contains(')') {
            return Err("the closing parenthesis has no opening one; write Tool or Tool(pattern)".into());
        }
        return Ok((text, None));
    };
    let Some(inside) = rest.strip_suffix(')') else {
        let problem = if rest.contains(')') {
            "text follows the closing parenthesis; write Tool or Tool(pattern)"
        } else {
            "the parenthesis is not closed; write Tool(pattern), such as Bash(npm test)"
        };
        return Err(problem.into());
    };
    if inside.trim().is_empty() {
        return Err(format!("the parentheses are empty; write {name} to cover every use"));
    }
    Ok((name, Some(inside.trim())))
}

fn check_name(name: &str, behaviour: Behaviour) -> Result<(), String> {
    if name.is_empty() {
        return Err("it names no tool; write Tool or Tool(pattern), such as Bash(npm test)".into());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '*' | '/');
    if !name.chars().all(is_plain) {
        return Err("a tool name has only letters, digits, `_`, `-` and `.`; put the pattern in parentheses, such as Bash(npm test)".into());
    }
    let Some(star) = name.find('*').filter(|_| behaviour == Behaviour::Allow) else { return Ok(()) };
    let behind_server = name[..star].strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    match behind_server {
        Some((server, _)) if !server.is_empty() => Ok(()),
        _ => Err("`*` can stand for tools only after the name of a server, such as mcp__server__*".into()),
    }
}

fn what(name: &str, inside: &str, behaviour: Behaviour, anchors: &Anchors) -> Result<RuleScope, String> {
    let profile = ToolProfile::named(name);
    match profile.subject {
        ToolSubject::Command(_) => commands(inside, behaviour),
        ToolSubject::File(_) | ToolSubject::FileNames(_) | ToolSubject::FileContents(_) => {
            files(profile.kind, inside, behaviour, anchors)
        }
        ToolSubject::Url(_) => web_fetch(inside, behaviour),
        ToolSubject::Agent => match parameter(inside, |key| key != "subagent_type") {
            Some(parameter) if behaviour != Behaviour::Allow => Ok(parameter),
            _ => Ok(named_scope(inside)),
        },
        // As they are typed, they begin with a slash.
        ToolSubject::Skill => Ok(named_scope(inside.trim_start_matches('/'))),
        // It is about a command of the interactive session and touches no tool.
        ToolSubject::Other if name == "Cd" => Ok(named_scope(inside)),
        ToolSubject::Other | ToolSubject::Query(_) => match parameter(inside, |_| true) {
            Some(parameter) => check_parameter(parameter, behaviour),
            None if !KNOWN_TOOLS.contains(&name) && !name.starts_with("mcp__") => Err(format!(
                "unknown tool {name}; patterns are for Bash, Read, Edit, WebFetch, Agent and Skill"
            )),
            None => Err(format!(
                "{name} takes no pattern; write {name} to cover every use, or {name}(parameter:value) to deny or ask"
            )),
        },
    }
}

fn commands(inside: &str, behaviour: Behaviour) -> Result<RuleScope, String> {
    if let Some(parameter) = parameter(inside, |key| is_listed(COMMAND_PARAMETERS, key)) {
        return check_parameter(parameter, behaviour);
    }
    CommandPattern::parse(inside)
        .map(RuleScope::Commands)
        .ok_or_else(|| "it names no command; write a pattern such as Bash(npm test)".into())
}

/// A restriction on one of the narrower tools holds for all that do the same, so that it cannot be got round.
fn files(kind: CallKind, inside: &str, behaviour: Behaviour, anchors: &Anchors) -> Result<RuleScope, String> {
    if let Some(parameter) = parameter(inside, |key| is_listed(FILE_PARAMETERS, key)) {
        return check_parameter(parameter, behaviour);
    }
    let pattern = PathPattern::parse(inside, behaviour, anchors)?;
    Ok(match kind {
        CallKind::Edit => RuleScope::Paths(PathAccess::Edit, pattern),
        _ => RuleScope::Paths(PathAccess::Read, pattern.for_reading()),
    })
}

fn web_fetch(inside: &str, behaviour: Behaviour) -> Result<RuleScope, String> {
    if let Some(host) = inside.strip_prefix("domain:") {
        return HostPattern::parse(host.trim()).map(RuleScope::Hosts).map_err(Into::into);
    }
    match parameter(inside, |key| key == "prompt") {
        Some(parameter) => check_parameter(parameter, behaviour),
        None => Err("it names no host; write WebFetch(domain:example.com)".into()),
    }
}

fn named_scope(inside: &str) -> RuleScope {
    match inside.strip_suffix('*').map(str::trim_end) {
        Some(name) if inside.contains(char::is_whitespace) => RuleScope::Named(name.to_owned(), true),
        _ => match inside.strip_suffix(":*") {
            Some(name) => RuleScope::Named(name.to_owned(), true),
            None => RuleScope::Named(inside.to_owned(), false),
        },
    }
}

/// `name:value`, if the name may be one.
fn parameter(inside: &str, may_be: impl Fn(&str) -> bool) -> Option<RuleScope> {
    let (key, value) = inside.split_once(':')?;
    let is_name = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    (is_name && may_be(key)).then(|| RuleScope::Parameter(key.to_owned(), value.trim().to_owned()))
}

/// What a model writes into a parameter says too little about a call to allow it.
fn check_parameter(parameter: RuleScope, behaviour: Behaviour) -> Result<RuleScope, String> {
    match behaviour {
        Behaviour::Allow => Err(
            "a rule about a parameter can only deny or ask; move it to that list, or leave out the parameter"
                .into(),
        ),
        Behaviour::Ask | Behaviour::Deny => Ok(parameter),
    }
}
