//! Tells a host what becomes of one handler, if it wants to hear.

use std::sync::Arc;

use windlass_protocol::{HookCall, HookEnding, HookEvent, HookMoment, HookNews, HookPrinted};

use crate::answers::HandlerFailure;
use crate::events;

pub(crate) type Tell = Arc<dyn Fn(HookNews) + Send + Sync>;

/// Sees one run of a handler. Should nobody wait for its end, that is told when this goes.
pub(crate) struct RunObserver {
    tell: Option<Tell>,
    run: u64,
    event: HookEvent,
    name: Arc<str>,
}

/// What is told of the end of a run.
#[derive(Debug, Default)]
pub(crate) struct ObservedEnd {
    pub(crate) printed: HookPrinted,
    pub(crate) code: Option<i32>,
    pub(crate) failed: bool,
}

impl ObservedEnd {
    /// It had its say in these words.
    pub(crate) fn said(output: &str) -> Self {
        let printed = HookPrinted { output: output.to_owned(), errors: String::new() };
        Self { printed, ..Self::default() }
    }

    /// It failed, and said this before.
    pub(crate) fn failed(output: &str, why: &HandlerFailure) -> Self {
        let printed = HookPrinted { output: output.to_owned(), errors: why.words() };
        Self { printed, code: None, failed: true }
    }
}

/// The name of a handler for hosts: the event, and what its matcher was compared with.
pub(crate) fn name(call: &HookCall) -> Arc<str> {
    let event = call.event().name();
    events::word(call).map_or_else(|| event.into(), |word| format!("{event}:{word}").into())
}

impl RunObserver {
    pub(crate) fn begins(tell: Option<Tell>, run: u64, event: HookEvent, name: Arc<str>) -> Self {
        let observer = Self { tell, run, event, name };
        observer.tell(HookMoment::Began);
        observer
    }

    /// Sees a program that is no handler, and tells nobody.
    pub(crate) fn blind() -> Self {
        Self { tell: None, run: 0, event: HookEvent::SessionStart, name: "".into() }
    }

    /// It goes on and has printed this so far.
    pub(crate) fn printed(&self, output: &[u8], errors: &[u8]) {
        if self.tell.is_some() {
            self.tell(HookMoment::Printed(printed(output, errors)));
        }
    }

    pub(crate) fn ends(mut self, seen: ObservedEnd) {
        let ObservedEnd { printed, code, failed } = seen;
        let ending = if failed { HookEnding::Failed } else { HookEnding::Worked };
        self.tell(HookMoment::Ended { printed, code, ending });
        self.tell = None;
    }

    fn tell(&self, moment: HookMoment) {
        if let Some(tell) = &self.tell {
            tell(HookNews { run: self.run, event: self.event, name: self.name.clone(), moment });
        }
    }
}

impl Drop for RunObserver {
    fn drop(&mut self) {
        let (printed, ending) = (HookPrinted::default(), HookEnding::Cancelled);
        self.tell(HookMoment::Ended { printed, code: None, ending });
    }
}

pub(crate) fn printed(output: &[u8], errors: &[u8]) -> HookPrinted {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    HookPrinted { output: text(output), errors: text(errors) }
}
