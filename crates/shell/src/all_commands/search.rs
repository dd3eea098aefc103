//! Programs that look for files and do something with each: `find` and `fd`.

use super::word::Argument;
use crate::SearchFilter;
use crate::expansion::{is_unusual_text, may_take_next};
use crate::names::{has_name as has, letter_group, name_and_value};

/// So many places where a search begins are told apart.
const ROOTS_MAX: usize = 8;

/// Words of `find` that let the directory through where it begins, or with a depth all that is in it.
const LETS_THROUGH: &str = "-delete -depth -d -print -print0 -ls -xdev -x -mount -L -P -H -follow -maxdepth -mindepth -true -readable \
    -writable -executable -user -uid -group -gid -perm -a -and -noleaf -warn -nowarn -daystart -ignore_readdir_race -regextype -quit \
    -printf -fprint -fls -fprintf -fprint0";
/// Words of `find` after which a filter does not hold for what follows, or is turned round.
const TURNS: &str = "-o -or -not ! ,";
/// Options of `fd` with a value.
const FD_VALUED: &str = "-d -t -e -E -S -c -j -o --max-depth --min-depth --exact-depth --type --extension --exclude --size --color \
    --threads --owner --changed-within --changed-before --max-results --base-directory --format";
/// Those of them, and other options, that leave files out.
const FD_FILTERS: &str =
    "-e -E -S -o --extension --exclude --size --owner --changed-within --changed-before --max-results";

/// A search, taken apart.
struct Search<'a> {
    roots: Vec<Argument>,
    /// What is run for what is found.
    commands: Vec<Vec<&'a Argument>>,
    /// It may find the directory where it begins, or everything in it.
    finds_root: bool,
}

impl<'a> Search<'a> {
    fn new(base: &str, arguments: &'a [Argument]) -> Self {
        let is_fd = base != "find";
        let mut rest = Vec::new();
        let mut commands = Vec::new();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if is_action(&word.text, is_fd) {
                commands.push(words.by_ref().take_while(|word| !has("; +", &word.text)).collect());
            } else {
                rest.push(word);
            }
        }
        let (mut roots, finds_root) = if is_fd { fd(&rest) } else { find(&rest) };
        // Behind these, other words may be the places than those that seem to be.
        let is_open = |word: &&Argument| {
            may_take_next(base, &word.text) || (!is_fd && (word.text.starts_with("-D") || word.text == "-f"))
        };
        if rest.iter().any(is_open) {
            roots.push(Argument::unknown());
        }
        if roots.is_empty() {
            roots.push(Argument::new("."));
        } else if roots.len() >= ROOTS_MAX {
            roots.truncate(ROOTS_MAX);
            roots.push(Argument::unknown());
        }
        Self { roots, commands, finds_root }
    }
}

/// Whether a word begins a command that is run.
fn is_action(word: &str, is_fd: bool) -> bool {
    // In some kinds of `find`, `-x` is about file systems.
    let actions = if is_fd { "-x -X --exec --exec-batch" } else { "-exec -execdir -ok -okdir" };
    has(actions, word)
}

/// Where `find` begins, and whether it may find that.
fn find(words: &[&Argument]) -> (Vec<Argument>, bool) {
    let is_option =
        |word: &&&Argument| has("-L -P -H -x -d -X -E -s", &word.text) || word.text.starts_with("-O");
    let is_root = |word: &&&Argument| !word.text.starts_with(['-', '(', '!']);
    let start = words.iter().take_while(is_option).count();
    let mut roots: Vec<Argument> =
        words[start..].iter().take_while(is_root).map(|word| (*word).clone()).collect();
    if words.iter().any(|word| word.text.starts_with("-files0")) {
        roots.push(Argument::unknown());
    }
    let spares = words.iter().enumerate().any(|(at, word)| {
        let value = words.get(at + 1).map_or("", |word| word.text.as_str());
        is_filter(&word.text, value)
    });
    (roots, !spares || words.iter().any(|word| has(TURNS, &word.text)))
}

/// Whether a test of `find` leaves out the directory where it begins.
fn is_filter(test: &str, value: &str) -> bool {
    let fits_all = match test {
        "-type" | "-xtype" => value.split(',').any(|kind| kind == "d"),
        "-name" | "-iname" | "-path" | "-ipath" | "-wholename" => value.bytes().all(|byte| byte == b'*'),
        "-regex" | "-iregex" => value == ".*",
        _ => false,
    };
    // A number of days with a minus is no test.
    let is_test = test.starts_with('-') && !test[1..].starts_with(|c: char| c.is_ascii_digit());
    is_test && !fits_all && !has(LETS_THROUGH, test)
}

