//! What `windlass help` and its topics say.

use std::fmt::Write as _;

use anyhow::bail;
use clap::CommandFactory as _;
use windlass::config::VARIABLES;

use crate::arguments::command_tree;
use crate::arguments::{Arguments, COMMANDS};
use crate::views::layout;

/// Lines longer than this are hard to read.
const COLUMNS_MAX: usize = 110;

/// What stands below the flags.
pub(crate) const AFTER_FLAGS: &str = "\
Commands:
  demo              Fix a small sample project under a scripted model; needs no key
  sessions          List, show, search, export and remove sessions
  trace SESSION     Make a page for a browser: timeline, context, cost
  replay SESSION    Replay a session without a model and report the first difference
  config            Show the settings in force with file and line; list all settings
  permissions       Explain whether a tool call would be allowed, by which rule and why; nothing runs
  trust             Show what this project's settings would run, and trust them or not
  sandbox           Run a program in the sandbox, or show what the sandbox enforces here
  doctor            Check settings, trust, key, model, sandbox and sessions, and say what to do
  completions       Print completions for a shell: bash, zsh, fish and others
  man               Print the manual page
  help              Show this text
  help environment  List the environment variables

Output:
  Standard output gets only the result of the run in the chosen format: the answer or, if the run \
fails, the error. Progress, warnings and start-up errors go to standard error.
  At a terminal, text appears as it arrives, with each tool call, its time, and its output or diff.

Input:
  Windlass adds text on standard input to the prompt. If the prompt is an argument and standard input stays open and \
silent, windlass continues without it after three seconds; redirect it from /dev/null to continue at once.
  With --input-format stream-json each line is a prompt or a control request. A prompt that arrives during a run \
joins it. An interrupt ends the run, not the process. At the end of input windlass finishes its work and exits.

Prompts:
  /compact [focus]  Compact the conversation; the summary keeps what you name
  /context          Show how full the context is
  /cost, /usage     Show what the session has cost
  /rewind [N]       List the prompts, or go back to before prompt N
  /help             List the commands
  /exit, /quit      At a terminal: leave (also Ctrl-D, exit, quit)
  +500k             At the beginning or end of a prompt: continue until this many output tokens are used, or until little new comes
  Windlass refuses an unknown command without asking the model. A first word with a second slash or a dot, such as \
/etc/hosts, is a path, not a command.

At a terminal:
  A prompt that you type during a run is queued and joins it at its next request; if you interrupt the run first, the next \
run starts with it. A command waits for the end of the run, except /help, /now and /exit, which act at once: /exit ends the run, \
too. Ctrl-C clears the line you type. On an empty line it interrupts the run; at the prompt, pressed twice within two \
seconds, it ends the session. A pasted text is part of the line you type, with its line breaks; Enter sends it.
  If TERM is unset or `dumb`, windlass writes no escape sequences: the terminal itself edits the line you type, and Ctrl-C \
at the prompt ends the session at once.

Exit codes:
  0    The run succeeded
  1    The run failed, was interrupted with Ctrl-C, or did not start
  129  The terminal was closed (SIGHUP)
  130  A second Ctrl-C ended the process at once
  143  SIGTERM ended it

Setup:
  Set ANTHROPIC_API_KEY to your key. Without a key, try `windlass demo`; `windlass doctor` checks your setup.";

/// What `windlass help demo` and `windlass demo --help` say.
const DEMO: &str = "\
Usage: windlass demo

Copies a small project with a failing test into a temporary folder and fixes it there with real tools under a \
scripted model. It needs no key, takes no arguments and leaves the folder for you to look at.

Exit codes:
  0    The project's test passes at the end
  1    It fails, or the demo was interrupted with Ctrl-C
  129  The terminal was closed (SIGHUP)
  130  A second Ctrl-C ended the process at once
  143  SIGTERM ended it
";

/// The topics beside the flags: every command, and the environment.
pub(crate) fn topics() -> [&'static str; COMMANDS.len()] {
    COMMANDS.map(|command| if command == "help" { "environment" } else { command })
}

/// A text for the terminal on standard output. Examples stay whole, to be copied.
pub(crate) fn page(text: &str) -> String {
    let columns = layout::columns(std::io::stdout()).min(COLUMNS_MAX);
    let is_example = |line: &str| line.starts_with("  windlass ");
    let fit = |line| if is_example(line) { line.to_owned() } else { layout::wrap(line, columns) };
    text.split('\n').map(fit).collect::<Vec<_>>().join("\n")
}

/// What there is to say about a topic, such as a command and one within it; about the flags if there is none.
pub(crate) fn about(topic: &[&str]) -> anyhow::Result<String> {
    let text = match topic {
        [] | ["help"] => Arguments::command().render_help().to_string(),
        ["demo"] => DEMO.to_owned(),
        ["environment"] => environment(),
        other => {
            if let Some(mut command) = command_tree::definition(other) {
                return Ok(page(&command.render_help().to_string()));
            }
            let topics = topics().map(|topic| format!("`windlass help {topic}`")).join(", ");
            let other = windlass::display::line(&other.join(" "));
            bail!("No help for {other}. Try `windlass help`, {topics}.");
        }
    };
    Ok(page(&text))
}

/// The environment variables by area.
fn environment() -> String {
    let mut text = String::from(
        "Windlass reads environment variables once, at the start. An empty one counts as unset; an invalid value \
         is an error.\n",
    );
    let mut area = "";
    for variable in VARIABLES {
        if variable.area != area {
            area = variable.area;
            let _ = write!(text, "\n{area}:\n");
        }
        let _ = write!(
            text,
            "  {}\n      {}\n      Value: {}. Default: {}.\n",
            variable.name, variable.meaning, variable.accepts, variable.default
        );
    }
    text.push_str(
        "\nHTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, and SSL_CERT_FILE and SSL_CERT_DIR have their \
         usual meaning.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_listed_with_its_meaning() {
        let text = environment();
        for variable in VARIABLES {
            assert!(
                text.contains(&format!("  {}\n      {}", variable.name, variable.meaning)),
                "{variable:?}"
            );
        }
    }

    #[test]
    fn there_are_pages_for_the_topics_and_no_others() {
        for topic in topics() {
            assert!(about(&[topic]).is_ok(), "{topic}");
        }
        assert!(about(&[]).is_ok_and(|text| text.contains("--model")));
        let error = about(&["wether"]).unwrap_err().to_string();
        assert!(error.contains("wether") && error.contains("`windlass help environment`"), "{error}");
    }
}
