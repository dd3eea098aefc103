//! The command line: what can be said and what it means.

pub(crate) mod command_tree;
pub(crate) mod help;
pub(crate) mod session_flags;
pub(crate) mod usage;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgAction, Parser, ValueEnum};
use windlass::Options;
use windlass::sessions::SessionChoice;
use windlass::settings::SettingsFlags;
use windlass::wiring::Audience;
use windlass_config::{Flags, PromptText};
use windlass_engine::RunSource;
use windlass_text::nearest::closest;

use crate::arguments::session_flags::SessionFlags;
use crate::commands::{config, doctor, permissions, replay, rewind, sandbox, sessions, trace, trust};
use crate::display;
use crate::error::CommandError;

/// The commands beside the prompt.
pub(crate) const COMMANDS: [&str; 12] = [
    "completions",
    "config",
    "demo",
    "doctor",
    "help",
    "man",
    "permissions",
    "replay",
    "sandbox",
    "sessions",
    "trace",
    "trust",
];

/// What the command line asks for.
pub(crate) enum Request {
    /// Run one prompt without a UI.
    Print(Box<Arguments>),
    /// Show a scripted session.
    Demo,
    /// Check whether a run can work here.
    Doctor(doctor::DoctorArguments),
    /// List sessions, or do something else with them.
    Sessions(sessions::Command),
    /// Draw a session.
    Trace(trace::TraceArguments),
    /// Play a session again.
    Replay(replay::ReplayArguments),
    /// Bring files back.
    Rewind(rewind::RewindArguments),
    /// Show settings.
    Config(config::Command),
    /// Try the sandbox.
    Sandbox(sandbox::Command),
    /// Let a project act, or not.
    Trust(trust::Command),
    /// Say what would become of calls.
    Permissions(Box<permissions::Command>),
    /// Print the manual page of the command with these names.
    Manual(Vec<String>),
    /// Print a text that was asked for.
    Show(String),
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
    #[arg(long, value_name = "N", value_parser = turns, allow_negative_numbers = true)]
    max_turns: Option<u32>,

    /// What runs without asking: default (or manual), acceptEdits, plan, dontAsk, auto or bypassPermissions
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,

    /// The same as --permission-mode bypassPermissions
    #[arg(long)]
    dangerously_skip_permissions: bool,

    /// Settings for this run: a file or a JSON object; can be repeated
    #[arg(long, value_name = "FILE-OR-JSON")]
    settings: Vec<String>,

    /// Settings and memory files to read beside the administrator's: user, project and local, separated by commas. Naming project trusts it for this run
    #[arg(long, value_name = "SOURCES")]
    setting_sources: Vec<String>,

    /// Trust this project for this run: its hooks, variables and allow rules take effect
    #[arg(long)]
    trust_project: bool,

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

    /// Continue the latest session of this directory
    #[arg(short = 'c', long = "continue")]
    continue_session: bool,

    /// Continue a session: its id or the beginning of it, its name, or words of its first prompt
    #[arg(short = 'r', long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "")]
    resume: Option<String>,

    /// With --resume or --continue: continue in a copy with a new id
    #[arg(long)]
    fork_session: bool,

    /// With --resume or --continue: continue after the message with this uuid and drop the later ones
    #[arg(long, value_name = "UUID")]
    resume_session_at: Option<String>,

    /// With --resume-session-at: refuse unless exactly the turn of this prompt is dropped
    #[arg(long, value_name = "UUID")]
    resume_drops_turn: Option<String>,

    /// UUID for the new session
    #[arg(long, value_name = "UUID")]
    session_id: Option<String>,

    /// Name for the session, to find it again
    #[arg(short = 'n', long)]
    name: Option<String>,

    /// With --resume or --continue: restore files to their state at this prompt, and exit; undo reverts that; without a value, list the prompts
    #[arg(long, value_name = "UUID", num_args = 0..=1, default_missing_value = "")]
    rewind_files: Option<String>,

    /// With --rewind-files: only show what would change
    #[arg(long)]
    dry_run: bool,

    /// Do not save the session
    #[arg(long)]
    no_session_persistence: bool,

    /// How many bytes of the session's log a copy takes over; not for the command line.
    #[arg(skip)]
    pub(crate) cut: Option<u64>,

    /// Print the version
    #[arg(short = 'v', visible_short_alias = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
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
            skip_permissions: self.dangerously_skip_permissions,
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

