//! Handlers that run beside the session: it does not wait for them, and the model reads what they find with the next prompt or results.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use windlass_protocol::HookPrinted;

use crate::answers::{self, HandlerFailure};
use crate::command::OBJECTION;
use crate::command::{HookProgram, ProgramExit, run_program};
use crate::handler::Handler;
use crate::report::{ObservedEnd, RunObserver};

/// Wakes a session that is idle, with something the model is to know.
pub(crate) type WakeSession = Arc<dyn Fn(String) + Send + Sync>;

/// What runs beside the session and what it has found. When this is dropped, whatever still runs ends.
#[derive(Default)]
pub(crate) struct BackgroundHooks {
    running: Mutex<JoinSet<()>>,
    found: Arc<Mutex<Vec<String>>>,
    wake: Option<WakeSession>,
}

impl BackgroundHooks {
    pub(crate) fn new(wake: Option<WakeSession>) -> Self {
        Self { wake, ..Self::default() }
    }

    /// Starts a program and lets it be. With `should_wake`, its objection wakes an idle session.
    pub(crate) fn start(
        &self,
        handler: Arc<Handler>,
        program: HookProgram,
        should_wake: bool,
        observer: RunObserver,
    ) {
        let found = self.found.clone();
        let wake = self.wake.clone().filter(|_| should_wake);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are done need not be kept.
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            let ended = run_program(program, &observer).await;
            observer.ends(match &ended {
                Ok(exit) => ObservedEnd {
                    printed: exit.printed.clone(),
                    code: exit.code,
                    has_failed: exit.code != Some(0),
                },
                Err(failure) => ObservedEnd::failure("", failure),
            });
            let (told, objection) = findings(&handler, ended, should_wake);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.extend(told);
            match (objection, wake) {
                (Some(text), Some(wake)) => wake(text),
                (text, _) => found.extend(text),
            }
        });
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends whatever still runs, and waits until hosts have heard of it.
    pub(crate) async fn end(&self) {
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }
}

/// What a program beside the session leads to: what the model is told later, and an objection.
fn findings(
    handler: &Handler,
    ended: Result<ProgramExit, HandlerFailure>,
    should_wake: bool,
) -> (Vec<String>, Option<String>) {
    let told = |failure: &HandlerFailure| format!("{} {}.", handler.name(), failure.words());
    let exit = match ended {
        Ok(exit) => exit,
        Err(failure) => return (vec![told(&failure)], None),
    };
    if exit.is_cut && exit.code != Some(OBJECTION) {
        let text = told(&HandlerFailure::TooLong);
        return if should_wake { (Vec::new(), Some(text)) } else { (vec![text], None) };
    }
    let HookPrinted { output, errors } = &exit.printed;
    if exit.code == Some(OBJECTION) && should_wake {
        let text = [errors.trim(), output.trim()].into_iter().find(|text| !text.is_empty());
        return (Vec::new(), text.map(str::to_owned));
    }
    let told = match answers::parse(handler, output) {
        Some(Ok(parsed)) => {
            let misspelt = answers::misspelt(handler, &parsed).into_iter().map(|failure| failure.text);
            let answer = parsed.answer;
            answer.context.into_iter().chain(answer.notices).chain(misspelt).collect()
        }
        Some(Err(why)) => vec![told(&HandlerFailure::Misspoke(why))],
        None => Vec::new(),
    };
    (told, None)
}
