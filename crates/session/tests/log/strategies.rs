//! Random records of every kind, with everything that JSON, paths and numbers make hard.

mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use windlass_protocol::*;

use values::*;

fn ids() -> BoxedStrategy<Vec<MessageId>> {
    vec(any::<u64>().prop_map(MessageId), 0..3).boxed()
}

fn collapse() -> BoxedStrategy<Collapse> {
    (any::<u64>(), any::<u64>(), message())
        .prop_map(|(first, last, summary)| Collapse {
            first: MessageId(first),
            last: MessageId(last),
            summary,
        })
        .boxed()
}

fn compaction() -> BoxedStrategy<Decision> {
    let trigger =
        prop_oneof![Just(CompactTrigger::Auto), Just(CompactTrigger::Manual), Just(CompactTrigger::Reactive)];
    (trigger, message(), of(any::<u64>()), any::<(bool, bool)>(), any::<(u64, u64, u64)>())
        .prop_map(
            |(
                trigger,
                boundary,
                tail,
                (is_unbound, is_mechanical),
                (tokens_before, tokens_after, duration_ms),
            )| {
                Decision::Compacted(Box::new(Compaction {
                    trigger,
                    boundary,
                    tail: tail.map(MessageId),
                    is_unbound,
                    is_mechanical,
                    tokens_before,
                    tokens_after,
                    duration_ms,
                }))
            },
        )
        .boxed()
}

fn decision() -> BoxedStrategy<Decision> {
    let stored = (name(), path(), block()).prop_map(|(tool_use_id, path, preview)| StoredResult {
        tool_use_id,
        path,
        preview,
    });
    let from = || of(any::<u64>().prop_map(MessageId));
    prop_oneof![
        vec(stored, 0..2).prop_map(Decision::Stored),
        (ids(), any::<u64>(), from()).prop_map(|(messages, tokens, unbound_from)| Decision::Snipped {
            messages,
            tokens,
            unbound_from,
        }),
        (vec((name(), block()), 0..2), any::<u64>(), from()).prop_map(|(results, tokens, unbound_from)| {
            Decision::Cleared { results, tokens, unbound_from }
        }),
        collapse().prop_map(Decision::Staged),
        (vec(collapse(), 0..2), any::<u64>(), from()).prop_map(|(spans, tokens, unbound_from)| {
            Decision::Collapsed { spans, tokens, unbound_from }
        }),
        compaction(),
        vec(message(), 0..2).prop_map(Decision::MediaStripped),
        ids().prop_map(Decision::ThinkingStripped),
    ]
    .boxed()
}

fn repair() -> BoxedStrategy<Repair> {
    prop_oneof![
        name().prop_map(|tool_use_id| Repair::AddedResult { tool_use_id }),
        name().prop_map(|tool_use_id| Repair::DroppedResult { tool_use_id }),
        name().prop_map(|tool_use_id| Repair::MovedResult { tool_use_id }),
        name().prop_map(|tool_use_id| Repair::RenamedToolUse { tool_use_id }),
        name().prop_map(|tool_use_id| Repair::DroppedToolUse { tool_use_id }),
        name().prop_map(|tool_use_id| Repair::WrappedInput { tool_use_id }),
        Just(Repair::DroppedText),
        Just(Repair::DroppedThinking),
        Just(Repair::DroppedMessage),
        Just(Repair::AddedUser),
    ]
    .boxed()
}

