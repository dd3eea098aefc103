//! The rules of the loop: how often each way round may be taken, what is kept back, and which end fits what happened.

use std::sync::Arc;

use windlass_core::{CompactionPolicy, Config, Event};
use windlass_protocol::{
    Block, BlockKind, Decision, FailureClass, HookAnswer, HookCall, HookPermission, ModelEvent, ModelRequest,
    Outcome, StopReason, Terminal, Transition, Update,
};

use crate::world::replaces;

/// What happened in one run so far.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// How the last response ended.
    last: Option<LastResponse>,
    /// The request that is out, or was last.
    body: Option<Arc<ModelRequest>>,
    /// Texts of failures that are kept back.
    withheld: Vec<String>,
    is_compacted: bool,
    taken: TakenTurns,
    before: Option<Transition>,
    stop_asked: u32,
    /// Hooks were told that the run ends because of a failure.
    has_told_failure: bool,
    answers: Vec<HookAnswer>,
    is_interrupted: bool,
    /// The failure that was shown before the end.
    shown_failure: Option<Terminal>,
    has_store_failed: bool,
    is_compaction: bool,
    /// A call of the last response did more than read.
    has_acted: bool,
}

#[derive(Debug)]
enum LastResponse {
    Ended(StopReason),
    Failed(FailureClass),
}

/// How often each way was taken.
#[derive(Debug, Default)]
struct TakenTurns {
    turns: u32,
    /// Since the last results.
    reactive: u32,
    media: u32,
    thinking: u32,
    nudges: u32,
    /// Since the last results or something else that begins anew.
    recoveries: u32,
    escalations: u32,
    /// In a row.
    pauses: u32,
    /// In the whole run.
    stop_blocks: u32,
    continuations: u32,
    schema: u32,
    fallbacks: u32,
}

type Verdict = Result<(), String>;

impl Turns {
    /// Something happened.
    pub(super) fn on_event(&mut self, event: &Event) {
        match event {
            Event::Compact { .. } => self.is_compaction = true,
            Event::Interrupt(_) => self.is_interrupted = true,
            Event::Steer(prompt) | Event::Submit(prompt) if replaces(prompt) => self.is_interrupted = true,
            Event::StoreFailed { .. } => self.has_store_failed = true,
            Event::Hooked(_, answer) => self.answers.push((**answer).clone()),
            _ => (),
        }
    }

