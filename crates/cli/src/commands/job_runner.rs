//! Jobs are done and shown, from their beginning to their result.

use std::convert::Infallible;
use std::sync::Arc;

use windlass::Session;
use windlass::jobs::Job;
use windlass::slash_commands::{self, CommandOutcome, HELP, SlashCommand};
use windlass_engine::{Outcome, Update};

use crate::arguments::help;
use crate::commands::drive::{JobEnd, RunWatch, Signals, drive, shown};
use crate::display;
use crate::views::View;
use crate::views::output::Output;
use crate::views::rewind_report;

/// Everything a job needs besides the session.
pub(crate) struct JobRunner {
    pub(crate) view: Box<dyn View>,
    pub(crate) output: Output,
    pub(crate) signals: Signals,
}

impl JobRunner {
    /// Does a job, and meanwhile what goes on beside it.
    pub(crate) async fn perform(
        &mut self,
        job: Job,
        session: &mut Session,
        beside: impl Future<Output = Infallible>,
    ) -> JobEnd {
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
    ) -> JobEnd {
        let (cwd, session_id) = (session.engine().working_directory().to_owned(), session.key().id);
        let text = match session.perform(command, id.clone()).await {
            Ok(CommandOutcome::Compaction(run)) => return drive(run, self.watch(), beside).await,
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
    async fn answer(&mut self, outcome: Outcome) -> JobEnd {
        let outcome = Box::new(outcome);
        self.view.begin(&mut self.output.buffer);
        self.output.take_aside();
        if !outcome.prompts.is_empty() {
            let started = Update::PromptsStarted(outcome.prompts.clone());
            self.view.update(&started, &mut self.output.buffer);
        }
        let done = Update::Done(outcome.clone());
        self.view.update(&done, &mut self.output.buffer);
        let flushed = self.output.flush().await;
        self.view.written(&done);
        shown(flushed.map(|()| outcome))
    }

    async fn refuse(&mut self, error: &str, id: Option<Arc<str>>) -> JobEnd {
        self.view.begin(&mut self.output.buffer);
        self.output.take_aside();
        self.view.refuse(error, id.as_ref(), &mut self.output.buffer);
        match self.output.flush().await {
            Ok(()) => JobEnd::Refused,
            Err(error) => shown(Err(error)),
        }
    }
}
