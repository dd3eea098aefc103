//! Stage 4: the calls of one response, from admission to result.
//!
//! Shared calls overlap, up to a limit; an exclusive call runs alone and in order; results are given out in the order
//! of the calls. A call is examined when no earlier exclusive call is open, so that it sees what that call changed.

use std::sync::Arc;

use windlass_protocol::{
    Admission, Answer, Block, CallFacts, CallId, CallKind, Denial, MessageId, Question, TimerId, ToolOutcome,
    ToolProgress, ToolSpec, ToolUse, Update,
};

use crate::config::EarlyStart;
use crate::event::{Effect, Interrupt};
use crate::permission::{self, Verdict};
use crate::step::Cx;

/// The calls of one response, in the order the model made them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallQueue {
    calls: Vec<Call>,
    /// Set when the response does not stand: its calls are stopped but never answered.
    discarded: bool,
}

#[derive(Clone, Debug)]
struct Call {
    id: CallId,
    tool_use: ToolUse,
    stage: Stage,
    /// A person has approved this very input.
    approved: bool,
    /// Its input is empty, which may mean that the response was cut before the input came: it waits for what
    /// follows in the response.
    held: bool,
    /// It must end within the time a stop may take.
    stopping: bool,
    /// It was told to stop.
    cancelled: bool,
    /// It started, and does more than read.
    acted: bool,
    /// Its result as it was shown.
    shown: Option<Shown>,
}

