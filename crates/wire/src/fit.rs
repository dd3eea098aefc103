//! Keeping each line under the size at which a host gives up.
//!
//! A line that is too long is written again with less detail, step by step, and stays one valid JSON object.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_protocol::{Block, BlockKind};

/// The most bytes of one line. Hosts read up to 1,048,576 characters; the rest is distance.
pub(crate) const LINE_BYTES_MAX: usize = 1_000_000;

/// How much of a message a line carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything.
    Whole,
    /// Everything but the structured form of a tool's result, which repeats its content.
    WithoutStructured,
    /// Also without large pictures and documents, and strings cut to this many bytes of JSON.
    Shortened(usize),
    /// Only what makes the message valid.
    Bare,
}

const LADDER: [Detail; 6] = [
    Detail::Whole,
    Detail::WithoutStructured,
    Detail::Shortened(256 * 1024),
    Detail::Shortened(16 * 1024),
    Detail::Shortened(256),
    Detail::Bare,
];

/// Appends a line, with as much detail as fits. `write` must write one JSON object at the given detail.
pub(crate) fn append(out: &mut Vec<u8>, mut write: impl FnMut(Detail, &mut Vec<u8>)) {
    let start = out.len();
    for detail in LADDER {
        out.truncate(start);
        write(detail, out);
        if let Detail::Shortened(bytes_max) = detail {
            let short = shorten_strings(&out[start..], bytes_max);
            out.truncate(start);
            out.extend_from_slice(&short);
        }
        if out.len() - start <= LINE_BYTES_MAX {
            break;
        }
    }
    if out.len() > start {
        out.push(b'\n');
    }
}

/// Appends a line whose size is known to be small.
pub(crate) fn append_small(out: &mut Vec<u8>, line: &impl Serialize) {
    append(out, |_, out| write_json(line, out));
}

/// Writes a value of ours as JSON. Such values hold strings, numbers and JSON that was checked when it
/// came in, none of which can fail; if one did, no line is better than half of one.
pub(crate) fn write_json(value: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
    }
}

/// The block at the given detail.
pub(crate) fn block_at(block: &Block, detail: Detail) -> Block {
    match detail {
        Detail::Whole | Detail::WithoutStructured => block.clone(),
        Detail::Shortened(bytes_max) => without_media(block, bytes_max),
        Detail::Bare => bare(block),
    }
}

fn bare(block: &Block) -> Block {
    let note = left_out(block.json().len());
    match block.kind() {
        BlockKind::ToolUse(tool_use) => Block::tool_use(&tool_use.id, &tool_use.name, &empty_object()),
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
            let Some(content) = content else {
                return block.clone();
            };
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
    format!("[{bytes} bytes left out to keep this line short]")
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

/// The length of a JSON string's inside up to its closing quote, and the last place at or before `bytes_max`
/// where it can be cut without splitting an escape, a surrogate pair or a character.
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

fn unicode_escape_length(escape: &[u8]) -> usize {
    let is_high = escape.get(2..4).is_some_and(|digits| {
        digits[0].eq_ignore_ascii_case(&b'd') && (b'8'..=b'b').contains(&digits[1].to_ascii_lowercase())
    });
    if is_high { 12 } else { 6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, bytes_max: usize, expected: &str) {
        let short = String::from_utf8(shorten_strings(json.as_bytes(), bytes_max)).unwrap();
        assert_eq!(short, expected);
        serde_json::from_str::<serde_json::Value>(&short).unwrap();
    }

    #[test]
    fn strings_are_cut_between_characters_and_escapes() {
        check(r#"{"a":"1234"}"#, 4, r#"{"a":"1234"}"#);
        check(
            r#"{"a":"12345","b":[1,true]}"#,
            4,
            r#"{"a":"1234[1 bytes left out to keep this line short]","b":[1,true]}"#,
        );
        check(r#""abc\n12""#, 4, r#""abc[4 bytes left out to keep this line short]""#);
        check(r#""ab\u00e9x""#, 4, r#""ab[7 bytes left out to keep this line short]""#);
        check(r#""\ud83d\ude00xx""#, 8, r#""[14 bytes left out to keep this line short]""#);
        check("\"aé€😀\"", 4, "\"aé[7 bytes left out to keep this line short]\"");
        check(r#"["\\","x\"y"]"#, 4, r#"["\\","x\"y"]"#);
    }

    #[test]
    fn large_pictures_become_a_note() {
        let picture = Block::image("image/png", &"A".repeat(2000));
        let result = Block::tool_result("t", &[Block::text("seen"), picture.clone()], false);
        let seen = block_at(&result, Detail::Shortened(1000));
        assert_eq!(
            seen.json(),
            format!(
                r#"{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"text","text":"seen"}},{{"type":"text","text":"[{} bytes left out to keep this line short]"}}]}}"#,
                picture.json().len()
            )
        );
        assert_eq!(block_at(&result, Detail::WithoutStructured), result);
    }

    #[test]
    fn a_line_of_many_small_pieces_falls_back_to_the_bare_message() {
        let input = format!("[{}1]", "1,".repeat(LINE_BYTES_MAX));
        let input = format!(r#"{{"numbers":{input}}}"#);
        let block = Block::tool_use("t", "N", &RawValue::from_string(input).unwrap());
        let mut out = b"before\n".to_vec();
        append(&mut out, |detail, out| write_json(&block_at(&block, detail), out));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "before\n{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"N\",\"input\":{}}\n"
        );
    }
}