fn rest() -> BoxedStrategy<SessionMemory> {
    let compactions = (any::<(bool, u32, u32, u32, bool)>(), of(any::<u64>()), of(any::<u64>())).prop_map(
        |(
            (is_compacted, turns_since, failures, no_progress, is_above_half),
            rewritten_at_tokens,
            decided_to,
        )| {
            CompactionMemory {
                is_compacted,
                turns_since,
                failures,
                no_progress,
                is_above_half,
                rewritten_at_tokens,
                decided_to: decided_to.map(MessageId),
            }
        },
    );
    let sent = of((any::<usize>(), name(), any::<bool>())
        .prop_map(|(messages, model, has_thinking)| SentRequest { messages, model, has_thinking }));
    let notes = (vec(memory(), 0..2), vec(path(), 0..2), of((name(), any::<u32>())));
    let files = (vec(path(), 0..2), vec((path(), any::<u64>()), 0..2));
    let time = of(any::<(u64, u64)>()
        .prop_map(|(duration_ms, duration_api_ms)| TimeSpent { duration_ms, duration_api_ms }));
    let unfinished =
        (any::<u64>(), vec(name(), 0..2), any::<usize>()).prop_map(|(message, prompts, context)| {
            UnfinishedPrompt { message: MessageId(message), prompts, context }
        });
    let last = (sent, time, vec(unfinished, 0..2));
    (compactions, any::<(u64, usize)>(), any::<(u32, bool)>(), files, notes, last)
        .prop_map(
            |(
                compactions,
                counted,
                (collapse_failures, has_been_reached),
                (recent, told_changes),
                notes,
                last,
            )| {
                SessionMemory {
                    compactions,
                    counted,
                    collapse_failures,
                    recent,
                    told_changes,
                    found_memory: notes.0,
                    told_memory: notes.1,
                    tasks: notes.2,
                    sent: last.0,
                    has_been_reached,
                    time: last.1,
                    unfinished: last.2,
                }
            },
        )
        .boxed()
}

fn snapshot() -> BoxedStrategy<Box<SessionSnapshot>> {
    let messages = (vec(message(), 0..3), any::<u64>());
    let files = (path(), vec(file_seen(), 0..2), vec(path(), 0..2));
    let money = (proptest::collection::btree_map(name(), spend(), 0..2), any::<f64>());
    let waiting = (vec(prompt(), 0..2), vec(collapse(), 0..2), vec(any::<u64>(), 0..3));
    (messages, files, money, waiting, rest())
        .prop_map(
            |(
                (messages, last),
                (cwd, files, readable),
                (spent, total_usd),
                (waiting, staged, doubtful),
                rest,
            )| {
                let spent: BTreeMap<_, _> = spent;
                Box::new(SessionSnapshot {
                    messages,
                    last_message: MessageId(last),
                    cwd,
                    files,
                    readable,
                    waiting,
                    staged,
                    spent,
                    total_usd,
                    doubtful,
                    rest,
                })
            },
        )
        .boxed()
}

fn said() -> BoxedStrategy<UserEntry> {
    let sender = prop_oneof![
        2 => name(),
        1 => any::<u128>().prop_map(|id| uuid::Uuid::from_u128(id).to_string().into()),
    ];
    (message(), 0..4_usize, vec(sender, 0..3), 0..3_usize)
        .prop_map(|(message, context, prompts, taken)| UserEntry { message, context, prompts, taken })
        .boxed()
}

fn answered() -> BoxedStrategy<AnswerBlock> {
    (any::<(u32, u32, u32, bool)>(), name(), name(), name(), block(), of(usage()))
        .prop_map(|((id, request, index, is_aborted), message_id, model, answered_by, block, usage)| {
            AnswerBlock {
                id: MessageId(id.into()),
                request: RequestId(request),
                message_id,
                model,
                answered_by,
                index,
                block,
                usage: usage.map(Box::new),
                is_aborted,
            }
        })
        .boxed()
}

fn call_result() -> BoxedStrategy<CallResult> {
    (any::<(u32, u32, u32)>(), name(), prop_oneof![result_block(), block()], structured())
        .prop_map(|((id, call, asked_by), name, result, structured)| CallResult {
            id: MessageId(id.into()),
            call: CallId(call),
            asked_by: MessageId(asked_by.into()),
            name,
            result,
            structured,
        })
        .boxed()
}

fn conversation() -> BoxedStrategy<Record> {
    prop_oneof![
        said().prop_map(Record::Said),
        answered().prop_map(Record::Answered),
        call_result().prop_map(Record::Result),
        compaction().prop_map(Record::Decided),
        ids().prop_map(Record::Retracted),
    ]
    .boxed()
}

