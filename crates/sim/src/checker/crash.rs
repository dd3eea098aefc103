//! What must be true of a session that is recalled after a crash: nothing that was shown is lost, and each open call is called
//! what it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::{Effect, Event, RecalledSession};
use windlass_protocol::{
    Block, BlockKind, CallId, CallKind, Decision, Fate, FinishedCall, MessageId, Record, Role, Transcript,
    Update,
};

use crate::validity::{check_request, with_prompt};

/// What the caller saw and what the tools did since the conversation was last changed.
#[derive(Debug, Default)]
pub(super) struct Witness {
    shown: Vec<(MessageId, Block)>,
    calls: BTreeMap<Arc<str>, StartedCall>,
    ids: BTreeMap<CallId, Arc<str>>,
    /// The log failed: until everything is restated it knows less than what was seen.
    pub(super) is_blind: bool,
}

#[derive(Clone, Copy, Debug)]
struct StartedCall {
    is_acting: bool,
    is_finished: bool,
    is_answered: bool,
}

type Verdict = Result<(), String>;

impl Witness {
    /// The run is over, and its calls are answered.
    pub(super) fn next_run(&mut self) -> Self {
        Self { calls: std::mem::take(&mut self.calls), is_blind: self.is_blind, ..Self::default() }
    }

    /// Everything that counts was restated.
    pub(super) fn on_restated(&mut self) {
        *self = Self::default();
    }

    /// A step is over, with these effects.
    pub(super) fn on_step(
        &mut self,
        finished: Option<CallId>,
        effects: &[Effect],
        kind: impl Fn(CallId) -> CallKind,
    ) {
        let finished = finished.and_then(|call| self.ids.get(&call)).and_then(|id| self.calls.get_mut(id));
        if let Some(call) = finished {
            call.is_finished = true;
        }
        for effect in effects {
            match effect {
                // What is sent was compared with the log.
                Effect::CallModel(..) => {
                    self.shown.clear();
                    self.calls.clear();
                    self.ids.clear();
                }
                Effect::RunTool { call, tool_use, .. } => {
                    let is_acting = !kind(*call).is_read_only();
                    let started = StartedCall { is_acting, is_finished: false, is_answered: false };
                    self.calls.insert(tool_use.id.clone(), started);
                    self.ids.insert(*call, tool_use.id.clone());
                }
                Effect::Persist(record, _) if changes(record) => self.shown.clear(),
                Effect::Emit(Update::Done(_)) => self.calls.clear(),
                Effect::Emit(update) => self.on_update(update),
                _ => (),
            }
        }
    }

    fn on_update(&mut self, update: &Update) {
        match update {
            // Thinking that nothing follows cannot be sent back.
            Update::Block { id, block, .. } if !block.is_thinking() => self.shown.push((*id, block.clone())),
            Update::UserText { id, blocks, .. } => {
                self.shown.extend(blocks.iter().map(|block| (*id, block.clone())));
            }
            Update::ToolResult { id, call, result, .. } => {
                self.shown.push((*id, result.clone()));
                let started = self.ids.get(call).and_then(|id| self.calls.get_mut(id));
                if let Some(started) = started {
                    started.is_answered = true;
                }
            }
            Update::Retracted { messages, .. } => self.retract(messages),
            _ => (),
        }
    }

    fn retract(&mut self, messages: &[MessageId]) {
        for (_, block) in self.shown.extract_if(.., |(id, _)| messages.contains(id)) {
            if let Some(tool_use) = block.as_tool_use() {
                self.calls.remove(&tool_use.id);
            }
        }
    }

