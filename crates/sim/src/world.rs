//! The world around the core: a model, tools, people, hooks, forks and timers, all of them unreliable.

mod events;
mod log_faults;
mod open_requests;
mod sim_log;
mod tools;

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_core::{
    Config, Effect, Effects, Event, Input, Interrupt, PhaseName, Priority, Prompt, RunSource, Speaker, State,
    step,
};
use windlass_protocol::{Block, CallId, CallKind, ForkId, ModelEvent, Record, StopReason, TimerId, Update};

use crate::checker::{CheckedStep, Checker};
use crate::coverage::Coverage;
use crate::fork_world::Fork;
use crate::mutant::Mutant;
use crate::recall_check::{check_damaged, check_prefix};
use crate::rng::Rng;
use crate::scene::{random_config, random_start};
use crate::server::ModelServer;
use open_requests::{OpenRequests, Pace};
use sim_log::{AppendResult, SimLog, StepProgress};

/// Events of one run before faults stop, at most, and how many more it may then take to end.
const STEPS_WITH_FAULTS: u64 = 160;
const STEPS_TO_FINISH: u32 = 600;
/// As many delivered events are kept to be delivered again.
const PAST_MAX: usize = 24;
/// As often a walk may crash.
const CRASHES_MAX: u32 = 4;

/// Plays one random session of a few runs. The error says which invariant broke.
pub fn walk(seed: u64) -> Result<Coverage, String> {
    let mut world = World::new(seed, None);
    world.play()?;
    Ok(world.coverage)
}

/// Plays the same session as [`walk`] and gives what its log holds, for whoever wants a log of real life.
#[must_use]
pub fn walk_log(seed: u64) -> Vec<Record> {
    let mut world = World::new(seed, None);
    // What the checkers think of it is told by the walk itself.
    let _ = world.play();
    world.journal.records
}

/// Plays the same session as [`walk`] and says what happened, a line for each event and for what the core made of it.
pub fn walk_told(seed: u64) -> (Vec<String>, Result<(), String>) {
    let mut world = World::new(seed, None);
    world.story = Some(vec![format!("{:#?}", world.config)]);
    let verdict = world.play();
    (world.story.unwrap_or_default(), verdict)
}

/// Plays a session whose core tells the checkers something else than it does. A checker that is worth anything objects.
pub fn walk_mutant(seed: u64, mutant: Mutant) -> Result<Coverage, String> {
    let mut world = World::new(seed, Some(mutant));
    world.play()?;
    Ok(world.coverage)
}

struct World {
    state: State,
    config: Config,
    rng: Rng,
    checker: Checker,
    server: ModelServer,
    mutant: Option<Mutant>,
    journal: SimLog,
    /// The process ended in the middle of this run.
    has_crashed: bool,
    open: OpenRequests,
    examine: VecDeque<(CallId, Arc<str>)>,
    asked: Vec<CallId>,
    /// Timers that run, and when they run out.
    timers: Vec<(TimerId, u64)>,
    /// Events that were delivered, to be delivered again.
    past: Vec<Event>,
    now: u64,
    /// Prompts that were handed over while something else went on.
    steered: u32,
    /// Steered messages that hooks refused.
    refused: usize,
    coverage: Coverage,
    /// What happened, if somebody wants to know.
    story: Option<Vec<String>>,
}

/// What ends a run.
enum End {
    Interrupt(Interrupt),
    Failed,
}

impl World {
    fn new(seed: u64, mutant: Option<Mutant>) -> Self {
        let mut rng = Rng::new(seed);
        let config = random_config(&mut rng);
        let start = random_start(&mut rng);
        let server = ModelServer::new(&mut rng);
        let checker = Checker::new("/project".into(), &start);
        let state = State::new("/project".into(), start);
        Self {
            checker,
            journal: SimLog::new(&state, &mut rng, mutant.is_some()),
            state,
            config,
            rng,
            server,
            mutant,
            has_crashed: false,
            open: OpenRequests::default(),
            examine: VecDeque::new(),
            asked: Vec::new(),
            timers: Vec::new(),
            past: Vec::new(),
            now: 0,
            steered: 0,
            refused: 0,
            coverage: Coverage::default(),
            story: None,
        }
    }

