//! Progress for people: a panel for each answered call, a summary, and at a terminal what is awaited.

use std::io::IsTerminal as _;
use std::time::Duration;

use windlass::engine::{Outcome, Update};
use windlass::protocol::{CompactTrigger, Decision, HookEnding, StopHookSummary};
use windlass::protocol_view::Clock;

use crate::display;
use crate::views::call_panels::CallPanels;
use crate::views::layout;
use crate::views::screen::Screen;
use windlass::slash_commands;

/// What the changing line leaves free, so that an echoed `^C` does not break it into two.
const FREE_COLUMNS: usize = 3;

/// Shows progress on a screen.
pub(crate) struct Progress {
    clock: Clock,
    pub(crate) screen: Screen,
    /// Whether there is a last line that changes.
    has_live_line: bool,
    waiting_for: String,
    since_ms: u64,
    tokens: u64,
    calls: CallPanels,
    /// Text of the model is being written elsewhere: the changing line would come between.
    is_hidden: bool,
    /// Somebody is being asked: nothing may be written over the question.
    is_asking: bool,
    /// A request was sent in this run.
    has_requested: bool,
    /// A compaction would be one that the user asked for, as at the beginning of a run: the result of the command says what came of it.
    is_compaction_requested: bool,
}

impl Progress {
    /// Progress on a terminal, or wherever it is asked for.
    pub(crate) fn new(is_verbose: bool, screen: Screen) -> Option<Self> {
        let (clock, is_terminal) = (Clock::start(), std::io::stderr().is_terminal());
        Self::is_shown(is_verbose).then(|| Self {
            clock,
            screen,
            has_live_line: is_terminal && layout::can_redraw(),
            waiting_for: "starting".into(),
            since_ms: 0,
            tokens: 0,
            calls: if is_terminal { CallPanels::new(clock) } else { CallPanels::brief(clock) },
            is_hidden: false,
            is_asking: false,
            has_requested: false,
            is_compaction_requested: true,
        })
    }

    /// Whether there is progress to see.
    pub(crate) fn is_shown(is_verbose: bool) -> bool {
        is_verbose || std::io::stderr().is_terminal()
    }

    pub(crate) fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        if matches!(update, Update::Delta { .. }) {
            return;
        }
        if let Update::Question(_) = update {
            self.screen.end_status(out);
            self.is_asking = true;
            return;
        }
        self.is_asking &= !is_answer(update);
        self.is_hidden &= matches!(update, Update::Block { .. } | Update::Responded { .. });
        if let Some(panel) = self.calls.update(update, layout::columns(std::io::stderr())) {
            self.screen.lines(&panel, out);
        }
        match update {
            Update::Requesting { model, .. } => {
                (self.has_requested, self.is_compaction_requested) = (true, false);
                self.wait_for(format!("waiting for {}", display::line(model)));
            }
            Update::Responding { .. } => self.wait_for("the model answers".into()),
            Update::Responded { usage, .. } => self.tokens += usage.input_total() + usage.output_tokens,
            Update::ToolResult { .. } => self.wait_for("preparing the next request".into()),
            Update::Retrying { attempt, retries_max, delay_ms, failure } => {
                let pause = display::duration(*delay_ms);
                self.print(&format!("{} Retry {attempt} of {retries_max} in {pause}.", failure.message), out);
                self.wait_for("waiting before the retry".into());
            }
            Update::Compacting(trigger) => {
                self.is_compaction_requested = *trigger == CompactTrigger::Manual;
                self.wait_for("compacting the conversation".into());
            }
            Update::Done(outcome) => return self.finish(outcome, out),
            // It stands above the prompt that it is about.
            Update::PromptSuggestion { suggestion } => {
                return self.screen.hint(&format!("Suggestion: {}", display::line(suggestion)), out);
            }
            Update::Decided(Decision::Compacted(_)) | Update::CompactionFailed(_)
                if self.is_compaction_requested => {}
            Update::ToolUseSummary { summary, .. } => self.screen.hint(&display::line(summary), out),
            other => {
                if let Some(text) = remark(other) {
                    self.print(&text, out);
                }
            }
        }
        self.redraw(out);
    }

    /// The last line shows seconds, so it is due when the next one is full.
    pub(crate) fn next_tick(&self) -> Option<Duration> {
        self.has_live_line.then(|| Duration::from_millis(1000 - self.clock.ms() % 1000))
    }

    /// Takes the changing line away until the answer is complete, so that something can be written in its place.
    pub(crate) fn hide(&mut self, out: &mut Vec<u8>) {
        self.screen.end_status(out);
        self.is_hidden = true;
    }

    fn wait_for(&mut self, what: String) {
        self.waiting_for = what;
        self.since_ms = self.clock.ms();
    }

    /// What a run took. A command that asked no model took nothing.
    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) {
        self.is_compaction_requested = true;
        let has_requested = std::mem::take(&mut self.has_requested);
        self.screen.end_status(out);
        if outcome.iterations == 0 && outcome.models.is_empty() && outcome.terminal.is_success() {
            return;
        }
        // A run that the budget ends before its first request has made no turn.
        let turns = if has_requested { outcome.iterations } else { 0 };
        let parts = [
            display::quantity(turns.into(), "turn"),
            format!("{} in", display::quantity(outcome.usage.input_total(), "token")),
            format!("{} out", display::number(outcome.usage.output_tokens)),
            display::cost(outcome.cost_usd()),
            display::duration(outcome.duration_ms),
        ];
        self.print(&parts.join(", "), out);
    }

    /// Prints a line that stays.
    fn print(&mut self, text: &str, out: &mut Vec<u8>) {
        self.screen.notice(&display::line(text), out);
    }

    /// Shows the last line as it is by now.
    pub(crate) fn redraw(&mut self, out: &mut Vec<u8>) {
        if !self.has_live_line || self.is_asking || self.is_hidden {
            return;
        }
        let (what, latest, since_ms) = match self.calls.running() {
            Some(open) => (&open.title(), open.latest.as_str(), open.started_ms),
            None => (&self.waiting_for, "", self.since_ms),
        };
        let seconds = self.clock.ms().saturating_sub(since_ms) / 1000;
        let line = status(what, latest, seconds, self.tokens, layout::columns(std::io::stderr()));
        self.screen.status(&line, out);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.screen.now(Screen::erase);
    }
}

