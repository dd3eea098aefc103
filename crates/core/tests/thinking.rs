//! What requests say about thinking, effort and budgets, and that what was said before stays as it was.

#[expect(dead_code, reason = "each file of scenarios uses its part of the language")]
mod log;

use log::{Scenario, check, requests, thinking};
use std::sync::Arc;
use windlass_core::{Config, Interrupt, RunSource, ThinkingMode, ThinkingWish};
use windlass_permission::PermissionMode;
use windlass_protocol::{
    AmbientChanges, Block, Effort, FailureClass, Message, MessageId, ModelCard, ModelNote, ModelRequest,
    Origin, RequestThinking, StopReason, Terminal, ThinkingDisplay, ThinkingSupport, ToolOutput, Usage,
};

/// A model that thinks as it sees fit, takes every setting, and clears old results itself.
fn new_model(id: &str) -> ModelCard {
    ModelCard {
        output_tokens_max: 128_000,
        is_known: true,
        thinking: ThinkingSupport {
            is_adaptive: true,
            is_budgeted: false,
            disabled_up_to: Some(Effort::High),
            is_on_by_default: true,
        },
        efforts: &Effort::ALL,
        can_edit_context: true,
        can_take_task_budget: true,
        ..ModelCard::unknown(id)
    }
}

/// A model that thinks up to a fixed number of tokens, if it is told to.
fn old_model(id: &str) -> ModelCard {
    ModelCard {
        output_tokens_max: 64_000,
        is_known: true,
        thinking: ThinkingSupport {
            is_adaptive: false,
            is_budgeted: true,
            disabled_up_to: Some(Effort::Max),
            is_on_by_default: false,
        },
        ..ModelCard::unknown(id)
    }
}

fn settings(request: &ModelRequest) -> String {
    let ModelRequest { output_tokens_max, thinking, effort, task_budget, edits, .. } = request;
    let thinking = match thinking {
        RequestThinking::Unsaid => "unsaid".into(),
        RequestThinking::Disabled => "off".into(),
        RequestThinking::Adaptive { display } => {
            format!("adaptive {}", display.map_or("", ThinkingDisplay::name))
        }
        RequestThinking::Budgeted { tokens, display } => {
            format!("up to {tokens} {}", display.map_or("", ThinkingDisplay::name))
        }
    };
    let budget = task_budget.map(|budget| match budget.remaining {
        Some(remaining) => format!(", {remaining} of {} tokens", budget.total),
        None => format!(", {} tokens", budget.total),
    });
    let edits = edits.map(|edits| {
        let windlass_protocol::ContextEdits { trigger_tokens, keep_results, clear_at_least_tokens } = edits;
        format!(", clears {clear_at_least_tokens} from {trigger_tokens} on but {keep_results}")
    });
    format!(
        "≤{output_tokens_max}, thinking {}, effort {}{}{}",
        thinking.trim_end(),
        effort.map_or("-", Effort::name),
        budget.unwrap_or_default(),
        edits.unwrap_or_default()
    )
}

/// The settings of the first request.
#[track_caller]
fn check_settings(model: ModelCard, change: impl FnOnce(&mut Config), expected: &str) {
    let sent = requests(Scenario::new().with(|config| config.model = model).with(change).submit("x"));
    assert_eq!(settings(&sent[0]), expected);
}

#[test]
fn a_request_says_what_the_model_takes_and_nothing_else() {
    let wish = |mode, budget_tokens, display| ThinkingWish { mode, budget_tokens, display };
    let (new, old) = (|| new_model("new"), || old_model("old"));
    let edits = "clears 20000 from 160000 on but 5";
    check_settings(new(), |_| (), &format!("≤8000, thinking adaptive, effort -, {edits}"));
    check_settings(
        new(),
        |config| {
            config.effort = Some(Effort::XHigh);
            config.task_budget = Some(100_000);
            config.thinking = wish(ThinkingMode::Auto, None, Some(ThinkingDisplay::Omitted));
        },
        &format!("≤8000, thinking adaptive omitted, effort xhigh, 100000 tokens, {edits}"),
    );
    check_settings(
        new(),
        |config| config.thinking = wish(ThinkingMode::Disabled, None, None),
        &format!("≤8000, thinking off, effort -, {edits}"),
    );
    // This model cannot be told not to think at this effort.
    check_settings(
        new(),
        |config| {
            config.effort = Some(Effort::Max);
            config.thinking = wish(ThinkingMode::Disabled, None, None);
        },
        &format!("≤8000, thinking unsaid, effort max, {edits}"),
    );
    check_settings(
        new(),
        |config| config.context.can_micro_compact = false,
        "≤8000, thinking adaptive, effort -",
    );
    // The summariser sends the same conversation, so it is cleared in the same way.
    check_settings(
        new(),
        |config| config.source = RunSource::Compact,
        "≤8000, thinking adaptive, effort -, clears 20000 from 160000 on but 5",
    );
    check_settings(
        old(),
        |config| {
            config.effort = Some(Effort::High);
            config.task_budget = Some(100_000);
            config.thinking = wish(ThinkingMode::Auto, Some(10_000), None);
        },
        "≤8000, thinking up to 7999, effort -",
    );
    check_settings(
        old(),
        |config| {
            config.output.explicit = Some(32_000);
            config.thinking = wish(ThinkingMode::Auto, Some(10_000), Some(ThinkingDisplay::Summarized));
        },
        "≤32000, thinking up to 10000 summarized, effort -",
    );
    check_settings(old(), |_| (), "≤8000, thinking up to 4000, effort -");
    check_settings(
        old(),
        |config| config.thinking = wish(ThinkingMode::Disabled, None, None),
        "≤8000, thinking off, effort -",
    );
    check_settings(old(), |config| config.output.explicit = Some(1_000), "≤1000, thinking unsaid, effort -");
    check_settings(ModelCard::unknown("unknown"), |_| (), "≤8000, thinking unsaid, effort -");
}

