//! Answers that stand in for hooks, given in turn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use windlass_ports::{BoxFuture, CancellationToken, HookRunner};
use windlass_protocol::{HookAnswer, HookCall, HookEvent, HookScene};

/// The answers that are left of each event.
pub(crate) struct ScriptedHooks {
    answers: Mutex<BTreeMap<HookEvent, VecDeque<HookAnswer>>>,
}

impl ScriptedHooks {
    pub(crate) fn new(answers: BTreeMap<HookEvent, Vec<HookAnswer>>) -> Self {
        let answers = answers.into_iter().map(|(event, list)| (event, list.into())).collect();
        Self { answers: Mutex::new(answers) }
    }
}

impl HookRunner for ScriptedHooks {
    fn events(&self) -> BTreeSet<HookEvent> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    fn run(&self, call: HookCall, _: HookScene, _: CancellationToken) -> BoxFuture<'static, HookAnswer> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let next = answers.get_mut(&call.event()).and_then(VecDeque::pop_front);
        Box::pin(std::future::ready(next.unwrap_or_default()))
    }
}
