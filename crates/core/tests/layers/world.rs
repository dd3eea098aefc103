//! A run whose world answers at once: files are written, forks are scripted, and every step is replayed from its
//! decisions.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use windlass_core::{Config, Effect, Event, Input, Prompt, RepeatPolicy, State, apply, step};
use windlass_permission::{PermissionMode, Permissions};
use windlass_protocol::{
    Admission, AmbientChanges, Block, CallFacts, CallKind, Decision, Failure, FailureClass, FileSeen,
    HookAnswer, Message, MessageId, ModelCard, ModelEvent, ModelRequest, Outcome, PathFact, RawValue,
    RequestId, ShownPart, StopReason, Terminal, ToolOutput, ToolSpec, Transcript, Update, Usage,
};

/// What a fork comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    Says(&'static str),
    Cut(&'static str),
    With(Terminal),
}

/// A fork that was asked for.
pub(crate) struct Forked {
    pub(crate) source: String,
    pub(crate) config: Arc<Config>,
    pub(crate) messages: Transcript,
    pub(crate) prompt: String,
    /// Its first request.
    pub(crate) request: Arc<ModelRequest>,
}

pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) requests: Vec<Arc<ModelRequest>>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) log: Vec<String>,
    pub(crate) forks: Vec<Forked>,
    /// What the forks come to, in order; without more, the next one stays unanswered.
    pub(crate) ends: VecDeque<Ends>,
    pub(crate) hooks: HookAnswer,
    /// Whether the provider keeps what it was sent.
    pub(crate) caches: bool,
    /// Whether files can be written.
    pub(crate) can_store: bool,
    pub(crate) surroundings: AmbientChanges,
    replayed: Transcript,
    /// Whether a decision changed the transcript since the last request.
    rewritten: bool,
    at_ms: u64,
    request: u32,
    calls: u32,
    results: VecDeque<String>,
    /// The file that calls name, and what was shown of it when the last one ran.
    pub(crate) file: PathBuf,
    pub(crate) shown: Vec<ShownPart>,
    /// The working directory after the next call.
    pub(crate) cwd: Option<PathBuf>,
    open: BTreeMap<u32, windlass_protocol::ForkId>,
}

pub(crate) fn tool(name: &str, result_chars_max: Option<usize>) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: "".into(),
        input_schema: RawValue::from_string("{}".into()).unwrap().into(),
        result_chars_max,
        profile: windlass_protocol::ToolProfile::named(name),
    }
}

