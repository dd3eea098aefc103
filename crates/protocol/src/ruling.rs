//! What was decided about a call, and why.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names::named_enum;

named_enum! {
    /// What a rule wants to become of what it covers.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Behaviour {
        /// Run it.
        Allow => "allow",
        /// Ask about it.
        Ask => "ask",
        /// Do not run it.
        Deny => "deny",
    }
}

/// A change of who may do what, by a person, a host or a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionUpdate {
    /// What changes.
    pub change: PermissionChange,
    /// Where it is kept.
    pub destination: SettingsDestination,
}

/// What changes of who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionChange {
    /// These rules of one kind hold too, as they are written.
    AddRules(Behaviour, Vec<String>),
    /// These rules hold instead of those of the same kind and place.
    ReplaceRules(Behaviour, Vec<String>),
    /// These rules do not hold any more.
    RemoveRules(Behaviour, Vec<String>),
    /// Another mode, by its name.
    SetMode(String),
    /// More working directories.
    AddDirectories(Vec<PathBuf>),
    /// Fewer working directories.
    RemoveDirectories(Vec<PathBuf>),
}

impl PermissionUpdate {
    /// Allows what these rules name from now on.
    pub fn allow(rules: &[String], destination: SettingsDestination) -> Self {
        let change = PermissionChange::AddRules(Behaviour::Allow, rules.to_vec());
        Self { change, destination }
    }

    /// Reads a change as hooks and hosts write it; the error says what is wrong.
    ///
    /// ```
    /// # use windlass_protocol::{SettingsDestination, PermissionUpdate};
    /// let json = r#"{"type":"addRules","behavior":"allow","destination":"session","rules":[{"toolName":"Bash","ruleContent":"ls"}]}"#;
    /// assert_eq!(PermissionUpdate::from_json(json).unwrap().destination, SettingsDestination::Session);
    /// ```
    pub fn from_json(json: &str) -> Result<Self, String> {
        let entry: UpdateJson = serde_json::from_str(json).map_err(|error| error.to_string())?;
        entry.update()
    }

    /// The form that hooks and hosts read.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&UpdateJson::of(self)).unwrap_or_default()
    }
}

/// A change of permissions as hooks and hosts write it.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateJson {
    r#type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rules: Vec<RuleJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    behavior: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    directories: Vec<PathBuf>,
    destination: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleJson {
    tool_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule_content: Option<String>,
}

impl UpdateJson {
    fn update(self) -> Result<PermissionUpdate, String> {
        let destination = SettingsDestination::from_name(&self.destination)
            .ok_or_else(|| format!("unknown destination {}", self.destination))?;
        let given = self.behavior.as_deref().and_then(Behaviour::from_name);
        let behaviour = || given.ok_or("`behavior` is not allow, ask or deny");
        let rules = || self.rules.iter().map(RuleJson::text).collect();
        let change = match self.r#type.as_str() {
            "addRules" => PermissionChange::AddRules(behaviour()?, rules()),
            "replaceRules" => PermissionChange::ReplaceRules(behaviour()?, rules()),
            "removeRules" => PermissionChange::RemoveRules(behaviour()?, rules()),
            "setMode" => PermissionChange::SetMode(self.mode.ok_or("`mode` is missing")?),
            "addDirectories" => PermissionChange::AddDirectories(self.directories),
            "removeDirectories" => PermissionChange::RemoveDirectories(self.directories),
            other => return Err(format!("unknown type of change {other}")),
        };
        Ok(PermissionUpdate { change, destination })
    }

    fn of(update: &PermissionUpdate) -> Self {
        let rules = |name: &str, behaviour: &Behaviour, rules: &[String]| Self {
            r#type: name.to_owned(),
            behavior: Some(behaviour.name().to_owned()),
            rules: rules.iter().map(|rule| RuleJson::of(rule)).collect(),
            ..Self::default()
        };
        let directories = |name: &str, list: &[PathBuf]| Self {
            r#type: name.to_owned(),
            directories: list.to_vec(),
            ..Self::default()
        };
        let entry = match &update.change {
            PermissionChange::AddRules(behaviour, list) => rules("addRules", behaviour, list),
            PermissionChange::ReplaceRules(behaviour, list) => rules("replaceRules", behaviour, list),
            PermissionChange::RemoveRules(behaviour, list) => rules("removeRules", behaviour, list),
            PermissionChange::SetMode(mode) => {
                Self { r#type: "setMode".to_owned(), mode: Some(mode.clone()), ..Self::default() }
            }
            PermissionChange::AddDirectories(list) => directories("addDirectories", list),
            PermissionChange::RemoveDirectories(list) => directories("removeDirectories", list),
        };
        Self { destination: update.destination.name().to_owned(), ..entry }
    }
}

