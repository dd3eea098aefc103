//! Fallback models: when they take over, and what becomes of half an answer.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, course};
use windlass_permission::PermissionMode;
use windlass_protocol::{FailureClass, ModelCard, StopReason};

/// The log shows the model of each request.
fn models(fallbacks: &[&str]) -> Scenario {
    let cards: Vec<ModelCard> = fallbacks.iter().map(|id| ModelCard::unknown(id)).collect();
    Scenario::new()
        .permission_mode(PermissionMode::BypassPermissions)
        .with(|config| {
            config.model.id = "first".into();
            config.fallbacks = cards.into();
        })
        .showing_requests(|request| request.model.to_string())
}

fn overloads(scenario: Scenario, timers: std::ops::RangeInclusive<u32>) -> Scenario {
    timers.fold(scenario, |scenario, timer| scenario.fails(FailureClass::Overloaded).timer(timer))
}

#[track_caller]
fn check_course(scenario: Scenario, expected: &str) {
    assert_eq!(course(scenario), expected);
}

#[test]
fn the_third_overload_in_a_row_brings_the_other_model() {
    check(
        overloads(models(&["second"]).submit("x"), 1..=2)
            .fails(FailureClass::Overloaded)
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < fails Overloaded           retry 1 of 10 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #2 [user] same first
        < fails Overloaded           retry 2 of 10 in 750 | settling waiting | timer t2 750
        > timer t2                   streaming | call-model #3 [user] same first
        < fails Overloaded           fall back from first to second | again model_fallback | settling preparing streaming | call-model #4 [user] second
        < text Done.
        < end end_turn               settling done | = completed after 1
        ",
    );
    // Another failure in between breaks the row.
    let mixed = overloads(models(&["second"]).submit("x"), 1..=2).fails(FailureClass::Server).timer(3);
    check_course(overloads(mixed, 4..=5), "");
}

#[test]
fn fallbacks_take_over_in_their_order_and_the_last_one_ends_the_run() {
    check(
        models(&["second", "third"])
            .submit("x")
            .fails(FailureClass::NotFound)
            .fails(FailureClass::NotFound)
            .fails(FailureClass::NotFound),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < fails NotFound             fall back from first to second | again model_fallback | settling preparing streaming | call-model #2 [user] second
        < fails NotFound             fall back from second to third | again model_fallback | settling preparing streaming | call-model #3 [user] third
        < fails NotFound             settling done | failed api_error | = api_error after 1: it failed
        ",
    );
}

#[test]
fn the_first_model_has_its_chance_again_with_the_next_submission() {
    check(
        models(&["second"])
            .submit("x")
            .fails(FailureClass::NotFound)
            .text("Done.")
            .ended(StopReason::EndTurn)
            .submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < fails NotFound             fall back from first to second | again model_fallback | settling preparing streaming | call-model #2 [user] second
        < text Done.
        < end end_turn               settling done | = completed after 1
        > submit y                   preparing streaming | call-model #3 [user assistant(text) user] first
        ",
    );
}

#[test]
fn half_an_answer_goes_to_the_fallback_at_once_and_without_one_is_asked_for_again() {
    let half = |scenario: Scenario| scenario.submit("x").thinking("hm").text("Half").fails(FailureClass::Cut);
    check(
        half(models(&["second"])),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < thinking hm
        < text Half
        < fails Cut                  retract 2 | fall back from first to second | again model_fallback | settling preparing streaming | call-model #2 [user] second
        ",
    );
    check(
        half(models(&[])).timer(1),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < thinking hm
        < text Half
        < fails Cut                  retract 2 | retry 1 of 10 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #2 [user] same first
        ",
    );
    // Nothing had come: the same model is asked again.
    check(
        models(&["second"]).submit("x").fails(FailureClass::Cut).timer(1),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < fails Cut                  retry 1 of 10 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #2 [user] same first
        ",
    );
}

#[test]
fn discarded_calls_are_never_answered_and_the_other_models_calls_are_new_ones() {
    check(
        models(&["second"])
            .submit("x")
            .call("read a")
            .finished(1, "A")
            .call("read b")
            .fails(FailureClass::Cut)
            .finished(2, "late")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(2, "later still")
            .finished(3, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < call read a                examine c1
        > c1 is read a               run c1
        > c1 finished A              result c1
        < call read b                examine c2
        > c2 is read b               run c2
        < fails Cut                  cancel c2 | retract 3 | fall back from first to second | settling | timer t1 800
        > c2 finished late           again model_fallback | preparing streaming | call-model #2 [user] second
        < call read a                examine c3
        > c3 is read a               run c3
        < end tool_use               settling
        > c2 finished later still
        > c3 finished A              result c3 | preparing streaming | call-model #3 [user assistant(read) user(result)] second
        ",
    );
}

#[test]
fn what_has_acted_stands_and_the_fallback_goes_on_from_there() {
    check(
        models(&["second"])
            .submit("x")
            .thinking("hm")
            .call("write a")
            .call("read b")
            .fails(FailureClass::Cut)
            .finished(1, "A")
            .finished(2, "B")
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < thinking hm
        < call write a               examine c1
        > c1 is write a              run c1
        < call read b
        < fails Cut                  thinking stripped from 1 | fall back from first to second | settling
        > c1 finished A              examine c2 | result c1
        > c2 is read b               run c2
        > c2 finished B              result c2 | preparing streaming | call-model #2 [user assistant(write,read) user(result,result)] second
        < text Done.
        < end end_turn               settling done | = completed after 2
        ",
    );
}
