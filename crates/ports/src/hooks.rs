use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{HookAnswer, HookCall, HookEvent, HookScene};

/// Asks outside programs at fixed points of the loop.
pub trait HookRunner: Send + Sync + 'static {
    /// The events there are hooks for. Asked once, when the engine is built; other events are never run.
    fn events(&self) -> BTreeSet<HookEvent>;

    /// Asks all hooks of an event and puts their answers together. A hook that cannot start, crashes or takes too long is
    /// a notice in the answer. Nothing happens until the future is polled; when `cancel` fires, or when the future is
    /// dropped, the answer is not needed any more and everything it started must end.
    fn run(
        &self,
        call: HookCall,
        scene: HookScene,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, HookAnswer>;
}
