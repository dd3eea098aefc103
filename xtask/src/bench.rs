//! `cargo xtask bench`: builds the release binary, the bare client and the harness, each on its own, and runs it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::cargo::{cargo, say, target_folder};

/// The package and the binary of each of the three. They are built one by one: together, cargo would give them the
/// sum of their features, and the binary would not be the one that ships.
const BINARIES: &[(&str, &str); 3] =
    &[("windlass-cli", "windlass"), ("windlass-bare", "windlass-bare"), ("windlass-bench", "windlass-bench")];

pub(crate) fn main(names: &[String]) -> Result<ExitCode> {
    let [binary, bare, bench] = built(BINARIES)?;
    let mut command = std::process::Command::new(bench);
    command.env("WINDLASS_BINARY", binary).env("BARE_BINARY", bare).args(names);
    let status = command.status().context("cannot run the benchmarks")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds these packages for speed, one by one, and says where their binaries are.
pub(crate) fn built<const N: usize>(binaries: &[(&str, &str); N]) -> Result<[PathBuf; N]> {
    for (package, _) in binaries {
        say(&format!("building {package}"));
        let built = cargo(&["build", "--release", "--quiet", "-p", package]).status()?;
        if !built.success() {
            bail!("{package} does not build");
        }
    }
    let folder = target_folder()?.join("release");
    Ok(binaries.map(|(_, binary)| folder.join(binary)))
}
