//! Keeps each line under the size at which a host gives up: with less detail, it stays one JSON object.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_protocol::{Block, BlockKind};

/// The most bytes of one line. Hosts read up to 1,048,576 characters; the rest is distance.
pub(crate) const LINE_BYTES_MAX: usize = 1_000_000;

/// How much of a message a line carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DetailLevel {
    /// Everything.
    Whole,
    /// Everything but the structured form of a tool's result, which repeats its content.
    WithoutStructured,
    /// Also without large pictures and documents, and strings cut to this many bytes of JSON.
    Shortened(usize),
    /// Only what makes the message valid, and plain text.
    Bare,
}

const ALL: usize = usize::MAX;

/// The most items of a list on a line that is too long because of their number.
const ITEMS_MAX: usize = 500;

/// Steps that shorten a line, the cheapest first: detail, most bytes of a string, most items of a list.
const LADDER: [(DetailLevel, usize, usize); 8] = [
    (DetailLevel::Whole, ALL, ALL),
    (DetailLevel::WithoutStructured, ALL, ALL),
    (DetailLevel::Shortened(256 * 1024), 256 * 1024, ALL),
    (DetailLevel::Shortened(16 * 1024), 16 * 1024, ALL),
    (DetailLevel::Shortened(256), 256, ALL),
    (DetailLevel::Bare, 256 * 1024, ALL),
    (DetailLevel::Shortened(256), 256, ITEMS_MAX),
    (DetailLevel::Bare, 256, ITEMS_MAX),
];

/// Appends a line, with as much detail as fits. `write` must write one JSON object at the given detail.
pub(crate) fn append(out: &mut Vec<u8>, mut write: impl FnMut(DetailLevel, &mut Vec<u8>)) {
    let start = out.len();
    for (detail, string_bytes_max, items_max) in LADDER {
        out.truncate(start);
        write(detail, out);
        escape_separators(out, start);
        if string_bytes_max < ALL {
            replace_from(out, start, |json| shorten_strings(json, string_bytes_max));
        }
        if items_max < ALL {
            replace_from(out, start, |json| shorten_lists(json, items_max));
        }
        if out.len() - start <= LINE_BYTES_MAX {
            break;
        }
    }
    if out.len() > start {
        out.push(b'\n');
    }
}

/// Unicode's own ends of lines, which some readers split at, and how JSON can say them otherwise.
const SEPARATORS: [(&[u8], &[u8]); 3] =
    [(b"\xC2\x85", b"\\u0085"), (b"\xE2\x80\xA8", b"\\u2028"), (b"\xE2\x80\xA9", b"\\u2029")];

/// Leaves the line feed as the only end of a line. Inside JSON such characters stand in strings alone.
fn escape_separators(out: &mut Vec<u8>, start: usize) {
    let find = |bytes: &[u8]| {
        memchr::memchr2_iter(0xC2, 0xE2, bytes).find_map(|at| {
            let (raw, escaped) = SEPARATORS.iter().find(|(raw, _)| bytes[at..].starts_with(raw))?;
            Some((at, raw.len(), *escaped))
        })
    };
    if find(&out[start..]).is_none() {
        return;
    }
    let line = out.split_off(start);
    let mut rest = &line[..];
    while let Some((at, length, escaped)) = find(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(escaped);
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
}

fn replace_from(out: &mut Vec<u8>, start: usize, shorten: impl FnOnce(&[u8]) -> Vec<u8>) {
    let short = shorten(&out[start..]);
    out.truncate(start);
    out.extend_from_slice(&short);
}

/// Appends a line that has no detail to leave out: if it is too long, its strings and lists are cut.
pub(crate) fn append_plain(out: &mut Vec<u8>, line: &impl Serialize) {
    append(out, |_, out| write_json(line, out));
}

/// Writes a value of ours as JSON. None of its parts can fail; if one did, no line is better than half of one.
pub(crate) fn write_json(value: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
    }
}

/// The block at the given detail.
pub(crate) fn block_at(block: &Block, detail: DetailLevel) -> Block {
    match detail {
        DetailLevel::Whole | DetailLevel::WithoutStructured => block.clone(),
        DetailLevel::Shortened(bytes_max) => without_media(block, bytes_max),
        DetailLevel::Bare => bare(block),
    }
}

fn bare(block: &Block) -> Block {
    let note = left_out(block.json().len());
    match block.kind() {
        BlockKind::ToolUse(tool_use) => Block::tool_use(&tool_use.id, &tool_use.name, empty_object()),
        BlockKind::ToolResult { tool_use_id, is_error } => {
            Block::tool_result(tool_use_id, &[Block::text(&note)], *is_error)
        }
        _ => Block::text(&note),
    }
}

/// An empty JSON object, standing in for an input that is too large to show.
pub(crate) fn empty_object() -> Arc<RawValue> {
    RawValue::from_string("{}".into()).unwrap_or_default().into()
}

