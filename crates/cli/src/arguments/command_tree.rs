//! Every command and flag in one tree, built on demand, for `windlass completions` and `windlass man`.

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
use crate::display;

/// What can be said behind a command, or a command within one, under its full name.
pub(crate) fn definition(path: &[&str]) -> Option<Command> {
    let mut tree = Request::command();
    tree.build();
    path.iter().try_fold(tree, |command, name| command.find_subcommand(name).cloned())
}

/// The whole command line.
pub(crate) fn command_tree() -> Command {
    let demo = Command::new("demo").about("Fix a small sample project under a scripted model; needs no key");
    let topic = Arg::new("topic").value_parser(help::topics()).help("What about");
    let help = Command::new("help").about("Show help about flags, a command or the environment").arg(topic);
    // The page lists the commands by itself.
    let (_, after_commands) = help::AFTER_FLAGS.split_once("\n\n").unwrap_or_default();
    let whole = Arguments::command().after_help(after_commands).disable_help_subcommand(true);
    let others = Request::command();
    with_values(whole.subcommand(demo).subcommand(help).subcommands(others.get_subcommands().cloned()))
}

/// Adds the words in the help of a flag as values to complete; for parsing, errors of settings say more.
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

pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_tree(), "windlass", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The manual page of the command with these names.
pub(crate) fn manual(path: &[String]) -> anyhow::Result<String> {
    let mut tree = command_tree();
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
pub(crate) fn read(name: &str, rest: &[OsString]) -> anyhow::Result<Request> {
    let line = ["windlass".into(), name.into()].into_iter().chain(rest.iter().cloned());
    Request::try_parse_from(line).or_else(|error| match definition(&[name]) {
        _ if error.kind() == ErrorKind::DisplayHelp => {
            Ok(Request::Show(help::page(&error.render().to_string())))
        }
        Some(command) => Err(anyhow!(usage::explain_in_command(&error, &command, rest))),
        None => Err(anyhow!(usage::explain(&error))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::COMMANDS;

    #[test]
    fn the_tree_has_every_command() {
        let tree = command_tree();
        let mut names: Vec<&str> = tree.get_subcommands().map(Command::get_name).collect();
        names.sort_unstable();
        assert_eq!(names, COMMANDS);
        tree.debug_assert();
    }
}
