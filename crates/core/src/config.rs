//! The immutable configuration of a run: a snapshot taken once, never read again from outside.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_protocol::{ModelCard, ToolSpec};

/// Everything a rule may depend on besides the state.
#[derive(Clone, Debug)]
pub struct Config {
    /// The model and its limits.
    pub model: ModelCard,
    /// The system prompt; fixed for the session, so that the prefix of requests stays the same.
    pub system: Arc<str>,
    /// The tools on offer; fixed for the session for the same reason.
    pub tools: Arc<[ToolSpec]>,
    /// The working directories, resolved; the first is the project's. A directory that was named through a link
    /// is listed by that name too.
    pub roots: Arc<[PathBuf]>,
    /// How many iterations may ask for tools.
    pub turns_max: Option<u32>,
    /// The cap on output tokens of one response.
    pub output_tokens_max: u32,
    /// How many shared calls may run at once.
    pub shared_calls_max: usize,
    /// Which calls may start while the model still talks.
    pub early_start: EarlyStart,
    /// How long a cancelled call may take to stop before it is given up.
    pub stop_grace_ms: u64,
    /// Whether pieces of blocks are shown as they arrive.
    pub partial_messages: bool,
    /// Who may do what.
    pub permissions: Permissions,
    /// When and how often a failed request is sent again.
    pub retry: RetryPolicy,
}

impl Default for Config {
    fn default() -> Self {
        let model = ModelCard {
            id: "unnamed".into(),
            window_tokens: 200_000,
            output_tokens_max: 32_000,
            price: None,
            known: false,
        };
        Self {
            model,
            system: "".into(),
            tools: [].into(),
            roots: [].into(),
            turns_max: None,
            output_tokens_max: 32_000,
            shared_calls_max: 10,
            early_start: EarlyStart::All,
            stop_grace_ms: 800,
            partial_messages: false,
            permissions: Permissions::default(),
            retry: RetryPolicy::default(),
        }
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

/// Who may do what.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// The mode the user chose.
    pub mode: PermissionMode,
    /// Tools that run without asking, by their own names; see [`Permissions::resolve_names`].
    pub allowed: BTreeSet<Arc<str>>,
    /// Tools that never run and are not offered.
    pub disallowed: BTreeSet<Arc<str>>,
    /// Who answers questions.
    pub asking: Asking,
}

/// The permission mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionMode {
    /// Reading inside the working directories is free; everything else is asked.
    #[default]
    Default,
    /// Editing files inside the working directories is free too.
    AcceptEdits,
    /// Only reading; nothing changes.
    Plan,
    /// What would be asked is denied.
    DontAsk,
    /// Everything runs.
    BypassPermissions,
}

impl PermissionMode {
    /// The name users and hosts know.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

/// Who answers questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// Nobody is there: what would be asked is denied, with the reason.
    #[default]
    Nobody,
    /// The caller of the run answers.
    Person,
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
    /// Retries while the provider was never reached in this session: more would only delay the news
    /// that the address is wrong.
    pub first_contacts_max: u32,
    /// The first pause; it doubles with each retry.
    pub backoff_ms: u64,
    /// The longest pause of our own.
    pub backoff_ms_max: u64,
    /// The longest pause a provider may ask for; beyond it the run ends and says so.
    pub retry_after_ms_max: u64,
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
        }
    }
}
