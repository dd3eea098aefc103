//! Programs that build: settings that name another compiler, runner or shell. What the project itself says is run is its own matter.

use super::{Telling, harmless, long_option, name_and_value, short_option};
use crate::names::has_name as has;

pub(super) const NAMES: &str = "make gmake cargo go rustc mvn mvnw mvnd";

/// Variables of makefiles that name a program.
const PROGRAMS: &str = "CC CXX CPP LD AR AS FC RUSTC MAKE RM CP MV INSTALL";

pub(super) fn look(telling: &mut Telling<'_>) {
    match telling.base {
        "make" | "gmake" => make(telling),
        "cargo" => cargo(telling),
        "go" => go(telling),
        "rustc" => {
            let linkers = ["linker=", "-Clinker=", "--codegen=linker="];
            telling.tells_each(|word| linkers.iter().any(|start| word.starts_with(start)));
        }
        "mvn" | "mvnw" | "mvnd" => telling.tells_each(|word| word.contains("exec.executable=")),
        _ => {}
    }
}

fn make(telling: &mut Telling<'_>) {
    for (at, word) in telling.arguments() {
        let code = long_option(word, "eval").or_else(|| short_option(word, "E", "CfIjloW"));
        let file = || long_option(word, "file makefile").or_else(|| short_option(word, "f", "CEIjloW"));
        if code.is_some() {
            telling.tells_value(at, code, harmless::never);
        } else if let Some(file) = file() {
            telling.tells_value(at, Some(file), is_makefile);
        } else if let Some((name, value)) = word.split_once('=')
            && (name.ends_with('!') || !is_usual_variable(name.trim_end_matches([':', '?', '+', ' ']), value))
        {
            telling.tells(at);
        }
    }
}

/// A file that is there, and not what comes in or what a command prints.
fn is_makefile(name: &str) -> bool {
    name != "-" && !name.starts_with("/dev/") && !name.starts_with("/proc/") && !name.contains('\0')
}

fn is_usual_variable(name: &str, value: &str) -> bool {
    let evaluates = value.contains('$')
        && ["shell", "eval", "guile", "file", "load", "call"].iter().any(|function| value.contains(function));
    match name {
        _ if evaluates => false,
        ".SHELLFLAGS" | "MAKEFILES" => false,
        "SHELL" => harmless::shell(value),
        "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || " -=".contains(c);
            value.chars().all(is_plain) && !value.contains("eval") && !value.contains(['E', 'S'])
        }
        name if has(PROGRAMS, name) => is_installed(value),
        _ => true,
    }
}

/// Programs by their names, or where programs are installed.
fn is_installed(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_+.=/:,".contains(c);
    let is_known = |word: &str| {
        word.starts_with('-')
            || !word.contains('/')
            || ["/usr/", "/bin/", "/opt/"].iter().any(|start| word.starts_with(start))
    };
    value.chars().all(is_plain) && !value.contains("..") && value.split_whitespace().all(is_known)
}

/// `--config key=value`, or a file of them.
fn cargo(telling: &mut Telling<'_>) {
    for (at, word) in telling.options() {
        let (name, value) = name_and_value(word);
        if name == "--config" {
            telling.tells_value(at, Some(value), is_usual_setting);
        }
    }
}

fn is_usual_setting(setting: &str) -> bool {
    const RUNS: [&str; 9] =
        ["runner", "wrapper", "linker", "rustc", "rustdoc", "credential", "alias", "include", "env."];
    // Flags of the compiler are no compiler.
    let keys = setting.replace("rustflags", "").replace("rustdocflags", "");
    setting.contains('=') && !keys.contains(['\\', '\0']) && !RUNS.iter().any(|name| keys.contains(name))
}

fn go(telling: &mut Telling<'_>) {
    // What follows the package is for the program.
    if telling.text(1) == Some("run")
        && telling.text(2).is_some_and(|package| !package.starts_with(['-', '\0']))
    {
        return;
    }
    let options = telling.options().take_while(|(_, word)| !has("-args --args", word));
    for (at, word) in options.filter(|(_, word)| word.starts_with('-')) {
        let (name, value) = name_and_value(word.trim_start_matches('-'));
        if has("exec toolexec vettool", name) {
            telling.tells_value(at, Some(value), harmless::never);
        } else if name == "ldflags" {
            telling.tells_value(at, Some(value), |flags| !flags.contains("extld"));
        }
    }
}
