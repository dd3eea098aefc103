//! Nonsense is refused when the engine is built, with what is wrong and what to do.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;

use windlass_engine::{
    Config, ContextPolicy, ContinuationPolicy, Engine, EngineBuilder, ModelCard, OutputPolicy, RepeatPolicy,
    ThinkingMode, ThinkingWish,
};
use windlass_models::{Script, ScriptModel, model_card};

fn builder(card: ModelCard) -> EngineBuilder {
    let script = Script::parse(r#"{"responses": [{"blocks": [{"text": "ok"}]}]}"#).unwrap();
    Engine::builder(Arc::new(ScriptModel::new(script)), card)
}

/// A model whose price is known.
fn priced() -> ModelCard {
    let card = model_card("claude-sonnet-4-5");
    assert!(card.price.is_some());
    card
}

#[track_caller]
fn check(option: impl FnOnce(EngineBuilder) -> EngineBuilder, expected: &str) {
    let error = option(builder(priced())).build().map(|_| ()).map_err(|error| error.to_string());
    match expected {
        "" => assert_eq!(error, Ok(())),
        expected => assert_eq!(error.unwrap_err(), expected),
    }
}

/// The same with a whole configuration.
#[track_caller]
fn check_config(change: impl FnOnce(&mut Config), expected: &str) {
    let mut config = Config::default();
    change(&mut config);
    check(|b| b.config(config), expected);
}

#[test]
fn a_budget_in_usd_is_an_amount_of_money() {
    check(|b| b.with(|config| config.budget_usd = Some(0.5)), "");
    for (budget, name) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let error = format!("invalid budget of {name} USD: give a number above zero");
        check(|b| b.with(|config| config.budget_usd = Some(budget)), &error);
    }
}

#[test]
fn a_budget_in_usd_needs_every_price() {
    let error = "the price of mystery is unknown, so a budget in USD cannot be checked. Use another model, or leave out the budget";
    let mystery = ModelCard::unknown("mystery");
    let built = builder(mystery.clone()).with(|config| config.budget_usd = Some(1.0)).build();
    assert_eq!(built.err().unwrap().to_string(), error);
    check(
        |b| b.with(|c| (c.budget_usd, c.fallbacks) = (Some(1.0), [priced(), mystery.clone()].into())),
        error,
    );
    check(|b| b.with(|c| (c.budget_usd, c.small_model) = (Some(1.0), Some(mystery.clone()))), error);
    check(
        |b| b.with(|c| (c.fallbacks, c.small_model) = ([mystery.clone()].into(), Some(mystery.clone()))),
        "",
    );
}

#[test]
fn limits_are_above_zero() {
    let zero = |name: &str| format!("{name} is 0. Give at least 1, or leave it out");
    check(|b| b.with(|config| config.turns_max = Some(0)), &zero("the limit on turns"));
    check_config(|config| config.token_budget = Some(0), &zero("the budget of output tokens"));
    check_config(|config| config.task_budget = Some(0), &zero("the task budget"));
    check(|b| b.with(|config| config.output.explicit = Some(0)), &zero("the limit on output tokens"));
    let output = OutputPolicy::default();
    check_config(
        |config| config.output = OutputPolicy { first: 0, ..output },
        &zero("the first limit on output tokens"),
    );
    check_config(
        |config| config.output = OutputPolicy { escalated: 0, ..output },
        &zero("the raised limit on output tokens"),
    );
    let repeats = RepeatPolicy::default();
    check_config(
        |config| config.repeats = RepeatPolicy { tell_after: 0, ..repeats },
        &zero("the number of repeated calls before the model is warned"),
    );
    check_config(
        |config| config.repeats = RepeatPolicy { ask_after: 0, ..repeats },
        &zero("the number of repeated calls before the user is asked"),
    );
    check_config(
        |config| config.repeats = RepeatPolicy { end_after: 0, ..repeats },
        &zero("the number of repeated calls before the run ends"),
    );
    check_config(|config| config.token_budget = Some(1), "");
    check(|b| b.with(|c| (c.turns_max, c.output.explicit) = (Some(1), Some(1))), "");
    check_config(|config| (config.stop_hook_blocks_max, config.pauses_max) = (0, 0), "");
}

#[test]
fn shares_are_between_one_and_a_hundred() {
    let context = |percent| ContextPolicy { compact_percent: Some(percent), ..ContextPolicy::default() };
    let error = |percent| {
        format!(
            "the share of the window that triggers compaction is {percent} %. Give a number from 1 to 100"
        )
    };
    check(|b| b.with(|config| config.context = context(0)), &error(0));
    check(|b| b.with(|config| config.context = context(101)), &error(101));
    check(|b| b.with(|config| config.context = context(1)), "");
    check(|b| b.with(|config| config.context = context(100)), "");
    let continuation = ContinuationPolicy { percent: 0, ..ContinuationPolicy::default() };
    check_config(
        |config| config.continuation = continuation,
        "the share of the token budget that counts as used up is 0 %. Give a number from 1 to 100",
    );
}

#[test]
fn a_window_leaves_room_for_work() {
    let window = |tokens| ContextPolicy { window_tokens: Some(tokens), ..ContextPolicy::default() };
    let error = |model: &str, window: u64| {
        format!(
            "a context window of {window} tokens is too small for {model}: it would be full at once. Give a larger window, or compact at a larger share of it"
        )
    };
    let name = priced().id;
    check(|b| b.with(|config| config.context = window(1_999)), &error(&name, 1_999));
    check(|b| b.with(|config| config.context = window(2_000)), "");
    check(
        |b| b.with(|config| config.context = ContextPolicy { compact_percent: Some(1), ..window(50_000) }),
        &error(&name, 50_000),
    );
    check(
        |b| {
            b.with(|config| {
                config.context = ContextPolicy { compact_percent: Some(1), ..ContextPolicy::default() }
            })
        },
        "",
    );
    let small = ModelCard { window_tokens: 1_000, ..ModelCard::unknown("small") };
    check(|b| b.with(|config| config.fallbacks = [small].into()), &error("small", 1_000));
}

#[test]
fn a_budget_for_thinking_fits_the_answer() {
    let thinking = |tokens| ThinkingWish {
        mode: ThinkingMode::Auto,
        budget_tokens: Some(tokens),
        ..ThinkingWish::default()
    };
    let error = |tokens: u32, cap: u32| {
        format!(
            "invalid thinking budget of {tokens} tokens: give at least 1024 and less than the limit on output tokens ({cap})"
        )
    };
    check_config(|config| config.thinking = thinking(1_024), "");
    check_config(|config| config.thinking = thinking(31_999), "");
    check_config(|config| config.thinking = thinking(1_023), &error(1_023, 64_000));
    check_config(|config| config.thinking = thinking(64_000), &error(64_000, 64_000));
    check(
        |b| b.with(|c| (c.thinking, c.output.explicit) = (thinking(4_000), Some(4_000))),
        &error(4_000, 4_000),
    );
    check(|b| b.with(|c| (c.thinking, c.output.explicit) = (thinking(3_999), Some(4_000))), "");
}
