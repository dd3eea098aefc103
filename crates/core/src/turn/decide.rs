//! Stage 6 at work: looks at the situation, asks the ladder, and does what it says.

use std::sync::Arc;

use windlass_protocol::{
    Culprit, Decision, Delivery, Failure, FailureClass, HookAnswer, Interrupt, Message, MessageId,
    ModelRequest, Origin, RawValueEq, Role, Terminal, Transcript, Transition, Update,
};

use crate::context;
use crate::state::{EarlyExit, Phase, Settlement};
use crate::step::Cx;
use crate::turn::calls::CallQueue;
use crate::turn::gate::Watermark;
use crate::turn::hooks::{StopCheck, StopSubject};
use crate::turn::ladder::{
    self, LadderDecision, LadderLimits, RUNGS, ResponseEnd, ResponseFault, Retry, Situation,
};
use crate::turn::retry::{self, Attempts, RetryVerdict};
use crate::turn::settle::{AfterCalls, BrokenResponse};
use crate::turn::stream::OpenResponse;
use crate::turn::transition::NextIteration;
use crate::turn::{answer_schema, budget};

impl Cx<'_> {
    /// The response has ended. `reported` is what the provider says the conversation now is, in tokens.
    pub(crate) fn decide_answer(
        &mut self,
        mut streaming: OpenResponse,
        answer: ResponseEnd,
        reported: Option<u64>,
    ) -> Phase {
        let verdict = self.retry_verdict(&streaming);
        let situation = Situation {
            retry: verdict.retry,
            has_form: self.has_form(&streaming),
            ..self.situation(answer, &streaming.calls)
        };
        let next = ladder::decide(&RUNGS, &situation);
        if stands(&streaming, &situation, next) {
            self.record_answer(&mut streaming);
            if let Some(tokens) = reported {
                let messages = self.state.carry.messages.len();
                self.state.carry.tokens.on_response(tokens, messages);
            }
        } else {
            streaming.calls.cancel(Interrupt::Stop, self);
            self.retract(&mut streaming);
        }
        let then = self.follow(&mut streaming, &situation, next, verdict);
        self.leave(streaming.calls, then, EarlyExit::default())
    }

    fn follow(
        &mut self,
        streaming: &mut OpenResponse,
        situation: &Situation,
        next: LadderDecision,
        verdict: RetryVerdict,
    ) -> AfterCalls {
        match next {
            LadderDecision::Resend => self.resend(streaming, verdict),
            LadderDecision::RunCalls { should_fall_back } => {
                let is_broken = matches!(situation.answer, ResponseEnd::Failed(_));
                let broken = is_broken.then(|| self.break_off(verdict, should_fall_back));
                AfterCalls::NextTurn(broken.unwrap_or_default())
            }
            LadderDecision::Again(transition) => AfterCalls::Go(Box::new(self.onward(transition, situation))),
            LadderDecision::AskStopHooks => AfterCalls::AskStopHooks(Box::new(*situation)),
            LadderDecision::End(terminal) => {
                let acted = streaming.calls.has_acted();
                streaming.calls.cancel(Interrupt::Stop, self);
                self.release(if acted { self.state.carry.broken } else { streaming.attempts });
                AfterCalls::End(terminal)
            }
        }
    }

    /// The same request again, after a pause. Where streams themselves fail, the answer is asked for at once.
    fn resend(&mut self, streaming: &OpenResponse, verdict: RetryVerdict) -> AfterCalls {
        let Some(failure) = self.state.carry.withheld.take() else {
            return AfterCalls::End(Terminal::ModelError);
        };
        let mut attempts = streaming.attempts.and(failure.class, streaming.has_begun);
        let delivery =
            if attempts.wants_whole(&self.config.retry) { Delivery::Whole } else { Delivery::Streamed };
        attempts.is_whole |= delivery == Delivery::Whole;
        let body = if streaming.body.delivery == delivery {
            streaming.body.clone()
        } else {
            Arc::new(ModelRequest { delivery, ..(*streaming.body).clone() })
        };
        let RetryVerdict { delay_ms, retries_max, .. } = verdict;
        self.emit(Update::Retrying { attempt: attempts.retries, retries_max, delay_ms, failure });
        AfterCalls::Retry { body, attempts, not_before_ms: self.at_ms.saturating_add(delay_ms) }
    }

    /// The response broke off after it had acted: it stands as far as it came, and the next request waits as for a retry.
    fn break_off(&mut self, verdict: RetryVerdict, should_fall_back: bool) -> BrokenResponse {
        let RetryVerdict { delay_ms, retries_max, .. } = verdict;
        let attempts = self.state.carry.broken;
        let Some(failure) = self.state.carry.withheld.take() else {
            return BrokenResponse { attempts, not_before_ms: self.at_ms, should_fall_back };
        };
        let attempts = attempts.and(failure.class, /* half-way */ true);
        if should_fall_back {
            self.announce_fallback(failure);
        } else {
            self.emit(Update::Retrying { attempt: attempts.retries, retries_max, delay_ms, failure });
        }
        let not_before_ms = if should_fall_back { self.at_ms } else { self.at_ms.saturating_add(delay_ms) };
        BrokenResponse { attempts, not_before_ms, should_fall_back }
    }

    /// The failure that was withheld is shown: no cure is left.
    pub(crate) fn release(&mut self, attempts: Attempts) {
        if let Some(failure) = self.state.carry.withheld.take() {
            self.state.ledger.outcome.failure = Some(retry::given_up(*failure, attempts, &self.config.retry));
        }
    }

    /// What goes with a transition: a note for the model, or a rewrite of the transcript.
    fn onward(&mut self, transition: Transition, situation: &Situation) -> NextIteration {
        let resumed = (situation.answer == ResponseEnd::WindowFull).then(|| RESUME.to_owned());
        let note = match transition {
            Transition::CollapseDrainRetry => {
                context::drain(self);
                resumed
            }
            Transition::ReactiveCompactRetry => resumed,
            Transition::MediaStripRetry => {
                self.strip_media();
                None
            }
            Transition::ThinkingStripRetry => {
                self.strip_thinking(None);
                None
            }
            Transition::MaxOutputTokensRecovery => Some(RESUME.into()),
            Transition::TokenBudgetContinuation => Some(self.state.carry.budget.nudge()),
            Transition::StructuredOutputRetry => Some(self.read_structured().err().unwrap_or_default()),
            Transition::EmptyAnswerNudge => Some(NUDGE.into()),
            Transition::ModelFallback => {
                if let Some(failure) = self.state.carry.withheld.take() {
                    self.announce_fallback(failure);
                }
                self.rest_to_ask_for().map(Into::into)
            }
            Transition::NextTurn
            | Transition::MaxOutputTokensEscalate
            | Transition::StopHookBlocking
            | Transition::PauseTurnResume => None,
        };
        let is_small_gain = situation.tokens_left.is_small_gain();
        NextIteration { note, is_small_gain, ..NextIteration::new(transition) }
    }

    /// Takes out what the provider refuses, with the thinking that was bound to it.
    fn strip_media(&mut self) {
        let messages = &self.state.carry.messages;
        let class = self.state.carry.withheld.as_ref().map(|failure| failure.class);
        // Where one medium after the other is refused, the rest would be too.
        let named = self.culprit().filter(|_| self.state.carry.guards.media_strips == 0);
        let rewritten = match class {
            Some(FailureClass::Media) => context::strip_media(messages, named),
            _ => context::replace_block(messages, self.culprit()).into_iter().collect(),
        };
        if rewritten.is_empty() {
            return;
        }
        let unbound = self.unbound_by(&rewritten);
        if unbound.is_empty() {
            return self.change(Decision::MediaStripped(rewritten));
        }
        // Thinking goes first: wherever the log ends, it holds none that was bound to something else.
        self.change(Decision::ThinkingStripped(unbound));
        self.change(Decision::MediaStripped(context::unbound(&rewritten)));
    }

    /// Takes thinking out of every answer, or out of all but those of one model.
    pub(crate) fn strip_thinking(&mut self, keep_model: Option<&str>) {
        if let Some(decision) = context::strip_thinking(&self.state.carry.messages, keep_model) {
            self.change(decision);
        }
    }

    /// The block that the provider refuses, where it says so.
    pub(crate) fn culprit(&self) -> Option<Culprit> {
        self.state.carry.withheld.as_ref().and_then(|failure| failure.culprit)
    }

    /// The messages whose thinking was bound to what these said before.
    fn unbound_by(&self, changed: &[Arc<Message>]) -> Vec<MessageId> {
        if !self.model().is_thinking_bound {
            return Vec::new();
        }
        let is_changed = |message: &&Arc<Message>| changed.iter().any(|new| new.id == message.id);
        let behind = self.state.carry.messages.iter().skip_while(|message| !is_changed(message));
        behind.filter(|message| message.thinks()).map(|message| message.id).collect()
    }

    /// How to ask for the rest of a paused answer that ends in words. Only the model that was paused takes them as the last
    /// word of a request, and only behind what it was paused at. A call that the provider makes itself says enough.
    pub(crate) fn rest_to_ask_for(&self) -> Option<&'static str> {
        let paused = self.state.carry.messages.last().filter(|last| last.role == Role::Assistant)?;
        paused.blocks.last().and_then(|block| block.as_text()).map(|_| REST)
    }

    /// The next model takes over. Thinking is bound to the model that made it and does not go with it.
    fn announce_fallback(&mut self, failure: Box<Failure>) {
        let fallbacks = self.state.carry.guards.fallbacks;
        let from = self.config.model_after(fallbacks).id.clone();
        let to = self.config.model_after(fallbacks + 1).id.clone();
        self.strip_thinking(Some(&to));
        self.emit(Update::FellBack { from, to, failure });
    }

    /// Every call of the response is answered: decides again, and says how the loop goes on, if it does.
    pub(crate) fn decide_round(
        &mut self,
        settling: &Settlement,
        broken: BrokenResponse,
    ) -> Result<NextIteration, Terminal> {
        let situation =
            Situation { is_settled: true, ..self.situation(ResponseEnd::Called, &settling.calls) };
        match ladder::decide(&RUNGS, &situation) {
            LadderDecision::End(terminal) => Err(terminal),
            _ => Ok(NextIteration { broken, ..NextIteration::new(Transition::NextTurn) }),
        }
    }
    pub(crate) fn on_stop_hooked(&mut self, stopping: &StopCheck, answer: &HookAnswer) -> Phase {
        let asked = match &stopping.about {
            StopSubject::Ending(situation) => situation,
            StopSubject::Failure(terminal) => return self.end(*terminal, None),
        };
        let (situation, objection) = self.hear_stop_hooks(asked, answer);
        match ladder::decide(&RUNGS, &situation) {
            LadderDecision::Again(transition) => {
                let onward = self.onward(transition, &situation);
                let objected = transition == Transition::StopHookBlocking;
                let note = if objected { Some(objection) } else { onward.note };
                self.go(NextIteration { note, ..onward })
            }
            LadderDecision::End(terminal) => self.end(terminal, None),
            LadderDecision::Resend | LadderDecision::RunCalls { .. } | LadderDecision::AskStopHooks => {
                self.end(Terminal::ModelError, None)
            }
        }
    }

    /// The last answer as a value, or what is wrong with it.
    pub(crate) fn read_structured(&self) -> Result<Arc<RawValueEq>, String> {
        match &self.config.answer {
            Some(schema) => answer_schema::read(&self.state.ledger.outcome.text, schema),
            None => Err(String::new()),
        }
    }

    /// The transcript says something else from some message on, by a recorded decision.
    pub(crate) fn rewrite(&mut self, messages: Transcript) {
        self.state.carry.messages = messages;
        self.state.carry.checked = Watermark::default();
        self.state.carry.sent = None;
    }

    /// The situation after an answer with these calls, as far as it does not depend on how the answer came.
    pub(crate) fn situation(&self, answer: ResponseEnd, calls: &CallQueue) -> Situation {
        let (carry, config) = (&self.state.carry, self.config);
        let is_bound = answer == ResponseEnd::Failed(ResponseFault::Bound);
        Situation {
            guards: carry.guards,
            limits: self.limits(),
            answer,
            has_calls: !calls.is_empty(),
            is_settled: false,
            has_acted: calls.has_acted(),
            retry: Retry::GiveUp,
            is_stopped_by_hook: calls.stopped_by_hook().is_some(),
            has_deferred: calls.deferred_call().is_some(),
            has_repeated: calls.has_repetition(),
            has_staged: context::drainable(self),
            is_reducible: context::reducible(self),
            has_refused: match answer {
                ResponseEnd::Failed(ResponseFault::Media) => context::has_media(&carry.messages),
                ResponseEnd::Failed(ResponseFault::Block) => {
                    context::replace_block(&carry.messages, self.culprit()).is_some()
                }
                _ => false,
            },
            has_thinking: is_bound && context::has_thinking(&carry.messages),
            is_after_results: is_after_results(&carry.messages),
            has_form: true,
            stop_hooks: self.stop_hooks(),
            tokens_left: carry.budget.tokens_left(config),
            has_turns_left: config.turns_max.is_none_or(|limit| carry.turn_count < limit),
            has_usd_left: budget::usd_left(&self.state.ledger, config),
        }
    }

    /// Whether a final answer has the form the schema asks for.
    fn has_form(&self, streaming: &OpenResponse) -> bool {
        let schema = self.config.answer.as_ref().filter(|_| streaming.calls.is_empty());
        schema.is_none_or(|schema| answer_schema::read(&self.said_text(streaming), schema).is_ok())
    }

    fn limits(&self) -> LadderLimits {
        let config = self.config;
        let own_most = self.model().output_tokens_max;
        LadderLimits {
            can_escalate: config.output.explicit.is_none() && own_most > config.output.first,
            output_recoveries: config.output.recoveries_max,
            stop_blocks: config.stop_hook_blocks_max,
            continuations_min: config.continuation.continuations_min,
            schema_tries: config.answer.as_ref().map_or(0, |answer| answer.retries_max),
            pauses: config.pauses_max,
            fallbacks: u32::try_from(config.fallbacks.len()).unwrap_or(u32::MAX),
        }
    }
}

