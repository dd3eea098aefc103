//! What does not change during a session, and how it is put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::{Config, EarlyStart, Permissions, RetryPolicy, UnknownTools};
use windlass_ports::{AnyTool, ModelClient};
use windlass_protocol::{ModelCard, SessionSeed, Transcript};

use crate::prompt::default_system_prompt;
use crate::session::Session;
use crate::toolbox::Toolbox;

/// A model, tools and a configuration: everything sessions share.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) model: Arc<dyn ModelClient>,
    pub(crate) toolbox: Toolbox,
    pub(crate) cwd: PathBuf,
    unknown_tools: UnknownTools,
}

/// Why an engine cannot be built. The user or the caller must act.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A working directory cannot be used.
    #[error("the directory {path} cannot be used: {source}. Give one that exists and can be read")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A tool that no provider would take: every request would fail because of it.
    #[error("the tool {name:?} cannot be offered: {problem}")]
    InvalidTool {
        /// Which.
        name: Arc<str>,
        /// Why.
        problem: &'static str,
    },
    /// Two tools have one name.
    #[error("two tools are called {0}; names must differ")]
    DuplicateTool(Arc<str>),
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
    config: Config,
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
        }
    }

    /// A new session.
    #[must_use]
    pub fn session(&self) -> Session {
        self.session_with(SessionSeed(uuid::Uuid::new_v4().as_u128()), Transcript::default())
    }

    /// A session with this seed that goes on from these messages. The last gate mends what they lack.
    #[must_use]
    pub fn session_with(&self, seed: SessionSeed, messages: Transcript) -> Session {
        Session::new(self.shared.clone(), seed, messages)
    }

    /// The names of the tools on offer, in order.
    #[must_use]
    pub fn tool_names(&self) -> Vec<Arc<str>> {
        self.shared.config.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// The names in the permissions that mean no tool. Worth a warning: they may be meant for another tool.
    #[must_use]
    pub fn unknown_tools(&self) -> &UnknownTools {
        &self.shared.unknown_tools
    }

    /// The project's directory, resolved.
    #[must_use]
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

    /// Who may do what.
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.config.permissions = permissions;
        self
    }

    /// How many iterations of a run may ask for tools.
    pub fn turns_max(mut self, limit: Option<u32>) -> Self {
        self.config.turns_max = limit;
        self
    }

    /// The cap on output tokens of one response; never above the model's own.
    pub fn output_tokens_max(mut self, limit: u32) -> Self {
        self.config.output.explicit = Some(limit);
        self
    }

    /// When and how often a failed request is sent again.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.config.retry = policy;
        self
    }

    /// Whether pieces of blocks are shown as they arrive.
    pub fn partial_messages(mut self, show: bool) -> Self {
        self.config.partial_messages = show;
        self
    }

    /// How many shared calls may run at once; at least one.
    pub fn shared_calls_max(mut self, limit: usize) -> Self {
        self.config.shared_calls_max = limit.max(1);
        self
    }

    /// Which calls may start while the model still talks.
    pub fn early_start(mut self, which: EarlyStart) -> Self {
        self.config.early_start = which;
        self
    }

    /// Checks everything and builds the engine.
    pub fn build(self) -> Result<Engine, EngineError> {
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
        config.tools = toolbox.specs(&config.permissions.disallowed);
        let base = self.system_prompt.unwrap_or_else(|| default_system_prompt(&config.tools));
        config.system = match self.append {
            Some(text) if base.is_empty() => text.into(),
            Some(text) => format!("{base}\n\n{text}").into(),
            None => base.into(),
        };
        Ok(Engine { shared: Arc::new(Shared { config, model: self.model, toolbox, cwd, unknown_tools }) })
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