/// What happened around the answers, in a line; nothing if it is of no interest to people.
fn remark(update: &Update) -> Option<String> {
    Some(match update {
        Update::Decided(Decision::Compacted(compaction)) => slash_commands::compaction_report(compaction),
        Update::Decided(Decision::MediaStripped(..)) => {
            "What the provider refused was left out of the conversation.".into()
        }
        Update::CompactionFailed(error) => format!("The conversation could not be compacted: {error}"),
        Update::FellBack { from, to, failure } => format!("{} {to} takes over from {from}.", failure.message),
        Update::Notice(text) => text.clone(),
        Update::HookFailed(failure) => failure.text.clone(),
        Update::StopHooks(summary) => stop_hooks(summary)?,
        _ => return None,
    })
}

/// From here on people wonder what takes so long.
const SLOW_HOOK_MS: u64 = 1_000;

/// The stop hooks that ran, unless all were quick and silent. Objections and failures are told elsewhere.
fn stop_hooks(summary: &StopHookSummary) -> Option<String> {
    summary.hooks.iter().find(|run| run.duration_ms >= SLOW_HOOK_MS || !run.said.is_empty())?;
    let ran = summary.hooks.iter().map(|run| {
        let is_told = run.ending == HookEnding::Failed
            || summary.reasons.iter().any(|reason| run.said.contains(reason));
        let said = if is_told || run.said.is_empty() { String::new() } else { format!(": {}", run.said) };
        format!("{} ({}){said}", run.hook, display::duration(run.duration_ms))
    });
    let ran: Vec<String> = ran.collect();
    Some(format!("{} ran: {}", display::quantity(ran.len() as u64, "stop hook"), ran.join("; ")))
}

/// Whether an update comes after a question was answered.
fn is_answer(update: &Update) -> bool {
    matches!(
        update,
        Update::ToolStarted { .. }
            | Update::ToolResult { .. }
            | Update::Denied(_)
            | Update::Requesting { .. }
            | Update::Done(_)
    )
}

