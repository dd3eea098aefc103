//! The page's own rule for browsers: load nothing, and run no script but the one named here by its hash. Should a text of
//! the session ever become markup, it still cannot act.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

/// The policy for a page with this script.
pub(crate) fn policy(script: &str) -> String {
    let hash = sha256_base64(script);
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

fn sha256_base64(text: &str) -> String {
    STANDARD.encode(digest(&SHA256, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standard() {
        let check = |text: &str, expected: &str| assert_eq!(sha256_base64(text), expected);
        check("", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        check("abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        check(&"a".repeat(56), "s1Q5pKxvCUi21vnjxq8PX1kM4g8b3nCQ73lwaG7Gc4o=");
        check(&"a".repeat(64), "/+BU/nrgy23GXDr5th1SCfQ5hR20PQulmXM33xVGaOs=");
        check(&"a".repeat(119), "MeulHDE6XAgiat8Y1KNZz9/Y0ugWsT9K+VL36mWE3Ps=");
    }
}
