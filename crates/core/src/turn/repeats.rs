//! Calls that repeat themselves: first the model is told, then the user is asked, then the run ends.
//!
//! Only the same call with the same result counts. Work in between makes it new: a call that changed something and was not
//! itself a repetition sets every count back, so that editing and testing in turn is no repetition, but two commands that
//! alternate without effect are. Polling is no repetition: a call that waits is not counted and sets every count back.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use windlass_protocol::{CommandFacts, CommandWord, PlainCommand, ToolOutput, ToolUse};

use crate::config::RepeatPolicy;
use crate::turn::attach::reminder;

/// As many different calls are remembered.
const KEYS_MAX: usize = 64;

/// A command that is known to wait did so if the call took this long.
const WAITED_MS: u64 = 1_000;
/// Any call that took this long waited for something, such as an answer that a server holds back.
const WAITED_ANYWAY_MS: u64 = 10_000;

/// What a call did, as far as it matters for repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEffect {
    /// Nothing that would make another result likely.
    Looked,
    /// It did more than read, and worked.
    Changed,
    /// It waited.
    Waited,
}

/// Which commands of a call are known to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitKind {
    #[default]
    None,
    Some,
    /// All, by nothing but sleep.
    OnlySleeps,
}

/// Whether a call waited, by its commands and how long it took. A long call that failed worked in vain.
pub(crate) fn has_waited(waits: WaitKind, duration_ms: u64, is_error: bool) -> bool {
    (waits != WaitKind::None && duration_ms >= WAITED_MS) || (!is_error && duration_ms >= WAITED_ANYWAY_MS)
}

/// Which commands of a line are known to wait: by their name, or by a word that asks for it.
pub(crate) fn waits(commands: &CommandFacts) -> WaitKind {
    let plain = commands.plain.as_deref().unwrap_or_default();
    let sleeps = |command: &PlainCommand| program(&command.words) == Some("sleep");
    if !plain.is_empty() && plain.iter().all(sleeps) {
        WaitKind::OnlySleeps
    } else if commands.found.iter().any(|command| is_waiting(&command.words)) {
        WaitKind::Some
    } else {
        WaitKind::None
    }
}

fn is_waiting(words: &[CommandWord]) -> bool {
    const NAMES: [&str; 5] = ["sleep", "usleep", "watch", "inotifywait", "fswatch"];
    const FLAGS: [&str; 3] = ["--wait", "--watch", "--follow"];
    const SUBCOMMANDS: [&str; 2] = ["wait", "watch"];
    // `kubectl wait`, `gh run watch`; a word behind an option may be anything.
    let mut subcommands = words.iter().skip(1).take(2).take_while(|word| !word.start().starts_with('-'));
    program(words).is_some_and(|name| NAMES.contains(&name))
        || subcommands.any(|word| SUBCOMMANDS.iter().any(|subcommand| word == subcommand))
        || words.iter().any(|word| FLAGS.iter().any(|flag| word == flag))
}

fn program(words: &[CommandWord]) -> Option<&str> {
    words.first().and_then(CommandWord::base_name)
}

/// Calls that came with the same result before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repeats {
    /// The latest last.
    seen: Vec<SeenCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenCall {
    call: u64,
    result: u64,
    /// How often in a row; 0 after something else was changed or waited for.
    count: u32,
}

impl Repeats {
    /// Notes what a call came to. Returns how often it has come to the same by now, this time included.
    pub(crate) fn note(&mut self, tool_use: &ToolUse, output: &ToolOutput, effect: CallEffect) -> u32 {
        if effect == CallEffect::Waited {
            self.forgive(tool_use);
            self.set_back();
            return 1;
        }
        let (call, result) = (call_hash(tool_use), result_hash(output));
        let before = self.seen.iter().position(|seen| seen.call == call).map(|place| self.seen.remove(place));
        let count = match before {
            Some(before) if before.result == result => before.count + 1,
            _ => {
                if effect == CallEffect::Changed {
                    self.set_back();
                }
                1
            }
        };
        self.seen.push(SeenCall { call, result, count });
        let excess = self.seen.len().saturating_sub(KEYS_MAX);
        self.seen.drain(..excess);
        count
    }

