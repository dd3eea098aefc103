//! The options of an engine, one for each part of the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_core::{AnswerSchema, Config, ContextPolicy};
use windlass_permission::Permissions;
use windlass_ports::{HookRunner, LookAround, MemoryPrefetch, TaskWatch};
use windlass_protocol::{MemoryNote, ModelCard};
use windlass_secrets::Redactor;

use crate::builder::EngineBuilder;

/// Models, and what is asked of them.
impl EngineBuilder {
    /// Replaces the whole configuration but the model, also what was set before one by one. System prompt, tools and working
    /// directories follow from the builder.
    pub fn config(mut self, config: Config) -> Self {
        self.config = Config { model: self.config.model, ..config };
        self
    }

    /// The models that take over when the one before is overloaded or out of reach, in order. The same client asks them.
    pub fn fallback_models(mut self, models: Vec<ModelCard>) -> Self {
        self.config.fallbacks = models.into();
        self
    }

    /// The model for summaries in the background: of spans that may be collapsed, and of what calls did. Without one there
    /// are none. A whole conversation is summarised by its own model.
    pub fn small_model(mut self, model: Option<ModelCard>) -> Self {
        self.config.small_model = model;
        self
    }

    /// The cap on output tokens of one response; never above the model's own. With it, no answer is cut at a lower cap first.
    pub fn output_tokens_max(mut self, limit: u32) -> Self {
        self.config.output.explicit = Some(limit);
        self
    }

    /// The form the final answer must have; see [`answer_schema`](crate::answer_schema).
    pub fn answer(mut self, schema: Option<AnswerSchema>) -> Self {
        self.config.answer = schema;
        self
    }
}

/// Limits and budgets.
impl EngineBuilder {
    /// How many iterations of a run may ask for tools.
    pub fn turns_max(mut self, limit: Option<u32>) -> Self {
        self.config.turns_max = limit;
        self
    }

    /// What a session may cost with all its forks, in USD, from when this engine began or resumed it: what it had cost before
    /// does not count. The price of every model must be known. The run that reaches it ends with
    /// [`Terminal::MaxBudgetUsd`](crate::Terminal::MaxBudgetUsd), and so does every later one.
    pub fn budget_usd(mut self, limit: Option<f64>) -> Self {
        self.config.budget_usd = limit;
        self
    }
}

/// What fills the context, and what is done when it is full.
impl EngineBuilder {
    /// When the context layers act.
    pub fn context(mut self, policy: ContextPolicy) -> Self {
        self.config.context = policy;
        self
    }

    /// What is remembered for every prompt of the project. The first prompt carries it; it is attached again after a
    /// compaction.
    pub fn memory(mut self, notes: Vec<MemoryNote>) -> Self {
        self.config.memory = notes.into();
        self
    }

    /// Where results go that are too large for the transcript; they stay there. Without one, a private temporary directory
    /// that is made when it is needed and deleted with its session.
    pub fn results_directory(mut self, path: PathBuf) -> Self {
        self.results_directory = Some(path);
        self
    }
}

/// Who asks, who decides, and who is told.
impl EngineBuilder {
    /// Who may do what.
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.config.permissions = permissions;
        self
    }

    /// Whether pieces of blocks are shown as they arrive.
    pub fn partial_messages(mut self, show: bool) -> Self {
        self.config.partial_messages = show;
        self
    }

    /// Who asks the hooks. The events it names are asked for now; others never reach it.
    pub fn hooks(mut self, runner: Arc<dyn HookRunner>) -> Self {
        self.config.hooks = runner.events();
        self.hooks = Some(runner);
        self
    }

    /// Who finds out what changed around a run while it went on.
    pub fn lookout(mut self, lookout: Arc<dyn LookAround>) -> Self {
        self.lookout = Some(lookout);
        self
    }

    /// Who looks for memory that may help with a prompt.
    pub fn memory_prefetch(mut self, prefetch: Arc<dyn MemoryPrefetch>) -> Self {
        self.prefetch = Some(prefetch);
        self
    }

    /// What is taken out of everything that tools print, before model, screen and log are told of it. Without one, what has the
    /// shape of a secret; give one that knows your own keys as well.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// The background tasks whose ends the session is told of. They belong to one session.
    pub fn tasks(mut self, tasks: Arc<dyn TaskWatch>) -> Self {
        self.tasks = Some(tasks);
        self
    }
}
