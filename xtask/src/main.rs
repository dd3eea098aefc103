//! `cargo xtask test`, `python`, `tidy`, `sim`, `crash` and `bench`: everything a change has to pass.
//!
//! Purpose: one command that a person and the continuous integration both run. Invariant: it depends on no crate
//! of the workspace, so it builds in seconds and judges the others from outside.

mod bench;
mod cargo;
mod crash;
mod python;
mod sim;
mod stages;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  test           format, lints, tidy, tests and documentation tests: everything a change must pass
  python         installs the Python packages that some tests need
  tidy           checks layering, sizes, names and documents
  sim            a million random walks over the core; --walks N and --seed S
  crash          kills the release binary at random moments and resumes it; --kills N and --seed S
  bench [NAME…]  speed and size of the release binary against a bare client; all parts or the named ones
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            cargo::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    match command.as_str() {
        "test" if rest.is_empty() => stages::test(),
        "tidy" if rest.is_empty() => tidy::main(),
        "python" if rest.is_empty() => {
            python::set_up().map(|ready| if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        "sim" => sim::main(&rest),
        "crash" => crash::main(&rest),
        "bench" => bench::main(&rest),
        "" | "help" | "--help" | "-h" => {
            cargo::say(USAGE.trim_end());
            Ok(ExitCode::SUCCESS)
        }
        "test" | "tidy" | "python" => bail!("`{command}` takes no arguments\n\n{USAGE}"),
        _ => bail!("unknown command `{command}`\n\n{USAGE}"),
    }
}
