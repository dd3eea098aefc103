//! Which requests, calls and marks are shown one by one, in the order of time.

use std::cmp::Reverse;

use crate::traced_session::{
    CallOutcome, MarkKind, RequestOutcome, TraceMark, TracedCall, TracedRequest, TracedSession,
};

/// Something of a run, and its place among its like.
#[derive(Clone, Copy)]
pub(crate) enum TracedItem<'a> {
    Request(usize, &'a TracedRequest),
    Call(usize, &'a TracedCall),
    Mark(usize, &'a TraceMark),
}

impl TracedItem<'_> {
    /// Its run, when it began, and marks before requests before calls of the same moment.
    pub(crate) fn place(&self) -> (usize, u64, u8, usize) {
        match self {
            Self::Mark(at, mark) => (mark.run, mark.began(), 0, *at),
            Self::Request(at, request) => (request.run, request.sent, 1, *at),
            Self::Call(at, call) => (call.run, call.asked, 2, *at),
        }
    }

    pub(crate) fn run(&self) -> usize {
        self.place().0
    }

    /// Whether it tells more than others, and how long it took: by this it is shown when not all can be.
    fn weight(&self) -> (bool, u64) {
        let (is_telling, took) = match self {
            Self::Request(_, request) => {
                (!matches!(request.outcome, RequestOutcome::Stopped(_)), request.took())
            }
            Self::Call(_, call) => (call.outcome != CallOutcome::Worked, call.took()),
            Self::Mark(_, mark) => {
                (!matches!(mark.kind, MarkKind::Note | MarkKind::Hook | MarkKind::Steer), mark.took())
            }
        };
        (is_telling, took.unwrap_or_default())
    }
}

/// Everything, or what failed or took long; and how many are left out.
pub(crate) fn shown_items(story: &TracedSession, items_max: usize) -> (Vec<TracedItem<'_>>, usize) {
    let requests = story.requests.iter().enumerate().map(|(at, request)| TracedItem::Request(at, request));
    let calls = story.calls.iter().enumerate().map(|(at, call)| TracedItem::Call(at, call));
    let marks = story.marks.iter().enumerate().map(|(at, mark)| TracedItem::Mark(at, mark));
    let mut items: Vec<_> = requests.chain(calls).chain(marks).collect();
    let left_out = items.len().saturating_sub(items_max);
    if left_out > 0 {
        // Of several that weigh the same, the first stay.
        items.sort_by_key(|item| Reverse(item.weight()));
        items.truncate(items_max);
    }
    items.sort_unstable_by_key(TracedItem::place);
    (items, left_out)
}
