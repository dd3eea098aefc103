//! Whether a run can work here, and what to do where it cannot. Nothing of the project is run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Access, access, statvfs};
use serde::Serialize;
use windlass_config::{
    ApiSettings, EffectiveSettings, Flags, Home, ProcessContext, RunConfig, SettingsProblem, Severity,
    TrustState, show,
};

use crate::error::Error;
use crate::options::Options;
use crate::settings::{self, LoadedSettings, SettingsReading};
use crate::{display, hook_wiring, model_choice, sandbox};

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// Something to know; runs work.
    Note,
    /// It would keep a run from working.
    Problem,
}

/// One line of a diagnosis.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Programs, settings, trust, model, sandbox or sessions.
    pub topic: &'static str,
    /// What came of it.
    pub status: CheckStatus,
    /// What there is, or what is wrong and what to do.
    pub text: String,
}

/// With less free space a session may not be saved to its end.
const FREE_BYTES_MIN: u64 = 100_000_000;

const PROGRAMS: &str = "Programs";
const SETTINGS: &str = "Settings";
const TRUST: &str = "Trust";
const MODEL: &str = "Model";
const SANDBOX: &str = "Sandbox";
const SESSIONS: &str = "Sessions";
/// The order of the report.
const TOPICS: [&str; 6] = [PROGRAMS, SETTINGS, TRUST, MODEL, SANDBOX, SESSIONS];

fn check(topic: &'static str, status: CheckStatus, text: impl Into<String>) -> Check {
    Check { topic, status, text: text.into() }
}

/// An error that would keep a run from working.
fn failure(topic: &'static str, error: &impl ToString) -> Check {
    check(topic, CheckStatus::Problem, display::sentence(&error.to_string()))
}

/// Every check, in the order of the report. Nothing of the project acts: its settings count as far as it is trusted already.
pub fn diagnose(place: &ProcessContext) -> Vec<Check> {
    let mut checks = match settings::read(&Options::new(), place.clone()) {
        Ok(reading) => {
            [programs(reading.files.places.root(), reading.is_trusted), check_settings(reading)].concat()
        }
        Err(error) => [programs(&place.cwd, false), vec![failure(SETTINGS, &error)]].concat(),
    };
    checks.sort_by_key(|check| TOPICS.iter().position(|topic| *topic == check.topic));
    checks
}

/// Before trust programs are found and not run, as everywhere.
fn programs(project: &Path, is_trusted: bool) -> Vec<Check> {
    let needs = [
        ("bash", CheckStatus::Problem, "The Bash tool needs it; install bash."),
        ("git", CheckStatus::Note, "The model often calls it; install git."),
        ("bwrap", CheckStatus::Note, "A complete sandbox needs it; install bubblewrap."),
    ];
    let checked = needs.map(|(name, missing, advice)| match find_program(name, project) {
        Some(path) if is_trusted => {
            let version = version(&path).unwrap_or_else(|| format!("{name}, version unknown"));
            check(PROGRAMS, CheckStatus::Ok, format!("{version} ({})", path.display()))
        }
        Some(path) => {
            let text = format!("{} (not run before this project is trusted)", path.display());
            check(PROGRAMS, CheckStatus::Ok, text)
        }
        None => check(PROGRAMS, missing, format!("{name} is not found. {advice}")),
    });
    checked.into()
}

/// A program in `PATH`, but none that the project brings along.
fn find_program(name: &str, project: &Path) -> Option<PathBuf> {
    let (path, project) = (std::env::var_os("PATH")?, project.canonicalize().ok()?);
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(name));
    let is_outside = |file: &Path| {
        [file, file.parent().unwrap_or(file)]
            .iter()
            .all(|path| path.canonicalize().is_ok_and(|real| !real.starts_with(&project)))
    };
    files.find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok() && is_outside(file))
}

fn version(program: &Path) -> Option<String> {
    let output =
        Command::new(program).arg("--version").env_clear().current_dir("/").stdin(Stdio::null()).output();
    let text = String::from_utf8_lossy(&output.ok()?.stdout).into_owned();
    text.lines().next().filter(|line| !line.is_empty()).map(str::to_owned)
}

