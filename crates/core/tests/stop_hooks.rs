//! Hooks at the end of a run, as scenarios.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check};
use windlass_core::{CompactionPolicy, Interrupt};
use windlass_protocol::{FailureClass, HookAnswer, HookEnding, HookEvent, HookRun, StopReason};

fn hooked(events: &[HookEvent]) -> Scenario {
    Scenario::new().wordy().with(|config| config.hooks.extend(events))
}

fn nothing() -> HookAnswer {
    HookAnswer::default()
}

fn objects(text: &str) -> HookAnswer {
    HookAnswer { blocks: vec![text.into()], ..HookAnswer::default() }
}

fn stops(reason: &str) -> HookAnswer {
    HookAnswer { stop: Some(reason.into()), ..HookAnswer::default() }
}

#[test]
fn a_stop_hook_that_objects_makes_the_model_go_on() {
    check(
        hooked(&[HookEvent::Stop])
            .submit("x")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .hooked(1, "no", objects("tests fail"))
            .text("Really done.")
            .ended(StopReason::EndTurn)
            .hooked(2, "nothing", nothing()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > h1 says no                 note A stop hook wants you to continue: tests fail | again stop_hook_blocking | preparing streaming | call-model #2 [user assistant(text) user]
        < text Really done.
        < end end_turn               settling stopping | ask h2 Stop Really done. (again)
        > h2 says nothing            done | = completed after 1
        ",
    );
}

#[test]
fn a_stop_hook_that_objects_again_and_again_is_overruled() {
    check(
        hooked(&[HookEvent::Stop])
            .with(|config| config.stop_hook_blocks_max = 1)
            .submit("x")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .hooked(1, "no", objects("tests fail"))
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .hooked(2, "no", objects("tests fail")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > h1 says no                 note A stop hook wants you to continue: tests fail | again stop_hook_blocking | preparing streaming | call-model #2 [user assistant(text) user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #3 [user assistant(text) user assistant(read) user(result)]
        < text Done.
        < end end_turn               settling stopping | ask h2 Stop Done. (again)
        > h2 says no                 notice Stop hooks blocked the end of the run 1 times in a row, the limit; it ends anyway: tests fail | done | = completed after 2
        ",
    );
}

#[test]
fn a_stop_hook_can_end_the_run_unless_another_objects() {
    let done = || hooked(&[HookEvent::Stop]).submit("x").text("Done.").ended(StopReason::EndTurn);
    check(
        done().hooked(1, "stop", stops("that is enough")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > h1 says stop               notice A stop hook ended the run: that is enough | done | = stop_hook_prevented after 1
        ",
    );
    check(
        done().hooked(1, "both", HookAnswer { stop: Some("enough".into()), ..objects("no") }),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > h1 says both               note A stop hook wants you to continue: no | again stop_hook_blocking | preparing streaming | call-model #2 [user assistant(text) user]
        ",
    );
    check(
        done()
            .with(|config| config.stop_hook_blocks_max = 0)
            .hooked(1, "both", HookAnswer { stop: Some("enough".into()), ..objects("no") }),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > h1 says both               notice Stop hooks blocked the end of the run 0 times in a row, the limit; it ends anyway: no | notice A stop hook ended the run: enough | done | = stop_hook_prevented after 1
        ",
    );
    check(
        done().interrupt(Interrupt::Stop).hooked(1, "late", objects("no")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > interrupt                  cancel h1 | done | note The user interrupted this answer. | = aborted_streaming after 1
        > h1 says late
        ",
    );
}

#[test]
fn what_stop_hooks_did_is_reported_in_one_update() {
    let ran = |answer: HookAnswer| {
        let run = |hook: &str, duration_ms| HookRun {
            hook: hook.into(),
            duration_ms,
            ending: HookEnding::Worked,
            said: String::new(),
        };
        HookAnswer { runs: vec![run("tests", 1_200), run("lint", 30)], ..answer }
    };
    let done = || hooked(&[HookEvent::Stop]).submit("x").text("Done.").ended(StopReason::EndTurn);
    let check_says = |scenario: Scenario, words: &str, expected: &str| {
        check(
            scenario,
            &format!(
                "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        {:<29}{expected}
        ",
                format!("> h1 says {words}")
            ),
        );
    };
    check_says(
        done().hooked(1, "nothing", ran(nothing())),
        "nothing",
        "stop hooks passed [tests 1200 ms, lint 30 ms] | done | = completed after 1",
    );
    check_says(
        done().hooked(1, "no", ran(objects("tests fail"))),
        "no",
        "stop hooks blocked [tests 1200 ms, lint 30 ms] tests fail | note A stop hook wants you to continue: tests fail | again stop_hook_blocking | preparing streaming | call-model #2 [user assistant(text) user]",
    );
    check_says(
        done().hooked(1, "stop", ran(stops("enough"))),
        "stop",
        "notice A stop hook ended the run: enough | stop hooks prevented [tests 1200 ms, lint 30 ms] enough | done | = stop_hook_prevented after 1",
    );
    check_says(
        done().with(|config| config.stop_hook_blocks_max = 0).hooked(1, "no", ran(objects("tests fail"))),
        "no",
        "notice Stop hooks blocked the end of the run 0 times in a row, the limit; it ends anyway: tests fail | stop hooks overruled [tests 1200 ms, lint 30 ms] tests fail | done | = completed after 1",
    );
}

#[test]
fn after_a_failure_only_failure_hooks_run_and_nobody_waits_for_them() {
    check(
        hooked(&[HookEvent::Stop, HookEvent::StopFailure]).submit("x").fails(FailureClass::Auth).hooked(
            1,
            "no",
            objects("go on"),
        ),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Auth                 settling stopping | ask h1 StopFailure it failed
        > h1 says no                 done | failed api_error | = api_error after 1: it failed
        ",
    );
}

#[test]
fn failure_hooks_hear_of_every_end_that_the_provider_is_the_cause_of() {
    let failed = || hooked(&[HookEvent::Stop, HookEvent::StopFailure]).submit("x");
    check(
        failed().fails(FailureClass::Media).hooked(1, "no", objects("go on")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Media                settling stopping | ask h1 StopFailure it failed
        > h1 says no                 done | failed image_error | = image_error after 1: it failed
        ",
    );
    check(
        hooked(&[HookEvent::StopFailure])
            .with(|config| config.context.compaction = CompactionPolicy::OnRequest)
            .submit("x")
            .fails(FailureClass::Overflow)
            .hooked(1, "no", objects("go on")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails Overflow             settling stopping | ask h1 StopFailure it failed
        > h1 says no                 done | failed prompt_too_long | = prompt_too_long after 1: it failed; The context window is full, and automatic compaction is off (autoCompactEnabled, DISABLE_AUTO_COMPACT). Use /compact, or start a new session.
        ",
    );
    check(
        hooked(&[HookEvent::StopFailure])
            .with(|config| config.output.recoveries_max = 0)
            .output_cap(100)
            .submit("x")
            .text("One")
            .ended(StopReason::MaxTokens)
            .hooked(1, "no", objects("go on")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text One
        < end max_tokens             settling stopping | ask h1 StopFailure max_output_tokens
        > h1 says no                 done | failed max_output_tokens | = max_output_tokens after 1
        ",
    );
}

#[test]
fn a_run_that_is_dropped_while_hooks_are_asked_keeps_what_was_done() {
    check(
        hooked(&[HookEvent::PreToolUse, HookEvent::PostToolUse])
            .submit("x")
            .call("read a")
            .hooked(1, "nothing", nothing())
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says nothing            run c1
        < call read b                examine c2
        > c2 is read b               ask h2 PreToolUse read b
        < end tool_use               settling
        > c1 finished A              ask h3 PostToolUse read a
        > submit y                   preparing streaming | call-model #2 [user assistant(read,read) user(result,result!) user]
        ",
    );
}
