//! Every reason to end, as a scenario of its own, with what the caller is told; and which of two reasons counts.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check};
use std::sync::Arc;
use windlass_core::{AnswerSchema, CheckAnswer, CompactionPolicy, Config, Interrupt, Prompt, RunSource};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{
    AmbientChanges, Block, Failure, FailureClass, HookAnswer, HookEvent, HookPermission, ModelNote, Outcome,
    RawValue, StopReason, Terminal,
};

/// The log shows how the run ended, what was said last, and what went wrong.
fn new() -> Scenario {
    Scenario::new().wordy().showing_outcome(|Outcome { terminal, text, errors, .. }| {
        let how = if terminal.is_success() { "well" } else { "badly" };
        let errors = if errors.is_empty() { String::new() } else { format!(" ! {}", errors.join(" ! ")) };
        format!("({how}) {text}{errors}")
    })
}

fn hooked(events: &[HookEvent]) -> Scenario {
    new().with(|config| config.hooks.extend(events))
}

fn stops(reason: &str) -> HookAnswer {
    HookAnswer { stop: Some(reason.into()), ..HookAnswer::default() }
}

#[derive(Debug)]
struct Number;

impl CheckAnswer for Number {
    fn check(&self, value: &RawValue) -> Result<(), String> {
        let is_number = value.get().parse::<f64>().is_ok();
        if is_number { Ok(()) } else { Err(format!("a number is expected, not {}.", value.get())) }
    }
}

