//! Hooks around a call: before it they may stop it, put it off, change it or decide about it; after it they may object.

use windlass_protocol::{
    CallFacts, HookAnswer, HookCall, HookEvent, HookId, HookPermission, ToolOutcome, Update,
};

use super::CallQueue;
use super::call::{Call, Stage};
use crate::attach::reminder;
use crate::hooks::ended_by_hook;
use crate::step::Cx;

impl CallQueue {
    /// Hooks answered. What nobody waits for any more is late news.
    pub(crate) fn on_hooked(&mut self, hook: HookId, answer: HookAnswer, cx: &mut Cx<'_>) {
        let waits = |call: &&mut Call| match call.stage {
            Stage::Hooking { hook: asked, .. } | Stage::Reviewing { hook: asked, .. } => asked == hook,
            _ => false,
        };
        let Some(call) = self.calls.iter_mut().find(waits) else { return };
        cx.show_notices(&answer.notices);
        call.note_stop(answer.stop.as_deref(), cx);
        match call.stage.clone() {
            Stage::Hooking { facts, .. } => call.on_hooked_before(answer, facts, cx),
            Stage::Reviewing { outcome, .. } => call.on_hooked_after(&answer, outcome, cx),
            _ => (),
        }
    }
}

impl Call {
    /// Nothing has begun before hooks have answered. They are asked once, about the input as the model wrote it.
    pub(super) fn ask_hooks_before(&mut self, facts: CallFacts, cx: &mut Cx<'_>) {
        let asked = std::mem::replace(&mut self.hooked, true);
        if asked || !cx.config.hooks.contains(&HookEvent::PreToolUse) {
            return self.judge(facts, cx);
        }
        let call = HookCall::PreToolUse { tool: self.tool.clone(), tool_use: self.tool_use.clone() };
        let hook = cx.ask_hooks(call);
        self.stage = Stage::Hooking { hook, facts };
    }

    /// Stop, then deny, then put off; only then does a changed input matter.
    fn on_hooked_before(&mut self, answer: HookAnswer, facts: CallFacts, cx: &mut Cx<'_>) {
        self.remarks.extend(answer.context.iter().map(|text| reminder(text)));
        if self.stop.is_some() {
            return self.finish(ToolOutcome::error(STOPPED));
        }
        self.permission = if answer.blocks.is_empty() {
            answer.permission
        } else {
            Some(HookPermission::Deny(answer.blocks.join("\n")))
        };
        match (&self.permission, answer.input) {
            (Some(HookPermission::Defer), _) => {
                self.deferred = true;
                self.finish(ToolOutcome::error(DEFERRED));
            }
            (Some(HookPermission::Deny(_)), _) | (_, None) => self.judge(facts, cx),
            (_, Some(input)) => self.change_input(input),
        }
    }

    /// An interrupted call is answered without asking anybody else.
    pub(super) fn ask_hooks_after(&mut self, outcome: ToolOutcome, shared: bool, cx: &mut Cx<'_>) {
        let (tool, tool_use) = (self.tool.clone(), self.tool_use.clone());
        let call = HookCall::PostToolUse { tool, tool_use, outcome: outcome.clone(), duration_ms: 0 };
        if self.stopping || !cx.config.hooks.contains(&call.event()) {
            return self.conclude(outcome, cx);
        }
        let hook = cx.ask_hooks(call);
        self.stage = Stage::Reviewing { hook, shared, outcome };
    }

    /// What is done is done: an objection reaches the model with the result.
    fn on_hooked_after(&mut self, answer: &HookAnswer, outcome: ToolOutcome, cx: &mut Cx<'_>) {
        let objections =
            answer.blocks.iter().map(|text| reminder(&format!("A hook objects to this call: {text}")));
        self.remarks.extend(objections);
        self.remarks.extend(answer.context.iter().map(|text| reminder(text)));
        self.conclude(outcome, cx);
    }

    fn note_stop(&mut self, reason: Option<&str>, cx: &mut Cx<'_>) {
        let Some(reason) = reason else { return };
        cx.emit(Update::Notice(ended_by_hook(&format!("A hook of {}", self.tool), reason)));
        self.stop = Some(reason.to_owned());
    }
}

/// The result of a call after which, or before which, a hook ended the run.
pub(super) const STOPPED: &str = "Not run: a hook ended the run before this call started.";
const DEFERRED: &str = "Not run: a hook left the decision about this call to whoever resumes the session.";
