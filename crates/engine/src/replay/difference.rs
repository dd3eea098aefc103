//! The first difference between what a log says and what the engine says, in a form a person understands.

use std::fmt::Debug;

use windlass_core::Event;
use windlass_protocol::{ModelEvent, Record};

/// A log says something else than the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("event {event} ({heard}), `{kind}`{}: the log has {logged}, the engine has {played}", place(field))]
pub struct Mismatch {
    /// The event behind which it was noticed; the first is 1.
    pub event: u64,
    /// What was heard then.
    pub heard: &'static str,
    /// The kind of the record.
    pub kind: &'static str,
    /// The first field that differs; empty if the whole record does.
    pub field: String,
    /// What the log has there, shortened.
    pub logged: String,
    /// What the engine has there, shortened.
    pub played: String,
}

fn place(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(" at `{field}`") }
}

/// As much of a value is shown.
const SHOWN_CHARS: usize = 160;

/// As much of what both have in common is shown before the first difference.
const COMMON_CHARS: usize = 40;

/// What differs; the place in the log is filled in later.
impl Mismatch {
    pub(super) fn of_words(logged: &str, played: &str) -> Self {
        Self { logged: logged.to_owned(), played: played.to_owned(), ..Self::default() }
    }

    /// The engine wants something recorded, and the log goes on with something else.
    pub(super) fn missing(due: &impl Debug, next: &str) -> Self {
        Self::of_words(&format!("nothing more before `{next}`"), &cut(&format!("{due:?}"), 0))
    }

    /// The log has something that the engine does not want recorded.
    pub(super) fn unasked(record: &Record) -> Self {
        Self::of_words(&cut(&format!("{record:?}"), 0), "nothing to record")
    }

    /// Two records of different kinds.
    pub(super) fn of_kinds(logged: &Record, played: &Record) -> Self {
        let shown = |record: &Record| format!("`{}` {}", record.kind(), cut(&format!("{record:?}"), 0));
        Self::of_words(&shown(logged), &shown(played))
    }

    /// The first field that differs.
    pub(super) fn between(logged: &impl Debug, played: &impl Debug) -> Self {
        let (logged, played) = (format!("{logged:#?}"), format!("{played:#?}"));
        let mut place = FieldPath::default();
        let mut lines = (logged.lines(), played.lines());
        loop {
            let (one, other) = (lines.0.next(), lines.1.next());
            match (one, other) {
                (Some(one), Some(other)) if one == other => place.enter(one),
                (None, None) => return Self::of_words("the same", "the same"),
                (one, other) => {
                    place.enter(one.or(other).unwrap_or_default());
                    let (one, other) = (value(one), value(other));
                    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
                    let from = common.saturating_sub(COMMON_CHARS);
                    let (logged, played) = (cut(one, from), cut(other, from));
                    return Self { field: place.name(), logged, played, ..Self::default() };
                }
            }
        }
    }
}

/// Where a line of the debug form stands: the fields and positions it is in.
#[derive(Default)]
struct FieldPath(Vec<FieldLevel>);

#[derive(Default)]
struct FieldLevel {
    name: String,
    /// Whether it is a list, and how many elements of it came so far.
    elements: Option<usize>,
}

impl FieldPath {
    fn enter(&mut self, line: &str) {
        let text = line.trim_start();
        let depth = (line.len() - text.len()) / 4;
        self.0.truncate(depth);
        if text.starts_with([']', ')', '}']) {
            return;
        }
        let name = match text.split_once(": ") {
            Some((name, _)) if is_name(name) => name.to_owned(),
            _ => self.next_element().unwrap_or_default(),
        };
        self.0.resize_with(depth, FieldLevel::default);
        self.0.push(FieldLevel { name, elements: text.ends_with('[').then_some(0) });
    }

    fn next_element(&mut self) -> Option<String> {
        let elements = self.0.last_mut()?.elements.as_mut()?;
        *elements += 1;
        Some(format!("[{}]", *elements - 1))
    }

