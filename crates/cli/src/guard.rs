//! Settings files and trust: what holds before anything of a project acts.

mod keep;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use windlass_config::{
    Effective, Home, Place, SettingSources, Settings, SettingsFiles, SettingsPlaces, Severity, TrustAnswer,
    TrustRequest, TrustState, TrustStore,
};

use crate::acting::Acting;
use crate::display;
pub(crate) use keep::Keeper;

/// Where the administrator of the machine keeps files for everybody.
pub(crate) const MANAGED: &str = "/etc/claude-code";

/// What the command line says about settings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said<'a> {
    /// Each `--settings`, in the order they were given.
    pub(crate) settings: &'a [String],
    /// Each `--setting-sources`; more than one is refused.
    pub(crate) sources: &'a [String],
    /// `--trust-project`.
    pub(crate) trust: bool,
    /// Nobody can be asked.
    pub(crate) headless: bool,
}

/// What holds, and where it came from.
pub(crate) struct Guard {
    /// What environment and files say together.
    pub(crate) settings: Settings,
    /// The variables of the run and its commands.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) effective: Effective,
    pub(crate) home: Home,
    pub(crate) places: SettingsPlaces,
    /// What of the project waits for trust: that belongs on standard error whoever reads the rest.
    pub(crate) untrusted: Option<String>,
    /// What the user should know besides.
    pub(crate) notices: Vec<String>,
}

impl Guard {
    /// Says everything that the user should know.
    pub(crate) fn complain(&self) {
        self.untrusted.iter().chain(&self.notices).for_each(|notice| crate::complain(notice));
    }
}

/// Where and as whom the process runs.
pub(crate) fn place() -> Result<Place, String> {
    let cwd = std::env::current_dir().map_err(|error| {
        format!("the current directory cannot be used: {error}. Change to one that exists and can be read.")
    })?;
    let is_root = rustix::process::geteuid().is_root();
    Ok(Place { cwd, is_root, home: std::env::home_dir(), managed: MANAGED.into() })
}

/// Every settings file, with the places it was looked for, and our own home.
pub(crate) fn files(said: Said<'_>, place: &Place) -> Result<(SettingsFiles, Home), String> {
    // Where our home is follows from the environment alone: no file may move it.
    let bare = Settings::from_environment(std::env::vars_os()).map_err(|error| error.to_string())?;
    let home = Home::new(&bare.home, place);
    let config_home = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let places = SettingsPlaces::new(place, &home).with_config_home(config_home);
    Ok((SettingsFiles::read(places, sources(said)?, said.settings), home))
}

/// Which files count. Who says it twice may lose the rules of a file without knowing, whichever of the two would win.
fn sources(said: Said<'_>) -> Result<SettingSources, String> {
    match said.sources {
        [] => Ok(SettingSources::default()),
        [names] => SettingSources::parse(names).map_err(|error| error.to_string()),
        _ => Err("--setting-sources is given more than once, and it decides whose rules hold. \
                  Give it once, with all names separated by commas."
            .to_owned()),
    }
}

/// Reads what holds here. The order is fixed: what the user and the administrator say, then trust, then what the project says. `ask`
/// is called with what the project would do, if somebody has to agree to it first.
pub(crate) fn load(said: Said<'_>, place: &Place, ask: impl FnOnce(&str) -> bool) -> Result<Guard, String> {
    let (files, home) = files(said, place)?;
    let (trusted, state) = decide_trust(&files, &home, said, ask)?;
    let effective = files.effective(trusted);
    if let Some(problem) = effective.fatal() {
        return Err(problem.to_string());
    }
    let environment = effective.settings.environment(std::env::vars_os());
    let settings = effective.settings.settings(&environment).map_err(|error| error.to_string())?;
    let mut notices: Vec<String> = effective
        .problems
        .iter()
        .filter(|problem| problem.severity != Severity::Fatal)
        .map(ToString::to_string)
        .collect();
    notices.extend(unread(&files));
    let untrusted = left_out(&effective.skipped, &state);
    Ok(Guard { settings, environment, home, places: files.places().clone(), effective, untrusted, notices })
}

fn decide_trust(
    files: &SettingsFiles,
    home: &Home,
    said: Said<'_>,
    ask: impl FnOnce(&str) -> bool,
) -> Result<(bool, TrustState), String> {
    let parts = files.parts();
    if parts.is_empty() {
        return Ok((true, TrustState::NeverAsked));
    }
    let state = match home.directory() {
        Some(path) => {
            TrustStore::new(path).state(files.places(), &parts).map_err(|error| error.to_string())?
        }
        None => TrustState::NeverAsked,
    };
    let named = sources(said).is_ok_and(|sources| sources.stated && sources.project);
    let request =
        TrustRequest { headless: said.headless, sources_name_project: named, trust_flag: said.trust };
    let agreed = match request.answer(&state) {
        TrustAnswer::Trust => true,
        TrustAnswer::Skip => false,
        TrustAnswer::Ask => {
            let agreed = ask(&question(files, &state));
            if let (true, Some(path)) = (agreed, home.directory()) {
                TrustStore::new(path).grant(files.places(), &parts).map_err(|error| error.to_string())?;
            }
            agreed
        }
    };
    Ok((agreed, state))
}

/// What a person is asked before anything of a project acts.
fn question(files: &SettingsFiles, state: &TrustState) -> String {
    let root = files.places().root().display().to_string();
    let root = display::line(&root);
    let acting = Acting::of(files);
    match state {
        TrustState::Changed { added, removed, files } => format!(
            "The project in {root} is not what you agreed to any more.\n{}",
            acting.difference(added, removed, files)
        ),
        TrustState::NeverAsked | TrustState::Trusted => {
            format!(
                "The project in {root} brings its own settings, which would take effect:\n{}",
                acting.list(files)
            )
        }
    }
}

/// What is said about parts of a project that wait for trust.
fn left_out(skipped: &[String], state: &TrustState) -> Option<String> {
    let (why, advice) = match state {
        TrustState::Changed { .. } => (
            "this project changed since you agreed to it",
            "`windlass trust` shows what changed; then run `windlass trust add` or give --trust-project.",
        ),
        TrustState::NeverAsked | TrustState::Trusted => (
            "this project is not trusted",
            "Look at them, then run `windlass trust add` or give --trust-project.",
        ),
    };
    (!skipped.is_empty()).then(|| {
        let parts: Vec<String> = skipped.iter().map(|part| display::line(part)).collect();
        let parts = parts.join(";\n  ");
        format!("{why}, so these parts of its settings are left out:\n  {parts}.\n  {advice}")
    })
}

/// What is said about project settings that lie above the start directory.
pub(crate) fn unread(files: &SettingsFiles) -> Option<String> {
    let places = files.places();
    let unread = places.unread();
    if unread.is_empty() || !files.reads_project() {
        return None;
    }
    let unread: Vec<String> = unread.iter().map(|file| file.display().to_string()).collect();
    Some(format!(
        "settings of {} are not read from {}; start there",
        unread.join(", "),
        places.start.display()
    ))
}
