//! The configuration of a run: environment and flags, checked.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_permission::{Permissions, RuleError};
use windlass_protocol::{HookAnswer, HookEvent, RawValue};
use windlass_text::shorten::shorten;

use crate::flags::{self, Flags, PromptText};
use crate::permissions::permissions;
use crate::{ConfigError, FileSettings, Home, Settings, choice, hooks, memory};

/// So much of a bad value is shown, in an error of one line.
const VALUE_CHARS_MAX: usize = 60;
/// The most bytes of a text file that a flag or a variable names.
const TEXT_FILE_BYTES_MAX: u64 = 10_000_000;

/// Where and as whom the process runs.
#[derive(Clone, Debug)]
pub struct ProcessContext {
    /// The directory it was started in.
    pub cwd: PathBuf,
    /// Whether it runs as the root user.
    pub is_root: bool,
    /// The home of the user, if there is one.
    pub home: Option<PathBuf>,
    /// Where the administrator of the machine keeps files for everybody.
    pub managed: PathBuf,
}

/// Everything a run is configured by.
#[derive(Clone, Debug, Default)]
pub struct RunConfig {
    /// What the environment and the flags say.
    pub settings: Settings,
    /// The model.
    pub model: ModelChoice,
    /// The models that take over when it is overloaded, in order.
    pub fallbacks: Vec<String>,
    /// The JSON schema of the final answer.
    pub json_schema: Option<Arc<RawValue>>,
    /// Answers that stand in for hooks, by event, given in turn.
    pub scripted_hooks: BTreeMap<HookEvent, Vec<HookAnswer>>,
    /// What the user should know about files although the configuration is valid. It stays true from run to run.
    pub warnings: Vec<String>,
    /// Rules in files that allow and are invalid. They are ignored.
    pub lost_rules: Vec<RuleError>,
    /// What the user should know about this run alone.
    pub run_warnings: Vec<String>,
    /// Who may do what.
    pub permissions: Permissions,
    /// Replaces the system prompt.
    pub system_prompt: Option<String>,
    /// Added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// The project's directory.
    pub cwd: PathBuf,
    /// Where sessions are kept.
    pub home: Home,
    /// Working directories beside it; they exist.
    pub added_directories: Vec<PathBuf>,
    /// What settings files say.
    pub files: FileSettings,
    /// The variables that commands see, before those that look like secrets are taken out; the process's own if there are none.
    pub environment: BTreeMap<OsString, OsString>,
}

/// The model a run asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// Its id, or the name of a family.
    pub name: String,
    /// Whether a flag named it: then it also wins over the model of a script.
    pub by_flag: bool,
}

impl RunConfig {
    /// Adds the flags to what the environment says, where there are no settings files.
    pub fn new(settings: Settings, flags: &Flags, place: &ProcessContext) -> Result<Self, ConfigError> {
        Self::with_files(settings, flags, place, FileSettings::default())
    }

    /// Adds the flags and the settings files to what the environment says.
    pub fn with_files(
        mut settings: Settings,
        flags: &Flags,
        place: &ProcessContext,
        files: FileSettings,
    ) -> Result<Self, ConfigError> {
        let mut granted = permissions(&settings, flags, &files, place)?;
        let model = choice::model(&settings, flags, &files)?;
        let fallbacks = choice::fallbacks(flags, &files, &mut granted.warnings)?;
        check_client_certificate(&settings)?;
        let named = flags.add_directories.iter().map(|path| directory(path, place));
        let mut added_directories = named.collect::<Result<Vec<_>, _>>()?;
        added_directories.extend(granted.directories);
        let scripted_hooks = match &settings.scripted_hooks {
            Some(path) => hooks::read(path, &place.cwd)?,
            None => BTreeMap::new(),
        };
        let home = Home::new(&settings.home, place);
        let memory = memory::load(&settings.memory, place, &home.user_directories);
        settings.run.thinking = flags::thinking_wish(&settings, flags)?;
        settings.run.effort = flags::effort(&settings, flags)?;
        settings.run.turns_max = flags.turns_max;
        settings.run.budget_usd = flags::budget_usd(flags)?;
        settings.run.task_budget = flags::task_budget(flags)?;
        if let Some(text) = &flags.autocompact {
            settings.run.context.window_tokens = flags::window(text)?;
        }
        settings.run.memory = memory.notes.into();
        Ok(Self {
            model,
            fallbacks,
            json_schema: json_schema(flags)?,
            scripted_hooks,
            warnings: memory.warnings.into_iter().chain(granted.warnings).collect(),
            lost_rules: granted.lost_rules,
            run_warnings: granted.run_warnings,
            permissions: granted.permissions,
            system_prompt: prompt("--system-prompt-file", flags.system_prompt.as_ref(), place)?,
            append_system_prompt: prompt(
                "--append-system-prompt-file",
                flags.append_system_prompt.as_ref(),
                place,
            )?,
            cwd: place.cwd.clone(),
            home,
            added_directories,
            settings,
            files,
            environment: BTreeMap::new(),
        })
    }

