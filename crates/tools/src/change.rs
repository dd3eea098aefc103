//! What Edit and Write have in common: what must hold before a file is changed, and its new content.

use std::borrow::Cow;

use serde_json::Value;
use windlass_ports::ToolContext;
use windlass_protocol::{FileSeen, ToolOutput};
use xxhash_rust::xxh3::xxh3_64;

use crate::content::{FileContent, STRUCTURED_BYTES_MAX, load, uniform_line_end, with_lf};
use crate::file::{TargetFile, without_nulls};
use crate::fingerprint::{describe_change, seen_bytes};
use crate::save::save;
use crate::text_encoding::TextEncoding;

/// A change of one file, and what it holds before that.
pub(crate) struct PendingChange<'a> {
    pub(crate) subject: TargetFile,
    /// Nothing if there is no such file yet.
    pub(crate) old: Option<FileContent>,
    cx: &'a ToolContext,
}

impl<'a> PendingChange<'a> {
    pub(crate) fn new(file_path: &str, cx: &'a ToolContext) -> Result<Self, String> {
        let subject = TargetFile::new(file_path, cx)?;
        let old = load(&subject.resolved, &subject.shown)?;
        Ok(Self { subject, old, cx })
    }

    /// The file must have been seen, and must still hold what was seen. Returns whether all of it was shown.
    pub(crate) fn check_seen(&self, old: &FileContent) -> Result<bool, String> {
        let shown = &self.subject.shown;
        let Some(seen) = self.cx.seen_file(&self.subject.resolved) else {
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
        Ok(seen.is_whole)
    }

    /// Replacement characters stand for text that was lost; unless the file holds them, they must not get into it.
    pub(crate) fn check_no_loss(&self, new: &str) -> Result<(), String> {
        let is_held = || {
            let text = self.old.as_ref().and_then(|old| old.encoding.decode_exact(old.body()));
            text.is_some_and(|text| text.contains('\u{fffd}'))
        };
        if !new.contains('\u{fffd}') || is_held() {
            return Ok(());
        }
        Err("The new text contains the replacement character U+FFFD, which stands for text that could not be \
             decoded; writing it would lose that text. Leave those places out of the change. To write the \
             character itself, use an escape of the language, or Bash."
            .to_owned())
    }

    /// Saves all of the file's text, with the byte order mark, the encoding and the line ends of the old file.
    pub(crate) fn save_text(&self, text: &str) -> Result<FileSeen, String> {
        if self.old.is_none() {
            self.subject.check_new_name()?;
        }
        self.check_no_loss(text)?;
        let Some(old) = &self.old else {
            return self.save(text.as_bytes(), /*whole*/ true);
        };
        let bom = old.encoding.bom();
        let text = if bom.is_empty() { text } else { text.strip_prefix('\u{feff}').unwrap_or(text) };
        let mut text = Cow::Borrowed(text);
        if let Some(end @ ("\r\n" | "\r")) = uniform_line_end(old.text().as_bytes()) {
            text = with_lf(&text).replace('\n', end).into();
        }
        let body = old.encoding.encode(&text);
        let body = body.map_err(|character| lacking(character, &self.subject.shown, old.encoding))?;
        self.save(&[bom, &body].concat(), /*whole*/ true)
    }

    /// Saves new content in place of the old, if that is still there; returns what is then known of the file.
    pub(crate) fn save(&self, new: &[u8], is_whole: bool) -> Result<FileSeen, String> {
        let TargetFile { resolved, shown, .. } = &self.subject;
        let stamp = match &self.old {
            Some(old) if old.bytes == new => Some(old.stamp),
            old => save(resolved, old.as_ref().map(|old| old.stamp), new, &self.cx.cancel)
                .map_err(|error| format!("{shown} {error}."))?,
        };
        Ok(FileSeen { stamp, ..seen_bytes(resolved.clone(), new, is_whole) })
    }

    /// What is given back: beside `output`, the file and its former content (null if new), without what is too large.
    pub(crate) fn tool_output(&self, text: &str, output: Value, seen: FileSeen) -> ToolOutput {
        let mut output = without_nulls(output);
        output["filePath"] = self.subject.file_path().into();
        if self.old.as_ref().is_none_or(|old| old.bytes.len() <= STRUCTURED_BYTES_MAX) {
            output["originalFile"] = self.old.as_ref().map(FileContent::text).into();
        }
        ToolOutput::text(text).with_structured(&output).with_seen(seen)
    }
}

/// The refusal for a character that the file's encoding does not have.
pub(crate) fn lacking(character: char, shown: &str, encoding: TextEncoding) -> String {
    format!(
        "Not changed: {shown} is encoded as {}, which has no {character:?} (U+{:04X}). Use only characters of \
         that encoding, or convert the file first.",
        encoding.name(),
        u32::from(character)
    )
}

pub(crate) fn unless_large(text: &str) -> Option<&str> {
    (text.len() <= STRUCTURED_BYTES_MAX).then_some(text)
}
