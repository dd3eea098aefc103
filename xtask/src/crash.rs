//! `cargo xtask crash`: builds the release binary and kills it many times; then many processes change one shared file.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::bench::{Program, SHIPPED, build_programs, lab};
use crate::cargo::{cargo, say};

/// So many updates of a shared file are made, by all processes together.
const UPDATES: &str = "160000";

const BINARIES: &[Program; 2] = &[SHIPPED, lab("windlass-crash", "crash")];

/// The killer reads its own arguments, so that it says what is wrong with them.
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode> {
    let [binary, crash] = build_programs(BINARIES)?;
    let mut command = std::process::Command::new(crash);
    let status = command
        .env("WINDLASS_BINARY", binary)
        .args(arguments)
        .status()
        .context("cannot run the crash test")?;
    if !status.success() || arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    say(&format!("16 processes make {UPDATES} updates of one shared file"));
    let test = ["test", "--release", "--quiet", "-p", "windlass-config", "--test", "shared_file"];
    let mut command = cargo(&test);
    let status =
        command.args(["--", "--exact", "no_update_is_lost"]).env("SHARED_FILE_UPDATES", UPDATES).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
