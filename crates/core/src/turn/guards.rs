//! Flags and counters: what keeps the loop from going round for ever.
//!
//! Each transition has its row in a table that says of every guard whether it is set, cleared or kept. Together with the
//! ladder these rows are the graph that the termination test walks.

use windlass_protocol::Transition;
use windlass_protocol::Transition as T;

use Change::{Clear as C, Keep as K, Raise as R};

/// What was already tried in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Guards {
    /// How often a cut answer was resumed since the last results.
    pub(crate) output_recoveries: u32,
    /// Whether the transcript was compacted because the provider refused it, since the last results.
    pub(crate) has_compacted_reactively: bool,
    /// Whether the output cap is raised: the override of the first cap.
    pub(crate) is_output_escalated: bool,
    /// Whether a stop hook objected and this is the try after it.
    pub(crate) is_stop_hook_active: bool,
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
    pub(crate) is_nudged: bool,
    /// How many models have failed: the place of the current one in the list of fallbacks.
    pub(crate) fallbacks: u32,
    /// How often refused media were taken out, since the last results: first the one that is named, then all.
    pub(crate) media_strips: u32,
    /// Whether refused thinking was taken out, since the last results.
    pub(crate) is_thinking_stripped: bool,
    /// Whether the previous transition was a drain of staged collapses.
    pub(crate) is_drained: bool,
}

/// What a transition does to one guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Keep,
    /// A flag goes down, a counter to 0.
    Clear,
    /// A flag goes up, a counter by 1.
    Raise,
}

/// A column for each guard, in the order of the fields, and a row for each transition, in the order of the enum: a new one of
/// either does not compile before every decision is made.
const ROWS: [([Change; 14], Transition); Transition::ALL.len()] = [
    // Cures tried for the last request may be tried again for the next; counts of the whole run are kept.
    ([C, C, C, K, K, K, K, K, C, C, K, C, C, C], T::NextTurn),
    // Staged collapses were committed at once; everything else is kept.
    ([K, K, K, K, K, K, K, K, K, K, K, K, K, R], T::CollapseDrainRetry),
    // The transcript was compacted so that the provider takes it, once.
    ([K, R, K, K, K, K, K, K, C, K, K, K, K, C], T::ReactiveCompactRetry),
    // What the provider refused was taken out: one rewrite more.
    ([K, K, K, K, K, K, K, K, C, K, K, R, K, C], T::MediaStripRetry),
    // Thinking was taken out so that the provider takes the transcript, once.
    ([K, K, K, K, K, K, K, K, C, K, K, K, R, C], T::ThinkingStripRetry),
    // The first output cap was hit: the override is set.
    ([K, K, R, K, K, K, K, K, C, K, K, K, K, C], T::MaxOutputTokensEscalate),
    // A cut answer is resumed. The override stays, since the rest may be long too.
    ([R, K, K, K, K, K, K, K, C, K, K, K, K, C], T::MaxOutputTokensRecovery),
    // A stop hook objected. The reactive guard is kept, or compaction and hook would call each other for ever.
    ([C, K, C, R, R, K, K, K, C, K, K, K, K, C], T::StopHookBlocking),
    // The budget of output tokens asks to go on. A gain that is not small clears the small ones instead.
    ([C, K, C, K, K, R, R, K, C, K, K, K, K, C], T::TokenBudgetContinuation),
    // The answer does not match the schema: one try more.
    ([C, K, C, K, K, K, K, R, C, K, K, K, K, C], T::StructuredOutputRetry),
    // A paused turn is resumed: one more in a row.
    ([K, K, K, K, K, K, K, K, R, K, K, K, K, C], T::PauseTurnResume),
    // The model said nothing after results and is nudged, once.
    ([K, K, K, K, K, K, K, K, C, R, K, K, K, C], T::EmptyAnswerNudge),
    // Thinking may be taken out for the other model too; a compaction is tried once until the next results.
    ([K, K, K, K, K, K, K, K, C, K, R, K, C, C], T::ModelFallback),
];

const _: () = {
    let mut place = 0;
    while place < ROWS.len() {
        assert!(ROWS[place].1 as usize == place, "the rows are in the order of the transitions");
        place += 1;
    }
};

impl Guards {
    /// The guards after a transition. `is_small_gain` says that the last continuation brought little.
    pub(crate) fn advance(self, transition: Transition, is_small_gain: bool) -> Self {
        let [
            output_recoveries,
            reactive_done,
            output_escalated,
            stop_hook_active,
            stop_blocks,
            continuations,
            small_gains,
            schema_tries,
            pauses,
            nudged,
            fallbacks,
            media_strips,
            thinking_stripped,
            drained,
        ] = ROWS[transition as usize].0;
        let small_gains = if small_gains == R && !is_small_gain { C } else { small_gains };
        Self {
            output_recoveries: output_recoveries.count(self.output_recoveries),
            has_compacted_reactively: reactive_done.flag(self.has_compacted_reactively),
            is_output_escalated: output_escalated.flag(self.is_output_escalated),
            is_stop_hook_active: stop_hook_active.flag(self.is_stop_hook_active),
            stop_blocks: stop_blocks.count(self.stop_blocks),
            continuations: continuations.count(self.continuations),
            small_gains: small_gains.count(self.small_gains).min(2),
            schema_tries: schema_tries.count(self.schema_tries),
            pauses: pauses.count(self.pauses),
            is_nudged: nudged.flag(self.is_nudged),
            fallbacks: fallbacks.count(self.fallbacks),
            media_strips: media_strips.count(self.media_strips),
            is_thinking_stripped: thinking_stripped.flag(self.is_thinking_stripped),
            is_drained: drained.flag(self.is_drained),
        }
    }
}

impl Change {
    fn count(self, before: u32) -> u32 {
        match self {
            Self::Keep => before,
            Self::Clear => 0,
            Self::Raise => before + 1,
        }
    }

    fn flag(self, is_set: bool) -> bool {
        match self {
            Self::Keep => is_set,
            Self::Clear => false,
            Self::Raise => true,
        }
    }
}
