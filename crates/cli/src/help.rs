//! What `windlass help` and its topics say.

use std::fmt::Write as _;

use clap::CommandFactory as _;
use windlass_config::{Area, VARIABLES};

use crate::arguments::Arguments;
use crate::{command_tree, layout};

/// Lines longer than this are hard to read.
const COLUMNS_MAX: usize = 110;

/// What stands below the flags.
pub(crate) const AFTER_FLAGS: &str = "\
Commands:
  demo              Fix a small sample project under a scripted model; needs no key
  sessions          List, show, search, export and remove sessions
  trace SESSION     Draw a session as a page for a browser: timeline, context, cost
  replay SESSION    Play a session again without a model, and find the first difference
  config            Show the settings that hold here and where each comes from, and what settings there are
  permissions       Explain whether a tool call would be allowed, by which rule and why; nothing runs
  trust             Show what this project's settings would make act, and agree to it or not
  sandbox           Run a program in the sandbox, or say what the sandbox can hold here
  doctor            Check settings, trust, key, model, sandbox and sessions, and say what to do
  completions       Print completions for a shell: bash, zsh, fish and others
  man               Print the manual page
  help              Show this text
  help environment  List the environment variables

Output:
  Standard output gets the result of the run in the chosen format and nothing else: the answer or, if the run \
fails, what went wrong. Everything else goes to standard error: what is happening, warnings, and why no run begins.
  At a terminal the text appears as it comes, and between it each call with its time, its output or its change.

Input:
  Text on standard input is added to the prompt. If the prompt is an argument and standard input stays open and \
silent, windlass goes on without it after three seconds; redirect it from /dev/null to go on at once.
  With --input-format stream-json each line is a prompt or a request of a host. A prompt that comes while a run goes \
on joins it, an interrupt ends the run and not the process, and the end of input ends the process when all is done.

Prompts:
  /compact [focus]  Compact the conversation; the summary keeps what the words say
  /context          Say how full the context is
  /cost, /usage     Say what the session has cost
  /rewind [N]       List the prompts, or go back to before one of them
  /help             List the commands
  /exit, /quit      At a terminal: leave, as Ctrl-D, exit and quit do
  +500k             At the beginning or the end of a prompt: go on until so many output tokens are spent
  An unknown command is refused, and no model is asked. A first word with a second slash or a dot, such as /etc/hosts, is a path \
and no command.

At a terminal:
  A prompt that you type while a run goes on is queued and joins it; a command waits for its end. Ctrl-C clears the line you type. On \
an empty line it ends the run; at the prompt, pressed twice within two seconds, the session.

Exit codes:
  0    The run succeeded
  1    The run failed or was interrupted with Ctrl-C, or none began
  129  The terminal went away (SIGHUP)
  130  Ctrl-C came a second time and ended the process at once
  143  SIGTERM ended it

A key goes into ANTHROPIC_API_KEY. Without a key and without a model of your own, try `windlass demo`.";

/// What `windlass help demo` and `windlass demo --help` say.
const DEMO: &str = "\
Usage: windlass demo

Copies a small project with a failing test into a temporary folder and fixes it there with real tools under a \
scripted model. It needs no key, takes no arguments and leaves the folder for you to look at.

Exit codes:
  0    The test of the project passes in the end
  1    It does not, or the demo was interrupted with Ctrl-C
  129  The terminal went away (SIGHUP)
  130  Ctrl-C came a second time and ended the process at once
  143  SIGTERM ended it
";

/// The topics beside the flags.
pub(crate) const TOPICS: [&str; 12] = [
    "completions",
    "config",
    "demo",
    "doctor",
    "environment",
    "man",
    "permissions",
    "replay",
    "sandbox",
    "sessions",
    "trace",
    "trust",
];

/// A text for the terminal on standard output.
pub(crate) fn page(text: &str) -> String {
    layout::wrap(text, layout::columns(std::io::stdout()).min(COLUMNS_MAX))
}

/// What there is to say about a topic; about the flags if there is none.
pub(crate) fn about(topic: Option<&str>) -> Result<String, String> {
    let text = match topic {
        None => Arguments::command().render_help().to_string(),
        Some("demo") => DEMO.to_owned(),
        Some("environment") => environment(),
        Some(other) => {
            if let Some(mut command) = command_tree::definition(other) {
                return Ok(page(&command.render_help().to_string()));
            }
            let topics = TOPICS.map(|topic| format!("`windlass help {topic}`")).join(", ");
            let other = crate::display::line(other);
            return Err(format!("there is no help about {other}. There is `windlass help`, and {topics}."));
        }
    };
    Ok(page(&text))
}

/// The environment variables by area.
fn environment() -> String {
    let mut text = String::from(
        "Environment variables are read once, at the start. An empty one counts as unset; a value that is not \
         understood is an error.\n",
    );
    for area in Area::ALL {
        let _ = write!(text, "\n{}:\n", area.title());
        for variable in VARIABLES.iter().filter(|variable| variable.area == area) {
            let _ = write!(
                text,
                "  {}\n      {}\n      Value: {}. Default: {}.\n",
                variable.name, variable.meaning, variable.accepts, variable.default
            );
        }
    }
    text.push_str(
        "\nHTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, and SSL_CERT_FILE and SSL_CERT_DIR mean what they \
         usually do.\n",
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
        for topic in TOPICS {
            assert!(about(Some(topic)).is_ok(), "{topic}");
        }
        assert!(about(None).is_ok_and(|text| text.contains("--model")));
        let error = about(Some("wether")).err().unwrap_or_default();
        assert!(error.contains("wether") && error.contains("`windlass help environment`"), "{error}");
    }
}
