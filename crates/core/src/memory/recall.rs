//! From the facts of a log to the state of its session.
//!
//! Recalling never fails: whatever a log holds, in whatever order, the result is a session at rest whose next request is
//! valid. A run that was cut off is closed: blocks that were shown stay, and each open call is answered with what is known
//! of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use windlass_protocol::{
    AnswerBlock, Block, CallId, CallIntent, CallResult, Decision, Event, Fate, FinishedCall, Message,
    MessageId, ModelEvent, ModelSpend, Origin, Record, RequestEntry, Role, RunEnding, SentRequest,
    SpendEntry, ToolOutput, ToolUse, Transcript, UserEntry,
};

use crate::context::prefix::SentPrefix;
use crate::context::{TokenCount, apply};
use crate::state::State;
use crate::turn::calls::input_hash;
use crate::turn::gate;
use crate::turn::stream::answer;

/// A session on its way back from its log: hand it the records in their order.
///
/// ```
/// use windlass_core::Recall;
/// let recalled = Recall::new("/project".into()).finish();
/// assert!(recalled.state.messages().is_empty());
/// assert!(!recalled.is_cut_off);
/// ```
#[derive(Clone, Debug)]
pub struct Recall {
    state: State,
    open: OpenRound,
    /// Whether a run has begun and not ended.
    is_running: bool,
    /// What was heard of the calls that ended, until the core's word that it took it.
    heard: BTreeMap<CallId, ToolOutput>,
}

/// A session as it was left.
#[derive(Debug)]
pub struct RecalledSession {
    /// Its state, at rest.
    pub state: State,
    /// Calls that were open, and what is known of each.
    pub open: Vec<(ToolUse, Fate)>,
    /// The answers to them that the log does not have yet.
    pub results: Vec<CallResult>,
    /// Whether a run was going on.
    pub is_cut_off: bool,
}

/// The response that is being recalled, and its calls.
#[derive(Clone, Debug, Default)]
struct OpenRound {
    /// Whether the log says what was done, so that a call it does not tell of was not started. Foreign logs do not.
    is_recorded: bool,
    answered: Vec<AnswerBlock>,
    /// Its calls, once what it said is part of the conversation.
    calls: Vec<(MessageId, ToolUse)>,
    intended: BTreeMap<Arc<str>, CallIntent>,
    finished: BTreeMap<Arc<str>, ToolOutput>,
    results: BTreeMap<Arc<str>, (MessageId, Block)>,
    /// What the provider counted.
    counted: Option<u64>,
}

impl Recall {
    /// A session that began in this directory.
    pub fn new(cwd: PathBuf) -> Self {
        let state = State::new(cwd, Transcript::default());
        Self { state, open: OpenRound::default(), is_running: false, heard: BTreeMap::new() }
    }

