//! Facts come before what follows from them: nothing is shown, started or sent that the log does not know of.

use std::collections::BTreeMap;

use windlass_core::Effect;
use windlass_protocol::{
    Block, CallId, CallKind, Decision, Durability, FinishedCall, MessageId, Record, Update,
};

/// What is in the log of a run.
#[derive(Debug, Default)]
pub(super) struct Order {
    said: BTreeMap<MessageId, Vec<Block>>,
    decided: Option<Decision>,
    intended: BTreeMap<CallId, CallKind>,
    has_requested: bool,
    has_ended: bool,
}

type Verdict = Result<(), String>;

impl Order {
    pub(super) fn check(&mut self, effect: &Effect) -> Verdict {
        match effect {
            Effect::Persist(record, durability) => self.on_record(record, *durability),
            Effect::Emit(update) => self.on_update(update),
            Effect::RunTool { call, .. } if !self.intended.contains_key(call) => {
                Err(format!("{call:?} is started before the log knows"))
            }
            Effect::CallModel(..) if !std::mem::take(&mut self.has_requested) => {
                Err("a request is sent before the log knows".into())
            }
            _ => Ok(()),
        }
    }

    fn on_record(&mut self, record: &Record, durability: Durability) -> Verdict {
        let must_sync = match record {
            Record::Answered(answered) => {
                self.said.insert(answered.id, vec![answered.block.clone()]);
                false
            }
            Record::Result(result) => {
                self.said.insert(result.id, vec![result.result.clone()]);
                false
            }
            Record::Said(said) => {
                self.said.insert(said.message.id, said.message.blocks.clone());
                false
            }
            Record::Decided(decision) => {
                self.decided = Some(decision.clone());
                false
            }
            Record::Requested(_) => {
                self.has_requested = true;
                false
            }
            Record::Intended(intended) => {
                self.intended.insert(intended.call, intended.kind);
                !intended.kind.is_read_only()
            }
            Record::Finished(FinishedCall { call, .. }) => match self.intended.get(call) {
                Some(kind) => !kind.is_read_only(),
                None => return Err(format!("{call:?} finished and was never intended")),
            },
            Record::Ended(_) => {
                self.has_ended = true;
                true
            }
            _ => false,
        };
        if must_sync && durability != Durability::Synced {
            return Err(format!("what must survive a loss of power is not synced: {record:?}"));
        }
        Ok(())
    }

    fn on_update(&mut self, update: &Update) -> Verdict {
        let is_known =
            |id: &MessageId, blocks: &[Block]| self.said.get(id).is_some_and(|said| said == blocks);
        let known = match update {
            Update::Block { id, block, .. } => is_known(id, std::slice::from_ref(block)),
            Update::ToolResult { id, result, .. } => is_known(id, std::slice::from_ref(result)),
            Update::UserText { id, blocks, .. } => is_known(id, blocks),
            Update::Decided(decision) => self.decided.as_ref() == Some(decision),
            Update::Done(_) => self.has_ended,
            _ => true,
        };
        if known { Ok(()) } else { Err(format!("shown before the log knows: {update:?}")) }
    }
}
