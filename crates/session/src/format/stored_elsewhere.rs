//! What was heard is often said again in the very next lines: a block that a model completed, what a tool returned, a prompt.
//! It is stored once; the line of what was heard names the place and a sum of it.

use std::slice::from_ref;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use windlass_protocol::{Block, Event, Input, MessageId, ModelEvent, Prompt, Record, ToolOutput};

use super::field_forms::{Hex, object, text};

/// Less than this is stored twice rather than by reference.
const BYTES_MIN: usize = 256;

/// Stands in front of what a result says. In a string, the quotes would be escaped.
const CONTENT: &[u8] = br#""content":"#;

/// Where the rest of what was heard stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredElsewhere {
    line: HoldingLine,
    /// The message; none for a prompt that waits.
    n: Option<MessageId>,
    crc: u32,
    /// Whether the structured form of what a tool returned is there, too.
    has_structured: bool,
}

object!(StoredElsewhere { line = "is", n, crc: Hex, has_structured = "structured" });

/// A kind of line that holds blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HoldingLine {
    Answered,
    Result,
    Said,
    Queued,
}

/// What is left to store of what was heard, and where the rest of it stands among the records that follow.
pub(crate) fn split(input: &Input, following: &[Record]) -> Option<(Input, StoredElsewhere)> {
    let (event, held) = match &input.event {
        Event::Model(request, ModelEvent::Block { index, block }) => {
            let held = following.iter().find_map(|record| holds_block(record, block))?;
            let event = ModelEvent::Block { index: *index, block: Block::text("") };
            (Event::Model(*request, event), held)
        }
        Event::Finished(call, output) => {
            let held = following.iter().find_map(|record| holds_output(record, output))?;
            let structured = output.structured.clone().filter(|_| !held.has_structured);
            let rest = ToolOutput { content: Vec::new(), structured, ..output.clone() };
            (Event::Finished(*call, rest), held)
        }
        Event::Submit(prompt) | Event::Steer(prompt) => {
            let held = following.iter().find_map(|record| holds_prompt(record, prompt))?;
            let again = if matches!(input.event, Event::Submit(_)) { Event::Submit } else { Event::Steer };
            (again(Prompt { context: Vec::new(), blocks: Vec::new(), ..prompt.clone() }), held)
        }
        _ => return None,
    };
    Some((Input { event, ..*input }, held))
}

/// The blocks of a line; of a prompt, those in front and its own.
type HeldBlocks<'a> = [&'a [Block]; 2];

/// The line that a record becomes: its kind, its message and the blocks in it.
fn holding_line(record: &Record) -> Option<(HoldingLine, Option<MessageId>, HeldBlocks<'_>)> {
    Some(match record {
        Record::Answered(answered) => {
            (HoldingLine::Answered, Some(answered.id), [from_ref(&answered.block), &[]])
        }
        Record::Result(result) => (HoldingLine::Result, Some(result.id), [from_ref(&result.result), &[]]),
        Record::Said(said) => (HoldingLine::Said, Some(said.message.id), [&said.message.blocks, &[]]),
        Record::Queued(queued) => (HoldingLine::Queued, None, [&queued.context, &queued.blocks]),
        _ => return None,
    })
}

/// Whether a record is the place where the rest should stand.
pub(crate) fn is_place(held: &StoredElsewhere, record: &Record) -> bool {
    holding_line(record).is_some_and(|(line, n, _)| (line, n) == (held.line, held.n))
}

/// The place that a record is, with the sum of what it holds.
fn place(record: &Record, has_structured: bool) -> Option<StoredElsewhere> {
    let (line, n, blocks) = holding_line(record)?;
    Some(StoredElsewhere { line, n, crc: sum(blocks.into_iter().flatten()), has_structured })
}

/// Puts back what a record holds; whether it was the right one.
pub(crate) fn fill(event: &mut Event, held: &StoredElsewhere, record: &Record) -> bool {
    // Whether the structured form is there, too, only the line of what was heard tells.
    if !is_place(held, record) || place(record, held.has_structured).as_ref() != Some(held) {
        return false;
    }
    match (event, record) {
        (Event::Model(_, ModelEvent::Block { block, .. }), Record::Answered(answered)) => {
            *block = answered.block.clone();
        }
        (Event::Finished(_, output), Record::Result(result)) => {
            let Some(content) = content(&result.result) else { return false };
            output.content = content;
            if held.has_structured {
                output.structured.clone_from(&result.structured);
            }
        }
        (Event::Submit(prompt) | Event::Steer(prompt), Record::Said(said)) => {
            let (context, blocks) = said.message.blocks.split_at(said.context.min(said.message.blocks.len()));
            (prompt.context, prompt.blocks) = (context.to_vec(), blocks.to_vec());
        }
        (Event::Submit(prompt) | Event::Steer(prompt), Record::Queued(queued)) => {
            (prompt.context, prompt.blocks) = (queued.context.clone(), queued.blocks.clone());
        }
        _ => return false,
    }
    true
}