/// A model with a window of 200 000 tokens.
pub(crate) fn config() -> Config {
    Config {
        model: ModelCard { output_tokens_max: 32_000, ..ModelCard::unknown("main") },
        system: "sys".into(),
        tools: [tool("Bash", Some(30_000)), tool("Read", None)].into(),
        roots: [PathBuf::from("/project")].into(),
        permissions: Permissions { mode: PermissionMode::BypassPermissions, ..Permissions::default() },
        repeats: RepeatPolicy { tell_after: u32::MAX, ask_after: u32::MAX, end_after: u32::MAX },
        ..Config::default()
    }
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            state: State::new("/project".into(), Transcript::default()),
            requests: Vec::new(),
            decisions: Vec::new(),
            log: Vec::new(),
            forks: Vec::new(),
            ends: VecDeque::new(),
            hooks: HookAnswer::default(),
            caches: false,
            can_store: true,
            surroundings: AmbientChanges::default(),
            replayed: Transcript::default(),
            rewritten: false,
            at_ms: 0,
            request: 0,
            calls: 0,
            results: VecDeque::new(),
            file: "/project/f".into(),
            shown: Vec::new(),
            cwd: None,
            open: BTreeMap::new(),
        }
    }

    pub(crate) fn submit(&mut self, text: &str) -> &mut Self {
        self.state = std::mem::take(&mut self.state).close_run();
        self.tell(Event::Submit(text.into()))
    }

    pub(crate) fn compact(&mut self, focus: &str) -> &mut Self {
        self.state = std::mem::take(&mut self.state).close_run();
        self.tell(Event::Compact { focus: focus.into() })
    }

    /// The model calls a tool, which answers this; `used` is what the provider reports.
    pub(crate) fn turn(&mut self, tool: &str, input: &str, result: &str, used: u64) -> &mut Self {
        self.turn_of(tool, input, &[result], used)
    }

    /// The model calls a tool once for each of these results.
    pub(crate) fn turn_of(&mut self, tool: &str, input: &str, results: &[&str], used: u64) -> &mut Self {
        let thinking = Block::from_json(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#).unwrap();
        self.model(ModelEvent::Block { index: 0, block: thinking });
        for (index, result) in (1..).zip(results) {
            self.calls += 1;
            self.results.push_back((*result).to_owned());
            let input = RawValue::from_string(input.to_owned()).unwrap();
            let block = Block::tool_use(&format!("t{}", self.calls), tool, input);
            self.model(ModelEvent::Block { index, block });
        }
        self.ended(StopReason::ToolUse, used)
    }

    pub(crate) fn says(&mut self, text: &str, used: u64) -> &mut Self {
        self.model(ModelEvent::Block { index: 0, block: Block::text(text) });
        self.ended(StopReason::EndTurn, used)
    }

    pub(crate) fn fails(&mut self, class: FailureClass) -> &mut Self {
        self.model(ModelEvent::Failed(Box::new(Failure::new(class, "it failed"))))
    }

    /// The oldest fork that nobody answered comes to its end.
    pub(crate) fn forked(&mut self, ends: Ends) -> &mut Self {
        let (_, fork) = self.open.pop_first().unwrap();
        self.tell(Event::Forked(fork, Box::new(outcome(&ends))))
    }

    /// The newest fork comes to its end.
    pub(crate) fn answer_newest(&mut self, ends: Ends) -> &mut Self {
        let (_, fork) = self.open.pop_last().unwrap();
        self.tell(Event::Forked(fork, Box::new(outcome(&ends))))
    }

    fn ended(&mut self, stop: StopReason, used: u64) -> &mut Self {
        let usage = if self.caches {
            Usage { cache_creation_input_tokens: used, ..Usage::default() }
        } else {
            Usage { input_tokens: used, ..Usage::default() }
        };
        self.model(ModelEvent::Ended { stop, usage: Box::new(usage) })
    }

    fn model(&mut self, event: ModelEvent) -> &mut Self {
        self.tell(Event::Model(RequestId(self.request), event))
    }

    pub(crate) fn tell(&mut self, event: Event) -> &mut Self {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            self.at_ms += 10;
            let (state, effects) =
                step(std::mem::take(&mut self.state), Input::at(self.at_ms, event), &self.config);
            self.state = state;
            let decided = self.decisions.len();
            for effect in effects.list {
                events.extend(self.answer(effect));
            }
            self.replay(decided);
        }
        self
    }

    /// What was said, changed by what was decided, is the transcript.
    fn replay(&mut self, decided: usize) {
        let known = self.replayed.iter().map(|message| message.id).max();
        let made = |decision: &Decision| match decision {
            Decision::Compacted(compaction) => vec![compaction.boundary.id],
            Decision::Collapsed { spans, .. } => spans.iter().map(|span| span.summary.id).collect(),
            _ => Vec::new(),
        };
        let made: Vec<MessageId> = self.decisions[decided..].iter().flat_map(made).collect();
        let new: Vec<Arc<Message>> = self.state.messages().iter().cloned().collect();
        for message in
            new.into_iter().filter(|message| Some(message.id) > known && !made.contains(&message.id))
        {
            self.replayed.push(message);
        }
        for decision in &self.decisions[decided..] {
            self.replayed = apply(decision, &self.replayed);
        }
        assert_eq!(self.replayed.to_json(), self.state.messages().to_json());
    }

    /// What every call is: it reads the file.
    fn facts(&self) -> CallFacts {
        let (lexical, resolved) = (self.file.clone(), Some(self.file.clone()));
        let paths = vec![PathFact { lexical, resolved, is_directory: false }];
        CallFacts { is_shared: true, paths, ..CallFacts::new(CallKind::Read) }
    }

    fn answer(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Emit(update) => {
                self.hear(update);
                None
            }
            Effect::CallModel(request, body) => {
                self.request = request.0;
                self.log.push("request".into());
                self.check_prefix(&body);
                self.requests.push(body);
                None
            }
            Effect::Examine(call, tool_use, _) => {
                let facts = self.facts();
                Some(Event::Examined(call, Admission::Ready { tool: tool_use.name, facts }))
            }
            Effect::RunTool { call, seen, .. } => {
                self.shown = seen.into_iter().flat_map(|seen| seen.shown).collect();
                let shown = vec![ShownPart { first: 1, count: None }];
                let seen = FileSeen {
                    path: self.file.clone(),
                    hash: 1,
                    stamp: None,
                    lines: [].into(),
                    is_whole: true,
                    shown,
                };
                let outcome = ToolOutput::text(&self.results.pop_front().unwrap()).with_seen(seen);
                let cwd = self.cwd.take();
                Some(Event::Finished(call, ToolOutput { cwd, ..outcome }))
            }
            Effect::Store(store, results) => {
                self.log.push("store".into());
                let file = |(id, _): &(Arc<str>, Block)| PathBuf::from(format!("/stored/{id}.txt"));
                let files = results.iter().map(|result| self.can_store.then(|| file(result))).collect();
                Some(Event::Stored(store, files))
            }
            Effect::LookAround { look, show, .. } => {
                let mut found = self.surroundings.clone();
                found.shown.extend(show.into_iter().map(|(path, _)| (path, "its text".into())));
                Some(Event::Looked(look, Box::new(found)))
            }
            Effect::RunHooks(hook, _, _) => {
                self.log.push("hooks".into());
                Some(Event::Hooked(hook, Box::new(self.hooks.clone())))
            }
            Effect::Fork { fork, state, config, prompt } => {
                let source = format!("{:?}", config.source).to_lowercase();
                self.log.push(format!("fork {source}"));
                let request = first_request(&state, &config, prompt.clone(), self.at_ms);
                let prompt = prompt.blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n");
                let messages = state.messages().clone();
                self.forks.push(Forked { source, config, messages, prompt, request });
                let Some(ends) = self.ends.pop_front() else {
                    self.open.insert(fork.0, fork);
                    return None;
                };
                Some(Event::Forked(fork, Box::new(outcome(&ends))))
            }
            Effect::CancelFork(fork) => {
                self.log.push("cancel fork".into());
                self.open.remove(&fork.0);
                None
            }
            Effect::StartTimer { timer, .. } => Some(Event::Timer(timer)),
            _ => None,
        }
    }

    fn hear(&mut self, update: Update) {
        let line = match update {
            Update::Decided(decision) => {
                let line = decision_name(&decision).to_owned();
                self.rewritten |= !matches!(decision, Decision::Stored(_) | Decision::Staged(_));
                self.decisions.push(decision);
                line
            }
            Update::Compacting(trigger) => format!("compacting {trigger:?}"),
            Update::CompactionFailed(why) => format!("failed: {why}"),
            Update::Notice(text) => format!("notice: {text}"),
            Update::Done(outcome) => format!("done {}", outcome.terminal.name()),
            _ => return,
        };
        self.log.push(line);
    }

    /// Without a decision in between, the next request begins with the bytes of the one before.
    fn check_prefix(&mut self, body: &ModelRequest) {
        let is_rewritten = std::mem::take(&mut self.rewritten);
        if let (Some(before), false) = (self.requests.last(), is_rewritten) {
            let (before, after) = (before.transcript.to_json(), body.transcript.to_json());
            let same = before.trim_end_matches([']', '}']);
            assert!(after.starts_with(same), "the prefix changed:\n{before}\n{after}");
        }
    }

    /// The log since the last look, one word or two for each line.
    pub(crate) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// The transcript of the last request.
    pub(crate) fn sent(&self) -> String {
        self.requests.last().unwrap().transcript.to_json()
    }
}

