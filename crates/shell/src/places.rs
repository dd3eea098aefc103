//! Where commands run: directories, followed through a line.

use std::borrow::Cow;

use windlass_protocol::CommandWord;

use crate::analysis::UNKNOWN;
use crate::{CommandDirectory, LinePath, Word};

/// More directories at once are not told apart.
const PLACES_MAX: usize = 4;

/// No directory has a longer name.
const PATH_MAX: usize = 4096;

/// The directories a command may run in: one unless a `cd` may have failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    first: CommandDirectory,
    others: Vec<CommandDirectory>,
}

impl Default for Places {
    fn default() -> Self {
        Self::at(CommandDirectory::Start)
    }
}

impl Places {
    fn at(place: CommandDirectory) -> Self {
        Self { first: place, others: Vec::new() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CommandDirectory> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The one directory, or none that is known.
    pub(crate) fn one(&self) -> CommandDirectory {
        if self.others.is_empty() { self.first.clone() } else { CommandDirectory::Unknown }
    }

    pub(crate) fn contains(&self, place: &CommandDirectory) -> bool {
        self.first == *place || self.others.contains(place)
    }

    /// Both.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let mut places = self.clone();
        for place in other.iter() {
            if !places.contains(place) {
                places.others.push(place.clone());
            }
        }
        if places.others.len() >= PLACES_MAX || places.contains(&CommandDirectory::Unknown) {
            return Self::unknown();
        }
        places
    }

    /// Where `cd` leads from here; with no target, home.
    pub(crate) fn enter(&self, target: Option<&str>) -> Self {
        let next = |place: &CommandDirectory| Self::at(join(place, target.unwrap_or("~")));
        self.others.iter().fold(next(&self.first), |places, place| places.or(&next(place)))
    }

    pub(crate) fn unknown() -> Self {
        Self::at(CommandDirectory::Unknown)
    }
}

/// What a path is called whose text is a word: a file that is really called `~` must not look like the home directory.
pub(crate) fn path_text(word: &Word) -> String {
    if word.text.starts_with('~') && !word.is_home { format!("./{}", word.text) } else { word.text.clone() }
}

/// A pattern without the parts that may fit `..`, which older shells let them: nobody knows where those lead.
fn without_climbing(text: &str) -> String {
    let may_climb = |part: &str| {
        let Some(rest) = part.strip_prefix('.') else { return false };
        let is_open = rest.starts_with(['*', '?', '[']) && !rest.starts_with("??");
        is_open && rest.ends_with(['*', '?', ']', '.'])
    };
    let parts: Vec<&str> = text.split('/').map(|part| if may_climb(part) { "\0" } else { part }).collect();
    parts.join("/")
}

/// The path a word names, once for each directory it may be relative to.
pub(crate) fn named(text: &str, is_pattern: bool, places: &Places) -> Vec<LinePath> {
    let may_climb = is_pattern && (text.starts_with('.') || text.contains("/."));
    let text = if may_climb { Cow::Owned(without_climbing(text)) } else { Cow::Borrowed(text) };
    let path = |from: &CommandDirectory| LinePath {
        text: CommandWord::from_marked(&text, UNKNOWN),
        from: from.clone(),
        is_pattern,
        is_recursive: false,
        is_redirected: false,
        only: None,
        handed: None,
    };
    let count = if text.starts_with(['/', '~']) { 1 } else { usize::MAX };
    places.iter().take(count).map(path).collect()
}

/// A directory seen from another, cleaned as the shell cleans it: `..` takes away the name before it.
fn join(place: &CommandDirectory, target: &str) -> CommandDirectory {
    let start = match place {
        _ if target.starts_with(['/', '~']) => String::new(),
        CommandDirectory::Unknown => return CommandDirectory::Unknown,
        CommandDirectory::Start => String::new(),
        CommandDirectory::Within(directory) => format!("{directory}/"),
    };
    if target.contains('\0') || start.len() + target.len() > PATH_MAX {
        return CommandDirectory::Unknown;
    }
    clean(&format!("{start}{target}"))
}

fn clean(path: &str) -> CommandDirectory {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                // What is above a home directory is not known.
                Some(&"~") if parts.len() == 1 => return CommandDirectory::Unknown,
                Some(&"..") | None if !path.starts_with('/') => parts.push(".."),
                _ => {
                    parts.pop();
                }
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') {
        return CommandDirectory::Within(format!("/{joined}"));
    }
    match joined.as_str() {
        "" => CommandDirectory::Start,
        // The dot that kept a name from looking like the home directory was cleaned away.
        name if name.starts_with('~') && !path.starts_with('~') => {
            CommandDirectory::Within(format!("./{name}"))
        }
        _ => CommandDirectory::Within(joined),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_may_lead_up_are_unknown() {
        let check = |text: &str, expected: &str| {
            let paths = named(text, true, &Places::default());
            assert_eq!(paths[0].marked(), expected, "{text:?}");
        };
        check(".*", "\0");
        check(".?", "\0");
        check(".[.a]", "\0");
        check(".[a-z]*", "\0");
        check("a/.*/b", "a/\0/b");
        check(".*/*", "\0/*");
        check(".*.", "\0");
        check(".??*", ".??*");
        check(".*rc", ".*rc");
        check(".g*/x", ".g*/x");
        check("*", "*");
        check("../*", "../*");
    }

    #[test]
    fn directories_are_followed() {
        let check = |steps: &[&str], expected: CommandDirectory| {
            let mut places = Places::default();
            for step in steps {
                places = places.enter(Some(step));
            }
            assert_eq!(places.one(), expected, "{steps:?}");
        };
        let within = |text: &str| CommandDirectory::Within(text.to_owned());
        check(&["a"], within("a"));
        check(&["a", "b"], within("a/b"));
        check(&["a", ".."], CommandDirectory::Start);
        check(&["a/./b//", "../c"], within("a/c"));
        check(&[".."], within(".."));
        check(&["..", "..", "a"], within("../../a"));
        check(&["/a", "..", ".."], within("/"));
        check(&["~"], within("~"));
        check(&["~/a", "../b"], within("~/b"));
        check(&["~", ".."], CommandDirectory::Unknown);
        check(&["./~"], within("./~"));
        check(&["./~", "a"], within("./~/a"));
        check(&["a\0"], CommandDirectory::Unknown);
        check(&["a\0", "b"], CommandDirectory::Unknown);
        check(&["a\0", "/b"], within("/b"));
    }
}
