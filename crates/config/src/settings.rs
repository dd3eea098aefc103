//! What the environment says, by topic, and what of it must not be seen anywhere.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use windlass_protocol::{Secret, SyncPolicy};

use crate::variables::VARIABLES;
use crate::{ConfigError, SettingSources};

/// Everything the environment can set. Fields hold the default where it sets nothing.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How the model's provider is reached.
    pub api: ApiSettings,
    /// Which model is asked.
    pub models: ModelSettings,
    /// Limits and policies, in the form in which the engine takes them.
    pub run: windlass_core::Config,
    /// What is remembered for every prompt.
    pub memory: MemorySettings,
    /// Where sessions are kept, and who started us.
    pub home: HomeSettings,
    /// Answers that stand in for hooks.
    pub scripted_hooks: Option<PathBuf>,
    /// How long hooks at the end of a session may take together; nothing if their own configuration says it.
    pub session_end_ms: Option<u64>,
    /// How commands run.
    pub shell: ShellSettings,
    /// How files are read and found.
    pub files: FileToolSettings,
    /// Whether the process runs in a sandbox that confines even the root user.
    pub is_in_sandbox: bool,
}

/// How the model's provider is reached.
#[derive(Clone, Debug, Default)]
pub struct ApiSettings {
    /// The key, sent as `x-api-key`.
    pub key: Option<Secret>,
    /// The token, sent as `authorization: Bearer`.
    pub token: Option<Secret>,
    /// Another address than the provider's own. It may hold a password, so it is not shown.
    pub base_url: Option<Secret>,
    /// Headers added to every request.
    pub headers: Vec<(String, Secret)>,
    /// Beta features asked for.
    pub betas: Vec<String>,
    /// Certificate of the client, a PEM file.
    pub client_certificate: Option<PathBuf>,
    /// Its private key, a PEM file.
    pub client_key: Option<PathBuf>,
    /// Certificates of authorities trusted beside the usual ones, a PEM file.
    pub extra_authorities: Option<PathBuf>,
    /// How long a stream may be silent: both watchdogs. `None` keeps their defaults, 0 turns them off.
    pub silence_ms: Option<u64>,
    /// Whether no cache breakpoints are sent.
    pub is_prompt_caching_off: bool,
}

/// Which model is asked.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    /// The model, unless a flag names one.
    pub model: Option<String>,
    /// The model where nothing else names one.
    pub default: Option<String>,
    /// What the names of model families stand for, where it was stated.
    pub families: BTreeMap<&'static str, String>,
    /// A script that stands in for a model.
    pub script: Option<PathBuf>,
    /// The context window, where it was stated.
    pub window_tokens: Option<u64>,
    /// The model for summaries in the background, where it was stated.
    pub small: Option<String>,
    /// Whether the small model says what the calls of a response did, where it was stated.
    pub has_tool_use_summaries: Option<bool>,
    /// Whether the small model says after a run what the user may want next, where it was stated.
    pub has_prompt_suggestions: Option<bool>,
    /// How many tokens the model may think, unless a flag says it; 0 for not at all.
    pub thinking_tokens: Option<u32>,
    /// How often the model may try again when its answer does not match a schema.
    pub schema_retries_max: u32,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            model: None,
            default: None,
            families: BTreeMap::new(),
            script: None,
            window_tokens: None,
            small: None,
            has_tool_use_summaries: None,
            has_prompt_suggestions: None,
            thinking_tokens: None,
            schema_retries_max: 5,
        }
    }
}

/// What is remembered for every prompt.
#[derive(Clone, Debug, Default)]
pub struct MemorySettings {
    /// Whether memory files are not read.
    pub is_off: bool,
    /// Whose files are read; the administrator's always are.
    pub sources: SettingSources,
    /// Patterns of files that are not read; the administrator's are read all the same.
    pub excludes: Vec<String>,
}

/// Where sessions are kept, and who started us.
#[derive(Clone, Debug, Default)]
pub struct HomeSettings {
    /// The directory, where it was stated for us.
    pub own: Option<PathBuf>,
    /// The directory that is shared with the reference and with SDKs, where it was stated.
    pub shared: Option<PathBuf>,
    /// What started the process, where it was stated.
    pub entrypoint: Option<String>,
    /// The version of the SDK that started the process.
    pub sdk_version: Option<String>,
    /// When the log waits for the disk.
    pub sync: SyncPolicy,
    /// Whether the former content of files that calls may change is not kept.
    pub is_without_checkpoints: bool,
}

