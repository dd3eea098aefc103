//! Scenarios, written and read like a log: what is told to the core on the left, what it asks for on the right.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, check_transition, durations};
use windlass_core::{EarlyStart, Interrupt};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{Answer, FailureClass, StopReason, Transition};

#[test]
fn an_answer_without_tools_completes() {
    check(
        Scenario::new().submit("hi").started().text("Hello.").ended(StopReason::EndTurn),
        "
        > submit hi                  preparing streaming | call-model #1 [user]
        < started
        < text Hello.
        < end end_turn               settling done | = completed after 1
        ",
    );
}

#[test]
fn a_call_starts_while_the_model_still_talks() {
    check(
        Scenario::new()
            .submit("look")
            .call("read a")
            .finished(1, "A")
            .text("And now?")
            .ended(StopReason::ToolUse)
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit look                preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > c1 finished A              result c1
        < text And now?
        < end tool_use               settling preparing streaming | call-model #2 [user assistant(read,text) user(result)]
        < text Done.
        < end end_turn               settling done | = completed after 2
        ",
    );
}

#[test]
fn why_an_iteration_began_is_known_until_the_next_prompt() {
    let first = || Scenario::new().submit("x").call("read a").ended(StopReason::ToolUse);
    let second = || first().finished(1, "A");
    check_transition(Scenario::new(), None);
    check_transition(first(), None);
    check_transition(second(), Some(Transition::NextTurn));
    check_transition(second().text("Done.").ended(StopReason::EndTurn), Some(Transition::NextTurn));
    check_transition(second().fails(FailureClass::Cut).timer(1), Some(Transition::NextTurn));
    check_transition(second().text("Done.").ended(StopReason::EndTurn).submit("y"), None);
}

#[test]
fn an_exclusive_call_runs_alone_and_results_keep_their_order() {
    check(
        Scenario::new()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("work")
            .call("read a")
            .call("read b")
            .call("write c")
            .call("read d")
            .ended(StopReason::ToolUse)
            .finished(2, "B")
            .finished(1, "A")
            .finished(3, "C")
            .finished(4, "D"),
        "
        > submit work                preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < call write c               examine c3
        > c3 is write c
        < call read d
        < end tool_use               settling
        > c2 finished B
        > c1 finished A              run c3 | result c1 | result c2
        > c3 finished C              examine c4 | result c3
        > c4 is read d               run c4
        > c4 finished D              result c4 | preparing streaming | call-model #2 [user assistant(read,read,write,read) user(result,result,result,result)]
        ",
    );
}

#[test]
fn early_start_can_be_limited_to_reading_or_turned_off() {
    let calls = |scenario: Scenario| {
        scenario
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("read a")
            .call("write b")
            .finished(1, "A")
            .ended(StopReason::ToolUse)
    };
    check(
        calls(Scenario::new().early_start(EarlyStart::ReadOnly)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call write b               examine c2
        > c2 is write b
        > c1 finished A              result c1
        < end tool_use               settling | run c2
        ",
    );
    check(
        Scenario::new().early_start(EarlyStart::Off).submit("x").call("read a").ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a
        < end tool_use               settling | examine c1
        > c1 is read a               run c1
        ",
    );
}

#[test]
fn one_failing_call_leaves_its_siblings_alone() {
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .call("nonsense b")
            .call("broken c")
            .ended(StopReason::ToolUse)
            .failed_call(1, "cannot read"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call nonsense b            examine c2
        > c2 is unknown
        < call broken c              examine c3
        > c3 is invalid
        < end tool_use               settling
        > c1 failed cannot read      result c1 error | result c2 error | result c3 error | preparing streaming | call-model #2 [user assistant(read,nonsense,broken) user(result!,result!,result!)]
        ",
    );
}

#[test]
fn input_that_is_not_complete_never_runs() {
    check(
        Scenario::new().output_cap(8_000).submit("x").truncated_call().ended(StopReason::MaxTokens),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < truncated call             result c1 error
        < end max_tokens             settling preparing streaming | call-model #2 [user assistant(write) user(result!)]
        ",
    );
}

#[test]
fn the_limit_of_turns_collects_results_and_ends() {
    check(
        Scenario::new().turns_max(1).submit("x").call("read a").ended(StopReason::ToolUse).finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | done | = max_turns after 1
        ",
    );
}

#[test]
fn an_interrupt_while_streaming_keeps_what_was_said_and_answers_every_call() {
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .call("write b")
            .delta("half a sen")
            .interrupt(Interrupt::Stop)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call write b               examine c2
        > c2 is write b              denied c2
        < delta half a sen
        > interrupt                  cancel-model #1 | aborted text half a sen | cancel c1 | settling | timer t1 800
        > c1 finished A              result c1 | result c2 error | done | note The user interrupted this answer. | = aborted_streaming after 1
        ",
    );
}

