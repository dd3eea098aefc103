//! Which of its arguments a program changes.

use super::word::Argument;

/// What a program does to its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Changes them all.
    All,
    /// Changes all but the first, which says how.
    AllButFirst,
    /// Changes the last, or puts the others into it.
    Last,
    /// Changes the last, and takes the others away.
    Move,
    /// Makes the last a name of the first, or a name in the working directory.
    Link,
    /// Changes only the first.
    First,
    /// Changes only what options name.
    Options,
}

struct Program {
    names: &'static [&'static str],
    /// Letters of options that take a value.
    valued: &'static str,
    /// Long options that take the next word as their value.
    long: &'static [&'static str],
    /// Options that name a file which is written.
    output: &'static [&'static str],
    rule: Rule,
}

const PROGRAMS: &[Program] = &[
    Program { names: &["rm", "rmdir", "unlink", "mkdir"], valued: "m", ..ALL },
    Program { names: &["touch"], valued: "drt", long: &["date", "reference"], ..ALL },
    Program { names: &["tee"], ..ALL },
    Program { names: &["truncate"], valued: "sr", long: &["size", "reference"], ..ALL },
    Program { names: &["shred"], valued: "ns", long: &["iterations", "size"], ..ALL },
    Program { names: &["chmod"], rule: Rule::AllButFirst, ..ALL },
    Program { names: &["cp"], valued: "S", long: &["suffix"], rule: Rule::Last, ..ALL },
    Program {
        names: &["install"],
        valued: "mogS",
        long: &["mode", "owner", "group", "suffix"],
        rule: Rule::Last,
        ..ALL
    },
    Program { names: &["mv"], valued: "S", long: &["suffix"], rule: Rule::Move, ..ALL },
    Program { names: &["ln"], valued: "S", long: &["suffix"], rule: Rule::Link, ..ALL },
    Program {
        names: &["patch"],
        valued: "pidFDBzY",
        long: &["strip", "input", "directory"],
        output: &["-o", "--output"],
        rule: Rule::First,
    },
    Program { names: &["sort"], output: &["-o", "--output"], rule: Rule::Options, ..ALL },
    Program { names: &["curl"], output: &["-o", "--output"], rule: Rule::Options, ..ALL },
    Program { names: &["wget"], output: &["-O", "--output-document"], rule: Rule::Options, ..ALL },
];

const ALL: Program = Program { names: &[], valued: "", long: &[], output: &[], rule: Rule::All };

/// One thing that is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) argument: Argument,
    /// If the argument is a directory, this name in it is meant.
    pub(super) inside: Option<String>,
}

impl Hit {
    fn of(argument: &Argument) -> Self {
        Self { argument: argument.clone(), inside: None }
    }
}

/// What a command changes, by its name and arguments. Unknown programs change nothing that is known.
pub(super) fn hits(name: &str, arguments: &[Argument]) -> Vec<Hit> {
    match name {
        "sed" => in_place::sed(arguments),
        "perl" => in_place::perl(arguments),
        "dd" => arguments.iter().filter_map(|argument| Some(Hit::of(&argument.without("of=")?))).collect(),
        _ => match PROGRAMS.iter().find(|program| program.names.contains(&name)) {
            Some(program) => program.hits(arguments),
            None => Vec::new(),
        },
    }
}

/// What `git` changes in its working directory, by the subcommand and its arguments.
pub(super) fn git_hits(subcommand: &str, arguments: &[Argument]) -> Vec<Hit> {
    let program = match subcommand {
        "checkout" => Program { valued: "bB", long: &["orphan"], ..ALL },
        "restore" => Program { valued: "s", long: &["source"], ..ALL },
        "rm" => ALL,
        "mv" => Program { rule: Rule::Move, ..ALL },
        _ => return Vec::new(),
    };
    program.hits(arguments)
}

