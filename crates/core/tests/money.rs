//! Budgets in dollars and tokens as reasons to end.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, course, transcript};
use windlass_core::{Config, Prompt, RunSource};
use windlass_protocol::{AmbientChanges, ModelCard, Outcome, Price, StopReason};

/// The log shows how the run ended, what was said last, and what went wrong.
fn new() -> Scenario {
    Scenario::new().wordy().showing_outcome(|Outcome { terminal, text, errors, .. }| {
        let how = if terminal.is_success() { "well" } else { "badly" };
        let errors = if errors.is_empty() { String::new() } else { format!(" ! {}", errors.join(" ! ")) };
        format!("({how}) {text}{errors}")
    })
}

/// A dollar for each thousand output tokens, and one dollar to spend.
fn one_dollar(config: &mut Config) {
    config.model.price = Some(Price { output: 1_000.0, ..Price::default() });
    config.budget_usd = Some(1.0);
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
                config.source = RunSource::Agent("explore".into());
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
    config.has_tool_use_summaries = true;
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
