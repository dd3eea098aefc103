//! What runs beside a run: forks, hooks, files being written, looks around. All of it is answered or cancelled before the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_core::{Config, Effect, Event, RunSource};
use windlass_protocol::{ForkId, HookCall, HookEvent, HookId, ModelSpend};

/// What is open, and which calls hooks have let pass.
#[derive(Debug, Default)]
pub(super) struct SideWork {
    forks: BTreeSet<ForkId>,
    /// Forks that began at the end of a run.
    background: BTreeSet<ForkId>,
    /// What forks said that they have taken so far.
    spent: BTreeMap<ForkId, Models>,
    hooks: BTreeMap<HookId, HookQuestion>,
    /// Tool uses that hooks have answered about before they ran.
    passed: BTreeSet<Arc<str>>,
    /// Not everything that was asked for was started.
    pub(super) is_blind: bool,
}

#[derive(Debug)]
struct HookQuestion {
    event: HookEvent,
    /// The call that they let pass.
    tool_use: Option<Arc<str>>,
    /// The call that they decide about in place of a person.
    in_place_of: Option<Arc<str>>,
}

type Verdict = Result<(), String>;
type Models = BTreeMap<Arc<str>, ModelSpend>;

impl SideWork {
    /// The next run: what is at work in the background is still there.
    pub(super) fn next_run(&mut self) -> Self {
        let (background, mut spent) = (std::mem::take(&mut self.background), std::mem::take(&mut self.spent));
        spent.retain(|fork, _| background.contains(fork));
        Self { background, spent, ..Self::default() }
    }

    /// Nobody drives what was at work in the background any more.
    pub(super) fn forget_background(&mut self) {
        self.background.clear();
    }

    /// Whether this fork is at work in the background.
    pub(super) fn is_background(&self, fork: ForkId) -> bool {
        self.background.contains(&fork)
    }

    /// A run has begun: nothing of the one before is at work any more.
    pub(super) fn check_begun(&self) -> Verdict {
        let left = self.background.first().filter(|_| !self.is_blind);
        left.map_or(Ok(()), |fork| Err(format!("{fork:?} outlives the next prompt")))
    }

    /// Whether this fork is waited for.
    pub(super) fn waits_for(&self, fork: ForkId) -> bool {
        self.forks.contains(&fork)
    }

    /// What a fork has taken that is cancelled.
    pub(super) fn take_spent(&mut self, fork: ForkId) -> Models {
        self.spent.remove(&fork).unwrap_or_default()
    }

    /// Whether this question is asked before a call.
    pub(super) fn asks_before_call(&self, hook: HookId) -> bool {
        let about = [HookEvent::PreToolUse, HookEvent::PermissionRequest, HookEvent::PermissionDenied];
        self.hooks.get(&hook).is_some_and(|asked| about.contains(&asked.event))
    }

    /// An answer came.
    pub(super) fn on_event(&mut self, event: &Event) {
        match event {
            Event::ForkSpent(fork, models) if self.waits_for(*fork) || self.is_background(*fork) => {
                self.spent.insert(*fork, models.clone());
            }
            Event::Forked(fork, _) => {
                self.spent.remove(fork);
                self.forks.remove(fork);
                self.background.remove(fork);
            }
            Event::Hooked(hook, _) => {
                let asked = self.hooks.remove(hook);
                self.passed.extend(asked.and_then(|asked| asked.tool_use));
            }
            _ => (),
        }
    }

    pub(super) fn check(&mut self, effect: &Effect, config: &Config) -> Verdict {
        match effect {
            Effect::Fork { fork, config: own, .. } => {
                let is_background = own.source == RunSource::PromptSuggestion;
                if is_background && !matches!(config.source, RunSource::Repl | RunSource::Sdk) {
                    return Err(format!("{fork:?} begins where nobody sees what comes of it"));
                }
                let forks = if is_background { &mut self.background } else { &mut self.forks };
                if !forks.insert(*fork) {
                    return Err(format!("{fork:?} was started twice"));
                }
                if !own.source.is_summariser()
                    || !own.hooks.is_empty()
                    || own.has_tool_use_summaries
                    || own.has_prompt_suggestions
                {
                    return Err(format!("{fork:?} may do more than answer"));
                }
                let is_same = own.system == config.system && Arc::ptr_eq(&own.tools, &config.tools);
                let shares = own.cache_safe.is_some();
                if (own.source == RunSource::Compact && !shares) || (shares && !is_same) {
                    return Err(format!("{fork:?} does not share the prefix of the run"));
                }
            }
            Effect::CancelFork(fork)
                if !self.forks.remove(fork) && !self.background.remove(fork) && !self.is_blind =>
            {
                return Err(format!("{fork:?} was cancelled but does not run"));
            }
            Effect::CallModel(..) => {
                // Calls of another response are other calls, whatever the provider calls them.
                self.passed.clear();
                let before = [HookEvent::SessionStart, HookEvent::UserPromptSubmit, HookEvent::PostToolBatch];
                let open = self.hooks.values().find(|asked| before.contains(&asked.event));
                if let Some(asked) = open.filter(|_| !self.is_blind) {
                    return Err(format!("a request went out before {} hooks answered", asked.event.name()));
                }
            }
            Effect::RunHooks(hook, call, _) => return self.on_asked(*hook, call, config),
            Effect::CancelHooks(hook) if self.hooks.remove(hook).is_none() && !self.is_blind => {
                return Err(format!("{hook:?} was cancelled but is not asked"));
            }
            Effect::RunTool { call, tool_use, .. } => {
                let asks = config.hooks.contains(&HookEvent::PreToolUse);
                if asks && !self.passed.contains(&tool_use.id) {
                    return Err(format!("{call:?} was started before its hooks answered"));
                }
                let asks = |asked: &HookQuestion| asked.in_place_of.as_ref() == Some(&tool_use.id);
                if self.hooks.values().any(asks) {
                    return Err(format!("{call:?} was started before hooks spoke for a person"));
                }
            }
            _ => (),
        }
        Ok(())
    }

    fn on_asked(&mut self, hook: HookId, call: &HookCall, config: &Config) -> Verdict {
        let event = call.event();
        if !config.hooks.contains(&event) {
            return Err(format!("there are no hooks for {}", event.name()));
        }
        let tool_use = match call {
            HookCall::PreToolUse(call) => Some(call.tool_use.id.clone()),
            _ => None,
        };
        let in_place_of = match call {
            HookCall::PermissionRequest { call, .. } => Some(call.tool_use.id.clone()),
            _ => None,
        };
        let is_first = tool_use.as_ref().is_none_or(|id| !self.passed.contains(id));
        let is_new = self.hooks.insert(hook, HookQuestion { event, tool_use, in_place_of }).is_none();
        if is_first && is_new { Ok(()) } else { Err(format!("{hook:?} was asked twice")) }
    }

    /// Everything was answered or cancelled.
    pub(super) fn check_end(&self) -> Verdict {
        // What the core could not stop ends with the run.
        if self.is_blind {
            return Ok(());
        }
        if let Some(fork) = self.forks.first() {
            return Err(format!("{fork:?} is left running at the end"));
        }
        let left = self.hooks.first_key_value();
        left.map_or(Ok(()), |(hook, asked)| {
            Err(format!("{hook:?} of {:?} is left running at the end", asked.event))
        })
    }
}
