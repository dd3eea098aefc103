//! What is sent: valid, the same as before up to a recorded decision, and what the log says.

use std::sync::Arc;

use windlass_core::{Config, Effect, State};
use windlass_protocol::{CallId, Decision, Delivery, ModelRequest, TaskBudget, Transcript, Update};

use super::log::Log;
use crate::thinking::{Bindings, card_of};
use crate::validity::{check_request, check_sent, resumes, with_prompt};

/// Watches the requests of one session.
#[derive(Debug, Default)]
pub(super) struct Requests {
    log: Log,
    bindings: Bindings,
    /// The last request.
    sent: Option<Arc<ModelRequest>>,
    /// Whether the next request is the last one again.
    is_retrying: bool,
    /// Whether another model was to answer since the last request.
    has_fallen_back: bool,
    /// Whether history was rewritten in this run.
    is_rewritten: bool,
    /// Whether the provider paused the last answer.
    is_resuming: bool,
    /// What the last request said of the task budget, since the last rewrite.
    told: Option<TaskBudget>,
    /// Not everything that the session says was shown.
    pub(super) is_blind: bool,
}

type Verdict = Result<(), String>;

impl Requests {
    pub(super) fn of(messages: &Transcript) -> Self {
        Self { log: Log::of(messages), bindings: Bindings::of(messages), ..Self::default() }
    }

    pub(super) fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// A new run begins.
    pub(super) fn next_run(self) -> Self {
        Self { is_retrying: false, is_resuming: false, is_rewritten: false, told: None, ..self }
    }

    /// Steered prompts that became part of the conversation.
    pub(super) fn steered_prompts(&self) -> usize {
        self.log.steered
    }

    /// The session says this; what was sent before is another's matter.
    pub(super) fn rebase(&mut self, messages: &Transcript) {
        self.sent = None;
        self.is_blind = false;
        self.log.rebase(messages);
    }

    pub(super) fn on_submit(&mut self, state: &State, effects: &[Effect]) -> bool {
        self.log.on_submit(state, effects)
    }

    pub(super) fn on_drop(&mut self, state: &State) -> Verdict {
        self.log.on_drop(state)
    }

    pub(super) fn on_update(&mut self, update: &Update) -> Verdict {
        match update {
            Update::Requesting { attempt, .. } => self.is_retrying = *attempt > 1,
            Update::Continued(transition) => self.is_resuming = resumes(*transition, self.is_resuming),
            Update::FellBack { .. } => self.has_fallen_back = true,
            Update::Block { block, .. } => self.bindings.on_block(block),
            Update::Decided(decision) => {
                let is_rewrite = !matches!(decision, Decision::Stored(_) | Decision::Staged(_));
                self.is_rewritten |= is_rewrite;
                if is_rewrite {
                    self.told = None;
                }
            }
            _ => (),
        }
        self.log.on_update(update)
    }

    /// Checks a request that goes out.
    pub(super) fn check(&mut self, body: &Arc<ModelRequest>, config: &Config) -> Verdict {
        if self.is_retrying {
            return self.check_retry(body);
        }
        check_sent(&body.transcript, self.is_resuming)?;
        self.log.check_same(&body.transcript)?;
        check_cap(body, config)?;
        self.bindings.check(body, config)?;
        self.check_prefix(body)?;
        self.check_task_budget(body)?;
        self.bindings.on_request(body);
        self.log.on_request();
        self.has_fallen_back = false;
        self.sent = Some(body.clone());
        Ok(())
    }

    /// A retry does not change a byte; it may ask for the answer at once.
    fn check_retry(&mut self, body: &Arc<ModelRequest>) -> Verdict {
        let Some(before) = &self.sent else { return Err("a retry of nothing".into()) };
        let is_same = Arc::ptr_eq(before, body)
            || (before.transcript.to_json() == body.transcript.to_json()
                && (before.delivery, body.delivery) != (Delivery::Streamed, Delivery::Streamed)
                && (
                    &before.model,
                    &before.system,
                    before.thinking,
                    before.output_tokens_max,
                    &before.breakpoints,
                ) == (
                    &body.model,
                    &body.system,
                    body.thinking,
                    body.output_tokens_max,
                    &body.breakpoints,
                ));
        if !is_same {
            return Err("a retry changed the request".into());
        }
        self.bindings.on_request(body);
        self.sent = Some(body.clone());
        Ok(())
    }

    /// Up to the first message that a recorded decision changed, the bytes are those of the request before.
    fn check_prefix(&self, body: &ModelRequest) -> Verdict {
        let Some(before) = &self.sent else { return Ok(()) };
        if before.system != body.system || !Arc::ptr_eq(&before.tools, &body.tools) {
            return Err("the system prompt or the tools changed".into());
        }
        let settings = |request: &ModelRequest| (request.thinking, request.effort, request.edits);
        let comparable = before.model == body.model && before.output_tokens_max == body.output_tokens_max;
        if comparable && settings(before) != settings(body) {
            return Err("thinking, effort or the provider's own edits changed".into());
        }
        let same = self.log.untouched_messages();
        let (old, new) = (&before.transcript, &body.transcript);
        let kept = old.prefix(same).to_json();
        // The closing of the last message and of the list may give way to what follows.
        let kept = kept.strip_suffix("]}]").unwrap_or("");
        if !new.to_json().starts_with(kept) {
            return Err("an old message changed without a recorded reason".into());
        }
        let last = |request: &ModelRequest| request.transcript.len() - 1;
        let goes_on = !self.log.is_rewritten() && !self.has_fallen_back && before.model == body.model;
        let cached = goes_on.then(|| last(before));
        let missing = cached.into_iter().chain([last(body)]).find(|index| !body.breakpoints.contains(index));
        missing.map_or(Ok(()), |index| Err(format!("no cache breakpoint at message {index}")))
    }

    /// What is left is said only after a rewrite, and stays the same until the next.
    fn check_task_budget(&mut self, body: &ModelRequest) -> Verdict {
        let Some(budget) = body.task_budget else { return Ok(()) };
        if budget.remaining.is_some() && !self.is_rewritten {
            return Err("what is left of the task budget is said without a rewrite".into());
        }
        match self.told.replace(budget) {
            Some(before) if before != budget => {
                Err("what is left of the task budget changed without a rewrite".into())
            }
            _ => Ok(()),
        }
    }

    /// What is left behind can be sent again, and is what the log says. Every call that has acted is in it.
    pub(super) fn check_end(&self, state: &State, acted: &[(CallId, Arc<str>)]) -> Verdict {
        if !self.is_blind {
            self.log.check_same(state.messages())?;
        }
        if self.log.is_open() && !self.is_blind {
            return Err("something was shown and is in no message".into());
        }
        check_request(&with_prompt(state.messages()))?;
        let in_messages = |wanted: &str| {
            let mut blocks = state.messages().iter().flat_map(|message| &message.blocks);
            blocks.any(|block| block.as_tool_use().is_some_and(|tool_use| *tool_use.id == *wanted))
        };
        let forgotten = acted.iter().find(|(_, id)| !self.log.has_tool_use(id) && !in_messages(id));
        forgotten.map_or(Ok(()), |(_, id)| Err(format!("{id} has acted and is forgotten")))
    }
}

fn check_cap(body: &ModelRequest, config: &Config) -> Verdict {
    let cap = body.output_tokens_max;
    let most = config.output.explicit.unwrap_or(config.output.escalated);
    if cap > most || cap > card_of(&body.model, config).output_tokens_max {
        return Err(format!("a cap of {cap} tokens is more than was set, or than the model can say"));
    }
    Ok(())
}