    fn play(&mut self) -> Result<(), String> {
        let (mut runs, mut crashes) = (1 + self.rng.below(3), 0);
        while runs > 0 {
            self.play_run()?;
            runs -= 1;
            // Whatever happened, the session goes on.
            if self.has_crashed && crashes < CRASHES_MAX {
                (runs, crashes) = (runs.max(1), crashes + 1);
            } else if self.rng.one_in(6) {
                self.reopen();
            }
        }
        if self.rng.one_in(4) {
            check_prefix(&self.journal.records, &mut self.rng)?;
            check_damaged(&self.journal.records, &self.config, &mut self.rng)?;
        }
        Ok(())
    }

    fn first_event(&mut self) -> Event {
        let after_crash = std::mem::take(&mut self.has_crashed);
        if self.rng.one_in(if after_crash { 2 } else { 60 }) {
            self.coverage.count("sight", "run goes on without a prompt");
            return Event::GoOn { start: self.start() };
        }
        if self.rng.one_in(12) {
            return Event::Compact {
                focus: if self.rng.one_in(2) { String::new() } else { "the tests".into() },
            };
        }
        let start = self.start();
        Event::Submit(Prompt { start, ..self.random_prompt("do it") })
    }

    fn play_run(&mut self) -> Result<(), String> {
        self.checker.begin_run();
        let first = self.first_event();
        self.apply(first)?;
        for _ in 0..20 + self.rng.below(STEPS_WITH_FAULTS - 20) {
            if self.is_over() {
                break;
            }
            if self.rng.one_in(800) {
                return self.drop_run();
            }
            if let Some(event) = self.random_event()? {
                self.apply(event)?;
            }
        }
        for _ in 0..STEPS_TO_FINISH {
            if self.is_over() {
                break;
            }
            let event = self.honest_event()?;
            self.apply(
                event.ok_or_else(|| format!("nothing can happen any more: {:?}", self.state.phase()))?,
            )?;
        }
        if !self.is_over() {
            return Err(format!("no end, although faults have stopped: {:?}", self.state.phase()));
        }
        if self.has_crashed { Ok(()) } else { self.end_run() }
    }

    fn is_over(&self) -> bool {
        self.has_crashed || self.state.terminal().is_some()
    }

    fn end_run(&mut self) -> Result<(), String> {
        let doubts = std::mem::take(&mut self.checker.doubts_asked);
        for _ in 0..doubts {
            self.coverage.count("sight", "question about a call in doubt");
        }
        for _ in 0..std::mem::take(&mut self.checker.forks_cut_short) {
            self.coverage.count("sight", "cost of a cancelled fork");
        }
        self.play_late()?;
        if self.has_crashed {
            return Ok(());
        }
        let mut forks = std::mem::take(&mut self.open.forks);
        forks.retain(|(_, fork)| fork.config.source == RunSource::PromptSuggestion);
        self.forget();
        self.open.forks = forks;
        self.state = std::mem::take(&mut self.state).close_run();
        self.play_background()?;
        if self.has_crashed {
            return Ok(());
        }
        if self.checker.has_log_failed() {
            self.rebase();
            return Ok(());
        }
        self.check_steered()?;
        self.check_at_rest()
    }

    /// News after the end changes nothing.
    fn play_late(&mut self) -> Result<(), String> {
        for _ in 0..self.rng.below(3) {
            let late = match self.rng.below(3) {
                0 => self.forked_late(),
                1 => self.hooked_event(false),
                _ => self.late(),
            };
            if let Some(event) = late {
                self.apply(event)?;
            }
        }
        Ok(())
    }

    /// What is at work in the background comes to its end, unless the next run is faster.
    fn play_background(&mut self) -> Result<(), String> {
        if let Some(event) = self.fork_spent() {
            self.apply(event)?;
        }
        while !self.has_crashed && self.rng.one_in(2) {
            let Some(event) = self.forked_event(/* honest */ false)? else { break };
            self.apply(event)?;
        }
        Ok(())
    }

    /// Nobody polls any more: everything the driver holds is gone, the state is closed as after a crash.
    fn drop_run(&mut self) -> Result<(), String> {
        self.forget();
        self.journal.abandon_run();
        self.state = std::mem::take(&mut self.state).close_run();
        self.coverage.dropped += 1;
        // Where the log has failed, not everything was shown that the session decided.
        if !self.checker.has_log_failed() {
            self.checker.on_drop(&self.state)?;
        }
        self.rebase();
        Ok(())
    }

    fn forget(&mut self) {
        self.open = OpenRequests::default();
        self.examine.clear();
        self.asked.clear();
        self.timers.clear();
        self.past.clear();
    }

