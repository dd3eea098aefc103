//! What a user wants done: a prompt or a command, from its beginning to its result.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use windlass::Session;
use windlass::slash_commands::{self, CommandOutcome, HELP, PromptEntry, SlashCommand};
use windlass_engine::{Outcome, Prompt, Update};
use windlass_protocol::{Block, Decision};

use crate::arguments::help;
use crate::commands::drive::{End, RunWatch, Signals, drive, shown};
use crate::display;
use crate::views::View;
use crate::views::output::Output;
use crate::views::rewind_report;

/// What to do next.
pub(crate) enum Job {
    /// Run this prompt, and whatever waits before it.
    Run(Prompt),
    /// Go on where the session was cut off.
    GoOn,
    /// Do this; the id is the prompt's, if it has one.
    Command(SlashCommand, Option<Arc<str>>),
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
        match PromptEntry::parse(text) {
            PromptEntry::Command(command) => Self::Command(command, prompt.id),
            PromptEntry::Refused(why) => Self::Refuse(why, prompt.id),
            PromptEntry::Now(message) => Self::Run(Prompt { blocks: vec![Block::text(&message)], ..prompt }),
            PromptEntry::Prompt => Self::Run(prompt),
        }
    }
}

/// Everything a job needs besides the session.
pub(crate) struct Stage {
    pub(crate) view: Box<dyn View>,
    pub(crate) output: Output,
    pub(crate) signals: Signals,
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
            // A future of its own size: commands are rare, and every other job would carry it along.
            Job::Command(command, id) => Box::pin(self.obey(command, id, session, beside)).await,
        }
    }

    /// Does what a command asks for, and shows what came of it.
    async fn obey(
        &mut self,
        command: SlashCommand,
        id: Option<Arc<str>>,
        session: &mut Session,
        beside: impl Future<Output = Infallible>,
    ) -> End {
        let (cwd, session_id) = (session.engine().working_directory().to_owned(), session.key().id);
        let text = match session.perform(command).await {
            Ok(CommandOutcome::Compaction(run)) => {
                let mut view = CompactView { inner: &mut *self.view, report: None, prompt: id };
                let (output, signals) = (&mut self.output, &mut self.signals);
                return drive(run, RunWatch { view: &mut view, output, signals }, beside).await;
            }
            Ok(CommandOutcome::Context(report)) => slash_commands::context_report(&report),
            Ok(CommandOutcome::Cost { models, time }) => slash_commands::cost_report(&models, time),
            Ok(CommandOutcome::Help) => help::page(HELP),
            Ok(CommandOutcome::Prompts(prompts)) => rewind_report::listed(&prompts),
            Ok(CommandOutcome::Rewind(outcome)) => rewind_report::outcome(&outcome, &cwd, session_id),
            Err(error) => return self.refuse(&display::sentence(&error.to_string()), id).await,
        };
        self.answer(slash_commands::outcome(text, id)).await
    }

    fn watch(&mut self) -> RunWatch<'_> {
        RunWatch { view: &mut *self.view, output: &mut self.output, signals: &mut self.signals }
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
                self.report = Some(slash_commands::compaction_report(compaction));
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
