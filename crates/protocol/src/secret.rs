//! Text that must not be shown.

use std::fmt;

/// A key, a token or the value of a header. Debug output hides it.
///
/// ```
/// use windlass_protocol::Secret;
/// let secret = Secret::new("abc");
/// assert_eq!(format!("{secret:?}"), "[redacted]");
/// assert_eq!(secret.reveal(), "abc");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
