//! The latest line of something that is still being printed: it may end in the middle of a secret, and what stood before it
//! is not there.

use std::borrow::Cow;

use crate::bytes::{BASE64, count, count_back};
use crate::prefixes;
use crate::redactor::Redactor;
use crate::span::{SecretKind, Span};

/// A line that is nothing but so much base64 may be of a private key.
const KEY_LINE_BYTES_MIN: usize = 40;

impl Redactor {
    /// One line of output without secrets, as far as it was printed. Stricter than [`Redactor::redact`]: it is only looked at,
    /// so hiding too much does no harm.
    ///
    /// ```
    /// use windlass_secrets::Redactor;
    /// let redactor = Redactor::new(["correct horse battery"]);
    /// assert_eq!(redactor.redact_line("password: correct horse"), "password: [redacted: known secret]");
    /// ```
    pub fn redact_line<'a>(&self, line: &'a str) -> Cow<'a, str> {
        self.redact_with(line, |line| {
            let known = self.known.unfinished(line).map(|start| (start, SecretKind::Known));
            let token = prefixes::unfinished(line.as_bytes())
                .map(|start| (start, SecretKind::Token("unfinished token")));
            let key = is_key_line(line.trim().as_bytes()).then_some((0, SecretKind::PrivateKey));
            let found = [known, token, key].into_iter().flatten();
            found.map(|(start, kind)| Span { start, end: line.len(), kind }).collect()
        })
    }
}

fn is_key_line(line: &[u8]) -> bool {
    let padding = count_back(line, 2, |byte| byte == b'=');
    let length = count(line, BASE64);
    let is_base64 = length + padding == line.len() && length >= KEY_LINE_BYTES_MIN;
    is_base64 && !line.iter().all(u8::is_ascii_hexdigit) && crate::bytes::is_varied(line)
}
