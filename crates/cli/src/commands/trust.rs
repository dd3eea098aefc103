//! `windlass trust`: which projects may act, and what was agreed to.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use windlass::config::{
    ProcessContext, SettingsFiles, TrustAgreement, TrustState, TrustStore, TrustedProject,
};

use crate::display;
use crate::show_text;
use crate::views::trust_question::ActingSettings;
use windlass::{Options, settings};

/// Show what this project's settings would run (hooks, variables, allow rules), and trust them or not
#[derive(Debug, Args)]
#[command(
    after_help = "Trust covers the settings as they are now. When they change, windlass shows the differences and asks again."
)]
pub(crate) struct TrustArguments {
    #[command(subcommand)]
    command: Option<TrustCommand>,
}

#[derive(Debug, Subcommand)]
enum TrustCommand {
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

/// Does it and gives the exit code.
pub(crate) fn run(wanted: &TrustArguments) -> anyhow::Result<i32> {
    let place = settings::process_context()?;
    let (files, store) = project(&place)?;
    let text = match &wanted.command {
        None | Some(TrustCommand::Show) => status(&files, &store),
        Some(TrustCommand::Add) => add(&files, &store),
        Some(TrustCommand::List) => list(&store),
        Some(TrustCommand::Remove { directory: None }) => remove(&files, &store),
        Some(TrustCommand::Remove { directory: Some(directory) }) => {
            let there = ProcessContext { cwd: place.cwd.join(directory), ..place };
            remove(&project(&there)?.0, &store)
        }
    };
    Ok(show_text(&text?))
}

fn project(place: &ProcessContext) -> anyhow::Result<(SettingsFiles, TrustStore)> {
    let (files, home) = settings::files(&Options::new(), place)?;
    let path =
        home.directory().context("no home directory to store trust in. Set WINDLASS_HOME to a directory.")?;
    Ok((files, TrustStore::new(path)))
}

fn root(files: &SettingsFiles) -> String {
    display::line(&files.places.root().to_string_lossy())
}

fn status(files: &SettingsFiles, store: &TrustStore) -> anyhow::Result<String> {
    let parts = files.parts();
    if parts.list.is_empty() {
        return Ok(nothing_acts(files));
    }
    let state = store.state(&files.places, &parts)?;
    let acting = ActingSettings::of(files);
    let next = "To trust it, run `windlass trust add`.\n";
    let (word, next) = match &state {
        TrustState::Trusted => ("trusted".to_owned(), ""),
        TrustState::NeverAsked => ("not trusted; windlass ignores these settings".to_owned(), next),
        TrustState::Changed { added, removed, files } => {
            let difference = acting.difference(added, removed, files);
            (format!("no longer trusted: it changed since you trusted it.\n{difference}Now:"), next)
        }
    };
    let unread = unread(files);
    Ok(format!("{} is {word}\n{}{next}{unread}", root(files), acting.list()))
}

fn unread(files: &SettingsFiles) -> String {
    let lines: Vec<String> = files.unread().iter().map(ToString::to_string).collect();
    display::list(&lines, "")
}

/// Only the start directory is looked at, whatever the repository around it has.
fn nothing_acts(files: &SettingsFiles) -> String {
    let start = display::line(&files.places.start.to_string_lossy());
    let unread = unread(files);
    format!("The project in {start} has no settings that need trust.\n{unread}")
}

fn add(files: &SettingsFiles, store: &TrustStore) -> anyhow::Result<String> {
    let parts = files.parts();
    if parts.list.is_empty() {
        return Ok(nothing_acts(files));
    }
    let granted = store.agree(&files.places, &parts)?;
    if granted == TrustAgreement::ForThisSession {
        bail!("a home directory cannot be trusted permanently. Use --trust-project for one run.");
    }
    status(files, store)
}

fn remove(files: &SettingsFiles, store: &TrustStore) -> anyhow::Result<String> {
    let was = store.revoke(files.places.root())?;
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
        format!(
            "{}\n{}",
            display::line(&path.to_string_lossy()),
            display::list(&display::project_parts(&project.parts), "  ")
        )
    };
    let text: Vec<String> = projects.iter().map(entry).collect();
    Ok(text.concat())
}
