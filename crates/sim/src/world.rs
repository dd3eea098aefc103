//! The world around the core: a model, tools, people and timers, all of them unreliable.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use windlass_core::{
    Asking, Config, EarlyStart, Effect, Effects, Event, Input, Interrupt, PermissionMode, PhaseName, Prompt,
    State, step,
};
use windlass_protocol::{
    Admission, Answer, Block, CallFacts, CallId, CallKind, Delta, Failure, FailureClass, FileSeen,
    ModelEvent, PathFact, RawValue, StopReason, Terminal, TimerId, ToolOutcome, ToolProgress, Update, Usage,
};

use crate::checker::Checker;
use crate::failures::{FAILURE_CLASSES, FailurePoint};
use crate::rng::Rng;

/// What a walk came to, for statistics.
#[derive(Debug, Default)]
pub struct Walk {
    /// How each run of the walk ended; `None` for one that was dropped.
    pub terminals: Vec<Option<Terminal>>,
    /// The edges between phases that were taken.
    pub edges: BTreeSet<(PhaseName, PhaseName)>,
    /// How and where requests failed. One that fails after a call had started fails at two points.
    pub failures: Vec<(FailureClass, FailurePoint)>,
}

/// A file outside the working directories that tools make for reading.
const OUTPUT: &str = "/tmp/output";

/// Events of one run before faults stop, and how many more it may then take to end.
const STEPS_WITH_FAULTS: u32 = 60;
const STEPS_TO_FINISH: u32 = 400;

/// Plays one random session of a few runs. The error says which invariant broke.
pub fn walk(seed: u64) -> Result<Walk, String> {
    let mut rng = Rng::new(seed);
    let config = random_config(&mut rng);
    let mut world = World {
        state: State::new("/project".into(), windlass_protocol::Transcript::default()),
        config,
        rng,
        checker: Checker::new("/project".into()),
        examine: VecDeque::new(),
        asked: Vec::new(),
        timers: Vec::new(),
        response: Response::default(),
        past: Vec::new(),
        tool_uses: 0,
        now: 0,
        steered: 0,
        failed: false,
        failures: Vec::new(),
    };
    let mut walk = Walk::default();
    for _ in 0..=world.rng.below(3) {
        walk.terminals.push(world.play_run()?);
    }
    walk.edges.clone_from(world.checker.edges());
    walk.failures = world.failures;
    Ok(walk)
}

struct World {
    state: State,
    config: Config,
    rng: Rng,
    checker: Checker,
    examine: VecDeque<CallId>,
    asked: Vec<CallId>,
    /// Timers that run, and when they run out.
    timers: Vec<(TimerId, u64)>,
    response: Response,
    /// Events that were delivered, to be delivered again.
    past: Vec<Event>,
    tool_uses: u32,
    now: u64,
    steered: u32,
    /// The next event tells that the current request failed or was refused.
    failed: bool,
    /// How and where requests failed.
    failures: Vec<(FailureClass, FailurePoint)>,
}

/// What ends a run.
enum End {
    Interrupt(Interrupt),
    Failed,
}

/// The answer the model is giving.
#[derive(Debug, Default)]
struct Response {
    started: bool,
    index: u32,
    open: bool,
    calls: bool,
    /// One of its calls has started.
    acted: bool,
}

impl Response {
    /// Where a failure now would be.
    fn failure_points(&self) -> impl Iterator<Item = FailurePoint> + use<> {
        let place = match (self.started, self.open) {
            (false, _) => FailurePoint::BeforeResponse,
            (true, true) => FailurePoint::InsideBlock,
            (true, false) => FailurePoint::BetweenBlocks,
        };
        std::iter::once(place).chain(self.acted.then_some(FailurePoint::AfterCallStarted))
    }
}

impl World {
    fn play_run(&mut self) -> Result<Option<Terminal>, String> {
        self.checker.begin_run();
        self.apply(Event::Submit("do it".into()))?;
        for _ in 0..STEPS_WITH_FAULTS {
            if self.state.terminal().is_some() {
                break;
            }
            if self.rng.one_in(400) {
                self.drop_run();
                return Ok(None);
            }
            let event = self.random_event();
            self.apply_some(event)?;
        }
        for _ in 0..STEPS_TO_FINISH {
            if self.state.terminal().is_some() {
                break;
            }
            let event = self.honest_event();
            self.apply_some(event)?;
        }
        let Some(terminal) = self.state.terminal() else {
            return Err(format!("no end, although faults have stopped: {:?}", self.state.phase()));
        };
        self.check_steered()?;
        self.forget();
        self.state = std::mem::take(&mut self.state).at_rest();
        Ok(Some(terminal))
    }

