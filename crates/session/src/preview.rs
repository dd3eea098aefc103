//! What the two ends of a session file say about it. Lists are made from this, so a file of any size costs the same.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_protocol::RawObject;
use windlass_text::shorten;

use crate::read::read_range;
use crate::repository::Identity;

/// As much of each end is read; other programs read the same.
const WINDOW: u64 = 64 * 1024;

/// A longer prompt is cut.
const CHARS_MAX: usize = 200;

/// What programs put in the place of a prompt.
const NO_PROMPTS: [&str; 5] =
    ["<local-command-stdout>", "<session-start-hook>", "<tick>", "<goal>", "[Request interrupted by user"];

/// How lines begin that only we understand.
pub(crate) const OWN: &[u8] = b"{\"type\":\"windlass\"";

/// What is known about a session without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionPreview {
    /// The title that a person or a model gave it.
    pub title: Option<String>,
    /// The first prompt, cut to a line.
    pub first_prompt: Option<String>,
    /// What stands for it in a list: the title, the last prompt, or the first.
    pub summary: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub created_ms: Option<u64>,
    /// Where it was started.
    pub cwd: Option<PathBuf>,
    /// The branch it was last on.
    pub branch: Option<String>,
    /// Its tag.
    pub tag: Option<String>,
    /// Who started it.
    pub entrypoint: Option<String>,
    /// The repository it was started in.
    pub identity: Option<Identity>,
    /// Whether it belongs to another session.
    pub sidechain: bool,
    /// Whether anybody has said anything in it.
    pub said: bool,
}

/// Looks at both ends of a file.
pub(crate) fn preview(path: &Path) -> io::Result<SessionPreview> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let head = read_range(&file, 0, size.min(WINDOW))?;
    if size <= WINDOW {
        return Ok(judge(&head, &head, true));
    }
    let tail = read_range(&file, size - WINDOW, size)?;
    // The first line of the tail is only the end of one.
    let whole = memchr::memchr(b'\n', &tail).map_or(tail.len(), |end| end + 1);
    Ok(judge(&head, &tail[whole..], false))
}

/// The members of a line, as they are written.
pub(crate) fn members(line: &[u8]) -> Option<RawObject<'_>> {
    serde_json::from_slice(line).ok()
}

/// The members of a line of our own, if it is of this kind.
pub(crate) fn own_members<'a>(line: &'a [u8], kind: &str) -> Option<RawObject<'a>> {
    let rest = line.strip_prefix(OWN)?.strip_prefix(b",\"kind\":\"")?;
    rest.strip_prefix(kind.as_bytes())?.starts_with(b"\"").then(|| members(line))?
}

/// A member that is a text which says something.
pub(crate) fn text(members: &RawObject<'_>, key: &str) -> Option<String> {
    members.read(key).filter(|text: &String| !text.is_empty())
}

/// Whether a member says yes.
pub(crate) fn flag(members: &RawObject<'_>, key: &str) -> bool {
    members.get(key).is_some_and(|value| value.get() == "true")
}

fn judge(head: &[u8], tail: &[u8], is_whole: bool) -> SessionPreview {
    let first_line = lines(head).next().unwrap_or_default();
    let both = |key| last(key, tail).or_else(|| last(key, head));
    let title = both("customTitle").or_else(|| both("aiTitle"));
    let first_prompt = first_prompt(head, is_whole);
    let summary = title
        .clone()
        .or_else(|| last("lastPrompt", tail))
        .or_else(|| last("summary", tail))
        .or_else(|| first_prompt.clone());
    SessionPreview {
        summary,
        created_ms: first("timestamp", head).and_then(|time| crate::time::parse(&time)),
        cwd: first("cwd", head).map(PathBuf::from),
        branch: both("gitBranch"),
        tag: tag(tail).or_else(|| tag(head)).filter(|tag| !tag.is_empty()),
        entrypoint: first("entrypoint", head),
        identity: identity(tail).or_else(|| identity(head)),
        sidechain: has_flag(first_line, "isSidechain"),
        said: first_prompt.is_some() || says_something(head) || says_something(tail),
        title,
        first_prompt,
    }
}

fn lines(window: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    window.split(|&byte| byte == b'\n')
}

/// Lines that hold a key.
fn lines_with<'a>(key: &str, window: &'a [u8]) -> impl DoubleEndedIterator<Item = &'a [u8]> {
    let needle = format!("\"{key}\"");
    lines(window).filter(move |line| memmem::find(line, needle.as_bytes()).is_some())
}

/// The last value of a key in lines that everybody understands.
fn last(key: &str, window: &[u8]) -> Option<String> {
    let shared = lines_with(key, window).filter(|line| !line.starts_with(OWN));
    shared.rev().find_map(|line| text(&members(line)?, key))
}

fn first(key: &str, window: &[u8]) -> Option<String> {
    let found = lines_with(key, window).find_map(|line| text(&members(line)?, key));
    found.or_else(|| cut_member(key, window))
}

