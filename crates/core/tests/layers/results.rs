//! Results: stored, snipped, cleared; and the limits that act on nothing else.

use std::sync::Arc;

use windlass_core::{CompactionPolicy, Config, ContextPolicy, Event, Prompt, RunSource, Speaker};
use windlass_permission::PermissionMode;
use windlass_protocol::{
    Block, Decision, FailureClass, Message, MessageId, ModelCard, Origin, Terminal, Transcript,
};

use crate::world::{Ends, World, config, tool};

const USED: u64 = 1_000;

#[track_caller]
fn check(mut world: World, tool: &str, result: &str, expected: &[&str]) -> World {
    world.submit("go").turn(tool, "{}", result, USED);
    assert_eq!(world.news(), [&["request"], expected, &["request"]].concat());
    world
}

#[test]
fn a_result_over_its_tools_limit_goes_to_a_file() {
    let long = "x".repeat(30_001);
    let mut world = check(World::new(config()), "Bash", &long, &["store", "stored"]);
    assert!(
        world.sent().contains("[The full result has 30001 characters and is in /stored/t1.txt."),
        "{}",
        world.sent()
    );
    assert!(world.sent().len() < 3_000);
    // What was sent before is still in the provider's cache.
    assert_eq!(world.requests.last().unwrap().breakpoints, [0, 2]);
    // It stays so: the world checks that the prefix does not change.
    world.turn("Bash", "{}", "short", USED).turn("Bash", "{}", &long, USED);
    assert_eq!(world.news(), ["request", "store", "stored", "request"]);
    check(World::new(config()), "Bash", &"x".repeat(30_000), &[]);
    check(World::new(config()), "Read", &long, &[]);
}

#[test]
fn the_largest_results_of_a_message_that_is_too_large_go_to_files() {
    let config = config();
    let context = ContextPolicy { message_result_chars_max: 10_000, ..config.context };
    check(
        World::new(Config { context, ..config.clone() }),
        "Read",
        &"x".repeat(10_001),
        &["store", "stored"],
    );
    check(World::new(Config { context, ..config }), "Read", &"x".repeat(9_900), &[]);
}

#[test]
fn of_several_results_only_as_many_go_as_have_to() {
    let mut config = config();
    config.context.message_result_chars_max = 10_000;
    let mut world = World::new(config);
    let sizes = [3_000, 9_000, 4_000].map(|size| "x".repeat(size));
    world.submit("go").turn_of("Read", "{}", &sizes.each_ref().map(String::as_str), USED);
    let [Decision::Stored(stored)] = &world.decisions[..] else { panic!("{:?}", world.decisions) };
    assert_eq!(stored.iter().map(|stored| &*stored.tool_use_id).collect::<Vec<_>>(), ["t2"]);
}

#[test]
fn a_result_that_no_file_takes_stays_whole() {
    let mut world = World::new(config());
    world.can_store = false;
    world.submit("go").turn("Bash", "{}", &"x".repeat(30_001), USED);
    let news = world.news();
    assert_eq!(news[..2], ["request", "store"]);
    assert!(news[2].starts_with("notice: Cannot move a result of 30001 characters (call t1)"), "{news:?}");
    assert!(world.sent().len() > 30_000);
    // It was decided; a later request does not try again, not even the one after a refusal.
    world.fails(FailureClass::Overflow);
    assert_eq!(world.news(), ["compacting Reactive", "fork compact"]);
}

#[test]
fn a_stored_result_may_be_read_wherever_it_lies() {
    let mut config = config();
    config.permissions.mode = PermissionMode::Default;
    let mut world = World::new(config);
    world.submit("go").turn("Bash", "{}", &"x".repeat(30_001), USED);
    world.file = "/stored/t1.txt".into();
    world.turn("Read", "{}", "readable", USED);
    assert!(world.sent().contains("readable"));
    world.file = "/stored/other.txt".into();
    world.turn("Read", "{}", "forbidden", USED);
    assert!(!world.sent().contains("forbidden"));
}

#[test]
fn a_summariser_stores_nothing() {
    check(World::new(Config { source: RunSource::Compact, ..config() }), "Bash", &"x".repeat(30_001), &[]);
}

