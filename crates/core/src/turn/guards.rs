//! Flags and counters: what keeps the loop from going round for ever.
//!
//! Each transition has its row here: a complete literal that says what is set, what is cleared and what is kept. Together
//! with the ladder these rows are the graph that the termination test walks.

/// What was already tried in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Guards {
    /// How often a cut answer was resumed since the last results.
    pub(crate) output_recoveries: u32,
    /// Whether the transcript was compacted because the provider refused it, since the last results.
    pub(crate) reactive_done: bool,
    /// Whether the output cap is raised: the override of the first cap.
    pub(crate) output_escalated: bool,
    /// Whether a stop hook objected and this is the try after it.
    pub(crate) stop_hook_active: bool,
    /// How often in a row stop hooks objected. Results do not reset it.
    pub(crate) stop_blocks: u32,
    /// How often the budget of output tokens asked to go on.
    pub(crate) continuations: u32,
    /// How many of the latest continuations in a row gained little; more than two make no difference.
    pub(crate) small_gains: u32,
    /// How often an answer did not match the schema.
    pub(crate) schema_tries: u32,
    /// How often in a row a paused turn was resumed.
    pub(crate) pauses: u32,
    /// Whether the model was nudged after saying nothing, since the last results.
    pub(crate) nudged: bool,
    /// How many models have failed: the place of the current one in the list of fallbacks.
    pub(crate) fallbacks: u32,
    /// How often refused media were taken out, since the last results: first the one that is named, then all.
    pub(crate) media_strips: u32,
    /// Whether refused thinking was taken out, since the last results.
    pub(crate) thinking_stripped: bool,
    /// Whether the previous transition was a drain of staged collapses.
    pub(crate) drained: bool,
}

impl Guards {
    /// A new submission: nothing was tried yet, and the first model has its chance again.
    pub(crate) fn submitted() -> Self {
        Self::default()
    }

    /// Tool results exist. What was tried for the last request may be tried again for the next; what counts through the
    /// whole run is kept.
    pub(crate) fn next_turn(self) -> Self {
        Self {
            output_recoveries: 0,
            reactive_done: false,
            output_escalated: false,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: false,
            fallbacks: self.fallbacks,
            media_strips: 0,
            thinking_stripped: false,
            drained: false,
        }
    }

    /// Staged collapses were committed at once; everything else is kept.
    pub(crate) fn collapse_drain_retry(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries,
            reactive_done: self.reactive_done,
            output_escalated: self.output_escalated,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: self.pauses,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: true,
        }
    }

    /// The transcript was compacted so that the provider takes it, once.
    pub(crate) fn reactive_compact_retry(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries,
            reactive_done: true,
            output_escalated: self.output_escalated,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// What the provider refused was taken out: one rewrite more.
    pub(crate) fn media_strip_retry(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries,
            reactive_done: self.reactive_done,
            output_escalated: self.output_escalated,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips + 1,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// Thinking was taken out so that the provider takes the transcript, once.
    pub(crate) fn thinking_strip_retry(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries,
            reactive_done: self.reactive_done,
            output_escalated: self.output_escalated,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: true,
            drained: false,
        }
    }

    /// The first output cap was hit: the override is set.
    pub(crate) fn max_output_tokens_escalate(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries,
            reactive_done: self.reactive_done,
            output_escalated: true,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// A cut answer is resumed: one recovery more. The override stays, since the rest may be long too.
    pub(crate) fn max_output_tokens_recovery(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries + 1,
            reactive_done: self.reactive_done,
            output_escalated: self.output_escalated,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// A stop hook objected. The reactive guard is kept: clearing it here would let compaction and hook call each other for
    /// ever.
    pub(crate) fn stop_hook_blocking(self) -> Self {
        Self {
            output_recoveries: 0,
            reactive_done: self.reactive_done,
            output_escalated: false,
            stop_hook_active: true,
            stop_blocks: self.stop_blocks + 1,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// The budget of output tokens asks to go on. `small_gain` says that the last continuation brought little.
    pub(crate) fn token_budget_continuation(self, small_gain: bool) -> Self {
        Self {
            output_recoveries: 0,
            reactive_done: self.reactive_done,
            output_escalated: false,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations + 1,
            small_gains: if small_gain { (self.small_gains + 1).min(2) } else { 0 },
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// The answer does not match the schema: one try more.
    pub(crate) fn structured_output_retry(self) -> Self {
        Self {
            output_recoveries: 0,
            reactive_done: self.reactive_done,
            output_escalated: false,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries + 1,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// A paused turn is resumed: one more in a row.
    pub(crate) fn pause_turn_resume(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries,
            reactive_done: self.reactive_done,
            output_escalated: self.output_escalated,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: self.pauses + 1,
            nudged: self.nudged,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// The model said nothing after results and is nudged, once.
    pub(crate) fn empty_answer_nudge(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries,
            reactive_done: self.reactive_done,
            output_escalated: self.output_escalated,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: true,
            fallbacks: self.fallbacks,
            media_strips: self.media_strips,
            thinking_stripped: self.thinking_stripped,
            drained: false,
        }
    }

    /// Another model takes over; thinking that it refuses may be taken out for it too. Compaction stays used up: it is
    /// tried once until the next results.
    pub(crate) fn model_fallback(self) -> Self {
        Self {
            output_recoveries: self.output_recoveries,
            reactive_done: self.reactive_done,
            output_escalated: self.output_escalated,
            stop_hook_active: self.stop_hook_active,
            stop_blocks: self.stop_blocks,
            continuations: self.continuations,
            small_gains: self.small_gains,
            schema_tries: self.schema_tries,
            pauses: 0,
            nudged: self.nudged,
            fallbacks: self.fallbacks + 1,
            media_strips: self.media_strips,
            thinking_stripped: false,
            drained: false,
        }
    }
}
