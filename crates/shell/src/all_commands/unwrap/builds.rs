//! Programs that build: what variables, rules and settings among their arguments run.

use super::super::word::Argument;
use super::languages::{Language, NONE};
use super::settings::variable;
use super::{Inside, Seen, with_next};
use crate::effect::FROM_COMMAND;
use crate::names::{behind_letter, has_name as has, name_and_value, split_at_text};

/// Makefiles that come in.
pub(super) static MAKEFILE: Language =
    Language { names: "make gmake just", translate: Some(recipes), ..NONE };
/// Files that say what `npm` runs.
pub(super) static PACKAGE: Language = Language { names: "npm", translate: Some(package_scripts), ..NONE };

/// Variables and rules that are given to `make`.
pub(super) fn make(seen: &Seen<'_>, inside: &mut Inside) {
    for (word, next) in with_next(seen.arguments) {
        if let Some(rule) = word.strip_prefix("--eval") {
            let rule = rule.strip_prefix('=').or(next).unwrap_or_default();
            inside.scripts.extend(recipes(rule));
        } else if let Some(file) = makefile(word, next) {
            if has("- /dev/stdin /dev/fd/0", file) {
                inside.input.code = Some(&MAKEFILE);
            }
            if file == FROM_COMMAND || (inside.input.code.is_some() && seen.is_piped) {
                inside.unseen = Some("a makefile is only known at run time");
            }
        } else if let Some((name, value)) = word.split_once('=') {
            variable(name.trim_end_matches([':', '?', '+', '!']), value, inside);
        }
    }
}

/// The file that an option names.
fn makefile<'a>(word: &'a str, next: Option<&'a str>) -> Option<&'a str> {
    if let Some(long) = ["--file", "--makefile"].iter().find_map(|name| word.strip_prefix(name)) {
        return long.strip_prefix('=').or(next);
    }
    let attached = behind_letter(word, "f")?;
    if attached.is_empty() { next } else { Some(attached) }
}

/// What lines of a makefile run.
fn recipes(makefile: &str) -> Vec<String> {
    let text = makefile.replace("\\\n", " ").replace("$(shell ", "$(").replace("${shell ", "$(");
    let mut inside = Inside::default();
    for line in text.lines() {
        // In front of a command these say how it is run.
        let command = |text: &str| text.trim_start_matches(['\t', ' ', '@', '-', '+']).to_owned();
        if let Some(recipe) = line.strip_prefix('\t') {
            inside.scripts.push(command(recipe));
            continue;
        }
        let behind = line.split_once(';').or_else(|| line.split_once("!="));
        inside.scripts.extend(behind.map(|(_, recipe)| command(recipe)));
        if let Some((name, value)) = line.split_once('=') {
            variable(name.trim_end_matches([':', '?', '+', ' ', '\t']), value.trim(), &mut inside);
        }
        if line.contains(['$', '`', '\0']) {
            inside.scripts.push(line.to_owned());
        }
    }
    inside.scripts
}

/// `--config key=value`.
pub(super) fn cargo(arguments: &[Argument], inside: &mut Inside) {
    if arguments.iter().any(|word| word.text == "watch") {
        watch(arguments, inside);
    }
    for word in arguments {
        let setting = word.text.strip_prefix("--config=").unwrap_or(&word.text);
        let Some((key, value)) = setting.split_once('=') else { continue };
        let runs = ["runner", "wrapper", "linker", "rustc", "rustdoc", "credential-provider", "alias"];
        if runs.iter().any(|name| key.contains(name)) {
            inside.scripts.push(value.replace(['"', '\'', '[', ']', ','], " "));
        }
    }
}

/// What is run on each change by `cargo watch`.
fn watch(arguments: &[Argument], inside: &mut Inside) {
    for (at, word) in arguments.iter().enumerate() {
        let (name, value) = name_and_value(&word.text);
        let next = arguments.get(at + 1).map(|word| word.text.as_str());
        let Some(value) = value.or(next) else { continue };
        match name {
            "-s" | "--shell" => inside.scripts.push(value.to_owned()),
            "-x" | "--exec" => inside.scripts.push(format!("cargo {value}")),
            "--" => inside.commands.push(arguments[at + 1..].to_vec()),
            _ => {}
        }
    }
}

/// `npm pkg set scripts.x=…` and `npm set-script x …`.
pub(super) fn package(arguments: &[Argument], inside: &mut Inside) {
    let is_word = |text: &str| arguments.iter().any(|word| word.text == text);
    if is_word("set-script") {
        inside.scripts.extend(arguments.last().map(|word| word.text.clone()));
    }
    for word in arguments.iter().filter(|_| is_word("pkg")) {
        let script = word.text.split_once('=').filter(|(key, _)| key.starts_with("scripts"));
        inside.scripts.extend(script.map(|(_, script)| script.to_owned()));
    }
}

/// The texts in a file of `npm`, each of which may be a script.
fn package_scripts(file: &str) -> Vec<String> {
    let text = |line: &str| {
        let value = line.split_once(':')?.1.trim().trim_end_matches(',').trim_matches(['"', ' ', '}', '{']);
        Some(value.rsplit_once(": \"").map_or(value, |(_, value)| value).replace("\\\"", "\""))
    };
    file.split_inclusive([',', '\n']).filter_map(text).collect()
}

/// `-Dexec.executable=…`, with its arguments in another word.
pub(super) fn maven(arguments: &[Argument], inside: &mut Inside) {
    let value =
        |key: &str| arguments.iter().find_map(|word| split_at_text(&word.text, key)).map(|(_, value)| value);
    if let Some(program) = value("exec.executable=") {
        let rest = value("exec.args=").or_else(|| value("exec.commandlineArgs=")).unwrap_or("\0");
        inside.scripts.push(format!("{program} {rest}"));
    }
}
