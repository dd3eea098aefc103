//! Options, settings and variables that name a program to run.

use std::sync::LazyLock;

use super::super::word::Argument;
use super::{Inside, Seen, joined, with_next};
use crate::names::{Sieve, behind_letter, find_text, has_name as has, name_and_value, split_at_text};
use crate::strict::{is_locale, is_plain_locale};

/// Options whose value is run, by the programs that have them: letters, and names with however many dashes in front.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("flock npx vagrant", "c", ""),
    (COMPLETERS, "C", ""),
    ("tar bsdtar gtar", "IF", ""),
    ("man", "PH", ""),
    ("git", "O", ""),
    ("rsync fc", "e", ""),
    ("scp sftp", "S", ""),
    ("go", "", "exec toolexec vettool"),
    ("tcpdump", "", "z"),
    ("zip", "", "TT unzip-command"),
    ("nc ncat netcat", "", "e c exec sh-exec"),
    ("docker podman nerdctl", "", "entrypoint"),
    ("npm", "c", "script-shell"),
    ("pnpm yarn", "", "script-shell"),
    ("gcc g++ cc c++ clang clang++", "", "wrapper"),
    ("ansible", "a", "args"),
    ("bazel bazelisk", "", "run_under shell_executable"),
    ("just", "", "shell shell-command"),
];

/// Builtins that add words of their own to what they run.
const COMPLETERS: &str = "compgen complete mapfile readarray";

/// Programs that run a linker of somebody's choice.
const COMPILERS: &str = "gcc g++ cc c++ clang clang++ rustc rustdoc cargo";

/// What stands in front of a command line inside a word, by the programs that look for it there, in small letters; and what ends it.
const MARKS: &[(&str, &[&str], &[char])] = &[
    ("less more most", &["+!"], &[]),
    ("socat", &["exec:", "system:", "shell:"], &[',']),
    ("fzf sk", &["execute(", "execute-silent(", "become(", "reload(", "transform("], &[')']),
    ("strace", &["|", "!"], &[]),
    (COMPILERS, &["linker=", "-fuse-ld=", "--ld-path="], &[' ', ',', '"']),
    ("apt apt-get aptitude", &["invoke=", "invoke::="], &[]),
    (
        "ssh scp sftp rsync git mosh autossh sshfs ssh-copy-id",
        &[
            "proxycommand=",
            "proxycommand ",
            "localcommand=",
            "localcommand ",
            "knownhostscommand=",
            "knownhostscommand ",
            "remotecommand=",
            "remotecommand ",
        ],
        &[],
    ),
];

static MAY_RUN: LazyLock<Sieve> =
    LazyLock::new(|| Sieve::of(OPTIONS.iter().map(|row| row.0).chain(MARKS.iter().map(|row| row.0))));

/// Variables that make programs load code or settings of which nobody knows what they run.
const LOADS: &str = "GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_PARAMETERS GIT_EXEC_PATH GIT_TEMPLATE_DIR LD_PRELOAD LD_AUDIT \
    PERL5OPT RUBYOPT PYTHONSTARTUP MAKEFLAGS GNUMAKEFLAGS";

/// Settings of git that name a program, by how their keys end.
const GIT_KEYS: &str = "pager editor sshcommand fsmonitor external textconv command program helper .clean .smudge \
    .process .driver .cmd askpass packobjectshook";

/// What options and settings of single programs run.
pub(super) fn settings(seen: &Seen<'_>, inside: &mut Inside) {
    let base = seen.base;
    if MAY_RUN.may_have(base) {
        if let Some((_, letters, names)) = OPTIONS.iter().find(|(programs, ..)| has(programs, base)) {
            options(letters, names, seen, inside);
        }
        for (_, marks, ends) in MARKS.iter().filter(|(programs, _, _)| has(programs, base)) {
            let marked = seen.arguments.iter().filter_map(|word| behind_mark(&word.text, marks, ends));
            inside.scripts.extend(marked.map(str::to_owned));
        }
    }
    match base {
        "git" => git(seen.arguments, inside),
        "wget" => wget(seen.arguments, inside),
        "bind" => bound(seen.arguments, inside),
        "coreutils" => one_of_many(seen.arguments, inside),
        _ if has(COMPILERS, base) && seen.arguments.iter().any(|word| is_own_prefix(&word.text)) => {
            inside.unseen = Some("a directory says which programs a compiler runs");
        }
        "ssh" | "scp" | "sftp" if seen.arguments.iter().any(|word| word.text.starts_with("-F")) => {
            inside.unseen = Some("settings in a file say what it runs");
        }
        "gdb" | "lldb" if seen.arguments.iter().any(|word| names_commands(&word.text)) => {
            inside.unseen = Some("commands in a file are run");
        }
        _ => {}
    }
}

