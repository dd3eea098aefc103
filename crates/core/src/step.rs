//! The reducer: one event in, the next state and its effects out.

use std::sync::Arc;

use windlass_permission::Permissions;
use windlass_protocol::{
    Durability, Event, ForkId, HookAnswer, HookId, Input, Interrupt, MessageId, Outcome, PermissionUpdate,
    Priority, Prompt, RawValue, Record, SettingsDestination, Speaker, Update, UserEntry,
};

use crate::config::Config;
use crate::context;
use crate::effect::{Effect, Effects};
use crate::state::{Phase, PhaseName, State};
use crate::turn::prepare::{LayerQuestion, LayerReply};

/// Advances a session by one event.
pub fn step(mut state: State, input: Input, config: &Config) -> (State, Effects) {
    let mut effects = Effects::default();
    let here = state.phase();
    let phase = std::mem::take(&mut state.phase);
    let Input { at_ms, wall_ms, entropy, event } = input;
    let mut cx = Cx { state: &mut state, effects: &mut effects, config, here, at_ms, wall_ms, entropy };
    let next = match event {
        Event::Submit(prompt) => cx.on_submit(phase, prompt),
        Event::Steer(prompt) => cx.on_steer(phase, prompt),
        Event::TakeBack(id) => {
            if cx.state.carry.waiting.take_back(&id) {
                cx.requeue();
            }
            phase
        }
        Event::Interrupt(kind) => cx.on_interrupt(phase, kind),
        Event::Model(request, event) => cx.on_model(phase, request, event),
        Event::Examined(call, admission) => {
            cx.with_call(phase, call, |call, cx| call.on_examined(admission, cx))
        }
        Event::Progress(call, progress) => {
            cx.with_calls(phase, |calls, cx| calls.on_progress(call, progress, cx))
        }
        Event::Finished(call, output) => cx.with_call(phase, call, |call, cx| call.on_finished(output, cx)),
        Event::Answered(call, answer) => cx.with_call(phase, call, |call, cx| call.on_answered(answer, cx)),
        Event::Permissions(updates) => {
            cx.change_permissions(updates);
            phase
        }
        Event::Timer(timer) => cx.on_timer(phase, timer),
        Event::Compact { focus } => cx.on_compact(phase, focus),
        Event::GoOn { start } => cx.on_go_on(phase, start),
        Event::ForkSpent(fork, models) => {
            // One that nobody knows was cancelled or is over.
            cx.state.fork_spends.entry(fork).and_modify(|spends| *spends = models);
            phase
        }
        Event::Forked(fork, outcome) => cx.on_forked(phase, fork, outcome),
        Event::Hooked(hook, answer) => cx.on_hooked(phase, hook, answer),
        Event::Stored(store, files) => {
            cx.on_reply(phase, LayerQuestion::Store(store), LayerReply::Stored(files))
        }
        Event::Looked(look, found) => cx.on_looked(phase, look, *found),
        Event::Prefetched(found) => {
            cx.state.carry.notes.on_prefetched(found);
            phase
        }
        Event::StoreFailed { why, unstarted } => cx.on_store_failed(phase, &why, &unstarted),
    };
    let here = cx.here;
    state.phase = next;
    debug_assert_eq!(here, state.phase(), "every change of phase is noted");
    (state, effects)
}

/// The working view of one step: what there is, what is asked for, what was told.
pub(crate) struct Cx<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) effects: &'a mut Effects,
    pub(crate) config: &'a Config,
    pub(crate) at_ms: u64,
    pub(crate) wall_ms: u64,
    pub(crate) entropy: u64,
    here: PhaseName,
}

