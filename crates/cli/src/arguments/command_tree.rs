//! Every command and flag in one tree, and what is made of it: `windlass completions` and `windlass man`.
//!
//! The tree is built from the definitions that `--help` shows, and only when somebody asks for it.

use std::ffi::OsString;
use std::io;

use anyhow::{Context as _, anyhow};
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, CommandFactory, Parser};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::arguments::{Arguments, Request};
use crate::arguments::{help, usage};
use crate::commands::{config, doctor, permissions, replay, sandbox, sessions, trace, trust};
use crate::display;

/// Print completions for a shell
#[derive(Debug, Parser)]
#[command(name = "windlass completions", args_override_self = true)]
#[command(after_help = "\
Examples:
  windlass completions bash > ~/.local/share/bash-completion/completions/windlass
  windlass completions zsh > ~/.zfunc/_windlass    # in a directory of $fpath
  windlass completions fish > ~/.config/fish/completions/windlass.fish")]
struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page of windlass or of one of its commands
#[derive(Debug, Parser)]
#[command(name = "windlass man", args_override_self = true)]
#[command(after_help = "\
Examples:
  windlass man | man -l -
  windlass man config show | man -l -
  windlass man > ~/.local/share/man/man1/windlass.1")]
struct Manual {
    /// A command, such as config show
    command: Vec<String>,
}

/// Makes a definition.
type Define = fn() -> Command;

/// Commands whose flags are defined with the parser, by name.
const DEFINED: [(&str, Define); 10] = [
    ("completions", Completions::command),
    ("config", config::command),
    ("doctor", doctor::command),
    ("man", Manual::command),
    ("permissions", permissions::command),
    ("replay", replay::command),
    ("sandbox", sandbox::command),
    ("sessions", sessions::command),
    ("trace", trace::command),
    ("trust", trust::command),
];

/// What can be said behind a command, or a command within one, under its full name.
pub(crate) fn definition(path: &[&str]) -> Option<Command> {
    let (name, inner) = path.split_first()?;
    let (_, define) = DEFINED.iter().find(|(known, _)| known == name)?;
    let mut command = define();
    command.build();
    inner.iter().try_fold(command, |command, name| command.find_subcommand(name).cloned())
}

/// The whole command line.
pub(crate) fn whole() -> Command {
    let demo = Command::new("demo").about("Fix a small sample project under a scripted model; needs no key");
    let topic = Arg::new("topic").value_parser(help::topics()).help("What about");
    let help = Command::new("help").about("Show help about flags, a command or the environment").arg(topic);
    // The page lists the commands by itself.
    let (_, after_commands) = help::AFTER_FLAGS.split_once("\n\n").unwrap_or_default();
    let whole = Arguments::command().after_help(after_commands).disable_help_subcommand(true);
    let whole = with_values(whole).subcommand(demo).subcommand(help);
    DEFINED.iter().fold(whole, |whole, (name, define)| whole.subcommand(with_values(define().name(*name))))
}

/// The same command, with the words that the help of a flag lists as the values to complete. (Lines are parsed without
/// them: the errors of the settings say more.)
fn with_values(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let takes_word =
            arg.get_value_names().is_some_and(|names| matches!(&*names[0], "MODE" | "LEVEL" | "FORM"));
        match help.split_once(": ") {
            Some((_, words)) if takes_word => {
                let words = words.split(|c: char| !c.is_alphanumeric());
                let words = words.filter(|word| !word.is_empty() && *word != "or");
                // The parser keeps only texts that live as long as the process, which ends after printing them.
                let words: Vec<&'static str> = words.map(|word| &*word.to_owned().leak()).collect();
                arg.value_parser(PossibleValuesParser::new(words))
            }
            _ => arg,
        }
    });
    command.mut_subcommands(with_values)
}

/// Reads what stands behind `windlass completions`. Each error is for the user.
pub(crate) fn parse_completions(rest: &[OsString]) -> anyhow::Result<Request> {
    read(rest, |Completions { shell }| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut whole(), "windlass", &mut script);
        Request::Show(String::from_utf8_lossy(&script).into_owned())
    })
}

/// Reads what stands behind `windlass man`. Each error is for the user.
pub(crate) fn parse_man(rest: &[OsString]) -> anyhow::Result<Request> {
    read(rest, |Manual { command }| Request::Manual(command))
}

/// The manual page of the command with these names.
pub(crate) fn manual(path: &[String]) -> anyhow::Result<String> {
    let mut tree = whole();
    tree.build();
    let mut command = &tree;
    for name in path {
        command = command.find_subcommand(name).with_context(|| {
            let path = display::line(&path.join(" "));
            format!("There is no command `windlass {path}`. `windlass help` lists the commands.")
        })?;
    }
    let page = page(command).map_err(|error| anyhow!("Cannot make the manual page: {error}."))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// The manual page of a command. Each paragraph behind the flags becomes a section.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let name = command.get_bin_name().unwrap_or("windlass").replace(' ', "-");
    let manual = Man::new(command.clone()).title(name).manual("Windlass");
    let mut page = Vec::new();
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    manual.render_description_section(&mut page)?;
    manual.render_options_section(&mut page)?;
    if command.has_subcommands() {
        manual.render_subcommands_section(&mut page)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut sections = Roff::new();
    for paragraph in after.split("\n\n") {
        add_section(&mut sections, paragraph);
    }
    sections.to_writer(&mut page)?;
    Ok(page)
}

/// Adds a paragraph of help: its title, then tables, examples and sentences.
fn add_section(sections: &mut Roff, paragraph: &str) {
    let (title, lines) = paragraph.split_once(":\n").unwrap_or(("", paragraph));
    if !title.is_empty() {
        sections.control("SH", [title.to_uppercase().as_str()]);
    }
    for line in lines.lines().map(str::trim) {
        match line.split_once("  ") {
            Some((term, about)) if !line.starts_with("windlass ") => {
                sections.control("TP", []).text([bold(term)]).text([roman(about.trim())])
            }
            _ => sections.control("PP", []).text([roman(line)]),
        };
    }
}

/// What is asked for behind the name of a command: what its words mean, or its help. Each error is for the user.
pub(crate) fn read<T: Parser>(
    rest: &[OsString],
    meant: impl FnOnce(T) -> Request,
) -> anyhow::Result<Request> {
    let command = T::command();
    let line = std::iter::once(OsString::from(command.get_name())).chain(rest.iter().cloned());
    match T::try_parse_from(line) {
        Ok(read) => Ok(meant(read)),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            Ok(Request::Show(help::page(&error.render().to_string())))
        }
        Err(error) => Err(anyhow!(usage::of_command(&error, &command, rest))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::COMMANDS;

    #[test]
    fn the_tree_has_every_command() {
        let tree = whole();
        let mut names: Vec<&str> = tree.get_subcommands().map(Command::get_name).collect();
        names.sort_unstable();
        assert_eq!(names, COMMANDS);
        tree.debug_assert();
    }
}
