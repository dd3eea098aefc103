//! From the configuration to an engine: the one place that knows every part.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use windlass_config::{Api, Config, Models, Settings};
use windlass_engine::{CompactionPolicy, Engine, EngineBuilder, Source, UnknownTool, answer_schema};
use windlass_hooks::SettingsHooks;
use windlass_models::{
    AnthropicClient, AnthropicSettings, ClientIdentity, FAMILIES, Script, ScriptModel, WatchdogLimits,
    model_card, resolve_family,
};
use windlass_ports::{AnyTool, BoxStream, ModelClient};
use windlass_protocol::{ModelCard, ModelEvent, ModelRequest, SessionKey};
use windlass_sandbox::{LaterVariables, Launcher, Sandbox};
use windlass_secrets::Redactor;
use windlass_tools::{
    Bash, BashSettings, Edit, Glob, GlobSettings, Grep, Lookout, Read, ReadLimits, TaskStop, Tasks, Write,
};
use windlass_wire::Setup;

use crate::commands;
use crate::confine;
use crate::hooking::{AroundHooks, settings_hooks};
use crate::hooks::ScriptedHooks;
use crate::suggest::closest;

/// This very program, even when its file has been replaced since.
pub(crate) const SELF: &str = "/proc/self/exe";

pub(crate) const NO_KEY: &str = "No API key is set. Set ANTHROPIC_API_KEY to a key; \
     for a local server that speaks the Messages API, set ANTHROPIC_BASE_URL, such as to http://localhost:8080; \
     or try `windlass demo`, which needs neither.";

/// An engine, and what is to be said about it.
pub(crate) struct Wired {
    pub(crate) engine: Engine,
    pub(crate) setup: Setup,
    /// About this run alone.
    pub(crate) warnings: Vec<String>,
    /// About what stays from run to run: files and the model.
    pub(crate) standing: Vec<String>,
    /// Whether the user may ask for a compaction.
    pub(crate) may_compact: bool,
    /// What runs hooks.
    pub(crate) hooks: Option<SettingsHooks>,
    /// Hides what nobody may read.
    pub(crate) redactor: Redactor,
}

/// The models that an engine asks.
pub(crate) struct ModelSet {
    client: Arc<dyn ModelClient>,
    pub(crate) main: ModelCard,
    fallbacks: Vec<ModelCard>,
    small: Option<ModelCard>,
}

impl ModelSet {
    /// One model and no other.
    pub(crate) fn only(client: Arc<dyn ModelClient>, main: ModelCard) -> Self {
        Self { client, main, fallbacks: Vec::new(), small: None }
    }
}

/// Puts the engine together. Each error is for the user.
pub(crate) fn wire(config: Config, form: Form, session: &Kept) -> Result<Wired, String> {
    let models = models(&config)?;
    wire_models(config, models, form, session)
}

/// The one session that is meant: commands are told its id.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) key: SessionKey,
    /// Where its log is.
    pub(crate) log: Option<PathBuf>,
    /// Where results go that are too large for the transcript; they are kept as long as the session.
    pub(crate) results: Option<PathBuf>,
    /// Where the output of commands goes; it is kept as long as the session.
    pub(crate) output: Option<PathBuf>,
    /// Whether another process worked on it before.
    pub(crate) resumed: bool,
}

impl Kept {
    /// A session that leaves nothing.
    pub(crate) fn nowhere(key: SessionKey) -> Self {
        Self { key, log: None, results: None, output: None, resumed: false }
    }
}

/// How a host speaks with us.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Form {
    /// Whether it wants the pieces of messages.
    pub(crate) partial_messages: bool,
    /// Whether it sends lines.
    pub(crate) lines: bool,
    /// Whether it is a person at a terminal.
    pub(crate) person: bool,
    /// Whether it reads what happens line by line.
    pub(crate) reads_lines: bool,
    /// Whether it wants the next prompt suggested, where it was said.
    pub(crate) prompt_suggestions: Option<bool>,
}

impl Form {
    /// Who asks.
    fn source(self) -> Source {
        match self {
            Self { lines: true, .. } => Source::Sdk,
            Self { person: true, .. } => Source::Repl,
            Self { .. } => Source::Print,
        }
    }
}

