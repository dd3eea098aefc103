//! The configuration of a run: environment and flags, checked.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_permission::RuleError;
use windlass_protocol::{HookAnswer, HookEvent, RawValue};
use windlass_text::shorten::shorten;

use crate::flags::{self, Flags, PromptText};
use crate::variables::{self, MODEL};
use crate::{ConfigError, FileSettings, Home, Settings, memory};

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
    /// Whether a session is only played again, so that its directories may be gone.
    pub is_replayed: bool,
    /// What the environment and the flags say.
    pub settings: Settings,
    /// The model.
    pub model: ModelChoice,
    /// The models that take over when it is overloaded, in order.
    pub fallbacks: Vec<String>,
    /// The JSON schema of the final answer.
    pub json_schema: Option<Arc<RawValue>>,
    /// Answers that stand in for hooks, by event, given in turn.
    pub scripted_hooks: BTreeMap<HookEvent, VecDeque<HookAnswer>>,
    /// What the user should know about files although the configuration is valid. It stays true from run to run.
    pub warnings: Vec<String>,
    /// Rules in files that allow and are invalid. They are ignored.
    pub lost_rules: Vec<RuleError>,
    /// What the user should know about this run alone.
    pub run_warnings: Vec<String>,
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
    pub is_from_flag: bool,
}

impl RunConfig {
    /// Adds the flags and the settings files to what the environment says.
    pub fn new(
        settings: Settings,
        flags: &Flags,
        place: &ProcessContext,
        files: FileSettings,
    ) -> Result<Self, ConfigError> {
        let mut config = Self { settings, cwd: place.cwd.clone(), ..Self::default() };
        config.set_permissions(flags, &files, place)?;
        config.model = choose_model(&config.settings, flags, &files)?;
        config.fallbacks = choose_fallbacks(flags, &files, &mut config.warnings)?;
        check_client_certificate(&config.settings)?;
        let named = flags.add_directories.iter().map(|path| directory(path, place));
        config.added_directories.splice(0..0, named.collect::<Result<Vec<_>, _>>()?);
        if let Some(path) = &config.settings.scripted_hooks {
            config.scripted_hooks = read_scripted_hooks(path, &place.cwd)?;
        }
        config.home = Home::new(&config.settings.home, place);
        let memory = memory::load(&config.settings.memory, place, &config.home.user_directories);
        config.warnings.splice(0..0, memory.warnings);
        let thinking = flags::thinking_wish(&config.settings, flags)?;
        let run = &mut config.settings.run;
        run.memory = memory.notes.into();
        run.thinking = thinking;
        run.effort = flags::effort(flags)?.or(run.effort);
        run.turns_max = flags.turns_max;
        run.budget_usd = flags::budget_usd(flags)?;
        run.task_budget = flags::task_budget(flags)?;
        if let Some(text) = &flags.autocompact {
            run.context.window_tokens = flags::window(text)?;
        }
        config.json_schema = json_schema(flags)?;
        config.system_prompt = prompt("--system-prompt-file", flags.system_prompt.as_ref(), place)?;
        let appended = flags.append_system_prompt.as_ref();
        config.append_system_prompt = prompt("--append-system-prompt-file", appended, place)?;
        config.files = files;
        Ok(config)
    }

    /// What the user should know about files: the warnings, and the rules that are ignored.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        let lost = |error: &RuleError| format!("{error}. The rule is ignored.");
        self.warnings.iter().cloned().chain(self.lost_rules.iter().map(lost))
    }
}

/// The model where nothing names one.
const DEFAULT_MODEL: &str = "claude-opus-5-5";

fn choose_model(
    settings: &Settings,
    flags: &Flags,
    files: &FileSettings,
) -> Result<ModelChoice, ConfigError> {
    if flags.model.as_deref().is_some_and(|name| name.trim().is_empty()) {
        return Err(ConfigError::flag("--model", "", &format!("give {MODEL}")));
    }
    let named = |name: &Option<String>| {
        name.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned)
    };
    let models = &settings.models;
    let of_flag = named(&flags.model);
    let is_from_flag = of_flag.is_some();
    let chosen = of_flag.or_else(|| named(&models.model)).or_else(|| named(&models.default));
    let name = match chosen {
        Some(name) => check_model(name, files)?,
        None => default_model(files)?,
    };
    Ok(ModelChoice { name, is_from_flag })
}

/// Ours, or the first that may be chosen if ours may not.
fn default_model(files: &FileSettings) -> Result<String, ConfigError> {
    let first = files.available_models.iter().flatten().next();
    match first {
        Some(first) if !files.allows_model(DEFAULT_MODEL) => Ok(first.value.trim().to_owned()),
        _ => check_model(DEFAULT_MODEL.to_owned(), files),
    }
}

fn check_model(name: String, files: &FileSettings) -> Result<String, ConfigError> {
    if files.allows_model(&name) {
        return Ok(name);
    }
    let available = files.available_models.iter().flatten();
    let list: Vec<&str> = available.map(|entry| entry.value.as_str()).collect();
    let choice = if list.is_empty() { "none may be".into() } else { format!("choose {}", list.join(", ")) };
    Err(ConfigError::Unusable(format!(
        "the model {name} may not be chosen here: {choice}. The setting `availableModels` says so; `windlass config show` \
         tells where it stands."
    )))
}

