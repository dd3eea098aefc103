//! Whether a failed request is sent again, and when.

use std::fmt::Write as _;

use windlass_protocol::{Failure, FailureClass};

use crate::config::RetryPolicy;

/// What was tried for one request so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// Retries of all causes.
    pub(crate) retries: u32,
    /// Retries after a stall.
    pub(crate) stalls: u32,
    /// Retries after a broken answer.
    pub(crate) malformed: u32,
}

impl Attempts {
    /// These attempts and one more, for this cause.
    pub(crate) fn and(self, class: FailureClass) -> Self {
        Self {
            retries: self.retries + 1,
            stalls: self.stalls + u32::from(class == FailureClass::Stalled),
            malformed: self.malformed + u32::from(class == FailureClass::Malformed),
        }
    }
}

/// The decision about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Send the request again after this pause.
    Again {
        delay_ms: u64,
        /// How many retries this cause allows in all.
        retries_max: u32,
    },
    /// Give up.
    GiveUp,
}

/// Decides about a failure. `reached` says whether the provider ever answered in this session.
pub(crate) fn decide(
    failure: &Failure,
    attempts: Attempts,
    policy: &RetryPolicy,
    reached: bool,
    entropy: u64,
) -> Decision {
    let may_heal = failure.should_retry.unwrap_or_else(|| may_heal(failure.class));
    let left = attempts_left(failure.class, attempts, policy, reached);
    if !may_heal || left == 0 {
        return Decision::GiveUp;
    }
    let delay_ms = match failure.retry_after_ms {
        Some(wait) if wait > policy.retry_after_ms_max => return Decision::GiveUp,
        Some(wait) if wait > 0 => wait,
        _ => backoff(attempts.retries, policy, entropy),
    };
    Decision::Again { delay_ms, retries_max: attempts.retries + left }
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
                " Try again in {} minutes, as the provider asks.",
                wait.div_ceil(60_000)
            );
        }
        _ if attempts.retries > 0 => failure.message.push_str(" Try again later."),
        _ => (),
    }
    failure
}

/// Failures that a second try can cure. The others need somebody to act.
fn may_heal(class: FailureClass) -> bool {
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

fn attempts_left(class: FailureClass, attempts: Attempts, policy: &RetryPolicy, reached: bool) -> u32 {
    let overall = policy.retries_max.saturating_sub(attempts.retries);
    let of_this_cause = match class {
        FailureClass::Stalled => policy.stalls_max.saturating_sub(attempts.stalls),
        FailureClass::Malformed => policy.malformed_max.saturating_sub(attempts.malformed),
        // The provider's word is worth one more try, but the same request must not fail the same way again and again.
        class if !may_heal(class) => 1_u32.saturating_sub(attempts.retries),
        FailureClass::Connect if !reached => policy.first_contacts_max.saturating_sub(attempts.retries),
        _ => overall,
    };
    overall.min(of_this_cause)
}

/// Exponential, with a quarter of jitter to either side, so that parallel runs do not retry in step.
fn backoff(retries: u32, policy: &RetryPolicy, entropy: u64) -> u64 {
    let doubled = policy.backoff_ms.saturating_mul(1 << retries.min(20));
    let full = doubled.min(policy.backoff_ms_max);
    let jitter = entropy % (full / 2 + 1);
    (full - full / 4).saturating_add(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: FailureClass) -> Failure {
        Failure::new(class, "")
    }

    fn check(failure: &Failure, attempts: Attempts, expected: Decision) {
        assert_eq!(
            decide(failure, attempts, &RetryPolicy::default(), true, 0),
            expected,
            "{failure:?} {attempts:?}"
        );
    }

    #[test]
    fn only_what_can_heal_is_tried_again() {
        use FailureClass::*;
        for class in [RateLimited, Overloaded, Server, Connect, Cut, Stalled, Malformed] {
            let seen = decide(&failure(class), Attempts::default(), &RetryPolicy::default(), true, 0);
            assert!(matches!(seen, Decision::Again { delay_ms: 375, .. }), "{class:?} {seen:?}");
        }
        for class in [Overflow, Media, Quota, Auth, Forbidden, NotFound, BadRequest, Binding, Tls] {
            check(&failure(class), Attempts::default(), Decision::GiveUp);
        }
    }

    #[test]
    fn the_providers_word_beats_the_class() {
        let no = Failure { should_retry: Some(false), ..failure(FailureClass::Overloaded) };
        check(&no, Attempts::default(), Decision::GiveUp);
        let yes = Failure { should_retry: Some(true), ..failure(FailureClass::BadRequest) };
        check(&yes, Attempts::default(), Decision::Again { delay_ms: 375, retries_max: 1 });
        check(&yes, Attempts { retries: 1, ..Attempts::default() }, Decision::GiveUp);
        let wait = Failure { retry_after_ms: Some(7_000), ..failure(FailureClass::RateLimited) };
        check(&wait, Attempts::default(), Decision::Again { delay_ms: 7_000, retries_max: 10 });
        let too_long = Failure { retry_after_ms: Some(3_600_000), ..failure(FailureClass::RateLimited) };
        check(&too_long, Attempts::default(), Decision::GiveUp);
    }

    #[test]
    fn every_cause_has_its_limit() {
        let tried = |retries, stalls, malformed| Attempts { retries, stalls, malformed };
        check(&failure(FailureClass::Overloaded), tried(10, 0, 0), Decision::GiveUp);
        check(&failure(FailureClass::Stalled), tried(2, 2, 0), Decision::GiveUp);
        check(&failure(FailureClass::Malformed), tried(2, 0, 2), Decision::GiveUp);
        check(
            &failure(FailureClass::Stalled),
            tried(3, 1, 0),
            Decision::Again { delay_ms: 3_000, retries_max: 4 },
        );
        let unreachable = failure(FailureClass::Connect);
        assert_eq!(decide(&unreachable, tried(2, 0, 0), &RetryPolicy::default(), false, 0), Decision::GiveUp);
    }

    #[test]
    fn pauses_double_up_to_a_limit_and_differ() {
        let policy = RetryPolicy::default();
        let spread: Vec<_> =
            (0..8).map(|n| (backoff(n, &policy, 0), backoff(n, &policy, u64::MAX))).collect();
        assert!(spread.iter().all(|(low, high)| low <= high && *high <= 40_000), "{spread:?}");
        assert_eq!(backoff(3, &policy, 0), 3_000);
        assert_eq!(backoff(20, &policy, 0), 24_000);
        let different: std::collections::BTreeSet<_> =
            (0..100).map(|e| backoff(2, &policy, e * 7919)).collect();
        assert!(different.len() > 50);
    }
}
