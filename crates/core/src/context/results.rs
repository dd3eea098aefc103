//! Results of calls as blocks: what is in them, and what stands for them.

use std::path::Path;
use std::sync::Arc;

use windlass_protocol::{Block, BlockKind, RawObject};

use super::text::head_and_tail;

/// How the note begins that says where a result stands in full.
const STORED: &str = "[The full result has ";
/// How the placeholder of a cleared result begins.
const CLEARED: &str = "[Old result, cleared to make room.";

/// The call a result answers, and whether it is an error.
pub(crate) fn answered_call(block: &Block) -> Option<(&Arc<str>, bool)> {
    match block.kind() {
        BlockKind::ToolResult { tool_use_id, is_error } => Some((tool_use_id, *is_error)),
        _ => None,
    }
}

/// What is inside a result, its text as a block too.
pub(crate) fn content(result: &Block) -> Vec<Block> {
    let text: Option<String> = RawObject::parse(result.json()).ok().and_then(|object| object.read("content"));
    text.map_or_else(|| result.result_blocks(), |text| vec![Block::text(&text)])
}

/// The text of a result; pictures and documents are not part of it.
pub(crate) fn text(result: &Block) -> String {
    Block::texts(&content(result))
}

/// What the model sees of a result that stands in a file: its beginning and end, and where the rest is. Pictures stay.
pub(crate) fn preview(result: &Block, path: &Path, preview_chars: usize) -> Block {
    let Some((tool_use_id, is_error)) = answered_call(result) else { return result.clone() };
    let text = text(result);
    let chars = text.chars().count();
    let shown = if chars > preview_chars {
        let (head, tail) = head_and_tail(&text, preview_chars);
        format!("{head}\n[…]\n{tail}")
    } else {
        text
    };
    let note = format!(
        "{STORED}{chars} characters and is in {}. Read parts of that file or search it to see more.]",
        path.display()
    );
    let media = content(result).into_iter().filter(|block| block.as_text().is_none());
    let blocks: Vec<Block> =
        std::iter::once(Block::text(&format!("{shown}\n\n{note}"))).chain(media).collect();
    Block::tool_result(tool_use_id, &blocks, is_error)
}

/// What stands for an old result that was cleared; it says where the full form is, if it is in a file.
pub(crate) fn placeholder(result: &Block) -> Option<Block> {
    let (tool_use_id, is_error) = answered_call(result)?;
    let text = text(result);
    let note = text.lines().rev().find(|line| line.starts_with(STORED));
    let text = match note {
        Some(note) => format!("{CLEARED}] {note}"),
        None => format!("{CLEARED} Repeat the call if you need it.]"),
    };
    Some(Block::tool_result(tool_use_id, &[Block::text(&text)], is_error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(blocks: &[Block]) -> Block {
        Block::tool_result("t", blocks, false)
    }

    #[test]
    fn a_preview_shows_both_ends_and_says_where_the_rest_is() {
        let image = Block::image("image/png", "AAAA");
        let long = result(&[Block::text(&"ä".repeat(100)), image.clone()]);
        let preview = preview(&long, Path::new("/s/t.txt"), 8);
        let content = content(&preview);
        assert_eq!(
            content[0].as_text().unwrap(),
            "ääääää\n[…]\nää\n\n[The full result has 100 characters and is in /s/t.txt. Read parts of that file or search it to see more.]"
        );
        assert_eq!(content[1], image);
        let cleared = placeholder(&preview).unwrap();
        assert!(text(&cleared).contains("/s/t.txt"), "{cleared:?}");
    }

    #[track_caller]
    fn check(block: &Block, expected: &str) {
        assert_eq!(text(block), expected);
    }

    #[test]
    fn the_text_of_a_result_is_found_in_both_forms() {
        check(&result(&[Block::text("a\"b")]), "a\"b");
        check(&result(&[Block::text("a"), Block::image("image/png", "AAAA"), Block::text("b")]), "a\nb");
        check(&result(&[]), "");
    }
}
