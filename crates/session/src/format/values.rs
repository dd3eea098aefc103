//! How each type of the vocabulary is written.

use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use serde_json::value::RawValue;
use windlass_protocol::{
    Admission, AmbientChanges, Answer, CallFacts, CallIntent, CallRuling, Collapse, CommandFacts,
    CommandPath, CommandWord, Compaction, CompactionMemory, Culprit, Decision, Delta, Denial, Event, Failure,
    FileChange, FileSeen, FileStamp, FoundCommand, HookAnswer, HookFailure, HookPermission, HookRun,
    HostFact, MemoryNote, Message, ModelEvent, ModelNote, ModelSpend, NamedPath, Origin, Outcome, Overflow,
    PathFact, PermissionChange, PermissionUpdate, PlainCommand, Prompt, RequestEntry, Ruling, RulingRule,
    SentRequest, SessionMemory, SessionSeed, SessionSnapshot, ShownPart, SpendEntry, StopReason,
    StoredResult, TimeSpent, ToolInput, ToolOutput, ToolProgress, ToolUse, UnfinishedPrompt, UrlFact, Usage,
};

use super::field_forms::{
    FieldForm, Hex, JsonFields, PackedNumbers, Pair, PlainForm, choice, object, put_field, text,
};

impl FieldForm<SessionSeed> for PlainForm {
    fn serialize<S: Serializer>(value: &SessionSeed, to: S) -> Result<S::Ok, S::Error> {
        Hex::serialize(&value.0, to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SessionSeed, D::Error> {
        Hex::deserialize(from).map(SessionSeed)
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
        let fields: JsonFields<'_> = Deserialize::deserialize(from)?;
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
object!(CallFacts { kind, is_shared = "shared", paths, changes, git_directories, target, commands, url } without { run });
choice!(Admission { "ready" = Ready { tool, facts }, "unknown" = Unknown, "invalid" = Invalid(why) });
choice!(Answer { "allow" = Allow, "allow_changed" = AllowChanged(input), "deny" = Deny(why) });
object!(ToolProgress { text });
object!(ToolOutput { content, is_error, structured, seen, cwd, readable });
object!(FileSeen { path, hash: Hex, lines: PackedNumbers, is_whole = "whole", shown, stamp });
object!(FileStamp { inode, size, modified: Pair });
object!(ShownPart { first, count });

object!(MemoryNote { path, text });
object!(FileChange { path, hash: Hex, note });
object!(AmbientChanges { changed, tasks, background, shown: Pair });

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
    trigger, boundary, tail, is_unbound = "unbound", is_mechanical = "mechanical",
    tokens_before, tokens_after, duration_ms,
});
choice!(Decision {
    "stored" = Stored(results),
    "snipped" = Snipped { messages, tokens, unbound_from },
    "cleared" = Cleared { results: Pair, tokens, unbound_from },
    "staged" = Staged(span),
    "collapsed" = Collapsed { spans, tokens, unbound_from },
    "compacted" = Compacted(compaction),
    "media_stripped" = MediaStripped[messages],
    "thinking_stripped" = ThinkingStripped[messages],
});

object!(Denial { call, tool_use, reason, is_by_person = "by_person" });
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

object!(RequestEntry { request, model, attempt, parts: Pair });
object!(CallIntent { call, tool_use_id, tool, kind, input_hash: Hex, changes });
object!(SpendEntry { model, spend, is_by_fork = "by_fork", total_usd });

object!(CompactionMemory {
    is_compacted = "compacted", turns_since, failures, no_progress, is_above_half = "above_half",
    rewritten_at_tokens, decided_to,
});
object!(TimeSpent { duration_ms, duration_api_ms });
object!(SentRequest { messages, model, has_thinking = "thinking" });
object!(UnfinishedPrompt { message, prompts, context });
object!(SessionMemory {
    compactions, counted: Pair, collapse_failures, recent, told_changes: (PlainForm, Hex), found_memory,
    told_memory, tasks: Pair, sent, unfinished, has_been_reached = "reached", time,
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
    doubtful: Hex,
    rest,
});

object!(Prompt { context, blocks, id, speaker, priority, token_budget, start });

choice!(Delta {
    "start" = Start(skeleton),
    "text" = Text(piece),
    "thinking" = Thinking(piece),
    "signature" = Signature(piece),
    "input_json" = InputJson(piece),
    "other" = Other(json),
    "stop" = Stop,
});

choice!(ModelNote {
    "cleared" = Cleared { tool_results, thinking_turns, tokens },
    "thinking_dropped" = ThinkingDropped { blocks, reason },
    "refusal" = Refusal { category, explanation },
});

choice!(ModelEvent {
    "started" = Started { message_id, model, usage },
    "delta" = Delta { index, delta },
    "block" = Block { index, block },
    "note" = Note(note),
    "ended" = Ended { stop, usage },
    "failed" = Failed(failure),
});

choice!(Event {
    "submit" = Submit(prompt),
    "compact" = Compact { focus },
    "go_on" = GoOn { start },
    "steer" = Steer(prompt),
    "take_back" = TakeBack(id),
    "interrupt" = Interrupt(how),
    "model" = Model[request, event],
    "examined" = Examined[call, admission],
    "progress" = Progress[call, progress],
    "finished" = Finished[call, outcome],
    "answered" = Answered[call, answer],
    "permissions" = Permissions(updates),
    "timer" = Timer(timer),
    "fork_spent" = ForkSpent[fork, models],
    "forked" = Forked[fork, outcome],
    "hooked" = Hooked[hook, answer],
    "stored" = Stored[store, files],
    "looked" = Looked[look, found],
    "prefetched" = Prefetched(notes),
    "store_failed" = StoreFailed { why, unstarted },
});

object!(NamedPath { path, naming, is_recursive = "recursive", is_redirected = "redirected" });
object!(PlainCommand { text, words, whole, is_exact_only = "exact_only", spelled, effect, reads, writes, has_network = "network" });
object!(FoundCommand { words, reads, writes, removes });
object!(CommandFacts { line, plain, found, unseen, has_hidden = "hidden" });
object!(UrlFact { text, is_secure = "secure", host, port });
choice!(HostFact { "name" = Name(name), "v4" = V4(address), "v6" = V6(address) });

object!(RulingRule { text, source });
object!(CallRuling { call, tool_use_id, tool, ruling });

// The verdict goes by the name that other tools know too.
object!(Ruling { verdict = "decision", rule, reason, is_undecided = "undecided" });

object!(PermissionUpdate { change, destination });
choice!(PermissionChange {
    "add_rules" = AddRules[behaviour, rules],
    "replace_rules" = ReplaceRules[behaviour, rules],
    "remove_rules" = RemoveRules[behaviour, rules],
    "set_mode" = SetMode(mode),
    "add_directories" = AddDirectories(paths),
    "remove_directories" = RemoveDirectories(paths),
});

/// Stands in the log for a part of a word that is only known when the line runs. No command line can hold it.
const UNKNOWN_MARK: &str = "\0";

/// Its text, with a mark for each part that is not known.
impl FieldForm<CommandWord> for PlainForm {
    fn serialize<S: Serializer>(value: &CommandWord, to: S) -> Result<S::Ok, S::Error> {
        value.marked(UNKNOWN_MARK).serialize(to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CommandWord, D::Error> {
        text(from).map(|text| CommandWord::from_marked(&text, UNKNOWN_MARK))
    }
}

/// The path in the form of one that was looked up, with marks in its name.
impl FieldForm<CommandPath> for PlainForm {
    fn serialize<S: Serializer>(value: &CommandPath, to: S) -> Result<S::Ok, S::Error> {
        match value {
            CommandPath::Known(path) => Self::serialize(path, to),
            CommandPath::Partial(word) => {
                let lexical = word.marked(UNKNOWN_MARK).into_owned().into();
                Self::serialize(&PathFact { lexical, resolved: None, is_directory: false }, to)
            }
        }
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CommandPath, D::Error> {
        let path: PathFact = Self::deserialize(from)?;
        Ok(match CommandWord::from_marked(&path.lexical.to_string_lossy(), UNKNOWN_MARK) {
            CommandWord::Known(_) => CommandPath::Known(path),
            word @ CommandWord::Partial(_) => CommandPath::Partial(word),
        })
    }
}

/// Every command of a line, or why that cannot be said.
impl FieldForm<Result<Vec<PlainCommand>, String>> for PlainForm {
    fn serialize<S: Serializer>(value: &Result<Vec<PlainCommand>, String>, to: S) -> Result<S::Ok, S::Error> {
        match value {
            Ok(commands) => Self::serialize(commands, to),
            Err(why) => why.serialize(to),
        }
    }

    fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Result<Vec<PlainCommand>, String>, D::Error> {
        let raw: &RawValue = Deserialize::deserialize(from)?;
        let known = if raw.get().starts_with('"') {
            text(raw).map(|why| Err(why.into_owned()))
        } else {
            Self::deserialize(raw).map(Ok)
        };
        known.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: std::fmt::Debug + PartialEq>(value: &T, expected: &str)
    where
        PlainForm: FieldForm<T>,
    {
        let mut json = Vec::new();
        PlainForm::serialize(value, &mut serde_json::Serializer::new(&mut json)).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), expected);
        let back: T = PlainForm::deserialize(&mut serde_json::Deserializer::from_str(expected)).unwrap();
        assert_eq!(back, *value);
    }

    #[test]
    fn what_is_not_known_of_a_word_is_a_nul_in_the_log() {
        check(&CommandWord::from("rm"), r#""rm""#);
        check(&CommandWord::unknown(), r#""\u0000""#);
        check(&CommandWord::Partial(vec!["a".into(), String::new(), "b".into()]), r#""a\u0000\u0000b""#);
        let path = CommandPath::Partial(CommandWord::from_marked("/srv/$/a", "$"));
        check(&path, r#"{"lexical":"/srv/\u0000/a"}"#);
        let fact = PathFact { lexical: "/a".into(), resolved: Some("/b".into()), is_directory: true };
        check(&CommandPath::Known(fact), r#"{"lexical":"/a","resolved":"/b","is_directory":true}"#);
    }
}
