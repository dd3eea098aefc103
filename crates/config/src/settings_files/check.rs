//! From JSON to settings: each value is held against the table of keys and its file's place; what does not fit becomes a problem.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_protocol::blocks_on_failure;

use super::json::{JsonContent, JsonNode, Member, TextPosition};
use super::keys::{self, KEYS, Key, KeyScope, ValueType, can_protect, find_meant};
use super::origin::{SettingOrigin, SettingsLevel};
use super::problem::{SettingsProblem, Severity, short};
use super::tree::{Leaf, SettingsList, SettingsTree};
use crate::variables::{PROVIDER, SESSIONS, VARIABLES};

/// Of what is merely left out, as many are told of one file.
const PROBLEMS_MAX: usize = 50;

const LEFT_OUT: &str = "Correct or remove it; the rest of the file holds.";
const STOPS: &str = "Correct it: nothing starts while something that protects you may be left out.";

const HOOKS: &str = "hooks";
const HOOKS_LEFT_OUT: &str = "Correct or remove it: these hooks do not run. The rest of the file holds.";
const HOOKS_STOP: &str = "Correct it: nothing starts without a hook whose \"onFailure\" blocks.";

pub(crate) struct CheckedFile {
    pub(crate) tree: SettingsTree,
    pub(crate) problems: Vec<SettingsProblem>,
    /// Hooks that nothing passes without, and that cannot be found: where hooks count at all, nothing may start.
    pub(crate) lost_hooks: Vec<SettingsProblem>,
}

pub(crate) fn check(node: &JsonNode, source: &SettingOrigin) -> CheckedFile {
    let mut checker = Checker { source, problems: Vec::new(), lost_hooks: Vec::new(), untold: 0 };
    let tree = match &node.content {
        JsonContent::Object(members) => checker.group(members, ""),
        other => {
            let what = format!("settings must be an object, not {}", other.kind());
            checker.tell(node.at, Severity::Fatal, what, STOPS);
            SettingsTree::default()
        }
    };
    if checker.untold > 0 {
        let what = format!("{} more values are left out", checker.untold);
        let (origin, advice) = (source.at(node.at), "Correct the others first.");
        checker.problems.push(SettingsProblem::at(&origin, Severity::Warning, what, advice));
    }
    CheckedFile { tree, problems: checker.problems, lost_hooks: checker.lost_hooks }
}

struct Checker<'a> {
    source: &'a SettingOrigin,
    problems: Vec<SettingsProblem>,
    lost_hooks: Vec<SettingsProblem>,
    untold: usize,
}

/// What a value is checked against.
#[derive(Clone, Copy)]
struct Expectation<'a> {
    path: &'a str,
    kind: &'a ValueType,
    /// Whether nothing may start when it is wrong.
    is_forbidding: bool,
}

