//! One self-contained page that shows how a session went: timeline, context, cost.
//!
//! [`Trace`] takes the records of a session in their order and keeps what the page shows of them; the page is drawn when it
//! is asked for. It loads nothing, runs no script but its own, and shows its drawings without any script too.
//!
//! ```
//! use windlass_protocol::{Event, Input, Record};
//! use windlass_trace::{Trace, is_trace};
//! let mut trace = Trace::default();
//! trace.take(&Record::Heard(Box::new(Input::at(0, Event::Submit("hi".into())))));
//! let page = trace.page("a session", &|text| text.into());
//! assert!(is_trace(page.as_bytes()));
//! ```

mod activities;
mod calls;
mod figures;
mod page;
mod record_reader;
#[cfg(test)]
#[path = "../tests/trace/tape.rs"]
mod tape;
mod text;
mod trace_marks;
mod traced_session;

pub use page::is_trace;
pub use record_reader::Trace;
pub use traced_session::SessionProcess;
