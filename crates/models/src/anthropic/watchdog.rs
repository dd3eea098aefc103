//! Notices a stream that went silent, by a clock for bytes and one for events. They run only while we wait for the
//! socket, so a limit is checked only after it had nothing to give, and a slow reader stops both.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::settings::WatchdogLimits;

/// Whoever looks this much later than the timer rang was away meanwhile: nobody waited for the socket then.
const ABSENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Watchdog {
    limits: WatchdogLimits,
    /// Since when we wait for a byte; `None` while we do not wait.
    bytes_since: Option<Instant>,
    /// Since when we wait for an event.
    events_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

/// What was missing, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    Bytes(Duration),
    Events(Duration),
}

impl Watchdog {
    pub(super) fn new(limits: WatchdogLimits) -> Self {
        Self { limits, bytes_since: None, events_since: None, timer: None }
    }

    /// The reader is back after it took an item.
    pub(super) fn on_return(&mut self) {
        self.bytes_since = None;
        self.events_since = None;
    }

    pub(super) fn on_bytes(&mut self) {
        self.bytes_since = None;
    }

    pub(super) fn on_event(&mut self) {
        self.events_since = None;
    }

    /// Waits for `work` as long as the limits allow.
    pub(super) async fn wait<F: Future>(&mut self, work: F) -> Result<F::Output, Stall> {
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll_stall(cx).map(Err),
        })
        .await
    }

    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<Stall> {
        let now = Instant::now();
        let mut end = self.end(now);
        if end.is_some_and(|(end, _)| now.duration_since(end) > ABSENCE) {
            self.on_return();
            end = self.end(now);
        }
        let Some((end, stall)) = end else { return Poll::Pending };
        loop {
            if end <= Instant::now() {
                return Poll::Ready(stall);
            }
            // A timer that rings early once costs less than setting one anew for each of thousands of pieces.
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
            if timer.deadline() > end {
                timer.as_mut().reset(end);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            timer.as_mut().reset(end);
        }
    }

    /// When the limit that is reached first is reached, and which one that is.
    fn end(&mut self, now: Instant) -> Option<(Instant, Stall)> {
        let bytes_since = *self.bytes_since.get_or_insert(now);
        let events_since = *self.events_since.get_or_insert(now);
        let end = |since: Instant, limit: Option<Duration>, stall: fn(Duration) -> Stall| {
            Some((since.checked_add(limit?)?, stall(limit?)))
        };
        let bytes_end = end(bytes_since, self.limits.bytes, Stall::Bytes);
        let events_end = end(events_since, self.limits.events, Stall::Events);
        [bytes_end, events_end].into_iter().flatten().min_by_key(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::time::{advance, sleep};

    const BYTES: Duration = Duration::from_secs(90);
    const EVENTS: Duration = Duration::from_mins(5);

    async fn silence(watchdog: &mut Watchdog) -> (Stall, Duration) {
        let start = Instant::now();
        let stall = watchdog.wait(pending::<()>()).await.expect_err("never ready");
        (stall, start.elapsed())
    }

    fn about(seen: Duration, expected: Duration) -> bool {
        seen >= expected && seen < expected + Duration::from_millis(5)
    }

    #[tokio::test(start_paused = true)]
    async fn silence_of_bytes_is_noticed() {
        let (stall, after) = silence(&mut Watchdog::new(WatchdogLimits::default())).await;
        assert_eq!(stall, Stall::Bytes(BYTES));
        assert!(about(after, BYTES), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn pings_do_not_hide_the_silence_of_events() {
        let mut watchdog = Watchdog::new(WatchdogLimits::default());
        let start = Instant::now();
        let stall = loop {
            match watchdog.wait(sleep(Duration::from_secs(20))).await {
                Ok(()) => watchdog.on_bytes(),
                Err(stall) => break stall,
            }
        };
        assert_eq!(stall, Stall::Events(EVENTS));
        assert!(about(start.elapsed(), EVENTS), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_starts_both_clocks_anew() {
        let mut watchdog = Watchdog::new(WatchdogLimits::default());
        for _ in 0..50 {
            watchdog.wait(sleep(Duration::from_secs(80))).await.expect("in time");
            watchdog.on_bytes();
            watchdog.on_event();
        }
        let (_, after) = silence(&mut watchdog).await;
        assert!(about(after, BYTES), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_no_stall() {
        let mut watchdog = Watchdog::new(WatchdogLimits::default());
        watchdog.wait(sleep(Duration::from_mins(1))).await.expect("in time");
        advance(Duration::from_hours(1)).await;
        watchdog.on_return();
        let (_, after) = silence(&mut watchdog).await;
        assert!(about(after, BYTES), "{after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_there_counts_even_if_it_is_late() {
        let mut watchdog = Watchdog::new(WatchdogLimits::default());
        {
            let mut wait = pin!(watchdog.wait(sleep(Duration::from_secs(10))));
            let polled = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
            advance(Duration::from_hours(1)).await;
            assert_eq!(wait.await, Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_went_away_while_it_waited_is_no_stall() {
        let mut watchdog = Watchdog::new(WatchdogLimits::default());
        let mut wait = pin!(watchdog.wait(pending::<()>()));
        let first = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
        assert!(first.is_pending());
        advance(Duration::from_hours(1)).await;
        let back = Instant::now();
        assert_eq!(wait.await, Err(Stall::Bytes(BYTES)));
        assert!(about(back.elapsed(), BYTES), "{:?}", back.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn both_can_be_off() {
        let mut watchdog = Watchdog::new(WatchdogLimits { bytes: None, events: None });
        watchdog.wait(sleep(Duration::from_secs(100_000))).await.expect("no limit");
        let only_events = WatchdogLimits { bytes: None, events: Some(EVENTS) };
        let (stall, _) = silence(&mut Watchdog::new(only_events)).await;
        assert_eq!(stall, Stall::Events(EVENTS));
        let beyond_time = WatchdogLimits { bytes: Some(Duration::MAX), events: Some(EVENTS) };
        let (stall, _) = silence(&mut Watchdog::new(beyond_time)).await;
        assert_eq!(stall, Stall::Events(EVENTS));
    }
}