/// How commands run.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    /// How long a command may take that does not say.
    pub timeout_ms: u64,
    /// How long a command may take at most; a longer `timeout_ms` wins.
    pub timeout_ms_max: u64,
    /// How many characters of output a result holds.
    pub output_chars_max: usize,
    /// Whether every command starts in the project's directory again.
    pub should_keep_directory: bool,
    /// A script that is sourced before each command, if it exists.
    pub environment_file: Option<PathBuf>,
    /// Whether commands may go on in the background.
    pub can_run_in_background: bool,
    /// Variables that commands see although they look like secrets.
    pub pass: Vec<String>,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            timeout_ms: 120_000,
            timeout_ms_max: 600_000,
            output_chars_max: 30_000,
            should_keep_directory: false,
            environment_file: None,
            can_run_in_background: true,
            pass: Vec::new(),
        }
    }
}

/// How files are read and found.
#[derive(Clone, Debug)]
pub struct FileToolSettings {
    /// How many tokens one Read may return, roughly.
    pub read_tokens_max: usize,
    /// Whether Glob leaves out what `.gitignore` names.
    pub should_glob_ignore: bool,
    /// Whether Glob shows hidden files.
    pub should_glob_hidden: bool,
    /// How long one Glob may take.
    pub glob_timeout_s: u64,
}

impl Default for FileToolSettings {
    fn default() -> Self {
        Self {
            read_tokens_max: 25_000,
            should_glob_ignore: false,
            should_glob_hidden: true,
            glob_timeout_s: 20,
        }
    }
}

impl Settings {
    /// Reads a snapshot of the environment. A variable that is empty counts as unset.
    pub fn from_environment(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        Self::read(&variables.into_iter().collect(), |_| None)
    }

    /// The same; `origin` says where a variable stands that a settings file has set.
    pub(crate) fn read(
        environment: &BTreeMap<OsString, OsString>,
        origin: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::default();
        for variable in VARIABLES {
            let value = match environment.get(std::ffi::OsStr::new(variable.name)) {
                Some(value) if !value.is_empty() => value,
                _ => continue,
            };
            let understood = value.to_str().and_then(|text| (variable.set)(&mut settings, text));
            if understood.is_none() {
                let value = if variable.is_secret { "(hidden)".into() } else { value.to_string_lossy() };
                let (place, cure) = match origin(variable.name) {
                    Some(origin) => (format!("{origin}: "), "remove it there"),
                    None => (String::new(), "unset the variable"),
                };
                return Err(ConfigError::Unusable(format!(
                    "{place}{}={value} is not understood: it must be {}. Correct or {cure}.",
                    variable.name, variable.accepts
                )));
            }
        }
        Ok(settings)
    }
}

/// Headers whose names hold one of these carry a secret. Others may say a team's name, which is in every second file.
const TELLING: &[&str] = &["authorization", "key", "token", "secret", "password", "cookie", "credential"];

impl ApiSettings {
    /// The secrets that are sent to the provider: whatever prints or keeps text hides these first.
    pub fn secrets(&self) -> Vec<&str> {
        let keys = [&self.key, &self.token].into_iter().flatten().map(Secret::reveal);
        let headers = self.headers.iter().filter(|(name, _)| is_telling(name));
        let headers = headers.map(|(_, value)| without_scheme(value.reveal()));
        let password = self.base_url.as_ref().and_then(|url| password(url.reveal()));
        keys.chain(headers).chain(password).collect()
    }
}

/// Whether what has this name is a secret.
pub(crate) fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|part| name.contains(part))
}

/// `Bearer x` hides `x`.
fn without_scheme(value: &str) -> &str {
    let value = value.trim();
    match value.split_once(' ') {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => rest.trim(),
        _ => value,
    }
}

fn password(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use windlass_protocol::Secret;

    use super::*;

    #[test]
    fn what_is_sent_to_the_provider_is_secret() {
        let header = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        let api = ApiSettings {
            key: Some(Secret::new("key")),
            token: Some(Secret::new("token")),
            base_url: Some(Secret::new("https://me:in:the@way@host/a@b")),
            headers: vec![
                header("Authorization", "Bearer bearer"),
                header("X-Api-Key", "header-key"),
                header("Cookie", "a=1; b=2"),
                header("X-Team", "engineering"),
            ],
            ..ApiSettings::default()
        };
        assert_eq!(api.secrets(), ["key", "token", "bearer", "header-key", "a=1; b=2", "in:the@way"]);
        assert_eq!(ApiSettings::default().secrets(), Vec::<&str>::new());
    }
}
