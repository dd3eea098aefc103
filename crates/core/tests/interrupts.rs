//! Interrupts and failures of the log, in every phase: what runs is stopped, what is known is kept.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, transcript};
use windlass_core::{Interrupt, Priority, Prompt};
use windlass_permission::PermissionMode;
use windlass_protocol::{AmbientChanges, FailureClass, HookAnswer, HookEvent, StopReason, Terminal};

fn new() -> Scenario {
    Scenario::new().wordy()
}

fn hooked(events: &[HookEvent]) -> Scenario {
    new().with(|config| config.hooks.extend(events))
}

fn objects(text: &str) -> HookAnswer {
    HookAnswer { blocks: vec![text.into()], ..HookAnswer::default() }
}

#[test]
fn aborted_streaming_while_a_summary_is_written() {
    check(
        new()
            .submit("x")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .submit("y")
            .fails(FailureClass::Overflow)
            .interrupt(Interrupt::Stop)
            .forked(1, Terminal::Completed, "late"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1
        > submit y                   preparing streaming | call-model #2 [user assistant(text) user]
        < fails Overflow             again reactive_compact_retry | compacting reactive | fork f1 compact | settling preparing
        > interrupt                  cancel f1 | done | note The user interrupted this answer. | = aborted_streaming after 1
        > f1 completed late
        ",
    );
}

#[test]
fn aborted_streaming_while_hooks_are_asked_about_the_end() {
    check(
        hooked(&[HookEvent::Stop])
            .submit("x")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .interrupt(Interrupt::Stop)
            .hooked(1, "late", objects("no")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > interrupt                  cancel h1 | done | note The user interrupted this answer. | = aborted_streaming after 1
        > h1 says late
        ",
    );
    // An end by a failure stands; only the hooks that hear of it are let go.
    check(
        hooked(&[HookEvent::StopFailure]).submit("x").fails(FailureClass::Auth).interrupt(Interrupt::Stop),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Auth                 settling stopping | ask h1 StopFailure it failed
        > interrupt                  cancel h1 | done | failed api_error | = api_error after 1: it failed
        ",
    );
}

#[test]
fn aborted_streaming_while_a_request_waits() {
    check(
        new().submit("x").fails(FailureClass::Overloaded).interrupt(Interrupt::Stop).timer(1),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Overloaded           retry 1 of 10 in 375 | settling waiting | timer t1 375
        > interrupt                  done | note The user interrupted this answer. | = aborted_streaming after 1
        > timer t1
        ",
    );
}

#[test]
fn aborted_tools_while_looking_around_keeps_the_results() {
    let scenario = || {
        new()
            .with(|config| config.tools = [log::tool("TodoWrite")].into())
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .interrupt(Interrupt::Stop)
            .looked(1, "late", AmbientChanges::default())
    };
    check(
        scenario(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | look l1 []
        > interrupt                  done | note The user interrupted while tools were running. | = aborted_tools after 1
        > l1 finds late
        ",
    );
    assert_eq!(transcript(scenario()), ["user", "assistant(read)", "user(result)", "user"]);
}

#[test]
fn a_new_prompt_interrupts_without_a_word_in_every_phase() {
    let check = |scenario: Scenario, expected: &str| {
        check(scenario.steer("y").interrupt(Interrupt::Replace), expected);
    };
    check(
        new().submit("x").text("Well"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Well
        > steer y
        > interrupt                  cancel-model #1 | settling done | = aborted_streaming after 1
        ",
    );
    check(
        new().submit("x").fails(FailureClass::Overloaded),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Overloaded           retry 1 of 10 in 375 | settling waiting | timer t1 375
        > steer y
        > interrupt                  done | = aborted_streaming after 1
        ",
    );
    check(
        new().submit("x").fails(FailureClass::Overflow),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Overflow             again reactive_compact_retry | compacting reactive | fork f1 compact | settling preparing
        > steer y
        > interrupt                  cancel f1 | done | = aborted_streaming after 1
        ",
    );
    check(
        hooked(&[HookEvent::Stop]).submit("x").text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > steer y
        > interrupt                  cancel h1 | done | = aborted_streaming after 1
        ",
    );
    check(
        new().submit("x").call("read a").ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > steer y
        > interrupt                  cancel c1 | timer t1 800
        ",
    );
}

#[test]
fn prompts_that_waited_for_the_end_go_in_by_priority_with_the_next_one() {
    let prompt = |text: &str, priority| Prompt { id: Some(text.into()), priority, ..Prompt::from(text) };
    check(
        new()
            .submit_prompt("a", prompt("a", Priority::Next))
            .steer_prompt("later", prompt("later", Priority::Later))
            .steer_prompt("now", prompt("now", Priority::Now))
            .submit_prompt("b", prompt("b", Priority::Next)),
        "
        > submit a                   started a | preparing streaming | call-model #1 [user]
        > steer later
        > steer now                  cancel-model #1 | settling done | = aborted_streaming after 1
        > submit b                   started now,later,b | preparing streaming | call-model #2 [user user(now/later/b)]
        ",
    );
}

#[test]
fn store_failed_in_every_phase() {
    let errors = |outcome: &windlass_protocol::Outcome| outcome.errors.join(" ");
    let new = || new().showing_outcome(errors);
    let acting = || new().permission_mode(PermissionMode::BypassPermissions).submit("x");
    check(
        acting().text("Well").call("write a").store_fails().finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Well
        < call write a               examine c1
        > c1 is write a              run c1
        > log fails                  cancel-model #1 | cancel c1 | settling | timer t1 800
        > c1 finished A              result c1: A | done | = store_failed after 1 Stopped: the disk is full.
        ",
    );
    check(
        acting().call("read a").ended(StopReason::ToolUse).store_fails().finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > log fails                  cancel c1 | timer t1 800
        > c1 finished A              result c1: A | done | = store_failed after 1 Stopped: the disk is full.
        ",
    );
    check(
        new().submit("x").fails(FailureClass::Overflow).store_fails(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Overflow             again reactive_compact_retry | compacting reactive | fork f1 compact | settling preparing
        > log fails                  cancel f1 | done | = store_failed after 1 Stopped: the disk is full.
        ",
    );
    check(
        new().submit("x").fails(FailureClass::Overloaded).store_fails().timer(1),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Overloaded           retry 1 of 10 in 375 | settling waiting | timer t1 375
        > log fails                  done | = store_failed after 1 Stopped: the disk is full.
        > timer t1
        ",
    );
    check(
        hooked(&[HookEvent::Stop])
            .showing_outcome(errors)
            .submit("x")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .store_fails(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > log fails                  cancel h1 | done | = store_failed after 1 Stopped: the disk is full.
        ",
    );
    check(
        new().submit("x").text("Done.").ended(StopReason::EndTurn).store_fails(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1
        > log fails
        ",
    );
}
