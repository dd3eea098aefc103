//! The immutable configuration of a run: a snapshot taken once, never read again from outside.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_permission::Permissions;
use windlass_protocol::{
    ContextEdits, Effort, HookEvent, MemoryNote, ModelCard, RawValue, RequestThinking, TaskBudget,
    ThinkingDisplay, ToolProfile, ToolSpec,
};

/// Everything a rule may depend on besides the state.
#[derive(Clone, Debug)]
pub struct Config {
    /// The model and its limits.
    pub model: ModelCard,
    /// The system prompt; fixed for the session, so that the prefix of requests stays the same.
    pub system: Arc<str>,
    /// The tools on offer; fixed for the session for the same reason.
    pub tools: Arc<[ToolSpec]>,
    /// The working directories, resolved, the project's first; one that was named through a link is listed by that name too.
    pub roots: Arc<[PathBuf]>,
    /// Who asks.
    pub source: RunSource,
    /// The models that take over when the one before is overloaded or out of reach, in order.
    pub fallbacks: Arc<[ModelCard]>,
    /// The model for summaries in the background; without one there are none.
    pub small_model: Option<ModelCard>,
    /// How many iterations may ask for tools.
    pub turns_max: Option<u32>,
    /// What the whole tree may cost from when the session was opened, in USD.
    pub budget_usd: Option<f64>,
    /// How many output tokens each submission is to spend, unless its prompt says otherwise.
    pub token_budget: Option<u64>,
    /// When a budget of output tokens asks to go on.
    pub continuation: ContinuationPolicy,
    /// What the model is told about the tokens of a run.
    pub task_budget: Option<u64>,
    /// The caps on output tokens of one response, and what happens when they are hit.
    pub output: OutputPolicy,
    /// How the model is to think.
    pub thinking: ThinkingWish,
    /// How hard the model is to try.
    pub effort: Option<Effort>,
    /// What a fork's requests repeat of the run's, whatever else is configured, so that the provider's cache has their prefix.
    pub cache_safe: Option<CacheSafe>,
    /// When the context layers act.
    pub context: ContextPolicy,
    /// The form the final answer must have.
    pub answer: Option<AnswerSchema>,
    /// When a call that repeats itself is stopped.
    pub repeats: RepeatPolicy,
    /// The events that hooks are there for.
    pub hooks: BTreeSet<HookEvent>,
    /// How often in a row stop hooks may object before they are overruled.
    pub stop_hook_blocks_max: u32,
    /// How often in a row a turn that the provider paused is resumed.
    pub pauses_max: u32,
    /// What is remembered for every prompt of the project; it is attached again after a compaction.
    pub memory: Arc<[MemoryNote]>,
    /// Whether a small model says in a few words what the calls of a response did.
    pub has_tool_use_summaries: bool,
    /// Whether a small model says after a run what the user may want next, where somebody can see it.
    pub has_prompt_suggestions: bool,
    /// How many shared calls may run at once.
    pub shared_calls_max: usize,
    /// Which calls may start while the model still talks.
    pub early_start: EarlyStart,
    /// How long a cancelled call may take to stop before it is given up.
    pub stop_grace_ms: u64,
    /// Whether pieces of blocks are shown as they arrive.
    pub has_partial_messages: bool,
    /// Who may do what.
    pub permissions: Permissions,
    /// When and how often a failed request is sent again.
    pub retry: RetryPolicy,
}

impl Config {
    /// What a tool declares about itself; of one that is not on offer, what is known by its name.
    pub fn profile(&self, tool: &str) -> ToolProfile {
        let is_meant = |spec: &&ToolSpec| &*spec.name == tool || spec.profile.aliases.contains(&tool);
        self.tools.iter().find(is_meant).map_or_else(|| ToolProfile::named(tool), |spec| spec.profile)
    }
}

impl Default for Config {
    fn default() -> Self {
        let model = ModelCard::unknown("unnamed");
        Self {
            model,
            system: "".into(),
            tools: [].into(),
            roots: [].into(),
            source: RunSource::Sdk,
            fallbacks: [].into(),
            small_model: None,
            turns_max: None,
            budget_usd: None,
            token_budget: None,
            continuation: ContinuationPolicy::default(),
            task_budget: None,
            output: OutputPolicy::default(),
            thinking: ThinkingWish::default(),
            effort: None,
            cache_safe: None,
            context: ContextPolicy::default(),
            answer: None,
            repeats: RepeatPolicy::default(),
            hooks: BTreeSet::new(),
            stop_hook_blocks_max: 8,
            pauses_max: 10,
            memory: [].into(),
            has_tool_use_summaries: false,
            has_prompt_suggestions: false,
            shared_calls_max: 10,
            early_start: EarlyStart::All,
            stop_grace_ms: 800,
            has_partial_messages: false,
            permissions: Permissions::default(),
            retry: RetryPolicy::default(),
        }
    }
}

