//! Whether a failed request is sent again, and when.

use std::fmt::Write as _;

use windlass_protocol::{Failure, FailureClass};

use crate::config::RetryPolicy;
use crate::turn::ladder::Retry;

/// What was tried for one request so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// Retries of all causes.
    pub(crate) retries: u32,
    /// Retries after a stall.
    pub(crate) stalls: u32,
    /// Retries after a broken answer.
    pub(crate) malformed: u32,
    /// Overloads in a row.
    pub(crate) overloads: u32,
    /// Streams that broke before they said anything.
    pub(crate) broken_streams: u32,
    /// Whether the answer was asked for at once.
    pub(crate) is_whole: bool,
}

impl Attempts {
    /// These attempts and one more, for this cause. `is_half_way` says that part of the answer had come.
    pub(crate) fn and(self, class: FailureClass, is_half_way: bool) -> Self {
        Self {
            retries: self.retries + 1,
            stalls: self.stalls + u32::from(class == FailureClass::Stalled),
            malformed: self.malformed + u32::from(class == FailureClass::Malformed),
            overloads: if class == FailureClass::Overloaded { self.overloads + 1 } else { 0 },
            broken_streams: self.broken_streams + u32::from(is_of_the_stream(class) && !is_half_way),
            is_whole: self.is_whole,
        }
    }

    /// Whether the next try asks for the answer at once: streams themselves are what fails. Once per request.
    pub(crate) fn wants_whole(self, policy: &RetryPolicy) -> bool {
        policy.can_ask_whole && !self.is_whole && self.broken_streams >= policy.broken_streams_max
    }
}

/// Whether the stream is what failed, rather than the provider.
pub(crate) fn is_of_the_stream(class: FailureClass) -> bool {
    matches!(class, FailureClass::Cut | FailureClass::Stalled | FailureClass::Malformed)
}

/// A failure, and what is known around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureContext<'a> {
    pub(crate) failure: &'a Failure,
    pub(crate) attempts: Attempts,
    /// Whether part of the answer had come.
    pub(crate) is_half_way: bool,
    /// Whether the provider ever answered in this session.
    pub(crate) has_been_reached: bool,
    pub(crate) wall_s: u64,
    pub(crate) entropy: u64,
}

/// What the policy says about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryVerdict {
    pub(crate) retry: Retry,
    /// The pause before the next try.
    pub(crate) delay_ms: u64,
    /// How many retries this cause allows in all.
    pub(crate) retries_max: u32,
}

impl RetryVerdict {
    /// There is no failure.
    pub(crate) const NONE: Self = Self { retry: Retry::GiveUp, delay_ms: 0, retries_max: 0 };
}

pub(crate) fn decide(trouble: &FailureContext<'_>, policy: &RetryPolicy) -> RetryVerdict {
    let FailureContext { failure, attempts, is_half_way, .. } = *trouble;
    let verdict = |retry, delay_ms, left: u32| RetryVerdict {
        retry,
        delay_ms,
        retries_max: attempts.retries.saturating_add(left),
    };
    if let Some(delay_ms) = patience(trouble, policy) {
        // There is always one more.
        return verdict(Retry::Again, delay_ms, 1);
    }
    let heals = failure.should_retry.unwrap_or_else(|| can_heal(failure.class));
    let left = attempts_left(failure.class, attempts, policy, trouble.has_been_reached);
    let asked_too_long = failure.retry_after_ms.is_some_and(|wait| wait > policy.retry_after_ms_max);
    if !heals || left == 0 || asked_too_long {
        let elsewhere = can_heal(failure.class) || failure.class == FailureClass::NotFound;
        return verdict(if elsewhere { Retry::FallBackOrGiveUp } else { Retry::GiveUp }, 0, left);
    }
    let delay_ms = match failure.retry_after_ms {
        Some(wait) if wait > 0 => wait,
        _ => backoff(attempts.retries, policy.backoff_ms, policy.backoff_ms_max, trouble.entropy),
    };
    let overloaded =
        failure.class == FailureClass::Overloaded && attempts.overloads + 1 >= policy.overloads_max;
    let retry = if is_half_way || overloaded { Retry::FallBackOrAgain } else { Retry::Again };
    verdict(retry, delay_ms, left)
}

/// The pause of a run that waits as long as it takes: for capacity, or until a quota is there again.
fn patience(trouble: &FailureContext<'_>, policy: &RetryPolicy) -> Option<u64> {
    let FailureContext { failure, attempts, .. } = *trouble;
    if !policy.is_patient {
        return None;
    }
    let until_reset = failure.resets_at.map(|at| at.saturating_sub(trouble.wall_s).saturating_mul(1_000));
    match failure.class {
        FailureClass::Quota => until_reset.map(|wait| wait.max(1_000)),
        FailureClass::RateLimited | FailureClass::Overloaded => {
            let own =
                backoff(attempts.retries, policy.backoff_ms, policy.retry_after_ms_max, trouble.entropy);
            Some(failure.retry_after_ms.or(until_reset).filter(|wait| *wait > 0).unwrap_or(own))
        }
        _ => None,
    }
}

