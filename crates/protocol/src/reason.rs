//! Why the loop goes round again, and why a run ends: two closed lists.

use serde::{Deserialize, Serialize};

use crate::names::named_enum;

named_enum! {
    /// Why the loop went round again.
    pub enum Transition {
        /// Tool results exist.
        NextTurn => "next_turn",
        /// The prompt was too long, and every staged collapse was committed.
        CollapseDrainRetry => "collapse_drain_retry",
        /// The prompt was too long, and the transcript was compacted.
        ReactiveCompactRetry => "reactive_compact_retry",
        /// A medium, or another block, was refused and taken out.
        MediaStripRetry => "media_strip_retry",
        /// Thinking was refused and taken out.
        ThinkingStripRetry => "thinking_strip_retry",
        /// The first output cap was hit; the same request goes out with a larger one.
        MaxOutputTokensEscalate => "max_output_tokens_escalate",
        /// The answer was cut at the output cap; the model is asked to go on where it stopped.
        MaxOutputTokensRecovery => "max_output_tokens_recovery",
        /// A stop hook objected to ending.
        StopHookBlocking => "stop_hook_blocking",
        /// The budget of output tokens asks to go on.
        TokenBudgetContinuation => "token_budget_continuation",
        /// The answer does not match the schema.
        StructuredOutputRetry => "structured_output_retry",
        /// The provider paused a long turn of its own.
        PauseTurnResume => "pause_turn_resume",
        /// The model said nothing after tool results.
        EmptyAnswerNudge => "empty_answer_nudge",
        /// Another model takes over.
        ModelFallback => "model_fallback",
    }
}

named_enum! {
    /// Why a run ended. Every run ends with exactly one.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Terminal {
        /// The model answered and asked for nothing more.
        #[default]
        Completed => "completed",
        /// The budget of output tokens is spent, or spending more of it brings nothing.
        TokenBudgetCompleted => "token_budget_completed",
        /// A stop hook said not to go on.
        StopHookPrevented => "stop_hook_prevented",
        /// A hook of a tool call said not to go on.
        HookStopped => "hook_stopped",
        /// The next turn would exceed the limit.
        MaxTurns => "max_turns",
        /// The cost of the whole tree reached its cap.
        MaxBudgetUsd => "max_budget_usd",
        /// The answer did not match the schema after the allowed retries.
        StructuredOutputRetries => "structured_output_retries",
        /// Interrupted while the model was answering.
        AbortedStreaming => "aborted_streaming",
        /// Interrupted while tools ran.
        AbortedTools => "aborted_tools",
        /// The context is full, and every automatic way to make room is off by setting.
        BlockingLimit => "blocking_limit",
        /// The prompt does not fit the window after everything that makes room.
        PromptTooLong => "prompt_too_long",
        /// The answer was still cut at the output limit after everything that is done about it.
        MaxOutputTokens => "max_output_tokens",
        /// A picture or document is refused, and leaving it out did not help.
        ImageError => "image_error",
        /// A broken answer, or an error of ours.
        ModelError => "model_error",
        /// The model could not be reached or refused the request, after the retries.
        ApiError => "api_error",
        /// The model declined to answer.
        Refused => "refused",
        /// The same call came with the same result again and again.
        RepeatedCall => "repeated_call",
        /// Compaction makes no progress.
        RapidRefill => "rapid_refill",
        /// A hook put a call off until later.
        ToolDeferred => "tool_deferred",
        /// The log cannot be written.
        StoreFailed => "store_failed",
    }
}

impl Terminal {
    /// Whether what ended the run is a failure of a model call.
    pub fn shows_failure(self) -> bool {
        matches!(self, Self::PromptTooLong | Self::ImageError | Self::ApiError | Self::ModelError)
    }

    /// Whether the run ended on a failure, of a model call or of the context, and not on a limit or by a person or hook.
    pub fn is_failure(self) -> bool {
        self.shows_failure() || matches!(self, Self::MaxOutputTokens | Self::BlockingLimit)
    }

    /// Whether the user, or a program for them, ended the run.
    pub fn is_interrupt(self) -> bool {
        matches!(self, Self::AbortedStreaming | Self::AbortedTools)
    }

    /// Whether the run ended well. A model that declines has answered too.
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
