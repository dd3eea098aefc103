//! Calls as the records tell of them: made by a block, examined, asked about, started, finished, answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_protocol::{
    Admission, Answer, BlockKind, CallId, CallIntent, CallResult, MessageId, ToolOutput, ToolUse,
};

use crate::record_reader::Trace;
use crate::text;
use crate::traced_session::{CallOutcome, TracedCall};

/// What is known of the calls of one process that have no place in the story yet, and the places of the others.
#[derive(Debug, Default)]
pub(crate) struct CallTracker {
    /// By the provider's id; it stays when another process goes on, since that one answers them.
    places: BTreeMap<Arc<str>, usize>,
    /// The blocks that made them.
    made_by: BTreeMap<MessageId, usize>,
    by_id: BTreeMap<CallId, usize>,
    pub(crate) examined: BTreeMap<CallId, (u64, Admission)>,
    /// When somebody was asked and answered, and whether the answer was no.
    answers: BTreeMap<CallId, (u64, u64, bool)>,
}

impl CallTracker {
    /// Ids count anew in the next process; only the provider's stay.
    pub(crate) fn forget(&mut self) {
        self.by_id.clear();
        self.examined.clear();
        self.answers.clear();
    }
}

impl Trace {
    pub(crate) fn on_made(&mut self, block: MessageId, tool_use: &ToolUse) {
        let Some((run, asked)) = self.place() else { return };
        let calls = &mut self.story.calls;
        self.calls.places.insert(tool_use.id.clone(), calls.len());
        self.calls.made_by.insert(block, calls.len());
        calls.push(TracedCall { run, name: tool_use.name.clone(), asked, ..TracedCall::default() });
    }

    pub(crate) fn on_question_answered(&mut self, call: CallId, at: u64, answer: &Answer) {
        let asked = self.calls.examined.get(&call).map_or(at, |(asked, _)| *asked);
        self.calls.answers.insert(call, (asked, at, matches!(answer, Answer::Deny(_))));
    }

    pub(crate) fn on_intended(&mut self, intended: &CallIntent) {
        let Some((run, at)) = self.place() else { return };
        let Some(call) = self.find(intended.call, &intended.tool_use_id) else { return };
        call.name = intended.tool.clone();
        call.kind = Some(intended.kind);
        if call.run == run {
            call.started = Some(at);
        }
    }

    pub(crate) fn on_finished(&mut self, call: CallId, outcome: &ToolOutput) {
        let (Some((run, at)), Some(place)) = (self.place(), self.calls.by_id.get(&call)) else { return };
        let call = &mut self.story.calls[*place];
        if call.run == run {
            call.ended = Some(at);
        }
        call.outcome = if outcome.is_error { CallOutcome::Failed } else { CallOutcome::Worked };
    }

    pub(crate) fn on_result(&mut self, result: &CallResult) {
        let Some((run, at)) = self.place() else { return };
        let BlockKind::ToolResult { tool_use_id, is_error } = result.result.kind() else { return };
        let denied = self.calls.answers.get(&result.call).is_some_and(|(_, _, denied)| *denied);
        let Some(call) = self.find(result.call, tool_use_id) else { return };
        call.outcome = match (call.outcome, call.started, is_error) {
            (CallOutcome::Open, None, _) if denied => CallOutcome::Denied,
            (CallOutcome::Open, None, _) => CallOutcome::NotRun,
            (CallOutcome::Open, Some(_), true) => CallOutcome::Stopped,
            (CallOutcome::Open, Some(_), false) => CallOutcome::Worked,
            (known, ..) => known,
        };
        if call.run == run && call.started.is_some() {
            call.ended.get_or_insert(at);
        }
        if *is_error {
            text::beginning(&text::of_result(&result.result)).clone_into(&mut call.complaint);
        }
    }

    /// The blocks under these ids do not stand, and neither do the calls they made and that did not come to an end.
    pub(crate) fn on_retracted(&mut self, blocks: &[MessageId]) {
        for place in blocks.iter().filter_map(|block| self.calls.made_by.get(block)) {
            let call = &mut self.story.calls[*place];
            if call.outcome == CallOutcome::Open {
                call.outcome = CallOutcome::Retracted;
                call.ended = call.started.map(|started| started.max(self.story.runs[call.run].length_ms));
            }
        }
    }

    /// The process went away: what had started and only reads was cut short, of everything else nobody knows.
    pub(crate) fn leave_calls(&mut self) {
        let Some(run) = self.story.runs.len().checked_sub(1) else { return };
        let length_ms = self.story.runs[run].length_ms;
        let newest_first = self.story.calls.iter_mut().rev().take_while(|call| call.run == run);
        for call in newest_first.filter(|call| call.outcome == CallOutcome::Open) {
            let read_only = call.kind.is_some_and(windlass_protocol::CallKind::is_read_only);
            call.ended = call.started.map(|started| started.max(length_ms));
            call.outcome = match call.started {
                None => CallOutcome::NotRun,
                Some(_) if read_only => CallOutcome::Stopped,
                Some(_) => CallOutcome::Unknown,
            };
        }
    }

    /// The place of a call, with everything that was learnt of it before its place was known.
    fn find(&mut self, id: CallId, tool_use_id: &str) -> Option<&mut TracedCall> {
        let place = *self.calls.places.get(tool_use_id)?;
        self.calls.by_id.insert(id, place);
        let call = &mut self.story.calls[place];
        if let Some((_, Admission::Ready { tool, facts })) = self.calls.examined.get(&id) {
            call.name = tool.clone();
            call.kind = Some(facts.kind);
            text::beginning(&facts.target).clone_into(&mut call.target);
        }
        if let Some((asked, answered, _)) = self.calls.answers.get(&id) {
            call.question = Some((*asked, *answered));
        }
        Some(call)
    }
}
