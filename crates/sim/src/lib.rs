//! Seeded simulator and invariant checkers.
//!
//! [`walk`] plays one random session against [`windlass_core::step`]: a model that answers, stalls, lies and fails in every
//! way, tools that fail or do not stop, people who interrupt, steer and answer, hooks that object, forks that run for real or
//! come to anything, disks that are full, events that come late or twice. After every step checkers compare what the core
//! asked for with what it may ask for. One seed is one walk, so a failure can be played again. [`walk_mutant`] shows that the
//! checkers notice what they are there for; [`Coverage`] shows that the walks get everywhere.

mod checker;
mod coverage;
mod failures;
mod fork_world;
mod mutant;
mod play;
mod recall_check;
mod rng;
mod scene;
mod server;
mod thinking;
mod validity;
mod world;

pub use coverage::Coverage;
pub use failures::{FAILURE_CLASSES, FAILURE_POINTS, FailurePoint};
pub use mutant::Mutant;
pub use play::{WalkReport, play};
pub use rng::Rng;
pub use validity::check_request;
pub use world::{walk, walk_log, walk_mutant, walk_told};
