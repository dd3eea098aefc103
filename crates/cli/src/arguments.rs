//! The command line: what can be said and what it means.

pub(crate) mod command_tree;
pub(crate) mod help;
pub(crate) mod session_flags;
pub(crate) mod usage;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{anyhow, bail, ensure};
use clap::error::ErrorKind;
use clap::{ArgAction, Args, Parser, ValueEnum};
use clap_complete::Shell;
use windlass::Options;
use windlass::config::{Flags, PromptText};
use windlass::engine::RunSource;
use windlass::wiring::Audience;
use windlass_text::nearest::closest;

use crate::arguments::session_flags::SessionFlags;
use crate::commands::config::ConfigCommand;
use crate::commands::doctor::DoctorArguments;
use crate::commands::permissions::PermissionsCommand;
use crate::commands::replay::ReplayArguments;
use crate::commands::rewind::RewindArguments;
use crate::commands::sandbox::SandboxCommand;
use crate::commands::sessions::SessionsArguments;
use crate::commands::trace::TraceArguments;
use crate::commands::trust::TrustArguments;
use crate::display;

/// The commands beside the prompt.
#[rustfmt::skip]
pub(crate) const COMMANDS: [&str; 12] = [
    "completions", "config", "demo", "doctor", "help", "man", "permissions", "replay",
    "sandbox", "sessions", "trace", "trust",
];

/// What the command line asks for.
#[derive(Parser)]
#[command(name = "windlass", disable_help_subcommand = true, args_override_self = true)]
pub(crate) enum Request {
    /// Run one prompt without a UI.
    #[command(skip)]
    Print(Box<Arguments>),
    /// Bring files back.
    #[command(skip)]
    Rewind(RewindArguments),
    /// Show a scripted session.
    #[command(skip)]
    Demo,
    /// Print a text that was asked for.
    #[command(skip)]
    Show(String),
    /// Print completions for a shell
    #[command(after_help = "\
Examples:
  windlass completions bash > ~/.local/share/bash-completion/completions/windlass
  windlass completions zsh > ~/.zfunc/_windlass    # in a directory of $fpath
  windlass completions fish > ~/.config/fish/completions/windlass.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
    #[command(subcommand)]
    Config(ConfigCommand),
    Doctor(DoctorArguments),
    /// Print the manual page of windlass or of one of its commands
    #[command(after_help = "\
Examples:
  windlass man | man -l -
  windlass man config show | man -l -
  windlass man > ~/.local/share/man/man1/windlass.1")]
    Man {
        /// A command, such as config show
        command: Vec<String>,
    },
    #[command(subcommand)]
    Permissions(Box<PermissionsCommand>),
    Replay(ReplayArguments),
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    Sessions(SessionsArguments),
    Trace(TraceArguments),
    Trust(TrustArguments),
}

