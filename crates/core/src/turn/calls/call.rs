//! One call on its way: parsed and validated, shown to hooks, permitted, run, shown to hooks again, answered.

use std::path::PathBuf;
use std::sync::Arc;

use windlass_permission::{self as permission, PermissionCase};
use windlass_protocol::{
    Admission, Answer, Block, CallFacts, CallId, CallIntent, CallKind, CallResult, CallRuling, Denial,
    FinishedCall, ForkId, HookId, HookPermission, Interrupt, MessageId, Question, RawValue, Record, Ruling,
    ToolInput, ToolOutput, ToolSpec, ToolUse, Update, Verdict,
};

use super::hooks::Review;
use crate::effect::Effect;
use crate::state::Carry;
use crate::step::Cx;
use crate::turn::repeats::{self, CallEffect, WaitKind};

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(super) id: CallId,
    /// The block of the answer that made it.
    pub(super) asked_by: MessageId,
    pub(super) tool_use: ToolUse,
    /// The tool's own name, once it is known; the model may use a former one.
    pub(super) tool: Arc<str>,
    pub(super) stage: CallStage,
    /// A person has approved this very input.
    pub(super) is_approved: bool,
    /// Hooks were asked; a changed input does not ask them again.
    pub(super) has_asked_hooks: bool,
    /// Hooks were asked in place of a person; they are not asked twice.
    pub(super) has_requested_permission: bool,
    /// What hooks want to become of it.
    pub(super) permission: Option<HookPermission>,
    /// When it started and when it ended.
    pub(super) ran_ms: (u64, u64),
    /// Which of its commands are known to wait, once it has started.
    pub(super) waits: WaitKind,
    /// The tool is done, and nobody was told.
    pub(super) is_end_untold: bool,
    /// What the model is told with the result.
    pub(super) remarks: Vec<String>,
    /// A hook said not to go on, and why.
    pub(super) stop: Option<StopWish>,
    /// A hook put it off.
    pub(super) is_deferred: bool,
    /// It came to the same too often, and nobody wants it again.
    pub(super) is_repeated: bool,
    /// Its input is empty, perhaps because the response was cut before it came: it waits for what follows there.
    pub(super) is_held: bool,
    /// It must end within the time a stop may take.
    pub(super) is_stopping: bool,
    /// It was told to stop.
    pub(super) is_cancelled: bool,
    /// It started, and does more than read.
    pub(super) has_acted: bool,
    /// Its result as it was shown.
    pub(super) shown: Option<CallResult>,
}

/// A hook said not to go on.
#[derive(Clone, Debug)]
pub(super) struct StopWish {
    /// What tells the user so.
    pub(super) text: String,
    /// It was asked before the call: nothing more happens. After a call, the others are still answered.
    pub(super) is_immediate: bool,
}

#[derive(Clone, Debug)]
pub(super) enum CallStage {
    /// Its turn to be examined has not come.
    Queued,
    /// The driver is looking at its input.
    Examining,
    /// Hooks are asked before it.
    Hooking { hook: HookId, facts: Arc<CallFacts> },
    /// Hooks are asked in place of a person.
    Requesting { hook: HookId, facts: Arc<CallFacts> },
    /// Somebody must decide; `is_repeated` says that it came to the same too often.
    Asking { facts: Arc<CallFacts>, is_repeated: bool },
    /// Hooks hear that a model denied it.
    Denying { hook: HookId, reason: String },
    /// A model judges it in the user's place.
    Classifying { fork: ForkId, facts: Arc<CallFacts>, reason: String },
    /// It may run as soon as the others let it.
    Ready(Arc<CallFacts>),
    /// It runs.
    Running { facts: Arc<CallFacts> },
    /// It has run, and hooks are asked after it.
    Reviewing { hook: HookId, facts: Arc<CallFacts>, output: ToolOutput, review: Review },
    /// It is answered.
    Finished(ToolOutput),
}

