//! From records to a story. A record has the time of what was heard just before it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_protocol::{
    Answered, Block, BlockKind, Event, Input, Interrupt, Message, MessageId, ModelEvent, Origin, Prompt,
    Record, RequestId, Requested, Said, Spent, Terminal, Usage,
};

use crate::calls::Calls;
use crate::story::{MarkKind, Process, Request, RequestOutcome, Run, RunEnd, Short, Story};
use crate::text;

/// The records of one session, as far as a page shows them.
#[derive(Debug, Default)]
pub struct Trace {
    pub(crate) story: Story,
    clock: Clock,
    calls: Calls,
    /// The place of the latest request of each id; ids begin anew with a process.
    requests: BTreeMap<RequestId, usize>,
    /// Whether the model has not yet been asked about something new.
    news: bool,
    turns: u32,
    /// What forks cost before the first request.
    forks_usd: f64,
}

/// The process that opens a session.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// Wall time in milliseconds since 1970.
    pub wall_ms: u64,
    /// The engine's version.
    pub version: String,
    /// What started it.
    pub entrypoint: String,
    /// Where it works.
    pub cwd: String,
}

#[derive(Debug, Default)]
struct Clock {
    at_ms: u64,
    wall_ms: u64,
    /// The time of the process at which the open run began; none between runs.
    run_at_ms: Option<u64>,
    /// Whether a timer was what was heard last.
    timer: bool,
}

impl Trace {
    /// A process opens the session: the first one, or one that resumes it.
    pub fn opened(&mut self, opening: Opening) {
        self.leave();
        self.clock = Clock::default();
        let Opening { wall_ms, version, entrypoint, cwd } = opening;
        self.story.processes.push(Process { wall_ms, version, entrypoint, cwd });
    }

    /// Something that is no record happened to the session, such as that it was rewound.
    pub fn note(&mut self, name: &str, about: &str) {
        self.mark(MarkKind::Note, name, about);
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        match record {
            Record::Heard(input) => self.heard(input),
            Record::Said(said) => self.said(said),
            Record::Answered(answered) => self.answered(answered),
            Record::Result(result) => {
                self.news = true;
                if let Some(place) = self.place() {
                    self.calls.result(&mut self.story, place, result);
                }
                let failed = matches!(result.result.kind(), BlockKind::ToolResult { is_error: true, .. });
                let text = text::of_result(&result.result);
                self.message(result.id, "result", &format!("{}: {text}", result.name), failed);
            }
            Record::Retracted(ids) => {
                self.story.messages.retract(ids);
                self.calls.retracted(&mut self.story, ids);
            }
            Record::Requested(requested) => self.requested(requested),
            Record::Intended(intended) => {
                if let Some(place) = self.place() {
                    self.calls.intended(&mut self.story, place, intended);
                }
            }
            Record::Decided(decision) => self.decided(decision),
            Record::Spent(spent) => self.spent(spent),
            Record::Repaired(repairs) => self.repaired(repairs),
            Record::Ended { terminal, .. } => self.ended(*terminal),
            Record::Facts(facts) => {
                // What stands before is not always there to be read.
                if self.story.total_usd.is_none() && !facts.spent.is_empty() {
                    self.story.total_usd = Some(facts.total_usd);
                }
            }
            Record::Queued(_) | Record::Dequeued | Record::Ruled(_) | Record::Finished { .. } => {}
        }
    }

    /// The page. Everything that comes from the session goes through `redact` first.
    #[must_use]
    pub fn page(&self, title: &str, redact: &dyn Fn(&str) -> Cow<'_, str>) -> String {
        crate::page::draw(&self.story, title, redact)
    }

    fn heard(&mut self, input: &Input) {
        // Time goes backwards only where another process goes on.
        if input.at_ms < self.clock.at_ms {
            let resumed = Opening { wall_ms: input.wall_ms, ..Opening::default() };
            self.opened(resumed);
        }
        if self.story.processes.is_empty() {
            self.story.processes.push(Process { wall_ms: input.wall_ms, ..Process::default() });
        }
        (self.clock.at_ms, self.clock.wall_ms) = (input.at_ms, input.wall_ms);
        self.clock.timer = matches!(input.event, Event::Timer(_));
        match &input.event {
            Event::Submit(prompt) => self.begin(prompt_text(prompt)),
            Event::GoOn { .. } => self.begin("(continues the interrupted run)".to_owned()),
            Event::Compact { focus } => self.begin(format!("/compact {focus}").trim().to_owned()),
            other => {
                self.pass_time();
                self.happened(other);
            }
        }
    }

