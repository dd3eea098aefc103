//! Watching a command: its output, its end, and what may happen before that.

use std::ops::ControlFlow;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use windlass_ports::{BoxFuture, ToolContext};
use windlass_protocol::ToolProgress;
use windlass_sandbox::{Exit, ShellProcess};

use super::capture::Capture;
use super::prompt::is_prompt;

const BUFFER_BYTES: usize = 32 * 1024;
/// After the command itself has ended, its descendants get this long to close the output.
const DRAIN_TIME: Duration = Duration::from_millis(500);
/// A question that nobody answers for this long is taken for one.
const QUESTION_TIME: Duration = Duration::from_secs(3);
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct RunningCommand {
    process: ShellProcess,
    pub(crate) capture: Capture,
    buffer: Vec<u8>,
    has_output_ended: bool,
    ended: Option<(Exit, Instant)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    Finished(Exit),
    TimedOut,
    Cancelled,
    /// It waits for an answer to this question.
    Question(String),
    /// It printed more than is kept.
    Full,
}

impl RunningCommand {
    pub(crate) fn new(process: ShellProcess, capture: Capture) -> Self {
        Self { process, capture, buffer: vec![0; BUFFER_BYTES], has_output_ended: false, ended: None }
    }

    /// Waits for output, of which so many bytes are then in the buffer, or the end. Nothing is lost if the future is dropped.
    async fn next(&mut self) -> ControlFlow<Exit, usize> {
        loop {
            if let Some((exit, _)) = &self.ended
                && self.has_output_ended
            {
                return ControlFlow::Break(exit.clone());
            }
            let drained = self.ended.as_ref().map(|(_, at)| *at + DRAIN_TIME);
            tokio::select! {
                read = self.process.output.read(&mut self.buffer), if !self.has_output_ended => match read {
                    Ok(count @ 1..) => return ControlFlow::Continue(count),
                    Ok(0) | Err(_) => self.has_output_ended = true,
                },
                exit = self.process.exit.recv(), if self.ended.is_none() => self.ended = Some((exit, Instant::now())),
                () = wait_until(drained), if drained.is_some() => self.has_output_ended = true,
            }
        }
    }

    /// Keeps what was printed; says if that was the end.
    async fn take(&mut self, next: ControlFlow<Exit, usize>) -> Option<CommandEnd> {
        match next {
            ControlFlow::Break(exit) => Some(CommandEnd::Finished(exit)),
            ControlFlow::Continue(count) => {
                let can_go_on = self.capture.push(&self.buffer[..count]).await;
                (!can_go_on).then_some(CommandEnd::Full)
            }
        }
    }

    /// Watches in the foreground, telling how it is getting on.
    pub(crate) async fn watch(&mut self, timeout: Duration, cx: &ToolContext) -> CommandEnd {
        let started = Instant::now();
        let deadline = started + timeout;
        let mut question: Option<(String, Instant)> = None;
        let mut progress = Progress { next: started + PROGRESS_EVERY, has_news: false, sending: None };
        loop {
            let unanswered = question.as_ref().map(|(_, asked)| *asked + QUESTION_TIME);
            let due = progress.due();
            tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return CommandEnd::Cancelled,
                () = sleep_until(deadline) => return CommandEnd::TimedOut,
                () = progress.wait_sent() => {}
                () = wait_until(due), if due.is_some() => progress.tell(&self.capture, cx),
                next = self.next() => {
                    if let Some(end) = self.take(next).await {
                        return end;
                    }
                    let asked = self.capture.unfinished_line().filter(|line| is_prompt(line));
                    question = asked.map(|line| (line.trim().to_owned(), Instant::now()));
                    progress.has_news = true;
                }
                () = wait_until(unanswered), if unanswered.is_some() => {
                    return CommandEnd::Question(question.map(|(line, _)| line).unwrap_or_default());
                }
            }
        }
    }

    /// Watches without anybody looking, until it ends or is told to stop.
    pub(crate) async fn follow(&mut self, stop: &CancellationToken) -> CommandEnd {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return CommandEnd::Cancelled,
                next = self.next() => {
                    if let Some(end) = self.take(next).await {
                        return end;
                    }
                    self.capture.flush().await;
                }
            }
        }
    }

    /// Ends the command and all it started; the future resolves when they are gone.
    pub(crate) fn stop(self) -> (Capture, impl Future<Output = ()> + Send) {
        (self.capture, self.process.tree.stop())
    }

    /// Lets go of an ended command: what it left behind is read and dropped until the session ends.
    pub(crate) fn release(self, session_end: CancellationToken) -> Capture {
        let Self { process: ShellProcess { mut output, tree, .. }, capture, mut buffer, .. } = self;
        if !tree.is_gone() {
            tokio::spawn(session_end.run_until_cancelled_owned(async move {
                while let Ok(1..) = output.read(&mut buffer).await {}
                tree.wait_until_gone().await;
            }));
        }
        capture
    }
}

/// A moment that may never come.
async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Says the latest line now and then. Whoever listens may be slow; the command is watched meanwhile.
struct Progress {
    next: Instant,
    /// Something was printed that has not been said.
    has_news: bool,
    sending: Option<BoxFuture<'static, ()>>,
}

impl Progress {
    /// When to say something again.
    fn due(&self) -> Option<Instant> {
        (self.has_news && self.sending.is_none()).then_some(self.next)
    }

    fn tell(&mut self, capture: &Capture, cx: &ToolContext) {
        self.has_news = false;
        if let Some(text) = capture.last_line() {
            let (sender, call) = (cx.progress.clone(), cx.call);
            self.next = Instant::now() + PROGRESS_EVERY;
            self.sending = Some(Box::pin(async move { sender.send(call, ToolProgress { text }).await }));
        }
    }

    /// Resolves when what is being said has been heard.
    async fn wait_sent(&mut self) {
        match &mut self.sending {
            Some(sending) => {
                sending.await;
                self.sending = None;
            }
            None => std::future::pending().await,
        }
    }
}