/// The failure with what was tried against it, and when it is worth another try.
pub(crate) fn given_up(mut failure: Failure, attempts: Attempts, policy: &RetryPolicy) -> Failure {
    if attempts.retries > 0 {
        let _ = write!(failure.message, " Tried {} times.", attempts.retries + 1);
    }
    match failure.retry_after_ms {
        Some(wait) if wait > policy.retry_after_ms_max => {
            let _ = write!(
                failure.message,
                " The provider asks to try again in {} minutes.",
                wait.div_ceil(60_000)
            );
        }
        // Whoever sends something else altogether will do so later, too.
        _ if failure.class == FailureClass::Malformed => (),
        _ if attempts.retries > 0 => failure.message.push_str(" Try again later."),
        _ => (),
    }
    failure
}

/// Failures that a second try can cure. The others need somebody to act.
fn can_heal(class: FailureClass) -> bool {
    match class {
        FailureClass::RateLimited
        | FailureClass::Overloaded
        | FailureClass::Server
        | FailureClass::Connect
        | FailureClass::Cut
        | FailureClass::Stalled
        | FailureClass::Malformed => true,
        FailureClass::Overflow
        | FailureClass::Media
        | FailureClass::Quota
        | FailureClass::Auth
        | FailureClass::Forbidden
        | FailureClass::NotFound
        | FailureClass::BadRequest
        | FailureClass::Binding
        | FailureClass::Tls => false,
    }
}

fn attempts_left(
    class: FailureClass,
    attempts: Attempts,
    policy: &RetryPolicy,
    has_been_reached: bool,
) -> u32 {
    let overall = policy.retries_max.saturating_sub(attempts.retries);
    let of_this_cause = match class {
        FailureClass::Stalled => policy.stalls_max.saturating_sub(attempts.stalls),
        FailureClass::Malformed => policy.malformed_max.saturating_sub(attempts.malformed),
        // The provider's word is worth one more try, but the same request must not fail the same way again and again.
        class if !can_heal(class) => 1_u32.saturating_sub(attempts.retries),
        FailureClass::Connect if !has_been_reached => {
            policy.first_contacts_max.saturating_sub(attempts.retries)
        }
        _ => overall,
    };
    overall.min(of_this_cause)
}

