//! What a command runs that stands in its own arguments.

mod awk;
mod builds;
mod code;
mod editors;
mod languages;
mod mentions;
mod ran;
mod runners;
mod settings;
mod texts;

use std::sync::LazyLock;

use super::word::Argument;
use super::{Input, search, written_scripts};
use crate::names::{Sieve, behind_letter, has_name as has, is_name_char, letter_group};
use crate::places::Places;
pub(crate) use awk::runs_something as runs_in_awk;
pub(super) use awk::written as written_by_awk;
use code::interpreted;
use editors::editors;
pub(super) use languages::Language;
pub(super) use mentions::Mentions;
pub(super) use ran::{How, files_run};
use runners::{cmake, runners, subcommands};
pub(super) use settings::variable;
use texts::{assigned, edited, run_options, scheduled, split_string};

/// A command as it was found.
pub(super) struct Seen<'a> {
    /// The last part of its name.
    pub(super) base: &'a str,
    pub(super) arguments: &'a [Argument],
    pub(super) places: &'a Places,
    pub(super) is_piped: bool,
    /// The command before it.
    pub(super) last: &'a [Argument],
}

#[derive(Default)]
pub(super) struct Inside {
    /// Commands it runs.
    pub(super) commands: Vec<Vec<Argument>>,
    /// Only one of these commands is run, whichever it is.
    pub(super) guesses: bool,
    /// Texts it runs as scripts.
    pub(super) scripts: Vec<String>,
    /// Variables it sets.
    pub(super) sets: Vec<String>,
    pub(super) sets_anything: bool,
    pub(super) enters: Option<Places>,
    pub(super) input: Input,
    pub(super) unseen: Option<&'static str>,
    /// Patterns may mean other files than they seem to.
    pub(super) changes_patterns: bool,
    /// Texts in code that may name files.
    pub(super) mentions: Mentions,
}

/// What is unseen where a pattern may stand for other files than it seems to.
pub(super) const PATTERNS: &str = "it changes how patterns are read";

impl Inside {
    /// An option of the shell says which files a pattern stands for.
    fn change_patterns(&mut self) {
        self.changes_patterns = true;
        self.unseen = Some(PATTERNS);
    }
}

/// Programs that run the command in their arguments, their letters with a value, and the operands in front of it.
const WRAPPERS: &[(&str, &str, usize)] = &[
    ("sudo", "CDghpRrtTuU", 0),
    ("doas", "Cu", 0),
    ("env", "uCS", 0),
    ("timeout", "ks", 1),
    ("nice", "n", 0),
    ("ionice", "cn", 0),
    ("stdbuf", "ioe", 0),
    (
        "nohup setsid command builtin exec busybox toybox noglob coproc chronic unbuffer fakeroot catchsegv",
        "a",
        0,
    ),
    ("time gtime", "fo", 0),
    ("flock", "wE", 1),
    ("chrt taskset chroot", "p", 1),
    ("strace ltrace", "eopsSuEaXPbO", 0),
    ("xargs", "aEILnPsd", 0),
    ("watch", "n", 0),
];

static MAY_WRAP: LazyLock<Sieve> =
    LazyLock::new(|| Sieve::of(WRAPPERS.iter().map(|(names, ..)| *names).chain([SHELLS])));

pub(super) const SHELLS: &str =
    "sh bash dash zsh ksh mksh ash rbash fish csh tcsh pwsh powershell xonsh nu elvish rc es";

