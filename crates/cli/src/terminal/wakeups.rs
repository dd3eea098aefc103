//! Lets hooks hear that something waits for the person, when it has waited for a while.

use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;
use windlass::engine::Engine;

use crate::complain;

/// Somebody who sits there answers a question sooner.
const QUESTION: Duration = Duration::from_secs(6);
/// And says what is next sooner than this.
const PROMPT: Duration = Duration::from_mins(1);

/// Who lets hooks hear. There is no sound of our own.
pub(crate) struct Wakeups(pub(crate) Engine);

/// Something waits until this is dropped. Hooks that hear of it by then run to their end.
pub(crate) struct Wakeup {
    _over: oneshot::Sender<()>,
}

impl Wakeups {
    /// A question about a tool was put.
    pub(crate) fn on_question(&self, tool: &str) -> Wakeup {
        let message = format!("Windlass needs your permission to use {tool}");
        self.wakeup(QUESTION, "permission_prompt", &message)
    }

    /// A run is over, and nothing is said.
    pub(crate) fn idle(&self) -> Wakeup {
        self.wakeup(PROMPT, "idle_prompt", "Windlass is waiting for your input")
    }

    fn wakeup(&self, after: Duration, kind: &str, message: &str) -> Wakeup {
        let told = self.0.notify(kind, message, None);
        Wakeup::new(after, async move { told.await.iter().for_each(complain) })
    }
}

impl Wakeup {
    fn new(after: Duration, tell: impl Future<Output = ()> + Send + 'static) -> Self {
        let (over, gone) = oneshot::channel();
        tokio::spawn(async move {
            tokio::select! {
                _ = gone => {}
                () = tokio::time::sleep(after) => tell.await,
            }
        });
        Self { _over: over }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// How often hooks heard, after something waited for so long.
    async fn heard(waits: Duration, takes: Duration) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let seen = count.clone();
        let wakeup = Wakeup::new(PROMPT, async move {
            tokio::time::sleep(takes).await;
            seen.fetch_add(1, Ordering::Relaxed);
        });
        tokio::time::sleep(waits).await;
        drop(wakeup);
        tokio::time::sleep(PROMPT * 9).await;
        count.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn hooks_hear_once_of_what_waits_long_and_never_of_what_does_not() {
        let second = Duration::from_secs(1);
        assert_eq!(heard(PROMPT / 2, second).await, 0);
        assert_eq!(heard(PROMPT + second, Duration::ZERO).await, 1);
        assert_eq!(heard(PROMPT * 5, second).await, 1);
        // A hook that runs already is not stopped by the answer.
        assert_eq!(heard(PROMPT + second, second * 5).await, 1);
    }
}