    fn happened(&mut self, event: &Event) {
        match event {
            Event::Steer(prompt) => {
                self.mark(MarkKind::Steer, "message during the run", &prompt_text(prompt));
            }
            Event::Interrupt(how) => {
                let about = match how {
                    Interrupt::Stop => "stop",
                    Interrupt::Replace => "replaced by a new prompt",
                    Interrupt::Leave => "the process ended",
                };
                self.mark(MarkKind::Interrupt, "interrupted", about);
                self.close_requests(&RequestOutcome::Interrupted);
            }
            Event::Model { request, event } => self.model(*request, event),
            Event::Examined { .. } | Event::Answered { .. } | Event::Finished { .. } => {
                self.call_happened(event);
            }
            Event::Forked { outcome, .. } => self.forked(outcome),
            Event::Hooked { answer, .. } => self.hooked(answer),
            Event::Looked { found, .. } if !found.changed.is_empty() => {
                let paths: Vec<_> =
                    found.changed.iter().map(|change| change.path.to_string_lossy()).collect();
                self.mark(MarkKind::Note, "files changed", &paths.join(", "));
            }
            Event::Prefetched(notes) if !notes.is_empty() => {
                let paths: Vec<_> = notes.iter().map(|note| note.path.to_string_lossy()).collect();
                self.mark(MarkKind::Note, "memory found", &paths.join(", "));
            }
            Event::Permissions(_) => self.mark(MarkKind::Note, "permissions changed", ""),
            Event::StoreFailed { why, .. } => self.mark(MarkKind::StoreFailed, "log not written", why),
            Event::Submit(_)
            | Event::GoOn { .. }
            | Event::Compact { .. }
            | Event::TakeBack(_)
            | Event::ForkSpent { .. }
            | Event::Progress { .. }
            | Event::Timer(_)
            | Event::Stored { .. }
            | Event::Looked { .. }
            | Event::Prefetched(_) => {}
        }
    }

    fn call_happened(&mut self, event: &Event) {
        let Some((run, at)) = self.place() else { return };
        match event {
            Event::Examined { call, admission } => self.calls.examined(*call, at, admission.clone()),
            Event::Answered { call, answer } => self.calls.answered(*call, at, answer),
            Event::Finished { call, outcome } => {
                self.calls.finished(&mut self.story, (run, at), *call, outcome);
            }
            _ => {}
        }
    }

    /// A run begins with what was just heard.
    fn begin(&mut self, prompt: String) {
        self.leave();
        self.clock.run_at_ms = Some(self.clock.at_ms);
        let process = self.story.processes.len().saturating_sub(1);
        let wall_ms = self.clock.wall_ms;
        let about = prompt.clone();
        self.story.runs.push(Run {
            process,
            wall_ms,
            prompt,
            length_ms: 0,
            cost_usd: 0.0,
            end: RunEnd::Open,
        });
        self.news = true;
        if !about.is_empty() {
            self.mark(MarkKind::Prompt, "prompt", &about);
        }
    }

    /// The run that is going on and the time in it. What comes between two runs belongs to the end of the one before.
    /// A session of another engine has none, and no times.
    pub(crate) fn place(&self) -> Option<(usize, u64)> {
        let last = self.story.runs.last()?;
        let at = self.clock.run_at_ms.map_or(last.length_ms, |began| self.clock.at_ms.saturating_sub(began));
        Some((self.story.runs.len() - 1, at))
    }

    fn pass_time(&mut self) {
        if self.story.runs.is_empty() {
            // A log without its beginning.
            self.begin(String::new());
        }
        if let Some((run, at)) = self.place() {
            self.story.runs[run].length_ms = at;
        }
    }

    /// The process went away, or another run begins: nothing of what is open comes to an end by itself.
    fn leave(&mut self) {
        if self.clock.run_at_ms.is_some() {
            self.close_requests(&RequestOutcome::Left);
            Calls::left(&mut self.story);
            if let Some(run) = self.story.runs.last_mut() {
                run.end = RunEnd::Left;
            }
        }
        self.clock.run_at_ms = None;
        self.requests.clear();
        self.calls.forget();
    }

    fn ended(&mut self, terminal: Terminal) {
        let Some((run, at)) = self.place() else { return };
        self.close_requests(&RequestOutcome::Interrupted);
        self.story.runs[run].length_ms = at;
        self.story.runs[run].end = RunEnd::Terminal(terminal);
        self.clock.run_at_ms = None;
    }

    fn requested(&mut self, requested: &Requested) {
        let Some((run, sent)) = self.place() else { return };
        self.pause_before(run, sent);
        if self.news {
            self.turns += 1;
            self.news = false;
        }
        self.requests.insert(requested.request, self.story.requests.len());
        self.story.requests.push(Request {
            run,
            turn: self.turns,
            model: requested.model.clone(),
            attempt: requested.attempt,
            parts: requested.parts.clone(),
            sent,
            first: None,
            end: None,
            outcome: RequestOutcome::Open,
            usage: Usage::default(),
            cost_usd: None,
            forks_usd: std::mem::take(&mut self.forks_usd),
        });
    }

