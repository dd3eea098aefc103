//! The small values of the vocabulary.

use serde::ser::SerializeMap as _;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serializer};
use serde_json::value::RawValue;

use windlass_protocol::{
    Admission, AmbientChanges, Answer, CallFacts, CallId, CallKind, Collapse, CompactTrigger, Compaction,
    Culprit, Decision, Denial, Failure, FailureClass, FileChange, FileSeen, FileStamp, ForkId, HookAnswer,
    HookEnding, HookFailure, HookFailureKind, HookId, HookPermission, HookRun, LookId, MemoryNote, Message,
    MessageId, ModelSpend, Origin, Outcome, Overflow, PathFact, Repair, RequestId, Role, SessionSeed,
    ShownPart, StartSource, StopReason, StoreId, StoredResult, Terminal, TimerId, ToolInput, ToolOutput,
    ToolProgress, ToolUse, Usage,
};

use super::form::{
    FieldForm, Hex, JsonFields, PackedNumbers, PlainForm, choice, names, object, put_field, text,
};

macro_rules! ids {
    ($($type:ident: $form:ident),*) => {$(
        impl FieldForm<$type> for PlainForm {
            fn serialize<S: Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                $form::serialize(&value.0, to)
            }

            fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                $form::deserialize(from).map($type)
            }
        }
    )*};
}

ids!(RequestId: PlainForm, CallId: PlainForm, TimerId: PlainForm, ForkId: PlainForm, HookId: PlainForm, StoreId: PlainForm, LookId: PlainForm);
ids!(MessageId: PlainForm, SessionSeed: Hex);

impl FieldForm<Terminal> for PlainForm {
    fn serialize<S: Serializer>(value: &Terminal, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.name())
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Terminal, D::Error> {
        let name = text(from)?;
        let known = Terminal::ALL.into_iter().find(|terminal| terminal.name() == name);
        known.ok_or_else(|| serde::de::Error::custom(format_args!("unknown value `{name}`")))
    }
}

choice!(StopReason {
    "end_turn" = EndTurn,
    "tool_use" = ToolUse,
    "max_tokens" = MaxTokens,
    "stop_sequence" = StopSequence,
    "refusal" = Refusal,
    "pause_turn" = PauseTurn,
    "model_context_window_exceeded" = ContextWindowExceeded,
    "other" = Other(name),
});

names!(StartSource { "startup" = Startup, "resume" = Resume, "compact" = Compact, "fork" = Fork });
names!(Role { "user" = User, "assistant" = Assistant });
names!(CallKind { "read" = Read, "fetch" = Fetch, "edit" = Edit, "execute" = Execute, "session" = Session });
names!(HookEnding { "worked" = Worked, "failed" = Failed, "cancelled" = Cancelled });
names!(HookFailureKind {
    "not_started" = NotStarted,
    "crashed" = Crashed,
    "timed_out" = TimedOut,
    "misspoke" = Misspoke,
});
names!(CompactTrigger { "auto" = Auto, "manual" = Manual, "reactive" = Reactive });
names!(FailureClass {
    "overflow" = Overflow,
    "media" = Media,
    "rate_limited" = RateLimited,
    "quota" = Quota,
    "overloaded" = Overloaded,
    "server" = Server,
    "auth" = Auth,
    "forbidden" = Forbidden,
    "not_found" = NotFound,
    "bad_request" = BadRequest,
    "binding" = Binding,
    "connect" = Connect,
    "tls" = Tls,
    "cut" = Cut,
    "stalled" = Stalled,
    "malformed" = Malformed,
});

choice!(Origin {
    "prompt" = Prompt,
    "results" = Results,
    "interruption" = Interruption,
    "model" = Model(name),
    "repair" = Repair,
    "boundary" = Boundary,
    "collapsed" = Collapsed,
    "continuation" = Continuation,
    "attachment" = Attachment,
});

