//! The last gate against its oracle: whatever a transcript holds, what is sent is valid.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;

use windlass_core::{Config, Effect, Event, Input, State, apply, repair, step};
use windlass_protocol::{
    Block, BlockKind, Decision, Message, MessageId, Origin, RawValue, Repair, Role, Transcript, Update,
};
use windlass_sim::{Rng, check_request};

const CASES: u64 = 20_000;

/// Messages as a crash, a rewind or an editor might leave them: anything at all, or good rounds with little damage.
fn damaged(rng: &mut Rng) -> Transcript {
    let messages = if rng.one_in(2) {
        (0..rng.below(8)).map(|n| random_message(rng, n)).collect()
    } else {
        let mut messages = good_rounds(rng);
        for _ in 0..rng.below(3) {
            damage(&mut messages, rng);
        }
        messages
    };
    messages.into_iter().map(Arc::new).collect()
}

/// Rounds of calls and results. An id may come twice, or be one that the API refuses.
fn good_rounds(rng: &mut Rng) -> Vec<Message> {
    let mut messages = vec![Message::user(MessageId(0), Origin::Prompt, vec![Block::text("words")])];
    for n in 1..=rng.below(4) {
        let id = |rng: &mut Rng| match rng.below(20) {
            0 => "strange id".to_owned(),
            1 => "toolu_0".to_owned(),
            other => format!("toolu_{n}_{other}"),
        };
        let ids: Vec<String> = (0..=rng.below(2)).map(|_| id(rng)).collect();
        let calls = ids.iter().map(|id| Block::tool_use(id, "Tool", raw("{}"))).collect();
        let results = ids.iter().map(|id| Block::tool_result(id, &[Block::text("done")], false)).collect();
        messages.push(Message::assistant(MessageId(2 * n), "model".into(), calls));
        messages.push(Message::user(MessageId(2 * n + 1), Origin::Results, results));
    }
    messages
}

fn damage(messages: &mut Vec<Message>, rng: &mut Rng) {
    let mut place = |len: usize| usize::try_from(rng.below(len.max(1) as u64)).unwrap();
    let (here, there) = (place(messages.len()), place(messages.len()));
    let Some(message) = messages.get_mut(here) else { return };
    let block = place(message.blocks.len());
    match place(6) {
        0 => drop(messages.remove(here)),
        1 => messages.swap(here, there),
        2 => message.blocks.insert(block, random_block(rng)),
        3 if !message.blocks.is_empty() => drop(message.blocks.remove(block)),
        4 => message.blocks.rotate_left(block),
        _ => {
            let copy = message.clone();
            messages.insert(there, copy);
        }
    }
}

fn random_message(rng: &mut Rng, n: u64) -> Message {
    let role = if rng.one_in(2) { Role::User } else { Role::Assistant };
    let blocks = (0..rng.below(4)).map(|_| random_block(rng)).collect();
    Message::new(MessageId(n), role, Origin::Prompt, blocks)
}

fn random_block(rng: &mut Rng) -> Block {
    let id = format!("toolu_{}", rng.below(4));
    match rng.below(8) {
        0 => Block::text(" \n"),
        1 => Block::text("words"),
        2 => Block::from_json(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#).unwrap(),
        3 => Block::tool_use(&id, "Tool", raw("[1]")),
        4 | 5 => Block::tool_use(&id, "Tool", raw("{}")),
        _ => Block::tool_result(&id, &[Block::text("done")], false),
    }
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.into()).unwrap()
}

fn well_formed(messages: &Transcript) -> Result<(), String> {
    if messages.iter().any(|message| message.blocks.is_empty()) {
        return Err("a message says nothing".into());
    }
    let strange = messages.iter().any(|message| {
        message.blocks.iter().any(|block| match message.role {
            Role::User => block.as_tool_use().is_some() || block.is_thinking(),
            Role::Assistant => {
                matches!(block.kind(), BlockKind::ToolResult { .. })
                    || block
                        .as_tool_use()
                        .is_some_and(|tool_use| !tool_use.input.json().get().starts_with('{'))
            }
        })
    });
    if strange { Err("a block on the wrong side".into()) } else { check_request(messages) }
}

#[test]
fn whatever_it_is_given_the_gate_makes_valid_and_then_leaves_alone() {
    for seed in 0..CASES {
        let before = damaged(&mut Rng::new(seed));
        let (mended, repairs) = repair(&before);
        assert_eq!(check_request(&mended), Ok(()), "seed {seed}: {before:#?}\n{repairs:?}\n{mended:#?}");
        let (again, nothing) = repair(&mended);
        assert_eq!(nothing, [], "seed {seed}");
        assert_eq!(again.to_json(), mended.to_json(), "seed {seed}");
        if well_formed(&before).is_ok() {
            assert_eq!(repairs, [], "seed {seed}: a good transcript was changed");
        }
    }
}

/// What is left when the thinking of models that are not asked is taken out, which happens before the gate.
fn without_thinking(messages: &Transcript) -> Transcript {
    let thinks = |message: &&Arc<Message>| message.blocks.iter().any(Block::is_thinking);
    let messages_with = messages.iter().filter(thinks).map(|message| message.id).collect();
    apply(&Decision::ThinkingStripped(messages_with), messages)
}

