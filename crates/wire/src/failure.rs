//! Failures in the protocol's words.

use windlass_protocol::{Failure, FailureClass};

/// The protocol's category of a failure.
pub(crate) fn error_category(failure: &Failure) -> &'static str {
    match failure.class {
        FailureClass::Forbidden if failure.status == Some(402) => "billing_error",
        FailureClass::Auth | FailureClass::Forbidden => "authentication_failed",
        // A used-up rate window answers 429; an empty account answers something else.
        FailureClass::Quota if failure.status != Some(429) => "billing_error",
        FailureClass::RateLimited | FailureClass::Quota => "rate_limit",
        FailureClass::Overloaded => "overloaded",
        FailureClass::NotFound => "model_not_found",
        FailureClass::Overflow | FailureClass::Media | FailureClass::BadRequest | FailureClass::Binding => {
            "invalid_request"
        }
        FailureClass::Server | FailureClass::Malformed => "server_error",
        FailureClass::Connect | FailureClass::Tls | FailureClass::Cut | FailureClass::Stalled => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(class: FailureClass, status: Option<u16>, expected: &str) {
        let failure = Failure { status, ..Failure::new(class, "") };
        assert_eq!(error_category(&failure), expected);
    }

    #[test]
    fn a_category_says_who_must_act() {
        check(FailureClass::Auth, Some(401), "authentication_failed");
        check(FailureClass::Forbidden, Some(403), "authentication_failed");
        check(FailureClass::Forbidden, Some(402), "billing_error");
        check(FailureClass::Quota, Some(400), "billing_error");
        check(FailureClass::Quota, Some(429), "rate_limit");
        check(FailureClass::RateLimited, Some(429), "rate_limit");
        check(FailureClass::Overloaded, Some(529), "overloaded");
        check(FailureClass::NotFound, Some(404), "model_not_found");
        check(FailureClass::BadRequest, Some(400), "invalid_request");
        check(FailureClass::Server, Some(500), "server_error");
        check(FailureClass::Connect, None, "unknown");
    }
}
