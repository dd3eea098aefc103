//! Seeded simulator and invariant checkers.
//!
//! [`walk`] plays one random run of a session against [`windlass_core::step`]: a model that answers, stalls, lies and
//! fails in every way, tools that fail or do not stop, people who interrupt, steer and answer, events that come late or
//! twice. After every step [`Checker`] compares what the core asked for with what it may ask for. One seed is one
//! walk, so a failure can be played again.

mod account;
mod checker;
mod failures;
mod rng;
mod validity;
mod world;

pub use checker::Checker;
pub use failures::{FAILURE_CLASSES, FAILURE_POINTS, FailurePoint};
pub use rng::Rng;
pub use validity::check_request;
pub use world::{Walk, walk};
