//! Texts in code that may be names of files.

use std::collections::BTreeSet;

use super::super::word::ansi_decoded;
use crate::names::{find_unescaped, is_name_char};

/// More texts of one piece of code are not told apart.
const TEXTS_MAX: usize = 256;
/// No name of a file is longer than that here.
const LENGTH_MAX: usize = 512;

const QUOTES: [char; 3] = ['"', '\'', '`'];
/// What stands in front of a bracket that is a quote.
const BRACKET_MARKS: [&str; 9] = ["q", "qq", "qw", "qx", "%w", "%W", "%q", "%Q", "["];

/// The texts in a piece of code. A NUL alone stands for those that are too many.
#[derive(Default)]
pub(in crate::all_commands) struct Mentions(pub(in crate::all_commands) BTreeSet<String>);

impl Mentions {
    /// Takes in the texts in quotes of whatever kind.
    pub(super) fn read_code(&mut self, code: &str) {
        for line in code.lines() {
            self.read_literals(line);
            self.read_brackets(line);
            // A quote that is none, such as an apostrophe, must not hide the texts behind it.
            for quote in QUOTES {
                self.read_pieces(line, quote);
            }
        }
    }

    pub(super) fn read_words(&mut self, text: &str) {
        text.split_whitespace().filter(|word| is_plain_name(word)).for_each(|word| self.push(word));
    }

    /// Takes in what stands behind the commands of `sed` that read and write files.
    pub(super) fn read_edits(&mut self, script: &str) {
        for line in script.lines() {
            let mut before = '\n';
            for (at, c) in line.char_indices() {
                let may_begin = !before.is_ascii_alphabetic() || b"gpiIMme".contains(&(before as u8));
                if matches!(c, 'r' | 'R' | 'w' | 'W') && may_begin {
                    self.push(line[at + 1..].trim().trim_end_matches(['}', ' ', ';']));
                }
                before = c;
            }
        }
    }

    /// Names between two quotes, whether a text begins or ends there.
    fn read_pieces(&mut self, line: &str, quote: char) {
        let mut start = None;
        for (end, _) in line.match_indices(quote) {
            let piece = start.map_or("", |start| &line[start..end]);
            if is_plain_name(piece) && !is_key(&line[..end - piece.len() - 1], piece, &line[end + 1..]) {
                self.push(piece);
            }
            start = Some(end + 1);
        }
    }

    /// Texts that begin and end with the same quote in a line.
    fn read_literals(&mut self, line: &str) {
        let mut rest = line;
        while let Some(start) = rest.find(QUOTES) {
            let body = &rest[start + 1..];
            let quote = rest[start..].chars().next().unwrap_or('"');
            // What is much longer is no name.
            let letters = body.char_indices().take(2 * LENGTH_MAX);
            let Some(length) = find_unescaped(letters, quote) else {
                rest = body;
                continue;
            };
            let (text, after) = (&body[..length], &body[length + 1..]);
            if is_key(&rest[..start], text, after) {
                rest = after;
                continue;
            }
            if text.contains('\\') {
                self.push(&ansi_decoded(text));
            }
            self.push(text);
            rest = after;
        }
    }

    /// `qw(…)`, `%w[…]`, `q{…}` and `[[…]]`.
    fn read_brackets(&mut self, line: &str) {
        for (at, open) in line.char_indices() {
            let Some(close) = closing_bracket(open) else { continue };
            let is_quote = |mark: &&str| {
                let before = line[..at].strip_suffix(mark);
                before.is_some_and(|before| !before.ends_with(is_name_char))
            };
            let body = &line[at + 1..];
            let end = |body: &str| body.char_indices().take(LENGTH_MAX).find(|(_, c)| *c == close);
            if BRACKET_MARKS.iter().any(is_quote)
                && let Some((length, _)) = end(body)
            {
                self.push(&body[..length]);
                self.read_words(&body[..length]);
            }
        }
    }

    fn push(&mut self, text: &str) {
        // How a file is opened may stand in front of its name.
        let text = text.trim_start_matches(['<', '>', '+', '|', ' ']).trim_end();
        let text = text.strip_prefix("file://").unwrap_or(text);
        if text.is_empty() || text.len() > LENGTH_MAX || text.contains('\n') {
            return;
        }
        let Some((_, known)) = text.rsplit_once('\0') else { return self.insert(text.to_owned()) };
        // Most likely it is the home directory that is only known at run time, or the working directory.
        if known.starts_with('/') {
            self.insert(format!("~{known}"));
            self.insert(format!(".{known}"));
        }
    }

    fn insert(&mut self, text: String) {
        let text = if self.0.len() < TEXTS_MAX { text } else { "\0".to_owned() };
        self.0.insert(text);
    }
}

pub(super) fn closing_bracket(open: char) -> Option<char> {
    match open {
        '(' => Some(')'),
        '[' => Some(']'),
        '{' => Some('}'),
        '<' => Some('>'),
        _ => None,
    }
}

/// Whether a text without dots and slashes is what a value is looked up by: `d["config"]`, `{"config": 1}`, `d.get("config")`.
fn is_key(before: &str, text: &str, after: &str) -> bool {
    let holder = before.strip_suffix('[').filter(|_| after.starts_with(']'));
    let is_index = holder.is_some_and(|holder| {
        holder.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']'))
    });
    let behind = after.trim_start();
    let is_named = behind.starts_with(':') || behind.starts_with("=>");
    !text.contains(['.', '/']) && (is_index || is_named || before.ends_with(".get("))
}

/// Whether a text is a name, and hardly anything else.
fn is_plain_name(text: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '~' | '@' | '+' | '\0');
    !text.is_empty() && text.chars().all(fits)
}
