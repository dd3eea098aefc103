//! The page: one file of HTML, drawn when it is made; its script only shows details, zooms and filters.

mod head;
mod items;
mod series;
mod table;
mod timeline;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::activities::LongThresholds;
use crate::figures::{number, offset};
use crate::text::PageText;
use crate::traced_session::{MessageExcerpt, RunEnd, TracedSession};
pub(crate) use items::{TracedItem, shown_items};

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");
const GENERATOR: &str = "<meta name=\"generator\" content=\"windlass trace\">";

/// As many requests, calls and marks are shown one by one: more make a page that opens slowly and tells no more.
const ITEMS_MAX: usize = 7_000;

/// As much is shown of a message.
const TEXT_CHARS_MAX: usize = 320;

/// Whether a file begins as these pages do.
pub fn is_trace(beginning: &[u8]) -> bool {
    let head = &beginning[..beginning.len().min(512)];
    String::from_utf8_lossy(head).contains(GENERATOR)
}

/// What every part of the page needs.
struct Sheet<'a> {
    story: &'a TracedSession,
    words: PageText<'a>,
    /// What is shown one by one, in the order of time.
    items: Vec<TracedItem<'a>>,
    left_out: usize,
    long: LongThresholds,
    /// The parts of requests, in their order.
    parts: Vec<Arc<str>>,
}

pub(crate) fn draw(story: &TracedSession, title: &str, redact: &dyn Fn(&str) -> Cow<'_, str>) -> String {
    let (items, left_out) = shown_items(story, ITEMS_MAX);
    let sheet = Sheet {
        story,
        words: PageText { redact },
        items,
        left_out,
        long: LongThresholds::of(story),
        parts: series::part_names(story),
    };
    let mut out = String::with_capacity(64 * 1024);
    let title = sheet.words.line(title, 120);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{GENERATOR}\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} \u{b7} windlass trace</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        policy(SCRIPT)
    );
    head::draw(&sheet, &title, &mut out);
    out.push_str("<main>\n");
    timeline::draw(&sheet, &mut out);
    series::draw(&sheet, &mut out);
    table::draw(&sheet, &mut out);
    draw_messages(&sheet, &mut out);
    out.push_str("</main>\n");
    foot(&sheet, &mut out);
    // The hash in the policy is that of everything between the tags.
    let _ = write!(
        out,
        "<aside id=\"details\" aria-live=\"polite\" hidden></aside>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    );
    out
}

/// Browsers load nothing and run only this script, by its hash: text that became markup cannot act.
fn policy(script: &str) -> String {
    let hash = sha256_base64(script);
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

fn sha256_base64(text: &str) -> String {
    STANDARD.encode(digest(&SHA256, text.as_bytes()))
}

/// What was said, in short.
fn draw_messages(sheet: &Sheet<'_>, out: &mut String) {
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
    let (class, note) = match (message.is_retracted, message.has_failed) {
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

fn foot(sheet: &Sheet<'_>, out: &mut String) {
    out.push_str("<footer>\n<p>Made by windlass trace from the session log. This page loads nothing and sends nothing.</p>\n");
    if sheet.left_out > 0 {
        let _ = writeln!(
            out,
            "<p>Long session: {} short requests, calls and notes count in all sums and charts, but have no row or bar of \
             their own.</p>",
            number(sheet.left_out as u64)
        );
    }
    out.push_str("</footer>\n");
}

/// How a run ended, in green or red.
fn end_html(end: RunEnd) -> String {
    let (class, sign) = if end.is_success() { ("good", "") } else { ("bad", "\u{2715} ") };
    format!("<span class=\"{class}\">{sign}{}</span>", end.name())
}

/// Every value once, in the order in which they come first.
fn each_once<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut list = Vec::new();
    for value in values {
        if !list.contains(&value) {
            list.push(value);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standard() {
        let check = |text: &str, expected: &str| assert_eq!(sha256_base64(text), expected);
        check("", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        check("abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        check(&"a".repeat(56), "s1Q5pKxvCUi21vnjxq8PX1kM4g8b3nCQ73lwaG7Gc4o=");
        check(&"a".repeat(64), "/+BU/nrgy23GXDr5th1SCfQ5hR20PQulmXM33xVGaOs=");
        check(&"a".repeat(119), "MeulHDE6XAgiat8Y1KNZz9/Y0ugWsT9K+VL36mWE3Ps=");
    }
}
