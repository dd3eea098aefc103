//! Tools and the people who are asked about them.

use windlass_core::Event;
use windlass_protocol::{
    Admission, Answer, Block, CallFacts, CallId, CallKind, FileSeen, PathFact, ToolOutput, ToolProgress,
};

use super::World;
use crate::scene::{long_text, raw};

/// A file outside the working directories that tools make for reading.
const OUTPUT: &str = "/tmp/output";

impl World {
    pub(super) fn examined_event(&mut self) -> Option<Event> {
        let (call, tool) = self.examine.pop_front()?;
        self.checker.calls.examining.remove(&call);
        let admission = match self.rng.below(16) {
            0 => Admission::Unknown,
            1 => Admission::Invalid("bad field".into()),
            _ => {
                let facts = self.random_facts();
                self.checker.calls.facts.insert(call, facts.clone());
                Admission::Ready { tool, facts }
            }
        };
        Some(Event::Examined(call, admission))
    }

    fn random_facts(&mut self) -> CallFacts {
        let (kind, is_shared) = match self.rng.below(6) {
            0 => (CallKind::Edit, false),
            1 => (CallKind::Execute, false),
            2 => (CallKind::Session, false),
            3 => (CallKind::Read, false),
            _ => (CallKind::Read, true),
        };
        let path: std::path::PathBuf = match self.rng.below(16) {
            0..=1 => "/etc/passwd".into(),
            2 => OUTPUT.into(),
            _ => "/project/a".into(),
        };
        let paths = vec![PathFact { lexical: path.clone(), resolved: Some(path), is_directory: false }];
        CallFacts { is_shared, paths, ..CallFacts::new(kind) }
    }

    pub(super) fn answer(&mut self) -> Option<Event> {
        let call = self.asked.pop()?;
        self.checker.calls.asking.remove(&call);
        let answer = match self.rng.below(4) {
            0 => Answer::Deny("no".into()),
            1 => Answer::AllowChanged(raw("{\"changed\":true}")),
            _ => Answer::Allow,
        };
        Some(Event::Answered(call, answer))
    }

    pub(super) fn progress(&mut self) -> Option<Event> {
        let call = self.running_call()?;
        Some(Event::Progress(call, ToolProgress { text: "…".into() }))
    }

    fn running_call(&mut self) -> Option<CallId> {
        let running: Vec<CallId> = self.checker.calls.running.keys().copied().collect();
        self.rng.pick(&running)
    }

    pub(super) fn finished_event(&mut self) -> Option<Event> {
        let call = self.running_call()?;
        self.checker.calls.running.remove(&call);
        if self.server.repeats_itself() && !self.rng.one_in(8) {
            return Some(Event::Finished(call, ToolOutput::text("the same")));
        }
        let mut outcome = match self.rng.below(8) {
            0..=1 => ToolOutput::error("failed"),
            2..=3 => ToolOutput::text("fine"),
            _ => ToolOutput::text(long_text(&mut self.rng)),
        };
        if self.rng.one_in(5) {
            outcome.cwd = Some(format!("/project/{}", self.rng.below(3)).into());
        }
        if self.rng.one_in(4) {
            outcome.seen.push(self.random_seen());
        }
        if self.rng.one_in(12) {
            outcome.content.insert(0, Block::text(" "));
            outcome.content.push(Block::image("image/png", "AA=="));
        }
        if self.rng.one_in(8) {
            outcome.readable.push(OUTPUT.into());
        }
        let calls = &mut self.checker.calls;
        calls.readable.extend(outcome.readable.iter().cloned());
        if let Some(cwd) = &outcome.cwd {
            calls.cwd.clone_from(cwd);
        }
        for seen in &outcome.seen {
            calls.on_seen(seen);
        }
        Some(Event::Finished(call, outcome))
    }

    fn random_seen(&mut self) -> FileSeen {
        FileSeen {
            path: "/project/a".into(),
            hash: self.rng.below(3),
            lines: [].into(),
            is_whole: self.rng.one_in(2),
            shown: Vec::new(),
            stamp: None,
        }
    }
}