    /// The next fact.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Heard(input) => self.hear(input.event),
            Record::Said(said) => self.on_said(said),
            Record::Answered(answered) => self.on_answered(answered),
            Record::Result(result) => self.result(&result),
            Record::Retracted(messages) => self.open.retract(&messages),
            Record::Queued(prompt) => self.state.carry.waiting.push(prompt),
            Record::Dequeued => self.state.carry.waiting = crate::turn::queue::Queue::default(),
            Record::Requested(requested) => self.on_requested(&requested),
            Record::Intended(intended) => {
                self.open.intended.insert(intended.tool_use_id.clone(), intended);
            }
            Record::Finished(FinishedCall { call, tool_use_id, .. }) => self.on_finished(call, tool_use_id),
            // Why a call was allowed says nothing about what is allowed now.
            Record::Ruled(_) => (),
            Record::Decided(decision) => self.on_decided(&decision),
            Record::Spent(spent) => self.on_spent(spent),
            Record::Repaired(_) => {
                self.close();
                let carry = &mut self.state.carry;
                (carry.messages, _) = gate::repair(&carry.messages);
                carry.staged.retain_in(&carry.messages);
                carry.tokens = TokenCount::default();
                carry.sent = None;
            }
            Record::Ended(RunEnding { rest, .. }) => {
                self.close();
                self.state.carry.doubtful.clear();
                self.state.set_rest(&rest);
                self.is_running = false;
            }
            Record::Snapshot(snapshot) => {
                *self = Self {
                    state: State::from_snapshot(*snapshot),
                    is_running: self.is_running,
                    ..Self::new(PathBuf::new())
                };
            }
        }
    }

    /// Messages up to this one were left out of what is recalled, and what models took for them. They are still in the log, so
    /// their ids are not given again; and what was spent stays spent.
    pub fn leave_out(&mut self, last: MessageId, spent: Vec<SpendEntry>) {
        self.state.ids.saw_message(last);
        for spent in spent {
            self.on_spent(spent);
        }
    }

    /// The conversation so far, without the response that is open.
    pub fn messages(&self) -> &Transcript {
        &self.state.carry.messages
    }

    /// The session as it was left. A cap in USD counts from here on.
    pub fn finish(mut self) -> RecalledSession {
        self.state.ledger.before_usd = self.state.ledger.tree_usd;
        let open = self.open.calls();
        let is_cut_off = self.is_running && !self.is_answered(&open);
        let results = self.answer_open(&open);
        self.close();
        RecalledSession { state: self.state, open, results, is_cut_off }
    }

    /// Whether another program's log ends with an answer: it does not say that its runs end.
    fn is_answered(&self, open: &[(ToolUse, Fate)]) -> bool {
        let last = self.state.carry.messages.last();
        let ends = !self.open.answered.is_empty() || last.is_some_and(|last| last.role == Role::Assistant);
        !self.open.is_recorded && open.is_empty() && ends
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Submit(_) | Event::Compact { .. } | Event::GoOn { .. } => self.is_running = true,
            Event::Finished(call, outcome) => {
                self.heard.insert(call, outcome);
            }
            Event::Model(_, ModelEvent::Started { .. }) => self.state.ledger.has_been_reached = true,
            Event::Model(_, ModelEvent::Ended { usage, .. }) => {
                self.open.counted = Some(usage.input_total().saturating_add(usage.output_tokens));
            }
            // During a run nobody can say whether it was told already.
            Event::Prefetched(found) if !self.is_running => self.state.carry.notes.on_prefetched(found),
            _ => (),
        }
    }

    /// What a request has carried is decided on, and in the provider's cache.
    fn on_requested(&mut self, requested: &RequestEntry) {
        self.is_running = true;
        self.close();
        self.open.is_recorded = true;
        let carry = &mut self.state.carry;
        carry.compactions.decided_to = carry.messages.last().map(|message| message.id);
        let sent =
            carry.sent.as_ref().map(SentPrefix::sent_request).filter(|sent| sent.model == requested.model);
        carry.sent = sent.map(|sent| {
            let messages = carry.messages.len();
            SentPrefix::restore(&SentRequest { messages, ..sent }, &carry.messages)
        });
    }

    fn on_said(&mut self, said: UserEntry) {
        self.close();
        self.state.carry.waiting.drop_first(said.taken);
        if said.is_prompt() {
            self.is_running = true;
            self.state.carry.unfinished.push(said.unfinished_prompt());
        }
        self.push(said.message);
    }

    fn on_answered(&mut self, answered: AnswerBlock) {
        if self.open.answered.first().is_some_and(|first| first.request != answered.request) {
            self.close();
        }
        self.state.ids.saw_message(answered.id);
        if self.open.answered.iter().all(|known| known.id != answered.id) {
            self.open.answered.push(answered);
        }
    }

    fn result(&mut self, result: &CallResult) {
        self.state.ids.saw_message(result.id);
        let Some((tool_use_id, _)) = crate::context::answered_call(&result.result) else { return };
        self.open.results.entry(tool_use_id.clone()).or_insert((result.id, result.result.clone()));
    }

    fn on_finished(&mut self, call: CallId, tool_use_id: Arc<str>) {
        let Some(outcome) = self.heard.remove(&call) else { return };
        crate::turn::calls::apply(&outcome, &mut self.state.carry);
        self.open.finished.insert(tool_use_id, outcome);
    }

    fn on_decided(&mut self, decision: &Decision) {
        if let Decision::Staged(span) = decision {
            self.state.ids.saw_message(span.summary.id);
            self.state.carry.staged.ready.push(span.clone());
            return;
        }
        self.close_answer();
        if self.open.calls().is_empty() {
            self.close();
        }
        let carry = &mut self.state.carry;
        carry.messages = apply(decision, &carry.messages);
        carry.staged.retain_in(&carry.messages);
        carry.tools.files.forget_shown();
        match decision {
            Decision::Compacted(compaction) => {
                carry.staged.drop_all();
                carry.notes.forget_told();
                self.state.ids.saw_message(compaction.boundary.id);
            }
            Decision::Collapsed { spans, .. } => {
                carry.staged.ready.retain(|ready| spans.iter().all(|span| span.first != ready.first));
            }
            Decision::Stored(results) => {
                carry.tools.readable.extend(results.iter().map(|stored| stored.path.clone()));
                return;
            }
            _ => (),
        }
        carry.tokens = TokenCount::default();
        carry.sent = None;
    }

    fn on_spent(&mut self, spent: SpendEntry) {
        let ledger = &mut self.state.ledger;
        ModelSpend::add(&mut ledger.session, &[(spent.model, spent.spend)].into());
        ledger.tree_usd = spent.total_usd;
    }

    /// What was said becomes part of the conversation; its calls stay open.
    fn close_answer(&mut self) {
        let answered = std::mem::take(&mut self.open.answered);
        let Some(model) = answered.first().map(|first| first.model.clone()) else { return };
        let calls = answered.iter().filter_map(|one| Some((one.id, one.block.as_tool_use()?.clone())));
        self.open.calls.extend(calls);
        let blocks = answered.into_iter().map(|one| (one.id, one.block)).collect();
        if let Some(message) = answer(model, blocks) {
            self.push(Arc::new(message));
        }
        if let Some(counted) = self.open.counted.take() {
            self.state.carry.tokens.on_response(counted, self.state.carry.messages.len());
        }
    }

    /// Adds open calls to the conversation. One that began to act and was never heard of again is in doubt.
    fn close(&mut self) {
        self.close_answer();
        self.heard.clear();
        let OpenRound { calls, mut results, intended, finished, .. } = std::mem::take(&mut self.open);
        for (_, call) in &calls {
            let acts = intended.get(&call.id).filter(|intended| !intended.kind.is_read_only());
            if let Some(intended) = acts.filter(|_| !finished.contains_key(&call.id)) {
                self.state.carry.doubt(intended.input_hash);
            }
        }
        let results: Vec<(MessageId, Block)> =
            calls.iter().filter_map(|(_, call)| results.remove(&call.id)).collect();
        if let Some((id, _)) = results.last() {
            let blocks = results.iter().map(|(_, block)| block.clone()).collect();
            self.push(Arc::new(Message::user(*id, Origin::Results, blocks)));
        }
    }

    fn push(&mut self, message: Arc<Message>) {
        self.state.ids.saw_message(message.id);
        self.state.carry.messages.push(message);
    }

    /// Answers each open call with what is known of it.
    fn answer_open(&mut self, open: &[(ToolUse, Fate)]) -> Vec<CallResult> {
        let mut results = Vec::new();
        for (number, (tool_use, fate)) in open.iter().enumerate() {
            let outcome = match fate {
                Fate::Finished => {
                    let known = self.open.finished.get(&tool_use.id).cloned();
                    known.unwrap_or_else(|| ToolOutput::error(UNKNOWN))
                }
                Fate::NeverStarted => ToolOutput::error(NEVER_STARTED),
                Fate::ReadOnly => ToolOutput::error(READ_ONLY),
                Fate::Unknown => {
                    if !self.open.intended.contains_key(&tool_use.id) {
                        self.state.carry.doubt(input_hash(&tool_use.name, tool_use));
                    }
                    ToolOutput::error(UNKNOWN)
                }
            };
            let id = self.state.ids.message();
            let result = Block::tool_result(&tool_use.id, &outcome.content, outcome.is_error);
            self.open.results.insert(tool_use.id.clone(), (id, result.clone()));
            let call = self.open.intended.get(&tool_use.id).map(|intended| intended.call);
            results.push(CallResult {
                id,
                call: call.unwrap_or(CallId(u32::try_from(number).unwrap_or(u32::MAX))),
                asked_by: self.open.asked_by(&tool_use.id).unwrap_or(id),
                name: tool_use.name.clone(),
                result,
                structured: outcome.structured,
            });
        }
        results
    }
}

