//! What a tool declares about itself besides its schema, and the profiles of the tools that are known by name.

use crate::CallKind;

/// What rules, layers, hooks and screens need to know of a tool; no model reads it.
///
/// The default is a tool of which nothing is known: it may do anything, and its results stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolProfile {
    /// Former names that are still understood.
    pub aliases: &'static [&'static str],
    /// What its calls do, as far as that is known without an input.
    pub kind: CallKind,
    /// What its calls are about.
    pub subject: ToolSubject,
    /// Whether a result is the content of the file that the call names.
    pub is_file_content: bool,
    /// Whether old results may be cleared: what they say can be found out again.
    pub is_clearable: bool,
    /// Whether an answer of the user is its whole purpose, so that nothing else can stand for it.
    pub is_for_person: bool,
    /// Whether it keeps the task list.
    pub is_task_list: bool,
}

/// What the calls of a tool are about, with the field of the input that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSubject {
    /// Nothing that rules have a pattern for.
    Other,
    /// A command line.
    Command(&'static str),
    /// A file.
    File(&'static str),
    /// Files whose names fit a pattern.
    FileNames(&'static str),
    /// Files whose content fits a pattern.
    FileContents(&'static str),
    /// An address.
    Url(&'static str),
    /// A question to a search engine.
    Query(&'static str),
    /// An agent that is started, by its type.
    Agent,
    /// A skill, by its name.
    Skill,
}

impl ToolSubject {
    /// The field that one text would most likely be meant for.
    #[must_use]
    pub fn field(self) -> Option<&'static str> {
        match self {
            Self::Command(field)
            | Self::File(field)
            | Self::FileNames(field)
            | Self::FileContents(field)
            | Self::Url(field)
            | Self::Query(field) => Some(field),
            Self::Other | Self::Agent | Self::Skill => None,
        }
    }
}

impl Default for ToolProfile {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl ToolProfile {
    /// A tool of which nothing is known.
    pub const DEFAULT: Self = Self {
        aliases: &[],
        kind: CallKind::Execute,
        subject: ToolSubject::Other,
        is_file_content: false,
        is_clearable: false,
        is_for_person: false,
        is_task_list: false,
    };
    const CLEARABLE: Self = Self { is_clearable: true, ..Self::DEFAULT };
    const SESSION: Self = Self { kind: CallKind::Session, ..Self::DEFAULT };
    const ASKS_USER: Self = Self { is_for_person: true, ..Self::SESSION };
    const KEEPS_TASKS: Self = Self { is_task_list: true, ..Self::SESSION };
    const MONITOR: Self = Self { subject: ToolSubject::Command("command"), ..Self::DEFAULT };
    const READS_FILE: Self =
        Self { kind: CallKind::Read, subject: ToolSubject::File("file_path"), ..Self::DEFAULT };
    const EDITS_FILE: Self = Self { kind: CallKind::Edit, ..Self::READS_FILE };
    const AGENT: Self = Self { aliases: &["Task"], subject: ToolSubject::Agent, ..Self::SESSION };
    const SKILL: Self = Self { aliases: &["SlashCommand"], subject: ToolSubject::Skill, ..Self::DEFAULT };
    const FETCH: Self = Self { kind: CallKind::Fetch, ..Self::CLEARABLE };

    /// Bash.
    pub const BASH: Self = Self { is_clearable: true, ..Self::MONITOR };
    /// `Edit`, `Write` and `NotebookEdit`.
    pub const EDIT: Self = Self { is_clearable: true, ..Self::EDITS_FILE };
    /// Read.
    pub const READ: Self = Self { is_file_content: true, is_clearable: true, ..Self::READS_FILE };
    /// Glob.
    pub const GLOB: Self =
        Self { kind: CallKind::Read, subject: ToolSubject::FileNames("pattern"), ..Self::CLEARABLE };
    /// Grep.
    pub const GREP: Self = Self { subject: ToolSubject::FileContents("pattern"), ..Self::GLOB };
    /// `TaskStop`.
    pub const TASK_STOP: Self = Self { aliases: &["KillShell", "KillBash"], ..Self::SESSION };

    /// The profile of a tool that is known by name, or the default. A session's own tools bring theirs; this one is for
    /// settings and rules, which are read before any tool is there, and for conversations with tools that are gone.
    pub fn named(name: &str) -> Self {
        let row = PROFILES.iter().chain(&FORMER).find(|(known, _)| *known == name);
        row.map_or(Self::DEFAULT, |(_, profile)| *profile)
    }

    /// The present name of a tool that is known by name.
    pub fn present_name(name: &str) -> &str {
        let row = PROFILES.iter().find(|(_, profile)| profile.aliases.contains(&name));
        row.map_or(name, |(present, _)| present)
    }
}

/// The tools that are known by name, whether a session has them or not.
const PROFILES: [(&str, ToolProfile); 31] = [
    ("Agent", ToolProfile::AGENT),
    ("AskUserQuestion", ToolProfile::ASKS_USER),
    ("Bash", ToolProfile::BASH),
    ("Cd", ToolProfile::DEFAULT),
    ("Edit", ToolProfile::EDIT),
    ("EnterPlanMode", ToolProfile::SESSION),
    ("ExitPlanMode", ToolProfile::ASKS_USER),
    ("Glob", ToolProfile::GLOB),
    ("Grep", ToolProfile::GREP),
    ("KillBash", ToolProfile::SESSION),
    ("KillShell", ToolProfile::SESSION),
    ("LSP", ToolProfile::READS_FILE),
    ("Monitor", ToolProfile::MONITOR),
    ("MultiEdit", ToolProfile::EDITS_FILE),
    ("NotebookEdit", ToolProfile::EDIT),
    ("NotebookRead", ToolProfile::READS_FILE),
    ("Read", ToolProfile::READ),
    ("Skill", ToolProfile::SKILL),
    ("SlashCommand", ToolProfile { aliases: &[], ..ToolProfile::SKILL }),
    ("Task", ToolProfile { aliases: &[], ..ToolProfile::AGENT }),
    ("TaskCreate", ToolProfile::KEEPS_TASKS),
    ("TaskGet", ToolProfile::SESSION),
    ("TaskList", ToolProfile::SESSION),
    ("TaskOutput", ToolProfile::SESSION),
    ("TaskStop", ToolProfile::TASK_STOP),
    ("TaskUpdate", ToolProfile::SESSION),
    ("TodoWrite", ToolProfile::KEEPS_TASKS),
    ("ToolSearch", ToolProfile::SESSION),
    ("WebFetch", ToolProfile { subject: ToolSubject::Url("url"), ..ToolProfile::FETCH }),
    ("WebSearch", ToolProfile { subject: ToolSubject::Query("query"), ..ToolProfile::FETCH }),
    ("Write", ToolProfile::EDIT),
];

/// Old conversations have results of it; nothing else speaks of it any more.
const FORMER: [(&str, ToolProfile); 1] = [("BashOutput", ToolProfile::CLEARABLE)];

/// The names of the tools that are known by name: rules, settings and explanations speak of them all.
pub const KNOWN_TOOLS: [&str; PROFILES.len()] = {
    let mut names = [""; PROFILES.len()];
    let mut row = 0;
    while row < PROFILES.len() {
        names[row] = PROFILES[row].0;
        row += 1;
    }
    names
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_name_has_a_row_that_differs_in_nothing_else() {
        for (name, profile) in PROFILES {
            for alias in profile.aliases {
                assert!(KNOWN_TOOLS.contains(alias), "{alias}");
                assert_eq!(ToolProfile::named(alias), ToolProfile { aliases: &[], ..profile });
                assert_eq!(ToolProfile::present_name(alias), name);
            }
        }
        assert!(KNOWN_TOOLS.is_sorted());
    }
}
