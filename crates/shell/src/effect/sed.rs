//! `sed`, for scripts whose commands print, replace and delete lines and do nothing else.

use windlass_protocol::CommandWord;

use super::bracket::skip_to;
use super::options::{Operands, READS, Tool};
use super::{Context, Facts, literal, looks, only_file};
use crate::analysis::UNKNOWN;
use crate::names::{is_digits, is_name_char};
use crate::{LineEffect, LinePath, Word};

const SED: Tool = Tool {
    letters: "Enrsuze:l:i::",
    long: "null-data posix quiet regexp-extended sandbox separate silent unbuffered expression: line-length: \
           in-place::",
    text_options: "e expression",
    operands: Operands::TextThenPaths,
    is_harmless: false,
    ..READS
};

pub(super) fn judge(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let parsed = SED.parse(arguments)?;
    let is_script = |name: &String| name == "e" || name == "expression";
    let mut scripts: Vec<&str> = Vec::new();
    for (name, value) in &parsed.options {
        scripts.extend(value.as_deref().filter(|_| is_script(name)));
    }
    let mut files = &parsed.operands[..];
    if !parsed.has(SED.text_options) {
        let (script, rest) = files.split_first()?;
        scripts.push(literal(script)?);
        files = rest;
    }
    // A text that is only known at run time could end one command and begin another.
    if !scripts.iter().all(|script| !script.contains('\0') && is_plain_script(script)) {
        return None;
    }
    let paths = context.paths(files.iter().copied(), false);
    let suffix = parsed.options.iter().find(|(name, _)| name == "i" || name == "in-place");
    let Some((_, suffix)) = suffix else {
        let shows = parsed.has("n quiet silent") && scripts.iter().all(|script| is_print(script));
        return Some(Facts { shows: only_file(&paths).filter(|_| shows), ..looks(paths) });
    };
    let suffix = suffix.as_deref().unwrap_or_default();
    if suffix.contains(['*', '/', '\0']) || paths.is_empty() {
        return None;
    }
    let mut writes = paths.clone();
    if !suffix.is_empty() {
        writes.extend(paths.iter().map(|path| LinePath {
            text: CommandWord::from_marked(&format!("{}{suffix}", path.marked()), UNKNOWN),
            ..path.clone()
        }));
    }
    Some(Facts { effect: LineEffect::ChangesFiles, reads: paths, writes, ..Facts::default() })
}

/// Whether a script only prints ranges of lines: `5p`, `5,10p`, `5,$p`, `5,+3p`, several with `;` between.
fn is_print(script: &str) -> bool {
    let is_end = |text: &str| text == "$" || is_digits(text.strip_prefix('+').unwrap_or(text));
    script.split(';').all(|part| {
        part.trim().strip_suffix('p').is_some_and(|range| match range.split_once(',') {
            Some((start, end)) => is_digits(start) && is_end(end),
            None => range == "$" || is_digits(range),
        })
    })
}

/// Whether every command of a script is known to touch nothing but the lines that pass through.
pub(crate) fn is_plain_script(script: &str) -> bool {
    Script { rest: script, may_name_files: false }.ends_well()
}

/// Whether a script has commands that run a program, or that nobody knows. It may read and write files.
pub(crate) fn runs_something(script: &str) -> bool {
    !is_plain_script(script) && !Script { rest: script, may_name_files: true }.ends_well()
}

struct Script<'a> {
    rest: &'a str,
    /// Commands that read and write files are known as well, and parts of a script need not be.
    may_name_files: bool,
}