/// Puts an engine together for given models.
pub(crate) fn wire_models(
    mut config: Config,
    models: ModelSet,
    form: Form,
    session: &Kept,
) -> Result<Wired, String> {
    let tasks = match &session.output {
        Some(directory) if session.resumed => Tasks::resumed(directory.clone()),
        output => Tasks::new(output.clone()),
    };
    let sandbox = confine::prepare(&mut config)?;
    let hidden = config.files.sandbox.hidden_variables.iter().map(|variable| variable.name.clone().into());
    let later = LaterVariables::new(hidden);
    let around_hooks =
        AroundHooks { confinement: confine::of_hooks(&config, sandbox.as_ref()), later: later.clone() };
    let tools = tools(&config, session.key.id, &tasks, (sandbox, later));
    let mut standing: Vec<String> =
        std::iter::once(&models.main).chain(&models.fallbacks).filter_map(assumption).collect();
    standing.extend(config.notices());
    let small = models.small.clone().unwrap_or_else(|| models.main.clone());
    let (hooks, problems) = settings_hooks(&config, session, (models.client.clone(), small), around_hooks)?;
    standing.extend(problems);
    let mut warnings = std::mem::take(&mut config.run_warnings);
    let may_compact = config.context.compaction != CompactionPolicy::Off;
    let redactor = Redactor::new(config.settings.api.secrets());
    let setup = setup(&config, &models.main, form);
    let builder = limits(Engine::builder(models.client, models.main), &config)?;
    let mut builder = small_model_work(builder, &config, form)
        .fallback_models(models.fallbacks)
        .small_model(models.small)
        .tools(tools.clone())
        .lookout(Arc::new(Lookout::new(tasks.clone())))
        .tasks(tasks)
        .working_directory(config.cwd)
        .source(form.source())
        .permissions(config.permissions)
        .memory(config.memory)
        .redactor(redactor.clone())
        .partial_messages(form.partial_messages);
    if let Some(path) = &session.results {
        builder = builder.results_directory(path.clone());
    }
    if !config.scripted_hooks.is_empty() {
        builder = builder.hooks(Arc::new(ScriptedHooks::new(config.scripted_hooks)));
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
    let engine = builder.build().map_err(|error| format!("{error}."))?;
    for (is_flag, unknown) in unknown_tools(&engine, &tools) {
        if is_flag { &mut warnings } else { &mut standing }.push(unknown);
    }
    standing.extend(engine.unheeded());
    let tools = engine.tool_names().iter().map(ToString::to_string).collect();
    let cwd = shown(engine.working_directory());
    Ok(Wired {
        engine,
        setup: Setup { tools, cwd, ..setup },
        warnings,
        standing,
        may_compact,
        hooks,
        redactor,
    })
}

/// Every number that was stated.
fn limits(builder: EngineBuilder, config: &Config) -> Result<EngineBuilder, String> {
    let limits = &config.settings.limits;
    let schema =
        config.json_schema.as_ref().map(|schema| answer_schema(schema.get(), limits.schema_retries_max));
    Ok(builder
        .thinking(config.thinking)
        .effort(config.effort)
        .answer(schema.transpose().map_err(|error| format!("--json-schema: {error}."))?)
        .turns_max(config.turns_max)
        .budget_usd(config.budget_usd)
        .task_budget(config.task_budget)
        .token_budget(limits.token_budget)
        .continuation(limits.continuation)
        .output(limits.output)
        .context(config.context)
        .retry(config.settings.retry)
        .repeats(limits.repeats)
        .stop_hook_blocks_max(limits.stop_hook_blocks_max)
        .pauses_max(limits.pauses_max)
        .shared_calls_max(limits.shared_calls_max)
        .early_start(limits.early_start))
}

/// What the small model does for whoever watches. Unless it is asked for, nothing is spent on a model that the user did not
/// choose.
fn small_model_work(builder: EngineBuilder, config: &Config, form: Form) -> EngineBuilder {
    let (limits, is_chosen) = (&config.settings.limits, config.settings.models.small.is_some());
    let suggestions = form.prompt_suggestions.or(limits.prompt_suggestions);
    builder
        .tool_use_summaries(
            limits.tool_use_summaries.unwrap_or(is_chosen && (form.person || form.reads_lines)),
        )
        .prompt_suggestions(suggestions.unwrap_or(is_chosen && form.person))
}

/// The model client and what is known about its models.
fn models(config: &Config) -> Result<ModelSet, String> {
    let Settings { api, models, .. } = &config.settings;
    let named = resolve_family(&config.model.name, &models.families);
    if let Some(path) = &models.script {
        let script = Script::load(config.cwd.join(path)).map_err(|error| error.to_string())?;
        let named = if config.model.by_flag { named } else { &script.model };
        let card = |name: &str| ModelCard { known: true, ..card(name, models) };
        let (main, fallbacks) = (card(named), fallbacks(config, named)?);
        let fallbacks = fallbacks.iter().map(|name| card(name)).collect();
        let small = Some(small(&main, models));
        return Ok(ModelSet { client: Arc::new(ScriptModel::new(script)), main, fallbacks, small });
    }
    if !can_reach(api) {
        return Err(NO_KEY.into());
    }
    let client = AnthropicClient::new(client_settings(api)).map_err(|error| error.to_string())?;
    let main = card(named, models);
    let fallbacks = fallbacks(config, named)?.iter().map(|name| card(name, models)).collect();
    let small = Some(small(&main, models));
    Ok(ModelSet { client: Arc::new(client), main, fallbacks, small })
}

/// The models of a configuration, and nobody to ask: for sessions that are only played again. Which model it was is named in
/// full, since a script may have named another.
pub(crate) fn silent_models(config: &Config) -> Result<ModelSet, String> {
    let models = &config.settings.models;
    let named = resolve_family(&config.model.name, &models.families);
    let known = models.script.is_some();
    let card = |name: &str| {
        let card = card(name, models);
        ModelCard { known: known || card.known, ..card }
    };
    let main = card(named);
    let fallbacks = fallbacks(config, named)?.iter().map(|name| card(name)).collect();
    let small = Some(small(&main, models));
    Ok(ModelSet { client: Arc::new(Silence), main, fallbacks, small })
}

/// A model that says nothing.
struct Silence;

impl ModelClient for Silence {
    fn stream(&self, _: Arc<ModelRequest>) -> BoxStream<'static, ModelEvent> {
        Box::pin(futures_util::stream::empty())
    }
}