#[derive(Deserialize)]
struct ResultView<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Replaces pictures and documents larger than `bytes_max` by a note: cut base64 would be worse than none.
fn without_media(block: &Block, bytes_max: usize) -> Block {
    match block.kind() {
        BlockKind::Image | BlockKind::Document if block.json().len() > bytes_max => {
            Block::text(&left_out(block.json().len()))
        }
        BlockKind::ToolResult { tool_use_id, is_error } => {
            let content = serde_json::from_str::<ResultView<'_>>(block.json())
                .ok()
                .and_then(|view| view.content)
                .and_then(|content| serde_json::from_str::<Vec<&RawValue>>(content.get()).ok());
            let Some(content) = content else { return block.clone() };
            let blocks: Vec<Block> = content
                .iter()
                .filter_map(|raw| Block::from_json(raw.get()).ok())
                .map(|inner| without_media(&inner, bytes_max))
                .collect();
            Block::tool_result(tool_use_id, &blocks, *is_error)
        }
        _ => block.clone(),
    }
}

fn left_out(bytes: usize) -> String {
    format!("[{bytes} bytes omitted to keep this line short]")
}

/// Cuts every string of a JSON text that is longer than `bytes_max`, with a note of what is missing.
fn shorten_strings(json: &[u8], bytes_max: usize) -> Vec<u8> {
    let mut short = Vec::with_capacity(json.len().min(LINE_BYTES_MAX));
    let mut rest = json;
    while let Some(open) = rest.iter().position(|&byte| byte == b'"') {
        short.extend_from_slice(&rest[..=open]);
        rest = &rest[open + 1..];
        let (length, cut) = measure_string(rest, bytes_max);
        if length <= bytes_max {
            short.extend_from_slice(&rest[..length]);
        } else {
            short.extend_from_slice(&rest[..cut]);
            short.extend_from_slice(left_out(length - cut).as_bytes());
        }
        short.push(b'"');
        rest = rest.get(length + 1..).unwrap_or_default();
    }
    short.extend_from_slice(rest);
    short
}

/// The length of a JSON string's inside, and the last place up to `bytes_max` where a cut splits nothing.
fn measure_string(inside: &[u8], bytes_max: usize) -> (usize, usize) {
    let mut at = 0;
    let mut cut = 0;
    while at < inside.len() && inside[at] != b'"' {
        if at <= bytes_max {
            cut = at;
        }
        at += match inside[at] {
            b'\\' if inside.get(at + 1) == Some(&b'u') => unicode_escape_length(&inside[at..]),
            b'\\' | 0x80..=0xdf => 2,
            0x00..=0x7f => 1,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
        };
    }
    (at.min(inside.len()), cut)
}

/// Cuts every list with more than `items_max` items, with a note of how many are missing if it can hold one.
fn shorten_lists(json: &[u8], items_max: usize) -> Vec<u8> {
    let mut short = Vec::with_capacity(json.len().min(LINE_BYTES_MAX));
    // The lists and objects around the place; for a list, where its first item begins and how many there were.
    let mut around: Vec<Option<(usize, usize)>> = Vec::new();
    let mut at = 0;
    while at < json.len() {
        let mut next = at + token_length(&json[at..]);
        match json[at] {
            b'{' => around.push(None),
            b'[' => around.push(Some((next, 1))),
            b'}' | b']' => drop(around.pop()),
            b',' => {
                if let Some(Some((first, items))) = around.last_mut() {
                    if *items == items_max {
                        let (length, left) = rest_of_list(&json[at..]);
                        short.extend_from_slice(note_item(&json[*first..], left).as_bytes());
                        at += length;
                        continue;
                    }
                    *items += 1;
                }
            }
            _ => {}
        }
        next = next.min(json.len());
        short.extend_from_slice(&json[at..next]);
        at = next;
    }
    short
}

/// A string with its quotes, or one byte.
fn token_length(json: &[u8]) -> usize {
    if json[0] == b'"' { measure_string(&json[1..], 0).0 + 2 } else { 1 }
}

/// The length of a list's text from one of its commas up to its closing bracket, and the items in it.
fn rest_of_list(json: &[u8]) -> (usize, usize) {
    let mut items = 0;
    let mut depth = 0_usize;
    let mut at = 0;
    while at < json.len() {
        match json[at] {
            b'{' | b'[' => depth += 1,
            b']' if depth == 0 => break,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => items += 1,
            _ => {}
        }
        at += token_length(&json[at..]);
    }
    (at.min(json.len()), items)
}

/// A last item for a list that begins with `first`, where such an item does no harm.
fn note_item(first: &[u8], left: usize) -> String {
    let note = format!("[{left} more omitted to keep this line short]");
    match first {
        [b'"', ..] => format!(",\"{note}\""),
        [b'{', rest @ ..] if rest.starts_with(b"\"type\":") => {
            format!(r#",{{"type":"text","text":"{note}"}}"#)
        }
        _ => String::new(),
    }
}

fn unicode_escape_length(escape: &[u8]) -> usize {
    let is_high = escape.get(2..4).is_some_and(|digits| {
        digits[0].eq_ignore_ascii_case(&b'd') && (b'8'..=b'b').contains(&digits[1].to_ascii_lowercase())
    });
    if is_high { 12 } else { 6 }
}

#[cfg(test)]
mod tests;
