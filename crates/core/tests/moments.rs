//! Hooks at the start of a session, about prompts, in place of a person, after a round and around a compaction, as scenarios.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, input, recall, records, transcript};
use windlass_core::{Interrupt, RunSource};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{
    AmbientChanges, Answer, HookAnswer, HookEvent, HookPermission, MemoryNote, Prompt, RawValue, StartSource,
    StopReason, Terminal, ToolOutput,
};

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

fn adds(text: &str) -> HookAnswer {
    HookAnswer { context: vec![text.into()], ..HookAnswer::default() }
}

fn wants(permission: HookPermission) -> HookAnswer {
    HookAnswer { permission: Some(permission), ..HookAnswer::default() }
}

/// The first prompt of a session.
fn first(text: &str) -> Prompt {
    Prompt { start: Some(StartSource::Startup), ..text.into() }
}

fn texts(scenario: Scenario) -> Vec<String> {
    let state = log::state(scenario);
    let blocks = state.messages().iter().flat_map(|message| message.blocks.clone());
    blocks.filter_map(|block| block.as_text().map(str::to_owned)).collect()
}

#[test]
fn nobody_acts_on_a_prompt_before_hooks_have_heard_of_it() {
    check(
        hooked(&[HookEvent::UserPromptSubmit])
            .showing_records()
            .submit("x")
            .hooked(1, "nothing", nothing())
            .text("done")
            .ended(StopReason::EndTurn),
        "
        > submit x                   [queued x] | ask h1 UserPromptSubmit x | preparing
        > h1 says nothing            [said x] | [requested #1] | streaming | call-model #1 [user]
        < text done                  [answered]
        < end end_turn               [ended completed!] | settling done | = completed after 1
        ",
    );
    assert_eq!(
        texts(hooked(&[HookEvent::UserPromptSubmit]).submit("x").hooked(1, "context", adds("be brief"))),
        ["<system-reminder>be brief</system-reminder>", "x"]
    );
}

#[test]
fn a_prompt_that_a_hook_refuses_is_gone_and_nothing_is_sent() {
    let refused = || hooked(&[HookEvent::UserPromptSubmit]).showing_records().submit("x");
    check(
        refused().hooked(1, "no", objects("a key is in it")),
        "
        > submit x                   [queued x] | ask h1 UserPromptSubmit x | preparing
        > h1 says no                 [dequeued] | notice A hook blocked the prompt; it was not sent: a key is in it | [ended hook_stopped!] | done | = hook_stopped after 1
        ",
    );
    check(
        refused().hooked(1, "stop", stops("")),
        "
        > submit x                   [queued x] | ask h1 UserPromptSubmit x | preparing
        > h1 says stop               [dequeued] | notice A hook blocked the prompt; it was not sent. | [ended hook_stopped!] | done | = hook_stopped after 1
        ",
    );
    let after =
        || refused().hooked(1, "no", objects("no")).cut_off().submit("y").hooked(1, "nothing", nothing());
    assert_eq!(texts(after()), ["y"]);
    assert!(transcript(refused().hooked(1, "no", objects("no"))).is_empty());
}

#[test]
fn a_prompt_that_waits_for_hooks_is_lost_only_if_its_user_stops_it() {
    let asked = || hooked(&[HookEvent::UserPromptSubmit]).submit("x");
    check(
        asked().interrupt(Interrupt::Leave).submit("y").hooked(1, "late", objects("no")).hooked(
            2,
            "fine",
            nothing(),
        ),
        "
        > submit x                   ask h1 UserPromptSubmit x | preparing
        > interrupt                  cancel h1 | done | = aborted_streaming after 1
        > submit y                   ask h2 UserPromptSubmit x | preparing
        > h1 says late
        > h2 says fine               ask h3 UserPromptSubmit y
        ",
    );
    check(
        asked().interrupt(Interrupt::Stop).submit("y"),
        "
        > submit x                   ask h1 UserPromptSubmit x | preparing
        > interrupt                  cancel h1 | done | = aborted_streaming after 1
        > submit y                   ask h2 UserPromptSubmit y | preparing
        ",
    );
    let recalled = recall(records(asked()));
    assert_eq!(recalled.state.waiting(), 1);
    assert!(recalled.is_cut_off);
    assert_eq!(log::state(asked()).waiting(), 1);
}

#[test]
fn what_is_typed_during_a_run_is_heard_before_it_goes_in() {
    let typed = |answer: HookAnswer| {
        hooked(&[HookEvent::UserPromptSubmit])
            .submit("x")
            .hooked(1, "fine", nothing())
            .call("read a")
            .steer("also this")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .hooked(2, "answer", answer)
    };
    check(
        typed(nothing()),
        "
        > submit x                   ask h1 UserPromptSubmit x | preparing
        > h1 says fine               streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > steer also this
        < end tool_use               settling
        > c1 finished A              result c1: A | ask h2 UserPromptSubmit also this
        > h2 says answer             said also this | preparing streaming | call-model #2 [user assistant(read) user(result) user]
        ",
    );
    check(
        typed(objects("not now")),
        "
        > submit x                   ask h1 UserPromptSubmit x | preparing
        > h1 says fine               streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        > steer also this
        < end tool_use               settling
        > c1 finished A              result c1: A | ask h2 UserPromptSubmit also this
        > h2 says answer             notice A hook blocked the prompt; it was not sent: not now | preparing streaming | call-model #2 [user assistant(read) user(result)]
        ",
    );
}

#[test]
fn a_session_begins_with_what_hooks_say_before_the_first_prompt() {
    let note = MemoryNote { path: "/project/CLAUDE.md".into(), text: "be kind".into() };
    let events = [HookEvent::SessionStart, HookEvent::InstructionsLoaded, HookEvent::UserPromptSubmit];
    let begun = || {
        hooked(&events)
            .with(|config| config.memory = [note.clone()].into())
            .submit_prompt("x", first("x"))
            .hooked(1, "context", adds("it is monday"))
            .hooked(2, "nothing", nothing())
    };
    check(
        begun().hooked(3, "nothing", nothing()),
        "
        > submit x                   ask h1 SessionStart startup | preparing
        > h1 says context            ask h2 InstructionsLoaded [\"/project/CLAUDE.md\"] session_start
        > h2 says nothing            ask h3 UserPromptSubmit x
        > h3 says nothing            streaming | call-model #1 [user((it is…)/x)]
        ",
    );
    assert_eq!(
        texts(begun().hooked(3, "context", adds("be brief"))),
        [
            "<system-reminder>it is monday</system-reminder>",
            "<system-reminder>be brief</system-reminder>",
            "x"
        ]
    );
    check(
        hooked(&events).submit_prompt("x", first("x")).hooked(1, "stop", stops("closed today")),
        "
        > submit x                   ask h1 SessionStart startup | preparing
        > h1 says stop               notice A hook at the start of the session ended the run: closed today | done | = hook_stopped after 1
        ",
    );
    // Without hooks for it, nobody asks.
    check(
        hooked(&[]).submit_prompt("x", first("x")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        ",
    );
}

#[test]
fn a_hook_may_say_the_first_words_of_a_printed_session() {
    let says = HookAnswer { first_prompt: Some("Good morning.".into()), ..HookAnswer::default() };
    let begun = |source: RunSource| {
        hooked(&[HookEvent::SessionStart])
            .with(|config| config.source = source)
            .submit_prompt("x", first("x"))
            .hooked(1, "first", says.clone())
    };
    assert_eq!(texts(begun(RunSource::Print)), ["Good morning.", "x"]);
    assert_eq!(texts(begun(RunSource::Repl)), ["x"]);
}

fn asked_for(scenario: Scenario) -> Scenario {
    scenario.asking(Answerer::Person).submit("x").call("write a")
}

#[test]
fn hooks_speak_before_a_person_is_asked() {
    let requested = || asked_for(hooked(&[HookEvent::PermissionRequest]));
    let begin = "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PermissionRequest write a
        ";
    check(
        requested().hooked(1, "allow", wants(HookPermission::Allow)),
        &format!("{begin}> h1 says allow              run c1"),
    );
    check(
        requested().hooked(1, "nothing", nothing()).answer(1, Answer::Allow),
        &format!(
            "{begin}> h1 says nothing            ask c1: write of write a needs approval.
        > answer c1                  run c1"
        ),
    );
    let denied = "denied c1: A hook denied this call: no | result c1 error: A hook denied this call: no";
    check(
        requested().hooked(1, "deny", wants(HookPermission::Deny("no".into()))),
        &format!("{begin}> h1 says deny               {denied}"),
    );
    check(
        requested().hooked(1, "no", objects("no")),
        &format!("{begin}> h1 says no                 {denied}"),
    );
    let interrupts = HookAnswer { stop: Some("enough".into()), ..wants(HookPermission::Deny("no".into())) };
    check(
        requested().ended(StopReason::ToolUse).hooked(1, "stop", interrupts),
        &format!("{begin}< end tool_use               settling
        > h1 says stop               result c1 error: Not run: a hook ended the run before this call started. | done | = hook_stopped after 1"),
    );
}

#[test]
fn a_hook_in_place_of_a_person_gets_past_no_rule() {
    // Another hook wants a person to be asked.
    check(
        asked_for(hooked(&[HookEvent::PreToolUse, HookEvent::PermissionRequest]))
            .hooked(1, "ask", wants(HookPermission::Ask("sure?".into())))
            .hooked(2, "allow", wants(HookPermission::Allow)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PreToolUse write a
        > h1 says ask                ask h2 PermissionRequest write a
        > h2 says allow              ask c1: A hook requires approval: sure?
        ",
    );
    // What is denied is not asked about, so nobody can approve it.
    check(
        asked_for(hooked(&[HookEvent::PermissionRequest]).permission_mode(PermissionMode::Plan)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              denied c1: Plan mode allows only reading. | result c1 error: Plan mode allows only reading.
        ",
    );
}

#[test]
fn an_approved_input_is_decided_on_from_the_start_and_nobody_is_asked_twice() {
    let changed = |words: &str| HookAnswer { input: Some(input(words)), ..wants(HookPermission::Allow) };
    check(
        asked_for(hooked(&[HookEvent::PreToolUse, HookEvent::PermissionRequest]))
            .hooked(1, "nothing", nothing())
            .hooked(2, "write b", changed("write b")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PreToolUse write a
        > h1 says nothing            ask h2 PermissionRequest write a
        > h2 says write b            examine c1
        > c1 is write b              run c1 with write b
        ",
    );
    let updates = vec![std::sync::Arc::from(RawValue::from_string("{}".into()).unwrap())];
    let with_updates = HookAnswer { updates, ..wants(HookPermission::Allow) };
    let log = asked_for(hooked(&[HookEvent::PermissionRequest])).hooked(1, "allow", with_updates);
    check(
        log,
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PermissionRequest write a
        > h1 says allow              notice A permission change of a hook was ignored: missing field `type` at line 1 column 2. | run c1
        ",
    );
}

#[test]
fn hooks_that_speak_for_a_person_end_with_an_interrupt() {
    check(
        asked_for(hooked(&[HookEvent::PermissionRequest]))
            .ended(StopReason::ToolUse)
            .interrupt(Interrupt::Stop)
            .hooked(1, "late", wants(HookPermission::Allow)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PermissionRequest write a
        < end tool_use               settling
        > interrupt                  cancel h1 | result c1 error: Not run: interrupted before this call started. | done | note The user interrupted while tools were running. | = aborted_tools after 1
        > h1 says late
        ",
    );
}

#[test]
fn a_hook_may_put_something_in_the_place_of_an_output() {
    let says = HookAnswer {
        output: Some(RawValue::from_string("\"(hidden)\"".into()).unwrap().into()),
        ..HookAnswer::default()
    };
    let ran = || hooked(&[HookEvent::PostToolUse]).submit("x").call("read a").ended(StopReason::ToolUse);
    check(
        ran().finished(1, "the key").hooked(1, "hidden", says.clone()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished the key        ask h1 PostToolUse read a
        > h1 says hidden             result c1: (hidden) | preparing streaming | call-model #2 [user assistant(read) user(result)]
        ",
    );
    // A failure stays what it is.
    check(
        hooked(&[HookEvent::PostToolUseFailure])
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .failed_call(1, "broken")
            .hooked(1, "hidden", says),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 failed broken           ask h1 PostToolUseFailure read a
        > h1 says hidden             result c1 error: broken | preparing streaming | call-model #2 [user assistant(read) user(result!)]
        ",
    );
}

#[test]
fn hooks_hear_that_later_calls_work_elsewhere_before_any_does() {
    let moves = ToolOutput { cwd: Some("/project/sub".into()), ..ToolOutput::text("moved") };
    let stays = ToolOutput { cwd: Some("/project".into()), ..ToolOutput::text("stayed") };
    check(
        hooked(&[HookEvent::CwdChanged, HookEvent::PostToolUse])
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("write a")
            .call("write b")
            .ended(StopReason::ToolUse)
            .finished_with(1, "moves", moves)
            .hooked(1, "nothing", nothing())
            .hooked(2, "nothing", nothing())
            .finished_with(2, "stays", stays)
            .hooked(3, "back", nothing()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < call write b
        < end tool_use               settling
        > c1 moves                   ask h1 CwdChanged /project to /project/sub
        > h1 says nothing            ask h2 PostToolUse write a
        > h2 says nothing            examine c2 | result c1: moved
        > c2 is write b              run c2
        > c2 stays                   ask h3 CwdChanged /project/sub to /project
        > h3 says back               ask h4 PostToolUse write b
        ",
    );
}

#[test]
fn a_round_is_heard_as_a_whole_before_the_next_request() {
    let round = || {
        hooked(&[HookEvent::PostToolBatch])
            .submit("x")
            .call("read a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .finished(2, "B")
    };
    let begin = "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use               settling
        > c1 finished A              result c1: A
        > c2 finished B              result c2: B | ask h1 PostToolBatch read a, read b
        ";
    check(
        round().hooked(1, "context", adds("lint is clean")),
        &format!(
            "{begin}> h1 says context            note (lint is clean) | preparing streaming | call-model #2 [user assistant(read,read) user(result,result) user]"
        ),
    );
    check(
        round().hooked(1, "no", objects("enough")),
        &format!(
            "{begin}> h1 says no                 notice A hook ended the run: enough | done | = hook_stopped after 1"
        ),
    );
    check(
        round().interrupt(Interrupt::Stop).hooked(1, "late", objects("no")),
        &format!("{begin}> interrupt                  cancel h1 | done | note The user interrupted while tools were running. | = aborted_tools after 1
        > h1 says late"),
    );
}

#[test]
fn hooks_hear_what_stands_for_the_past_and_that_the_session_begins_anew() {
    let compacted = |answer: HookAnswer| {
        Scenario::new()
            .wordy()
            .with(|config| config.hooks = [HookEvent::PostCompact, HookEvent::SessionStart].into())
            .submit("x")
            .text(&"word ".repeat(4_000))
            .ended(StopReason::EndTurn)
            .compact("")
            .forked(1, Terminal::Completed, "all went well")
            .looked(1, "nothing", AmbientChanges::default())
            .hooked(1, "nothing", nothing())
            .hooked(2, "answer", answer)
    };
    let told = texts(compacted(adds("remember the tests")));
    assert_eq!(
        told.last().map(String::as_str),
        Some("<system-reminder>remember the tests</system-reminder>")
    );
    assert_eq!(log::asked(compacted(nothing())), ["PostCompact all went well", "SessionStart compact"]);
    assert_eq!(log::course(compacted(nothing())), "completed completed");
    assert_eq!(log::course(compacted(stops("enough"))), "completed hook_stopped");
}
