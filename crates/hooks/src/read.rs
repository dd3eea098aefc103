//! From the `hooks` object of a settings file to handlers: what is wrong is named one by one, and the rest stays.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use windlass_protocol::{HookEvent, KNOWN_TOOLS, blocks_on_failure, is_failure_policy};
use windlass_text::nearest::nearest;

use crate::events::{self, EventRow, MatcherSubject};
use crate::handler::{
    CommandForm, CommandHandler, Handler, HandlerAction, HandlerPace, HttpHandler, PromptHandler,
};
use crate::matcher::{Condition, Matcher};
use crate::set::{HookProblem, HookSource, RuleCheck, SourceKind};

/// The types of handlers, with the fields of each. Those without fields are not supported yet.
const TYPES: [(&str, &[&str]); 5] = [
    ("command", &["command", "args", "shell", "async", "asyncRewake", "onFailure"]),
    ("http", &["url", "headers", "allowedEnvVars", "onFailure"]),
    ("prompt", &["prompt", "model", "continueOnBlock", "onFailure"]),
    ("mcp_tool", &[]),
    ("agent", &[]),
];
/// The fields that every handler may have.
const COMMON: [&str; 5] = ["type", "if", "timeout", "statusMessage", "once"];
/// Longer than a day nobody waits.
const SECONDS_MAX: f64 = 86_400.0;

pub(crate) fn read(
    hooks: &Value,
    source: &HookSource,
    rules: &RuleCheck<'_>,
    own_tools: &[String],
    problems: &mut Vec<HookProblem>,
) -> Vec<Handler> {
    let Some(events) = hooks.as_object() else {
        let problem = wrong(&source.origin, "hooks", hooks, "an object with the names of events");
        problems.push(problem.leaves("none of its hooks run").stops_if(blocks_on_failure(hooks)));
        return Vec::new();
    };
    let mut handlers = Vec::new();
    for (name, groups) in events {
        let Some(row) = events::find(name) else {
            problems.push(unknown_event(&source.origin, name).stops_if(blocks_on_failure(groups)));
            continue;
        };
        let place = format!("{} {name}", source.origin);
        let found = Reader { row, source, rules, own_tools, problems }.groups(groups, &place);
        problems.extend(not_reached(row, &source.origin, !found.is_empty()));
        handlers.extend(found);
    }
    handlers
}

fn unknown_event(origin: &str, name: &str) -> HookProblem {
    let advice = match nearest(name, events::known_event_names()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the events are {}", events::known_event_names().collect::<Vec<_>>().join(", ")),
    };
    HookProblem::new(origin, format!("unknown hook event {name}"), advice).leaves("none of its hooks run")
}

/// An event that the engine does not reach. Handlers of it are kept where the engine at least knows the moment.
fn not_reached(row: &EventRow, origin: &str, has_handlers: bool) -> Option<HookProblem> {
    let is_reached = row.event.is_some_and(|event| !HookEvent::NOT_REACHED.contains(&event));
    let what = format!("hooks for {} are not supported yet", row.name);
    let is_told = !is_reached && (has_handlers || row.event.is_none());
    is_told.then(|| HookProblem::new(origin, what, "they never run"))
}

struct Reader<'a> {
    row: &'static EventRow,
    source: &'a HookSource,
    rules: &'a RuleCheck<'a>,
    own_tools: &'a [String],
    problems: &'a mut Vec<HookProblem>,
}

