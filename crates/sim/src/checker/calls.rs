//! The calls of a run: examined before they start, started once, alone or beside others as they may, answered once, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_core::{Config, Effect};
use windlass_permission::PermissionMode;
use windlass_protocol::{
    Block, CallFacts, CallId, CallKind, FileSeen, HookEvent, MessageId, PathFact, Question, SessionSnapshot,
    ToolUse, Update,
};

/// Watches the calls of one session.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Calls that run, and whether they are shared.
    pub(crate) running: BTreeMap<CallId, bool>,
    /// The facts that were given for each call.
    pub(crate) facts: BTreeMap<CallId, CallFacts>,
    /// The working directory, as the tools reported it.
    pub(crate) cwd: PathBuf,
    /// What is known of files, as the tools reported it.
    pub(crate) files: BTreeMap<PathBuf, FileSeen>,
    /// Files that tools made for reading.
    pub(crate) readable: BTreeSet<PathBuf>,
    /// Calls that are being examined.
    pub(crate) examining: BTreeSet<CallId>,
    /// Calls that somebody is asked about.
    pub(crate) asking: BTreeSet<CallId>,
    /// Nothing more may start: the run was interrupted, refused or given up.
    pub(crate) is_ending: bool,
    /// Side-effecting calls that started in this run, with the provider's id.
    pub(crate) acted: Vec<(CallId, Arc<str>)>,
    started: BTreeSet<CallId>,
    shown: BTreeMap<MessageId, Block>,
    results_shown: Vec<CallId>,
    denied: BTreeSet<CallId>,
    cancelled: BTreeSet<CallId>,
    /// Calls that were answered or taken back.
    closed: BTreeSet<CallId>,
    /// Not everything that was asked for was done.
    pub(super) is_blind: bool,
}

type Verdict = Result<(), String>;

impl Calls {
    pub(super) fn new(cwd: PathBuf) -> Self {
        Self { cwd, ..Self::default() }
    }

    /// The same session, a new run.
    pub(super) fn next_run(&mut self) -> Self {
        Self {
            cwd: std::mem::take(&mut self.cwd),
            files: std::mem::take(&mut self.files),
            readable: std::mem::take(&mut self.readable),
            ..Self::default()
        }
    }

    /// The session knows this.
    pub(super) fn rebase(&mut self, facts: &SessionSnapshot) {
        self.cwd.clone_from(&facts.cwd);
        self.files = facts.files.iter().map(|seen| (seen.path.clone(), seen.clone())).collect();
        self.readable = facts.readable.iter().cloned().collect();
    }

    /// A tool reports what it saw of a file. What was seen whole stays so while its content stays.
    pub(crate) fn on_seen(&mut self, seen: &FileSeen) {
        let known_whole =
            self.files.get(&seen.path).is_some_and(|known| known.hash == seen.hash && known.is_whole);
        self.files
            .insert(seen.path.clone(), FileSeen { is_whole: seen.is_whole || known_whole, ..seen.clone() });
    }

    pub(super) fn check_overlap(&self, config: &Config) -> Verdict {
        if self.running.len() > config.shared_calls_max.max(1) {
            return Err(format!("{} calls run at once", self.running.len()));
        }
        if self.running.len() > 1 && self.running.values().any(|shared| !shared) {
            return Err("an exclusive call does not run alone".into());
        }
        Ok(())
    }

    pub(super) fn check_effect(&mut self, effect: &Effect, config: &Config) -> Verdict {
        match effect {
            Effect::RunTool { call, tool_use, cwd, facts, seen, .. } => {
                if self.facts.get(call) != Some(&**facts) {
                    return Err(format!("{call:?} runs by other facts than those of its input"));
                }
                self.check_context(*call, cwd, seen)?;
                self.check_run_tool(*call, tool_use, config)
            }
            Effect::CancelTool(call) if !self.running.contains_key(call) => {
                Err(format!("{call:?} was cancelled but does not run"))
            }
            Effect::CancelTool(call) if !self.cancelled.insert(*call) && !self.is_blind => {
                Err(format!("{call:?} was cancelled twice"))
            }
            Effect::Examine(call, _, _) => {
                self.check_holds(*call)?;
                self.examining.insert(*call);
                Ok(())
            }
            Effect::AbandonTool(call) => self
                .running
                .remove(call)
                .map(|_| ())
                .ok_or_else(|| format!("{call:?} was abandoned but does not run")),
            _ => Ok(()),
        }
    }