impl CallStage {
    /// Whether the call is on its way and may not overlap with later ones. Its input as it is now decides.
    pub(super) fn is_exclusive(&self) -> bool {
        match self {
            Self::Hooking { facts, .. }
            | Self::Requesting { facts, .. }
            | Self::Asking { facts, .. }
            | Self::Classifying { facts, .. }
            | Self::Running { facts }
            | Self::Reviewing { facts, .. } => !facts.is_shared,
            Self::Queued | Self::Examining | Self::Denying { .. } | Self::Ready(_) | Self::Finished(_) => {
                false
            }
        }
    }
}

impl Call {
    pub(super) fn new(id: CallId, asked_by: MessageId, tool_use: ToolUse) -> Self {
        Self {
            id,
            asked_by,
            tool: tool_use.name.clone(),
            is_held: has_no_input(&tool_use),
            tool_use,
            stage: CallStage::Queued,
            is_approved: false,
            has_asked_hooks: false,
            has_requested_permission: false,
            permission: None,
            ran_ms: (0, 0),
            waits: WaitKind::None,
            is_end_untold: false,
            remarks: Vec::new(),
            stop: None,
            is_deferred: false,
            is_repeated: false,
            is_stopping: false,
            is_cancelled: false,
            has_acted: false,
            shown: None,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.stage, CallStage::Finished(_))
    }

    /// Whether its tool may still be called.
    pub(super) fn can_start(&self) -> bool {
        !matches!(
            self.stage,
            CallStage::Running { .. } | CallStage::Reviewing { .. } | CallStage::Finished(_)
        )
    }

    /// The first stage: what cannot be examined is answered at once.
    pub(super) fn prepare(&mut self, cx: &mut Cx<'_>) {
        if cx.config.source.is_summariser() {
            self.refuse(TOOLS_OFF, cx);
        } else if matches!(self.tool_use.input, ToolInput::Unparsed(_)) {
            self.answer_unrun(ToolOutput::error(TRUNCATED), cx);
        } else {
            let cwd = cx.state.carry.tools.cwd.clone();
            cx.effects.push(Effect::Examine(self.id, self.tool_use.clone(), cwd));
            self.stage = CallStage::Examining;
        }
    }

    pub(crate) fn on_examined(&mut self, admission: Admission, cx: &mut Cx<'_>) {
        match admission {
            _ if !matches!(self.stage, CallStage::Examining) => (),
            Admission::Ready { tool, facts } => {
                self.tool = tool;
                self.ask_hooks_before(Arc::new(facts), cx);
            }
            Admission::Unknown => self.refuse(&unknown(&self.tool_use.name, &cx.config.tools), cx),
            Admission::Invalid(text) => self.refuse(&text, cx),
        }
    }

    /// Lets the permission stages decide. An input a person approved is not asked about again, but a denial holds. A call
    /// that came to the same too often is asked about whatever allows it.
    pub(super) fn decide(&mut self, facts: Arc<CallFacts>, cx: &mut Cx<'_>) {
        let ruling = permission::decide_call(&self.case(&facts, cx));
        let can_ask = permission::can_ask(cx.permissions());
        let count = cx.state.carry.repeats.count(&self.tool_use);
        let is_repeated = !self.is_approved && cx.config.repeats.stops(count, can_ask);
        self.record(&ruling, cx);
        match ruling.verdict {
            Verdict::Deny if ruling.is_undecided => {
                self.ask_permission_hooks(facts, ruling.reason, is_repeated, cx);
            }
            Verdict::Deny => self.deny(ruling.reason, /* by a person */ false, cx),
            _ if is_repeated && !can_ask => self.refuse_repetition(count),
            Verdict::Ask | Verdict::Classify if self.is_approved => self.stage = CallStage::Ready(facts),
            Verdict::Ask | Verdict::Classify if is_repeated => {
                let reason = format!("{} {}", ruling.reason, same_again(count));
                self.ask_permission_hooks(facts, reason, is_repeated, cx);
            }
            Verdict::Allow if is_repeated => {
                self.ask_permission_hooks(facts, same_again(count), is_repeated, cx);
            }
            Verdict::Ask => self.ask_permission_hooks(facts, ruling.reason, is_repeated, cx),
            Verdict::Classify => self.classify(facts, ruling.reason, cx),
            Verdict::Allow => self.stage = CallStage::Ready(facts),
        }
    }

