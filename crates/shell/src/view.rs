//! Commands that show one file.

use crate::simple_command;

/// The options of a program under which it still shows the file.
struct Program {
    names: &'static [&'static str],
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with a value.
    valued: &'static str,
    /// Long options, without a value or with one behind `=`.
    long: &'static [&'static str],
    /// Whether a number can be an option: `-20`.
    number: bool,
    /// Operands before the file.
    before: usize,
}

/// The long options that grep and ripgrep share.
const SEARCH_OPTIONS: &[&str] =
    &["after-context", "before-context", "color", "context", "ignore-case", "line-number", "max-count"];

const PROGRAMS: &[Program] = &[
    Program {
        names: &["cat"],
        flags: "AbeEnstTuv",
        valued: "",
        long: &["number", "number-nonblank", "show-all", "show-ends", "show-tabs", "squeeze-blank"],
        number: false,
        before: 0,
    },
    Program { names: &["nl"], flags: "p", valued: "bdfhilnsvw", long: &[], number: false, before: 0 },
    Program {
        names: &["bat", "batcat"],
        flags: "AnpP",
        valued: "lr",
        long: &["color", "language", "line-range", "number", "paging", "plain", "style"],
        number: false,
        before: 0,
    },
    Program {
        names: &["head", "tail"],
        flags: "qvz",
        valued: "cn",
        long: &["bytes", "lines"],
        number: true,
        before: 0,
    },
    Program {
        names: &["grep", "egrep", "fgrep"],
        flags: "abEFGhHinoPsvwxy",
        valued: "ABCm",
        long: SEARCH_OPTIONS,
        number: true,
        before: 1,
    },
    Program {
        names: &["rg"],
        flags: "aFHiInNoPsSUvwx",
        valued: "ABCm",
        long: SEARCH_OPTIONS,
        number: false,
        before: 1,
    },
];

/// The file that a line shows, as written, if the line is one simple command that shows one file, or a part of it:
/// `cat nl bat batcat head tail grep egrep fgrep rg`, or `sed -n` with ranges to print.
///
/// This says what was looked at, not that looking is all the command does: options are judged by what they show.
///
/// ```
/// # use windlass_shell::viewed_file;
/// assert_eq!(viewed_file("sed -n '10,20p' src/main.rs").as_deref(), Some("src/main.rs"));
/// assert_eq!(viewed_file("cat a.txt b.txt"), None);
/// assert_eq!(viewed_file("cat a.txt | head"), None);
/// ```
#[must_use]
pub fn viewed_file(line: &str) -> Option<String> {
    let words = simple_command(line)?;
    let (name, arguments) = words.split_first()?;
    if name == "sed" {
        return match arguments {
            [quiet, script, file] if quiet == "-n" && is_print(script) => operand(file),
            _ => None,
        };
    }
    let program = PROGRAMS.iter().find(|program| program.names.contains(&name.as_str()))?;
    let operands = program.operands(arguments)?;
    match &operands[..] {
        [.., file] if operands.len() == program.before + 1 => operand(file),
        _ => None,
    }
}

/// A word that names a file.
fn operand(word: &str) -> Option<String> {
    (!word.is_empty() && !word.starts_with('-')).then(|| word.to_owned())
}

impl Program {
    /// What is left without the options; `None` if one of them is not known to leave the file in view.
    fn operands<'a>(&self, arguments: &'a [String]) -> Option<Vec<&'a str>> {
        let mut operands = Vec::new();
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                operands.extend(words.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                let name = long.split('=').next()?;
                if !self.long.contains(&name) {
                    return None;
                }
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                if self.takes_next_word(letters)? {
                    words.next()?;
                }
            } else {
                operands.push(word);
            }
        }
        Some(operands)
    }

    /// Whether the value of the last of these options is the next word.
    fn takes_next_word(&self, letters: &str) -> Option<bool> {
        if self.number && letters.bytes().all(|letter| letter.is_ascii_digit()) {
            return Some(false);
        }
        for (at, letter) in letters.char_indices() {
            if self.valued.contains(letter) {
                return Some(at + letter.len_utf8() == letters.len());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

/// Whether a script of sed only prints ranges of lines: `5p`, `5,10p`, `5,$p`, `5,+3p`, several with `;` between.
fn is_print(script: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_end = |text: &str| text == "$" || is_number(text.strip_prefix('+').unwrap_or(text));
    script.split(';').all(|part| {
        part.trim().strip_suffix('p').is_some_and(|range| match range.split_once(',') {
            Some((start, end)) => is_number(start) && is_end(end),
            None => range == "$" || is_number(range),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(viewed_file(line).as_deref(), expected, "{line}");
    }

    #[test]
    fn one_file_is_shown() {
        for line in [
            "cat f",
            "cat -n f",
            "cat -- f",
            "nl f",
            "nl -ba f",
            "nl -b a f",
            "bat f",
            "bat -pP f",
            "bat --style=plain -r 1:5 f",
            "batcat f",
            "head f",
            "head -20 f",
            "head -n 20 f",
            "head -n20 f",
            "head --lines=20 f",
            "tail -n +5 f",
            "sed -n 5p f",
            "sed -n '5,10p' f",
            "sed -n '5,$p' f",
            "sed -n '5,+3p;$p' f",
            "grep x f",
            "grep -n x f",
            "grep -in -A 3 'a b' f",
            "grep x f -n",
            "egrep 'a|b' f",
            "fgrep -A3 x f",
            "rg x f",
            "rg -n -C 2 x f",
        ] {
            check(line, Some("f"));
        }
    }

    #[test]
    fn anything_else_is_no_view() {
        for line in [
            "cat",
            "cat -",
            "cat a b",
            "cat -n",
            "cat f | head",
            "cat f > g",
            "cat < f",
            "cat --help f",
            "head -n f",
            "tail -f f",
            "sed 5p f",
            "sed -n 5d f",
            "sed -n '5,10p;w out' f",
            "sed -n '/x/p' f",
            "sed -n -i 5p f",
            "sed -ni 5p f",
            "sed -n 5p a b",
            "sed -n 5p",
            "sed -n p f",
            "grep f",
            "grep -r x f",
            "grep -c x f",
            "grep -l x f",
            "grep -e x f",
            "grep x a b",
            "rg x",
            "rg --pre cmd x f",
            "rg -l x f",
            "wc f",
            "less f",
            "./cat f",
            "cat f; rm f",
        ] {
            check(line, None);
        }
    }
}
