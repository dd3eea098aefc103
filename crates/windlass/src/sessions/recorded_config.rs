//! What held when a session was opened and a log has to say, so that the session can be played again when other settings hold.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use windlass_config::{FileSettings, Flags, RecordedSettings, RunConfig};
use windlass_engine::{Answerer, CommandPattern, Engine, RunSource, SandboxPermissions};
use windlass_protocol::{HookEvent, RawValueEq};
use windlass_session::Header;

use crate::options::Options;
use crate::wiring::Audience;

/// Under this name a log keeps what held.
const RECORDED: &str = "held";

/// Under this name a log keeps what the session had cost when the process opened it, where that is not what it cost so far.
const BEFORE_USD: &str = "beforeUsd";

/// What held: settings, hooks and the sandbox, and who was asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RecordedConfig {
    settings: RecordedSettings,
    /// The events that hooks were there for.
    hooks: Vec<String>,
    sandbox: Option<RecordedSandbox>,
    /// Whether a person answered questions, if the log says it; the command line alone does not.
    pub(crate) asks_person: Option<bool>,
    /// Whether the mode `bypassPermissions` was refused, so that no denial advised it.
    bypass_refused: bool,
    /// Who read the runs; an older log has the command line instead.
    audience: Option<RecordedAudience>,
}

/// Who read the runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RecordedAudience {
    source: String,
    partial_messages: bool,
    reads_lines: bool,
    prompt_suggestions: Option<bool>,
}

/// Who can ask for a run, by the names in logs.
const SOURCES: [(&str, RunSource); 3] =
    [("repl", RunSource::Repl), ("sdk", RunSource::Sdk), ("print", RunSource::Print)];

/// How commands were confined.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RecordedSandbox {
    auto_allow: bool,
    may_leave: bool,
    excluded: Vec<String>,
}

impl RecordedConfig {
    /// What a configuration says, and what it was made from, without hooks and sandbox.
    pub(crate) fn of(config: &RunConfig, audience: &Audience) -> Self {
        let source = SOURCES.iter().find(|(_, source)| *source == audience.source);
        Self {
            audience: Some(RecordedAudience {
                source: source.map_or_else(String::new, |(name, _)| (*name).to_owned()),
                partial_messages: audience.has_partial_messages,
                reads_lines: audience.is_host,
                prompt_suggestions: audience.has_prompt_suggestions,
            }),
            settings: RecordedSettings::of(&config.files),
            asks_person: Some(config.settings.run.permissions.asking == Answerer::Person),
            bypass_refused: config.settings.run.permissions.is_bypass_refused,
            ..Self::default()
        }
    }

    /// The same with the hooks and the sandbox of an engine.
    pub(crate) fn with_engine(self, engine: &Engine) -> Self {
        let sandbox = engine.config().permissions.sandbox.as_ref().map(|sandboxing| RecordedSandbox {
            auto_allow: sandboxing.should_auto_allow,
            may_leave: sandboxing.can_leave,
            excluded: sandboxing.excluded.iter().map(|pattern| pattern.text().to_owned()).collect(),
        });
        let hooks = engine.config().hooks.iter().map(|event| event.name().to_owned()).collect();
        Self { hooks, sandbox, ..self }
    }

    /// Adds it to what a log says about a process.
    pub(crate) fn write(&self, settings: &mut BTreeMap<String, Arc<RawValueEq>>) {
        insert(settings, RECORDED, self);
    }

    /// What held in the process that wrote this; none if the log does not say it.
    pub(crate) fn read(header: &Header) -> Option<Self> {
        serde_json::from_str(header.settings.get(RECORDED)?.0.get()).ok()
    }

    /// What the caller had asked for with these flags; none if the log does not say who read the runs.
    pub(crate) fn options(&self, flags: &Flags) -> Option<Options> {
        let said = self.audience.as_ref()?;
        let (_, source) = SOURCES.into_iter().find(|(name, _)| *name == said.source)?;
        let audience = Audience {
            source,
            has_partial_messages: said.partial_messages,
            is_host: said.reads_lines,
            has_prompt_suggestions: said.prompt_suggestions,
        };
        let asking = if self.asks_person == Some(true) { Answerer::Person } else { Answerer::Nobody };
        Some(Options { flags: flags.clone(), audience, asking, ..Options::new() })
    }

    /// The settings that files held.
    pub(crate) fn files(&self) -> FileSettings {
        self.settings.clone().restore()
    }

    /// Makes hooks, sandbox and refused modes hold. Nothing is run in a replay, so no hook has to answer and no command is confined.
    pub(crate) fn apply(self, config: &mut RunConfig) {
        let is_named = |event: &HookEvent| self.hooks.iter().any(|name| name == event.name());
        let events = HookEvent::ALL.into_iter().filter(is_named);
        config.scripted_hooks = events.map(|event| (event, VecDeque::new())).collect();
        config.settings.run.permissions.is_bypass_refused = self.bypass_refused;
        config.settings.run.permissions.sandbox = self.sandbox.map(|sandbox| SandboxPermissions {
            should_auto_allow: sandbox.auto_allow,
            can_leave: sandbox.may_leave,
            excluded: sandbox.excluded.iter().filter_map(|text| CommandPattern::parse(text)).collect(),
        });
    }
}

/// Notes in a log what the session had cost when the process opened it.
pub(crate) fn write_before_usd(header: &mut Header, before_usd: f64) {
    insert(&mut header.settings, BEFORE_USD, &before_usd);
}

/// What the session had cost when the process opened it, where the log says so.
pub(crate) fn read_before_usd(header: &Header) -> Option<f64> {
    serde_json::from_str(header.settings.get(BEFORE_USD)?.0.get()).ok()
}

/// Adds a value to the settings that a log keeps.
pub(super) fn insert(settings: &mut BTreeMap<String, Arc<RawValueEq>>, name: &str, value: &impl Serialize) {
    if let Ok(raw) = to_raw_value(value) {
        settings.insert(name.to_owned(), Arc::new(RawValueEq(raw)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::SessionSeed;

    #[test]
    fn an_older_log_says_nothing_of_what_held() {
        let mut header = Header::new(SessionSeed(1), std::path::Path::new("/p"), 0);
        assert!(RecordedConfig::read(&header).is_none());
        insert(&mut header.settings, RECORDED, &"something else");
        assert!(RecordedConfig::read(&header).is_none());
        assert_eq!(read_before_usd(&header), None);
    }

    #[test]
    fn what_held_comes_back() {
        let mut header = Header::new(SessionSeed(1), std::path::Path::new("/p"), 0);
        let sandbox = RecordedSandbox { auto_allow: true, may_leave: false, excluded: vec!["make *".into()] };
        let recorded = RecordedConfig {
            hooks: vec!["Stop".into(), "Unheard".into()],
            sandbox: Some(sandbox),
            bypass_refused: true,
            ..RecordedConfig::default()
        };
        recorded.write(&mut header.settings);
        write_before_usd(&mut header, 0.25);
        let mut config = RunConfig::default();
        RecordedConfig::read(&header).unwrap().apply(&mut config);
        assert_eq!(config.scripted_hooks.keys().copied().collect::<Vec<_>>(), [HookEvent::Stop]);
        assert!(config.settings.run.permissions.is_bypass_refused);
        let sandboxing = config.settings.run.permissions.sandbox.unwrap();
        assert_eq!(
            (sandboxing.should_auto_allow, sandboxing.can_leave, sandboxing.excluded.len()),
            (true, false, 1)
        );
        assert_eq!(read_before_usd(&header), Some(0.25));
    }
}