/// The ids of the models that take over. One that does so from itself, or twice, is a mistake.
fn fallbacks(config: &Config, main: &str) -> Result<Vec<String>, String> {
    let mut ids = Vec::new();
    for name in &config.fallbacks {
        let id = resolve_family(name, &config.settings.models.families).to_owned();
        if id == main || ids.contains(&id) {
            return Err(format!(
                "--fallback-model {name} is already {}. Give another model.",
                if id == main { "the model" } else { "among the fallback models" }
            ));
        }
        ids.push(id);
    }
    Ok(ids)
}

/// The model for summaries in the background. Where we do not know the model, we do not know its siblings either.
fn small(main: &ModelCard, models: &Models) -> ModelCard {
    match &models.small {
        Some(name) => model_card(resolve_family(name, &models.families)),
        None if model_card(&main.id).known || models.families.contains_key("haiku") => {
            model_card(resolve_family("haiku", &models.families))
        }
        None => main.clone(),
    }
}

/// Whether somebody said where to go or who asks.
pub(crate) fn can_reach(api: &Api) -> bool {
    let names_credentials =
        |name: &str| name.eq_ignore_ascii_case("x-api-key") || name.eq_ignore_ascii_case("authorization");
    api.key.is_some()
        || api.token.is_some()
        || api.base_url.is_some()
        || api.headers.iter().any(|(name, _)| names_credentials(name))
}

fn card(name: &str, models: &Models) -> ModelCard {
    let card = model_card(name);
    match models.window_tokens {
        Some(window_tokens) => {
            // Strict servers count the most that an answer may take as taken: half of the window is left for the prompt.
            let half = u32::try_from(window_tokens / 2).unwrap_or(u32::MAX).max(1);
            let output_tokens_max = card.output_tokens_max.min(half);
            ModelCard { window_tokens, output_tokens_max, known: true, ..card }
        }
        None => card,
    }
}

fn client_settings(api: &Api) -> AnthropicSettings {
    let defaults = AnthropicSettings::default();
    let limit = |standard: Option<Duration>| match api.silence_ms {
        None => standard,
        Some(0) => None,
        Some(ms) => Some(Duration::from_millis(ms)),
    };
    AnthropicSettings {
        base_url: api.base_url.as_ref().map_or(defaults.base_url, |url| url.reveal().to_owned()),
        api_key: api.key.clone(),
        auth_token: api.token.clone(),
        custom_headers: api.headers.clone(),
        betas: api.betas.clone(),
        watchdog: WatchdogLimits {
            bytes: limit(defaults.watchdog.bytes),
            events: limit(defaults.watchdog.events),
        },
        extra_ca_file: api.extra_authorities.clone(),
        client_identity: api
            .client_certificate
            .clone()
            .zip(api.client_key.clone())
            .map(|(cert_file, key_file)| ClientIdentity { cert_file, key_file }),
        prompt_caching: api.prompt_caching,
        ..defaults
    }
}

