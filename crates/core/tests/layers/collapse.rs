//! Spans of rounds: staged in the background, committed when the room is needed.

use windlass_core::{CompactionPolicy, Config, RunSource};
use windlass_protocol::{Decision, FailureClass, ModelCard, Terminal};

use crate::world::{Ends, World, config};

fn collapsing(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = config();
    config.small_model = Some(ModelCard::unknown("small"));
    config.context.span_tokens = 5_000;
    config.context.rounds_kept = 2;
    config.context.can_micro_compact = false;
    change(&mut config);
    config
}

/// Rounds of about 4 500 tokens each; the last of them brings the context to `used`.
fn rounds(config: Config, count: usize, used: u64) -> World {
    let mut world = World::new(config);
    world.submit("go");
    for n in 1..=count {
        world.turn("Bash", "{}", &"word ".repeat(2_500), if n == count { used } else { 1_000 });
    }
    world
}

#[test]
fn the_oldest_finished_rounds_are_summarised_beside_the_run() {
    // 70 % of 167 000.
    assert!(rounds(collapsing(|_| ()), 8, 100_000).forks.is_empty());
    let mut world = rounds(collapsing(|_| ()), 8, 120_000);
    assert_eq!(world.news().last_chunk().unwrap(), &["fork collapse", "request"]);
    let [fork] = &world.forks[..] else { panic!("one fork") };
    assert_eq!((&*fork.config.model.id, fork.config.tools.len(), &*fork.source), ("small", 0, "collapse"));
    assert!(fork.prompt.contains("Assistant: [calls Bash]"));
    // The last prompt is never collapsed.
    assert!(!fork.prompt.contains("User: go"));
    // One at a time; the transcript changes only when the room is needed.
    world.turn("Bash", "{}", "x", 121_000);
    assert_eq!(world.news(), ["request"]);
    world.forked(Ends::Says("They ran commands.")).turn("Bash", "{}", "x", 122_000);
    assert_eq!(world.news(), ["staged", "fork collapse", "request"]);
    assert!(!world.sent().contains("They ran commands."));
    world.forked(Ends::Says("And more of them.")).turn("Bash", "{}", "x", 161_000);
    assert_eq!(world.news(), ["staged", "collapsed", "fork collapse", "request"]);
    // As few as are needed.
    assert!(world.sent().contains("They ran commands."));
    assert!(!world.sent().contains("And more of them."));
    let Some(Decision::Collapsed { spans, tokens, .. }) = world.decisions.last() else { panic!() };
    assert_eq!(spans.len(), 1);
    assert!(*tokens > 1_000);
}

#[test]
fn a_prompt_that_is_too_long_commits_all_at_once() {
    let mut world = rounds(collapsing(|_| ()), 8, 120_000);
    world.forked(Ends::Says("One.")).turn("Bash", "{}", "x", 122_000).forked(Ends::Says("Two."));
    world.news();
    world.fails(FailureClass::Overflow);
    assert_eq!(world.news()[..1], ["collapsed"]);
    let Some(Decision::Collapsed { spans, .. }) = world.decisions.last() else { panic!() };
    assert_eq!(spans.len(), 2);
    assert!(world.sent().contains("One.") && world.sent().contains("Two."));
}

#[test]
fn a_staged_span_stays_out_once_compaction_is_no_longer_automatic() {
    let mut world = rounds(collapsing(|_| ()), 8, 120_000);
    world.forked(Ends::Says("One.")).news();
    world.config.context.compaction = CompactionPolicy::OnRequest;
    world.turn("Bash", "{}", "x", 161_000);
    assert_eq!(world.news(), ["request"]);
    world.fails(FailureClass::Overflow);
    assert_eq!(world.news(), ["done prompt_too_long"]);
}

