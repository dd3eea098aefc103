//! `find`: looking is all it does as long as no action runs, removes or writes something.

use super::{Context, Facts, literal, looks};
use crate::expansion::is_unusual_text;
use crate::names::has_name;
use crate::{LinePath, ListedNames, NameEnd, PipedNames, Word};

/// Tests and actions without a value.
const PLAIN: &str = "-a -and -daystart -depth -d -empty -executable -false -ignore_readdir_race -ls -mount -nogroup \
    -noignore_readdir_race -noleaf -nouser -nowarn -not -o -or -print -print0 -prune -quit -readable -true -warn -writable \
    -xdev -help --help -version --version ! ( ) ,";
/// Tests and actions with one value.
const VALUED: &str = "-amin -anewer -atime -cmin -cnewer -context -ctime -fstype -gid -group -ilname -iname -inum -ipath \
    -iregex -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -path -perm -printf -regex \
    -regextype -samefile -size -type -uid -used -user -wholename -xtype";

/// Whether something in the arguments runs a program or changes a file, or may turn out to.
pub(super) fn runs_or_changes(name: &str, arguments: &[Word], gets_more: bool) -> bool {
    if super::base_name(name) != "find" {
        return false;
    }
    let does = |word: &Word| {
        ["-exec", "-ok", "-delete", "-fprint", "-fls"].iter().any(|action| word.text.starts_with(action))
    };
    gets_more || arguments.iter().any(does) || may_become_action(arguments)
}

/// Whether bash could make an action of a word that is not written as one.
fn may_become_action(arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let is_open = word.text.starts_with('-') && literal(word).is_none();
        if is_open || (super::may_become_option(word) && !fits_no_action(word)) {
            return true;
        }
        if has_name(VALUED, &word.text) || is_newer(&word.text) {
            // A test takes one word, whatever is in it.
            let is_several = |value: &Word| value.is_split || (value.is_pattern && !fits_no_action(value));
            if words.next().is_some_and(is_several) {
                return true;
            }
        }
    }
    false
}

/// A pattern that ends with something no action ends with: `*.c`.
fn fits_no_action(word: &Word) -> bool {
    let end = word.text.rsplit(['*', '?', ']']).next().unwrap_or_default();
    word.is_pattern && !word.is_unknown() && !word.is_split && end.contains(['.', '/'])
}

pub(super) fn judge(arguments: &[Word], context: &Context<'_>) -> Option<Facts> {
    let is_path =
        |word: &&Word| !word.text.starts_with('-') && !matches!(word.text.as_str(), "!" | "(" | ")" | ",");
    // `-H` and `-P` say what to do about links; with `-L` it would look outside.
    let options = arguments.iter().take_while(|word| matches!(word.text.as_str(), "-H" | "-P")).count();
    let arguments = &arguments[options..];
    let paths: Vec<&Word> = arguments.iter().take_while(is_path).collect();
    if paths.iter().any(|path| super::may_become_option(path)) {
        return None;
    }
    let tests = &arguments[paths.len()..];
    let reads = if paths.is_empty() { context.here(true) } else { context.paths(paths, true) };
    let mut shown = Vec::new();
    let mut words = tests.iter();
    let mut prints_only_names = true;
    while let Some(word) = words.next() {
        let test = literal(word)?;
        prints_only_names &= !matches!(test, "-ls" | "-printf" | "-exec");
        if test == "-exec" {
            shown.extend(shown_by(words.by_ref(), &super::listed(&reads, &handed(tests)), context)?);
        } else if has_name(VALUED, test) || is_newer(test) {
            let value = words.next()?;
            // A pattern that is not quoted could become several words, and a run-time text an action.
            if value.is_pattern || value.is_split {
                return None;
            }
        } else if !has_name(PLAIN, test) {
            return None;
        }
    }
    let names = if prints_only_names { super::listed(&reads, &handed(tests)) } else { Vec::new() };
    let mut facts = looks([reads, shown].concat());
    facts.names = names;
    Some(facts)
}

/// What a program that `-exec` runs looks at, if it only looks whatever names it is given.
fn shown_by<'a>(
    words: &mut impl Iterator<Item = &'a Word>,
    names: &[LinePath],
    context: &Context<'_>,
) -> Option<Vec<LinePath>> {
    let name = literal(words.next()?)?;
    let tool = super::tools::find(name).filter(|tool| tool.is_harmless)?;
    let mut arguments = Vec::new();
    loop {
        let word = words.next()?;
        match literal(word)? {
            ";" => break,
            "+" if arguments.last().is_some_and(Word::is_unknown) => break,
            "{}" => arguments.push(Word {
                text: "\0".to_owned(),
                choices: super::taken(names, NameEnd::Nul).collect(),
                ..Word::default()
            }),
            text if text.contains("{}") => return None,
            _ => arguments.push(word.clone()),
        }
    }
    tool.judge(&arguments, context).map(|facts| facts.reads)
}

/// Which names are printed, by the tests that all of them pass. A test behind an action holds nothing back.
fn handed(tests: &[Word]) -> PipedNames {
    let is_action = |word: &Word| has_name("-print -print0 -exec", &word.text);
    let ends_with_nul = tests.iter().any(|word| matches!(word.text.as_str(), "-print0" | "-exec"));
    let tests = &tests[..tests.iter().position(is_action).unwrap_or(tests.len())];
    let is_either = |word: &Word| has_name("-o -or ! -not ( ) ,", &word.text);
    let value = |test: &str| {
        let at = tests.iter().position(|word| word.text == test)?;
        tests.get(at + 1).and_then(literal)
    };
    let is_certain = !tests.iter().any(is_either);
    let listed =
        if is_certain && value("-type") == Some("f") { ListedNames::Files } else { ListedNames::All };
    let end = if ends_with_nul { NameEnd::Nul } else { NameEnd::Line };
    let pattern = value("-name").filter(|name| is_certain && !is_unusual_text(name)).map(str::to_owned);
    PipedNames { listed, end, is_led: true, pattern }
}

/// `-newermt` and its like.
fn is_newer(test: &str) -> bool {
    let letters = test.strip_prefix("-newer").unwrap_or_default().as_bytes();
    matches!(letters, [b'a' | b'B' | b'c' | b'm', b'a' | b'B' | b'c' | b'm' | b't'])
}
