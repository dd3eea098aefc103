//! Options and operands of a program, taken apart as the program itself would.

use crate::Word;
use crate::names::{has_name, name_and_value};

/// What the words that are no options mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// There must be none.
    None,
    /// Not files.
    Text,
    Paths,
    /// Files, or the working directory if there are none.
    PathsOrHere,
    /// At most one file: a second one would be written.
    OnePath,
    /// Something to look for, then files.
    TextThenPaths,
    /// The same, or the working directory if there are no files.
    TextThenPathsOrHere,
}

/// The options under which a program only looks. Any other option makes it an unknown one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool {
    pub(super) names: &'static str,
    /// Letters as in `getopt`: a colon behind those with a value, two if it is attached and may be missing.
    pub(super) letters: &'static str,
    /// Long options, with such colons too.
    pub(super) long: &'static str,
    /// More of them, in a list that several tools share.
    pub(super) shared_long: &'static str,
    /// `--help` and `--version` are among them.
    pub(super) has_help: bool,
    /// Options that say what to look for, so that every operand is a file.
    pub(super) text_options: &'static str,
    /// Options with which it looks at everything below its operands; a star for always.
    pub(super) recursive: &'static str,
    pub(super) operands: Operands,
    /// A number can be an option: `-20`.
    pub(super) has_number: bool,
    /// None of all the options that the program has does harm, so that words may be unknown.
    pub(super) is_harmless: bool,
    /// `@file` is more arguments, wherever it stands.
    pub(super) takes_lists: bool,
    /// Of directories it opens the links too.
    pub(super) opens_links: bool,
    /// How the names of its files end; with another ending it looks for another file. None for any.
    pub(super) endings: &'static str,
}

/// A program without options that reads files, and has no option that does harm.
pub(super) const READS: Tool = Tool {
    names: "",
    letters: "",
    long: "",
    shared_long: "",
    has_help: true,
    text_options: "",
    recursive: "",
    operands: Operands::Paths,
    has_number: false,
    is_harmless: true,
    takes_lists: false,
    opens_links: false,
    endings: "",
};

/// The name of an option, without dashes, and its value.
pub(super) type Given = (String, Option<String>);

type Words<'a> = std::slice::Iter<'a, Word>;

/// The arguments of a program, taken apart.
#[derive(Debug, Default)]
pub(super) struct Parsed<'a> {
    pub(super) options: Vec<Given>,
    pub(super) operands: Vec<&'a Word>,
}

impl Parsed<'_> {
    pub(super) fn has(&self, names: &str) -> bool {
        self.options.iter().any(|(option, _)| has_name(names, option))
    }
}

/// Whether bash could make a word of this one that begins with a dash, or several words.
pub(super) fn may_become_option(word: &Word) -> bool {
    if !word.choices.is_empty() && !word.is_split {
        // Names that came in through a pipe may be anything.
        return word
            .choices
            .iter()
            .any(|path| path.is_recursive || path.text.start().starts_with(['-', '*', '?', '[']));
    }
    word.is_split
        || word.text.starts_with('\0')
        || (word.is_pattern && word.text.starts_with(['*', '?', '[']))
}

