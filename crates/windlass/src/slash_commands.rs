//! Prompts that are commands: answered without a turn of the model.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use windlass_engine::{Outcome, Terminal};
use windlass_protocol::{Compaction, ContextReport, ModelSpend, TimeSpent};
use windlass_session::PromptLine;
use windlass_text::nearest::closest;

use crate::display;
use crate::rewind::RewindOutcome;
use crate::session::Run;

/// The names of the commands, without their slash.
pub const NAMES: [&str; 6] = ["compact", "context", "cost", "now", "rewind", "usage"];

/// What `/help` says at the terminal.
pub const HELP: &str = include_str!("slash_commands.txt");

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlashCommand {
    /// Compact the conversation; the summary keeps what you name.
    Compact(String),
    /// Show how full the context is.
    Context,
    /// Show what the session has cost.
    Cost,
    /// List the commands.
    Help,
    /// Go back to a prompt, or say what there is to go back to.
    Rewind(String),
}

/// What came of a command.
pub enum CommandOutcome<'session> {
    /// A summary takes the place of the conversation as soon as this run is polled.
    Compaction(Run<'session>),
    /// It is done; this is what there is to tell.
    Report(SlashCommandReport),
}

/// What there is to tell about a command.
pub enum SlashCommandReport {
    /// How full the context is.
    Context(ContextReport),
    /// What the session took so far.
    Cost {
        /// The models that were asked, by name.
        models: BTreeMap<Arc<str>, ModelSpend>,
        /// How long it took.
        time: TimeSpent,
    },
    /// The commands are to be listed, which is for the caller to do: some are its own.
    Help,
    /// The prompts the session can go back to, in their order.
    Prompts(Vec<PromptLine>),
    /// The session went back.
    Rewind(RewindOutcome),
}

/// What a line that a person or a host wrote is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptEntry {
    /// A command.
    Command(SlashCommand),
    /// Something for the model.
    Prompt,
    /// The same, in place of whatever runs.
    Now(String),
    /// A command that is not there or cannot be used so, and why. No model is asked.
    Refused(String),
}

impl PromptEntry {
    /// A text that begins with a slash and a name is a command, known or not; with a second slash or a dot, a path.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let is_name = |name: &&str| name.starts_with(char::is_alphabetic) && !name.contains(['/', '.']);
        let Some(name) = word.strip_prefix('/').filter(is_name) else { return Self::Prompt };
        let rest = rest.trim();
        Self::Command(match (name, rest) {
            ("compact", focus) => SlashCommand::Compact(focus.to_owned()),
            ("context", "" | "all") => SlashCommand::Context,
            ("cost" | "usage", "") => SlashCommand::Cost,
            ("help", "") => SlashCommand::Help,
            ("now", "") => return Self::Refused("/now needs a message: /now MESSAGE.".into()),
            ("now", message) => return Self::Now(message.to_owned()),
            ("rewind" | "checkpoint" | "undo", wanted) => SlashCommand::Rewind(wanted.to_owned()),
            ("context", _) => return Self::Refused("/context takes no argument except `all`.".into()),
            ("exit" | "quit", "") => {
                return Self::Refused(format!("{word} works only in an interactive session."));
            }
            ("cost" | "usage" | "help" | "exit" | "quit", _) => {
                return Self::Refused(format!("{word} takes no argument."));
            }
            _ => return Self::Refused(unknown(name)),
        })
    }
}

/// What to say about a command that is not there.
fn unknown(name: &str) -> String {
    let listed = NAMES.into_iter().chain(["help", "exit"]);
    let known: Vec<&str> = listed.clone().chain(["checkpoint", "undo", "quit"]).collect();
    let hint = match closest(name, &known) {
        Some(meant) => format!("Did you mean /{meant}?"),
        None => format!("The commands are /{}.", listed.collect::<Vec<_>>().join(", /")),
    };
    let name = display::line(name);
    format!("Unknown command /{name}. {hint} To send it to the model, put a word before it.")
}

