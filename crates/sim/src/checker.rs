//! What must hold after every step of every run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::{Config, Effect, Effects, PermissionMode, PhaseName, State};
use windlass_protocol::{
    Block, CallFacts, CallId, CallKind, FileSeen, MessageId, ModelRequest, PathFact, RequestId, Terminal,
    ToolUse, Transcript, Update,
};

use crate::account::Account;
use crate::validity::check_request;

/// Watches one session from outside and knows only what the driver would know.
#[derive(Debug, Default)]
pub struct Checker {
    /// The request that is out.
    pub request: Option<RequestId>,
    /// Calls that run, and whether they are shared.
    pub running: BTreeMap<CallId, bool>,
    /// The facts that were given for each call.
    pub facts: BTreeMap<CallId, CallFacts>,
    /// The working directory, as the tools reported it.
    pub cwd: PathBuf,
    /// What is known of files, as the tools reported it.
    pub files: BTreeMap<PathBuf, FileSeen>,
    /// Files that tools made for reading.
    pub readable: BTreeSet<PathBuf>,
    /// Calls that are being examined.
    pub examining: BTreeSet<CallId>,
    /// Calls that somebody is asked about.
    pub asking: BTreeSet<CallId>,
    /// The text of the block that is not complete yet.
    pub spoken: String,
    /// Nothing more may start: the run was interrupted, refused or given up.
    pub ending: bool,
    body: Option<Arc<ModelRequest>>,
    account: Account,
    retrying: bool,
    started: BTreeSet<CallId>,
    /// Side-effecting calls that started in this run, by the provider's id.
    acted: Vec<Arc<str>>,
    shown: BTreeMap<MessageId, Block>,
    results_shown: Vec<CallId>,
    denied: BTreeSet<CallId>,
    cancelled: BTreeSet<CallId>,
    /// Calls that were answered or taken back.
    closed: BTreeSet<CallId>,
    dones: u32,
    requests: u32,
    edges: BTreeSet<(PhaseName, PhaseName)>,
}

type Verdict = Result<(), String>;

impl Checker {
    /// For a session that begins in this directory.
    #[must_use]
    pub fn new(cwd: PathBuf) -> Self {
        Self { cwd, ..Self::default() }
    }

    /// A new run of the same session begins.
    pub fn begin_run(&mut self) {
        *self = Self {
            edges: std::mem::take(&mut self.edges),
            facts: std::mem::take(&mut self.facts),
            cwd: std::mem::take(&mut self.cwd),
            files: std::mem::take(&mut self.files),
            readable: std::mem::take(&mut self.readable),
            body: self.body.take(),
            ..Self::default()
        };
    }

    /// A tool reports what it saw of a file. What was seen whole stays so while its content stays.
    pub fn on_seen(&mut self, seen: &FileSeen) {
        let known_whole =
            self.files.get(&seen.path).is_some_and(|known| known.hash == seen.hash && known.whole);
        self.files.insert(seen.path.clone(), FileSeen { whole: seen.whole || known_whole, ..seen.clone() });
    }

    /// The edges between phases that were taken so far.
    #[must_use]
    pub fn edges(&self) -> &BTreeSet<(PhaseName, PhaseName)> {
        &self.edges
    }

    /// Checks the effects of one step and the state it led to.
    pub fn check(&mut self, state: &State, effects: &Effects, config: &Config, now_ms: u64) -> Verdict {
        self.edges.extend(effects.edges());
        for effect in effects {
            if self.dones > 0 {
                return Err(format!("an effect after the end: {effect:?}"));
            }
            if let Effect::Emit(update) = effect {
                self.account.book(update, now_ms, config)?;
            }
            self.check_effect(effect, config)?;
        }
        if self.running.len() > config.shared_calls_max.max(1) {
            return Err(format!("{} calls run at once", self.running.len()));
        }
        if self.running.len() > 1 && self.running.values().any(|shared| !shared) {
            return Err("an exclusive call does not run alone".into());
        }
        match state.terminal() {
            Some(_) => self.check_end(state, config),
            None if self.dones > 0 => Err("the end was reported, but the run goes on".into()),
            None => Ok(()),
        }
    }

    fn check_effect(&mut self, effect: &Effect, config: &Config) -> Verdict {
        match effect {
            Effect::Emit(update) => self.check_update(update),
            Effect::CallModel { request, body } => self.check_call_model(*request, body, config),
            Effect::CancelModel(request) => {
                if self.request.take() == Some(*request) {
                    Ok(())
                } else {
                    Err("a request was cancelled that is not out".into())
                }
            }
            Effect::RunTool { call, tool_use, cwd, seen, .. } => {
                self.check_context(*call, cwd, seen)?;
                self.check_run_tool(*call, tool_use, config)
            }
            Effect::CancelTool(call) if !self.running.contains_key(call) => {
                Err(format!("{call:?} was cancelled but does not run"))
            }
            Effect::CancelTool(call) if !self.cancelled.insert(*call) => {
                Err(format!("{call:?} was cancelled twice"))
            }
            Effect::Examine { call, .. } => {
                self.check_holds(*call)?;
                self.examining.insert(*call);
                Ok(())
            }
            Effect::AbandonTool(call) => self
                .running
                .remove(call)
                .map(|_| ())
                .ok_or_else(|| format!("{call:?} was abandoned but does not run")),
            Effect::CancelTool(_) | Effect::StartTimer { .. } => Ok(()),
            other => Err(format!("nothing here asks for {other:?}")),
        }
    }