    /// The call as the permission stages see it.
    pub(super) fn case<'a>(&'a self, facts: &'a CallFacts, cx: &'a Cx<'_>) -> PermissionCase<'a> {
        let carry = &cx.state.carry;
        PermissionCase {
            tool: &self.tool,
            profile: cx.config.profile(&self.tool),
            input: match &self.tool_use.input {
                ToolInput::Parsed(json) => json,
                ToolInput::Unparsed(_) => RawValue::NULL,
            },
            facts,
            hook: self.permission.as_ref(),
            is_doubtful: carry.doubtful.contains(&self.input_hash()),
            readable: &carry.tools.readable,
            permissions: cx.permissions(),
            roots: carry.grants.roots(&cx.config.roots),
            cwd: &carry.tools.cwd,
        }
    }

    /// Every decision is known afterwards, with what led to it.
    pub(super) fn record(&self, ruling: &Ruling, cx: &mut Cx<'_>) {
        cx.persist(Record::Ruled(CallRuling {
            call: self.id,
            tool_use_id: self.tool_use.id.clone(),
            tool: self.tool.clone(),
            ruling: ruling.clone(),
        }));
    }

    pub(super) fn ask(&mut self, facts: Arc<CallFacts>, reason: String, is_repeated: bool, cx: &mut Cx<'_>) {
        let tool_use = self.tool_use.clone();
        let case = self.case(&facts, cx);
        let offers = permission::offers(&case);
        let each_time = offers.is_empty().then(|| permission::why_each_time(&case));
        cx.emit(Update::Question(Question {
            call: self.id,
            tool_use,
            facts: (*facts).clone(),
            reason,
            is_repeated,
            offers,
            each_time,
        }));
        self.stage = CallStage::Asking { facts, is_repeated };
    }

    pub(crate) fn on_answered(&mut self, answer: Answer, cx: &mut Cx<'_>) {
        let CallStage::Asking { facts, is_repeated } = &self.stage else { return };
        if !matches!(answer, Answer::Deny(_)) {
            if *is_repeated {
                cx.state.carry.repeats.forgive(&self.tool_use);
            }
            let decided = self.input_hash();
            cx.state.carry.doubtful.retain(|hash| *hash != decided);
        }
        match answer {
            Answer::Allow => self.stage = CallStage::Ready(facts.clone()),
            Answer::AllowChanged(input) => {
                self.is_approved = true;
                self.change_input(input);
            }
            Answer::Deny(text) => self.deny(text, /* by a person */ true, cx),
        }
    }

    /// Another input goes through parsing and validation like the first.
    pub(super) fn change_input(&mut self, input: Arc<RawValue>) {
        self.tool_use = ToolUse { input: input.into(), ..self.tool_use.clone() };
        self.stage = CallStage::Queued;
    }

    pub(super) fn start(&mut self, facts: Arc<CallFacts>, cx: &mut Cx<'_>) {
        let tools = &cx.state.carry.tools;
        let resolved = facts.paths.iter().filter_map(|path| path.resolved.as_ref());
        let seen = resolved.filter_map(|path| tools.files.get(path).cloned()).collect();
        let (tool_use, cwd) = (self.tool_use.clone(), tools.cwd.clone());
        let is_confined = permission::is_confined(&self.case(&facts, cx));
        self.has_acted = !facts.kind.is_read_only();
        self.waits = facts.commands.as_deref().map(repeats::waits).unwrap_or_default();
        self.ran_ms.0 = cx.at_ms;
        self.intend(&facts, cx);
        self.stage = CallStage::Running { facts: facts.clone() };
        cx.emit(Update::ToolStarted { call: self.id, tool_use: tool_use.clone(), facts: (*facts).clone() });
        let permissions = cx.state.carry.grants.changed_permissions();
        cx.effects.push(Effect::RunTool {
            call: self.id,
            tool_use,
            cwd,
            facts,
            seen,
            permissions,
            is_confined,
        });
    }

    /// What is about to happen is known before it does: on the disk, if it does more than read.
    fn intend(&self, facts: &CallFacts, cx: &mut Cx<'_>) {
        let record = Record::Intended(CallIntent {
            call: self.id,
            tool_use_id: self.tool_use.id.clone(),
            tool: self.tool.clone(),
            kind: facts.kind,
            input_hash: self.input_hash(),
            changes: changes(facts, cx),
        });
        cx.persist_for(self.has_acted, record);
    }

