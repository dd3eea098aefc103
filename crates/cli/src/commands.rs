//! Prompts that are commands: answered without a turn of the model.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use windlass_engine::{Outcome, Terminal};
use windlass_protocol::{Compaction, ContextReport, ModelSpend};

use crate::display;

/// The names of the commands, without their slash.
pub(crate) const NAMES: [&str; 5] = ["compact", "context", "cost", "rewind", "usage"];

/// What `/help` says at the terminal.
pub(crate) const HELP: &str = "\
  /compact [focus]  Compact the conversation; the summary keeps what the words say
  /context          Say how full the context is
  /cost, /usage     Say what the session has cost
  /rewind [N]       List the prompts, or go back to before one of them
  /help             List the commands
  /exit, /quit      Leave, as Ctrl-D, exit and quit do

What you write while a run goes on joins it. Ctrl-C ends the run, and the session stays.
";

/// What to say where compaction is turned off.
pub(crate) const COMPACT_OFF: &str =
    "/compact is turned off by DISABLE_COMPACT. Unset the variable to use it.";

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Compact the conversation; the summary keeps what the words say.
    Compact(String),
    /// Say how full the context is.
    Context,
    /// Say what the session has cost.
    Cost,
    /// Go back to a prompt, or say what there is to go back to.
    Rewind(String),
}

impl Command {
    /// The command that a prompt is, if it is one.
    pub(crate) fn parse(prompt: &str) -> Option<Self> {
        let prompt = prompt.trim();
        let (name, rest) = prompt.split_once(char::is_whitespace).unwrap_or((prompt, ""));
        let rest = rest.trim();
        match (name, rest) {
            ("/compact", focus) => Some(Self::Compact(focus.to_owned())),
            ("/context", "" | "all") => Some(Self::Context),
            ("/cost" | "/usage", "") => Some(Self::Cost),
            ("/rewind" | "/checkpoint" | "/undo", wanted) => Some(Self::Rewind(wanted.to_owned())),
            _ => None,
        }
    }
}

/// What to say about a prompt that looks like a command and is none, because its writer may have meant one.
pub(crate) fn not_a_command(prompt: &str) -> Option<String> {
    let word = prompt.trim();
    let name = word.strip_prefix('/')?;
    let looks_like_one = name.starts_with(char::is_alphabetic) && !name.contains(['/', ' ', '\t', '\n']);
    if !looks_like_one || Command::parse(prompt).is_some() {
        return None;
    }
    let names = NAMES.map(|name| format!("/{name}")).join(", ");
    Some(format!("there is no command {word}; the commands are {names}. It goes to the model as a prompt."))
}

/// How long the runs of a session took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    duration_ms: u64,
    duration_api_ms: u64,
}

impl Times {
    /// Adds those of a run.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.duration_ms += outcome.duration_ms;
        self.duration_api_ms += outcome.duration_api_ms;
    }
}

/// What to say about what a session took.
pub(crate) fn cost_report(models: &BTreeMap<Arc<str>, ModelSpend>, times: Times) -> String {
    let total = ModelSpend::cost_usd(models);
    let mut text = format!(
        "Cost: {}\nTime: {}, of which {} waiting for models\n",
        total.map_or_else(|| "unknown".into(), |_| display::cost(total)),
        display::duration(times.duration_ms),
        display::duration(times.duration_api_ms)
    );
    if models.is_empty() {
        text.push_str("No model was asked yet.\n");
    }
    for (model, spend) in models {
        let usage = &spend.usage;
        let _ = writeln!(
            text,
            "  {model}: {} in, {} read from the cache, {} written to it, {} out, {}",
            display::counted(usage.input_tokens, "token"),
            display::number(usage.cache_read_input_tokens),
            display::number(usage.cache_creation_input_tokens),
            display::number(usage.output_tokens),
            display::cost(spend.cost_usd)
        );
    }
    text
}

/// What to say about the context.
pub(crate) fn context_report(report: &ContextReport) -> String {
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
        None => text.push_str("The conversation is not compacted by itself.\n"),
    }
    text
}

