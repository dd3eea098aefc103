//! Settings files and trust: what holds before anything of a project acts.

pub(crate) mod git;
mod keep;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use windlass_config::{
    Effective, Home, Place, Problem, ReportStore, SettingSources, Settings, SettingsFiles, SettingsPlaces,
    Severity, TrustAnswer, TrustRequest, TrustState, TrustStore,
};
use windlass_session::GitProgram;

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
    /// The git that may be asked about the repository; none before trust.
    pub(crate) git: Option<GitProgram>,
    pub(crate) notices: SettingsNotices,
}

/// What the user should know about settings files that stops nothing.
pub(crate) struct SettingsNotices {
    untrusted: Option<Untrusted>,
    problems: Vec<Problem>,
    files: SettingsFiles,
    store: Option<ReportStore>,
}

/// What of a project waits for trust.
struct Untrusted {
    notice: String,
    /// The project and the settings that wait: the notice is new whenever one of them is.
    settings: String,
}

impl SettingsNotices {
    /// What of the project waits for trust.
    pub(crate) fn untrusted(&self) -> Option<&str> {
        self.untrusted.as_ref().map(|untrusted| untrusted.notice.as_str())
    }

    /// The same, if it was not said yet. It belongs on standard error whoever reads the rest.
    pub(crate) fn untrusted_news(&self) -> Option<String> {
        let Untrusted { notice, settings } = self.untrusted.as_ref()?;
        let news = self.unreported(vec![format!("{notice}\n{settings}")]);
        (!news.is_empty()).then(|| notice.clone())
    }

    /// Of these notices, those that a person did not read yet.
    pub(crate) fn unreported(&self, notices: Vec<String>) -> Vec<String> {
        match &self.store {
            Some(store) => store.take_unreported_notices(notices),
            None => notices,
        }
    }

    /// The problems that a person did not read yet: once per change of a file, and ignored keys as one line.
    pub(crate) fn news(&self) -> Vec<String> {
        let new = match &self.store {
            Some(store) => store.take_unreported(&self.files, &self.problems),
            None => self.problems.iter().collect(),
        };
        let (ignored, others): (Vec<&Problem>, Vec<&Problem>) =
            new.into_iter().partition(|problem| problem.severity == Severity::Ignored);
        let mut lines: Vec<String> = others.iter().map(ToString::to_string).collect();
        if !ignored.is_empty() {
            lines.push(format!("{} ignored: `windlass doctor`", settings(ignored.len())));
        }
        lines
    }

    /// Every problem in full.
    pub(crate) fn all(&self) -> Vec<String> {
        self.problems.iter().map(ToString::to_string).collect()
    }

    /// Says everything, where people look for it.
    pub(crate) fn complain(&self) {
        self.untrusted().into_iter().for_each(crate::complain);
        self.all().iter().for_each(|notice| crate::complain(notice));
    }
}

/// A number of settings, in words.
pub(crate) fn settings(count: usize) -> String {
    display::counted(count as u64, "setting")
}

/// Where and as whom the process runs.
pub(crate) fn place() -> Result<Place, String> {
    let cwd = std::env::current_dir().map_err(|error| {
        format!("cannot use the current directory: {error}. Change to one that exists and is readable.")
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
        _ => Err("--setting-sources is given more than once. \
                  Give it once, with all names separated by commas."
            .to_owned()),
    }
}

/// Reads what holds here. The order is fixed: what the user and the administrator say, then trust, then what the project says. `ask`
/// is called with what the project would do, if somebody has to agree to it first.
pub(crate) fn load(said: Said<'_>, place: &Place, ask: impl FnOnce(&str) -> bool) -> Result<Guard, String> {
    read(said, place, ask)?.check()
}

/// What the files say and whether the project acts, before anything is refused.
pub(crate) struct Reading {
    pub(crate) files: SettingsFiles,
    pub(crate) home: Home,
    pub(crate) state: TrustState,
    pub(crate) trusted: bool,
    pub(crate) effective: Effective,
}

/// Reads the files and decides about trust.
pub(crate) fn read(said: Said<'_>, place: &Place, ask: impl FnOnce(&str) -> bool) -> Result<Reading, String> {
    let (files, home) = files(said, place)?;
    let (trusted, state) = decide_trust(&files, &home, said, ask)?;
    let effective = files.effective(trusted);
    Ok(Reading { files, home, state, trusted, effective })
}

impl Reading {
    /// What holds, unless something is so wrong that nothing may start.
    pub(crate) fn check(self) -> Result<Guard, String> {
        let Self { files, home, state, trusted, effective } = self;
        if let Some(problem) = effective.fatal() {
            return Err(problem.to_string());
        }
        let environment = effective.settings.environment(std::env::vars_os());
        let settings = effective.settings.settings(&environment).map_err(|error| error.to_string())?;
        let problems = effective.problems.iter().cloned().chain(unread(&files)).collect();
        let root = files.places().root().display().to_string();
        let untrusted = untrusted(&effective.skipped, &state).map(|notice| Untrusted {
            notice,
            settings: std::iter::once(&root)
                .chain(&effective.skipped)
                .cloned()
                .collect::<Vec<_>>()
                .join("\n"),
        });
        let store = home.directory().map(ReportStore::new);
        let git = if trusted { git::program(&files) } else { None };
        let places = files.places().clone();
        let notices = SettingsNotices { untrusted, problems, files, store };
        Ok(Guard { settings, environment, effective, home, places, git, notices })
    }
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
            "The project in {root} has changed since you trusted it.\n{}",
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
pub(crate) fn untrusted(skipped: &[String], state: &TrustState) -> Option<String> {
    let ignored = settings(skipped.len());
    let text = match state {
        _ if skipped.is_empty() => return None,
        TrustState::Changed { .. } => format!(
            "Project changed since you trusted it: {ignored} ignored. Review the changes with `windlass trust`."
        ),
        TrustState::NeverAsked | TrustState::Trusted => {
            let them = if skipped.len() == 1 { "it" } else { "them" };
            format!("Project not trusted: {ignored} ignored. Review {them} with `windlass trust`.")
        }
    };
    Some(text)
}

/// Project settings that lie above the start directory.
pub(crate) fn unread(files: &SettingsFiles) -> Vec<Problem> {
    if !files.reads_project() {
        return Vec::new();
    }
    let start = files.places().start.display();
    let problem = |file: PathBuf| {
        let directory = file.ancestors().nth(2).unwrap_or(&file).display();
        Problem {
            what: format!("not read: windlass started in {start}"),
            advice: format!("Start it in {directory} to use these settings."),
            line: 0,
            column: 0,
            severity: Severity::Notice,
            file: Some(file),
        }
    };
    files.places().unread().into_iter().map(problem).collect()
}