impl RuleJson {
    fn text(&self) -> String {
        match &self.rule_content {
            Some(content) => format!("{}({content})", self.tool_name),
            None => self.tool_name.clone(),
        }
    }

    fn of(rule: &str) -> Self {
        let parts = rule.split_once('(').and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)));
        match parts {
            Some((name, content)) => {
                Self { tool_name: name.to_owned(), rule_content: Some(content.to_owned()) }
            }
            None => Self { tool_name: rule.to_owned(), rule_content: None },
        }
    }
}

/// What would spare the question about a call, each part on its own: with it the very same call runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Rules for what is missing and no more; none if that cannot be remembered.
    pub rules: Vec<String>,
    /// The same rules with a star behind commands that are usually repeated with other arguments, if there are such.
    pub prefix_rules: Vec<String>,
    /// Whether the mode `acceptEdits` allows the call.
    pub can_accept_edits: bool,
}

impl Offers {
    /// Whether nothing is offered.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The offers as changes that hooks and hosts can hand back, the narrowest first. One of them is enough.
    ///
    /// ```
    /// # use windlass_protocol::{Offers, PermissionUpdate};
    /// let rules = vec!["Bash(cargo test -q)".to_owned()];
    /// let prefix_rules = vec!["Bash(cargo test *)".to_owned()];
    /// let offers = Offers { rules, prefix_rules, can_accept_edits: true };
    /// let json: Vec<String> = offers.suggestions().iter().map(PermissionUpdate::to_json).collect();
    /// assert!(json[1].starts_with(r#"{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"cargo test *"}]"#));
    /// assert_eq!(json[2], r#"{"type":"setMode","mode":"acceptEdits","destination":"session"}"#);
    /// ```
    pub fn suggestions(&self) -> Vec<PermissionUpdate> {
        let add = |rules: &Vec<String>| PermissionUpdate::allow(rules, SettingsDestination::Local);
        let rules = [&self.rules, &self.prefix_rules].into_iter().filter(|rules| !rules.is_empty()).map(add);
        rules.chain(self.can_accept_edits.then(Self::accept_edits)).collect()
    }

    /// The change that makes the session accept edits.
    pub fn accept_edits() -> PermissionUpdate {
        let change = PermissionChange::SetMode("acceptEdits".to_owned());
        PermissionUpdate { change, destination: SettingsDestination::Session }
    }
}

named_enum! {
    /// Where a change is kept. Wherever that is, it holds in the session at once.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SettingsDestination {
        /// Nowhere: it ends with the session.
        Session => "session",
        /// The user's own settings for the project.
        Local => "localSettings",
        /// The project's settings.
        Project => "projectSettings",
        /// The user's settings.
        User => "userSettings",
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It runs.
    Allow,
    /// The user or the host is asked.
    Ask,
    /// A model is asked whether it is harmless; if it cannot say so, the user or the host is asked.
    Classify,
    /// It does not run.
    Deny,
}

impl Verdict {
    /// The name users know. What a model is to judge is asked about as far as rules are concerned.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask | Self::Classify => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A verdict with what led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// What becomes of the call.
    pub verdict: Verdict,
    /// The rule that decided, if one did.
    pub rule: Option<RulingRule>,
    /// Why; a denial says what would allow the call.
    pub reason: String,
    /// It is denied only because the run has no one to ask.
    pub is_undecided: bool,
}

/// The rule that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulingRule {
    /// As it was written.
    pub text: Arc<str>,
    /// Where it stands: a file and a line, or a place in words.
    pub source: Arc<str>,
}