impl OpenRound {
    fn retract(&mut self, messages: &[MessageId]) {
        self.answered.retain(|one| !messages.contains(&one.id));
        self.results.retain(|_, (id, _)| !messages.contains(id));
    }

    /// The calls, and the block that made each.
    fn asked_calls(&self) -> impl Iterator<Item = (MessageId, &ToolUse)> {
        let new = self.answered.iter().filter_map(|one| Some((one.id, one.block.as_tool_use()?)));
        self.calls.iter().map(|(id, tool_use)| (*id, tool_use)).chain(new)
    }

    /// The calls without an answer, and what is known of each.
    fn calls(&self) -> Vec<(ToolUse, Fate)> {
        let open = self
            .asked_calls()
            .map(|(_, tool_use)| tool_use)
            .filter(|tool_use| !self.results.contains_key(&tool_use.id));
        open.map(|tool_use| (tool_use.clone(), self.fate(&tool_use.id))).collect()
    }

    fn fate(&self, tool_use_id: &str) -> Fate {
        match self.intended.get(tool_use_id) {
            _ if self.finished.contains_key(tool_use_id) => Fate::Finished,
            None if self.is_recorded => Fate::NeverStarted,
            Some(intended) if intended.kind.is_read_only() => Fate::ReadOnly,
            None | Some(_) => Fate::Unknown,
        }
    }

    fn asked_by(&self, tool_use_id: &str) -> Option<MessageId> {
        self.asked_calls().find(|(_, call)| *call.id == *tool_use_id).map(|(id, _)| id)
    }
}

const NEVER_STARTED: &str = "Not run: the session was cut off before this call started.";
const READ_ONLY: &str =
    "The session was cut off during this call. The call only reads, so you can repeat it.";
const UNKNOWN: &str = "The session was cut off during this call, so whether it took effect is unknown. \
    Check what it did before you repeat it; repeating exactly this call needs the user's approval.";
