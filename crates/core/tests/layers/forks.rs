//! Forks of the main conversation: a short prompt for the small model, or the prefix that the provider has in its cache.

use windlass_core::Config;
use windlass_protocol::{Effort, Message, ModelCard, ModelRequest, Price};

use crate::world::{World, config};

const DEAR: Price = Price { input: 5.0, output: 25.0, write_5m: 6.25, write_1h: 10.0, read: 0.5, tier: None };
const CHEAP: Price = Price { input: 0.5, output: 2.5, write_5m: 0.6, write_1h: 1.0, read: 0.05, tier: None };

fn priced(small: Option<Price>) -> Config {
    let mut config = config();
    config.model = ModelCard {
        window_tokens: 60_000,
        price: Some(DEAR),
        is_known: true,
        can_take_task_budget: true,
        efforts: &[Effort::Low, Effort::High],
        ..config.model
    };
    config.model.thinking.is_budgeted = true;
    config.small_model = Some(ModelCard { price: small, ..ModelCard::unknown("small") });
    config.effort = Some(Effort::High);
    config.task_budget = Some(90_000);
    config.context.span_tokens = 20_000;
    config.context.rounds_kept = 2;
    config.context.can_micro_compact = false;
    config
}

/// Rounds until a span is summarised.
fn spans(config: Config, caches: bool) -> World {
    let mut world = World::new(config);
    world.caches = caches;
    world.submit("go");
    for _ in 0..25 {
        world.turn("Bash", "{}", &"word ".repeat(700), 1_000);
    }
    world.turn("Bash", "{}", "x", 36_000);
    world
}

/// What one request says besides messages, and its first messages.
fn prefix(request: &ModelRequest, messages: usize) -> String {
    let ModelRequest { model, system, thinking, effort, task_budget, edits, .. } = request;
    let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    let messages: Vec<_> = request.transcript.iter().take(messages).map(|message| &message.blocks).collect();
    format!("{model} {system} {thinking:?} {effort:?} {task_budget:?} {edits:?} {tools:?} {messages:?}")
}

#[test]
fn a_fork_shares_the_prefix_where_that_is_known_to_cost_less() {
    let check = |small: Option<Price>, caches: bool, expected: &str| {
        let world = spans(priced(small), caches);
        let fork = world.forks.first().unwrap();
        assert_eq!((&*fork.source, &*fork.config.model.id), ("collapse", expected), "{small:?} {caches}");
    };
    check(Some(DEAR), true, "main");
    check(Some(DEAR), false, "small");
    check(Some(CHEAP), true, "small");
    check(None, true, "small");
    let mut unknown = priced(Some(DEAR));
    unknown.model.price = None;
    assert_eq!(&*spans(unknown, true).forks[0].config.model.id, "small");
}

#[test]
fn a_shared_prefix_is_the_same_in_everything_the_cache_depends_on() {
    let world = spans(priced(Some(DEAR)), true);
    // The fork starts before the request of its turn, so the cache ends with the request before.
    let [.., cached, _] = &world.requests[..] else { panic!("two requests") };
    let fork = &world.forks[0].request;
    let messages = cached.transcript.len();
    assert!(prefix(fork, messages) == prefix(cached, messages), "{:.300}", prefix(fork, 0));
    assert!(fork.breakpoints.contains(&(messages - 1)), "{:?}", fork.breakpoints);
    assert!(fork.output_tokens_max >= 2_000);
    let last = fork.transcript.iter().last().map(|last: &std::sync::Arc<Message>| last.blocks.clone());
    assert!(format!("{last:?}").contains("The part is"), "{last:?}");
}
