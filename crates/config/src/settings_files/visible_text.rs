//! Text of a project, shown so that nothing in it can pretend to be something else.

use std::borrow::Cow;

use windlass_text::invisible::{self, Invisible};
use windlass_text::shorten::shorten;

/// The text with everything that cannot be seen written out, as `<U+202E>`.
pub(crate) fn visible(text: &str) -> String {
    invisible::visible(text, Invisible::Blank)
}

/// The beginning of a text, for one line.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    const CHARS_MAX: usize = 60;
    shorten(text, CHARS_MAX, "...")
}
