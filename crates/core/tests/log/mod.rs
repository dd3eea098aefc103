//! A scenario is a list of events; playing it gives a log with one line per event and its effects.
//!
//! A call is written `tool argument`: `read` is shared and reads inside the project, `peek` reads outside, `write` is
//! exclusive and changes something, `broken` has a bad input, every other name is unknown. Examination is answered at once.

#![expect(clippy::expect_used, reason = "a test may stop at the first surprise")]

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

use windlass_core::{
    Asking, Config, EarlyStart, Effect, Event, Input, Interrupt, PermissionMode, PhaseName, State, step,
};
use windlass_protocol::{
    Admission, Answer, Block, BlockKind, CallFacts, CallId, CallKind, Delta, Failure, FailureClass, Message,
    ModelEvent, ModelRequest, PathFact, RawValue, RequestId, StopReason, TimerId, ToolOutcome, ToolUse,
    Transcript, Transition, Update,
};

/// Plays the scenario and compares its log.
#[track_caller]
pub(crate) fn check(scenario: Scenario, expected: &str) {
    let tidy = |text: &str| {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    let (seen, expected) = (tidy(&scenario.play().log), tidy(expected));
    assert_eq!(seen, expected, "\n--- seen ---\n{seen}\n--- expected ---\n{expected}\n");
}

/// Plays the scenario and compares why its last iteration began.
#[track_caller]
pub(crate) fn check_transition(scenario: Scenario, expected: Option<Transition>) {
    let player = scenario.play();
    assert_eq!(player.state.transition(), expected, "\n{}", player.log);
}

pub(crate) struct Scenario {
    config: Config,
    events: Vec<(String, Told)>,
}

/// An event whose request id is filled in when it is played.
enum Told {
    Model(ModelEvent),
    Other(Event),
}

impl Scenario {
    pub(crate) fn new() -> Self {
        Self { config: Config { roots: ["/project".into()].into(), ..Config::default() }, events: Vec::new() }
    }

    pub(crate) fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.config.permissions.mode = mode;
        self
    }

    pub(crate) fn asking(mut self, asking: Asking) -> Self {
        self.config.permissions.asking = asking;
        self
    }

    pub(crate) fn early_start(mut self, which: EarlyStart) -> Self {
        self.config.early_start = which;
        self
    }

    pub(crate) fn turns_max(mut self, limit: u32) -> Self {
        self.config.turns_max = Some(limit);
        self
    }

    pub(crate) fn retries_max(mut self, limit: u32) -> Self {
        self.config.retry.retries_max = limit;
        self
    }

    pub(crate) fn submit(self, text: &str) -> Self {
        self.other(format!("> submit {text}"), Event::Submit(text.into()))
    }

    pub(crate) fn steer(self, text: &str) -> Self {
        self.other(format!("> steer {text}"), Event::Steer(text.into()))
    }

    pub(crate) fn interrupt(self, kind: Interrupt) -> Self {
        self.other("> interrupt".into(), Event::Interrupt(kind))
    }

    pub(crate) fn finished(self, call: u32, text: &str) -> Self {
        let event = Event::Finished { call: CallId(call), outcome: ToolOutcome::text(text) };
        self.other(format!("> c{call} finished {text}"), event)
    }

    pub(crate) fn failed_call(self, call: u32, text: &str) -> Self {
        let event = Event::Finished { call: CallId(call), outcome: ToolOutcome::error(text) };
        self.other(format!("> c{call} failed {text}"), event)
    }

    pub(crate) fn timer(self, timer: u32) -> Self {
        self.other(format!("> timer t{timer}"), Event::Timer(TimerId(timer)))
    }

    pub(crate) fn answer(self, call: u32, answer: Answer) -> Self {
        self.other(format!("> answer c{call}"), Event::Answered { call: CallId(call), answer })
    }

    pub(crate) fn answer_changed(self, call: u32, words: &str) -> Self {
        let answer = Answer::AllowChanged(tool_use(words).input);
        self.answer(call, answer)
    }

    pub(crate) fn started(self) -> Self {
        let event =
            ModelEvent::Started { message_id: "m".into(), model: "model".into(), usage: Box::default() };
        self.model("< started".into(), event)
    }

    pub(crate) fn delta(self, text: &str) -> Self {
        self.model(format!("< delta {text}"), ModelEvent::Delta { index: 9, delta: Delta::Text(text.into()) })
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.model(format!("< text {text}"), ModelEvent::Block { index: 0, block: Block::text(text) })
    }

    pub(crate) fn call(self, words: &str) -> Self {
        let ToolUse { name, input, .. } = tool_use(words);
        let id = format!("toolu_{}", self.events.len());
        let block = Block::tool_use(&id, &name, &input);
        self.model(format!("< call {words}"), ModelEvent::Block { index: 0, block })
    }

    pub(crate) fn empty_call(self) -> Self {
        let block = Block::tool_use("toolu_empty", "read", &raw("{}"));
        self.model("< empty call".into(), ModelEvent::Block { index: 0, block })
    }

    pub(crate) fn truncated_call(self) -> Self {
        let block = Block::tool_use("toolu_cut", "write", &raw(r#"{"unparsed":"{\"content\":\"ab"}"#));
        self.model("< truncated call".into(), ModelEvent::Block { index: 0, block })
    }

    pub(crate) fn ended(self, stop: StopReason) -> Self {
        self.model(format!("< end {}", stop.name()), ModelEvent::Ended { stop, usage: Box::default() })
    }

    pub(crate) fn fails(self, class: FailureClass) -> Self {
        let failure = Failure {
            class,
            message: "it failed".into(),
            status: None,
            retry_after_ms: None,
            should_retry: None,
            request_id: None,
        };
        self.model(format!("< fails {class:?}"), ModelEvent::Failed(Box::new(failure)))
    }

    fn model(mut self, line: String, event: ModelEvent) -> Self {
        self.events.push((line, Told::Model(event)));
        self
    }

    fn other(mut self, line: String, event: Event) -> Self {
        self.events.push((line, Told::Other(event)));
        self
    }

    fn play(self) -> Player {
        let state = State::new("/project".into(), Transcript::default());
        let mut player = Player {
            config: self.config,
            state,
            at_ms: 0,
            body: None,
            request: 0,
            inputs: BTreeMap::new(),
            log: String::new(),
        };
        for (line, told) in self.events {
            let event = match told {
                Told::Other(Event::Submit(prompt)) => {
                    player.state = std::mem::take(&mut player.state).at_rest();
                    Event::Submit(prompt)
                }
                Told::Other(event) => event,
                Told::Model(event) => Event::Model { request: RequestId(player.request), event },
            };
            player.tell(line, event);
        }
        player
    }
}

struct Player {
    config: Config,
    state: State,
    at_ms: u64,
    body: Option<Arc<ModelRequest>>,
    request: u32,
    /// What the model asked for, by call.
    inputs: BTreeMap<CallId, Arc<RawValue>>,
    log: String,
}

impl Player {
    fn tell(&mut self, line: String, event: Event) {
        let mut pending = VecDeque::from([(line, event)]);
        while let Some((line, event)) = pending.pop_front() {
            let input = Input::at(self.at_ms, event);
            self.at_ms += 100;
            let (state, effects) = step(std::mem::take(&mut self.state), input, &self.config);
            self.state = state;
            let mut words = Vec::new();
            let mut edges: VecDeque<PhaseName> = effects.edges().iter().map(|(_, to)| *to).collect();
            for effect in effects {
                if let Effect::Examine { call, tool_use, .. } = &effect {
                    self.inputs.entry(*call).or_insert_with(|| tool_use.input.clone());
                    pending.push_back(examination(*call, tool_use));
                }
                self.note(effect, &mut edges, &mut words);
            }
            words.extend(phases(edges.make_contiguous()));
            let _ = writeln!(self.log, "{line:28} {}", words.join(" | "));
        }
    }

    /// One effect in words. Phases are put where their first visible effect is.
    fn note(&mut self, effect: Effect, edges: &mut VecDeque<PhaseName>, words: &mut Vec<String>) {
        let up_to = |edges: &mut VecDeque<PhaseName>, last: &[PhaseName]| -> Option<String> {
            let place = edges.iter().position(|phase| last.contains(phase))?;
            phases(&edges.drain(..=place).collect::<Vec<_>>())
        };
        match effect {
            Effect::Emit(Update::Done(outcome)) => {
                words.extend(up_to(edges, &[PhaseName::Done]));
                let errors = if outcome.failure.is_some() {
                    format!(": {}", outcome.errors.join("; "))
                } else {
                    String::new()
                };
                words.push(format!("= {} after {}{errors}", outcome.terminal.name(), outcome.iterations));
            }
            Effect::Emit(Update::UserText { blocks, synthetic: true, .. }) => {
                words.extend(up_to(edges, &[PhaseName::Done]));
                words.push(format!("note {}", texts(&blocks)));
            }
            Effect::Emit(update) => words.extend(update_words(&update)),
            Effect::CallModel { request, body } => {
                words.extend(up_to(edges, &[PhaseName::Streaming]));
                let same = self.body.as_ref().is_some_and(|before| Arc::ptr_eq(before, &body));
                let shape: Vec<String> = shape(&body.transcript);
                let again = if same { " same" } else { "" };
                words.push(format!("call-model #{} [{}]{again}", request.0, shape.join(" ")));
                (self.request, self.body) = (request.0, Some(body));
            }
            Effect::CancelModel(request) => words.push(format!("cancel-model #{}", request.0)),
            Effect::Examine { call, .. } => {
                words.extend(up_to(edges, &[PhaseName::Settling]));
                words.push(format!("examine c{}", call.0));
            }
            Effect::RunTool { call, tool_use, .. } => {
                words.extend(up_to(edges, &[PhaseName::Settling]));
                let asked = self.inputs.get(&call).is_some_and(|input| input.get() == tool_use.input.get());
                let changed = if asked { String::new() } else { format!(" with {}", phrase(&tool_use)) };
                words.push(format!("run c{}{changed}", call.0));
            }
            Effect::CancelTool(call) => words.push(format!("cancel c{}", call.0)),
            Effect::AbandonTool(call) => words.push(format!("abandon c{}", call.0)),
            Effect::StartTimer { timer, after_ms } => {
                words.extend(
                    up_to(edges, &[PhaseName::Waiting]).or_else(|| up_to(edges, &[PhaseName::Settling])),
                );
                words.push(format!("timer t{} {after_ms}", timer.0));
            }
        }
    }
}

fn update_words(update: &Update) -> Option<String> {
    Some(match update {
        Update::ToolResult { call, result, .. } => {
            let error = matches!(result.kind(), BlockKind::ToolResult { is_error: true, .. });
            format!("result c{}{}", call.0, if error { " error" } else { "" })
        }
        Update::Block { block, aborted: true, .. } => format!("aborted text {}", block.as_text()?),
        Update::UserText { blocks, .. } => format!("said {}", texts(blocks)),
        Update::Question(question) => format!("ask c{}", question.call.0),
        Update::Denied(denial) => format!("denied c{}", denial.call.0),
        Update::Retracted { messages, .. } => format!("retract {}", messages.len()),
        Update::Retrying { attempt, retries_max, delay_ms, .. } => {
            format!("retry {attempt} of {retries_max} in {delay_ms}")
        }
        Update::Repaired(repairs) => format!("repaired {repairs:?}"),
        _ => return None,
    })
}

fn phases(list: &[PhaseName]) -> Option<String> {
    let names: Vec<String> = list.iter().map(|phase| format!("{phase:?}").to_lowercase()).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// One word per message, with the shape of its blocks.
fn shape(messages: &Transcript) -> Vec<String> {
    messages.iter().map(|message| message_shape(message)).collect()
}

fn message_shape(message: &Message) -> String {
    let block = |block: &Block| match block.kind() {
        BlockKind::ToolUse(tool_use) => tool_use.name.to_string(),
        BlockKind::ToolResult { is_error: true, .. } => "result!".into(),
        BlockKind::ToolResult { .. } => "result".into(),
        _ => "text".into(),
    };
    match message.role {
        windlass_protocol::Role::Assistant => {
            format!("assistant({})", message.blocks.iter().map(block).collect::<Vec<_>>().join(","))
        }
        windlass_protocol::Role::User if message.blocks.iter().any(|b| block(b).starts_with("result")) => {
            let words = message.blocks.iter().map(|b| b.as_text().map_or_else(|| block(b), str::to_owned));
            format!("user({})", words.collect::<Vec<_>>().join(","))
        }
        windlass_protocol::Role::User if message.blocks.len() > 1 => {
            format!("user({})", texts(&message.blocks))
        }
        windlass_protocol::Role::User => "user".into(),
    }
}

fn texts(blocks: &[Block]) -> String {
    blocks.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("/")
}

/// `tool argument` as a tool use with the whole phrase in its input.
fn tool_use(words: &str) -> ToolUse {
    let name = words.split(' ').next().unwrap_or(words);
    ToolUse { id: "toolu".into(), name: name.into(), input: raw(&format!("{{\"words\":\"{words}\"}}")) }
}

/// The phrase in the input of a tool use.
fn phrase(tool_use: &ToolUse) -> String {
    let input: serde_json::Value = serde_json::from_str(tool_use.input.get()).expect("inputs here are JSON");
    input["words"].as_str().unwrap_or("").to_owned()
}

fn examination(call: CallId, tool_use: &ToolUse) -> (String, Event) {
    let words = phrase(tool_use);
    let path = if words.contains("/etc") { "/etc/a" } else { "/project/a" };
    let (kind, shared) =
        if words.starts_with("write") { (CallKind::Edit, false) } else { (CallKind::Read, true) };
    let facts = CallFacts {
        kind,
        shared,
        paths: vec![PathFact { lexical: path.into(), resolved: Some(path.into()), is_directory: false }],
        target: words.clone(),
    };
    let (answer, admission) = match &*tool_use.name {
        "read" | "peek" | "write" => (words, Admission::Ready { tool: tool_use.name.clone(), facts }),
        "broken" => ("invalid".into(), Admission::Invalid("`words` is wrong".into())),
        _ => ("unknown".into(), Admission::Unknown),
    };
    (format!("> c{} is {answer}", call.0), Event::Examined { call, admission })
}

fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.into()).expect("JSON").into()
}