impl Checker<'_> {
    fn tell(&mut self, at: TextPosition, severity: Severity, what: String, advice: &str) {
        if severity < Severity::Fatal && self.problems.len() >= PROBLEMS_MAX {
            self.untold += 1;
            return;
        }
        self.problems.push(SettingsProblem::at(&self.source.at(at), severity, what, advice));
    }

    /// The members of an object whose names are keys.
    fn group(&mut self, members: &[Member], path: &str) -> SettingsTree {
        let mut tree = BTreeMap::new();
        for member in members {
            let dot = if path.is_empty() { "" } else { "." };
            let full = format!("{path}{dot}{}", member.name);
            let Some(key) = KEYS.iter().find(|key| key.is_in(path) && key.name() == member.name) else {
                self.unknown(member, path);
                continue;
            };
            let wanted = Expectation { path: &full, kind: &key.kind, is_forbidding: key.is_forbidding };
            if let Some(value) = self.value(&member.value, wanted) {
                self.add(&mut tree, member, value, &full);
            }
        }
        SettingsTree::Object(tree)
    }

    /// A name that is there twice: lists add up, as if they stood in two files.
    fn add(
        &mut self,
        tree: &mut BTreeMap<String, SettingsTree>,
        member: &Member,
        value: SettingsTree,
        path: &str,
    ) {
        let Some(before) = tree.get_mut(&member.name) else {
            tree.insert(member.name.clone(), value);
            return;
        };
        let what = format!("`{}` is there twice", short(path));
        let advice = "Lists add up, and of single values the last holds. Join them.";
        self.tell(member.at, Severity::Warning, what, advice);
        before.put(value, path);
    }

    fn unknown(&mut self, member: &Member, group: &str) {
        if self.problems.len() >= PROBLEMS_MAX && !can_protect(&member.name, group) {
            // Looking for what was meant takes longer than anything else here.
            self.untold += 1;
            return;
        }
        let dot = if group.is_empty() { "" } else { "." };
        let what = format!("Unknown setting `{group}{dot}{}`", short(&member.name));
        let key = find_meant(&member.name, group);
        if key.is_some_and(|key| key.path == HOOKS) {
            self.lost_hooks(&member.value, format!("{what}; did you mean `{HOOKS}`?"));
            return;
        }
        let (severity, advice) = match key {
            // Something is forbidden that nothing would hold to.
            Some(key) if key.is_forbidding => {
                (Severity::Fatal, format!("Did you mean `{}`? {STOPS}", key.path))
            }
            Some(key) => (Severity::Warning, format!("Did you mean `{}`?", key.path)),
            None => (Severity::Ignored, String::new()),
        };
        let end = if severity == Severity::Fatal { "" } else { "; ignored" };
        self.tell(member.at, severity, format!("{what}{end}"), &advice);
    }

    fn value(&mut self, node: &JsonNode, wanted: Expectation<'_>) -> Option<SettingsTree> {
        match (wanted.kind, &node.content) {
            (ValueType::Group, JsonContent::Object(members)) => Some(self.group(members, wanted.path)),
            (ValueType::Map(kind), JsonContent::Object(members)) => {
                Some(self.map(members, Expectation { kind, ..wanted }))
            }
            (ValueType::List(kind), JsonContent::List(items)) => {
                let items = items.iter().enumerate().filter_map(|(position, item)| {
                    let path = format!("{}[{position}]", wanted.path);
                    self.leaf(item, Expectation { path: &path, kind, ..wanted })
                });
                let mut list = SettingsList { items: items.collect(), origin: self.source.at(node.at) };
                list.without_doubles(keys::find(wanted.path).is_some_and(|key| key.is_anchored));
                Some(SettingsTree::List(list))
            }
            _ => self.leaf(node, wanted).map(SettingsTree::Leaf),
        }
    }

    fn map(&mut self, members: &[Member], wanted: Expectation<'_>) -> SettingsTree {
        let mut tree = BTreeMap::new();
        for member in members {
            let path = format!("{}.{}", wanted.path, member.name);
            if wanted.path == "env" && !is_variable(member) {
                let what = format!("`{}` cannot be a variable", short(&path));
                self.tell(member.at, Severity::Warning, what, LEFT_OUT);
                continue;
            }
            if let Some(value) = self.value(&member.value, Expectation { path: &path, ..wanted }) {
                self.add(&mut tree, member, value, &path);
            }
        }
        SettingsTree::Object(tree)
    }

    fn leaf(&mut self, node: &JsonNode, wanted: Expectation<'_>) -> Option<Leaf> {
        if let (ValueType::Fields(_), JsonContent::Object(members)) = (wanted.kind, &node.content) {
            return self.fields(node, members, wanted);
        }
        let value = node.to_value();
        let fits = match wanted.kind {
            ValueType::Text => value.is_string(),
            ValueType::Switch => value.is_boolean(),
            ValueType::Object => value.is_object(),
            ValueType::Any => true,
            ValueType::Whole(least, most) => {
                value.as_u64().is_some_and(|number| (least..=most).contains(&&number))
            }
            ValueType::Share(least, most) => {
                value.as_f64().is_some_and(|number| (least..=most).contains(&&number))
            }
            ValueType::Choice(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            ValueType::List(_) | ValueType::Map(_) | ValueType::Group | ValueType::Fields(_) => false,
        };
        if fits {
            for (name, at) in node.repeated_names() {
                let what = format!("`{}` is there twice in `{}`", short(name), short(wanted.path));
                self.tell(at, Severity::Warning, what, "Only the last holds. Remove one.");
            }
            return Some(Leaf { value, origin: self.source.at(node.at) });
        }
        self.wrong(node, wanted);
        None
    }

    /// An object with fixed fields. It holds only as a whole.
    fn fields(&mut self, node: &JsonNode, members: &[Member], wanted: Expectation<'_>) -> Option<Leaf> {
        let ValueType::Fields(fields) = wanted.kind else { return None };
        if let Some((name, at)) = node.repeated_names().first() {
            self.refuse(*at, wanted, format!("`{name}` is there twice in `{}`", wanted.path));
            return None;
        }
        for member in members {
            let path = format!("{}.{}", wanted.path, member.name);
            if let Some((_, kind, _)) = fields.iter().find(|(name, ..)| *name == member.name) {
                self.leaf(&member.value, Expectation { path: &path, kind, ..wanted })?;
            } else {
                let what = format!("Unknown setting `{}`; ignored", short(&path));
                self.tell(member.at, Severity::Ignored, what, "");
            }
        }
        let is_there = |name: &str| members.iter().any(|member| member.name == name);
        if let Some((name, ..)) = fields.iter().find(|(name, _, needed)| *needed && !is_there(name)) {
            let what = format!("`{}` has no `{name}`", wanted.path);
            self.refuse(node.at, wanted, what);
            return None;
        }
        Some(Leaf { value: node.to_value(), origin: self.source.at(node.at) })
    }

    fn wrong(&mut self, node: &JsonNode, wanted: Expectation<'_>) {
        let accepts = wanted.kind.accepts();
        let found = match &node.content {
            JsonContent::Scalar(Value::String(text)) if matches!(wanted.kind, ValueType::Choice(_)) => {
                format!("\"{}\"", short(text))
            }
            JsonContent::Scalar(Value::Number(number))
                if matches!(wanted.kind, ValueType::Whole(..) | ValueType::Share(..)) =>
            {
                number.to_string()
            }
            other => other.kind().to_owned(),
        };
        let what = format!("`{}` must be {accepts}, not {found}", short(wanted.path));
        if keys::governing(wanted.path).is_some_and(|key| key.path == HOOKS) {
            self.lost_hooks(node, what);
        } else {
            self.refuse(node.at, wanted, what);
        }
    }

    /// Hooks that stand where nobody looks for them.
    fn lost_hooks(&mut self, node: &JsonNode, what: String) {
        if blocks_on_failure(&node.to_value()) {
            let origin = self.source.at(node.at);
            self.lost_hooks.push(SettingsProblem::at(&origin, Severity::Fatal, what, HOOKS_STOP));
        } else {
            self.tell(node.at, Severity::Warning, what, HOOKS_LEFT_OUT);
        }
    }

    fn refuse(&mut self, at: TextPosition, wanted: Expectation<'_>, what: String) {
        let (severity, advice) =
            if wanted.is_forbidding { (Severity::Fatal, STOPS) } else { (Severity::Warning, LEFT_OUT) };
        self.tell(at, severity, what, advice);
    }
}

