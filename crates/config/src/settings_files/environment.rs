//! How settings files and the environment go together.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::file_settings::FileSettings;
use crate::{ConfigError, Settings, VARIABLES};

/// The environment of a run.
type Environment = BTreeMap<OsString, OsString>;

impl FileSettings {
    /// The environment of a run and its commands: the shell's, and over it the variables of the files. An empty one in a file
    /// takes the shell's away.
    #[must_use]
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
        let mut settings =
            Settings::from_environment(self.filled(environment)).map_err(|error| self.with_origin(error))?;
        settings.memory.sources = self.memory_sources;
        settings.memory.excludes.clone_from(&self.memory_excludes);
        Ok(settings)
    }

    /// The variables that shape a run and are no secrets, with what settings say in their place.
    #[must_use]
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
        for (name, value) in self.stand_ins() {
            let variable = filled.entry(name.into()).or_default();
            if variable.is_empty() {
                *variable = value.into();
            }
        }
        filled
    }

    /// Whether a model, by its id, may be chosen. A list names ids and families; a family stands for every model of it.
    #[must_use]
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

    /// The variables that say the same as a setting.
    fn stand_ins(&self) -> Vec<(&'static str, String)> {
        let off = |switch: &Option<super::Sourced<bool>>| switch.as_ref().is_some_and(|switch| !switch.value);
        let on_off = |switch: &Option<super::Sourced<bool>>| {
            switch.as_ref().map(|switch| if switch.value { "1" } else { "0" }.to_owned())
        };
        let pairs = [
            ("ANTHROPIC_MODEL", self.model.as_ref().map(|model| model.value.clone())),
            ("CLAUDE_CODE_EFFORT_LEVEL", self.effort.as_ref().map(|effort| effort.value.name().to_owned())),
            ("MAX_THINKING_TOKENS", off(&self.thinking).then(|| "0".to_owned())),
            ("DISABLE_AUTO_COMPACT", off(&self.auto_compact).then(|| "1".to_owned())),
            (
                "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
                self.auto_compact_window.as_ref().map(|window| window.value.to_string()),
            ),
            ("WINDLASS_REPEATS_END", self.repeated_calls_max.as_ref().map(|count| count.value.to_string())),
            ("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", off(&self.checkpoints).then(|| "1".to_owned())),
            ("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", on_off(&self.tool_use_summaries)),
            ("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", on_off(&self.prompt_suggestions)),
            ("BASH_MAX_OUTPUT_LENGTH", self.output_chars.as_ref().map(|chars| chars.value.to_string())),
        ];
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// An error about a variable that stands in a file says so.
    fn with_origin(&self, error: ConfigError) -> ConfigError {
        match error {
            ConfigError::Variable { name, value, accepts } => match self.env.get(name) {
                Some(ours) => {
                    ConfigError::FileVariable { origin: ours.origin.to_string(), name, value, accepts }
                }
                None => ConfigError::Variable { name, value, accepts },
            },
            other => other,
        }
    }
}
