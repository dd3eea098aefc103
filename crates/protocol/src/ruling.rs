//! What was decided about a call, and why.

use std::path::PathBuf;
use std::sync::Arc;

/// What a rule wants to become of what it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behaviour {
    /// Run it.
    Allow,
    /// Ask about it.
    Ask,
    /// Do not run it.
    Deny,
}

impl Behaviour {
    /// The name users know.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A change of who may do what, by a person, a host or a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionUpdate {
    /// What changes.
    pub change: PermissionChange,
    /// Where it is kept.
    pub destination: Destination,
}

/// What changes of who may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionChange {
    /// These rules hold too.
    AddRules {
        /// The kind of rules.
        behaviour: Behaviour,
        /// The rules, as they are written.
        rules: Vec<String>,
    },
    /// These rules hold instead of those of the same kind and place.
    ReplaceRules {
        /// The kind of rules.
        behaviour: Behaviour,
        /// The rules, as they are written.
        rules: Vec<String>,
    },
    /// These rules do not hold any more.
    RemoveRules {
        /// The kind of rules.
        behaviour: Behaviour,
        /// The rules, as they are written.
        rules: Vec<String>,
    },
    /// Another mode, by its name.
    SetMode(String),
    /// More working directories.
    AddDirectories(Vec<PathBuf>),
    /// Fewer working directories.
    RemoveDirectories(Vec<PathBuf>),
}

/// Where a change is kept. Wherever that is, it holds in the session at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere: it ends with the session.
    Session,
    /// The user's own settings for the project.
    Local,
    /// The project's settings.
    Project,
    /// The user's settings.
    User,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// Somebody is asked.
    Ask,
    /// A model is asked whether it is harmless; if it cannot say so, somebody is asked.
    Classify,
    /// It does not run.
    Deny,
}

impl Verdict {
    /// The name users know. What a model is to judge is asked about as far as rules are concerned.
    #[must_use]
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
}

/// The rule that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulingRule {
    /// As it was written.
    pub text: Arc<str>,
    /// Where it stands: a file and a line, or a place in words.
    pub source: Arc<str>,
}