/// What to say about a compaction that worked.
pub(crate) fn compaction_report(compaction: &Compaction) -> String {
    let by = if compaction.mechanical { " without a model" } else { "" };
    format!(
        "The conversation was compacted{by}: from {} to about {}, in {}.",
        display::counted(compaction.tokens_before, "token"),
        display::number(compaction.tokens_after),
        display::duration(compaction.duration_ms)
    )
}

/// The outcome of a command that asked no model.
pub(crate) fn outcome(text: String, prompt: Option<Arc<str>>) -> Outcome {
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
    fn commands_are_whole_prompts() {
        let check = |prompt: &str, expected: Option<Command>| assert_eq!(Command::parse(prompt), expected);
        check("/compact", Some(Command::Compact(String::new())));
        check(" /compact keep the\n\nnames ", Some(Command::Compact("keep the\n\nnames".into())));
        check("/context", Some(Command::Context));
        check("/context all", Some(Command::Context));
        check("/cost\n", Some(Command::Cost));
        check("/usage", Some(Command::Cost));
        check("/rewind", Some(Command::Rewind(String::new())));
        check("/undo 2 files", Some(Command::Rewind("2 files".into())));
        check("/cost of what?", None);
        check("/compactly", None);
        check("/etc/hosts", None);
        check("say /cost", None);
        for name in NAMES {
            assert!(Command::parse(&format!("/{name}")).is_some(), "{name}");
        }
    }

    #[test]
    fn what_looks_like_a_command_is_noticed() {
        let check = |prompt: &str, expected: bool| {
            let notice = not_a_command(prompt);
            assert_eq!(notice.is_some(), expected, "{prompt:?}: {notice:?}");
        };
        for mistaken in ["/help", " /Compact\n", "/compactly", "/clear-all"] {
            check(mistaken, true);
        }
        for other in [
            "/compact",
            "/cost\n",
            "/etc/hosts",
            "/tmp/",
            "/",
            "//",
            "/cost of what?",
            "help",
            "say /help",
            "",
        ] {
            check(other, false);
        }
        assert_eq!(
            not_a_command("/help").unwrap_or_default(),
            "there is no command /help; the commands are /compact, /context, /cost, /rewind, /usage. \
             It goes to the model as a prompt."
        );
    }

    #[test]
    fn reports_are_for_people() {
        let report = ContextReport {
            model: "claude-test".into(),
            window: 200_000,
            used: 50_000,
            compact_at: Some(167_000),
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
        let off = context_report(&ContextReport { compact_at: None, ..report });
        assert!(off.ends_with("The conversation is not compacted by itself.\n"), "{off}");
    }

    #[test]
    fn costs_are_for_people() {
        let check = |models: &[(&str, &ModelSpend)], times: Times, expected: &str| {
            let models = models.iter().map(|(name, spend)| ((*name).into(), (*spend).clone())).collect();
            assert_eq!(cost_report(&models, times), expected);
        };
        let nothing =
            "Cost: $0.0000\nTime: 0 ms, of which 0 ms waiting for models\nNo model was asked yet.\n";
        check(&[], Times::default(), nothing);
        let usage = Usage { input_tokens: 2_000, output_tokens: 40, ..Usage::default() };
        let spend = ModelSpend { usage, cost_usd: Some(0.5), ..ModelSpend::default() };
        let mut times = Times::default();
        let run = Outcome { duration_ms: 1_500, duration_api_ms: 700, ..Outcome::new(Terminal::Completed) };
        times.add(&run);
        times.add(&run);
        let line =
            "  claude-test: 2,000 tokens in, 0 read from the cache, 0 written to it, 40 out, $0.5000\n";
        let time = "Time: 3.0 s, of which 1.4 s waiting for models\n";
        check(&[("claude-test", &spend)], times, &format!("Cost: $0.5000\n{time}{line}"));
        let unknown = cost_report(&[("x".into(), ModelSpend::default())].into(), times);
        assert!(unknown.starts_with("Cost: unknown\n"), "{unknown}");
    }
}
