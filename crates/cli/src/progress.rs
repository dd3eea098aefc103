//! What is happening, on standard error.
//!
//! A line for each call when it is answered, and a summary at the end. On a terminal there is also a last line
//! that changes: what is being waited for, and for how long.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use windlass_engine::{CallId, Outcome, Update};
use windlass_protocol::BlockKind;

use crate::display;
use crate::view::Clock;

/// Where progress goes when its width cannot be found out.
const COLUMNS: usize = 80;

/// Shows progress on standard error.
pub(crate) struct Progress {
    clock: Clock,
    /// Whether there is a last line that changes.
    live: bool,
    shown: bool,
    waiting_for: String,
    since_ms: u64,
    tokens: u64,
    open: Vec<OpenCall>,
}

/// A call that is not answered yet.
struct OpenCall {
    call: CallId,
    name: String,
    target: String,
    started_ms: u64,
    latest: String,
}

impl Progress {
    /// Progress on a terminal, or wherever it is asked for.
    pub(crate) fn new(verbose: bool) -> Option<Self> {
        let live = std::io::stderr().is_terminal();
        (live || verbose).then(|| Self {
            clock: Clock::start(),
            live,
            shown: false,
            waiting_for: "starting".into(),
            since_ms: 0,
            tokens: 0,
            open: Vec::new(),
        })
    }

    pub(crate) fn update(&mut self, update: &Update) {
        match update {
            Update::Requesting { model, .. } => {
                self.wait_for(format!("waiting for {}", display::line(model)));
            }
            Update::Responding { .. } => self.wait_for("the model answers".into()),
            Update::Responded { usage, .. } => self.tokens += usage.input_total() + usage.output_tokens,
            Update::ToolStarted { call, tool_use, facts } => self.open.push(OpenCall {
                call: *call,
                name: display::line(&tool_use.name),
                target: display::line(&facts.target),
                started_ms: self.clock.ms(),
                latest: String::new(),
            }),
            Update::ToolProgress { call, progress } => {
                if let Some(open) = self.open.iter_mut().find(|open| open.call == *call) {
                    open.latest = display::line(&progress.text);
                }
            }
            Update::ToolResult { call, name, result, .. } => self.answered(*call, name, is_error(result)),
            Update::Denied(denial) => {
                self.print(&format!("{} denied: {}", denial.tool_use.name, denial.reason));
            }
            Update::Retrying { attempt, retries_max, delay_ms, failure } => {
                let pause = display::duration(*delay_ms);
                self.print(&format!("{} Retry {attempt} of {retries_max} in {pause}.", failure.message));
                self.wait_for("waiting before the retry".into());
            }
            Update::Done(outcome) => return self.finish(outcome),
            _ => return,
        }
        self.redraw();
    }

    /// The last line shows seconds, so it is due when the next one is full.
    pub(crate) fn next_tick(&self) -> Option<Duration> {
        self.live.then(|| Duration::from_millis(1000 - self.clock.ms() % 1000))
    }

    pub(crate) fn tick(&mut self) {
        self.redraw();
    }

    fn wait_for(&mut self, what: String) {
        self.waiting_for = what;
        self.since_ms = self.clock.ms();
    }

    fn answered(&mut self, call: CallId, name: &str, failed: bool) {
        let position = self.open.iter().position(|open| open.call == call);
        let Some(open) = position.map(|position| self.open.remove(position)) else {
            return self.print(&format!("{name} was not run"));
        };
        let time = display::duration(self.clock.ms() - open.started_ms);
        let failed = if failed { ", failed" } else { "" };
        let columns = columns().saturating_sub(open.name.len() + time.len() + failed.len() + 4);
        self.print(&format!("{} {} ({time}{failed})", open.name, display::cut(&open.target, columns)));
        self.wait_for("going on".into());
    }

    fn finish(&mut self, outcome: &Outcome) {
        let parts = [
            display::counted(outcome.turns.into(), "turn"),
            format!("{} tokens in", display::number(outcome.usage.input_total())),
            format!("{} out", display::number(outcome.usage.output_tokens)),
            display::cost(outcome.cost_usd()),
            display::duration(outcome.duration_ms),
        ];
        self.print(&parts.join(", "));
    }

    /// Prints a line that stays.
    fn print(&mut self, text: &str) {
        self.clear();
        write_error(&format!("{}\n", display::line(text)));
    }

    fn redraw(&mut self) {
        if !self.live {
            return;
        }
        let now_ms = self.clock.ms();
        let (what, since_ms) = match self.open.first() {
            Some(open) if open.latest.is_empty() => {
                (format!("{} {}", open.name, open.target), open.started_ms)
            }
            Some(open) => (format!("{} {}: {}", open.name, open.target, open.latest), open.started_ms),
            None => (self.waiting_for.clone(), self.since_ms),
        };
        let seconds = now_ms.saturating_sub(since_ms) / 1000;
        let status = format!(" ... {seconds} s, {} tokens", display::number(self.tokens));
        let what = display::cut(&what, columns().saturating_sub(status.len() + 1));
        write_error(&format!("\r\x1b[K{what}{status}"));
        self.shown = true;
    }

    fn clear(&mut self) {
        if self.shown {
            write_error("\r\x1b[K");
            self.shown = false;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn is_error(result: &windlass_engine::Block) -> bool {
    matches!(result.kind(), BlockKind::ToolResult { is_error: true, .. })
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|size| size.ws_col.into()).filter(|&columns| columns >= 20).unwrap_or(COLUMNS)
}

/// Progress that cannot be shown is no reason to stop working.
fn write_error(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
