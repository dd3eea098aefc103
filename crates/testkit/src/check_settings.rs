//! The rules of the Messages API for everything in a request but its messages: thinking, effort, budgets, clearing, and
//! the betas they need. What a model takes is known from the table of models; an unknown model takes everything.

use serde_json::Value;
use windlass_models::model_card;
use windlass_protocol::{Effort, ModelCard};

use crate::check::{RequestMessage, is_thinking};

const THINKING_TOKENS_MIN: u64 = 1_024;
const TASK_BUDGET_MIN: u64 = 20_000;

const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";
const BUDGET_BETA: &str = "task-budgets-2026-03-13";
const EDITS_BETA: &str = "context-management-2025-06-27";

/// Checks the settings of a request that came with these betas.
pub(crate) fn check_settings(body: &Value, betas: &[&str]) -> Result<(), String> {
    let card = model_card(body["model"].as_str().unwrap_or_default());
    if !matches!(body["stream"], Value::Null | Value::Bool(_)) {
        return Err("stream: Input should be a valid boolean".to_owned());
    }
    let cap = body["max_tokens"].as_u64().unwrap_or_default();
    if card.is_known && cap > u64::from(card.output_tokens_max) {
        return Err(format!(
            "max_tokens: {cap} > {}, which is the maximum allowed number of output tokens for {}",
            card.output_tokens_max, card.id
        ));
    }
    let effort = check_effort(&body["output_config"]["effort"], &card)?;
    check_thinking(&body["thinking"], cap, effort, &card)?;
    let needs = [
        ("thinking.block_binding", !body["thinking"]["block_binding"].is_null(), BINDING_BETA),
        ("output_config.task_budget", !body["output_config"]["task_budget"].is_null(), BUDGET_BETA),
        ("context_management", !body["context_management"].is_null(), EDITS_BETA),
    ];
    if let Some((field, _, _)) = needs.iter().find(|(_, used, beta)| *used && !betas.contains(beta)) {
        return Err(format!("{field}: Extra inputs are not permitted"));
    }
    check_budget(&body["output_config"]["task_budget"], &card)?;
    check_edits(&body["context_management"])
}

fn check_effort(effort: &Value, card: &ModelCard) -> Result<Option<Effort>, String> {
    if effort.is_null() {
        return Ok(None);
    }
    let level = effort.as_str().and_then(Effort::from_name).ok_or_else(|| {
        "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'".to_owned()
    })?;
    if card.is_known && card.efforts.is_empty() {
        return Err("This model does not support the effort parameter.".to_owned());
    }
    if card.is_known && !card.efforts.contains(&level) {
        return Err(format!("This model does not support the effort level '{}'.", level.name()));
    }
    Ok(Some(level))
}

fn check_thinking(
    thinking: &Value,
    cap: u64,
    effort: Option<Effort>,
    card: &ModelCard,
) -> Result<(), String> {
    if thinking.is_null() {
        return Ok(());
    }
    let support = card.thinking;
    let effort = effort.unwrap_or(Effort::High);
    let (kind, supported) = match thinking["type"].as_str().unwrap_or_default() {
        "adaptive" => ("adaptive", support.is_adaptive),
        "enabled" => ("enabled", support.is_budgeted),
        "disabled" => ("disabled", support.disabled_up_to.is_some_and(|most| effort <= most)),
        other => {
            return Err(format!(
                "thinking: Input tag '{other}' found using 'type' does not match any of the expected tags: 'adaptive', \
                 'disabled', 'enabled'"
            ));
        }
    };
    if card.is_known && !supported {
        return Err(format!("\"thinking.type.{kind}\" is not supported for this model."));
    }
    if !matches!(thinking["display"].as_str(), None | Some("summarized" | "omitted")) {
        return Err(format!("thinking.{kind}.display: Input should be 'summarized' or 'omitted'"));
    }
    if kind == "enabled" {
        return check_thinking_budget(&thinking["budget_tokens"], cap);
    }
    match &thinking["budget_tokens"] {
        Value::Null => Ok(()),
        _ => Err(format!("thinking.{kind}.budget_tokens: Extra inputs are not permitted")),
    }
}

fn check_thinking_budget(budget: &Value, cap: u64) -> Result<(), String> {
    match budget.as_u64() {
        None => Err("thinking.enabled.budget_tokens: Field required".to_owned()),
        Some(..THINKING_TOKENS_MIN) => Err(format!(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to {THINKING_TOKENS_MIN}"
        )),
        Some(budget) if budget >= cap => {
            Err("`max_tokens` must be greater than `thinking.budget_tokens`.".to_owned())
        }
        Some(_) => Ok(()),
    }
}

fn check_budget(budget: &Value, card: &ModelCard) -> Result<(), String> {
    if budget.is_null() {
        return Ok(());
    }
    if card.is_known && !card.can_take_task_budget {
        return Err("This model does not support task budgets.".to_owned());
    }
    if budget["type"] != "tokens" {
        return Err("output_config.task_budget.type: Input should be 'tokens'".to_owned());
    }
    if budget["total"].as_u64().is_none_or(|total| total < TASK_BUDGET_MIN) {
        return Err(format!(
            "output_config.task_budget.total: Input should be greater than or equal to {TASK_BUDGET_MIN}"
        ));
    }
    Ok(())
}

fn check_edits(management: &Value) -> Result<(), String> {
    let known = ["clear_tool_uses_20250919", "clear_thinking_20251015"];
    let edits = management["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
    let unknown = |edit: &&Value| !edit["type"].as_str().is_some_and(|name| known.contains(&name));
    match edits.iter().position(|edit| unknown(&edit)) {
        Some(at) => Err(format!("context_management.edits.{at}.type: Input should be one of {known:?}")),
        None => Ok(()),
    }
}

/// Thinking goes back only while thinking is on.
pub(crate) fn check_thinking_is_on(body: &Value, messages: &[RequestMessage<'_>]) -> Result<(), String> {
    let card = model_card(body["model"].as_str().unwrap_or_default());
    let off = match &body["thinking"] {
        Value::Null => card.is_known && !card.thinking.is_on_by_default,
        thinking => thinking["type"] == "disabled",
    };
    if !off {
        return Ok(());
    }
    let place = messages.iter().enumerate().find_map(|(at, message)| {
        let index = message.blocks.iter().position(|block| is_thinking(block))?;
        Some(format!("messages.{at}.content.{index}"))
    });
    match place {
        Some(place) => Err(format!("{place}: thinking blocks may only be sent while thinking is enabled")),
        None => Ok(()),
    }
}
