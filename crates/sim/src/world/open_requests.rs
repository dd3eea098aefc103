//! What runs beside a run: forks, hooks, files, looks around, memory.

use std::collections::BTreeMap;

use windlass_core::Event;
use windlass_protocol::{
    AmbientChanges, Failure, FailureClass, FileChange, FileSeen, ForkId, HookAnswer, HookCall, HookEnding,
    HookEvent, HookId, HookPermission, HookRun, LookId, MemoryNote, ModelSpend, Outcome, StoreId, Terminal,
    Usage,
};

use super::World;
use crate::fork_world::Fork;
use crate::rng::Rng;
use crate::scene::{long_text, raw};

/// What was asked for and is not answered. Some of it takes until faults stop.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    pub(super) forks: Vec<(ForkId, Fork)>,
    pub(super) hooks: Vec<(HookId, HookCall, Pace)>,
    pub(super) stores: Vec<(StoreId, usize)>,
    pub(super) looks: Vec<(LookId, Vec<FileSeen>, Vec<std::path::PathBuf>)>,
    pub(super) prefetches: u32,
    /// Forks that were cancelled; an answer may be on its way.
    pub(super) cancelled: Vec<ForkId>,
}

/// How long something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Quick,
    /// Until it is cancelled, or faults stop.
    Endless,
}

impl Pace {
    pub(super) fn random(rng: &mut Rng) -> Self {
        if rng.one_in(12) { Self::Endless } else { Self::Quick }
    }
}

impl World {
    /// A fork comes to its end: one that really ran, or one that says anything.
    pub(super) fn forked_event(&mut self, is_honest: bool) -> Result<Option<Event>, String> {
        if self.open.forks.is_empty() {
            return Ok(None);
        }
        let place = usize::try_from(self.rng.below(self.open.forks.len() as u64)).unwrap_or(0);
        let (id, fork) = self.open.forks.swap_remove(place);
        let outcome = if is_honest || self.rng.one_in(2) {
            let outcome = fork.run(&mut self.rng, self.checker.bindings(), self.server.inflation)?;
            self.coverage.count("fork end", outcome.terminal.name());
            outcome
        } else {
            Box::new(random_outcome(&mut self.rng))
        };
        Ok(Some(Event::Forked(id, outcome)))
    }

    /// A fork tells what it has taken so far.
    pub(super) fn fork_spent(&mut self) -> Option<Event> {
        let forks: Vec<ForkId> = self.open.forks.iter().map(|(fork, _)| *fork).collect();
        let fork = self.rng.pick(&forks)?;
        Some(Event::ForkSpent(fork, random_outcome(&mut self.rng).models))
    }

    /// The answer of a fork that was cancelled comes all the same, or what it took.
    pub(super) fn forked_late(&mut self) -> Option<Event> {
        let fork = self.open.cancelled.pop()?;
        if self.rng.one_in(4) {
            return Some(Event::ForkSpent(fork, random_outcome(&mut self.rng).models));
        }
        Some(Event::Forked(fork, Box::new(random_outcome(&mut self.rng))))
    }

    pub(super) fn hooked_event(&mut self, is_honest: bool) -> Option<Event> {
        let is_due = |(_, _, pace): &(HookId, HookCall, Pace)| is_honest || *pace == Pace::Quick;
        let place = self.open.hooks.iter().position(is_due)?;
        let (hook, call, _) = self.open.hooks.remove(place);
        let answer =
            if is_honest { HookAnswer::default() } else { random_answer(&mut self.rng, call.event()) };
        if let HookCall::UserPromptSubmit { prompt } = &call
            && (answer.stop.is_some() || !answer.blocks.is_empty())
        {
            self.refused += prompt.lines().filter(|line| line.starts_with("steer ")).count();
        }
        Some(Event::Hooked(hook, Box::new(answer)))
    }

    pub(super) fn stored_event(&mut self) -> Option<Event> {
        let (store, count) = self.open.stores.pop()?;
        let is_full = self.rng.one_in(8);
        let file = |rng: &mut Rng| (!is_full && !rng.one_in(8)).then(|| "/session/result.txt".into());
        let files = (0..count).map(|_| file(&mut self.rng)).collect();
        Some(Event::Stored(store, files))
    }