pub(super) fn inside(seen: &Seen<'_>) -> Inside {
    let mut inside = Inside::default();
    let base = seen.base;
    // What stands behind the dashes is for a shell.
    let may_wrap = MAY_WRAP.may_have(base);
    if (may_wrap && has(SHELLS, base)) || base == "capsh" {
        shell(seen, &mut inside);
    } else {
        interpreted(seen, &mut inside);
    }
    if may_wrap && let Some((_, valued, operands)) = WRAPPERS.iter().find(|(names, ..)| has(names, base)) {
        wrapped(valued, *operands, seen, &mut inside);
    }
    runners(seen, &mut inside);
    subcommands(seen, &mut inside);
    settings::settings(seen, &mut inside);
    editors(seen, &mut inside);
    match base {
        "eval" => {
            inside.scripts.push(joined(without_dashes(seen.arguments)));
            if seen.arguments.iter().any(|word| word.is_pattern) {
                inside.unseen = Some("it evaluates names of files");
            }
        }
        "trap" => {
            let script = without_dashes(seen.arguments).first();
            inside.scripts.extend(script.map(|script| script.text.clone()));
        }
        "alias" => {
            let value = |word: &Argument| Some(word.text.split_once('=')?.1.to_owned());
            inside.scripts.extend(seen.arguments.iter().filter_map(value));
        }
        "source" | "." => sourced(seen, &mut inside),
        "cd" | "pushd" | "popd" => inside.enters = Some(entered(seen)),
        "jobs" => {
            let at =
                seen.arguments.iter().position(|word| word.text.starts_with('-') && word.text.contains('x'));
            inside.commands.extend(at.map(|at| seen.arguments[at + 1..].to_vec()));
        }
        "find" | "fd" | "fdfind" => inside.commands.extend(search::executed(base, seen.arguments)),
        "cmake" => cmake(seen.arguments, &mut inside),
        "make" | "gmake" => builds::make(seen, &mut inside),
        "cargo" => builds::cargo(seen.arguments, &mut inside),
        "npm" | "pnpm" | "yarn" | "bun" => builds::package(seen.arguments, &mut inside),
        "mvn" | "mvnw" | "mvnd" => builds::maven(seen.arguments, &mut inside),
        "watch" | "ssh" | "parallel" | "su" | "runuser" | "script" => {
            inside.scripts.push(remote(base, seen.arguments));
            if may_run_input(base, seen.arguments) {
                input(seen, &mut inside);
            }
            inside.input.is_run |= matches!(base, "ssh" | "su");
        }
        "at" | "batch" | "crontab" => scheduled(seen, &mut inside),
        "sed" | "gsed" => edited(seen.arguments, &mut inside),
        "snap" => inside.input.is_run = seen.arguments.iter().any(|word| word.text == "--shell"),
        "hash" | "enable" => inside.unseen = Some("it changes what a name means"),
        "shopt" if seen.arguments.iter().any(|word| sets_shell_options(&word.text)) => {
            inside.change_patterns();
        }
        "read" | "mapfile" | "readarray" | "getopts" | "unset" | "declare" | "local" | "typeset"
        | "readonly" | "export" | "let" | "printf" | "wait" => {
            variables(seen, &mut inside);
        }
        _ => {}
    }
    inside.sets_anything |= matches!(base, "eval" | "source" | ".");
    run_options(seen.arguments, &mut inside);
    inside
}

fn sets_shell_options(word: &str) -> bool {
    (word.starts_with('-') && word.contains(['s', 'u'])) || word.contains('\0')
}

/// Builtins that set the variables they are told.
fn variables(seen: &Seen<'_>, inside: &mut Inside) {
    // Only with this option does it set one.
    let prints = seen.base == "printf"
        && seen.arguments.first().is_none_or(|first| !first.text.starts_with(['-', '\0']));
    if prints {
        return;
    }
    inside.sets.extend(seen.arguments.iter().map(|word| name_of(&word.text)));
    seen.arguments.iter().for_each(|word| assigned(&word.text, inside));
    // What is only known at run time may be any name, and another name may stand for a variable.
    let is_any = |word: &Argument| {
        let is_reference = word.text.starts_with('-') && word.text.contains('n');
        name_of(&word.text).contains('\0') || word.is_pattern || is_reference
    };
    inside.sets_anything = seen.arguments.iter().any(is_any);
}

