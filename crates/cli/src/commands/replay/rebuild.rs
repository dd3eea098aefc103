//! The engine of a process that wrote a log, from what it said about itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use anyhow::anyhow;
use uuid::Uuid;
use windlass_config::{ProcessContext, RunConfig};
use windlass_engine::{Answerer, Engine, SessionSeed};
use windlass_protocol::SessionKey;
use windlass_session::Header;

use crate::arguments::{self, Arguments, Request};
use windlass::model_choice::silent_models;
use windlass::sessions::{RecordedConfig, SUMS, fill_flags, read_flags};
use windlass::settings;
use windlass::wiring::{Audience, SessionStorage, wire_models};

/// The engine that this process had, asking nobody, with what had come back to it from the session before.
pub(super) fn engine(id: Uuid, header: &Header) -> anyhow::Result<Engine> {
    let given = given(header)?;
    let mut flags = given.flags();
    let saved = read_flags(&header.settings);
    flags.model = saved.model.clone().or(flags.model);
    if saved.system_prompt.is_some() {
        (flags.system_prompt, flags.append_system_prompt) = (saved.system_prompt.clone(), None);
    }
    (flags.disallowed_tools, flags.add_directories) = (Vec::new(), Vec::new());
    fill_flags(&mut flags, saved);
    // Nothing is done, so nothing has to be refused to anybody.
    let place = ProcessContext { is_root: false, ..settings::place_at(header.cwd.clone()) };
    let recorded = RecordedConfig::read(header);
    let files = match &recorded {
        Some(recorded) => recorded.files(),
        // An older log does not say what held, so what holds now stands in.
        None => settings::load(given.settings_flags(), place.clone())?.effective.settings,
    };
    let variables = header.variables.iter().map(|(name, value)| (name.into(), value.into()));
    let settings = files.settings(&files.environment(variables))?;
    let mut config = RunConfig::with_files(settings, &flags, &place, files)?;
    let asks_person = recorded.as_ref().and_then(|recorded| recorded.asks_person);
    let person = asks_person.unwrap_or_else(|| given.is_interactive());
    if person {
        config.permissions.asking = Answerer::Person;
    }
    if let Some(recorded) = recorded {
        recorded.apply(&mut config);
    }
    let audience = Audience { partial_messages: given.include_partial_messages, ..given.audience(person) };
    let models = silent_models(&config)?;
    let key = SessionKey { id, ..SessionSeed(0).into() };
    let storage = SessionStorage { key, paths: None, resumed: false };
    Ok(wire_models(config, models, &audience, &storage, Vec::new())?.engine)
}

/// The flags the process was given.
fn given(header: &Header) -> anyhow::Result<Box<Arguments>> {
    let line: Vec<OsString> =
        std::iter::once("windlass".into()).chain(header.arguments.iter().map(OsString::from)).collect();
    match arguments::parse(&line) {
        Ok(Request::Print(arguments)) => Ok(arguments),
        Ok(Request::Replay(wanted)) => {
            let model = wanted.with_model.as_deref().unwrap_or_default();
            super::live(&wanted, model, "", Uuid::nil()).map(Box::new)
        }
        Ok(_) => Err(anyhow!("the log does not hold the command line of the process that wrote it")),
        Err(error) => {
            Err(anyhow!("the log holds a command line that this version does not understand: {error}"))
        }
    }
}

/// What is not as it was when the log was written, in words; empty if nothing is known to differ.
pub(super) fn differences(engine: &Engine, header: &Header) -> Vec<String> {
    let mut differences = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    if &*header.engine != version {
        differences.push(format!("version {} wrote the log; this is {version}", header.engine));
    }
    let sums = header.settings.get(SUMS).map(Arc::as_ref);
    let sums: BTreeMap<String, String> =
        sums.and_then(|sums| serde_json::from_str(sums.0.get()).ok()).unwrap_or_default();
    for (part, sum) in engine.sums() {
        if sums.get(part).is_some_and(|then| *then != format!("{sum:016x}")) {
            differences.push(format!("different {part}"));
        }
    }
    differences
}