/// An agent that works on your files: one prompt, real tools, one answer.
#[derive(Debug, Parser)]
#[command(name = "windlass", after_help = help::AFTER_FLAGS, disable_version_flag = true, args_override_self = true)]
#[command(version = env!("CARGO_PKG_VERSION"))]
pub(crate) struct Arguments {
    /// The prompt; windlass adds text on standard input to it
    prompt: Option<String>,
    /// Run the prompt, print the answer and exit
    #[arg(short = 'p', long)]
    pub(crate) print: bool,
    /// Output format: the final text, one JSON result, or one JSON message per line
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) output_format: Format,
    /// Input format: text, or one JSON message per line on standard input (needs --output-format stream-json)
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) input_format: InputFormat,
    /// With --input-format stream-json: repeat each prompt on standard output when it is accepted
    #[arg(long)]
    pub(crate) replay_user_messages: bool,
    /// Show progress on standard error. Always on for text at a terminal; needed with json; required with stream-json, where progress is on standard output
    #[arg(long)]
    pub(crate) verbose: bool,
    /// With stream-json: also print partial messages as they arrive
    #[arg(long)]
    pub(crate) include_partial_messages: bool,
    /// With stream-json: also print when each hook starts, its output and how it ends (always printed for hooks at the start of a session)
    #[arg(long)]
    pub(crate) include_hook_events: bool,
    /// Suggest the next prompt after a run, at a terminal or with --input-format stream-json
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) prompt_suggestions: Option<bool>,
    /// The model: an id, or opus, sonnet, haiku or fable
    #[arg(long)]
    model: Option<String>,
    /// Models to use, in this order, when the model is overloaded or unreachable; separated by commas
    #[arg(long, value_name = "MODELS")]
    fallback_model: Option<String>,
    /// Effort level of the model: low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL")]
    effort: Option<String>,
    /// Thinking mode: adaptive, enabled or disabled
    #[arg(long, value_name = "MODE")]
    thinking: Option<String>,
    /// Limit on thinking tokens; 0 turns thinking off
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_thinking_tokens: Option<String>,
    /// How to show thinking: summarized or omitted
    #[arg(long, value_name = "FORM")]
    thinking_display: Option<String>,
    /// JSON schema that the final answer must match; the json result also holds the value itself
    #[arg(long, value_name = "SCHEMA")]
    json_schema: Option<String>,
    /// Stop when this command has spent this much, in USD
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    max_budget_usd: Option<String>,
    /// Token budget of the whole run, which the model is told; at least 20000
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    task_budget: Option<String>,
    /// Compact as if the context window had this many tokens, such as 500k; auto uses the model's window
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true)]
    autocompact: Option<String>,
    /// Stop after this many turns
    #[arg(long, value_name = "N", value_parser = from_one::<u32>, allow_negative_numbers = true)]
    max_turns: Option<u32>,
    /// What runs without asking: default (or manual), acceptEdits, plan, dontAsk, auto or bypassPermissions
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,
    /// The same as --permission-mode bypassPermissions
    #[arg(long)]
    dangerously_skip_permissions: bool,
    #[command(flatten)]
    settings: SettingsArguments,
    /// Tools or rules that need no approval, such as Read or 'Bash(npm test *)'; takes all following words
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "TOOLS", num_args = 1..)]
    allowed_tools: Vec<String>,
    /// Tools to remove, or rules for calls to deny; takes all following words
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "TOOLS", num_args = 1..)]
    disallowed_tools: Vec<String>,
    /// Replace the system prompt; empty means none
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system_prompt: Option<String>,
    /// Replace the system prompt with the text of a file
    #[arg(long, value_name = "PATH", conflicts_with = "system_prompt")]
    system_prompt_file: Option<PathBuf>,
    /// Append to the system prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    append_system_prompt: Option<String>,
    /// Append the text of a file to the system prompt
    #[arg(long, value_name = "PATH", conflicts_with = "append_system_prompt")]
    append_system_prompt_file: Option<PathBuf>,
    /// Additional working directories; takes all following words
    #[arg(long, value_name = "DIRS", num_args = 1..)]
    add_dir: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) session: SessionFlags,
    /// Print the version
    #[arg(short = 'v', visible_short_alias = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// Which settings are read.
#[derive(Debug, Args)]
pub(crate) struct SettingsArguments {
    /// Settings for this run: a file or a JSON object; can be repeated
    #[arg(long, value_name = "FILE-OR-JSON")]
    settings: Vec<String>,
    /// Settings and memory files to read beside the administrator's: user, project and local, separated by commas. Naming project trusts it for this run
    #[arg(long, value_name = "SOURCES")]
    setting_sources: Vec<String>,
    /// Trust this project for this run: its hooks, variables and allow rules take effect
    #[arg(long)]
    trust_project: bool,
}

impl SettingsArguments {
    /// The same for the application.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new();
        options.settings.clone_from(&self.settings);
        options.setting_sources.clone_from(&self.setting_sources);
        options.is_project_trusted = self.trust_project;
        options
    }
}

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    StreamJson,
}

/// How prompts come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    Text,
    StreamJson,
}

