//! When the context is full, and what a compaction leaves, where the numbers are unusual.

use windlass_core::Config;

use super::world::{Ends, World, config};

/// Compacts whenever it is due.
fn compacting(config: Config) -> World {
    let mut world = World::new(config);
    world.ends.extend([Ends::Says("So far."); 5]);
    world
}

#[test]
fn the_providers_count_is_believed_also_for_a_short_conversation() {
    let mut world = compacting(config());
    world.submit("Hello.").says("Hello.", 170_000);
    world.news();
    world.submit("And now?");
    assert_eq!(world.news(), ["compacting Auto", "fork compact", "compacted", "request"]);
    assert!(world.sent().contains("So far."));
}

#[test]
fn what_no_compaction_can_make_smaller_asks_for_none() {
    let mut small = config();
    small.model.window_tokens = 20_000;
    small.context.output_reserve_tokens = Some(10_000);
    small.context.compact_margin_tokens = Some(5_000);
    // System prompt and tools are over the threshold of 5 000.
    small.system = "word ".repeat(4_000).into();
    let mut world = compacting(small);
    world.submit("Hello.").turn("Read", "{}", "short", 7_000);
    assert_eq!(world.news(), ["request", "request"]);
    world.turn("Read", "{}", &"word ".repeat(4_000), 7_000);
    assert_eq!(world.news(), ["compacting Auto", "fork compact", "compacted", "request"]);
}

#[test]
fn something_is_left_of_a_conversation_beside_a_long_system_prompt() {
    let mut world = compacting(Config { system: "word ".repeat(60_000).into(), ..config() });
    world.submit("Make it work.").turn("Read", "{}", &"word ".repeat(4_000), 168_000);
    assert!(world.sent().contains("Current content of /project/f"), "{}", world.sent());
}
