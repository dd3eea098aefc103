//! Settings files and trust: what holds before anything of a project acts.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use windlass_config::{
    EffectiveSettings, Flags, Home, ProcessContext, ReportStore, RunConfig, SettingSources, Settings,
    SettingsFiles, SettingsPlaces, SettingsProblem, Severity, TrustAnswer, TrustRequest, TrustState,
    TrustStore,
};
use windlass_engine::Answerer;
use windlass_sandbox::{child_environment, distrust};
use windlass_session::GitProgram;

use crate::display;
use crate::error::Error;
use crate::options::Options;

/// Where the administrator of the machine keeps files for everybody.
const MANAGED: &str = "/etc/claude-code";

/// What holds, and where it came from.
pub struct LoadedSettings {
    /// Where and as whom the process runs.
    pub place: ProcessContext,
    /// What environment and files say together.
    pub settings: Settings,
    /// The variables of the run and its commands.
    pub environment: BTreeMap<OsString, OsString>,
    /// What the files say together.
    pub effective: EffectiveSettings,
    /// Our own home.
    pub home: Home,
    /// Where settings lie.
    pub places: SettingsPlaces,
    /// The git that may be asked about the repository; none before trust.
    pub git: Option<GitProgram>,
    /// What the user should know.
    pub notices: SettingsNotices,
}

impl LoadedSettings {
    /// Everything a run with these flags is configured by.
    pub fn config(&self, flags: &Flags) -> Result<RunConfig, Error> {
        let files = self.effective.settings.clone();
        let config = RunConfig::new(self.settings.clone(), flags, &self.place, files)?;
        Ok(RunConfig { environment: self.environment.clone(), ..config })
    }
}

/// What the user should know about settings files that stops nothing.
pub struct SettingsNotices {
    untrusted: Option<UntrustedProject>,
    problems: Vec<SettingsProblem>,
    files: SettingsFiles,
    store: Option<ReportStore>,
}

/// What of a project waits for trust.
struct UntrustedProject {
    notice: String,
    /// The project and the settings that wait: the notice is new whenever one of them is.
    settings: String,
}

impl SettingsNotices {
    /// What of the project waits for trust.
    pub fn trust_notice(&self) -> Option<String> {
        self.untrusted.as_ref().map(|untrusted| untrusted.notice.clone())
    }

    /// The same, if it was not said yet.
    pub fn trust_news(&self) -> Option<String> {
        let UntrustedProject { notice, settings } = self.untrusted.as_ref()?;
        let news = self.take_unreported(vec![format!("{notice}\n{settings}")]);
        (!news.is_empty()).then(|| notice.clone())
    }

    /// Of these notices, those that a person did not read yet.
    pub(crate) fn take_unreported(&self, notices: Vec<String>) -> Vec<String> {
        match &self.store {
            Some(store) => store.take_unreported_notices(notices),
            None => notices,
        }
    }

    /// The problems that a person did not read yet: once per change of a file, and ignored keys as one line.
    pub fn news(&self) -> Vec<String> {
        let new = match &self.store {
            Some(store) => store.take_unreported(&self.files, &self.problems),
            None => self.problems.iter().collect(),
        };
        let (ignored, others): (Vec<&SettingsProblem>, Vec<&SettingsProblem>) =
            new.into_iter().partition(|problem| problem.severity == Severity::Ignored);
        let mut lines: Vec<String> = others.iter().map(ToString::to_string).collect();
        if !ignored.is_empty() {
            lines.push(format!("{} ignored: `windlass doctor`", setting_count(ignored.len())));
        }
        lines
    }

    /// Every problem in full.
    pub fn all(&self) -> Vec<String> {
        self.problems.iter().map(ToString::to_string).collect()
    }
}

/// A number of settings, in words.
pub fn setting_count(count: usize) -> String {
    display::quantity(count as u64, "setting")
}

/// Where and as whom the process runs.
pub fn process_context() -> Result<ProcessContext, Error> {
    std::env::current_dir().map(process_context_at).map_err(Error::CurrentDirectory)
}

/// The same, if it ran in this directory.
pub fn process_context_at(cwd: PathBuf) -> ProcessContext {
    let is_root = rustix::process::geteuid().is_root();
    ProcessContext { cwd, is_root, home: std::env::home_dir(), managed: MANAGED.into() }
}

/// Every settings file, with the places it was looked for, and our own home.
pub fn files(options: &Options, place: &ProcessContext) -> Result<(SettingsFiles, Home), Error> {
    // Where our home is follows from the environment alone: no file may move it.
    let environment = options.environment();
    let bare = Settings::from_environment(environment.clone())?;
    let home = Home::new(&bare.home, place);
    let config_home = environment.get(OsStr::new("XDG_CONFIG_HOME")).map(PathBuf::from);
    let places = SettingsPlaces::new(place, &home).with_config_home(config_home);
    Ok((SettingsFiles::read(places, sources(options)?, &options.settings), home))
}

