//! What Edit and Write have in common: what must hold before a file is changed, and its new content.

use std::borrow::Cow;

use serde_json::Value;
use windlass_ports::ToolContext;
use windlass_protocol::FileSeen;
use xxhash_rust::xxh3::xxh3_64;

use crate::content::{FileContent, STRUCTURED_BYTES_MAX, uniform_line_end, with_lf};
use crate::file::{TargetFile, without_nulls};
use crate::fingerprint::{describe_change, seen_bytes};
use crate::save::save;

/// The file must have been seen, and must still hold what was seen. Returns whether all of it was shown.
pub(crate) fn check_seen(subject: &TargetFile, old: &FileContent, cx: &ToolContext) -> Result<bool, String> {
    let shown = &subject.shown;
    let Some(seen) = cx.seen(&subject.resolved) else {
        return Err(format!(
            "Not changed: you have not read {shown} in this conversation. Read it first; in a long file, \
             Read the lines to change with `offset` and `limit`: a PARTIAL view does not count."
        ));
    };
    if seen.hash != xxh3_64(&old.bytes) {
        let change = describe_change(seen, &old.bytes, old.encoding);
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

/// Saves `text` as all of a file's content, which is new or keeps the byte order mark, the encoding and the line ends of the old.
pub(crate) fn save_text(
    text: &str,
    subject: &TargetFile,
    old: Option<&FileContent>,
    cx: &ToolContext,
) -> Result<FileSeen, String> {
    if old.is_none() {
        subject.check_new_name()?;
    }
    check_no_loss(text, old)?;
    let new = old.map_or_else(|| Ok(text.as_bytes().to_vec()), |old| encoded_like(old, text, subject))?;
    save_content(subject, old, &new, /*whole*/ true, cx)
}

fn encoded_like(old: &FileContent, text: &str, subject: &TargetFile) -> Result<Vec<u8>, String> {
    let bom = old.encoding.bom();
    let text = if bom.is_empty() { text } else { text.strip_prefix('\u{feff}').unwrap_or(text) };
    let mut text = Cow::Borrowed(text);
    if let Some(end @ ("\r\n" | "\r")) = uniform_line_end(old.text().as_bytes()) {
        text = with_lf(&text).replace('\n', end).into();
    }
    let body = old.encoding.encode(&text).map_err(|character| lacking(character, subject, old))?;
    Ok([bom, &body].concat())
}

/// Saves new content in place of the old, if that is still there; returns what is then known of the file.
pub(crate) fn save_content(
    subject: &TargetFile,
    old: Option<&FileContent>,
    new: &[u8],
    whole: bool,
    cx: &ToolContext,
) -> Result<FileSeen, String> {
    let stamp = match old {
        Some(old) if old.bytes == new => Some(old.stamp),
        _ => save(&subject.resolved, old.map(|old| old.stamp), new, &cx.cancel)
            .map_err(|error| format!("{} {error}.", subject.shown))?,
    };
    Ok(FileSeen { stamp, ..seen_bytes(subject.resolved.clone(), new, whole) })
}

/// The refusal for a character that the file's encoding does not have.
pub(crate) fn lacking(character: char, subject: &TargetFile, content: &FileContent) -> String {
    format!(
        "Not changed: {} is encoded as {}, which has no {character:?} (U+{:04X}). Use only characters of \
         that encoding, or convert the file first.",
        subject.shown,
        content.encoding.name(),
        u32::from(character)
    )
}

/// Adds the file and its former content (null if new) to a structured change, without what is too large.
pub(crate) fn change_output(subject: &TargetFile, old: Option<&FileContent>, output: Value) -> Value {
    let mut output = without_nulls(output);
    output["filePath"] = subject.file_path().into();
    if old.is_none_or(|old| old.bytes.len() <= STRUCTURED_BYTES_MAX) {
        output["originalFile"] = old.map(FileContent::text).into();
    }
    output
}

pub(crate) fn unless_large(text: &str) -> Option<&str> {
    (text.len() <= STRUCTURED_BYTES_MAX).then_some(text)
}
