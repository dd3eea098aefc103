//! `result`: how a run ended. Exactly one per run, after everything else.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_protocol::{Denial, HostUsage, ModelSpend, Outcome, SessionKey, Terminal, Usage};

use crate::fit::{self, DetailLevel};
use crate::lines::{LineUuid, Prompts};
use crate::translate::LineIds;
use crate::usage::model_usage;

#[derive(Serialize)]
#[serde(tag = "type", rename = "result")]
struct ResultLine<'a> {
    subtype: &'static str,
    is_error: bool,
    /// Of every success, where null means that no call failed; absent on errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_error_status: Option<Value>,
    duration_ms: u64,
    duration_api_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttft_ms: Option<u64>,
    num_turns: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<&'a [String]>,
    stop_reason: Option<&'a str>,
    session_id: LineUuid,
    /// Null when a price is unknown.
    total_cost_usd: Option<f64>,
    usage: HostUsage<'a>,
    #[serde(rename = "modelUsage")]
    model_usage: BTreeMap<&'a str, Value>,
    permission_denials: Vec<DenialJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deferred_tool_use: Option<DeferredJson<'a>>,
    /// Absent when no request was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal_reason: Option<&'static str>,
    result_index: u32,
    #[serde(flatten)]
    prompts: Option<Prompts<'a>>,
    uuid: LineUuid,
}

#[derive(Serialize)]
struct DeferredJson<'a> {
    id: &'a str,
    name: &'a str,
    input: Arc<RawValue>,
}

#[derive(Serialize)]
struct DenialJson<'a> {
    #[serde(rename = "tool_name")]
    name: &'a str,
    #[serde(rename = "tool_use_id")]
    id: &'a str,
    #[serde(rename = "tool_input")]
    input: Arc<RawValue>,
}

/// What the translator knows of a run beside its outcome.
pub(crate) struct ResultContext<'a> {
    pub(crate) session_id: LineUuid,
    pub(crate) uuid: LineUuid,
    pub(crate) result_index: u32,
    pub(crate) ttft_ms: Option<u64>,
    /// What all runs of the session took, this one included.
    pub(crate) spent: &'a BTreeMap<Arc<str>, ModelSpend>,
}

fn subtype(terminal: Terminal) -> &'static str {
    match terminal {
        Terminal::Completed
        | Terminal::TokenBudgetCompleted
        | Terminal::StopHookPrevented
        | Terminal::HookStopped
        | Terminal::ApiError
        | Terminal::Refused
        | Terminal::ToolDeferred => "success",
        Terminal::MaxTurns => "error_max_turns",
        Terminal::MaxBudgetUsd => "error_max_budget_usd",
        Terminal::StructuredOutputRetries => "error_max_structured_output_retries",
        Terminal::AbortedStreaming
        | Terminal::AbortedTools
        | Terminal::BlockingLimit
        | Terminal::PromptTooLong
        | Terminal::MaxOutputTokens
        | Terminal::ImageError
        | Terminal::ModelError
        | Terminal::RepeatedCall
        | Terminal::RapidRefill
        | Terminal::StoreFailed => "error_during_execution",
    }
}

/// The terminal in the protocol's word, which is ours except where hosts know another.
fn terminal_reason(terminal: Terminal) -> &'static str {
    match terminal {
        Terminal::Refused | Terminal::TokenBudgetCompleted => Terminal::Completed.name(),
        Terminal::MaxBudgetUsd => "budget_exhausted",
        Terminal::StructuredOutputRetries => "structured_output_retry_exhausted",
        Terminal::RapidRefill => "rapid_refill_breaker",
        other => other.name(),
    }
}

pub(crate) fn append(outcome: &Outcome, context: &ResultContext<'_>, out: &mut Vec<u8>) {
    let answer = answer(outcome);
    let errors = errors_of(outcome);
    let success = outcome.terminal.is_success();
    fit::append(out, |detail, out| {
        let line = ResultLine {
            subtype: subtype(outcome.terminal),
            is_error: !success,
            api_error_status: api_error_status(outcome),
            duration_ms: outcome.duration_ms,
            duration_api_ms: outcome.duration_api_ms,
            ttft_ms: context.ttft_ms,
            num_turns: outcome.iterations,
            result: answer.as_deref(),
            errors: answer.is_none().then_some(&*errors),
            stop_reason: outcome.stop_reason.as_deref(),
            permission_denials: outcome.denials.iter().map(|d| denial_json(d, detail)).collect(),
            structured_output: outcome.structured.as_ref().filter(|_| success).map(|raw| &*raw.0),
            deferred_tool_use: outcome.deferred.as_ref().filter(|_| success).map(|call| DeferredJson {
                id: &call.id,
                name: &call.name,
                input: call.input.json(),
            }),
            terminal_reason: is_loop(outcome).then(|| terminal_reason(outcome.terminal)),
            ..unrun(context, &outcome.usage, &outcome.prompts)
        };
        fit::write_json(&line, out);
    });
}

/// Whether the loop ran. A command that is answered without a request has no reason to end for.
fn is_loop(outcome: &Outcome) -> bool {
    outcome.iterations > 0 || outcome.terminal != Terminal::Completed
}

