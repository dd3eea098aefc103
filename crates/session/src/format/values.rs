//! The small values of the vocabulary.

use windlass_protocol::{
    Admission, Answer, CacheCreation, CallFacts, CallId, CallKind, Collapse, CompactTrigger, Compaction,
    Culprit, Decision, Denial, Failure, FailureClass, FileChange, FileSeen, FileStamp, ForkId, HookAnswer,
    HookEnding, HookFailure, HookFailureKind, HookId, HookPermission, HookRun, LookId, MemoryNote, Message,
    MessageId, ModelSpend, Origin, Outcome, Overflow, PathFact, Repair, RequestId, Role, ServerToolUse,
    SessionSeed, ShownPart, StartSource, StopReason, StoreId, StoredResult, Surroundings, Terminal, TimerId,
    ToolOutcome, ToolProgress, ToolUse, Usage,
};

use super::json::{
    Fields, Form, Hex, Json, Object, Packed, Plain, Unfit, choice, names, object, put_serde, text,
};

macro_rules! ids {
    ($($type:ident),*) => {$(
        impl Json for $type {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            fn take(json: &str) -> Result<Self, Unfit> {
                Json::take(json).map(Self)
            }
        }
    )*};
}

ids!(RequestId, CallId, TimerId, ForkId, HookId, StoreId, LookId, MessageId);

impl Json for SessionSeed {
    fn put(&self, out: &mut Vec<u8>) {
        Hex::put(&self.0, out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        Hex::take(json).map(Self)
    }
}

impl Json for Terminal {
    fn put(&self, out: &mut Vec<u8>) {
        put_serde(self.name(), out);
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        let name = text(json)?;
        let known = Self::ALL.into_iter().find(|terminal| terminal.name() == name);
        known.ok_or_else(|| Unfit(format!("unknown value `{name}`")))
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

impl Json for Message {
    fn put(&self, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object.field::<_, Plain>("id", &self.id);
        object.field::<_, Plain>("role", &self.role);
        object.field::<_, Plain>("origin", &self.origin);
        object.field::<_, Plain>("blocks", &self.blocks);
        object.close();
    }

    fn take(json: &str) -> Result<Self, Unfit> {
        let fields = Fields::parse(json)?;
        let (id, role) = (fields.read::<_, Plain>("id")?, fields.read::<_, Plain>("role")?);
        Ok(Self::new(id, role, fields.read::<_, Plain>("origin")?, fields.read::<_, Plain>("blocks")?))
    }
}

object!(ToolUse { id, name, input });
object!(CacheCreation { ephemeral_5m_input_tokens, ephemeral_1h_input_tokens });
object!(ServerToolUse { web_search_requests, web_fetch_requests });
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
object!(CallFacts { kind, shared, paths, changes, git_directories, target, commands, url });
choice!(Admission { "ready" = Ready { tool, facts }, "unknown" = Unknown, "invalid" = Invalid(why) });
choice!(Answer { "allow" = Allow, "allow_changed" = AllowChanged(input), "deny" = Deny(why) });
object!(ToolProgress { text });
object!(ToolOutcome { content, is_error, structured, seen, cwd, readable });
object!(FileSeen { path, hash: Hex, lines: Packed, whole, shown, stamp });
object!(FileStamp { inode, size, modified });
object!(ShownPart { first, count });

object!(MemoryNote { path, text });
object!(FileChange { path, hash: Hex, note });
object!(Surroundings { changed, tasks, background, shown });

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
