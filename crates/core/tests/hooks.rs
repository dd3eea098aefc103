//! Hooks around calls and at the end of a run, as scenarios.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, input};
use windlass_core::{Interrupt, RunSource};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{Answer, FailureClass, HookAnswer, HookEvent, HookPermission, StopReason};

fn hooked(events: &[HookEvent]) -> Scenario {
    Scenario::new().wordy().with(|config| config.hooks.extend(events))
}

fn before() -> Scenario {
    hooked(&[HookEvent::PreToolUse])
}

fn after() -> Scenario {
    hooked(&[HookEvent::PostToolUse, HookEvent::PostToolUseFailure])
}

fn nothing() -> HookAnswer {
    HookAnswer::default()
}

fn wants(permission: HookPermission) -> HookAnswer {
    HookAnswer { permission: Some(permission), ..HookAnswer::default() }
}

fn objects(text: &str) -> HookAnswer {
    HookAnswer { blocks: vec![text.into()], ..HookAnswer::default() }
}

fn stops(reason: &str) -> HookAnswer {
    HookAnswer { stop: Some(reason.into()), ..HookAnswer::default() }
}

fn changes(words: &str) -> HookAnswer {
    HookAnswer { input: Some(input(words)), ..HookAnswer::default() }
}

fn adds(text: &str) -> HookAnswer {
    HookAnswer { context: vec![text.into()], ..HookAnswer::default() }
}

#[test]
fn nothing_begins_before_a_hook_has_answered() {
    check(
        before()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("write a")
            .ended(StopReason::ToolUse)
            .hooked(1, "nothing", nothing())
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PreToolUse write a
        < end tool_use               settling
        > h1 says nothing            run c1
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(write) user(result)]
        ",
    );
}

#[test]
fn calls_without_a_valid_input_are_not_shown_to_hooks() {
    check(
        before().submit("x").call("broken a").call("nonsense b").ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call broken a              examine c1
        > c1 is invalid              result c1 error: <tool_use_error>`words` is wrong</tool_use_error>
        < call nonsense b            examine c2
        > c2 is unknown              result c2 error: <tool_use_error>There is no tool nonsense; no tools are available.</tool_use_error>
        < end tool_use               settling preparing streaming | call-model #2 [user assistant(broken,nonsense) user(result!,result!)]
        ",
    );
}

#[test]
fn an_objection_or_a_denial_keeps_a_call_from_running_in_every_mode() {
    check(
        before()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("read a")
            .hooked(1, "no", objects("not this file"))
            .call("read b")
            .hooked(2, "deny", wants(HookPermission::Deny("nor this".into())))
            .ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says no                 denied c1: A hook denied this call: not this file | result c1 error: A hook denied this call: not this file
        < call read b                examine c2
        > c2 is read b               ask h2 PreToolUse read b
        > h2 says deny               denied c2: A hook denied this call: nor this | result c2 error: A hook denied this call: nor this
        < end tool_use               settling preparing streaming | call-model #2 [user assistant(read,read) user(result!,result!)]
        ",
    );
}

