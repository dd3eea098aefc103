//! `cargo xtask crash`: builds the release binary and kills it many times.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::bench::built;

/// The package and the binary of each; built one by one, so that the binary is the one that ships.
const BINARIES: &[(&str, &str); 2] = &[("windlass-cli", "windlass"), ("windlass-crash", "windlass-crash")];

/// The killer reads its own arguments, so that it says what is wrong with them.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let [binary, crash] = built(BINARIES)?;
    let mut command = std::process::Command::new(crash);
    let status = command
        .env("WINDLASS_BINARY", binary)
        .args(arguments)
        .status()
        .context("cannot run the crash test")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
