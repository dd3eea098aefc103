//! The built-in tools, with what the settings say about them.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use windlass_config::{RunConfig, Settings};
use windlass_ports::AnyTool;
use windlass_sandbox::{Sandbox, VariableChanges};
use windlass_tools::{BashSettings, GlobSettings, ReadLimits, Tasks, ToolSettings, built_in};

use crate::sandbox;
use crate::supervision::launcher;

/// The variables that commands start from.
fn environment(config: &RunConfig) -> Vec<(OsString, OsString)> {
    if config.environment.is_empty() {
        return std::env::vars_os().collect();
    }
    config.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The tools, in the order the model sees them.
pub(crate) fn tools(
    config: &RunConfig,
    session: Uuid,
    tasks: &Arc<Tasks>,
    (sandbox, later): (Option<Sandbox>, VariableChanges),
) -> Vec<Arc<dyn AnyTool>> {
    let Settings { shell, files, .. } = &config.settings;
    let bash = BashSettings {
        timeout_default: Duration::from_millis(shell.timeout_ms),
        timeout_max: Duration::from_millis(shell.timeout_ms_max),
        inline_chars_max: shell.output_chars_max,
        env_pass: shell.pass.clone(),
        environment: sandbox::without_hidden(environment(config), config),
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
        ..BashSettings::new(launcher())
    };
    let glob = GlobSettings {
        honour_ignore_files: files.glob_ignore,
        hidden: files.glob_hidden,
        timeout: Duration::from_secs(files.glob_timeout_s),
    };
    let read = ReadLimits { tokens_max: files.read_tokens_max, ..ReadLimits::default() };
    built_in(&ToolSettings { bash, glob, read, tasks: tasks.clone() })
}
