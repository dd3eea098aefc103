//! What Edit and Write have in common: what must hold before a file is changed, and its new content.

use std::borrow::Cow;

use serde::Serialize;
use windlass_ports::ToolContext;

use crate::content::{Content, LineEnd, uniform_line_end, with_lf};
use crate::encoding::Unencodable;
use crate::file::Subject;
use crate::seen::{content_hash, describe_change};

/// The file must have been seen, and must still hold what was seen. Returns whether all of it was shown.
pub(crate) fn check_seen(subject: &Subject, content: &Content, cx: &ToolContext) -> Result<bool, String> {
    let shown = &subject.shown;
    let Some(seen) = cx.seen(&subject.resolved) else {
        return Err(format!(
            "{shown} has not been read in this conversation, so it was not changed. Read it first; of a long file, the \
             lines to change with `offset` and `limit`, for a PARTIAL view does not count."
        ));
    };
    if seen.hash != content_hash(&content.bytes) {
        let change = describe_change(seen, &content.bytes, content.encoding);
        return Err(format!(
            "{shown} has changed since you last saw it, so it was not touched. What is different now:\n{change}\n\
             Read the changed part again, then repeat the change if it still fits."
        ));
    }
    Ok(seen.whole)
}

/// Replacement characters stand for text that was lost; unless the file holds them, they must not get into it.
pub(crate) fn check_no_loss(new: &str, original: Option<&Content>) -> Result<(), String> {
    if !new.contains('\u{fffd}') {
        return Ok(());
    }
    let held = original.is_some_and(|content| {
        let text = content.encoding.decode_exact(content.body());
        text.is_some_and(|text| text.contains('\u{fffd}'))
    });
    if held {
        return Ok(());
    }
    Err(
        "The new text holds the replacement character U+FFFD, which stands for text that could not be decoded; \
         writing it would lose that text. Leave those places out of the change. If the character itself is meant, \
         write it as an escape of the language, or through Bash."
            .to_owned(),
    )
}

/// The content in the encoding and with the line ends that the old file has.
pub(crate) fn new_bytes<'a>(
    content: &'a str,
    subject: &Subject,
    old: Option<&Content>,
) -> Result<Cow<'a, [u8]>, String> {
    let Some(old) = old else {
        return Ok(Cow::Borrowed(content.as_bytes()));
    };
    let mut text = Cow::Borrowed(content);
    if !old.encoding.bom().is_empty() {
        text = Cow::Borrowed(content.strip_prefix('\u{feff}').unwrap_or(content));
    }
    let end = uniform_line_end(old.text().as_bytes());
    if let Some(end @ (LineEnd::CrLf | LineEnd::Cr)) = end {
        text = Cow::Owned(with_lf(&text).replace('\n', end.as_str()));
    }
    let bytes = match &text {
        Cow::Borrowed(text) => old.encoding.encode(text),
        Cow::Owned(text) => old.encoding.encode(text).map(|bytes| Cow::Owned(bytes.into_owned())),
    };
    bytes.map_err(|error| lacking(&error, subject, Some(old)))
}

/// The refusal for a character that the file's encoding does not have.
pub(crate) fn lacking(lacking: &Unencodable, subject: &Subject, content: Option<&Content>) -> String {
    let encoding = content.map_or("UTF-8", |content| content.encoding.name());
    format!(
        "{} is encoded as {encoding}, which has no {:?} (U+{:04X}), so it was not changed. Use only characters of \
         that encoding, or convert the file first.",
        subject.shown,
        lacking.0,
        u32::from(lacking.0)
    )
}

/// The former content in structured output.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Original<'a> {
    /// There was no file.
    Missing(Option<()>),
    /// This was it.
    Text(Cow<'a, str>),
    /// Too large to repeat.
    #[serde(skip)]
    Large,
}

impl<'a> Original<'a> {
    pub(crate) fn new(content: Option<&'a Content>) -> Self {
        match content.map(Content::text_if_small) {
            None => Self::Missing(None),
            Some(Some(text)) => Self::Text(text),
            Some(None) => Self::Large,
        }
    }

    pub(crate) fn is_large(&self) -> bool {
        matches!(self, Self::Large)
    }
}