    /// Nothing is prepared while an earlier call is exclusive, or may turn out to be.
    fn check_holds(&self, call: CallId) -> Verdict {
        let is_open = |earlier: &&CallId| **earlier < call && !self.closed.contains(earlier);
        if let Some(earlier) = self.examining.iter().find(is_open) {
            return Err(format!("{call:?} is prepared before {earlier:?} is"));
        }
        let is_exclusive = |call: &&CallId| self.facts.get(call).is_some_and(|facts| !facts.shared);
        let asked_or_running = self.asking.iter().chain(self.running.keys());
        match asked_or_running.filter(is_open).find(is_exclusive) {
            Some(earlier) => Err(format!("{call:?} is prepared although the exclusive {earlier:?} is open")),
            None => Ok(()),
        }
    }

    /// Once the end is decided, what runs was told to stop; `spared` says which calls may finish.
    pub fn check_stopped(&self, spared: impl Fn(CallKind) -> bool) -> Verdict {
        let is_spared = |call: &CallId| self.facts.get(call).is_some_and(|facts| spared(facts.kind));
        let runs_on = |call: &&CallId| !self.cancelled.contains(call) && !is_spared(call);
        match self.running.keys().find(runs_on) {
            Some(call) => Err(format!("{call:?} runs on although the end is decided")),
            None => Ok(()),
        }
    }

    fn check_call_model(&mut self, request: RequestId, body: &Arc<ModelRequest>, config: &Config) -> Verdict {
        if self.request.replace(request).is_some() {
            return Err("two requests are out at once".into());
        }
        if !self.running.is_empty() {
            return Err("a request goes out while calls run".into());
        }
        let cap = body.output_tokens_max;
        if cap > config.output.explicit.unwrap_or(config.output.escalated)
            || cap > config.model.output_tokens_max
        {
            return Err(format!("a cap of {cap} tokens is more than was set, or than the model can say"));
        }
        check_request(&body.transcript)?;
        if let Some(before) = &self.body {
            if self.retrying && !Arc::ptr_eq(before, body) {
                return Err("a retry changed the request".into());
            }
            if !is_prefix(&before.transcript, &body.transcript) {
                return Err("an old message changed without a recorded reason".into());
            }
        }
        self.check_breakpoints(body)?;
        self.requests += u32::from(!self.retrying);
        self.body = Some(body.clone());
        Ok(())
    }

    /// A call sees what the calls before it changed.
    fn check_context(&self, call: CallId, cwd: &Path, seen: &[FileSeen]) -> Verdict {
        if cwd != self.cwd {
            return Err(format!("{call:?} runs in {}, not in {}", cwd.display(), self.cwd.display()));
        }
        let paths = self.facts.get(&call).map_or(&[][..], |facts| &facts.paths);
        let known: Vec<&FileSeen> =
            paths.iter().filter_map(|path| self.files.get(path.resolved.as_ref()?)).collect();
        if known.iter().copied().ne(seen) {
            Err(format!("{call:?} is not told what is known of its files"))
        } else {
            Ok(())
        }
    }

    /// The provider's cache ends with the previous request and with this one.
    fn check_breakpoints(&self, body: &ModelRequest) -> Verdict {
        let last = |request: &ModelRequest| request.transcript.len() - 1;
        let before = self.body.as_deref().filter(|_| !self.retrying).map(last);
        let missing = before.into_iter().chain([last(body)]).find(|index| !body.breakpoints.contains(index));
        missing.map_or(Ok(()), |index| Err(format!("no cache breakpoint at message {index}")))
    }

    fn check_run_tool(&mut self, call: CallId, tool_use: &ToolUse, config: &Config) -> Verdict {
        if self.ending {
            return Err(format!("{call:?} was started although the end is decided"));
        }
        if !self.started.insert(call) {
            return Err(format!("{call:?} was started twice"));
        }
        if self.denied.contains(&call) {
            return Err(format!("{call:?} was denied and started"));
        }
        let Some(facts) = self.facts.get(&call) else {
            return Err(format!("{call:?} was started without being examined"));
        };
        let changes = matches!(facts.kind, CallKind::Edit | CallKind::Execute);
        if changes && config.permissions.mode == PermissionMode::Plan {
            return Err("a call that changes something ran in plan mode".into());
        }
        if config.permissions.disallowed.contains(&tool_use.name) {
            return Err("a disallowed tool ran".into());
        }
        if !facts.kind.is_read_only() {
            self.acted.push(tool_use.id.clone());
        }
        if !facts.shared && !self.running.is_empty() {
            return Err("an exclusive call started beside others".into());
        }
        self.running.insert(call, facts.shared);
        Ok(())
    }