impl Arguments {
    /// The prompt given as an argument, if it says anything.
    pub(crate) fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref().filter(|text| !text.trim().is_empty())
    }

    /// The flags that shape the run.
    pub(crate) fn flags(&self) -> Flags {
        let either = |text: &Option<String>, file: &Option<PathBuf>| {
            let text = text.clone().map(PromptText::Text);
            text.or_else(|| file.clone().map(PromptText::File))
        };
        Flags {
            model: self.model.clone(),
            turns_max: self.max_turns,
            permission_mode: self.permission_mode.clone(),
            should_skip_permissions: self.dangerously_skip_permissions,
            allowed_tools: self.allowed_tools.clone(),
            disallowed_tools: self.disallowed_tools.clone(),
            system_prompt: either(&self.system_prompt, &self.system_prompt_file),
            append_system_prompt: either(&self.append_system_prompt, &self.append_system_prompt_file),
            add_directories: self.add_dir.clone(),
            fallback_models: self.fallback_model.clone(),
            budget_usd: self.max_budget_usd.clone(),
            task_budget: self.task_budget.clone(),
            effort: self.effort.clone(),
            thinking: self.thinking.clone(),
            thinking_tokens: self.max_thinking_tokens.clone(),
            thinking_display: self.thinking_display.clone(),
            json_schema: self.json_schema.clone(),
            autocompact: self.autocompact.clone(),
        }
    }

    /// What the application is asked for.
    pub(crate) fn options(&self) -> Options {
        let mut options = self.settings.options();
        options.flags = self.flags();
        options.audience = self.audience(self.is_interactive());
        options
    }

    /// Who reads the run.
    pub(crate) fn audience(&self, is_person: bool) -> Audience {
        let streams_text = self.output_format == Format::Text && std::io::stdout().is_terminal();
        Audience {
            source: match self.input_format {
                InputFormat::StreamJson => RunSource::Sdk,
                InputFormat::Text if is_person => RunSource::Repl,
                InputFormat::Text => RunSource::Print,
            },
            has_partial_messages: self.include_partial_messages || streams_text,
            is_host: self.output_format == Format::StreamJson,
            has_prompt_suggestions: self.prompt_suggestions,
        }
    }

    /// Whether a person sits at a terminal and answers.
    pub(crate) fn is_interactive(&self) -> bool {
        !self.print && self.input_format == InputFormat::Text && self.output_format == Format::Text
    }

    /// Which files are to be brought back, if that is what was asked for.
    fn rewind(&self) -> anyhow::Result<Option<RewindArguments>> {
        ensure!(
            self.session.rewind_files.is_some() || !self.session.dry_run,
            "--dry-run needs --rewind-files."
        );
        let Some(to) = &self.session.rewind_files else { return Ok(None) };
        ensure!(self.prompt.is_none(), "--rewind-files restores files and exits. Leave out the prompt.");
        let json = self.output_format != Format::Text;
        RewindArguments::new(self.session.choice()?.source, to, self.session.dry_run, json).map(Some)
    }

    /// What to say about a missing prompt if a list may have taken it.
    pub(crate) fn swallowed_prompt(&self) -> Option<String> {
        if self.prompt().is_some() {
            return None;
        }
        if let Some(no_directory) = self.add_dir.last().filter(|last| !last.exists()) {
            return Some(usage::swallowed_prompt_notice("--add-dir", &no_directory.to_string_lossy()));
        }
        let tools = [("--allowedTools", &self.allowed_tools), ("--disallowedTools", &self.disallowed_tools)];
        tools.into_iter().find_map(|(flag, list)| {
            let last = list.last().filter(|last| list.len() > 1 || last.contains(char::is_whitespace))?;
            Some(usage::swallowed_prompt_notice(flag, last))
        })
    }

    /// Combinations that the parser cannot judge.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let takes_lines = self.input_format == InputFormat::StreamJson;
        if !self.print && !takes_lines {
            self.check_interactive()?;
        }
        let gives_lines = self.output_format == Format::StreamJson;
        let needs_both = "needs --output-format stream-json --verbose.";
        ensure!(gives_lines || !takes_lines, "--input-format stream-json {needs_both}");
        ensure!(
            self.prompt().is_none() || !takes_lines,
            "--input-format stream-json reads prompts from standard input. Leave out the prompt on the command line."
        );
        ensure!(
            self.prompt_suggestions != Some(true) || takes_lines || self.is_interactive(),
            "--prompt-suggestions needs an interactive session or --input-format stream-json: in print mode the result is the end."
        );
        ensure!(
            takes_lines || !self.replay_user_messages,
            "--replay-user-messages needs --input-format stream-json."
        );
        ensure!(self.verbose || !gives_lines, "--output-format stream-json needs --verbose. Add it.");
        ensure!(gives_lines || !self.include_partial_messages, "--include-partial-messages {needs_both}");
        ensure!(gives_lines || !self.include_hook_events, "--include-hook-events {needs_both}");
        Ok(())
    }

    /// An interactive session needs a terminal; a lone word that looks like a command is none of its prompts.
    fn check_interactive(&self) -> anyhow::Result<()> {
        let at_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if self.is_interactive() && at_terminal && self.lone_command().is_none() {
            return Ok(());
        }
        Err(anyhow!(self.not_interactive()))
    }

    /// The prompt and the command it names or is a slip for, if it is a single word.
    fn lone_command(&self) -> Option<(&str, &'static str)> {
        let word = self.prompt().filter(|text| !text.contains(char::is_whitespace))?;
        Some((word, closest(word, &COMMANDS)?))
    }

    /// Whether a person at a terminal wants the answer to a prompt elsewhere, such as in a file.
    fn is_redirected(&self) -> bool {
        self.is_interactive()
            && self.prompt().is_some()
            && self.lone_command().is_none()
            && std::io::stdin().is_terminal()
            && !std::io::stdout().is_terminal()
    }

    fn not_interactive(&self) -> String {
        match self.lone_command() {
            Some((word, command)) if word == command => {
                return format!(
                    "{command} is a command only as the first word: `windlass {command}`. \
                     To send it as a prompt: `windlass -p -- {command}`."
                );
            }
            Some((word, command)) => return usage::misspelt(word, command, &[]),
            None => {}
        }
        "An interactive session needs a terminal, and text as input and output format. Run one prompt with `windlass -p \"your prompt\"`, \
         or try `windlass demo`."
            .into()
    }
}