    pub(super) fn looked_event(&mut self) -> Option<Event> {
        let (look, known, show) = self.open.looks.pop()?;
        let mut found = AmbientChanges::default();
        for file in known {
            if self.rng.one_in(3) {
                let (hash, note) = (self.rng.below(4), "line 3 is different".into());
                found.changed.push(FileChange { path: file.path, hash, note });
            }
        }
        if self.rng.one_in(2) {
            found.tasks = Some("- [ ] finish".into());
        }
        for path in show {
            if !self.rng.one_in(4) {
                found.shown.push((path, long_text(&mut self.rng).into()));
            }
        }
        Some(Event::Looked(look, Box::new(found)))
    }

    pub(super) fn prefetched_event(&mut self) -> Option<Event> {
        self.open.prefetches = self.open.prefetches.checked_sub(1)?;
        let path = format!("/memory/{}", self.rng.below(3)).into();
        Some(Event::Prefetched(vec![MemoryNote { path, text: "It was like this.".into() }]))
    }
}

fn random_answer(rng: &mut Rng, event: HookEvent) -> HookAnswer {
    let mut answer = HookAnswer::default();
    let words =
        |should_say: bool, text: &str| should_say.then(|| text.to_owned()).into_iter().collect::<Vec<_>>();
    answer.notices = words(rng.one_in(8), "a hook says hello");
    answer.context = words(rng.one_in(8), "mind the gap");
    answer.blocks = words(rng.one_in(if event == HookEvent::Stop { 2 } else { 10 }), "not like this");
    answer.stop = rng.one_in(if event == HookEvent::Stop { 6 } else { 16 }).then(|| "enough".into());
    if event.is_stop() {
        let run = HookRun {
            hook: "check".into(),
            duration_ms: rng.below(1_000),
            ending: HookEnding::Worked,
            said: String::new(),
        };
        answer.runs = (0..rng.below(3)).map(|_| run.clone()).collect();
    }
    if event == HookEvent::PreToolUse {
        answer.permission = match rng.below(12) {
            0..=2 => Some(HookPermission::Allow),
            3 => Some(HookPermission::Deny("no".into())),
            4 => Some(HookPermission::Ask("sure?".into())),
            5 if rng.one_in(3) => Some(HookPermission::Defer),
            _ => None,
        };
        answer.input = rng.one_in(8).then(|| raw("{\"hooked\":true}"));
    }
    if event == HookEvent::PermissionRequest {
        answer.permission = match rng.below(6) {
            0..=1 => Some(HookPermission::Allow),
            2 => Some(HookPermission::Deny("not for you".into())),
            _ => None,
        };
        answer.input = rng.one_in(8).then(|| raw("{\"requested\":true}"));
    }
    if event == HookEvent::PostToolUse {
        answer.output = rng.one_in(6).then(|| raw("\"something else\""));
    }
    if event == HookEvent::SessionStart {
        answer.first_prompt = rng.one_in(3).then(|| "first of all".to_owned());
    }
    answer
}

fn random_outcome(rng: &mut Rng) -> Outcome {
    let terminal = if rng.one_in(3) { rng.pick(&Terminal::ALL) } else { None }.unwrap_or(Terminal::Completed);
    let usage = Usage { input_tokens: rng.below(500), output_tokens: rng.below(50), ..Usage::default() };
    #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
    let cost_usd = Some((usage.input_tokens as f64 * 3.0 + usage.output_tokens as f64 * 15.0) / 1e6);
    let spend = ModelSpend { usage: usage.clone(), cost_usd, window_tokens: 9_000, output_tokens_max: 8_000 };
    let model = if rng.one_in(2) { "sim-a" } else { "sim-s" };
    let text = match rng.below(8) {
        0 => String::new(),
        1 => long_text(rng).to_owned(),
        // What the judge of calls says.
        2 => "ALLOW".to_owned(),
        3 => "BLOCK it may do harm".to_owned(),
        _ => "in short: it went well".to_owned(),
    };
    let failure = terminal.shows_failure().then(|| Failure::new(FailureClass::Server, "the fork failed"));
    Outcome {
        terminal,
        text,
        stop_reason: None,
        iterations: 1,
        usage,
        models: BTreeMap::from([(model.into(), spend)]),
        denials: Vec::new(),
        errors: failure.iter().map(|failure| failure.message.clone()).collect(),
        warnings: Vec::new(),
        failure,
        duration_ms: 1,
        duration_api_ms: 1,
        structured: None,
        deferred: None,
        prompts: Vec::new(),
    }
}
