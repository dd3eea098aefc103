//! Compaction: when it is due, what it asks, what it leaves, and what happens when it fails.

use windlass_core::{CompactionPolicy, Config, Event, Prompt, RunSource};
use windlass_protocol::{
    Block, CompactTrigger, Compaction, Decision, Failure, FailureClass, HookAnswer, HookEvent, MemoryNote,
    ModelCard, Overflow, RequestThinking, Terminal,
};

use crate::world::{Ends, World, config};

/// Six rounds of about 2 200 tokens each; the last brings the context to `used`.
fn rounds(world: &mut World, used: u64) -> &mut World {
    for n in 1..=6 {
        let input = format!(r#"{{"file_path":"/f{n}"}}"#);
        world.turn("Read", &input, &"word ".repeat(1_200), if n == 6 { used } else { 1_000 });
    }
    world
}

fn full(config: Config, ends: &[Ends], used: u64) -> World {
    let mut world = World::new(config);
    world.ends.extend(ends.iter().copied());
    world.submit("Make it work.");
    rounds(&mut world, used);
    world
}

fn compaction(world: &World) -> &Compaction {
    match world.decisions.last() {
        Some(Decision::Compacted(compaction)) => compaction,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(mut world: World, expected: &[&str]) -> World {
    let news = world.news();
    let rest: Vec<&str> = news.iter().map(String::as_str).skip(6).collect();
    assert_eq!(rest, expected);
    world
}

const DONE: [&str; 4] = ["compacting Auto", "fork compact", "compacted", "request"];

#[test]
fn at_the_threshold_history_gives_way_to_a_summary() {
    // What the last result adds is about 2 200 tokens.
    check(full(config(), &[Ends::Says("So far.")], 164_000), &["request"]);
    let mut world = check(full(config(), &[Ends::Says("So far.")], 165_500), &DONE);
    let Compaction { trigger, is_mechanical, tokens_before, tokens_after, .. } = *compaction(&world);
    assert_eq!((trigger, is_mechanical), (CompactTrigger::Auto, false));
    assert!(tokens_before > 167_000 && tokens_after < 20_000, "{tokens_before} {tokens_after}");
    let sent = world.sent();
    assert!(sent.contains("So far.") && sent.contains("The user's last request:\\nMake it work."));
    assert_eq!(sent.matches("tool_use_id").count(), 1);
    assert!(world.state.context_report(&world.config).used < 20_000);
    // The summariser sees the same prefix as the run.
    let fork = &world.forks[0];
    assert_eq!((&*fork.config.model.id, &*fork.config.system, fork.config.tools.len()), ("main", "sys", 2));
    assert_eq!(fork.messages.len(), 13);
    // The run goes on from there; the count begins anew.
    world.turn("Read", "{}", "x", 20_000);
    assert_eq!(world.news(), ["request"]);
}

#[test]
fn a_summariser_is_never_compacted_and_the_setting_is_heeded() {
    check(full(Config { source: RunSource::Compact, ..config() }, &[], 170_000), &["request"]);
    let mut off = config();
    off.context.compaction = CompactionPolicy::OnRequest;
    off.context.can_micro_compact = false;
    check(full(off, &[], 170_000), &["request"]);
}

#[test]
fn what_must_not_depend_on_the_summary_is_attached_again() {
    let mut config = config();
    config.memory =
        [MemoryNote { path: "/m.md".into(), text: "# Compact\nKeep names.\n# Other\nx".into() }].into();
    let mut world = World::new(config);
    world.surroundings.tasks = Some("1. tests".into());
    world.surroundings.background = Some("Running: make watch".into());
    world.ends.push_back(Ends::Says("So far."));
    world.cwd = Some("/project/sub".into());
    world.submit("Make it work.");
    rounds(&mut world, 170_000);
    let sent = world.sent();
    assert!(sent.contains("The working directory is now /project/sub."));
    let file = "Current content of /project/f:\\nits text";
    let tasks = "The current task list:\\n1. tests";
    for part in [tasks, "Running: make watch", "Instructions from /m.md:\\n# Compact", file] {
        assert!(sent.contains(part), "{part} is not in {sent}");
    }
    assert!(world.forks[0].prompt.ends_with("# Compact\nKeep names."), "{}", world.forks[0].prompt);
    // The last request survives the next compaction too.
    world.ends.push_back(Ends::Says("Further."));
    for _ in 0..4 {
        world.turn("Read", "{}", &"word ".repeat(1_200), 20_000);
    }
    rounds(&mut world, 170_000);
    assert!(world.sent().contains("The user's last request:\\nMake it work."));
    assert!(world.sent().contains("Further.") && !world.sent().contains("So far."));
}

#[test]
fn what_was_typed_during_the_run_is_the_last_request() {
    let task = "<task-notification>\nBackground task bash-1 has ended: make\n</task-notification>";
    let compacted = |summary_failures_max: u32| {
        let mut config = config();
        config.context.summary_failures_max = summary_failures_max;
        let mut world = World::new(config);
        world.ends.push_back(Ends::Says("So far."));
        world.submit("Make it work.");
        for text in ["Only the parser.", task] {
            world.tell(Event::Steer(text.into())).turn("Read", "{}", "short", 1_000);
        }
        rounds(&mut world, 170_000);
        world.sent()
    };
    let last = "The user's last request:\\nOnly the parser.\"";
    let (summary, mechanical) = (compacted(3), compacted(0));
    assert!(summary.contains(last) && mechanical.contains(last), "{summary}");
    assert!(
        mechanical.contains("oldest first:\\n- Make it work.\\n- Only the parser.\\n\\n"),
        "{mechanical}"
    );
}

#[test]
fn thinking_goes_from_the_tail_where_it_is_bound() {
    let mut bound = config();
    bound.model.is_thinking_bound = true;
    let world = full(bound, &[Ends::Says("So far.")], 170_000);
    assert!(compaction(&world).is_unbound);
    assert!(world.sent().contains("tool_use_id") && !world.sent().contains(r#""type":"thinking""#));
    let world = full(config(), &[Ends::Says("So far.")], 170_000);
    assert!(!compaction(&world).is_unbound);
    assert!(world.sent().contains(r#""type":"thinking""#));
}

#[test]
fn hooks_are_asked_first() {
    let hooked = |answer: HookAnswer| {
        let mut config = config();
        config.hooks.insert(HookEvent::PreCompact);
        let mut world = World::new(config);
        world.hooks = answer;
        world.ends.push_back(Ends::Says("So far."));
        world.submit("Make it work.");
        rounds(&mut world, 170_000);
        world
    };
    let world = hooked(HookAnswer { context: vec!["Keep the table.".into()], ..HookAnswer::default() });
    let world = check(world, &["compacting Auto", "hooks", "fork compact", "compacted", "request"]);
    assert!(world.forks[0].prompt.ends_with("Keep the table."));
    let world = hooked(HookAnswer { blocks: vec!["not now".into()], ..HookAnswer::default() });
    check(world, &["compacting Auto", "hooks", "failed: A hook blocked it: not now", "request"]);
}

#[test]
fn a_request_for_a_summary_that_is_too_long_is_made_shorter() {
    let too_long = || Ends::With(Terminal::PromptTooLong);
    let world = full(config(), &[too_long(), too_long(), Ends::Says("So far.")], 170_000);
    let fork = "fork compact";
    let world = check(world, &["compacting Auto", fork, fork, fork, "compacted", "request"]);
    let sizes: Vec<usize> = world.forks.iter().map(|fork| fork.messages.to_json().len()).collect();
    assert!(sizes.is_sorted_by(|a, b| a > b), "{sizes:?}");
    // It is tried three times more, not for ever.
    let world = full(config(), &[too_long(), too_long(), too_long(), too_long()], 170_000);
    let failed = "failed: The summary request does not fit into the context window.";
    check(world, &["compacting Auto", fork, fork, fork, fork, failed, "request"]);
}

#[test]
fn what_was_shown_of_files_is_forgotten_with_the_messages_that_showed_it() {
    let mut world = full(config(), &[Ends::Says("So far.")], 170_000);
    assert_eq!(world.shown.len(), 1);
    world.turn("Read", "{}", "x", 20_000);
    assert_eq!(world.shown.len(), 0);
    world.turn("Read", "{}", "x", 20_000);
    assert_eq!(world.shown.len(), 1);
}

#[test]
fn a_file_that_the_tail_shows_is_not_attached_too() {
    let run = |path: &str| {
        let mut world = World::new(config());
        world.submit("Make it work.");
        rounds(&mut world, 100_000);
        world.ends.push_back(Ends::Says("So far."));
        world.turn("Read", &format!(r#"{{"file_path":"{path}"}}"#), "x", 168_000);
        world.sent().contains("Current content of /project/f")
    };
    assert!(run("/project/other"));
    assert!(!run("/project/f"));
}

#[test]
fn the_model_is_told_what_is_left_only_after_a_rewrite_in_this_run() {
    let mut config = config();
    config.task_budget = Some(1_000_000);
    config.model.can_take_task_budget = true;
    let mut world = full(config, &[Ends::Says("So far.")], 170_000);
    let remaining = |world: &World, back: usize| {
        let requests = &world.requests;
        requests[requests.len() - back].task_budget.unwrap().remaining
    };
    assert_eq!(remaining(&world, 2), None);
    assert!(remaining(&world, 1).is_some_and(|left| left < 1_000_000));
    world.says("done", 20_000).submit("And now?");
    assert_eq!(remaining(&world, 1), None);
}

#[test]
fn without_money_there_is_no_summariser() {
    let mut world = World::new(config());
    world.submit("Make it work.");
    for _ in 0..3 {
        world.turn("Read", "{}", &"word ".repeat(1_200), 5_000);
    }
    world.says("It works.", 6_000).news();
    world.config.budget_usd = Some(0.0);
    world.compact("");
    assert_eq!(world.news(), ["compacting Manual", "compacted mechanically", "done completed"]);
}

#[test]
fn a_compaction_drops_what_was_staged() {
    let mut config = config();
    config.small_model = Some(ModelCard::unknown("small"));
    config.context.span_tokens = 3_000;
    config.context.rounds_kept = 2;
    let mut world = World::new(config);
    world.submit("Make it work.");
    rounds(&mut world, 130_000);
    assert_eq!(world.news().last_chunk().unwrap(), &["fork collapse", "request"]);
    world.turn("Read", "{}", "x", 170_000);
    assert_eq!(world.news(), ["compacting Auto", "fork compact"]);
    world.answer_newest(Ends::Says("So far."));
    assert_eq!(world.news(), ["compacted", "cancel fork", "request"]);
}

#[test]
fn a_summariser_gets_only_what_fits_its_window() {
    let mut world = full(config(), &[Ends::Says("So far.")], 250_000);
    assert_eq!(world.news().last_chunk().unwrap(), &["fork compact", "compacted", "request"]);
    let fork = &world.forks[0];
    assert!(fork.messages.len() < 13, "{}", fork.messages.len());
    assert!(fork.messages.to_json().contains("is omitted here"));
}

#[test]
fn failures_and_objections_are_no_sign_of_thrashing() {
    let mut hooked = config();
    hooked.hooks.insert(HookEvent::PreCompact);
    let mut world = full(hooked, &[Ends::Says("So far.")], 170_000);
    world.hooks.blocks = vec!["not now".into()];
    for _ in 0..10 {
        world.turn("Read", "{}", "x", 168_000);
    }
    assert_eq!(world.state.terminal(), None);
    world.hooks.blocks.clear();
    world.ends.push_back(Ends::Says("Further."));
    world.turn("Read", "{}", "x", 168_000);
    assert_eq!(world.decisions.len(), 2);
}

#[test]
fn a_summariser_that_keeps_failing_is_not_called_any_more() {
    let mut world = full(config(), &[Ends::With(Terminal::ApiError)], 166_000);
    let failed = "failed: The model wrote no summary: api error";
    assert_eq!(world.news()[6..], ["compacting Auto", "fork compact", failed, "request"]);
    world.ends.push_back(Ends::With(Terminal::ApiError));
    world.turn("Read", "{}", "x", 168_000);
    assert_eq!(world.news(), ["compacting Auto", "fork compact", failed, "request"]);
    world.ends.push_back(Ends::With(Terminal::ApiError));
    world.turn("Read", "{}", "x", 168_000);
    let notice = "notice: Compacting without a model. The model wrote no summary: api error";
    assert_eq!(
        world.news(),
        ["compacting Auto", "fork compact", notice, "compacted mechanically", "request"]
    );
    assert!(world.sent().contains("Make it work."));
    // From now on nobody is asked.
    for _ in 0..6 {
        world.turn("Read", "{}", "x", 30_000);
    }
    world.news();
    world.turn("Read", "{}", "x", 168_000);
    assert_eq!(world.news(), ["compacting Auto", "compacted mechanically", "request"]);
}

#[test]
fn a_context_that_is_full_does_not_wait_for_the_summariser() {
    let mut world = full(config(), &[Ends::With(Terminal::ApiError)], 178_000);
    assert_eq!(world.news().last_chunk().unwrap(), &["compacted mechanically", "request"]);
}

#[test]
fn a_user_can_ask_for_it() {
    let mut world = World::new(config());
    world.submit("Make it work.");
    for _ in 0..3 {
        world.turn("Read", "{}", &"word ".repeat(1_200), 5_000);
    }
    world.says("It works.", 6_000).news();
    world.ends.push_back(Ends::Says("So far."));
    world.compact("the names");
    assert_eq!(world.news(), ["compacting Manual", "fork compact", "compacted", "done completed"]);
    assert!(world.forks[0].prompt.ends_with("the names"));
    assert_eq!(compaction(&world).trigger, CompactTrigger::Manual);
    world.submit("And now?");
    assert!(world.sent().contains("So far.") && world.sent().contains("And now?"));

    let mut empty = World::new(config());
    empty.compact("");
    assert_eq!(empty.news(), ["failed: There is nothing to compact.", "done completed"]);
}

#[test]
fn a_conversation_that_cannot_become_shorter_is_not_summarised() {
    let check = |shape: fn(&mut World) -> &mut World| {
        let mut config = config();
        config.hooks = [HookEvent::PreCompact].into();
        let mut world = World::new(config);
        shape(&mut world);
        world.news();
        world.compact("the names");
        let failed = "failed: The conversation is already as short as a compaction would leave it.";
        assert_eq!(world.news(), [failed, "done completed"]);
        assert!(world.forks.is_empty(), "nothing is paid for");
    };
    check(|world| world.submit("Hello.").says("Hi.", 5_000));
    // A prompt that has no answer yet stays as it is, however long it is.
    check(|world| world.submit(&"word ".repeat(5_000)).fails(FailureClass::Auth));
    // Nothing is left to summarise right after a compaction.
    let mut config = config();
    config.context.tail_tokens_max = 0;
    let mut world = World::new(config);
    world.submit("Make it work.");
    rounds(&mut world, 100_000);
    world.says("It works.", 100_000).ends.push_back(Ends::Says("So far."));
    world.compact("");
    world.submit("Thanks.").says("Welcome.", 3_000).news();
    world.compact("");
    let failed = "failed: The conversation is already as short as a compaction would leave it.";
    assert_eq!(world.news(), [failed, "done completed"]);
}

#[test]
fn a_compaction_on_request_works_unless_compaction_is_off() {
    let news = |policy: CompactionPolicy| {
        let mut config = config();
        config.context.compaction = policy;
        let mut world = World::new(config);
        world.submit("Make it work.");
        rounds(&mut world, 100_000);
        world.says("It works.", 177_000).submit("And now?");
        let blocked = world.news().last().cloned();
        world.ends.push_back(Ends::Says("So far."));
        world.compact("");
        (blocked.unwrap(), world.news())
    };
    let (blocked, compacted) = news(CompactionPolicy::OnRequest);
    assert_eq!(blocked, "done blocking_limit");
    assert_eq!(compacted, ["compacting Manual", "fork compact", "compacted", "done completed"]);
    let (blocked, refused) = news(CompactionPolicy::Off);
    assert_eq!(blocked, "done blocking_limit");
    assert_eq!(refused, ["failed: Compaction is turned off.", "done completed"]);
}

#[test]
fn a_refused_prompt_is_compacted_and_sent_again() {
    let run = |ends: Ends| {
        let mut world = World::new(config());
        world.submit("Make it work.");
        rounds(&mut world, 100_000);
        world.news();
        world.ends.push_back(ends);
        world.fails(FailureClass::Overflow);
        world
    };
    let mut world = run(Ends::Says("So far."));
    assert_eq!(world.news(), ["compacting Reactive", "fork compact", "compacted", "request"]);
    // What was refused is not sent to the summariser as it is.
    assert!(world.forks[0].messages.len() < 13);
    // Once, until there are new results.
    world.fails(FailureClass::Overflow);
    assert_eq!(world.news(), ["done prompt_too_long"]);
    // Without a summary there is still a way.
    let mut world = run(Ends::With(Terminal::ApiError));
    assert_eq!(world.news().last_chunk().unwrap(), &["compacted mechanically", "request"]);
}

#[test]
fn a_huge_prompt_is_sent_as_it_is_and_reduced_only_if_it_is_refused() {
    let mut world = World::new(config());
    for _ in 0..4 {
        world.ends.push_back(Ends::With(Terminal::PromptTooLong));
    }
    world.submit(&"word ".repeat(400_000));
    assert_eq!(world.news(), ["request"]);
    assert!(world.sent().len() > 2_000_000);
    world.fails(FailureClass::Overflow);
    assert_eq!(world.news().last_chunk().unwrap(), &["compacted mechanically", "request"]);
    assert!(world.sent().len() < 100_000);
}

#[test]
fn a_prompt_that_nobody_answered_stays_whole_behind_a_compaction() {
    let mut world = World::new(config());
    world.submit("Make it work.");
    rounds(&mut world, 100_000);
    world.says("Done.", 166_000);
    world.ends.push_back(Ends::Says("So far."));
    let long = "long ".repeat(30_000);
    world.submit(&long);
    assert_eq!(world.news().last_chunk().unwrap(), &["compacted", "request"]);
    assert!(world.sent().contains("So far.") && world.sent().contains(long.trim_end()));
}

#[test]
fn what_the_provider_says_about_the_window_is_heeded() {
    let mut world = World::new(config());
    world.submit("Make it work.");
    rounds(&mut world, 100_000);
    world.ends.push_back(Ends::Says("So far."));
    let overflow = Some(Overflow { needed: 100_000, limit: 8_000 });
    let failure = Failure { overflow, ..Failure::new(FailureClass::Overflow, "too long") };
    let request = windlass_protocol::RequestId(u32::try_from(world.requests.len()).unwrap());
    let event = windlass_protocol::ModelEvent::Failed(Box::new(failure));
    world.tell(windlass_core::Event::Model(request, event));
    assert!(compaction(&world).tokens_after <= 4_100, "{}", compaction(&world).tokens_after);
}

#[test]
fn compaction_that_makes_no_progress_ends_the_run() {
    let mut world = World::new(config());
    world.submit("Make it work.");
    for n in 0..20 {
        world.ends.push_back(Ends::Says("So far."));
        world.turn("Read", "{}", &"word ".repeat(1_200), 168_000);
        if world.state.terminal().is_some() {
            assert_eq!(n, 3);
            break;
        }
    }
    assert_eq!(world.state.terminal(), Some(Terminal::RapidRefill));
    assert_eq!(world.decisions.len(), 3);
    // A prompt gives it another chance.
    world.ends.push_back(Ends::Says("So far."));
    world.submit("Go on.");
    assert_eq!(world.decisions.len(), 4);
    while world.state.terminal().is_none() {
        world.ends.push_back(Ends::Says("So far."));
        world.turn("Read", "{}", &"word ".repeat(1_200), 168_000);
    }
    assert_eq!(world.decisions.len(), 6);
}

#[test]
fn a_compaction_that_leaves_more_than_half_makes_no_progress() {
    let mut world = World::new(Config { system: "word ".repeat(60_000).into(), ..config() });
    world.submit("Make it work.");
    while world.state.terminal().is_none() && world.decisions.len() < 10 {
        for _ in 0..5 {
            world.turn("Read", "{}", "x", 120_000);
        }
        world.ends.push_back(Ends::Says("So far."));
        world.turn("Read", "{}", &"word ".repeat(1_200), 168_000);
    }
    assert_eq!((world.state.terminal(), world.decisions.len()), (Some(Terminal::RapidRefill), 3));
}

#[test]
fn failures_that_are_not_in_a_row_do_not_add_up() {
    let (bad, good) = (Ends::With(Terminal::ApiError), Ends::Says("So far."));
    let mut world = full(config(), &[bad], 166_000);
    for ends in [bad, good, bad, bad] {
        for _ in 0..4 {
            world.turn("Read", "{}", "x", 100_000);
        }
        world.ends.push_back(ends);
        world.turn("Read", "{}", "x", 168_000);
    }
    assert_eq!(world.decisions.len(), 1);
    assert_eq!(world.forks.len(), 5);
}

#[test]
fn a_summary_that_was_cut_is_better_than_none() {
    let world = full(config(), &[Ends::Cut("So far, bu")], 170_000);
    check(world, &DONE);
}

#[test]
fn in_a_small_window_the_summary_is_small_too() {
    let mut config = config();
    config.model.window_tokens = 20_000;
    let world = full(config, &[], 16_000);
    assert_eq!(world.forks[0].config.output.explicit, Some(5_000));
}

/// A changed budget for thinking costs the cache that the summariser is to share.
#[test]
fn the_summariser_thinks_as_the_run_does() {
    let check = |wish: Option<u32>, window_tokens, expected: Option<u32>| {
        let mut config = config();
        config.model.thinking.is_budgeted = true;
        config.model.window_tokens = window_tokens;
        config.thinking.budget_tokens = wish;
        let world = full(config, &[], window_tokens / 20 * 17);
        let RequestThinking::Budgeted { tokens, .. } = world.forks[0].request.thinking else {
            panic!("no thinking")
        };
        assert_eq!(Some(tokens), expected, "{wish:?} {window_tokens}");
    };
    check(None, 200_000, Some(4_000));
    check(Some(5_000), 200_000, Some(5_000));
    // There must be room left for the summary itself.
    check(None, 20_000, Some(2_500));
}

#[test]
fn the_facts_about_the_machine_are_kept() {
    let mut world = World::new(config());
    let blocks = ["<environment>\nDate: today\n</environment>", "Make it work."].map(Block::text).into();
    world.tell(Event::Submit(Prompt { blocks, ..Prompt::default() }));
    for said in ["So far.", "Further."] {
        world.ends.push_back(Ends::Says(said));
        rounds(&mut world, 170_000);
        let sent = world.sent();
        assert!(sent.contains(said) && sent.contains("last request:\\nMake it work."));
        assert_eq!(sent.matches("<environment>").count(), 1);
    }
}

#[test]
fn a_long_run_is_compacted_again_and_again() {
    let mut world = World::new(config());
    world.submit("Make it work.");
    let mut used = 10_000;
    for _ in 0..300 {
        let compactions = world.decisions.len();
        used += 20_000;
        if world.ends.is_empty() {
            world.ends.push_back(Ends::Says("So far."));
        }
        world.turn("Read", r#"{"file_path":"/f"}"#, &"word ".repeat(500), used);
        if world.decisions.len() > compactions {
            used = 10_000;
        }
        assert!(world.state.messages().len() < 60);
    }
    assert!(world.decisions.len() > 20, "{}", world.decisions.len());
    assert_eq!(world.state.terminal(), None);
}
