//! The pure reducer: every rule of the loop.
//!
//! [`step`] takes the state of a run, one thing that happened, and the configuration; it returns the next state and
//! what the driver must do. It is total and deterministic: no clock, no chance, no files, no waiting, no errors. Time
//! and chance enter with each [`Input`]. Whatever nobody waits for any more is dropped: late news is normal.
//!
//! `turn` is one iteration of the loop, `context` the layers that keep the transcript within the window, `memory` what a
//! session is after its log was read.
//!
//! ```
//! use windlass_core::{Config, Effect, Event, Input, State, step};
//!
//! let config = Config::default();
//! let (state, effects) = step(State::default(), Input::at(0, Event::Submit("hi".into())), &config);
//! assert!(effects.list.iter().any(|effect| matches!(effect, Effect::CallModel(..))));
//! assert!(state.terminal().is_none());
//! ```

mod config;
mod context;
mod effect;
mod memory;
mod state;
mod step;
mod turn;

pub use config::{
    AnswerSchema, CacheSafe, CheckAnswer, CompactionPolicy, Config, ContextPolicy, ContinuationPolicy,
    EarlyStart, OutputPolicy, RepeatPolicy, RetryPolicy, RunSource, ThinkingMode, ThinkingWish,
};
pub use context::apply;
pub use effect::{Effect, Effects};
pub use memory::{Recall, RecalledSession};
pub use state::{PhaseName, RetryablePrompt, State};
pub use step::step;
pub use turn::{THINKING_TOKENS_MIN, repair, unsupported_settings};
pub use windlass_protocol::{Event, Input, Interrupt, Priority, Prompt, Speaker};