impl Reader<'_> {
    /// Tells of what does not run. An event without a moment has nothing that could pass without it.
    fn left_out(&mut self, problem: HookProblem, configured: &Value) {
        let stops = self.row.event.is_some() && blocks_on_failure(configured);
        self.problems.push(problem.stops_if(stops));
    }

    fn groups(&mut self, value: &Value, place: &str) -> Vec<Handler> {
        let Some(groups) = value.as_array() else {
            let problem = wrong(place, self.row.name, value, "a list of groups");
            self.left_out(problem.leaves("none of its hooks run"), value);
            return Vec::new();
        };
        let mut handlers = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let place = format!("{place}[{index}]");
            match self.group(group, &place) {
                Ok(more) => handlers.extend(more),
                Err(problem) => self.left_out(problem.leaves("the hooks of this group do not run"), group),
            }
        }
        handlers
    }

    fn group(&mut self, group: &Value, place: &str) -> Result<Vec<Handler>, HookProblem> {
        let fields = ConfigFields::of(group, place, "a group")?;
        for name in fields.unknown(&["matcher", "hooks"]) {
            self.problems.push(unknown_field(place, name, ["matcher", "hooks"]));
        }
        let text = fields.text("matcher")?.unwrap_or_default();
        let matcher =
            Matcher::parse(&text, self.row.matching).map_err(|what| fields.problem(what, "correct it"))?;
        if self.row.matching == MatcherSubject::Nothing && !text.is_empty() && text != "*" {
            let what = format!("{} takes no matcher", self.row.name);
            self.problems.push(HookProblem::new(place, what, "its hooks always run; remove the matcher"));
        }
        if self.row.matching == MatcherSubject::Tool {
            self.unknown_tools(&matcher, group, place);
        }
        let missing = || fields.problem("the list of hooks is missing", "add it as \"hooks\"");
        let hooks = fields.0.get("hooks").and_then(Value::as_array).ok_or_else(missing)?;
        let mut handlers = Vec::new();
        for (index, hook) in hooks.iter().enumerate() {
            let place = format!("{place}.hooks[{index}]");
            match self.handler(hook, &matcher, &place) {
                Ok(handler) => handlers.extend(handler),
                Err(problem) => self.left_out(problem.leaves("this hook does not run"), hook),
            }
        }
        Ok(handlers)
    }

    /// A matcher that misspells a tool is for no call. Nothing may start if that leaves a hook without any that nothing passes without.
    fn unknown_tools(&mut self, matcher: &Matcher, group: &Value, place: &str) {
        let unknown = matcher.unknown_tools(self.own_tools);
        let is_for_none = matches!(matcher, Matcher::Names(names) if names.len() == unknown.len());
        for (name, near) in unknown {
            let advice = match near {
                Some(near) => format!("did you mean {near}?"),
                None => format!("available tools: {}", KNOWN_TOOLS.join(", ")),
            };
            let problem = HookProblem::new(place, format!("there is no tool {name}"), advice);
            if is_for_none && near.is_some() {
                self.left_out(problem.leaves("the hooks of this group do not run for it"), group);
            } else {
                self.problems.push(problem.leaves("the matcher ignores it"));
            }
        }
    }

    fn handler(
        &mut self,
        hook: &Value,
        matcher: &Matcher,
        place: &str,
    ) -> Result<Option<Handler>, HookProblem> {
        let fields = ConfigFields::of(hook, place, "a hook")?;
        let (name, own) = fields.kind()?;
        if own.is_empty() {
            let what = format!("hooks of type {name} are not supported yet");
            return Err(HookProblem::new(place, what, "use a command or http hook"));
        }
        let known = || COMMON.iter().chain(own).copied();
        for field in fields.unknown(&known().collect::<Vec<_>>()) {
            self.problems.push(unknown_field(place, field, known()));
        }
        let action = match name {
            "command" => HandlerAction::Command(self.command(&fields)?),
            "http" => HandlerAction::Http(http(&fields)?),
            _ => HandlerAction::Prompt(prompt(&fields)?),
        };
        if let Err(takes) = self.row.takes(&action) {
            let what = format!("{} does not support hooks of type {name}", self.row.name);
            return Err(HookProblem::new(place, what, format!("use {takes}")));
        }
        let Some(event) = self.row.event else { return Ok(None) };
        let condition = self.condition(&fields)?;
        let handler = Handler {
            event,
            origin: place.to_owned(),
            source: self.source.kind,
            matcher: matcher.clone(),
            condition,
            timeout: fields.seconds("timeout")?,
            status: fields.text("statusMessage")?,
            is_once: self.is_once(&fields)?,
            should_block_on_failure: self.blocks_on_failure(&fields)?,
            action,
            spec: hook.clone(),
            has_worked: AtomicBool::new(false),
        };
        if handler.should_block_on_failure && handler.is_background() && events::failure_can_block(event) {
            let what = "\"onFailure\" is \"block\", but a background hook cannot block";
            return Err(fields.problem(what, "remove \"async\" and \"asyncRewake\", or \"onFailure\""));
        }
        Ok(Some(handler))
    }

    /// Whatever is wrong with a condition, the handler stays: it may be a guard.
    fn condition(&mut self, fields: &ConfigFields<'_>) -> Result<Condition, HookProblem> {
        let Some(value) = fields.0.get("if") else { return Ok(Condition::None) };
        if self.row.matching != MatcherSubject::Tool {
            let what = format!("\"if\" needs a tool call, and {} has none", self.row.name);
            return Err(fields.problem(what, "leave \"if\" out"));
        }
        let what = match value.as_str().map(|rule| (rule, (self.rules)(rule))) {
            Some((rule, Ok(()))) => return Ok(Condition::Rule(rule.to_owned())),
            Some((rule, Err(why))) => format!("the rule {rule:?} in \"if\" is invalid: {why}"),
            None => fields.wrong("if", "a permission rule").what,
        };
        let advice = "write one permission rule, such as \"Bash(git *)\"; until then this hook runs for every call that its \
                      matcher covers, and its permission to allow is ignored";
        self.problems.push(fields.problem(what, advice));
        Ok(Condition::Unreadable)
    }

    fn is_once(&mut self, fields: &ConfigFields<'_>) -> Result<bool, HookProblem> {
        let once = fields.flag("once")?;
        if once && self.source.kind != SourceKind::Skill {
            let what = "\"once\" works only in hooks of a skill";
            self.problems.push(fields.problem(what, "this hook runs every time"));
            return Ok(false);
        }
        Ok(once)
    }

    /// A policy that is not understood is the stricter one.
    fn blocks_on_failure(&mut self, fields: &ConfigFields<'_>) -> Result<bool, HookProblem> {
        let name = fields.0.keys().find(|name| is_failure_policy(name)).map_or("onFailure", String::as_str);
        let policy = fields.text(name)?;
        let blocks = policy.as_deref().is_some_and(|policy| policy != "continue");
        if let Some(policy) = policy.filter(|policy| !["block", "continue"].contains(&policy.as_str())) {
            let what = format!("\"onFailure\" is {policy:?}");
            self.problems.push(fields.problem(what, "treated as \"block\"; write \"block\" or \"continue\""));
        }
        let event = self.row.event.filter(|event| !events::can_block(*event));
        if let Some(event) = event.filter(|_| blocks) {
            let what = format!("\"onFailure\" cannot block {}", event.name());
            self.problems.push(fields.problem(what, "failures are only reported there"));
        }
        Ok(blocks)
    }

    fn command(&mut self, fields: &ConfigFields<'_>) -> Result<CommandHandler, HookProblem> {
        let command = fields.require("command")?;
        let shell = fields.text("shell")?;
        if let Some(text) = PLUGIN.into_iter().find(|text| command.contains(text)) {
            let what = format!("{text} has no value in a settings file");
            self.problems.push(fields.problem(what, "use ${CLAUDE_PROJECT_DIR} or an absolute path"));
        }
        let form = match (fields.texts("args")?, shell.as_deref()) {
            (Some(args), _) => CommandForm::Exec { argv: [vec![command], args].concat() },
            (None, None) => CommandForm::Shell { line: command, shell: "sh" },
            (None, Some("bash")) => CommandForm::Shell { line: command, shell: "bash" },
            (None, Some(other)) => {
                let what = format!("the shell {other:?} is not supported");
                return Err(fields.problem(what, "use \"bash\", or remove it to use sh"));
            }
        };
        let pace = match (fields.flag("async")?, fields.flag("asyncRewake")?) {
            (_, true) => HandlerPace::Background { should_wake: true },
            (true, false) => HandlerPace::Background { should_wake: false },
            (false, false) => HandlerPace::Awaited,
        };
        Ok(CommandHandler { form, pace })
    }
}

