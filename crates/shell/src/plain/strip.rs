//! What rules look through: harmless assignments, and wrappers that only run what follows them.

use super::word::RawWord;
use crate::Word;

/// What was found in front of the command that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stripped {
    /// The number of words in front.
    pub(crate) skip: usize,
    /// The command runs in the shell itself, so that builtins work.
    pub(crate) in_shell: bool,
    /// There is an `xargs`, so that more arguments come from the input.
    pub(crate) gets_more: bool,
}

/// Variables that change at most how output looks, or what a program under test thinks of its surroundings. None of them names a
/// program, a file or a host, with the values that [`is_harmless_assignment`] lets through.
const HARMLESS: &[&str] = &[
    "ANSICON",
    "APP_ENV",
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DEBUG",
    "DJANGO_ENV",
    "FLASK_ENV",
    "FORCE_COLOR",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "GOARCH",
    "GOOS",
    "HUSKY",
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "LOG_LEVEL",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "RACK_ENV",
    "RAILS_ENV",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "TERM",
    "TZ",
];

/// Whether an assignment in front of a command changes nothing about what runs.
pub(super) fn is_harmless_assignment(name: &str, value: &RawWord) -> bool {
    let text = value.text();
    // Nothing is shown page by page if the pager only prints.
    if matches!(name, "GIT_PAGER" | "PAGER" | "MANPAGER") {
        return text == "cat" || text.is_empty();
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,:@+-=".contains(&byte);
    let is_zone = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
    match name {
        "TZ" => text.bytes().all(is_zone) && !text.starts_with('/'),
        _ => HARMLESS.contains(&name) && text.bytes().all(is_plain),
    }
}

/// How many words in front of a command only run it.
pub(super) fn wrappers(words: &[Word]) -> Stripped {
    let mut stripped = Stripped { skip: 0, in_shell: true, gets_more: false };
    while let Some((name, rest)) = words[stripped.skip..].split_first() {
        let is_literal = |count: usize| rest[..count].iter().all(is_literal);
        let Some(count) = wrapper(&name.text, rest).filter(|count| *count < rest.len() && is_literal(*count))
        else {
            break;
        };
        let next = &rest[count];
        // What is run must be as plain as any other name.
        if !is_literal_name(next) {
            break;
        }
        stripped.skip += count + 1;
        stripped.in_shell &= matches!(name.text.as_str(), "command" | "builtin");
        stripped.gets_more |= name.text == "xargs";
    }
    stripped
}

fn is_literal(word: &Word) -> bool {
    !word.is_unknown && !word.is_pattern && !word.is_split
}

fn is_literal_name(word: &Word) -> bool {
    is_literal(word) && !word.text.is_empty() && !word.text.starts_with('-')
}

/// The number of words between the name of a wrapper and the command it runs; nothing if it is no wrapper, or used in a way that
/// is not known.
fn wrapper(name: &str, arguments: &[Word]) -> Option<usize> {
    match name {
        "nohup" | "command" | "builtin" | "xargs" | "time" => Some(0),
        "timeout" => {
            let options = options(
                arguments,
                "ks",
                "v",
                &["kill-after", "signal"],
                &["foreground", "preserve-status", "verbose"],
            )?;
            let duration = arguments.get(options)?.text.as_str();
            is_duration(duration).then_some(options + 1)
        }
        "nice" => match arguments.first()?.text.as_str() {
            "-n" => is_number(&arguments.get(1)?.text).then_some(2),
            option if option.starts_with('-') => {
                let number = option.strip_prefix("--adjustment=").or_else(|| option.strip_prefix("-n"));
                is_number(number.unwrap_or(&option[1..])).then_some(1)
            }
            _ => Some(0),
        },
        "stdbuf" => options(arguments, "ioe", "", &["input", "output", "error"], &[]),
        _ => None,
    }
}

/// The number of words that are options; nothing if one of them is not known.
fn options(
    arguments: &[Word],
    valued: &str,
    flags: &str,
    long_valued: &[&str],
    long: &[&str],
) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        at += 1;
        if let Some(name) = word.text.strip_prefix("--") {
            match name.split_once('=') {
                Some((name, _)) if long_valued.contains(&name) => {}
                None if long_valued.contains(&name) => at += 1,
                None if long.contains(&name) => {}
                _ => return None,
            }
            continue;
        }
        let letter = word.text[1..].chars().next()?;
        if valued.contains(letter) {
            at += usize::from(word.text.len() == 2);
        } else if !(word.text.len() == 2 && flags.contains(letter)) {
            return None;
        }
    }
    Some(at)
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
