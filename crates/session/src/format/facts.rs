//! What is restated for whoever opens the session, and the facts that are lines of their own.

use windlass_protocol::{
    CallIntent, CompactionMemory, RequestEntry, SentRequest, SessionMemory, SessionSnapshot, SpendEntry,
    TimeSpent, UnfinishedPrompt,
};

use super::form::{Each, Hex, PlainForm, object};

object!(RequestEntry { request, model, attempt, parts });
object!(CallIntent { call, tool_use_id, tool, kind, input_hash: Hex, changes });
object!(SpendEntry { model, spend, by_fork, total_usd });

object!(CompactionMemory {
    compacted,
    turns_since,
    failures,
    no_progress,
    above_half,
    rewritten_at_tokens,
    decided_to,
});
object!(TimeSpent { duration_ms, duration_api_ms });
object!(SentRequest { messages, model, thinking });
object!(UnfinishedPrompt { message, prompts, context });
object!(SessionMemory {
    compactions,
    counted,
    collapse_failures,
    recent,
    told_changes: Each<(PlainForm, Hex)>,
    found_memory,
    told_memory,
    tasks,
    sent,
    unfinished,
    reached,
    time,
});
object!(SessionSnapshot {
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