    /// Tells the core what happened, and does what it asks for.
    fn apply(&mut self, event: Event) -> Result<(), String> {
        if matches!(event, Event::Submit(_) | Event::Compact { .. } | Event::GoOn { .. })
            && self.state.phase() == PhaseName::Idle
        {
            self.journal.next_run();
        }
        let before = self.journal.records.len();
        match self.journal.restate(&self.state, &mut self.rng) {
            AppendResult::Done => {
                if self.journal.records.len() > before {
                    self.coverage.count("sight", "facts restated");
                    self.checker.on_restated();
                }
                self.hear(event, /* the log failed */ false)
            }
            AppendResult::Failed => self.hear(event, /* the log failed */ true),
            AppendResult::Crashed => self.crash(before),
        }
    }

    /// One step of the core. If the log has just failed, nothing that it asks for is done but what stops something.
    fn hear(&mut self, event: Event, has_log_failed: bool) -> Result<(), String> {
        self.now += self.rng.below(50);
        if self.past.len() < PAST_MAX && self.rng.one_in(4) {
            self.past.push(event.clone());
        }
        let (from, end) = (self.state.phase(), self.possible_end(&event));
        if matches!(event, Event::Steer(_)) && end.is_some() {
            self.coverage.count("sight", "prompt that replaces a run");
        }
        let is_submitted = matches!(event, Event::Submit(_));
        let failed = Mutant::text_of(&event);
        self.checker.on_event(&event, &self.config);
        self.tell(|| format!("{from:?} <- {event:?}"));
        let input = Input { at_ms: self.now, wall_ms: self.now, entropy: self.rng.bits(), event };
        self.journal.hear(&input);
        let (state, effects) = step(std::mem::take(&mut self.state), input, &self.config);
        self.state = state;
        self.count(&effects);
        let mut effects = effects.list;
        for effect in &effects {
            self.tell(|| format!("    {effect:?}"));
        }
        let goes_on = |effect: &Effect| {
            matches!(
                effect,
                Effect::Emit(Update::Retrying { .. } | Update::FellBack { .. } | Update::Continued(_))
            )
        };
        let end = end.filter(|_| !effects.iter().any(goes_on));
        self.checker.calls.is_ending |= end.is_some();
        let mut told = self.mutant.map(|mutant| mutant.tell(&effects, failed));
        let before = self.journal.records.len();
        let done = self.log(told.as_ref().unwrap_or(&effects), has_log_failed);
        let behind = match done {
            StepProgress::All => Vec::new(),
            StepProgress::UpToFailure(at) | StepProgress::UpToCrash(at) => {
                if let Some(told) = &mut told {
                    cut(told, at);
                }
                cut(&mut effects, at)
            }
        };
        let step = CheckedStep {
            from,
            is_submitted,
            state: &self.state,
            effects: told.as_ref().unwrap_or(&effects),
            config: &self.config,
            now_ms: self.now,
            is_cut: done != StepProgress::All,
        };
        self.checker.check(&step)?;
        if let StepProgress::UpToCrash(_) = done {
            return self.crash(before);
        }
        if done == StepProgress::All {
            self.check_logged(&effects)?;
            self.check_ending(end, from, &effects)?;
        }
        for effect in effects {
            self.perform(effect);
        }
        if done == StepProgress::All { Ok(()) } else { self.fail_log(&behind) }
    }

