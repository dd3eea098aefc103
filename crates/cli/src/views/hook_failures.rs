//! Hooks that could not do their work, told where no progress is shown.

use std::collections::BTreeSet;

use windlass_engine::Update;
use windlass_protocol::HookFailureKind;

use crate::complain;
use crate::views::watch_decorator::Watch;

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