const PLUGIN: [&str; 3] = ["${CLAUDE_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_DATA}", "${user_config."];

fn http(fields: &ConfigFields<'_>) -> Result<HttpHandler, HookProblem> {
    let url = fields.require("url")?;
    let is_web = reqwest::Url::parse(&url).is_ok_and(|url| ["http", "https"].contains(&url.scheme()));
    if !is_web {
        let what = format!("{url:?} is not a web address");
        return Err(fields.problem(what, "write one that begins with https:// or http://"));
    }
    let wrong = || fields.wrong("headers", "an object of strings");
    let headers: Map<String, Value> = fields.read("headers", "an object of strings")?.unwrap_or_default();
    let header = |(name, value): (String, Value)| Ok((name, value.as_str().ok_or_else(wrong)?.to_owned()));
    let headers = headers.into_iter().map(header).collect::<Result<_, HookProblem>>()?;
    let variables = fields.texts("allowedEnvVars")?.unwrap_or_default();
    Ok(HttpHandler { url, headers, variables })
}

fn prompt(fields: &ConfigFields<'_>) -> Result<PromptHandler, HookProblem> {
    Ok(PromptHandler {
        prompt: fields.require("prompt")?,
        model: fields.text("model")?,
        should_continue_on_block: fields.flag("continueOnBlock")?,
    })
}