fn check_settings(reading: SettingsReading) -> Vec<Check> {
    let files = reading.files.list().filter_map(|(level, file)| {
        let text = format!("{} ({})", file?.display(), level.name());
        Some(check(SETTINGS, CheckStatus::Ok, text))
    });
    let mut checks: Vec<Check> = files.collect();
    // Whoever cannot read a file knows nothing of what is in it.
    let has_fatal = reading.effective.fatal().is_some();
    if checks.is_empty() && !has_fatal {
        checks.push(check(SETTINGS, CheckStatus::Ok, "No settings file is read here."));
    }
    let unread = reading.files.unread();
    checks.extend(reading.effective.problems.iter().chain(&unread).map(problem_check));
    let trust = check_trust(&reading.effective, &reading.state);
    checks.extend(Some(trust).filter(|trust| trust.status != CheckStatus::Ok || !has_fatal));
    checks.extend(check_sessions(&reading.home));
    // A problem of a file is listed already.
    match reading.check() {
        Ok(held) => checks.extend(check_run(&held)),
        Err(error) if !has_fatal => checks.push(failure(SETTINGS, &error)),
        Err(_) => {}
    }
    checks
}

fn problem_check(problem: &SettingsProblem) -> Check {
    let status = if problem.severity == Severity::Fatal { CheckStatus::Problem } else { CheckStatus::Note };
    check(SETTINGS, status, problem.to_string())
}

fn check_trust(effective: &EffectiveSettings, state: &TrustState) -> Check {
    match (settings::untrusted_notice(effective.skipped.len(), state), state) {
        (Some(waiting), _) => check(TRUST, CheckStatus::Note, waiting),
        (None, TrustState::Trusted) => check(TRUST, CheckStatus::Ok, "This project is trusted."),
        (None, TrustState::NeverAsked | TrustState::Changed { .. }) => {
            check(TRUST, CheckStatus::Ok, "No settings of this project need trust.")
        }
    }
}

/// What a run would be made of.
fn check_run(held: &LoadedSettings) -> Vec<Check> {
    let LoadedSettings { settings, effective, .. } = held;
    let mut checks = vec![check_key(&settings.api, settings.models.script.as_deref(), effective)];
    let note = |text: String| check(SETTINGS, CheckStatus::Note, text);
    match held.config(&Flags::default()) {
        Ok(config) => {
            checks.extend(check_model(&config));
            checks.extend(check_sandbox(&config));
            checks.extend(config.notices().map(note));
            match hook_wiring::read_hooks(&config, &[], Vec::new()) {
                Ok((_, problems)) => checks.extend(problems.into_iter().map(note)),
                Err(problem) => checks.push(check(SETTINGS, CheckStatus::Problem, problem.to_string())),
            }
        }
        Err(error) => checks.push(failure(SETTINGS, &error)),
    }
    checks
}

/// Who asks, and whom. No secret is shown.
fn check_key(api: &ApiSettings, script: Option<&Path>, effective: &EffectiveSettings) -> Check {
    let stated = [("ANTHROPIC_API_KEY", api.key.is_some()), ("ANTHROPIC_AUTH_TOKEN", api.token.is_some())];
    let set = stated.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name);
    let named: Vec<String> = set.map(|name| format!("{name} is set ({})", origin(name, effective))).collect();
    let text = match script.map(Path::display) {
        Some(script) => format!("WINDLASS_SCRIPT={script} stands in for a model; no key is needed."),
        None if !named.is_empty() => format!("{}.", named.join("; ")),
        None if model_choice::can_reach(api) => {
            "No API key is set; the server at ANTHROPIC_BASE_URL is asked without one.".to_owned()
        }
        None => return check(MODEL, CheckStatus::Problem, Error::NoKey.to_string()),
    };
    check(MODEL, CheckStatus::Ok, text)
}

/// Where a variable comes from.
fn origin(name: &str, effective: &EffectiveSettings) -> String {
    let key = format!("env.{name}");
    let value = show(effective).into_iter().find(|value| value.key == key);
    match value.and_then(|value| Some((value.file?, value.line))) {
        Some((file, line)) => format!("{}:{line}", file.display()),
        None => "environment".to_owned(),
    }
}

