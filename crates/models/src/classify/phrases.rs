//! The wordings that tell the class of a failure: Anthropic's own, and those of servers that speak its API.
//!
//! A row fits a message that holds all its words, in lower case. The first row that fits counts.

use windlass_protocol::FailureClass::{self, Binding, Forbidden, Media, Overflow, Quota, RateLimited};

type Row = (FailureClass, &'static [&'static str]);

/// What servers say about what was used up or paid, under whatever status. Only waiting for long or paying helps
/// with a quota, a moment helps with a rate limit.
const LIMITS: &[Row] = &[
    (RateLimited, &["exceeded your current quota", "please retry in"]),
    (RateLimited, &["please wait before trying again"]),
    (Quota, &["exceeded your current quota"]),
    (Quota, &["reached your specified api usage limits"]),
    (Quota, &["hit your", "usage limit"]),
    (Quota, &["spend limit"]),
    (Forbidden, &["credit balance is too low"]),
];

/// What servers say about a request they do not take.
const REQUESTS: &[Row] = &[
    (Overflow, &["prompt is too long"]),
    (Overflow, &["input is too long"]),
    (Overflow, &["too many tokens"]),
    (Overflow, &["exceed context limit"]),
    (Overflow, &["exceed", "context window"]),
    (Overflow, &["exceed", "context length"]),
    (Overflow, &["longer than", "context length"]),
    (Overflow, &["greater than", "context length"]),
    (Overflow, &["maximum context length"]),
    (Overflow, &["maximum model length"]),
    (Overflow, &["maximum prompt length"]),
    (Overflow, &["exceeds the available context size"]),
    (Overflow, &["input token count", "exceeds"]),
    (Overflow, &["prompt token count", "exceeds"]),
    (Overflow, &["prompt exceeds max length"]),
    (Overflow, &["exceeded model token limit"]),
    (Overflow, &["range of input length should be"]),
    (Overflow, &["reduce the length of the messages"]),
    (Binding, &["invalid", "signature", "thinking"]),
    (Binding, &["thinking", "cannot be modified"]),
    (Binding, &["expected `thinking`", "but found"]),
    (Media, &["image.source.base64"]),
    (Media, &["pdf.source.base64"]),
    (Media, &["image exceeds"]),
    (Media, &["image dimensions exceed"]),
    (Media, &["many-image requests"]),
    (Media, &["could not process image"]),
    (Media, &["could not process pdf"]),
    (Media, &["pdf specified was not valid"]),
    (Media, &["pdf pages"]),
    (Media, &["file format is invalid or unsupported"]),
];

/// The class that a message about a limit tells.
pub(super) fn class_of_limit(message: &str) -> Option<FailureClass> {
    find(LIMITS, message)
}

/// The class that a message about a request tells.
pub(super) fn class_of_request(message: &str) -> Option<FailureClass> {
    find(REQUESTS, message)
}

fn find(rows: &[Row], message: &str) -> Option<FailureClass> {
    rows.iter().find(|(_, words)| words.iter().all(|word| message.contains(word))).map(|(class, _)| *class)
}
