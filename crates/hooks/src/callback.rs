//! Hooks that are functions: of a Rust program, or of a host that is asked over a protocol.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;
use windlass_ports::{BoxFuture, CancellationToken};
use windlass_protocol::HookEvent;

use crate::condition::Condition;
use crate::events;
use crate::handler::{Handler, HandlerAction};
use crate::matcher::Matcher;
use crate::problem::HookProblem;
use crate::set::SourceKind;

/// A function that is asked like any other hook.
pub trait HookCallback: Send + Sync + 'static {
    /// Answers with the object that a command would print. An error is a failure of the hook, not an objection. When `cancel`
    /// fires, nobody wants the answer any more.
    fn call(
        &self,
        input: CallbackInput,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Value, String>>;
}

impl std::fmt::Debug for dyn HookCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HookCallback")
    }
}

/// What a callback is asked.
#[derive(Clone, Debug)]
pub struct CallbackInput {
    /// The event.
    pub event: HookEvent,
    /// The call it is about, by the provider's id.
    pub tool_use_id: Option<Arc<str>>,
    /// What a command would read: one JSON object.
    pub json: Arc<str>,
}

/// A callback and what decides whether it is asked.
pub struct CallbackHook {
    /// The event it is asked about.
    pub event: HookEvent,
    /// What people read where it fails.
    pub name: String,
    /// Which calls it is for; all of them if it is empty.
    pub matcher: String,
    /// How long it may take; a minute if nothing is said.
    pub timeout: Option<Duration>,
    /// Whether what it guards is blocked when it fails.
    pub blocks_on_failure: bool,
    /// What is asked.
    pub callback: Arc<dyn HookCallback>,
}

impl CallbackHook {
    /// A callback for every call of an event.
    pub fn new(event: HookEvent, name: &str, callback: Arc<dyn HookCallback>) -> Self {
        let (name, matcher) = (name.to_owned(), String::new());
        Self { event, name, matcher, timeout: None, blocks_on_failure: false, callback }
    }

    pub(crate) fn into_handler(self) -> Result<Handler, HookProblem> {
        let row = events::find(self.event.name());
        let matching = row.map_or(events::MatcherSubject::Nothing, |row| row.matching);
        let matcher = Matcher::parse(&self.matcher, matching).map_err(|what| {
            HookProblem::new(&self.name, what, "give another").leaves("this hook does not run")
        })?;
        Ok(Handler {
            event: self.event,
            origin: self.name,
            source: SourceKind::Caller,
            matcher,
            condition: Condition::None,
            timeout: self.timeout,
            status: None,
            once: false,
            blocks_on_failure: self.blocks_on_failure,
            action: HandlerAction::Callback(self.callback),
            spec: Value::Null,
            has_worked: AtomicBool::new(false),
        })
    }
}
