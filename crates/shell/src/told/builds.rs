//! Programs that build: settings that name another compiler, runner or shell. What the project itself says is run is its own matter.

use super::{Telling, Value, harmless, long_option, name_and_value};
use crate::names::has_name as has;

pub(super) const NAMES: &str = "make gmake cargo go rustc mvn mvnw mvnd";

/// Variables of makefiles that name a program.
const PROGRAMS: &str = "CC CXX CPP LD AR AS FC RUSTC MAKE RM CP MV INSTALL PYTHON";

pub(super) fn look(telling: &mut Telling<'_>) {
    match telling.base {
        "make" | "gmake" => make(telling),
        "cargo" => cargo(telling),
        "go" => go(telling),
        "rustc" => rustc(telling),
        "mvn" | "mvnw" | "mvnd" => {
            for (at, word) in telling.arguments() {
                if word.contains("exec.executable=") {
                    telling.tells(at);
                }
            }
        }
        _ => {}
    }
}

fn make(telling: &mut Telling<'_>) {
    for (at, word) in telling.arguments() {
        if let Some(value) = long_option(word, "eval") {
            telling.tells_value(at, value, harmless::never);
        } else if let Some(rule) = word.strip_prefix("-E") {
            telling.tells_value(at, Value::behind(rule), harmless::never);
        } else if let Some((name, value)) = word.split_once('=')
            && !is_usual_variable(name.trim_end_matches([':', '?', '+', '!', ' ']), value)
        {
            telling.tells(at);
        }
    }
}

fn is_usual_variable(name: &str, value: &str) -> bool {
    let evaluates = ["$(shell", "${shell", "$(eval", "${eval"].iter().any(|text| value.contains(text));
    match name {
        _ if evaluates => false,
        "SHELL" => harmless::shell(value),
        "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" => !value.contains("-e") && !value.contains('\0'),
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
            telling.tells_value(at, value, is_usual_setting);
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
    let options = telling.options().take_while(|(_, word)| !has("-args --args", word));
    for (at, word) in options.filter(|(_, word)| word.starts_with('-')) {
        let (name, value) = name_and_value(word.trim_start_matches('-'));
        if has("exec toolexec vettool", name) {
            telling.tells_value(at, value, harmless::never);
        } else if name == "ldflags" {
            telling.tells_value(at, value, |flags| !flags.contains("extld"));
        }
    }
}

/// `-C linker=…`.
fn rustc(telling: &mut Telling<'_>) {
    for (at, word) in telling.arguments() {
        if ["linker=", "-Clinker=", "--codegen=linker="].iter().any(|start| word.starts_with(start)) {
            telling.tells(at);
        }
    }
}
