//! Whether this program can supervise its commands: one not made for it would start itself again without end.

use std::sync::atomic::{AtomicBool, Ordering};

use windlass_sandbox::{Launcher, SandboxUnavailable};

/// This very program, even when its file has been replaced since.
const SELF: &str = "/proc/self/exe";

static IS_READY: AtomicBool = AtomicBool::new(false);

/// Lets this program supervise its own commands: call it first thing in `main`, before a file is opened or a thread started.
///
/// Without it, commands may outlive it, and a required sandbox is an error. Never returns in a supervisor.
pub fn supervise_commands() {
    windlass_sandbox::run_if_supervisor();
    IS_READY.store(true, Ordering::Relaxed);
}

pub(crate) fn launcher() -> Launcher {
    if IS_READY.load(Ordering::Relaxed) { Launcher::supervised(SELF.into()) } else { Launcher::direct() }
}

/// Confined commands are started by this program inside the sandbox.
pub(crate) fn check_for_sandbox() -> Result<(), SandboxUnavailable> {
    if IS_READY.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(SandboxUnavailable {
        missing: "the supervisor".into(),
        why: "this program does not supervise its commands".into(),
        advice: "Call windlass::supervise_commands first in its main function.".into(),
    })
}