    /// Nobody polls any more: everything the driver holds is gone, the state is closed as after a crash.
    fn drop_run(&mut self) {
        self.forget();
        self.state = std::mem::take(&mut self.state).at_rest();
    }

    fn forget(&mut self) {
        self.examine.clear();
        self.checker.examining.clear();
        self.checker.asking.clear();
        self.asked.clear();
        self.timers.clear();
        self.checker.running.clear();
        self.checker.request = None;
    }

    fn apply_some(&mut self, event: Option<Event>) -> Result<(), String> {
        event.map_or(Ok(()), |event| self.apply(event))
    }

    fn apply(&mut self, event: Event) -> Result<(), String> {
        self.now += self.rng.below(50);
        if self.past.len() < 64 {
            self.past.push(event.clone());
        }
        let (phase, end) = (self.state.phase(), self.possible_end(&event));
        let input = Input { at_ms: self.now, wall_s: self.now / 1_000, entropy: self.rng.bits(), event };
        let (state, effects) = step(std::mem::take(&mut self.state), input, &self.config);
        self.state = state;
        self.perform(&effects);
        let goes_on = |effect: &Effect| matches!(effect, Effect::Emit(Update::Retrying { .. }));
        let end = end.filter(|_| !effects.iter().any(goes_on));
        self.checker.ending |= end.is_some();
        self.checker.check(&self.state, &effects, &self.config, self.now)?;
        let Some(end) = end else { return Ok(()) };
        if matches!(end, End::Interrupt(_)) && phase == PhaseName::Streaming {
            self.check_spoken(&effects)?;
        }
        let is_spared =
            |kind: CallKind| kind == CallKind::Edit && matches!(end, End::Interrupt(Interrupt::Replace));
        self.checker.check_stopped(is_spared)
    }

    /// Whether nothing more may start after this event, unless it is tried again.
    fn possible_end(&mut self, event: &Event) -> Option<End> {
        let failed = std::mem::take(&mut self.failed);
        match event {
            Event::Interrupt(kind) => {
                let live = [PhaseName::Streaming, PhaseName::Settling, PhaseName::Waiting];
                live.contains(&self.state.phase()).then_some(End::Interrupt(*kind))
            }
            _ => failed.then_some(End::Failed),
        }
    }

    /// What was on the screen when the user interrupted is kept.
    fn check_spoken(&self, effects: &Effects) -> Result<(), String> {
        let kept = |effect: &Effect| matches!(effect, Effect::Emit(Update::Block { aborted: true, .. }));
        if self.checker.spoken.trim().is_empty() || effects.iter().any(kept) {
            Ok(())
        } else {
            Err(format!("{:?} was said and is lost", self.checker.spoken))
        }
    }

    /// Does what the driver would do. The checker keeps what runs.
    fn perform(&mut self, effects: &Effects) {
        for effect in effects {
            match effect {
                Effect::CallModel { .. } => {
                    self.response = Response::default();
                    self.checker.spoken.clear();
                }
                Effect::RunTool { .. } => self.response.acted = true,
                Effect::Examine { call, .. } => self.examine.push_back(*call),
                Effect::StartTimer { timer, after_ms } => self.timers.push((*timer, self.now + after_ms)),
                Effect::Emit(Update::Question(question)) => self.asked.push(question.call),
                _ => (),
            }
        }
    }

    /// Every steered message reached the model or still waits.
    fn check_steered(&self) -> Result<(), String> {
        let steered = self.state.messages().iter().flat_map(|message| &message.blocks);
        let in_transcript =
            steered.filter(|block| block.as_text().is_some_and(|text| text.starts_with("steer"))).count();
        let total = in_transcript + self.state.waiting();
        if total == self.steered as usize {
            Ok(())
        } else {
            Err(format!("{total} of {} steered messages are left", self.steered))
        }
    }

    fn random_event(&mut self) -> Option<Event> {
        match self.rng.below(100) {
            0..=1 => {
                Some(Event::Interrupt(if self.rng.one_in(2) { Interrupt::Stop } else { Interrupt::Replace }))
            }
            2..=4 => {
                self.steered += 1;
                let mut prompt: Prompt = format!("steer {}", self.steered).into();
                if self.rng.one_in(8) {
                    prompt.blocks.insert(0, Block::text(" "));
                }
                Some(Event::Steer(prompt))
            }
            5..=7 => {
                // Late or doubled news. A prompt or a message would be new, not late.
                let old = self.rng.pick(&self.past)?;
                (!matches!(old, Event::Steer(_) | Event::Submit(_) | Event::Interrupt(_))
                    && !self.is_current(&old))
                .then_some(old)
            }
            8..=9 => Some(Event::Timer(TimerId(u32::try_from(self.rng.below(40)).unwrap_or(0))))
                .filter(|event| !self.is_current(event)),
            10..=13 => self.fire_timer(),
            14..=16 => self.answer(),
            17..=21 => self.progress(),
            22..=45 => self.examined(),
            46..=60 => self.finished(),
            61..=63 => self.failed(),
            _ => self.model_event(),
        }
    }

