//! `cargo xtask sim`: builds the simulator for speed and plays many walks with it.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::cargo::cargo;

/// The simulator reads its own arguments, so that it says what is wrong with them.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let mut command = cargo(&["run", "--release", "--quiet", "-p", "windlass-sim", "--"]);
    let status = command.args(arguments).status().context("cannot run the simulator")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
