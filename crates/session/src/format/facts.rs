//! What is restated for whoever opens the session, and the facts that are lines of their own.

use windlass_protocol::{
    CompactionFacts, Facts, Intended, Requested, Rest, SentFacts, Spent, TimeSpent, UnfinishedPrompt,
};

use super::json::{Each, Hex, Plain, object};

object!(Requested { request, model, attempt, parts });
object!(Intended { call, tool_use_id, tool, kind, input_hash: Hex, changes });
object!(Spent { model, spend, by_fork, total_usd });

object!(CompactionFacts {
    compacted,
    turns_since,
    failures,
    no_progress,
    above_half,
    rewritten_at_tokens,
    decided_to,
});
object!(TimeSpent { duration_ms, duration_api_ms });
object!(SentFacts { messages, model, thinking });
object!(UnfinishedPrompt { message, prompts, context });
object!(Rest {
    compactions,
    counted,
    collapse_failures,
    recent,
    told_changes: Each<(Plain, Hex)>,
    found_memory,
    told_memory,
    tasks,
    sent,
    unfinished,
    reached,
    time,
});
object!(Facts {
    messages,
    last_message,
    cwd,
    files,
    readable,
    waiting,
    staged,
    spent,
    total_usd,
    doubtful: Each<Hex>,
    rest,
});
