//! Every reason to go round again, as a scenario of its own: when it applies, and what the next iteration gets of it.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, check_transition};
use std::sync::Arc;
use windlass_core::{AnswerSchema, CheckAnswer, Config};
use windlass_protocol::{
    AmbientChanges, Block, FailureClass, HookAnswer, HookEvent, ModelCard, Prompt, RawValue, StopReason,
    Terminal, ToolOutput, Transition,
};

/// The log shows the model and the cap of each request.
fn caps() -> Scenario {
    Scenario::new()
        .with(|config| config.model.output_tokens_max = 128_000)
        .showing_requests(|request| format!("≤{}", request.output_tokens_max))
}

/// A small window, in which spans are collapsed early.
fn collapsing(config: &mut Config) {
    config.small_model = Some(ModelCard::unknown("small"));
    config.context.window_tokens = Some(20_000);
    config.context.output_reserve_tokens = Some(10_000);
    config.context.compact_margin_tokens = Some(0);
    config.context.stage_percent = 35;
    config.context.warning_margin_tokens = Some(5_000);
    config.context.blocking_margin_tokens = Some(3_000);
    config.context.span_tokens = 1_000;
    config.context.rounds_kept = 1;
    config.context.can_micro_compact = false;
}

/// A call whose result has about 2 000 tokens.
fn long_turn(scenario: Scenario, call: u32) -> Scenario {
    let outcome = ToolOutput::text(&"word ".repeat(1_000));
    scenario.call(&format!("read {call}")).ended(StopReason::ToolUse).finished_with(
        call,
        "finished long",
        outcome,
    )
}

#[derive(Debug)]
struct Number;

impl CheckAnswer for Number {
    fn check(&self, value: &RawValue) -> Result<(), String> {
        let is_number = value.get().parse::<f64>().is_ok();
        if is_number { Ok(()) } else { Err(format!("a number is expected, not {}.", value.get())) }
    }
}

