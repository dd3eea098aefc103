//! Runs the benchmarks and prints their table. `cargo xtask bench` builds what they need and starts this.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use windlass_bench::{Contest, Program, Row, Subject, measure_peak, run, table};

fn main() -> Result<ExitCode> {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "measure") {
        return measure_peak(&args.split_off(1));
    }
    let names: Vec<String> = args.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let binary = |name: &str| {
        std::env::var_os(name).with_context(|| format!("{name} is not set; run `cargo xtask bench`"))
    };
    let contest = Contest {
        windlass: Subject { program: Program::Windlass, binary: binary("WINDLASS_BINARY")?.into() },
        bare: Subject { program: Program::Bare, binary: binary("BARE_BINARY")?.into() },
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