    /// Whether an old event would be news: then it is not a duplicate but a lie about the world.
    fn is_current(&self, event: &Event) -> bool {
        match event {
            Event::Model { request, .. } => self.checker.request == Some(*request),
            Event::Finished { call, .. } | Event::Progress { call, .. } => {
                self.checker.running.contains_key(call)
            }
            Event::Examined { call, .. } => self.examine.contains(call),
            Event::Answered { call, .. } => self.asked.contains(call),
            Event::Timer(timer) => self.timers.iter().any(|(running, _)| running == timer),
            _ => false,
        }
    }

    /// Without faults: everything that is waited for comes, and the model finishes.
    fn honest_event(&mut self) -> Option<Event> {
        if !self.examine.is_empty() {
            return self.examined();
        }
        if !self.asked.is_empty() {
            return self.answer();
        }
        if !self.checker.running.is_empty() {
            return self.finished();
        }
        if let Some(request) = self.checker.request {
            self.checker.request = None;
            let event = ModelEvent::Ended { stop: StopReason::EndTurn, usage: Box::default() };
            return Some(Event::Model { request, event });
        }
        self.fire_timer()
    }

    fn examined(&mut self) -> Option<Event> {
        let call = self.examine.pop_front()?;
        self.checker.examining.remove(&call);
        let admission = match self.rng.below(12) {
            0 => Admission::Unknown,
            1 => Admission::Invalid("bad field".into()),
            _ => {
                let facts = self.random_facts();
                self.checker.facts.insert(call, facts.clone());
                Admission::Ready { tool: "Tool".into(), facts }
            }
        };
        Some(Event::Examined { call, admission })
    }

    fn random_facts(&mut self) -> CallFacts {
        let (kind, shared) = match self.rng.below(6) {
            0 => (CallKind::Edit, false),
            1 => (CallKind::Execute, false),
            2 => (CallKind::Session, false),
            3 => (CallKind::Read, false),
            _ => (CallKind::Read, true),
        };
        let path: std::path::PathBuf = match self.rng.below(16) {
            0..=1 => "/etc/passwd".into(),
            2 => OUTPUT.into(),
            _ => "/project/a".into(),
        };
        CallFacts {
            kind,
            shared,
            paths: vec![PathFact { lexical: path.clone(), resolved: Some(path), is_directory: false }],
            target: String::new(),
        }
    }

    fn answer(&mut self) -> Option<Event> {
        let call = self.asked.pop()?;
        self.checker.asking.remove(&call);
        let answer = match self.rng.below(4) {
            0 => Answer::Deny("no".into()),
            1 => Answer::AllowChanged(raw("{\"changed\":true}")),
            _ => Answer::Allow,
        };
        Some(Event::Answered { call, answer })
    }

    fn progress(&mut self) -> Option<Event> {
        let running: Vec<CallId> = self.checker.running.keys().copied().collect();
        let call = self.rng.pick(&running)?;
        Some(Event::Progress { call, progress: ToolProgress { text: "…".into() } })
    }

    fn finished(&mut self) -> Option<Event> {
        let running: Vec<CallId> = self.checker.running.keys().copied().collect();
        let call = self.rng.pick(&running)?;
        self.checker.running.remove(&call);
        let mut outcome =
            if self.rng.one_in(4) { ToolOutcome::error("failed") } else { ToolOutcome::text("fine") };
        if self.rng.one_in(5) {
            outcome.cwd = Some(format!("/project/{}", self.rng.below(3)).into());
        }
        if self.rng.one_in(4) {
            outcome.seen.push(FileSeen {
                path: "/project/a".into(),
                hash: self.rng.below(3),
                lines: [].into(),
                whole: self.rng.one_in(2),
                shown: Vec::new(),
            });
        }
        if self.rng.one_in(20) {
            outcome.content.insert(0, Block::text(" "));
            outcome.content.push(Block::image("image/png", "AA=="));
        }
        if self.rng.one_in(8) {
            outcome.readable.push(OUTPUT.into());
        }
        self.checker.readable.extend(outcome.readable.iter().cloned());
        if let Some(cwd) = &outcome.cwd {
            self.checker.cwd.clone_from(cwd);
        }
        for seen in &outcome.seen {
            self.checker.on_seen(seen);
        }
        Some(Event::Finished { call, outcome })
    }

    fn fire_timer(&mut self) -> Option<Event> {
        if self.timers.is_empty() {
            return None;
        }
        let (timer, due) = self.timers.remove(0);
        self.now = self.now.max(due);
        Some(Event::Timer(timer))
    }

