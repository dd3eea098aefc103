//! Random values: texts, paths, numbers and the parts that records are made of.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::value::RawValue;
use windlass_protocol::*;

fn text() -> BoxedStrategy<String> {
    prop_oneof![
        4 => ".{0,12}",
        1 => Just("line\nline\r\n\ttab \u{0} \u{85}\u{2028}\u{2029} \"quoted\" \\ \u{1f600}".to_owned()),
        1 => "[a-z ]{300,320}",
    ]
    .boxed()
}

pub(super) fn name() -> BoxedStrategy<Arc<str>> {
    text().prop_map(Arc::from).boxed()
}

fn json() -> BoxedStrategy<String> {
    prop_oneof![
        Just("null"),
        Just("[1, 2.50,1e400]"),
        Just("{\"z\":1,\n  \"a\":\r\n 2}"),
        Just(r#"{"windlass:json":"x"}"#),
        Just("\"a\u{2028}\\u2028b\""),
        Just(r#"{"a":{"b":[true,{"type":"tool_result"}]},"n":12345678901234567890123}"#),
        Just("-0.0"),
    ]
    .prop_map(str::to_owned)
    .boxed()
}

fn raw() -> BoxedStrategy<Arc<RawValue>> {
    json().prop_map(|json| RawValue::from_string(json).unwrap().into()).boxed()
}

pub(super) fn structured() -> BoxedStrategy<Option<Arc<RawValueEq>>> {
    of(json().prop_map(|json| Arc::new(RawValueEq(RawValue::from_string(json).unwrap())))).boxed()
}

pub(super) fn path() -> BoxedStrategy<PathBuf> {
    prop_oneof![
        "/[a-zü /]{0,12}".prop_map(PathBuf::from),
        vec(1_u8.., 0..8).prop_map(|bytes| OsString::from_vec(bytes).into()),
    ]
    .boxed()
}

pub(super) fn block() -> BoxedStrategy<Block> {
    let written = prop_oneof![
        Just("{\"type\":\"text\",\n\t\"text\":\"spans lines\"}"),
        Just("{\"type\":\"text\",\"text\":\"raw \u{2028} and \\u2028\"}"),
        Just(r#"{"type":"text","text":"hi","citations":null}"#),
        Just(r#"{"type":"thinking","thinking":"hm"}"#),
        Just(r#"{"type":"thinking","signature":"s","thinking":"hm","x":1.10}"#),
        Just(r#"{"type":"thinking","thinking":7}"#),
        Just(r#"{"data":"zz","type":"redacted_thinking"}"#),
        Just(r#"{"type":"tool_use","id":"t1","name":"Edit","input":{"z":1,"a": 1e400}}"#),
        Just(r#"{"type":"later","is_error":"x","deep":[[[[{}]]]]}"#),
    ];
    prop_oneof![
        3 => text().prop_map(|text| Block::text(&text)),
        3 => written.prop_map(|json| Block::from_json(json).unwrap()),
        1 => result_block(),
        1 => Just(Block::image("image/png", "AA==")),
    ]
    .boxed()
}

fn content() -> BoxedStrategy<Vec<Block>> {
    prop_oneof![text().prop_map(|text| vec![Block::text(&text)]), vec(block(), 0..3)].boxed()
}

pub(super) fn result_block() -> BoxedStrategy<Block> {
    ("[a-z]{1,4}", content_flat(), any::<bool>())
        .prop_map(|(id, content, failed)| Block::tool_result(&id, &content, failed))
        .boxed()
}

fn content_flat() -> BoxedStrategy<Vec<Block>> {
    vec(text().prop_map(|text| Block::text(&text)), 0..3).boxed()
}

fn tool_use() -> BoxedStrategy<ToolUse> {
    (name(), name(), raw()).prop_map(|(id, name, input)| ToolUse { id, name, input: input.into() }).boxed()
}

fn origin() -> BoxedStrategy<Origin> {
    prop_oneof![
        Just(Origin::Prompt),
        Just(Origin::Results),
        Just(Origin::Interruption),
        name().prop_map(Origin::Model),
        Just(Origin::Repair),
        Just(Origin::Boundary),
        Just(Origin::Collapsed),
        Just(Origin::Continuation),
        Just(Origin::Attachment),
    ]
    .boxed()
}

pub(super) fn message() -> BoxedStrategy<Arc<Message>> {
    let role = prop_oneof![4 => Just(Role::User), 1 => Just(Role::Assistant)];
    (any::<u32>(), role, origin(), vec(block(), 0..3))
        .prop_map(|(id, role, origin, blocks)| {
            Arc::new(Message::new(MessageId(id.into()), role, origin, blocks))
        })
        .boxed()
}

pub(super) fn usage() -> BoxedStrategy<Usage> {
    (any::<[u64; 4]>(), any::<[u64; 4]>(), of(prop_oneof![Just("standard".to_owned()), text()]), structured())
        .prop_map(|(tokens, parts, service_tier, iterations)| Usage {
            input_tokens: tokens[0],
            output_tokens: tokens[1],
            cache_creation_input_tokens: tokens[2],
            cache_read_input_tokens: tokens[3],
            cache_creation: CacheCreation {
                ephemeral_5m_input_tokens: parts[0],
                ephemeral_1h_input_tokens: parts[1],
            },
            server_tool_use: ServerToolUse { web_search_requests: parts[2], web_fetch_requests: parts[3] },
            service_tier,
            iterations,
        })
        .boxed()
}

pub(super) fn spend() -> BoxedStrategy<ModelSpend> {
    (usage(), of(any::<f64>()), any::<u64>(), any::<u32>())
        .prop_map(|(usage, cost_usd, window_tokens, output_tokens_max)| ModelSpend {
            usage,
            cost_usd,
            window_tokens,
            output_tokens_max,
        })
        .boxed()
}

fn failure() -> BoxedStrategy<Failure> {
    let class = prop_oneof![
        Just(FailureClass::Overflow),
        Just(FailureClass::Media),
        Just(FailureClass::RateLimited),
        Just(FailureClass::Quota),
        Just(FailureClass::Overloaded),
        Just(FailureClass::Server),
        Just(FailureClass::Auth),
        Just(FailureClass::Forbidden),
        Just(FailureClass::NotFound),
        Just(FailureClass::BadRequest),
        Just(FailureClass::Binding),
        Just(FailureClass::Connect),
        Just(FailureClass::Tls),
        Just(FailureClass::Cut),
        Just(FailureClass::Stalled),
        Just(FailureClass::Malformed),
    ];
    let place =
        of((any::<usize>(), of(any::<usize>())).prop_map(|(message, block)| Culprit { message, block }));
    let overflow = of((any::<u64>(), any::<u64>()).prop_map(|(needed, limit)| Overflow { needed, limit }));
    let numbers = (of(any::<u16>()), of(any::<u64>()), of(any::<bool>()), of(any::<u64>()));
    (class, text(), numbers, of(text()), overflow, place)
        .prop_map(
            |(
                class,
                message,
                (status, retry_after_ms, should_retry, resets_at),
                request_id,
                overflow,
                culprit,
            )| Failure {
                class,
                message,
                status,
                retry_after_ms,
                should_retry,
                request_id,
                overflow,
                resets_at,
                culprit,
            },
        )
        .boxed()
}

pub(super) fn terminal() -> BoxedStrategy<Terminal> {
    proptest::sample::select(&Terminal::ALL[..]).boxed()
}

fn denial() -> BoxedStrategy<Denial> {
    (any::<u32>(), tool_use(), text(), any::<bool>())
        .prop_map(|(call, tool_use, reason, is_by_person)| Denial {
            call: CallId(call),
            tool_use,
            reason,
            is_by_person,
        })
        .boxed()
}

fn models() -> BoxedStrategy<BTreeMap<Arc<str>, ModelSpend>> {
    proptest::collection::btree_map(name(), spend(), 0..2).boxed()
}

fn outcome() -> BoxedStrategy<Box<Outcome>> {
    let texts = (text(), of(name()), vec(text(), 0..2), vec(text(), 0..2), vec(name(), 0..2));
    let spent = (usage(), models());
    let rest = (vec(denial(), 0..2), of(failure()), structured(), of(tool_use()));
    (terminal(), texts, spent, rest, any::<(u32, u64, u64)>())
        .prop_map(
            |(terminal, (text, stop_reason, errors, warnings, prompts), (usage, models), rest, numbers)| {
                let (denials, failure, structured, deferred) = rest;
                Box::new(Outcome {
                    terminal,
                    text,
                    stop_reason,
                    iterations: numbers.0,
                    usage,
                    models,
                    denials,
                    errors,
                    warnings,
                    failure,
                    duration_ms: numbers.1,
                    duration_api_ms: numbers.2,
                    structured,
                    deferred,
                    prompts,
                })
            },
        )
        .boxed()
}

pub(super) fn file_seen() -> BoxedStrategy<FileSeen> {
    let shown =
        vec((any::<usize>(), of(any::<usize>())).prop_map(|(first, count)| ShownPart { first, count }), 0..3);
    let stamp = of((any::<u64>(), any::<u64>(), any::<(i64, i64)>())
        .prop_map(|(inode, size, modified)| FileStamp { inode, size, modified }));
    (path(), any::<u64>(), vec(any::<u32>(), 0..4), any::<bool>(), shown, stamp)
        .prop_map(|(path, hash, lines, is_whole, shown, stamp)| FileSeen {
            path,
            hash,
            lines: lines.into(),
            is_whole,
            shown,
            stamp,
        })
        .boxed()
}

pub(super) fn tool_outcome() -> BoxedStrategy<ToolOutput> {
    let files = (vec(file_seen(), 0..2), of(path()), vec(path(), 0..2));
    (content(), any::<bool>(), structured(), files)
        .prop_map(|(content, is_error, structured, (seen, cwd, readable))| ToolOutput {
            content,
            is_error,
            structured,
            seen,
            cwd,
            readable,
        })
        .boxed()
}

pub(super) fn prompt() -> BoxedStrategy<Prompt> {
    let speaker = prop_oneof![Just(Speaker::User), Just(Speaker::Task), Just(Speaker::Command)];
    let priority = prop_oneof![Just(Priority::Now), Just(Priority::Next), Just(Priority::Later)];
    let spoken = (vec(block(), 0..2), vec(block(), 0..3));
    (spoken, of(name()), speaker, priority, of(any::<u64>()), of(start()))
        .prop_map(|((context, blocks), id, speaker, priority, token_budget, start)| Prompt {
            context,
            blocks,
            id,
            speaker,
            priority,
            token_budget,
            start,
        })
        .boxed()
}

fn start() -> BoxedStrategy<StartSource> {
    prop_oneof![
        Just(StartSource::Startup),
        Just(StartSource::Resume),
        Just(StartSource::Compact),
        Just(StartSource::Fork),
    ]
    .boxed()
}

pub(super) fn kind() -> BoxedStrategy<CallKind> {
    prop_oneof![Just(CallKind::Read), Just(CallKind::Edit), Just(CallKind::Execute), Just(CallKind::Session)]
        .boxed()
}

fn admission() -> BoxedStrategy<Admission> {
    let fact = (path(), of(path()), any::<bool>()).prop_map(|(lexical, resolved, is_directory)| PathFact {
        lexical,
        resolved,
        is_directory,
    });
    let places = || vec(path(), 0..2);
    let facts = (kind(), any::<bool>(), vec(fact, 0..2), places(), places(), text()).prop_map(
        |(kind, is_shared, paths, changes, git_directories, target)| CallFacts {
            is_shared,
            paths,
            changes,
            git_directories,
            target,
            ..CallFacts::new(kind)
        },
    );
    prop_oneof![
        (name(), facts).prop_map(|(tool, facts)| Admission::Ready { tool, facts }),
        Just(Admission::Unknown),
        text().prop_map(Admission::Invalid),
    ]
    .boxed()
}

fn hook_answer() -> BoxedStrategy<Box<HookAnswer>> {
    let permission = prop_oneof![
        Just(HookPermission::Allow),
        text().prop_map(HookPermission::Deny),
        text().prop_map(HookPermission::Ask),
        Just(HookPermission::Defer),
    ];
    let kinds = [
        HookFailureKind::NotStarted,
        HookFailureKind::Crashed,
        HookFailureKind::TimedOut,
        HookFailureKind::Misspoke,
    ];
    let failure = (text(), prop::sample::select(kinds.to_vec()), text())
        .prop_map(|(hook, kind, text)| HookFailure { hook, kind, text });
    let endings = [HookEnding::Worked, HookEnding::Failed, HookEnding::Cancelled];
    let run = (text(), any::<u64>(), prop::sample::select(endings.to_vec()), text())
        .prop_map(|(hook, duration_ms, ending, said)| HookRun { hook, duration_ms, ending, said });
    let told = (vec(failure, 0..2), vec(run, 0..2));
    let lists = (vec(text(), 0..2), vec(text(), 0..2), vec(text(), 0..2), told, vec(raw(), 0..2));
    (of(text()), of(permission), (of(raw()), of(raw())), of(text()), lists)
        .prop_map(|(stop, permission, (input, output), first_prompt, lists)| {
            let (blocks, context, notices, (failures, runs), updates) = lists;
            let answer = HookAnswer { stop, blocks, permission, context, notices, ..HookAnswer::default() };
            Box::new(HookAnswer { input, updates, output, first_prompt, failures, runs, ..answer })
        })
        .boxed()
}

pub(super) fn memory() -> BoxedStrategy<MemoryNote> {
    (path(), name()).prop_map(|(path, text)| MemoryNote { path, text }).boxed()
}

fn surroundings() -> BoxedStrategy<Box<AmbientChanges>> {
    let change =
        (path(), any::<u64>(), text()).prop_map(|(path, hash, note)| FileChange { path, hash, note });
    (vec(change, 0..2), of(name()), of(name()), vec((path(), name()), 0..2))
        .prop_map(|(changed, tasks, background, shown)| {
            Box::new(AmbientChanges { changed, tasks, background, shown })
        })
        .boxed()
}

fn delta() -> BoxedStrategy<Delta> {
    prop_oneof![
        raw().prop_map(Delta::Start),
        text().prop_map(Delta::Text),
        text().prop_map(Delta::Thinking),
        text().prop_map(Delta::Signature),
        text().prop_map(Delta::InputJson),
        name().prop_map(Delta::Other),
        Just(Delta::Stop),
    ]
    .boxed()
}

fn model_event() -> BoxedStrategy<ModelEvent> {
    let note = prop_oneof![
        any::<(u32, u32, u64)>().prop_map(|(tool_results, thinking_turns, tokens)| ModelNote::Cleared {
            tool_results,
            thinking_turns,
            tokens,
        }),
        (any::<u32>(), name()).prop_map(|(blocks, reason)| ModelNote::ThinkingDropped { blocks, reason }),
        (of(name()), of(name()))
            .prop_map(|(category, explanation)| ModelNote::Refusal { category, explanation }),
    ];
    let stop = prop_oneof![
        proptest::sample::select(vec![
            StopReason::EndTurn,
            StopReason::ToolUse,
            StopReason::MaxTokens,
            StopReason::StopSequence,
            StopReason::Refusal,
            StopReason::PauseTurn,
            StopReason::ContextWindowExceeded,
        ]),
        name().prop_map(StopReason::Other),
    ];
    prop_oneof![
        (name(), name(), usage()).prop_map(|(message_id, model, usage)| ModelEvent::Started {
            message_id,
            model,
            usage: usage.into(),
        }),
        (any::<u32>(), delta()).prop_map(|(index, delta)| ModelEvent::Delta { index, delta }),
        (any::<u32>(), block()).prop_map(|(index, block)| ModelEvent::Block { index, block }),
        note.prop_map(ModelEvent::Note),
        (stop, usage()).prop_map(|(stop, usage)| ModelEvent::Ended { stop, usage: usage.into() }),
        failure().prop_map(|failure| ModelEvent::Failed(failure.into())),
    ]
    .boxed()
}

fn event() -> BoxedStrategy<Event> {
    let answer = prop_oneof![
        Just(Answer::Allow),
        raw().prop_map(Answer::AllowChanged),
        text().prop_map(Answer::Deny),
    ];
    let told = prop_oneof![
        prompt().prop_map(Event::Submit),
        text().prop_map(|focus| Event::Compact { focus }),
        of(start()).prop_map(|start| Event::GoOn { start }),
        prompt().prop_map(Event::Steer),
        prop_oneof![Just(Interrupt::Stop), Just(Interrupt::Replace), Just(Interrupt::Leave)]
            .prop_map(Event::Interrupt),
        (any::<u32>(), answer).prop_map(|(call, answer)| Event::Answered(CallId(call), answer)),
        (any::<u32>(), text()).prop_map(|(call, text)| Event::Progress(CallId(call), ToolProgress { text })),
    ];
    let happened = prop_oneof![
        (any::<u32>(), model_event()).prop_map(|(id, event)| Event::Model(RequestId(id), event)),
        (any::<u32>(), admission()).prop_map(|(id, admission)| Event::Examined(CallId(id), admission)),
        (any::<u32>(), tool_outcome()).prop_map(|(id, outcome)| Event::Finished(CallId(id), outcome)),
        any::<u32>().prop_map(|id| Event::Timer(TimerId(id))),
        (any::<u32>(), outcome()).prop_map(|(id, outcome)| Event::Forked(ForkId(id), outcome)),
        (any::<u32>(), models()).prop_map(|(id, models)| Event::ForkSpent(ForkId(id), models)),
        (any::<u32>(), hook_answer()).prop_map(|(id, answer)| Event::Hooked(HookId(id), answer)),
        (any::<u32>(), vec(of(path()), 0..3)).prop_map(|(id, files)| Event::Stored(StoreId(id), files)),
        (any::<u32>(), surroundings()).prop_map(|(id, found)| Event::Looked(LookId(id), found)),
        vec(memory(), 0..2).prop_map(Event::Prefetched),
        (text(), vec(any::<u32>().prop_map(CallId), 0..3))
            .prop_map(|(why, unstarted)| Event::StoreFailed { why, unstarted }),
    ];
    prop_oneof![told, happened].boxed()
}

pub(super) fn input() -> BoxedStrategy<Box<Input>> {
    (any::<u64>(), 0..4_000_000_000_000_u64, any::<u64>(), event())
        .prop_map(|(at_ms, wall_ms, entropy, event)| Box::new(Input { at_ms, wall_ms, entropy, event }))
        .boxed()
}