/// Options of debuggers that name a file with commands.
fn names_commands(word: &str) -> bool {
    has("-x -ix -s -S --source", word) || word.starts_with("--command") || word.starts_with("-command")
}

/// The values of these options.
fn options(letters: &str, names: &str, seen: &Seen<'_>, inside: &mut Inside) {
    let more = if has(COMPLETERS, seen.base) { " \0" } else { "" };
    for (text, next) in with_next(seen.arguments) {
        let value = match behind_letter(text, letters) {
            // In git the letter has no value of its own but for searches.
            Some("") if seen.base != "git" => Some(next.unwrap_or_default()),
            value => value,
        };
        inside.scripts.extend(value.map(|value| format!("{value}{more}")));
        let (name, value) = name_and_value(text.trim_start_matches('-'));
        if has(names, name) {
            // There the words are separated by commas.
            let separator = if name == "wrapper" { ',' } else { ' ' };
            let separated = |script: &str| script.replace(separator, " ");
            inside.scripts.extend(value.or(next).map(separated));
        }
    }
}

/// What stands behind the first of these marks in a word.
fn behind_mark<'a>(word: &'a str, marks: &[&str], ends: &[char]) -> Option<&'a str> {
    let small = word.to_ascii_lowercase();
    let start = marks.iter().find_map(|mark| find_text(&small, mark).map(|at| at + mark.len()))?;
    let script = &word[start..];
    Some(script.split(ends).next().unwrap_or(script).trim_start_matches('='))
}

fn git(arguments: &[Argument], inside: &mut Inside) {
    let sets = arguments.iter().any(|word| word.text == "config");
    let mut before = "";
    for (word, next) in with_next(arguments) {
        let before = std::mem::replace(&mut before, word);
        // A transport that is a command.
        let transport =
            word.strip_prefix("ext::").or_else(|| split_at_text(word, "=ext::").map(|(_, rest)| rest));
        // A blank in a word is written with a percent sign there.
        inside.scripts.extend(transport.map(|script| script.replace("% ", "\\ ")));
        let given = word.split_once('=').filter(|(key, _)| !key.contains(' '));
        let set = next.filter(|_| sets).map(|next| (word, next));
        let Some((key, value)) = given.or(set) else { continue };
        // The name of a variable that holds the value.
        let from_variable = key == "--config-env" || before == "--config-env";
        let key = if key == "--config-env" { value.split('=').next().unwrap_or_default() } else { key };
        let key = key.to_ascii_lowercase();
        let runs = GIT_KEYS.split(' ').any(|name| key.ends_with(name))
            || key.contains("alias.")
            || key.contains("pager.");
        if runs && (given.is_some() || key.contains('.')) {
            inside.scripts.push(value.trim_start_matches('!').to_owned());
        }
        let loads =
            key.ends_with("hookspath") || key.starts_with("include.") || key.starts_with("includeif.");
        if from_variable && (runs || loads) {
            inside.unseen = Some("a setting of git is only known at run time");
        }
        if before == "-c" && (key.contains('\0') || (loads && value != "/dev/null")) {
            inside.unseen = Some("settings of git say what it runs");
        }
    }
    if arguments.windows(2).any(|two| two[0].text == "-c" && two[1].text.starts_with('\0')) {
        inside.unseen = Some("a setting of git is only known at run time");
    }
    for (at, word) in arguments.iter().enumerate() {
        let rest = &arguments[at + 1..];
        match word.text.as_str() {
            "foreach" => inside.scripts.push(joined(rest)),
            "run" => inside.commands.push(rest.to_vec()),
            "-x" => inside.scripts.extend(rest.first().map(|value| value.text.clone())),
            _ => {}
        }
    }
}