    /// Nothing is prepared while an earlier call is exclusive, or may turn out to be.
    fn check_holds(&self, call: CallId) -> Verdict {
        let is_open = |earlier: &&CallId| **earlier < call && !self.closed.contains(earlier);
        if let Some(earlier) = self.examining.iter().find(is_open) {
            return Err(format!("{call:?} is prepared before {earlier:?} is"));
        }
        let is_exclusive = |call: &&CallId| self.facts.get(call).is_some_and(|facts| !facts.is_shared);
        let asked_or_running = self.asking.iter().chain(self.running.keys());
        match asked_or_running.filter(is_open).find(is_exclusive) {
            Some(earlier) => Err(format!("{call:?} is prepared although the exclusive {earlier:?} is open")),
            None => Ok(()),
        }
    }

    /// Once the end is decided, what runs was told to stop; `spared` says which calls may finish.
    pub(crate) fn check_stopped(&self, spared: impl Fn(CallKind) -> bool) -> Verdict {
        let is_spared = |call: &CallId| self.facts.get(call).is_some_and(|facts| spared(facts.kind));
        let runs_on = |call: &&CallId| !self.cancelled.contains(call) && !is_spared(call);
        match self.running.keys().find(runs_on) {
            Some(call) => Err(format!("{call:?} runs on although the end is decided")),
            None => Ok(()),
        }
    }

    /// A call sees what the calls before it changed. What was shown of a file is the core's own matter.
    fn check_context(&self, call: CallId, cwd: &Path, seen: &[FileSeen]) -> Verdict {
        if cwd != self.cwd {
            return Err(format!("{call:?} runs in {}, not in {}", cwd.display(), self.cwd.display()));
        }
        let paths = self.facts.get(&call).map_or(&[][..], |facts| &facts.paths);
        let known = paths.iter().filter_map(|path| self.files.get(path.resolved.as_ref()?));
        let key = |file: &FileSeen| (file.path.clone(), file.hash, file.is_whole);
        if known.map(key).eq(seen.iter().map(key)) {
            Ok(())
        } else {
            Err(format!("{call:?} is not told what is known of its files"))
        }
    }

    fn check_run_tool(&mut self, call: CallId, tool_use: &ToolUse, config: &Config) -> Verdict {
        if self.is_ending {
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
        if config.permissions.rules.removes(&tool_use.name) {
            return Err("a disallowed tool ran".into());
        }
        if !facts.kind.is_read_only() {
            self.acted.push((call, tool_use.id.clone()));
        }
        if !facts.is_shared && !self.running.is_empty() {
            return Err("an exclusive call started beside others".into());
        }
        self.running.insert(call, facts.is_shared);
        Ok(())
    }

    pub(super) fn check_update(&mut self, update: &Update, config: &Config) -> Verdict {
        match update {
            Update::Block { id, block, .. } => self.show(*id, block),
            Update::ToolProgress { call, .. } if self.closed.contains(call) => {
                Err(format!("progress of {call:?}, which was taken back"))
            }
            Update::Question(question) => {
                self.asking.insert(question.call);
                self.check_asked(question, config)
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
                if let Some((call, _)) = self.acted.iter().find(|(call, _)| calls.contains(call)) {
                    return Err(format!("{call:?} has acted and is taken back"));
                }
                let unknown = messages.iter().find(|id| self.shown.remove(id).is_none());
                unknown.map_or(Ok(()), |id| Err(format!("{id:?} was retracted but never shown")))
            }
            Update::Denied(denial) => {
                self.denied.insert(denial.call);
                Ok(())
            }
            Update::Requesting { .. } | Update::Continued(_) => {
                self.is_ending = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What a tool made for reading is free to read, unless a hook or the guard against repetitions wants it asked.
    fn check_asked(&self, question: &Question, config: &Config) -> Verdict {
        let Some(facts) = self.facts.get(&question.call) else { return Ok(()) };
        let free = |path: &PathFact| path.resolved.as_ref().is_some_and(|path| self.readable.contains(path));
        let may_be_asked = config.hooks.contains(&HookEvent::PreToolUse) || question.is_repeated;
        if !may_be_asked && facts.kind == CallKind::Read && facts.paths.iter().all(free) {
            return Err(format!("{:?} reads what was made for reading, and is not free", question.call));
        }
        Ok(())
    }

    fn show(&mut self, id: MessageId, block: &Block) -> Verdict {
        if self.shown.insert(id, block.clone()).is_some() {
            return Err(format!("{id:?} was used twice"));
        }
        Ok(())
    }
}