/// Where `fd` begins, and whether it finds everything there.
fn fd(words: &[&Argument]) -> (Vec<Argument>, bool) {
    let mut operands: Vec<&Argument> = Vec::new();
    let mut roots = Vec::new();
    let mut spares = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let name = text.split('=').next().unwrap_or_default();
        if !text.starts_with('-') || text == "-" {
            operands.push(word);
            continue;
        }
        spares |=
            has(FD_FILTERS, name) || FD_FILTERS.split(' ').any(|one| one.len() == 2 && text.starts_with(one));
        if has(FD_VALUED, text) {
            let value = words.next().map_or("", |value| value.text.as_str());
            spares |= has("-t --type", text) && !matches!(value, "d" | "dir" | "directory");
        }
        if let Some(root) = text.strip_prefix("--search-path=") {
            let is_home = root.starts_with('~');
            roots.push(Argument { is_home, ..Argument::new(root) });
        }
    }
    let pattern = operands.first().map_or("", |word| word.text.as_str());
    spares |= !matches!(pattern, "" | "." | ".*" | "^" | "*");
    roots.extend(operands.into_iter().skip(1).cloned());
    (roots, !spares)
}

/// What `-delete` removes.
pub(super) fn deleted(base: &str, arguments: &[Argument]) -> Vec<Argument> {
    if !arguments.iter().any(|word| word.text == "-delete") {
        return Vec::new();
    }
    let search = Search::new(base, arguments);
    let removed = |root: Argument| if search.finds_root { root } else { below(&root) };
    search.roots.into_iter().map(removed).collect()
}

/// What `-delete` changes: what is removed, by its name if that is all that is asked for.
pub(super) fn changed(arguments: &[Argument]) -> Vec<Argument> {
    let removed = deleted("find", arguments);
    let is_simple = !arguments.iter().any(|word| has(TURNS, &word.text));
    let at = arguments.iter().position(|word| word.text == "-name").filter(|_| is_simple);
    let name = at.and_then(|at| arguments.get(at + 1)).map_or("", |name| name.text.as_str());
    removed.into_iter().map(|found| by_name(found, name)).collect()
}

/// Something in a directory, by the name that it must have, or else all of the directory.
fn by_name(found: Argument, name: &str) -> Argument {
    let Some(root) = found.text.strip_suffix("/\0").filter(|_| found.is_below) else { return found };
    let is_named = !name.is_empty() && !name.contains(['\0', '/']) && !is_unusual_text(name);
    let text = if is_named { format!("{root}/**/{name}") } else { format!("{root}/") };
    Argument { text, is_pattern: is_named, is_below: false, ..found }
}

/// The commands that are run: what was found stands for `{}`, or comes last in `fd` if that is not written.
pub(super) fn executed(base: &str, arguments: &[Argument]) -> Vec<Vec<Argument>> {
    let search = Search::new(base, arguments);
    let found: Vec<Argument> = search
        .roots
        .iter()
        .flat_map(|root| [Some(below(root)), search.finds_root.then(|| root.clone())])
        .flatten()
        .collect();
    let mut executed = Vec::new();
    for command in &search.commands {
        let has_mark = command.iter().any(|word| word.text.contains("{}"));
        if !has_mark && base == "find" {
            executed.push(command.iter().map(|word| (*word).clone()).collect());
            continue;
        }
        for found in &found {
            let words = command.iter().map(|word| put(word, found));
            executed.push(words.chain((!has_mark).then(|| found.clone())).collect());
        }
    }
    executed
}

/// Something in a directory.
fn below(root: &Argument) -> Argument {
    let text = format!("{}/\0", root.text.trim_end_matches('/'));
    Argument { text, is_below: true, ..root.clone() }
}

/// A word of a command with what was found in it.
fn put(word: &Argument, found: &Argument) -> Argument {
    if word.text == "{}" {
        return found.clone();
    }
    let is_name = word.text.starts_with("{}");
    Argument {
        text: word.text.replace("{}", &found.text),
        is_home: word.is_home || (is_name && found.is_home),
        is_other_home: word.is_other_home || (is_name && found.is_other_home),
        ..word.clone()
    }
}

/// Which files a search opens, if not all.
pub(super) fn only(base: &str, arguments: &[Argument]) -> Option<SearchFilter> {
    let long = |word: &'_ Argument| {
        let (name, value) = name_and_value(word.text.strip_prefix("--")?);
        Some((name.to_owned(), value.unwrap_or_default().to_owned()))
    };
    let options: Vec<(String, String)> = arguments
        .iter()
        .flat_map(|word| match letter_group(&word.text) {
            Some(letters) => letters.chars().map(|letter| (letter.to_string(), String::new())).collect(),
            None => long(word).into_iter().collect::<Vec<_>>(),
        })
        .collect();
    // A pattern in a word of its own is not told apart from what follows.
    if options.iter().any(|(name, value)| name == "include" && (value.is_empty() || value.contains('\0'))) {
        return None;
    }
    let only =
        SearchFilter::of_search(base, options.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    // Abbreviations and words that nobody knows may be any option.
    let is_open = |word: &Argument| {
        word.text.starts_with('\0')
            || "--hidden".starts_with(&word.text)
            || "--no-ignore".starts_with(&word.text)
    };
    only.filter(|_| !arguments.iter().any(is_open))
}
