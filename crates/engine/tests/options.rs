//! Nonsense is refused when the engine is built, with what is wrong and what to do.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;

use windlass_engine::{
    ContextPolicy, ContinuationPolicy, Engine, EngineBuilder, ModelCard, OutputPolicy, RepeatPolicy,
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

#[test]
fn a_budget_in_usd_is_an_amount_of_money() {
    check(|b| b.budget_usd(Some(0.5)), "");
    for (budget, name) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        let error = format!("a budget of {name} USD cannot be kept; give a number above zero");
        check(|b| b.budget_usd(Some(budget)), &error);
    }
}

#[test]
fn a_budget_in_usd_needs_every_price() {
    let error = "the budget in USD cannot be kept, because the price of mystery is not known; use a model whose price is \
                 known, or leave the budget out";
    let mystery = ModelCard::unknown("mystery");
    let built = builder(mystery.clone()).budget_usd(Some(1.0)).build();
    assert_eq!(built.err().unwrap().to_string(), error);
    check(|b| b.budget_usd(Some(1.0)).fallback_models(vec![priced(), mystery.clone()]), error);
    check(|b| b.budget_usd(Some(1.0)).small_model(Some(mystery.clone())), error);
    check(|b| b.fallback_models(vec![mystery.clone()]).small_model(Some(mystery.clone())), "");
}

#[test]
fn limits_are_above_zero() {
    let zero =
        |name: &str| format!("{name} is zero, so nothing could be done; give at least one, or leave it out");
    check(|b| b.turns_max(Some(0)), &zero("the number of turns"));
    check(|b| b.token_budget(Some(0)), &zero("the budget of output tokens"));
    check(|b| b.task_budget(Some(0)), &zero("the task budget"));
    check(|b| b.output_tokens_max(0), &zero("the cap on output tokens"));
    let output = OutputPolicy::default();
    check(|b| b.output(OutputPolicy { first: 0, ..output }), &zero("the first cap on output tokens"));
    check(|b| b.output(OutputPolicy { escalated: 0, ..output }), &zero("the escalated cap on output tokens"));
    let repeats = RepeatPolicy::default();
    check(
        |b| b.repeats(RepeatPolicy { tell_after: 0, ..repeats }),
        &zero("the number of repeated calls before the model is told"),
    );
    check(
        |b| b.repeats(RepeatPolicy { ask_after: 0, ..repeats }),
        &zero("the number of repeated calls before the user is asked"),
    );
    check(|b| b.turns_max(Some(1)).token_budget(Some(1)).output_tokens_max(1), "");
    check(|b| b.stop_hook_blocks_max(0).pauses_max(0), "");
}

#[test]
fn shares_are_between_one_and_a_hundred() {
    let context = |percent| ContextPolicy { compact_percent: Some(percent), ..ContextPolicy::default() };
    let error = |percent| {
        format!(
            "the share of the window at which the transcript is compacted is {percent} %; give a number from 1 to 100"
        )
    };
    check(|b| b.context(context(0)), &error(0));
    check(|b| b.context(context(101)), &error(101));
    check(|b| b.context(context(1)), "");
    check(|b| b.context(context(100)), "");
    let continuation = ContinuationPolicy { percent: 0, ..ContinuationPolicy::default() };
    check(
        |b| b.continuation(continuation),
        "the share of the token budget that counts as spent is 0 %; give a number from 1 to 100",
    );
}

#[test]
fn a_window_leaves_room_for_work() {
    let window = |tokens| ContextPolicy { window_tokens: Some(tokens), ..ContextPolicy::default() };
    let error = |model: &str, window: u64| {
        format!(
            "a window of {window} tokens leaves no room for work with {model}: it would be full at once. Give a larger \
             window, or a larger share of it before the transcript is compacted"
        )
    };
    let name = priced().id;
    check(|b| b.context(window(1_999)), &error(&name, 1_999));
    check(|b| b.context(window(2_000)), "");
    check(|b| b.context(ContextPolicy { compact_percent: Some(1), ..window(50_000) }), &error(&name, 50_000));
    check(|b| b.context(ContextPolicy { compact_percent: Some(1), ..ContextPolicy::default() }), "");
    let small = ModelCard { window_tokens: 1_000, ..ModelCard::unknown("small") };
    check(|b| b.fallback_models(vec![small]), &error("small", 1_000));
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
            "a budget of {tokens} tokens for thinking is not possible: give at least 1024 and less than the cap on output \
             tokens, which is {cap}"
        )
    };
    check(|b| b.thinking(thinking(1_024)), "");
    check(|b| b.thinking(thinking(31_999)), "");
    check(|b| b.thinking(thinking(1_023)), &error(1_023, 64_000));
    check(|b| b.thinking(thinking(64_000)), &error(64_000, 64_000));
    check(|b| b.thinking(thinking(4_000)).output_tokens_max(4_000), &error(4_000, 4_000));
    check(|b| b.thinking(thinking(3_999)).output_tokens_max(4_000), "");
}
