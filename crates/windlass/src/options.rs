//! What a caller asks for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_config::{Flags, PromptText, SettingsFiles, TrustState};
use windlass_engine::{Answerer, ModelCard};
use windlass_hooks::CallbackHook;
use windlass_ports::{AnyTool, BoxFuture, ModelClient};
use windlass_protocol::{Answer, Question};

use crate::model_choice::ModelSet;
use crate::wiring::Audience;

/// Decides about calls that need approval.
pub trait Approver: Send + Sync {
    /// The answer to a question. The run goes on meanwhile; a question that is settled elsewhere is not waited for.
    fn approve(&self, question: Question) -> BoxFuture<'static, Answer>;
}

/// Asks whether what came with a project may act: given its files and what was agreed to before.
pub(crate) type TrustQuestion = dyn Fn(&SettingsFiles, &TrustState) -> bool + Send + Sync;

/// Everything a caller can say before a session is opened. What is not said comes from the environment and from settings files.
#[derive(Clone, Default)]
#[must_use]
pub struct Options {
    /// The flags of the command line, by their names.
    pub flags: Flags,
    /// `--settings`: files or JSON objects, in order.
    pub settings: Vec<String>,
    /// `--setting-sources`: which settings files count, each as it was given; more than one is refused.
    pub setting_sources: Vec<String>,
    /// `--trust-project`: what came with the project may act.
    pub is_project_trusted: bool,
    /// Who reads the runs.
    pub audience: Audience,
    /// The project's directory; the current one if there is none.
    pub cwd: Option<PathBuf>,
    pub(crate) environment: Option<BTreeMap<OsString, OsString>>,
    pub(crate) asking: Answerer,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) own: OwnParts,
    pub(crate) models: Option<ModelSet>,
    pub(crate) trust_question: Option<Arc<TrustQuestion>>,
}

/// Parts of the engine that the caller wrote.
#[derive(Clone, Default)]
pub struct OwnParts {
    pub(crate) tools: Vec<Arc<dyn AnyTool>>,
    pub(crate) hooks: Vec<CallbackHook>,
}

impl Options {
    /// Nothing is said.
    pub fn new() -> Self {
        Self::default()
    }

    /// The project's directory.
    pub fn cwd(mut self, path: impl Into<PathBuf>) -> Self {
        self.cwd = Some(path.into());
        self
    }

    /// The model: an id, or the name of a family such as `opus`.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.flags.model = Some(name.into());
        self
    }

    /// A client of the caller's own instead of the provider's.
    pub fn model_client(mut self, client: Arc<dyn ModelClient>, card: ModelCard) -> Self {
        self.models = Some(ModelSet { client, main: card, fallbacks: Vec::new(), small: None });
        self
    }

    /// Stops when a session has spent this much.
    pub fn budget_usd(mut self, usd: f64) -> Self {
        self.flags.budget_usd = Some(usd.to_string());
        self
    }

    /// Stops after this many turns.
    pub fn turns_max(mut self, turns: u32) -> Self {
        self.flags.turns_max = Some(turns);
        self
    }

    /// Tools or rules that need no approval, such as `Read` or `Bash(npm test *)`.
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        self.flags.allowed_tools.push(rule.into());
        self
    }

    /// Tools to remove, or rules for calls to deny.
    pub fn deny(mut self, rule: impl Into<String>) -> Self {
        self.flags.disallowed_tools.push(rule.into());
        self
    }

    /// What runs without asking, such as `acceptEdits`.
    pub fn permission_mode(mut self, mode: impl Into<String>) -> Self {
        self.flags.permission_mode = Some(mode.into());
        self
    }

    /// Sets a variable, as if the process had been started with it: `WINDLASS_HOME`, `ANTHROPIC_API_KEY` and so on.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let environment = self.environment.get_or_insert_with(|| std::env::vars_os().collect());
        environment.insert(name.into(), value.into());
        self
    }

    /// Replaces the system prompt.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.flags.system_prompt = Some(PromptText::Text(text.into()));
        self
    }

    /// One more tool.
    pub fn tool(mut self, tool: impl AnyTool) -> Self {
        self.own.tools.push(Arc::new(tool));
        self
    }

    /// One more hook, beside those of the settings: a function that hears of an event and may object. Answers that a script gives in
    /// place of hooks (`WINDLASS_SCRIPTED_HOOKS`) stand for this one too.
    pub fn hook(mut self, hook: CallbackHook) -> Self {
        self.own.hooks.push(hook);
        self
    }

    /// Answers questions about calls instead of denying them.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self.asks_person()
    }

    /// Questions about calls come as updates, and wait for [`Handle::answer`](windlass_engine::Handle::answer).
    pub fn asks_person(mut self) -> Self {
        self.asking = Answerer::Person;
        self
    }

    /// Asks before anything that came with the project acts. Without it such settings are ignored.
    pub fn trust_question(
        mut self,
        ask: impl Fn(&SettingsFiles, &TrustState) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.trust_question = Some(Arc::new(ask));
        self
    }

    /// The variables: those of the process, unless some were set.
    pub(crate) fn environment(&self) -> BTreeMap<OsString, OsString> {
        self.environment.clone().unwrap_or_else(|| std::env::vars_os().collect())
    }
}