/// Whether the system takes it as a variable.
fn is_variable(member: &Member) -> bool {
    let is_broken = member.value.to_value().as_str().is_some_and(|text| text.contains('\0'));
    !is_broken && !member.name.is_empty() && !member.name.contains(['=', '\0'])
}

/// Modes that no file in a repository can choose.
const MODES: [&str; 2] = ["bypassPermissions", "auto"];

/// Takes out what the source may not say, and tells each: no repository lifts protection or runs things unasked.
pub(crate) fn enforce(tree: &mut SettingsTree, source: &SettingOrigin, problems: &mut Vec<SettingsProblem>) {
    let mut limits = Limits { source, problems: Vec::new() };
    for key in KEYS {
        limits.key(tree, key);
    }
    if limits.in_repository() {
        limits.mode(tree);
        limits.variables(tree);
        limits.masks(tree);
    }
    problems.extend(limits.into_problems());
}

struct Limits<'a> {
    source: &'a SettingOrigin,
    problems: Vec<SettingsProblem>,
}

impl Limits<'_> {
    /// Whether the file lies in a repository, whoever wrote it.
    fn in_repository(&self) -> bool {
        self.source.is_foreign || matches!(self.source.level, SettingsLevel::Project | SettingsLevel::Local)
    }

    fn key(&mut self, tree: &mut SettingsTree, key: &Key) {
        let refused = match key.allowed {
            KeyScope::Everywhere => false,
            KeyScope::OutsideRepositories => self.in_repository(),
            KeyScope::NotForeign => self.source.is_foreign,
            KeyScope::Managed => self.source.level != SettingsLevel::Managed,
            KeyScope::ForeignOnly(only) => {
                self.source.is_foreign && tree.leaf(key.path).is_some_and(|leaf| leaf.value != only)
            }
        };
        if !refused {
            return;
        }
        let Some(origin) = tree.take(key.path) else { return };
        let advice = match key.allowed {
            KeyScope::Managed => "Only the administrator can set it.",
            KeyScope::ForeignOnly(true) => "A project can turn this on, and never off.",
            KeyScope::ForeignOnly(false) => "A project can turn this off, and never on.",
            _ => "Move it to your user settings if you want it.",
        };
        self.ignore(&origin, &format!("`{}`", key.path), advice);
    }

    fn mode(&mut self, tree: &mut SettingsTree) {
        const PATH: &str = "permissions.defaultMode";
        let chosen = |mode: &&&str| tree.leaf(PATH).is_some_and(|leaf| leaf.value == **mode);
        let Some(mode) = MODES.iter().find(chosen) else { return };
        if let Some(origin) = tree.take(PATH) {
            let advice = "Use --permission-mode or your user settings if you want it.";
            self.ignore(&origin, &format!("`{PATH}`: \"{mode}\""), advice);
        }
    }

    fn variables(&mut self, tree: &mut SettingsTree) {
        let Some(SettingsTree::Object(variables)) = tree.get_mut("env") else { return };
        for (name, variable) in variables.extract_if(.., |name, _| is_ours(name)) {
            let SettingsTree::Leaf(leaf) = variable else { continue };
            let advice =
                "It decides where requests go or what protects you. Set it in your shell or user settings.";
            self.ignore(&leaf.origin, &format!("`env.{}`", short(&name)), advice);
        }
    }

    /// A placeholder that is swapped on the way out sends a secret to whoever is asked.
    fn masks(&mut self, tree: &mut SettingsTree) {
        for path in ["sandbox.credentials.files", "sandbox.credentials.envVars"] {
            let Some(SettingsTree::List(list)) = tree.get_mut(path) else { continue };
            for mask in list.items.extract_if(.., |item| item.value["mode"] == "mask") {
                self.ignore(&mask.origin, &format!("`{path}` with \"mask\""), "Use \"deny\" instead.");
            }
        }
    }

    /// The problems, or as many as anybody reads.
    fn into_problems(mut self) -> Vec<SettingsProblem> {
        let more = self.problems.len().saturating_sub(PROBLEMS_MAX);
        self.problems.truncate(PROBLEMS_MAX);
        if let Some(last) = self.problems.last().filter(|_| more > 0).cloned() {
            let what = format!("{more} more values are ignored in {}", self.source.what());
            self.problems.push(SettingsProblem { what, ..last });
        }
        self.problems
    }

    fn ignore(&mut self, origin: &SettingOrigin, what: &str, advice: &str) {
        let what = format!("{what} is ignored in {}", self.source.what());
        self.problems.push(SettingsProblem::at(origin, Severity::Warning, what, advice));
    }
}

