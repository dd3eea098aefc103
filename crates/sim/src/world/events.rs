//! Which event comes next: at random while there are faults, what is waited for afterwards.

use windlass_core::{Event, Interrupt, Prompt};
use windlass_protocol::{Block, ModelEvent, Priority, Speaker, StartSource, TimerId};

use super::World;
use crate::scene::long_text;

impl World {
    pub(super) fn random_prompt(&mut self, text: &str) -> Prompt {
        let mut blocks = vec![Block::text(text)];
        if self.rng.one_in(8) {
            blocks.insert(0, Block::text(" "));
        }
        if self.rng.one_in(10) {
            blocks.push(Block::image("image/png", "AA=="));
        }
        if self.rng.one_in(8) {
            blocks.push(Block::text(long_text(&mut self.rng)));
        }
        let speaker = if self.rng.one_in(6) { Speaker::Task } else { Speaker::User };
        let priorities = [Priority::Next, Priority::Later];
        Prompt {
            context: Vec::new(),
            blocks,
            id: (!self.rng.one_in(3)).then(|| format!("prompt-{}", self.rng.bits()).into()),
            speaker,
            priority: if self.rng.one_in(12) {
                Priority::Now
            } else {
                self.rng.pick(&priorities).unwrap_or_default()
            },
            token_budget: self.rng.one_in(12).then(|| 200 + self.rng.below(3_000)),
            start: None,
        }
    }

    /// Whether hooks are to hear that the session begins.
    pub(super) fn start(&mut self) -> Option<StartSource> {
        let sources = [StartSource::Startup, StartSource::Resume, StartSource::Fork];
        self.rng.pick(&sources).filter(|_| self.rng.one_in(3))
    }

    pub(super) fn random_event(&mut self) -> Result<Option<Event>, String> {
        for _ in 0..6 {
            let event = self.try_event()?;
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    pub(super) fn try_event(&mut self) -> Result<Option<Event>, String> {
        let event = match self.rng.below(220) {
            0 => {
                let kinds = [Interrupt::Stop, Interrupt::Replace, Interrupt::Leave];
                let kind = self.rng.pick(&kinds).unwrap_or(Interrupt::Stop);
                self.rng.one_in(2).then_some(Event::Interrupt(kind))
            }
            1..=4 => Some(self.steer()),
            5..=9 => self.late(),
            10..=11 => {
                Some(Event::Timer(TimerId(self.rng.small(40)))).filter(|event| !self.is_current(event))
            }
            12..=13 => self.forked_late(),
            14..=24 => self.fire_timer(),
            25..=34 => self.answer(),
            35..=38 => self.progress(),
            39..=75 => self.examined_event(),
            76..=110 => self.finished_event(),
            111..=113 => self.failed_event(),
            114..=128 => self.hooked_event(false),
            129..=134 => self.forked_event(false)?,
            135..=136 => self.fork_spent(),
            137..=144 => self.stored_event(),
            145..=152 => self.looked_event(),
            153..=154 => self.prefetched_event(),
            155 => self.rng.one_in(4).then(|| Event::Compact { focus: "late".into() }),
            _ => self.model_event(),
        };
        Ok(event)
    }

    pub(super) fn steer(&mut self) -> Event {
        self.steered += 1;
        let prompt = self.random_prompt(&format!("steer {}", self.steered));
        // A prompt that is submitted while something else goes on waits like the others.
        if self.rng.one_in(6) {
            Event::Submit(prompt)
        } else if self.rng.one_in(10) {
            self.coverage.count("sight", "command that waits");
            Event::Steer(Prompt { speaker: Speaker::Command, ..prompt })
        } else {
            Event::Steer(prompt)
        }
    }

    /// Late or doubled news. A prompt or a message would be new, not late.
    pub(super) fn late(&mut self) -> Option<Event> {
        let old = self.rng.pick(&self.past)?;
        let is_new = matches!(
            old,
            Event::Steer(_)
                | Event::Submit(_)
                | Event::Compact { .. }
                | Event::GoOn { .. }
                | Event::Interrupt(_)
                | Event::StoreFailed { .. }
                | Event::Prefetched(_)
        );
        (!is_new && !self.is_current(&old)).then_some(old)
    }

    /// Whether an old event would be news: then it is not a duplicate but a lie about the world.
    pub(super) fn is_current(&self, event: &Event) -> bool {
        let calls = &self.checker.calls;
        match event {
            Event::Model(request, _) => self.checker.request == Some(*request),
            Event::Finished(call, _) | Event::Progress(call, _) => calls.running.contains_key(call),
            Event::Examined(call, _) => self.examine.iter().any(|(waiting, _)| waiting == call),
            Event::Answered(call, _) => self.asked.contains(call),
            Event::Timer(timer) => self.timers.iter().any(|(running, _)| running == timer),
            _ => false,
        }
    }

    /// Without faults: everything that is waited for comes, and the model finishes.
    pub(super) fn honest_event(&mut self) -> Result<Option<Event>, String> {
        if let Some(event) =
            self.stored_event().or_else(|| self.looked_event()).or_else(|| self.hooked_event(true))
        {
            return Ok(Some(event));
        }
        if let Some(event) = self.forked_event(true)? {
            return Ok(Some(event));
        }
        if let Some(event) = self.examined_event().or_else(|| self.answer()).or_else(|| self.finished_event())
        {
            return Ok(Some(event));
        }
        let Some(request) = self.checker.request else { return Ok(self.fire_timer()) };
        let event = match self.server.refusal(&self.config) {
            Some(refusal) => ModelEvent::Failed(Box::new(refusal)),
            None => self.server.next_honest(&mut self.rng, &mut self.checker.spoken),
        };
        Ok(Some(Event::Model(request, event)))
    }

    pub(super) fn fire_timer(&mut self) -> Option<Event> {
        if self.timers.is_empty() {
            return None;
        }
        let (timer, due) = self.timers.remove(0);
        self.now = self.now.max(due);
        Some(Event::Timer(timer))
    }

    pub(super) fn failed_event(&mut self) -> Option<Event> {
        let request = self.checker.request?;
        let failure = self.server.random_failure(&mut self.rng);
        for point in self.server.response.failure_points() {
            self.coverage.count_failure(failure.class, point);
        }
        Some(Event::Model(request, ModelEvent::Failed(Box::new(failure))))
    }

    pub(super) fn model_event(&mut self) -> Option<Event> {
        let request = self.checker.request?;
        let event = match self.server.refusal(&self.config) {
            Some(refusal) => ModelEvent::Failed(Box::new(refusal)),
            None => self.server.next(&mut self.rng, &self.config, &mut self.checker.spoken),
        };
        Some(Event::Model(request, event))
    }
}
