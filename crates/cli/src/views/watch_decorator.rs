//! Forms that are also watched: whoever has to act on what a run tells hears of it, and how it is shown stays the same.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use windlass::jobs::HandedPrompts;
use windlass_engine::Update;
use windlass_protocol::HookFailureKind;

use crate::complain;
use crate::views::View;

/// Acts on what a run tells.
pub(crate) trait Watch: Send {
    /// Something happened, and the form has taken it up.
    fn heed(&mut self, update: &Update);
}

impl Watch for HandedPrompts {
    fn heed(&mut self, update: &Update) {
        HandedPrompts::heed(self, update);
    }
}

/// Any form, and somebody who heeds what it is told.
pub(crate) struct WatchedView<W> {
    pub(crate) watch: W,
    pub(crate) inner: Box<dyn View>,
}

impl<W: Watch> View for WatchedView<W> {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.inner.begin(out);
    }

    fn update(&mut self, update: &Update, out: &mut Vec<u8>) {
        self.inner.update(update, out);
        self.watch.heed(update);
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

/// Tells on standard error of hooks that could not do their work, where no progress is shown: each way of failing once.
#[derive(Default)]
pub(crate) struct HookFailures {
    /// Which hooks, and the ways in which they failed.
    told: BTreeSet<(String, HookFailureKind)>,
}

impl Watch for HookFailures {
    fn heed(&mut self, update: &Update) {
        if let Update::HookFailed(failure) = update
            && self.told.insert((failure.hook.clone(), failure.kind))
        {
            complain(&failure.text);
        }
    }
}