#[test]
fn a_request_is_repaired_if_and_only_if_it_needs_it() {
    let config = Config::default();
    for seed in 0..CASES {
        let before = damaged(&mut Rng::new(seed));
        let mut asked = before.clone();
        asked.push(Arc::new(Message::user(MessageId(99), Origin::Prompt, vec![Block::text("go on")])));
        let state = State::new("/".into(), before);
        let (_, effects) = step(state, Input::at(0, Event::Submit("go on".into())), &config);
        let repaired = effects.list.iter().any(|effect| matches!(effect, Effect::Emit(Update::Repaired(_))));
        let sent = effects.list.iter().find_map(|effect| match effect {
            Effect::CallModel(_, body) => Some(body.transcript.clone()),
            _ => None,
        });
        let sent = sent.expect("a submission sends a request");
        assert_eq!(check_request(&sent), Ok(()), "seed {seed}");
        let asked = without_thinking(&asked);
        assert_eq!(repaired, well_formed(&asked).is_err(), "seed {seed}: {asked:#?}");
    }
}

#[test]
fn each_kind_of_damage_is_named() {
    let check = |list: Vec<(Role, Vec<Block>)>, expected: &[Repair]| {
        let messages: Transcript = list
            .into_iter()
            .map(|(role, blocks)| Arc::new(Message::new(MessageId(1), role, Origin::Prompt, blocks)))
            .collect();
        assert_eq!(repair(&messages).1, expected, "{messages:#?}");
    };
    let (user, assistant) = (Role::User, Role::Assistant);
    let call = |id: &str| Block::tool_use(id, "Tool", raw("{}"));
    let result = |id: &str| Block::tool_result(id, &[], false);
    let hi = || (user, vec![Block::text("hi")]);
    let id = |id: &str| id.into();

    check(vec![hi()], &[]);
    check(vec![hi(), (assistant, vec![call("a")]), hi()], &[Repair::AddedResult { tool_use_id: id("a") }]);
    check(vec![hi(), (assistant, vec![call("a")])], &[Repair::AddedResult { tool_use_id: id("a") }]);
    check(
        vec![(user, vec![result("a"), Block::text("hi")])],
        &[Repair::DroppedResult { tool_use_id: id("a") }],
    );
    check(
        vec![hi(), (assistant, vec![call("a")]), (user, vec![Block::text("x"), result("a")])],
        &[Repair::MovedResult { tool_use_id: id("a") }],
    );
    check(
        vec![
            hi(),
            (assistant, vec![call("a")]),
            hi(),
            (assistant, vec![Block::text("y")]),
            (user, vec![result("a"), Block::text("z")]),
        ],
        &[Repair::MovedResult { tool_use_id: id("a") }],
    );
    check(
        vec![hi(), (assistant, vec![call("a"), call("a")]), (user, vec![result("a"), result("a")])],
        &[Repair::DroppedToolUse { tool_use_id: id("a") }, Repair::DroppedResult { tool_use_id: id("a") }],
    );
    let renamed = |id: &str| Repair::RenamedToolUse { tool_use_id: id.into() };
    check(
        vec![hi(), (assistant, vec![call("a:"), call("a;")]), (user, vec![result("a:"), result("a;")])],
        &[renamed("a:"), renamed("a;")],
    );
    check(vec![(user, vec![Block::text(" "), Block::text("hi")])], &[Repair::DroppedText]);
    let spaced = r#"{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": " "}]}"#;
    let blank_inside = Block::from_json(spaced).unwrap();
    check(vec![hi(), (assistant, vec![call("a")]), (user, vec![blank_inside])], &[Repair::DroppedText]);
    check(vec![(assistant, vec![Block::text("hello")])], &[Repair::AddedUser, Repair::AddedUser]);
    check(vec![], &[Repair::AddedUser]);
    check(
        vec![hi(), (assistant, vec![Block::tool_use("a", "Tool", raw("[1]"))]), (user, vec![result("a")])],
        &[Repair::WrappedInput { tool_use_id: id("a") }],
    );
    let thinking = || Block::from_json(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#).unwrap();
    let redacted = || Block::from_json(r#"{"type":"redacted_thinking","data":"x"}"#).unwrap();
    let said = || Block::text("y");
    check(vec![hi(), (assistant, vec![thinking(), redacted(), said()]), hi()], &[]);
    check(vec![hi(), (assistant, vec![said(), thinking()]), hi()], &[Repair::DroppedThinking]);
    check(vec![(user, vec![redacted(), said()])], &[Repair::DroppedThinking]);
    check(
        vec![hi(), (assistant, vec![thinking()]), hi()],
        &[Repair::DroppedThinking, Repair::DroppedMessage],
    );
    check(vec![hi(), (assistant, vec![]), hi()], &[Repair::DroppedMessage]);
}

#[test]
fn what_is_added_says_what_is_known() {
    let call = Block::tool_use("a", "Tool", raw("[1]"));
    let messages: Transcript = [
        Message::user(MessageId(1), Origin::Prompt, vec![Block::text("hi")]),
        Message::assistant(MessageId(2), "model".into(), vec![call]),
    ]
    .into_iter()
    .map(Arc::new)
    .collect();
    let (mended, _) = repair(&messages);
    let blocks: Vec<&Block> = mended.iter().skip(1).flat_map(|message| &message.blocks).collect();
    let [call, result] = blocks[..] else { panic!("{mended:#?}") };
    assert_eq!(call.json(), r#"{"type":"tool_use","id":"a","name":"Tool","input":{"unparsed":"[1]"}}"#);
    let text = "No result: the call was interrupted or its result was lost, so what it did is unknown.";
    let expected = Block::tool_result("a", &[Block::text(text)], /* is an error */ true);
    assert_eq!(result.json(), expected.json());
    assert!(matches!(result.kind(), BlockKind::ToolResult { is_error: true, .. }), "{result:?}");
}
