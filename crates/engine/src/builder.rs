//! What does not change during a session, and how it is put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::{Config, RecalledSession};
use windlass_permission::{SandboxPermissions, UnknownTool};
use windlass_ports::{AnyTool, HookRunner, LookAround, MemoryPrefetch, ModelClient, SessionLog, TaskWatch};
use windlass_protocol::{HookEvent, ModelCard, Record, SessionSeed, Transcript};
use windlass_secrets::Redactor;

use crate::check::check;
use crate::prompt::{default_system_prompt, form_of_answer};
use crate::session::Session;
use crate::toolbox::Toolbox;

/// A model, tools and a configuration: everything sessions share.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<EngineParts>,
}

pub(crate) struct EngineParts {
    /// Without the form of the answer.
    pub(crate) system_prompt: Arc<str>,
    pub(crate) config: Arc<Config>,
    pub(crate) model: Arc<dyn ModelClient>,
    pub(crate) toolbox: Toolbox,
    pub(crate) hooks: Option<Arc<dyn HookRunner>>,
    pub(crate) lookout: Option<Arc<dyn LookAround>>,
    pub(crate) prefetch: Option<Arc<dyn MemoryPrefetch>>,
    pub(crate) tasks: Option<Arc<dyn TaskWatch>>,
    pub(crate) results_directory: Option<PathBuf>,
    pub(crate) redactor: Redactor,
    pub(crate) cwd: PathBuf,
    unknown_tools: Vec<UnknownTool>,
}

/// Why an engine cannot be built. The user or the caller must act.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A working directory cannot be used.
    #[error("cannot use the directory {path}: {source}. Give one that exists and is readable")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A tool that no provider would take: every request would fail because of it.
    #[error("invalid tool {name:?}: {problem}")]
    InvalidTool {
        /// Which.
        name: Arc<str>,
        /// Why.
        problem: &'static str,
    },
    /// Two tools have one name.
    #[error("two tools have the name {0}; rename one of them")]
    DuplicateTool(Arc<str>),
    /// A budget that is no amount of money.
    #[error("invalid budget of {0} USD: give a number above zero")]
    Budget(f64),
    /// A budget in USD, and a model whose price nobody knows.
    #[error(
        "the price of {0} is unknown, so a budget in USD cannot be checked. Use another model, or leave out \
         the budget"
    )]
    UnknownPrice(Arc<str>),
    /// A limit of zero, with which nothing could be done.
    #[error("{0} is 0. Give at least 1, or leave it out")]
    Zero(&'static str),
    /// A share that is none.
    #[error("{name} is {percent} %. Give a number from 1 to 100")]
    Percent {
        /// Which.
        name: &'static str,
        /// What was given.
        percent: u64,
    },
    /// A budget for thinking that no provider takes.
    #[error(
        "invalid thinking budget of {tokens} tokens: give at least {min} and less than the limit on output \
         tokens ({cap})"
    )]
    ThinkingBudget {
        /// What was given.
        tokens: u32,
        /// The least.
        min: u32,
        /// The cap on output tokens.
        cap: u32,
    },
    /// The context would be full before anything is in it.
    #[error(
        "a context window of {window} tokens is too small for {model}: it would be full at once. Give a \
         larger window, or compact at a larger share of it"
    )]
    NoRoom {
        /// The model.
        model: Arc<str>,
        /// The window.
        window: u64,
    },
}

/// Puts an [`Engine`] together.
#[must_use]
pub struct EngineBuilder {
    model: Arc<dyn ModelClient>,
    tools: Vec<Arc<dyn AnyTool>>,
    cwd: Option<PathBuf>,
    added: Vec<PathBuf>,
    system_prompt: Option<String>,
    append: Option<String>,
    pub(crate) config: Config,
    pub(crate) hooks: Option<Arc<dyn HookRunner>>,
    pub(crate) lookout: Option<Arc<dyn LookAround>>,
    pub(crate) prefetch: Option<Arc<dyn MemoryPrefetch>>,
    pub(crate) tasks: Option<Arc<dyn TaskWatch>>,
    pub(crate) results_directory: Option<PathBuf>,
    pub(crate) redactor: Redactor,
}

impl Engine {
    /// Begins to put an engine together.
    pub fn builder(model: Arc<dyn ModelClient>, card: ModelCard) -> EngineBuilder {
        let config = Config { model: card, ..Config::default() };
        EngineBuilder {
            model,
            tools: Vec::new(),
            cwd: None,
            added: Vec::new(),
            system_prompt: None,
            append: None,
            config,
            hooks: None,
            lookout: None,
            prefetch: None,
            tasks: None,
            results_directory: None,
            redactor: Redactor::default(),
        }
    }

    /// A new session.
    pub fn session(&self) -> Session {
        self.session_with(SessionSeed(uuid::Uuid::new_v4().as_u128()), Transcript::default())
    }