    fn set_back(&mut self) {
        self.seen.iter_mut().for_each(|seen| seen.count = 0);
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
    pub(crate) fn stops(self, count: u32, can_ask: bool) -> bool {
        if can_ask { count >= self.ask_after } else { self.ends(count) }
    }

    /// Whether a call that came to the same so often is the last of the run.
    pub(crate) fn ends(self, count: u32) -> bool {
        count >= self.end_after
    }

    /// What the model is told once a call came to the same so often.
    pub(crate) fn note(self, count: u32) -> Option<String> {
        (count > 1 && count >= self.tell_after).then(|| {
            reminder(&format!(
                "You have made this call {count} times with the same input and the same result. Repeating \
                 it will not change that: try another way, or say what blocks you. To wait for something, \
                 wait within the call (sleep)."
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

fn result_hash(output: &ToolOutput) -> u64 {
    let mut hasher = DefaultHasher::new();
    output.is_error.hash(&mut hasher);
    for block in &output.content {
        block.json().hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::{FoundCommand, RawValue};

    fn call(words: &str) -> ToolUse {
        let input = RawValue::from_string(format!("{{\"words\":\"{words}\"}}")).unwrap();
        ToolUse { id: "toolu".into(), name: "tool".into(), input: input.into() }
    }

    /// A history of `call=result`, a `!` in front for calls that changed something, a `~` for those that waited; the count of
    /// the last.
    #[track_caller]
    fn check(history: &str, expected: u32) {
        let mut repeats = Repeats::default();
        let mut count = 0;
        for entry in history.split_whitespace() {
            let effect = match entry.as_bytes()[0] {
                b'!' => CallEffect::Changed,
                b'~' => CallEffect::Waited,
                _ => CallEffect::Looked,
            };
            let (words, result) = entry.trim_start_matches(['!', '~']).split_once('=').unwrap();
            count = repeats.note(&call(words), &ToolOutput::text(result), effect);
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
    fn polling_is_no_repetition() {
        check("~poll=pending ~poll=pending ~poll=pending", 1);
        check("look=a look=a ~sleep=ok look=a", 1);
        check("~poll=pending poll=pending poll=pending", 2);
    }

    #[test]
    fn a_call_waits_by_its_commands_or_by_its_time() {
        let check = |words: &[&str], duration_ms: u64, expected: bool| {
            let found = FoundCommand {
                words: words.iter().map(|&word| word.into()).collect(),
                reads: vec![],
                writes: vec![],
                removes: vec![],
            };
            let line = words.join(" ").as_str().into();
            let facts =
                CommandFacts { line, plain: Ok(vec![]), found: vec![found], unseen: None, has_hidden: false };
            assert_eq!(has_waited(waits(&facts), duration_ms, false), expected, "{words:?} {duration_ms}");
        };
        check(&["sleep", "30"], 30_000, true);
        check(&["sleep", "1"], 1_000, true);
        check(&["sleep", "0"], 3, false);
        check(&["/bin/sleep", "2"], 2_000, true);
        check(&["kubectl", "wait", "pod/x"], 4_000, true);
        check(&["gh", "run", "watch"], 4_000, true);
        check(&["cargo", "test"], 9_999, false);
        check(&["curl", "https://example.com/poll"], 10_000, true);
        check(&["echo", "sleeping"], 2_000, false);
        check(&["grep", "-r", "wait"], 2_000, false);
        assert!(!has_waited(WaitKind::None, 60_000, /* is an error */ true), "a build that fails is no wait");
    }

    #[test]
    fn a_person_is_asked_early_and_a_run_without_one_ends_late() {
        let policy = RepeatPolicy::default();
        let stops = |count| (policy.stops(count, true), policy.stops(count, false));
        assert_eq!(
            [stops(4), stops(5), stops(24), stops(25)].map(|(asked, _)| asked),
            [false, true, true, true]
        );
        assert_eq!(
            [stops(4), stops(5), stops(24), stops(25)].map(|(_, ended)| ended),
            [false, false, false, true]
        );
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let mut repeats = Repeats::default();
        for n in 0..1_000 {
            repeats.note(&call(&n.to_string()), &ToolOutput::text("same"), CallEffect::Looked);
        }
        assert_eq!(repeats.seen.len(), KEYS_MAX);
        assert_eq!(repeats.count(&call("0")), 0);
        assert_eq!(repeats.count(&call("999")), 1);
        repeats.forgive(&call("999"));
        assert_eq!(repeats.count(&call("999")), 0);
    }
}
