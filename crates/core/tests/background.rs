//! What begins at the end of a run and outlives it, as scenarios.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check};
use windlass_core::{Config, Interrupt, RunSource};
use windlass_protocol::{ModelCard, Outcome, Price, StopReason, Terminal};

fn suggesting(config: &mut Config) {
    config.has_prompt_suggestions = true;
    config.source = RunSource::Repl;
    config.small_model = Some(ModelCard::unknown("small"));
}

fn answered(change: impl FnOnce(&mut Config) + 'static) -> Scenario {
    Scenario::new().with(suggesting).with(change).submit("x").text("Done.").ended(StopReason::EndTurn)
}

#[test]
fn a_prompt_is_suggested_behind_the_result() {
    check(
        answered(|_| ()).forked(1, Terminal::Completed, "Run the tests").forked(
            1,
            Terminal::Completed,
            "Again",
        ),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1 | fork f1 prompt_suggestion
        > f1 completed Run the tests suggestion Run the tests
        > f1 completed Again
        ",
    );
    check(
        answered(|config| config.source = RunSource::Sdk).forked(1, Terminal::ApiError, ""),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1 | fork f1 prompt_suggestion
        > f1 api_error
        ",
    );
}

#[test]
fn the_next_prompt_cancels_what_is_at_work_in_the_background() {
    check(
        answered(|_| ()).submit("y").forked(1, Terminal::Completed, "Run the tests"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1 | fork f1 prompt_suggestion
        > submit y                   cancel f1 | preparing streaming | call-model #2 [user assistant(text) user]
        > f1 completed Run the tests
        ",
    );
}

#[test]
fn nothing_goes_on_in_the_background_that_the_log_could_not_tell_of() {
    check(
        answered(|_| ()).store_fails().forked(1, Terminal::Completed, "Run the tests"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1 | fork f1 prompt_suggestion
        > log fails                  cancel f1
        > f1 completed Run the tests
        ",
    );
}

#[test]
fn nothing_is_suggested_that_nobody_could_use() {
    let silent = "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn               settling done | = completed after 1
        ";
    check(answered(|config| config.source = RunSource::Print), silent);
    check(answered(|config| config.source = RunSource::Agent("explore".into())), silent);
    check(answered(|config| config.has_prompt_suggestions = false), silent);
    check(answered(|config| config.small_model = None), silent);
    let asked = || Scenario::new().with(suggesting).submit("x").text("Done.");
    check(
        asked().interrupt(Interrupt::Stop),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        > interrupt                  cancel-model #1 | settling done | note The user interrupted this answer. | = aborted_streaming after 1
        ",
    );
    // What is typed already is the next prompt.
    check(
        asked().steer("y").ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        > steer y
        < end end_turn               settling done | = completed after 1
        ",
    );
}

#[test]
fn what_the_background_costs_is_part_of_the_next_report() {
    let priced = |config: &mut Config| {
        config.model.price = Some(Price { output: 1_000.0, ..Price::default() });
        config.budget_usd = Some(1.0);
    };
    let cost = |outcome: &Outcome| format!("{:.1} USD", outcome.cost_usd().unwrap());
    let answered = || {
        Scenario::new()
            .showing_outcome(cost)
            .with(suggesting)
            .with(priced)
            .submit("x")
            .text("Done.")
            .ended_at(StopReason::EndTurn, 0, 400)
    };
    check(
        answered().forked_for(1, "Go on", 0.3).submit("y").text("Done.").ended_at(
            StopReason::EndTurn,
            0,
            200,
        ),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+400         settling done | = completed after 1 0.4 USD | fork f1 prompt_suggestion
        > f1 for 0.3 USD             suggestion Go on
        > submit y                   preparing streaming | call-model #2 [user assistant(text) user]
        < text Done.
        < end end_turn 0+200         settling done | = completed after 1 0.5 USD | fork f2 prompt_suggestion
        ",
    );
    // What is cancelled is paid for as far as it came.
    check(
        answered().fork_spent(1, 0.2).fork_spent(1, 0.3).submit("y").fork_spent(1, 9.0).text("Done.").ended_at(
            StopReason::EndTurn,
            0,
            200,
        ),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+400         settling done | = completed after 1 0.4 USD | fork f1 prompt_suggestion
        > f1 so far 0.2 USD
        > f1 so far 0.3 USD
        > submit y                   cancel f1 | preparing streaming | call-model #2 [user assistant(text) user]
        > f1 so far 9 USD
        < text Done.
        < end end_turn 0+200         settling done | = completed after 1 0.5 USD | fork f2 prompt_suggestion
        ",
    );
    // It counts towards the cap.
    check(
        answered().forked_for(1, "Go on", 0.6).submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Done.
        < end end_turn 0+400         settling done | = completed after 1 0.4 USD | fork f1 prompt_suggestion
        > f1 for 0.6 USD             suggestion Go on
        > submit y                   preparing done | = max_budget_usd after 1 0.6 USD
        ",
    );
}