fn api_error_status(outcome: &Outcome) -> Option<Value> {
    match outcome.terminal {
        Terminal::ApiError => Some(outcome.failure.as_ref().and_then(|failure| failure.status).into()),
        terminal => terminal.is_success().then_some(Value::Null),
    }
}

/// What hosts show as the answer of a success, which to them a failed call is too; others have errors instead.
fn answer(outcome: &Outcome) -> Option<Cow<'_, str>> {
    match outcome.terminal {
        Terminal::ApiError => Some(outcome.error_text().into()),
        Terminal::Refused if outcome.text.is_empty() => Some(outcome.error_text().into()),
        Terminal::HookStopped if outcome.text.is_empty() => Some(outcome.warnings.join("; ").into()),
        terminal if terminal.is_success() => Some(outcome.text.as_str().into()),
        _ => None,
    }
}

/// What went wrong; never empty for a run that failed, since hosts show the first of it.
fn errors_of(outcome: &Outcome) -> Vec<String> {
    if outcome.errors.is_empty() {
        return vec![format!("The run ended with {}.", outcome.terminal.name())];
    }
    outcome.errors.clone()
}

fn denial_json(denial: &Denial, detail: DetailLevel) -> DenialJson<'_> {
    DenialJson {
        name: &denial.tool_use.name,
        id: &denial.tool_use.id,
        input: match detail {
            DetailLevel::Bare => fit::empty_object(),
            _ => denial.tool_use.input.json(),
        },
    }
}

/// Appends the `result` of a run that could not start.
pub fn startup_failure(session: impl Into<SessionKey>, errors: &[String], out: &mut Vec<u8>) {
    let mut ids = LineIds::new(session.into());
    let context = ResultContext {
        session_id: ids.session(),
        uuid: ids.next(),
        result_index: 0,
        ttft_ms: None,
        spent: &BTreeMap::new(),
    };
    append_refusal(errors, &[], &context, out);
}

/// Appends the `result` of prompts that nothing was done about.
pub(crate) fn append_refusal(
    errors: &[String],
    prompts: &[Arc<str>],
    context: &ResultContext<'_>,
    out: &mut Vec<u8>,
) {
    let usage = Usage::default();
    let line = ResultLine { errors: Some(errors), ..unrun(context, &usage, prompts) };
    fit::append_plain(out, &line);
}

/// The `result` where nothing was done.
fn unrun<'a>(context: &ResultContext<'a>, usage: &'a Usage, prompts: &'a [Arc<str>]) -> ResultLine<'a> {
    let spent = context.spent;
    ResultLine {
        subtype: "error_during_execution",
        is_error: true,
        api_error_status: None,
        duration_ms: 0,
        duration_api_ms: 0,
        ttft_ms: None,
        num_turns: 0,
        result: None,
        errors: None,
        stop_reason: None,
        session_id: context.session_id,
        total_cost_usd: spent.values().try_fold(0.0, |sum, spend| Some(sum + spend.cost_usd?)),
        usage: HostUsage::from(usage),
        model_usage: spent.iter().map(|(model, spend)| (&**model, model_usage(spend))).collect(),
        permission_denials: Vec::new(),
        structured_output: None,
        deferred_tool_use: None,
        terminal_reason: Some("turn_setup_failed"),
        result_index: context.result_index,
        prompts: Prompts::new(prompts),
        uuid: context.uuid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_terminal_has_a_name_hosts_know() {
        let check = |terminal, reason: &str, kind: &str| {
            assert_eq!(terminal_reason(terminal), reason);
            assert_eq!(subtype(terminal), kind);
            terminal
        };
        let checked = [
            check(Terminal::Completed, "completed", "success"),
            check(Terminal::TokenBudgetCompleted, "completed", "success"),
            check(Terminal::StopHookPrevented, "stop_hook_prevented", "success"),
            check(Terminal::HookStopped, "hook_stopped", "success"),
            check(Terminal::MaxTurns, "max_turns", "error_max_turns"),
            check(Terminal::MaxBudgetUsd, "budget_exhausted", "error_max_budget_usd"),
            check(
                Terminal::StructuredOutputRetries,
                "structured_output_retry_exhausted",
                "error_max_structured_output_retries",
            ),
            check(Terminal::AbortedStreaming, "aborted_streaming", "error_during_execution"),
            check(Terminal::AbortedTools, "aborted_tools", "error_during_execution"),
            check(Terminal::BlockingLimit, "blocking_limit", "error_during_execution"),
            check(Terminal::PromptTooLong, "prompt_too_long", "error_during_execution"),
            check(Terminal::MaxOutputTokens, "max_output_tokens", "error_during_execution"),
            check(Terminal::ImageError, "image_error", "error_during_execution"),
            check(Terminal::ModelError, "model_error", "error_during_execution"),
            check(Terminal::ApiError, "api_error", "success"),
            check(Terminal::Refused, "completed", "success"),
            check(Terminal::RepeatedCall, "repeated_call", "error_during_execution"),
            check(Terminal::RapidRefill, "rapid_refill_breaker", "error_during_execution"),
            check(Terminal::ToolDeferred, "tool_deferred", "success"),
            check(Terminal::StoreFailed, "store_failed", "error_during_execution"),
        ];
        assert_eq!(checked, Terminal::ALL, "every terminal, in order");
    }
}
