//! A scenario is a list of events; playing it gives a log with one line per event and its effects.
//!
//! A call is written `tool argument`: `read` is shared and reads inside the project, `peek` reads outside, `write` is
//! exclusive and changes something, `broken` has a bad input, every other name is unknown. Examination is answered at once.
//! What the core puts into the log is kept, and a session can be cut off and recalled from it.

#![expect(clippy::expect_used, reason = "a test may stop at the first surprise")]

mod values;
mod words;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use windlass_core::{
    Config, EarlyStart, Effect, Event, Input, Interrupt, PhaseName, Prompt, Recall, State, step,
};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{
    AmbientChanges, Answer, Block, CallId, Delta, Failure, FailureClass, ForkId, HookAnswer, HookId, LookId,
    MemoryNote, Message, ModelEvent, ModelNote, ModelRequest, Outcome, PermissionChange, PermissionUpdate,
    RawValue, Record, RequestId, SettingsDestination, StopReason, Terminal, TimerId, ToolInput, ToolOutput,
    ToolUse, Transcript, Transition, Update, Usage,
};

use values::{Told, costing, examination, outcome, raw, tool_use};
use words::{
    hook_words, phases, phrase, plain_words, record_words, result_text, said, shape, texts, untagged,
    update_words,
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

/// Plays the scenario; what the engine told the model on its own.
pub(crate) fn notes(scenario: Scenario) -> Vec<String> {
    let log = scenario.play().log;
    log.split(['|', '\n']).filter_map(|word| Some(word.split_once(" note ")?.1.trim().to_owned())).collect()
}

/// Plays the scenario; what hooks were asked.
pub(crate) fn asked(scenario: Scenario) -> Vec<String> {
    let log = scenario.play().log;
    let words = log.split(['|', '\n']).map(|word| word.rsplit("   ").next().unwrap_or_default().trim());
    let asked = words.filter_map(|word| word.strip_prefix("ask h")?.split_once(' '));
    asked.map(|(_, about)| about.to_owned()).collect()
}

/// Plays the scenario, in which an event comes every 100 ms; how long each call took, in the order in which they ended.
pub(crate) fn durations(scenario: Scenario) -> Vec<String> {
    scenario.play().durations
}

/// Plays the scenario; the requests it sent.
pub(crate) fn requests(scenario: Scenario) -> Vec<Arc<ModelRequest>> {
    scenario.play().requests
}

/// Plays the scenario; why it went round and how it ended. Turns are left out.
pub(crate) fn course(scenario: Scenario) -> String {
    scenario.play().course.join(" ")
}

/// Plays the scenario; what the model would see of it next.
pub(crate) fn transcript(scenario: Scenario) -> Vec<String> {
    shape(scenario.play().state.messages())
}

/// Plays the scenario; what it put into its log.
pub(crate) fn records(scenario: Scenario) -> Vec<Record> {
    scenario.play().records
}

/// Plays the scenario; the session that it leaves.
pub(crate) fn state(scenario: Scenario) -> State {
    scenario.play().state.close_run()
}

/// A session recalled from these records.
pub(crate) fn recall(records: impl IntoIterator<Item = Record>) -> windlass_core::RecalledSession {
    let mut recall = Recall::new("/project".into());
    for record in records {
        recall.take(record);
    }
    recall.finish()
}

/// The input of a call that is written `tool argument`.
pub(crate) fn input(words: &str) -> Arc<RawValue> {
    tool_use(words).input.json()
}

pub(crate) struct Scenario {
    config: Config,
    /// Whether the log shows what results, denials and questions say.
    wordy: bool,
    /// Whether the log shows what is put into the session's log.
    shows_records: bool,
    /// What a request is shown with, besides the shape of its transcript.
    request_words: Option<fn(&ModelRequest) -> String>,
    /// What the end is shown with.
    outcome_words: Option<fn(&Outcome) -> String>,
    /// The conversation it begins with.
    history: Transcript,
    wall_s: u64,
    events: Vec<(String, Told)>,
}

impl Scenario {
    pub(crate) fn new() -> Self {
        let config = Config { roots: ["/project".into()].into(), ..Config::default() };
        Self {
            config,
            wordy: false,
            shows_records: false,
            request_words: None,
            outcome_words: None,
            history: Transcript::default(),
            wall_s: 0,
            events: Vec::new(),
        }
    }

    /// With another configuration.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// The log shows what results, denials and questions say.
    pub(crate) fn wordy(mut self) -> Self {
        self.wordy = true;
        self
    }

    /// The log shows what is put into the session's log; `!` says that it must be on the disk.
    pub(crate) fn showing_records(mut self) -> Self {
        self.shows_records = true;
        self
    }

    /// The process ends, and another recalls the session from its log.
    pub(crate) fn cut_off(self) -> Self {
        self.cut_off_without(0)
    }

    /// The same, but the last records did not make it into the log.
    pub(crate) fn cut_off_without(mut self, records: usize) -> Self {
        self.events.push(("> cut off".into(), Told::CutOff(records)));
        self
    }

    /// The run goes on where another was left.
    pub(crate) fn go_on(self) -> Self {
        self.other("> go on".into(), Event::GoOn { start: None })
    }

    /// The log fails before these calls could start.
    pub(crate) fn store_fails_before(self, calls: &[u32]) -> Self {
        let unstarted = calls.iter().copied().map(CallId).collect();
        let event = Event::StoreFailed { why: "the disk is full".into(), unstarted };
        self.other(format!("> log fails before {calls:?}"), event)
    }

    /// The log shows this of each request.
    pub(crate) fn showing_requests(mut self, words: fn(&ModelRequest) -> String) -> Self {
        self.request_words = Some(words);
        self
    }

    /// The log shows this of the end.
    pub(crate) fn showing_outcome(mut self, words: fn(&Outcome) -> String) -> Self {
        self.outcome_words = Some(words);
        self
    }

    /// Begins with a conversation.
    pub(crate) fn resumed(mut self, messages: Vec<Message>) -> Self {
        self.history = messages.into_iter().map(Arc::new).collect();
        self
    }

    /// So many seconds after 1970.
    pub(crate) fn wall_s(mut self, seconds: u64) -> Self {
        self.wall_s = seconds;
        self
    }

    pub(crate) fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.config.permissions.mode = mode;
        self
    }

    pub(crate) fn asking(mut self, asking: Answerer) -> Self {
        self.config.permissions.asking = asking;
        self
    }

    pub(crate) fn early_start(mut self, which: EarlyStart) -> Self {
        self.config.early_start = which;
        self
    }

    /// A cap that the user set, so that it is not raised.
    pub(crate) fn output_cap(mut self, tokens: u32) -> Self {
        self.config.output.explicit = Some(tokens);
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

    pub(crate) fn submit_prompt(self, words: &str, prompt: Prompt) -> Self {
        self.other(format!("> submit {words}"), Event::Submit(prompt))
    }

    pub(crate) fn compact(self, focus: &str) -> Self {
        self.other(format!("> compact {focus}"), Event::Compact { focus: focus.into() })
    }

    pub(crate) fn store_fails(self) -> Self {
        self.other(
            "> log fails".into(),
            Event::StoreFailed { why: "the disk is full".into(), unstarted: Vec::new() },
        )
    }

    pub(crate) fn steer(self, text: &str) -> Self {
        self.other(format!("> steer {text}"), Event::Steer(text.into()))
    }

    pub(crate) fn steer_prompt(self, words: &str, prompt: Prompt) -> Self {
        self.other(format!("> steer {words}"), Event::Steer(prompt))
    }

    pub(crate) fn take_back(self, id: &str) -> Self {
        self.other(format!("> take back {id}"), Event::TakeBack(id.into()))
    }

    pub(crate) fn interrupt(self, kind: Interrupt) -> Self {
        self.other("> interrupt".into(), Event::Interrupt(kind))
    }

    pub(crate) fn finished(self, call: u32, text: &str) -> Self {
        let event = Event::Finished(CallId(call), ToolOutput::text(text));
        self.other(format!("> c{call} finished {text}"), event)
    }

    pub(crate) fn failed_call(self, call: u32, text: &str) -> Self {
        let event = Event::Finished(CallId(call), ToolOutput::error(text));
        self.other(format!("> c{call} failed {text}"), event)
    }

    pub(crate) fn finished_with(self, call: u32, words: &str, outcome: ToolOutput) -> Self {
        self.other(format!("> c{call} {words}"), Event::Finished(CallId(call), outcome))
    }

    pub(crate) fn hooked(self, hook: u32, words: &str, answer: HookAnswer) -> Self {
        self.other(format!("> h{hook} says {words}"), Event::Hooked(HookId(hook), Box::new(answer)))
    }

    pub(crate) fn looked(self, look: u32, words: &str, found: AmbientChanges) -> Self {
        self.other(format!("> l{look} finds {words}"), Event::Looked(LookId(look), Box::new(found)))
    }

    pub(crate) fn prefetched(self, words: &str, notes: Vec<MemoryNote>) -> Self {
        self.other(format!("> memory {words}"), Event::Prefetched(notes))
    }

    /// A fork ended with this text.
    pub(crate) fn forked(self, fork: u32, terminal: Terminal, text: &str) -> Self {
        let line = format!("> f{fork} {} {text}", terminal.name());
        self.other(line, Event::Forked(ForkId(fork), Box::new(outcome(terminal, text))))
    }

    /// A fork has cost so much by now.
    pub(crate) fn fork_spent(self, fork: u32, usd: f64) -> Self {
        let models = costing(usd);
        self.other(format!("> f{fork} so far {usd} USD"), Event::ForkSpent(ForkId(fork), models))
    }

    /// A fork ended with this text and cost so much.
    pub(crate) fn forked_for(self, fork: u32, text: &str, usd: f64) -> Self {
        let outcome = Box::new(Outcome { models: costing(usd), ..outcome(Terminal::Completed, text) });
        self.other(format!("> f{fork} for {usd} USD"), Event::Forked(ForkId(fork), outcome))
    }

    pub(crate) fn timer(self, timer: u32) -> Self {
        self.other(format!("> timer t{timer}"), Event::Timer(TimerId(timer)))
    }

    pub(crate) fn answer(self, call: u32, answer: Answer) -> Self {
        self.other(format!("> answer c{call}"), Event::Answered(CallId(call), answer))
    }

    pub(crate) fn permissions(self, words: &str, change: PermissionChange) -> Self {
        let update = PermissionUpdate { change, destination: SettingsDestination::Session };
        self.other(format!("> permissions {words}"), Event::Permissions(vec![update]))
    }

    pub(crate) fn answer_changed(self, call: u32, words: &str) -> Self {
        let answer = Answer::AllowChanged(input(words));
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

    pub(crate) fn thinking(self, text: &str) -> Self {
        let block = thinking(text);
        self.model(format!("< thinking {text}"), ModelEvent::Block { index: 0, block })
    }

    pub(crate) fn note(self, words: &str, note: ModelNote) -> Self {
        self.model(format!("< note {words}"), ModelEvent::Note(note))
    }

    pub(crate) fn call(self, words: &str) -> Self {
        let ToolUse { name, input, .. } = tool_use(words);
        let id = format!("toolu_{}", self.events.len());
        let block = Block::tool_use(&id, &name, input);
        self.model(format!("< call {words}"), ModelEvent::Block { index: 0, block })
    }

    pub(crate) fn empty_call(self) -> Self {
        let block = Block::tool_use("toolu_empty", "read", raw("{}"));
        self.model("< empty call".into(), ModelEvent::Block { index: 0, block })
    }

    pub(crate) fn truncated_call(self) -> Self {
        let block = Block::tool_use("toolu_cut", "write", ToolInput::Unparsed(r#"{"content":"ab"#.into()));
        self.model("< truncated call".into(), ModelEvent::Block { index: 0, block })
    }

    pub(crate) fn ended(self, stop: StopReason) -> Self {
        self.model(format!("< end {}", stop.name()), ModelEvent::Ended { stop, usage: Box::default() })
    }

    /// The response ended after so many tokens went in and out.
    pub(crate) fn ended_at(self, stop: StopReason, input_tokens: u64, output_tokens: u64) -> Self {
        let usage = Box::new(Usage { input_tokens, output_tokens, ..Usage::default() });
        let line = format!("< end {} {input_tokens}+{output_tokens}", stop.name());
        self.model(line, ModelEvent::Ended { stop, usage })
    }

    pub(crate) fn ended_using(self, words: &str, stop: StopReason, usage: Usage) -> Self {
        self.model(
            format!("< end {} {words}", stop.name()),
            ModelEvent::Ended { stop, usage: Box::new(usage) },
        )
    }

    pub(crate) fn fails_with(self, words: &str, failure: Failure) -> Self {
        self.model(format!("< fails {words}"), ModelEvent::Failed(Box::new(failure)))
    }

    pub(crate) fn fails(self, class: FailureClass) -> Self {
        let failure = Failure::new(class, "it failed");
        self.model(format!("< fails {class:?}"), ModelEvent::Failed(Box::new(failure)))
    }

    /// Time passes before the next event.
    pub(crate) fn pause_ms(mut self, ms: u64) -> Self {
        self.events.push((String::new(), Told::Pause(ms)));
        self
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
        let state = State::new("/project".into(), self.history);
        let mut player = Player {
            config: self.config,
            state,
            at_ms: 0,
            wall_s: self.wall_s,
            requests: Vec::new(),
            request: 0,
            inputs: BTreeMap::new(),
            wordy: self.wordy,
            shows_records: self.shows_records,
            records: Vec::new(),
            request_words: self.request_words,
            outcome_words: self.outcome_words,
            course: Vec::new(),
            durations: Vec::new(),
            log: String::new(),
        };
        for (line, told) in self.events {
            let event = match told {
                Told::Other(Event::Submit(prompt)) => {
                    player.state = std::mem::take(&mut player.state).close_run();
                    Event::Submit(prompt)
                }
                Told::Other(event @ (Event::Compact { .. } | Event::GoOn { .. })) => {
                    player.state = std::mem::take(&mut player.state).close_run();
                    event
                }
                Told::Other(event) => event,
                Told::CutOff(without) => {
                    player.cut_off(&line, without);
                    continue;
                }
                Told::Pause(ms) => {
                    player.at_ms += ms;
                    continue;
                }
                Told::Model(event) => Event::Model(RequestId(player.request), event),
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
    wall_s: u64,
    requests: Vec<Arc<ModelRequest>>,
    request: u32,
    /// What the model asked for, by call.
    inputs: BTreeMap<CallId, Arc<RawValue>>,
    wordy: bool,
    shows_records: bool,
    records: Vec<Record>,
    request_words: Option<fn(&ModelRequest) -> String>,
    outcome_words: Option<fn(&Outcome) -> String>,
    course: Vec<&'static str>,
    durations: Vec<String>,
    log: String,
}

impl Player {
    fn tell(&mut self, line: String, event: Event) {
        let mut pending = VecDeque::from([(line, event)]);
        while let Some((line, event)) = pending.pop_front() {
            let input = Input { wall_ms: self.wall_s * 1_000, ..Input::at(self.at_ms, event) };
            self.at_ms += 100;
            self.hear(&input);
            let (state, effects) = step(std::mem::take(&mut self.state), input, &self.config);
            self.state = state;
            let mut words = Vec::new();
            let mut edges: VecDeque<PhaseName> = effects.edges.iter().map(|(_, to)| *to).collect();
            for effect in effects.list {
                if let Effect::Examine(call, tool_use, _) = &effect {
                    self.inputs.entry(*call).or_insert_with(|| tool_use.input.json());
                    pending.push_back(examination(*call, tool_use));
                }
                self.note(effect, &mut edges, &mut words);
            }
            words.extend(phases(edges.make_contiguous()));
            let _ = writeln!(self.log, "{line:28} {}", words.join(" | "));
        }
    }

    /// Pieces of a block and progress do not go into the log.
    fn hear(&mut self, input: &Input) {
        let is_piece =
            matches!(&input.event, Event::Progress(..) | Event::Model(_, ModelEvent::Delta { .. }));
        if !is_piece {
            self.records.push(Record::Heard(Box::new(input.clone())));
        }
    }

    fn cut_off(&mut self, line: &str, without: usize) {
        self.records.truncate(self.records.len() - without);
        let recalled = recall(self.records.clone());
        let words: Vec<String> = recalled
            .open
            .iter()
            .zip(&recalled.results)
            .map(|((tool_use, fate), result)| {
                let text =
                    if self.wordy { format!(": {}", result_text(&result.result)) } else { String::new() };
                format!("{} {fate:?}{text}", phrase(tool_use))
            })
            .collect();
        self.records.extend(recalled.results.into_iter().map(Record::Result));
        self.records.extend(recalled.state.snapshot().map(|facts| Record::Snapshot(Box::new(facts))));
        self.state = recalled.state;
        self.inputs.clear();
        let _ = writeln!(self.log, "{line:28} {}", words.join(" | "));
    }

    fn end_words(&mut self, outcome: &Outcome) -> String {
        self.course.push(outcome.terminal.name());
        let errors = match &outcome.failure {
            Some(_) => format!(": {}", outcome.errors.join("; ")),
            None => String::new(),
        };
        let more = self.outcome_words.map(|words| format!(" {}", words(outcome))).unwrap_or_default();
        format!("= {} after {}{errors}{more}", outcome.terminal.name(), outcome.iterations)
    }

    fn request_words(&self, request: RequestId, body: &Arc<ModelRequest>) -> String {
        let same = self.requests.last().is_some_and(|before| Arc::ptr_eq(before, body));
        let again = if same { " same" } else { "" };
        let more = self.request_words.map(|words| format!(" {}", words(body))).unwrap_or_default();
        format!("call-model #{} [{}]{again}{more}", request.0, shape(&body.transcript).join(" "))
    }

    /// One effect in words. Phases are put where their first visible effect is.
    fn note(&mut self, effect: Effect, edges: &mut VecDeque<PhaseName>, words: &mut Vec<String>) {
        let up_to = |edges: &mut VecDeque<PhaseName>, last: &[PhaseName]| -> Option<String> {
            let place = edges.iter().position(|phase| last.contains(phase))?;
            phases(&edges.drain(..=place).collect::<Vec<_>>())
        };
        match effect {
            Effect::Persist(record, durability) => {
                if self.shows_records {
                    words.extend(record_words(&record, durability));
                }
                self.records.push(record);
            }
            Effect::Emit(Update::Done(outcome)) => {
                words.extend(up_to(edges, &[PhaseName::Done]));
                words.push(self.end_words(&outcome));
            }
            Effect::Emit(Update::UserText { blocks, is_synthetic: true, .. }) => {
                words.extend(up_to(edges, &[PhaseName::Done]));
                words.push(format!("note {}", untagged(&texts(&blocks))));
            }
            Effect::Emit(Update::Failed { terminal, .. }) => {
                words.extend(up_to(edges, &[PhaseName::Done]));
                words.push(format!("failed {}", terminal.name()));
            }
            Effect::Emit(Update::Continued(transition)) if transition != Transition::NextTurn => {
                self.course.push(transition.name());
                words.push(format!("again {}", transition.name()));
            }
            Effect::Emit(Update::ToolFinished { call, duration_ms }) => {
                self.durations.push(format!("c{} {duration_ms} ms", call.0));
            }
            Effect::Emit(Update::TurnsUsedUp { turns, limit }) if self.wordy => {
                words.push(format!("turns used up {turns} of {limit}"));
            }
            Effect::Emit(update) => {
                let said = if self.wordy { said(&update) } else { None };
                words.extend(update_words(&update).map(|word| word + said.as_deref().unwrap_or_default()));
            }
            Effect::CallModel(request, body) => {
                words.extend(up_to(edges, &[PhaseName::Streaming]));
                words.push(self.request_words(request, &body));
                self.request = request.0;
                self.requests.push(body);
            }
            Effect::Examine(call, _, _) => {
                words.extend(up_to(edges, &[PhaseName::Settling]));
                words.push(format!("examine c{}", call.0));
            }
            Effect::RunTool { call, tool_use, .. } => {
                words.extend(up_to(edges, &[PhaseName::Settling]));
                let asked = self.inputs.get(&call).is_some_and(|input| input.get() == tool_use.input.get());
                let changed = if asked { String::new() } else { format!(" with {}", phrase(&tool_use)) };
                words.push(format!("run c{}{changed}", call.0));
            }
            Effect::StartTimer { timer, after_ms } => {
                words.extend(
                    up_to(edges, &[PhaseName::Waiting]).or_else(|| up_to(edges, &[PhaseName::Settling])),
                );
                words.push(format!("timer t{} {after_ms}", timer.0));
            }
            Effect::RunHooks(hook, call, _) => {
                words.extend(up_to(edges, &[PhaseName::Stopping]));
                words.push(format!("ask h{} {}", hook.0, hook_words(&call)));
            }
            Effect::LookAround { look, known, .. } => {
                words.extend(up_to(edges, &[PhaseName::Settling]));
                let paths: Vec<_> = known.iter().map(|seen| seen.path.display().to_string()).collect();
                words.push(format!("look l{} [{}]", look.0, paths.join(" ")));
            }
            other => words.extend(plain_words(&other)),
        }
    }
}

/// A block of thinking.
pub(crate) fn thinking(text: &str) -> Block {
    let json = format!(r#"{{"type":"thinking","thinking":"{text}","signature":"of {text}"}}"#);
    Block::from_json(&json).expect("a block")
}

/// A tool of this name.
pub(crate) fn tool(name: &str) -> windlass_protocol::ToolSpec {
    windlass_protocol::ToolSpec {
        name: name.into(),
        description: "".into(),
        input_schema: raw("{}"),
        result_chars_max: None,
        profile: windlass_protocol::ToolProfile::named(name),
    }
}
