//! What is wrong with a command line, in one line each.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use windlass_text::nearest::closest;

use crate::arguments::command_tree;
use crate::arguments::{Arguments, COMMANDS};
use crate::display;

/// Flags that users of the reference know and that are not there yet.
const FLAGS_NOT_YET: &str = "\
    --advisor --agent --agents --allow-dangerously-skip-permissions --append-subagent-system-prompt \
    --append-subagent-system-prompt-file --background --bare --betas --bg --brief --channels --chrome \
    --debug --debug-file --disable-slash-commands --exclude-dynamic-system-prompt-sections --file \
    --forward-subagent-text --from-pr --ide --init --init-only --maintenance --mcp-config --no-chrome \
    --permission-prompt-tool --permission-prompts --plugin-dir --plugin-url --restricted --safe-mode \
    --strict-mcp-config --system-prompt-snapshot --tmux --tools --worktree -d -w";

/// Commands that users of the reference know and that are not there yet.
const COMMANDS_NOT_YET: [&str; 11] =
    ["agents", "attach", "auth", "import", "install", "logs", "mcp", "plugin", "purge", "update", "upgrade"];

/// What to say about a first word that is a command elsewhere, or nearly one of ours.
pub(crate) fn not_a_command(word: &str, rest: &[OsString]) -> Option<String> {
    if COMMANDS_NOT_YET.contains(&word) {
        return Some(format!(
            "`windlass {word}` is not supported yet. For a prompt of your own: `windlass -p \"your prompt\"`."
        ));
    }
    closest(word, &COMMANDS).map(|command| misspelt(word, command, rest))
}

/// Corrects a slip in a command and in one within it; words behind stay if their flags are the command's.
pub(crate) fn misspelt(word: &str, command: &str, rest: &[OsString]) -> String {
    let given: Vec<String> = rest.iter().map(|word| display::line(&word.to_string_lossy())).collect();
    let mut meant = vec!["windlass", command];
    let tree = command_tree::command_tree();
    let mut found = tree.find_subcommand(command);
    let mut rest: Vec<&str> = given.iter().map(String::as_str).collect();
    let names: Vec<&str> =
        found.into_iter().flat_map(clap::Command::get_subcommands).map(clap::Command::get_name).collect();
    if let Some(inner) = rest.first().and_then(|first| closest(first, &names)) {
        meant.push(inner);
        rest.remove(0);
        found = found.and_then(|found| found.find_subcommand(inner));
    }
    if rest.iter().filter(|word| word.starts_with('-')).all(|flag| found.is_some_and(|of| has_flag(of, flag)))
    {
        meant.extend(rest);
    }
    let prompt: Vec<&str> = std::iter::once(word).chain(given.iter().map(String::as_str)).collect();
    let (word, prompt) = (display::line(word), display::quote(&display::line(&prompt.join(" "))));
    format!(
        "Unknown command `{word}`. Did you mean `{}`? To send it as a prompt: `windlass -p -- {prompt}`.",
        meant.join(" ")
    )
}

fn has_flag(command: &clap::Command, flag: &str) -> bool {
    let name = flag.split('=').next().unwrap_or_default();
    let is_it = |argument: &clap::Arg| {
        argument.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
            || argument.get_short().is_some_and(|short| name.strip_prefix('-') == Some(&*short.to_string()))
    };
    ["-h", "--help"].contains(&name) || command.get_arguments().any(is_it)
}

/// Explains an error behind one of our commands; names the help page of the innermost command it reached.
pub(crate) fn explain_in_command(error: &clap::Error, command: &clap::Command, rest: &[OsString]) -> String {
    let inner = rest.first().and_then(|word| command.find_subcommand(word));
    let name = full_name(command);
    let page = inner.map_or_else(|| name.to_owned(), |inner| format!("{name} {}", inner.get_name()));
    let named = |kind| error.get(kind).map(|value| display::line(&words(value))).unwrap_or_default();
    let what = match error.kind() {
        ErrorKind::UnknownArgument => format!("Unexpected argument {}.", named(ContextKind::InvalidArg)),
        ErrorKind::InvalidSubcommand => {
            return unknown_subcommand(command, &named(ContextKind::InvalidSubcommand));
        }
        ErrorKind::MissingRequiredArgument => format!("Missing argument {}.", named(ContextKind::InvalidArg)),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return missing_subcommand(command);
        }
        _ => explain(error),
    };
    format!("{what} `{page} --help` shows what there is.")
}