    /// Compares with what was recalled. The last append got as far as `tail`, and nothing that stood behind it happened.
    pub(super) fn check(&mut self, recalled: &RecalledSession, tail: &[Record]) -> Verdict {
        for record in tail {
            self.on_record(record);
        }
        self.ids.clear();
        let messages = recalled.state.messages();
        check_request(&with_prompt(messages)).map_err(|why| format!("after a crash: {why}"))?;
        if self.is_blind {
            return Ok(());
        }
        let is_kept = |block: &Block| {
            messages.iter().rev().any(|message| message.blocks.iter().any(|kept| kept == block))
        };
        if let Some((id, block)) = self.shown.iter().find(|(_, block)| !is_kept(block)) {
            return Err(format!("{id:?} was shown and is lost in a crash: {block:?}"));
        }
        self.check_fates(recalled)
    }

    fn on_record(&mut self, record: &Record) {
        match record {
            Record::Retracted(messages) => self.retract(messages),
            Record::Intended(intended) => {
                let is_acting = !intended.kind.is_read_only();
                let started = StartedCall { is_acting, is_finished: false, is_answered: false };
                self.calls.entry(intended.tool_use_id.clone()).or_insert(started);
            }
            Record::Finished(FinishedCall { tool_use_id, .. }) => {
                if let Some(call) = self.calls.get_mut(tool_use_id) {
                    call.is_finished = true;
                }
            }
            Record::Result(result) => {
                if let Some(call) = answered_call(&result.result).and_then(|id| self.calls.get_mut(id)) {
                    call.is_answered = true;
                }
            }
            Record::Requested(_) | Record::Ended(_) => self.calls.clear(),
            Record::Snapshot(_) => self.on_restated(),
            record if changes(record) => self.shown.clear(),
            _ => (),
        }
    }

    fn check_fates(&self, recalled: &RecalledSession) -> Verdict {
        for (tool_use, fate) in &recalled.open {
            let id = &tool_use.id;
            let expected = match self.calls.get(id) {
                Some(StartedCall { is_finished: true, .. }) => Fate::Finished,
                Some(StartedCall { is_acting: true, .. }) => Fate::Unknown,
                Some(StartedCall { is_acting: false, .. }) => Fate::ReadOnly,
                None => Fate::NeverStarted,
            };
            if *fate != expected {
                return Err(format!("{id} is {expected:?} after a crash, and called {fate:?}"));
            }
            let says_unknown = result_of(recalled.state.messages(), id).contains("is unknown");
            if says_unknown != (*fate == Fate::Unknown) {
                return Err(format!("{id} is {fate:?} after a crash, and its result says otherwise"));
            }
        }
        let is_open = |id: &Arc<str>| recalled.open.iter().any(|(tool_use, _)| tool_use.id == *id);
        let lost = self.calls.iter().find(|(id, call)| !call.is_answered && !is_open(id));
        if let Some((id, _)) = lost {
            return Err(format!("{id} was started and is lost in a crash"));
        }
        let doubtful = recalled.state.snapshot().map_or(0, |facts| facts.doubtful.len());
        let unknown = self.calls.values().any(|call| call.is_acting && !call.is_finished);
        if unknown && doubtful == 0 { Err("a call of unknown outcome is in no doubt".into()) } else { Ok(()) }
    }
}

/// The call that an event says has come to its end.
pub(super) fn finished_call(event: &Event) -> Option<CallId> {
    match event {
        Event::Finished(call, _) => Some(*call),
        _ => None,
    }
}

/// Whether old messages may be others after this fact.
fn changes(record: &Record) -> bool {
    match record {
        Record::Decided(decision) => !matches!(decision, Decision::Staged(_)),
        Record::Repaired(_) => true,
        _ => false,
    }
}

fn result_of(messages: &Transcript, id: &str) -> String {
    let results = messages.iter().rev().filter(|message| message.role == Role::User);
    let mut blocks = results.flat_map(|message| &message.blocks);
    let found = blocks.find(|block| answered_call(block).is_some_and(|answered| **answered == *id));
    found.map(|block| block.json().to_owned()).unwrap_or_default()
}

/// The call that a result answers.
fn answered_call(result: &Block) -> Option<&Arc<str>> {
    match result.kind() {
        BlockKind::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        _ => None,
    }
}
