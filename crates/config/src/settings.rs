//! What the environment says, by topic.

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
    pub in_sandbox: bool,
}

/// How the model's provider is reached.
#[derive(Clone, Debug)]
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
    /// Whether cache breakpoints are sent.
    pub prompt_caching: bool,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            key: None,
            token: None,
            base_url: None,
            headers: Vec::new(),
            betas: Vec::new(),
            client_certificate: None,
            client_key: None,
            extra_authorities: None,
            silence_ms: None,
            prompt_caching: true,
        }
    }
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
    pub tool_use_summaries: Option<bool>,
    /// Whether the small model says after a run what the user may want next, where it was stated.
    pub prompt_suggestions: Option<bool>,
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
            tool_use_summaries: None,
            prompt_suggestions: None,
            thinking_tokens: None,
            schema_retries_max: 5,
        }
    }
}

/// What is remembered for every prompt.
#[derive(Clone, Debug)]
pub struct MemorySettings {
    /// Whether memory files are read.
    pub files: bool,
    /// Whose files are read; the administrator's always are.
    pub sources: SettingSources,
    /// Patterns of files that are not read; the administrator's are read all the same.
    pub excludes: Vec<String>,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { files: true, sources: SettingSources::default(), excludes: Vec::new() }
    }
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
    pub no_checkpoints: bool,
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
    pub keep_directory: bool,
    /// A script that is sourced before each command, if it exists.
    pub environment_file: Option<PathBuf>,
    /// Whether commands may go on in the background.
    pub background: bool,
    /// Variables that commands see although they look like secrets.
    pub pass: Vec<String>,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            timeout_ms: 120_000,
            timeout_ms_max: 600_000,
            output_chars_max: 30_000,
            keep_directory: false,
            environment_file: None,
            background: true,
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
    pub glob_ignore: bool,
    /// Whether Glob shows hidden files.
    pub glob_hidden: bool,
    /// How long one Glob may take.
    pub glob_timeout_s: u64,
}

impl Default for FileToolSettings {
    fn default() -> Self {
        Self { read_tokens_max: 25_000, glob_ignore: false, glob_hidden: true, glob_timeout_s: 20 }
    }
}

impl Settings {
    /// Reads a snapshot of the environment. A variable that is empty counts as unset.
    pub fn from_environment(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let environment: BTreeMap<OsString, OsString> = variables.into_iter().collect();
        let mut settings = Self::default();
        for variable in VARIABLES {
            let value = match environment.get(std::ffi::OsStr::new(variable.name)) {
                Some(value) if !value.is_empty() => value,
                _ => continue,
            };
            let understood = value.to_str().and_then(|text| (variable.set)(&mut settings, text));
            if understood.is_none() {
                let value =
                    if variable.secret { "(hidden)".into() } else { value.to_string_lossy().into_owned() };
                return Err(ConfigError::Variable { name: variable.name, value, accepts: variable.accepts });
            }
        }
        Ok(settings)
    }
}
