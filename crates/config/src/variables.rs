//! The environment variables, one row each; the page in the documentation is made from the rows.

use windlass_core::{CompactionPolicy, EarlyStart};
use windlass_protocol::{Effort, Secret, SyncPolicy};

use crate::Settings;

// What variables are about: the headings of the documentation.
pub(crate) const PROVIDER: &str = "Reaching the provider";
const MODELS: &str = "Choosing the model";
const RUN: &str = "Limits of a run";
const RETRY: &str = "Sending a request again";
const CONTEXT: &str = "Keeping the context small";
const MEMORY: &str = "Memory files";
pub(crate) const SESSIONS: &str = "Keeping sessions";
const COMMANDS: &str = "Running commands";
const FILES: &str = "Reading and finding files";

/// One environment variable.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it is about; those of one area stand together.
    pub area: &'static str,
    /// Which values are understood; fits after "it must be".
    pub accepts: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Whether its value must not be shown.
    pub is_secret: bool,
    /// Puts a value in its place; `None` if it is not understood.
    pub(crate) set: fn(&mut Settings, &str) -> Option<()>,
}

const TEXT: &str = "text";
const ON_OFF: &str = "1, true, yes or on, or 0, false, no or off";
const DIRECTORY: &str = "the path of a directory";
const PEM: &str = "the path of a PEM file";
pub(crate) const MODEL: &str = "the id of a model, or opus, sonnet, haiku or fable";
const MILLISECONDS: &str = "a whole number of milliseconds from 1 on";
const MILLISECONDS_MAX: u64 = 1 << 40;
const PAUSE: &str = "a whole number of milliseconds";
const COUNT: &str = "a whole number";
const COUNT_FROM_1: &str = "a whole number from 1 on";
const TOKENS: &str = "a whole number of tokens";
const TOKENS_FROM_1: &str = "a whole number of tokens from 1 on";
const CHARACTERS_FROM_1: &str = "a whole number of characters from 1 on";
const PERCENT: &str = "a whole number from 1 to 100";

/// A row of the table: area, name, what it accepts, its default, its meaning, and how it is read.
macro_rules! row {
    ($area:ident $name:literal, $($rest:tt)*) => { row!(@ $area $name false, $($rest)*) };
    ($area:ident $name:literal secret, $($rest:tt)*) => { row!(@ $area $name true, $($rest)*) };
    (@ $area:ident $name:literal $secret:literal, $accepts:expr, $default:literal, $meaning:literal,
        |$settings:ident, $text:ident| $set:expr) => {
        Variable {
            name: $name,
            area: $area,
            accepts: $accepts,
            default: $default,
            meaning: $meaning,
            is_secret: $secret,
            set: |$settings, $text| {
                $set;
                Some(())
            },
        }
    };
}