    pub(crate) fn on_finished(&mut self, output: ToolOutput, cx: &mut Cx<'_>) {
        let CallStage::Running { facts } = &self.stage else { return };
        let facts = facts.clone();
        let (call, tool_use_id, is_error) = (self.id, self.tool_use.id.clone(), output.is_error);
        let record = Record::Finished(FinishedCall { call, tool_use_id, is_error });
        cx.persist_for(self.has_acted, record);
        self.stop_clock(cx);
        let from = cx.state.carry.tools.cwd.clone();
        apply(&output, &mut cx.state.carry);
        self.tell_hooks_moved(&from, output, facts, cx);
    }

    /// The tool is done with the call, or is not waited for any longer.
    pub(super) fn stop_clock(&mut self, cx: &Cx<'_>) {
        self.ran_ms.1 = cx.at_ms;
        self.is_end_untold = true;
    }

    /// Tells, once, that the tool is done.
    pub(super) fn tell_finished(&mut self, cx: &mut Cx<'_>) {
        if std::mem::take(&mut self.is_end_untold) {
            cx.emit(Update::ToolFinished { call: self.id, duration_ms: self.duration_ms() });
        }
    }
    pub(super) fn duration_ms(&self) -> u64 {
        self.ran_ms.1.saturating_sub(self.ran_ms.0)
    }

    pub(super) fn input_hash(&self) -> u64 {
        input_hash(&self.tool, &self.tool_use)
    }

    /// Stops the call. What has not started never will; what may finish is left to, within the time a stop may take.
    pub(super) fn cancel(&mut self, interrupt: Interrupt, cx: &mut Cx<'_>) {
        match &self.stage {
            CallStage::Finished(_) => (),
            CallStage::Running { facts } => {
                self.is_stopping = true;
                if !can_finish(facts.kind, interrupt) && !std::mem::replace(&mut self.is_cancelled, true) {
                    cx.effects.push(Effect::CancelTool(self.id));
                }
            }
            CallStage::Reviewing { hook, output, .. } => {
                cx.effects.push(Effect::CancelHooks(*hook));
                self.finish(output.clone());
            }
            _ => self.leave_unrun(NOT_STARTED, cx),
        }
    }

    /// Answers a call that has not started and never will.
    pub(super) fn leave_unrun(&mut self, text: &str, cx: &mut Cx<'_>) {
        match self.stage {
            CallStage::Hooking { hook, .. }
            | CallStage::Requesting { hook, .. }
            | CallStage::Denying { hook, .. } => {
                cx.effects.push(Effect::CancelHooks(hook));
            }
            CallStage::Classifying { fork, .. } => cx.cancel_fork(fork),
            _ => (),
        }
        self.finish(ToolOutput::error(text));
    }

    /// Answers a call that nobody drives any more with what is known of it.
    pub(super) fn close(&mut self) {
        match &self.stage {
            CallStage::Finished(_) => (),
            CallStage::Reviewing { output, .. } => self.finish(output.clone()),
            CallStage::Running { .. } => self.finish(ToolOutput::error(ABANDONED)),
            _ => self.finish(ToolOutput::error(NOT_STARTED)),
        }
    }

    /// The call never reaches a tool; hosts tell that by the tag.
    fn refuse(&mut self, text: &str, cx: &mut Cx<'_>) {
        let tagged = format!("<tool_use_error>{text}</tool_use_error>");
        self.answer_unrun(ToolOutput::error(&tagged), cx);
    }

    fn refuse_repetition(&mut self, count: u32) {
        self.is_repeated = true;
        let text = format!(
            "Not run. {} Another try needs approval, and this session is not interactive.",
            same_again(count)
        );
        self.finish(ToolOutput::error(&text));
    }

    pub(super) fn deny(&mut self, reason: String, is_by_person: bool, cx: &mut Cx<'_>) {
        self.answer_unrun(ToolOutput::error(&reason), cx);
        let denial = Denial { call: self.id, tool_use: self.tool_use.clone(), reason, is_by_person };
        cx.state.ledger.deny(denial.clone());
        cx.emit(Update::Denied(denial));
    }

