//! A run as the lines that hosts read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_engine::Update;
use windlass_text::time::now_ms;
use windlass_wire::{TimePoint, Translator};

use crate::job_runner::JobView;
use crate::jobs::UnfinishedWork;
use crate::session::Session;

/// When things happen.
#[derive(Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the start.
    pub fn ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Both times of now.
    pub fn at(self) -> TimePoint {
        TimePoint { wall_ms: now_ms(), monotonic_ms: self.ms() }
    }
}

/// A line of JSON per message, or for the result alone.
pub struct ProtocolView {
    translator: Translator,
    clock: Clock,
    /// What is said once the first run begins.
    warnings: Vec<String>,
    is_result_only: bool,
}

impl ProtocolView {
    /// Every message of a session, of which this was left undone. The warnings come first.
    pub fn new(session: &Session, left: &UnfinishedWork, warnings: Vec<String>) -> Self {
        let translator = Translator::new(session.key, session.wired.setup.clone());
        let translator = translator.resumed(session.spending()).with_left_prompts(left.fates());
        Self { translator, clock: Clock::start(), warnings, is_result_only: false }
    }

    /// The result of each run and nothing else.
    #[must_use]
    pub fn result_only(self) -> Self {
        Self { is_result_only: true, ..self }
    }
}

impl JobView for ProtocolView {
    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.is_result_only {
            return self.translator.begin(self.clock.at(), &mut Vec::new());
        }
        self.translator.begin(self.clock.at(), out);
        for warning in std::mem::take(&mut self.warnings) {
            self.translator.informational(&warning, "warning", out);
        }
    }

    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        match update {
            Update::Done(outcome) if self.is_result_only => self.translator.result(outcome, out),
            Update::Responding { .. } if self.is_result_only => {
                self.translator.update(update, self.clock.at(), &mut Vec::new());
            }
            _ if self.is_result_only => {}
            update => self.translator.update(update, self.clock.at(), out),
        }
    }

    fn next_tick(&self) -> Option<Duration> {
        let due = self.translator.next_heartbeat_ms().filter(|_| !self.is_result_only)?;
        Some(Duration::from_millis(due.saturating_sub(self.clock.ms())))
    }

    fn tick(&mut self, out: &mut Vec<u8>) {
        self.translator.heartbeat(self.clock.at(), out);
    }

    fn refuse(&mut self, error: &str, prompt: Option<&Arc<str>>, out: &mut Vec<u8>) {
        self.translator.refuse(error, prompt, out);
    }
}
