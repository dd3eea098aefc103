//! The guard against calls that repeat themselves: first the model is told, then the user is asked, then the run ends.
//!
//! Only the same call with the same result counts. Work in between makes it new: a call that changed something and was not
//! itself a repetition sets every count back, so that editing and testing in turn is no repetition, but two commands that
//! alternate without effect are.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use windlass_protocol::{ToolOutcome, ToolUse};

use crate::attach::reminder;
use crate::config::RepeatPolicy;

/// As many different calls are remembered.
const KEYS_MAX: usize = 64;

/// Calls that came with the same result before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repeats {
    /// The latest last.
    seen: Vec<Seen>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    call: u64,
    result: u64,
    /// How often in a row; 0 after something else was changed.
    count: u32,
}

impl Repeats {
    /// Notes what a call came to. `changed` says that it did more than read, and worked. Returns how often it has come to
    /// the same by now, this time included.
    pub(crate) fn note(&mut self, tool_use: &ToolUse, outcome: &ToolOutcome, changed: bool) -> u32 {
        let (call, result) = (call_hash(tool_use), result_hash(outcome));
        let before = self.seen.iter().position(|seen| seen.call == call).map(|place| self.seen.remove(place));
        let count = match before {
            Some(before) if before.result == result => before.count + 1,
            _ => {
                if changed {
                    self.seen.iter_mut().for_each(|seen| seen.count = 0);
                }
                1
            }
        };
        self.seen.push(Seen { call, result, count });
        let excess = self.seen.len().saturating_sub(KEYS_MAX);
        self.seen.drain(..excess);
        count
    }

    /// How often this call came to the same so far.
    pub(crate) fn count(&self, tool_use: &ToolUse) -> u32 {
        let call = call_hash(tool_use);
        self.seen.iter().find(|seen| seen.call == call).map_or(0, |seen| seen.count)
    }

    /// Somebody wants this call again: it counts from the start.
    pub(crate) fn forgive(&mut self, tool_use: &ToolUse) {
        let call = call_hash(tool_use);
        self.seen.retain(|seen| seen.call != call);
    }
}

impl RepeatPolicy {
    /// Whether a call that came to the same so often is not simply made again.
    pub(crate) fn asks(self, count: u32) -> bool {
        count >= self.ask_after
    }

    /// What the model is told once a call came to the same so often.
    pub(crate) fn note(self, count: u32) -> Option<String> {
        (count > 1 && count >= self.tell_after).then(|| {
            reminder(&format!(
                "You have made this call {count} times with the same input and the same result. Repeating \
                 it will not change that: try another way, or say what blocks you."
            ))
        })
    }
}

fn call_hash(tool_use: &ToolUse) -> u64 {
    let mut hasher = DefaultHasher::new();
    tool_use.name.hash(&mut hasher);
    tool_use.input.get().hash(&mut hasher);
    hasher.finish()
}

fn result_hash(outcome: &ToolOutcome) -> u64 {
    let mut hasher = DefaultHasher::new();
    outcome.is_error.hash(&mut hasher);
    for block in &outcome.content {
        block.json().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::RawValue;

    fn call(words: &str) -> ToolUse {
        let input = RawValue::from_string(format!("{{\"words\":\"{words}\"}}")).unwrap();
        ToolUse { id: "toolu".into(), name: "tool".into(), input: input.into() }
    }

    /// A history of `call=result`, a `!` in front for calls that changed something; the count of the last.
    #[track_caller]
    fn check(history: &str, expected: u32) {
        let mut repeats = Repeats::default();
        let mut count = 0;
        for entry in history.split_whitespace() {
            let changed = entry.starts_with('!');
            let (words, result) = entry.trim_start_matches('!').split_once('=').unwrap();
            count = repeats.note(&call(words), &ToolOutcome::text(result), changed);
        }
        assert_eq!(count, expected, "{history}");
    }

    #[test]
    fn only_the_same_call_with_the_same_result_counts() {
        check("test=red test=red test=red", 3);
        check("test=red look=a test=red look=a test=red", 3);
        check("test=red test=green test=red", 1);
        check("!run=ok !run=ok !run=ok", 3);
    }

    #[test]
    fn work_in_between_makes_a_call_new_but_repeated_work_does_not() {
        check("test=red !edit1=ok test=red !edit2=ok test=red", 1);
        check("!test=red !edit1=ok !test=red !edit2=ok !test=red", 1);
        check("!ping=ok !pong=ok !ping=ok !pong=ok !ping=ok !pong=ok !ping=ok", 3);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let mut repeats = Repeats::default();
        for n in 0..1_000 {
            repeats.note(&call(&n.to_string()), &ToolOutcome::text("same"), false);
        }
        assert_eq!(repeats.seen.len(), KEYS_MAX);
        assert_eq!(repeats.count(&call("0")), 0);
        assert_eq!(repeats.count(&call("999")), 1);
        repeats.forgive(&call("999"));
        assert_eq!(repeats.count(&call("999")), 0);
    }
}
