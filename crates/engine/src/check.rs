//! What a configuration must not say. An engine with nonsense in it is not built.

use windlass_core::{Config, ContextPolicy, THINKING_TOKENS_MIN};
use windlass_protocol::ModelCard;

use crate::builder::EngineError;

/// With less room than this, not even one exchange would fit.
const ROOM_TOKENS_MIN: u64 = 500;

/// Refuses limits that cannot be meant.
pub(crate) fn check(config: &Config) -> Result<(), EngineError> {
    let mut models = std::iter::once(&config.model).chain(&*config.fallbacks);
    check_money(config)
        .and_then(|()| check_zeros(config))
        .and_then(|()| check_shares(config))
        .and_then(|()| check_thinking(config))
        .and_then(|()| models.try_for_each(|model| check_room(model, &config.context)))
        .map_err(EngineError::Setting)
}

/// Money can only be counted where every price is known.
fn check_money(config: &Config) -> Result<(), String> {
    let Some(budget) = config.budget_usd else { return Ok(()) };
    if !(budget.is_finite() && budget > 0.0) {
        return Err(format!("invalid budget of {budget} USD: give a number above zero"));
    }
    let mut models = std::iter::once(&config.model).chain(&*config.fallbacks).chain(&config.small_model);
    models.find(|model| model.price.is_none()).map_or(Ok(()), |model| {
        Err(format!(
            "the price of {} is unknown, so a budget in USD cannot be checked. Use another model, or leave out the budget",
            model.id
        ))
    })
}

fn check_zeros(config: &Config) -> Result<(), String> {
    let Config { output, context, repeats, .. } = config;
    let limits = [
        ("the limit on turns", config.turns_max.map(u64::from)),
        ("the budget of output tokens", config.token_budget),
        ("the task budget", config.task_budget),
        ("the limit on output tokens", output.explicit.map(u64::from)),
        ("the first limit on output tokens", Some(output.first.into())),
        ("the raised limit on output tokens", Some(output.escalated.into())),
        ("the window for compaction", context.window_tokens),
        ("the size of a collapsed span", Some(context.span_tokens)),
        ("the limit on compactions without progress", Some(context.no_progress_max.into())),
        ("the number of repeated calls before the model is warned", Some(repeats.tell_after.into())),
        ("the number of repeated calls before the user is asked", Some(repeats.ask_after.into())),
        ("the number of repeated calls before the run ends", Some(repeats.end_after.into())),
    ];
    match limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
        Some((name, _)) => Err(format!("{name} is 0. Give at least 1, or leave it out")),
        None => Ok(()),
    }
}

fn check_shares(config: &Config) -> Result<(), String> {
    let shares = [
        ("the share of the window that triggers compaction", config.context.compact_percent),
        ("the share of the window that triggers collapsing", Some(config.context.stage_percent)),
        ("the share of the token budget that counts as used up", Some(config.continuation.percent)),
    ];
    for (name, share) in shares {
        if let Some(percent) = share.filter(|percent| !(1..=100).contains(percent)) {
            return Err(format!("{name} is {percent} %. Give a number from 1 to 100"));
        }
    }
    Ok(())
}

fn check_thinking(config: &Config) -> Result<(), String> {
    let Some(tokens) = config.thinking.budget_tokens else { return Ok(()) };
    // Without a cap of the user's own, the cap grows to the escalated one when that is needed.
    let wanted = config.output.explicit.unwrap_or(config.output.escalated);
    let cap = wanted.min(config.model.output_tokens_max);
    if (THINKING_TOKENS_MIN..cap).contains(&tokens) {
        return Ok(());
    }
    Err(format!(
        "invalid thinking budget of {tokens} tokens: give at least {THINKING_TOKENS_MIN} and less than the limit on output \
         tokens ({cap})"
    ))
}

/// There must be something left of the window before anything is done about its being full.
fn check_room(model: &ModelCard, context: &ContextPolicy) -> Result<(), String> {
    let window = context.window_tokens.map_or(model.window_tokens, |own| own.min(model.window_tokens));
    // At most half of a window is kept for the answer, and at most half of the rest for making room.
    let effective = window / 2;
    let share = context.compact_percent.map_or(u64::MAX, |percent| effective.saturating_mul(percent) / 100);
    if (effective / 2).min(share) >= ROOM_TOKENS_MIN {
        return Ok(());
    }
    Err(format!(
        "a context window of {window} tokens is too small for {}: it would be full at once. Give a larger window, or compact \
         at a larger share of it",
        model.id
    ))
}