/// Arguments taken apart.
#[derive(Default)]
struct Parsed<'a> {
    operands: Vec<&'a Argument>,
    written: Vec<Argument>,
    /// The directory of `-t`.
    into: Option<Argument>,
    /// `install -d`: directories are made.
    directories: bool,
    /// `chmod -x`, `chmod --reference=f`: the first operand is a file already.
    mode_given: bool,
}

impl Program {
    fn hits(&self, arguments: &[Argument]) -> Vec<Hit> {
        let parsed = self.parse(arguments);
        let operands = &parsed.operands[..];
        let all = |operands: &[&Argument]| -> Vec<Hit> {
            operands.iter().map(|operand| Hit::of(operand)).collect()
        };
        let mut hits = match self.rule {
            Rule::All => all(operands),
            Rule::AllButFirst if parsed.mode_given => all(operands),
            Rule::AllButFirst => all(operands.get(1..).unwrap_or_default()),
            Rule::First => all(operands.get(..1).unwrap_or_default()),
            Rule::Last if parsed.directories => all(operands),
            Rule::Last => destination(operands, parsed.into.as_ref()),
            Rule::Move => {
                let sources = operands.len() - usize::from(parsed.into.is_none() && !operands.is_empty());
                [all(&operands[..sources]), destination(operands, parsed.into.as_ref())].concat()
            }
            Rule::Link => link(operands, parsed.into.as_ref()),
            Rule::Options => Vec::new(),
        };
        hits.extend(parsed.written.iter().map(Hit::of));
        hits
    }

    fn parse<'a>(&self, arguments: &'a [Argument]) -> Parsed<'a> {
        let mut parsed = Parsed::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if word.unknown || !text.starts_with('-') || text == "-" {
                parsed.operands.push(word);
            } else if text == "--" {
                parsed.operands.extend(words.by_ref());
            } else if let Some(long) = text.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, _)) => (name, word.without(&format!("--{name}="))),
                    None if self.has_value(long) => (long, words.next().cloned()),
                    None => (long, None),
                };
                self.take(&mut parsed, &format!("--{name}"), value);
            } else {
                self.parse_letters(&mut parsed, word, &mut words);
            }
        }
        parsed
    }

    /// A group of options of one letter; only the last can have a value.
    fn parse_letters<'a>(
        &self,
        parsed: &mut Parsed<'a>,
        word: &'a Argument,
        words: &mut std::slice::Iter<'a, Argument>,
    ) {
        let letters = &word.text[1..];
        if self.rule == Rule::AllButFirst && letters.contains(|c: char| "rwxXstugo".contains(c)) {
            parsed.mode_given = true;
            return;
        }
        for (at, letter) in letters.char_indices() {
            let option = format!("-{letter}");
            if !self.valued.contains(letter)
                && !self.output.contains(&option.as_str())
                && !self.is_into(letter)
            {
                self.take(parsed, &option, None);
                continue;
            }
            let value = match &letters[at + letter.len_utf8()..] {
                "" => words.next().cloned(),
                attached => {
                    let prefix = &word.text[..word.text.len() - attached.len()];
                    word.without(prefix)
                }
            };
            return self.take(parsed, &option, value);
        }
    }

    fn is_into(&self, letter: char) -> bool {
        letter == 't' && matches!(self.rule, Rule::Last | Rule::Move | Rule::Link)
    }

    fn has_value(&self, long: &str) -> bool {
        self.long.contains(&long)
            || long == "target-directory"
            || self.output.iter().any(|name| name.get(2..) == Some(long))
    }

    fn take(&self, parsed: &mut Parsed<'_>, option: &str, value: Option<Argument>) {
        match option {
            "--target-directory" => parsed.into = value,
            "-t" if self.is_into('t') => parsed.into = value,
            "-d" | "--directory" if self.names.contains(&"install") => parsed.directories = true,
            "--reference" if self.rule == Rule::AllButFirst => parsed.mode_given = true,
            option if self.output.contains(&option) => parsed.written.extend(value),
            _ => {}
        }
    }
}

