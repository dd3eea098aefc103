//! The `windlass` command: flags, wiring, and the forms in which a run is shown.
//!
//! Standard output carries the answer or the protocol and nothing else; everything said to people beside it goes
//! to standard error.

mod arguments;
mod demo;
mod display;
mod drive;
mod output;
mod print;
mod progress;
mod prompt;
mod suggest;
mod view;
mod wiring;

use std::ffi::OsString;
use std::io::Write as _;

use arguments::{Refusal, Request};

/// What `--version` prints: the version hosts compare with, then our own.
pub(crate) const VERSION: &str = concat!("2.1.325 (Windlass ", env!("CARGO_PKG_VERSION"), ")");

fn main() {
    windlass_sandbox::run_if_supervisor();
    windlass_sandbox::close_to_others();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let code = match arguments::parse(&arguments) {
        Ok(Request::Print(arguments)) => print::run(&arguments),
        Ok(Request::Demo) => demo::run(),
        Err(refusal) => refuse(&refusal),
    };
    // Everything is flushed, and whatever still runs in the background ends with the process.
    std::process::exit(code);
}

fn refuse(refusal: &Refusal) -> i32 {
    match refusal {
        Refusal::Parser(error) if error.use_stderr() => {
            let _ = write!(std::io::stderr(), "{error}");
            1
        }
        Refusal::Parser(asked) => {
            let text = match asked.kind() {
                clap::error::ErrorKind::DisplayVersion => format!("{VERSION}\n"),
                _ => asked.to_string(),
            };
            i32::from(std::io::stdout().write_all(text.as_bytes()).is_err())
        }
        Refusal::Usage(text) => {
            complain(text);
            1
        }
    }
}

/// Says what is wrong, in one line on standard error.
pub(crate) fn complain(text: &str) {
    // Without standard error there is nobody to tell; the exit code still says it.
    let _ = writeln!(std::io::stderr(), "windlass: {}", display::line(text));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_begins_with_the_one_hosts_compare_with() {
        assert!(super::VERSION.starts_with(windlass_wire::COMPATIBLE_VERSION));
    }
}