#[test]
fn an_interrupt_while_tools_run_waits_for_them_but_not_for_ever() {
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .interrupt(Interrupt::Stop)
            .finished(1, "A")
            .timer(1),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use               settling
        > interrupt                  cancel c1 | cancel c2 | timer t1 800
        > c1 finished A              result c1
        > timer t1                   abandon c2 | result c2 error | done | note The user interrupted while tools were running. | = aborted_tools after 1
        ",
    );
}

#[test]
fn a_replacing_interrupt_says_nothing_and_keeps_the_new_message() {
    check(
        Scenario::new().submit("x").text("Well").steer("no, y").interrupt(Interrupt::Replace).submit("z"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Well
        > steer no, y
        > interrupt                  cancel-model #1 | settling done | = aborted_streaming after 1
        > submit z                   preparing streaming | call-model #2 [user assistant(text) user(no, y/z)]
        ",
    );
}

#[test]
fn an_edit_may_finish_when_the_user_only_says_something_else() {
    let editing = |scenario: Scenario| {
        scenario
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("write a")
            .ended(StopReason::ToolUse)
    };
    check(
        editing(Scenario::new()).steer("y").interrupt(Interrupt::Replace).finished(1, "written"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < end tool_use               settling
        > steer y
        > interrupt
        > c1 finished written        result c1 | done | = aborted_tools after 1
        ",
    );
    check(
        editing(Scenario::new()).interrupt(Interrupt::Stop),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < end tool_use               settling
        > interrupt                  cancel c1 | timer t1 800
        ",
    );
}

#[test]
fn a_steered_message_goes_in_behind_the_next_results() {
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .steer("hurry")
            .ended(StopReason::ToolUse)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > steer hurry
        < end tool_use               settling
        > c1 finished A              result c1 | said hurry | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        ",
    );
}

#[test]
fn a_call_without_input_waits_for_what_follows_and_does_not_run_if_nothing_can() {
    check(
        Scenario::new().output_cap(8_000).submit("x").empty_call().ended(StopReason::MaxTokens),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < empty call
        < end max_tokens             result c1 error | settling preparing streaming | call-model #2 [user assistant(read) user(result!)]
        ",
    );
    check(
        Scenario::new().submit("x").empty_call().text("and").ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < empty call
        < text and                   examine c1
        > c1 is                      run c1
        < end tool_use               settling
        ",
    );
}

#[test]
fn an_interrupt_during_the_pause_of_a_retry_ends_the_run() {
    check(
        Scenario::new().submit("x").fails(FailureClass::Overloaded).interrupt(Interrupt::Stop).timer(1),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Overloaded           retry 1 of 10 in 375 | settling waiting | timer t1 375
        > interrupt                  done | note The user interrupted this answer. | = aborted_streaming after 1
        > timer t1
        ",
    );
}

#[test]
fn a_refusal_takes_the_answer_back_unless_it_has_acted() {
    check(
        Scenario::new().submit("x").text("Sure").ended(StopReason::Refusal),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Sure
        < end refusal                retract 1 | settling done | = refused after 1
        ",
    );
}

#[test]
fn a_call_takes_as_long_as_it_runs_and_not_until_its_result_is_shown() {
    let calls = || Scenario::new().submit("x").call("read a").call("read b").ended(StopReason::ToolUse);
    assert_eq!(durations(calls().finished(2, "B").finished(1, "A")), ["c2 200 ms", "c1 500 ms"]);
    assert_eq!(
        durations(calls().finished(2, "B").interrupt(Interrupt::Stop).finished(1, "A")),
        ["c2 200 ms", "c1 600 ms"]
    );
}

#[test]
fn a_question_holds_exclusive_calls_but_not_shared_ones() {
    check(
        Scenario::new()
            .asking(Answerer::Person)
            .submit("x")
            .call("peek /etc/a")
            .call("read b")
            .call("write c")
            .ended(StopReason::ToolUse)
            .answer(1, Answer::Allow)
            .finished(1, "etc")
            .finished(2, "B")
            .answer(3, Answer::Deny("leave it".into())),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call peek /etc/a           examine c1
        > c1 is peek /etc/a          ask c1
        < call read b                examine c2
        > c2 is read b               run c2
        < call write c               examine c3
        > c3 is write c              ask c3
        < end tool_use               settling
        > answer c1                  run c1
        > c1 finished etc            result c1
        > c2 finished B              result c2
        > answer c3                  denied c3 | result c3 error | preparing streaming | call-model #2 [user assistant(peek,read,write) user(result,result,result!)]
        ",
    );
}

#[test]
fn a_changed_input_is_examined_again_but_not_asked_about_again() {
    check(
        Scenario::new()
            .asking(Answerer::Person)
            .submit("x")
            .call("write a")
            .answer_changed(1, "write b")
            .finished(1, "written"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask c1
        > answer c1                  examine c1
        > c1 is write b              run c1 with write b
        > c1 finished written        result c1
        ",
    );
}

#[test]
fn an_interrupt_cancels_a_read_also_when_something_else_is_said_and_each_call_once() {
    let working = |scenario: Scenario, call: &str| {
        scenario
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call(call)
            .ended(StopReason::ToolUse)
            .interrupt(Interrupt::Replace)
            .interrupt(Interrupt::Stop)
            .interrupt(Interrupt::Stop)
            .finished(1, "A")
    };
    check(
        working(Scenario::new(), "read a"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > interrupt                  cancel c1 | timer t1 800
        > interrupt
        > interrupt
        > c1 finished A              result c1 | done | = aborted_tools after 1
        ",
    );
    check(
        working(Scenario::new(), "write a"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < end tool_use               settling
        > interrupt
        > interrupt                  cancel c1 | timer t1 800
        > interrupt
        > c1 finished A              result c1 | done | = aborted_tools after 1
        ",
    );
}

#[test]
fn an_interrupt_does_not_change_an_end_that_was_decided() {
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .call("read b")
            .fails(FailureClass::Auth)
            .interrupt(Interrupt::Stop)
            .finished(1, "A")
            .finished(2, "B"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < fails Auth                 cancel c1 | cancel c2 | settling | timer t1 800
        > interrupt
        > c1 finished A              result c1
        > c2 finished B              result c2 | done | failed api_error | = api_error after 1: it failed
        ",
    );
}

#[test]
fn an_interrupt_before_a_retry_ends_the_run_while_the_model_was_answering() {
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .fails(FailureClass::Cut)
            .interrupt(Interrupt::Stop)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < fails Cut                  cancel c1 | retract 1 | retry 1 of 10 in 375 | settling | timer t1 800
        > interrupt
        > c1 finished A              done | note The user interrupted this answer. | = aborted_streaming after 1
        ",
    );
}

#[test]
fn a_call_that_an_answer_made_exclusive_waits_for_the_later_ones_that_run() {
    check(
        Scenario::new()
            .asking(Answerer::Person)
            .submit("x")
            .call("peek /etc/a")
            .call("read b")
            .call("read c")
            .ended(StopReason::ToolUse)
            .answer_changed(1, "write /project/a")
            .finished(2, "B")
            .finished(3, "C"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call peek /etc/a           examine c1
        > c1 is peek /etc/a          ask c1
        < call read b                examine c2
        > c2 is read b               run c2
        < call read c                examine c3
        > c3 is read c               run c3
        < end tool_use               settling
        > answer c1                  examine c1
        > c1 is write /project/a
        > c2 finished B
        > c3 finished C              run c1 with write /project/a
        ",
    );
}
