//! Where a secret stands.

use std::borrow::Cow;

/// A part of a text that must not be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: SecretKind,
}

/// What kind of secret it is. Where two are found in one place, the first of them names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SecretKind {
    /// A value the engine knows.
    Known,
    /// A token whose shape says whose it is.
    Token(&'static str),
    PrivateKey,
    /// A credential in a header.
    Header,
    UrlPassword,
    /// A random value beside a telling name.
    Assigned,
}

impl SecretKind {
    fn name(self) -> &'static str {
        match self {
            Self::Known => "known secret",
            Self::Token(name) => name,
            Self::PrivateKey => "private key",
            Self::Header => "credentials",
            Self::UrlPassword => "password",
            Self::Assigned => "secret",
        }
    }
}

/// The text with every span replaced. Spans that overlap become one.
pub(crate) fn replace(text: &str, mut spans: Vec<Span>) -> Cow<'_, str> {
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    spans.sort_by_key(|span| (span.start, span.kind));
    let mut result = String::with_capacity(text.len());
    let mut kept_to = 0;
    for span in merge(spans) {
        result.push_str(&text[kept_to..span.start]);
        result.push_str("[redacted: ");
        result.push_str(span.kind.name());
        result.push(']');
        kept_to = span.end;
    }
    result.push_str(&text[kept_to..]);
    Cow::Owned(result)
}

fn merge(spans: Vec<Span>) -> Vec<Span> {
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start < last.end => {
                last.end = last.end.max(span.end);
                last.kind = last.kind.min(span.kind);
            }
            _ => merged.push(span),
        }
    }
    merged
}