/// The fields of an object, and where it stands.
struct ConfigFields<'a>(&'a Map<String, Value>, &'a str);

impl<'a> ConfigFields<'a> {
    fn of(value: &'a Value, place: &'a str, what: &str) -> Result<Self, HookProblem> {
        value.as_object().map(|map| Self(map, place)).ok_or_else(|| wrong(place, what, value, "an object"))
    }

    /// The type of a handler, and the fields of its own.
    fn kind(&self) -> Result<(&'static str, &'static [&'static str]), HookProblem> {
        let written = self
            .text("type")?
            .ok_or_else(|| self.problem("\"type\" is missing", "add it, such as \"command\""))?;
        let known = TYPES.iter().find(|(name, _)| *name == written);
        known.copied().ok_or_else(|| {
            let advice = match nearest(&written, TYPES.iter().map(|(name, _)| *name)) {
                Some(near) => format!("did you mean {near}?"),
                None => "the types are command, http and prompt".to_owned(),
            };
            self.problem(format!("unknown hook type {written:?}"), advice)
        })
    }

    fn unknown(&self, known: &[&str]) -> Vec<&'a str> {
        self.0.keys().map(String::as_str).filter(|name| !known.contains(name)).collect()
    }

    fn wrong(&self, name: &str, expected: &str) -> HookProblem {
        wrong(self.1, &format!("{name:?}"), self.0.get(name).unwrap_or(&Value::Null), expected)
    }

    fn problem(&self, what: impl Into<String>, advice: impl Into<String>) -> HookProblem {
        HookProblem::new(self.1, what, advice)
    }

    fn read<T: DeserializeOwned>(&self, name: &str, expected: &str) -> Result<Option<T>, HookProblem> {
        let read = |value: &Value| T::deserialize(value).map_err(|_| self.wrong(name, expected));
        self.0.get(name).map(read).transpose()
    }

    fn text(&self, name: &str) -> Result<Option<String>, HookProblem> {
        self.read(name, "a text")
    }

    fn require(&self, name: &str) -> Result<String, HookProblem> {
        let text = self.text(name)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| self.problem(format!("{name:?} is missing"), "give it"))
    }

    fn texts(&self, name: &str) -> Result<Option<Vec<String>>, HookProblem> {
        self.read(name, "a list of strings")
    }

    fn flag(&self, name: &str) -> Result<bool, HookProblem> {
        Ok(self.read(name, "true or false")?.unwrap_or(false))
    }

    fn seconds(&self, name: &str) -> Result<Option<Duration>, HookProblem> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= SECONDS_MAX);
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.map(Some).ok_or_else(|| {
            let mut problem = self.wrong(name, "a number of seconds above zero, at most a day");
            if value.is_number() {
                problem.what = format!("{name:?} is {value}");
            }
            problem
        })
    }
}

fn wrong(place: &str, what: &str, value: &Value, expected: &str) -> HookProblem {
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    HookProblem::new(place, format!("{what} is {is}"), format!("it must be {expected}"))
}

fn unknown_field<'a>(place: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> HookProblem {
    let advice = match nearest(name, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => "it has no effect".to_owned(),
    };
    HookProblem::new(place, format!("unknown field {name:?}"), advice)
}

#[cfg(test)]
mod tests;
