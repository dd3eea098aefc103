//! The settings of who may do what: the mode, the rules, who answers, and how commands are confined.

use serde::{Deserialize, Serialize};

use crate::rules::{Anchors, CommandPattern, Rules};

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// The mode the user chose.
    pub mode: PermissionMode,
    /// What is denied, asked about and allowed.
    pub rules: Rules,
    /// Who answers questions.
    pub asking: Answerer,
    /// What the paths of rules that are added during the session are anchored at.
    pub anchors: Anchors,
    /// Whether the mode that lets everything run may be chosen during the session: only if the user chose it at the start.
    pub can_bypass: bool,
    /// The mode that lets everything run is refused at the start too: for the root user, or by settings.
    pub is_bypass_refused: bool,
    /// Whether the mode in which a model judges may be chosen.
    pub can_classify: bool,
    /// What the judge of that mode is told besides.
    pub classifier: Classifier,
    /// Whether only the rules of the administrator may allow anything.
    pub is_managed_only: bool,
    /// How commands are confined, if they are.
    pub sandbox: Option<SandboxPermissions>,
}

/// How commands are confined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPermissions {
    /// Commands in the sandbox run unasked.
    pub should_auto_allow: bool,
    /// The model may ask to run a command outside.
    pub can_leave: bool,
    /// Commands that run outside.
    pub excluded: Vec<CommandPattern>,
}

/// What the user wants the judge of the mode `auto` to know. `$defaults` in a list stands for what is built in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Classifier {
    /// About the surroundings: which hosts, repositories and services are the user's own.
    pub environment: Vec<String>,
    /// What is to run.
    pub allow: Vec<String>,
    /// What is to run only if the user asked for it.
    pub soft_deny: Vec<String>,
    /// What is never to run.
    pub hard_deny: Vec<String>,
}

/// The permission mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionMode {
    /// Reading inside the working directories is free; everything else is asked.
    #[default]
    Default,
    /// Editing files inside the working directories is free too.
    AcceptEdits,
    /// Only reading; nothing changes.
    Plan,
    /// What would be asked is denied.
    DontAsk,
    /// A model judges what would be asked.
    Auto,
    /// Everything runs.
    BypassPermissions,
}

impl PermissionMode {
    /// Every mode.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::AcceptEdits, Self::Plan, Self::DontAsk, Self::Auto, Self::BypassPermissions];

    /// The mode of this name; `manual` is another name of the default.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "manual" { "default" } else { name };
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The name users and hosts know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::Auto => "auto",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

/// Who answers questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answerer {
    /// Questions have no one to answer them: what would be asked is denied, with the reason.
    #[default]
    Nobody,
    /// The caller of the run answers.
    Person,
}
