//! Why the loop goes round again, and why a run ends: two closed lists.

/// Why the loop went round again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transition {
    /// Tool results exist.
    NextTurn,
    /// The prompt was too long, and every staged collapse was committed.
    CollapseDrainRetry,
    /// The prompt was too long or a medium refused; history was compacted or the media left out.
    ReactiveCompactRetry,
    /// The first output cap was hit; the same request goes out with a larger one.
    MaxOutputTokensEscalate,
    /// The answer was cut at the output cap; the model is asked to go on where it stopped.
    MaxOutputTokensRecovery,
    /// A stop hook objected to ending.
    StopHookBlocking,
    /// The budget of output tokens asks to go on.
    TokenBudgetContinuation,
    /// The answer does not match the schema.
    StructuredOutputRetry,
    /// The provider paused a long turn of its own.
    PauseTurnResume,
    /// The model said nothing after tool results.
    EmptyAnswerNudge,
    /// Another model takes over.
    ModelFallback,
}

impl Transition {
    /// Every transition, in the order of the specification.
    pub const ALL: [Self; 11] = [
        Self::NextTurn,
        Self::CollapseDrainRetry,
        Self::ReactiveCompactRetry,
        Self::MaxOutputTokensEscalate,
        Self::MaxOutputTokensRecovery,
        Self::StopHookBlocking,
        Self::TokenBudgetContinuation,
        Self::StructuredOutputRetry,
        Self::PauseTurnResume,
        Self::EmptyAnswerNudge,
        Self::ModelFallback,
    ];

    /// Our name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NextTurn => "next_turn",
            Self::CollapseDrainRetry => "collapse_drain_retry",
            Self::ReactiveCompactRetry => "reactive_compact_retry",
            Self::MaxOutputTokensEscalate => "max_output_tokens_escalate",
            Self::MaxOutputTokensRecovery => "max_output_tokens_recovery",
            Self::StopHookBlocking => "stop_hook_blocking",
            Self::TokenBudgetContinuation => "token_budget_continuation",
            Self::StructuredOutputRetry => "structured_output_retry",
            Self::PauseTurnResume => "pause_turn_resume",
            Self::EmptyAnswerNudge => "empty_answer_nudge",
            Self::ModelFallback => "model_fallback",
        }
    }
}

/// Why a run ended. Every run ends with exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Terminal {
    /// The model answered and asked for nothing more.
    Completed,
    /// The budget of output tokens is spent, or spending more of it brings nothing.
    TokenBudgetCompleted,
    /// A stop hook said not to go on.
    StopHookPrevented,
    /// A hook of a tool call said not to go on.
    HookStopped,
    /// The next turn would exceed the limit.
    MaxTurns,
    /// The cost of the whole tree reached its cap.
    MaxBudgetUsd,
    /// The answer did not match the schema after the allowed retries.
    StructuredOutputRetries,
    /// Interrupted while the model was answering.
    AbortedStreaming,
    /// Interrupted while tools ran.
    AbortedTools,
    /// The context is full, and every automatic way to make room is off by setting.
    BlockingLimit,
    /// The prompt does not fit the window after everything that makes room.
    PromptTooLong,
    /// The answer was still cut at the output limit after everything that is done about it.
    MaxOutputTokens,
    /// A picture or document is refused, and leaving it out did not help.
    ImageError,
    /// A broken answer, or an error of ours.
    ModelError,
    /// The model could not be reached or refused the request, after the retries.
    ApiError,
    /// The model declined to answer.
    Refused,
    /// The same call came with the same result again and again.
    RepeatedCall,
    /// Compaction makes no progress.
    RapidRefill,
    /// A hook put a call off until later.
    ToolDeferred,
    /// The log cannot be written.
    StoreFailed,
}

impl Terminal {
    /// Every terminal, in the order of the specification.
    pub const ALL: [Self; 20] = [
        Self::Completed,
        Self::TokenBudgetCompleted,
        Self::StopHookPrevented,
        Self::HookStopped,
        Self::MaxTurns,
        Self::MaxBudgetUsd,
        Self::StructuredOutputRetries,
        Self::AbortedStreaming,
        Self::AbortedTools,
        Self::BlockingLimit,
        Self::PromptTooLong,
        Self::MaxOutputTokens,
        Self::ImageError,
        Self::ModelError,
        Self::ApiError,
        Self::Refused,
        Self::RepeatedCall,
        Self::RapidRefill,
        Self::ToolDeferred,
        Self::StoreFailed,
    ];

    /// Our name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::TokenBudgetCompleted => "token_budget_completed",
            Self::StopHookPrevented => "stop_hook_prevented",
            Self::HookStopped => "hook_stopped",
            Self::MaxTurns => "max_turns",
            Self::MaxBudgetUsd => "max_budget_usd",
            Self::StructuredOutputRetries => "structured_output_retries",
            Self::AbortedStreaming => "aborted_streaming",
            Self::AbortedTools => "aborted_tools",
            Self::BlockingLimit => "blocking_limit",
            Self::PromptTooLong => "prompt_too_long",
            Self::MaxOutputTokens => "max_output_tokens",
            Self::ImageError => "image_error",
            Self::ModelError => "model_error",
            Self::ApiError => "api_error",
            Self::Refused => "refused",
            Self::RepeatedCall => "repeated_call",
            Self::RapidRefill => "rapid_refill",
            Self::ToolDeferred => "tool_deferred",
            Self::StoreFailed => "store_failed",
        }
    }

    /// Whether what ended the run is a failure of a model call.
    #[must_use]
    pub fn shows_failure(self) -> bool {
        matches!(self, Self::PromptTooLong | Self::ImageError | Self::ApiError | Self::ModelError)
    }

    /// Whether the run ended on a failure, of a model call or of the context, and not by a limit or by somebody's word.
    #[must_use]
    pub fn is_failure(self) -> bool {
        self.shows_failure() || matches!(self, Self::MaxOutputTokens | Self::BlockingLimit)
    }

    /// Whether the user, or a program for them, ended the run.
    #[must_use]
    pub fn is_interrupt(self) -> bool {
        matches!(self, Self::AbortedStreaming | Self::AbortedTools)
    }

    /// Whether the run ended well. A model that declines has answered too.
    #[must_use]
    pub fn is_success(self) -> bool {
        match self {
            Self::Completed
            | Self::TokenBudgetCompleted
            | Self::StopHookPrevented
            | Self::HookStopped
            | Self::Refused
            | Self::ToolDeferred => true,
            Self::MaxTurns
            | Self::MaxBudgetUsd
            | Self::StructuredOutputRetries
            | Self::AbortedStreaming
            | Self::AbortedTools
            | Self::BlockingLimit
            | Self::PromptTooLong
            | Self::MaxOutputTokens
            | Self::ImageError
            | Self::ModelError
            | Self::ApiError
            | Self::RepeatedCall
            | Self::RapidRefill
            | Self::StoreFailed => false,
        }
    }
}
