//! What hooks write for the commands that follow: a script of each of them, and the variables that these set.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use windlass_protocol::HookEvent;
use windlass_sandbox::VariableChanges;
use windlass_text::folders::create_temporary;

use crate::answers::HandlerFailure;
use crate::command::{HookProgram, ProgramExit, ProgramSurroundings, first_line, run_program};
use crate::report::RunObserver;

pub(crate) const VARIABLE: &str = "CLAUDE_ENV_FILE";
/// Reads scripts and prints the environment that is left. What they print themselves is no part of it.
const READ: &str = "exec 3>&1 1>/dev/null\nfor file do . \"$file\"; done\nexec /usr/bin/env -0 >&3";
/// Scripts only set variables; nobody waits longer for that.
const TIME: Duration = Duration::from_secs(10);
/// What a shell changes by itself.
const OF_THE_SHELL: [&str; 5] = ["_", "SHLVL", "PWD", "OLDPWD", VARIABLE];

pub(crate) struct EnvFiles {
    variables: VariableChanges,
    directory: OnceLock<Option<TempDir>>,
    /// In the order in which they count.
    files: Mutex<Vec<(HookEvent, PathBuf)>>,
}

/// Whether hooks of an event write for later commands.
pub(crate) fn is_writer(event: HookEvent) -> bool {
    matches!(event, HookEvent::SessionStart | HookEvent::CwdChanged)
}

impl EnvFiles {
    pub(crate) fn new(variables: VariableChanges) -> Self {
        Self { variables, directory: OnceLock::new(), files: Mutex::default() }
    }

    /// Handlers of an event are about to write. What was written about another directory counts no more.
    pub(crate) fn begin(&self, event: HookEvent) {
        if event == HookEvent::CwdChanged {
            self.with_files(|files| files.retain(|(of, _)| *of != event));
        }
    }

    /// An empty script for a handler; nothing if none can be made.
    pub(crate) fn file(&self, event: HookEvent, run: u64) -> Option<PathBuf> {
        let make = || create_temporary("windlass-env-").ok();
        let path = self.directory.get_or_init(make).as_ref()?.path().join(format!("{run}.sh"));
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).ok()?;
        self.with_files(|files| files.push((event, path.clone())));
        Some(path)
    }

    /// Reads what was written, for all commands from now on. Gives what is to be said about it.
    pub(crate) async fn read(&self, mut around: ProgramSurroundings) -> Vec<String> {
        let files = self.with_files(|files| {
            files.retain(|(_, path)| std::fs::metadata(path).is_ok_and(|file| file.len() > 0));
            files.iter().map(|(_, path)| path.clone()).collect::<Vec<_>>()
        });
        if files.is_empty() {
            self.variables.set([]);
            return Vec::new();
        }
        around.environment.retain(|(name, _)| !self.variables.hides(name));
        let shell = ["bash", "-c", READ, "bash"].map(OsString::from);
        let argv = shell.into_iter().chain(files.into_iter().map(OsString::from)).collect();
        let before = around.environment.clone();
        let program = HookProgram { argv, input: Vec::new(), time: TIME, around };
        let said = match run_program(program, &RunObserver::blind()).await {
            Ok(ProgramExit { code: Some(0), stdout, printed, .. }) => {
                self.variables.set(changes(&before, &stdout));
                printed.errors
            }
            Ok(ProgramExit { printed, .. }) if !printed.errors.trim().is_empty() => printed.errors,
            Ok(_) => "it exits the shell that reads it".into(),
            Err(HandlerFailure::NotStarted(why)) => why,
            Err(_) => format!("it takes longer than {} s to read", TIME.as_secs()),
        };
        notice(&said).into_iter().collect()
    }

    fn with_files<T>(&self, use_them: impl FnOnce(&mut Vec<(HookEvent, PathBuf)>) -> T) -> T {
        use_them(&mut self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn notice(said: &str) -> Option<String> {
    let line = first_line(said, "");
    let invalid = format!("What hooks wrote into {VARIABLE} for later commands is invalid: {line}");
    (!line.is_empty()).then_some(invalid)
}

/// What differs between an environment and one that was printed with a zero byte behind each variable.
fn changes(before: &[(OsString, OsString)], printed: &[u8]) -> BTreeMap<OsString, Option<OsString>> {
    let variable = |bytes: &[u8]| {
        let at = bytes.iter().position(|byte| *byte == b'=')?;
        let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Some((text(&bytes[..at]), text(&bytes[at + 1..])))
    };
    let after: BTreeMap<OsString, OsString> = printed.split(|byte| *byte == 0).filter_map(variable).collect();
    let before: BTreeMap<&OsString, &OsString> = before.iter().map(|(name, value)| (name, value)).collect();
    let gone = before.keys().filter(|name| !after.contains_key(**name)).map(|name| ((*name).clone(), None));
    let set = after.iter().filter(|(name, value)| before.get(name) != Some(value));
    let set = set.map(|(name, value)| (name.clone(), Some(value.clone())));
    let is_ours = |name: &OsString| !OF_THE_SHELL.iter().any(|known| name == known);
    gone.chain(set).filter(|(name, _)| is_ours(name)).collect()
}