#[derive(Clone, Debug)]
struct Shown {
    id: MessageId,
    result: Block,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Its turn to be examined has not come.
    Queued,
    /// The driver is looking at its input.
    Examining,
    /// Somebody must decide.
    Asking(CallFacts),
    /// It may run as soon as the others let it.
    Ready(CallFacts),
    /// It runs; shared or not.
    Running { shared: bool, kind: CallKind },
    /// It is answered.
    Finished(ToolOutcome),
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
        self.calls.iter().any(|call| call.acted)
    }

    pub(crate) fn admit(&mut self, id: CallId, tool_use: ToolUse) {
        let stage =
            if unparsed(&tool_use) { Stage::Finished(ToolOutcome::error(TRUNCATED)) } else { Stage::Queued };
        let held = has_no_input(&tool_use);
        self.calls.push(Call {
            id,
            tool_use,
            stage,
            approved: false,
            held,
            stopping: false,
            cancelled: false,
            acted: false,
            shown: None,
        });
    }

    /// More of the response came, so no call so far was cut. True if that lets one go on.
    pub(crate) fn let_go(&mut self) -> bool {
        self.calls.iter_mut().fold(false, |any, call| std::mem::take(&mut call.held) | any)
    }

    /// The response was cut right behind a call without input.
    pub(crate) fn truncate_held(&mut self) {
        for call in self.calls.iter_mut().filter(|call| call.held) {
            call.stage = Stage::Finished(ToolOutcome::error(TRUNCATED));
        }
    }

    /// The ids of all calls.
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

    /// Moves calls on.
    pub(crate) fn advance(&mut self, cx: &mut Cx<'_>) {
        self.advance_while(cx, |_| true);
    }

    /// Walks the queue from the front: starts what may start, examines the next, stops where a call holds the rest.
    fn advance_while(&mut self, cx: &mut Cx<'_>, may_start: fn(&CallFacts) -> bool) {
        let mut running =
            self.calls.iter().filter(|call| matches!(call.stage, Stage::Running { .. })).count();
        let mut earlier_open = false;
        for call in &mut self.calls {
            match &call.stage {
                Stage::Finished(_) => continue,
                Stage::Examining => break,
                Stage::Queued if call.held => break,
                Stage::Queued => {
                    call.examine(cx);
                    break;
                }
                Stage::Asking(CallFacts { shared, .. }) | Stage::Running { shared, .. } if !shared => break,
                Stage::Asking(_) | Stage::Running { .. } => (),
                Stage::Ready(facts) => {
                    // A changed answer can make an early call exclusive while later shared ones run already.
                    let alone = !earlier_open && running == 0;
                    let room = if facts.shared { running < cx.config.shared_calls_max } else { alone };
                    if !room || !may_start(facts) {
                        break;
                    }
                    let facts = facts.clone();
                    let shared = facts.shared;
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

    pub(crate) fn on_examined(&mut self, id: CallId, admission: Admission, cx: &mut Cx<'_>) {
        let Some(call) = self.find(id).filter(|call| matches!(call.stage, Stage::Examining)) else {
            return;
        };
        match admission {
            Admission::Ready { tool, facts } => call.judge(&tool, facts, cx),
            Admission::Unknown => call.refuse(&unknown(&call.tool_use.name, &cx.config.tools)),
            Admission::Invalid(text) => call.refuse(&text),
        }
    }

    pub(crate) fn on_answered(&mut self, id: CallId, answer: Answer, cx: &mut Cx<'_>) {
        let Some(call) = self.find(id) else { return };
        let Stage::Asking(facts) = &call.stage else { return };
        match answer {
            Answer::Allow => call.stage = Stage::Ready(facts.clone()),
            Answer::AllowChanged(input) => {
                call.tool_use = ToolUse { input, ..call.tool_use.clone() };
                call.approved = true;
                call.stage = Stage::Queued;
            }
            Answer::Deny(text) => call.deny(text, /* by a person */ true, cx),
        }
    }

    pub(crate) fn on_progress(&mut self, id: CallId, progress: ToolProgress, cx: &mut Cx<'_>) {
        let running = self.find(id).is_some_and(|call| matches!(call.stage, Stage::Running { .. }));
        if running && !self.discarded {
            cx.emit(Update::ToolProgress { call: id, progress });
        }
    }

    pub(crate) fn on_finished(&mut self, id: CallId, outcome: ToolOutcome, cx: &mut Cx<'_>) {
        let Some(call) = self.find(id).filter(|call| matches!(call.stage, Stage::Running { .. })) else {
            return;
        };
        let tools = &mut cx.state.carry.tools;
        for seen in &outcome.seen {
            tools.learn(seen.clone());
        }
        tools.readable.extend(outcome.readable.iter().cloned());
        if let Some(cwd) = &outcome.cwd {
            tools.cwd = Arc::new(cwd.clone());
        }
        call.stage = Stage::Finished(outcome);
    }

    /// Stops everything: what has not started never will, what runs is told to stop.
    pub(crate) fn cancel_all(&mut self, cx: &mut Cx<'_>) {
        self.cancel_for(Interrupt::Stop, cx);
    }

    /// Stops everything for this kind of interrupt. What may finish is left to, within the time a stop may take.
    pub(crate) fn cancel_for(&mut self, interrupt: Interrupt, cx: &mut Cx<'_>) {
        for call in &mut self.calls {
            match call.stage {
                Stage::Finished(_) => (),
                Stage::Running { kind, .. } => {
                    call.stopping = true;
                    if !may_finish(kind, interrupt) && !std::mem::replace(&mut call.cancelled, true) {
                        cx.effects.push(Effect::CancelTool(call.id));
                    }
                }
                _ => call.stage = Stage::Finished(ToolOutcome::error(NOT_STARTED)),
            }
        }
    }

    /// Gives calls that are to stop a limited time for it.
    pub(crate) fn start_deadline(&self, cx: &mut Cx<'_>) -> Option<TimerId> {
        let stopping = self.calls.iter().any(|call| call.stopping && !call.is_finished());
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
            call.stage = Stage::Finished(ToolOutcome::error(ABANDONED));
        }
    }

    /// The response does not stand. Returns the results that were shown and are to be taken back.
    pub(crate) fn discard(&mut self) -> Vec<MessageId> {
        self.discarded = true;
        self.calls.iter().filter_map(|call| Some(call.shown.as_ref()?.id)).collect()
    }

    /// Answers what is still open, for a run that nobody drives any more.
    pub(crate) fn close(&mut self) {
        for call in self.calls.iter_mut().filter(|call| !call.is_finished()) {
            let text = if matches!(call.stage, Stage::Running { .. }) { ABANDONED } else { NOT_STARTED };
            call.stage = Stage::Finished(ToolOutcome::error(text));
        }
    }

    /// The result blocks, in order; empty if the response does not stand.
    pub(crate) fn results(&self) -> Vec<Block> {
        if self.discarded { Vec::new() } else { self.calls.iter().filter_map(Call::result).collect() }
    }

    /// The id under which the last result was shown.
    pub(crate) fn last_shown(&self) -> Option<MessageId> {
        Some(self.calls.last()?.shown.as_ref()?.id)
    }

    /// Shows finished results in the order of the calls, as far as there is no gap.
    pub(crate) fn release(&mut self, cx: &mut Cx<'_>) {
        if self.discarded {
            return;
        }
        for call in self.calls.iter_mut().skip_while(|call| call.shown.is_some()) {
            let (Some(result), Stage::Finished(outcome)) = (call.result(), &call.stage) else {
                return;
            };
            let id = cx.state.ids.message();
            let (name, structured) = (call.tool_use.name.clone(), outcome.structured.clone());
            call.shown = Some(Shown { id, result: result.clone() });
            cx.effects.push(Effect::Emit(Update::ToolResult { id, call: call.id, name, result, structured }));
        }
    }

    fn find(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == id)
    }
}

impl Call {
    fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Finished(_))
    }

    fn examine(&mut self, cx: &mut Cx<'_>) {
        let cwd = cx.state.carry.tools.cwd.clone();
        cx.effects.push(Effect::Examine { call: self.id, tool_use: self.tool_use.clone(), cwd });
        self.stage = Stage::Examining;
    }

    /// Lets the permission stages decide. An input a person approved is not asked about again, but a denial holds.
    fn judge(&mut self, tool: &str, facts: CallFacts, cx: &mut Cx<'_>) {
        match permission::decide(tool, &facts, &cx.state.carry.tools.readable, cx.config) {
            Verdict::Allow => self.stage = Stage::Ready(facts),
            Verdict::Ask(_) if self.approved => self.stage = Stage::Ready(facts),
            Verdict::Ask(reason) => {
                let tool_use = self.tool_use.clone();
                cx.emit(Update::Question(Question { call: self.id, tool_use, facts: facts.clone(), reason }));
                self.stage = Stage::Asking(facts);
            }
            Verdict::Deny(reason) => self.deny(reason, /* by a person */ false, cx),
        }
    }

    /// The call never reaches a tool; hosts tell that by the tag.
    fn refuse(&mut self, text: &str) {
        let tagged = format!("<tool_use_error>{text}</tool_use_error>");
        self.stage = Stage::Finished(ToolOutcome::error(&tagged));
    }

    fn deny(&mut self, reason: String, by_person: bool, cx: &mut Cx<'_>) {
        self.stage = Stage::Finished(ToolOutcome::error(&reason));
        let denial = Denial { call: self.id, tool_use: self.tool_use.clone(), reason, by_person };
        cx.state.ledger.denials.push(denial.clone());
        cx.emit(Update::Denied(denial));
    }

    fn start(&mut self, facts: CallFacts, cx: &mut Cx<'_>) {
        let tools = &cx.state.carry.tools;
        let resolved = facts.paths.iter().filter_map(|path| path.resolved.as_ref());
        let seen = resolved.filter_map(|path| tools.files.get(path).cloned()).collect();
        let (tool_use, cwd) = (self.tool_use.clone(), tools.cwd.clone());
        let decided = facts.paths.clone();
        self.acted = !facts.kind.is_read_only();
        self.stage = Stage::Running { shared: facts.shared, kind: facts.kind };
        cx.emit(Update::ToolStarted { call: self.id, tool_use: tool_use.clone(), facts });
        cx.effects.push(Effect::RunTool { call: self.id, tool_use, cwd, decided, seen });
    }

    fn result(&self) -> Option<Block> {
        match (&self.shown, &self.stage) {
            (Some(shown), _) => Some(shown.result.clone()),
            (None, Stage::Finished(outcome)) => {
                Some(Block::tool_result(&self.tool_use.id, &outcome.content, outcome.is_error))
            }
            _ => None,
        }
    }
}

