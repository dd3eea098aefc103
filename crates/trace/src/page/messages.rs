//! What was said, in short.

use std::fmt::Write as _;

use super::Sheet;
use crate::figures::{number, offset};
use crate::story::MessageExcerpt;

const TEXT_CHARS_MAX: usize = 320;

pub(super) fn draw(sheet: &Sheet<'_>, out: &mut String) {
    let messages = &sheet.story.messages;
    if messages.first.is_empty() {
        return;
    }
    out.push_str(
        "<section id=\"said\" aria-labelledby=\"said-h\">\n<h2 id=\"said-h\">Messages</h2>\n\
         <p class=\"quiet\">Only the beginning of each message; the log has the whole text.</p>\n<ol class=\"said\">\n",
    );
    for message in &messages.first {
        draw_message(sheet, message, out);
    }
    if messages.dropped > 0 {
        let _ =
            writeln!(out, "<li class=\"seam\">{} messages not shown</li>", number(messages.dropped as u64));
    }
    for message in &messages.last {
        draw_message(sheet, message, out);
    }
    out.push_str("</ol>\n</section>\n");
}

fn draw_message(sheet: &Sheet<'_>, message: &MessageExcerpt, out: &mut String) {
    let text = sheet.words.paragraph(&message.text, TEXT_CHARS_MAX);
    let when = message.run.map_or_else(String::new, |run| format!("{}\u{b7}{}", run + 1, offset(message.at)));
    let (class, note) = match (message.retracted, message.failed) {
        (true, _) => (" gone", " <em>retracted</em>"),
        (false, true) => (" bad", " <em>\u{2715} failed</em>"),
        (false, false) => ("", ""),
    };
    let _ = writeln!(
        out,
        "<li class=\"by-{who}{class}\"><span>{who}{note} <small>{when}</small></span><p dir=\"auto\">{text}</p></li>",
        who = message.who
    );
}