/// The changing line: what is going on, the latest news of it, and as many numbers as leave it room.
fn status(what: &str, latest: &str, seconds: u64, tokens: u64, columns: usize) -> String {
    let room = columns.saturating_sub(FREE_COLUMNS);
    let numbers =
        [format!(" ... {seconds} s, {}", display::quantity(tokens, "token")), format!(" {seconds} s")];
    let numbers = numbers.into_iter().find(|numbers| numbers.len() * 2 <= room).unwrap_or_default();
    let room = room - numbers.len();
    if latest.is_empty() {
        return layout::cut(what, room) + &numbers;
    }
    let (what, latest) = layout::share(what, latest, room.saturating_sub(2));
    layout::cut(&format!("{what}: {latest}"), room) + &numbers
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass::engine::{Block, MessageId, Transition};
    use windlass::protocol::{
        Compaction, Failure, FailureClass, HookEvent, HookRun, Message, Origin, StopHookVerdict,
    };

    use super::*;

    #[test]
    fn the_changing_line_fits_and_shows_the_latest_news() {
        let check = |latest: &str, columns, expected: &str| {
            let line = status("Bash cargo test --workspace --quiet", latest, 12, 34_567, columns);
            assert_eq!(line, expected);
        };
        check("", 80, "Bash cargo test --workspace --quiet ... 12 s, 34,567 tokens");
        check("ok", 80, "Bash cargo test --workspace --quiet: ok ... 12 s, 34,567 tokens");
        check(
            "test parse::tests::numbers ... ok",
            80,
            "Bash cargo test --works...: test parse::tests::num... ... 12 s, 34,567 tokens",
        );
        check("", 30, "Bash cargo test --w... 12 s");
        check("test parse::numbers", 30, "Bash ca...: test pa... 12 s");
        check("test parse::numbers", 10, "Bas: te");
        for columns in 0..100 {
            for latest in ["", "x", "a line of the output that is long"] {
                let line = status("Bash cargo test --workspace --quiet", latest, 12, 34_567, columns);
                assert!(line.len() <= columns.saturating_sub(3), "{line:?} in {columns}");
            }
        }
    }

    #[test]
    fn what_happens_around_answers_is_said_in_a_line() {
        let check = |update: Update, expected: Option<&str>| {
            assert_eq!(remark(&update).as_deref(), expected);
        };
        let failure = Failure::new(FailureClass::Overloaded, "Overloaded.");
        check(
            Update::FellBack { from: "a".into(), to: "b".into(), failure: Box::new(failure) },
            Some("Overloaded. b takes over from a."),
        );
        check(
            Update::CompactionFailed("No answer.".into()),
            Some("The conversation could not be compacted: No answer."),
        );
        check(Update::TurnsUsedUp { turns: 1, limit: 1 }, None);
        check(Update::Notice("Note.".into()), Some("Note."));
        let run = |hook: &str, duration_ms, said: &str| HookRun {
            hook: hook.into(),
            duration_ms,
            ending: HookEnding::Worked,
            said: said.into(),
        };
        let hooks = vec![run("lint", 90, "all clean"), run("cargo test", 2_100, "2 tests fail")];
        let (event, verdict) = (HookEvent::Stop, StopHookVerdict::Blocked);
        let reasons = vec!["2 tests fail".to_owned()];
        check(
            Update::StopHooks(StopHookSummary { event, hooks, verdict, reasons }),
            Some("2 stop hooks ran: lint (90 ms): all clean; cargo test (2.1 s)"),
        );
        let quiet = HookRun { said: String::new(), ..run("true", 9, "") };
        let (event, verdict, hooks) = (HookEvent::Stop, StopHookVerdict::Passed, vec![quiet]);
        check(Update::StopHooks(StopHookSummary { event, hooks, verdict, reasons: Vec::new() }), None);
        check(Update::Continued(Transition::NextTurn), None);
        check(Update::CacheMissed { expected: 9, read: 1, part: None }, None);
        let boundary = Arc::new(Message::user(MessageId(1), Origin::Boundary, vec![Block::text("Summary.")]));
        let compaction = Compaction {
            trigger: CompactTrigger::Auto,
            boundary,
            tail: None,
            is_unbound: false,
            is_mechanical: false,
            tokens_before: 170_000,
            tokens_after: 9_000,
            duration_ms: 2_100,
        };
        check(
            Update::Decided(Decision::Compacted(Box::new(compaction))),
            Some("The conversation was compacted: from 170,000 tokens to about 9,000, in 2.1 s."),
        );
    }

    #[test]
    fn one_token_is_no_tokens() {
        assert_eq!(status("x", "", 1, 1, 80), "x ... 1 s, 1 token");
    }
}