fn number(retries_max: u32) -> AnswerSchema {
    let schema = RawValue::from_string(r#"{"type":"number"}"#.into()).unwrap();
    AnswerSchema { schema: schema.into(), check: Arc::new(Number), retries_max }
}

fn objects(text: &str) -> HookAnswer {
    HookAnswer { blocks: vec![text.into()], ..HookAnswer::default() }
}

#[test]
fn next_turn_takes_the_results_along_and_forgets_what_was_tried_for_the_last_request() {
    check(
        caps()
            .submit("x")
            .text("Half")
            .ended(StopReason::MaxTokens)
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .text("Half")
            .ended(StopReason::MaxTokens),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000
        < text Half
        < end max_tokens             retract 1 | again max_output_tokens_escalate | settling preparing streaming | call-model #2 [user] ≤64000
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #3 [user assistant(read) user(result)] ≤8000
        < text Half
        < end max_tokens             retract 1 | again max_output_tokens_escalate | settling preparing streaming | call-model #4 [user assistant(read) user(result)] ≤64000
        ",
    );
}

#[test]
fn next_turn_counts_iterations() {
    let turn = |scenario: Scenario, n: u32| {
        scenario.call(&format!("read {n}")).ended(StopReason::ToolUse).finished(n, "A")
    };
    check_transition(turn(Scenario::new().submit("x"), 1), Some(Transition::NextTurn));
    check(
        turn(turn(Scenario::new().submit("x"), 1), 2).text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read 1                examine c1
        > c1 is read 1               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read 2                examine c2
        > c2 is read 2               run c2
        < end tool_use               settling
        > c2 finished A              result c2 | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < text Done.
        < end end_turn               settling done | = completed after 3
        ",
    );
}

#[test]
fn collapse_drain_retry_commits_what_is_staged_and_sends_again() {
    let staged = || {
        let rounds = (1..=3).fold(Scenario::new().with(collapsing).submit("x"), long_turn);
        rounds.forked(1, Terminal::Completed, "They looked around.")
    };
    check(
        staged().fails(FailureClass::Overflow).text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read 1                examine c1
        > c1 is read 1               run c1
        < end tool_use               settling
        > c1 finished long           result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read 2                examine c2
        > c2 is read 2               run c2
        < end tool_use               settling
        > c2 finished long           result c2 | fork f1 collapse | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < call read 3                examine c3
        > c3 is read 3               run c3
        < end tool_use               settling
        > c3 finished long           result c3 | preparing streaming | call-model #4 [user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        > f1 completed They looked around. staged
        < fails Overflow             collapsed 1 | again collapse_drain_retry | fork f2 collapse | settling preparing streaming | call-model #5 [user collapsed assistant(read) user(result) assistant(read) user(result)]
        < text Done.
        < end end_turn               cancel f2 | settling done | = completed after 4
        ",
    );
    check_transition(staged().fails(FailureClass::Overflow), Some(Transition::CollapseDrainRetry));
}

#[test]
fn collapse_drain_retry_does_not_follow_itself() {
    check(
        (1..=4)
            .fold(Scenario::new().with(collapsing).submit("x"), long_turn)
            .forked(1, Terminal::Completed, "They looked around.")
            .fails(FailureClass::Overflow)
            .forked(2, Terminal::Completed, "They looked again.")
            .fails(FailureClass::Overflow),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read 1                examine c1
        > c1 is read 1               run c1
        < end tool_use               settling
        > c1 finished long           result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read 2                examine c2
        > c2 is read 2               run c2
        < end tool_use               settling
        > c2 finished long           result c2 | fork f1 collapse | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < call read 3                examine c3
        > c3 is read 3               run c3
        < end tool_use               settling
        > c3 finished long           result c3 | preparing streaming | call-model #4 [user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        < call read 4                examine c4
        > c4 is read 4               run c4
        < end tool_use               settling
        > c4 finished long           result c4 | preparing streaming | call-model #5 [user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        > f1 completed They looked around. staged
        < fails Overflow             collapsed 1 | again collapse_drain_retry | fork f2 collapse | settling preparing streaming | call-model #6 [user collapsed assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        > f2 completed They looked again. staged
        < fails Overflow             again reactive_compact_retry | compacting reactive | fork f3 compact | settling preparing
        ",
    );
}

#[test]
fn reactive_compact_retry_sends_the_compacted_conversation() {
    check(
        long_turn(Scenario::new().submit("x"), 1)
            .fails(FailureClass::Overflow)
            .forked(1, Terminal::Completed, "They read a file.")
            .looked(1, "nothing", AmbientChanges::default())
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read 1                examine c1
        > c1 is read 1               run c1
        < end tool_use               settling
        > c1 finished long           result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < fails Overflow             again reactive_compact_retry | compacting reactive | fork f1 compact | settling preparing
        > f1 completed They read a file. look l1 []
        > l1 finds nothing           compacted | streaming | call-model #3 [boundary]
        < text Done.
        < end end_turn               settling done | = completed after 2
        ",
    );
}

#[test]
fn max_output_tokens_escalate_asks_the_same_again_with_a_larger_cap() {
    check(
        caps()
            .submit("x")
            .text("A long")
            .ended(StopReason::MaxTokens)
            .text("A long answer.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000
        < text A long
        < end max_tokens             retract 1 | again max_output_tokens_escalate | settling preparing streaming | call-model #2 [user] ≤64000
        < text A long answer.
        < end end_turn               settling done | = completed after 1
        ",
    );
}

#[test]
fn max_output_tokens_recovery_keeps_the_half_and_asks_for_the_rest() {
    check(
        caps()
            .showing_outcome(|outcome| outcome.text.clone())
            .submit("x")
            .text("One,")
            .ended(StopReason::MaxTokens)
            .text("One, two,")
            .ended(StopReason::MaxTokens)
            .text(" three.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000
        < text One,
        < end max_tokens             retract 1 | again max_output_tokens_escalate | settling preparing streaming | call-model #2 [user] ≤64000
        < text One, two,
        < end max_tokens             note Your answer was cut at the output limit. Continue exactly where it stopped, even in the middle of a sentence: no apology, no recap. Split the rest into smaller pieces. | again max_output_tokens_recovery | settling preparing streaming | call-model #3 [user assistant(text) user] ≤64000
        < text  three.
        < end end_turn               settling done | = completed after 1 One, two, three.
        ",
    );
}

#[test]
fn stop_hook_blocking_tells_the_model_what_is_wrong_and_the_hook_that_it_did() {
    check(
        caps()
            .with(|config| config.hooks.extend([HookEvent::Stop]))
            .submit("x")
            .text("Half")
            .ended(StopReason::MaxTokens)
            .text("Done.")
            .ended(StopReason::EndTurn)
            .hooked(1, "no", objects("The tests fail."))
            .text("Fixed.")
            .ended(StopReason::EndTurn)
            .hooked(2, "nothing", HookAnswer::default()),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000
        < text Half
        < end max_tokens             retract 1 | again max_output_tokens_escalate | settling preparing streaming | call-model #2 [user] ≤64000
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > h1 says no                 note A stop hook wants you to continue: The tests fail. | again stop_hook_blocking | preparing streaming | call-model #3 [user assistant(text) user] ≤8000
        < text Fixed.
        < end end_turn               settling stopping | ask h2 Stop Fixed. (again)
        > h2 says nothing            done | = completed after 1
        ",
    );
}

#[test]
fn token_budget_continuation_says_how_much_is_spent() {
    check(
        Scenario::new()
            .with(|config| config.token_budget = Some(10_000))
            .submit("x")
            .text("Done.")
            .ended_at(StopReason::EndTurn, 100, 8_999)
            .text("Better.")
            .ended_at(StopReason::EndTurn, 100, 1),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 100+8999      note You have used 8999 of 10000 output tokens (89 %) that the user wants spent on this task. Continue: look for anything missing, wrong or untested, and improve it. | again token_budget_continuation | settling preparing streaming | call-model #2 [user assistant(text) user]
        < text Better.
        < end end_turn 100+1         settling done | = token_budget_completed after 1
        ",
    );
}

#[test]
fn structured_output_retry_says_what_is_wrong() {
    check(
        Scenario::new()
            .with(|config| config.answer = Some(number(5)))
            .showing_outcome(|outcome| {
                format!("{:?}", outcome.structured.as_ref().map(|value| value.0.get()))
            })
            .submit("x")
            .text("Seven")
            .ended(StopReason::EndTurn)
            .text("\"7\"")
            .ended(StopReason::EndTurn)
            .text("7")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Seven
        < end end_turn               note The answer is not a JSON value. Answer with only the JSON value. | again structured_output_retry | settling preparing streaming | call-model #2 [user assistant(text) user]
        < text \"7\"
        < end end_turn               note The answer does not match the schema: a number is expected, not \"7\". Answer again with only the whole corrected JSON value. | again structured_output_retry | settling preparing streaming | call-model #3 [user assistant(text) user assistant(text) user]
        < text 7
        < end end_turn               settling done | = completed after 1 Some(\"7\")
        ",
    );
}

#[test]
fn pause_turn_resume_adds_nothing() {
    check(
        Scenario::new()
            .showing_outcome(|outcome| outcome.text.clone())
            .submit("x")
            .text("Searching")
            .ended(StopReason::PauseTurn)
            .text(", found.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Searching
        < end pause_turn             again pause_turn_resume | settling preparing streaming | call-model #2 [user assistant(text)]
        < text , found.
        < end end_turn               settling done | = completed after 1 Searching, found.
        ",
    );
}

#[test]
fn empty_answer_nudge_comes_once_and_only_right_after_results() {
    let after_results =
        || Scenario::new().submit("x").call("read a").ended(StopReason::ToolUse).finished(1, "A");
    check(
        after_results().ended(StopReason::EndTurn).text("A it is.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < end end_turn               note You said nothing after the last results. Continue the work, or say what you found. | again empty_answer_nudge | settling preparing streaming | call-model #3 [user assistant(read) user(result) user]
        < text A it is.
        < end end_turn               settling done | = completed after 2
        ",
    );
    check(
        after_results().thinking("hm").ended(StopReason::EndTurn).ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < thinking hm
        < end end_turn               note You said nothing after the last results. Continue the work, or say what you found. | again empty_answer_nudge | settling preparing streaming | call-model #3 [user assistant(read) user(result) user]
        < end end_turn               settling done | = completed after 2
        ",
    );
    check(
        Scenario::new().submit("x").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < end end_turn               settling done | = completed after 1
        ",
    );
}

#[test]
fn model_fallback_takes_the_answer_back_and_asks_the_other_model() {
    check(
        Scenario::new()
            .with(|config| {
                config.model.id = "first".into();
                config.fallbacks = [ModelCard::unknown("second")].into();
            })
            .showing_requests(|request| request.model.to_string())
            .submit("x")
            .text("Half")
            .call("read a")
            .fails(FailureClass::Cut)
            .finished(1, "A")
            .text("Whole.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < text Half
        < call read a                examine c1
        > c1 is read a               run c1
        < fails Cut                  cancel c1 | retract 2 | fall back from first to second | settling | timer t1 800
        > c1 finished A              again model_fallback | preparing streaming | call-model #2 [user] second
        < text Whole.
        < end end_turn               settling done | = completed after 1
        ",
    );
}

/// A scenario whose last iteration began for this reason.
fn leading_to(transition: Transition) -> Scenario {
    let new = Scenario::new;
    let said = |scenario: Scenario| scenario.text("Done.").ended(StopReason::EndTurn);
    let called = || new().submit("x").call("read a").ended(StopReason::ToolUse).finished(1, "A");
    match transition {
        Transition::NextTurn => called(),
        Transition::CollapseDrainRetry => (1..=3)
            .fold(new().with(collapsing).submit("x"), long_turn)
            .forked(1, Terminal::Completed, "They looked around.")
            .fails(FailureClass::Overflow),
        Transition::ReactiveCompactRetry => new().submit("x").fails(FailureClass::Overflow),
        Transition::MediaStripRetry => {
            let blocks = vec![Block::image("image/png", "AAAA")];
            let picture = Prompt { blocks, ..Prompt::default() };
            new().submit_prompt("picture", picture).fails(FailureClass::Media)
        }
        Transition::ThinkingStripRetry => {
            let thought = new().submit("x").thinking("hm").call("read a").ended(StopReason::ToolUse);
            thought.finished(1, "A").fails(FailureClass::Binding)
        }
        Transition::MaxOutputTokensEscalate => new().submit("x").ended(StopReason::MaxTokens),
        Transition::MaxOutputTokensRecovery => {
            new().output_cap(100).submit("x").text("One").ended(StopReason::MaxTokens)
        }
        Transition::StopHookBlocking => {
            let hooked = new().with(|config| config.hooks.extend([HookEvent::Stop]));
            said(hooked.submit("x")).hooked(1, "no", objects("The tests fail."))
        }
        Transition::TokenBudgetContinuation => {
            said(new().with(|config| config.token_budget = Some(1_000)).submit("x"))
        }
        Transition::StructuredOutputRetry => {
            said(new().with(|config| config.answer = Some(number(1))).submit("x"))
        }
        Transition::PauseTurnResume => new().submit("x").text("One").ended(StopReason::PauseTurn),
        Transition::EmptyAnswerNudge => called().ended(StopReason::EndTurn),
        Transition::ModelFallback => {
            let fallbacks = |config: &mut Config| config.fallbacks = [ModelCard::unknown("second")].into();
            new().with(fallbacks).submit("x").fails(FailureClass::NotFound)
        }
    }
}

#[test]
fn the_state_says_why_the_loop_went_round() {
    for transition in Transition::ALL {
        check_transition(leading_to(transition), Some(transition));
    }
}
