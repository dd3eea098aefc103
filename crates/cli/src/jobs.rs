//! What a user wants done: a prompt or a command, from its beginning to its result.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use windlass_engine::{Outcome, Prompt, Session, Update};
use windlass_protocol::{Block, Decision};

use crate::commands::{self, COMPACT_OFF, Command, Entry, HELP};
use crate::drive::{End, Signals, Watch, drive, shown};
use crate::opening::Again;
use crate::output::Output;
use crate::rewound::{self, Wish};
use crate::view::View;
use crate::{display, help};

/// What to do next.
pub(crate) enum Job {
    /// Run this prompt, and whatever waits before it.
    Run(Prompt),
    /// Go on where the session was cut off.
    GoOn,
    /// Do this; the id is the prompt's, if it has one.
    Command(Command, Option<Arc<str>>),
    /// Say why nothing is done about this prompt.
    Refuse(String, Option<Arc<str>>),
}

impl Job {
    /// What the texts of a whole prompt ask for.
    pub(crate) fn of_texts(texts: &[String]) -> Self {
        let blocks = texts.iter().map(|text| Block::text(text)).collect();
        Self::of(&texts.join("\n\n"), Prompt { blocks, ..Prompt::default() })
    }

    /// What a command asks for, which came with this id.
    pub(crate) fn of_command(text: &str, id: Arc<str>) -> Self {
        Self::of(text, Prompt { id: Some(id), ..text.into() })
    }

    /// What a text asks for; this prompt, if it is no command.
    fn of(text: &str, prompt: Prompt) -> Self {
        match Entry::parse(text) {
            Entry::Command(command) => Self::Command(command, prompt.id),
            Entry::Refused(why) => Self::Refuse(why, prompt.id),
            Entry::Now(message) => Self::Run(Prompt { blocks: vec![Block::text(&message)], ..prompt }),
            Entry::Prompt => Self::Run(prompt),
        }
    }
}

/// Everything a job needs besides the session.
pub(crate) struct Stage {
    pub(crate) view: Box<dyn View>,
    pub(crate) output: Output,
    pub(crate) signals: Signals,
    /// Whether the user may ask for a compaction.
    pub(crate) may_compact: bool,
    /// How the session can go back, if it is kept.
    pub(crate) again: Option<Again>,
}

impl Stage {
    /// Does a job, and meanwhile what goes on beside it.
    pub(crate) async fn perform(
        &mut self,
        job: Job,
        session: &mut Session,
        beside: impl Future<Output = Infallible>,
    ) -> End {
        match job {
            Job::Run(prompt) => drive(session.run(prompt), self.watch(), beside).await,
            Job::GoOn => drive(session.go_on(), self.watch(), beside).await,
            Job::Refuse(why, id) => self.refuse(&why, id).await,
            Job::Command(Command::Compact(_), id) if !self.may_compact => self.refuse(COMPACT_OFF, id).await,
            Job::Command(Command::Compact(focus), id) => {
                let mut view = CompactView { inner: &mut *self.view, report: None, prompt: id };
                let (output, signals) = (&mut self.output, &mut self.signals);
                drive(session.compact(focus), Watch { view: &mut view, output, signals }, beside).await
            }
            Job::Command(Command::Context, id) => {
                let text = commands::context_report(&session.context_report());
                self.answer(commands::outcome(text, id)).await
            }
            Job::Command(Command::Rewind(wanted), id) => {
                match Self::rewind(self.again.as_ref(), session, &wanted).await {
                    Ok(text) => self.answer(commands::outcome(text, id)).await,
                    Err(error) => self.refuse(&display::sentence(&error), id).await,
                }
            }
            Job::Command(Command::Cost, id) => {
                let text = commands::cost_report(session.spent(), session.time());
                self.answer(commands::outcome(text, id)).await
            }
            Job::Command(Command::Help, id) => self.answer(commands::outcome(help::page(HELP), id)).await,
        }
    }

    fn watch(&mut self) -> Watch<'_> {
        Watch { view: &mut *self.view, output: &mut self.output, signals: &mut self.signals }
    }

    /// Shows the answer to a command that no model was asked for.
    async fn answer(&mut self, outcome: Outcome) -> End {
        let outcome = Box::new(outcome);
        self.view.begin(&mut self.output.buffer);
        self.output.take_aside();
        started(&mut *self.view, &outcome.prompts, &mut self.output.buffer);
        let done = Update::Done(outcome.clone());
        self.view.update(&done, &mut self.output.buffer);
        let flushed = self.output.flush().await;
        self.view.written(&done);
        shown(flushed.map(|()| outcome))
    }

    /// Says what there is to go back to, or goes back.
    async fn rewind(again: Option<&Again>, session: &mut Session, wanted: &str) -> Result<String, String> {
        let again = again.ok_or("this session is not saved, so it cannot be rewound.")?;
        match Wish::parse(wanted)? {
            None => rewound::listed(again),
            Some(wish) => rewound::rewind(again, session, &wish).await,
        }
    }

    async fn refuse(&mut self, error: &str, id: Option<Arc<str>>) -> End {
        self.view.begin(&mut self.output.buffer);
        self.output.take_aside();
        self.view.refuse(error, id.as_ref(), &mut self.output.buffer);
        match self.output.flush().await {
            Ok(()) => End::Refused,
            Err(error) => shown(Err(error)),
        }
    }
}

/// Tells the view that a command is being done.
fn started(view: &mut dyn View, ids: &[Arc<str>], out: &mut Vec<u8>) {
    if !ids.is_empty() {
        view.update(&Update::PromptsStarted(ids.to_vec()), out);
    }
}

/// Any view of a compaction that the user asked for: its result says what came of it.
struct CompactView<'a> {
    inner: &'a mut dyn View,
    report: Option<String>,
    prompt: Option<Arc<str>>,
}

impl View for CompactView<'_> {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.inner.begin(out);
        started(self.inner, self.prompt.as_slice(), out);
    }

    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        match update {
            Update::Decided(Decision::Compacted(compaction)) => {
                self.report = Some(commands::compaction_report(compaction));
            }
            Update::CompactionFailed(error) => {
                self.report = Some(format!("Not compacted: {error}"));
            }
            _ => {}
        }
        let Update::Done(outcome) = update else { return self.inner.update(update, out) };
        let mut outcome = outcome.clone();
        if outcome.terminal.is_success() {
            outcome.text = self.report.take().unwrap_or_else(|| "Nothing to compact.".into());
            // The summariser is no iteration of a loop of its own.
            outcome.iterations = 0;
        }
        outcome.prompts.extend(self.prompt.take());
        self.inner.update(&Update::Done(outcome), out);
    }

    fn written(&mut self, update: &Update) {
        self.inner.written(update);
    }

    fn next_tick(&self) -> Option<Duration> {
        self.inner.next_tick()
    }

    fn tick(&mut self, out: &mut Vec<u8>) {
        self.inner.tick(out);
    }

    fn refuse(&mut self, error: &str, prompt: Option<&Arc<str>>, out: &mut Vec<u8>) {
        self.inner.refuse(error, prompt, out);
    }
}
