//! Which files a command line may change, as far as its text tells.

mod lex;
mod programs;
mod word;

use lex::{Token, Word};
use programs::Hit;
use word::Argument;

/// Longer lines are not looked at.
const BYTES_MAX: usize = 1 << 20;
/// No more paths are named.
const PATHS_MAX: usize = 256;
/// Scripts inside scripts (`bash -c '…'`) are looked at this deep.
const DEPTH_MAX: usize = 3;

/// A path that a command line may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPath {
    /// Where the command runs: empty for where the line starts; relative to there; absolute; or in the home directory if it
    /// begins with `~`.
    pub directory: String,
    /// The path, relative to the directory or absolute.
    pub path: String,
    /// Whether the path is a pattern of names, with `*`, `?` and `[…]`; a backslash makes the next character plain.
    pub is_pattern: bool,
    /// If there is a directory at the path, this name in it is meant.
    pub inside: Option<String>,
}

/// The paths that a command line may change, as far as they can be known without running anything: targets of redirections, and
/// operands of the programs that are known to change files, in lists, pipelines and subshells, with `cd` followed.
///
/// It is an honest guess, made to keep files before they change: a path in it need not change, and a command may change
/// others. What depends on variables or substitutions is left out. It takes time in proportion to the length of the line.
///
/// ```
/// # use windlass_shell::changed_paths;
/// let paths: Vec<String> = changed_paths("cd src && sed -i s/a/b/ lib.rs > ../log").into_iter().map(|path| path.path).collect();
/// assert_eq!(paths, ["../log", "lib.rs"]);
/// ```
#[must_use]
pub fn changed_paths(line: &str) -> Vec<ChangedPath> {
    let mut walk = Walk::new(Some(String::new()), 0);
    walk.line(line);
    walk.found
}

/// A walk through the commands of a line.
struct Walk {
    found: Vec<ChangedPath>,
    place: Place,
    /// Where the shells around this one are.
    outer: Vec<Place>,
    words: Vec<Word>,
    targets: Vec<Word>,
    depth: usize,
}

/// Where a shell is.
#[derive(Clone, Default)]
struct Place {
    /// Where the next command runs; nothing if that is not known.
    directory: Option<String>,
    /// Where the pipeline started.
    started: Option<String>,
    /// Whether its parts are shells of their own.
    is_pipeline: bool,
}

impl Walk {
    fn new(directory: Option<String>, depth: usize) -> Self {
        Self {
            found: Vec::new(),
            place: Place { started: directory.clone(), directory, is_pipeline: false },
            outer: Vec::new(),
            words: Vec::new(),
            targets: Vec::new(),
            depth,
        }
    }

    fn line(&mut self, line: &str) {
        if line.len() > BYTES_MAX {
            return;
        }
        let mut redirection = None;
        for token in lex::tokens(line) {
            let before = redirection.take();
            match token {
                Token::Word(word) => match before {
                    Some(Token::Write) => self.targets.push(word),
                    Some(_) => {}
                    None => self.words.push(word),
                },
                Token::Write | Token::OtherRedirection => redirection = Some(token),
                operator => self.operator(&operator),
            }
            if self.found.len() >= PATHS_MAX {
                self.found.truncate(PATHS_MAX);
                return;
            }
        }
        self.end_command();
        self.found.truncate(PATHS_MAX);
    }

    fn operator(&mut self, operator: &Token) {
        self.place.is_pipeline |= matches!(operator, Token::Pipe | Token::Background);
        self.end_command();
        match operator {
            Token::Pipe => self.place.directory.clone_from(&self.place.started),
            Token::Open => {
                self.outer.push(self.place.clone());
                self.place.end_pipeline();
            }
            Token::Close => {
                if let Some(place) = self.outer.pop() {
                    self.place = place;
                }
            }
            _ => self.place.end_pipeline(),
        }
    }

    fn end_command(&mut self) {
        let targets = std::mem::take(&mut self.targets);
        let words = std::mem::take(&mut self.words);
        let arguments: Vec<Argument> = words.iter().flat_map(word::expand).collect();
        let arguments = skip_leading(&arguments);
        // Inside `[[ … ]]` a `>` compares.
        if arguments.first().is_none_or(|name| name.text != "[[") {
            for argument in targets.iter().flat_map(word::expand) {
                self.push(&Hit { argument, inside: None }, self.place.directory.clone().as_deref());
            }
        }
        if let Some((name, rest)) = arguments.split_first()
            && let Some(name) = name.literal()
        {
            let name = name.rsplit('/').next().unwrap_or(name);
            self.command(name, rest);
        }
    }

