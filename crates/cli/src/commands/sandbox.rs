//! `windlass sandbox`: run a program in the sandbox, or show what it enforces here.

use std::ffi::OsString;

use anyhow::anyhow;
use clap::Subcommand;
use windlass::config::{Flags, RunConfig};
use windlass::sandbox::{child_environment, run_command, tried_sandbox};
use windlass::sandbox::{lost_bwrap, policy, without_hidden};
use windlass::{Options, settings};

use crate::complain;
use crate::show_text;

/// Run a program in the sandbox, or show what the sandbox enforces here
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Run a program in the sandbox that the settings of this directory describe, even if it is off
    Run {
        /// The program and its arguments, after --
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Try the sandbox once, and show what it enforces here and its gaps
    Status,
}

/// Does it and gives the exit code.
pub(crate) fn run(command: &SandboxCommand) -> anyhow::Result<i32> {
    let config = config()?;
    lost_bwrap(&config).iter().for_each(complain);
    let policy = policy(&config);
    match command {
        SandboxCommand::Run { command } => {
            let shell = config.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
            let environment = child_environment(shell, &config.settings.shell.pass, &config.cwd);
            Ok(run_command(&policy, command.clone(), without_hidden(environment, &config)))
        }
        SandboxCommand::Status => {
            let sandbox = tried_sandbox(&policy).map_err(|error| anyhow!(error.to_string()))?;
            Ok(show_text(&sandbox.report()))
        }
    }
}

fn config() -> anyhow::Result<RunConfig> {
    let held = settings::load(&Options::new(), settings::process_context()?)?;
    held.notices.trust_news().iter().chain(&held.notices.news()).for_each(complain);
    Ok(held.config(&Flags::default())?)
}