/// What to say about what a session took.
pub fn cost_report(models: &BTreeMap<Arc<str>, ModelSpend>, time: TimeSpent) -> String {
    let total = ModelSpend::cost_usd(models);
    let mut text = format!(
        "Cost: {}\nTime: {}, of which {} waiting for models\n",
        total.map_or_else(|| "unknown".into(), |_| display::cost(total)),
        display::duration(time.duration_ms),
        // Forks wait side by side, and each time is rounded on its own.
        display::duration(time.duration_api_ms.min(time.duration_ms))
    );
    if models.is_empty() {
        text.push_str("No model was asked yet.\n");
    }
    for (model, spend) in models {
        let usage = &spend.usage;
        let _ = writeln!(
            text,
            "  {model}: {} in, {} read from the cache, {} written to it, {} out, {}",
            display::quantity(usage.input_tokens, "token"),
            display::number(usage.cache_read_input_tokens),
            display::number(usage.cache_creation_input_tokens),
            display::number(usage.output_tokens),
            display::cost(spend.cost_usd)
        );
    }
    text
}

/// What to say about the context.
pub fn context_report(report: &ContextReport) -> String {
    let share = |tokens: u64| tokens.saturating_mul(100).checked_div(report.window).unwrap_or_default();
    let mut text = format!(
        "Context of {}: {} of {} tokens ({} %)\n",
        report.model,
        display::number(report.used),
        display::number(report.window),
        share(report.used)
    );
    let free = ("free", report.window.saturating_sub(report.used));
    for (name, tokens) in report.parts.iter().copied().chain([free]) {
        let _ = writeln!(text, "  {name:16} {:>11} ({} %)", display::number(tokens), share(tokens));
    }
    match report.compact_at {
        Some(tokens) => {
            let _ =
                writeln!(text, "The conversation is compacted from {} tokens on.", display::number(tokens));
        }
        None => text.push_str("Automatic compaction is off.\n"),
    }
    if let Some(tokens) = report.blocked_at {
        let _ = writeln!(text, "From {} tokens on a run ends: the context is full.", display::number(tokens));
    }
    text
}

/// What to say about a compaction that worked.
pub fn compaction_report(compaction: &Compaction) -> String {
    let by = if compaction.is_mechanical { " without a model" } else { "" };
    format!(
        "The conversation was compacted{by}: from {} to about {}, in {}.",
        display::quantity(compaction.tokens_before, "token"),
        display::number(compaction.tokens_after),
        display::duration(compaction.duration_ms)
    )
}

/// The outcome of a command that asked no model.
pub fn outcome(text: String, prompt: Option<Arc<str>>) -> Outcome {
    Outcome { text, prompts: prompt.into_iter().collect(), ..Outcome::new(Terminal::Completed) }
}

#[cfg(test)]
mod tests {
    use windlass_engine::Usage;

    use super::*;

    #[test]
    fn the_help_lists_every_command() {
        for name in NAMES.into_iter().chain(["help", "exit", "quit"]) {
            assert!(HELP.contains(&format!("/{name}")), "{name}");
        }
    }

    #[test]
    fn a_first_word_with_a_slash_and_a_name_is_a_command() {
        let check = |text: &str, expected: SlashCommand| {
            assert_eq!(PromptEntry::parse(text), PromptEntry::Command(expected));
        };
        check("/compact", SlashCommand::Compact(String::new()));
        check(" /compact keep the\n\nnames ", SlashCommand::Compact("keep the\n\nnames".into()));
        check("/context", SlashCommand::Context);
        check("/context all", SlashCommand::Context);
        check("/cost\n", SlashCommand::Cost);
        check("/usage", SlashCommand::Cost);
        check("/help", SlashCommand::Help);
        check("/rewind", SlashCommand::Rewind(String::new()));
        check("/undo 2 files", SlashCommand::Rewind("2 files".into()));
        for name in NAMES.into_iter().filter(|name| *name != "now") {
            assert!(matches!(PromptEntry::parse(&format!("/{name}")), PromptEntry::Command(_)), "{name}");
        }
        assert_eq!(PromptEntry::parse("/now do this\ninstead "), PromptEntry::Now("do this\ninstead".into()));
        for text in [
            "/etc/hosts is wrong, why?",
            "/home/me/x.rs explain",
            "/Cargo.toml",
            "/tmp/",
            "/",
            "//",
            "/* a comment */",
            "/1",
            "help",
            "say /help",
            "",
        ] {
            assert_eq!(PromptEntry::parse(text), PromptEntry::Prompt, "{text:?}");
        }
    }