/// The models that take over. One that a settings file names and that may not be chosen is left out.
fn choose_fallbacks(
    flags: &Flags,
    files: &FileSettings,
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, ConfigError> {
    let Some(text) = &flags.fallback_models else {
        let (allowed, others): (Vec<_>, Vec<_>) =
            files.fallback_models.iter().partition(|model| files.allows_model(&model.value));
        warnings.extend(others.into_iter().map(|model| {
            let (name, origin) = (&model.value, &model.origin);
            format!("{origin}: {name} does not take over: `availableModels` does not have it.")
        }));
        return Ok(allowed.into_iter().map(|model| model.value.clone()).collect());
    };
    let names = variables::list(text);
    if names.is_empty() {
        let accepts = "give one or more models, separated by commas";
        return Err(ConfigError::flag("--fallback-model", "", accepts));
    }
    names.into_iter().map(|name| check_model(name, files)).collect()
}

/// A certificate is of no use without its key, nor the other way round.
fn check_client_certificate(settings: &Settings) -> Result<(), ConfigError> {
    let (name, needs) = match (&settings.api.client_certificate, &settings.api.client_key) {
        (Some(_), None) => ("CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY"),
        (None, Some(_)) => ("CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_CERT"),
        _ => return Ok(()),
    };
    Err(ConfigError::Unusable(format!("{name} is set but {needs} is not. Set both or none.")))
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
        Some(PromptText::File(path)) => read_named(&place.cwd.join(path)).map(Some).map_err(|problem| {
            let path = path.display();
            ConfigError::Unusable(format!("{flag} {path}: {problem}. Give the path of a readable text file."))
        }),
    }
}

/// A text file that a flag or a variable names.
fn read_named(path: &Path) -> Result<String, String> {
    read_text(path, TEXT_FILE_BYTES_MAX, &format!("{TEXT_FILE_BYTES_MAX} bytes"), describe)
}

/// The text of a file up to a size, which `size` tells to people.
pub(crate) fn read_text(
    path: &Path,
    bytes_max: u64,
    size: &str,
    describe: impl Fn(&std::io::Error) -> String,
) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| describe(&error))?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| describe(&error))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("it is larger than {size}"));
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

/// The answers of each event, in the order in which they are given. After the last there is nothing more to say.
fn read_scripted_hooks(
    path: &Path,
    cwd: &Path,
) -> Result<BTreeMap<HookEvent, VecDeque<HookAnswer>>, ConfigError> {
    let parsed = read_named(&cwd.join(path)).and_then(|text| parse_scripted_hooks(&text));
    parsed.map_err(|problem| {
        let path = path.display();
        let advice = "`docs/environment.md` shows the format.";
        ConfigError::Unusable(format!("WINDLASS_SCRIPTED_HOOKS={path}: {problem}. {advice}"))
    })
}

fn parse_scripted_hooks(text: &str) -> Result<BTreeMap<HookEvent, VecDeque<HookAnswer>>, String> {
    let lists: BTreeMap<String, VecDeque<HookAnswer>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let list = |(name, answers): (String, VecDeque<HookAnswer>)| {
        let event = HookEvent::from_name(&name).ok_or_else(|| {
            let known = HookEvent::ALL.map(HookEvent::name).join(", ");
            format!("there is no event {name}; the events are {known}")
        })?;
        Ok((event, answers))
    };
    lists.into_iter().map(list).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let seen = match parse_scripted_hooks(text) {
            Ok(answers) => format!("{answers:?}"),
            Err(problem) => problem,
        };
        assert!(seen.contains(expected), "{expected} is not in {seen}");
    }

    #[test]
    fn every_field_of_an_answer_can_be_given() {
        check(r#"{"Stop": [{"blocks": ["b"]}, {"stop": "s"}]}"#, r#"stop: None, blocks: ["b"]"#);
        check(r#"{"Stop": [{"blocks": ["b"]}, {"stop": "s"}]}"#, r#"stop: Some("s"), blocks: []"#);
        check(r#"{"PreToolUse": [{"permission": "defer"}]}"#, "permission: Some(Defer)");
        check(r#"{"PreToolUse": [{"permission": "allow"}]}"#, "permission: Some(Allow)");
        check(r#"{"PreToolUse": [{"permission": {"deny": "no"}}]}"#, r#"Some(Deny("no"))"#);
        check(r#"{"PreToolUse": [{"permission": {"ask": "eh"}}]}"#, r#"Some(Ask("eh"))"#);
        check(r#"{"PreToolUse": [{"input": {"b": 1, "a": 2}}]}"#, r#"{"b": 1, "a": 2}"#);
        check(
            r#"{"PostToolUse": [{"context": ["c"], "notices": ["n"]}]}"#,
            r#"context: ["c"], notices: ["n"]"#,
        );
        check("{}", "{}");
    }

    #[test]
    fn what_is_no_answer_is_named() {
        check("[]", "invalid type");
        check(r#"{"Start": []}"#, "there is no event Start; the events are SessionStart,");
        check(r#"{"Stop": [{"block": ["b"]}]}"#, "unknown field `block`");
        check(r#"{"PreToolUse": [{"permission": "maybe"}]}"#, "unknown variant `maybe`");
    }
}
