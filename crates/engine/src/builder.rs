//! What does not change during a session, and how it is put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::{Config, RecalledSession, State};
use windlass_permission::UnknownTool;
use windlass_ports::{
    AnyTool, ChangeWatcher, HookRunner, MemoryPrefetch, ModelClient, SessionLog, TaskWatch,
};
use windlass_protocol::{ModelCard, Record, SessionSeed, Transcript};
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
    pub(crate) toolbox: Toolbox,
    pub(crate) model: Arc<dyn ModelClient>,
    pub(crate) ports: EnginePorts,
    pub(crate) cwd: PathBuf,
    unknown_tools: Vec<UnknownTool>,
}

/// The world outside of an engine besides the model, as far as it was given one.
#[derive(Default)]
pub(crate) struct EnginePorts {
    pub(crate) hooks: Option<Arc<dyn HookRunner>>,
    pub(crate) change_watcher: Option<Arc<dyn ChangeWatcher>>,
    pub(crate) prefetch: Option<Arc<dyn MemoryPrefetch>>,
    pub(crate) tasks: Option<Arc<dyn TaskWatch>>,
    pub(crate) results_directory: Option<PathBuf>,
    pub(crate) redactor: Redactor,
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
    /// A tool that no provider would take, or that has the name of another.
    #[error("{0}")]
    Tool(String),
    /// A part of the configuration that cannot be meant.
    #[error("{0}")]
    Setting(String),
}

/// Puts an [`Engine`] together.
#[must_use]
pub struct EngineBuilder {
    tools: Vec<Arc<dyn AnyTool>>,
    cwd: Option<PathBuf>,
    added: Vec<PathBuf>,
    can_lack_directories: bool,
    system_prompt: Option<String>,
    append: Option<String>,
    config: Config,
    model: Arc<dyn ModelClient>,
    ports: EnginePorts,
}

impl Engine {
    /// Begins to put an engine together.
    pub fn builder(model: Arc<dyn ModelClient>, card: ModelCard) -> EngineBuilder {
        let config = Config { model: card, ..Config::default() };
        let (tools, added, ports) = (Vec::new(), Vec::new(), EnginePorts::default());
        EngineBuilder {
            tools,
            cwd: None,
            added,
            can_lack_directories: false,
            system_prompt: None,
            append: None,
            config,
            model,
            ports,
        }
    }

    /// A new session.
    pub fn session(&self) -> Session {
        self.session_with(SessionSeed(uuid::Uuid::new_v4().as_u128()), Transcript::default())
    }

    /// A session with this seed that goes on from these messages. The last gate mends what they lack.
    pub fn session_with(&self, seed: SessionSeed, messages: Transcript) -> Session {
        Session::new(self.shared.clone(), seed, State::new(self.shared.cwd.clone(), messages))
    }

    /// A session that goes on where it was left, as its log tells it. What the log lacks, such as answers to calls that were
    /// open, goes into it before anything new.
    pub fn resume(
        &self,
        seed: SessionSeed,
        recalled: RecalledSession,
        log: Option<Box<dyn SessionLog>>,
    ) -> Session {
        let mut session = Session::new(self.shared.clone(), seed, recalled.state.reopen());
        if let Some(log) = log {
            let results = recalled.results.into_iter().map(Record::Result).collect();
            session.machine.log_on(log, results);
        }
        session
    }

    /// The rules that mean no tool. Worth a warning: they may be meant for another tool.
    pub fn unknown_tools(&self) -> &[UnknownTool] {
        &self.shared.unknown_tools
    }

    /// What was asked for that the model does not take, such as a level of effort. Worth a warning: it has no effect.
    pub fn unsupported_settings(&self) -> Vec<String> {
        windlass_core::unsupported_settings(&self.shared.config)
    }

    /// What every session goes by.
    pub fn config(&self) -> &Config {
        &self.shared.config
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

    /// Replaces the configuration, but for model, system prompt, tools and directories, which the builder sets.
    pub fn config(mut self, config: Config) -> Self {
        self.config = Config { model: self.config.model, ..config };
        self
    }

    /// Changes the configuration.
    pub fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Where results go that are too large for the transcript; they stay there. Without one, a private temporary directory
    /// that is made when it is needed and deleted with its session.
    pub fn results_directory(mut self, path: PathBuf) -> Self {
        self.ports.results_directory = Some(path);
        self
    }

    /// Who asks the hooks. The events it names are asked for now; others never reach it.
    pub fn hooks(mut self, runner: Arc<dyn HookRunner>) -> Self {
        self.config.hooks = runner.events();
        self.ports.hooks = Some(runner);
        self
    }

    /// Who finds out what changed around a run while it went on.
    pub fn change_watcher(mut self, change_watcher: Arc<dyn ChangeWatcher>) -> Self {
        self.ports.change_watcher = Some(change_watcher);
        self
    }

    /// Who looks for memory that may help with a prompt.
    pub fn memory_prefetch(mut self, prefetch: Arc<dyn MemoryPrefetch>) -> Self {
        self.ports.prefetch = Some(prefetch);
        self
    }

    /// What is taken out of everything that tools print, before model, screen and log are told of it. Without one, what has the
    /// shape of a secret; give one that knows your own keys as well.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.ports.redactor = redactor;
        self
    }

    /// The background tasks whose ends the session is told of. They belong to one session.
    pub fn tasks(mut self, tasks: Arc<dyn TaskWatch>) -> Self {
        self.ports.tasks = Some(tasks);
        self
    }

    /// Whether directories that are gone count as they are named: for an engine that only plays what was done in them.
    pub fn may_lack_directories(mut self, can_lack: bool) -> Self {
        self.can_lack_directories = can_lack;
        self
    }

    /// Checks everything and builds the engine.
    pub fn build(self) -> Result<Engine, EngineError> {
        check(&self.config)?;
        let named = self.cwd.unwrap_or_else(|| PathBuf::from("."));
        let resolve = |path: &PathBuf| match resolve(path) {
            Err(_) if self.can_lack_directories && path.is_absolute() => Ok(path.clone()),
            resolved => resolved,
        };
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
        let unknown_tools = config.permissions.resolve_names(&toolbox.specs);
        config.roots = roots.into();
        config.tools = toolbox.offered_specs(&config.permissions.rules);
        let base = self.system_prompt.unwrap_or_else(|| default_system_prompt(&config.tools));
        let form = config.answer.as_ref().map(|answer| form_of_answer(&answer.schema));
        let joined = |parts: Vec<Option<String>>| -> Arc<str> {
            let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            parts.join("\n\n").into()
        };
        let system_prompt = joined(vec![Some(base), self.append]);
        config.system = joined(vec![Some(system_prompt.to_string()), form]);
        let (config, model, ports) = (Arc::new(config), self.model, self.ports);
        let shared = EngineParts { system_prompt, config, toolbox, model, ports, cwd, unknown_tools };
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