    #[test]
    fn an_unknown_command_names_the_nearest() {
        let check = |text: &str, expected: &str| {
            let PromptEntry::Refused(why) = PromptEntry::parse(text) else {
                panic!("{text:?} is not refused")
            };
            assert!(why.starts_with(expected), "{why}");
        };
        check(
            "/compcat keep names",
            "Unknown command /compcat. Did you mean /compact? To send it to the model,",
        );
        check(" /Compact\n", "Unknown command /Compact. Did you mean /compact?");
        check("/hlep", "Unknown command /hlep. Did you mean /help?");
        let all = "/compact, /context, /cost, /now, /rewind, /usage, /help, /exit.";
        check("/frobnicate", &format!("Unknown command /frobnicate. The commands are {all}"));
        check("/cost of what?", "/cost takes no argument.");
        check("/context of what?", "/context takes no argument except `all`.");
        check("/exit now", "/exit takes no argument.");
        check("/now ", "/now needs a message");
        check("/quit", "/quit works only in an interactive session.");
    }

    #[test]
    fn reports_are_for_people() {
        let report = ContextReport {
            model: "claude-test".into(),
            window: 200_000,
            used: 50_000,
            compact_at: Some(167_000),
            blocked_at: None,
            parts: vec![("system prompt", 10_000), ("messages", 40_000)],
        };
        assert_eq!(
            context_report(&report),
            "Context of claude-test: 50,000 of 200,000 tokens (25 %)\n\
             \u{20} system prompt         10,000 (5 %)\n\
             \u{20} messages              40,000 (20 %)\n\
             \u{20} free                 150,000 (75 %)\n\
             The conversation is compacted from 167,000 tokens on.\n"
        );
        let nonsense = context_report(&ContextReport { used: u64::MAX, ..report.clone() });
        assert!(nonsense.contains(" free                       0 (0 %)\n"), "{nonsense}");
        let off = context_report(&ContextReport { compact_at: None, blocked_at: Some(177_000), ..report });
        let end = "Automatic compaction is off.\nFrom 177,000 tokens on a run ends: the context is full.\n";
        assert!(off.ends_with(end), "{off}");
    }

    #[test]
    fn costs_are_for_people() {
        let check = |models: &[(&str, &ModelSpend)], time: TimeSpent, expected: &str| {
            let models = models.iter().map(|(name, spend)| ((*name).into(), (*spend).clone())).collect();
            assert_eq!(cost_report(&models, time), expected);
        };
        let nothing =
            "Cost: $0.0000\nTime: 0 ms, of which 0 ms waiting for models\nNo model was asked yet.\n";
        check(&[], TimeSpent::default(), nothing);
        let usage = Usage { input_tokens: 2_000, output_tokens: 40, ..Usage::default() };
        let spend = ModelSpend { usage, cost_usd: Some(0.5), ..ModelSpend::default() };
        let time = TimeSpent { duration_ms: 3_000, duration_api_ms: 1_400 };
        let line =
            "  claude-test: 2,000 tokens in, 0 read from the cache, 0 written to it, 40 out, $0.5000\n";
        let shown = "Time: 3.0 s, of which 1.4 s waiting for models\n";
        check(&[("claude-test", &spend)], time, &format!("Cost: $0.5000\n{shown}{line}"));
        let time = TimeSpent { duration_ms: 293, duration_api_ms: 294 };
        let unknown = cost_report(&[("x".into(), ModelSpend::default())].into(), time);
        let expected = "Cost: unknown\nTime: 293 ms, of which 293 ms waiting for models\n";
        assert!(unknown.starts_with(expected), "{unknown}");
    }
}
