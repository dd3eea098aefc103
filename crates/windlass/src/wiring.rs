//! From the configuration to an engine: the one place that knows every part.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;
use windlass_config::{RunConfig, Settings};
use windlass_engine::{CompactionPolicy, Engine, RunSource, UnknownTool, answer_schema};
use windlass_hooks::SettingsHooks;
use windlass_ports::{AnyTool, BoxFuture, CancellationToken, HookRunner};
use windlass_protocol::{HookAnswer, HookCall, HookEvent, HookScene, ModelCard, SessionKey};
use windlass_sandbox::{Sandbox, VariableChanges};
use windlass_secrets::Redactor;
use windlass_session::SessionPaths;
use windlass_text::nearest::closest;
use windlass_tools::{BashSettings, FileChangeWatcher, GlobSettings, ReadLimits, Tasks, built_in};
use windlass_wire::SessionSetup;

use crate::error::Error;
use crate::hook_wiring::settings_hooks;
use crate::model_choice::{ModelSet, assumption};
use crate::options::OwnParts;
use crate::supervision::launcher;
use crate::{sandbox, slash_commands};

/// An engine, and what is to be said about it.
pub struct WiredEngine {
    /// The engine.
    pub engine: Engine,
    /// What hosts read about it.
    pub setup: SessionSetup,
    /// About this run alone.
    pub warnings: Vec<String>,
    /// About what stays from run to run: files and the model.
    pub standing: Vec<String>,
    /// Whether the user may ask for a compaction.
    pub can_compact: bool,
    /// What runs hooks.
    pub hooks: Option<SettingsHooks>,
    /// Hides secrets.
    pub redactor: Redactor,
}

/// The one session that is meant: commands are told its id.
#[derive(Clone, Debug)]
pub struct SessionStorage {
    /// Its id and its seeds.
    pub key: SessionKey,
    /// Where it is kept, with large results and the output of commands; nowhere if nothing of it is to be left.
    pub paths: Option<SessionPaths>,
    /// Whether another process worked on it before.
    pub is_resumed: bool,
}

/// Who reads a run, and how.
#[derive(Clone, Debug)]
pub struct Audience {
    /// Who asks: a person at a terminal, a host that sends lines, or a program.
    pub source: RunSource,
    /// Whether pieces of messages are wanted as they come.
    pub has_partial_messages: bool,
    /// Whether a host reads what happens line by line.
    pub is_host: bool,
    /// Whether the next prompt is to be suggested, where that was said.
    pub has_prompt_suggestions: Option<bool>,
}

impl Default for Audience {
    fn default() -> Self {
        let source = RunSource::Print;
        Self { source, has_partial_messages: false, is_host: false, has_prompt_suggestions: None }
    }
}

/// Puts an engine together for given models.
pub fn wire_models(
    mut config: RunConfig,
    models: ModelSet,
    audience: &Audience,
    session: &SessionStorage,
    own: OwnParts,
) -> Result<WiredEngine, Error> {
    let tasks = match session.paths.as_ref().map(|paths| paths.side().join("output")) {
        Some(directory) if session.is_resumed => Tasks::resumed(directory),
        output => Tasks::new(output),
    };
    let sandbox = sandbox::prepare(&mut config)?;
    let hidden = config.files.sandbox.texts("sandbox.credentials.envVars");
    let later = VariableChanges::new(hidden.into_iter().map(Into::into));
    let confinement = sandbox::hook_confinement(&config, sandbox.as_ref());
    let mut tools = tools(&config, session.key.id, &tasks, (sandbox, later.clone()));
    tools.extend(own.tools);
    let mut standing: Vec<String> =
        std::iter::once(&models.main).chain(&models.fallbacks).filter_map(assumption).collect();
    standing.extend(config.notices());
    let small = models.small.clone().unwrap_or_else(|| models.main.clone());
    let model = (models.client.clone(), small);
    let (hooks, problems) =
        settings_hooks(&config, (&tools, own.hooks), session, model, (confinement, later))?;
    standing.extend(problems);
    let mut warnings = std::mem::take(&mut config.run_warnings);
    let redactor = Redactor::new(config.settings.api.secrets());
    let setup = setup(&config, &models.main, audience);
    let run = engine_config(&config, &models, audience)?;
    let can_compact = run.context.compaction != CompactionPolicy::Off;
    let mut builder = Engine::builder(models.client, models.main)
        .config(run)
        .tools(tools.clone())
        .change_watcher(Arc::new(FileChangeWatcher::new(tasks.clone())))
        .tasks(tasks)
        .working_directory(config.cwd)
        .may_lack_directories(config.is_replayed)
        .redactor(redactor.clone());
    if let Some(paths) = &session.paths {
        builder = builder.results_directory(paths.results());
    }
    if !config.scripted_hooks.is_empty() {
        builder = builder.hooks(Arc::new(ScriptedHooks(Mutex::new(config.scripted_hooks))));
    } else if let Some(hooks) = &hooks {
        builder = builder.hooks(Arc::new(hooks.clone()));
    }
    for path in config.added_directories {
        builder = builder.add_directory(path);
    }
    if let Some(text) = config.system_prompt {
        builder = builder.system_prompt(text);
    }
    if let Some(text) = config.append_system_prompt {
        builder = builder.append_system_prompt(text);
    }
    let engine = builder.build()?;
    for (is_flag, unknown) in unknown_tools(&engine, &tools) {
        if is_flag { &mut warnings } else { &mut standing }.push(unknown);
    }
    standing.extend(engine.unsupported_settings());
    let tools = engine.config().tools.iter().map(|tool| tool.name.to_string()).collect();
    let cwd = path_text(engine.working_directory());
    Ok(WiredEngine {
        engine,
        setup: SessionSetup { tools, cwd, ..setup },
        warnings,
        standing,
        can_compact,
        hooks,
        redactor,
    })
}