fn decision_name(decision: &Decision) -> &'static str {
    match decision {
        Decision::Stored(_) => "stored",
        Decision::Snipped { .. } => "snipped",
        Decision::Cleared { .. } => "cleared",
        Decision::Staged(_) => "staged",
        Decision::Collapsed { .. } => "collapsed",
        Decision::Compacted(compaction) if compaction.is_mechanical => "compacted mechanically",
        Decision::Compacted(_) => "compacted",
        Decision::MediaStripped(..) => "media stripped",
        Decision::ThinkingStripped(..) => "thinking stripped",
    }
}

pub(crate) fn outcome(ends: &Ends) -> Outcome {
    let (terminal, text) = match ends {
        Ends::Says(text) => (Terminal::Completed, *text),
        Ends::Cut(text) => (Terminal::MaxOutputTokens, *text),
        Ends::With(terminal) => (*terminal, ""),
    };
    Outcome { text: text.into(), ..Outcome::new(terminal) }
}

/// What a fork sends first.
fn first_request(state: &State, config: &Config, prompt: Prompt, at_ms: u64) -> Arc<ModelRequest> {
    let (_, effects) = step(state.clone(), Input::at(at_ms, Event::Submit(prompt)), config);
    let sent = effects.list.into_iter().find_map(|effect| match effect {
        Effect::CallModel(_, body) => Some(body),
        _ => None,
    });
    sent.unwrap()
}