/// An answer with thinking by this model, in a conversation that is resumed.
fn thought_by(model: &str) -> Vec<Message> {
    let question = Message::user(MessageId(1), Origin::Prompt, vec![Block::text("why?")]);
    let answer = Message::assistant(MessageId(2), model.into(), vec![thinking("hm"), Block::text("So.")]);
    vec![question, answer]
}

#[test]
fn thinking_goes_only_to_the_model_that_made_it_and_only_while_it_thinks() {
    let resumed = |made_by: &str, model: ModelCard| {
        Scenario::new().with(|config| config.model = model).resumed(thought_by(made_by)).submit("x")
    };
    let off = |config: &mut Config| config.thinking.mode = ThinkingMode::Disabled;
    check(
        resumed("new", new_model("new")),
        "
        > submit x                   preparing streaming | call-model #1 [user assistant(thinking,text) user]
        ",
    );
    check(
        resumed("other", new_model("new")),
        "
        > submit x                   thinking stripped from 1 | preparing streaming | call-model #1 [user assistant(text) user]
        ",
    );
    check(
        resumed("new", new_model("new")).with(off),
        "
        > submit x                   thinking stripped from 1 | preparing streaming | call-model #1 [user assistant(text) user]
        ",
    );
    // This one thinks only when it is told to, and there is no room for that in a small answer.
    check(
        resumed("old", old_model("old")),
        "
        > submit x                   preparing streaming | call-model #1 [user assistant(thinking,text) user]
        ",
    );
    check(
        resumed("old", old_model("old")).with(|config| config.output.explicit = Some(1_000)),
        "
        > submit x                   thinking stripped from 1 | preparing streaming | call-model #1 [user assistant(text) user]
        ",
    );
    // Of an unknown model nobody knows; it gets what it said.
    check(
        resumed("unknown", ModelCard::unknown("unknown")),
        "
        > submit x                   preparing streaming | call-model #1 [user assistant(thinking,text) user]
        ",
    );
}

#[test]
fn thinking_does_not_go_to_a_fallback_nor_back() {
    check(
        Scenario::new()
            .with(|config| {
                config.model = new_model("first");
                config.fallbacks = [new_model("second")].into();
            })
            .showing_requests(|request| request.model.to_string())
            .submit("x")
            .thinking("hm")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A")
            .fails(FailureClass::NotFound)
            .thinking("so")
            .text("Done.")
            .ended(StopReason::EndTurn)
            .submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user] first
        < thinking hm
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #2 [user assistant(thinking,read) user(result)] first
        < fails NotFound             thinking stripped from 1 | fall back from first to second | again model_fallback | settling preparing streaming | call-model #3 [user assistant(read) user(result)] second
        < thinking so
        < text Done.
        < end end_turn               settling done | = completed after 2
        > submit y                   thinking stripped from 1 | preparing streaming | call-model #4 [user assistant(read) user(result) assistant(text) user] first
        ",
    );
}

#[test]
fn each_model_is_asked_in_its_own_way() {
    check(
        Scenario::new()
            .with(|config| {
                config.model = new_model("first");
                config.fallbacks = [old_model("second")].into();
                config.effort = Some(Effort::Max);
                config.task_budget = Some(100_000);
                config.thinking.budget_tokens = Some(20_000);
            })
            .showing_requests(settings)
            .submit("x")
            .ended(StopReason::MaxTokens)
            .fails(FailureClass::NotFound),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000, thinking adaptive, effort max, 100000 tokens, clears 20000 from 160000 on but 5
        < end max_tokens             again max_output_tokens_escalate | settling preparing streaming | call-model #2 [user] ≤64000, thinking adaptive, effort max, 100000 tokens, clears 20000 from 160000 on but 5
        < fails NotFound             fall back from first to second | again model_fallback | settling preparing streaming | call-model #3 [user] ≤64000, thinking up to 20000, effort -
        ",
    );
}

