//! Layer 2: takes out what no longer says anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_protocol::{Block, Decision, Message, MessageId, Origin, RawObject, Role, ToolUse, Transition};

use super::apply::bound_after;
use super::results::answered_call;
use super::rounds::{MessageGroup, newest_from, units};
use super::{Thresholds, micro_compact};
use crate::config::Config;
use crate::step::Cx;
use crate::turn::prepare::{LayerReply, LayerStep, Preparation};

/// A rewrite of its own must free this many tokens, since it costs the provider's cache.
const WORTH_TOKENS: u64 = 1_000;
/// A round with more text than this says something besides reading a file.
const REMARK_CHARS: usize = 300;

/// Acts above the warning threshold, or after a drain, when the cache is lost anyway. Whatever it finds goes if another
/// layer is about to rewrite, otherwise only what is worth it.
pub(crate) fn snip(cx: &mut Cx<'_>, preparing: &mut Preparation, _: Option<LayerReply>) -> LayerStep {
    let is_full = cx.context_tokens() >= Thresholds::of(cx.config, cx.model()).warning;
    let was_drained = cx.state.carry.transition == Some(Transition::CollapseDrainRetry);
    let is_due = is_full || was_drained;
    if !is_due || preparing.forced.is_some() || cx.config.source.is_summariser() {
        return LayerStep::Passed;
    }
    if let Some((decision, tokens)) = plan(cx)
        && (tokens >= WORTH_TOKENS || was_drained || micro_compact::plan(cx).is_some())
    {
        cx.change(decision);
    }
    LayerStep::Passed
}

/// What can go, and how many tokens that frees.
fn plan(cx: &Cx<'_>) -> Option<(Decision, u64)> {
    let carry = &cx.state.carry;
    let messages: Vec<&Arc<Message>> = carry.messages.iter().collect();
    let useless = useless(&messages, cx.config);
    let first = *useless.first()?;
    let estimate = super::tokens::estimate_all(useless.iter().map(|place| messages[*place]));
    let tokens = carry.tokens.scale(&carry.messages, cx.config).real(estimate);
    let is_bound = cx.model().is_thinking_bound;
    let bound = || bound_after(&carry.messages, first, |place| useless.contains(&place));
    let unbound_from = is_bound.then(bound).flatten();
    let messages = useless.iter().map(|place| messages[*place].id).collect();
    Some((Decision::Snipped { messages, tokens, unbound_from }, tokens))
}

/// The places of the messages that can go.
fn useless(messages: &[&Arc<Message>], config: &Config) -> BTreeSet<usize> {
    let units = units(messages);
    let old_to = newest_from(&units, config.context.rounds_kept);
    let reads = Reads::of(messages, config);
    let mut useless = BTreeSet::new();
    for (index, unit) in units.iter().enumerate().filter(|(_, unit)| unit.end <= old_to) {
        let note = units.get(index + 1).filter(|note| messages[note.first].origin == Origin::Interruption);
        if let Some(note) = note.filter(|note| note.end <= old_to && is_mere_talk(messages, *unit)) {
            useless.extend(unit.first..note.end);
        } else if reads.are_repeated(messages, *unit, config) || is_superseded(messages, *unit) {
            useless.extend(unit.first..unit.end);
        }
    }
    // A message that shares its id with one that stays cannot be named alone.
    let staying: BTreeSet<MessageId> = messages
        .iter()
        .enumerate()
        .filter(|(place, _)| !useless.contains(place))
        .map(|(_, message)| message.id)
        .collect();
    if useless.iter().any(|place| staying.contains(&messages[*place].id)) { BTreeSet::new() } else { useless }
}

/// Whether an interrupted round did nothing.
fn is_mere_talk(messages: &[&Arc<Message>], unit: MessageGroup) -> bool {
    let mut blocks = messages[unit.first..unit.end].iter().flat_map(|message| &message.blocks);
    unit.is_round && blocks.all(|block| block.as_tool_use().is_none())
}

/// Whether a later note begins as this one does, for each part of it: then it says the same, and newer. A note between two
/// answers stays, so that they do not become one.
fn is_superseded(messages: &[&Arc<Message>], unit: MessageGroup) -> bool {
    let note = messages[unit.first];
    let is_user = |place: Option<usize>| {
        place.and_then(|place| messages.get(place)).is_some_and(|message| message.role == Role::User)
    };
    if note.origin != Origin::Attachment || !(is_user(unit.first.checked_sub(1)) || is_user(Some(unit.end))) {
        return false;
    }
    let later = messages[unit.end..].iter().filter(|message| message.origin == Origin::Attachment);
    let later: BTreeSet<&str> = later.flat_map(|message| &message.blocks).filter_map(title).collect();
    note.blocks.iter().all(|block| title(block).is_some_and(|title| later.contains(title)))
}

fn title(block: &Block) -> Option<&str> {
    block.as_text()?.lines().next()
}

/// Which files were read in full, and where last.
struct Reads {
    full: BTreeMap<String, (usize, usize)>,
}

impl Reads {
    fn of(messages: &[&Arc<Message>], config: &Config) -> Self {
        let mut asked: BTreeMap<&str, String> = BTreeMap::new();
        let mut full = BTreeMap::new();
        for (place, message) in messages.iter().enumerate() {
            let calls = message.blocks.iter().filter_map(Block::as_tool_use);
            asked.extend(
                calls.filter_map(|call| Some((&*call.id, read_path(call, config, /* in full */ true)?))),
            );
            for block in &message.blocks {
                let Some((id, false)) = answered_call(block) else { continue };
                if let Some(path) = asked.get(&**id) {
                    full.insert(path.clone(), (place, block.json().len()));
                }
            }
        }
        Self { full }
    }

