//! Stage 6: what happens after a model call, as an ordered list of rungs.
//!
//! A rung is a pure function of the situation: it passes, or it says what is next. The first that speaks decides. Reading
//! [`RUNGS`] from top to bottom is reading the order of the specification.

use windlass_protocol::{Terminal, Transition};

use crate::turn::guards::Guards;

/// How a model call ended, as far as the rules care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseEnd {
    /// It said something and asked for nothing.
    Said,
    /// It said nothing at all.
    Empty,
    /// It asked for calls.
    Called,
    /// It was cut at the output cap.
    Cut,
    /// It was cut because the window is full.
    WindowFull,
    /// The provider paused it.
    Paused,
    /// The model declined.
    Refused,
    /// It failed.
    Failed(ResponseFault),
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseFault {
    /// The stream broke off, stalled, or does not follow the protocol; `is_broken` says the last.
    Stream { is_broken: bool },
    /// A picture or document is refused.
    Media,
    /// Another block of the transcript is refused, and the provider says which.
    Block,
    /// Thinking in the transcript is refused.
    Bound,
    /// The prompt is too long.
    TooLong,
    /// Anything else of HTTP or the connection.
    Api,
}

/// What the retry policy has to say about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Send the same request again.
    Again,
    /// Let another model try, if there is one; otherwise send the same request again.
    FallBackOrAgain,
    /// Let another model try, if there is one; otherwise give up.
    FallBackOrGiveUp,
    /// Give up: no model would do better.
    GiveUp,
}

/// What stop hooks say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopHooks {
    /// There are none, or they have nothing against ending.
    Pass,
    /// They have not been asked yet.
    Unasked,
    /// They object.
    Block,
    /// They say not to go on.
    Prevent,
}

/// How much of the budget of output tokens is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokensLeft {
    /// There is no budget, or it is not for this loop.
    NoBudget,
    /// Little or nothing: the share that counts as spent is reached.
    Spent,
    /// Enough to go on; `is_small_gain` says that the last continuation brought little.
    Enough { is_small_gain: bool },
}

impl TokensLeft {
    /// Whether there is enough to go on, but the last continuation brought little.
    pub(crate) fn is_small_gain(self) -> bool {
        self == Self::Enough { is_small_gain: true }
    }
}

/// Everything the rungs look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) guards: Guards,
    pub(crate) limits: LadderLimits,
    pub(crate) answer: ResponseEnd,
    pub(crate) has_calls: bool,
    /// Whether every call of the response is answered.
    pub(crate) is_settled: bool,
    /// Whether a call that does more than read has started: then the request is not sent again.
    pub(crate) has_acted: bool,
    pub(crate) retry: Retry,
    /// A hook of a call said not to go on.
    pub(crate) is_stopped_by_hook: bool,
    /// A hook put a call off.
    pub(crate) has_deferred: bool,
    /// A call repeated itself too often.
    pub(crate) has_repeated: bool,
    /// Whether there are staged collapses.
    pub(crate) has_staged: bool,
    /// Whether compaction is on and has something to compact.
    pub(crate) is_reducible: bool,
    /// Whether the transcript holds what is refused, and it can be taken out.
    pub(crate) has_refused: bool,
    /// Whether the transcript holds thinking that can be taken out.
    pub(crate) has_thinking: bool,
    /// Whether the answer came right after tool results.
    pub(crate) is_after_results: bool,
    /// Whether the answer has the form that the schema asks for, if there is one.
    pub(crate) has_form: bool,
    pub(crate) stop_hooks: StopHooks,
    pub(crate) tokens_left: TokensLeft,
    pub(crate) has_turns_left: bool,
    pub(crate) has_usd_left: bool,
}

/// The limits the rungs compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LadderLimits {
    /// Whether the first output cap may be raised.
    pub(crate) can_escalate: bool,
    pub(crate) output_recoveries: u32,
    pub(crate) stop_blocks: u32,
    pub(crate) continuations_min: u32,
    pub(crate) schema_tries: u32,
    pub(crate) pauses: u32,
    pub(crate) fallbacks: u32,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LadderDecision {
    /// Go round again for this reason.
    Again(Transition),
    /// Send the same request again, after a pause.
    Resend,
    /// Answer the calls of the response first, as far as it came; then decide again.
    RunCalls {
        /// The next request goes to the next model.
        should_fall_back: bool,
    },
    /// Ask the stop hooks, then decide again.
    AskStopHooks,
    /// End the run.
    End(Terminal),
}

/// The second time takes out what the first has left.
const MEDIA_STRIPS_MAX: u32 = 2;

/// One rule: it passes, or says what is next.
pub(crate) type Rung = fn(&Situation) -> Option<LadderDecision>;