/// What is only assumed about the model, and how to correct it.
pub(crate) fn assumption(card: &ModelCard) -> Option<String> {
    (!card.known).then(|| {
        let families = FAMILIES.map(|(family, _)| family);
        let meant = closest(&card.id, &families).map(|family| format!(" Did you mean {family}?"));
        format!(
            "Unknown model {}.{} Windlass assumes a context window of {} tokens; \
             set CLAUDE_CODE_MAX_CONTEXT_TOKENS to correct it.",
            card.id,
            meant.unwrap_or_default(),
            crate::display::number(card.window_tokens)
        )
    })
}

/// A path as hosts read it.
fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn setup(config: &Config, card: &ModelCard, form: Form) -> Setup {
    let api = &config.settings.api;
    Setup {
        additional_directories: config.added_directories.iter().map(|path| shown(path)).collect(),
        model: card.id.to_string(),
        permission_mode: config.permissions.mode.name().to_owned(),
        api_key_source: if api.key.is_some() { "ANTHROPIC_API_KEY" } else { "none" }.to_owned(),
        betas: api.betas.clone(),
        slash_commands: commands::NAMES.map(str::to_owned).to_vec(),
        capabilities: if form.lines { vec!["interrupt_receipt_v1".into()] } else { Vec::new() },
        partial_messages: form.partial_messages,
        ..Setup::default()
    }
}

/// Says which rules name no tool.
/// Tools that rules name and nobody knows, and whether a flag names them.
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
fn environment(config: &Config) -> Vec<(OsString, OsString)> {
    if config.environment.is_empty() {
        return std::env::vars_os().collect();
    }
    config.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The tools, in the order the model sees them.
fn tools(
    config: &Config,
    session: Uuid,
    tasks: &Arc<Tasks>,
    (sandbox, later): (Option<Sandbox>, LaterVariables),
) -> Vec<Arc<dyn AnyTool>> {
    let Settings { shell, files, .. } = &config.settings;
    let bash = BashSettings {
        timeout_default: Duration::from_millis(shell.timeout_ms),
        timeout_max: Duration::from_millis(shell.timeout_ms_max),
        inline_chars_max: shell.output_chars_max,
        env_pass: shell.pass.clone(),
        environment: confine::without_hidden(environment(config), config),
        may_leave_sandbox: config.permissions.sandbox.as_ref().is_some_and(|sandbox| sandbox.may_leave),
        sandbox,
        later,
        env: vec![
            ("CLAUDE_CODE_SESSION_ID".into(), session.to_string().into()),
            ("CLAUDE_CODE_CHILD_SESSION".into(), "1".into()),
            ("CLAUDE_PID".into(), std::process::id().to_string().into()),
        ],
        env_file: shell.environment_file.as_ref().map(|path| config.cwd.join(path)),
        background_disabled: !shell.background,
        maintain_project_cwd: shell.keep_directory,
        ..BashSettings::new(Launcher::supervised(SELF.into()))
    };
    let glob = GlobSettings {
        honour_ignore_files: files.glob_ignore,
        hidden: files.glob_hidden,
        timeout: Duration::from_secs(files.glob_timeout_s),
    };
    vec![
        Arc::new(Bash::new(bash, tasks.clone())),
        Arc::new(Edit),
        Arc::new(Glob::new(glob)),
        Arc::new(Grep::default()),
        Arc::new(Read::new(ReadLimits { tokens_max: files.read_tokens_max, ..ReadLimits::default() })),
        Arc::new(TaskStop::new(tasks.clone())),
        Arc::new(Write),
    ]
}

#[cfg(test)]
mod tests {
    use windlass_config::VARIABLES;

    use super::*;

    #[test]
    fn every_family_is_named_where_users_look() {
        let find = |name: &str| VARIABLES.iter().find(|variable| variable.name == name).expect(name);
        for (family, _) in FAMILIES {
            assert!(find("ANTHROPIC_MODEL").accepts.contains(family), "{family}");
            let variable = find(&format!("ANTHROPIC_DEFAULT_{}_MODEL", family.to_uppercase()));
            assert!(variable.meaning.contains(&format!("`{family}`")), "{family}");
        }
    }
}