    fn name(&self) -> String {
        let names: Vec<&str> =
            self.0.iter().map(|level| &*level.name).filter(|name| !name.is_empty()).collect();
        names.join(".").replace(".[", "[")
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The value on a line of the debug form.
fn value(line: Option<&str>) -> &str {
    let Some(line) = line else { return "nothing" };
    let text = line.trim_start().trim_end_matches(',');
    match text.split_once(": ") {
        Some((name, value)) if is_name(name) => value,
        _ => text,
    }
}

fn cut(text: &str, from: usize) -> String {
    let mut shown: String = text.chars().skip(from).take(SHOWN_CHARS).collect();
    if from > 0 {
        shown.insert(0, '…');
    }
    if text.chars().nth(from + SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Whether two records say the same. What was heard is never compared: it is what everything else follows from.
pub(super) fn is_same(one: &Record, other: &Record) -> bool {
    match (one, other) {
        (Record::Said(one), Record::Said(other)) => one == other,
        (Record::Answered(one), Record::Answered(other)) => one == other,
        (Record::Result(one), Record::Result(other)) => one == other,
        (Record::Retracted(one), Record::Retracted(other)) => one == other,
        (Record::Queued(one), Record::Queued(other)) => one == other,
        (Record::Dequeued, Record::Dequeued) => true,
        (Record::Requested(one), Record::Requested(other)) => one == other,
        (Record::Ruled(one), Record::Ruled(other)) => one == other,
        (Record::Intended(one), Record::Intended(other)) => one == other,
        (Record::Finished(one), Record::Finished(other)) => one == other,
        (Record::Decided(one), Record::Decided(other)) => one == other,
        (Record::Spent(one), Record::Spent(other)) => one == other,
        (Record::Repaired(one), Record::Repaired(other)) => one == other,
        (Record::Ended(one), Record::Ended(other)) => one == other,
        (Record::Snapshot(one), Record::Snapshot(other)) => one == other,
        _ => false,
    }
}

/// What happened, in a few words.
pub(super) fn event_name(event: &Event) -> &'static str {
    match event {
        Event::Submit(_) => "a prompt",
        Event::Compact { .. } => "a request to compact",
        Event::GoOn { .. } => "a request to continue",
        Event::Steer(_) => "a queued message",
        Event::TakeBack(_) => "a queued message that was taken back",
        Event::Interrupt(_) => "an interrupt",
        Event::Model(_, event) => match event {
            ModelEvent::Started { .. } => "the start of a response",
            ModelEvent::Delta { .. } => "a delta of a response",
            ModelEvent::Block { .. } => "a block of a response",
            ModelEvent::Note(_) => "a note from the provider",
            ModelEvent::Ended { .. } => "the end of a response",
            ModelEvent::Failed(_) => "a failed request",
        },
        Event::Examined(..) => "the facts of a call",
        Event::Progress(..) => "progress of a call",
        Event::Finished(..) => "the end of a call",
        Event::Answered(..) => "an answer to a question",
        Event::Permissions(_) => "a change of permissions",
        Event::Timer(_) => "a timer",
        Event::ForkSpent(..) => "the cost of a fork",
        Event::Forked(..) => "the end of a fork",
        Event::Hooked(..) => "the answer of hooks",
        Event::Stored(..) => "results moved to files",
        Event::Looked(..) => "a check of the environment",
        Event::Prefetched(_) => "loaded memory files",
        Event::StoreFailed { .. } => "a failed write of the log",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windlass_protocol::{
        Block, CallId, CallResult, Message, MessageId, Origin, RequestEntry, RequestId, SessionSnapshot,
    };

    use super::*;

    #[track_caller]
    fn check(logged: &impl Debug, played: &impl Debug, expected: [&str; 3]) {
        let Mismatch { field, logged, played, .. } = Mismatch::between(logged, played);
        assert_eq!([&*field, &*logged, &*played], expected);
    }

    fn result(text: &str) -> CallResult {
        CallResult {
            id: MessageId(3),
            call: CallId(1),
            asked_by: MessageId(2),
            name: "Read".into(),
            result: Block::tool_result("t1", &[Block::text(text)], false),
            structured: None,
        }
    }

    #[test]
    fn the_first_field_that_differs_is_named() {
        let requested = |attempt, tools| RequestEntry {
            request: RequestId(1),
            model: "m".into(),
            attempt,
            parts: vec![("system".into(), 10), ("tools".into(), tools)],
        };
        check(&requested(1, 20), &requested(2, 30), ["attempt", "1", "2"]);
        check(&requested(1, 20), &requested(1, 30), ["parts[1]", "20", "30"]);
        let snapshot = |texts: &[&str]| SessionSnapshot {
            messages: texts
                .iter()
                .map(|text| Arc::new(Message::user(MessageId(1), Origin::Prompt, vec![Block::text(text)])))
                .collect(),
            ..SessionSnapshot::default()
        };
        let (one, other) = (r#"{"type":"text","text":"b"}"#, r#"{"type":"text","text":"c"}"#);
        check(&snapshot(&["a", "b"]), &snapshot(&["a", "c"]), ["messages[1].blocks[0]", one, other]);
        check(&Some(result("x")).map(|result| result.id), &None::<MessageId>, ["", "Some(", "None"]);
    }

    #[test]
    fn long_values_are_shown_around_the_first_difference() {
        let (one, other) =
            (result(&format!("{}1{}", "a".repeat(500), "b".repeat(500))), result(&"a".repeat(500)));
        let Mismatch { field, logged, played, .. } = Mismatch::between(&one, &other);
        assert_eq!(field, "result");
        let common = "a".repeat(COMMON_CHARS);
        assert!(logged.starts_with(&format!("…{common}1bbb")) && logged.ends_with("b…"), "{logged}");
        assert!(played.starts_with(&format!("…{common}\"")), "{played}");
    }
}
