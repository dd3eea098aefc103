//! All handlers of a session, in the order in which they were configured, and what is wrong with those that are left out.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use windlass_protocol::{HookCall, HookEvent};

use crate::events;
use crate::handler::{CallbackHook, Handler};
use crate::read;

/// The handlers of a session.
#[derive(Clone, Debug, Default)]
pub struct HookSet {
    /// Names and aliases of tools beside the known ones: matchers may list them.
    pub own_tools: Vec<String>,
    pub(crate) handlers: Vec<Arc<Handler>>,
}

/// Says what is wrong with a permission rule, if anything is.
pub type RuleCheck<'a> = dyn Fn(&str) -> Result<(), String> + 'a;

/// Where handlers come from.
#[derive(Clone, Debug)]
pub struct HookSource {
    /// Where they stand, for people: a file and a line.
    pub origin: String,
    /// What kind of place that is.
    pub kind: SourceKind,
}

/// What kind of place handlers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// Settings of an administrator, the user, a project or the command line.
    Settings,
    /// A skill: `is_once` counts here, and its handlers are never taken for those of another place.
    Skill,
    /// A caller of the library, or a host.
    Caller,
}

impl HookSource {
    /// A settings file.
    pub fn settings(origin: &str) -> Self {
        Self { origin: origin.into(), kind: SourceKind::Settings }
    }
}

impl HookSet {
    /// Adds the handlers of a `hooks` object, rules unchecked. Returns a problem for each that is unreadable or without effect.
    pub fn read(&mut self, hooks: &Value, source: &HookSource) -> Vec<HookProblem> {
        self.read_checked(hooks, source, &|_| Ok(()))
    }

    /// The same, checking rules: a handler with an invalid one is a problem, is always asked, and may allow nothing.
    pub fn read_checked(
        &mut self,
        hooks: &Value,
        source: &HookSource,
        rules: &RuleCheck<'_>,
    ) -> Vec<HookProblem> {
        let mut problems = Vec::new();
        let handlers = read::read(hooks, source, rules, &self.own_tools, &mut problems);
        self.handlers.extend(handlers.into_iter().map(Arc::new));
        problems
    }

    /// Adds a function of the caller's own.
    pub fn callback(&mut self, hook: CallbackHook) -> Result<(), HookProblem> {
        self.handlers.push(Arc::new(hook.into_handler()?));
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    /// The events there are handlers for.
    pub fn events(&self) -> BTreeSet<HookEvent> {
        self.handlers.iter().map(|handler| handler.event).collect()
    }

    pub(crate) fn has_background(&self) -> bool {
        self.handlers.iter().any(|handler| handler.is_background())
    }

    pub(crate) fn for_event(&self, event: HookEvent) -> impl Iterator<Item = &Arc<Handler>> {
        self.handlers.iter().filter(move |handler| handler.event == event)
    }

    /// The handlers that a call is for, each once, as far as their matchers tell.
    pub(crate) fn matching(&self, call: &HookCall) -> Vec<Arc<Handler>> {
        let word = events::word(call);
        let aliases = call.tool_call().map_or(&[][..], |call| call.profile.aliases);
        let mut matching: Vec<Arc<Handler>> = Vec::new();
        for handler in self.for_event(call.event()) {
            let is_known = || matching.iter().any(|known| known.is_copy_of(handler));
            if !handler.is_spent() && handler.matcher.matches(word, aliases) && !is_known() {
                matching.push(handler.clone());
            }
        }
        matching
    }
}

/// Something in the hooks of a settings file that has no effect, or not the one that was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookProblem {
    /// Where it stands.
    pub origin: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub advice: String,
    /// What does not run for it.
    pub left_out: Option<&'static str>,
    /// Whether nothing may start: what does not run says that nothing passes without it.
    pub is_fatal: bool,
}

impl HookProblem {
    pub(crate) fn new(origin: &str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            origin: origin.into(),
            what: what.into(),
            advice: advice.into(),
            left_out: None,
            is_fatal: false,
        }
    }

    /// The same, with what does not run for it.
    pub(crate) fn leaves(self, left_out: &'static str) -> Self {
        Self { left_out: Some(left_out), ..self }
    }

    /// The same; nothing may start if it `is_fatal`.
    pub(crate) fn stops_if(self, is_fatal: bool) -> Self {
        Self { is_fatal, ..self }
    }
}

impl fmt::Display for HookProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.what)?;
        if let Some(left_out) = self.left_out {
            write!(f, ", so {left_out}")?;
        }
        write!(f, "; {}", self.advice)?;
        if self.is_fatal {
            f.write_str("; nothing starts without a hook whose \"onFailure\" blocks")?;
        }
        Ok(())
    }
}
