//! What happens around the answers: compactions, other models, caches, notices.

use serde_json::{Value, json};
use windlass_protocol::{
    CompactTrigger, Compaction, Decision, HookEnding, HookRun, PrefixPart, StopHookSummary, StopHookVerdict,
    Update,
};
use windlass_text::plurals::quantity;

use crate::hooks;
use crate::lines::LineUuid;
use crate::translate::Translator;

impl Translator {
    /// Appends the lines of an update that is not about one message.
    pub(crate) fn on_context(&mut self, update: &Update, out: &mut Vec<u8>) {
        match update {
            Update::Compacting(_) => {
                self.run.is_compacting = true;
                self.write_system("status", &json!({ "status": "compacting" }), out);
            }
            Update::CompactionFailed(error) => {
                self.run.is_compacting = false;
                let body = json!({ "status": null, "compact_result": "failed", "compact_error": error });
                self.write_system("status", &body, out);
            }
            Update::Decided(Decision::Compacted(compaction)) => self.on_compacted(compaction, out),
            Update::Decided(Decision::Snipped { messages, tokens, .. }) => {
                let removed: Vec<LineUuid> =
                    self.shown.of(messages).into_iter().map(|id| self.ids.message_uuid(id)).collect();
                let metadata = json!({ "removed_uuids": removed, "tokens_freed": tokens });
                self.write_system("snip_boundary", &json!({ "snip_metadata": metadata }), out);
            }
            Update::Decided(decision) => {
                if let Some(text) = describe(decision) {
                    self.informational(&text, "info", out);
                }
            }
            Update::ToolUseSummary { summary, tool_use_ids } => {
                let ids = tool_use_ids;
                let body =
                    json!({ "type": "tool_use_summary", "summary": summary, "preceding_tool_use_ids": ids });
                self.write_line(&body, out);
            }
            Update::PromptSuggestion { suggestion } => {
                self.write_line(&json!({ "type": "prompt_suggestion", "suggestion": suggestion }), out);
            }
            Update::FellBack { from, to, failure } => {
                let text = format!("Switched from {from} to {to}: {}", failure.message);
                self.informational(&text, "warning", out);
            }
            Update::ClearedByProvider { tool_results, thinking_turns, tokens } => {
                let text = format!(
                    "The provider cleared {} and the thinking of {} from the conversation ({tokens} tokens).",
                    quantity(*tool_results as usize, "old result"),
                    quantity(*thinking_turns as usize, "answer")
                );
                self.informational(&text, "info", out);
            }
            Update::CacheMissed { expected, read, part } => {
                self.informational(&cache_missed(*expected, *read, part.as_ref()), "info", out);
            }
            Update::Notice(text) => {
                self.informational(text, "notice", out);
                self.noticed = Some(text.clone());
            }
            Update::HookFailed(failure) => self.informational(&failure.text, "notice", out),
            Update::StopHooks(summary) => self.on_stop_hooks(summary, out),
            Update::TurnsUsedUp { turns, limit } => {
                let body = json!({ "turn_count": turns, "max_turns": limit });
                self.write_system("max_turns_reached", &body, out);
            }
            // The rest shows in other lines: transitions in what follows them.
            _ => {}
        }
    }

    fn on_stop_hooks(&mut self, summary: &StopHookSummary, out: &mut Vec<u8>) {
        let infos: Vec<Value> = summary.hooks.iter().map(stop_hook_info).collect();
        let objections = match summary.verdict {
            StopHookVerdict::Blocked | StopHookVerdict::Overruled => &summary.reasons[..],
            StopHookVerdict::Passed | StopHookVerdict::Prevented => &[],
        };
        let failed = summary.hooks.iter().filter(|run| run.ending == HookEnding::Failed);
        let failed = failed.map(|run| &run.said).filter(|said| !objections.contains(said));
        let is_prevented = summary.verdict == StopHookVerdict::Prevented;
        let mut body = json!({
            "hook_event": summary.event.name(),
            "hook_count": summary.hooks.len(),
            "hook_infos": infos,
            "hook_errors": objections.iter().chain(failed).collect::<Vec<_>>(),
            "blocked": summary.verdict == StopHookVerdict::Blocked,
            "prevented_continuation": is_prevented,
            "has_output": summary.hooks.iter().any(|run| !run.said.is_empty()),
            "level": if summary.verdict == StopHookVerdict::Passed { "info" } else { "notice" },
        });
        if let Some(reason) = summary.reasons.first().filter(|_| is_prevented) {
            body["stop_reason"] = json!(reason);
        }
        self.write_system("stop_hook_summary", &body, out);
    }

