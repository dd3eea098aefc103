//! What is marked beside requests and calls: decisions of layers, hooks, forks, repairs, what the provider did.

use windlass_protocol::{
    Collapse, CompactTrigger, Compaction, Decision, HookAnswer, HookPermission, ModelNote, Outcome, Repair,
};

use crate::figures::{number, quantity};
use crate::record_reader::{Trace, text_of};
use crate::text;
use crate::traced_session::{MarkKind, TraceMark};

impl Trace {
    pub(crate) fn on_note(&mut self, note: &ModelNote) {
        let (name, about) = match note {
            ModelNote::Cleared { tool_results, thinking_turns, tokens } => {
                let results = quantity((*tool_results).into(), "result");
                let thinking = quantity((*thinking_turns).into(), "thinking block");
                ("provider cleared context", format!("{results}, {thinking}, {} tokens", number(*tokens)))
            }
            ModelNote::ThinkingDropped { blocks, reason } => {
                ("provider dropped thinking", format!("{}: {reason}", quantity((*blocks).into(), "block")))
            }
            ModelNote::Refusal { category, explanation } => {
                let said = [category, explanation].into_iter().flatten().map(|text| &**text);
                ("declined", said.collect::<Vec<_>>().join(": "))
            }
        };
        self.mark(MarkKind::Note, name, &about);
    }

    pub(crate) fn on_forked(&mut self, outcome: &Outcome) {
        let models: Vec<&str> = outcome.models.keys().map(|model| &**model).collect();
        let about = format!("{} {}", models.join(", "), outcome.terminal.name()).trim().to_owned();
        self.mark_span(Some(outcome.duration_ms), MarkKind::Fork, "fork", &about);
    }

    pub(crate) fn on_hooked(&mut self, answer: &HookAnswer) {
        let said = hooks_said(answer);
        if !said.is_empty() {
            self.mark(MarkKind::Hook, "hooks", &said.join("; "));
        }
    }

    pub(crate) fn on_decided(&mut self, decision: &Decision) {
        let tokens = |tokens: u64| format!("{} tokens freed", number(tokens));
        let many = |n: usize, thing: &str| quantity(n as u64, thing);
        let (name, about) = match decision {
            Decision::Compacted(compaction) => return self.on_compacted(compaction),
            Decision::Stored(results) => ("results moved to files", many(results.len(), "result")),
            Decision::Snipped { messages, tokens: freed, .. } => {
                ("snipped", format!("{}, {}", many(messages.len(), "message"), tokens(*freed)))
            }
            Decision::Cleared { results, tokens: freed, .. } => {
                ("cleared", format!("{}, {}", many(results.len(), "result"), tokens(*freed)))
            }
            Decision::Staged(Collapse { first, last, .. }) => {
                ("staged", format!("summary of messages {} to {}", first.0, last.0))
            }
            Decision::Collapsed { spans, tokens: freed, .. } => {
                ("collapsed", format!("{}, {}", many(spans.len(), "span"), tokens(*freed)))
            }
            Decision::MediaStripped(messages) => ("media removed", many(messages.len(), "message")),
            Decision::ThinkingStripped(messages) => ("thinking removed", many(messages.len(), "message")),
        };
        self.mark(MarkKind::Decision, name, &about);
    }

    pub(crate) fn on_compacted(&mut self, compaction: &Compaction) {
        let trigger = match compaction.trigger {
            CompactTrigger::Auto => "automatic",
            CompactTrigger::Manual => "manual",
            CompactTrigger::Reactive => "prompt too long",
        };
        let how = if compaction.is_mechanical { ", without a model" } else { "" };
        let about = format!(
            "{trigger}{how}: {} to about {} tokens",
            number(compaction.tokens_before),
            number(compaction.tokens_after)
        );
        self.mark_span(Some(compaction.duration_ms), MarkKind::Compaction, "compaction", &about);
        self.push_message(compaction.boundary.id, "boundary", &text_of(&compaction.boundary.blocks), false);
    }

    pub(crate) fn on_repaired(&mut self, repairs: &[Repair]) {
        if !repairs.is_empty() {
            self.mark(MarkKind::Repair, "conversation repaired", &quantity(repairs.len() as u64, "repair"));
        }
    }

    pub(crate) fn mark(&mut self, kind: MarkKind, name: &str, about: &str) {
        self.mark_span(None, kind, name, about);
    }

    /// Marks something that ends now, and how long it took, if it took a while.
    pub(crate) fn mark_span(&mut self, took_ms: Option<u64>, kind: MarkKind, name: &str, about: &str) {
        let Some((run, at)) = self.place() else { return };
        let from = took_ms.map(|took| at.saturating_sub(took));
        let (name, about) = (name.to_owned(), text::beginning(about).to_owned());
        let requests_before = self.story.requests.len();
        self.story.marks.push(TraceMark { run, kind, from, at, name, about, requests_before });
    }
}

fn hooks_said(answer: &HookAnswer) -> Vec<String> {
    let permission = answer.permission.as_ref().map(|permission| match permission {
        HookPermission::Allow => "allow".to_owned(),
        HookPermission::Deny(why) => format!("deny: {why}"),
        HookPermission::Ask(why) => format!("ask: {why}"),
        HookPermission::Defer => "defer".to_owned(),
    });
    let stop = answer.stop.iter().map(|why| format!("stop: {why}"));
    let blocks = answer.blocks.iter().map(|why| format!("blocked: {why}"));
    let input = answer.input.iter().map(|_| "input changed".to_owned());
    let context = answer.context.iter().map(|text| format!("added: {text}"));
    let runs = answer.runs.iter().map(|run| format!("{} took {} ms", run.hook, run.duration_ms));
    let said = stop.chain(blocks).chain(permission).chain(input).chain(context);
    said.chain(answer.clone().into_user_texts()).chain(runs).collect()
}
