//! Words of a session on the page: taken from blocks, redacted, cut, made visible and escaped, in this order.
//! What is cut first may no longer look like a secret.

use std::borrow::Cow;
use std::fmt::Write as _;

use windlass_protocol::{Block, BlockKind, RawObject, ToolUse};
use windlass_text::invisible::{Invisible, hides};

/// As much of a text is kept for the page, in bytes: far more than is shown, so that a secret is found whole.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// The beginning of a text.
pub(crate) fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(KEPT_BYTES_MAX)]
}

pub(crate) fn of_block(block: &Block) -> Cow<'_, str> {
    match block.kind() {
        BlockKind::Text(text) => Cow::Borrowed(text),
        BlockKind::Thinking => text_in(block, "thinking").unwrap_or_default().into(),
        BlockKind::RedactedThinking => "[encrypted thinking]".into(),
        BlockKind::ToolUse(tool_use) => of_tool_use(tool_use).into(),
        BlockKind::ToolResult { .. } => of_result(block),
        BlockKind::Image => "[picture]".into(),
        BlockKind::Document => "[document]".into(),
        BlockKind::Other(kind) => format!("[{kind}]").into(),
    }
}

/// The name of a tool and what it is given: texts as they are, since a secret is easier to find in them than in JSON.
fn of_tool_use(tool_use: &ToolUse) -> String {
    let mut text = tool_use.name.to_string();
    let json = tool_use.input.json();
    let Ok(input) = RawObject::parse(json.get()) else { return text };
    for (name, value) in input.iter() {
        let plain: Result<String, _> = serde_json::from_str(value.get());
        let _ = write!(text, " {name}: {}", plain.as_deref().unwrap_or(value.get()));
    }
    text
}

pub(crate) fn of_result(block: &Block) -> Cow<'_, str> {
    if let Some(text) = text_in(block, "content") {
        return text.into();
    }
    let inside = block.result_blocks();
    let texts: Vec<Cow<'_, str>> = inside.iter().map(of_block).collect();
    texts.join("\n").into()
}

fn text_in(block: &Block, field: &str) -> Option<String> {
    RawObject::parse(block.json()).ok()?.read(field)
}

/// Makes words of the session fit for the page.
pub(crate) struct PageText<'a> {
    pub(crate) redact: &'a dyn Fn(&str) -> Cow<'_, str>,
}

impl PageText<'_> {
    /// One line of at most so many characters; runs of blanks become one.
    pub(crate) fn line(&self, text: &str, chars_max: usize) -> String {
        let redacted = (self.redact)(text);
        let words: Vec<&str> = redacted.split_whitespace().collect();
        html(&words.join(" "), chars_max)
    }

    /// At most so many characters, with their line ends.
    pub(crate) fn paragraph(&self, text: &str, chars_max: usize) -> String {
        html(&(self.redact)(text.trim()), chars_max)
    }
}

/// HTML that holds so many characters of a text.
fn html(text: &str, chars_max: usize) -> String {
    let mut html = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(chars_max) {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' | '\t' => html.push(c),
            // The pictures of the control characters stand in their order.
            '\0'..='\x1f' => html.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            _ if is_hidden(c) => {
                let _ = write!(html, "\u{27e8}U+{:04X}\u{27e9}", u32::from(c));
            }
            _ => html.push(c),
        }
    }
    html.truncate(html.trim_end().len());
    if chars.next().is_some() {
        html.push('\u{2026}');
    }
    html
}

/// Controls, marks of direction, blanks without width, and characters that no page may hold. The joiners stay.
fn is_hidden(c: char) -> bool {
    hides(c, Invisible::Unshown) || u32::from(c) & 0xfffe == 0xfffe || ('\u{fdd0}'..='\u{fdef}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Cow<'_, str> {
        Cow::Borrowed(text)
    }

    #[test]
    fn nothing_of_a_session_is_markup() {
        let check =
            |text: &str, expected: &str| assert_eq!(PageText { redact: &plain }.line(text, 60), expected);
        check(
            "</script><b a=\"x\" c='d'>&amp;",
            "&lt;/script&gt;&lt;b a=&quot;x&quot; c=&#39;d&#39;&gt;&amp;amp;",
        );
        check("  two\n\n lines\t", "two lines");
        check(
            "a\u{202e}gnp.exe\u{200b}\u{feff}",
            "a\u{27e8}U+202E\u{27e9}gnp.exe\u{27e8}U+200B\u{27e9}\u{27e8}U+FEFF\u{27e9}",
        );
        check("a\x1b[31mb\0\x7f", "a\u{241b}[31mb\u{2400}\u{27e8}U+007F\u{27e9}");
        check(
            "\u{ffff}\u{1fffe}\u{fdd0}",
            "\u{27e8}U+FFFF\u{27e9}\u{27e8}U+1FFFE\u{27e9}\u{27e8}U+FDD0\u{27e9}",
        );
        check("می\u{200c}خواهم \u{1f469}\u{200d}\u{1f4bb}", "می\u{200c}خواهم \u{1f469}\u{200d}\u{1f4bb}");
    }

    #[test]
    fn texts_are_cut_after_they_are_redacted() {
        fn redact(text: &str) -> Cow<'_, str> {
            text.replace("secret-token", "[gone]").into()
        }
        let words = PageText { redact: &redact };
        assert_eq!(words.line("my secret-token is long", 8), "my [gone\u{2026}");
        assert_eq!(words.paragraph("a\n  b secret-token", 100), "a\n  b [gone]");
        assert_eq!(words.paragraph("abc", 3), "abc");
        assert_eq!(words.paragraph("abcd", 3), "abc\u{2026}");
        assert_eq!(beginning(&"é".repeat(10_000)).len(), KEPT_BYTES_MAX);
    }

    #[test]
    fn blocks_say_what_people_read() {
        let check =
            |json: &str, expected: &str| assert_eq!(of_block(&Block::from_json(json).unwrap()), expected);
        check(r#"{"type":"text","text":"a\nb"}"#, "a\nb");
        check(r#"{"type":"thinking","thinking":"hm \"x\"","signature":"s"}"#, "hm \"x\"");
        check(
            r#"{"type":"tool_use","id":"t","name":"Read","input":{"p":"a\"b","n":[1]}}"#,
            r#"Read p: a"b n: [1]"#,
        );
        check(r#"{"type":"tool_result","tool_use_id":"t","content":"a\nb"}"#, "a\nb");
        check(r#"{"type":"tool_result","tool_use_id":"t"}"#, "");
        check(
            r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},{"type":"image","source":{}}]}"#,
            "a\n[picture]",
        );
        check(r#"{"type":"news"}"#, "[news]");
    }
}