/// Reads the command line. Each error is for the user.
pub(crate) fn parse(arguments: &[OsString]) -> anyhow::Result<Request> {
    let rest = arguments.get(2..).unwrap_or_default();
    match arguments.get(1).and_then(|first| first.to_str()) {
        Some("demo") => return parse_demo(rest),
        Some("help") => return parse_help(rest),
        Some(word) if COMMANDS.contains(&word) => return command_tree::read(word, rest),
        Some(word) => {
            if let Some(text) = usage::not_a_command(word, rest) {
                bail!(text);
            }
        }
        None => {}
    }
    match Arguments::try_parse_from(arguments) {
        Ok(mut arguments) => {
            arguments.print |= arguments.is_redirected();
            Ok(match arguments.rewind()? {
                Some(wanted) => Request::Rewind(wanted),
                None => Request::Print(Box::new(arguments)),
            })
        }
        Err(error) if error.kind() == ErrorKind::DisplayVersion => {
            Ok(Request::Show(format!("{}\n", crate::VERSION)))
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelp => help::about(&[]).map(Request::Show),
        Err(error) => Err(anyhow!(usage::explain(&error))),
    }
}

fn parse_demo(rest: &[OsString]) -> anyhow::Result<Request> {
    match rest.first() {
        None => Ok(Request::Demo),
        Some(flag) if flag == "--help" || flag == "-h" => help::about(&["demo"]).map(Request::Show),
        Some(other) => Err(anyhow!(
            "windlass demo takes no arguments, but got {}. For a prompt of your own: `windlass -p \"your prompt\"`.",
            display::line(&other.to_string_lossy())
        )),
    }
}

fn parse_help(rest: &[OsString]) -> anyhow::Result<Request> {
    let topic: Vec<_> = rest.iter().map(|word| word.to_string_lossy()).collect();
    help::about(&topic.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map(Request::Show)
}

/// Counts something of which there is one at least.
pub(crate) fn from_one<T: FromStr + PartialOrd + Default>(text: &str) -> Result<T, &'static str> {
    text.parse().ok().filter(|count| *count > T::default()).ok_or("it must be a whole number from 1 on")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &[&str]) -> Arguments {
        match parse(&[&["windlass"], line].concat().iter().map(OsString::from).collect::<Vec<_>>()) {
            Ok(Request::Print(arguments)) => *arguments,
            Ok(Request::Show(text)) => panic!("{text}"),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("another command"),
        }
    }

    #[test]
    fn every_flag_takes_its_value_either_way_and_may_be_empty() {
        let check = |flag: &str, value: &str, read: fn(Flags) -> String| {
            let apart = arguments(&["-p", flag, value]).flags();
            let joined = arguments(&["-p", &format!("{flag}={value}")]).flags();
            assert_eq!(read(apart), value, "{flag} {value}");
            assert_eq!(read(joined), value, "{flag}={value}");
        };
        let text = |prompt: Option<PromptText>| match prompt {
            Some(PromptText::Text(text)) => text,
            Some(PromptText::File(path)) => path.display().to_string(),
            None => "none".into(),
        };
        for value in ["x", "", "two words", "- a list"] {
            check("--system-prompt", value, |flags| match flags.system_prompt {
                Some(PromptText::Text(text)) => text,
                other => format!("{other:?}"),
            });
            check("--append-system-prompt", value, |flags| match flags.append_system_prompt {
                Some(PromptText::Text(text)) => text,
                other => format!("{other:?}"),
            });
        }
        for value in ["Read,Edit", ""] {
            check("--allowedTools", value, |flags| flags.allowed_tools.concat());
            check("--allowed-tools", value, |flags| flags.allowed_tools.concat());
            check("--disallowedTools", value, |flags| flags.disallowed_tools.concat());
            check("--disallowed-tools", value, |flags| flags.disallowed_tools.concat());
            check("--model", value, |flags| flags.model.unwrap_or("none".into()));
            check("--permission-mode", value, |flags| flags.permission_mode.unwrap_or("none".into()));
        }
        for value in ["x", "-1", ""] {
            check("--max-thinking-tokens", value, |flags| flags.thinking_tokens.unwrap_or("none".into()));
            check("--max-budget-usd", value, |flags| flags.budget_usd.unwrap_or("none".into()));
            check("--task-budget", value, |flags| flags.task_budget.unwrap_or("none".into()));
            check("--autocompact", value, |flags| flags.autocompact.unwrap_or("none".into()));
        }
        for value in ["x", "a,b", ""] {
            check("--fallback-model", value, |flags| flags.fallback_models.unwrap_or("none".into()));
            check("--effort", value, |flags| flags.effort.unwrap_or("none".into()));
            check("--thinking", value, |flags| flags.thinking.unwrap_or("none".into()));
            check("--thinking-display", value, |flags| flags.thinking_display.unwrap_or("none".into()));
            check("--json-schema", value, |flags| flags.json_schema.unwrap_or("none".into()));
        }
        check("--max-turns", "3", |flags| flags.turns_max.map_or("none".into(), |n| n.to_string()));
        let file =
            arguments(&["-p", "--system-prompt-file", "a.md", "--append-system-prompt-file=b.md"]).flags();
        assert_eq!([text(file.system_prompt), text(file.append_system_prompt)], ["a.md", "b.md"]);
    }

    #[test]
    fn a_slip_in_a_command_is_no_prompt() {
        let check = |line: &[&str], expected: &str| {
            let line: Vec<OsString> =
                [&["windlass"], line].concat().into_iter().map(OsString::from).collect();
            let seen = parse(&line).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(seen.contains(expected) && seen.is_empty() == expected.is_empty(), "{line:?}: {seen}");
        };
        check(&["session", "list"], "Unknown command `session`. Did you mean `windlass sessions list`?");
        check(
            &["sesions"],
            "Did you mean `windlass sessions`? To send it as a prompt: `windlass -p -- sesions`.",
        );
        check(&["confg", "shwo", "--json"], "Did you mean `windlass config show --json`?");
        check(
            &["config", "shwo"],
            "Unknown command `windlass config shwo`. Did you mean `windlass config show`?",
        );
        check(&["docter"], "Did you mean `windlass doctor`?");
        for prompt in ["hello", "explain", "fix the session", "why?"] {
            check(&[prompt], "");
        }
        check(&["-p", "go", "list"], "Unexpected argument \"list\". Quote a prompt of several words");
        check(&["config"], "Missing subcommand; try `windlass config show`.");
        check(&["permissions"], "Missing subcommand; try `windlass permissions explain`.");
        check(&["sandbox"], "Missing subcommand; try `windlass sandbox status`.");
    }

    #[test]
    fn lists_take_several_tokens_and_may_be_repeated() {
        let given =
            arguments(&["-p", "go", "--allowedTools", "Read", "Edit", "--add-dir", "a", "b", "--add-dir=c"]);
        assert_eq!(given.prompt(), Some("go"));
        assert_eq!(given.flags().allowed_tools, ["Read", "Edit"]);
        assert_eq!(given.flags().add_directories.len(), 3);
    }

    #[test]
    fn combinations_are_checked() {
        let check = |line: &[&str], expected: &str| {
            let seen = arguments(line).check().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(seen.contains(expected) && seen.is_empty() == expected.is_empty(), "{seen}");
        };
        check(&["-p", "go"], "");
        check(&["-p", "go", "--output-format", "stream-json", "--verbose"], "");
        check(&["-p", "go", "--output-format=stream-json"], "needs --verbose");
        check(&["-p", "go", "--include-partial-messages"], "needs --output-format stream-json");
        let both = ["--input-format", "stream-json", "--output-format=stream-json", "--verbose"];
        check(&both, "");
        check(&[&both[..], &["-p", "--replay-user-messages"]].concat(), "");
        check(&[&both[..], &["go"]].concat(), "Leave out the prompt on the command line");
        check(&["-p", "--input-format=stream-json"], "needs --output-format stream-json --verbose");
        check(&["-p", "go", "--replay-user-messages"], "needs --input-format stream-json");
        check(&[], "needs a terminal");
        check(&["fix the test"], "needs a terminal");
        check(&["--verbose", "dmeo"], "Did you mean `windlass demo`?");
        check(&["-p", "dmeo"], "");
        check(&["-p", "--", "sessions"], "");
        check(&["--verbose", "demo"], "demo is a command only as the first word: `windlass demo`.");
    }
}