/// Where sources are put: under the last operand, or it is what they become.
fn destination(operands: &[&Argument], into: Option<&Argument>) -> Vec<Hit> {
    let (target, sources) = match (into, operands) {
        (Some(into), sources) => (into, sources),
        (None, [sources @ .., target]) if !sources.is_empty() => (*target, sources),
        _ => return Vec::new(),
    };
    let inside = |source: &&Argument| Hit { argument: target.clone(), inside: last_name(source) };
    sources.iter().map(inside).collect()
}

fn link(operands: &[&Argument], into: Option<&Argument>) -> Vec<Hit> {
    match (into, operands) {
        (None, [target]) => {
            let text = last_name(target);
            let argument =
                text.map(|text| Argument { text, pattern: None, home: false, unknown: target.unknown });
            argument.iter().map(Hit::of).collect()
        }
        _ => destination(operands, into),
    }
}

fn last_name(argument: &Argument) -> Option<String> {
    let name = argument.literal()?.trim_end_matches('/').rsplit('/').next()?;
    (!matches!(name, "" | "." | "..")).then(|| name.to_owned())
}

/// Programs that write back into the files they read.
mod in_place {
    use super::{Argument, Hit};

    /// What was found among the options.
    #[derive(Default)]
    struct Options<'a> {
        /// The suffix of `-i`.
        in_place: Option<String>,
        has_script: bool,
        operands: Vec<&'a Argument>,
    }

    impl Options<'_> {
        /// Whether the value of a long option is the next word.
        fn take_long(&mut self, long: &str) -> bool {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            let is_script = matches!(name, "expression" | "file");
            self.has_script |= is_script;
            if name == "in-place" {
                self.in_place = Some(value.to_owned());
            }
            is_script && !long.contains('=')
        }
    }

    pub(super) fn sed(arguments: &[Argument]) -> Vec<Hit> {
        hits(&options(arguments, "efl", "ef"))
    }

    pub(super) fn perl(arguments: &[Argument]) -> Vec<Hit> {
        hits(&options(arguments, "eE", "eE"))
    }

    /// `valued` options take a value, `scripts` bring the script, so that every operand is a file.
    fn options<'a>(arguments: &'a [Argument], valued: &str, scripts: &str) -> Options<'a> {
        let mut found = Options::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if word.unknown || !text.starts_with('-') || text == "-" {
                found.operands.push(word);
            } else if text == "--" {
                found.operands.extend(words.by_ref());
            } else if let Some(long) = text.strip_prefix("--") {
                if found.take_long(long) {
                    words.next();
                }
            } else if letters(&text[1..], (valued, scripts), &mut found) {
                words.next();
            }
        }
        found
    }

    /// Whether the value of the last letter is the next word.
    fn letters(letters: &str, (valued, scripts): (&str, &str), found: &mut Options<'_>) -> bool {
        for (at, letter) in letters.char_indices() {
            let attached = &letters[at + letter.len_utf8()..];
            found.has_script |= scripts.contains(letter);
            if letter == 'i' {
                found.in_place = Some(attached.to_owned());
                return false;
            }
            if valued.contains(letter) {
                return attached.is_empty();
            }
            // Perl's options whose value is always attached.
            if "MmIFDCx".contains(letter) && scripts.contains('E') {
                return false;
            }
        }
        false
    }

    fn hits(options: &Options<'_>) -> Vec<Hit> {
        let Some(suffix) = &options.in_place else { return Vec::new() };
        let files = options.operands.iter().skip(usize::from(!options.has_script));
        let mut hits = Vec::new();
        for file in files {
            hits.push(Hit::of(file));
            if !suffix.is_empty() && !suffix.contains(['*', '/']) {
                let mut kept = (*file).clone();
                kept.text.push_str(suffix);
                if let Some(pattern) = &mut kept.pattern {
                    pattern.push_str(suffix);
                }
                hits.push(Hit::of(&kept));
            }
        }
        hits
    }
}