/// Exponential, with a quarter of jitter to either side, so that parallel runs do not retry in step.
fn backoff(retries: u32, first_ms: u64, most_ms: u64, entropy: u64) -> u64 {
    let doubled = first_ms.saturating_mul(1 << retries.min(20));
    let full = doubled.min(most_ms);
    let jitter = entropy % (full / 2 + 1);
    (full - full / 4).saturating_add(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: FailureClass) -> Failure {
        Failure::new(class, "")
    }

    fn trouble(failure: &Failure, attempts: Attempts) -> FailureContext<'_> {
        FailureContext {
            failure,
            attempts,
            is_half_way: false,
            has_been_reached: true,
            wall_s: 1_000,
            entropy: 0,
        }
    }

    #[track_caller]
    fn check(failure: &Failure, attempts: Attempts, retry: Retry, delay_ms: u64) {
        let seen = decide(&trouble(failure, attempts), &RetryPolicy::default());
        assert_eq!((seen.retry, seen.delay_ms), (retry, delay_ms), "{failure:?} {attempts:?}");
    }

    #[test]
    fn only_what_can_heal_is_tried_again() {
        use FailureClass::*;
        for class in [RateLimited, Overloaded, Server, Connect, Cut, Stalled, Malformed] {
            check(&failure(class), Attempts::default(), Retry::Again, 375);
        }
        for class in [Overflow, Media, Quota, Auth, Forbidden, BadRequest, Binding, Tls] {
            check(&failure(class), Attempts::default(), Retry::GiveUp, 0);
        }
        check(&failure(NotFound), Attempts::default(), Retry::FallBackOrGiveUp, 0);
    }

    #[test]
    fn the_providers_word_beats_the_class() {
        let no = Failure { should_retry: Some(false), ..failure(FailureClass::Overloaded) };
        check(&no, Attempts::default(), Retry::FallBackOrGiveUp, 0);
        let yes = Failure { should_retry: Some(true), ..failure(FailureClass::BadRequest) };
        check(&yes, Attempts::default(), Retry::Again, 375);
        check(&yes, Attempts { retries: 1, ..Attempts::default() }, Retry::GiveUp, 0);
        let wait = Failure { retry_after_ms: Some(7_000), ..failure(FailureClass::RateLimited) };
        check(&wait, Attempts::default(), Retry::Again, 7_000);
        let too_long = Failure { retry_after_ms: Some(3_600_000), ..failure(FailureClass::RateLimited) };
        check(&too_long, Attempts::default(), Retry::FallBackOrGiveUp, 0);
    }

    #[test]
    fn every_cause_has_its_limit() {
        let tried =
            |retries, stalls, malformed| Attempts { retries, stalls, malformed, ..Attempts::default() };
        check(&failure(FailureClass::Overloaded), tried(10, 0, 0), Retry::FallBackOrGiveUp, 0);
        check(&failure(FailureClass::Stalled), tried(2, 2, 0), Retry::FallBackOrGiveUp, 0);
        check(&failure(FailureClass::Malformed), tried(2, 0, 2), Retry::FallBackOrGiveUp, 0);
        check(&failure(FailureClass::Stalled), tried(3, 1, 0), Retry::Again, 3_000);
        let unreachable = failure(FailureClass::Connect);
        let first = FailureContext { has_been_reached: false, ..trouble(&unreachable, tried(2, 0, 0)) };
        assert_eq!(decide(&first, &RetryPolicy::default()).retry, Retry::FallBackOrGiveUp);
    }

    #[test]
    fn another_model_is_due_after_three_overloads_or_half_an_answer() {
        let overloads = |overloads| Attempts { overloads, ..Attempts::default() };
        check(&failure(FailureClass::Overloaded), overloads(1), Retry::Again, 375);
        check(&failure(FailureClass::Overloaded), overloads(2), Retry::FallBackOrAgain, 375);
        check(&failure(FailureClass::Server), overloads(2), Retry::Again, 375);
        let cut = failure(FailureClass::Cut);
        let half_way = FailureContext { is_half_way: true, ..trouble(&cut, Attempts::default()) };
        assert_eq!(decide(&half_way, &RetryPolicy::default()).retry, Retry::FallBackOrAgain);
    }

    #[test]
    fn streams_that_break_are_replaced_by_one_whole_answer() {
        let check = |classes: &[(FailureClass, bool)], expected| {
            let tried =
                classes.iter().fold(Attempts::default(), |tried, (class, half)| tried.and(*class, *half));
            assert_eq!(tried.wants_whole(&RetryPolicy::default()), expected, "{classes:?}");
        };
        check(&[(FailureClass::Cut, false)], false);
        check(&[(FailureClass::Cut, false), (FailureClass::Malformed, false)], true);
        check(&[(FailureClass::Cut, true), (FailureClass::Stalled, true)], false);
        check(&[(FailureClass::Overloaded, false), (FailureClass::Server, false)], false);
        let off = RetryPolicy { can_ask_whole: false, ..RetryPolicy::default() };
        let broken = Attempts { broken_streams: 5, ..Attempts::default() };
        assert!(broken.wants_whole(&RetryPolicy::default()) && !broken.wants_whole(&off));
        assert!(!Attempts { is_whole: true, ..broken }.wants_whole(&RetryPolicy::default()));
    }

    #[test]
    fn a_patient_run_waits_for_quotas_and_capacity() {
        let patient = RetryPolicy { is_patient: true, ..RetryPolicy::default() };
        let check = |failure: &Failure, attempts: Attempts, retry, delay_ms| {
            let seen = decide(&trouble(failure, attempts), &patient);
            assert_eq!((seen.retry, seen.delay_ms), (retry, delay_ms), "{failure:?}");
        };
        let spent = Attempts { retries: 40, ..Attempts::default() };
        let quota = Failure { resets_at: Some(4_600), ..failure(FailureClass::Quota) };
        check(&quota, spent, Retry::Again, 3_600_000);
        check(&failure(FailureClass::Quota), spent, Retry::GiveUp, 0);
        check(&failure(FailureClass::Overloaded), spent, Retry::Again, 225_000);
        check(&failure(FailureClass::Server), spent, Retry::FallBackOrGiveUp, 0);
    }

    #[test]
    fn only_what_may_change_by_itself_is_worth_another_try_later() {
        let check = |class, expected: &str| {
            let tried = Attempts { retries: 2, ..Attempts::default() };
            assert_eq!(
                given_up(Failure::new(class, "No."), tried, &RetryPolicy::default()).message,
                expected
            );
        };
        check(FailureClass::Server, "No. Tried 3 times. Try again later.");
        check(FailureClass::Malformed, "No. Tried 3 times.");
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_differ() {
        let pause = |n, entropy| backoff(n, 500, 32_000, entropy);
        let spread: Vec<_> = (0..8).map(|n| (pause(n, 0), pause(n, u64::MAX))).collect();
        assert!(spread.iter().all(|(low, high)| low <= high && *high <= 40_000), "{spread:?}");
        assert_eq!(pause(3, 0), 3_000);
        assert_eq!(pause(20, 0), 24_000);
        let different: std::collections::BTreeSet<_> = (0..100).map(|e| pause(2, e * 7919)).collect();
        assert!(different.len() > 50);
    }
}