    /// What is said about settings.
    pub(crate) fn settings_flags(&self) -> SettingsFlags<'_> {
        SettingsFlags {
            settings: &self.settings,
            sources: &self.setting_sources,
            trust: self.trust_project,
            headless: !self.is_interactive(),
            ..SettingsFlags::default()
        }
    }

    /// What the application is asked for.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new();
        options.flags = self.flags();
        options.settings.clone_from(&self.settings);
        options.setting_sources.clone_from(&self.setting_sources);
        options.trust_project = self.trust_project;
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
            partial_messages: self.include_partial_messages || streams_text,
            reads_lines: self.output_format == Format::StreamJson,
            prompt_suggestions: self.prompt_suggestions,
        }
    }

    /// Whether a person sits at a terminal and answers.
    pub(crate) fn is_interactive(&self) -> bool {
        !self.print && self.input_format == InputFormat::Text && self.output_format == Format::Text
    }

    /// Which session is meant, as it was said.
    pub(crate) fn session_choice(&self) -> Result<SessionChoice, CommandError> {
        let flags = SessionFlags {
            newest: self.continue_session,
            named: self.resume.as_deref(),
            fork: self.fork_session,
            at: self.resume_session_at.as_deref(),
            drops: self.resume_drops_turn.as_deref(),
            id: self.session_id.as_deref(),
            name: self.name.as_deref(),
            cut: self.cut,
            forget: self.no_session_persistence,
        };
        flags.choice()
    }

    /// Which files are to be brought back, if that is what was asked for.
    fn rewind(&self) -> Result<Option<rewind::RewindArguments>, CommandError> {
        if self.dry_run && self.rewind_files.is_none() {
            return Err("--dry-run needs --rewind-files.".into());
        }
        let Some(to) = &self.rewind_files else { return Ok(None) };
        if self.prompt.is_some() {
            return Err("--rewind-files restores files and exits. Leave out the prompt.".into());
        }
        let json = self.output_format != Format::Text;
        rewind::RewindArguments::new(self.session_choice()?.source, to, self.dry_run, json).map(Some)
    }

    /// What to say about a missing prompt if a list may have taken it.
    pub(crate) fn swallowed_prompt(&self) -> Option<String> {
        if self.prompt().is_some() {
            return None;
        }
        if let Some(no_directory) = self.add_dir.last().filter(|last| !last.exists()) {
            return Some(usage::swallowed("--add-dir", &no_directory.to_string_lossy()));
        }
        let tools = [("--allowedTools", &self.allowed_tools), ("--disallowedTools", &self.disallowed_tools)];
        tools.into_iter().find_map(|(flag, list)| {
            let last = list.last().filter(|last| list.len() > 1 || last.contains(char::is_whitespace))?;
            Some(usage::swallowed(flag, last))
        })
    }

    /// Combinations that the parser cannot judge.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        let takes_lines = self.input_format == InputFormat::StreamJson;
        if !self.print && !takes_lines {
            self.check_interactive()?;
        }
        if takes_lines && self.output_format != Format::StreamJson {
            return Err("--input-format stream-json needs --output-format stream-json --verbose.".into());
        }
        if takes_lines && self.prompt().is_some() {
            return Err("--input-format stream-json reads prompts from standard input. \
                 Leave out the prompt on the command line."
                .into());
        }
        if self.prompt_suggestions == Some(true) && !takes_lines && !self.is_interactive() {
            return Err("--prompt-suggestions needs an interactive session or --input-format stream-json: in print mode \
                 the result is the end."
                .into());
        }
        if self.replay_user_messages && !takes_lines {
            return Err("--replay-user-messages needs --input-format stream-json.".into());
        }
        if self.output_format == Format::StreamJson && !self.verbose {
            return Err("--output-format stream-json needs --verbose. Add it.".into());
        }
        if self.include_partial_messages && self.output_format != Format::StreamJson {
            return Err("--include-partial-messages needs --output-format stream-json --verbose.".into());
        }
        if self.include_hook_events && self.output_format != Format::StreamJson {
            return Err("--include-hook-events needs --output-format stream-json --verbose.".into());
        }
        Ok(())
    }

    /// An interactive session needs a terminal; a lone word that looks like a command is none of its prompts.
    fn check_interactive(&self) -> Result<(), CommandError> {
        let at_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if self.is_interactive() && at_terminal && self.lone_command().is_none() {
            return Ok(());
        }
        Err(self.not_interactive().into())
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
pub(crate) fn parse(arguments: &[OsString]) -> Result<Request, CommandError> {
    let rest = arguments.get(2..).unwrap_or_default();
    match arguments.get(1).and_then(|first| first.to_str()) {
        Some("completions") => return command_tree::parse_completions(rest),
        Some("demo") => return parse_demo(rest),
        Some("doctor") => return doctor::parse(rest),
        Some("help") => return parse_help(rest),
        Some("sessions") => return sessions::parse(rest),
        Some("config") => return config::parse(rest),
        Some("man") => return command_tree::parse_man(rest),
        Some("permissions") => return permissions::parse(rest),
        Some("sandbox") => return sandbox::parse(rest),
        Some("trust") => return trust::parse(rest),
        Some("trace") => return trace::parse(rest),
        Some("replay") => return replay::parse(rest),
        Some(word) => {
            if let Some(text) = usage::not_a_command(word, rest) {
                return Err(text.into());
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
        Err(error) => Err(usage::explain(&error).into()),
    }
}

fn parse_demo(rest: &[OsString]) -> Result<Request, CommandError> {
    match rest.first() {
        None => Ok(Request::Demo),
        Some(flag) if flag == "--help" || flag == "-h" => help::about(&["demo"]).map(Request::Show),
        Some(other) => Err(format!(
            "windlass demo takes no arguments, but got {}. For a prompt of your own: `windlass -p \"your prompt\"`.",
            display::line(&other.to_string_lossy())
        ).into()),
    }
}

fn parse_help(rest: &[OsString]) -> Result<Request, CommandError> {
    let topic: Vec<_> = rest.iter().map(|word| word.to_string_lossy()).collect();
    help::about(&topic.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map(Request::Show)
}

fn turns(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|turns| *turns > 0).ok_or("it must be a whole number from 1 on")
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
