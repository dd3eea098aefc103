//! The model's side: it answers, thinks, calls tools, stops for every reason, and counts tokens truthfully.

use std::sync::Arc;

use windlass_core::Config;
use windlass_protocol::{
    Block, Culprit, Delta, Failure, FailureClass, ModelEvent, ModelNote, ModelRequest, Overflow, StopReason,
    ToolInput, ToolUse, Usage,
};

use crate::failures::{FAILURE_CLASSES, FailurePoint};
use crate::rng::Rng;
use crate::scene::{self, TOOLS, raw};
use crate::thinking::{card_of, is_thinking_on};

/// A model that answers one request after the other.
#[derive(Debug, Default)]
pub(crate) struct ModelServer {
    pub(crate) response: Response,
    tool_uses: u32,
    thoughts: u32,
    faults: u32,
    /// Everything the last request had, to be read from the cache.
    cached: u64,
    /// As if every conversation were this many times longer: what it counts is far more than anybody would estimate.
    pub(crate) inflation: u64,
    /// Answers of the same kind come again and again.
    habit: Option<AnswerHabit>,
    /// A call that nobody knows the outcome of: the model makes it again.
    pub(crate) tries_again: Option<ToolUse>,
    /// Tells its thinking from that of others.
    name: &'static str,
}

/// What a model does whenever it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerHabit {
    Cut,
    Pause,
    SameCall,
}

/// The answer the model is giving.
#[derive(Debug, Default)]
pub(crate) struct Response {
    body: Option<Arc<ModelRequest>>,
    has_started: bool,
    index: u32,
    is_open: bool,
    has_calls: bool,
    /// Blocks that are still to come.
    left: u32,
    /// One of its calls has started.
    pub(crate) has_acted: bool,
    usage: Usage,
}

impl Response {
    /// Where a failure now would be.
    pub(crate) fn failure_points(&self) -> impl Iterator<Item = FailurePoint> + use<> {
        let place = match (self.has_started, self.is_open) {
            (false, _) => FailurePoint::BeforeResponse,
            (true, true) => FailurePoint::InsideBlock,
            (true, false) => FailurePoint::BetweenBlocks,
        };
        std::iter::once(place).chain(self.has_acted.then_some(FailurePoint::AfterCallStarted))
    }
}

