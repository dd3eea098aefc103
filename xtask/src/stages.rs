//! `cargo xtask test`: the stages a change has to pass, each with its time, and a summary.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cargo::{cargo, root, say, works};
use crate::{python, tidy};

/// A program that some tests need beside Rust, and whether any test needs it yet.
const PROGRAMS: &[(&str, bool)] = &[("python3", true), ("node", false), ("chromium", true)];

struct Stage {
    name: &'static str,
    has_passed: bool,
    took: Duration,
}

/// Runs all stages, also after one has failed, so that one run shows everything there is to mend.
pub(crate) fn test() -> Result<ExitCode> {
    check_programs()?;
    let mut stages = Vec::new();
    let mut stage = |name: &'static str, run: &dyn Fn() -> Result<bool>| -> Result<()> {
        say(&format!("\n=== {name}"));
        let began = Instant::now();
        let has_passed = run()?;
        stages.push(Stage { name, has_passed, took: began.elapsed() });
        Ok(())
    };
    stage("format", &|| run(cargo(&["fmt", "--all", "--check"])))?;
    stage("lints", &|| {
        run(cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
    })?;
    stage("tidy", &tidy::passes)?;
    stage("binary", &|| run(cargo(&["build", "--quiet", "-p", "windlass-cli"])))?;
    stage("python packages", &python::set_up)?;
    stage("tests", &|| run(tests()))?;
    stage("documentation tests", &|| run(cargo(&["test", "--workspace", "--doc", "--quiet"])))?;
    say(&format!("\n{}", summary(&stages)));
    Ok(if stages.iter().all(|stage| stage.has_passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tests, under nextest where it is installed: it runs test binaries side by side.
fn tests() -> Command {
    if works(cargo(&["nextest", "--version"])) {
        return cargo(&["nextest", "run", "--workspace", "--no-fail-fast", "--status-level", "fail"]);
    }
    say("cargo-nextest is not installed; running the tests with cargo test");
    cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast", "--quiet"])
}

fn run(mut command: Command) -> Result<bool> {
    Ok(command.status()?.success())
}

/// Says which programs are missing. Only continuous integration insists on them, and only if a test needs them.
fn check_programs() -> Result<()> {
    let strict = std::env::var_os("CI").is_some();
    for (program, needed) in PROGRAMS {
        let mut command = Command::new(program);
        command.arg("--version").current_dir(root());
        if let Some(complaint) = missing(program, works(command), *needed, strict)? {
            say(&complaint);
        }
    }
    Ok(())
}

/// What to say about a program, if anything.
fn missing(program: &str, is_working: bool, is_needed: bool, is_strict: bool) -> Result<Option<String>> {
    match (is_working, is_needed) {
        (true, _) => Ok(None),
        (false, false) => Ok(Some(format!("{program} is not installed; no test needs it yet"))),
        (false, true) if is_strict => bail!("{program} is not installed; install it, tests need it"),
        (false, true) => {
            Ok(Some(format!("{program} is not installed; the tests that need it will be skipped")))
        }
    }
}

fn summary(stages: &[Stage]) -> String {
    let line = |stage: &Stage| {
        let verdict = if stage.has_passed { "ok" } else { "FAILED" };
        format!("{:<20} {:>7.1} s  {verdict}", stage.name, stage.took.as_secs_f64())
    };
    let mut lines: Vec<String> = stages.iter().map(line).collect();
    let total: Duration = stages.iter().map(|stage| stage.took).sum();
    let failed = stages.iter().filter(|stage| !stage.has_passed).count();
    let verdict = if failed == 0 { "all stages passed".to_owned() } else { format!("{failed} failed") };
    lines.push(format!("{:<20} {:>7.1} s  {verdict}", "total", total.as_secs_f64()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_failed() {
        let stage =
            |name, has_passed, seconds| Stage { name, has_passed, took: Duration::from_secs(seconds) };
        let lines = summary(&[stage("format", true, 1), stage("tests", false, 61)]);
        assert_eq!(
            lines,
            "format                   1.0 s  ok\ntests                   61.0 s  FAILED\ntotal                   62.0 s  1 failed"
        );
        assert!(summary(&[stage("format", true, 1)]).ends_with("all stages passed"));
    }

    #[test]
    fn a_missing_program_stops_only_strict_runs_that_need_it() {
        let said = |works, needed, strict| match missing("node", works, needed, strict) {
            Ok(said) => said.unwrap_or_default(),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(said(true, true, true), "");
        assert_eq!(said(false, false, true), "node is not installed; no test needs it yet");
        assert_eq!(said(false, true, false), "node is not installed; the tests that need it will be skipped");
        assert_eq!(said(false, true, true), "error: node is not installed; install it, tests need it");
    }
}
