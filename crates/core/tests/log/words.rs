//! How a log of a scenario words records, effects and updates.

use windlass_core::{Effect, PhaseName, RunSource};
use windlass_protocol::{
    Block, BlockKind, Decision, Durability, FinishedCall, HookCall, Message, Origin, Record, Role, RunEnding,
    ToolUse, Transcript, Update,
};

/// A record in brackets, with `!` if it must be on the disk.
pub(super) fn record_words(record: &Record, durability: Durability) -> Option<String> {
    let words = match record {
        Record::Said(said) => format!("said {}", texts(&said.message.blocks)),
        Record::Answered(answered) if answered.is_aborted => "aborted".into(),
        Record::Answered(_) => "answered".into(),
        Record::Result(result) => format!("result c{}", result.call.0),
        Record::Retracted(messages) => format!("retracted {}", messages.len()),
        Record::Queued(prompt) => format!("queued {}", texts(&prompt.blocks)),
        Record::Dequeued => "dequeued".into(),
        Record::Requested(requested) => format!("requested #{}", requested.request.0),
        Record::Intended(intended) => format!("intended c{}", intended.call.0),
        Record::Finished(FinishedCall { call, .. }) => format!("finished c{}", call.0),
        Record::Decided(decision) => decision_words(decision),
        Record::Repaired(_) => "repaired".into(),
        Record::Ended(RunEnding { terminal, .. }) => format!("ended {}", terminal.name()),
        Record::Heard(_) | Record::Ruled(_) | Record::Spent(_) | Record::Snapshot(_) => return None,
    };
    Some(format!("[{words}{}]", if durability == Durability::Synced { "!" } else { "" }))
}

/// Effects that belong to no phase. A prefetch goes with every prompt and says nothing new.
pub(super) fn plain_words(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::CancelModel(request) => format!("cancel-model #{}", request.0),
        Effect::CancelTool(call) => format!("cancel c{}", call.0),
        Effect::AbandonTool(call) => format!("abandon c{}", call.0),
        Effect::CancelHooks(hook) => format!("cancel h{}", hook.0),
        Effect::Fork { fork, config, .. } => format!("fork f{} {}", fork.0, source_words(&config.source)),
        Effect::CancelFork(fork) => format!("cancel f{}", fork.0),
        Effect::Store(store, results) => format!("store s{} {}", store.0, results.len()),
        _ => return None,
    })
}

fn source_words(source: &RunSource) -> String {
    match source {
        RunSource::PromptSuggestion => "prompt_suggestion".into(),
        other => format!("{other:?}").to_lowercase(),
    }
}

pub(super) fn hook_words(call: &HookCall) -> String {
    let about = match call {
        HookCall::PreToolUse(call)
        | HookCall::PostToolUse { call, .. }
        | HookCall::PermissionRequest { call, .. } => phrase(&call.tool_use),
        HookCall::Stop { is_active, text } => format!("{text}{}", if *is_active { " (again)" } else { "" }),
        HookCall::StopFailure { terminal, failure } => {
            failure.as_ref().map_or_else(|| terminal.name().to_owned(), |failure| failure.message.clone())
        }
        HookCall::PreCompact { instructions, .. } => instructions.to_string(),
        HookCall::PostCompact { summary, .. } => clipped(summary.to_string()),
        HookCall::SessionStart { source, .. } => source.name().to_owned(),
        HookCall::InstructionsLoaded { files, reason } => format!("{files:?} {}", reason.name()),
        HookCall::UserPromptSubmit { prompt } => prompt.to_string(),
        HookCall::CwdChanged { from, to } => format!("{} to {}", from.display(), to.display()),
        HookCall::PostToolBatch { calls } => {
            calls.iter().map(|call| phrase(&call.tool_use)).collect::<Vec<_>>().join(", ")
        }
        // The core asks none of the others.
        _ => String::new(),
    };
    format!("{} {about}", call.event().name())
}

/// What an update about a call says.
pub(super) fn said(update: &Update) -> Option<String> {
    let text = match update {
        Update::ToolResult { result, .. } => clipped(result_text(result)),
        Update::Denied(denial) => denial.reason.clone(),
        Update::Question(question) => question.reason.clone(),
        _ => return None,
    };
    Some(format!(": {}", untagged(&text)))
}

fn clipped(text: String) -> String {
    if text.len() < 400 { text } else { format!("{}…", text.chars().take(20).collect::<String>()) }
}

/// What a result says.
pub(super) fn result_text(result: &Block) -> String {
    let json: serde_json::Value = serde_json::from_str(result.json()).expect("blocks are JSON");
    json["content"].as_str().map_or_else(|| texts(&result.result_blocks()), str::to_owned)
}

/// Without the tag of a reminder, and on one line.
pub(super) fn untagged(text: &str) -> String {
    text.replace("<system-reminder>", "(").replace("</system-reminder>", ")").replace('\n', " ")
}

