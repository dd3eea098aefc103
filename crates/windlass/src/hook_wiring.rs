//! The hooks of settings files and of the caller, with everything they need of this program.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;
use windlass_config::{RunConfig, SourcedValue};
use windlass_engine::ports::{AnyTool, BoxFuture, ModelClient};
use windlass_engine::protocol::{ExaminedCall, ModelCard};
use windlass_engine::{Anchors, Behaviour, Engine, Rule, RuleError, RuleSource, Update};
use windlass_hooks::{
    AskModel, AskModelError, CallbackHook, Confinement, HookHost, HookSet, HookSource, RuleMatch,
    SettingsHooks,
};
use windlass_protocol::{HookEvent, HookMoment, HookNews};
use windlass_sandbox::VariableChanges;
use windlass_secrets::Redactor;
use windlass_session::SessionPaths;
use windlass_wire::HookLines;

use crate::error::Error;
use crate::output::SideOutput;
use crate::sandbox;
use crate::session::Session;
use crate::supervision::launcher;
use crate::wiring::SessionStorage;

/// The hooks of the settings, and what is wrong with those that are none. The error is a hook that nothing may start without.
pub(crate) fn read_hooks(
    config: &RunConfig,
    tools: &[Arc<dyn AnyTool>],
    callbacks: Vec<CallbackHook>,
) -> Result<(HookSet, Vec<String>), Error> {
    let mut set = HookSet::default();
    set.own_tools = tools.iter().flat_map(|tool| names(&**tool)).collect();
    for hook in callbacks {
        set.callback(hook).map_err(|problem| Error::Hook(Box::new(problem)))?;
    }
    let mut problems = Vec::new();
    let anchors = &config.settings.run.permissions.anchors;
    let check_rule = |rule: &str| condition(rule, anchors).map(drop).map_err(|error| error.problem);
    for group in &config.files.hooks {
        let origin = group.origin.to_string();
        let source = HookSource::settings(&origin);
        let found = set.read_checked(&json!({ &group.event: [group.group] }), &source, &check_rule);
        for problem in found {
            if problem.is_fatal {
                return Err(Error::Hook(Box::new(problem)));
            }
            problems.push(problem.to_string());
        }
    }
    Ok((set, problems))
}

/// The hooks, if there are any, ready to run, and what is wrong with those that are none. What they set for commands is `later`.
pub(crate) fn settings_hooks(
    config: &RunConfig,
    (tools, callbacks): (&[Arc<dyn AnyTool>], Vec<CallbackHook>),
    session: &SessionStorage,
    (client, card): (Arc<dyn ModelClient>, ModelCard),
    (confinement, later): (Confinement, VariableChanges),
) -> Result<(Option<SettingsHooks>, Vec<String>), Error> {
    if config.files.hooks.is_empty() && callbacks.is_empty() {
        return Ok((None, Vec::new()));
    }
    let (set, problems) = read_hooks(config, tools, callbacks)?;
    if set.is_empty() {
        return Ok((None, problems));
    }
    let texts = |list: &Option<Vec<SourcedValue<String>>>| {
        list.as_ref().map(|list| list.iter().map(|item| item.value.clone()).collect())
    };
    let environment: Vec<_> =
        config.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let environment = match &confinement {
        Confinement::Free => environment,
        Confinement::In(_) | Confinement::Missing => sandbox::without_hidden(environment, config),
    };
    let host = HookHost {
        environment,
        pass: config.settings.shell.pass.clone(),
        home: config.settings.run.permissions.anchors.home.clone(),
        http_urls: texts(&config.files.hook_urls),
        http_variables: texts(&config.files.hook_variables),
        rules: Some(rule_match(config.settings.run.permissions.anchors.clone())),
        model: Some(Arc::new(OneQuestion { client, card })),
        launcher: launcher(),
        confinement,
        variable_changes: Some(later),
        outputs: session.paths.as_ref().map(SessionPaths::results),
        ending_time: config.settings.session_end_ms.map(Duration::from_millis),
        ..HookHost::new(config.cwd.clone())
    };
    let hooks = SettingsHooks::new(set, host);
    hooks.bind(session.key, session.paths.as_ref().map(|paths| paths.file().to_owned()));
    Ok((Some(hooks), problems))
}

/// The names that matchers may use for a tool.
fn names(tool: &dyn AnyTool) -> Vec<String> {
    let spec = tool.spec();
    spec.profile.aliases.iter().copied().chain([&*spec.name]).map(str::to_owned).collect()
}

/// Lets the host of a session hear of its hooks: of all, or only of those at its start. The lines are left at `aside`.
pub fn tell_host(session: &Session, should_tell_all: bool, aside: SideOutput) {
    let Some(hooks) = &session.wired.hooks else { return };
    let (redactor, lines) = (session.wired.redactor.clone(), Mutex::new(HookLines::new(session.key)));
    hooks.tell(move |news| {
        if should_tell_all || news.event == HookEvent::SessionStart {
            let news = redact_news(news, &redactor);
            aside.leave(|out| lines.lock().unwrap_or_else(PoisonError::into_inner).append(&news, out));
        }
    });
}

/// What a hook prints may hold secrets.
fn redact_news(mut news: HookNews, redactor: &Redactor) -> HookNews {
    if let HookMoment::Printed(printed) | HookMoment::Ended { printed, .. } = &mut news.moment {
        printed.output = redactor.redact(&printed.output).into_owned();
        printed.errors = redactor.redact(&printed.errors).into_owned();
    }
    news
}

/// The condition of a hook: it is read as generously as what is asked about.
fn condition(rule: &str, anchors: &Anchors) -> Result<Rule, RuleError> {
    Rule::parse(Behaviour::Ask, rule, RuleSource::named("a hook"), anchors)
}

/// Whether a permission rule is about a call: a handler with a condition runs only then, or where that cannot be told.
fn rule_match(anchors: Anchors) -> RuleMatch {
    Arc::new(move |rule: &str, call: &ExaminedCall| condition(rule, &anchors).ok()?.is_about(call))
}

/// Asks a model one question in a session of its own that is not kept.
struct OneQuestion {
    client: Arc<dyn ModelClient>,
    card: ModelCard,
}

impl AskModel for OneQuestion {
    fn ask(&self, model: Option<&str>, prompt: String) -> BoxFuture<'static, Result<String, AskModelError>> {
        let card = model.map_or_else(|| self.card.clone(), windlass_models::model_card);
        let built = Engine::builder(self.client.clone(), card).system_prompt(String::new()).build();
        Box::pin(async move {
            let engine = built.map_err(|error| AskModelError::Unusable(error.into()))?;
            let mut session = engine.session();
            let mut run = session.run(prompt);
            while let Some(update) = run.next().await {
                match update {
                    Update::Done(outcome) if outcome.terminal.is_success() => return Ok(outcome.text),
                    Update::Done(outcome) => return Err(AskModelError::Failed(outcome.errors)),
                    _ => (),
                }
            }
            Err(AskModelError::NoAnswer)
        })
    }
}