/// The rules of stage 6, in order. An interrupt outranks them all; it never gets here.
pub(crate) const RUNGS: [Rung; 19] = [
    stop_asked_by_a_hook,
    call_put_off,
    streaming_errors,
    media_errors,
    bound_thinking,
    prompt_too_long,
    max_output_tokens,
    other_api_errors,
    model_refusal,
    paused_response,
    empty_answer,
    schema,
    stop_hooks,
    token_budget,
    repeated_call,
    max_turns,
    usd_budget,
    open_calls,
    next_turn_or_completed,
];

/// What the first rung that does not pass says. The last one never passes.
pub(crate) fn decide(rungs: &[Rung], situation: &Situation) -> LadderDecision {
    rungs.iter().find_map(|rung| rung(situation)).unwrap_or(LadderDecision::End(Terminal::ModelError))
}

fn stop_asked_by_a_hook(s: &Situation) -> Option<LadderDecision> {
    (s.is_settled && s.is_stopped_by_hook).then_some(LadderDecision::End(Terminal::HookStopped))
}

fn call_put_off(s: &Situation) -> Option<LadderDecision> {
    (s.is_settled && s.has_deferred).then_some(LadderDecision::End(Terminal::ToolDeferred))
}

fn streaming_errors(s: &Situation) -> Option<LadderDecision> {
    let ResponseEnd::Failed(ResponseFault::Stream { is_broken }) = s.answer else { return None };
    let terminal = if is_broken { Terminal::ModelError } else { Terminal::ApiError };
    Some(s.try_again_or(terminal))
}

/// Refused media are taken out: the one that is named, and all of them if another is refused after it. Any other block that is
/// refused by name gives way too; without a cure that is a failure like others.
fn media_errors(s: &Situation) -> Option<LadderDecision> {
    let ResponseEnd::Failed(fault @ (ResponseFault::Media | ResponseFault::Block)) = s.answer else {
        return None;
    };
    let cure = s.has_refused && s.guards.media_strips < MEDIA_STRIPS_MAX && !s.has_acted;
    let cure = cure.then_some(Transition::MediaStripRetry);
    (cure.is_some() || fault == ResponseFault::Media).then(|| s.rewrite_or(cure, Terminal::ImageError))
}

/// Refused thinking is taken out once: a changed prefix is our doing and must not reach the user.
fn bound_thinking(s: &Situation) -> Option<LadderDecision> {
    if s.answer != ResponseEnd::Failed(ResponseFault::Bound) {
        return None;
    }
    let cure = s.has_thinking && !s.guards.is_thinking_stripped && !s.has_acted;
    Some(s.rewrite_or(cure.then_some(Transition::ThinkingStripRetry), Terminal::ApiError))
}

/// Drain, then compact, then say so.
fn prompt_too_long(s: &Situation) -> Option<LadderDecision> {
    let too_long = s.answer == ResponseEnd::Failed(ResponseFault::TooLong) && !s.has_acted;
    if !too_long && (s.answer != ResponseEnd::WindowFull || s.has_calls) {
        return None;
    }
    if s.has_staged && !s.guards.is_drained {
        return Some(LadderDecision::Again(Transition::CollapseDrainRetry));
    }
    let cure = s.is_reducible && !s.guards.has_compacted_reactively;
    Some(s.rewrite_or(cure.then_some(Transition::ReactiveCompactRetry), Terminal::PromptTooLong))
}

/// Escalate, then resume, then say so. Complete calls of a cut answer are run; the cut one never is.
fn max_output_tokens(s: &Situation) -> Option<LadderDecision> {
    if s.answer != ResponseEnd::Cut {
        return None;
    }
    if s.limits.can_escalate && !s.guards.is_output_escalated && !s.has_acted {
        return Some(LadderDecision::Again(Transition::MaxOutputTokensEscalate));
    }
    if s.has_calls {
        return Some(LadderDecision::RunCalls { should_fall_back: false });
    }
    if s.guards.output_recoveries < s.limits.output_recoveries {
        return Some(LadderDecision::Again(Transition::MaxOutputTokensRecovery));
    }
    Some(LadderDecision::End(Terminal::MaxOutputTokens))
}

/// Stop hooks never hear of these: hook, tokens and error would call each other for ever.
fn other_api_errors(s: &Situation) -> Option<LadderDecision> {
    matches!(s.answer, ResponseEnd::Failed(_)).then(|| s.try_again_or(Terminal::ApiError))
}

fn model_refusal(s: &Situation) -> Option<LadderDecision> {
    (s.answer == ResponseEnd::Refused).then_some(LadderDecision::End(Terminal::Refused))
}

fn paused_response(s: &Situation) -> Option<LadderDecision> {
    let resume = s.answer == ResponseEnd::Paused && !s.has_calls && s.guards.pauses < s.limits.pauses;
    resume.then_some(LadderDecision::Again(Transition::PauseTurnResume))
}

