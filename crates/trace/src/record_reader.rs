//! From records to a story. A record has the time of what was heard just before it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use windlass_protocol::{
    AnswerBlock, Block, BlockKind, Event, Input, Interrupt, Message, MessageId, ModelEvent, Origin, Record,
    RequestEntry, RequestId, RunEnding, SpendEntry, Terminal, UserEntry,
};

use crate::calls::CallTracker;
use crate::text;
use crate::traced_session::{
    MarkKind, MessageExcerpt, RequestOutcome, RunEnd, SessionProcess, TracedRequest, TracedRun, TracedSession,
};

/// The records of one session, as far as a page shows them.
#[derive(Debug, Default)]
pub struct Trace {
    pub(crate) story: TracedSession,
    clock: RunClock,
    pub(crate) calls: CallTracker,
    /// The place of the latest request of each id; ids begin anew with a process.
    requests: BTreeMap<RequestId, usize>,
    /// Whether the model has not yet been asked about something new.
    has_news: bool,
    turns: u32,
    /// What forks cost before the first request.
    forks_usd: f64,
}

#[derive(Debug, Default)]
struct RunClock {
    at_ms: u64,
    wall_ms: u64,
    /// The time of the process at which the open run began; none between runs.
    run_at_ms: Option<u64>,
    /// Whether a timer was what was heard last.
    is_timer: bool,
}

impl Trace {
    /// A process opens the session: the first one, or one that resumes it.
    pub fn on_opened(&mut self, process: SessionProcess) {
        self.leave_run();
        self.clock = RunClock::default();
        self.story.processes.push(process);
    }

    /// Something that is no record happened to the session, such as that it was rewound.
    pub fn note(&mut self, name: &str, about: &str) {
        self.mark(MarkKind::Note, name, about);
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        match record {
            Record::Heard(input) => self.on_heard(input),
            Record::Said(said) => self.on_said(said),
            Record::Answered(answered) => self.on_answered(answered),
            Record::Result(result) => {
                self.has_news = true;
                self.on_result(result);
                let failed = matches!(result.result.kind(), BlockKind::ToolResult { is_error: true, .. });
                let text = text::of_result(&result.result);
                self.push_message(result.id, "result", &format!("{}: {text}", result.name), failed);
            }
            Record::Retracted(ids) => {
                self.story.messages.retract(ids);
                self.on_retracted(ids);
            }
            Record::Requested(requested) => self.on_requested(requested),
            Record::Intended(intended) => self.on_intended(intended),
            Record::Decided(decision) => self.on_decided(decision),
            Record::Spent(spent) => self.on_spent(spent),
            Record::Repaired(repairs) => self.on_repaired(repairs),
            Record::Ended(RunEnding { terminal, .. }) => self.on_ended(*terminal),
            Record::Snapshot(facts) => {
                // What stands before is not always there to be read.
                if self.story.total_usd.is_none() && !facts.spent.is_empty() {
                    self.story.total_usd = Some(facts.total_usd);
                }
            }
            Record::Queued(_) | Record::Dequeued | Record::Ruled(_) | Record::Finished(_) => {}
        }
    }

    /// The page. Everything that comes from the session goes through `redact` first.
    pub fn page(&self, title: &str, redact: &dyn Fn(&str) -> Cow<'_, str>) -> String {
        crate::page::draw(&self.story, title, redact)
    }

    fn on_heard(&mut self, input: &Input) {
        // Time goes backwards only where another process goes on.
        if input.at_ms < self.clock.at_ms || self.story.processes.is_empty() {
            self.on_opened(SessionProcess { wall_ms: input.wall_ms, ..SessionProcess::default() });
        }
        (self.clock.at_ms, self.clock.wall_ms) = (input.at_ms, input.wall_ms);
        self.clock.is_timer = matches!(input.event, Event::Timer(_));
        match &input.event {
            Event::Submit(prompt) => self.begin(&text_of(&prompt.blocks)),
            Event::GoOn { .. } => self.begin("(continues the interrupted run)"),
            Event::Compact { focus } => self.begin(format!("/compact {focus}").trim()),
            other => {
                self.pass_time();
                self.on_event(other);
            }
        }
    }