    /// What the user should know about files: the warnings, and the rules that are ignored.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        let lost = |error: &RuleError| format!("{error}. The rule is ignored.");
        self.warnings.iter().cloned().chain(self.lost_rules.iter().map(lost))
    }
}

/// A certificate is of no use without its key, nor the other way round.
fn check_client_certificate(settings: &Settings) -> Result<(), ConfigError> {
    let (name, needs) = match (&settings.api.client_certificate, &settings.api.client_key) {
        (Some(_), None) => ("CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY"),
        (None, Some(_)) => ("CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_CERT"),
        _ => return Ok(()),
    };
    Err(ConfigError::Variable(format!("{name} is set but {needs} is not. Set both or none.")))
}

/// The schema as it was written: the model reads it in this form. Whether it is one is for whoever checks answers.
fn json_schema(flags: &Flags) -> Result<Option<Arc<RawValue>>, ConfigError> {
    const FROM_A_FILE: &str = ", or the contents of a file as \"$(cat schema.json)\"";
    let Some(text) = &flags.json_schema else { return Ok(None) };
    let wrong = |problem: String, advice: &str| {
        let accepts = format!("{problem}; give a JSON schema such as {{\"type\":\"object\"}}{advice}");
        ConfigError::flag("--json-schema", &shorten(text, VALUE_CHARS_MAX, "..."), &accepts)
    };
    let raw: Box<RawValue> = serde_json::from_str(text)
        .map_err(|error| wrong(format!("it is not JSON ({error})"), FROM_A_FILE))?;
    if !raw.get().starts_with('{') {
        return Err(wrong("it is not a JSON object".into(), ""));
    }
    Ok(Some(raw.into()))
}

fn directory(path: &Path, place: &ProcessContext) -> Result<PathBuf, ConfigError> {
    let absolute = place.cwd.join(path);
    let problem = match std::fs::metadata(&absolute) {
        Ok(metadata) if metadata.is_dir() => return Ok(absolute),
        Ok(_) => "it is not a directory".to_owned(),
        Err(error) => describe(&error),
    };
    Err(ConfigError::Directory { path: path.to_owned(), problem })
}

fn prompt(
    flag: &str,
    text: Option<&PromptText>,
    place: &ProcessContext,
) -> Result<Option<String>, ConfigError> {
    match text {
        None => Ok(None),
        Some(PromptText::Text(text)) => Ok(Some(text.clone())),
        Some(PromptText::File(path)) => read_text(&place.cwd.join(path)).map(Some).map_err(|problem| {
            let path = path.display();
            ConfigError::Flag(format!("{flag} {path}: {problem}. Give the path of a readable text file."))
        }),
    }
}

/// A text file that a flag or a variable names.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| describe(&error))?;
    let mut bytes = Vec::new();
    file.take(TEXT_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| describe(&error))?;
    if bytes.len() as u64 > TEXT_FILE_BYTES_MAX {
        return Err(format!("it is larger than {TEXT_FILE_BYTES_MAX} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// An error of the system without its number.
fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".into(),
        std::io::ErrorKind::PermissionDenied => "it may not be read".into(),
        std::io::ErrorKind::IsADirectory => "it is a directory".into(),
        _ => error.to_string(),
    }
}