pub(super) fn joined(arguments: &[Argument]) -> String {
    arguments.iter().map(|argument| argument.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The texts of words, each with the one behind it.
fn with_next(words: &[Argument]) -> impl Iterator<Item = (&str, Option<&str>)> {
    let texts = words.iter().map(|word| word.text.as_str());
    texts.clone().zip(texts.skip(1).map(Some).chain([None]))
}

fn name_of(text: &str) -> String {
    text.split(['=', '[']).next().unwrap_or_default().to_owned()
}

/// A shell: the script in its arguments, or what comes in.
fn shell(seen: &Seen<'_>, inside: &mut Inside) {
    let mut words = seen.arguments.iter();
    let mut is_script = false;
    let mut reads_input = true;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if text.starts_with("--") && text.len() > 2 {
            // These take the next word, which could be taken for a script otherwise.
            if matches!(text, "--rcfile" | "--init-file") {
                inside.commands.extend(words.next().map(|file| vec![file.clone()]));
            }
            is_script |= matches!(text, "--command" | "--commands" | "--init-command");
        } else if text.starts_with(['-', '+']) && text.len() > 1 && text != "--" {
            is_script |= text.starts_with('-') && text.contains(['c', 'C']);
            if text.to_ascii_lowercase().starts_with("-enc") || text == "-ec" {
                inside.unseen = Some("a shell runs a script that is encoded");
            }
            if text.contains('O') {
                inside.change_patterns();
            }
            if text.ends_with(['o', 'O']) {
                words.next();
            } else if text.contains(['o', 'O']) {
                // Which of the next words is the script depends on the spelling of the whole group.
                inside.scripts.extend(words.clone().map(|word| word.text.clone()));
            }
        } else if text != "-" && text != "--" {
            reads_input = false;
            if is_script {
                inside.scripts.push(text.to_owned());
            }
            if text.contains('\0') || word.is_pattern {
                inside.unseen = Some("a shell runs something that is only known at run time");
            }
            if matches!(text, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
                reads_input = true;
            }
            break;
        }
    }
    if reads_input || seen.arguments.iter().any(|word| word.text == "-s") {
        input(seen, inside);
    }
}

/// What a command prints, or all that it may print if it changes that.
fn printed(command: &[Argument]) -> Option<String> {
    let (name, words) = command.split_first()?;
    let prints = matches!(name.text.as_str(), "echo" | "printf");
    written_scripts::printed(command).or_else(|| prints.then(|| joined(words)))
}

/// What comes in is run.
fn input(seen: &Seen<'_>, inside: &mut Inside) {
    inside.input.is_run = true;
    if seen.is_piped {
        inside.unseen = Some("a shell runs what is piped into it");
        inside.scripts.extend(printed(seen.last));
    }
}

/// `source` of a file is like running the file; of anything else it is not known what runs.
fn sourced(seen: &Seen<'_>, inside: &mut Inside) {
    // Without a file it only complains; behind a runner a dot is a directory.
    let file = seen.arguments.first().map_or("", |file| file.text.as_str());
    if file.contains('\0') || file.starts_with("/dev/") || file.starts_with("/proc/") {
        inside.unseen = Some("it sources something that is only known at run time");
    }
}

fn entered(seen: &Seen<'_>) -> Places {
    let target = seen.arguments.iter().find(|word| !word.text.starts_with('-') || word.text == "-");
    match target {
        _ if seen.base == "popd" => Places::unknown(),
        None if seen.base == "pushd" => Places::unknown(),
        None => seen.places.enter(None),
        Some(target) if target.text == "-" || target.text.starts_with('+') || target.is_pattern => {
            Places::unknown()
        }
        Some(target) if target.text.starts_with('~') && !target.is_home => {
            seen.places.enter(Some(&format!("./{}", target.text)))
        }
        Some(target) => seen.places.enter(Some(&target.text)),
    }
}

/// The command behind the options and operands of a wrapper.
fn wrapped(valued: &str, mut operands: usize, seen: &Seen<'_>, inside: &mut Inside) {
    let arguments = seen.arguments;
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            at += 1 + operands;
            break;
        }
        if text.starts_with('-') && (text.len() > 1 || seen.base == "env") {
            at += 1;
            // A letter with a value that comes last has it in the next word.
            at += usize::from(behind_letter(text, valued) == Some(""));
            if seen.base == "env" {
                split_string(text, &arguments[at.saturating_sub(1).min(arguments.len())..], inside);
            }
        } else if is_assignment(text) && has("sudo env doas", seen.base) {
            assigned(text, inside);
            at += 1;
        } else if operands > 0 {
            operands -= 1;
            at += 1;
        } else {
            break;
        }
    }
    let Some(rest) = arguments.get(at..).filter(|rest| !rest.is_empty()) else { return };
    let mut command = rest.to_vec();
    if seen.base == "xargs" {
        if let Some(mark) = replaced(&arguments[..at]) {
            for word in &mut command {
                word.text = word.text.replace(&mark, "\0");
            }
        }
        command.push(Argument::unknown());
    }
    inside.commands.push(command);
    // With an option of a kind that is not known, the command may begin one word later.
    let odd = arguments[..at]
        .iter()
        .any(|word| word.text.starts_with("--") && word.text.len() > 2 && !word.text.contains('='));
    if odd && rest.len() > 1 {
        inside.commands.push(rest[1..].to_vec());
    }
}

