//! Code of other languages: what it runs, as far as that can be read; a NUL stands for what cannot.

use super::super::word::Argument;
use super::languages::{AWKS, Language, language};
use super::mentions::closing_bracket;
use super::{Inside, Seen, awk, printed};
use crate::names::{behind_letter, has_name as has, is_name_char};

/// What a program runs that is written in its code.
pub(super) fn interpreted(seen: &Seen<'_>, inside: &mut Inside) {
    if has(AWKS, seen.base) {
        return awk::interpreted(seen.arguments, inside);
    }
    let Some(language) = language(seen.base) else { return };
    if !language.marks.is_empty() {
        return language.lines(seen, inside);
    }
    let mut has_script = false;
    for (at, word) in seen.arguments.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| seen.arguments[at].text.as_str());
        let is_code = language.is_before_code(before);
        let attached = language.attached(&word.text);
        has_script |=
            is_code || attached.is_some() || !word.text.starts_with('-') || word.text.starts_with("-m");
        if is_code {
            language.run(&word.text, inside);
        } else if let Some(code) = attached {
            language.run(code, inside);
        } else {
            // It may still be code, but hardly ever is.
            let runs = language.read(&word.text);
            inside.scripts.extend(runs.scripts.into_iter().filter(|script| !script.contains('\0')));
        }
    }
    let names_input = seen.arguments.iter().any(|word| has("- /dev/stdin /dev/fd/0", &word.text));
    if !has_script || names_input {
        input(language, seen, inside);
    }
}

/// What comes in is code.
fn input(language: &'static Language, seen: &Seen<'_>, inside: &mut Inside) {
    inside.input.code = Some(language);
    if seen.is_piped {
        match printed(seen.last) {
            Some(code) => language.run(&code, inside),
            None => inside.unseen = Some("code is run that is piped in"),
        }
    }
}

/// What is unseen where code runs something that it does not say.
const RUNS: &str = "code in it runs something";

impl Language {
    fn is_before_code(&self, option: &str) -> bool {
        has(self.before, option) || behind_letter(option, self.letters).is_some()
    }

    /// The code that stands in the same word as its option.
    fn attached<'a>(&self, word: &'a str) -> Option<&'a str> {
        if let Some((name, code)) = word.split_once('=').filter(|(name, _)| name.starts_with("--")) {
            return has(self.before, name).then_some(code);
        }
        behind_letter(word, self.letters)
    }

    /// Commands line by line, in the arguments and in what comes in.
    fn lines(&'static self, seen: &Seen<'_>, inside: &mut Inside) {
        for word in seen.arguments {
            let option = word.text.split_once('=').filter(|(name, _)| name.starts_with('-'));
            self.run(option.map_or(&word.text, |(_, value)| value), inside);
        }
        input(self, seen, inside);
    }

    /// What stands behind the marks.
    fn marked(&self, code: &str) -> Vec<String> {
        let marked = |line: &str| {
            let line = line.trim_start();
            let script = self.marks.iter().find_map(|mark| {
                // A mark that is a word comes first.
                if mark.ends_with(' ') { line.strip_prefix(mark) } else { Some(line.split_once(mark)?.1) }
            });
            script.map(|script| script.trim().to_owned())
        };
        code.lines().filter_map(marked).collect()
    }

    /// Adds what code runs.
    pub(in crate::all_commands) fn run(&self, code: &str, inside: &mut Inside) {
        let runs = self.read(code);
        inside.scripts.extend(runs.scripts);
        inside.commands.extend(runs.commands);
        inside.unseen = runs.unseen.or(inside.unseen);
        inside.mentions.read_code(code);
        if !self.marks.is_empty() {
            let names_files = |line: &&str| self.edits || line.trim_start().starts_with(['.', '\\']);
            code.lines().filter(names_files).for_each(|line| inside.mentions.read_words(line));
        }
        if code == "\0" && self.marks.is_empty() {
            inside.unseen = Some("code in it is only known at run time");
        }
    }

    fn read(&self, code: &str) -> Inside {
        let is_unseen = self.backquotes.iter().any(|mark| code.contains(mark));
        let mut runs = Inside { unseen: is_unseen.then_some(RUNS), ..Inside::default() };
        if self.backquotes.contains(&"`") {
            runs.scripts.extend(code.split('`').skip(1).step_by(2).take(64).map(str::to_owned));
        }
        runs.scripts.extend(self.marked(code));
        runs.scripts.extend(self.translate.map(|translate| translate(code)).unwrap_or_default());
        let has_module = self.modules.split(' ').any(|module| !module.is_empty() && code.contains(module));
        let (mut at, mut calls) = (0, 0);
        while let Some(start) = code[at..].find(is_name_char).map(|offset| at + offset) {
            let length = code[start..].find(|c| !is_name_char(c)).unwrap_or(code.len() - start);
            at = start + length;
            let word = &code[start..at];
            let is_call = has(self.calls, word) || (has_module && has(self.usual_calls, word));
            if is_call && calls == CALLS_MAX {
                runs.unseen = Some(RUNS);
                break;
            }
            calls += usize::from(is_call);
            if is_call {
                self.call(&code[..start], &code[at..], &mut runs);
            } else if has(self.opaque, word)
                // A block is code like any other.
                && !code[at..].trim_start().starts_with('{')
                && !is_quoted(&code[..start], &code[at..])
            {
                runs.unseen = Some(RUNS);
            }
        }
        runs
    }

    /// A word that runs something, between what is in front of it and what follows.
    fn call(&self, before: &str, after: &str, runs: &mut Inside) {
        let is_variable = before.ends_with(['$', '@', '%']);
        if is_variable || is_quoted(before, after) {
            return;
        }
        let rest = after.trim_start_matches([' ', '\t']);
        let is_listed = rest.is_empty() || rest.starts_with([',', '}', ';', '\n']);
        if is_listed && !before.ends_with('.') && !before.trim_end().ends_with('=') {
            // It is only imported.
            return;
        }
        let rest = rest.strip_prefix('(').unwrap_or(rest).trim_start();
        // `platform.system()` says something.
        if rest.starts_with(')') {
            return;
        }
        let items = Items { rest, values: self.values }.all();
        match &items[..] {
            [] => runs.unseen = Some(RUNS),
            [script] => runs.scripts.push(script.clone()),
            [first, ..] => {
                if first.contains([' ', '\0']) {
                    runs.scripts.push(first.clone());
                }
                runs.commands.push(items.into_iter().map(Argument::new).collect());
            }
        }
    }
}

