//! What the core is told.

use windlass_protocol::{Delta, Event, Interrupt, ModelEvent, ModelNote, Priority, Prompt, Speaker};

use super::form::{choice, names, object};

names!(Interrupt { "stop" = Stop, "replace" = Replace, "leave" = Leave });
names!(Speaker { "user" = User, "task" = Task, "command" = Command });
names!(Priority { "now" = Now, "next" = Next, "later" = Later });

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
    "model" = Model { request, event },
    "examined" = Examined { call, admission },
    "progress" = Progress { call, progress },
    "finished" = Finished { call, outcome },
    "answered" = Answered { call, answer },
    "permissions" = Permissions(updates),
    "timer" = Timer(timer),
    "fork_spent" = ForkSpent { fork, models },
    "forked" = Forked { fork, outcome },
    "hooked" = Hooked { hook, answer },
    "stored" = Stored { store, files },
    "looked" = Looked { look, found },
    "prefetched" = Prefetched(notes),
    "store_failed" = StoreFailed { why, unstarted },
});