#[test]
fn a_hook_that_allows_spares_the_question_but_beats_no_rule() {
    let allowed = |scenario: Scenario| {
        scenario.asking(Answerer::Person).submit("x").call("write a").hooked(
            1,
            "allow",
            wants(HookPermission::Allow),
        )
    };
    check(
        allowed(before()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PreToolUse write a
        > h1 says allow              run c1
        ",
    );
    check(
        allowed(before().permission_mode(PermissionMode::Plan)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PreToolUse write a
        > h1 says allow              denied c1: Plan mode allows only reading. | result c1 error: Plan mode allows only reading.
        ",
    );
    let forbid = |config: &mut windlass_core::Config| {
        config.permissions.rules = windlass_permission::Rules::about_tools(
            windlass_permission::Behaviour::Deny,
            ["write"].into_iter(),
        );
    };
    check(
        allowed(before().with(forbid)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PreToolUse write a
        > h1 says allow              denied c1: The rule write (this session) denies this call. | result c1 error: The rule write (this session) denies this call.
        ",
    );
}

#[test]
fn a_hook_that_asks_is_heard_even_where_everything_runs() {
    check(
        before()
            .permission_mode(PermissionMode::BypassPermissions)
            .asking(Answerer::Person)
            .submit("x")
            .call("read a")
            .hooked(1, "ask", wants(HookPermission::Ask("sure?".into())))
            .answer(1, Answer::Allow),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says ask                ask c1: A hook requires approval: sure?
        > answer c1                  run c1
        ",
    );
}

#[test]
fn a_changed_input_is_examined_again_but_hooks_are_not_asked_again() {
    check(
        before()
            .submit("x")
            .call("read a")
            .hooked(1, "read b", changes("read b"))
            .ended(StopReason::ToolUse)
            .finished(1, "B"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says read b             examine c1
        > c1 is read b               run c1 with read b
        < end tool_use               settling
        > c1 finished B              result c1: B | preparing streaming | call-model #2 [user assistant(read) user(result)]
        ",
    );
    check(
        before().submit("x").call("read a").hooked(1, "write b", changes("write b")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says write b            examine c1
        > c1 is write b              denied c1: read of write b needs approval. Denied: not running interactively. To allow it: --allowedTools 'Edit(//project/a)', or --permission-mode acceptEdits. | result c1 error: read of write b needs approval. Denied: not running interactively. To allow it: --allowedTools 'Edit(//project/a)', or --permission-mode acceptEdits.
        ",
    );
}

#[test]
fn shared_calls_wait_for_their_hooks_side_by_side_and_exclusive_ones_in_order() {
    check(
        before()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("read a")
            .call("read b")
            .call("write c")
            .call("read d")
            .ended(StopReason::ToolUse)
            .hooked(2, "nothing", nothing())
            .hooked(1, "nothing", nothing())
            .hooked(3, "nothing", nothing())
            .finished(1, "A")
            .finished(2, "B")
            .finished(3, "C")
            .hooked(4, "nothing", nothing()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        < call read b                examine c2
        > c2 is read b               ask h2 PreToolUse read b
        < call write c               examine c3
        > c3 is write c              ask h3 PreToolUse write c
        < call read d
        < end tool_use               settling
        > h2 says nothing            run c2
        > h1 says nothing            run c1
        > h3 says nothing
        > c1 finished A              result c1: A
        > c2 finished B              run c3 | result c2: B
        > c3 finished C              examine c4 | result c3: C
        > c4 is read d               ask h4 PreToolUse read d
        > h4 says nothing            run c4
        ",
    );
}

#[test]
fn an_early_call_that_a_hook_makes_exclusive_waits_until_it_is_alone() {
    check(
        before()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("read a")
            .call("read b")
            .hooked(2, "nothing", nothing())
            .hooked(1, "write a", changes("write a"))
            .finished(2, "B")
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        < call read b                examine c2
        > c2 is read b               ask h2 PreToolUse read b
        > h2 says nothing            run c2
        > h1 says write a            examine c1
        > c1 is write a
        > c2 finished B              run c1 with write a
        > c1 finished A              result c1: A | result c2: B
        ",
    );
}

#[test]
fn a_call_that_a_hook_puts_off_ends_the_run_once_the_others_are_answered() {
    check(
        before()
            .submit("x")
            .call("read a")
            .hooked(1, "nothing", nothing())
            .call("read b")
            .hooked(2, "later", wants(HookPermission::Defer))
            .ended(StopReason::ToolUse)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says nothing            run c1
        < call read b                examine c2
        > c2 is read b               ask h2 PreToolUse read b
        > h2 says later
        < end tool_use               settling
        > c1 finished A              result c1: A | result c2 error: Not run: a hook deferred this call until the session is resumed. | done | = tool_deferred after 1
        ",
    );
}

#[test]
fn a_hook_before_a_call_can_end_the_run_and_nothing_else_starts() {
    check(
        before()
            .submit("x")
            .call("read a")
            .hooked(1, "nothing", nothing())
            .call("read b")
            .call("read c")
            .hooked(2, "stop", stops("enough"))
            .call("read d")
            .ended(StopReason::ToolUse)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says nothing            run c1
        < call read b                examine c2
        > c2 is read b               ask h2 PreToolUse read b
        < call read c                examine c3
        > c3 is read c               ask h3 PreToolUse read c
        > h2 says stop               cancel-model #1 | cancel h3 | cancel c1 | settling | timer t1 800
        < call read d
        < end tool_use
        > c1 finished A              result c1: A | result c2 error: Not run: a hook ended the run before this call started. | result c3 error: Not run: a hook ended the run before this call started. | done | = hook_stopped after 1
        ",
    );
}

#[test]
fn what_hooks_say_after_a_call_reaches_the_model_with_the_result() {
    check(
        after()
            .submit("x")
            .call("read a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .failed_call(2, "B failed")
            .hooked(2, "more", adds("try c"))
            .hooked(1, "no", HookAnswer { notices: vec!["slow hook".into()], ..objects("not formatted") }),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use               settling
        > c1 finished A              ask h1 PostToolUse read a
        > c2 failed B failed         ask h2 PostToolUseFailure read b
        > h2 says more
        > h1 says no                 notice slow hook | result c1: A/(A hook objects to this call: not formatted) | result c2 error: B failed/(try c) | preparing streaming | call-model #2 [user assistant(read,read) user(result,result!)]
        ",
    );
}

#[test]
fn what_hooks_add_before_a_call_reaches_the_model_with_the_result() {
    check(
        before().submit("x").call("read a").hooked(1, "more", adds("a is generated")).finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says more               run c1
        > c1 finished A              result c1: A/(a is generated)
        ",
    );
}

#[test]
fn a_call_under_review_holds_later_ones_if_it_is_exclusive() {
    check(
        after()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("write a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .hooked(1, "nothing", nothing()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < call read b
        < end tool_use               settling
        > c1 finished A              ask h1 PostToolUse write a
        > h1 says nothing            examine c2 | result c1: A
        > c2 is read b               run c2
        ",
    );
}

#[test]
fn a_hook_after_a_call_can_end_the_run_with_every_result() {
    check(
        after()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("read a")
            .call("read b")
            .call("write c")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .hooked(1, "stop", stops(""))
            .finished(2, "B")
            .hooked(2, "nothing", nothing())
            .finished(3, "C")
            .hooked(3, "nothing", nothing()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < call write c               examine c3
        > c3 is write c
        < end tool_use               settling
        > c1 finished A              ask h1 PostToolUse read a
        > h1 says stop               result c1: A
        > c2 finished B              ask h2 PostToolUse read b
        > h2 says nothing            run c3 | result c2: B
        > c3 finished C              ask h3 PostToolUse write c
        > h3 says nothing            result c3: C | done | = hook_stopped after 1
        ",
    );
}

#[test]
fn an_interrupt_cancels_hooks_and_keeps_what_was_done() {
    check(
        hooked(&[HookEvent::PreToolUse, HookEvent::PostToolUse])
            .submit("x")
            .call("read a")
            .hooked(1, "nothing", nothing())
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .interrupt(Interrupt::Stop)
            .hooked(2, "late", nothing()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        > h1 says nothing            run c1
        < call read b                examine c2
        > c2 is read b               ask h2 PreToolUse read b
        < end tool_use               settling
        > c1 finished A              ask h3 PostToolUse read a
        > interrupt                  cancel h3 | cancel h2 | result c1: A | result c2 error: Not run: interrupted before this call started. | done | note The user interrupted while tools were running. | = aborted_tools after 1
        > h2 says late
        ",
    );
}

#[test]
fn a_call_that_ends_after_an_interrupt_is_not_shown_to_hooks() {
    check(
        after()
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .interrupt(Interrupt::Stop)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > interrupt                  cancel c1 | timer t1 800
        > c1 finished A              result c1: A | done | note The user interrupted while tools were running. | = aborted_tools after 1
        ",
    );
}

#[test]
fn a_response_that_does_not_stand_cancels_its_hooks() {
    check(
        before().submit("x").call("read a").fails(FailureClass::Cut).hooked(1, "late", nothing()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        < fails Cut                  cancel h1 | retract 1 | retry 1 of 10 in 375 | settling waiting | timer t1 375
        > h1 says late
        ",
    );
}

#[test]
fn a_summariser_has_no_tools() {
    check(
        before()
            .with(|config| config.source = RunSource::Compact)
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .text("A summary.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                result c1 error: <tool_use_error>Tools are not available here. Answer with text only.</tool_use_error>
        < end tool_use               settling preparing streaming | call-model #2 [user assistant(read) user(result!)]
        < text A summary.
        < end end_turn               settling done | = completed after 2
        ",
    );
}