impl Script<'_> {
    /// Whether every command up to the end is known.
    fn ends_well(mut self) -> bool {
        loop {
            self.skip(|c| c.is_ascii_whitespace() || c == ';');
            if self.rest.is_empty() {
                return true;
            }
            if self.addresses().and_then(|()| self.command()).is_none() {
                return false;
            }
        }
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(skipped);
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// `5`, `$`, `/x/I`, `1~2`, one or two of them, and `!` behind.
    fn addresses(&mut self) -> Option<()> {
        self.address()?;
        self.skip(|c| c == ' ');
        if self.peek() == Some(',') {
            self.take();
            self.skip(|c| c == ' ' || c == '+' || c == '~');
            self.address()?;
        }
        self.skip(|c| c == ' ' || c == '!');
        Some(())
    }

    fn address(&mut self) -> Option<()> {
        match self.peek()? {
            '0'..='9' => self.skip(|c| c.is_ascii_digit() || c == '~'),
            '$' => _ = self.take(),
            '/' => self.expression()?,
            '\\' if self.may_name_files => {
                self.take();
                self.expression()?;
            }
            // Another delimiter is rare and easy to misread.
            '\\' => return None,
            // Most likely the number of a line.
            '\0' if self.may_name_files => _ = self.take(),
            _ => {}
        }
        Some(())
    }

    fn expression(&mut self) -> Option<()> {
        let delimiter = self.take()?;
        self.until(delimiter)?;
        self.skip(|c| c == 'I' || c == 'M');
        Some(())
    }

    /// Behind the next delimiter that has no backslash in front.
    fn until(&mut self, delimiter: char) -> Option<()> {
        self.rest = skip_to(self.rest, delimiter, true)?;
        Some(())
    }

    fn command(&mut self) -> Option<()> {
        match self.take()? {
            '{' => return Some(()),
            '}' | 'p' | 'P' | 'd' | 'D' | 'h' | 'H' | 'g' | 'G' | 'x' | 'n' | 'N' | '=' | 'z' => {}
            'q' | 'Q' | 'l' => self.skip(|c| c == ' ' || c.is_ascii_digit()),
            'b' | 't' | 'T' | ':' => {
                self.skip(|c| c == ' ');
                self.skip(is_name_char);
            }
            'a' | 'i' | 'c' if self.may_name_files => return self.long_text(),
            'a' | 'i' | 'c' => return self.text(),
            's' => {
                self.pair()?;
                self.skip(|c| c.is_ascii_digit() || "gpiImM".contains(c));
                if self.may_name_files && self.peek() == Some('w') {
                    self.skip(|c| c != '\n');
                }
            }
            'r' | 'R' | 'w' | 'W' if self.may_name_files => self.skip(|c| c != '\n'),
            'F' if self.may_name_files => {}
            'y' => self.pair()?,
            '#' => self.skip(|c| c != '\n'),
            _ => return None,
        }
        self.skip(|c| c == ' ');
        matches!(self.peek(), None | Some(';' | '\n' | '}' | '#')).then_some(())
    }

    /// The two parts of `s` or `y`.
    fn pair(&mut self) -> Option<()> {
        let delimiter = self.take().filter(|c| c.is_ascii_punctuation() && !"\\[]".contains(*c))?;
        self.until(delimiter)?;
        // Brackets mean nothing in what comes in place. To some kinds of it the command ends with the line.
        self.rest = skip_to(self.rest, delimiter, false)?;
        Some(())
    }

    /// Text with all its lines: a backslash in front of the end of a line makes it longer.
    fn long_text(&mut self) -> Option<()> {
        loop {
            match self.take() {
                None | Some('\n') => return Some(()),
                Some('\\') => _ = self.take(),
                Some(_) => {}
            }
        }
    }

    /// Text up to the end of its line; a backslash at the end of a line would make it longer.
    fn text(&mut self) -> Option<()> {
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(length);
        // Behind a backslash alone, the text is the next line.
        if text.trim() == "\\" || text.trim_start().strip_prefix('\\').unwrap_or(text).ends_with('\\') {
            return None;
        }
        self.rest = rest;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: bool) {
        assert_eq!(is_plain_script(script), expected, "{script:?}");
    }

    #[test]
    fn scripts_that_only_touch_lines() {
        for script in [
            "",
            "p",
            "5p",
            "5,10p",
            "$p",
            "5,$p",
            "5,+3p",
            "1~2p",
            "/x/p",
            "/a/,/b/p",
            "/a/Ip",
            "10q",
            "5!d",
            "/^$/d",
            "s/a/b/",
            "s/a/b/g",
            "s|a|b|gp",
            "s/a\\/b/c/2",
            "s/a/b/;s/c/d/",
            "s#/x#/y#g",
            "y/abc/xyz/",
            "/x/{s/a/b/;p}",
            "/x/{p;q}",
            "1i hello",
            "$a the end",
            "5c\\other",
            "s/a/b/ # why",
            ":a;N;$!ba;s/\\n/ /g",
            "=",
            "n;d",
            "$!N;P;D",
            "/x/!s/a/b/",
            "s/[^a]*$//",
            "s/\\(a\\)\\(b\\)/\\2\\1/",
            "1,5{/x/d}",
            "s/a/b/I",
        ] {
            check(script, true);
        }
    }

    #[test]
    fn scripts_that_reach_further() {
        for script in [
            "a\\\ns#x#\n1e touch x\n#",
            "i\\\ntext",
            "1{a\\\ns#x#\n1e x\n#}",
            "s#a#\nb#",
            "w out",
            "5w out",
            "s/a/b/w out",
            "s/a/b/gw out",
            "s/a/b/e",
            "s/a/b/ge",
            "e",
            "e sh x",
            "1e sh x",
            "r /etc/passwd",
            "R f",
            "W out",
            "/x/w out",
            "/x/{w out\n}",
            "p;w out",
            "p\nw out",
            "s/a/b/\nw out",
            "s/a/b/;e",
            "{p;e}",
            "1!e",
            "s/x/y/ w out",
            "s/a/b",
            "s",
            "/a",
            "\\xaxp",
            "s\\a\\b\\",
            "v",
            "F f",
            "p p",
            "s/[/]/x/w out",
            "a\\\ne sh x\\",
            "#\ne x",
            "yw",
            "s/a/b/pw out",
            "1,2e x",
            "0~3e",
            ":a w out",
            "ba w out",
            "}w out",
            "s/[/]/e",
            "M",
            "s/[]/]/g;/e;/s/,/p/p",
            "s/[[:alpha:]/]/g;/e;/s/,/p/p",
            "s/[\\]/]/g;/e;/s/,/p/p",
        ] {
            check(script, false);
        }
    }
}