    /// Says that a compaction is over, if one was announced and nothing was said of its end.
    pub(crate) fn end_compaction(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.run.is_compacting) {
            self.write_system("status", &json!({ "status": null }), out);
        }
    }

    fn on_compacted(&mut self, compaction: &Compaction, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.run.is_compacting) {
            self.write_system("status", &json!({ "status": null, "compact_result": "success" }), out);
        }
        let trigger = match compaction.trigger {
            CompactTrigger::Manual => "manual",
            CompactTrigger::Auto | CompactTrigger::Reactive => "auto",
        };
        let mut metadata = json!({
            "trigger": trigger,
            "pre_tokens": compaction.tokens_before,
            "post_tokens": compaction.tokens_after,
            "duration_ms": compaction.duration_ms,
        });
        // The messages that stay, from the first to the last, and the boundary they now stand behind.
        if let Some((head, tail)) = compaction.tail.zip(self.latest).filter(|(head, latest)| head <= latest) {
            metadata["preserved_segment"] = json!({
                "head_uuid": self.ids.message_uuid(head),
                "anchor_uuid": self.ids.message_uuid(compaction.boundary.id),
                "tail_uuid": self.ids.message_uuid(tail),
            });
        }
        self.write_system("compact_boundary", &json!({ "compact_metadata": metadata }), out);
    }
}

fn stop_hook_info(run: &HookRun) -> Value {
    let mut info = json!({
        "command": run.hook,
        "duration_ms": run.duration_ms,
        "outcome": hooks::outcome(run.ending),
    });
    if !run.said.is_empty() {
        info["output"] = json!(run.said);
    }
    info
}

/// What a context layer did, for a host's log; nothing if it shows elsewhere.
fn describe(decision: &Decision) -> Option<String> {
    Some(match decision {
        Decision::Cleared { results, tokens, .. } => {
            format!("Cleared {} (about {tokens} tokens).", quantity(results.len(), "old result"))
        }
        Decision::Collapsed { spans, tokens, .. } => {
            format!("Replaced {} by a summary (about {tokens} tokens).", quantity(spans.len(), "span"))
        }
        Decision::MediaStripped(messages) => {
            let messages = quantity(messages.len(), "message");
            format!("Removed the content that the provider rejected from {messages}.")
        }
        Decision::Stored(_)
        | Decision::Snipped { .. }
        | Decision::Staged(_)
        | Decision::ThinkingStripped(..)
        | Decision::Compacted(_) => return None,
    })
}

fn cache_missed(expected: u64, read: u64, part: Option<&PrefixPart>) -> String {
    let part = match part {
        None => "The request has the same beginning as the last one.".into(),
        Some(PrefixPart::Model) => "The model has changed since the last request.".into(),
        Some(PrefixPart::Tools) => "The tools have changed since the last request.".into(),
        Some(PrefixPart::System) => "The system prompt has changed since the last request.".into(),
        Some(PrefixPart::Settings) => {
            "Thinking, effort or budget have changed since the last request.".into()
        }
        Some(PrefixPart::Message { index, .. }) => {
            format!("The first change since the last request is in message {index}.")
        }
    };
    format!("Cache miss: the provider's cache held {read} of {expected} tokens. {part}")
}