/// A member at the beginning of a last line that the window cut.
fn cut_member(key: &str, window: &[u8]) -> Option<String> {
    let start = memchr::memrchr(b'\n', window).map_or(0, |end| end + 1);
    let line = &window[start..];
    // What comes behind the message is somebody's words.
    let line = &line[..memmem::find(line, b"\"message\"").unwrap_or(line.len())];
    let needle = format!("\"{key}\":\"");
    let at = memmem::find(line, needle.as_bytes())? + needle.len();
    beginning_of_string(&line[at..]).filter(|text| !text.is_empty())
}

fn tag(window: &[u8]) -> Option<String> {
    let mut tags = lines(window).filter(|line| line.starts_with(b"{\"type\":\"tag\"")).filter_map(members);
    tags.next_back()?.read("tag")
}

/// What was written last about the repository; with its first commits, if they were ever known.
fn identity(window: &[u8]) -> Option<Identity> {
    let found = lines(window).filter_map(|line| own_members(line, "repository")?.read("of"));
    found.max_by_key(|identity: &Identity| !identity.roots.is_empty())
}

/// Whether a line has a flag, as other programs look for it.
pub(crate) fn has_flag(line: &[u8], key: &str) -> bool {
    [format!("\"{key}\":true"), format!("\"{key}\": true")]
        .iter()
        .any(|needle| memmem::find(line, needle.as_bytes()).is_some())
}

fn says_something(window: &[u8]) -> bool {
    let is_said = |members: RawObject<'_>| {
        matches!(text(&members, "type").as_deref(), Some("user" | "assistant"))
            && members.get("message").is_some()
    };
    lines_with("message", window).filter_map(members).any(is_said)
}

/// The first text of a user that is a prompt; else the name of the first command.
fn first_prompt(head: &[u8], is_whole: bool) -> Option<String> {
    let mut command = None;
    let mut lines = lines(head).peekable();
    while let Some(line) = lines.next() {
        let is_cut = !is_whole && lines.peek().is_none();
        if !can_be_prompt(line) {
            continue;
        }
        let texts = if is_cut { beginning_of_prompt(line).into_iter().collect() } else { prompt_texts(line) };
        for text in texts {
            let text = text.replace('\n', " ").trim().to_owned();
            match name_of_command(&text) {
                _ if text.is_empty() || is_no_prompt(&text) => {}
                Some(name) => command = command.or(Some(name)),
                None => return Some(cut(&text)),
            }
        }
    }
    command
}

/// Whether a line can hold a prompt, as other programs judge it.
fn can_be_prompt(line: &[u8]) -> bool {
    let has = |needle: &[u8]| memmem::find(line, needle).is_some();
    (has(b"\"type\":\"user\"") || has(b"\"type\": \"user\""))
        && !has(b"\"tool_result\"")
        && !has_flag(line, "isMeta")
        && !has_flag(line, "isCompactSummary")
}

fn prompt_texts(line: &[u8]) -> Vec<String> {
    let Some(members) = members(line) else { return Vec::new() };
    if text(&members, "type").as_deref() != Some("user") {
        return Vec::new();
    }
    members.get("message").map(message_texts).unwrap_or_default()
}

/// The texts of a message, one for each block of text.
pub(crate) fn message_texts(message: &RawValue) -> Vec<String> {
    let mut message: Value = serde_json::from_str(message.get()).unwrap_or_default();
    match message.get_mut("content").map(Value::take).unwrap_or_default() {
        Value::String(text) => vec![text],
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            texts.filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

/// The beginning of the text of a line that was cut: a long first prompt is still the first prompt.
fn beginning_of_prompt(line: &[u8]) -> Option<String> {
    let message = memmem::find(line, b"\"message\"")?;
    let starts = [&b"\"content\":\""[..], b"\"content\": \"", b"\"text\":\"", b"\"text\": \""];
    let ends = starts.iter().filter_map(|start| Some(memmem::find(&line[message..], start)? + start.len()));
    beginning_of_string(&line[message + ends.min()?..])
}

/// The beginning of a JSON text, from behind its quote, up to its end or as far as it goes.
fn beginning_of_string(bytes: &[u8]) -> Option<String> {
    /// More than is ever shown.
    const BYTES_MAX: usize = 4096;
    /// The longest escape; a cut goes through one at most.
    const ESCAPE_BYTES: usize = 12;
    let bytes = &bytes[..bytes.len().min(BYTES_MAX)];
    let mut escaped = false;
    let end = bytes.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    let end = end.unwrap_or(bytes.len());
    (end.saturating_sub(ESCAPE_BYTES)..=end).rev().find_map(|end| {
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        serde_json::from_str(&format!("\"{text}\"")).ok()
    })
}

fn is_no_prompt(text: &str) -> bool {
    let is_element =
        |name: &str| text.starts_with(&format!("<{name}>")) && text.ends_with(&format!("</{name}>"));
    NO_PROMPTS.iter().any(|start| text.starts_with(start))
        || is_element("ide_opened_file")
        || is_element("ide_selection")
}

fn name_of_command(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<command-name>")?;
    let (name, _) = rest.split_once("</command-name>")?;
    Some(name.to_owned())
}

fn cut(text: &str) -> String {
    shorten::beginning(text, CHARS_MAX)
        .map_or_else(|| text.to_owned(), |cut| format!("{}\u{2026}", cut.trim_end()))
}
