//! A scenario is a list of events; playing it gives a log with one line per event and its effects.
//!
//! A call is written `tool argument`: `read` is shared and reads inside the project, `peek` reads outside, `write` is
//! exclusive and changes something, `broken` has a bad input, every other name is unknown. Examination is answered at once.
//! What the core puts into the log is kept, and a session can be cut off and recalled from it.

#![expect(clippy::expect_used, reason = "a test may stop at the first surprise")]

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

use windlass_core::{
    Config, EarlyStart, Effect, Event, Input, Interrupt, PhaseName, Prompt, Recall, State, step,
};
use windlass_permission::{Answerer, PermissionMode};
use windlass_protocol::{
    Admission, AmbientChanges, Answer, Block, BlockKind, CallFacts, CallId, CallKind, CommandEffect,
    CommandFacts, Decision, Delta, Durability, Failure, FailureClass, ForkId, HookAnswer, HookCall, HookId,
    LookId, MemoryNote, Message, ModelEvent, ModelNote, ModelRequest, ModelSpend, Origin, Outcome, PathFact,
    PermissionChange, PermissionUpdate, PlainCommand, RawValue, Record, RequestId, Role, SettingsDestination,
    StopReason, Terminal, TimerId, ToolOutput, ToolUse, Transcript, Transition, Update, Usage,
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
    scenario.play().state.at_rest()
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
    tool_use(words).input.json().clone()
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

/// An event whose request id is filled in when it is played.
enum Told {
    Model(ModelEvent),
    Other(Event),
    /// The process ends, and so many records of the last step are not in the log.
    CutOff(usize),
    /// So many milliseconds pass.
    Pause(u64),
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
        let event = Event::Finished { call: CallId(call), outcome: ToolOutput::text(text) };
        self.other(format!("> c{call} finished {text}"), event)
    }

    pub(crate) fn failed_call(self, call: u32, text: &str) -> Self {
        let event = Event::Finished { call: CallId(call), outcome: ToolOutput::error(text) };
        self.other(format!("> c{call} failed {text}"), event)
    }

    pub(crate) fn finished_with(self, call: u32, words: &str, outcome: ToolOutput) -> Self {
        self.other(format!("> c{call} {words}"), Event::Finished { call: CallId(call), outcome })
    }

    pub(crate) fn hooked(self, hook: u32, words: &str, answer: HookAnswer) -> Self {
        self.other(
            format!("> h{hook} says {words}"),
            Event::Hooked { hook: HookId(hook), answer: Box::new(answer) },
        )
    }

    pub(crate) fn looked(self, look: u32, words: &str, found: AmbientChanges) -> Self {
        self.other(
            format!("> l{look} finds {words}"),
            Event::Looked { look: LookId(look), found: Box::new(found) },
        )
    }

    pub(crate) fn prefetched(self, words: &str, notes: Vec<MemoryNote>) -> Self {
        self.other(format!("> memory {words}"), Event::Prefetched(notes))
    }

    /// A fork ended with this text.
    pub(crate) fn forked(self, fork: u32, terminal: Terminal, text: &str) -> Self {
        let line = format!("> f{fork} {} {text}", terminal.name());
        self.other(line, Event::Forked { fork: ForkId(fork), outcome: Box::new(outcome(terminal, text)) })
    }

    /// A fork has cost so much by now.
    pub(crate) fn fork_spent(self, fork: u32, usd: f64) -> Self {
        let models = costing(usd);
        self.other(format!("> f{fork} so far {usd} USD"), Event::ForkSpent { fork: ForkId(fork), models })
    }

    /// A fork ended with this text and cost so much.
    pub(crate) fn forked_for(self, fork: u32, text: &str, usd: f64) -> Self {
        let outcome = Box::new(Outcome { models: costing(usd), ..outcome(Terminal::Completed, text) });
        self.other(format!("> f{fork} for {usd} USD"), Event::Forked { fork: ForkId(fork), outcome })
    }

    pub(crate) fn timer(self, timer: u32) -> Self {
        self.other(format!("> timer t{timer}"), Event::Timer(TimerId(timer)))
    }

    pub(crate) fn answer(self, call: u32, answer: Answer) -> Self {
        self.other(format!("> answer c{call}"), Event::Answered { call: CallId(call), answer })
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
        let block = Block::tool_use(&id, &name, input.json());
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
                    player.state = std::mem::take(&mut player.state).at_rest();
                    Event::Submit(prompt)
                }
                Told::Other(event @ (Event::Compact { .. } | Event::GoOn { .. })) => {
                    player.state = std::mem::take(&mut player.state).at_rest();
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
            let mut edges: VecDeque<PhaseName> = effects.edges().iter().map(|(_, to)| *to).collect();
            for effect in effects {
                if let Effect::Examine { call, tool_use, .. } = &effect {
                    self.inputs.entry(*call).or_insert_with(|| tool_use.input.json().clone());
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
        let is_piece = matches!(
            &input.event,
            Event::Progress { .. } | Event::Model { event: ModelEvent::Delta { .. }, .. }
        );
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
            Effect::Persist { record, durability } => {
                if self.shows_records {
                    words.extend(record_words(&record, durability));
                }
                self.records.push(record);
            }
            Effect::Emit(Update::Done(outcome)) => {
                words.extend(up_to(edges, &[PhaseName::Done]));
                words.push(self.end_words(&outcome));
            }
            Effect::Emit(Update::UserText { blocks, synthetic: true, .. }) => {
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
            Effect::CallModel { request, body } => {
                words.extend(up_to(edges, &[PhaseName::Streaming]));
                words.push(self.request_words(request, &body));
                self.request = request.0;
                self.requests.push(body);
            }
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
            Effect::StartTimer { timer, after_ms } => {
                words.extend(
                    up_to(edges, &[PhaseName::Waiting]).or_else(|| up_to(edges, &[PhaseName::Settling])),
                );
                words.push(format!("timer t{} {after_ms}", timer.0));
            }
            Effect::RunHooks { hook, call, .. } => {
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

/// A record in brackets, with `!` if it must be on the disk.
fn record_words(record: &Record, durability: Durability) -> Option<String> {
    let words = match record {
        Record::Said(said) => format!("said {}", texts(&said.message.blocks)),
        Record::Answered(answered) if answered.aborted => "aborted".into(),
        Record::Answered(_) => "answered".into(),
        Record::Result(result) => format!("result c{}", result.call.0),
        Record::Retracted(messages) => format!("retracted {}", messages.len()),
        Record::Queued(prompt) => format!("queued {}", texts(&prompt.blocks)),
        Record::Dequeued => "dequeued".into(),
        Record::Requested(requested) => format!("requested #{}", requested.request.0),
        Record::Intended(intended) => format!("intended c{}", intended.call.0),
        Record::Finished { call, .. } => format!("finished c{}", call.0),
        Record::Decided(decision) => decision_words(decision),
        Record::Repaired(_) => "repaired".into(),
        Record::Ended { terminal, .. } => format!("ended {}", terminal.name()),
        Record::Heard(_) | Record::Ruled(_) | Record::Spent(_) | Record::Snapshot(_) => return None,
    };
    Some(format!("[{words}{}]", if durability == Durability::Synced { "!" } else { "" }))
}

/// Effects that belong to no phase. A prefetch goes with every prompt and says nothing new.
fn plain_words(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::CancelModel(request) => format!("cancel-model #{}", request.0),
        Effect::CancelTool(call) => format!("cancel c{}", call.0),
        Effect::AbandonTool(call) => format!("abandon c{}", call.0),
        Effect::CancelHooks(hook) => format!("cancel h{}", hook.0),
        Effect::Fork { fork, config, .. } => format!("fork f{} {}", fork.0, config.source.name()),
        Effect::CancelFork(fork) => format!("cancel f{}", fork.0),
        Effect::Store { store, results } => format!("store s{} {}", store.0, results.len()),
        _ => return None,
    })
}

fn hook_words(call: &HookCall) -> String {
    let about = match call {
        HookCall::PreToolUse { tool_use, .. }
        | HookCall::PostToolUse { tool_use, .. }
        | HookCall::PermissionRequest { tool_use, .. } => phrase(tool_use),
        HookCall::Stop { active, text } => format!("{text}{}", if *active { " (again)" } else { "" }),
        HookCall::StopFailure { terminal, failure } => {
            failure.as_ref().map_or_else(|| terminal.name().to_owned(), |failure| failure.message.clone())
        }
        HookCall::PreCompact { instructions, .. } => instructions.to_string(),
        HookCall::PostCompact { summary, .. } => clipped(summary.to_string()),
        HookCall::SessionStart { source, .. } => source.name().to_owned(),
        HookCall::InstructionsLoaded { files, reason } => format!("{files:?} {}", reason.name()),
        HookCall::UserPromptSubmit { prompt } => prompt.to_string(),
        HookCall::CwdChanged { from, to } => format!("{} to {}", from.display(), to.display()),
        HookCall::PostToolBatch { calls } => {
            calls.iter().map(|call| phrase(&call.tool_use)).collect::<Vec<_>>().join(", ")
        }
        // The core asks none of the others.
        _ => String::new(),
    };
    format!("{} {about}", call.event().name())
}

/// What an update about a call says.
fn said(update: &Update) -> Option<String> {
    let text = match update {
        Update::ToolResult { result, .. } => clipped(result_text(result)),
        Update::Denied(denial) => denial.reason.clone(),
        Update::Question(question) => question.reason.clone(),
        _ => return None,
    };
    Some(format!(": {}", untagged(&text)))
}

fn clipped(text: String) -> String {
    if text.len() < 400 { text } else { format!("{}…", text.chars().take(20).collect::<String>()) }
}

/// What a result says.
fn result_text(result: &Block) -> String {
    let json: serde_json::Value = serde_json::from_str(result.json()).expect("blocks are JSON");
    json["content"].as_str().map_or_else(|| texts(&result.result_blocks()), str::to_owned)
}

/// Without the tag of a reminder, and on one line.
fn untagged(text: &str) -> String {
    text.replace("<system-reminder>", "(").replace("</system-reminder>", ")").replace('\n', " ")
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
        Update::FellBack { from, to, .. } => format!("fall back from {from} to {to}"),
        Update::Compacting(trigger) => format!("compacting {trigger:?}").to_lowercase(),
        Update::CompactionFailed(why) => format!("not compacted: {why}"),
        Update::Decided(decision) => decision_words(decision),
        Update::ClearedByProvider { tool_results, tokens, .. } => {
            format!("provider cleared {tool_results} results, {tokens} tokens")
        }
        Update::CacheMissed { expected, read, part } => {
            format!("cache missed: {read} of {expected}, {part:?}")
        }
        Update::Notice(text) => format!("notice {text}"),
        Update::StopHooks(summary) => {
            let ran = summary.hooks.iter().map(|run| format!("{} {} ms", run.hook, run.duration_ms));
            let ran = ran.collect::<Vec<_>>().join(", ");
            let verdict = format!("{:?}", summary.verdict).to_lowercase();
            format!("stop hooks {verdict} [{ran}] {}", summary.reasons.join("; ")).trim_end().to_owned()
        }
        Update::PromptsRefused(ids) => format!("refused {}", ids.join(",")),
        Update::PromptsStarted(ids) => format!("started {}", ids.join(",")),
        Update::PromptSuggestion { suggestion } => format!("suggestion {suggestion}"),
        Update::ToolUseSummary { summary, tool_use_ids } => {
            format!("summary {summary} of {}", tool_use_ids.join(","))
        }
        _ => return None,
    })
}

fn decision_words(decision: &Decision) -> String {
    match decision {
        Decision::Stored(results) => format!("stored {}", results.len()),
        Decision::Snipped { messages, .. } => format!("snipped {}", messages.len()),
        Decision::Cleared { results, .. } => format!("cleared {}", results.len()),
        Decision::Staged(_) => "staged".into(),
        Decision::Collapsed { spans, .. } => format!("collapsed {}", spans.len()),
        Decision::Compacted(compaction) if compaction.mechanical => "compacted mechanically".into(),
        Decision::Compacted(_) => "compacted".into(),
        Decision::MediaStripped { messages } => format!("media stripped from {}", messages.len()),
        Decision::ThinkingStripped { messages } => format!("thinking stripped from {}", messages.len()),
    }
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
        BlockKind::Thinking | BlockKind::RedactedThinking => "thinking".into(),
        BlockKind::Image => "picture".into(),
        _ => "text".into(),
    };
    match (&message.origin, message.role) {
        (Origin::Boundary, _) => "boundary".into(),
        (Origin::Collapsed, _) => "collapsed".into(),
        (_, Role::Assistant) => {
            format!("assistant({})", message.blocks.iter().map(block).collect::<Vec<_>>().join(","))
        }
        (_, Role::User) if message.blocks.iter().any(|b| block(b).starts_with("result")) => {
            let words = message.blocks.iter().map(|b| b.as_text().map_or_else(|| block(b), shortened));
            format!("user({})", words.collect::<Vec<_>>().join(","))
        }
        (_, Role::User) if message.blocks.len() > 1 => {
            let words = message.blocks.iter().map(|b| b.as_text().map_or_else(|| block(b), shortened));
            format!("user({})", words.collect::<Vec<_>>().join("/"))
        }
        (_, Role::User) => "user".into(),
    }
}

/// A reminder is known by its first words.
fn shortened(text: &str) -> String {
    match text.strip_prefix("<system-reminder>") {
        Some(reminder) => format!("({}…)", reminder.split(' ').take(2).collect::<Vec<_>>().join(" ")),
        None => text.to_owned(),
    }
}

/// What the small model took.
fn costing(usd: f64) -> BTreeMap<Arc<str>, ModelSpend> {
    [("small".into(), ModelSpend { cost_usd: Some(usd), ..ModelSpend::default() })].into()
}

/// What a fork came to.
fn outcome(terminal: Terminal, text: &str) -> Outcome {
    Outcome { text: text.into(), ..Outcome::new(terminal) }
}

/// A block of thinking.
pub(crate) fn thinking(text: &str) -> Block {
    let json = format!(r#"{{"type":"thinking","thinking":"{text}","signature":"of {text}"}}"#);
    Block::from_json(&json).expect("a block")
}

fn texts(blocks: &[Block]) -> String {
    blocks.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("/")
}

/// `tool argument` as a tool use with the whole phrase in its input.
fn tool_use(words: &str) -> ToolUse {
    let name = words.split(' ').next().unwrap_or(words);
    ToolUse {
        id: "toolu".into(),
        name: name.into(),
        input: raw(&format!("{{\"words\":\"{words}\"}}")).into(),
    }
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
        shared,
        paths: vec![PathFact { lexical: path.into(), resolved: Some(path.into()), is_directory: false }],
        target: words.clone(),
        commands: words.starts_with("sleep").then(|| Arc::new(looking(&words))),
        ..CallFacts::new(kind)
    };
    let (answer, admission) = match &*tool_use.name {
        "read" | "peek" | "write" | "sleep" => {
            (words, Admission::Ready { tool: tool_use.name.clone(), facts })
        }
        "broken" => ("invalid".into(), Admission::Invalid("`words` is wrong".into())),
        _ => ("unknown".into(), Admission::Unknown),
    };
    (format!("> c{} is {answer}", call.0), Event::Examined { call, admission })
}

/// A command line that only looks.
fn looking(line: &str) -> CommandFacts {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let command = PlainCommand {
        text: line.into(),
        whole: words.clone(),
        words,
        exact_only: false,
        spelled: None,
        effect: CommandEffect::Looks,
        reads: Vec::new(),
        writes: Vec::new(),
        network: false,
    };
    CommandFacts {
        line: line.into(),
        plain: Ok(vec![command]),
        found: Vec::new(),
        unseen: None,
        hidden: false,
    }
}

fn raw(json: &str) -> Arc<RawValue> {
    RawValue::from_string(json.into()).expect("JSON").into()
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
