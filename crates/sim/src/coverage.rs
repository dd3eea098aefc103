//! What the walks have reached, counted. A rule that no walk reaches is not tested by them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use windlass_core::{Effect, PhaseName, RunSource};
use windlass_protocol::{
    CompactTrigger, Decision, FailureClass, HookEvent, ModelRequest, Terminal, Transition, Update,
};

use crate::failures::{FAILURE_CLASSES, FAILURE_POINTS, FailurePoint};

/// Counts of everything that is to be reached, by group and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Runs that were dropped in the middle.
    pub dropped: u64,
    /// How often each edge between phases was taken.
    pub edges: BTreeMap<(PhaseName, PhaseName), u64>,
    groups: BTreeMap<&'static str, BTreeMap<String, u64>>,
}

/// The kinds of decisions; a compaction is one for each trigger, with and without a model.
const DECISIONS: [&str; 13] = [
    "stored",
    "snipped",
    "cleared",
    "staged",
    "collapsed",
    "compacted auto by a model",
    "compacted auto mechanically",
    "compacted manually by a model",
    "compacted manually mechanically",
    "compacted reactively by a model",
    "compacted reactively mechanically",
    "media_stripped",
    "thinking_stripped",
];
const FORKS: [&str; 4] = ["Compact", "Collapse", "Summary", "PromptSuggestion"];
/// The ends that a fork which really ran can come to.
const FORK_ENDS: [&str; 8] = [
    "completed",
    "max_turns",
    "max_budget_usd",
    "prompt_too_long",
    "max_output_tokens",
    "model_error",
    "api_error",
    "refused",
];
const STOPS: [&str; 8] = [
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "refusal",
    "pause_turn",
    "model_context_window_exceeded",
    "new",
];
/// Parts of requests and updates that only some walks have.
const SIGHTS: [&str; 23] = [
    "cache missed",
    "cleared by the provider",
    "compaction failed",
    "command that waits",
    "cost of a cancelled fork",
    "crashed",
    "facts restated",
    "fell back",
    "fork behind the conversation of the run",
    "question",
    "question about a call in doubt",
    "denied",
    "prompt that replaces a run",
    "request asks for the whole answer",
    "request edits the context",
    "request says what is left of a task budget",
    "run goes on without a prompt",
    "session opened again from its log",
    "summary of calls",
    "summary of stop hooks",
    "suggestion of a prompt",
    "background work cancelled by the next run",
    "turns used up",
];

impl Coverage {
    /// Counts one more of a group.
    pub(crate) fn count(&mut self, group: &'static str, name: &str) {
        let group = self.groups.entry(group).or_default();
        match group.get_mut(name) {
            Some(count) => *count += 1,
            None => drop(group.insert(name.to_owned(), 1)),
        }
    }

    pub(crate) fn count_failure(&mut self, class: FailureClass, point: FailurePoint) {
        self.count("failure", &failure_name(class, point));
    }

