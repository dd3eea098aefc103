//! The pure reducer: every rule of the loop.
//!
//! [`step`] takes the state of a run, one thing that happened, and the configuration; it returns the next state and
//! what the driver must do. It is total and deterministic: no clock, no chance, no files, no waiting, no errors. Time
//! and chance enter with each [`Input`]. Whatever nobody waits for any more is dropped: late news is normal.
//!
//! The seven stages of an iteration, in order, are `prepare` with the `layers` (1), `request` (2), `stream` (3), `calls` with
//! `permission` (4), `attach` (5), `ladder` and `decide` (6), `guards` and `transition` (7). Between them, `settle` answers
//! every call before anything else happens; `retry` judges failures, and `gate` mends what is about to be sent.
//!
//! ```
//! use windlass_core::{Config, Effect, Event, Input, State, step};
//!
//! let config = Config::default();
//! let (state, effects) = step(State::default(), Input::at(0, Event::Submit("hi".into())), &config);
//! assert!(effects.iter().any(|effect| matches!(effect, Effect::CallModel { .. })));
//! assert!(state.terminal().is_none());
//! ```

mod attach;
mod background;
mod budget;
mod calls;
mod config;
mod cost;
mod decide;
mod effect;
mod facts;
mod fork;
mod gate;
mod grants;
mod guards;
mod hooks;
mod ladder;
mod layers;
mod ledger;
mod opening;
mod permission;
mod prefix;
mod prepare;
mod queue;
mod recall;
mod repeats;
mod request;
mod retry;
mod rules;
mod settle;
mod situation;
mod state;
mod step;
mod stream;
mod structured;
mod summary;
mod tool_names;
mod transition;

pub use config::{
    AnswerSchema, Asking, CacheSafe, CheckAnswer, Classifier, CompactionPolicy, Config, ContextPolicy,
    ContinuationPolicy, EarlyStart, OutputPolicy, PermissionMode, Permissions, RepeatPolicy, RetryPolicy,
    Sandboxing, Source, ThinkingMode, ThinkingWish,
};
pub use effect::{Effect, Effects};
pub use gate::repair;
pub use layers::apply;
pub use permission::{Case, PROTECTED_DIRECTORIES, PROTECTED_FILES, judge, missing_rules, offers};
pub use recall::{Recall, Recalled};
pub use request::THINKING_TOKENS_MIN;
pub use request::unheeded;
pub use rules::{Anchors, CommandPattern, Hosts, Reach, Rule, RuleError, RuleSource, Rules};
pub use state::{PhaseName, State, Unfinished};
pub use step::step;
pub use tool_names::{ToolNames, UnknownTool};
pub use windlass_protocol::{Behaviour, Event, Input, Interrupt, Priority, Prompt, Speaker};
