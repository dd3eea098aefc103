//! Hooks around a call: before it they may stop it, put it off, change it or decide about it, also in place of a person;
//! after it they may object or say something else in its place.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use windlass_permission as permission;
use windlass_protocol::{
    Block, CallFacts, ExaminedCall, HookAnswer, HookCall, HookEvent, HookId, HookPermission, Offers,
    RawValue, RawValueEq, ToolOutput,
};

use super::CallQueue;
use super::call::{Call, CallStage, StopWish};
use crate::step::Cx;
use crate::turn::attach::reminder;
use crate::turn::hooks::ended_by_hook;

/// What hooks are asked about after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    /// It changed the working directory.
    Moved,
    /// What it returned.
    Output,
}

impl CallQueue {
    /// Hooks answered. What nobody waits for any more is late news.
    pub(crate) fn on_hooked(&mut self, hook: HookId, answer: HookAnswer, cx: &mut Cx<'_>) {
        let waits = |call: &&mut Call| match call.stage {
            CallStage::Hooking { hook: asked, .. }
            | CallStage::Requesting { hook: asked, .. }
            | CallStage::Denying { hook: asked, .. }
            | CallStage::Reviewing { hook: asked, .. } => asked == hook,
            _ => false,
        };
        let Some(call) = self.calls.iter_mut().find(waits) else { return };
        cx.show_notices(&answer);
        call.note_stop(answer.stop.as_deref());
        if !matches!(call.stage, CallStage::Reviewing { .. }) {
            call.remarks.extend(answer.context.iter().map(|text| reminder(text)));
        }
        match call.stage.clone() {
            CallStage::Hooking { .. } | CallStage::Requesting { .. } if call.stop.is_some() => {
                call.finish(ToolOutput::error(STOPPED));
            }
            CallStage::Hooking { facts, .. } => call.on_hooked_before(answer, facts, cx),
            CallStage::Requesting { facts, .. } => call.on_requested(answer, facts, cx),
            CallStage::Denying { reason, .. } => call.on_told_denied(&answer, reason, cx),
            CallStage::Reviewing { output, facts, review: Review::Moved, .. } => {
                call.ask_hooks_after(output, facts, cx);
            }
            CallStage::Reviewing { output, .. } => call.on_hooked_after(&answer, output, cx),
            _ => (),
        }
    }
}

impl Call {
    /// The call as hooks hear of it.
    fn examined_call(&self, facts: &Arc<CallFacts>, cx: &Cx<'_>) -> ExaminedCall {
        let (tool, tool_use) = (self.tool.clone(), self.tool_use.clone());
        ExaminedCall { profile: cx.config.profile(&tool), tool, tool_use, facts: facts.clone() }
    }

    /// Nothing has begun before hooks have answered. They are asked once, about the input as the model wrote it.
    pub(super) fn ask_hooks_before(&mut self, facts: Arc<CallFacts>, cx: &mut Cx<'_>) {
        let asked = std::mem::replace(&mut self.has_asked_hooks, true);
        if asked || !cx.config.hooks.contains(&HookEvent::PreToolUse) {
            return self.decide(facts, cx);
        }
        let hook = cx.ask_hooks(HookCall::PreToolUse(self.examined_call(&facts, cx)));
        self.stage = CallStage::Hooking { hook, facts };
    }

    /// Stop, then deny, then put off; only then does a changed input matter.
    fn on_hooked_before(&mut self, answer: HookAnswer, facts: Arc<CallFacts>, cx: &mut Cx<'_>) {
        self.permission = if answer.blocks.is_empty() {
            answer.permission
        } else {
            Some(HookPermission::Deny(answer.blocks.join("\n")))
        };
        match (&self.permission, answer.input) {
            (Some(HookPermission::Defer), _) => {
                self.is_deferred = true;
                self.finish(ToolOutput::error(DEFERRED));
            }
            (Some(HookPermission::Deny(_)), _) | (_, None) => self.decide(facts, cx),
            (_, Some(input)) => self.change_input(input),
        }
    }