/// Every variable that is read.
pub static VARIABLES: &[Variable] = &[
    row!(PROVIDER "ANTHROPIC_API_KEY" secret, "a key of printable characters", "none",
        "The API key, sent as `x-api-key`. It takes precedence over `ANTHROPIC_AUTH_TOKEN`.",
        |settings, text| settings.api.key = Some(secret(text)?)),
    row!(PROVIDER "ANTHROPIC_AUTH_TOKEN" secret, "a token of printable characters", "none",
        "A token, sent as `authorization: Bearer` unless `ANTHROPIC_API_KEY` is set.",
        |settings, text| settings.api.token = Some(secret(text)?)),
    row!(PROVIDER "ANTHROPIC_BASE_URL" secret, "an address such as http://127.0.0.1:8080", "`https://api.anthropic.com`",
        "Where requests go: a gateway, or a local server that speaks the Messages API.",
        |settings, text| settings.api.base_url = Some(secret(text)?)),
    row!(PROVIDER "ANTHROPIC_CUSTOM_HEADERS" secret, "lines of the form Name: value", "none",
        "Headers added to every request, one per line.",
        |settings, text| settings.api.headers = headers(text)?),
    row!(PROVIDER "ANTHROPIC_BETAS", "names separated by commas", "none",
        "Beta features asked for in every request.",
        |settings, text| settings.api.betas = list(text)),
    row!(PROVIDER "CLAUDE_CODE_CLIENT_CERT", PEM, "none",
        "The certificate shown to the server; needs `CLAUDE_CODE_CLIENT_KEY`.",
        |settings, text| settings.api.client_certificate = Some(text.into())),
    row!(PROVIDER "CLAUDE_CODE_CLIENT_KEY", PEM, "none",
        "The private key of that certificate.",
        |settings, text| settings.api.client_key = Some(text.into())),
    row!(PROVIDER "NODE_EXTRA_CA_CERTS", PEM, "none",
        "Additional certificate authorities to trust.",
        |settings, text| settings.api.extra_authorities = Some(text.into())),
    row!(PROVIDER "CLAUDE_STREAM_IDLE_TIMEOUT_MS",
        "a whole number of milliseconds; 0 turns it off", "90 s without a byte, 300 s without an event",
        "How long a response may be silent before the request is sent again. Sets both limits.",
        |settings, text| settings.api.silence_ms = Some(number(text, 0, MILLISECONDS_MAX)?)),
    row!(PROVIDER "DISABLE_PROMPT_CACHING", ON_OFF, "off",
        "Sends requests without cache breakpoints.",
        |settings, text| settings.api.is_prompt_caching_off = switch(text)?),
    row!(MODELS "ANTHROPIC_MODEL", MODEL, "none",
        "The model, unless `--model` names one.",
        |settings, text| settings.models.model = Some(text.trim().into())),
    row!(MODELS "ANTHROPIC_DEFAULT_MODEL", MODEL, "`claude-opus-5-5`",
        "The model if neither `--model` nor `ANTHROPIC_MODEL` names one.",
        |settings, text| settings.models.default = Some(text.trim().into())),
    row!(MODELS "ANTHROPIC_DEFAULT_OPUS_MODEL", TEXT, "the newest known",
        "The model that `opus` stands for.",
        |settings, text| settings.models.families.insert("opus", text.trim().into())),
    row!(MODELS "ANTHROPIC_DEFAULT_SONNET_MODEL", TEXT, "the newest known",
        "The model that `sonnet` stands for.",
        |settings, text| settings.models.families.insert("sonnet", text.trim().into())),
    row!(MODELS "ANTHROPIC_DEFAULT_HAIKU_MODEL", TEXT, "the newest known",
        "The model that `haiku` stands for.",
        |settings, text| settings.models.families.insert("haiku", text.trim().into())),
    row!(MODELS "ANTHROPIC_DEFAULT_FABLE_MODEL", TEXT, "the newest known",
        "The model that `fable` stands for.",
        |settings, text| settings.models.families.insert("fable", text.trim().into())),
    row!(MODELS "CLAUDE_CODE_MAX_CONTEXT_TOKENS", TOKENS_FROM_1, "the model's own",
        "The context window. It overrides the built-in value, so set it for an unknown model.",
        |settings, text| settings.models.window_tokens = Some(number(text, 1, u64::MAX)?)),
    row!(MODELS "ANTHROPIC_SMALL_FAST_MODEL", MODEL, "`haiku`",
        "The small model that writes summaries in the background.",
        |settings, text| settings.models.small = Some(text.trim().into())),
    row!(MODELS "CLAUDE_CODE_EFFORT_LEVEL", "low, medium, high, xhigh, max or auto", "auto: the model's own",
    "How hard the model tries, unless `--effort` is given.",
    |settings, text| if !text.trim().eq_ignore_ascii_case("auto") {
        settings.run.effort = Some(Effort::from_name(&text.trim().to_ascii_lowercase())?);
    }),
    row!(MODELS "MAX_THINKING_TOKENS", "a whole number of tokens; 0 turns thinking off",
        "as the model sees fit, or half of the output limit for models that need a number",
        "How much the model may think, unless `--thinking` or `--max-thinking-tokens` is given.",
        |settings, text| settings.models.thinking_tokens = Some(number(text, 0, u32::MAX)?)),
    row!(MODELS "WINDLASS_SCRIPT", "the path of a script", "none",
        "A script of model responses, in the format of `docs/script-format.md`. Needs no API key.",
        |settings, text| settings.models.script = Some(text.into())),
    row!(RUN "CLAUDE_CODE_MAX_OUTPUT_TOKENS", TOKENS_FROM_1, "`WINDLASS_OUTPUT_TOKENS_FIRST`",
        "The limit on output tokens of one response; never more than the model allows. It is not raised \
         automatically.",
        |settings, text| settings.run.output.explicit = Some(number(text, 1, u32::MAX)?)),
    row!(RUN "WINDLASS_OUTPUT_TOKENS_FIRST", TOKENS_FROM_1, "8000",
        "The limit on output tokens of one response until an answer reaches it.",
        |settings, text| settings.run.output.first = number(text, 1, u32::MAX)?),
    row!(RUN "WINDLASS_OUTPUT_TOKENS_ESCALATED", TOKENS_FROM_1, "64000",
        "The limit after an answer has reached the first one; never more than the model allows.",
        |settings, text| settings.run.output.escalated = number(text, 1, u32::MAX)?),
    row!(RUN "WINDLASS_OUTPUT_RECOVERIES", COUNT, "3",
        "How often a model is asked to continue an answer that was cut.",
        |settings, text| settings.run.output.recoveries_max = number(text, 0, u32::MAX)?),
    row!(RUN "WINDLASS_TOKEN_BUDGET", TOKENS_FROM_1, "none",
        "How many output tokens each prompt should use, unless it contains another amount such as `+500k`.",
        |settings, text| settings.run.token_budget = Some(number(text, 1, u64::MAX)?)),
    row!(RUN "WINDLASS_BUDGET_PERCENT", PERCENT, "90",
        "Below this share of that budget the model is asked to continue.",
        |settings, text| settings.run.continuation.percent = number(text, 1, 100)?),
    row!(RUN "WINDLASS_BUDGET_SMALL_GAIN_TOKENS", TOKENS, "500",
        "An answer below this many tokens is a small gain; two in a row end the run.",
        |settings, text| settings.run.continuation.small_gain_tokens = number(text, 0, u64::MAX)?),
    row!(RUN "WINDLASS_BUDGET_CONTINUATIONS", COUNT, "3",
        "Small gains count only after the model was asked to continue this often.",
        |settings, text| settings.run.continuation.continuations_min = number(text, 0, u32::MAX)?),
    row!(RUN "MAX_STRUCTURED_OUTPUT_RETRIES", COUNT, "5",
        "How often the model may try again when its answer does not match `--json-schema`.",
        |settings, text| settings.models.schema_retries_max = number(text, 0, u32::MAX)?),
    row!(RUN "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", COUNT_FROM_1, "8",
        "How often in a row stop hooks may block the end of a run.",
        |settings, text| settings.run.stop_hook_blocks_max = number(text, 1, u32::MAX)?),
    row!(RUN "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", MILLISECONDS, "1500, or the longest `timeout` of them up to a minute",
        "How long all hooks at the end of a session may take together.",
        |settings, text| settings.session_end_ms = Some(number(text, 1, MILLISECONDS_MAX)?)),
    row!(RUN "WINDLASS_PAUSES", COUNT, "10",
        "How often in a row a turn that the provider paused is resumed.",
        |settings, text| settings.run.pauses_max = number(text, 0, u32::MAX)?),
    row!(RUN "WINDLASS_REPEATS_TELL", COUNT_FROM_1, "3",
        "After this many equal results of the same call the model gets a warning.",
        |settings, text| settings.run.repeats.tell_after = number(text, 1, u32::MAX)?),
    row!(RUN "WINDLASS_REPEATS_ASK", COUNT_FROM_1, "5",
        "After this many the user is asked, if there is one.",
        |settings, text| settings.run.repeats.ask_after = number(text, 1, u32::MAX)?),
    row!(RUN "WINDLASS_REPEATS_END", COUNT_FROM_1, "25",
        "After this many a run without a user ends. Calls that wait (`sleep`, `watch`, or 10 seconds of any call) do not count.",
        |settings, text| settings.run.repeats.end_after = number(text, 1, u32::MAX)?),
    row!(RUN "CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", ON_OFF, "on if `ANTHROPIC_SMALL_FAST_MODEL` is set",
        "The small model writes a short label of what the calls of a response did. The default needs a reader who \
         watches: a person at the terminal, or a host that reads `stream-json`.",
        |settings, text| settings.models.has_tool_use_summaries = Some(switch(text)?)),
    row!(RUN "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", ON_OFF, "on at a terminal if `ANTHROPIC_SMALL_FAST_MODEL` is set",
        "The small model suggests the next prompt after a run, unless `--prompt-suggestions` is given. Only at a terminal \
         and with `--input-format stream-json`.",
        |settings, text| settings.models.has_prompt_suggestions = Some(switch(text)?)),
    row!(RUN "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", "a whole number from 1 to 1000", "10",
        "How many shared calls run at once.",
        |settings, text| settings.run.shared_calls_max = number(text, 1, 1000)?),
    row!(RUN "WINDLASS_EARLY_START", "all, read-only or off", "all",
        "Which calls may start while the model is still answering.",
        |settings, text| settings.run.early_start = early_start(text)?),
    row!(RUN "WINDLASS_SCRIPTED_HOOKS", "the path of a JSON file", "none",
        "Scripted answers of hooks, for trying out what hooks can do. See below.",
        |settings, text| settings.scripted_hooks = Some(text.into())),
    row!(RUN "IS_SANDBOX", ON_OFF, "off",
        "The process already runs in a sandbox, so the root user may use `bypassPermissions`.",
        |settings, text| settings.is_in_sandbox = switch(text)?),
    row!(RETRY "CLAUDE_CODE_MAX_RETRIES", "a whole number; more than 15 counts as 15", "10",
        "How often one request is sent again after a temporary failure.",
        |settings, text| settings.run.retry.retries_max = number(text, 0, u32::MAX)?.min(15)),
    row!(RETRY "CLAUDE_CODE_RETRY_WATCHDOG", ON_OFF, "off",
        "Waits while the provider is overloaded or a quota is used up, instead of ending the run.",
        |settings, text| settings.run.retry.is_patient = switch(text)?),
    row!(RETRY "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", ON_OFF, "off",
        "Never falls back to a response without streaming when streams break.",
        |settings, text| settings.run.retry.can_ask_whole = !switch(text)?),
    row!(RETRY "WINDLASS_BROKEN_STREAMS", COUNT_FROM_1, "2",
        "After this many broken streams, a request is sent without streaming.",
        |settings, text| settings.run.retry.broken_streams_max = number(text, 1, u32::MAX)?),
    row!(RETRY "WINDLASS_OVERLOADS", COUNT_FROM_1, "3",
        "After this many overloads in a row the fallback model takes over, if one is set.",
        |settings, text| settings.run.retry.overloads_max = number(text, 1, u32::MAX)?),
    row!(RETRY "WINDLASS_STALLS", COUNT, "2",
        "How often a request is sent again because it stalled.",
        |settings, text| settings.run.retry.stalls_max = number(text, 0, u32::MAX)?),
    row!(RETRY "WINDLASS_MALFORMED_RETRIES", COUNT, "2",
        "How often a request is sent again because its response was invalid.",
        |settings, text| settings.run.retry.malformed_max = number(text, 0, u32::MAX)?),
    row!(RETRY "WINDLASS_FIRST_CONTACTS", COUNT, "2",
        "How often a request is sent again if the provider was never reached before.",
        |settings, text| settings.run.retry.first_contacts_max = number(text, 0, u32::MAX)?),
    row!(RETRY "WINDLASS_BACKOFF_MS", PAUSE, "500",
        "The pause before the first retry; it doubles with each retry.",
        |settings, text| settings.run.retry.backoff_ms = number(text, 0, MILLISECONDS_MAX)?),
    row!(RETRY "WINDLASS_BACKOFF_MAX_MS", PAUSE, "32000",
        "The longest pause, unless the provider asks for a longer one.",
        |settings, text| settings.run.retry.backoff_ms_max = number(text, 0, MILLISECONDS_MAX)?),
    row!(RETRY "WINDLASS_RETRY_AFTER_MAX_MS", PAUSE, "300000",
        "The longest pause a provider may ask for; if it asks for more, the run ends.",
        |settings, text| settings.run.retry.retry_after_ms_max = number(text, 0, MILLISECONDS_MAX)?),
    row!(CONTEXT "DISABLE_AUTO_COMPACT", ON_OFF, "off",
        "Summarises nothing automatically: a run ends when the context is full, and `/compact` makes room.",
        |settings, text| if switch(text)? { settings.run.context.compaction = CompactionPolicy::OnRequest }),
    row!(CONTEXT "CLAUDE_CODE_AUTO_COMPACT_WINDOW", TOKENS_FROM_1, "the model's window",
        "The context window for the compaction thresholds, unless `--autocompact` is given; never more \
         than the model's.",
        |settings, text| settings.run.context.window_tokens = Some(number(text, 1, u64::MAX)?)),
    row!(CONTEXT "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", PERCENT, "none",
        "Compacts at this share of the effective window; it can only lower the threshold.",
        |settings, text| settings.run.context.compact_percent = Some(number(text, 1, 100)?)),
    row!(CONTEXT "WINDLASS_COLLAPSE", ON_OFF, "on",
        "Replaces spans of finished rounds by summaries, unless automatic compaction is off.",
        |settings, text| settings.run.context.can_collapse = switch(text)?),
    row!(CONTEXT "WINDLASS_MICRO_COMPACT", ON_OFF, "on",
        "Clears old tool results.",
        |settings, text| settings.run.context.can_micro_compact = switch(text)?),
    row!(CONTEXT "DISABLE_COMPACT", ON_OFF, "off",
    "Turns off everything that makes room in the context, including `/compact`.",
    |settings, text| if switch(text)? {
        settings.run.context.compaction = CompactionPolicy::Off;
        settings.run.context.can_micro_compact = false;
    }),
    row!(CONTEXT "WINDLASS_OUTPUT_RESERVE_TOKENS", TOKENS, "20000, at most an eighth of the window",
        "The effective window is the window minus the model's largest output, but minus at most this.",
        |settings, text| settings.run.context.output_reserve_tokens = Some(number(text, 0, u64::MAX)?)),
    row!(CONTEXT "WINDLASS_COMPACT_MARGIN_TOKENS", TOKENS, "13000, at most a twelfth of the window",
        "Compaction starts this far below the effective window.",
        |settings, text| settings.run.context.compact_margin_tokens = Some(number(text, 0, u64::MAX)?)),
    row!(CONTEXT "WINDLASS_BLOCKING_MARGIN_TOKENS", TOKENS, "3000, at most a 48th of the window",
        "If automatic compaction is off, a run ends this far below the effective window.",
        |settings, text| settings.run.context.blocking_margin_tokens = Some(number(text, 0, u64::MAX)?)),
    row!(CONTEXT "WINDLASS_WARNING_MARGIN_TOKENS", TOKENS, "20000, at most an eighth of the window",
        "Messages without further use are removed from this far below the effective window on.",
        |settings, text| settings.run.context.warning_margin_tokens = Some(number(text, 0, u64::MAX)?)),
    row!(CONTEXT "WINDLASS_MESSAGE_RESULT_CHARS", CHARACTERS_FROM_1, "200000",
        "The limit on all results of one message; above it the largest go to files.",
        |settings, text| settings.run.context.message_result_chars_max = number(text, 1, usize::MAX)?),
    row!(CONTEXT "WINDLASS_PREVIEW_CHARS", "a whole number of characters", "2000",
        "How much of a result in a file the model sees.",
        |settings, text| settings.run.context.preview_chars = number(text, 0, usize::MAX)?),
    row!(CONTEXT "WINDLASS_RESULTS_KEPT", COUNT, "5",
        "This many of the newest results are never cleared.",
        |settings, text| settings.run.context.results_kept = number(text, 0, usize::MAX)?),
    row!(CONTEXT "WINDLASS_CLEAR_AT_LEAST_TOKENS", TOKENS, "20000",
        "Old results are cleared only if that frees at least this much.",
        |settings, text| settings.run.context.clear_at_least_tokens = number(text, 0, u64::MAX)?),
    row!(CONTEXT "WINDLASS_STAGE_PERCENT", PERCENT, "70",
        "Spans are summarised in the background from this share of the threshold on.",
        |settings, text| settings.run.context.stage_percent = number(text, 1, 100)?),
    row!(CONTEXT "WINDLASS_SPAN_TOKENS", TOKENS_FROM_1, "20000",
        "About how many tokens a collapsed span has.",
        |settings, text| settings.run.context.span_tokens = number(text, 1, u64::MAX)?),
    row!(CONTEXT "WINDLASS_ROUNDS_KEPT", COUNT, "8",
        "This many of the newest rounds are never collapsed.",
        |settings, text| settings.run.context.rounds_kept = number(text, 0, usize::MAX)?),
    row!(CONTEXT "WINDLASS_TAIL_TOKENS", TOKENS, "20000",
        "At most this much of the newest conversation survives a compaction unchanged.",
        |settings, text| settings.run.context.tail_tokens_max = number(text, 0, u64::MAX)?),
    row!(CONTEXT "WINDLASS_FILES_ATTACHED", COUNT, "5",
        "How many of the files read last are attached again after a compaction.",
        |settings, text| settings.run.context.files_attached = number(text, 0, usize::MAX)?),
    row!(CONTEXT "WINDLASS_FILE_CHARS", CHARACTERS_FROM_1, "20000",
        "How much of each of these files is attached at most.",
        |settings, text| settings.run.context.file_chars_max = number(text, 1, usize::MAX)?),
    row!(CONTEXT "WINDLASS_SUMMARY_FAILURES", COUNT, "3",
        "After this many failures in a row, compaction works without a model; 0 never asks a model.",
        |settings, text| settings.run.context.summary_failures_max = number(text, 0, u32::MAX)?),
    row!(CONTEXT "WINDLASS_SUMMARY_SHRINKS", COUNT, "3",
        "How often a summary request that is too long is shortened.",
        |settings, text| settings.run.context.summary_shrinks_max = number(text, 0, u32::MAX)?),
    row!(CONTEXT "WINDLASS_NO_PROGRESS", COUNT_FROM_1, "3",
        "After this many compactions in a row without progress, the run ends.",
        |settings, text| settings.run.context.no_progress_max = number(text, 1, u32::MAX)?),
    row!(CONTEXT "WINDLASS_REFILL_TURNS", COUNT, "3",
        "A compaction made no progress if the next one is due within this many turns.",
        |settings, text| settings.run.context.refill_turns = number(text, 0, u32::MAX)?),
    row!(MEMORY "CLAUDE_CODE_DISABLE_CLAUDE_MDS", ON_OFF, "off",
        "Reads no memory files.",
        |settings, text| settings.memory.is_off = switch(text)?),
    row!(SESSIONS "WINDLASS_HOME", DIRECTORY, "`CLAUDE_CONFIG_DIR`, else `~/.windlass`",
        "The directory for sessions, unless an Agent SDK started the process. A `CLAUDE.md` there is a \
         memory file for every project.",
        |settings, text| settings.home.own = Some(text.into())),
    row!(SESSIONS "CLAUDE_CONFIG_DIR", DIRECTORY, "`~/.claude`, which is only read",
        "The directory that Agent SDKs read: sessions they start are kept there, and all others too if `WINDLASS_HOME` is \
         not set. A `CLAUDE.md` there is a memory file for every project.",
        |settings, text| settings.home.shared = Some(text.into())),
    row!(SESSIONS "WINDLASS_SYNC", "always, turn or never", "`turn`",
        "When the session log is synced to the disk: after every record, around everything that does \
         more than read and at the end of a run, or never. Everything shown survives the end of the \
         process in any case.",
        |settings, text| settings.home.sync = sync(text)?),
    row!(SESSIONS "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", ON_OFF, "off",
        "Saves no former content of files, so they cannot be rewound.",
        |settings, text| settings.home.is_without_checkpoints = switch(text)?),
    row!(SESSIONS "CLAUDE_CODE_ENTRYPOINT", TEXT, "none",
        "What started the process, for the session log. A value that begins with `sdk-` means an Agent SDK.",
        |settings, text| settings.home.entrypoint = Some(text.trim().into())),
    row!(SESSIONS "CLAUDE_AGENT_SDK_VERSION", TEXT, "none",
        "Set by an Agent SDK that starts the process.",
        |settings, text| settings.home.sdk_version = Some(text.trim().into())),
    row!(COMMANDS "BASH_DEFAULT_TIMEOUT_MS", MILLISECONDS, "120000",
        "How long a command may take if its call sets no timeout.",
        |settings, text| settings.shell.timeout_ms = number(text, 1, MILLISECONDS_MAX)?),
    row!(COMMANDS "BASH_MAX_TIMEOUT_MS", MILLISECONDS, "600000",
        "The longest timeout a call may set; at least `BASH_DEFAULT_TIMEOUT_MS`.",
        |settings, text| settings.shell.timeout_ms_max = number(text, 1, MILLISECONDS_MAX)?),
    row!(COMMANDS "BASH_MAX_OUTPUT_LENGTH",
        "a whole number of characters from 1 on; more than 150000 counts as 150000", "30000",
        "How much output a result contains; the rest stays in a file.",
        |settings, text| settings.shell.output_chars_max = number(text, 1, usize::MAX)?.min(150_000)),
    row!(COMMANDS "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", ON_OFF, "off",
        "Starts every command in the project's directory; `cd` does not carry over.",
        |settings, text| settings.shell.should_keep_directory = switch(text)?),
    row!(COMMANDS "CLAUDE_ENV_FILE", "the path of a shell script", "none",
        "A script to source before each command, if it exists.",
        |settings, text| settings.shell.environment_file = Some(text.into())),
    row!(COMMANDS "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", ON_OFF, "off",
        "No command runs in the background; one that reaches its timeout is stopped.",
        |settings, text| settings.shell.can_run_in_background = !switch(text)?),
    row!(COMMANDS "WINDLASS_ENV_PASS", "names separated by commas", "none",
        "Variables that commands get even if their names look like secrets.",
        |settings, text| settings.shell.pass = list(text)),
    row!(FILES "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "a whole number of tokens from 1 on", "25000",
        "How much one Read returns, roughly.",
        |settings, text| settings.files.read_tokens_max = number(text, 1, usize::MAX)?),
    row!(FILES "CLAUDE_CODE_GLOB_NO_IGNORE", ON_OFF, "on",
        "Glob also finds files that `.gitignore` names.",
        |settings, text| settings.files.should_glob_ignore = !switch(text)?),
    row!(FILES "CLAUDE_CODE_GLOB_HIDDEN", ON_OFF, "on",
        "Glob also finds hidden files.",
        |settings, text| settings.files.should_glob_hidden = switch(text)?),
    row!(FILES "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS", "a whole number of seconds from 1 on", "20",
        "How long one Glob may take.",
        |settings, text| settings.files.glob_timeout_s = number(text, 1, 1 << 30)?),
];

