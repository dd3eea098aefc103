//! What rules look through: harmless assignments, and wrappers that only run what follows them.

use crate::effect::{OptionValue, letter_value, long_value};
use crate::names::{has_name, is_digits, is_name_char, name_and_value};
use crate::{NameEnd, Word};

/// What was found in front of the command that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stripped {
    /// The number of words in front.
    pub(crate) skip: usize,
    /// The command runs in the shell itself, so that builtins work.
    pub(crate) in_shell: bool,
    /// There is an `xargs`, so that more arguments come from the input.
    pub(crate) gets_more: bool,
    /// Where each of them ends.
    pub(crate) end: NameEnd,
}

/// Variables that, with values that [`is_harmless_setting`] lets through, name no program, no file and no host.
const HARMLESS: &str = "ANSICON APP_ENV CARGO_BUILD_JOBS CARGO_INCREMENTAL CARGO_TERM_COLOR CGO_ENABLED CI CLICOLOR \
    CLICOLOR_FORCE COLORTERM COLUMNS CUDA_VISIBLE_DEVICES DEBUG DJANGO_ENV DO_NOT_TRACK FLASK_ENV FORCE_COLOR \
    GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT GO111MODULE GOARCH GOOS HEADLESS HUSKY LINES LOG_LEVEL \
    NEXT_TELEMETRY_DISABLED NODE_ENV NO_COLOR OMP_NUM_THREADS PORT PYTHONDONTWRITEBYTECODE PYTHONHASHSEED \
    PYTHONUNBUFFERED PYTHONUTF8 RACK_ENV RAILS_ENV RUST_BACKTRACE RUST_LIB_BACKTRACE RUST_LOG RUST_MIN_STACK \
    RUST_TEST_THREADS TERM TZ VERBOSE";

/// Whether a variable in front of a command changes nothing about what runs.
pub(crate) fn is_harmless_setting(name: &str, text: &str) -> bool {
    // Nothing is shown page by page if the pager only prints.
    if matches!(name, "GIT_PAGER" | "PAGER" | "MANPAGER") {
        return text == "cat" || text.is_empty();
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.,:@+-=".contains(&byte);
    let is_zone = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
    match name {
        name if is_locale(name) => is_plain_locale(name, text),
        "TZ" => text.bytes().all(is_zone) && !text.starts_with('/'),
        // It says which parts of a program talk: `app:*,-app:noise`.
        "DEBUG" => text.bytes().all(|byte| is_plain(byte) || byte == b'*'),
        _ => has_name(HARMLESS, name) && text.bytes().all(is_plain),
    }
}

/// Whether a variable says in which encoding programs, bash included, read text.
pub(crate) fn is_locale(name: &str) -> bool {
    name == "LANG" || name.starts_with("LC_")
}

/// Whether a line means in a locale what it means here: in others, such as those of GBK, a backslash can be the end of a character.
pub(crate) fn is_plain_locale(name: &str, value: &str) -> bool {
    let (language, encoding) = value.split_once('.').unwrap_or((value, ""));
    let is_name = language.chars().all(is_name_char);
    // An empty `LANG` is the locale C; any other variable that is empty leaves the choice to `LANG`.
    let is_usual = matches!(value, "C" | "POSIX") || (name == "LANG" && value.is_empty());
    is_usual || (is_name && matches!(encoding, "UTF-8" | "utf-8" | "UTF8" | "utf8"))
}

/// How many words in front of a command only run it.
pub(super) fn wrappers(words: &[Word]) -> Stripped {
    let mut stripped = Stripped { skip: 0, in_shell: true, gets_more: false, end: NameEnd::Blank };
    while let Some((name, rest)) = words[stripped.skip..].split_first() {
        let Some(front) = wrapper(&name.text, rest).and_then(|count| rest.get(..=count)) else { break };
        // What is run must be as plain as any other name.
        let is_name = |next: &Word| !next.text.is_empty() && !next.text.starts_with('-');
        if !front.last().is_some_and(is_name) || !front.iter().all(is_literal) {
            break;
        }
        stripped.skip += front.len();
        stripped.in_shell &= matches!(name.text.as_str(), "command" | "builtin");
        stripped.gets_more |= name.text == "xargs";
    }
    stripped
}

fn is_literal(word: &Word) -> bool {
    !word.is_unknown() && !word.is_pattern && !word.is_split
}

/// The wrappers that rules look through.
pub(crate) const WRAPPERS: &str = "nohup command builtin xargs time timeout nice env stdbuf";

/// The number of words between a wrapper's name and the command it runs; nothing if that is not known.
fn wrapper(name: &str, arguments: &[Word]) -> Option<usize> {
    match name {
        "nohup" | "command" | "builtin" | "xargs" | "time" => Some(0),
        "timeout" => {
            let long = "foreground preserve-status verbose kill-after: signal:";
            let options = options(arguments, "vk:s:", long)?;
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
        "env" => {
            let count = arguments.iter().take_while(|word| sets_harmless(word)).count();
            let is_command = !arguments.get(count)?.text.contains('=');
            (count > 0 && is_command).then_some(count)
        }
        "stdbuf" => options(arguments, "i:o:e:", "input: output: error:"),
        _ => None,
    }
}

/// Whether a word of `env` sets a variable and changes nothing about what runs.
fn sets_harmless(word: &Word) -> bool {
    let setting = word.text.split_once('=').filter(|_| is_literal(word) && !word.is_home);
    setting.is_some_and(|(name, value)| is_harmless_setting(name, value))
}

/// The number of words that are options, with colons as in `effect`; nothing if one of them is not known.
fn options(arguments: &[Word], letters: &str, long: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        at += 1;
        let (value, has_value) = if let Some(option) = word.text.strip_prefix("--") {
            let (name, given) = name_and_value(option);
            (long_value(long, name)?, given.is_some())
        } else {
            (letter_value(letters, word.text[1..].chars().next()?)?, word.text.len() > 2)
        };
        match value {
            OptionValue::None if has_value => return None,
            OptionValue::Needed if !has_value => at += 1,
            _ => {}
        }
    }
    Some(at)
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_number(text: &str) -> bool {
    is_digits(text.strip_prefix(['-', '+']).unwrap_or(text))
}
