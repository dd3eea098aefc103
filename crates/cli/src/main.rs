//! The `windlass` command: flags, wiring, and the forms in which a run is shown.
//!
//! Standard output carries the result of a run and nothing else: the answer or what went wrong, or the protocol.
//! Everything said to people beside it goes to standard error, and so does why no run begins. Where both are terminals, what a
//! run tells is written to standard output alone, so that it comes in one order.

mod acting;
mod arguments;
mod asking;
mod bell;
mod call_cards;
mod command_tree;
mod commands;
mod config;
mod confine;
mod conversation;
mod demo;
mod display;
mod doctor;
mod drive;
mod escape;
mod guard;
mod help;
mod hooking;
mod hooks;
mod jobs;
mod keeping;
mod keys;
mod layout;
mod left;
mod line_editor;
mod lines;
mod opening;
mod output;
mod permissions;
mod print;
mod progress;
mod prompt;
mod replay;
mod rewind;
mod rewound;
mod screen;
mod sessions;
mod suggest;
mod terminal;
mod trace;
mod trust;
mod usage;
mod view;
mod visible;
mod watched;
mod wiring;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};

use arguments::Request;

/// What `--version` prints: our own version, then the one hosts compare with. It begins with the name, since older Agent SDKs warn about
/// a version below 2.0.0 at the very beginning, and about nothing else.
pub(crate) const VERSION: &str =
    concat!("windlass ", env!("CARGO_PKG_VERSION"), " (compatible with Claude Code 2.1.325)");

fn main() {
    windlass_sandbox::run_if_supervisor();
    windlass_sandbox::close_to_others();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let code = match arguments::parse(&arguments) {
        Ok(Request::Print(arguments)) => print::run(&arguments),
        Ok(Request::Demo) => demo::run(),
        Ok(Request::Doctor(wanted)) => doctor::run(&wanted),
        Ok(Request::Sessions(command)) => sessions::run(&command),
        Ok(Request::Trace(wanted)) => trace::run(&wanted),
        Ok(Request::Replay(wanted)) => replay::run(&wanted),
        Ok(Request::Rewind(wanted)) => rewind::run(&wanted),
        Ok(Request::Permissions(command)) => permissions::run(&command),
        Ok(Request::Config(command)) => config::run(&command),
        Ok(Request::Trust(command)) => trust::run(&command),
        Ok(Request::Sandbox(command)) => confine::run(&command),
        Ok(Request::Show(text)) => i32::from(std::io::stdout().write_all(text.as_bytes()).is_err()),
        Err(error) => {
            complain(&error);
            1
        }
    };
    std::process::exit(code);
}

/// Says what is wrong on standard error: in one line, unless a person reads it.
pub(crate) fn complain(text: &str) {
    // Without standard error there is nobody to tell; the exit code still says it.
    let _ = writeln!(std::io::stderr(), "{}", complaint(text));
}

fn complaint(text: &str) -> String {
    let stderr = std::io::stderr();
    if stderr.is_terminal() {
        return for_person(text, layout::columns(stderr));
    }
    format!("windlass: {}", display::line(text))
}

/// A text for a terminal: what hangs below it, such as the items of a list, keeps lines of its own. Other line ends count as blanks,
/// since nothing that is quoted may look as if we had said it.
fn for_person(text: &str, columns: usize) -> String {
    let lines = text.split("\n  ").map(display::line).collect::<Vec<_>>().join("\n  ");
    layout::wrap(&format!("windlass: {lines}"), columns)
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
        assert!(super::VERSION.ends_with(&format!(" {})", windlass_wire::COMPATIBLE_VERSION)));
    }
}