fn user(id: u64, origin: Origin, text: &str) -> Arc<Message> {
    Message::user(MessageId(id), origin, vec![Block::text(text)]).into()
}

#[test]
fn nothing_before_the_last_boundary_is_sent() {
    let answer =
        |id, text| Arc::new(Message::assistant(MessageId(id), "main".into(), vec![Block::text(text)]));
    let messages: Transcript = [
        user(1, Origin::Boundary, "oldest"),
        answer(2, "old"),
        user(3, Origin::Boundary, "summary"),
        answer(4, "recent"),
    ]
    .into_iter()
    .collect();
    let (state, effects) = windlass_core::step(
        windlass_core::State::new("/project".into(), messages),
        windlass_core::Input::at(0, windlass_core::Event::Submit("now".into())),
        &config(),
    );
    drop(effects);
    let texts: Vec<&str> =
        state.messages().iter().flat_map(|message| &message.blocks).filter_map(Block::as_text).collect();
    assert_eq!(texts, ["summary", "recent", "now"]);
}

/// Reads of 20 000 characters each, the last of which brings the context to `used`.
fn reads(config: Config, count: usize, used: u64) -> World {
    let mut world = World::new(config);
    world.submit("go");
    for n in 1..=count {
        let input = format!(r#"{{"file_path":"/f{n}"}}"#);
        world.turn("Read", &input, &"word ".repeat(4_000), if n == count { used } else { USED });
    }
    world
}

#[track_caller]
fn check_cleared(config: Config, used: u64, expected: &[&str]) -> World {
    let mut world = reads(config, 10, used);
    world.news();
    world.turn("Read", r#"{"file_path":"/g"}"#, "short", used);
    assert_eq!(world.news(), [expected, &["request"]].concat());
    world
}

fn without_auto(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = config();
    config.context.compaction = CompactionPolicy::OnRequest;
    change(&mut config);
    config
}

#[test]
fn above_the_warning_threshold_old_results_are_cleared() {
    let world = check_cleared(without_auto(|_| ()), 170_000, &[]);
    let Some(Decision::Cleared { results, tokens, unbound_from }) = world.decisions.last() else {
        panic!("{:?}", world.decisions)
    };
    let calls: Vec<&str> = results.iter().map(|(call, _)| &**call).collect();
    // The oldest go, the newest five stay.
    assert_eq!(calls, ["t1", "t2", "t3", "t4", "t5"]);
    assert!(*tokens >= 20_000, "{tokens}");
    assert_eq!(*unbound_from, None);
    assert_eq!(world.sent().matches("[Old result, cleared").count(), 5);
}

#[test]
fn results_are_cleared_only_where_it_is_due_and_worth_it() {
    let none = |world: World| assert!(world.decisions.is_empty(), "{:?}", world.decisions);
    none(check_cleared(without_auto(|_| ()), 150_000, &[]));
    none(check_cleared(without_auto(|c| c.source = RunSource::Compact), 170_000, &[]));
    none(check_cleared(without_auto(|c| c.context.can_micro_compact = false), 170_000, &[]));
    none(check_cleared(without_auto(|c| c.context.clear_at_least_tokens = 200_000), 170_000, &[]));
    none(check_cleared(without_auto(|c| c.context.results_kept = 20), 170_000, &[]));
    // Where the provider clears its own copy, ours stays as it is.
    none(check_cleared(without_auto(|c| c.model.can_edit_context = true), 170_000, &[]));
}

#[test]
fn no_more_results_are_cleared_than_it_takes_and_none_twice() {
    let mut world = reads(without_auto(|c| c.context.clear_at_least_tokens = 5_000), 20, 130_000);
    world.turn("Read", "{}", "short", 160_000);
    let count = |decision: Option<&Decision>| match decision {
        Some(Decision::Cleared { results, .. }) => results.len(),
        other => panic!("{other:?}"),
    };
    assert!((4..=10).contains(&count(world.decisions.last())));
    world.turn("Read", "{}", "short", 120_000).turn("Read", "{}", "short", 160_000);
    let calls = |decision: &Decision| match decision {
        Decision::Cleared { results, .. } => results.iter().map(|(call, _)| call.clone()).collect(),
        _ => Vec::new(),
    };
    let mut all: Vec<Arc<str>> = world.decisions.iter().flat_map(calls).collect();
    let cleared = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), cleared);
}

