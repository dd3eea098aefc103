//! What follows from a story: where the time of a run went, what took long.

use crate::traced_session::{MarkKind, TracedCall, TracedRequest, TracedSession};

/// A long thing takes at least this long.
const LONG_MS_MIN: u64 = 1000;
/// A long thing takes so many times what is usual for its kind.
const LONG_FACTOR: u64 = 3;

/// What a run was doing, in the order in which it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Waiting for the first byte.
    Waiting,
    Streaming,
    /// Tools ran while the model answered.
    Both,
    Tools,
    /// Somebody was asked.
    Asking,
    Compacting,
    Pausing,
    /// Nothing of all that: hooks, looking around, the engine itself.
    Else,
}

impl Activity {
    /// Every one in order, with its class on the page and its name.
    pub(crate) const ALL: [(Self, &str, &str); 8] = [
        (Self::Waiting, "d-wait", "waiting for the model"),
        (Self::Streaming, "d-stream", "streaming"),
        (Self::Both, "d-both", "streaming while tools run"),
        (Self::Tools, "d-tools", "tools"),
        (Self::Asking, "d-ask", "waiting for approval"),
        (Self::Compacting, "d-compact", "compacting"),
        (Self::Pausing, "d-pause", "pausing before retries"),
        (Self::Else, "d-else", "other"),
    ];

    /// What a run is doing while so many of each go on.
    fn of(counts: [i64; 8]) -> Self {
        let goes_on = |activity: &Self| counts[*activity as usize] > 0;
        if goes_on(&Self::Streaming) && goes_on(&Self::Tools) {
            return Self::Both;
        }
        let by_weight =
            [Self::Streaming, Self::Tools, Self::Waiting, Self::Asking, Self::Compacting, Self::Pausing];
        by_weight.into_iter().find(goes_on).unwrap_or(Self::Else)
    }
}

/// Where the time of all runs went, in milliseconds, in the order of [`Activity::ALL`]; together it is their length.
pub(crate) fn time_spent(story: &TracedSession) -> [u64; Activity::ALL.len()] {
    // The runs lie behind each other on one line.
    let mut starts = Vec::with_capacity(story.runs.len());
    let mut end = 0_u64;
    for run in &story.runs {
        starts.push(end);
        end += run.length_ms;
    }
    let spans = spans(story, &|run, at| starts[run] + at.min(story.runs[run].length_ms));
    let mut edges: Vec<(u64, Activity, i64)> = Vec::with_capacity(spans.len() * 2);
    for (from, to, doing) in spans.into_iter().filter(|(from, to, _)| from < to) {
        edges.extend([(from, doing, 1), (to, doing, -1)]);
    }
    edges.sort_unstable_by_key(|(at, _, _)| *at);
    let mut sums = [0; Activity::ALL.len()];
    let (mut counts, mut before) = ([0; Activity::ALL.len()], 0);
    for (at, activity, more) in edges {
        sums[Activity::of(counts) as usize] += at - before;
        before = at;
        counts[activity as usize] += more;
    }
    sums[Activity::of(counts) as usize] += end - before;
    sums
}

/// Everything that took a while.
fn spans(story: &TracedSession, place: &dyn Fn(usize, u64) -> u64) -> Vec<(u64, u64, Activity)> {
    let requests = story.requests.iter().flat_map(|request| {
        let end = request.end.unwrap_or(request.sent);
        let first = request.first.unwrap_or(end);
        let at = |ms| place(request.run, ms);
        [(at(request.sent), at(first), Activity::Waiting), (at(first), at(end), Activity::Streaming)]
    });
    let calls = story.calls.iter().flat_map(|call| {
        let at = |ms| place(call.run, ms);
        let ran = call.started.zip(call.ended).map(|(from, to)| (at(from), at(to), Activity::Tools));
        let asked = call.question.map(|(from, to)| (at(from), at(to), Activity::Asking));
        ran.into_iter().chain(asked)
    });
    let marks = story.marks.iter().filter_map(|mark| {
        let doing = match mark.kind {
            MarkKind::Compaction => Activity::Compacting,
            MarkKind::Backoff => Activity::Pausing,
            _ => return None,
        };
        Some((place(mark.run, mark.from?), place(mark.run, mark.at), doing))
    });
    requests.chain(calls).chain(marks).collect()
}

/// How much longer everything would have taken one after the other.
pub(crate) fn time_saved(story: &TracedSession) -> u64 {
    let tools: u64 = story.calls.iter().filter_map(TracedCall::took).sum();
    tools.saturating_sub(time_spent(story)[Activity::Tools as usize])
}

/// How long something of a kind must take to be called long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongThresholds {
    pub(crate) request_ms: u64,
    pub(crate) call_ms: u64,
}

impl LongThresholds {
    pub(crate) fn of(story: &TracedSession) -> Self {
        Self {
            request_ms: threshold(story.requests.iter().filter_map(TracedRequest::took).collect()),
            call_ms: threshold(story.calls.iter().filter_map(TracedCall::took).collect()),
        }
    }
}

fn threshold(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    (median * LONG_FACTOR).max(LONG_MS_MIN)
}
