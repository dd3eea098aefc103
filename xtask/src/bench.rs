//! `cargo xtask bench`: builds the release binary, the bare client and the harness, each on its own, and runs it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::cargo::{cargo, say, target_folder};

/// The three programs. They are built one by one: together, cargo would give them the sum of their features, and the binary
/// would not be the one that ships.
const BINARIES: &[Program; 3] = &[SHIPPED, lab("windlass-bare", "bare"), lab("windlass-bench", "bench")];

/// A program to be built.
#[derive(Debug)]
pub(crate) struct Program {
    binary: &'static str,
    package: &'static str,
    /// All features it is built with; those by default if none is named.
    features: Option<&'static str>,
}

/// The binary that ships.
pub(crate) const SHIPPED: Program = Program { binary: "windlass", package: "windlass-cli", features: None };

/// A program of the lab, with its own part of it alone.
pub(crate) const fn lab(binary: &'static str, part: &'static str) -> Program {
    Program { binary, package: "windlass-lab", features: Some(part) }
}

pub(crate) fn main(names: &[String]) -> Result<ExitCode> {
    let [binary, bare, bench] = build_programs(BINARIES)?;
    let mut command = std::process::Command::new(bench);
    command.env("WINDLASS_BINARY", binary).env("BARE_BINARY", bare).args(names);
    let status = command.status().context("cannot run the benchmarks")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds these programs for speed, one by one, and says where they are.
pub(crate) fn build_programs<const N: usize>(programs: &[Program; N]) -> Result<[PathBuf; N]> {
    for Program { binary, package, features } in programs {
        say(&format!("building {binary}"));
        let mut command = cargo(&["build", "--release", "--quiet", "-p", package, "--bin", binary]);
        if let Some(features) = features {
            command.args(["--no-default-features", "--features", features]);
        }
        if !command.status()?.success() {
            bail!("{binary} does not build");
        }
    }
    let folder = target_folder()?.join("release");
    Ok(programs.each_ref().map(|program| folder.join(program.binary)))
}
