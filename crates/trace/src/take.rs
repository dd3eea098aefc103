//! From records to a story. A record has the time of what was heard just before it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_protocol::{
    Answered, Block, BlockKind, Collapse, Compaction, Decision, Event, HookAnswer, HookPermission, Input,
    Interrupt, Message, MessageId, ModelEvent, ModelNote, Origin, Outcome, Prompt, Record, Repair, RequestId,
    Requested, Said, Spent, Terminal,
};

use crate::calls::Calls;
use crate::figures;
use crate::story::{Mark, MarkKind, Process, Request, RequestOutcome, Run, RunEnd, Short, Story};
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
            Record::Queued(_) | Record::Dequeued | Record::Finished { .. } => {}
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
            Event::GoOn => self.begin("(goes on where it was left)".to_owned()),
            Event::Compact { focus } => self.begin(format!("/compact {focus}").trim().to_owned()),
            other => {
                self.pass_time();
                self.happened(other);
            }
        }
    }

    fn happened(&mut self, event: &Event) {
        match event {
            Event::Steer(prompt) => self.mark(MarkKind::Steer, "steered", &prompt_text(prompt)),
            Event::Interrupt(how) => {
                let about = match how {
                    Interrupt::Stop => "stop",
                    Interrupt::Replace => "something else was typed",
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
            Event::StoreFailed { why, .. } => self.mark(MarkKind::StoreFailed, "the log failed", why),
            Event::Submit(_)
            | Event::GoOn
            | Event::Compact { .. }
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
        self.story.runs.push(Run { process, wall_ms, prompt, length_ms: 0, end: RunEnd::Open });
        self.news = true;
        if !about.is_empty() {
            self.mark(MarkKind::Prompt, "prompt", &about);
        }
    }

    /// The run that is going on and the time in it. What comes between two runs belongs to the end of the one before.
    /// A session of another engine has none, and no times.
    fn place(&self) -> Option<(usize, u64)> {
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
            usage: windlass_protocol::Usage::default(),
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

    fn noted(&mut self, note: &ModelNote) {
        let (name, about) = match note {
            ModelNote::Cleared { tool_results, thinking_turns, tokens } => (
                "provider cleared",
                format!(
                    "{}, {}, {} tokens",
                    figures::counted(u64::from(*tool_results), "result"),
                    figures::counted(u64::from(*thinking_turns), "answer's thinking"),
                    figures::number(*tokens)
                ),
            ),
            ModelNote::ThinkingDropped { blocks, reason } => (
                "provider dropped thinking",
                format!("{}: {reason}", figures::counted(u64::from(*blocks), "block")),
            ),
            ModelNote::Refusal { category, explanation } => {
                let said = [category, explanation].into_iter().flatten().map(|text| &**text);
                ("declined", said.collect::<Vec<_>>().join(": "))
            }
        };
        self.mark(MarkKind::Note, name, &about);
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

    fn forked(&mut self, outcome: &Outcome) {
        let Some((_, at)) = self.place() else { return };
        let models: Vec<&str> = outcome.models.keys().map(|model| &**model).collect();
        let about = format!("{} {}", models.join(", "), outcome.terminal.name()).trim().to_owned();
        self.while_mark(at.saturating_sub(outcome.duration_ms), at, (MarkKind::Fork, "fork"), &about);
    }

    fn hooked(&mut self, answer: &HookAnswer) {
        let said = hooks_said(answer);
        if !said.is_empty() {
            self.mark(MarkKind::Hook, "hooks", &said.join("; "));
        }
    }

    fn decided(&mut self, decision: &Decision) {
        let tokens = |tokens: u64| format!("{} tokens freed", figures::number(tokens));
        let many = |n: usize, thing: &str| figures::counted(n as u64, thing);
        let (name, about) = match decision {
            Decision::Compacted(compaction) => return self.compacted(compaction),
            Decision::Stored(results) => ("results put into files", many(results.len(), "result")),
            Decision::Snipped { messages, tokens: freed, .. } => {
                ("snipped", format!("{}, {}", many(messages.len(), "message"), tokens(*freed)))
            }
            Decision::Cleared { results, tokens: freed, .. } => {
                ("cleared", format!("{}, {}", many(results.len(), "result"), tokens(*freed)))
            }
            Decision::Staged(Collapse { first, last, .. }) => {
                ("staged", format!("summary of messages {} to {}", first.0, last.0))
            }
            Decision::Collapsed { spans, tokens: freed, .. } => {
                ("collapsed", format!("{}, {}", many(spans.len(), "span"), tokens(*freed)))
            }
            Decision::MediaStripped { messages } => ("media left out", many(messages.len(), "message")),
            Decision::ThinkingStripped { messages } => ("thinking left out", many(messages.len(), "message")),
        };
        self.mark(MarkKind::Decision, name, &about);
    }

    fn compacted(&mut self, compaction: &Compaction) {
        let trigger = match compaction.trigger {
            windlass_protocol::CompactTrigger::Auto => "automatic",
            windlass_protocol::CompactTrigger::Manual => "asked for",
            windlass_protocol::CompactTrigger::Reactive => "after a refusal",
        };
        let how = if compaction.mechanical { ", without a model" } else { "" };
        let about = format!(
            "{trigger}{how}: {} to about {} tokens",
            figures::number(compaction.tokens_before),
            figures::number(compaction.tokens_after)
        );
        if let Some((_, at)) = self.place() {
            let from = at.saturating_sub(compaction.duration_ms);
            self.while_mark(from, at, (MarkKind::Compaction, "compaction"), &about);
        }
        self.message(compaction.boundary.id, "boundary", &text_of(&compaction.boundary.blocks), false);
    }

    fn repaired(&mut self, repairs: &[Repair]) {
        if !repairs.is_empty() {
            let about = figures::counted(repairs.len() as u64, "repair");
            self.mark(MarkKind::Repair, "conversation mended", &about);
        }
    }

    fn mark(&mut self, kind: MarkKind, name: &str, about: &str) {
        self.push_mark(None, kind, name, about);
    }

    fn while_mark(&mut self, from: u64, at: u64, (kind, name): (MarkKind, &str), about: &str) {
        self.push_mark(Some(from.min(at)), kind, name, about);
    }

    fn push_mark(&mut self, from: Option<u64>, kind: MarkKind, name: &str, about: &str) {
        let Some((run, at)) = self.place() else { return };
        let (name, about) = (name.to_owned(), text::kept(about).to_owned());
        let requests_before = self.story.requests.len();
        self.story.marks.push(Mark { run, kind, from, at, name, about, requests_before });
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

    fn message(&mut self, id: MessageId, who: &'static str, text: &str, failed: bool) {
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

fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<Cow<'_, str>> = blocks.iter().map(text::of_block).collect();
    text::kept(&texts.join("\n")).to_owned()
}

fn hooks_said(answer: &HookAnswer) -> Vec<String> {
    let permission = answer.permission.as_ref().map(|permission| match permission {
        HookPermission::Allow => "allow".to_owned(),
        HookPermission::Deny(why) => format!("deny: {why}"),
        HookPermission::Ask(why) => format!("ask: {why}"),
        HookPermission::Defer => "defer".to_owned(),
    });
    let stop = answer.stop.iter().map(|why| format!("stop: {why}"));
    let blocks = answer.blocks.iter().map(|why| format!("objection: {why}"));
    let input = answer.input.iter().map(|_| "other input".to_owned());
    let context = answer.context.iter().map(|text| format!("added: {text}"));
    stop.chain(blocks)
        .chain(permission)
        .chain(input)
        .chain(context)
        .chain(answer.notices.iter().cloned())
        .collect()
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
