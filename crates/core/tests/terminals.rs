//! Every reason to end, as a scenario of its own, with what the caller is told; and which of two reasons counts.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, course, transcript};
use std::sync::Arc;
use windlass_core::{AnswerSchema, CheckAnswer, CompactionPolicy, Config, Interrupt, Prompt, Source};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{
    AmbientChanges, Block, Failure, FailureClass, HookAnswer, HookEvent, HookPermission, ModelCard,
    ModelNote, Outcome, Price, RawValue, StopReason, Terminal,
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

fn objects(text: &str) -> HookAnswer {
    HookAnswer { blocks: vec![text.into()], ..HookAnswer::default() }
}

fn stops(reason: &str) -> HookAnswer {
    HookAnswer { stop: Some(reason.into()), ..HookAnswer::default() }
}

/// A dollar for each thousand output tokens, and one dollar to spend.
fn one_dollar(config: &mut Config) {
    config.model.price = Some(Price { output: 1_000.0, ..Price::default() });
    config.budget_usd = Some(1.0);
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
fn token_budget_completed_at_nine_tenths_after_a_continuation() {
    let budget = |config: &mut Config| config.token_budget = Some(10_000);
    check(
        new()
            .with(budget)
            .submit("x")
            .text("Done.")
            .ended_at(StopReason::EndTurn, 0, 1_000)
            .text("Better.")
            .ended_at(StopReason::EndTurn, 0, 8_000),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+1000        note You have used 1000 of 10000 output tokens (10 %) that the user wants spent on this task. Continue: look for anything missing, wrong or untested, and improve it. | again token_budget_continuation | settling preparing streaming | call-model #2 [user assistant(text) user]
        < text Better.
        < end end_turn 0+8000        settling done | = token_budget_completed after 1 (well) Better.
        ",
    );
    // Without a continuation it simply is the end.
    check(
        new().with(budget).submit("x").text("Done.").ended_at(StopReason::EndTurn, 0, 9_000),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+9000        settling done | = completed after 1 (well) Done.
        ",
    );
}

#[test]
fn token_budget_completed_when_going_on_brings_nothing() {
    let check = |gains: &[u64], continuations: usize, end: &str| {
        let prompt = Prompt { token_budget: Some(500_000), ..Prompt::from("x") };
        let said = |scenario: Scenario, tokens: &u64| {
            scenario.text("More.").ended_at(StopReason::EndTurn, 0, *tokens)
        };
        let course = course(gains.iter().fold(new().submit_prompt("x +500k", prompt), said));
        let expected = "token_budget_continuation ".repeat(continuations) + end;
        assert_eq!(course.trim(), expected.trim(), "{gains:?}");
    };
    // The first gain is that of the answer itself.
    check(&[900, 900, 499, 499], 3, "token_budget_completed");
    check(&[900, 499, 499], 3, "");
    check(&[900, 900, 499, 500], 4, "");
    check(&[900, 900, 500, 499], 4, "");
    check(&[900, 900, 499, 500, 499, 499], 5, "token_budget_completed");
}

#[test]
fn sub_agents_never_go_on_for_a_budget_of_tokens() {
    check(
        new()
            .with(|config| {
                config.token_budget = Some(10_000);
                config.source = Source::Agent("explore".into());
            })
            .submit("x")
            .text("Done.")
            .ended_at(StopReason::EndTurn, 0, 10),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+10          settling done | = completed after 1 (well) Done.
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
fn max_budget_usd_after_a_report_of_usage() {
    check(
        new()
            .with(one_dollar)
            .submit("x")
            .call("read a")
            .ended_at(StopReason::ToolUse, 0, 999)
            .finished(1, "A")
            .call("read b")
            .ended_at(StopReason::ToolUse, 0, 1)
            .finished(2, "B"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use 0+999         settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use 0+1           cancel c2 | settling | timer t1 800
        > c2 finished B              result c2: B | done | = max_budget_usd after 2 (badly)  ! Reached maximum budget ($1): 1.0000 USD spent. Raise it with --max-budget-usd.
        ",
    );
}

#[test]
fn max_budget_usd_before_a_request_and_over_the_whole_session() {
    check(
        new().with(one_dollar).submit("x").text("Done.").ended_at(StopReason::EndTurn, 0, 1_000).submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+1000        settling done | = max_budget_usd after 1 (badly) Done. ! Reached maximum budget ($1): 1.0000 USD spent. Raise it with --max-budget-usd.
        > submit y                   preparing done | = max_budget_usd after 1 (badly)  ! Reached maximum budget ($1): 1.0000 USD spent. Raise it with --max-budget-usd.
        ",
    );
}

#[test]
fn max_budget_usd_counts_from_when_the_session_was_opened() {
    let answer = |scenario: Scenario, tokens| scenario.text("Done.").ended_at(StopReason::EndTurn, 0, tokens);
    let spent = || answer(new().with(one_dollar).submit("x"), 1_000).cut_off().submit("y");
    check(
        answer(answer(spent(), 400).submit("z"), 600),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+1000        settling done | = max_budget_usd after 1 (badly) Done. ! Reached maximum budget ($1): 1.0000 USD spent. Raise it with --max-budget-usd.
        > cut off
        > submit y                   preparing streaming | call-model #1 [user assistant(text) user]
        < text Done.
        < end end_turn 0+400         settling done | = completed after 1 (well) Done.
        > submit z                   preparing streaming | call-model #2 [user assistant(text) user assistant(text) user]
        < text Done.
        < end end_turn 0+600         settling done | = max_budget_usd after 1 (badly) Done. ! Reached maximum budget ($1): 1.0000 USD spent since the session was resumed, 2.0000 USD in all. Raise it with --max-budget-usd.
        ",
    );
}

/// What calls did is summarised by another model.
fn with_summaries(config: &mut Config) {
    config.small_model = Some(ModelCard::unknown("small"));
    config.tool_use_summaries = true;
}

#[test]
fn max_budget_usd_counts_forks_and_starts_none_without_money() {
    let turn = |scenario: Scenario, n: u32| {
        scenario.call(&format!("read {n}")).ended_at(StopReason::ToolUse, 0, 400).finished(n, "A")
    };
    check(
        turn(new().with(one_dollar).with(with_summaries).submit("x"), 1)
            .forked_for(1, "Read a", 0.6)
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read 1                examine c1
        > c1 is read 1               run c1
        < end tool_use 0+400         settling
        > c1 finished A              result c1: A | preparing streaming | call-model #2 [user assistant(read) user(result)] | fork f1 summary
        > f1 for 0.6 USD             summary Read a of toolu_1
        < text Done.
        < end end_turn               settling done | = max_budget_usd after 2 (badly) Done. ! Reached maximum budget ($1): 1.0000 USD spent. Raise it with --max-budget-usd.
        ",
    );
    check(
        new()
            .with(one_dollar)
            .submit_prompt("x", "many words ".repeat(1_000).as_str().into())
            .text("Done.")
            .ended_at(StopReason::EndTurn, 0, 1_000)
            .compact("the names"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+1000        settling done | = max_budget_usd after 1 (badly) Done. ! Reached maximum budget ($1): 1.0000 USD spent. Raise it with --max-budget-usd.
        > compact the names          compacting manual | look l1 [] | preparing
        ",
    );
}

#[test]
fn a_budget_that_runs_out_while_looking_around_keeps_the_results() {
    let scenario = || {
        new()
            .with(one_dollar)
            .with(with_summaries)
            .with(|config| config.tools = [log::tool("TodoWrite")].into())
            .submit("x")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .looked(1, "nothing", AmbientChanges::default())
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(2, "B")
            .forked_for(1, "Read a", 1.0)
            .looked(2, "nothing", AmbientChanges::default())
    };
    check(
        scenario(),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1: A | look l1 []
        > l1 finds nothing           preparing streaming | call-model #2 [user assistant(read) user(result)] | fork f1 summary
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use               settling
        > c2 finished B              result c2: B | look l2 []
        > f1 for 1 USD               summary Read a of toolu_1
        > l2 finds nothing           done | = max_budget_usd after 2 (badly)  ! Reached maximum budget ($1): 1.0000 USD spent. Raise it with --max-budget-usd.
        ",
    );
    assert_eq!(
        transcript(scenario()),
        ["user", "assistant(read)", "user(result)", "assistant(read)", "user(result)"]
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
        full(new().with(off).with(|config| config.source = Source::Compact)),
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

/// Of two rules that both apply, the one that stands first in the order of stage 6 is heard.
#[track_caller]
fn check_course(scenario: Scenario, expected: &str) {
    assert_eq!(course(scenario), expected);
}

fn said(scenario: Scenario, text: &str) -> Scenario {
    scenario.text(text).ended(StopReason::EndTurn)
}

#[test]
fn what_a_hook_of_a_call_says_outranks_every_other_end_but_an_interrupt() {
    let defers = || HookAnswer { permission: Some(HookPermission::Defer), ..HookAnswer::default() };
    let two_calls = || {
        hooked(&[HookEvent::PreToolUse]).submit("x").call("read a").call("read b").ended(StopReason::ToolUse)
    };
    check_course(
        hooked(&[HookEvent::PostToolUse])
            .submit("x")
            .call("read a")
            .call("read b")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .hooked(1, "stop", stops("enough"))
            .interrupt(Interrupt::Stop)
            .finished(2, "B"),
        "aborted_tools",
    );
    check_course(two_calls().hooked(1, "later", defers()).hooked(2, "stop", stops("enough")), "hook_stopped");
    check_course(two_calls().turns_max(1).hooked(1, "stop", stops("enough")), "hook_stopped");
    check_course(
        two_calls()
            .turns_max(1)
            .hooked(1, "later", defers())
            .hooked(2, "nothing", HookAnswer::default())
            .finished(2, "B"),
        "tool_deferred",
    );
}

#[test]
fn a_failure_or_a_cut_answer_outranks_the_schema_and_stop_hooks() {
    let picky = || hooked(&[HookEvent::Stop]).with(number(5)).submit("x").text("Seven");
    check_course(picky().fails(FailureClass::Auth), "api_error");
    check_course(picky().ended(StopReason::MaxTokens), "max_output_tokens_escalate");
    check_course(picky().ended(StopReason::ContextWindowExceeded), "reactive_compact_retry");
    check_course(picky().ended(StopReason::Refusal), "refused");
    check_course(picky().ended(StopReason::PauseTurn), "pause_turn_resume");
    let nothing =
        hooked(&[HookEvent::Stop]).with(number(5)).submit("x").call("read a").ended(StopReason::ToolUse);
    check_course(nothing.finished(1, "A").ended(StopReason::EndTurn), "empty_answer_nudge");
}

#[test]
fn the_schema_then_stop_hooks_then_the_token_budget_then_money() {
    let all = || {
        hooked(&[HookEvent::Stop])
            .with(number(1))
            .with(one_dollar)
            .with(|config| config.token_budget = Some(100_000))
            .submit("x")
    };
    let spent = |scenario: Scenario, text: &str| scenario.text(text).ended_at(StopReason::EndTurn, 0, 1_000);
    check_course(said(all(), "Seven"), "structured_output_retry");
    check_course(said(said(all(), "Seven"), "Seven"), "structured_output_retry structured_output_retries");
    check_course(said(all(), "7").hooked(1, "no", objects("no")), "stop_hook_blocking");
    check_course(said(all(), "7").hooked(1, "stop", stops("enough")), "stop_hook_prevented");
    check_course(said(all(), "7").hooked(1, "nothing", HookAnswer::default()), "token_budget_continuation");
    // There is a reason to go on, but no money for it.
    check_course(spent(all(), "Seven"), "structured_output_retry max_budget_usd");
    check_course(spent(all(), "7").hooked(1, "no", objects("no")), "stop_hook_blocking max_budget_usd");
    check_course(
        spent(all(), "7").hooked(1, "nothing", HookAnswer::default()),
        "token_budget_continuation max_budget_usd",
    );
    check_course(spent(new().with(one_dollar).submit("x"), "7"), "max_budget_usd");
}

#[test]
fn repetition_then_turns_then_money() {
    let again =
        |scenario: Scenario, n: u32| scenario.call("read a").ended(StopReason::ToolUse).finished(n, "same");
    let repeating =
        || (1..=5).fold(new().with(|config| config.repeats.end_after = 5).turns_max(6).submit("x"), again);
    check_course(repeating().call("read a").ended(StopReason::ToolUse), "repeated_call");
    let poor = || {
        let first = new().with(one_dollar).with(with_summaries).turns_max(2).submit("x").call("read a");
        first.ended(StopReason::ToolUse).finished(1, "A").call("read b").ended(StopReason::ToolUse)
    };
    check_course(poor().forked_for(1, "Read a", 1.0).finished(2, "B"), "max_turns");
    check_course(
        poor().with(|config| config.turns_max = Some(3)).forked_for(1, "Read a", 1.0).finished(2, "B"),
        "max_budget_usd",
    );
}
