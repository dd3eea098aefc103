//! The `windlass` command: flags, wiring, and the forms in which a run is shown.
//!
//! Standard output carries only the result of a run: the answer, an error, or the protocol. All else goes to standard
//! error; where both are terminals, what a run tells goes to standard output too, so that it comes in one order.

mod arguments;
mod commands;
mod standard_io;
mod terminal;
mod views;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};

use arguments::Request;
use windlass::display;
use windlass::settings::SettingsNotices;

/// Printed by `--version`, with the name first: older Agent SDKs warn about a leading version below 2.0.0.
pub(crate) const VERSION: &str =
    concat!("windlass ", env!("CARGO_PKG_VERSION"), " (compatible with Claude Code 2.1.325)");

fn main() {
    windlass::supervise_commands();
    windlass::sandbox::close_to_others();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let code = arguments::parse(&arguments).and_then(perform).unwrap_or_else(|error| {
        complain(&error);
        1
    });
    std::process::exit(code);
}

/// Does what is asked for, and gives the exit code.
fn perform(request: Request) -> anyhow::Result<i32> {
    match request {
        Request::Print(arguments) => commands::print::run(&arguments),
        Request::Demo => commands::demo::run(),
        Request::Doctor(wanted) => commands::doctor::run(&wanted),
        Request::Sessions(wanted) => commands::sessions::run(&wanted),
        Request::Trace(wanted) => commands::trace::run(&wanted),
        Request::Replay(wanted) => commands::replay::run(&wanted),
        Request::Rewind(wanted) => commands::rewind::run(&wanted),
        Request::Permissions(command) => commands::permissions::run(&command),
        Request::Config(command) => commands::config::run(&command),
        Request::Trust(wanted) => commands::trust::run(&wanted),
        Request::Sandbox(command) => commands::sandbox::run(&command),
        Request::Completions { shell } => Ok(show_text(&arguments::command_tree::completions(shell))),
        Request::Man { command } => Ok(show_text(&arguments::command_tree::manual(&command)?)),
        Request::Show(text) => Ok(show_text(&text)),
    }
}

/// Prints a text that was asked for, and gives the exit code.
pub(crate) fn show_text(text: &str) -> i32 {
    i32::from(std::io::stdout().write_all(text.as_bytes()).is_err())
}

/// Says everything about settings files, where people look for it.
pub(crate) fn complain_of_settings(notices: &SettingsNotices) {
    notices.trust_notice().iter().for_each(complain);
    notices.all().iter().for_each(complain);
}

/// Says what is wrong on standard error: in one line, unless a person reads it.
pub(crate) fn complain<T: Display + ?Sized>(text: &T) {
    // Without standard error there is nobody to tell; the exit code still says it.
    let _ = writeln!(std::io::stderr(), "{}", complaint(&text.to_string()));
}

fn complaint(text: &str) -> String {
    let stderr = std::io::stderr();
    if stderr.is_terminal() {
        return for_person(text, views::layout::columns(stderr));
    }
    format!("windlass: {}", display::line(text))
}

/// A text for a terminal. Items below it keep their lines; other line ends are blanks: no quote looks like us.
fn for_person(text: &str, columns: usize) -> String {
    let lines = text.split("\n  ").map(display::line).collect::<Vec<_>>().join("\n  ");
    views::layout::wrap(&format!("windlass: {lines}"), columns)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_person_reads_lists_line_by_line() {
        let check =
            |text: &str, columns, expected: &str| assert_eq!(super::for_person(text, columns), expected);
        check("left out:\n  a;\n  b b b.", 80, "windlass: left out:\n  a;\n  b b b.");
        check("left out:\n  a bb ccc", 10, "windlass:\nleft out:\n  a bb ccc");
        check("no\nwindlass: lie", 80, "windlass: no windlass: lie");
    }

    #[test]
    fn the_version_ends_with_the_one_hosts_compare_with() {
        assert!(super::VERSION.ends_with(&format!(" {})", windlass::wire::COMPATIBLE_VERSION)));
    }
}