#[test]
fn a_default_budget_for_thinking_stays_the_same_while_the_cap_is_raised() {
    check(
        Scenario::new()
            .with(|config| config.model = old_model("old"))
            .showing_requests(settings)
            .submit("x")
            .thinking("hm")
            .ended(StopReason::MaxTokens)
            .thinking("hm")
            .call("read a")
            .ended(StopReason::ToolUse)
            .finished(1, "A"),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000, thinking up to 4000, effort -
        < thinking hm
        < end max_tokens             retract 1 | again max_output_tokens_escalate | settling preparing streaming | call-model #2 [user] ≤64000, thinking up to 4000, effort -
        < thinking hm
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use               settling
        > c1 finished A              result c1 | preparing streaming | call-model #3 [user assistant(thinking,read) user(result)] ≤8000, thinking up to 4000, effort -
        ",
    );
}

#[test]
fn thinking_that_nothing_follows_is_not_kept() {
    check(
        Scenario::new()
            .with(|config| config.model = new_model("new"))
            .submit("x")
            .text("Well,")
            .thinking("hm")
            .interrupt(Interrupt::Stop)
            .submit("y"),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < text Well,
        < thinking hm
        > interrupt                  cancel-model #1 | settling done | note The user interrupted this answer. | = aborted_streaming after 1
        > submit y                   preparing streaming | call-model #2 [user assistant(text) user user]
        ",
    );
}

#[test]
fn thinking_comes_back_byte_for_byte() {
    let turn = |scenario: Scenario, n: u32| {
        scenario
            .thinking(&format!("thought {n}"))
            .call(&format!("read {n}"))
            .ended(StopReason::ToolUse)
            .finished(n, "A")
    };
    let scenario =
        (1..=3).fold(Scenario::new().with(|config| config.model = new_model("new")).submit("x"), turn);
    let sent = requests(scenario);
    let last = sent[sent.len() - 1].transcript.to_json();
    for n in 1..=3 {
        let block = thinking(&format!("thought {n}"));
        assert!(last.contains(block.json()), "{last}");
    }
}

/// Whether the second request begins with everything the first one said.
fn extends(first: &ModelRequest, second: &ModelRequest) -> bool {
    let (old, new) = (first.transcript.to_json(), second.transcript.to_json());
    let same = first.system == second.system
        && Arc::ptr_eq(&first.tools, &second.tools)
        && (first.thinking, first.effort, first.task_budget, first.edits)
            == (second.thinking, second.effort, second.task_budget, second.edits);
    // The last message of the old one may have been closed where the new one goes on.
    same && new.starts_with(old.trim_end_matches(']').trim_end_matches('}').trim_end_matches(']'))
}

#[test]
fn each_request_begins_with_the_bytes_of_the_one_before() {
    check_growth(new_model("new"));
    check_growth(old_model("old"));
}

#[track_caller]
fn check_growth(model: ModelCard) {
    let long = || ToolOutput::text(&"word ".repeat(5_000));
    let config = |config: &mut Config| {
        config.model = model;
        config.task_budget = Some(1_000_000);
        config.token_budget = Some(10_000);
        config.tools = [log::tool("read")].into();
    };
    let scenario = Scenario::new()
        .with(config)
        .submit("x")
        .thinking("one")
        .call("read a")
        .steer("and b")
        .ended_at(StopReason::ToolUse, 1_000, 100)
        .finished_with(1, "finished long", long())
        .thinking("two")
        .text("Searching")
        .ended_at(StopReason::PauseTurn, 2_000, 100)
        .text("Half")
        .ended_at(StopReason::MaxTokens, 2_000, 100)
        .text("Half an")
        .ended_at(StopReason::MaxTokens, 2_000, 100)
        .text(" answer.")
        .ended_at(StopReason::EndTurn, 2_000, 100)
        .fails(FailureClass::Overloaded)
        .timer(1)
        .call("read b")
        .ended_at(StopReason::ToolUse, 3_000, 100)
        .finished(2, "B");
    let sent = requests(scenario);
    assert_eq!(sent.len(), 8);
    for pair in sent.windows(2) {
        assert!(
            extends(&pair[0], &pair[1]),
            "{}\n{}",
            pair[0].transcript.to_json(),
            pair[1].transcript.to_json()
        );
    }
}