#[test]
fn what_was_cleared_is_not_cleared_again() {
    let mut world = World::new(without_auto(|c| {
        c.context.results_kept = 0;
        c.context.clear_at_least_tokens = 1;
    }));
    world.submit("go");
    for n in 1..=2 {
        world.turn("Bash", "{}", &"word ".repeat(4_000), 165_000);
        let Some(Decision::Cleared { results, .. }) = world.decisions.last() else { panic!("{n}") };
        assert_eq!(results.iter().map(|(call, _)| call.to_string()).collect::<Vec<_>>(), [format!("t{n}")]);
    }
}

#[test]
fn large_results_go_before_small_ones() {
    let mut world = World::new(without_auto(|_| ()));
    world.submit("go").turn("Bash", "{}", &"word ".repeat(150), USED);
    for n in 2..=16 {
        world.turn("Bash", "{}", &"word ".repeat(4_000), if n == 16 { 160_000 } else { USED });
    }
    let Some(Decision::Cleared { results, .. }) = world.decisions.last() else {
        panic!("{:?}", world.decisions)
    };
    assert_eq!(&*results[0].0, "t2");
    assert!(results.iter().all(|(call, _)| &**call != "t1"));
}

#[test]
fn thinking_that_was_bound_to_what_is_cleared_goes_with_it() {
    let world = check_cleared(without_auto(|c| c.model.is_thinking_bound = true), 170_000, &[]);
    let Some(Decision::Cleared { unbound_from: Some(_), .. }) = world.decisions.last() else {
        panic!("{:?}", world.decisions)
    };
    // The thinking before the first cleared result, and that of the answer after the rewrite.
    assert_eq!(world.sent().matches(r#""type":"thinking""#).count(), 2);
}

#[test]
fn a_cleared_result_says_where_its_full_form_is() {
    let mut config = without_auto(|c| c.context.results_kept = 0);
    config.tools = [tool("Bash", Some(3_000))].into();
    config.context.clear_at_least_tokens = 1;
    let mut world = World::new(config);
    world.submit("go").turn("Bash", "{}", &"x".repeat(5_000), 170_000);
    assert!(world.sent().contains(
        "[Old result, cleared to make room.] [The full result has 5000 characters and is in /stored/t1.txt"
    ));
}

/// Two reads of the same file of so many words, then another call that brings the context to `used`.
fn two_reads(words: usize, used: u64, change: impl FnOnce(&mut Config)) -> World {
    let mut config = without_auto(|c| {
        c.context.rounds_kept = 1;
        c.context.can_micro_compact = false;
    });
    change(&mut config);
    let mut world = World::new(config);
    world.submit("go").turn("Bash", "{}", "first", USED);
    for _ in 0..2 {
        world.turn("Read", r#"{"file_path":"/f"}"#, &"word ".repeat(words), USED);
    }
    world.turn("Bash", "{}", &"word ".repeat(2_000), used);
    world
}

#[test]
fn above_the_warning_threshold_repeated_reads_are_snipped() {
    assert!(two_reads(2_000, 150_000, |_| ()).decisions.is_empty());
    let world = two_reads(2_000, 165_000, |_| ());
    let [Decision::Snipped { messages, tokens, unbound_from: None }] = &world.decisions[..] else {
        panic!("{:?}", world.decisions)
    };
    assert_eq!(messages.len(), 2);
    assert!(*tokens > 1_000);
    assert_eq!(world.sent().matches("tool_use_id").count(), 3);
    // Thinking behind it goes where it was bound to it.
    let world = two_reads(2_000, 165_000, |c| c.model.is_thinking_bound = true);
    let [Decision::Snipped { unbound_from: Some(_), .. }] = &world.decisions[..] else {
        panic!("{:?}", world.decisions)
    };
    assert_eq!(world.sent().matches(r#""type":"thinking""#).count(), 1);
}

#[test]
fn a_note_goes_when_a_later_one_says_the_same_and_newer() {
    let mut world = World::new(without_auto(|c| {
        c.context.rounds_kept = 1;
        c.context.can_micro_compact = false;
    }));
    let note = |title: &str| {
        let blocks = vec![Block::text(&format!("{title}\n{}", "word ".repeat(2_000)))];
        Event::Steer(Prompt { blocks, speaker: Speaker::Task, ..Prompt::default() })
    };
    world.submit("go").tell(note("Tasks:")).turn("Bash", "{}", "a", USED);
    world.tell(note("Another:")).turn("Bash", "{}", "b", USED);
    world.tell(note("Tasks:")).turn("Bash", "{}", "c", USED);
    world.turn("Bash", "{}", &"word ".repeat(2_000), 165_000);
    let [Decision::Snipped { messages, .. }] = &world.decisions[..] else { panic!("{:?}", world.decisions) };
    assert_eq!(messages.len(), 1);
    let sent = world.sent();
    assert_eq!((sent.matches("Tasks:").count(), sent.matches("Another:").count()), (1, 1));
    assert!(sent.find("Another:") < sent.find("Tasks:"), "the later one stays");
}

#[test]
fn little_is_snipped_only_when_the_cache_is_lost_anyway() {
    assert!(two_reads(50, 165_000, |_| ()).decisions.is_empty());
    let mut world = two_reads(50, 165_000, |c| {
        c.context.can_micro_compact = true;
        c.context.results_kept = 0;
        c.context.clear_at_least_tokens = 1_000;
    });
    assert_eq!(world.news().last_chunk().unwrap(), &["snipped", "cleared", "request"]);
}

#[test]
fn the_blocking_limit_holds_where_nothing_is_summarised_automatically() {
    let off = |change: fn(&mut Config)| {
        let mut config = without_auto(|c| c.small_model = Some(ModelCard::unknown("small")));
        change(&mut config);
        config
    };
    let check = |config: Config, used: u64, expected: &str| {
        let mut world = World::new(config);
        world.submit("go").turn("Read", "{}", "short", used);
        assert_eq!(world.news().last().unwrap(), expected);
    };
    check(off(|_| ()), 176_000, "request");
    check(off(|_| ()), 177_000, "done blocking_limit");
    check(off(|c| c.context.compaction = CompactionPolicy::Off), 177_000, "done blocking_limit");
    check(off(|c| c.source = RunSource::Compact), 177_000, "request");
}

#[test]
fn a_user_who_asks_for_a_compaction_is_not_told_of_the_limit() {
    let mut world = World::new(without_auto(|_| ()));
    world.submit("go").turn("Read", "{}", "short", 100_000).says("done", 178_000).news();
    world.ends.push_back(Ends::With(Terminal::ApiError));
    world.compact("");
    let failed = "failed: The model wrote no summary: api error";
    assert_eq!(world.news(), ["compacting Manual", "fork compact", failed, "done completed"]);
}

#[test]
fn the_report_adds_up_to_what_is_in_use() {
    let mut world = World::new(config());
    world.submit("go").turn("Read", "{}", &"word ".repeat(1_000), 50_000);
    let report = world.state.context_report(&world.config);
    assert_eq!((&*report.model, report.window, report.compact_at), ("main", 200_000, Some(167_000)));
    assert!(report.used > 50_000);
    let sum: u64 = report.parts.iter().map(|(_, size)| size).sum();
    assert!(report.used - sum < 10, "{report:?}");
    let names: Vec<&str> = report.parts.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["system prompt", "tools", "prompts", "answers", "tool calls", "tool results"]);
    let unknown = ModelCard::unknown("main");
    assert_eq!(unknown.window_tokens, report.window);
}

#[test]
fn results_of_parallel_calls_are_counted_once_on_top_of_what_their_response_reported() {
    let used = |results: &[&str]| {
        let mut world = World::new(config());
        world.submit("Make it work.").turn_of("Read", "{}", results, 50_000);
        world.state.context_report(&world.config).used
    };
    let (one, three) = (used(&["same text"]), used(&["same text"; 3]));
    assert!((50_001..50_100).contains(&one), "{one}");
    // The message has tokens of its own, once.
    assert!(three > one && three - 50_000 < 3 * (one - 50_000), "{three} {one}");
}
