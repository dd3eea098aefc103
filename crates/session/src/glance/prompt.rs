//! The first prompt of a session, for lists.

use memchr::memmem;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_text::shorten;

use super::{has_flag, members, text};

/// A longer prompt is cut.
const CHARS_MAX: usize = 200;

/// What programs put in the place of a prompt.
const NO_PROMPTS: [&str; 5] =
    ["<local-command-stdout>", "<session-start-hook>", "<tick>", "<goal>", "[Request interrupted by user"];

/// The first text of a user that is a prompt; else the name of the first command.
pub(super) fn first(head: &[u8], whole: bool) -> Option<String> {
    let mut command = None;
    let mut lines = head.split(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let is_cut = !whole && lines.peek().is_none();
        if !may_be_prompt(line) {
            continue;
        }
        let texts = if is_cut { beginning(line).into_iter().collect() } else { texts(line) };
        for text in texts {
            let text = text.replace('\n', " ").trim().to_owned();
            match name_of_command(&text) {
                _ if text.is_empty() || is_no_prompt(&text) => {}
                Some(name) => command = command.or(Some(name)),
                None => return Some(cut(&text)),
            }
        }
    }
    command
}

/// Whether a line can hold a prompt, as other programs judge it.
fn may_be_prompt(line: &[u8]) -> bool {
    let has = |needle: &[u8]| memmem::find(line, needle).is_some();
    (has(b"\"type\":\"user\"") || has(b"\"type\": \"user\""))
        && !has(b"\"tool_result\"")
        && !has_flag(line, "isMeta")
        && !has_flag(line, "isCompactSummary")
}

fn texts(line: &[u8]) -> Vec<String> {
    let Some(members) = members(line) else { return Vec::new() };
    if text(&members, "type").as_deref() != Some("user") {
        return Vec::new();
    }
    let message = members.get("message").map(|message| RawValue::get(message));
    let message: Value = message.and_then(|message| serde_json::from_str(message).ok()).unwrap_or_default();
    match &message["content"] {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            texts.filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

/// The beginning of the text of a line that was cut: a long first prompt is still the first prompt.
fn beginning(line: &[u8]) -> Option<String> {
    let message = memmem::find(line, b"\"message\"")?;
    let starts = [&b"\"content\":\""[..], b"\"content\": \"", b"\"text\":\"", b"\"text\": \""];
    let ends = starts.iter().filter_map(|start| Some(memmem::find(&line[message..], start)? + start.len()));
    beginning_of_string(&line[message + ends.min()?..])
}

/// The beginning of a JSON text, from behind its quote, up to its end or as far as it goes.
pub(super) fn beginning_of_string(bytes: &[u8]) -> Option<String> {
    /// More than is ever shown.
    const BYTES_MAX: usize = 4096;
    /// The longest escape; a cut goes through one at most.
    const ESCAPE_BYTES: usize = 12;
    let bytes = &bytes[..bytes.len().min(BYTES_MAX)];
    let mut escaped = false;
    let end = bytes.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    let end = end.unwrap_or(bytes.len());
    (end.saturating_sub(ESCAPE_BYTES)..=end).rev().find_map(|end| {
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        serde_json::from_str(&format!("\"{text}\"")).ok()
    })
}

fn is_no_prompt(text: &str) -> bool {
    let is_element =
        |name: &str| text.starts_with(&format!("<{name}>")) && text.ends_with(&format!("</{name}>"));
    NO_PROMPTS.iter().any(|start| text.starts_with(start))
        || is_element("ide_opened_file")
        || is_element("ide_selection")
}

fn name_of_command(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<command-name>")?;
    let (name, _) = rest.split_once("</command-name>")?;
    Some(name.to_owned())
}

fn cut(text: &str) -> String {
    shorten::beginning(text, CHARS_MAX)
        .map_or_else(|| text.to_owned(), |cut| format!("{}\u{2026}", cut.trim_end()))
}