/// What an engine goes by: what was stated, and what follows from the models and the readers.
fn engine_config(
    config: &RunConfig,
    models: &ModelSet,
    audience: &Audience,
) -> Result<windlass_engine::Config, Error> {
    let Settings { run, models: stated, .. } = &config.settings;
    let schema = config.json_schema.as_ref();
    let answer = schema.map(|schema| answer_schema(schema.get(), stated.schema_retries_max));
    // Unless it is asked for, nothing is spent on a small model that the user did not choose.
    let (is_chosen, is_person) = (stated.small.is_some(), audience.source == RunSource::Repl);
    let suggestions = audience.has_prompt_suggestions.or(stated.has_prompt_suggestions);
    Ok(windlass_engine::Config {
        answer: answer.transpose().map_err(Error::Schema)?,
        source: audience.source.clone(),
        fallbacks: models.fallbacks.as_slice().into(),
        small_model: models.small.clone(),
        has_tool_use_summaries: stated
            .has_tool_use_summaries
            .unwrap_or(is_chosen && (is_person || audience.is_host)),
        has_prompt_suggestions: suggestions.unwrap_or(is_chosen && is_person),
        has_partial_messages: audience.has_partial_messages,
        ..run.clone()
    })
}

/// A path as hosts read it.
fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn setup(config: &RunConfig, card: &ModelCard, audience: &Audience) -> SessionSetup {
    let api = &config.settings.api;
    let capability = (audience.source == RunSource::Sdk).then(|| "interrupt_receipt_v1".to_owned());
    SessionSetup {
        additional_directories: config.added_directories.iter().map(|path| path_text(path)).collect(),
        model: card.id.to_string(),
        permission_mode: config.settings.run.permissions.mode.name().to_owned(),
        api_key_source: if api.key.is_some() { "ANTHROPIC_API_KEY" } else { "none" }.to_owned(),
        betas: api.betas.clone(),
        slash_commands: slash_commands::NAMES.map(str::to_owned).to_vec(),
        capabilities: capability.into_iter().collect(),
        has_partial_messages: audience.has_partial_messages,
        ..SessionSetup::default()
    }
}

/// Unknown tools that rules name, and whether a flag names them.
fn unknown_tools(engine: &Engine, tools: &[Arc<dyn AnyTool>]) -> Vec<(bool, String)> {
    let unknown = engine.unknown_tools();
    if unknown.is_empty() {
        return Vec::new();
    }
    let known: Vec<Arc<str>> = tools.iter().map(|tool| tool.spec().name).collect();
    let known: Vec<&str> = known.iter().map(|name| &**name).collect();
    let told = |unknown: &UnknownTool| (unknown.rule.source.file.is_none(), unknown_tool(unknown, &known));
    unknown.iter().map(told).collect()
}

fn unknown_tool(unknown: &UnknownTool, known: &[&str]) -> String {
    let (source, given) = (&unknown.rule.source, crate::display::line(&unknown.name));
    match closest(&given, known) {
        Some(name) => format!("{source}: unknown tool {given}. Did you mean {name}?"),
        None => format!("{source}: unknown tool {given}. The tools are {}.", known.join(", ")),
    }
}

/// The variables that commands start from.
fn environment(config: &RunConfig) -> Vec<(OsString, OsString)> {
    if config.environment.is_empty() {
        return std::env::vars_os().collect();
    }
    config.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The tools, in the order the model sees them.
fn tools(
    config: &RunConfig,
    session: Uuid,
    tasks: &Arc<Tasks>,
    (sandbox, later): (Option<Sandbox>, VariableChanges),
) -> Vec<Arc<dyn AnyTool>> {
    let Settings { shell, files, run, .. } = &config.settings;
    let bash = BashSettings {
        timeout_default: Duration::from_millis(shell.timeout_ms),
        timeout_max: Duration::from_millis(shell.timeout_ms_max),
        inline_chars_max: shell.output_chars_max,
        env_pass: shell.pass.clone(),
        environment: sandbox::without_hidden(environment(config), config),
        can_leave_sandbox: run.permissions.sandbox.as_ref().is_some_and(|sandbox| sandbox.can_leave),
        sandbox,
        later,
        env: vec![
            ("CLAUDE_CODE_SESSION_ID".into(), session.to_string().into()),
            ("CLAUDE_CODE_CHILD_SESSION".into(), "1".into()),
            ("CLAUDE_PID".into(), std::process::id().to_string().into()),
        ],
        env_file: shell.environment_file.as_ref().map(|path| config.cwd.join(path)),
        is_background_off: !shell.can_run_in_background,
        should_keep_directory: shell.should_keep_directory,
        ..BashSettings::new(launcher())
    };
    let glob = GlobSettings {
        should_honour_ignore_files: files.should_glob_ignore,
        should_show_hidden: files.should_glob_hidden,
        timeout: Duration::from_secs(files.glob_timeout_s),
    };
    let read = ReadLimits { tokens_max: files.read_tokens_max, ..ReadLimits::default() };
    built_in(bash, glob, read, tasks)
}

/// Answers that stand in for hooks, given in turn: those that are left of each event.
struct ScriptedHooks(Mutex<BTreeMap<HookEvent, VecDeque<HookAnswer>>>);

impl HookRunner for ScriptedHooks {
    fn events(&self) -> BTreeSet<HookEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    fn run(&self, call: HookCall, _: HookScene, _: CancellationToken) -> BoxFuture<'static, HookAnswer> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = answers.get_mut(&call.event()).and_then(VecDeque::pop_front);
        Box::pin(std::future::ready(next.unwrap_or_default()))
    }
}
