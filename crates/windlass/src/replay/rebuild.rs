//! The engine of a process that wrote a log, from what it said about itself.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::sync::Arc;

use uuid::Uuid;
use windlass_config::{Flags, ProcessContext, RunConfig};
use windlass_engine::{Answerer, Engine, RunSource, SessionSeed};
use windlass_protocol::SessionKey;
use windlass_session::Header;
use windlass_text::paths::clean;

use crate::error::Error;
use crate::model_choice::silent_models;
use crate::options::{Options, OwnParts};
use crate::sessions::{RecordedConfig, SUMS, fill_flags, read_flags};
use crate::settings;
use crate::wiring::{Audience, SessionStorage, wire_models};

/// Reads a command line of the command: earlier versions kept that in their logs, and not what it means.
pub type ArgumentsReader<'a> = &'a dyn Fn(&[String]) -> Result<Options, Box<dyn StdError + Send + Sync>>;

/// The engine that this process had, which asks no questions, with what had come back to it from the session before.
pub(super) fn engine(id: Uuid, header: &Header, arguments: ArgumentsReader<'_>) -> Result<Engine, Error> {
    let recorded = RecordedConfig::read(header);
    let saved = read_flags(&header.settings);
    let given = match recorded.as_ref().and_then(|recorded| recorded.options(&saved)) {
        Some(given) => given,
        None => earlier(
            arguments(&header.arguments).map_err(Error::RecordedArguments)?,
            saved,
            header,
            recorded.as_ref(),
        ),
    };
    // Nothing is done, so nothing has to be refused to anybody.
    let place = ProcessContext { is_root: false, ..settings::process_context_at(header.cwd.clone()) };
    let mut flags = given.flags.clone();
    let added =
        std::mem::take(&mut flags.add_directories).into_iter().map(|path| clean(place.cwd.join(path)));
    let (there, gone): (Vec<_>, Vec<_>) = added.partition(|path| path.is_dir());
    flags.add_directories = there;
    let files = match &recorded {
        Some(recorded) => recorded.files(),
        // An older log does not say what held, so what holds now stands in.
        None => settings::load(&given, place.clone())?.effective.settings,
    };
    let variables = header.variables.iter().map(|(name, value)| (name.into(), value.into()));
    let settings = files.settings(&files.environment(variables))?;
    let mut config = RunConfig::new(settings, &flags, &place, files)?;
    config.settings.run.permissions.asking = given.asking;
    // What is gone since then counts as it was named.
    config.is_replayed = true;
    config.settings.run.permissions.anchors.roots.extend(gone.iter().cloned());
    config.added_directories.extend(gone);
    if let Some(recorded) = recorded {
        recorded.apply(&mut config);
    }
    let models = silent_models(&config)?;
    let key = SessionKey { id, ..SessionSeed(0).into() };
    let storage = SessionStorage { key, paths: None, is_resumed: false };
    Ok(wire_models(config, models, &given.audience, &storage, OwnParts::default())?.engine)
}

/// What a command line asked for, with what had come back. Whether a person answered does not follow from it alone.
fn earlier(given: Options, saved: Flags, header: &Header, recorded: Option<&RecordedConfig>) -> Options {
    let mut flags = given.flags.clone();
    flags.model = saved.model.clone().or(flags.model);
    if saved.system_prompt.is_some() {
        (flags.system_prompt, flags.append_system_prompt) = (saved.system_prompt.clone(), None);
    }
    (flags.disallowed_tools, flags.add_directories) = (Vec::new(), Vec::new());
    fill_flags(&mut flags, saved, &header.cwd);
    let asks_person = recorded.and_then(|recorded| recorded.asks_person);
    let is_person = asks_person.unwrap_or(given.asking == Answerer::Person);
    let (asking, reader) =
        if is_person { (Answerer::Person, RunSource::Repl) } else { (Answerer::Nobody, RunSource::Print) };
    let source = if given.audience.source == RunSource::Sdk { RunSource::Sdk } else { reader };
    Options { flags, asking, audience: Audience { source, ..given.audience }, ..given }
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