fn holds_block(record: &Record, block: &Block) -> Option<StoredElsewhere> {
    let Record::Answered(answered) = record else { return None };
    let holds = answered.block == *block && block.json().len() >= BYTES_MIN;
    if holds { place(record, false) } else { None }
}

fn holds_output(record: &Record, output: &ToolOutput) -> Option<StoredElsewhere> {
    let Record::Result(result) = record else { return None };
    let holds = result.result.json().len() >= BYTES_MIN
        && (holds_text(&result.result, &output.content)
            || content(&result.result).as_ref() == Some(&output.content));
    let structured = output.structured.is_some() && output.structured == result.structured;
    if holds { place(record, structured) } else { None }
}

fn holds_prompt(record: &Record, prompt: &Prompt) -> Option<StoredElsewhere> {
    let blocks = || prompt.context.iter().chain(&prompt.blocks);
    let holds = match record {
        Record::Said(said) => said.context == prompt.context.len() && said.message.blocks.iter().eq(blocks()),
        Record::Queued(queued) => queued.context == prompt.context && queued.blocks == prompt.blocks,
        _ => false,
    };
    let length: usize = blocks().map(|block| block.json().len()).sum();
    if holds && length >= BYTES_MIN { place(record, false) } else { None }
}

/// Whether a result says the one text that was returned, both as we write them: then their bytes tell, however many they are.
fn holds_text(result: &Block, returned: &[Block]) -> bool {
    let [text] = returned else { return false };
    let Some(text) =
        text.json().strip_prefix(r#"{"type":"text","text":"#).and_then(|rest| rest.strip_suffix('}'))
    else {
        return false;
    };
    // In a string, the second of these quotes would be escaped: another field begins here.
    if memmem::find(text.as_bytes(), br#"",""#).is_some() {
        return false;
    }
    let said = memmem::find(result.json().as_bytes(), CONTENT).map(|at| &result.json()[at + CONTENT.len()..]);
    said.and_then(|said| said.strip_prefix(text)).is_some_and(|rest| rest.starts_with([',', '}']))
}

/// What a tool must have returned for this result.
fn content(result: &Block) -> Option<Vec<Block>> {
    let fields = windlass_protocol::RawObject::parse(result.json()).ok()?;
    match fields.get("content") {
        None => Some(Vec::new()),
        Some(content) if content.get().starts_with('"') => Some(vec![Block::text(&text(content).ok()?)]),
        Some(_) => Some(result.result_blocks()),
    }
}

fn sum<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for block in blocks {
        hasher.update(block.json().as_bytes());
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_its_result_by_its_bytes() {
        let check = |returned: &str, result: &str, expected: bool| {
            let block = |json: &str| Block::from_json(json).unwrap();
            assert_eq!(holds_text(&block(result), &[block(returned)]), expected, "{returned} in {result}");
        };
        let result = |content: &str| {
            format!(r#"{{"type":"tool_result","tool_use_id":"\"content\":","content":{content}}}"#)
        };
        let text = |content: &str| format!(r#"{{"type":"text","text":{content}}}"#);
        for said in
            [r#""""#, r#""plain""#, r#""a \"quote\", and \\""#, r#""\",\"content\":""#, r#""ö\n\u0001""#]
        {
            check(&text(said), &result(said), true);
            check(&text(said), &result(r#""something else""#), false);
        }
        check(&text(r#""a""#), &result(r#""ab""#), false);
        check(r#"{"type":"text","text":"a","is_error":true}"#, &result(r#""a","is_error":true"#), false);
        check(&text(r#""a""#), &result(r#""a","is_error":true"#), true);
        check(r#"{"text":"a","type":"text"}"#, &result(r#""a""#), false);
        check(&text(r#""a""#), r#"{"type":"tool_result","tool_use_id":"t"}"#, false);
    }

    #[test]
    fn what_the_bytes_tell_is_what_a_reader_finds() {
        for text in ["", "plain", "\"q\",\"r\"", "a\\\u{1}\u{7f}\u{2028}\tö\r\n", "\"content\":"] {
            let returned = [Block::text(text)];
            let result = Block::tool_result("t", &returned, false);
            if holds_text(&result, &returned) {
                assert_eq!(content(&result), Some(returned.to_vec()), "{text}");
            } else {
                assert!(text.is_empty(), "{text}");
            }
        }
    }
}