/// Which files count.
fn sources(options: &Options) -> Result<SettingSources, Error> {
    match &*options.setting_sources {
        [] => Ok(SettingSources::default()),
        [names] => Ok(SettingSources::parse(names)?),
        _ => Err(Error::SourcesRepeated),
    }
}

/// Reads user and administrator, then decides about trust, then reads the project.
pub fn load(options: &Options, place: ProcessContext) -> Result<LoadedSettings, Error> {
    read(options, place)?.check()
}

/// What the files say and whether the project acts, before anything is refused.
pub struct SettingsReading {
    /// Where and as whom the process runs.
    pub place: ProcessContext,
    /// Every file.
    pub files: SettingsFiles,
    /// Our own home.
    pub home: Home,
    /// What was agreed to before.
    pub state: TrustState,
    /// Whether the project acts.
    pub is_trusted: bool,
    /// What the files say together.
    pub effective: EffectiveSettings,
    environment: BTreeMap<OsString, OsString>,
}

/// Reads the files and decides about trust.
pub fn read(options: &Options, place: ProcessContext) -> Result<SettingsReading, Error> {
    let (files, home) = files(options, &place)?;
    let (is_trusted, state) = decide_trust(&files, &home, options)?;
    let (effective, environment) = (files.effective(is_trusted), options.environment());
    Ok(SettingsReading { place, files, home, state, is_trusted, effective, environment })
}

impl SettingsReading {
    /// What holds, unless something is so wrong that nothing may start.
    pub fn check(self) -> Result<LoadedSettings, Error> {
        let Self { place, files, home, state, is_trusted, effective, environment } = self;
        if let Some(problem) = effective.fatal() {
            return Err(Error::Setting(Box::new(problem.clone())));
        }
        let environment = effective.settings.environment(environment);
        let settings = effective.settings.settings(&environment)?;
        let problems = effective.problems.iter().cloned().chain(files.unread()).collect();
        let root = files.places.root().display().to_string();
        let untrusted = untrusted_notice(effective.skipped.len(), &state).map(|notice| UntrustedProject {
            notice,
            settings: format!("{root}\n{}", display::project_parts(&effective.skipped).join("\n")),
        });
        let store = home.directory().map(ReportStore::new);
        let git = if is_trusted { git_program(&files) } else { None };
        let places = files.places.clone();
        let notices = SettingsNotices { untrusted, problems, files, store };
        Ok(LoadedSettings { place, settings, environment, effective, home, places, git, notices })
    }
}

fn decide_trust(files: &SettingsFiles, home: &Home, options: &Options) -> Result<(bool, TrustState), Error> {
    let parts = files.parts();
    if parts.list.is_empty() {
        return Ok((true, TrustState::NeverAsked));
    }
    let state = match home.directory() {
        Some(path) => TrustStore::new(path).state(&files.places, &parts).map_err(Error::Trust)?,
        None => TrustState::NeverAsked,
    };
    let named = sources(options).is_ok_and(|sources| sources.stated && sources.project);
    let request = TrustRequest {
        is_headless: options.asking == Answerer::Nobody,
        is_project_named: named,
        has_trust_flag: options.is_project_trusted,
    };
    let agreed = match request.answer(&state) {
        TrustAnswer::Trust => true,
        TrustAnswer::Skip => false,
        TrustAnswer::Ask => {
            let agreed = options.trust_question.as_ref().is_some_and(|ask| ask(files, &state));
            if let (true, Some(path)) = (agreed, home.directory()) {
                TrustStore::new(path).agree(&files.places, &parts).map_err(Error::Trust)?;
            }
            agreed
        }
    };
    Ok((agreed, state))
}

/// The user's git, in an environment without secrets and with no `PATH` into the project.
fn git_program(files: &SettingsFiles) -> Option<GitProgram> {
    let places = &files.places;
    let mut environment = child_environment(std::env::vars_os(), &[], places.root());
    let inside =
        [places.root(), &places.start].map(|path| path.canonicalize().unwrap_or_else(|_| path.into()));
    distrust(&mut environment, &inside);
    GitProgram::find(environment)
}

/// The same without a question about trust: none unless it was given, or nothing of the project needs it.
pub fn git_if_trusted(place: &ProcessContext) -> Option<GitProgram> {
    let options = Options::new();
    let (files, home) = files(&options, place).ok()?;
    let (is_trusted, _) = decide_trust(&files, &home, &options).ok()?;
    if is_trusted { git_program(&files) } else { None }
}

/// What is said about parts of a project that wait for trust.
pub fn untrusted_notice(skipped: usize, state: &TrustState) -> Option<String> {
    let ignored = setting_count(skipped);
    let text = match state {
        _ if skipped == 0 => return None,
        TrustState::Changed { .. } => format!(
            "Project changed since you trusted it: {ignored} ignored. Review the changes with `windlass trust`."
        ),
        TrustState::NeverAsked | TrustState::Trusted => {
            let them = if skipped == 1 { "it" } else { "them" };
            format!("Project not trusted: {ignored} ignored. Review {them} with `windlass trust`.")
        }
    };
    Some(text)
}
