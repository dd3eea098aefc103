//! Texts and numbers for people, without escape sequences, controls, and what reorders or hides others.

use std::fmt::Write as _;
use std::path::Path;

use windlass_config::PartContent;
use windlass_secrets::Redactor;
use windlass_text::escapes::{SequenceFilter, without_sequences};
use windlass_text::invisible::{Invisible, hides};
pub use windlass_text::numbers::{number, quantity};

/// One line without control characters; runs of blanks become one.
pub fn line(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in without_sequences(text).chars() {
        if c.is_whitespace() || c.is_control() {
            if !clean.ends_with(' ') {
                clean.push(' ');
            }
        } else if !is_unsafe(c) {
            clean.push(c);
        }
    }
    clean.trim().to_owned()
}

/// A text that may stand behind others, as the beginning of a line.
pub fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}", first.to_ascii_uppercase(), chars.as_str()))
}

/// Several lines without control characters; line ends and tabs stay.
pub fn paragraph(text: &str) -> String {
    Paragraph::default().push(text)
}

/// A paragraph that comes in pieces.
#[derive(Default)]
pub struct Paragraph(SequenceFilter);

impl Paragraph {
    /// The next piece as it can be shown.
    pub fn push(&mut self, piece: &str) -> String {
        let passed = piece.chars().filter_map(|c| self.0.pass(c));
        passed.filter(|c| matches!(c, '\n' | '\t') || !is_unsafe(*c)).collect()
    }
}

/// Controls, marks of direction, blanks without width. The joiners stay: scripts and pictures need them.
fn is_unsafe(c: char) -> bool {
    hides(c, Invisible::Reordering)
}

/// What came with a project and would act, without secrets.
pub fn project_part(part: &PartContent) -> String {
    let text = match part {
        PartContent::AllowRule(rule) => format!("allow rule {rule}"),
        PartContent::AskRule(rule) => format!("ask rule {rule}"),
        PartContent::DenyRule(rule) => format!("deny rule {rule}"),
        PartContent::Hook { event, matcher, handlers } => {
            format!("hook on {event}: {}", hook_group(matcher, handlers))
        }
        PartContent::Setting { key, value } => format!("{key} {value}"),
        PartContent::PermissionMode(mode) => format!("permission mode {mode}"),
        PartContent::Variable(name) => format!("variable {name}"),
        PartContent::WorkingDirectory(path) => format!("working directory {path}"),
    };
    Redactor::default().redact(&text).into_owned()
}

/// Several of them.
pub fn project_parts(parts: &[PartContent]) -> Vec<String> {
    parts.iter().map(project_part).collect()
}

/// What a group of hooks runs, and for which calls. A handler that reads like several is quoted.
pub fn hook_group(matcher: &str, handlers: &[String]) -> String {
    let calls = if matcher.is_empty() { String::new() } else { format!(" (for {matcher})") };
    let is_plain = |text: &&String| !text.contains(", ") && !text.contains(" (for ");
    let handlers =
        handlers.iter().map(|text| Some(text).filter(is_plain).map_or_else(|| quote(text), String::clone));
    format!("{}{calls}", handlers.collect::<Vec<_>>().join(", "))
}

/// `340 ms`, `3.2 s` or `2 min 5 s`.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// How long ago something happened: `5 min ago`.
pub fn ago(then_ms: u64, now_ms: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    match now_ms.saturating_sub(then_ms) / 1000 {
        0..MINUTE => "just now".into(),
        seconds @ MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h ago", seconds / HOUR),
        seconds => format!("{} ago", quantity(seconds / DAY, "day")),
    }
}

/// `340 B`, `3.2 kB`, `12.0 MB`.
pub fn bytes(n: u64) -> String {
    let (unit, name) = match n {
        0..1000 => return format!("{n} B"),
        1000..1_000_000 => (1000, "kB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    format!("{}.{} {name}", number(n / unit), n % unit * 10 / unit)
}

/// JSON in one line that can be printed anywhere.
pub fn json(value: &serde_json::Value) -> String {
    escape_json(&value.to_string())
}

/// JSON whose strings show no character with power over a terminal; it means the same.
pub fn escape_json(json: &str) -> String {
    let mut clean = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) && c != '\n' {
            let _ = write!(clean, "\\u{:04x}", u32::from(c));
        } else {
            clean.push(c);
        }
    }
    clean
}

