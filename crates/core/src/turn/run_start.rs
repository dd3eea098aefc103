//! How a run begins: hooks hear that the session begins and of every prompt, and only then does anybody act on it.

use windlass_protocol::{
    Block, HookAnswer, HookCall, HookEvent, HookId, LoadReason, Priority, Prompt, Record, StartSource,
    Terminal, Update,
};

use crate::config::RunSource;
use crate::step::Cx;
use crate::turn::attach::reminders;
use crate::turn::hooks::ended_by_hook;
use crate::turn::prepare::{LayerQuestion, LayerReply, LayerStep, Preparation};

/// A run that is beginning.
#[derive(Clone, Debug)]
pub(crate) struct RunStart {
    pub(crate) by: StartCause,
    /// What hooks are to hear before any prompt, in order.
    untold: std::vec::IntoIter<HookCall>,
    /// Who is asked.
    asked: Option<(HookId, HookEvent)>,
    /// What the model is to know, where no prompt carries it.
    context: Vec<Block>,
}

/// What began a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartCause {
    /// A prompt; `is_logged` says that it is in the log among those that wait.
    Prompt { is_logged: bool },
    /// The wish to go on.
    GoOn,
}

/// The first layer, in the first iteration of a run: it asks one hook after the other, then the run begins.
pub(crate) fn opening(cx: &mut Cx<'_>, preparing: &mut Preparation, reply: Option<LayerReply>) -> LayerStep {
    let Some(mut opening) = preparing.opening.take() else { return LayerStep::Passed };
    if let Some(LayerReply::Hooked(answer)) = reply
        && let Some(text) = cx.hear_opening_hooks(&mut opening, &answer)
    {
        return cx.end_by_hook(text);
    }
    if let Some(hook) = cx.ask_opening_hooks(&mut opening) {
        preparing.opening = Some(opening);
        return LayerStep::Asked(LayerQuestion::Hooks(hook));
    }
    cx.begin(&opening);
    LayerStep::Passed
}

impl RunStart {
    /// A run that begins in this way, and with it perhaps the session.
    pub(crate) fn new(by: StartCause, untold: Vec<HookCall>) -> Self {
        Self { by, untold: untold.into_iter(), asked: None, context: Vec::new() }
    }
}

impl Cx<'_> {
    /// Whether hooks hear of a prompt before anybody acts on it.
    pub(crate) fn asks_about_prompts(&self) -> bool {
        self.config.hooks.contains(&HookEvent::UserPromptSubmit)
    }

    /// What hooks are to hear of a session that begins.
    pub(crate) fn untold(&self, start: Option<StartSource>) -> Vec<HookCall> {
        let Some(source) = start else { return Vec::new() };
        let started = HookCall::SessionStart { source, model: self.config.model.id.clone() };
        // Later on, what is remembered is in the conversation already.
        let loaded = (source == StartSource::Startup).then(|| self.memory_call(LoadReason::SessionStart));
        let calls = [Some(started), loaded.flatten()];
        calls.into_iter().flatten().filter(|call| self.config.hooks.contains(&call.event())).collect()
    }

    /// The memory files that become part of the conversation.
    pub(crate) fn memory_call(&self, reason: LoadReason) -> Option<HookCall> {
        let files: Vec<_> = self.config.memory.iter().map(|note| note.path.clone()).collect();
        (!files.is_empty()).then_some(HookCall::InstructionsLoaded { files, reason })
    }

    fn ask_opening_hooks(&mut self, opening: &mut RunStart) -> Option<HookId> {
        let (event, hook) = match opening.untold.next() {
            Some(call) => (call.event(), self.ask_hooks(call)),
            None => (HookEvent::UserPromptSubmit, self.ask_about_prompt(Priority::Later)?),
        };
        opening.asked = Some((hook, event));
        Some(hook)
    }

    /// Hears what hooks say; a text says why the run ends.
    fn hear_opening_hooks(&mut self, opening: &mut RunStart, answer: &HookAnswer) -> Option<String> {
        let (hook, event) = opening.asked.take()?;
        if event == HookEvent::UserPromptSubmit {
            return self.hear_prompt_hooks(hook, answer);
        }
        self.show_notices(answer);
        if let Some(reason) = &answer.stop {
            return Some(ended_by_hook("A hook at the start of the session", reason));
        }
        let context = reminders(&answer.context);
        let is_print = self.config.source == RunSource::Print;
        let first = answer.first_prompt.as_ref().filter(|_| is_print).map(|text| Block::text(text));
        if !self.state.carry.waiting.add_to_own(&context, first) {
            opening.context.extend(context);
        }
        None
    }

    /// Asks hooks about the next prompt that they have not heard of and whose time has come.
    pub(crate) fn ask_about_prompt(&mut self, due: Priority) -> Option<HookId> {
        if !self.asks_about_prompts() {
            return None;
        }
        let prompt = Block::texts(&self.state.carry.waiting.unheard(due)?.blocks).into();
        let hook = self.ask_hooks(HookCall::UserPromptSubmit { prompt });
        self.state.carry.waiting.note_question(hook);
        Some(hook)
    }

    /// Hears what hooks say about a prompt: one they refuse is gone. If it began the run, the text says why the run ends.
    pub(crate) fn hear_prompt_hooks(&mut self, hook: HookId, answer: &HookAnswer) -> Option<String> {
        self.show_notices(answer);
        let reasons: Vec<&str> = answer.stop.iter().chain(&answer.blocks).map(String::as_str).collect();
        if reasons.is_empty() {
            self.state.carry.waiting.pass(hook, reminders(&answer.context));
            return None;
        }
        let (refused, is_own) = self.state.carry.waiting.refuse(hook).unwrap_or_default();
        self.requeue();
        if let Some(id) = refused.id {
            self.emit(Update::PromptsRefused(vec![id]));
        }
        let text = match reasons.join("\n") {
            reason if reason.is_empty() => "A hook blocked the prompt; it was not sent.".to_owned(),
            reason => format!("A hook blocked the prompt; it was not sent: {reason}"),
        };
        if is_own || answer.stop.is_some() {
            return Some(text);
        }
        self.emit(Update::Notice(text));
        None
    }

    /// The log learns which prompts wait now.
    pub(crate) fn requeue(&mut self) {
        self.persist(Record::Dequeued);
        let waiting: Vec<Prompt> = self.state.carry.waiting.prompts().cloned().collect();
        for prompt in waiting {
            self.persist(Record::Queued(prompt));
        }
    }

    /// A hook ends the run before a request, and this says why.
    pub(crate) fn end_by_hook(&mut self, text: String) -> LayerStep {
        self.note_end_by_hook(text);
        LayerStep::End(Terminal::HookStopped)
    }

    /// Tells the user, and the end of the run, why a hook ends it.
    pub(crate) fn note_end_by_hook(&mut self, text: String) {
        self.emit(Update::Notice(text.clone()));
        self.state.ledger.ended_by_hook = Some(text);
    }

    /// Nothing stands in the way of the run any more.
    fn begin(&mut self, opening: &RunStart) {
        match opening.by {
            StartCause::Prompt { is_logged } => self.say_prompts(is_logged),
            StartCause::GoOn => {
                self.tell(opening.context.clone());
                self.say_waiting();
            }
        }
    }
}