impl FieldForm<Message> for PlainForm {
    fn serialize<S: Serializer>(value: &Message, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        put_field::<_, Self, _>(&mut map, "id", &value.id)?;
        put_field::<_, Self, _>(&mut map, "role", &value.role)?;
        put_field::<_, Self, _>(&mut map, "origin", &value.origin)?;
        put_field::<_, Self, _>(&mut map, "blocks", &value.blocks)?;
        map.end()
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Message, D::Error> {
        let fields = JsonFields::deserialize(from)?;
        let (id, role) = (fields.plain("id")?, fields.plain("role")?);
        Ok(Message::new(id, role, fields.plain("origin")?, fields.plain("blocks")?))
    }
}

object!(ToolUse { id, name, input });

impl FieldForm<ToolInput> for PlainForm {
    fn serialize<S: Serializer>(value: &ToolInput, to: S) -> Result<S::Ok, S::Error> {
        <PlainForm as FieldForm<Arc<RawValue>>>::serialize(&value.json(), to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ToolInput, D::Error> {
        PlainForm::deserialize(from).map(ToolInput::from_log)
    }
}

object!(Usage {
    input_tokens,
    output_tokens,
    cache_creation_input_tokens,
    cache_read_input_tokens,
    cache_creation,
    server_tool_use,
    service_tier,
    iterations,
});
object!(ModelSpend { usage, cost_usd, window_tokens, output_tokens_max });
object!(Overflow { needed, limit });
object!(Culprit { message, block });
object!(Failure {
    class,
    message,
    status,
    retry_after_ms,
    should_retry,
    request_id,
    overflow,
    resets_at,
    culprit,
});

object!(PathFact { lexical, resolved, is_directory });
object!(CallFacts { kind, shared, paths, changes, git_directories, target, commands, url } without { run });
choice!(Admission { "ready" = Ready { tool, facts }, "unknown" = Unknown, "invalid" = Invalid(why) });
choice!(Answer { "allow" = Allow, "allow_changed" = AllowChanged(input), "deny" = Deny(why) });
object!(ToolProgress { text });
object!(ToolOutput { content, is_error, structured, seen, cwd, readable });
object!(FileSeen { path, hash: Hex, lines: PackedNumbers, whole, shown, stamp });
object!(FileStamp { inode, size, modified });
object!(ShownPart { first, count });

object!(MemoryNote { path, text });
object!(FileChange { path, hash: Hex, note });
object!(AmbientChanges { changed, tasks, background, shown });

choice!(HookPermission { "allow" = Allow, "deny" = Deny(why), "ask" = Ask(why), "defer" = Defer });
object!(HookAnswer {
    stop,
    blocks,
    permission,
    input,
    updates,
    output,
    first_prompt,
    context,
    notices,
    failures,
    runs
});
object!(HookFailure { hook, kind, text });
object!(HookRun { hook, duration_ms, ending, said });

object!(StoredResult { tool_use_id, path, preview });
object!(Collapse { first, last, summary });
object!(Compaction {
    trigger,
    boundary,
    tail,
    unbound,
    mechanical,
    tokens_before,
    tokens_after,
    duration_ms,
});
choice!(Decision {
    "stored" = Stored(results),
    "snipped" = Snipped { messages, tokens, unbound_from },
    "cleared" = Cleared { results, tokens, unbound_from },
    "staged" = Staged(span),
    "collapsed" = Collapsed { spans, tokens, unbound_from },
    "compacted" = Compacted(compaction),
    "media_stripped" = MediaStripped { messages },
    "thinking_stripped" = ThinkingStripped { messages },
});

choice!(Repair {
    "added_result" = AddedResult { tool_use_id },
    "dropped_result" = DroppedResult { tool_use_id },
    "moved_result" = MovedResult { tool_use_id },
    "renamed_tool_use" = RenamedToolUse { tool_use_id },
    "dropped_tool_use" = DroppedToolUse { tool_use_id },
    "wrapped_input" = WrappedInput { tool_use_id },
    "dropped_text" = DroppedText,
    "dropped_thinking" = DroppedThinking,
    "dropped_message" = DroppedMessage,
    "added_user" = AddedUser,
});

object!(Denial { call, tool_use, reason, by_person });
object!(Outcome {
    terminal,
    text,
    stop_reason,
    iterations,
    usage,
    models,
    denials,
    errors,
    warnings,
    failure,
    duration_ms,
    duration_api_ms,
    structured,
    deferred,
    prompts,
});