/// A cost; unknown is not zero.
pub fn cost(usd: Option<f64>) -> String {
    usd.map_or_else(|| "cost unknown".into(), |usd| format!("${usd:.4}"))
}

/// A word as the shell reads it.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Texts as lines, each behind a mark.
pub fn list(items: &[String], mark: &str) -> String {
    let lines: Vec<String> = items.iter().map(|item| format!("{mark}{}\n", line(item))).collect();
    lines.concat()
}

/// A path as it is found from a directory: relative below it, and with `~` for the home.
pub fn short_path(path: &Path, start: &Path) -> String {
    match path.strip_prefix(start) {
        Ok(rest) if !rest.as_os_str().is_empty() => line(&rest.to_string_lossy()),
        _ => home_as_tilde(path),
    }
}

/// A path with `~` for the home.
pub fn home_as_tilde(path: &Path) -> String {
    let home = std::env::home_dir().filter(|home| home.is_absolute() && home.parent().is_some());
    let short = match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".into(),
        Some(rest) => Path::new("~").join(rest),
        None => path.to_owned(),
    };
    line(&short.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_but_text() {
        let check = |text: &str, expected: &str| assert_eq!(line(text), expected);
        check("a\x1b[31mb\x07\u{9b}2Jc", "ab c");
        check("  two\n\n lines\t", "two lines");
        check("x\u{202e}gnp.exe\u{200b}", "xgnp.exe");
        check("é 日本", "é 日本");
        check("می\u{200c}خواهم \u{1f469}\u{200d}\u{1f4bb}", "می\u{200c}خواهم \u{1f469}\u{200d}\u{1f4bb}");
        assert_eq!(json(&serde_json::json!("a\u{1b}\u{9b}\u{202e}é\n")), r#""a\u001b\u009b\u202eé\n""#);
        let begins = ["no key.", "Éa", "--x needs y.", ""].map(sentence);
        assert_eq!(begins, ["No key.", "Éa", "--x needs y.", ""]);
        let mut pieces = Paragraph::default();
        assert_eq!(["a\x1b", "[31", "mb\u{202e}"].map(|piece| pieces.push(piece)).concat(), "ab");
        assert_eq!(paragraph("a\x1b]0;t\x07\n\tb\r\u{202e}\u{200d}"), "a\n\tb\u{200d}");
    }

    #[test]
    fn a_word_is_quoted_when_the_shell_needs_it() {
        assert_eq!(quote("/tmp/windlass-demo-x1"), "/tmp/windlass-demo-x1");
        assert_eq!(quote("/tmp/my files"), "'/tmp/my files'");
        assert_eq!(quote("/tmp/it's $x"), r"'/tmp/it'\''s $x'");
    }

    #[test]
    fn numbers_read_easily() {
        assert_eq!(
            [0, 999, 1000, 59_999, 125_400].map(duration),
            ["0 ms", "999 ms", "1.0 s", "59.9 s", "2 min 5 s"]
        );
        assert_eq!([0, 999, 1000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([cost(Some(0.012_34)), cost(None)], ["$0.0123", "cost unknown"]);
        assert_eq!(
            [0, 59_000, 60_000, 7_200_000, 86_400_000, 500_000_000].map(|ms| ago(0, ms)),
            ["just now", "just now", "1 min ago", "2 h ago", "1 day ago", "5 days ago"]
        );
        assert_eq!(ago(5_000, 0), "just now");
        assert_eq!(
            [0, 999, 1000, 12_345_678, 3_000_000_000].map(bytes),
            ["0 B", "999 B", "1.0 kB", "12.3 MB", "3.0 GB"]
        );
        assert_eq!([quantity(1, "turn"), quantity(2, "turn")], ["1 turn", "2 turns"]);
    }
}