impl ModelServer {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let habit = match rng.below(24) {
            0 => Some(AnswerHabit::Cut),
            1 => Some(AnswerHabit::Pause),
            2 => Some(AnswerHabit::SameCall),
            _ => None,
        };
        let inflation = if rng.one_in(12) { 3 + rng.below(20) } else { 1 };
        Self { habit, inflation, name: "s", ..Self::default() }
    }

    /// The model that answers a fork.
    pub(crate) fn of_fork(inflation: u64) -> Self {
        Self { inflation, name: "f", ..Self::default() }
    }

    /// Whether it makes the same call again and again.
    pub(crate) fn repeats_itself(&self) -> bool {
        self.habit == Some(AnswerHabit::SameCall)
    }

    /// A request came.
    pub(crate) fn on_request(&mut self, body: &Arc<ModelRequest>, rng: &mut Rng) {
        let left = 1 + rng.small(4);
        self.response = Response { body: Some(body.clone()), left, ..Response::default() };
    }

    /// The tokens of a request as the server counts them: less than the estimate, which errs high.
    fn tokens(&self, body: &ModelRequest) -> u64 {
        let estimated: u64 = body.transcript.iter().map(|message| u64::from(message.tokens())).sum();
        (estimated * 4 / 5 + 50) * self.inflation.max(1)
    }

    /// The refusal of a request that is too long: that much is true whatever else happens.
    pub(crate) fn refusal(&mut self, config: &Config) -> Option<Failure> {
        if self.response.has_started {
            return None;
        }
        let body = self.response.body.clone()?;
        let (needed, limit) = (self.tokens(&body), card_of(&body.model, config).window_tokens);
        (needed > limit).then(|| Failure {
            overflow: Some(Overflow { needed, limit }),
            ..self.fault(FailureClass::Overflow)
        })
    }

    /// A failure whose words no other one has.
    fn fault(&mut self, class: FailureClass) -> Failure {
        self.faults += 1;
        Failure::new(class, format!("<fault {}{} {class:?}>", self.name, self.faults))
    }

    /// A failure of any kind, whatever the request says.
    pub(crate) fn random_failure(&mut self, rng: &mut Rng) -> Failure {
        let class = match rng.below(8) {
            0 => FailureClass::Overflow,
            1 => FailureClass::Media,
            2 => FailureClass::Binding,
            3 => FailureClass::Overloaded,
            _ => rng.pick(FAILURE_CLASSES).unwrap_or(FailureClass::Server),
        };
        let needed = 1_000 + rng.below(50_000);
        let is_kept = matches!(class, FailureClass::Overflow | FailureClass::Media | FailureClass::Binding);
        Failure {
            retry_after_ms: rng.pick(&[None, None, Some(1_000), Some(3_600_000)]).flatten(),
            should_retry: rng
                .pick(&[None, None, None, None, Some(true), Some(false)])
                .flatten()
                .filter(|_| !is_kept),
            overflow: rng.one_in(2).then_some(Overflow { needed, limit: needed / 2 }).filter(|_| is_kept),
            culprit: rng.one_in(2).then(|| self.culprit(rng)).flatten(),
            resets_at: rng.one_in(8).then(|| rng.below(10_000)),
            ..self.fault(class)
        }
    }

    /// Some block of the request, as the provider counts.
    fn culprit(&self, rng: &mut Rng) -> Option<Culprit> {
        let messages = self.response.body.as_ref()?.transcript.len();
        let pick = |rng: &mut Rng, below: usize| usize::try_from(rng.below(below.max(1) as u64)).unwrap_or(0);
        Some(Culprit { message: pick(rng, messages), block: (!rng.one_in(3)).then(|| pick(rng, 4)) })
    }

    /// What comes next of the response.
    pub(crate) fn next(&mut self, rng: &mut Rng, config: &Config, spoken: &mut String) -> ModelEvent {
        if !self.response.has_started {
            return self.start(rng);
        }
        let index = self.response.index;
        if self.response.is_open && rng.one_in(2) {
            let piece = if rng.one_in(4) { " " } else { "piece " };
            spoken.push_str(piece);
            return ModelEvent::Delta { index, delta: Delta::Text(piece.into()) };
        }
        if !self.response.is_open && self.response.left > 0 && rng.one_in(4) {
            self.response.is_open = true;
            return ModelEvent::Delta {
                index,
                delta: Delta::Start(raw("{\"type\":\"text\",\"text\":\"\"}")),
            };
        }
        if rng.one_in(60) {
            return ModelEvent::Note(random_note(rng));
        }
        if self.response.is_open || self.response.left > 0 {
            return self.block(rng, config, spoken);
        }
        let stop = self.random_stop(rng);
        self.end(rng, stop)
    }

    /// What comes next of the response of a model that means well: a text, and the end.
    pub(crate) fn next_honest(&mut self, rng: &mut Rng, spoken: &mut String) -> ModelEvent {
        if !self.response.has_started {
            self.response.left = 1;
            return self.start(rng);
        }
        if self.response.is_open || self.response.left > 0 {
            self.response.left = 0;
            let index = self.close_block(spoken);
            return ModelEvent::Block { index, block: Block::text("{\"n\":1}") };
        }
        self.end(rng, if self.response.has_calls { StopReason::ToolUse } else { StopReason::EndTurn })
    }

    fn start(&mut self, rng: &mut Rng) -> ModelEvent {
        self.response.has_started = true;
        let total = self.response.body.as_ref().map_or(0, |body| self.tokens(body));
        let read = if rng.one_in(6) { 0 } else { self.cached.min(total) };
        let written = (total - read) / 2;
        let input_tokens = if rng.one_in(4_000) { u64::MAX } else { total - read - written };
        let usage = Usage {
            input_tokens,
            cache_read_input_tokens: read,
            cache_creation_input_tokens: written,
            ..Usage::default()
        };
        self.cached = total;
        self.response.usage = usage.clone();
        let asked = self.response.body.as_ref().map_or_else(|| "sim-a".into(), |body| body.model.clone());
        let model = if rng.one_in(30) { format!("{asked}-2026").into() } else { asked };
        ModelEvent::Started { message_id: "msg".into(), model, usage: Box::new(usage) }
    }

    fn end(&mut self, rng: &mut Rng, stop: StopReason) -> ModelEvent {
        let output_tokens = if rng.one_in(3) { 5 } else { 100 + rng.below(600) };
        let usage = Usage { output_tokens, ..self.response.usage.clone() };
        ModelEvent::Ended { stop, usage: Box::new(usage) }
    }

    fn random_stop(&self, rng: &mut Rng) -> StopReason {
        let is_usual = rng.below(8) > 0;
        match (self.habit.filter(|_| is_usual), rng.below(40)) {
            (Some(AnswerHabit::Cut), _) | (_, 1..=3) => StopReason::MaxTokens,
            (Some(AnswerHabit::Pause), _) | (_, 4) => StopReason::PauseTurn,
            (_, 0) => StopReason::Refusal,
            (_, 5 | 6) => StopReason::Other("new".into()),
            (_, 7) => StopReason::ContextWindowExceeded,
            (_, 8) => StopReason::StopSequence,
            _ if self.response.has_calls => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        }
    }

    fn close_block(&mut self, spoken: &mut String) -> u32 {
        let index = self.response.index;
        self.response.index += 1;
        self.response.is_open = false;
        self.response.left = self.response.left.saturating_sub(1);
        spoken.clear();
        index
    }

    fn block(&mut self, rng: &mut Rng, config: &Config, spoken: &mut String) -> ModelEvent {
        let index = self.close_block(spoken);
        let is_thinking = self
            .response
            .body
            .as_ref()
            .is_some_and(|body| is_thinking_on(body.thinking, card_of(&body.model, config)));
        let block = match rng.below(16) {
            0..=2 if is_thinking => self.think(rng),
            3 => Block::from_json("{\"type\":\"news\",\"field\":[1]}").ok(),
            4 => rng.one_in(4).then(|| Block::text("  ")),
            5..=7 => Some(Block::text(scene::long_text(rng))),
            8 => Some(Block::text(&format!("{{\"n\":{}}}", rng.below(120)))),
            _ => Some(self.tool_use(rng)),
        };
        ModelEvent::Block { index, block: block.unwrap_or_else(|| Block::text("words")) }
    }

    fn think(&mut self, rng: &mut Rng) -> Option<Block> {
        self.thoughts += 1;
        let n = format!("{}{}", self.name, self.thoughts);
        if rng.one_in(4) {
            return Block::from_json(&format!("{{\"type\":\"redacted_thinking\",\"data\":\"{n}\"}}")).ok();
        }
        scene::thinking(&n)
    }

    fn tool_use(&mut self, rng: &mut Rng) -> Block {
        self.response.has_calls = true;
        // A model that uses an id twice is rare, but it happens.
        self.tool_uses += u32::from(!rng.one_in(200) || self.tool_uses == 0);
        let id = if rng.one_in(100) { "strange id:" } else { "toolu_" };
        let id = format!("{id}{}", self.tool_uses);
        if self.repeats_itself() {
            return Block::tool_use(&id, "Bash", raw("{\"command\":\"same\"}"));
        }
        if let Some(again) = self.tries_again.take() {
            return Block::tool_use(&id, &again.name, again.input);
        }
        let name = rng.pick(&TOOLS).unwrap_or("Read");
        let input = match rng.below(24) {
            0 => "{}".to_owned(),
            1 => return Block::tool_use(&id, name, ToolInput::Unparsed("{\"a".into())),
            2..=4 => "{\"a\":1}".to_owned(),
            5..=12 => format!("{{\"file_path\":\"/project/{}\"}}", rng.below(3)),
            _ => format!("{{\"a\":{}}}", self.tool_uses),
        };
        Block::tool_use(&id, name, raw(&input))
    }
}

fn random_note(rng: &mut Rng) -> ModelNote {
    match rng.below(3) {
        0 => ModelNote::Cleared { tool_results: 2, thinking_turns: 0, tokens: rng.below(5_000) },
        1 => ModelNote::ThinkingDropped { blocks: 1, reason: "it is old".into() },
        _ => ModelNote::Refusal { category: None, explanation: Some("no".into()) },
    }
}