/// With the name of the program.
fn full_name(command: &clap::Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

fn unknown_subcommand(command: &clap::Command, word: &str) -> String {
    let (name, inner): (_, Vec<&str>) =
        (full_name(command), command.get_subcommands().map(clap::Command::get_name).collect());
    let next = match closest(word, &inner) {
        Some(meant) => format!("Did you mean `{name} {meant}`?"),
        None => format!("`{name} --help` shows what there is."),
    };
    format!("Unknown command `{name} {word}`. {next}")
}

/// Names the first command within the command that needs nothing else.
fn missing_subcommand(command: &clap::Command) -> String {
    let needs_nothing = |inner: &&clap::Command| !inner.get_arguments().any(clap::Arg::is_required_set);
    let first = command.get_subcommands().find(needs_nothing).or_else(|| command.get_subcommands().next());
    let first = first.map(clap::Command::get_name).unwrap_or_default();
    format!("Missing subcommand; try `{} {first}`.", full_name(command))
}

/// What to say about a line that the parser refuses.
pub(crate) fn explain(error: &clap::Error) -> String {
    let get = |kind| error.get(kind).map(words).unwrap_or_default();
    // The parser names a flag together with its value.
    let flag = get(ContextKind::InvalidArg).split(' ').next().unwrap_or_default().to_owned();
    let value = display::line(&get(ContextKind::InvalidValue));
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(&display::line(&get(ContextKind::InvalidArg))),
        ErrorKind::InvalidValue if value.is_empty() => format!("{flag} needs a value."),
        ErrorKind::InvalidValue => {
            format!("{flag} {value} is not understood: use one of {}.", get(ContextKind::ValidValue))
        }
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            format!("{flag} {value} is not understood: {reason}.")
        }
        ErrorKind::ArgumentConflict => {
            let prior = get(ContextKind::PriorArg);
            let prior = prior.split(' ').next().unwrap_or_default();
            format!("{flag} cannot be used with {prior}. Give only one of the two.")
        }
        ErrorKind::InvalidUtf8 => "An argument is not UTF-8 text.".into(),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("{}.", first.trim_start_matches("error: "))
        }
    }
}

fn words(value: &ContextValue) -> String {
    match value {
        ContextValue::String(text) => text.clone(),
        ContextValue::Strings(texts) => texts.join(", "),
        other => other.to_string(),
    }
}

fn unknown(argument: &str) -> String {
    let flag = argument.split('=').next().unwrap_or_default();
    if !flag.starts_with('-') {
        return format!(
            "Unexpected argument {argument:?}. Quote a prompt of several words: `windlass -p \"your prompt\"`."
        );
    }
    if is_not_yet(flag) {
        return format!("{flag} is not supported yet. `windlass --help` lists the flags that are.");
    }
    let command = Arguments::command();
    let known: Vec<String> =
        command.get_arguments().filter_map(|known| Some(format!("--{}", known.get_long()?))).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match closest(flag, &known) {
        Some(meant) if flag.starts_with("--") => format!("Unknown flag {flag}. Did you mean {meant}?"),
        _ => format!(
            "Unknown flag {flag}. `windlass --help` lists the flags. Put a prompt that begins with a dash after --."
        ),
    }
}

fn is_not_yet(flag: &str) -> bool {
    FLAGS_NOT_YET.split_whitespace().any(|known| known == flag)
}

/// What to say when there is no prompt, because a flag with a list took it.
pub(crate) fn swallowed_prompt_notice(flag: &str, word: &str) -> String {
    let word = display::line(word);
    format!(
        "{flag} takes every word that follows it, and took {word:?} too. If that is the prompt, put it first: \
         `windlass -p {word:?} {flag} ...`."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_said_to_be_missing() {
        let command = Arguments::command();
        for argument in command.get_arguments() {
            let long = argument.get_long().map(|name| format!("--{name}"));
            let short = argument.get_short().map(|name| format!("-{name}"));
            for name in long.into_iter().chain(short) {
                assert!(!is_not_yet(&name), "{name}");
            }
        }
        assert!(COMMANDS.iter().all(|command| !COMMANDS_NOT_YET.contains(command)));
    }
}
