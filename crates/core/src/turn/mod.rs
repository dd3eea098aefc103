//! One iteration of the loop.
//!
//! Its seven stages, in order, are `prepare` with the layers of `context` (1), `request` (2), `stream` (3), `calls` (4),
//! `attach` (5), `ladder` and `decide` (6), `guards` and `transition` (7). Between them, `settle` answers every call before
//! anything else happens; `retry` judges failures, and `gate` mends what is about to be sent.

pub(crate) mod answer_schema;
pub(crate) mod attach;
pub(crate) mod background;
pub(crate) mod budget;
pub(crate) mod calls;
pub(crate) mod decide;
pub(crate) mod fork;
pub(crate) mod gate;
pub(crate) mod guards;
pub(crate) mod hooks;
pub(crate) mod ladder;
pub(crate) mod prepare;
pub(crate) mod queue;
pub(crate) mod repeats;
pub(crate) mod request;
pub(crate) mod retry;
pub(crate) mod run_start;
pub(crate) mod settle;
pub(crate) mod stream;
pub(crate) mod summary;
pub(crate) mod transition;

pub use gate::repair;
pub use request::{THINKING_TOKENS_MIN, unsupported_settings};
