//! Whether this program can be started again as the supervisor of its commands.
//!
//! A program that was not made for it would begin its own work once more, and start the command again, without end.

use std::sync::atomic::{AtomicBool, Ordering};

use windlass_sandbox::{Launcher, SandboxUnavailable};

/// This very program, even when its file has been replaced since.
const SELF: &str = "/proc/self/exe";

static IS_READY: AtomicBool = AtomicBool::new(false);

/// Lets this program supervise its own commands: call it first thing in `main`, before a file is opened or a thread started.
///
/// With it, every command ends with the program, however that ends, and commands can run in a sandbox. Without it, commands run as
/// plain children, and settings that require a sandbox are an error. If the process was started as a supervisor, this never returns.
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
