//! Failures in the words of hosts and hooks.

use crate::{Failure, FailureClass, Terminal};

impl Failure {
    /// The category that hosts and hooks know it by.
    pub fn category(&self) -> &'static str {
        match self.class {
            FailureClass::Forbidden if self.status == Some(402) => "billing_error",
            FailureClass::Auth | FailureClass::Forbidden => "authentication_failed",
            // A used-up rate window answers 429; an empty account answers something else.
            FailureClass::Quota if self.status != Some(429) => "billing_error",
            FailureClass::RateLimited | FailureClass::Quota => "rate_limit",
            FailureClass::Overloaded => "overloaded",
            FailureClass::NotFound => "model_not_found",
            FailureClass::Overflow
            | FailureClass::Media
            | FailureClass::BadRequest
            | FailureClass::Binding => "invalid_request",
            FailureClass::Server | FailureClass::Malformed => "server_error",
            FailureClass::Connect | FailureClass::Tls | FailureClass::Cut | FailureClass::Stalled => {
                "unknown"
            }
        }
    }
}

impl Terminal {
    /// The category of the failure that a run ends on. Where no model call failed, the context did.
    pub fn failure_category(self, failure: Option<&Failure>) -> &'static str {
        match (self, failure) {
            (Self::MaxOutputTokens, _) => "max_output_tokens",
            (_, Some(failure)) => failure.category(),
            (Self::PromptTooLong | Self::BlockingLimit | Self::ImageError, None) => "invalid_request",
            (_, None) => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(class: FailureClass, status: Option<u16>, expected: &str) {
        let failure = Failure { status, ..Failure::new(class, "") };
        assert_eq!(failure.category(), expected);
    }

    #[test]
    fn every_failure_that_ends_a_run_has_a_kind() {
        let kinds = Terminal::ALL.into_iter().filter(|terminal| terminal.is_failure());
        let kinds: Vec<_> =
            kinds.map(|terminal| (terminal.name(), terminal.failure_category(None))).collect();
        assert_eq!(
            kinds,
            [
                ("blocking_limit", "invalid_request"),
                ("prompt_too_long", "invalid_request"),
                ("max_output_tokens", "max_output_tokens"),
                ("image_error", "invalid_request"),
                ("model_error", "unknown"),
                ("api_error", "unknown"),
            ]
        );
        let failure = Failure::new(FailureClass::Malformed, "");
        assert_eq!(Terminal::ModelError.failure_category(Some(&failure)), "server_error");
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
