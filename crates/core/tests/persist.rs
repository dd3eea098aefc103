//! What is put into the log, and when: before anything that follows from it.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check};
use windlass_core::{Config, Interrupt, Prompt};
use windlass_permission::PermissionMode;
use windlass_protocol::{Block, FailureClass, ModelCard, StopReason, ThinkingSupport};

fn new() -> Scenario {
    Scenario::new().showing_records().permission_mode(PermissionMode::BypassPermissions)
}

#[test]
fn a_turn_is_logged_before_it_is_shown_started_or_sent() {
    check(
        new()
            .submit("x")
            .text("Well.")
            .call("read a")
            .call("write b")
            .steer("and")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .finished(2, "B")
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   [said x] | [requested #1] | preparing streaming | call-model #1 [user]
        < text Well.                 [answered]
        < call read a                [answered] | examine c1
        > c1 is read a               [intended c1] | run c1
        < call write b               [answered] | examine c2
        > c2 is write b
        > steer and                  [queued and]
        < end tool_use               settling
        > c1 finished A              [finished c1] | [intended c2!] | run c2 | [result c1] | result c1
        > c2 finished B              [finished c2!] | [result c2] | result c2 | [said and] | said and | [dequeued] | [requested #2] | preparing streaming | call-model #2 [user assistant(text,read,write) user(result,result) user]
        < text Done.                 [answered]
        < end end_turn               [ended completed!] | settling done | = completed after 2
        ",
    );
}

#[test]
fn an_interrupt_logs_what_it_keeps() {
    check(
        new().submit("x").call("read a").delta("Now I").interrupt(Interrupt::Stop).finished(1, "A"),
        "
        > submit x                   [said x] | [requested #1] | preparing streaming | call-model #1 [user]
        < call read a                [answered] | examine c1
        > c1 is read a               [intended c1] | run c1
        < delta Now I
        > interrupt                  cancel-model #1 | [aborted] | aborted text Now I | cancel c1 | settling | timer t1 800
        > c1 finished A              [finished c1] | [result c1] | result c1 | [said The user interrupted this answer.] | done | note The user interrupted this answer. | [ended aborted_streaming!] | = aborted_streaming after 1
        ",
    );
}

#[test]
fn what_is_taken_back_and_changed_is_logged() {
    let with_fallback =
        |config: &mut Config| config.fallbacks = [ModelCard { ..ModelCard::unknown("other") }].into();
    check(
        new().with(with_fallback).submit("x").text("Half").fails(FailureClass::Cut).text("Whole."),
        "
        > submit x                   [said x] | [requested #1] | preparing streaming | call-model #1 [user]
        < text Half                  [answered]
        < fails Cut                  [retracted 1] | retract 1 | fall back from unnamed to other | again model_fallback | [requested #2] | settling preparing streaming | call-model #2 [user]
        < text Whole.                [answered]
        ",
    );
}

/// Wherever the log ends, it holds no thinking that was bound to something else.
#[test]
fn thinking_goes_before_what_it_was_bound_to() {
    let bound = |config: &mut Config| {
        let thinking =
            ThinkingSupport { is_adaptive: true, is_on_by_default: true, ..ThinkingSupport::default() };
        config.model =
            ModelCard { thinking, is_known: true, is_thinking_bound: true, ..ModelCard::unknown("m") };
    };
    let picture =
        Prompt { blocks: vec![Block::text("look"), Block::image("image/png", "AA==")], ..Prompt::default() };
    check(
        new()
            .with(bound)
            .submit_prompt("a picture", picture)
            .thinking("hm")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .fails(FailureClass::Media),
        "
        > submit a picture           [said look] | [requested #1] | preparing streaming | call-model #1 [user(look/picture)]
        < thinking hm                [answered]
        < call read a                [answered] | examine c1
        > c1 is read a               [intended c1] | run c1
        < end tool_use               settling
        > c1 finished A              [finished c1] | [result c1] | result c1 | [requested #2] | preparing streaming | call-model #2 [user(look/picture) assistant(thinking,read) user(result)]
        < fails Media                [thinking stripped from 1] | thinking stripped from 1 | [media stripped from 1] | media stripped from 1 | again media_strip_retry | [requested #3] | settling preparing streaming | call-model #3 [user(look/[Removed: a picture (image/png) that cannot be sent.]) assistant(read) user(result)]
        ",
    );
}

/// A call whose record could not be written did not start: nothing waits for it, and nobody calls it unknown.
#[test]
fn a_call_that_could_not_be_logged_never_started() {
    check(
        new().wordy().submit("x").call("write a").store_fails_before(&[1]),
        "
        > submit x                   [said x] | [requested #1] | preparing streaming | call-model #1 [user]
        < call write a               [answered] | examine c1
        > c1 is write a              [intended c1!] | run c1
        > log fails before [1]       cancel-model #1 | [result c1] | result c1 error: Not run: the session log cannot be written. | [ended store_failed!] | settling done | = store_failed after 1
        ",
    );
    // One that runs is told to stop, and has its time for it.
    check(
        new().wordy().submit("x").call("read a").call("read b").ended(StopReason::ToolUse).store_fails_before(&[2]).timer(1),
        "
        > submit x                   [said x] | [requested #1] | preparing streaming | call-model #1 [user]
        < call read a                [answered] | examine c1
        > c1 is read a               [intended c1] | run c1
        < call read b                [answered] | examine c2
        > c2 is read b               [intended c2] | run c2
        < end tool_use               settling
        > log fails before [2]       cancel c1 | timer t1 800
        > timer t1                   abandon c1 | [result c1] | result c1 error: Interrupted while running. It did not stop in time; what it did is unknown. | [result c2] | result c2 error: Not run: the session log cannot be written. | [ended store_failed!] | done | = store_failed after 1
        ",
    );
}

/// Whether the stop and its time limit were among what was not done, nobody can say.
#[test]
fn after_the_log_failed_calls_are_told_to_stop_again() {
    check(
        new().submit("x").call("write a").interrupt(Interrupt::Stop).store_fails().timer(1).timer(2),
        "
        > submit x                   [said x] | [requested #1] | preparing streaming | call-model #1 [user]
        < call write a               [answered] | examine c1
        > c1 is write a              [intended c1!] | run c1
        > interrupt                  cancel-model #1 | cancel c1 | settling | timer t1 800
        > log fails                  cancel-model #1 | cancel c1 | timer t2 800
        > timer t1
        > timer t2                   abandon c1 | [result c1] | result c1 error | [ended store_failed!] | done | = store_failed after 1
        ",
    );
}
