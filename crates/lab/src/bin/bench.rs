//! Runs the benchmarks and prints their table. `cargo xtask bench` builds what they need and starts this.
//!
//! Both programs are copied first, as an installation does: what a linker wrote lies in the page cache in the order and the sizes in
//! which it was written, and starts a quarter slower until it is read anew.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use windlass_lab::bench::{BenchProgram, Contest, Row, Subject, measure_peak, run, table};

fn main() -> Result<ExitCode> {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "measure") {
        return measure_peak(&args.split_off(1));
    }
    let names: Vec<String> = args.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let binary = |name: &str| {
        std::env::var_os(name).with_context(|| format!("{name} is not set; use `cargo xtask bench`"))
    };
    let installed = tempfile::tempdir_in(std::env::current_exe()?.parent().context("no folder")?)?;
    let install = |name: &str, program| -> Result<Subject> {
        let path = installed.path().join(name);
        std::fs::copy(binary(name)?, &path)?;
        Ok(Subject { program, binary: path })
    };
    let contest = Contest {
        windlass: install("WINDLASS_BINARY", BenchProgram::Windlass)?,
        bare: install("BARE_BINARY", BenchProgram::Bare)?,
        harness: std::env::current_exe()?,
    };
    let mut all: Vec<Row> = Vec::new();
    let passed = run(&contest, &names, |name, rows| {
        all.extend_from_slice(rows);
        // Nobody is left to be told when stderr is closed.
        let _ = writeln!(std::io::stderr(), "measured {name}");
    })?;
    writeln!(std::io::stdout(), "{}", table(&all))?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