    /// A session with this seed that goes on from these messages. The last gate mends what they lack.
    pub fn session_with(&self, seed: SessionSeed, messages: Transcript) -> Session {
        Session::new(self.shared.clone(), seed, messages)
    }

    /// A session that goes on where it was left, as its log tells it. What the log lacks, such as answers to calls that were
    /// open, goes into it before anything new.
    pub fn resume(
        &self,
        seed: SessionSeed,
        recalled: RecalledSession,
        log: Option<Box<dyn SessionLog>>,
    ) -> Session {
        let mut session = Session::with_state(self.shared.clone(), seed, recalled.state.reopened());
        if let Some(log) = log {
            let results = recalled.results.into_iter().map(Record::Result).collect();
            session.machine.log_on(log, results);
        }
        session
    }

    /// The names of the tools on offer, in order.
    pub fn tool_names(&self) -> Vec<Arc<str>> {
        self.shared.config.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// The rules that mean no tool. Worth a warning: they may be meant for another tool.
    pub fn unknown_tools(&self) -> &[UnknownTool] {
        &self.shared.unknown_tools
    }

    /// What was asked for that the model does not take, such as a level of effort. Worth a warning: it has no effect.
    pub fn unheeded(&self) -> Vec<String> {
        windlass_core::unheeded(&self.shared.config)
    }

    /// The events that there are hooks for.
    pub fn hook_events(&self) -> impl Iterator<Item = HookEvent> {
        self.shared.config.hooks.iter().copied()
    }

    /// How commands are confined, if they are.
    pub fn sandboxing(&self) -> Option<&SandboxPermissions> {
        self.shared.config.permissions.sandbox.as_ref()
    }

    /// The model that is asked.
    pub fn model(&self) -> &ModelCard {
        &self.shared.config.model
    }

    /// What the model is told about its work, without the form of the answer.
    pub fn system_prompt(&self) -> &str {
        &self.shared.system_prompt
    }

    /// The project's directory, resolved.
    pub fn working_directory(&self) -> &Path {
        &self.shared.cwd
    }
}

impl EngineBuilder {
    /// The tools, in the order the model sees them.
    pub fn tools(mut self, tools: Vec<Arc<dyn AnyTool>>) -> Self {
        self.tools = tools;
        self
    }

    /// The project's directory; the process's own if not given.
    pub fn working_directory(mut self, path: PathBuf) -> Self {
        self.cwd = Some(path);
        self
    }

    /// One more working directory.
    pub fn add_directory(mut self, path: PathBuf) -> Self {
        self.added.push(path);
        self
    }

    /// Replaces the system prompt; empty means none.
    pub fn system_prompt(mut self, text: String) -> Self {
        self.system_prompt = Some(text);
        self
    }

    /// Adds to the end of the system prompt.
    pub fn append_system_prompt(mut self, text: String) -> Self {
        self.append = Some(text);
        self
    }

    /// Checks everything and builds the engine.
    pub fn build(self) -> Result<Engine, EngineError> {
        check(&self.config)?;
        let named = self.cwd.unwrap_or_else(|| PathBuf::from("."));
        let cwd = resolve(&named)?;
        let mut roots = vec![cwd.clone()];
        for path in &self.added {
            roots.push(resolve(path)?);
        }
        // A directory reached through a link is also known by that name.
        for path in self.added.iter().chain([&named]).filter(|path| path.is_absolute()) {
            if !roots.contains(path) {
                roots.push(path.clone());
            }
        }
        let toolbox = Toolbox::new(self.tools)?;
        let mut config = self.config;
        let unknown_tools = config.permissions.resolve_names(&toolbox.names());
        config.roots = roots.into();
        config.tools = toolbox.specs(&config.permissions.rules);
        let base = self.system_prompt.unwrap_or_else(|| default_system_prompt(&config.tools));
        let form = config.answer.as_ref().map(|answer| form_of_answer(&answer.schema));
        let joined = |parts: Vec<Option<String>>| -> Arc<str> {
            let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            parts.join("\n\n").into()
        };
        let system_prompt = joined(vec![Some(base), self.append]);
        config.system = joined(vec![Some(system_prompt.to_string()), form]);
        let shared = EngineParts {
            config: Arc::new(config),
            model: self.model,
            toolbox,
            hooks: self.hooks,
            lookout: self.lookout,
            prefetch: self.prefetch,
            tasks: self.tasks,
            results_directory: self.results_directory,
            redactor: self.redactor,
            cwd,
            unknown_tools,
            system_prompt,
        };
        Ok(Engine { shared: Arc::new(shared) })
    }
}

fn resolve(path: &Path) -> Result<PathBuf, EngineError> {
    let error = |source| EngineError::Directory { path: path.to_owned(), source };
    let resolved = path.canonicalize().map_err(error)?;
    if !resolved.is_dir() {
        return Err(error(std::io::ErrorKind::NotADirectory.into()));
    }
    Ok(resolved)
}
