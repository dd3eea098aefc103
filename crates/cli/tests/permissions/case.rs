//! The cases of the tables, and how one is decided in this process.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_engine::protocol::{CallFacts, Offers, Ruling, Verdict};
use windlass_engine::{
    Anchors, Answerer, Behaviour, PermissionCase, PermissionMode, Permissions, RuleSource, decide_call,
    hidden_paths, missing_rules, offers,
};
use windlass_ports::ExamineContext;
use windlass_tools::{describe, redirect_target};

pub(crate) const ATTACKS: &str = include_str!("attacks.jsonl");
pub(crate) const BENIGN: &str = include_str!("benign.jsonl");

/// The home directory that the tables speak of.
pub(crate) const HOME: &str = "/home/dev";

/// One case. Besides what the binary reads, it says what must become of the call.
#[derive(Clone, Deserialize)]
pub(crate) struct Given {
    pub(crate) id: String,
    pub(crate) class: String,
    pub(crate) expect: String,
    pub(crate) rules: RuleLists,
    pub(crate) mode: String,
    pub(crate) cwd: PathBuf,
    #[serde(default)]
    additional_dirs: Vec<PathBuf>,
    pub(crate) tool: String,
    pub(crate) input: Box<RawValue>,
    #[serde(default)]
    redirect_to: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
pub(crate) struct RuleLists {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) ask: Vec<String>,
}

impl RuleLists {
    pub(crate) fn list(&self, behaviour: Behaviour) -> &[String] {
        match behaviour {
            Behaviour::Allow => &self.allow,
            Behaviour::Ask => &self.ask,
            Behaviour::Deny => &self.deny,
        }
    }
}

/// Every list of rules.
pub(crate) const LISTS: [Behaviour; 3] = [Behaviour::Deny, Behaviour::Ask, Behaviour::Allow];

/// All cases of a table.
pub(crate) fn read(table: &str) -> Vec<Given> {
    table
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// All cases there are.
pub(crate) fn all() -> Vec<Given> {
    [read(ATTACKS), read(BENIGN)].concat()
}

impl Given {
    /// A field of the input that is a text.
    pub(crate) fn text(&self, field: &str) -> Option<String> {
        let input: Value = serde_json::from_str(self.input.get()).unwrap();
        Some(input.get(field)?.as_str()?.to_owned())
    }

    /// The line that it runs, if it runs one.
    pub(crate) fn line(&self) -> Option<String> {
        if self.tool == "Bash" { self.text("command") } else { None }
    }

    /// The same case with another text in a field of its input.
    pub(crate) fn with_text(&self, field: &str, text: &str) -> Self {
        let mut input: Value = serde_json::from_str(self.input.get()).unwrap();
        input[field] = Value::String(text.to_owned());
        Self { input: serde_json::value::to_raw_value(&input).unwrap(), ..self.clone() }
    }

    /// The same case with another line.
    pub(crate) fn with_line(&self, line: &str) -> Self {
        self.with_text("command", line)
    }

    /// The case with everything that is needed to decide it; `None` if its rules cannot be read.
    pub(crate) fn setting(&self) -> Option<Setting> {
        let roots = roots(&self.cwd, &self.additional_dirs);
        let start = self.cwd.clone();
        let home = std::env::home_dir();
        let anchors = Anchors { settings: start.clone(), start, roots: roots.clone(), home };
        let mode = PermissionMode::from_name(&self.mode)?;
        let permissions = Permissions { mode, asking: Answerer::Person, anchors, ..Permissions::default() };
        let mut setting = Setting { given: self.clone(), permissions, roots };
        for behaviour in LISTS {
            for rule in self.rules.list(behaviour) {
                if !setting.add(behaviour, rule) && behaviour != Behaviour::Allow {
                    return None;
                }
            }
        }
        Some(setting)
    }

    /// What becomes of the case.
    pub(crate) fn decide(&self) -> Verdict {
        self.setting().and_then(|setting| setting.decide()).map_or(Verdict::Deny, |ruling| ruling.verdict)
    }
}

/// A case with its rules read.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) given: Given,
    pub(crate) permissions: Permissions,
    roots: Vec<PathBuf>,
}