#[test]
fn what_is_left_of_a_task_budget_is_said_from_the_first_rewrite_on() {
    let long = || ToolOutput::text(&"word ".repeat(1_000));
    let turn = |scenario: Scenario, n: u32| {
        scenario.call(&format!("read {n}")).ended_at(StopReason::ToolUse, 900, 100).finished_with(
            n,
            "finished long",
            long(),
        )
    };
    check(
        turn(
            turn(
                turn(
                    Scenario::new()
                        .with(|config| {
                            config.model = ModelCard { can_edit_context: false, ..new_model("new") };
                            config.task_budget = Some(50_000);
                        })
                        .showing_requests(settings)
                        .submit("x"),
                    1,
                ),
                2,
            )
            .fails(FailureClass::Overflow)
            .forked(1, Terminal::Completed, "They read.")
            .looked(1, "nothing", AmbientChanges::default()),
            3,
        ),
        "
        > submit x                   preparing streaming | call-model #1 [user] ≤8000, thinking adaptive, effort -, 50000 tokens
        < call read 1                examine c1
        > c1 is read 1               run c1
        < end tool_use 900+100       settling
        > c1 finished long           result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)] ≤8000, thinking adaptive, effort -, 50000 tokens
        < call read 2                examine c2
        > c2 is read 2               run c2
        < end tool_use 900+100       settling
        > c2 finished long           result c2 | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)] ≤8000, thinking adaptive, effort -, 50000 tokens
        < fails Overflow             again reactive_compact_retry | compacting reactive | fork f1 compact | settling preparing
        > f1 completed They read.    look l1 []
        > l1 finds nothing           compacted | streaming | call-model #4 [boundary] ≤8000, thinking adaptive, effort -, 48000 of 50000 tokens
        < call read 3                examine c3
        > c3 is read 3               run c3
        < end tool_use 900+100       settling
        > c3 finished long           result c3 | preparing streaming | call-model #5 [boundary assistant(read) user(result)] ≤8000, thinking adaptive, effort -, 48000 of 50000 tokens
        ",
    );
}

#[test]
fn what_the_provider_does_to_its_copy_is_told() {
    let cleared = ModelNote::Cleared { tool_results: 3, thinking_turns: 0, tokens: 42_000 };
    let dropped = ModelNote::ThinkingDropped { blocks: 2, reason: "prefix_mismatch".into() };
    check(
        Scenario::new()
            .submit("x")
            .note("cleared", cleared)
            .note("dropped", dropped)
            .text("Done.")
            .ended(StopReason::EndTurn),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < note cleared               provider cleared 3 results, 42000 tokens
        < note dropped               notice The provider dropped 2 thinking blocks: prefix_mismatch.
        < text Done.
        < end end_turn               settling done | = completed after 1
        ",
    );
}

#[test]
fn a_cache_that_should_have_held_the_prefix_and_did_not_is_told() {
    let usage = |read: u64, written: u64| Usage {
        cache_read_input_tokens: read,
        cache_creation_input_tokens: written,
        ..Usage::default()
    };
    check(
        Scenario::new()
            .submit("x")
            .call("read a")
            .ended_using("writes 20000", StopReason::ToolUse, usage(0, 20_000))
            .finished(1, "A")
            .call("read b")
            .ended_using("reads 20000", StopReason::ToolUse, usage(20_000, 1_000))
            .finished(2, "B")
            .text("Done.")
            .ended_using("reads 500", StopReason::EndTurn, usage(500, 21_000)),
        "
        > submit x                   preparing streaming | call-model #1 [user]
        < call read a                examine c1
        > c1 is read a               run c1
        < end tool_use writes 20000  settling
        > c1 finished A              result c1 | preparing streaming | call-model #2 [user assistant(read) user(result)]
        < call read b                examine c2
        > c2 is read b               run c2
        < end tool_use reads 20000   settling
        > c2 finished B              result c2 | preparing streaming | call-model #3 [user assistant(read) user(result) assistant(read) user(result)]
        < text Done.
        < end end_turn reads 500     cache missed: 500 of 21000, None | settling done | = completed after 3
        ",
    );
}

#[test]
fn another_model_has_a_cache_of_its_own() {
    let breakpoints = |fallbacks: &[ModelCard]| -> Vec<Vec<usize>> {
        let scenario = Scenario::new()
            .permission_mode(PermissionMode::BypassPermissions)
            .with(|config| config.fallbacks = fallbacks.into())
            .submit("x")
            .call("write a")
            .fails(FailureClass::Cut)
            .finished(1, "A")
            .timer(1);
        requests(scenario).iter().map(|request| request.breakpoints.clone()).collect()
    };
    // The cache of the model that was asked first ends with its prompt.
    assert_eq!(breakpoints(&[]), [vec![0], vec![0, 2]]);
    assert_eq!(breakpoints(&[ModelCard::unknown("second")]), [vec![0], vec![2]]);
}
