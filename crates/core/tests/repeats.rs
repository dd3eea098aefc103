//! Calls that repeat themselves, as scenarios.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, course};
use windlass_core::RepeatPolicy;
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{Answer, FailureClass, StopReason};

/// The model is told from the second time on, and the user asked before the third.
fn strict() -> Scenario {
    Scenario::new()
        .wordy()
        .with(|config| config.repeats = RepeatPolicy { tell_after: 2, ask_after: 2, end_after: 2 })
}

/// One turn with one call and its result.
trait Turn {
    fn turn(self, call: u32, words: &str, result: &str) -> Self;
}

impl Turn for Scenario {
    fn turn(self, call: u32, words: &str, result: &str) -> Self {
        self.call(words).ended(StopReason::ToolUse).finished(call, result)
    }
}

#[test]
fn the_model_is_told_then_the_run_ends_if_nobody_can_be_asked() {
    check(
        strict()
            .submit("x")
            .turn(1, "read a", "A")
            .turn(2, "read a", "A")
            .call("read a")
            .call("read b")
            .ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished A              result c2: A/(You have made this call 2 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c3
        > c3 is read a               result c3 error: Not run. The same call gave the same result 2 times. Another try needs approval, and this session is not interactive.
        < call read b                result c4 error: Not run: the run ends because an earlier call repeated itself.
        < end tool_use               settling done | = repeated_call after 3
        ",
    );
}

#[test]
fn calls_that_wait_do_not_count() {
    let poll = |scenario: Scenario, n: u32| {
        scenario.call("read a").ended(StopReason::ToolUse).pause_ms(10_000).finished(n, "pending")
    };
    let quick = |scenario: Scenario, n: u32| scenario.turn(n, "read a", "pending");
    let course = |scenario: Scenario| {
        course(scenario.text("Ready.").ended(StopReason::EndTurn)).replace("next_turn ", "")
    };
    assert_eq!(course((1..=9).fold(strict().submit("x"), poll)), "completed");
    // A call that waits makes the others new.
    let between = |scenario: Scenario, n: u32| {
        let look = scenario.turn(2 * n - 1, "read a", "pending").call("read b").ended(StopReason::ToolUse);
        look.pause_ms(10_000).finished(2 * n, "slept")
    };
    assert_eq!(course((1..=5).fold(strict().submit("x"), between)), "completed");
    assert_eq!(
        course((1..=2).fold(strict().submit("x"), quick).call("read a").ended(StopReason::ToolUse)),
        "repeated_call"
    );
}

#[test]
fn a_person_who_allows_the_call_resets_its_count() {
    let third = |asking: Scenario| {
        asking
            .asking(Answerer::Person)
            .submit("x")
            .turn(1, "read a", "A")
            .turn(2, "read a", "A")
            .call("read a")
    };
    check(
        third(strict()).answer(3, Answer::Allow).ended(StopReason::ToolUse).finished(3, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished A              result c2: A/(You have made this call 2 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c3
        > c3 is read a               ask c3: The same call gave the same result 2 times.
        > answer c3                  run c3
        < end tool_use               settling
        > c3 finished A              result c3: A | preparing streaming | call-model #4 [user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        ",
    );
    check(
        third(strict()).ended(StopReason::ToolUse).answer(3, Answer::Deny("stop it".into())),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished A              result c2: A/(You have made this call 2 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c3
        > c3 is read a               ask c3: The same call gave the same result 2 times.
        < end tool_use               settling
        > answer c3                  denied c3: stop it | result c3 error: stop it | done | = repeated_call after 3
        ",
    );
    check(
        third(strict()).ended(StopReason::ToolUse).answer_changed(3, "read a"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished A              result c2: A/(You have made this call 2 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c3
        > c3 is read a               ask c3: The same call gave the same result 2 times.
        < end tool_use               settling
        > answer c3                  examine c3
        > c3 is read a               run c3
        ",
    );
}

#[test]
fn a_call_that_needs_permission_anyway_is_asked_about_once() {
    check(
        strict()
            .asking(Answerer::Person)
            .submit("x")
            .call("peek /etc")
            .answer(1, Answer::Allow)
            .finished(1, "A")
            .call("peek /etc")
            .answer(2, Answer::Allow)
            .finished(2, "A")
            .call("peek /etc"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call peek /etc             examine c1
        > c1 is peek /etc            ask c1: /etc/a is outside the working directories.
        > answer c1                  run c1
        > c1 finished A              result c1: A
        < call peek /etc             examine c2
        > c2 is peek /etc            ask c2: /etc/a is outside the working directories.
        > answer c2                  run c2
        > c2 finished A              result c2: A/(You have made this call 2 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).)
        < call peek /etc             examine c3
        > c3 is peek /etc            ask c3: /etc/a is outside the working directories. The same call gave the same result 2 times.
        ",
    );
}

#[test]
fn other_results_and_other_work_make_a_call_new() {
    let all = || strict().permission_mode(PermissionMode::BypassPermissions).submit("x");
    check(
        all().turn(1, "read a", "A").turn(2, "read a", "B").turn(3, "read a", "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished B              result c2: B | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c3
        > c3 is read a               run c3
        < end tool_use               settling
        > c3 finished A              result c3: A | preparing streaming | call-model #4 [user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        ",
    );
    check(
        all()
            .turn(1, "read a", "A")
            .turn(2, "write b", "ok")
            .turn(3, "read a", "A")
            .turn(4, "write c", "ok")
            .turn(5, "read a", "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call write b               examine c2
        > c2 is write b              run c2
        < end tool_use               settling
        > c2 finished ok             result c2: ok | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(write) user(result)]
        < call read a                examine c3
        > c3 is read a               run c3
        < end tool_use               settling
        > c3 finished A              result c3: A | preparing streaming | call-model #4 [user assistant(read) user(result) assistant(write) user(result) assistant(read) user(result)]
        < call write c               examine c4
        > c4 is write c              run c4
        < end tool_use               settling
        > c4 finished ok             result c4: ok | preparing streaming | call-model #5 [user assistant(read) user(result) assistant(write) user(result) assistant(read) user(result) assistant(write) user(result)]
        < call read a                examine c5
        > c5 is read a               run c5
        < end tool_use               settling
        > c5 finished A              result c5: A | preparing streaming | call-model #6 [user assistant(read) user(result) assistant(write) user(result) assistant(read) user(result) assistant(write) user(result) assistant(read) user(result)]
        ",
    );
}

#[test]
fn a_call_that_is_refused_again_and_again_ends_the_run() {
    check(
        strict()
            .submit("x")
            .call("nonsense")
            .call("nonsense")
            .call("nonsense")
            .ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call nonsense              examine c1
        > c1 is unknown              result c1 error: <tool_use_error>There is no tool nonsense; no tools are available.</tool_use_error>
        < call nonsense              examine c2
        > c2 is unknown              result c2 error: <tool_use_error>There is no tool nonsense; no tools are available.</tool_use_error>/(You have made this call 2 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).)
        < call nonsense              examine c3
        > c3 is unknown              result c3 error: <tool_use_error>There is no tool nonsense; no tools are available.</tool_use_error>/(You have made this call 3 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).)
        < end tool_use               settling done | = repeated_call after 1
        ",
    );
    check(
        strict().submit("x").call("write a").call("write a").call("write a").ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              denied c1: write of write a needs approval. Denied: not running interactively. To allow it: --allowedTools 'Edit(//project/a)', or --permission-mode acceptEdits. | result c1 error: write of write a needs approval. Denied: not running interactively. To allow it: --allowedTools 'Edit(//project/a)', or --permission-mode acceptEdits.
        < call write a               examine c2
        > c2 is write a              denied c2: write of write a needs approval. Denied: not running interactively. To allow it: --allowedTools 'Edit(//project/a)', or --permission-mode acceptEdits. | result c2 error: write of write a needs approval. Denied: not running interactively. To allow it: --allowedTools 'Edit(//project/a)', or --permission-mode acceptEdits./(You have made this call 2 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).)
        < call write a               examine c3
        > c3 is write a              denied c3: write of write a needs approval. Denied: not running interactively. To allow it: --allowedTools 'Edit(//project/a)', or --permission-mode acceptEdits. | result c3 error: write of write a needs approval. Denied: not running interactively. To allow it: --allowedTools 'Edit(//project/a)', or --permission-mode acceptEdits./(You have made this call 3 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).)
        < end tool_use               settling done | = repeated_call after 1
        ",
    );
}

#[test]
fn calls_of_a_response_that_does_not_stand_do_not_count() {
    check(
        strict()
            .submit("x")
            .call("read a")
            .finished(1, "A")
            .fails(FailureClass::Cut)
            .timer(1)
            .call("read a")
            .finished(2, "A")
            .fails(FailureClass::Cut)
            .timer(2)
            .call("read a")
            .finished(3, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > c1 finished A              result c1: A
        < fails Cut                  retract 2 | retry 1 of 10 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #2 [user] same
        < call read a                examine c2
        > c2 is read a               run c2
        > c2 finished A              result c2: A
        < fails Cut                  retract 2 | retry 2 of 10 in 750 | settling waiting | timer t2 750
        > timer t2                   streaming | call-model #3 [user] same
        < call read a                examine c3
        > c3 is read a               run c3
        > c3 finished A              result c3: A
        ",
    );
}

#[test]
fn calls_that_were_told_to_stop_do_not_count() {
    let cut = |scenario: Scenario, n: u32| {
        scenario.call("read a").fails(FailureClass::Cut).finished(n, "A").timer(2 * n)
    };
    check(
        cut(cut(strict().submit("x"), 1), 2).call("read a").finished(3, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < fails Cut                  cancel c1 | retract 1 | retry 1 of 10 in 375 | settling | timer t1 800
        > c1 finished A              waiting | timer t2 275
        > timer t2                   streaming | call-model #2 [user] same
        < call read a                examine c2
        > c2 is read a               run c2
        < fails Cut                  cancel c2 | retract 1 | retry 2 of 10 in 750 | settling | timer t3 800
        > c2 finished A              waiting | timer t4 650
        > timer t4                   streaming | call-model #3 [user] same
        < call read a                examine c3
        > c3 is read a               run c3
        > c3 finished A              result c3: A
        ",
    );
}

#[test]
fn a_new_prompt_starts_from_nothing() {
    check(
        strict()
            .submit("x")
            .turn(1, "read a", "A")
            .turn(2, "read a", "A")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .submit("again")
            .turn(3, "read a", "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished A              result c2: A/(You have made this call 2 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < text Done.
        < end end_turn               settling done | = completed after 3
        > submit again               preparing streaming | call-model #4 [user assistant(read) user(result) assistant(read) user(result) assistant(text) user]
        < call read a                examine c3
        > c3 is read a               run c3
        < end tool_use               settling
        > c3 finished A              result c3: A | preparing streaming | call-model #5 [user assistant(read) user(result) assistant(read) user(result) assistant(text) user assistant(read) user(result)]
        ",
    );
}