    /// The response to the request that is out came to its end.
    pub(super) fn on_response(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Ended { stop, .. } => self.last = Some(LastResponse::Ended(stop.clone())),
            ModelEvent::Failed(failure) => {
                self.last = Some(LastResponse::Failed(failure.class));
                let is_kept = matches!(
                    failure.class,
                    FailureClass::Overflow | FailureClass::Media | FailureClass::Binding
                );
                self.withheld.extend(is_kept.then(|| failure.message.clone()));
            }
            _ => (),
        }
    }

    pub(super) fn on_request(&mut self, body: &Arc<ModelRequest>, config: &Config) -> Verdict {
        self.body = Some(body.clone());
        self.has_acted = false;
        let raised = config.output.explicit.is_none() && body.output_tokens_max > config.output.first;
        if raised && self.taken.escalations == 0 {
            return Err("the output cap is raised without a reason".into());
        }
        Ok(())
    }

    /// A call that does more than read has started.
    pub(super) fn on_acted(&mut self) {
        self.has_acted = true;
    }

    /// Stop hooks are asked once the model says it is done, and never after a failure.
    pub(super) fn on_hooks(&mut self, call: &HookCall, config: &Config) -> Verdict {
        self.has_told_failure |= matches!(call, HookCall::StopFailure { .. });
        let HookCall::Stop { is_active, .. } = call else { return Ok(()) };
        if !matches!(self.last, Some(LastResponse::Ended(_))) {
            return Err("stop hooks are asked after a failure".into());
        }
        if *is_active != (self.taken.stop_blocks > 0) {
            return Err("stop hooks are not told whether they objected before".into());
        }
        self.stop_asked += 1;
        let again = self.taken.continuations + self.taken.turns + self.taken.schema;
        if self.stop_asked > config.stop_hook_blocks_max + 1 + again {
            return Err(format!("stop hooks are asked {} times", self.stop_asked));
        }
        Ok(())
    }

    pub(super) fn check(&mut self, update: &Update, config: &Config) -> Verdict {
        match update {
            Update::Continued(transition) => self.on_transition(*transition, config),
            Update::Decided(Decision::Compacted(_)) if std::mem::replace(&mut self.is_compacted, true) => {
                Err("two compactions in one iteration".into())
            }
            Update::Retrying { failure, .. } | Update::FellBack { failure, .. } => {
                self.check_kept(&failure.message)
            }
            Update::Notice(text) | Update::CompactionFailed(text) => self.check_kept(text),
            Update::HookFailed(failure) => self.check_kept(&failure.text),
            Update::UserText { blocks, .. } => {
                let mut texts = blocks.iter().filter_map(Block::as_text);
                texts.try_for_each(|text| self.check_kept(text))
            }
            Update::Failed { terminal, .. } => {
                self.shown_failure = Some(*terminal);
                Ok(())
            }
            Update::Done(outcome) => self.check_end(outcome, config),
            _ => Ok(()),
        }
    }

    /// A failure that may be cured is not shown before every cure has failed.
    fn check_kept(&self, text: &str) -> Verdict {
        match self.withheld.iter().find(|kept| text.contains(&***kept)) {
            Some(kept) => Err(format!("a failure was shown while a cure is tried: {kept}")),
            None => Ok(()),
        }
    }

    fn on_transition(&mut self, transition: Transition, config: &Config) -> Verdict {
        self.is_compacted = false;
        let is_window_full = matches!(self.last, Some(LastResponse::Ended(_)));
        let taken = &mut self.taken;
        if transition != Transition::PauseTurnResume {
            taken.pauses = 0;
        }
        let (count, most) = match transition {
            Transition::NextTurn => {
                *taken = TakenTurns {
                    turns: taken.turns + 1,
                    stop_blocks: taken.stop_blocks,
                    continuations: taken.continuations,
                    schema: taken.schema,
                    fallbacks: taken.fallbacks,
                    ..TakenTurns::default()
                };
                (taken.turns, config.turns_max.map_or(u32::MAX, |most| most.saturating_sub(1)))
            }
            Transition::CollapseDrainRetry => (1 + u32::from(self.before == Some(transition)), 1),
            Transition::MediaStripRetry => match self.last {
                Some(LastResponse::Failed(FailureClass::Media | FailureClass::BadRequest)) => {
                    one_more(&mut taken.media, 2)
                }
                _ => (1, 0),
            },
            Transition::ThinkingStripRetry => match self.last {
                Some(LastResponse::Failed(FailureClass::Binding)) => one_more(&mut taken.thinking, 1),
                _ => (1, 0),
            },
            Transition::ReactiveCompactRetry => match self.last {
                Some(LastResponse::Failed(FailureClass::Overflow)) => one_more(&mut taken.reactive, 1),
                _ if is_window_full => one_more(&mut taken.reactive, 1),
                _ => (1, 0),
            },
            Transition::MaxOutputTokensEscalate => one_more(&mut taken.escalations, 1),
            Transition::MaxOutputTokensRecovery => {
                one_more(&mut taken.recoveries, config.output.recoveries_max)
            }
            Transition::StopHookBlocking => one_more(&mut taken.stop_blocks, config.stop_hook_blocks_max),
            Transition::TokenBudgetContinuation => one_more(&mut taken.continuations, u32::MAX),
            Transition::StructuredOutputRetry => {
                one_more(&mut taken.schema, config.answer.as_ref().map_or(0, |answer| answer.retries_max))
            }
            Transition::PauseTurnResume => one_more(&mut taken.pauses, config.pauses_max),
            Transition::EmptyAnswerNudge => one_more(&mut taken.nudges, 1),
            Transition::ModelFallback => {
                taken.thinking = 0;
                one_more(&mut taken.fallbacks, u32::try_from(config.fallbacks.len()).unwrap_or(0))
            }
        };
        let begins_anew = [
            Transition::StopHookBlocking,
            Transition::TokenBudgetContinuation,
            Transition::StructuredOutputRetry,
        ];
        if begins_anew.contains(&transition) {
            (taken.recoveries, taken.escalations) = (0, 0);
        }
        self.before = Some(transition);
        if count > most { Err(format!("{} was taken {count} times", transition.name())) } else { Ok(()) }
    }

    /// The end fits what happened before it.
    fn check_end(&self, outcome: &Outcome, config: &Config) -> Verdict {
        let terminal = outcome.terminal;
        if self.shown_failure != Some(terminal).filter(|terminal| terminal.is_failure()) {
            return Err(format!("{} was not shown as it should be", terminal.name()));
        }
        if terminal == Terminal::StoreFailed && self.has_store_failed {
            return Ok(());
        }
        let fits = match terminal {
            Terminal::Completed => self.is_compaction || self.ended_with(|stop| *stop != StopReason::Refusal),
            Terminal::TokenBudgetCompleted => self.taken.continuations > 0,
            Terminal::StopHookPrevented => self.answers.iter().any(|answer| answer.stop.is_some()),
            Terminal::HookStopped => {
                self.answers.iter().any(|answer| answer.stop.is_some() || !answer.blocks.is_empty())
            }
            Terminal::ToolDeferred => {
                let put_off = |answer: &HookAnswer| answer.permission == Some(HookPermission::Defer);
                self.answers.iter().any(put_off) && outcome.deferred.is_some()
            }
            Terminal::MaxTurns => config.turns_max == Some(self.taken.turns + 1),
            Terminal::StructuredOutputRetries => {
                config.answer.as_ref().is_some_and(|answer| self.taken.schema == answer.retries_max)
            }
            Terminal::AbortedStreaming | Terminal::AbortedTools => self.is_interrupted,
            Terminal::BlockingLimit => config.context.compaction != CompactionPolicy::Automatic,
            Terminal::PromptTooLong => {
                self.failed_with(FailureClass::Overflow)
                    || self.ended_with(|stop| *stop == StopReason::ContextWindowExceeded)
            }
            Terminal::MaxOutputTokens => {
                self.ended_with(|stop| *stop == StopReason::MaxTokens)
                    && self.taken.recoveries == config.output.recoveries_max
            }
            Terminal::ImageError => {
                let cured = self.taken.media > 0 || self.has_acted || !self.has(is_media);
                self.failed_with(FailureClass::Media) && cured
            }
            Terminal::ApiError => {
                let cured = self.taken.thinking > 0 || self.has_acted || !self.has(Block::is_thinking);
                matches!(self.last, Some(LastResponse::Failed(_)))
                    && (cured || !self.failed_with(FailureClass::Binding))
            }
            Terminal::ModelError => self.failed_with(FailureClass::Malformed),
            Terminal::Refused => self.ended_with(|stop| *stop == StopReason::Refusal),
            Terminal::StoreFailed => false,
            Terminal::MaxBudgetUsd => config.budget_usd.is_some(),
            Terminal::RepeatedCall | Terminal::RapidRefill => true,
        };
        if !fits {
            return Err(format!(
                "{} does not fit what happened: {:?}, {:?}",
                terminal.name(),
                self.last,
                self.taken
            ));
        }
        self.check_report(outcome)
    }

    fn check_report(&self, outcome: &Outcome) -> Verdict {
        if outcome.iterations != self.taken.turns + 1 {
            return Err(format!("{} turns, {} reported", self.taken.turns + 1, outcome.iterations));
        }
        if outcome.terminal.shows_failure() && outcome.errors.is_empty() {
            return Err(format!("{} does not say what failed", outcome.terminal.name()));
        }
        let is_failure = outcome.terminal.shows_failure() || outcome.terminal == Terminal::MaxOutputTokens;
        if self.has_told_failure && !is_failure && !self.has_store_failed {
            return Err(format!(
                "hooks were told of a failure, and the run ends with {}",
                outcome.terminal.name()
            ));
        }
        let shown = outcome.errors.join(" ");
        if outcome.terminal.is_success() && self.withheld.iter().any(|kept| shown.contains(&**kept)) {
            return Err("a failure that was cured is shown at the end".into());
        }
        Ok(())
    }

    fn ended_with(&self, fits: impl Fn(&StopReason) -> bool) -> bool {
        matches!(&self.last, Some(LastResponse::Ended(stop)) if fits(stop))
    }

    fn failed_with(&self, class: FailureClass) -> bool {
        matches!(self.last, Some(LastResponse::Failed(last)) if last == class)
    }

    /// Whether the last request holds such a block.
    fn has(&self, wanted: fn(&Block) -> bool) -> bool {
        let messages = self.body.iter().flat_map(|body| body.transcript.iter());
        messages.flat_map(|message| &message.blocks).any(wanted)
    }
}

fn one_more(count: &mut u32, most: u32) -> (u32, u32) {
    *count += 1;
    (*count, most)
}

fn is_media(block: &Block) -> bool {
    matches!(block.kind(), BlockKind::Image | BlockKind::Document)
        || block.result_blocks().iter().any(is_media)
}