/// What the provider's cache depends on besides the model, the system prompt, the tools and the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSafe {
    /// How the model thinks.
    pub thinking: RequestThinking,
    /// How hard it tries.
    pub effort: Option<Effort>,
    /// What it is told about the tokens of the run.
    pub task_budget: Option<TaskBudget>,
    /// What the provider clears.
    pub edits: Option<ContextEdits>,
}

/// Who asks. Some rules depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunSource {
    /// A person at a terminal.
    Repl,
    /// A program that uses the library or the protocol.
    Sdk,
    /// One prompt on the command line.
    Print,
    /// A sub-agent of this type.
    Agent(Arc<str>),
    /// The summariser of a compaction.
    Compact,
    /// The summariser of a span that may be collapsed.
    Collapse,
    /// The summariser of what calls did.
    Summary,
    /// The judge of calls that nothing allows.
    Classifier,
    /// Whoever says what the user may want next.
    PromptSuggestion,
}

impl RunSource {
    /// Whether it works on the context itself: then no layer asks a model, and no limit stops it that it is to cure.
    pub fn is_summariser(&self) -> bool {
        matches!(
            self,
            Self::Compact | Self::Collapse | Self::Summary | Self::Classifier | Self::PromptSuggestion
        )
    }

    /// Whether it is the main loop of a session.
    pub fn is_main(&self) -> bool {
        matches!(self, Self::Repl | Self::Sdk | Self::Print)
    }
}

/// When a budget of output tokens asks to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuationPolicy {
    /// Below this share of the budget the model is asked to go on.
    pub percent: u64,
    /// A gain below this many tokens is a small one.
    pub small_gain_tokens: u64,
    /// After this many continuations, two small gains in a row end the run.
    pub continuations_min: u32,
}

impl Default for ContinuationPolicy {
    fn default() -> Self {
        Self { percent: 90, small_gain_tokens: 500, continuations_min: 3 }
    }
}

/// The caps on output tokens of one response, and what happens when they are hit. None is ever above the model's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputPolicy {
    /// The cap a user set; then there is no escalation.
    pub explicit: Option<u32>,
    /// The first cap.
    pub first: u32,
    /// The cap after an answer hit the first one.
    pub escalated: u32,
    /// How often an answer that was cut is resumed.
    pub recoveries_max: u32,
}

impl Default for OutputPolicy {
    fn default() -> Self {
        Self { explicit: None, first: 8_000, escalated: 64_000, recoveries_max: 3 }
    }
}

/// How the model is to think, as far as it can. What a model does not take is replaced by the nearest it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkingWish {
    /// Whether at all.
    pub mode: ThinkingMode,
    /// A fixed number of tokens instead of as much as the model sees fit.
    pub budget_tokens: Option<u32>,
    /// What is shown of it.
    pub display: Option<ThinkingDisplay>,
}

/// Whether the model is to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingMode {
    /// As much as it sees fit; a model that needs a number gets half of the output cap.
    #[default]
    Auto,
    /// The same, and whoever asked for it hears if the model cannot be told.
    Adaptive,
    /// Not at all.
    Disabled,
}

/// When the transcript may give way to a summary. Clearing results and snipping need no summary and do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactionPolicy {
    /// At its threshold, after the provider refused it as too long, span by span, and when the user asks.
    #[default]
    Automatic,
    /// Only when the user asks. A run ends at the blocking limit.
    OnRequest,
    /// Never.
    Off,
}