    /// Counts what one effect shows.
    pub(crate) fn on_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Emit(update) => self.on_update(update),
            Effect::Fork { config, .. } => {
                self.count("fork", &format!("{:?}", config.source));
                if config.cache_safe.is_some() && config.source != RunSource::Compact {
                    self.count("sight", "fork behind the conversation of the run");
                }
            }
            Effect::RunHooks(_, call, _) => self.count("hook", call.event().name()),
            Effect::CallModel(_, body) => self.on_request(body),
            _ => (),
        }
    }

    fn on_request(&mut self, body: &ModelRequest) {
        if body.delivery == windlass_protocol::Delivery::Whole {
            self.count("sight", "request asks for the whole answer");
        }
        if body.edits.is_some() {
            self.count("sight", "request edits the context");
        }
        if body.task_budget.is_some_and(|budget| budget.remaining.is_some()) {
            self.count("sight", "request says what is left of a task budget");
        }
    }

    fn on_update(&mut self, update: &Update) {
        match update {
            Update::Continued(transition) => self.count("transition", transition.name()),
            Update::Decided(decision) => self.count("decision", decision_name(decision)),
            Update::Done(outcome) => self.count("terminal", outcome.terminal.name()),
            Update::Responded { stop_reason, .. } => self.count("stop", stop_reason),
            Update::CacheMissed { .. } => self.count("sight", "cache missed"),
            Update::ClearedByProvider { .. } => self.count("sight", "cleared by the provider"),
            Update::CompactionFailed(_) => self.count("sight", "compaction failed"),
            Update::FellBack { .. } => self.count("sight", "fell back"),
            Update::Question(_) => self.count("sight", "question"),
            Update::Denied(_) => self.count("sight", "denied"),
            Update::ToolUseSummary { .. } => self.count("sight", "summary of calls"),
            Update::Failed { terminal, .. } => self.count("shown failure", terminal.name()),
            Update::PromptSuggestion { .. } => self.count("sight", "suggestion of a prompt"),
            Update::TurnsUsedUp { .. } => self.count("sight", "turns used up"),
            Update::StopHooks(_) => self.count("sight", "summary of stop hooks"),
            _ => (),
        }
    }

    /// Adds what other walks have reached.
    pub fn add(&mut self, other: Self) {
        self.dropped += other.dropped;
        for (edge, count) in other.edges {
            *self.edges.entry(edge).or_default() += count;
        }
        for (group, names) in other.groups {
            let own = self.groups.entry(group).or_default();
            for (name, count) in names {
                *own.entry(name).or_default() += count;
            }
        }
    }

    fn get(&self, group: &str, name: &str) -> u64 {
        self.groups.get(group).and_then(|names| names.get(name)).copied().unwrap_or(0)
    }

    /// Everything there is to reach, with its count; edges are listed apart.
    fn rows(&self) -> Vec<(&'static str, String, u64)> {
        let terminals = Terminal::ALL.map(|terminal| ("terminal", terminal.name().to_owned()));
        let transitions = Transition::ALL.map(|transition| ("transition", transition.name().to_owned()));
        let decisions = DECISIONS.map(|name| ("decision", name.to_owned()));
        let forks = FORKS.map(|name| ("fork", name.to_owned()));
        let by_host = |event: &HookEvent| matches!(event, HookEvent::Notification | HookEvent::SessionEnd);
        let is_reached = |event: &HookEvent| !HookEvent::NOT_REACHED.contains(event) && !by_host(event);
        let hooks =
            HookEvent::ALL.into_iter().filter(is_reached).map(|event| ("hook", event.name().to_owned()));
        let sights = SIGHTS.map(|name| ("sight", name.to_owned()));
        let ends = FORK_ENDS.map(|name| ("fork end", name.to_owned()));
        let stops = STOPS.map(|name| ("stop", name.to_owned()));
        let failures = FAILURE_CLASSES
            .iter()
            .flat_map(|class| FAILURE_POINTS.iter().map(|point| ("failure", failure_name(*class, *point))));
        let mut named: Vec<(&'static str, String)> = Vec::new();
        let shown = Terminal::ALL.into_iter().filter(|terminal| terminal.is_failure());
        named.extend(shown.map(|terminal| ("shown failure", terminal.name().to_owned())));
        named.extend(transitions);
        named.extend(terminals);
        named.extend(decisions);
        named.extend(forks);
        named.extend(ends);
        named.extend(hooks);
        named.extend(stops);
        named.extend(sights);
        named.extend(failures);
        let count = |(group, name): (&'static str, String)| {
            let count = self.get(group, &name);
            (group, name, count)
        };
        named.into_iter().map(count).collect()
    }

    /// What no walk has reached.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let rows = self.rows().into_iter().filter(|(.., count)| *count == 0);
        rows.map(|(group, name, _)| format!("{group} {name}")).collect()
    }

    /// All counts, a line each; failures are one line for each class.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = String::new();
        for (group, name, count) in self.rows() {
            let _ = writeln!(table, "{group:<11} {name:<46} {count:>11}");
        }
        for ((from, to), count) in &self.edges {
            let edge = format!("{from:?} -> {to:?}");
            let _ = writeln!(table, "{:<11} {edge:<46} {count:>11}", "edge");
        }
        let _ = writeln!(table, "{:<11} {:<46} {:>11}", "run", "dropped in the middle", self.dropped);
        table
    }
}

fn failure_name(class: FailureClass, point: FailurePoint) -> String {
    format!("{class:?} {point:?}")
}

fn decision_name(decision: &Decision) -> &'static str {
    match decision {
        Decision::Stored(_) => "stored",
        Decision::Snipped { .. } => "snipped",
        Decision::Cleared { .. } => "cleared",
        Decision::Staged(_) => "staged",
        Decision::Collapsed { .. } => "collapsed",
        Decision::Compacted(compaction) => match (compaction.trigger, compaction.is_mechanical) {
            (CompactTrigger::Auto, false) => "compacted auto by a model",
            (CompactTrigger::Auto, true) => "compacted auto mechanically",
            (CompactTrigger::Manual, false) => "compacted manually by a model",
            (CompactTrigger::Manual, true) => "compacted manually mechanically",
            (CompactTrigger::Reactive, false) => "compacted reactively by a model",
            (CompactTrigger::Reactive, true) => "compacted reactively mechanically",
        },
        Decision::MediaStripped(..) => "media_stripped",
        Decision::ThinkingStripped(..) => "thinking_stripped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_reached_is_named() {
        let mut coverage = Coverage::default();
        coverage.count("terminal", "completed");
        let mut more = Coverage::default();
        more.count("terminal", "completed");
        coverage.add(more);
        let missing = coverage.missing();
        assert!(!missing.contains(&"terminal completed".to_owned()));
        assert!(missing.contains(&"terminal refused".to_owned()));
        assert!(missing.contains(&"transition next_turn".to_owned()));
        assert!(coverage.table().contains("completed"));
        assert_eq!(coverage.get("terminal", "completed"), 2);
    }
}
