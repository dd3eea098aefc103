//! `windlass doctor`: whether a run can work here, and what to do where it cannot. Nothing of the project is run.

use std::io::IsTerminal as _;

use clap::Args;
use serde::Serialize;

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

#[derive(Serialize)]
struct Report {
    version: &'static str,
    ok: bool,
    checks: Vec<Check>,
}

/// Checks everything and gives the exit code.
pub(crate) fn run(wanted: &DoctorArguments) -> anyhow::Result<i32> {
    let checks = diagnose(&settings::process_context()?);
    let ok = checks.iter().all(|check| check.status != CheckStatus::Problem);
    let report = Report { version: crate::VERSION, ok, checks };
    let text = if wanted.json {
        serde_json::to_string(&report)
            .map(|json| format!("{}\n", display::escape_json(&json)))
            .unwrap_or_default()
    } else {
        as_text(&report)
    };
    Ok(i32::from(!ok).max(show_text(&text)))
}

fn as_text(report: &Report) -> String {
    let mut text = format!("{}\n", report.version);
    let mut topic = "";
    for check in &report.checks {
        if check.topic != topic {
            topic = check.topic;
            text = format!("{text}\n{topic}\n");
        }
        let status = format!("{:?}", check.status).to_lowercase();
        text = format!("{text}  {status:7}  {}\n", display::line(&check.text));
    }
    let problems = report.checks.iter().filter(|check| check.status == CheckStatus::Problem).count() as u64;
    let end = match problems {
        0 => "Ready to run (the server was not contacted).".to_owned(),
        _ => format!("{} would keep a run from working.", display::quantity(problems, "problem")),
    };
    text = format!("{text}\n{end}\n");
    // Lines that are piped stay whole, so that they can be searched.
    if std::io::stdout().is_terminal() { help::page(&text) } else { text }
}