/// Settings that are given to `wget` as options, or in a file.
fn wget(arguments: &[Argument], inside: &mut Inside) {
    for (text, next) in with_next(arguments) {
        if text.starts_with("--config") {
            inside.unseen = Some("settings in a file say what it runs");
        }
        let setting = match behind_letter(text, "e") {
            Some("") => next,
            Some(attached) => Some(attached),
            None => text.strip_prefix("--execute").and_then(|value| value.strip_prefix('=').or(next)),
        };
        let Some((key, program)) = setting.and_then(|setting| setting.split_once('=')) else { continue };
        let key: String = key.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
        if key.eq_ignore_ascii_case("useaskpass") {
            inside.scripts.push(program.to_owned());
        }
    }
}

/// `bind -x '"keys": command'`.
fn bound(arguments: &[Argument], inside: &mut Inside) {
    let binds = arguments.iter().any(|word| word.text.starts_with('-') && word.text.contains('x'));
    for word in arguments.iter().filter(|_| binds) {
        let keys = split_at_text(&word.text, "\":").or_else(|| word.text.split_once(':'));
        inside.scripts.extend(keys.map(|(_, command)| command.trim().trim_matches('"').to_owned()));
    }
}

/// `coreutils --coreutils-prog=…`, with the words of that program behind it.
fn one_of_many(arguments: &[Argument], inside: &mut Inside) {
    for (at, word) in arguments.iter().enumerate() {
        let option = word.text.split_once('=').filter(|(name, _)| name.starts_with("--coreutils-prog"));
        let Some((_, program)) = option else { continue };
        let name = Argument::new(program);
        inside.commands.push([&[name], &arguments[at + 1..]].concat());
    }
}

/// Whether a compiler gets the programs that it runs from a directory that is not one of the system.
fn is_own_prefix(word: &str) -> bool {
    word.strip_prefix("-B").is_some_and(|prefix| !prefix.is_empty() && !prefix.starts_with("/usr/"))
}

/// What programs run because a variable is set.
pub(in crate::all_commands) fn variable(name: &str, value: &str, inside: &mut Inside) {
    if names_program(name) {
        inside.scripts.push(value.trim_start_matches(['|', '!']).to_owned());
    }
    // The file that a shell runs first. Others are not told of this variable, and mean other things by it.
    if name == "ENV" && !value.contains('\0') {
        inside.scripts.push(value.to_owned());
    }
    if name.ends_with("FLAGS") {
        let linker =
            ["linker=", "-fuse-ld=", "--ld-path="].iter().find_map(|mark| split_at_text(value, mark));
        let program = linker.and_then(|(_, program)| program.split([' ', '\x1f']).next());
        inside.scripts.extend(program.map(str::to_owned));
    }
    if name == "TAR_OPTIONS" {
        inside.scripts.push(format!("tar {value}"));
    }
    if name == "GIT_CONFIG_PARAMETERS" {
        let settings = value.split('\'').filter_map(|setting| setting.split_once('='));
        inside.scripts.extend(settings.take(64).map(|(_, value)| value.to_owned()));
    }
    if is_locale(name) && !is_plain_locale(name, value) {
        inside.unseen = Some("another locale changes how text is read");
    }
    if matches!(name, "BASHOPTS" | "GLOBIGNORE") && !value.is_empty() {
        inside.change_patterns();
    }
    if has(LOADS, name) && !matches!(value, "" | "/dev/null") {
        inside.unseen = Some("a variable says what programs load");
    }
}

/// Whether programs run what a variable holds.
fn names_program(variable: &str) -> bool {
    const ENDS: &str = "PAGER EDITOR VISUAL BROWSER _COMMAND ASKPASS LESSOPEN LESSCLOSE EXTERNAL_DIFF _WRAPPER \
        BASH_ENV GIT_SSH _RUNNER _EXEC _RSH _LINKER";
    const NAMES: &str = "CC CXX CPP LD AR AS FC RUSTC RUSTDOC SHELL MAKE RM CP MV INSTALL";
    let ends = ENDS.split(' ').any(|end| variable.ends_with(end));
    ends || has(NAMES, variable) || variable.starts_with("GIT_CONFIG_VALUE_")
}
