//! Handlers that run beside the session: nobody waits for them, and what they find is told with the next prompt or results.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use windlass_sandbox::Launcher;

use crate::handler::Handler;
use crate::program::{Ended, Program, run_program};
use crate::voice::{self, Failed};
use crate::witness::{Seen, Witness, printed};

/// Wakes a session that is idle, with something the model is to know.
pub(crate) type Wake = Arc<dyn Fn(String) + Send + Sync>;

/// What runs beside the session and what it has found. When this is dropped, whatever still runs ends.
#[derive(Default)]
pub(crate) struct Background {
    running: Mutex<JoinSet<()>>,
    found: Arc<Mutex<Vec<String>>>,
    wake: Option<Wake>,
}

impl Background {
    pub(crate) fn new(wake: Option<Wake>) -> Self {
        Self { wake, ..Self::default() }
    }

    /// Starts a program and lets it be. With `wakes`, its objection wakes an idle session.
    pub(crate) fn start(&self, handler: Arc<Handler>, launcher: Launcher, program: Program, run: Started) {
        let Started { wakes, witness } = run;
        let found = self.found.clone();
        let wake = self.wake.clone().filter(|_| wakes);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are done need not be kept.
        while running.try_join_next().is_some() {}
        running.spawn(async move {
            let time = program.time;
            let ended = run_program(&launcher, program, &witness).await;
            witness.ends(seen(&ended, time));
            let said = hear(&handler, ended, wakes, time);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.extend(said.told);
            match (said.objection, wake) {
                (Some(text), Some(wake)) => wake(text),
                (text, _) => found.extend(text),
            }
        });
    }

    /// What was found since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends whatever still runs, and waits until hosts have heard of it.
    pub(crate) async fn end(&self) {
        let mut running = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        running.shutdown().await;
    }
}

/// A run beside the session: whether its objection wakes an idle one, and who sees it.
pub(crate) struct Started {
    pub(crate) wakes: bool,
    pub(crate) witness: Witness,
}

/// What hosts hear of the end of a program.
fn seen(ended: &Ended, time: Duration) -> Seen {
    match ended {
        Ended::Exited { code, stdout, stderr, .. } => {
            Seen { printed: printed(stdout, stderr), code: *code, failed: *code != Some(0) }
        }
        Ended::NotStarted(why) => Seen::failed("", &Failed::NotStarted(why.clone())),
        Ended::TimedOut => Seen::failed("", &Failed::TimedOut(time)),
    }
}

/// What a program beside the session leads to.
#[derive(Default)]
struct Said {
    told: Vec<String>,
    objection: Option<String>,
}

fn hear(handler: &Handler, ended: Ended, wakes: bool, time: Duration) -> Said {
    let (code, stdout, stderr) = match ended {
        Ended::Exited { is_cut: true, code, .. } if code != Some(2) => {
            let text = format!("{} {}.", handler.name(), Failed::TooLong.words());
            return if wakes { Said { objection: Some(text), ..Said::default() } } else { told(text) };
        }
        Ended::Exited { code, stdout, stderr, .. } => (code, stdout, stderr),
        Ended::NotStarted(why) => return told(format!("{} could not be started: {why}.", handler.name())),
        Ended::TimedOut => {
            let seconds = time.as_secs_f64();
            return told(format!("{} took longer than {seconds} s and was stopped.", handler.name()));
        }
    };
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    if code == Some(2) && wakes {
        let text = [stderr.trim(), stdout.trim()].into_iter().find(|text| !text.is_empty());
        return Said { objection: text.map(str::to_owned), ..Said::default() };
    }
    match voice::read(handler, &stdout) {
        Some(Ok(spoken)) => {
            let misspelt =
                voice::misspelt(handler, &spoken).into_iter().map(|failure| failure.text).collect();
            let answer = spoken.answer;
            Said { told: [answer.context, answer.notices, misspelt].concat(), objection: None }
        }
        Some(Err(why)) => told(format!("{} gave an answer that cannot be read: {why}.", handler.name())),
        None => Said::default(),
    }
}

fn told(text: String) -> Said {
    Said { told: vec![text], objection: None }
}
