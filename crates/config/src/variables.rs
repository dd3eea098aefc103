//! The environment variables, one row each: name, meaning and how it is read stand together, and the page
//! in the documentation is made from the rows.

use std::fmt;

use windlass_core::EarlyStart;

use crate::Settings;
use crate::parse::{headers, list, number, path, secret, switch};

/// What a variable is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Reaching the provider.
    Provider,
    /// Choosing the model.
    Model,
    /// Limits of a run.
    Run,
    /// Running commands.
    Commands,
    /// Reading and finding files.
    Files,
}

impl Area {
    /// Every area, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::Provider, Self::Model, Self::Run, Self::Commands, Self::Files];

    /// The heading in the documentation.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Provider => "Reaching the provider",
            Self::Model => "Choosing the model",
            Self::Run => "Limits of a run",
            Self::Commands => "Running commands",
            Self::Files => "Reading and finding files",
        }
    }
}

/// One environment variable.
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub area: Area,
    /// Which values are understood; fits after "it must be".
    pub accepts: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Whether its value must not be shown.
    pub secret: bool,
    /// Puts a value in its place; `None` if it is not understood.
    pub(crate) set: fn(&mut Settings, &str) -> Option<()>,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const TEXT: &str = "text";
const ON_OFF: &str = "1, true, yes or on, or 0, false, no or off";
const PEM: &str = "the path of a PEM file";
/// What names a model.
pub(crate) const MODEL: &str = "the id of a model, or opus, sonnet, haiku or fable";
const MILLISECONDS: &str = "a whole number of milliseconds from 1 on";
const MILLISECONDS_MAX: u64 = 1 << 40;

/// A row of the table: area, name, what it accepts, its default, its meaning, and how it is read.
macro_rules! row {
    ($area:ident $name:literal, $($rest:tt)*) => { row!(@ $area $name false, $($rest)*) };
    ($area:ident $name:literal secret, $($rest:tt)*) => { row!(@ $area $name true, $($rest)*) };
    (@ $area:ident $name:literal $secret:literal, $accepts:expr, $default:literal, $meaning:literal,
        |$settings:ident, $text:ident| $set:expr) => {
        Variable {
            name: $name,
            area: Area::$area,
            accepts: $accepts,
            default: $default,
            meaning: $meaning,
            secret: $secret,
            set: |$settings, $text| {
                $set;
                Some(())
            },
        }
    };
}