impl Cx<'_> {
    pub(crate) fn emit(&mut self, update: Update) {
        self.effects.push(Effect::Emit(update));
    }

    /// Puts a fact into the log before anything that follows.
    pub(crate) fn persist(&mut self, record: Record) {
        self.effects.push(Effect::Persist(record, Durability::Written));
    }

    /// Puts a fact onto the disk before anything that follows.
    pub(crate) fn persist_synced(&mut self, record: Record) {
        self.effects.push(Effect::Persist(record, Durability::Synced));
    }

    /// A fact about a call: what does more than read must be known whatever happens.
    pub(crate) fn persist_for(&mut self, has_effect: bool, record: Record) {
        let durability = if has_effect { Durability::Synced } else { Durability::Written };
        self.effects.push(Effect::Persist(record, durability));
    }

    /// Something from the user's side enters the conversation while the run goes on: it is logged, then shown.
    pub(crate) fn show_said(&mut self, said: UserEntry) {
        let (id, blocks) = (said.message.id, said.message.blocks.clone());
        let (is_synthetic, prompts) = (!said.is_prompt(), said.prompts.clone());
        self.persist(Record::Said(said));
        self.emit(Update::UserText { id, blocks, is_synthetic, prompts });
    }

    /// Notes that the machine goes to another phase, also where it does not rest there.
    pub(crate) fn enter(&mut self, to: PhaseName) {
        self.effects.edges.push((self.here, to));
        self.here = to;
    }

    pub(crate) fn message_id(&mut self) -> MessageId {
        self.state.ids.message()
    }

    /// A message that is typed meanwhile waits for the next results or the next run, or replaces what goes on.
    pub(crate) fn on_steer(&mut self, phase: Phase, prompt: Prompt) -> Phase {
        let replaces = prompt.priority == Priority::Now && prompt.speaker != Speaker::Task;
        self.persist(Record::Queued(prompt.clone()));
        self.state.carry.waiting.push(prompt);
        if replaces { self.on_interrupt(phase, Interrupt::Replace) } else { phase }
    }

    /// Prompts become part of the run.
    pub(crate) fn start_prompts(&mut self, ids: Vec<Arc<str>>) {
        if !ids.is_empty() {
            self.state.ledger.outcome.prompts.extend(ids.iter().cloned());
            self.emit(Update::PromptsStarted(ids));
        }
    }

    /// Books what an ended fork took; whoever waits for it goes on. A cancelled one has no one waiting.
    fn on_forked(&mut self, phase: Phase, fork: ForkId, outcome: Box<Outcome>) -> Phase {
        self.state.fork_spends.remove(&fork);
        if self.on_background(fork, &outcome) {
            return phase;
        }
        let is_staged = self.state.carry.staged.fork() == Some(fork);
        let is_asked =
            matches!(&phase, Phase::Preparing(preparing) if preparing.waits_for(LayerQuestion::Fork(fork)));
        let is_judge = phase.calls().is_some_and(|calls| calls.waits_for_judge(fork));
        if is_staged || is_asked || is_judge || self.waits_for_summary(fork) {
            self.state.ledger.outcome.duration_api_ms += outcome.duration_api_ms;
            self.book_fork(&outcome.models);
        }
        if self.on_summary(fork, &outcome) {
            return phase;
        }
        if is_judge {
            return self.with_calls(phase, |calls, cx| calls.on_classified(fork, &outcome, cx));
        }
        if is_staged {
            context::on_staged(self, &outcome);
            return phase;
        }
        self.on_reply(phase, LayerQuestion::Fork(fork), LayerReply::Forked(outcome))
    }

    /// Who may do what by now.
    pub(crate) fn permissions(&self) -> &Permissions {
        self.state.carry.grants.permissions(&self.config.permissions)
    }

    /// Somebody changed who may do what: it holds at once. Whoever drives the session keeps what is to last.
    fn change_permissions(&mut self, updates: Vec<PermissionUpdate>) {
        let mut lasting = Vec::new();
        for update in updates {
            match self.state.carry.grants.apply(&update, &self.config.permissions, &self.config.roots) {
                Ok(()) if update.destination == SettingsDestination::Session => (),
                Ok(()) => lasting.push(update),
                Err(why) => {
                    self.emit(Update::Notice(format!("A permission change was ignored: {why}.")));
                }
            }
        }
        if !lasting.is_empty() {
            self.emit(Update::Permissions(lasting));
        }
    }

    /// A hook wants the permissions changed, in the form it writes.
    pub(crate) fn change_permissions_as_told(&mut self, told: &[Arc<RawValue>]) {
        let mut updates = Vec::new();
        for json in told {
            match PermissionUpdate::from_json(json.get()) {
                Ok(update) => updates.push(update),
                Err(why) => {
                    self.emit(Update::Notice(format!("A permission change of a hook was ignored: {why}.")));
                }
            }
        }
        self.change_permissions(updates);
    }

    /// Hooks answered: those of a call, of a round, of the end, or of what comes before a request.
    fn on_hooked(&mut self, phase: Phase, hook: HookId, answer: Box<HookAnswer>) -> Phase {
        match phase {
            Phase::Stopping(stopping) if stopping.hook == hook => self.on_stop_hooked(&stopping, &answer),
            Phase::Preparing(_) => {
                self.on_reply(phase, LayerQuestion::Hooks(hook), LayerReply::Hooked(answer))
            }
            Phase::Settling(settling) if settling.hooked.waits_for(hook) => {
                self.on_round_hooked(settling, &answer)
            }
            phase => self.with_calls(phase, |calls, cx| calls.on_hooked(hook, *answer, cx)),
        }
    }
}