    fn check_update(&mut self, update: &Update) -> Verdict {
        match update {
            Update::Block { block, aborted: true, .. } if block.as_text() != Some(&self.spoken) => {
                Err(format!("{:?} was said, {block:?} was kept", self.spoken))
            }
            Update::Block { id, block, .. } => self.show(*id, block),
            Update::ToolProgress { call, .. } if self.closed.contains(call) => {
                Err(format!("progress of {call:?}, which was taken back"))
            }
            Update::Question(question) => {
                self.asking.insert(question.call);
                self.check_asked(question.call)
            }
            Update::ToolResult { id, call, result, .. } => {
                self.closed.insert(*call);
                if self.running.contains_key(call) {
                    return Err(format!("{call:?} was answered while it ran"));
                }
                if self.results_shown.last().is_some_and(|last| last >= call) {
                    return Err(format!("{call:?} was answered out of order or twice"));
                }
                self.results_shown.push(*call);
                self.show(*id, result)
            }
            Update::Retracted { messages, calls } => {
                self.closed.extend(calls);
                let unknown = messages.iter().find(|id| self.shown.remove(id).is_none());
                unknown.map_or(Ok(()), |id| Err(format!("{id:?} was retracted but never shown")))
            }
            Update::Requesting { attempt, .. } => {
                self.retrying = *attempt > 1;
                Ok(())
            }
            Update::Repaired(repairs) => {
                Err(format!("a conversation that nobody damaged was repaired: {repairs:?}"))
            }
            Update::Denied(denial) => {
                self.denied.insert(denial.call);
                if denial.by_person { Ok(()) } else { self.check_asked(denial.call) }
            }
            Update::Done(_) => {
                self.dones += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What a tool made for reading is free to read.
    fn check_asked(&self, call: CallId) -> Verdict {
        let Some(facts) = self.facts.get(&call) else { return Ok(()) };
        let free = |path: &PathFact| path.resolved.as_ref().is_some_and(|path| self.readable.contains(path));
        if facts.kind == CallKind::Read && facts.paths.iter().all(free) {
            return Err(format!("{call:?} reads what was made for reading, and is not free"));
        }
        Ok(())
    }

    fn show(&mut self, id: MessageId, block: &Block) -> Verdict {
        if self.shown.insert(id, block.clone()).is_some() {
            return Err(format!("{id:?} was used twice"));
        }
        Ok(())
    }

    fn check_end(&self, state: &State, config: &Config) -> Verdict {
        if self.dones != 1 {
            return Err(format!("the end was reported {} times", self.dones));
        }
        if self.request.is_some() || !self.running.is_empty() {
            return Err("something still runs at the end".into());
        }
        if config.turns_max.is_some_and(|limit| self.requests > limit) {
            return Err(format!("{} requests exceed the limit of turns", self.requests));
        }
        if state.terminal() == Some(Terminal::MaxTurns) && config.turns_max != Some(self.requests) {
            return Err(format!("the limit of turns ended the run after {} requests", self.requests));
        }
        self.check_transcript(state)
    }

    /// What is left behind can be sent again, and tells all that was shown and done.
    fn check_transcript(&self, state: &State) -> Verdict {
        let mut next = state.messages().clone();
        let prompt = windlass_protocol::Message::user(
            MessageId(u64::MAX),
            windlass_protocol::Origin::Prompt,
            vec![Block::text("next")],
        );
        next.push(Arc::new(prompt));
        check_request(&next)?;
        let blocks: BTreeSet<&str> =
            next.iter().flat_map(|message| &message.blocks).map(Block::json).collect();
        let lost = self.shown.values().find(|block| !block.is_thinking() && !blocks.contains(block.json()));
        if let Some(lost) = lost {
            return Err(format!("shown, but not in the transcript: {lost:?}"));
        }
        let tool_uses: BTreeSet<&str> = next
            .iter()
            .flat_map(|message| &message.blocks)
            .filter_map(|block| block.as_tool_use())
            .map(|tool_use| &*tool_use.id)
            .collect();
        let forgotten = self.acted.iter().find(|id| !tool_uses.contains(&***id));
        forgotten.map_or(Ok(()), |id| Err(format!("{id} has acted and is forgotten")))
    }
}

fn is_prefix(before: &Transcript, after: &Transcript) -> bool {
    before.len() <= after.len() && before.iter().zip(after.iter()).all(|(a, b)| Arc::ptr_eq(a, b))
}