/// Every variable that is read.
pub const VARIABLES: &[Variable] = &[
    row!(Provider "ANTHROPIC_API_KEY" secret, "a key of printable characters", "none",
        "The key, sent as `x-api-key`. It wins over `ANTHROPIC_AUTH_TOKEN`.",
        |settings, text| settings.api.key = Some(secret(text)?)),
    row!(Provider "ANTHROPIC_AUTH_TOKEN" secret, "a token of printable characters", "none",
        "A token, sent as `authorization: Bearer`; not sent when `ANTHROPIC_API_KEY` is set.",
        |settings, text| settings.api.token = Some(secret(text)?)),
    row!(Provider "ANTHROPIC_BASE_URL" secret, "an address such as http://127.0.0.1:8080", "`https://api.anthropic.com`",
        "Where requests go: a gateway, or a local server that speaks the Messages API.",
        |settings, text| settings.api.base_url = Some(secret(text)?)),
    row!(Provider "ANTHROPIC_CUSTOM_HEADERS" secret, "lines of the form Name: value", "none",
        "Headers added to every request, one per line.",
        |settings, text| settings.api.headers = headers(text)?),
    row!(Provider "ANTHROPIC_BETAS", "names separated by commas", "none",
        "Beta features asked for in every request.",
        |settings, text| settings.api.betas = list(text)),
    row!(Provider "CLAUDE_CODE_CLIENT_CERT", PEM, "none",
        "The certificate shown to the server; needs `CLAUDE_CODE_CLIENT_KEY`.",
        |settings, text| settings.api.client_certificate = Some(path(text))),
    row!(Provider "CLAUDE_CODE_CLIENT_KEY", PEM, "none",
        "The private key of that certificate.",
        |settings, text| settings.api.client_key = Some(path(text))),
    row!(Provider "NODE_EXTRA_CA_CERTS", PEM, "none",
        "Authorities trusted beside the usual ones.",
        |settings, text| settings.api.extra_authorities = Some(path(text))),
    row!(Provider "CLAUDE_STREAM_IDLE_TIMEOUT_MS",
        "a whole number of milliseconds; 0 turns it off", "90 s without a byte, 300 s without an event",
        "How long a response may be silent before the request is given up and sent again. Sets both limits.",
        |settings, text| settings.api.silence_ms = Some(number(text, 0, MILLISECONDS_MAX)?)),
    row!(Provider "DISABLE_PROMPT_CACHING", ON_OFF, "off",
        "Sends requests without cache breakpoints.",
        |settings, text| settings.api.prompt_caching = !switch(text)?),
    row!(Model "ANTHROPIC_MODEL", MODEL, "none",
        "The model, unless `--model` names one.",
        |settings, text| settings.models.model = Some(text.trim().into())),
    row!(Model "ANTHROPIC_DEFAULT_MODEL", MODEL, "`claude-opus-5-5`",
        "The model where neither `--model` nor `ANTHROPIC_MODEL` names one.",
        |settings, text| settings.models.default = Some(text.trim().into())),
    row!(Model "ANTHROPIC_DEFAULT_OPUS_MODEL", TEXT, "the newest known",
        "The model that `opus` stands for.",
        |settings, text| settings.models.families.insert("opus", text.trim().into())),
    row!(Model "ANTHROPIC_DEFAULT_SONNET_MODEL", TEXT, "the newest known",
        "The model that `sonnet` stands for.",
        |settings, text| settings.models.families.insert("sonnet", text.trim().into())),
    row!(Model "ANTHROPIC_DEFAULT_HAIKU_MODEL", TEXT, "the newest known",
        "The model that `haiku` stands for.",
        |settings, text| settings.models.families.insert("haiku", text.trim().into())),
    row!(Model "ANTHROPIC_DEFAULT_FABLE_MODEL", TEXT, "the newest known",
        "The model that `fable` stands for.",
        |settings, text| settings.models.families.insert("fable", text.trim().into())),
    row!(Model "CLAUDE_CODE_MAX_CONTEXT_TOKENS", "a whole number of tokens from 1000 on", "the model's own",
        "The context window. It wins over what is known about the model, so set it for a model that is not known.",
        |settings, text| settings.models.window_tokens = Some(number(text, 1000, u64::MAX)?)),
    row!(Model "WINDLASS_SCRIPT", "the path of a script", "none",
        "A script that stands in for a model, in the format of `docs/script-format.md`. Needs no key.",
        |settings, text| settings.models.script = Some(path(text))),
    row!(Run "CLAUDE_CODE_MAX_RETRIES", "a whole number; more than 15 counts as 15", "10",
        "How often one request is sent again after a failure that may pass.",
        |settings, text| settings.limits.retries_max = number(text, 0, u32::MAX)?.min(15)),
    row!(Run "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "a whole number of tokens from 1 on", "32000, or what the model allows if that is less",
        "The cap on output tokens of one response; never more than the model allows.",
        |settings, text| settings.limits.output_tokens_max = Some(number(text, 1, u32::MAX)?)),
    row!(Run "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", "a whole number from 1 to 1000", "10",
        "How many shared calls run at once.",
        |settings, text| settings.limits.shared_calls_max = number(text, 1, 1000)?),
    row!(Run "WINDLASS_EARLY_START", "all, read-only or off", "all",
        "Which calls may start while the model still talks.",
        |settings, text| settings.limits.early_start = early_start(text)?),
    row!(Run "IS_SANDBOX", ON_OFF, "off",
        "Says that the process is confined from outside, so that the root user may use `bypassPermissions`.",
        |settings, text| settings.in_sandbox = switch(text)?),
    row!(Commands "BASH_DEFAULT_TIMEOUT_MS", MILLISECONDS, "120000",
        "How long a command may take that does not ask for a time.",
        |settings, text| settings.shell.timeout_ms = number(text, 1, MILLISECONDS_MAX)?),
    row!(Commands "BASH_MAX_TIMEOUT_MS", MILLISECONDS, "600000",
        "The longest time a command may ask for; at least `BASH_DEFAULT_TIMEOUT_MS`.",
        |settings, text| settings.shell.timeout_ms_max = number(text, 1, MILLISECONDS_MAX)?),
    row!(Commands "BASH_MAX_OUTPUT_LENGTH",
        "a whole number of characters from 1 on; more than 150000 counts as 150000", "30000",
        "How much output a result holds; the rest stays in a file.",
        |settings, text| settings.shell.output_chars_max = number(text, 1, usize::MAX)?.min(150_000)),
    row!(Commands "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", ON_OFF, "off",
        "Starts every command in the project's directory; `cd` does not last.",
        |settings, text| settings.shell.keep_directory = switch(text)?),
    row!(Commands "CLAUDE_ENV_FILE", "the path of a shell script", "none",
        "A script that is sourced before each command, if it exists.",
        |settings, text| settings.shell.environment_file = Some(path(text))),
    row!(Commands "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", ON_OFF, "off",
        "No command goes on in the background; one that takes too long is ended.",
        |settings, text| settings.shell.background = !switch(text)?),
    row!(Commands "WINDLASS_ENV_PASS", "names separated by commas", "none",
        "Variables that commands get although their names look like secrets.",
        |settings, text| settings.shell.pass = list(text)),
    row!(Files "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "a whole number of tokens from 1 on", "25000",
        "How much one Read returns, roughly.",
        |settings, text| settings.files.read_tokens_max = number(text, 1, usize::MAX)?),
    row!(Files "CLAUDE_CODE_GLOB_NO_IGNORE", ON_OFF, "on",
        "Glob also finds what `.gitignore` names.",
        |settings, text| settings.files.glob_ignore = !switch(text)?),
    row!(Files "CLAUDE_CODE_GLOB_HIDDEN", ON_OFF, "on",
        "Glob also finds hidden files.",
        |settings, text| settings.files.glob_hidden = switch(text)?),
    row!(Files "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS", "a whole number of seconds from 1 on", "20",
        "How long one Glob may take.",
        |settings, text| settings.files.glob_timeout_s = number(text, 1, 1 << 30)?),
];

fn early_start(text: &str) -> Option<EarlyStart> {
    match text.trim().to_ascii_lowercase().as_str() {
        "all" => Some(EarlyStart::All),
        "read-only" => Some(EarlyStart::ReadOnly),
        "off" => Some(EarlyStart::Off),
        _ => None,
    }
}