/// When the context layers act. All thresholds follow from the window unless a number is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextPolicy {
    /// When the transcript may give way to a summary.
    pub compaction: CompactionPolicy,
    /// Whether spans of finished rounds are collapsed; never where compaction is not automatic.
    pub can_collapse: bool,
    /// Whether old results are cleared.
    pub can_micro_compact: bool,
    /// Use this window rather than the model's for the thresholds; never more than the model's.
    pub window_tokens: Option<u64>,
    /// Compact at this share of the effective window; can only lower the threshold.
    pub compact_percent: Option<u64>,
    /// The most that is kept free of the window for an answer: by default 20,000, and no more than an eighth of the window.
    pub output_reserve_tokens: Option<u64>,
    /// The threshold of compaction is so much below the effective window; by default 13,000, at most a twelfth of the window.
    pub compact_margin_tokens: Option<u64>,
    /// The blocking limit is so much below the effective window; by default 3,000, and no more than a 48th of the window.
    pub blocking_margin_tokens: Option<u64>,
    /// The warning threshold is so much below the effective window; by default 20,000, at most an eighth of the window.
    pub warning_margin_tokens: Option<u64>,
    /// The results of one message together may have so many characters before the largest go to files.
    pub message_result_chars_max: usize,
    /// As many characters of a stored result are shown.
    pub preview_chars: usize,
    /// As many of the newest results are never cleared.
    pub results_kept: usize,
    /// Results are cleared only if that frees this many tokens.
    pub clear_at_least_tokens: u64,
    /// Spans are summarised in the background from this share of the compaction threshold on.
    pub stage_percent: u64,
    /// A span has about this many tokens.
    pub span_tokens: u64,
    /// As many of the newest rounds are never collapsed.
    pub rounds_kept: usize,
    /// The tail that a compaction keeps has at most this many tokens.
    pub tail_tokens_max: u64,
    /// As many of the files read last are attached again after a compaction.
    pub files_attached: usize,
    /// Each of them with at most this many characters.
    pub file_chars_max: usize,
    /// After this many failures in a row no summariser is called any more.
    pub summary_failures_max: u32,
    /// A summary request that is too long is made shorter this often.
    pub summary_shrinks_max: u32,
    /// Compactions in a row that make no progress before the run ends.
    pub no_progress_max: u32,
    /// A compaction that is due again within this many turns made no progress.
    pub refill_turns: u32,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self {
            compaction: CompactionPolicy::Automatic,
            can_collapse: true,
            can_micro_compact: true,
            window_tokens: None,
            compact_percent: None,
            output_reserve_tokens: None,
            compact_margin_tokens: None,
            blocking_margin_tokens: None,
            warning_margin_tokens: None,
            message_result_chars_max: 200_000,
            preview_chars: 2_000,
            results_kept: 5,
            clear_at_least_tokens: 20_000,
            stage_percent: 70,
            span_tokens: 20_000,
            rounds_kept: 8,
            tail_tokens_max: 20_000,
            files_attached: 5,
            file_chars_max: 20_000,
            summary_failures_max: 3,
            summary_shrinks_max: 3,
            no_progress_max: 3,
            refill_turns: 3,
        }
    }
}

/// The form the final answer must have.
#[derive(Clone, Debug)]
pub struct AnswerSchema {
    /// The JSON schema, as the model reads it.
    pub schema: Arc<RawValue>,
    /// Says whether a value has that form.
    pub check: Arc<dyn CheckAnswer>,
    /// How often the model may try again.
    pub retries_max: u32,
}

/// Says whether a value has the form a schema asks for. Pure: the same value always gets the same answer.
pub trait CheckAnswer: Send + Sync + std::fmt::Debug {
    /// What is wrong with a value, for the model: where, and what was expected there.
    fn check(&self, value: &RawValue) -> Result<(), String>;
}

/// When a call that repeats itself is stopped. Only the same call with the same result counts, and only while nothing else
/// was changed and nothing was waited for in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatPolicy {
    /// After so many equal results the model is told.
    pub tell_after: u32,
    /// After so many the user is asked before the next, where somebody can be asked.
    pub ask_after: u32,
    /// After so many the run ends, where nobody can be asked, or the call could not be made each time.
    pub end_after: u32,
}

impl Default for RepeatPolicy {
    fn default() -> Self {
        Self { tell_after: 3, ask_after: 5, end_after: 25 }
    }
}

/// Which calls may start while the model still talks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyStart {
    /// Every call, in order and under the rules of the queue.
    #[default]
    All,
    /// Only calls that change nothing.
    ReadOnly,
    /// None.
    Off,
}

/// When and how often a failed request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Retries of one request, all causes together.
    pub retries_max: u32,
    /// Retries of one request after it stalled: each costs the whole watchdog time.
    pub stalls_max: u32,
    /// Retries of one request whose answer did not follow the protocol.
    pub malformed_max: u32,
    /// Retries while the provider was never reached in this session: the address may be wrong, and that is news.
    pub first_contacts_max: u32,
    /// The first pause; it doubles with each retry.
    pub backoff_ms: u64,
    /// The longest pause of our own.
    pub backoff_ms_max: u64,
    /// The longest pause a provider may ask for; beyond it the run ends and says so.
    pub retry_after_ms_max: u64,
    /// Overloads in a row before a fallback model takes over, if there is one.
    pub overloads_max: u32,
    /// Streams of one request that break before they said anything, before the answer is asked for at once.
    pub broken_streams_max: u32,
    /// Whether an answer may be asked for at once when streams break.
    pub can_ask_whole: bool,
    /// Wait for as long as the provider is overloaded or a quota is used up, instead of ending the run.
    pub is_patient: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries_max: 10,
            stalls_max: 2,
            malformed_max: 2,
            first_contacts_max: 2,
            backoff_ms: 500,
            backoff_ms_max: 32_000,
            retry_after_ms_max: 300_000,
            overloads_max: 3,
            broken_streams_max: 2,
            can_ask_whole: true,
            is_patient: false,
        }
    }
}