    fn on_event(&mut self, event: &Event) {
        let Some((_, at)) = self.place() else { return };
        match event {
            Event::Steer(prompt) => {
                self.mark(MarkKind::Steer, "message during the run", &text_of(&prompt.blocks));
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
            Event::Model(request, event) => self.on_model_event(*request, event),
            Event::Examined(call, admission) => {
                self.calls.examined.insert(*call, (at, admission.clone()));
            }
            Event::Answered(call, answer) => self.on_question_answered(*call, at, answer),
            Event::Finished(call, outcome) => self.on_finished(*call, outcome),
            Event::Forked(_, outcome) => self.on_forked(outcome),
            Event::Hooked(_, answer) => self.on_hooked(answer),
            Event::Looked(_, found) if !found.changed.is_empty() => {
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
            | Event::ForkSpent(..)
            | Event::Progress(..)
            | Event::Timer(_)
            | Event::Stored(..)
            | Event::Looked(..)
            | Event::Prefetched(_) => {}
        }
    }

    /// A run begins with what was just heard.
    fn begin(&mut self, prompt: &str) {
        self.leave_run();
        self.clock.run_at_ms = Some(self.clock.at_ms);
        self.story.runs.push(TracedRun {
            process: self.story.processes.len().saturating_sub(1),
            wall_ms: self.clock.wall_ms,
            prompt: prompt.to_owned(),
            ..TracedRun::default()
        });
        self.has_news = true;
        if !prompt.is_empty() {
            self.mark(MarkKind::Prompt, "prompt", prompt);
        }
    }

    /// The current run and the time in it, or the end of the last. A session of another engine has neither.
    pub(crate) fn place(&self) -> Option<(usize, u64)> {
        let last = self.story.runs.last()?;
        let at = self.clock.run_at_ms.map_or(last.length_ms, |began| self.clock.at_ms.saturating_sub(began));
        Some((self.story.runs.len() - 1, at))
    }

    fn pass_time(&mut self) {
        if self.story.runs.is_empty() {
            // A log without its beginning.
            self.begin("");
        }
        if let Some((run, at)) = self.place() {
            self.story.runs[run].length_ms = at;
        }
    }

    /// The process went away, or another run begins: nothing of what is open comes to an end by itself.
    fn leave_run(&mut self) {
        if self.clock.run_at_ms.is_some() {
            self.close_requests(&RequestOutcome::Left);
            self.leave_calls();
            if let Some(run) = self.story.runs.last_mut() {
                run.end = RunEnd::Left;
            }
        }
        self.clock.run_at_ms = None;
        self.requests.clear();
        self.calls.forget();
    }

    fn on_ended(&mut self, terminal: Terminal) {
        let Some((run, at)) = self.place() else { return };
        self.close_requests(&RequestOutcome::Interrupted);
        self.story.runs[run].length_ms = at;
        self.story.runs[run].end = RunEnd::Terminal(terminal);
        self.clock.run_at_ms = None;
    }

    fn on_requested(&mut self, requested: &RequestEntry) {
        let Some((run, sent)) = self.place() else { return };
        self.pause_before(run, sent);
        if self.has_news {
            self.turns += 1;
            self.has_news = false;
        }
        self.requests.insert(requested.request, self.story.requests.len());
        self.story.requests.push(TracedRequest {
            run,
            turn: self.turns,
            model: requested.model.clone(),
            attempt: requested.attempt,
            parts: requested.parts.clone(),
            sent,
            forks_usd: std::mem::take(&mut self.forks_usd),
            ..TracedRequest::default()
        });
    }

    /// A request that a timer lets out waited since the one before it failed.
    fn pause_before(&mut self, run: usize, sent: u64) {
        let Some(failed) = self.story.requests.last().filter(|last| last.run == run) else { return };
        let RequestOutcome::Failed(_, why) = &failed.outcome else { return };
        let (Some(from), true) = (failed.end, self.clock.is_timer) else { return };
        let about = why.clone();
        let took = sent.saturating_sub(from);
        self.mark_span(Some(took), MarkKind::Backoff, "pause before a retry", &about);
    }

    fn on_model_event(&mut self, request: RequestId, event: &ModelEvent) {
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
            ModelEvent::Note(note) => self.on_note(note),
        }
    }

    fn close_requests(&mut self, outcome: &RequestOutcome) {
        let Some(run) = self.story.runs.len().checked_sub(1) else { return };
        let at = self.story.runs[run].length_ms;
        let newest_first = self.story.requests.iter_mut().rev().take_while(|request| request.run == run);
        for request in newest_first.filter(|request| request.outcome == RequestOutcome::Open) {
            request.end = Some(at.max(request.sent));
            request.outcome = outcome.clone();
        }
    }

    fn on_spent(&mut self, spent: &SpendEntry) {
        self.story.total_usd = Some(spent.total_usd);
        if spent.spend.cost_usd.is_none() && !self.story.unpriced.contains(&spent.model) {
            self.story.unpriced.push(spent.model.clone());
        }
        let cost = spent.spend.cost_usd;
        if let Some(run) = self.story.runs.last_mut() {
            run.cost_usd += cost.unwrap_or_default();
        }
        let last = self.story.requests.last_mut();
        match (spent.is_by_fork, last) {
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

    fn on_said(&mut self, said: &UserEntry) {
        let who = speaker(&said.message);
        self.has_news |= matches!(said.message.origin, Origin::Prompt);
        let own = said.message.blocks.get(said.context..).unwrap_or_default();
        self.push_message(said.message.id, who, &text_of(own), false);
    }

    fn on_answered(&mut self, answered: &AnswerBlock) {
        let block = &answered.block;
        if let Some(tool_use) = block.as_tool_use() {
            self.on_made(answered.id, tool_use);
        }
        let who = match block.kind() {
            BlockKind::ToolUse(_) => "call",
            BlockKind::Thinking | BlockKind::RedactedThinking => "thinking",
            _ => "model",
        };
        self.push_message(answered.id, who, &text_of(std::slice::from_ref(block)), answered.is_aborted);
    }

    pub(crate) fn push_message(&mut self, id: MessageId, who: &'static str, text: &str, has_failed: bool) {
        let (run, at) = self.place().map_or((None, 0), |(run, at)| (Some(run), at));
        let text = text::beginning(text).to_owned();
        self.story.messages.push(MessageExcerpt { id, run, at, who, text, has_failed, is_retracted: false });
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

pub(crate) fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<Cow<'_, str>> = blocks.iter().map(text::of_block).collect();
    text::beginning(&texts.join("\n")).to_owned()
}

#[cfg(test)]
mod tests;
