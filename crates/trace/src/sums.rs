//! What follows from a story: where the time of a run went, what took long.

use crate::story::{Call, MarkKind, Request, Story};

/// A long thing takes at least this long.
const LONG_MS_MIN: u64 = 1000;
/// A long thing takes so many times what is usual for its kind.
const LONG_FACTOR: u64 = 3;

/// What a run was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Tools ran while the model answered.
    Both,
    Streaming,
    Tools,
    /// Waiting for the first byte.
    Waiting,
    /// Somebody was asked.
    Asking,
    Compacting,
    /// A pause before a retry.
    Pausing,
    /// Nothing of all that: hooks, looking around, the engine itself.
    Else,
}

impl Doing {
    pub(crate) const ALL: [Self; 8] = [
        Self::Waiting,
        Self::Streaming,
        Self::Both,
        Self::Tools,
        Self::Asking,
        Self::Compacting,
        Self::Pausing,
        Self::Else,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Both => "streaming while tools run",
            Self::Streaming => "streaming",
            Self::Tools => "tools",
            Self::Waiting => "waiting for the model",
            Self::Asking => "waiting for approval",
            Self::Compacting => "compacting",
            Self::Pausing => "pausing before retries",
            Self::Else => "other",
        }
    }
}

/// What is going on at one moment, by how many.
#[derive(Default)]
struct Busy {
    waiting: i64,
    streaming: i64,
    tools: i64,
    asking: i64,
    compacting: i64,
    pausing: i64,
}

impl Busy {
    fn doing(&self) -> Doing {
        match self {
            _ if self.streaming > 0 && self.tools > 0 => Doing::Both,
            _ if self.streaming > 0 => Doing::Streaming,
            _ if self.tools > 0 => Doing::Tools,
            _ if self.waiting > 0 => Doing::Waiting,
            _ if self.asking > 0 => Doing::Asking,
            _ if self.compacting > 0 => Doing::Compacting,
            _ if self.pausing > 0 => Doing::Pausing,
            _ => Doing::Else,
        }
    }

    fn count(&mut self, doing: Doing) -> Option<&mut i64> {
        match doing {
            Doing::Waiting => Some(&mut self.waiting),
            Doing::Streaming => Some(&mut self.streaming),
            Doing::Tools => Some(&mut self.tools),
            Doing::Asking => Some(&mut self.asking),
            Doing::Compacting => Some(&mut self.compacting),
            Doing::Pausing => Some(&mut self.pausing),
            Doing::Both | Doing::Else => None,
        }
    }
}

/// Where the time of all runs went, in milliseconds, in the order of [`Doing::ALL`]; together it is their length.
pub(crate) fn time_spent(story: &Story) -> [u64; Doing::ALL.len()] {
    // The runs lie behind each other on one line.
    let mut starts = Vec::with_capacity(story.runs.len());
    let mut end = 0_u64;
    for run in &story.runs {
        starts.push(end);
        end += run.length_ms;
    }
    let spans = spans(story, &|run, at| starts[run] + at.min(story.runs[run].length_ms));
    let mut edges: Vec<(u64, Doing, i64)> = Vec::with_capacity(spans.len() * 2);
    for (from, to, doing) in spans.into_iter().filter(|(from, to, _)| from < to) {
        edges.extend([(from, doing, 1), (to, doing, -1)]);
    }
    edges.sort_unstable_by_key(|(at, _, _)| *at);
    let mut sums = [0; Doing::ALL.len()];
    let (mut busy, mut before) = (Busy::default(), 0);
    let mut pass = |doing: Doing, ms: u64| {
        let place = Doing::ALL.iter().position(|known| *known == doing);
        if let Some(sum) = place.and_then(|place| sums.get_mut(place)) {
            *sum += ms;
        }
    };
    for (at, doing, more) in edges {
        pass(busy.doing(), at - before);
        before = at;
        if let Some(count) = busy.count(doing) {
            *count += more;
        }
    }
    pass(busy.doing(), end - before);
    sums
}

/// Everything that took a while.
fn spans(story: &Story, place: &dyn Fn(usize, u64) -> u64) -> Vec<(u64, u64, Doing)> {
    let requests = story.requests.iter().flat_map(|request| {
        let end = request.end.unwrap_or(request.sent);
        let first = request.first.unwrap_or(end);
        let at = |ms| place(request.run, ms);
        [(at(request.sent), at(first), Doing::Waiting), (at(first), at(end), Doing::Streaming)]
    });
    let calls = story.calls.iter().flat_map(|call| {
        let at = |ms| place(call.run, ms);
        let ran = call.started.zip(call.ended).map(|(from, to)| (at(from), at(to), Doing::Tools));
        let asked = call.question.map(|(from, to)| (at(from), at(to), Doing::Asking));
        ran.into_iter().chain(asked)
    });
    let marks = story.marks.iter().filter_map(|mark| {
        let doing = match mark.kind {
            MarkKind::Compaction => Doing::Compacting,
            MarkKind::Backoff => Doing::Pausing,
            _ => return None,
        };
        Some((place(mark.run, mark.from?), place(mark.run, mark.at), doing))
    });
    requests.chain(calls).chain(marks).collect()
}

/// How much longer everything would have taken one after the other.
pub(crate) fn time_saved(story: &Story) -> u64 {
    let sums = time_spent(story);
    let sum =
        |doing: Doing| Doing::ALL.iter().position(|known| *known == doing).map_or(0, |place| sums[place]);
    let tools: u64 = story.calls.iter().filter_map(Call::took).sum();
    tools.saturating_sub(sum(Doing::Tools))
}

/// How long something of a kind must take to be called long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Long {
    pub(crate) request_ms: u64,
    pub(crate) call_ms: u64,
}

impl Long {
    pub(crate) fn of(story: &Story) -> Self {
        Self {
            request_ms: threshold(story.requests.iter().filter_map(Request::took).collect()),
            call_ms: threshold(story.calls.iter().filter_map(Call::took).collect()),
        }
    }
}

fn threshold(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    (median * LONG_FACTOR).max(LONG_MS_MIN)
}
