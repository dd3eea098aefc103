//! Responses that break off, and how often they are asked for again.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check};
use windlass_permission::PermissionMode;
use windlass_protocol::{FailureClass, StopReason};

#[test]
fn a_failed_request_is_sent_again_byte_for_byte_and_its_blocks_are_taken_back() {
    check(
        Scenario::new()
            .submit("x")
            .text("Half")
            .call("read a")
            .fails(FailureClass::Cut)
            .finished(1, "A")
            .timer(2)
            .text("Whole.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Half
        < call read a                examine c1
        > c1 is read a               run c1
        < fails Cut                  cancel c1 | retract 2 | retry 1 of 10 in 375 | settling | timer t1 800
        > c1 finished A              waiting | timer t2 275
        > timer t2                   streaming | call-model #2 [user] same
        < text Whole.
        < end end_turn               settling done | = completed after 1
        ",
    );
}

#[test]
fn what_has_acted_stands_and_the_next_request_waits_its_pause() {
    let acts = |scenario: Scenario| {
        scenario.permission_mode(PermissionMode::BypassPermissions).submit("x").call("write a")
    };
    check(
        acts(Scenario::new())
            .fails(FailureClass::Overloaded)
            .finished(1, "written")
            .timer(1)
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < fails Overloaded           retry 1 of 10 in 375 | settling
        > c1 finished written        result c1 | preparing waiting | timer t1 275
        > timer t1                   streaming | call-model #2 [user assistant(write) user(result)]
        < text Done.
        < end end_turn               settling done | = completed after 2
        ",
    );
    check(
        acts(Scenario::new().retries_max(1)).fails(FailureClass::Cut).finished(1, "A").timer(1)
            .call("write b").fails(FailureClass::Cut).finished(2, "B"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < fails Cut                  retry 1 of 1 in 375 | settling
        > c1 finished A              result c1 | preparing waiting | timer t1 275
        > timer t1                   streaming | call-model #2 [user assistant(write) user(result)]
        < call write b               examine c2
        > c2 is write b              run c2
        < fails Cut                  cancel c2 | settling | timer t2 800
        > c2 finished B              result c2 | done | failed api_error | = api_error after 2: it failed Tried 2 times. Try again later.
        ",
    );
}

#[test]
fn failures_that_cannot_heal_end_the_run() {
    check(
        Scenario::new().submit("x").fails(FailureClass::Auth),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Auth                 settling done | failed api_error | = api_error after 1: it failed
        ",
    );
    check(
        Scenario::new().retries_max(0).submit("x").fails(FailureClass::Malformed),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Malformed            settling done | failed model_error | = model_error after 1: it failed
        ",
    );
    check(
        Scenario::new().retries_max(1).submit("x").fails(FailureClass::Overloaded).timer(1).fails(FailureClass::Overloaded),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Overloaded           retry 1 of 1 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #2 [user] same
        < fails Overloaded           settling done | failed api_error | = api_error after 1: it failed Tried 2 times. Try again later.
        ",
    );
}

#[test]
fn broken_responses_count_only_in_a_row() {
    check(
        Scenario::new().retries_max(1).permission_mode(PermissionMode::BypassPermissions).submit("x")
            .call("write a").fails(FailureClass::Cut).finished(1, "A").timer(1)
            .call("write b").ended(StopReason::ToolUse).finished(2, "B")
            .call("write c").fails(FailureClass::Cut),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < fails Cut                  retry 1 of 1 in 375 | settling
        > c1 finished A              result c1 | preparing waiting | timer t1 275
        > timer t1                   streaming | call-model #2 [user assistant(write) user(result)]
        < call write b               examine c2
        > c2 is write b              run c2
        < end tool_use               settling
        > c2 finished B              result c2 | preparing streaming | call-model #3 [user assistant(write) user(result) assistant(write) user(result)]
        < call write c               examine c3
        > c3 is write c              run c3
        < fails Cut                  retry 1 of 1 in 375 | settling
        ",
    );
}

#[test]
fn broken_responses_count_by_their_cause() {
    check(
        Scenario::new().permission_mode(PermissionMode::BypassPermissions).submit("x")
            .call("write a").fails(FailureClass::Cut).finished(1, "A").timer(1)
            .call("write b").fails(FailureClass::Cut).finished(2, "B").timer(2)
            .call("write c").fails(FailureClass::Stalled),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < fails Cut                  retry 1 of 10 in 375 | settling
        > c1 finished A              result c1 | preparing waiting | timer t1 275
        > timer t1                   streaming | call-model #2 [user assistant(write) user(result)]
        < call write b               examine c2
        > c2 is write b              run c2
        < fails Cut                  retry 2 of 10 in 750 | settling
        > c2 finished B              result c2 | preparing waiting | timer t2 650
        > timer t2                   streaming | call-model #3 [user assistant(write) user(result) assistant(write) user(result)]
        < call write c               examine c3
        > c3 is write c              run c3
        < fails Stalled              retry 3 of 4 in 1500 | settling
        ",
    );
}

#[test]
fn a_server_that_has_answered_before_is_tried_more_often() {
    let refused = |scenario: Scenario| {
        scenario
            .fails(FailureClass::Connect)
            .timer(1)
            .fails(FailureClass::Connect)
            .timer(2)
            .fails(FailureClass::Connect)
    };
    check(
        refused(Scenario::new().submit("x")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Connect              retry 1 of 2 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #2 [user] same
        < fails Connect              retry 2 of 2 in 750 | settling waiting | timer t2 750
        > timer t2                   streaming | call-model #3 [user] same
        < fails Connect              settling done | failed api_error | = api_error after 1: it failed Tried 3 times. Try again later.
        ",
    );
    check(
        refused(Scenario::new().submit("x").started().ended(StopReason::EndTurn).submit("y")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < started
        < end end_turn               settling done | = completed after 1
        > submit y                   preparing streaming | call-model #2 [user user]
        < fails Connect              retry 1 of 10 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #3 [user user] same
        < fails Connect              retry 2 of 10 in 750 | settling waiting | timer t2 750
        > timer t2                   streaming | call-model #4 [user user] same
        < fails Connect              retry 3 of 10 in 1500 | settling waiting | timer t3 1500
        ",
    );
}
