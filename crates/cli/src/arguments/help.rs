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
pub(crate) const AFTER_FLAGS: &str = include_str!("help/below_flags.txt");

/// What `windlass help demo` and `windlass demo --help` say.
const DEMO: &str = include_str!("help/demo.txt");

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