    /// Adds a line to the story. Long ones are cut.
    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(line().chars().take(400).collect());
        }
    }

    fn check_ending(&self, end: Option<End>, from: PhaseName, effects: &[Effect]) -> Result<(), String> {
        let Some(end) = end else { return Ok(()) };
        if matches!(end, End::Interrupt(_)) && from == PhaseName::Streaming {
            self.check_spoken(effects)?;
        }
        let is_spared =
            |kind: CallKind| kind == CallKind::Edit && matches!(end, End::Interrupt(Interrupt::Replace));
        self.checker.calls.check_stopped(is_spared)
    }

    fn count(&mut self, effects: &Effects) {
        for edge in &effects.edges {
            *self.coverage.edges.entry(*edge).or_default() += 1;
        }
        for effect in &effects.list {
            self.coverage.on_effect(effect);
        }
    }

    /// Whether nothing more may start after this event, unless it is tried again.
    fn possible_end(&self, event: &Event) -> Option<End> {
        let phase = self.state.phase();
        let is_live = [PhaseName::Streaming, PhaseName::Settling, PhaseName::Waiting].contains(&phase);
        match event {
            Event::Interrupt(kind) if is_live => Some(End::Interrupt(*kind)),
            Event::Steer(prompt) | Event::Submit(prompt) if is_live && replaces(prompt) => {
                Some(End::Interrupt(Interrupt::Replace))
            }
            Event::StoreFailed { .. } if is_live => Some(End::Failed),
            Event::Model(
                request,
                ModelEvent::Failed(_) | ModelEvent::Ended { stop: StopReason::Refusal, .. },
            ) if self.checker.request == Some(*request) => Some(End::Failed),
            _ => None,
        }
    }

    /// What was on the screen when the user interrupted is kept.
    fn check_spoken(&self, effects: &[Effect]) -> Result<(), String> {
        let kept = |effect: &Effect| matches!(effect, Effect::Emit(Update::Block { is_aborted: true, .. }));
        if self.checker.spoken.trim().is_empty() || effects.iter().any(kept) {
            Ok(())
        } else {
            Err(format!("{:?} was said and is lost", self.checker.spoken))
        }
    }

    /// Does what the driver would do. The checker keeps what runs.
    fn perform(&mut self, effect: Effect) {
        let beside = &mut self.open;
        match effect {
            Effect::CallModel(_, body) => {
                self.server.on_request(&body, &mut self.rng);
                self.checker.spoken.clear();
            }
            Effect::RunTool { .. } => self.server.response.has_acted = true,
            Effect::Examine(call, tool_use, _) => self.examine.push_back((call, tool_use.name)),
            Effect::StartTimer { timer, after_ms } => {
                self.timers.push((timer, self.now.saturating_add(after_ms)));
            }
            Effect::Emit(Update::Question(question)) => self.asked.push(question.call),
            Effect::Fork { fork, state, config, prompt } => {
                beside.forks.push((fork, Fork { state, config, prompt }));
            }
            Effect::CancelFork(fork) => {
                let is_background = |(id, own): &(ForkId, Fork)| {
                    *id == fork && own.config.source == RunSource::PromptSuggestion
                };
                if beside.forks.iter().any(is_background) {
                    self.coverage.count("sight", "background work cancelled by the next run");
                }
                beside.forks.retain(|(id, _)| *id != fork);
                beside.cancelled.push(fork);
            }
            Effect::RunHooks(hook, call, _) => {
                beside.hooks.push((hook, call, Pace::random(&mut self.rng)));
            }
            Effect::CancelHooks(hook) => beside.hooks.retain(|(id, ..)| *id != hook),
            Effect::Store(store, results) => beside.stores.push((store, results.len())),
            Effect::LookAround { look, known, show } => {
                beside.looks.push((look, known, show.into_iter().map(|(path, _)| path).collect()));
            }
            Effect::Prefetch(_) => beside.prefetches += 1,
            Effect::Persist(..)
            | Effect::Emit(_)
            | Effect::CancelModel(_)
            | Effect::CancelTool(_)
            | Effect::AbandonTool(_) => (),
        }
    }

    /// Steered messages that wait.
    fn steered_waiting(&self) -> usize {
        let waiting = self.state.snapshot().map(|facts| facts.waiting).unwrap_or_default();
        waiting.iter().flat_map(|prompt| &prompt.blocks).filter(|block| is_steered(block)).count()
    }

    /// Every steered message reached the model, was refused by a hook, or still waits.
    fn check_steered(&self) -> Result<(), String> {
        let total = self.checker.steered_prompts() + self.refused + self.steered_waiting();
        if total == self.steered as usize {
            Ok(())
        } else {
            Err(format!("{total} of {} steered messages are left", self.steered))
        }
    }
}

/// Leaves what is done although the log failed at this effect; what is not done. A fork may begin and be dropped in one step.
fn cut(effects: &mut Vec<Effect>, at: usize) -> Vec<Effect> {
    let behind = effects.split_off(at.min(effects.len()));
    let begins = |stop: &Effect, other: &Effect| matches!((stop, other), (Effect::CancelFork(id), Effect::Fork { fork, .. }) if id == fork);
    let stops = behind.iter().filter(|stop| stop.stops() && !behind.iter().any(|other| begins(stop, other)));
    effects.extend(stops.cloned());
    behind
}

/// Whether somebody who says this wants the run to end.
pub(crate) fn replaces(prompt: &Prompt) -> bool {
    prompt.priority == Priority::Now && prompt.speaker != Speaker::Task
}

fn is_steered(block: &Block) -> bool {
    block.as_text().is_some_and(|text| text.starts_with("steer "))
}
