//! How many tokens content is, without asking a provider.

use crate::{Block, BlockKind};

/// A picture counts as the most that current models take for one.
const PICTURE_TOKENS: u32 = 4_784;
/// A document counts as this many tokens for each 100 bytes of its base64 text.
const DOCUMENT_TOKENS_PER_100_BYTES: usize = 5;
/// What a tool use or a result costs besides its content.
const CALL_TOKENS: u32 = 15;

/// About how many tokens a block is. The estimate errs high: it assumes the densest current tokenizer.
///
/// ```
/// use windlass_protocol::{Block, estimate_tokens};
/// let words = Block::text(&"the quick brown fox ".repeat(50));
/// assert!((250..600).contains(&estimate_tokens(&words)));
/// ```
pub fn estimate_tokens(block: &Block) -> u32 {
    match block.kind() {
        BlockKind::Text(text) => estimate_text_tokens(text),
        BlockKind::Image => PICTURE_TOKENS,
        BlockKind::Document => {
            let tokens = block.json().len().saturating_mul(DOCUMENT_TOKENS_PER_100_BYTES) / 100;
            u32::try_from(tokens).unwrap_or(u32::MAX)
        }
        BlockKind::ToolResult { .. } => result_tokens(block).saturating_add(CALL_TOKENS),
        BlockKind::ToolUse(tool_use) => {
            estimate_text_tokens(tool_use.input.json().get()).saturating_add(CALL_TOKENS)
        }
        BlockKind::Thinking | BlockKind::RedactedThinking | BlockKind::Other(_) => {
            estimate_text_tokens(block.json())
        }
    }
}

/// A result may hold pictures, whose text form is far longer than what they cost.
fn result_tokens(result: &Block) -> u32 {
    let inside = if result.json().contains(r#""source""#) { result.result_blocks() } else { Vec::new() };
    if inside.is_empty() {
        return estimate_text_tokens(result.json());
    }
    inside.iter().map(estimate_tokens).fold(0, u32::saturating_add)
}

/// Estimates the tokens of a text: letters and blanks make long ones, digits and signs short ones, the rest one each.
pub fn estimate_text_tokens(text: &str) -> u32 {
    let (mut wordy, mut dense, mut wide) = (0_u64, 0_u64, 0_u64);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b' ' => wordy += 1,
            0x80..=0xBF => (),
            0xC0.. => wide += 1,
            _ => dense += 1,
        }
    }
    // In tenths of a token: 2.9 letters, 1.5 signs, one wide character each.
    let tenths = wordy * 10 * 10 / 29 + dense * 10 * 10 / 15 + wide * 10;
    u32::try_from(tenths.div_ceil(10)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(block: &Block, range: std::ops::Range<u32>) {
        let tokens = estimate_tokens(block);
        assert!(range.contains(&tokens), "{tokens} is not in {range:?}");
    }

    #[test]
    fn estimates_err_high_but_not_wildly() {
        check(&Block::text(&"a".repeat(290)), 100..101);
        check(&Block::text(&"fn main() { println!(\"{}\", 42); }\n".repeat(10)), 120..220);
        check(&Block::text(&"0123456789abcdef".repeat(100)), 700..1_400);
        check(&Block::text(&"漢字".repeat(100)), 200..201);
        check(&Block::image("image/png", &"A".repeat(1_000_000)), 4_784..4_785);
        let picture = Block::tool_result("t", &[Block::text("x"), Block::image("image/png", "AAAA")], false);
        check(&picture, 4_800..4_810);
        check(&Block::tool_result("t", &[], false), 15..60);
    }
}
