//! Which of two reasons to end counts.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, course};
use std::sync::Arc;
use windlass_core::{AnswerSchema, CheckAnswer, Config, Interrupt};
use windlass_protocol::{
    FailureClass, HookAnswer, HookEvent, HookPermission, ModelCard, Outcome, Price, RawValue, StopReason,
};

/// The log shows how the run ended, what was said last, and what went wrong.
fn new() -> Scenario {
    Scenario::new().wordy().showing_outcome(|Outcome { terminal, text, errors, .. }| {
        let how = if terminal.is_success() { "well" } else { "badly" };
        let errors = if errors.is_empty() { String::new() } else { format!(" ! {}", errors.join(" ! ")) };
        format!("({how}) {text}{errors}")
    })
}

fn hooked(events: &[HookEvent]) -> Scenario {
    new().with(|config| config.hooks.extend(events))
}

fn objects(text: &str) -> HookAnswer {
    HookAnswer { blocks: vec![text.into()], ..HookAnswer::default() }
}

fn stops(reason: &str) -> HookAnswer {
    HookAnswer { stop: Some(reason.into()), ..HookAnswer::default() }
}

/// A dollar for each thousand output tokens, and one dollar to spend.
fn one_dollar(config: &mut Config) {
    config.model.price = Some(Price { output: 1_000.0, ..Price::default() });
    config.budget_usd = Some(1.0);
}

#[derive(Debug)]
struct Number;

impl CheckAnswer for Number {
    fn check(&self, value: &RawValue) -> Result<(), String> {
        let is_number = value.get().parse::<f64>().is_ok();
        if is_number { Ok(()) } else { Err(format!("a number is expected, not {}.", value.get())) }
    }
}

fn number(retries_max: u32) -> impl FnOnce(&mut Config) {
    let schema = RawValue::from_string(r#"{"type":"number"}"#.into()).unwrap();
    move |config| {
        config.answer = Some(AnswerSchema { schema: schema.into(), check: Arc::new(Number), retries_max });
    }
}

/// What calls did is summarised by another model.
fn with_summaries(config: &mut Config) {
    config.small_model = Some(ModelCard::unknown("small"));
    config.has_tool_use_summaries = true;
}

/// Of two rules that both apply, the one that stands first in the order of stage 6 is heard.
#[track_caller]
fn check_course(scenario: Scenario, expected: &str) {
    assert_eq!(course(scenario), expected);
}

fn said(scenario: Scenario, text: &str) -> Scenario {
    scenario.text(text).ended(StopReason::EndTurn)
}

#[test]
fn what_a_hook_of_a_call_says_outranks_every_other_end_but_an_interrupt() {
    let defers = || HookAnswer { permission: Some(HookPermission::Defer), ..HookAnswer::default() };
    let two_calls = || {
        hooked(&[HookEvent::PreToolUse]).submit("x").call("read a").call("read b").ended(StopReason::ToolUse)
    };
    check_course(
        hooked(&[HookEvent::PostToolUse])
            .submit("x")
            .call("read a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .hooked(1, "stop", stops("enough"))
            .interrupt(Interrupt::Stop)
            .finished(2, "B"),
        "aborted_tools",
    );
    check_course(two_calls().hooked(1, "later", defers()).hooked(2, "stop", stops("enough")), "hook_stopped");
    check_course(two_calls().turns_max(1).hooked(1, "stop", stops("enough")), "hook_stopped");
    check_course(
        two_calls()
            .turns_max(1)
            .hooked(1, "later", defers())
            .hooked(2, "nothing", HookAnswer::default())
            .finished(2, "B"),
        "tool_deferred",
    );
}

#[test]
fn a_failure_or_a_cut_answer_outranks_the_schema_and_stop_hooks() {
    let picky = || hooked(&[HookEvent::Stop]).with(number(5)).submit("x").text("Seven");
    check_course(picky().fails(FailureClass::Auth), "api_error");
    check_course(picky().ended(StopReason::MaxTokens), "max_output_tokens_escalate");
    check_course(picky().ended(StopReason::ContextWindowExceeded), "reactive_compact_retry");
    check_course(picky().ended(StopReason::Refusal), "refused");
    check_course(picky().ended(StopReason::PauseTurn), "pause_turn_resume");
    let nothing =
        hooked(&[HookEvent::Stop]).with(number(5)).submit("x").call("read a").ended(StopReason::ToolUse);
    check_course(nothing.finished(1, "A").ended(StopReason::EndTurn), "empty_answer_nudge");
}

#[test]
fn the_schema_then_stop_hooks_then_the_token_budget_then_money() {
    let all = || {
        hooked(&[HookEvent::Stop])
            .with(number(1))
            .with(one_dollar)
            .with(|config| config.token_budget = Some(100_000))
            .submit("x")
    };
    let spent = |scenario: Scenario, text: &str| scenario.text(text).ended_at(StopReason::EndTurn, 0, 1_000);
    check_course(said(all(), "Seven"), "structured_output_retry");
    check_course(said(said(all(), "Seven"), "Seven"), "structured_output_retry structured_output_retries");
    check_course(said(all(), "7").hooked(1, "no", objects("no")), "stop_hook_blocking");
    check_course(said(all(), "7").hooked(1, "stop", stops("enough")), "stop_hook_prevented");
    check_course(said(all(), "7").hooked(1, "nothing", HookAnswer::default()), "token_budget_continuation");
    // There is a reason to go on, but no money for it.
    check_course(spent(all(), "Seven"), "structured_output_retry max_budget_usd");
    check_course(spent(all(), "7").hooked(1, "no", objects("no")), "stop_hook_blocking max_budget_usd");
    check_course(
        spent(all(), "7").hooked(1, "nothing", HookAnswer::default()),
        "token_budget_continuation max_budget_usd",
    );
    check_course(spent(new().with(one_dollar).submit("x"), "7"), "max_budget_usd");
}

#[test]
fn repetition_then_turns_then_money() {
    let again =
        |scenario: Scenario, n: u32| scenario.call("read a").ended(StopReason::ToolUse).finished(n, "same");
    let repeating =
        || (1..=5).fold(new().with(|config| config.repeats.end_after = 5).turns_max(6).submit("x"), again);
    check_course(repeating().call("read a").ended(StopReason::ToolUse), "repeated_call");
    let poor = || {
        let first = new().with(one_dollar).with(with_summaries).turns_max(2).submit("x").call("read a");
        first.ended(StopReason::ToolUse).finished(1, "A").call("read b").ended(StopReason::ToolUse)
    };
    check_course(poor().forked_for(1, "Read a", 1.0).finished(2, "B"), "max_turns");
    check_course(
        poor().with(|config| config.turns_max = Some(3)).forked_for(1, "Read a", 1.0).finished(2, "B"),
        "max_budget_usd",
    );
}