    fn failed(&mut self) -> Option<Event> {
        let request = self.checker.request.take()?;
        self.failed = true;
        let class = self.rng.pick(FAILURE_CLASSES)?;
        self.failures.extend(self.response.failure_points().map(|point| (class, point)));
        let failure = Failure {
            retry_after_ms: self.rng.pick(&[None, None, Some(1_000), Some(3_600_000)]).flatten(),
            should_retry: self.rng.pick(&[None, None, None, None, Some(true), Some(false)]).flatten(),
            ..Failure::new(class, "it failed")
        };
        Some(Event::Model { request, event: ModelEvent::Failed(Box::new(failure)) })
    }

    fn model_event(&mut self) -> Option<Event> {
        let request = self.checker.request?;
        let event = self.next_of_response();
        if let ModelEvent::Ended { stop, .. } = &event {
            self.checker.request = None;
            self.failed = *stop == StopReason::Refusal;
        }
        Some(Event::Model { request, event })
    }

    fn next_of_response(&mut self) -> ModelEvent {
        if !self.response.started {
            self.response.started = true;
            let input_tokens = if self.rng.one_in(200) { u64::MAX } else { 10 };
            let usage = Box::new(Usage { input_tokens, ..Usage::default() });
            return ModelEvent::Started { message_id: "msg".into(), model: "sim".into(), usage };
        }
        let index = self.response.index;
        if !self.response.open && self.rng.below(3) > 0 {
            self.response.open = true;
            return ModelEvent::Delta {
                index,
                delta: Delta::Start(raw("{\"type\":\"text\",\"text\":\"\"}")),
            };
        }
        if self.response.open && self.rng.one_in(2) {
            let piece = if self.rng.one_in(4) { " " } else { "piece " };
            self.checker.spoken.push_str(piece);
            return ModelEvent::Delta { index, delta: Delta::Text(piece.into()) };
        }
        if self.response.open {
            self.response.open = false;
            self.response.index += 1;
            self.checker.spoken.clear();
            return ModelEvent::Block { index, block: self.random_block() };
        }
        let stop = match self.rng.below(12) {
            0 => StopReason::Refusal,
            1 => StopReason::MaxTokens,
            2 => StopReason::PauseTurn,
            3 => StopReason::Other("new".into()),
            _ if self.response.calls => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        ModelEvent::Ended { stop, usage: Box::new(Usage { output_tokens: 5, ..Usage::default() }) }
    }

    fn random_block(&mut self) -> Block {
        match self.rng.below(10) {
            0 => Block::from_json("{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"}"),
            1 => Block::from_json("{\"type\":\"redacted_thinking\",\"data\":\"x\"}"),
            2 => Block::from_json("{\"type\":\"news\",\"field\":[1]}"),
            3..=4 => Ok(Block::text("words")),
            5 if self.rng.one_in(10) => Ok(Block::text("  ")),
            other => {
                self.response.calls = true;
                // A model that uses an id twice is rare, but it happens.
                self.tool_uses += u32::from(!self.rng.one_in(200) || self.tool_uses == 0);
                let id = if self.rng.one_in(100) { "strange id:" } else { "toolu_" };
                let input = match other {
                    8 if self.rng.one_in(4) => "{}",
                    9 if self.rng.one_in(4) => "{\"unparsed\":\"{\\\"a\"}",
                    _ => "{\"a\":1}",
                };
                Ok(Block::tool_use(&format!("{id}{}", self.tool_uses), "Tool", &raw(input)))
            }
        }
        .unwrap_or_else(|_| Block::text("unreachable: the JSON above is fixed"))
    }
}

fn random_config(rng: &mut Rng) -> Config {
    let mut config = Config { roots: ["/project".into()].into(), ..Config::default() };
    config.turns_max = rng.one_in(3).then(|| 1 + u32::try_from(rng.below(4)).unwrap_or(0));
    config.shared_calls_max = 1 + usize::try_from(rng.below(4)).unwrap_or(0);
    config.partial_messages = rng.one_in(2);
    config.output.explicit = Some(if rng.one_in(2) { 8_000 } else { 64_000 });
    let early = [EarlyStart::All, EarlyStart::All, EarlyStart::ReadOnly, EarlyStart::Off];
    config.early_start = rng.pick(&early).unwrap_or_default();
    let modes = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
        PermissionMode::BypassPermissions,
    ];
    config.permissions.mode = rng.pick(&modes).unwrap_or_default();
    config.permissions.asking = if rng.one_in(2) { Asking::Person } else { Asking::Nobody };
    config.retry.retries_max = u32::try_from(rng.below(4)).unwrap_or(0);
    config.retry.stalls_max = u32::try_from(rng.below(2)).unwrap_or(0);
    config
}

fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.into()).unwrap_or_default().into()
}
