//! What Edit and Write have in common: what must hold before a file is changed, and its new content.

use std::borrow::Cow;

use serde::Serialize;
use windlass_ports::ToolContext;
use windlass_protocol::{FileSeen, FileStamp};

use crate::content::{FileContent, LineEnd, uniform_line_end, with_lf};
use crate::file::TargetFile;
use crate::fingerprint::{SeenBuilder, content_hash, describe_change};
use crate::save::save;
use crate::text_encoding::UnencodableChar;

/// The file must have been seen, and must still hold what was seen. Returns whether all of it was shown.
pub(crate) fn check_seen(
    subject: &TargetFile,
    content: &FileContent,
    cx: &ToolContext,
) -> Result<bool, String> {
    let shown = &subject.shown;
    let Some(seen) = cx.seen(&subject.resolved) else {
        return Err(format!(
            "Not changed: you have not read {shown} in this conversation. Read it first; in a long file, \
             Read the lines to change with `offset` and `limit`: a PARTIAL view does not count."
        ));
    };
    if seen.hash != content_hash(&content.bytes) {
        let change = describe_change(seen, &content.bytes, content.encoding);
        return Err(format!(
            "Not changed: {shown} has changed since you last saw it. The difference:\n{change}\nRead the \
             changed part again, then repeat the change if it still fits."
        ));
    }
    Ok(seen.whole)
}

/// Replacement characters stand for text that was lost; unless the file holds them, they must not get into it.
pub(crate) fn check_no_loss(new: &str, original: Option<&FileContent>) -> Result<(), String> {
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
    Err("The new text contains the replacement character U+FFFD, which stands for text that could not be \
         decoded; writing it would lose that text. Leave those places out of the change. To write the \
         character itself, use an escape of the language, or Bash."
        .to_owned())
}

/// All of a file's new content, in the form that the old one has.
pub(crate) struct NewContent<'a> {
    bom: &'static [u8],
    body: Cow<'a, [u8]>,
}

impl<'a> NewContent<'a> {
    /// `text` with the byte order mark, the encoding and the line ends of the old file.
    pub(crate) fn new(
        text: &'a str,
        subject: &TargetFile,
        old: Option<&FileContent>,
    ) -> Result<Self, String> {
        let Some(old) = old else {
            return Ok(Self { bom: &[], body: Cow::Borrowed(text.as_bytes()) });
        };
        let bom = old.encoding.bom();
        let text = if bom.is_empty() { text } else { text.strip_prefix('\u{feff}').unwrap_or(text) };
        let body = match uniform_line_end(old.text().as_bytes()) {
            Some(end @ (LineEnd::CrLf | LineEnd::Cr)) => {
                let text = with_lf(text).replace('\n', end.as_str());
                old.encoding.encode(&text).map(|body| Cow::Owned(body.into_owned()))
            }
            Some(LineEnd::Lf) | None => old.encoding.encode(text),
        };
        let body = body.map_err(|error| lacking(&error, subject, old))?;
        Ok(Self { bom, body })
    }

    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        [self.bom, &self.body]
    }
}

/// Saves new content in place of the old, which must still be what the file holds. Returns what the new file looks like.
pub(crate) fn save_parts(
    subject: &TargetFile,
    old: Option<&FileContent>,
    parts: &[&[u8]],
    cx: &ToolContext,
) -> Result<Option<FileStamp>, String> {
    let version = old.map(|old| old.version);
    save(&subject.resolved, version, parts, &cx.cancel).map_err(|error| format!("{} {error}.", subject.shown))
}

/// What the conversation knows of a file with this content, of which all or a part was seen.
pub(crate) fn seen_parts(
    subject: &TargetFile,
    parts: &[&[u8]],
    whole: bool,
    stamp: Option<FileStamp>,
) -> FileSeen {
    let mut seen = SeenBuilder::default();
    for part in parts {
        seen.update(part);
    }
    FileSeen { stamp, ..seen.finish(subject.resolved.clone(), whole) }
}

/// The refusal for a character that the file's encoding does not have.
pub(crate) fn lacking(lacking: &UnencodableChar, subject: &TargetFile, content: &FileContent) -> String {
    let encoding = content.encoding.name();
    format!(
        "Not changed: {} is encoded as {encoding}, which has no {:?} (U+{:04X}). Use only characters of \
         that encoding, or convert the file first.",
        subject.shown,
        lacking.0,
        u32::from(lacking.0)
    )
}

/// The former content in structured output.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum OriginalText<'a> {
    Missing(Option<()>),
    Text(Cow<'a, str>),
    /// Too large to repeat.
    #[serde(skip)]
    Large,
}

impl<'a> OriginalText<'a> {
    pub(crate) fn new(content: Option<&'a FileContent>) -> Self {
        match content.map(FileContent::text_if_small) {
            None => Self::Missing(None),
            Some(Some(text)) => Self::Text(text),
            Some(None) => Self::Large,
        }
    }

    pub(crate) fn is_large(&self) -> bool {
        matches!(self, Self::Large)
    }
}