impl Setting {
    /// Adds a rule of the session; whether it is one.
    pub(crate) fn add(&mut self, behaviour: Behaviour, rule: &str) -> bool {
        let anchors = self.permissions.anchors.clone();
        self.permissions.rules.add(behaviour, rule, RuleSource::session(), &anchors).is_ok()
    }

    /// The same with one rule more; `None` if it is no rule.
    pub(crate) fn with(&self, behaviour: Behaviour, rule: &str) -> Option<Self> {
        let mut setting = self.clone();
        setting.add(behaviour, rule).then_some(setting)
    }

    /// What the call would do; `None` if it is never made. What may not be read is looked for, so rules play a part.
    pub(crate) fn facts(&self) -> Option<CallFacts> {
        let hidden = hidden_paths(&self.permissions.rules, &[]);
        let cx = ExamineContext { cwd: self.given.cwd.clone(), roots: self.roots.clone().into(), hidden };
        let input: Value = serde_json::from_str(self.given.input.get()).unwrap();
        describe(&self.given.tool, &input, &cx).ok()
    }

    /// Decides about the call; `None` if it is never made.
    pub(crate) fn decide(&self) -> Option<Ruling> {
        let facts = self.facts()?;
        let ruling = self.judge(&facts);
        match (ruling.verdict, self.redirected(&facts)) {
            (Verdict::Allow, Some(elsewhere)) => Some(self.judge(&elsewhere)),
            _ => Some(ruling),
        }
    }

    pub(crate) fn judge(&self, facts: &CallFacts) -> Ruling {
        decide_call(&self.case(facts))
    }

    /// The rules that would let the call run.
    pub(crate) fn missing(&self, facts: &CallFacts) -> Vec<String> {
        missing_rules(&self.case(facts))
    }

    /// Everything that would let the call run.
    pub(crate) fn offers(&self, facts: &CallFacts) -> Offers {
        offers(&self.case(facts))
    }

    /// The same with another mode.
    pub(crate) fn in_mode(&self, mode: PermissionMode) -> Self {
        let permissions = Permissions { mode, ..self.permissions.clone() };
        Self { permissions, ..self.clone() }
    }

    /// The facts of what a fetch is sent on to, if that is elsewhere.
    pub(crate) fn redirected(&self, facts: &CallFacts) -> Option<CallFacts> {
        let from = facts.url.as_ref()?;
        let to = redirect_target(from, self.given.redirect_to.as_deref()?).ok()?;
        let same = from.host == to.host && (to.is_secure || !from.is_secure);
        (!same).then(|| CallFacts { url: Some(to), ..facts.clone() })
    }

    fn case<'a>(&'a self, facts: &'a CallFacts) -> PermissionCase<'a> {
        let case = PermissionCase::new(&self.given.tool, facts, &self.permissions, &self.roots);
        PermissionCase { input: &self.given.input, cwd: &self.given.cwd, ..case }
    }
}

fn roots(cwd: &Path, added: &[PathBuf]) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = Vec::new();
    for path in std::iter::once(cwd.to_owned()).chain(added.iter().map(|path| cwd.join(path))) {
        let resolved = path.canonicalize().unwrap_or_else(|_| path.clone());
        for path in [resolved, path] {
            if !roots.contains(&path) {
                roots.push(path);
            }
        }
    }
    roots
}

/// How little a verdict lets happen.
pub(crate) fn strictness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Classify => 1,
        Verdict::Ask => 2,
        Verdict::Deny => 3,
    }
}

/// Runs the body of a test with the home directory of the tables. It is part of the environment, so the test is started once more
/// in a process of its own.
pub(crate) fn at_home(name: &str, body: impl FnOnce()) {
    if std::env::var_os("HOME").is_some_and(|home| home == HOME) {
        return body();
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let status = again.env("HOME", HOME).args(["--exact", name, "--nocapture"]).status().unwrap();
    assert!(status.success(), "{name} fails; what it says is above");
}

/// Fails with all complaints, if there are any.
#[track_caller]
pub(crate) fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