/// Whether a word is a text or an expression of its own.
fn is_quoted(before: &str, after: &str) -> bool {
    ["\"", "'", "/"].iter().any(|quote| before.ends_with(quote) && after.starts_with(quote))
}

/// The texts that are handed to a call.
struct Items<'a> {
    rest: &'a str,
    values: &'a [char],
}

/// What may follow the last text.
const ENDS: [&str; 6] = ["or ", "and ", "if ", "unless ", "||", "&&"];
/// More calls in one piece of code are not read.
const CALLS_MAX: usize = 64;
/// More texts are not told apart.
const ITEMS_MAX: usize = 32;

impl Items<'_> {
    fn all(mut self) -> Vec<String> {
        let mut items = Vec::new();
        while items.len() < ITEMS_MAX {
            self.skip_brackets();
            if let Some(words) = self.quoted_words() {
                items.extend(words);
            } else {
                match self.text() {
                    Some(text) => items.push(text),
                    // Nobody knows what comes first; what follows are arguments.
                    None if items.is_empty() => return items,
                    None => {
                        items.push("\0".to_owned());
                        break;
                    }
                }
            }
            self.skip_brackets();
            match self.rest.chars().next() {
                Some(',') => self.rest = self.rest[1..].trim_start(),
                Some(')' | ';' | '}' | '\n') | None => break,
                Some(_) if ENDS.iter().any(|end| self.rest.starts_with(end)) => break,
                // Something is done with the text, or it goes on.
                Some(_) => {
                    if let Some(last) = items.last_mut() {
                        last.push('\0');
                    }
                    break;
                }
            }
            if self.is_setting() {
                break;
            }
        }
        items
    }

    fn skip_brackets(&mut self) {
        while let Some(c) = self.rest.chars().next().filter(|c| matches!(c, '[' | ']' | ' ' | '\t')) {
            if c == '[' && self.rest.starts_with("[[") {
                break;
            }
            self.rest = &self.rest[1..];
        }
    }

    /// `shell=True` and `{stdio: …}`, which are no arguments.
    fn is_setting(&self) -> bool {
        let name = self.rest.trim_start_matches(is_name_char);
        let is_named = name.len() < self.rest.len() && name.trim_start().starts_with('=');
        self.rest.is_empty() || self.rest.starts_with([')', ';']) || is_named
    }

    /// `qw(rm x)` and `%w[rm x]`.
    fn quoted_words(&mut self) -> Option<Vec<String>> {
        let rest = ["qw", "%w", "%W"].iter().find_map(|mark| self.rest.strip_prefix(mark))?.trim_start();
        let open = rest.chars().next()?;
        let close = closing_bracket(open).unwrap_or(open);
        let inner = &rest[open.len_utf8()..];
        let end = inner.find(close)?;
        self.rest = inner[end + close.len_utf8()..].trim_start_matches([' ', '\t']);
        Some(inner[..end].split_whitespace().map(str::to_owned).collect())
    }

    /// A text in quotes. What is not known about it is a NUL.
    fn text(&mut self) -> Option<String> {
        if let Some((text, rest)) = self.rest.strip_prefix("[[").and_then(|rest| rest.split_once("]]")) {
            self.rest = rest;
            return Some(text.to_owned());
        }
        let body = self.rest.trim_start_matches(['r', 'b', 'u']);
        let quote = ["\"\"\"", "'''", "\"", "'", "`"].into_iter().find(|quote| body.starts_with(quote))?;
        let body = &body[quote.len()..];
        let mut text = String::new();
        let mut at = 0;
        while let Some(c) = body[at..].chars().next() {
            if body[at..].starts_with(quote) {
                self.rest = body[at + quote.len()..].trim_start_matches([' ', '\t']);
                return Some(text);
            }
            at += c.len_utf8();
            match c {
                '\\' => {
                    let escaped = body[at..].chars().next()?;
                    at += escaped.len_utf8();
                    text.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        c if c.is_ascii_alphanumeric() => '\0',
                        c => c,
                    });
                }
                '$' if quote == "`" => text.push('\0'),
                c if quote != "'" && self.values.contains(&c) => text.push('\0'),
                c => text.push(c),
            }
        }
        self.rest = "";
        Some(text)
    }
}