fn unknown(name: &str, offered: &[ToolSpec]) -> String {
    let offered: Vec<&str> = offered.iter().map(|tool| &*tool.name).collect();
    match offered[..] {
        [] => format!("There is no tool called {name}, and no other."),
        _ => format!("There is no tool called {name}. The tools are: {}.", offered.join(", ")),
    }
}

/// When the user stops the run only to say something else, an edit is left to finish: it is quick, and leaves nobody
/// in doubt.
fn may_finish(kind: CallKind, interrupt: Interrupt) -> bool {
    kind == CallKind::Edit && interrupt == Interrupt::Replace
}

fn has_no_input(tool_use: &ToolUse) -> bool {
    let input = tool_use.input.get().trim();
    input
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|inside| inside.trim().is_empty())
}

/// The model client wraps input that is not JSON, see `ModelEvent::Block`.
fn unparsed(tool_use: &ToolUse) -> bool {
    tool_use
        .input
        .get()
        .trim_start()
        .strip_prefix('{')
        .is_some_and(|rest| rest.trim_start().starts_with("\"unparsed\""))
}

const TRUNCATED: &str = "Nothing was run: the input of this call is not a complete JSON object, probably because the \
    response was cut at the output limit. Make the call again, and split it if it was long.";
const NOT_STARTED: &str = "Not run: interrupted before this call started.";
const ABANDONED: &str = "Interrupted while running; it did not stop in time, so what it did is unknown.";