/// The value of a word, whatever its case.
fn one_of<T: Copy>(text: &str, words: [(&str, T); 3]) -> Option<T> {
    let is_said = |(word, _): &&(&str, T)| text.trim().eq_ignore_ascii_case(word);
    words.iter().find(is_said).map(|(_, value)| *value)
}

fn early_start(text: &str) -> Option<EarlyStart> {
    one_of(text, [("all", EarlyStart::All), ("read-only", EarlyStart::ReadOnly), ("off", EarlyStart::Off)])
}

/// A switch: `1`, `true`, `yes`, `on` or `0`, `false`, `no`, `off`.
fn switch(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn sync(text: &str) -> Option<SyncPolicy> {
    one_of(text, [("always", SyncPolicy::Always), ("turn", SyncPolicy::Turn), ("never", SyncPolicy::Never)])
}

pub(crate) fn number<N: std::str::FromStr + PartialOrd + Copy>(value: &str, least: N, most: N) -> Option<N> {
    value.trim().parse().ok().filter(|number| *number >= least && *number <= most)
}

pub(crate) fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Headers, one `Name: value` per line.
fn headers(value: &str) -> Option<Vec<(String, Secret)>> {
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(':')?;
            let (name, value) = (name.trim(), value.trim());
            let is_name = !name.is_empty() && name.bytes().all(is_name_byte);
            let is_value = value.bytes().all(|byte| byte >= b' ' && byte != 0x7f);
            (is_name && is_value).then(|| (name.to_owned(), Secret::new(value.to_owned())))
        })
        .collect()
}

/// A key or token as it can stand in a header.
fn secret(value: &str) -> Option<Secret> {
    let value = value.trim();
    let sendable = !value.is_empty() && value.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    sendable.then(|| Secret::new(value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_lines_of_name_and_value() {
        let check = |value, expected: Option<&str>| {
            let seen = headers(value).map(|list| {
                let list: Vec<_> =
                    list.iter().map(|(name, value)| format!("{name}={}", value.reveal())).collect();
                list.join("|")
            });
            assert_eq!(seen.as_deref(), expected, "{value:?}");
        };
        check("X-A: 1\nX-B:two: parts\n\n", Some("X-A=1|X-B=two: parts"));
        check("X-A:", Some("X-A="));
        check("no colon", None);
        check("bad name: x", None);
        check(": x", None);
        check("X-A: \u{1}", None);
    }

    #[test]
    fn switches_and_numbers() {
        assert_eq!(
            ["1", "TRUE", "off", "No", "2", ""].map(switch),
            [Some(true), Some(true), Some(false), Some(false), None, None]
        );
        assert_eq!(
            ["0", "7", "15", "16", "-1", "1e3"].map(|text| number(text, 1_u32, 15)),
            [None, Some(7), Some(15), None, None, None]
        );
    }
}