    /// Whether a round only reads files that are read again later, in full. What was read again and found unchanged is not
    /// shown, so the later result must not be much shorter.
    fn are_repeated(&self, messages: &[&Arc<Message>], unit: MessageGroup, config: &Config) -> bool {
        let blocks = || messages[unit.first..unit.end].iter().flat_map(|message| &message.blocks);
        let remarks: usize = blocks().filter_map(Block::as_text).map(str::len).sum();
        let mut calls = blocks().filter_map(Block::as_tool_use).peekable();
        let result_size = |id: &str| {
            let answers = |block: &&Block| answered_call(block).is_some_and(|(call, _)| **call == *id);
            let mut results = blocks().filter(answers);
            results.next().map_or(0, |block| block.json().len())
        };
        unit.is_round
            && remarks <= REMARK_CHARS
            && calls.peek().is_some()
            && calls.all(|call| {
                let later =
                    read_path(call, config, /* in full */ false).and_then(|path| self.full.get(&path));
                later.is_some_and(|(place, size)| *place >= unit.end && size * 2 >= result_size(&call.id))
            })
    }
}

/// The file that a call reads; nothing if it is another tool, or only a part is read where the whole is asked for.
pub(super) fn read_path(call: &ToolUse, config: &Config, should_be_whole: bool) -> Option<String> {
    let profile = config.profile(&call.name);
    let field = profile.subject.field().filter(|_| profile.is_file_content)?;
    let input = RawObject::parse(call.input.get()).ok()?;
    let is_part = ["offset", "limit", "pages"].iter().any(|field| input.get(field).is_some());
    input.read(field).filter(|_| !(should_be_whole && is_part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ContextPolicy;
    use crate::context::fixture::{answer, calls, prompt, results, transcript, user};

    #[track_caller]
    fn check(messages: Vec<Message>, rounds_kept: usize, expected: &[usize]) {
        let transcript = transcript(messages);
        let list: Vec<&Arc<Message>> = transcript.iter().collect();
        let context = ContextPolicy { rounds_kept, ..ContextPolicy::default() };
        let config = Config { context, ..Config::default() };
        assert_eq!(useless(&list, &config).into_iter().collect::<Vec<_>>(), expected);
    }

    fn read(id: u64, call: &str, input: &str, text: &str) -> [Message; 2] {
        [calls(id, &[(call, "Read", input)]), results(id + 1, &[(call, text)])]
    }

    const FILE: &str = r#"{"file_path":"/a"}"#;
    const PART: &str = r#"{"file_path":"/a","offset":3}"#;

    #[test]
    fn a_read_that_is_repeated_in_full_goes() {
        let twice = |first: &str, second: &str, text: &str| {
            let rounds = [read(1, "t1", first, "some text of the file"), read(3, "t2", second, text)];
            rounds.into_iter().flatten().collect::<Vec<_>>()
        };
        check(twice(FILE, FILE, "some new text of the file"), 1, &[0, 1]);
        check(twice(PART, FILE, "some new text of the file"), 1, &[0, 1]);
        check(twice(FILE, PART, "some new text of the file"), 1, &[]);
        check(twice(FILE, FILE, "same"), 0, &[0, 1]);
        check(twice(FILE, r#"{"file_path":"/b"}"#, "some new text of the file"), 1, &[]);
        // The last rounds stay.
        check(twice(FILE, FILE, "some new text of the file"), 2, &[]);
    }

    #[test]
    fn a_read_that_found_nothing_new_does_not_count() {
        let long = "text ".repeat(100);
        let rounds = [read(1, "t1", FILE, &long), read(3, "t2", FILE, "unchanged")];
        check(rounds.into_iter().flatten().collect(), 1, &[]);
    }

    #[test]
    fn a_round_with_another_call_or_much_to_say_stays() {
        let both = [
            calls(1, &[("t1", "Read", FILE), ("t2", "Bash", "{}")]),
            results(2, &[("t1", "text"), ("t2", "done")]),
        ];
        let again = || read(3, "t3", FILE, "the text again");
        check(both.into_iter().chain(again()).collect(), 1, &[]);
        let mut talks = read(1, "t1", FILE, "text");
        talks[0].blocks.push(Block::text(&"a".repeat(400)));
        check(talks.into_iter().chain(again()).collect(), 1, &[]);
    }

    #[test]
    fn an_interrupted_answer_that_did_nothing_goes_with_its_note() {
        let stopped = || user(3, Origin::Interruption, "stopped");
        let rest = || [prompt(4, "b"), answer(5, "c")];
        let talk = [prompt(1, "a"), answer(2, "I wou"), stopped()];
        check(talk.into_iter().chain(rest()).collect(), 1, &[1, 2]);
        let acted = [prompt(1, "a"), calls(2, &[("t", "Bash", "{}")]), results(6, &[("t", "x")]), stopped()];
        check(acted.into_iter().chain(rest()).collect(), 1, &[]);
    }

    #[test]
    fn a_note_goes_when_a_later_one_says_the_same() {
        let note = |id, text: &str| user(id, Origin::Attachment, text);
        let talk = |first: &str, second: &str| {
            vec![
                prompt(1, "a"),
                note(2, first),
                answer(3, "b"),
                prompt(4, "c"),
                note(5, second),
                answer(6, "d"),
            ]
        };
        check(talk("Tasks:\n1", "Tasks:\n2"), 1, &[1]);
        check(talk("Tasks:\n1", "Changed: /f"), 1, &[]);
        let between =
            vec![answer(1, "a"), note(2, "T"), answer(3, "b"), prompt(4, "c"), note(5, "T"), answer(6, "d")];
        check(between, 1, &[]);
    }
}