    /// Hooks may answer in place of a person, also where nobody can be asked. They are asked once for each call. `reason` says why
    /// it is not simply run, `is_repeated` that it came to the same too often.
    pub(super) fn ask_permission_hooks(
        &mut self,
        facts: Arc<CallFacts>,
        reason: String,
        is_repeated: bool,
        cx: &mut Cx<'_>,
    ) {
        let asked = std::mem::replace(&mut self.has_requested_permission, true);
        if !asked && cx.config.hooks.contains(&HookEvent::PermissionRequest) {
            let suggestions = suggestions(&permission::offers(&self.case(&facts, cx)));
            let call = self.examined_call(&facts, cx);
            let hook = cx.ask_hooks(HookCall::PermissionRequest { call, suggestions });
            self.stage = CallStage::Requesting { hook, facts };
        } else if permission::can_ask(cx.permissions()) {
            self.ask(facts, reason, is_repeated, cx);
        } else {
            self.deny(reason, /* by a person */ false, cx);
        }
    }

    /// Everything is decided again from the start, since the world has moved on; an approval is one more voice for the call, and
    /// spares the question where nothing else insists on it.
    fn on_requested(&mut self, answer: HookAnswer, facts: Arc<CallFacts>, cx: &mut Cx<'_>) {
        let approves = match answer.permission {
            _ if !answer.blocks.is_empty() => return self.deny_by_hook(&answer.blocks.join("\n"), cx),
            Some(HookPermission::Deny(why)) => return self.deny_by_hook(&why, cx),
            permission => permission == Some(HookPermission::Allow),
        };
        if approves {
            // A hook that wants the call asked about outranks one that approves.
            self.permission.get_or_insert(HookPermission::Allow);
            cx.change_permissions_as_told(&answer.updates);
        }
        match answer.input.filter(|_| approves) {
            Some(input) => self.change_input(input),
            None => self.decide(facts, cx),
        }
    }

    /// Hooks hear that a model denied the call in the user's place.
    pub(super) fn tell_hooks_denied(&mut self, facts: &Arc<CallFacts>, reason: String, cx: &mut Cx<'_>) {
        if !cx.config.hooks.contains(&HookEvent::PermissionDenied) {
            return self.deny(reason, /* by a person */ false, cx);
        }
        let call = self.examined_call(facts, cx);
        let hook = cx.ask_hooks(HookCall::PermissionDenied { call, reason: reason.clone() });
        self.stage = CallStage::Denying { hook, reason };
    }

    /// It stays denied; whether it is worth another try the model is told.
    fn on_told_denied(&mut self, answer: &HookAnswer, reason: String, cx: &mut Cx<'_>) {
        let retry = answer.permission == Some(HookPermission::Allow);
        let reason = if retry { format!("{reason} A hook allows another try.") } else { reason };
        self.deny(reason, /* by a person */ false, cx);
    }

    fn deny_by_hook(&mut self, why: &str, cx: &mut Cx<'_>) {
        self.deny(format!("A hook denied this call: {why}"), /* by a person */ false, cx);
    }

    /// Hooks hear that later calls work elsewhere, before any of them does.
    pub(super) fn tell_hooks_moved(
        &mut self,
        from: &Path,
        output: ToolOutput,
        facts: Arc<CallFacts>,
        cx: &mut Cx<'_>,
    ) {
        let moved = output.cwd.clone().filter(|to| to != from);
        match moved {
            Some(to) if !self.is_stopping && cx.config.hooks.contains(&HookEvent::CwdChanged) => {
                let hook = cx.ask_hooks(HookCall::CwdChanged { from: from.to_owned(), to });
                self.stage = CallStage::Reviewing { hook, facts, output, review: Review::Moved };
            }
            _ => self.ask_hooks_after(output, facts, cx),
        }
    }

