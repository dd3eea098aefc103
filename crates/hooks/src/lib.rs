//! Hooks: the handlers that settings files and Rust callers configure, and the runner that asks them.
//!
//! A [`HookSet`] is read from the `hooks` objects of settings files, one after the other, and says one by one what it does not
//! understand. [`SettingsHooks`] asks the handlers of an event: all that match at once, each within its own time, and puts
//! their answers together into the one answer that the loop hears. What follows from it is decided elsewhere.
//!
//! ```
//! use windlass_hooks::{HookHost, HookSet, HookSource, SettingsHooks};
//! use windlass_ports::HookRunner;
//! use windlass_protocol::HookEvent;
//!
//! let settings = serde_json::json!({
//!     "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}],
//!     "PreToolUze": []
//! });
//! let mut set = HookSet::default();
//! let problems = set.read(&settings, &HookSource::settings("settings.json:3"));
//! let told = "unknown hook event PreToolUze, so none of its hooks run; did you mean PreToolUse?";
//! assert_eq!(problems[0].to_string(), format!("settings.json:3: {told}"));
//!
//! let hooks = SettingsHooks::new(set, HookHost::new("/project".into()));
//! assert!(hooks.events().contains(&HookEvent::PreToolUse));
//! ```

mod answers;
mod background;
mod command;
mod env_files;
mod events;
mod handler;
mod http;
mod input;
mod matcher;
mod output;
mod overflow_file;
mod prompt;
mod read;
mod report;
mod runner;
mod set;

pub use command::Confinement;
pub use events::known_event_names;
pub use handler::{CallbackHook, CallbackInput, HookCallback};
pub use matcher::RuleMatch;
pub use prompt::{AskModel, AskModelError};
pub use runner::{HookHost, SettingsHooks, ShowStatus};
pub use set::{HookProblem, HookSet, HookSource, RuleCheck, SourceKind};