fn other() -> BoxedStrategy<Record> {
    let requested = (any::<(u32, u32)>(), name(), vec((name(), any::<u64>()), 0..3)).prop_map(
        |((request, attempt), model, parts)| RequestEntry {
            request: RequestId(request),
            model,
            attempt,
            parts,
        },
    );
    let intended = (any::<(u32, u64)>(), name(), name(), kind(), vec(path(), 0..3)).prop_map(
        |((call, input_hash), tool_use_id, tool, kind, changes)| CallIntent {
            call: CallId(call),
            tool_use_id,
            tool,
            kind,
            input_hash,
            changes,
        },
    );
    let spent =
        (name(), spend(), any::<(bool, f64)>()).prop_map(|(model, spend, (is_by_fork, total_usd))| {
            SpendEntry { model, spend, is_by_fork, total_usd }
        });
    prop_oneof![
        prompt().prop_map(Record::Queued),
        Just(Record::Dequeued),
        requested.prop_map(Record::Requested),
        intended.prop_map(Record::Intended),
        (any::<(u32, bool)>(), name()).prop_map(|((call, is_error), tool_use_id)| Record::Finished(
            FinishedCall { call: CallId(call), tool_use_id, is_error }
        )),
        decision().prop_map(Record::Decided),
        spent.prop_map(Record::Spent),
        vec(repair(), 0..3).prop_map(Record::Repaired),
        (terminal(), rest())
            .prop_map(|(terminal, rest)| Record::Ended(RunEnding { terminal, rest: Box::new(rest) })),
        snapshot().prop_map(Record::Snapshot),
    ]
    .boxed()
}

/// Records that are written together. Some hold what was heard first.
fn batch() -> BoxedStrategy<Vec<Record>> {
    let any_batch = (input(), vec(prop_oneof![conversation(), other()], 0..4)).prop_map(|(input, rest)| {
        let mut batch = vec![Record::Heard(input)];
        batch.extend(rest);
        batch
    });
    let block_heard = (input(), answered()).prop_map(|(mut input, answered)| {
        let event = ModelEvent::Block { index: answered.index, block: answered.block.clone() };
        input.event = Event::Model(answered.request, event);
        vec![Record::Heard(input), Record::Dequeued, Record::Answered(answered)]
    });
    let outcome_heard = (input(), tool_outcome(), call_result(), any::<bool>()).prop_map(
        |(mut input, outcome, mut result, same)| {
            result.result = Block::tool_result("call", &outcome.content, outcome.is_error);
            if same {
                result.structured.clone_from(&outcome.structured);
            }
            input.event = Event::Finished(result.call, outcome);
            vec![Record::Heard(input), Record::Result(result)]
        },
    );
    let prompt_heard = (input(), prompt(), said(), any::<(bool, bool)>()).prop_map(
        |(mut input, prompt, mut said, (steers, waits))| {
            said.context = prompt.context.len();
            let blocks = prompt.context.iter().chain(&prompt.blocks).cloned().collect();
            said.message = Arc::new(said.message.with_blocks(blocks));
            input.event = if steers { Event::Steer(prompt.clone()) } else { Event::Submit(prompt.clone()) };
            let record = if waits { Record::Queued(prompt) } else { Record::Said(said) };
            vec![Record::Heard(input), record]
        },
    );
    prop_oneof![3 => any_batch, 1 => block_heard, 1 => outcome_heard, 1 => prompt_heard].boxed()
}

/// A whole log. As in the machine, no two messages have one id.
pub(crate) fn log() -> BoxedStrategy<Vec<Vec<Record>>> {
    vec(batch(), 1..6)
        .prop_map(|mut batches| {
            let mut last = 0;
            for record in batches.iter_mut().flatten() {
                last += 1;
                number(record, MessageId(last));
            }
            batches
        })
        .boxed()
}

fn number(record: &mut Record, id: MessageId) {
    let renumbered = |message: &Message| {
        Arc::new(Message::new(id, message.role, message.origin.clone(), message.blocks.clone()))
    };
    match record {
        Record::Said(said) => said.message = renumbered(&said.message),
        Record::Answered(answered) => answered.id = id,
        Record::Result(result) => result.id = id,
        Record::Decided(Decision::Compacted(compaction)) => {
            compaction.boundary = renumbered(&compaction.boundary);
        }
        _ => {}
    }
}
