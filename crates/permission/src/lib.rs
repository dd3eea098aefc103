//! Who may do what.
//!
//! [`decide_call`] decides about one call from facts that its tool states: the first stage that settles it rules.
//! [`Permissions`] is what the user configured, with its [`Rules`]; [`Grants`] is what a session changed since.
//! Everything is a pure function of its arguments: no clock, no environment, no files.

mod grants;
mod rules;
mod settings;
mod stages;
mod tool_names;

pub use grants::Grants;
pub use rules::{Anchors, CommandPattern, HostReach, Hosts, Rule, RuleError, RuleSource, Rules};
pub use settings::{Answerer, Classifier, PermissionMode, Permissions, SandboxPermissions};
pub use stages::{
    PROTECTED_DIRECTORIES, PROTECTED_FILES, PermissionCase, ask_in_place, can_ask, decide_call, is_confined,
    missing_rules, offers, why_each_time,
};
pub use tool_names::UnknownTool;
pub use windlass_protocol::Behaviour;