fn check_model(config: &RunConfig) -> Vec<Check> {
    let mut checks = Vec::new();
    match model_choice::silent_models(config) {
        Ok(models) => {
            checks.push(check(MODEL, CheckStatus::Ok, format!("The model is {}.", models.main.id)));
            let assumption = model_choice::assumption(&models.main);
            checks.extend(assumption.map(|text| check(MODEL, CheckStatus::Note, text)));
        }
        Err(error) => checks.push(failure(MODEL, &error)),
    }
    let address = config.settings.api.base_url.as_ref().map(|url| without_secrets(url.reveal()));
    let address = address.unwrap_or_else(|| "the provider's own".to_owned());
    checks.push(check(MODEL, CheckStatus::Ok, format!("The base URL is {address}.")));
    checks
}

/// An address without the name, the password and the query it may hold.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.rsplit('@').next().unwrap_or_default();
    if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
}

fn check_sandbox(config: &RunConfig) -> Vec<Check> {
    let is_on = sandbox::is_wanted(config);
    let off = match config.files.sandbox.switch("sandbox.enabled") {
        Some(_) => "Off in the settings (`sandbox.enabled`)",
        None => "Off by default (to turn it on, set `sandbox.enabled` to true in your settings.json)",
    };
    let sandbox = match sandbox::available(config) {
        Ok(sandbox) => sandbox,
        Err(unavailable) if is_on && sandbox::must_be_there(config) => {
            return vec![check(SANDBOX, CheckStatus::Problem, unavailable.to_string())];
        }
        Err(unavailable) => {
            let off = if is_on { "Commands run without it" } else { off };
            let text = format!("{off}; it cannot be had here: {unavailable}");
            return vec![check(SANDBOX, CheckStatus::Note, text)];
        }
    };
    let backend = sandbox.backend();
    let state = if is_on { format!("On: {backend}.") } else { format!("{off}; it would be: {backend}.") };
    let mut checks = vec![check(SANDBOX, CheckStatus::Ok, state)];
    checks.extend(sandbox.active_barriers().iter().map(|barrier| {
        let text = format!("{}: {}", barrier.barrier.name(), barrier.by);
        match &barrier.gap {
            Some(gap) => check(SANDBOX, CheckStatus::Note, format!("{text}; but {gap}")),
            None => check(SANDBOX, CheckStatus::Ok, text),
        }
    }));
    checks
}

/// Where sessions are saved.
fn check_sessions(home: &Home) -> Vec<Check> {
    let Ok(directory) = home.require().map_err(|error| error.to_string()) else {
        let text = "There is no home directory to save sessions in. Set WINDLASS_HOME to a directory, \
                    or use --no-session-persistence.";
        return vec![check(SESSIONS, CheckStatus::Problem, text)];
    };
    let shown = directory.display();
    let exists = |path: &&Path| path.symlink_metadata().is_ok();
    let nearest = directory.ancestors().find(exists).unwrap_or(directory);
    if !nearest.is_dir() || access(nearest, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let text = format!(
            "Sessions cannot be saved in {shown}: {} is not a directory that you can write to. Correct that, set WINDLASS_HOME \
             to a directory elsewhere, or use --no-session-persistence.",
            nearest.display()
        );
        return vec![check(SESSIONS, CheckStatus::Problem, text)];
    }
    let mut checks = vec![check(SESSIONS, CheckStatus::Ok, format!("Sessions are saved in {shown}."))];
    if let Ok(disk) = statvfs(nearest) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let text = format!("{} are free there.", display::bytes(free));
        checks.push(match free {
            FREE_BYTES_MIN.. => check(SESSIONS, CheckStatus::Ok, text),
            _ => check(SESSIONS, CheckStatus::Note, format!("Only {text} Free some space.")),
        });
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        let check = |url: &str, expected: &str| assert_eq!(without_secrets(url), expected);
        check("http://localhost:8080", "http://localhost:8080");
        check("https://me:secret@host/v1?key=secret#x", "https://host/v1");
        check("me:secret@host/a@b", "host/a@b");
    }
}
