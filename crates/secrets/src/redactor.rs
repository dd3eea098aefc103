//! The one way in.

use std::borrow::Cow;
use std::fmt;

use crate::known_values::KnownValues;
use crate::span::{Span, replace};
use crate::words::{long_words, token_runs};
use crate::{assignments, headers, parts, pem, prefixes, urls};

/// Secrets that touch each other are told apart in so many rounds.
const ROUNDS_MAX: usize = 8;

/// Hides secrets. Cheap to clone.
///
/// ```
/// use windlass_secrets::Redactor;
/// let redactor = Redactor::new(["a key we know"]);
/// assert_eq!(redactor.redact("it is a key we know."), "it is [redacted: known secret].");
/// assert_eq!(redactor.redact("ordinary text"), "ordinary text");
/// assert_eq!(
///     Redactor::default().redact("postgres://me:s3cr3t@db/x"),
///     "postgres://me:[redacted: password]@db/x"
/// );
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    pub(crate) known: KnownValues,
}

impl Redactor {
    /// Hides these values, and everything that has the shape of a secret. Values of less than 8 bytes are too common to be
    /// hidden and do not count.
    pub fn new<S: AsRef<str>>(known: impl IntoIterator<Item = S>) -> Self {
        Self { known: KnownValues::new(known) }
    }

    /// The text without its secrets. What has none is given back as it is.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_with(text, |_| Vec::new())
    }

    /// Known values go first. What is hidden may have touched something else that can be told apart only now, so the rest is
    /// looked at again: text that was redacted once stays as it is.
    pub(crate) fn redact_with<'a>(&self, text: &'a str, more: impl Fn(&str) -> Vec<Span>) -> Cow<'a, str> {
        let shapes = |text: &str| {
            let mut spans = shapes(text.as_bytes());
            spans.extend(more(text));
            spans
        };
        let mut result = replace(text, self.known.find(text));
        for _ in 0..ROUNDS_MAX {
            match replace(&result, shapes(&result)) {
                Cow::Borrowed(_) => break,
                Cow::Owned(redacted) => result = Cow::Owned(redacted),
            }
        }
        result
    }
}

/// Everything that looks like a secret.
fn shapes(bytes: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    pem::find(bytes, &mut spans);
    urls::find(bytes, &mut spans);
    headers::find(bytes, &mut spans);
    for word in long_words(bytes) {
        spans.extend(assignments::find(bytes, &word));
        spans.extend(headers::bearer(bytes, &word));
        for run in token_runs(bytes, word) {
            spans.extend(parts::find(bytes, &run));
            prefixes::find(bytes, &run, &mut spans);
        }
    }
    spans
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}