/// Variables that files in a repository cannot set. They move requests, keys or our own files, loosen what protects, or load code
/// into every program. For the names that only this program and its kin read, the harmless ones are known; all others count.
fn is_ours(name: &str) -> bool {
    const PREFIXES: &str = "OTEL_ WINDLASS_ LD_ DYLD_ AWS_ GOOGLE_ CLOUDSDK_ GCLOUD_ AZURE_ VERTEX_ XDG_";
    const ENDS: &str = "_PROXY _CA_CERTS _CA_BUNDLE _API_KEY _AUTH_TOKEN _BASE_URL";
    const NAMES: &str = "SSL_CERT_FILE SSL_CERT_DIR NODE_TLS_REJECT_UNAUTHORIZED NODE_OPTIONS PYTHONHTTPSVERIFY \
        GIT_SSL_NO_VERIFY GIT_SSL_CAINFO BASH_ENV ENV HOME IS_SANDBOX";
    let upper = name.to_ascii_uppercase();
    if NAMES.split(' ').any(|known| known == upper)
        || PREFIXES.split(' ').any(|prefix| upper.starts_with(prefix))
        || ENDS.split(' ').any(|end| upper.ends_with(end))
    {
        return true;
    }
    let is_kin = upper.starts_with("ANTHROPIC_") || upper.starts_with("CLAUDE");
    is_kin && !is_harmless(name)
}

/// Choices of models and limits.
fn is_harmless(name: &str) -> bool {
    let known = VARIABLES.iter().find(|variable| variable.name == name);
    known.is_some_and(|variable| ![PROVIDER, SESSIONS].contains(&variable.area) && name != "CLAUDE_ENV_FILE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_move_requests_or_protection_are_ours() {
        let check = |names: &[&str], expected: bool| {
            for name in names {
                assert_eq!(is_ours(name), expected, "{name}");
            }
        };
        check(
            &[
                "ANTHROPIC_BASE_URL",
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "ANTHROPIC_CUSTOM_HEADERS",
                "ANTHROPIC_BEDROCK_BASE_URL",
                "ANTHROPIC_SOMETHING_NEW",
                "OPENAI_BASE_URL",
                "HTTPS_PROXY",
                "https_proxy",
                "NO_PROXY",
                "NODE_EXTRA_CA_CERTS",
                "REQUESTS_CA_BUNDLE",
                "SSL_CERT_FILE",
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_CLIENT_CERT",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CONFIG_DIR",
                "CLAUDE_ENV_FILE",
                "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING",
                "WINDLASS_HOME",
                "WINDLASS_SCRIPTED_HOOKS",
                "WINDLASS_ENV_PASS",
                "IS_SANDBOX",
                "LD_PRELOAD",
                "HOME",
            ],
            true,
        );
        check(
            &[
                "NODE_ENV",
                "PATH",
                "RUST_LOG",
                "ANTHROPIC_MODEL",
                "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
                "MAX_THINKING_TOKENS",
                "CI",
            ],
            false,
        );
    }
}
