//! Text that has to be shorter, and a transcript as plain text, for a model that has to say what it is about.

use std::fmt::Write as _;
use std::sync::Arc;

use windlass_protocol::{Block, BlockKind, Message, Role};

use super::media::stub_text;
use super::results;

/// The beginning and the end of a text, with a word about what is left out; the whole if it is short enough.
pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    let chars = text.chars().count();
    if chars <= chars_max {
        return text.to_owned();
    }
    let (head, tail) = head_and_tail(text, chars_max);
    format!("{head}\n[… {} characters omitted …]\n{tail}", chars - chars_max)
}

/// The first three quarters and the last quarter of so many characters.
pub(crate) fn head_and_tail(text: &str, chars: usize) -> (&str, &str) {
    let tail_chars = chars / 4;
    let head_end = place_of(text.char_indices(), chars - tail_chars).unwrap_or(text.len());
    let tail_start = match tail_chars {
        0 => text.len(),
        count => text.char_indices().rev().nth(count - 1).map_or(0, |(place, _)| place),
    };
    (&text[..head_end], &text[tail_start.max(head_end)..])
}

fn place_of(mut chars: impl Iterator<Item = (usize, char)>, nth: usize) -> Option<usize> {
    chars.nth(nth).map(|(place, _)| place)
}

/// One line, at most so long.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match place_of(line.char_indices(), chars_max) {
        Some(end) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The messages as text without thinking: who speaks and what is said, results and the whole cut to so many characters.
pub(crate) fn render(messages: &[&Arc<Message>], result_chars: usize, chars_max: usize) -> String {
    let mut text = String::new();
    for message in messages {
        let speaker = match message.role {
            Role::User => "User",
            Role::Assistant => "Assistant",
        };
        for part in message.blocks.iter().filter_map(|block| block_text(block, result_chars)) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{speaker}: {part}\n\n");
        }
    }
    clip(text.trim_end(), chars_max)
}

fn block_text(block: &Block, result_chars: usize) -> Option<String> {
    Some(match block.kind() {
        BlockKind::Text(text) => text.to_string(),
        BlockKind::ToolUse(call) => format!("[calls {}] {}", call.name, clip(call.input.get(), result_chars)),
        BlockKind::ToolResult { is_error, .. } => {
            let word = if *is_error { "[the call failed]" } else { "[result]" };
            format!("{word} {}", clip(&results::text(block), result_chars))
        }
        BlockKind::Image | BlockKind::Document => stub_text(block),
        BlockKind::Thinking | BlockKind::RedactedThinking | BlockKind::Other(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::fixture::{calls, prompt, results, transcript};

    #[track_caller]
    fn check(text: &str, chars_max: usize, expected: &str) {
        assert_eq!(clip(text, chars_max), expected);
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        check("äbcdefgh", 8, "äbcdefgh");
        check("äbcdefghijkl", 8, "äbcdef\n[… 4 characters omitted …]\nkl");
        check("abc", 0, "\n[… 3 characters omitted …]\n");
        check("", 0, "");
        assert_eq!(one_line(" a\n b  c ", 9), "a b c");
        assert_eq!(one_line("äöü", 2), "äö…");
    }

    #[test]
    fn everything_but_thinking_is_said() {
        let messages = transcript(vec![
            prompt(1, "do it"),
            calls(2, &[("t", "Bash", r#"{"command":"ls"}"#)]),
            results(3, &[("t", "0123456789")]),
        ]);
        let list: Vec<&Arc<Message>> = messages.iter().collect();
        let expected =
            "User: do it\n\nAssistant: [calls Bash] {\"command\":\"ls\"}\n\nUser: [result] 0123456789";
        assert_eq!(render(&list, 100, 1_000), expected);
        assert!(render(&list, 4, 1_000).ends_with("[result] 012\n[… 6 characters omitted …]\n9"));
        assert!(render(&list, 100, 20).contains("characters omitted"));
    }
}
