//! How settings files and the environment go together.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use serde_json::Value;

use super::file_settings::FileSettings;
use super::tree::SettingsTree;
use crate::{ConfigError, Settings, VARIABLES};

/// The environment of a run.
type Environment = BTreeMap<OsString, OsString>;

/// A setting that says the same as a variable: the key, the variable, and how it would say it.
type StandIn = (&'static str, &'static str, fn(&Value) -> Option<String>);

const STAND_INS: [StandIn; 10] = [
    ("model", "ANTHROPIC_MODEL", text),
    ("effortLevel", "CLAUDE_CODE_EFFORT_LEVEL", text),
    ("alwaysThinkingEnabled", "MAX_THINKING_TOKENS", |value| (*value == false).then(|| "0".to_owned())),
    ("autoCompactEnabled", "DISABLE_AUTO_COMPACT", one_if_off),
    ("autoCompactWindow", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", number),
    ("repeatedCallsMax", "WINDLASS_REPEATS_END", number),
    ("fileCheckpointingEnabled", "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", one_if_off),
    ("toolUseSummariesEnabled", "CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", one_or_zero),
    ("promptSuggestionEnabled", "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", one_or_zero),
    // Output of commands is never cut shorter or left longer than this.
    ("bashOutputMaxChars", "BASH_MAX_OUTPUT_LENGTH", |value| {
        Some(value.as_u64()?.clamp(4_000, 128_000).to_string())
    }),
];

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number(value: &Value) -> Option<String> {
    value.as_u64().map(|number| number.to_string())
}

fn one_or_zero(value: &Value) -> Option<String> {
    value.as_bool().map(|on| if on { "1" } else { "0" }.to_owned())
}

fn one_if_off(value: &Value) -> Option<String> {
    (*value == false).then(|| "1".to_owned())
}

/// What settings say in place of variables.
pub(super) fn stand_ins(tree: &SettingsTree) -> BTreeMap<&'static str, String> {
    let stated = |&(key, variable, read): &StandIn| Some((variable, read(&tree.leaf(key)?.value)?));
    STAND_INS.iter().filter_map(stated).collect()
}

impl FileSettings {
    /// The environment of a run and its commands: the shell's, and over it the variables of the files. An empty one in a file
    /// takes the shell's away.
    pub fn environment(&self, shell: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
        let mut environment: Environment = shell.into_iter().collect();
        for (name, value) in &self.env {
            let name = OsString::from(name);
            match value.value.reveal() {
                "" => drop(environment.remove(&name)),
                value => drop(environment.insert(name, value.into())),
            }
        }
        environment
    }

    /// What the environment and the files say together. A setting that a variable has too counts where the variable is not set.
    pub fn settings(&self, environment: &Environment) -> Result<Settings, ConfigError> {
        let origin = |name: &str| Some(self.env.get(name)?.origin.to_string());
        let mut settings = Settings::read(&self.filled(environment), origin)?;
        settings.memory.sources = self.memory_sources;
        settings.memory.excludes.clone_from(&self.memory_excludes);
        Ok(settings)
    }

    /// The variables that shape a run and are no secrets, with what settings say in their place.
    pub fn plain_variables(&self, environment: &Environment) -> BTreeMap<String, String> {
        let filled = self.filled(environment);
        let plain = VARIABLES.iter().filter(|variable| !variable.secret);
        plain
            .filter_map(|variable| {
                let value = filled.get(OsStr::new(variable.name))?.to_str()?;
                Some((variable.name.to_owned(), value.to_owned()))
            })
            .collect()
    }

    /// The environment, and what settings say in place of variables that are not set.
    fn filled(&self, environment: &Environment) -> Environment {
        let mut filled = environment.clone();
        for (name, value) in &self.stand_ins {
            let variable = filled.entry(OsString::from(name)).or_default();
            if variable.is_empty() {
                *variable = value.into();
            }
        }
        filled
    }

    /// Whether a model, by its id, may be chosen. A list names ids and families; a family stands for every model of it.
    pub fn allows_model(&self, name: &str) -> bool {
        const FAMILIES: [&str; 4] = ["opus", "sonnet", "haiku", "fable"];
        let Some(available) = &self.available_models else { return true };
        let is_family = |entry: &str| FAMILIES.iter().any(|family| family.eq_ignore_ascii_case(entry));
        let fits = |entry: &str| {
            let of_family = || name.split('-').any(|piece| piece.eq_ignore_ascii_case(entry));
            entry.eq_ignore_ascii_case(name) || (is_family(entry) && of_family())
        };
        available.iter().any(|entry| fits(entry.value.trim()))
    }
}