    /// An interrupted call is answered without asking anybody else.
    fn ask_hooks_after(&mut self, output: ToolOutput, facts: Arc<CallFacts>, cx: &mut Cx<'_>) {
        let event = if output.is_error { HookEvent::PostToolUseFailure } else { HookEvent::PostToolUse };
        if self.is_stopping || !cx.config.hooks.contains(&event) {
            return self.conclude(output, cx);
        }
        let (call, duration_ms) = (self.examined_call(&facts, cx), self.duration_ms());
        let hook = cx.ask_hooks(HookCall::PostToolUse { call, output: output.clone(), duration_ms });
        self.stage = CallStage::Reviewing { hook, facts, output, review: Review::Output };
    }

    /// An objection reaches the model with the result. What a hook puts in the place of an output is all that is seen of it.
    fn on_hooked_after(&mut self, answer: &HookAnswer, output: ToolOutput, cx: &mut Cx<'_>) {
        let output = match &answer.output {
            Some(instead) if !output.is_error => replace_output(output, instead),
            _ => output,
        };
        let objections =
            answer.blocks.iter().map(|text| reminder(&format!("A hook objects to this call: {text}")));
        self.remarks.extend(objections);
        self.remarks.extend(answer.context.iter().map(|text| reminder(text)));
        self.conclude(output, cx);
    }

    /// A wish from before the call stands whatever is wished for later.
    fn note_stop(&mut self, reason: Option<&str>) {
        let Some(reason) = reason.filter(|_| self.stop.is_none()) else { return };
        let is_immediate = !matches!(self.stage, CallStage::Reviewing { .. });
        self.stop =
            Some(StopWish { text: ended_by_hook(&format!("A hook of {}", self.tool), reason), is_immediate });
    }
}

/// An output that says something else. The model reads its text where the value has one, and the value itself otherwise.
fn replace_output(output: ToolOutput, instead: &Arc<RawValue>) -> ToolOutput {
    let text = text_of(instead.get());
    let structured = Some(Arc::new(RawValueEq((**instead).to_owned())));
    ToolOutput { content: vec![Block::text(&text)], structured, ..output }
}

fn text_of(json: &str) -> String {
    let value = serde_json::from_str(json).unwrap_or(Value::Null);
    let stream = |name: &str| value.get(name).and_then(Value::as_str);
    match (value.as_str(), stream("stdout"), stream("stderr").unwrap_or_default()) {
        (Some(text), ..) => text.to_owned(),
        (None, Some(stdout), "") => stdout.to_owned(),
        (None, Some(""), stderr) => stderr.to_owned(),
        (None, Some(stdout), stderr) => format!("{}\n{stderr}", stdout.trim_end_matches('\n')),
        (None, None, _) => json.to_owned(),
    }
}

/// The result of a call after which, or before which, a hook ended the run.
pub(super) const STOPPED: &str = "Not run: a hook ended the run before this call started.";
const DEFERRED: &str = "Not run: a hook deferred this call until the session is resumed.";
/// What is offered, as changes that hooks can hand back.
fn suggestions(offers: &Offers) -> Vec<Arc<RawValue>> {
    let updates = offers.suggestions().into_iter();
    updates.filter_map(|update| RawValue::from_string(update.to_json()).ok()).map(Arc::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(text_of(json), expected);
    }

    #[test]
    fn the_model_reads_the_text_of_what_stands_for_an_output() {
        check(r#""hidden""#, "hidden");
        check(r#"{"stdout": "a\n", "stderr": ""}"#, "a\n");
        check(r#"{"stdout": "a\n", "stderr": "b"}"#, "a\nb");
        check(r#"{"stdout": "", "stderr": "b", "interrupted": false}"#, "b");
        check(r#"{"filePath": "/a"}"#, r#"{"filePath": "/a"}"#);
        check("[1, 2]", "[1, 2]");
    }
}