    fn command(&mut self, name: &str, arguments: &[Argument]) {
        match name {
            "cd" | "pushd" => self.place.directory = self.next_directory(arguments),
            "popd" => self.place.directory = None,
            "bash" | "sh" | "zsh" | "dash" => self.script(arguments),
            "git" => self.git(arguments),
            _ => {
                let directory = self.place.directory.clone();
                for hit in programs::hits(name, arguments) {
                    self.push(&hit, directory.as_deref());
                }
            }
        }
    }

    fn next_directory(&self, arguments: &[Argument]) -> Option<String> {
        let mut operands = arguments.iter().filter(|word| !matches!(word.text.as_str(), "-P" | "-L" | "--"));
        let Some(target) = operands.next() else { return Some("~".to_owned()) };
        if target.text == "-" || target.text.starts_with('+') {
            return None;
        }
        target.literal()?;
        join(self.place.directory.as_deref(), target)
    }

    /// `bash -c '…'`
    fn script(&mut self, arguments: &[Argument]) {
        let is_script = |word: &Argument| {
            word.text.starts_with('-') && !word.text.starts_with("--") && word.text.ends_with('c')
        };
        let Some(at) = arguments.iter().position(is_script) else { return };
        let Some(script) = arguments.get(at + 1).filter(|script| !script.unknown) else { return };
        if self.depth < DEPTH_MAX {
            let mut inner = Walk::new(self.place.directory.clone(), self.depth + 1);
            inner.line(&script.text);
            self.found.append(&mut inner.found);
        }
    }

    fn git(&mut self, arguments: &[Argument]) {
        let mut directory = self.place.directory.clone();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "-C" => directory = words.next().and_then(|target| join(directory.as_deref(), target)),
                "-c" => {
                    words.next();
                }
                option if option.starts_with('-') => {}
                subcommand => {
                    for hit in programs::git_hits(subcommand, words.as_slice()) {
                        self.push(&hit, directory.as_deref());
                    }
                    return;
                }
            }
        }
    }

    fn push(&mut self, hit: &Hit, directory: Option<&str>) {
        let argument = &hit.argument;
        if argument.unknown || argument.text.is_empty() || argument.text.contains('\0') {
            return;
        }
        let text = argument.pattern.as_ref().unwrap_or(&argument.text);
        let (directory, path) = if argument.home {
            ("~", text.trim_start_matches('~').trim_start_matches('/'))
        } else if text.starts_with('/') {
            ("", text.as_str())
        } else if let Some(directory) = directory {
            (directory, text.as_str())
        } else {
            return;
        };
        let path = if path.is_empty() { "." } else { path };
        self.found.push(ChangedPath {
            directory: directory.to_owned(),
            path: path.to_owned(),
            is_pattern: argument.pattern.is_some(),
            inside: hit.inside.clone(),
        });
    }
}

impl Place {
    fn end_pipeline(&mut self) {
        // Where the parts of a pipeline went is forgotten.
        if self.is_pipeline {
            self.directory.clone_from(&self.started);
        }
        self.started.clone_from(&self.directory);
        self.is_pipeline = false;
    }
}

/// The directory at a path seen from another.
fn join(directory: Option<&str>, target: &Argument) -> Option<String> {
    let text = target.literal()?;
    if text.starts_with('/') || target.home {
        return Some(text.to_owned());
    }
    let directory = directory?;
    // A directory that is really called `~` must not look like the home directory.
    let text = if text.starts_with('~') { format!("./{text}") } else { text.to_owned() };
    Some(if directory.is_empty() { text } else { format!("{directory}/{text}") })
}

/// The words from the program's name on: without assignments, grammar and programs that only run others.
fn skip_leading(mut words: &[Argument]) -> &[Argument] {
    const GRAMMAR: [&str; 12] =
        ["!", "{", "if", "then", "elif", "else", "while", "until", "do", "time", "exec", "builtin"];
    const RUNNERS: [&str; 5] = ["sudo", "env", "command", "nohup", "nice"];
    loop {
        let Some((first, rest)) = words.split_first() else { return words };
        let name = first.text.as_str();
        if GRAMMAR.contains(&name) || is_assignment(name) {
            words = rest;
        } else if RUNNERS.contains(&name) {
            let options = rest.iter().take_while(|word| word.text.starts_with('-')).count();
            words = &rest[options..];
        } else {
            return words;
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
