//! A transcript as plain text, for a model that has to say what it is about.

use std::fmt::Write as _;
use std::sync::Arc;

use windlass_protocol::{Block, BlockKind, Message, Role};

use super::media::stub_text;
use super::results;
use super::text::clip;

/// The messages as text: who speaks and what is said, results cut to so many characters, the whole to so many. Thinking is
/// left out.
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
