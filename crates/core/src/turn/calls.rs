//! Stage 4: the calls of one response, from admission to result.
//!
//! Shared calls overlap, up to a limit; an exclusive call runs alone and in order; results are given out in the order
//! of the calls. A call is examined when no earlier exclusive call is open, so that it sees what that call changed.

use windlass_protocol::{
    BatchCall, Block, CallFacts, CallId, CallResult, Interrupt, MessageId, Priority, Record, TimerId,
    ToolOutput, ToolProgress, ToolUse, Update,
};

use crate::config::EarlyStart;
use crate::effect::Effect;
use crate::step::Cx;
use crate::turn::repeats::{Repeats, WaitKind};

use call::{ABANDONED, CallStage, TRUNCATED};
pub(crate) use call::{Call, apply, input_hash};
pub(crate) use classifier::ClassifierBlocks;

mod call;
mod classifier;
mod hooks;

/// The calls of one response, in the order the model made them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallQueue {
    calls: Vec<Call>,
    /// Set when the response does not stand: its calls are stopped but never answered.
    is_discarded: bool,
    /// What was known of repetitions before this response.
    repeats_before: Option<Repeats>,
}

impl CallQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(crate) fn has_tool_use(&self, id: &str) -> bool {
        self.calls.iter().any(|call| &*call.tool_use.id == id)
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.calls.iter().all(Call::is_finished)
    }

    /// Whether a call that does more than read has started.
    pub(crate) fn has_acted(&self) -> bool {
        self.calls.iter().any(|call| call.has_acted)
    }

    /// What tells the user that a hook of a call ended the run, if one did.
    pub(crate) fn stopped_by_hook(&self) -> Option<&str> {
        self.calls.iter().find_map(|call| Some(&*call.stop.as_ref()?.text))
    }

    /// Whether a hook that was asked before a call said not to go on.
    pub(crate) fn must_stop(&self) -> bool {
        self.calls.iter().any(|call| call.stop.as_ref().is_some_and(|stop| stop.is_immediate))
    }

    /// Which of the prompts that wait go in with the results: after a call that only sleeps, all of them.
    pub(crate) fn due(&self) -> Priority {
        let only_sleeps = |call: &Call| call.waits == WaitKind::OnlySleeps;
        if self.calls.iter().any(only_sleeps) { Priority::Later } else { Priority::Next }
    }

    /// The call that a hook put off.
    pub(crate) fn deferred_call(&self) -> Option<&ToolUse> {
        self.calls.iter().find(|call| call.is_deferred).map(|call| &call.tool_use)
    }

    /// Whether a call came to the same too often, and nobody wants it again.
    pub(crate) fn has_repetition(&self) -> bool {
        self.calls.iter().any(|call| call.is_repeated)
    }

    /// The calls as hooks hear of them when all are answered.
    pub(crate) fn batch(&self) -> Vec<BatchCall> {
        let told = |(call, output): (&Call, &ToolOutput)| BatchCall {
            tool: call.tool.clone(),
            tool_use: call.tool_use.clone(),
            content: output.content.clone(),
        };
        self.finished_calls().map(told).collect()
    }

    /// The calls and what came of them.
    pub(crate) fn answered_calls(&self) -> impl Iterator<Item = (&ToolUse, &ToolOutput)> {
        self.finished_calls().map(|(call, output)| (&call.tool_use, output))
    }

    fn finished_calls(&self) -> impl Iterator<Item = (&Call, &ToolOutput)> {
        self.calls.iter().filter_map(|call| match &call.stage {
            CallStage::Finished(output) => Some((call, output)),
            _ => None,
        })
    }

    pub(crate) fn admit(&mut self, id: CallId, asked_by: MessageId, tool_use: ToolUse) {
        self.calls.push(Call::new(id, asked_by, tool_use));
    }

    /// More of the response came, so no call so far was cut. True if that lets one go on.
    pub(crate) fn release_held(&mut self) -> bool {
        self.calls.iter_mut().fold(false, |any, call| std::mem::take(&mut call.is_held) | any)
    }

    /// The response was cut right behind a call without input.
    pub(crate) fn truncate_held(&mut self) {
        for call in self.calls.iter_mut().filter(|call| call.is_held) {
            call.finish(ToolOutput::error(TRUNCATED));
        }
    }
    pub(crate) fn ids(&self) -> Vec<CallId> {
        self.calls.iter().map(|call| call.id).collect()
    }

    /// Moves calls on while the model still talks, as far as the setting allows.
    pub(crate) fn advance_early(&mut self, cx: &mut Cx<'_>) {
        match cx.config.early_start {
            EarlyStart::All => self.advance(cx),
            EarlyStart::ReadOnly => self.advance_while(cx, |facts| facts.kind.is_read_only()),
            EarlyStart::Off => (),
        }
    }
    pub(crate) fn advance(&mut self, cx: &mut Cx<'_>) {
        self.advance_while(cx, |_| true);
    }

    /// Walks the queue from the front: starts what may start, prepares the next, stops where a call holds the rest.
    fn advance_while(&mut self, cx: &mut Cx<'_>, can_start: fn(&CallFacts) -> bool) {
        self.repeats_before.get_or_insert_with(|| cx.state.carry.repeats.clone());
        if self.has_repetition() {
            // The run is to end: no other call starts, and those that run finish.
            self.leave_unrun(REPEATED, cx);
        }
        let mut running =
            self.calls.iter().filter(|call| matches!(call.stage, CallStage::Running { .. })).count();
        let mut earlier_open = false;
        for call in &mut self.calls {
            match &call.stage {
                CallStage::Finished(_) => continue,
                CallStage::Examining => break,
                CallStage::Queued if call.is_held => break,
                CallStage::Queued => {
                    call.prepare(cx);
                    if call.is_finished() {
                        continue;
                    }
                    break;
                }
                stage if stage.is_exclusive() => break,
                CallStage::Hooking { .. }
                | CallStage::Requesting { .. }
                | CallStage::Asking { .. }
                | CallStage::Classifying { .. }
                | CallStage::Denying { .. }
                | CallStage::Running { .. }
                | CallStage::Reviewing { .. } => (),
                CallStage::Ready(facts) => {
                    // A changed input can make an early call exclusive while later shared ones run already.
                    let alone = !earlier_open && running == 0;
                    let room = if facts.is_shared { running < cx.config.shared_calls_max } else { alone };
                    if !room || !can_start(facts) {
                        break;
                    }
                    let facts = facts.clone();
                    let shared = facts.is_shared;
                    call.start(facts, cx);
                    running += 1;
                    if !shared {
                        break;
                    }
                }
            }
            earlier_open = true;
        }
        self.release(cx);
    }

    fn leave_unrun(&mut self, text: &str, cx: &mut Cx<'_>) {
        for call in self.calls.iter_mut().filter(|call| call.can_start()) {
            call.leave_unrun(text, cx);
        }
    }

    /// A hook ended the run before a call: no other starts, and those that run are told to stop.
    pub(crate) fn stop_for_hook(&mut self, cx: &mut Cx<'_>) {
        self.leave_unrun(hooks::STOPPED, cx);
        self.cancel(Interrupt::Stop, cx);
    }

    pub(crate) fn on_progress(&mut self, id: CallId, progress: ToolProgress, cx: &mut Cx<'_>) {
        let running = self.find(id).is_some_and(|call| matches!(call.stage, CallStage::Running { .. }));
        if running && !self.is_discarded {
            cx.emit(Update::ToolProgress { call: id, progress });
        }
    }

    /// Whether somebody is being asked about a call, and none is running.
    pub(crate) fn only_asks(&self) -> bool {
        let any = |is: fn(&CallStage) -> bool| self.calls.iter().any(|call| is(&call.stage));
        any(|stage| matches!(stage, CallStage::Asking { .. }))
            && !any(|stage| matches!(stage, CallStage::Running { .. } | CallStage::Reviewing { .. }))
    }

    /// Stops everything for this kind of interrupt. What may finish is left to, within the time a stop may take.
    pub(crate) fn cancel(&mut self, interrupt: Interrupt, cx: &mut Cx<'_>) {
        for call in &mut self.calls {
            call.cancel(interrupt, cx);
        }
    }

    /// These calls were not started after all, since the log could not say that they would be.
    pub(crate) fn leave_unstarted(&mut self, unstarted: &[CallId], cx: &mut Cx<'_>) {
        for call in self.calls.iter_mut().filter(|call| unstarted.contains(&call.id)) {
            call.has_acted = false;
            call.leave_unrun(UNLOGGED, cx);
        }
    }

    /// Nobody can say which calls were told to stop: what runs is told again.
    pub(crate) fn stop_again(&mut self, cx: &mut Cx<'_>) {
        self.calls.iter_mut().for_each(|call| call.is_cancelled = false);
        self.cancel(Interrupt::Stop, cx);
    }

    /// Gives calls that are to stop a limited time for it.
    pub(crate) fn start_deadline(&self, cx: &mut Cx<'_>) -> Option<TimerId> {
        let stopping = self.calls.iter().any(|call| call.is_cancelled && !call.is_finished());
        stopping.then(|| {
            let timer = cx.state.ids.timer();
            cx.effects.push(Effect::StartTimer { timer, after_ms: cx.config.stop_grace_ms });
            timer
        })
    }

    /// Gives up the calls that did not stop in time.
    pub(crate) fn abandon(&mut self, cx: &mut Cx<'_>) {
        for call in self.calls.iter_mut().filter(|call| !call.is_finished()) {
            cx.effects.push(Effect::AbandonTool(call.id));
            if matches!(call.stage, CallStage::Running { .. }) {
                call.stop_clock(cx);
            }
            call.finish(ToolOutput::error(ABANDONED));
        }
    }

    /// The response does not stand, nor what its calls came to. Returns the shown results that are to be taken back.
    pub(crate) fn discard(&mut self, cx: &mut Cx<'_>) -> Vec<MessageId> {
        self.is_discarded = true;
        if let Some(before) = self.repeats_before.take() {
            cx.state.carry.repeats = before;
        }
        self.calls.iter().filter_map(|call| Some(call.shown.as_ref()?.id)).collect()
    }

    /// The calls that have begun to act and are not heard of, by the hash of tool and input.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = u64> {
        let acting = |call: &&Call| call.has_acted && matches!(call.stage, CallStage::Running { .. });
        self.calls.iter().filter(acting).map(Call::input_hash)
    }

    /// Answers what is still open, for a run that nobody drives any more.
    pub(crate) fn close(&mut self) {
        self.calls.iter_mut().for_each(Call::close);
    }

    /// The result blocks, in order; empty if the response does not stand.
    pub(crate) fn results(&self) -> Vec<Block> {
        if self.is_discarded { Vec::new() } else { self.calls.iter().filter_map(Call::result).collect() }
    }

    /// The id under which the last result was shown.
    pub(crate) fn last_shown(&self) -> Option<MessageId> {
        Some(self.calls.last()?.shown.as_ref()?.id)
    }

    /// Shows finished results in the order of the calls, as far as there is no gap. Of others it is only told that they are done.
    pub(crate) fn release(&mut self, cx: &mut Cx<'_>) {
        if self.is_discarded {
            return;
        }
        self.show_results(cx);
        self.calls.iter_mut().for_each(|call| call.tell_finished(cx));
    }

    fn show_results(&mut self, cx: &mut Cx<'_>) {
        for call in self.calls.iter_mut().skip_while(|call| call.shown.is_some()) {
            let (Some(result), CallStage::Finished(output)) = (call.result(), &call.stage) else {
                return;
            };
            let shown = CallResult {
                id: cx.state.ids.message(),
                call: call.id,
                asked_by: call.asked_by,
                name: call.tool_use.name.clone(),
                result,
                structured: output.structured.clone(),
            };
            call.shown = Some(shown.clone());
            cx.persist(Record::Result(shown.clone()));
            // Behind the record, which then goes into the log together with the output that it repeats.
            call.tell_finished(cx);
            let CallResult { id, call, name, result, structured, .. } = shown;
            cx.emit(Update::ToolResult { id, call, name, result, structured });
        }
    }

    pub(crate) fn find(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == id)
    }
}

const UNLOGGED: &str = "Not run: the session log cannot be written.";
const REPEATED: &str = "Not run: the run ends because an earlier call repeated itself.";