fn number(retries_max: u32) -> impl FnOnce(&mut Config) {
    let schema = RawValue::from_string(r#"{"type":"number"}"#.into()).unwrap();
    move |config| {
        config.answer = Some(AnswerSchema { schema: schema.into(), check: Arc::new(Number), retries_max });
    }
}

fn picture() -> Prompt {
    Prompt { blocks: vec![Block::text("look"), Block::image("image/png", "AAAA")], ..Prompt::default() }
}

#[test]
fn completed() {
    check(
        new().submit("x").text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1 (well) Done.
        ",
    );
}

#[test]
fn stop_hook_prevented() {
    check(
        hooked(&[HookEvent::Stop]).submit("x").text("Done.").ended(StopReason::EndTurn).hooked(
            1,
            "stop",
            stops("enough"),
        ),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling stopping | ask h1 Stop Done.
        > h1 says stop               notice A stop hook ended the run: enough | done | = stop_hook_prevented after 1 (well) Done.
        ",
    );
}

#[test]
fn hook_stopped_before_and_after_a_call() {
    check(
        hooked(&[HookEvent::PreToolUse])
            .submit("x")
            .call("read a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .hooked(1, "stop", stops("enough")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               ask h1 PreToolUse read a
        < call read b                examine c2
        > c2 is read b               ask h2 PreToolUse read b
        < end tool_use               settling
        > h1 says stop               cancel h2 | result c1 error: Not run: a hook ended the run before this call started. | result c2 error: Not run: a hook ended the run before this call started. | done | = hook_stopped after 1 (well)
        ",
    );
    check(
        hooked(&[HookEvent::PostToolUse])
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .hooked(1, "stop", stops("")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              ask h1 PostToolUse read a
        > h1 says stop               result c1: A | done | = hook_stopped after 1 (well)
        ",
    );
}

#[test]
fn max_turns_collects_the_results_and_sends_nothing_more() {
    check(
        new()
            .turns_max(2)
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(2, "B"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use               settling
        > c2 finished B              result c2: B | turns used up 2 of 2 | done | = max_turns after 2 (badly)  ! Reached maximum number of turns (2). Raise it with --max-turns.
        ",
    );
    // The last answer needs no turn.
    check(
        new().turns_max(1).submit("x").text("Done.").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1 (well) Done.
        ",
    );
}

#[test]
fn structured_output_retries() {
    check(
        new()
            .with(number(1))
            .submit("x")
            .text("Seven")
            .ended(StopReason::EndTurn)
            .text("\"7\"")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Seven
        < end end_turn               note The answer is not a JSON value. Answer with only the JSON value. | again structured_output_retry | settling preparing streaming | call-model #2 [user assistant(text) user]
        < text \"7\"
        < end end_turn               settling done | = structured_output_retries after 1 (badly) \"7\" ! No answer matched the schema within the allowed attempts. Simplify the schema, or raise MAX_STRUCTURED_OUTPUT_RETRIES.
        ",
    );
}

#[test]
fn aborted_streaming() {
    check(
        new().submit("x").call("read a").delta("And n").interrupt(Interrupt::Stop).finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < delta And n
        > interrupt                  cancel-model #1 | aborted text And n | cancel c1 | settling | timer t1 800
        > c1 finished A              result c1: A | done | note The user interrupted this answer. | = aborted_streaming after 1 (badly) And n ! Interrupted while the model was answering.
        ",
    );
}

#[test]
fn an_interrupt_at_a_question_is_no_interrupt_of_tools_that_run() {
    check(
        new()
            .asking(Answerer::Person)
            .submit("x")
            .call("write a")
            .ended(StopReason::ToolUse)
            .interrupt(Interrupt::Stop),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask c1: write of write a needs approval.
        < end tool_use               settling
        > interrupt                  result c1 error: Not run: interrupted before this call started. | done | note The user interrupted at a permission prompt; the call was not run. | = aborted_tools after 1 (badly)  ! Interrupted at a permission prompt; the call was not run.
        ",
    );
}

#[test]
fn aborted_tools() {
    check(
        new()
            .submit("x")
            .call("read a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .interrupt(Interrupt::Stop)
            .finished(2, "B")
            .timer(1),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use               settling
        > interrupt                  cancel c1 | cancel c2 | timer t1 800
        > c2 finished B
        > timer t1                   abandon c1 | result c1 error: Interrupted while running. It did not stop in time; what it did is unknown. | result c2: B | done | note The user interrupted while tools were running. | = aborted_tools after 1 (badly)  ! Interrupted while tools were running.
        ",
    );
}

#[test]
fn blocking_limit() {
    let on_request = |config: &mut Config| config.context.compaction = CompactionPolicy::OnRequest;
    let off = |config: &mut Config| config.context.compaction = CompactionPolicy::Off;
    let full = |scenario: Scenario| {
        scenario.submit("x").text("Done.").ended_at(StopReason::EndTurn, 177_000, 0).submit("y")
    };
    check(
        full(new().with(on_request)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 177000+0      settling done | = completed after 1 (well) Done.
        > submit y                   preparing done | failed blocking_limit | = blocking_limit after 1 (badly)  ! The context window is full, and automatic compaction is off (autoCompactEnabled, DISABLE_AUTO_COMPACT). Use /compact, or start a new session.
        ",
    );
    check(
        full(new().with(off)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 177000+0      settling done | = completed after 1 (well) Done.
        > submit y                   preparing done | failed blocking_limit | = blocking_limit after 1 (badly)  ! The context window is full, and compaction is off (DISABLE_COMPACT). Unset the variable to use /compact, or start a new session.
        ",
    );
    // A summariser is not stopped by what it was called to cure.
    check(
        full(new().with(off).with(|config| config.source = RunSource::Compact)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 177000+0      settling done | = completed after 1 (well) Done.
        > submit y                   preparing streaming | call-model #2 [user assistant(text) user]
        ",
    );
}

#[test]
fn prompt_too_long_shows_what_was_withheld() {
    let failure =
        || Failure::new(FailureClass::Overflow, "prompt is too long: 210000 tokens > 200000 maximum");
    check(
        new()
            .submit("x")
            .fails_with("too long", failure())
            .forked(1, Terminal::Completed, "They asked for x.")
            .looked(1, "nothing", AmbientChanges::default())
            .fails_with("too long", failure()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails too long             again reactive_compact_retry | compacting reactive | fork f1 compact | settling preparing
        > f1 completed They asked for x. look l1 []
        > l1 finds nothing           not compacted: The conversation cannot be made shorter. | done | failed prompt_too_long | = prompt_too_long after 1: prompt is too long: 210000 tokens > 200000 maximum (badly)  ! prompt is too long: 210000 tokens > 200000 maximum
        < fails too long
        ",
    );
    let off = |config: &mut Config| config.context.compaction = CompactionPolicy::OnRequest;
    check(
        new().with(off).submit("x").fails_with("too long", failure()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails too long             settling done | failed prompt_too_long | = prompt_too_long after 1: prompt is too long: 210000 tokens > 200000 maximum; The context window is full, and automatic compaction is off (autoCompactEnabled, DISABLE_AUTO_COMPACT). Use /compact, or start a new session. (badly)  ! prompt is too long: 210000 tokens > 200000 maximum ! The context window is full, and automatic compaction is off (autoCompactEnabled, DISABLE_AUTO_COMPACT). Use /compact, or start a new session.
        ",
    );
    // The provider refused nothing, but the window is full.
    check(
        new().with(off).submit("x").text("Half").ended(StopReason::ContextWindowExceeded),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Half
        < end model_context_window_exceeded settling done | failed prompt_too_long | = prompt_too_long after 1 (badly) Half ! The context window is full, and automatic compaction is off (autoCompactEnabled, DISABLE_AUTO_COMPACT). Use /compact, or start a new session.
        ",
    );
}

#[test]
fn max_output_tokens() {
    check(
        new()
            .output_cap(100)
            .submit("x")
            .text("One")
            .ended(StopReason::MaxTokens)
            .text(", two")
            .ended(StopReason::MaxTokens)
            .text(", three")
            .ended(StopReason::MaxTokens)
            .text(", four")
            .ended(StopReason::MaxTokens),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text One
        < end max_tokens             note Your answer was cut at the output limit. Continue exactly where it stopped, even in the middle of a sentence: no apology, no recap. Split the rest into smaller pieces. | again max_output_tokens_recovery | settling preparing streaming | call-model #2 [user assistant(text) user]
        < text , two
        < end max_tokens             note Your answer was cut at the output limit. Continue exactly where it stopped, even in the middle of a sentence: no apology, no recap. Split the rest into smaller pieces. | again max_output_tokens_recovery | settling preparing streaming | call-model #3 [user assistant(text) user assistant(text) user]
        < text , three
        < end max_tokens             note Your answer was cut at the output limit. Continue exactly where it stopped, even in the middle of a sentence: no apology, no recap. Split the rest into smaller pieces. | again max_output_tokens_recovery | settling preparing streaming | call-model #4 [user assistant(text) user assistant(text) user assistant(text) user]
        < text , four
        < end max_tokens             settling done | failed max_output_tokens | = max_output_tokens after 1 (badly) One, two, three, four ! The answer exceeded the output limit again and again. Ask for less at once, or raise CLAUDE_CODE_MAX_OUTPUT_TOKENS.
        ",
    );
}

#[test]
fn image_error() {
    let too_large = || Failure::new(FailureClass::Media, "image exceeds 5 MB maximum");
    check(
        new()
            .submit_prompt("a picture", picture())
            .fails_with("media", too_large())
            .fails_with("media", too_large()),
        "
        > submit a picture           preparing streaming | call-model #1 [user(look/picture)]
        < fails media                media stripped from 1 | again media_strip_retry | settling preparing streaming | call-model #2 [user(look/[Removed: a picture (image/png) that cannot be sent.])]
        < fails media                settling done | failed image_error | = image_error after 1: image exceeds 5 MB maximum (badly)  ! image exceeds 5 MB maximum
        ",
    );
    // There is nothing to take out.
    check(
        new().submit("x").fails_with("media", too_large()),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails media                settling done | failed image_error | = image_error after 1: image exceeds 5 MB maximum (badly)  ! image exceeds 5 MB maximum
        ",
    );
}

#[test]
fn model_error() {
    check(
        new().retries_max(0).submit("x").text("Half").fails(FailureClass::Malformed),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Half
        < fails Malformed            settling done | failed model_error | = model_error after 1: it failed (badly) Half ! it failed
        ",
    );
}

#[test]
fn api_error() {
    check(
        new().submit("x").fails_with("401", Failure::new(FailureClass::Auth, "invalid x-api-key")),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < fails 401                  settling done | failed api_error | = api_error after 1: invalid x-api-key (badly)  ! invalid x-api-key
        ",
    );
    check(
        new()
            .retries_max(1)
            .submit("x")
            .text("Half")
            .fails(FailureClass::Stalled)
            .timer(1)
            .fails(FailureClass::Server),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Half
        < fails Stalled              retract 1 | retry 1 of 1 in 375 | settling waiting | timer t1 375
        > timer t1                   streaming | call-model #2 [user] same
        < fails Server               settling done | failed api_error | = api_error after 1: it failed Tried 2 times. Try again later. (badly)  ! it failed Tried 2 times. Try again later.
        ",
    );
}

#[test]
fn refused() {
    let why = ModelNote::Refusal { category: Some("cyber".into()), explanation: Some("It may harm.".into()) };
    check(
        new().submit("x").text("Sure").note("refusal", why).ended(StopReason::Refusal),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Sure
        < note refusal
        < end refusal                retract 1 | settling done | = refused after 1 (well)  ! The model declined to answer (It may harm.). Rephrase the prompt, or use another model.
        ",
    );
}

#[test]
fn a_refusal_after_something_has_acted_keeps_what_was_done() {
    check(
        new()
            .permission_mode(PermissionMode::BypassPermissions)
            .submit("x")
            .call("write a")
            .ended(StopReason::Refusal)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              run c1
        < end refusal                cancel c1 | settling | timer t1 800
        > c1 finished A              result c1: A | done | = refused after 1 (well)  ! The model declined to answer. Rephrase the prompt, or use another model.
        ",
    );
}

#[test]
fn repeated_call() {
    let turn =
        |scenario: Scenario, n: u32| scenario.call("read a").ended(StopReason::ToolUse).finished(n, "same");
    check(
        (1..=5).fold(new().with(|config| config.repeats.end_after = 5).submit("x"), turn).call("read a").ended(StopReason::ToolUse),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished same           result c1: same | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read a                examine c2
        > c2 is read a               run c2
        < end tool_use               settling
        > c2 finished same           result c2: same | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c3
        > c3 is read a               run c3
        < end tool_use               settling
        > c3 finished same           result c3: same/(You have made this call 3 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #4 [user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c4
        > c4 is read a               run c4
        < end tool_use               settling
        > c4 finished same           result c4: same/(You have made this call 4 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #5 [user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c5
        > c5 is read a               run c5
        < end tool_use               settling
        > c5 finished same           result c5: same/(You have made this call 5 times with the same input and the same result. Repeating it will not change that: try another way, or say what blocks you. To wait for something, wait within the call (sleep).) | preparing streaming | call-model #6 [user assistant(read) user(result) assistant(read) user(result) assistant(read) user(result) assistant(read) user(result) assistant(read) user(result)]
        < call read a                examine c6
        > c6 is read a               result c6 error: Not run. The same call gave the same result 5 times. Another try needs approval, and this session is not interactive.
        < end tool_use               settling done | = repeated_call after 6 (badly)  ! The model repeated the same call with the same result. Tell it what to do instead, or raise repeatedCallsMax.
        ",
    );
}

#[test]
fn rapid_refill() {
    let small = |config: &mut Config| config.context.window_tokens = Some(40_000);
    let turn = |scenario: Scenario, n: u32| {
        scenario
            .call(&format!("read {n}"))
            .ended_at(StopReason::ToolUse, 32_000, 0)
            .finished(n, "A")
            .forked(n, Terminal::Completed, "They read.")
            .looked(n, "nothing", AmbientChanges::default())
    };
    check(
        (1..=4).fold(Scenario::new().with(small).submit("x"), turn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read 1                examine c1
        > c1 is read 1               run c1
        < end tool_use 32000+0       settling
        > c1 finished A              result c1 | compacting auto | fork f1 compact | preparing
        > f1 completed They read.    look l1 []
        > l1 finds nothing           compacted | streaming | call-model #2 [boundary]
        < call read 2                examine c2
        > c2 is read 2               run c2
        < end tool_use 32000+0       settling
        > c2 finished A              result c2 | compacting auto | fork f2 compact | preparing
        > f2 completed They read.    look l2 []
        > l2 finds nothing           compacted | streaming | call-model #3 [boundary]
        < call read 3                examine c3
        > c3 is read 3               run c3
        < end tool_use 32000+0       settling
        > c3 finished A              result c3 | compacting auto | fork f3 compact | preparing
        > f3 completed They read.    look l3 []
        > l3 finds nothing           compacted | streaming | call-model #4 [boundary]
        < call read 4                examine c4
        > c4 is read 4               run c4
        < end tool_use 32000+0       settling
        > c4 finished A              result c4 | preparing done | = rapid_refill after 5
        > f4 completed They read.
        > l4 finds nothing
        ",
    );
}

#[test]
fn tool_deferred() {
    check(
        hooked(&[HookEvent::PreToolUse])
            .showing_outcome(|outcome| {
                format!("{:?}", outcome.deferred.as_ref().map(|call| call.input.get()))
            })
            .submit("x")
            .call("write a")
            .ended(StopReason::ToolUse)
            .hooked(
                1,
                "later",
                HookAnswer { permission: Some(HookPermission::Defer), ..HookAnswer::default() },
            ),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call write a               examine c1
        > c1 is write a              ask h1 PreToolUse write a
        < end tool_use               settling
        > h1 says later              result c1 error: Not run: a hook deferred this call until the session is resumed. | done | = tool_deferred after 1 Some(\"{\\\"words\\\":\\\"write a\\\"}\")
        ",
    );
}

#[test]
fn store_failed() {
    check(
        new().submit("x").text("Well").store_fails(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Well
        > log fails                  cancel-model #1 | settling done | = store_failed after 1 (badly) Well ! Stopped: the disk is full.
        ",
    );
}
