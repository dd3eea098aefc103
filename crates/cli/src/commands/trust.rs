//! `windlass trust`: which projects may act, and what was agreed to.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use windlass_config::{ProcessContext, SettingsFiles, TrustGrant, TrustState, TrustStore, TrustedProject};

use crate::arguments::Request;
use crate::arguments::command_tree;
use crate::display;
use crate::show_text;
use crate::views::trust_question::ActingSettings;
use windlass::settings::{self, SettingsFlags};

/// Show what this project's settings would run (hooks, variables, allow rules), and trust them or not
#[derive(Debug, Parser)]
#[command(name = "windlass trust", disable_help_subcommand = true, args_override_self = true)]
#[command(
    after_help = "Trust covers the settings as they are now. When they change, windlass shows the differences and asks again."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what this project would do, and whether it is trusted
    Show,
    /// Trust the current settings of this project
    Add,
    /// Stop trusting this project
    Remove {
        /// Of the project in this directory [default: this one]
        directory: Option<PathBuf>,
    },
    /// List the trusted projects
    List,
}

/// What can be said behind `windlass trust`.
pub(crate) fn command() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}

/// Reads what stands behind `windlass trust`. Each error is for the user.
pub(crate) fn parse(rest: &[OsString]) -> anyhow::Result<Request> {
    command_tree::read(rest, |Arguments { command }| Request::Trust(command.unwrap_or(Command::Show)))
}

/// Does it and gives the exit code.
pub(crate) fn run(command: &Command) -> anyhow::Result<i32> {
    Ok(show_text(&perform(command)?))
}

fn perform(command: &Command) -> anyhow::Result<String> {
    let place = settings::place()?;
    let (files, store) = project(&place)?;
    match command {
        Command::Show => status(&files, &store),
        Command::Add => add(&files, &store),
        Command::List => list(&store),
        Command::Remove { directory: None } => remove(&files, &store),
        Command::Remove { directory: Some(directory) } => {
            let there = ProcessContext { cwd: place.cwd.join(directory), ..place };
            remove(&project(&there)?.0, &store)
        }
    }
}

fn project(place: &ProcessContext) -> anyhow::Result<(SettingsFiles, TrustStore)> {
    let (files, home) = settings::files(SettingsFlags { headless: true, ..SettingsFlags::default() }, place)?;
    let path =
        home.directory().context("no home directory to store trust in. Set WINDLASS_HOME to a directory.")?;
    Ok((files, TrustStore::new(path)))
}

fn root(files: &SettingsFiles) -> String {
    display::line(&files.places().root().to_string_lossy())
}

fn status(files: &SettingsFiles, store: &TrustStore) -> anyhow::Result<String> {
    let parts = files.parts();
    if parts.is_empty() {
        return Ok(nothing_acts(files));
    }
    let state = store.state(files.places(), &parts)?;
    let acting = ActingSettings::of(files);
    let word = match &state {
        TrustState::Trusted => "trusted".to_owned(),
        TrustState::NeverAsked => "not trusted; windlass ignores these settings".to_owned(),
        TrustState::Changed { added, removed, files } => {
            let difference = acting.difference(added, removed, files);
            format!("no longer trusted: it changed since you trusted it.\n{difference}Now:")
        }
    };
    let next = match state {
        TrustState::Trusted => "",
        TrustState::NeverAsked | TrustState::Changed { .. } => "To trust it, run `windlass trust add`.\n",
    };
    let unread = unread(files);
    Ok(format!("{} is {word}\n{}{next}{unread}", root(files), acting.list()))
}

fn unread(files: &SettingsFiles) -> String {
    let lines: Vec<String> = settings::unread(files).iter().map(ToString::to_string).collect();
    display::listed(&lines, "")
}

/// Only the start directory is looked at, whatever the repository around it has.
fn nothing_acts(files: &SettingsFiles) -> String {
    let start = display::line(&files.places().start.to_string_lossy());
    let unread = unread(files);
    format!("The project in {start} has no settings that need trust.\n{unread}")
}

fn add(files: &SettingsFiles, store: &TrustStore) -> anyhow::Result<String> {
    let parts = files.parts();
    if parts.is_empty() {
        return Ok(nothing_acts(files));
    }
    let granted = store.grant(files.places(), &parts)?;
    if granted == TrustGrant::ForThisSession {
        bail!("a home directory cannot be trusted permanently. Use --trust-project for one run.");
    }
    status(files, store)
}

fn remove(files: &SettingsFiles, store: &TrustStore) -> anyhow::Result<String> {
    let was = store.revoke(files.places().root())?;
    let root = root(files);
    Ok(if was { format!("{root} is no longer trusted.\n") } else { format!("{root} was not trusted.\n") })
}

fn list(store: &TrustStore) -> anyhow::Result<String> {
    let projects = store.list()?;
    if projects.is_empty() {
        return Ok("No project is trusted.\n".to_owned());
    }
    let entry = |project: &TrustedProject| {
        let mut path = project.root.clone();
        path.extend(project.inside.components());
        format!("{}\n{}", display::line(&path.to_string_lossy()), display::listed(&project.parts, "  "))
    };
    let text: Vec<String> = projects.iter().map(entry).collect();
    Ok(text.concat())
}