/// Whether the response stays: not if its request is sent again or was refused, unless something of it has acted.
fn stands(streaming: &OpenResponse, situation: &Situation, next: LadderDecision) -> bool {
    if streaming.calls.has_acted() {
        return true;
    }
    match next {
        LadderDecision::Resend
        | LadderDecision::Again(Transition::MaxOutputTokensEscalate | Transition::ModelFallback)
        | LadderDecision::End(Terminal::Refused) => false,
        LadderDecision::Again(
            Transition::CollapseDrainRetry
            | Transition::ReactiveCompactRetry
            | Transition::MediaStripRetry
            | Transition::ThinkingStripRetry,
        ) => situation.answer == ResponseEnd::WindowFull,
        _ => true,
    }
}

/// Asks for the rest of an answer that was cut.
pub(crate) const RESUME: &str = "Your answer was cut at the output limit. Continue exactly where it \
    stopped, even in the middle of a sentence: no apology, no recap. Split the rest into smaller pieces.";
/// Asks for the rest of an answer that was paused.
pub(crate) const REST: &str =
    "Your answer is not complete. Continue exactly where it stopped: no apology, no recap.";
const NUDGE: &str = "You said nothing after the last results. Continue the work, or say what you found.";

/// Whether the last thing said is results, and what was attached to them.
fn is_after_results(messages: &Transcript) -> bool {
    let mut last = messages.iter().rev().take_while(|message| message.role == Role::User);
    last.any(|message| message.origin == Origin::Results)
}