    /// A request that a timer lets out waited since the one before it failed.
    fn pause_before(&mut self, run: usize, sent: u64) {
        let Some(failed) = self.story.requests.last().filter(|last| last.run == run) else { return };
        let RequestOutcome::Failed(_, why) = &failed.outcome else { return };
        let (Some(from), true) = (failed.end, self.clock.timer) else { return };
        let about = why.clone();
        self.while_mark(from, sent, (MarkKind::Backoff, "pause before a retry"), &about);
    }

    fn model(&mut self, request: RequestId, event: &ModelEvent) {
        let (Some((_, at)), Some(index)) = (self.place(), self.requests.get(&request)) else { return };
        let known = &mut self.story.requests[*index];
        match event {
            ModelEvent::Started { usage, .. } => {
                known.first.get_or_insert(at);
                known.usage = (**usage).clone();
            }
            ModelEvent::Block { .. } | ModelEvent::Delta { .. } => {
                known.first.get_or_insert(at);
            }
            ModelEvent::Ended { stop, usage } => {
                known.end = Some(at);
                known.usage = (**usage).clone();
                known.outcome = RequestOutcome::Stopped(stop.name().to_owned());
            }
            ModelEvent::Failed(failure) => {
                known.end = Some(at);
                known.outcome = RequestOutcome::Failed(failure.class, failure.message.clone());
            }
            ModelEvent::Note(note) => self.noted(note),
        }
    }

    fn close_requests(&mut self, outcome: &RequestOutcome) {
        let Some((run, at)) =
            self.story.runs.len().checked_sub(1).map(|run| (run, self.story.runs[run].length_ms))
        else {
            return;
        };
        let newest_first = self.story.requests.iter_mut().rev().take_while(|request| request.run == run);
        for request in newest_first.filter(|request| request.outcome == RequestOutcome::Open) {
            request.end = Some(at.max(request.sent));
            request.outcome = outcome.clone();
        }
    }

    fn spent(&mut self, spent: &Spent) {
        self.story.total_usd = Some(spent.total_usd);
        if spent.spend.cost_usd.is_none() && !self.story.unpriced.contains(&spent.model) {
            self.story.unpriced.push(spent.model.clone());
        }
        let cost = spent.spend.cost_usd;
        if let Some(run) = self.story.runs.last_mut() {
            run.cost_usd += cost.unwrap_or_default();
        }
        let last = self.story.requests.last_mut();
        match (spent.by_fork, last) {
            (true, Some(last)) => last.forks_usd += cost.unwrap_or_default(),
            (true, None) => self.forks_usd += cost.unwrap_or_default(),
            (false, last) => {
                self.story.windows.insert(spent.model.clone(), spent.spend.window_tokens);
                if let Some(last) = last {
                    last.cost_usd = cost.map(|cost| last.cost_usd.unwrap_or_default() + cost);
                    last.usage = spent.spend.usage.clone();
                }
            }
        }
    }

    fn said(&mut self, said: &Said) {
        let who = speaker(&said.message);
        self.news |= matches!(said.message.origin, Origin::Prompt);
        let own = said.message.blocks.get(said.context..).unwrap_or_default();
        self.message(said.message.id, who, &text_of(own), false);
    }

    fn answered(&mut self, answered: &Answered) {
        let block = &answered.block;
        if let (Some(tool_use), Some(place)) = (block.as_tool_use(), self.place()) {
            self.calls.made(&mut self.story, place, (answered.id, tool_use));
        }
        let who = match block.kind() {
            BlockKind::ToolUse(_) => "call",
            BlockKind::Thinking | BlockKind::RedactedThinking => "thinking",
            _ => "model",
        };
        self.message(answered.id, who, &text_of(std::slice::from_ref(block)), answered.aborted);
    }

    pub(crate) fn message(&mut self, id: MessageId, who: &'static str, text: &str, failed: bool) {
        let (run, at) = self.place().map_or((None, 0), |(run, at)| (Some(run), at));
        let text = text::kept(text).to_owned();
        self.story.messages.push(Short { id, run, at, who, text, failed, retracted: false });
    }
}

fn speaker(message: &Message) -> &'static str {
    match message.origin {
        Origin::Prompt => "prompt",
        Origin::Results => "results",
        Origin::Interruption => "interrupt",
        Origin::Model(_) => "model",
        Origin::Repair => "repair",
        Origin::Boundary => "boundary",
        Origin::Collapsed => "summary",
        Origin::Continuation | Origin::Attachment => "note",
    }
}

fn prompt_text(prompt: &Prompt) -> String {
    text_of(&prompt.blocks)
}

pub(crate) fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<Cow<'_, str>> = blocks.iter().map(text::of_block).collect();
    text::kept(&texts.join("\n")).to_owned()
}

/// The models that were asked, in the order of their first request.
pub(crate) fn models(story: &Story) -> Vec<Arc<str>> {
    let mut models: Vec<Arc<str>> = Vec::new();
    for request in &story.requests {
        if !models.contains(&request.model) {
            models.push(request.model.clone());
        }
    }
    models
}