#[test]
fn a_drain_snips_what_says_nothing_any_more() {
    let mut world = rounds(collapsing(|_| ()), 8, 1_000);
    let read = r#"{"file_path":"/f"}"#;
    world.turn("Read", read, "text", 1_000).turn("Read", read, "text", 1_000);
    world.turn("Bash", "{}", "x", 1_000).turn("Bash", "{}", "x", 120_000);
    world.forked(Ends::Says("One.")).news();
    world.fails(FailureClass::Overflow);
    assert_eq!(world.news()[..2], ["collapsed", "snipped"]);
}

/// How many spans were begun when their summaries end so, one after the other.
fn begun(ends: &[Ends]) -> usize {
    let mut world = rounds(collapsing(|_| ()), 8, 120_000);
    for ends in ends {
        world.forked(*ends).turn("Bash", "{}", &"word ".repeat(2_500), 121_000);
    }
    world.forks.len()
}

#[test]
fn three_failures_in_a_row_stop_staging() {
    let bad = Ends::With(Terminal::ApiError);
    assert_eq!(begun(&[bad, bad]), 3);
    assert_eq!(begun(&[bad, bad, bad]), 3);
    assert_eq!(begun(&[bad, bad, Ends::Says("One."), bad, bad]), 6);
    // A summary that is longer than what it stands for is none.
    let long: &'static str = "word ".repeat(20_000).leak();
    assert_eq!(begun(&[bad, bad, Ends::Says(long)]), 3);
}

#[test]
fn without_a_small_model_or_outside_the_main_loop_nothing_is_staged() {
    assert!(rounds(collapsing(|c| c.small_model = None), 8, 150_000).forks.is_empty());
    assert!(rounds(collapsing(|c| c.context.can_collapse = false), 8, 150_000).forks.is_empty());
    let on_request = |c: &mut Config| c.context.compaction = CompactionPolicy::OnRequest;
    assert!(rounds(collapsing(on_request), 8, 150_000).forks.is_empty());
    assert!(rounds(collapsing(|c| c.source = RunSource::Agent("a".into())), 8, 150_000).forks.is_empty());
    // The last rounds never are.
    assert!(rounds(collapsing(|c| c.context.rounds_kept = 8), 8, 150_000).forks.is_empty());
}

#[test]
fn thinking_behind_a_collapsed_span_goes_where_it_is_bound() {
    let mut world = rounds(collapsing(|c| c.model.is_thinking_bound = true), 8, 120_000);
    world.forked(Ends::Says("One.")).turn("Bash", "{}", "x", 161_000);
    assert!(world.sent().contains("One."));
    assert_eq!(world.sent().matches(r#""type":"thinking""#).count(), 0);
}

/// A prompt that was the last one splits two spans; the older span is summarised after the newer one.
#[test]
fn spans_are_committed_oldest_first_whatever_the_order_of_their_summaries() {
    let mut world = World::new(collapsing(|c| c.model.is_thinking_bound = true));
    world.submit("go").turn("Bash", "{}", "x", 1_000).says("done", 1_000);
    world.submit(&"word ".repeat(2_000));
    for used in [1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 120_000] {
        world.turn("Bash", "{}", &"word ".repeat(2_500), used);
    }
    world.forked(Ends::Says("Later.")).says("done", 121_000);
    world.submit("again").turn("Bash", "{}", "x", 122_000).forked(Ends::Says("Earlier.")).news();
    world.fails(FailureClass::Overflow);
    let sent = world.sent();
    let [earlier, later] = ["Earlier.", "Later."].map(|summary| sent.find(summary).unwrap());
    assert!(earlier < later);
    let Some(Decision::Collapsed { spans, .. }) = world.decisions.last() else { panic!() };
    assert!(spans[0].first < spans[1].first);
    assert_eq!(sent.matches(r#""type":"thinking""#).count(), 0);
}

#[test]
fn the_end_of_the_run_drops_what_is_being_summarised() {
    let mut world = rounds(collapsing(|_| ()), 8, 120_000);
    world.news();
    world.says("done", 121_000);
    assert_eq!(world.news(), ["cancel fork", "done completed"]);
    world.submit("more");
    assert_eq!(world.news(), ["fork collapse", "request"]);
}
