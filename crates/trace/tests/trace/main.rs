//! The page as a file, and as a browser shows it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stderr, reason = "tests that are skipped say so")]

mod browser;
mod colours;
mod markup;
mod page;
mod tape;

use std::borrow::Cow;

use tape::Tape;
use windlass_trace::Trace;

/// The page of a session, with nothing redacted.
fn page_of(tape: &Tape) -> String {
    let mut trace = Trace::default();
    tape.records.iter().for_each(|record| trace.take(record));
    trace.page("Session 0198f3a2", &|text| Cow::Borrowed(text))
}
