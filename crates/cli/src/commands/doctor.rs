//! `windlass doctor`: whether a run can work here, and what to do where it cannot. Nothing of the project is run.

use std::io::IsTerminal as _;

use clap::Args;
use serde_json::json;

use crate::arguments::help;
use crate::display;
use crate::show_text;
use windlass::diagnosis::{Check, CheckStatus, diagnose};
use windlass::settings;

/// Check settings, trust, key, model, sandbox and sessions, and say what to do where something is wrong
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes:\n  0    A run can work here\n  1    A problem would keep a run from working"
)]
pub(crate) struct DoctorArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Checks everything and gives the exit code.
pub(crate) fn run(wanted: &DoctorArguments) -> anyhow::Result<i32> {
    let checks = diagnose(&settings::process_context()?);
    let ok = checks.iter().all(|check| check.status != CheckStatus::Problem);
    let text = if wanted.json {
        let report = json!({ "version": crate::VERSION, "ok": ok, "checks": checks });
        format!("{}\n", display::json(&report))
    } else {
        as_text(&checks)
    };
    Ok(i32::from(!ok).max(show_text(&text)))
}

fn as_text(checks: &[Check]) -> String {
    let mut text = format!("{}\n", crate::VERSION);
    let mut topic = "";
    for check in checks {
        if check.topic != topic {
            topic = check.topic;
            text = format!("{text}\n{topic}\n");
        }
        let status = format!("{:?}", check.status).to_lowercase();
        text = format!("{text}  {status:7}  {}\n", display::line(&check.text));
    }
    let problems = checks.iter().filter(|check| check.status == CheckStatus::Problem).count() as u64;
    let end = match problems {
        0 => "Ready to run (the server was not contacted).".to_owned(),
        _ => format!("{} would keep a run from working.", display::quantity(problems, "problem")),
    };
    text = format!("{text}\n{end}\n");
    // Lines that are piped stay whole, so that they can be searched.
    if std::io::stdout().is_terminal() { help::page(&text) } else { text }
}