    /// Answers a call that is not run. There is nothing to ask about: one that came to this too often is the last.
    fn answer_unrun(&mut self, output: ToolOutput, cx: &mut Cx<'_>) {
        self.is_repeated |= cx.config.repeats.ends(cx.state.carry.repeats.count(&self.tool_use));
        self.conclude(output, cx);
    }

    /// The call came to this. An interrupted one says nothing about the next.
    pub(super) fn conclude(&mut self, output: ToolOutput, cx: &mut Cx<'_>) {
        if !self.is_stopping {
            let effect = if repeats::has_waited(self.waits, self.duration_ms(), output.is_error) {
                CallEffect::Waited
            } else if self.has_acted && !output.is_error {
                CallEffect::Changed
            } else {
                CallEffect::Looked
            };
            let count = cx.state.carry.repeats.note(&self.tool_use, &output, effect);
            self.remarks.extend(cx.config.repeats.note(count));
        }
        self.finish(output);
    }

    /// The last stage: the result, and what the model is told with it.
    pub(super) fn finish(&mut self, mut output: ToolOutput) {
        output.content.extend(self.remarks.drain(..).map(|remark| Block::text(&remark)));
        self.is_held = false;
        self.stage = CallStage::Finished(output);
    }

    pub(super) fn result(&self) -> Option<Block> {
        match (&self.shown, &self.stage) {
            (Some(shown), _) => Some(shown.result.clone()),
            (None, CallStage::Finished(output)) => {
                Some(Block::tool_result(&self.tool_use.id, &output.content, output.is_error))
            }
            _ => None,
        }
    }
}

/// A hash of a tool's own name and the input, the same on every machine and in every version.
pub(crate) fn input_hash(tool: &str, tool_use: &ToolUse) -> u64 {
    let bytes = tool.bytes().chain([0]).chain(tool_use.input.get().bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What a finished call changes for later ones.
pub(crate) fn apply(output: &ToolOutput, carry: &mut Carry) {
    for seen in &output.seen {
        carry.notes.saw(&seen.path);
        carry.tools.files.learn(seen.clone());
    }
    carry.tools.readable.extend(output.readable.iter().cloned());
    if let Some(cwd) = &output.cwd {
        carry.tools.cwd = Arc::new(cwd.clone());
    }
}

/// The files a call may change. A command may change more than it names: what the conversation knows best is kept too.
fn changes(facts: &CallFacts, cx: &Cx<'_>) -> Vec<PathBuf> {
    let mut changes = facts.changes.clone();
    if facts.kind == CallKind::Execute {
        let known = cx.known_files(KEPT_BEFORE_COMMANDS).into_iter().map(|file| file.path);
        changes.extend(known.filter(|path| !facts.changes.contains(path)));
    }
    changes
}

fn same_again(count: u32) -> String {
    format!("The same call gave the same result {count} times.")
}

fn unknown(name: &str, offered: &[ToolSpec]) -> String {
    let offered: Vec<&str> = offered.iter().map(|tool| &*tool.name).collect();
    match offered[..] {
        [] => format!("There is no tool {name}; no tools are available."),
        _ => format!("There is no tool {name}. Available tools: {}.", offered.join(", ")),
    }
}

/// When the user only says something else, an edit is left to finish: it is quick, and leaves nobody in doubt.
fn can_finish(kind: CallKind, interrupt: Interrupt) -> bool {
    kind == CallKind::Edit && interrupt == Interrupt::Replace
}

fn has_no_input(tool_use: &ToolUse) -> bool {
    let input = tool_use.input.get().trim();
    input
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|inside| inside.trim().is_empty())
}

/// As many of the files used last are kept before a command runs.
const KEPT_BEFORE_COMMANDS: usize = 20;

pub(super) const TRUNCATED: &str = "Not run: the input of this call is not a complete JSON object, probably because the \
    response was cut at the output limit. Repeat the call, and split it if it was long.";
pub(super) const ABANDONED: &str =
    "Interrupted while running. It did not stop in time; what it did is unknown.";
const NOT_STARTED: &str = "Not run: interrupted before this call started.";
const TOOLS_OFF: &str = "Tools are not available here. Answer with text only.";