/// What `xargs` replaces by what comes in.
fn replaced(options: &[Argument]) -> Option<String> {
    let is_given = |mark: &&str| !mark.is_empty();
    for (option, next) in with_next(options) {
        let mark = if let Some(mark) = option.strip_prefix("--replace") {
            mark.strip_prefix('=').filter(is_given).or(Some("{}"))
        } else if let Some(mark) = behind_letter(option, "I") {
            if mark.is_empty() { next.filter(is_given) } else { Some(mark) }
        } else if let Some(mark) = behind_letter(option, "i") {
            Some(mark).filter(is_given).or(Some("{}"))
        } else {
            continue;
        };
        return mark.map(str::to_owned);
    }
    None
}

fn is_assignment(text: &str) -> bool {
    let name = text.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(is_name_char)
}

/// The words of a builtin without the dashes that end its options.
fn without_dashes(arguments: &[Argument]) -> &[Argument] {
    match arguments {
        [dashes, rest @ ..] if dashes.text == "--" => rest,
        _ => arguments,
    }
}

/// Whether a program that is told no command, or a shell, runs what comes in.
fn may_run_input(base: &str, arguments: &[Argument]) -> bool {
    let (valued, operands) = match base {
        "ssh" => ("BbcDEeFIiJLlmOopQRSWw", 1),
        "parallel" => ("ajNnPSILMsdCTE", 0),
        "su" | "runuser" => ("gGswT", 1),
        _ => return false,
    };
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let mut others = Vec::new();
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
        let is_valued = letters.is_some_and(|letters| letters.len() == 1 && valued.contains(letters));
        if is_valued {
            words.next();
        } else if letters.is_none() || others.len() > operands {
            others.push(word);
        }
    }
    let says_command = |word: &&str| base != "parallel" && has("-c -N --command", word);
    let command = others.get(operands..).unwrap_or_default();
    let is_shell = |word: &&str| has(SHELLS, word.rsplit('/').next().unwrap_or_default());
    let is_told = command.first().is_some_and(|word| !word.starts_with(':'));
    let says = arguments.iter().any(|word| says_command(&word.text.as_str()));
    !says && (!is_told || (base != "parallel" && command.iter().any(is_shell)))
}

/// What a program makes of all its words, or of the value of `-c`.
fn remote(base: &str, arguments: &[Argument]) -> String {
    if matches!(base, "su" | "runuser" | "script") {
        let is_script =
            |word: &Argument| letter_group(&word.text).is_some_and(|letters| letters.ends_with('c'));
        let at = arguments.iter().position(is_script);
        return at.and_then(|at| arguments.get(at + 1)).map(|word| word.text.clone()).unwrap_or_default();
    }
    let is_option = |word: &&Argument| word.text.starts_with('-');
    let options = arguments.iter().take_while(is_option).count();
    let skip = if base == "ssh" { options + 1 } else { options };
    joined(arguments.get(skip..).unwrap_or_default())
}