impl Tool {
    /// Its usual name.
    pub(super) fn name(&self) -> &'static str {
        self.names.split(' ').next().unwrap_or_default()
    }

    /// Takes arguments apart; nothing if something in them is not known to be harmless.
    pub(super) fn parse<'a>(&self, arguments: &'a [Word]) -> Option<Parsed<'a>> {
        let mut parsed = Parsed::default();
        let mut words = arguments.iter();
        let mut is_open = false;
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            // Where nothing takes the place of what is not known, an option takes the next word as its value.
            let is_fixed = !word.is_unknown() && !word.is_pattern;
            let may_be_bare = text.starts_with('-') && !text.starts_with("--") && !is_fixed;
            // What became an option may take one behind it as its value, and the value of that is a file then.
            if may_be_bare || (is_open && self.takes_next(word)) {
                return None;
            }
            if may_become_option(word) {
                if !self.is_harmless {
                    return None;
                }
                is_open = true;
                parsed.operands.push(word);
            } else if text == "--" {
                // A pattern or a split word cannot be an option any more.
                parsed.operands.extend(words.by_ref());
            } else if let Some(long) = text.strip_prefix("--") {
                self.parse_long(long, &mut words, &mut parsed)?;
            } else if text.starts_with('-') && text != "-" {
                self.parse_letters(&text[1..], &mut words, &mut parsed)?;
            } else {
                parsed.operands.push(word);
            }
        }
        Some(parsed)
    }

    /// Whether a word is an option whose value is the next word.
    pub(super) fn takes_next(&self, word: &Word) -> bool {
        let text = word.text.as_str();
        let value = if let Some(long) = text.strip_prefix("--") {
            self.long_value(long)
        } else {
            let last = text.chars().next_back().filter(|_| text.starts_with('-'));
            last.and_then(|letter| letter_value(self.letters, letter))
        };
        value == Some(OptionValue::Needed)
    }

    /// Whether a long option has a value, if it is known.
    pub(super) fn long_value(&self, name: &str) -> Option<OptionValue> {
        let is_help = self.has_help && has_name("help version", name);
        let named = || long_value(self.long, name).or_else(|| long_value(self.shared_long, name));
        if is_help { Some(OptionValue::None) } else { named() }
    }

    fn parse_long<'a>(&self, long: &str, words: &mut Words<'a>, parsed: &mut Parsed<'a>) -> Option<()> {
        let (name, given) = name_and_value(long);
        let value = match (self.long_value(name)?, given) {
            (OptionValue::None, Some(_)) => return None,
            (OptionValue::Needed, None) => Some(value(words.next()?)?),
            (_, given) => given.map(str::to_owned),
        };
        parsed.options.push((name.to_owned(), value));
        Some(())
    }

    fn parse_letters<'a>(&self, letters: &str, words: &mut Words<'a>, parsed: &mut Parsed<'a>) -> Option<()> {
        if self.has_number && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(());
        }
        for (at, letter) in letters.char_indices() {
            let rest = &letters[at + letter.len_utf8()..];
            let value = match letter_value(self.letters, letter)? {
                OptionValue::None => None,
                OptionValue::Needed if rest.is_empty() => Some(value(words.next()?)?),
                OptionValue::Needed | OptionValue::Attached => Some(rest.to_owned()),
            };
            let is_last = value.is_some();
            parsed.options.push((letter.to_string(), value));
            if is_last {
                break;
            }
        }
        Some(())
    }
}

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionValue {
    None,
    /// Attached, or in the next word.
    Needed,
    /// If any, it is attached.
    Attached,
}

impl OptionValue {
    fn of_colons(behind: &str) -> Self {
        match behind.as_bytes() {
            [b':', b':', ..] => Self::Attached,
            [b':', ..] => Self::Needed,
            _ => Self::None,
        }
    }
}

/// Whether a letter of a list has a value, if it is in the list.
pub(crate) fn letter_value(letters: &str, letter: char) -> Option<OptionValue> {
    let (_, behind) = letters.split_once(letter).filter(|_| letter != ':')?;
    Some(OptionValue::of_colons(behind))
}

/// Whether a long option of a list has a value, if it is in the list.
pub(crate) fn long_value(options: &str, name: &str) -> Option<OptionValue> {
    let behind = options
        .split(' ')
        .find_map(|option| option.strip_prefix(name).filter(|behind| matches!(*behind, "" | ":" | "::")))?;
    (!name.is_empty() && !name.contains(':')).then(|| OptionValue::of_colons(behind))
}

/// A word that is certainly the value of the option before it.
fn value(word: &Word) -> Option<String> {
    (!word.is_split && !word.is_pattern).then(|| word.text.clone())
}
