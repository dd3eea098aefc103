//! Which prompts became part of a run, and which of them are not done.

use std::sync::Arc;

use windlass_protocol::Update;

/// The marks on prompts, by the ids their senders gave them.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Part of the run that goes on.
    started: Vec<Arc<str>>,
    /// Part of a run that did not end well.
    unfinished: Vec<Arc<str>>,
}

impl Marks {
    pub(crate) fn note(&mut self, update: &Update) {
        match update {
            Update::PromptsStarted(ids) => self.started.extend(ids.iter().cloned()),
            Update::Done(outcome) if outcome.terminal.is_success() => {
                let started = std::mem::take(&mut self.started);
                self.unfinished.retain(|id| !started.contains(id));
            }
            Update::Done(_) => self.close(),
            _ => (),
        }
    }

    /// The run is over, and not well if nobody said so before.
    pub(crate) fn close(&mut self) {
        for id in std::mem::take(&mut self.started) {
            if !self.unfinished.contains(&id) {
                self.unfinished.push(id);
            }
        }
    }

    /// The prompts that were started and are not done, in order.
    pub(crate) fn unfinished(&self) -> &[Arc<str>] {
        &self.unfinished
    }
}

#[cfg(test)]
mod tests {
    use windlass_protocol::{Outcome, Terminal};

    use super::*;

    fn started(ids: &[&str]) -> Update {
        Update::PromptsStarted(ids.iter().map(|&id| id.into()).collect())
    }

    fn done(terminal: Terminal) -> Update {
        Update::Done(Box::new(Outcome::new(terminal)))
    }

    #[track_caller]
    fn check(updates: &[Update], expected: &[&str]) {
        let mut marks = Marks::default();
        for update in updates {
            marks.note(update);
        }
        marks.close();
        let unfinished: Vec<&str> = marks.unfinished().iter().map(|id| &**id).collect();
        assert_eq!(unfinished, expected);
    }

    #[test]
    fn a_prompt_is_done_when_its_run_ends_well() {
        let (good, bad) = (done(Terminal::Completed), done(Terminal::ApiError));
        check(&[started(&["a"]), started(&["b"]), good.clone()], &[]);
        check(&[started(&["a"]), started(&["b"]), bad.clone()], &["a", "b"]);
        check(&[started(&["a"])], &["a"]);
        check(&[started(&["a"]), bad.clone(), started(&["b"]), good.clone()], &["a"]);
        check(&[started(&["a"]), bad.clone(), started(&["a"]), good], &[]);
        check(&[started(&["a"]), bad.clone(), started(&["a"]), bad], &["a"]);
    }
}