pub(super) fn update_words(update: &Update) -> Option<String> {
    Some(match update {
        Update::ToolResult { call, result, .. } => {
            let error = matches!(result.kind(), BlockKind::ToolResult { is_error: true, .. });
            format!("result c{}{}", call.0, if error { " error" } else { "" })
        }
        Update::Block { block, is_aborted: true, .. } => format!("aborted text {}", block.as_text()?),
        Update::UserText { blocks, .. } => format!("said {}", texts(blocks)),
        Update::Question(question) => format!("ask c{}", question.call.0),
        Update::Denied(denial) => format!("denied c{}", denial.call.0),
        Update::Retracted { messages, .. } => format!("retract {}", messages.len()),
        Update::Retrying { attempt, retries_max, delay_ms, .. } => {
            format!("retry {attempt} of {retries_max} in {delay_ms}")
        }
        Update::Repaired(repairs) => format!("repaired {repairs:?}"),
        Update::FellBack { from, to, .. } => format!("fall back from {from} to {to}"),
        Update::Compacting(trigger) => format!("compacting {trigger:?}").to_lowercase(),
        Update::CompactionFailed(why) => format!("not compacted: {why}"),
        Update::Decided(decision) => decision_words(decision),
        Update::ClearedByProvider { tool_results, tokens, .. } => {
            format!("provider cleared {tool_results} results, {tokens} tokens")
        }
        Update::CacheMissed { expected, read, part } => {
            format!("cache missed: {read} of {expected}, {part:?}")
        }
        Update::Notice(text) => format!("notice {text}"),
        Update::StopHooks(summary) => {
            let ran = summary.hooks.iter().map(|run| format!("{} {} ms", run.hook, run.duration_ms));
            let ran = ran.collect::<Vec<_>>().join(", ");
            let verdict = format!("{:?}", summary.verdict).to_lowercase();
            format!("stop hooks {verdict} [{ran}] {}", summary.reasons.join("; ")).trim_end().to_owned()
        }
        Update::PromptsRefused(ids) => format!("refused {}", ids.join(",")),
        Update::PromptsStarted(ids) => format!("started {}", ids.join(",")),
        Update::PromptSuggestion { suggestion } => format!("suggestion {suggestion}"),
        Update::ToolUseSummary { summary, tool_use_ids } => {
            format!("summary {summary} of {}", tool_use_ids.join(","))
        }
        _ => return None,
    })
}

fn decision_words(decision: &Decision) -> String {
    match decision {
        Decision::Stored(results) => format!("stored {}", results.len()),
        Decision::Snipped { messages, .. } => format!("snipped {}", messages.len()),
        Decision::Cleared { results, .. } => format!("cleared {}", results.len()),
        Decision::Staged(_) => "staged".into(),
        Decision::Collapsed { spans, .. } => format!("collapsed {}", spans.len()),
        Decision::Compacted(compaction) if compaction.is_mechanical => "compacted mechanically".into(),
        Decision::Compacted(_) => "compacted".into(),
        Decision::MediaStripped(messages) => format!("media stripped from {}", messages.len()),
        Decision::ThinkingStripped(messages) => format!("thinking stripped from {}", messages.len()),
    }
}

pub(super) fn phases(list: &[PhaseName]) -> Option<String> {
    let names: Vec<String> = list.iter().map(|phase| format!("{phase:?}").to_lowercase()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// One word per message, with the shape of its blocks.
pub(super) fn shape(messages: &Transcript) -> Vec<String> {
    messages.iter().map(|message| message_shape(message)).collect()
}

fn message_shape(message: &Message) -> String {
    let block = |block: &Block| match block.kind() {
        BlockKind::ToolUse(tool_use) => tool_use.name.to_string(),
        BlockKind::ToolResult { is_error: true, .. } => "result!".into(),
        BlockKind::ToolResult { .. } => "result".into(),
        BlockKind::Thinking | BlockKind::RedactedThinking => "thinking".into(),
        BlockKind::Image => "picture".into(),
        _ => "text".into(),
    };
    match (&message.origin, message.role) {
        (Origin::Boundary, _) => "boundary".into(),
        (Origin::Collapsed, _) => "collapsed".into(),
        (_, Role::Assistant) => {
            format!("assistant({})", message.blocks.iter().map(block).collect::<Vec<_>>().join(","))
        }
        (_, Role::User) if message.blocks.iter().any(|b| block(b).starts_with("result")) => {
            let words = message.blocks.iter().map(|b| b.as_text().map_or_else(|| block(b), shortened));
            format!("user({})", words.collect::<Vec<_>>().join(","))
        }
        (_, Role::User) if message.blocks.len() > 1 => {
            let words = message.blocks.iter().map(|b| b.as_text().map_or_else(|| block(b), shortened));
            format!("user({})", words.collect::<Vec<_>>().join("/"))
        }
        (_, Role::User) => "user".into(),
    }
}

/// A reminder is known by its first words.
fn shortened(text: &str) -> String {
    match text.strip_prefix("<system-reminder>") {
        Some(reminder) => format!("({}…)", reminder.split(' ').take(2).collect::<Vec<_>>().join(" ")),
        None => text.to_owned(),
    }
}

pub(super) fn texts(blocks: &[Block]) -> String {
    blocks.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("/")
}

/// The phrase in the input of a tool use.
pub(super) fn phrase(tool_use: &ToolUse) -> String {
    let input: serde_json::Value = serde_json::from_str(tool_use.input.get()).expect("inputs here are JSON");
    input["words"].as_str().unwrap_or("").to_owned()
}