fn empty_answer(s: &Situation) -> Option<LadderDecision> {
    let nudge = s.answer == ResponseEnd::Empty && s.is_after_results && !s.guards.is_nudged;
    nudge.then_some(LadderDecision::Again(Transition::EmptyAnswerNudge))
}

fn schema(s: &Situation) -> Option<LadderDecision> {
    if s.has_calls || s.has_form {
        return None;
    }
    if s.guards.schema_tries < s.limits.schema_tries {
        return Some(LadderDecision::Again(Transition::StructuredOutputRetry));
    }
    Some(LadderDecision::End(Terminal::StructuredOutputRetries))
}

/// Block, then prevent, then pass. Hooks that object too often in a row are overruled.
fn stop_hooks(s: &Situation) -> Option<LadderDecision> {
    if s.has_calls {
        return None;
    }
    match s.stop_hooks {
        StopHooks::Unasked => Some(LadderDecision::AskStopHooks),
        StopHooks::Block if s.guards.stop_blocks < s.limits.stop_blocks => {
            Some(LadderDecision::Again(Transition::StopHookBlocking))
        }
        StopHooks::Prevent => Some(LadderDecision::End(Terminal::StopHookPrevented)),
        StopHooks::Block | StopHooks::Pass => None,
    }
}

/// Below its share the budget asks to go on, until going on brings nothing.
fn token_budget(s: &Situation) -> Option<LadderDecision> {
    if s.has_calls {
        return None;
    }
    let went_on = s.guards.continuations > 0;
    match s.tokens_left {
        TokensLeft::NoBudget => None,
        TokensLeft::Spent => went_on.then_some(LadderDecision::End(Terminal::TokenBudgetCompleted)),
        TokensLeft::Enough { is_small_gain } => {
            let tried = s.guards.continuations >= s.limits.continuations_min;
            let diminishing = is_small_gain && s.guards.small_gains > 0;
            Some(if tried && diminishing {
                LadderDecision::End(Terminal::TokenBudgetCompleted)
            } else {
                LadderDecision::Again(Transition::TokenBudgetContinuation)
            })
        }
    }
}

fn repeated_call(s: &Situation) -> Option<LadderDecision> {
    (s.is_settled && s.has_repeated).then_some(LadderDecision::End(Terminal::RepeatedCall))
}

fn max_turns(s: &Situation) -> Option<LadderDecision> {
    (s.has_calls && s.is_settled && !s.has_turns_left).then_some(LadderDecision::End(Terminal::MaxTurns))
}

fn usd_budget(s: &Situation) -> Option<LadderDecision> {
    (!s.has_usd_left).then_some(LadderDecision::End(Terminal::MaxBudgetUsd))
}

fn open_calls(s: &Situation) -> Option<LadderDecision> {
    (s.has_calls && !s.is_settled).then_some(LadderDecision::RunCalls { should_fall_back: false })
}

#[expect(clippy::unnecessary_wraps, reason = "it is a rung like the others; being the last, it never passes")]
fn next_turn_or_completed(s: &Situation) -> Option<LadderDecision> {
    Some(if s.has_calls {
        LadderDecision::Again(Transition::NextTurn)
    } else {
        LadderDecision::End(Terminal::Completed)
    })
}

impl Situation {
    /// What retry policy and fallbacks make of a failure. Once something has acted, the response stands as far as it came.
    fn try_again_or(&self, terminal: Terminal) -> LadderDecision {
        let another_model = self.guards.fallbacks < self.limits.fallbacks;
        let (should_fall_back, resend) = match self.retry {
            Retry::Again => (false, true),
            Retry::FallBackOrAgain => (another_model, true),
            Retry::FallBackOrGiveUp => (another_model, false),
            Retry::GiveUp => (false, false),
        };
        match (should_fall_back || resend, self.has_acted) {
            (false, _) => LadderDecision::End(terminal),
            (true, true) => LadderDecision::RunCalls { should_fall_back },
            (true, false) if should_fall_back => LadderDecision::Again(Transition::ModelFallback),
            (true, false) if !self.has_usd_left => LadderDecision::End(Terminal::MaxBudgetUsd),
            (true, false) => LadderDecision::Resend,
        }
    }

    /// A rewrite of the transcript that may cure the failure, or its end. Once something has acted, the response stands.
    fn rewrite_or(&self, cure: Option<Transition>, terminal: Terminal) -> LadderDecision {
        match cure {
            Some(cure) => LadderDecision::Again(cure),
            None if self.has_acted => self.try_again_or(terminal),
            None => LadderDecision::End(terminal),
        }
    }
}

#[cfg(test)]
mod tests;
