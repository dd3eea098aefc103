//! Patterns of paths against an implementation of ignore files that many use, and what holds for every one of them.
//!
//! The two mean the same for whatever is written in both. Left out is what only one of them knows: anchors (`//`, `~`, `./`, `../`),
//! comments, negations and blanks at the end, braces, sets that do not end or run backwards, a backslash at the very end, sets of
//! what is not meant in paths of several parts, and patterns of nothing but stars.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use proptest::prelude::*;

use super::*;
use crate::rules::tests::properties::seeded;

const ROOT: &str = "/srv/app";

fn at_root() -> Anchors {
    Anchors {
        settings: ROOT.into(),
        start: ROOT.into(),
        roots: vec![ROOT.into()],
        home: Some("/home/me".into()),
    }
}

fn parsed(text: &str, behaviour: Behaviour) -> Result<PathPattern, &'static str> {
    PathPattern::parse(text, behaviour, &at_root())
}

/// The other implementation; `None` if it takes the pattern for an error.
fn oracle(text: &str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(ROOT);
    builder.add_line(None, text).ok()?;
    builder.build().ok()
}

/// Whether the other implementation means a path or a directory above it; `None` where the two differ on purpose.
fn is_ignored(text: &str, path: &str, is_directory: bool) -> Option<bool> {
    // What means everything means the root as well, and an ignore file never speaks of that.
    let means_everything = text.chars().all(|c| matches!(c, '*' | '/'));
    // To the other one a slash is none of the characters left out, so its set stands for the slash too; git's does not.
    let takes_slash = text.contains("[!") && path.contains('/');
    if means_everything || takes_slash {
        return None;
    }
    let oracle = oracle(text)?;
    let above = path.match_indices('/').map(|(at, _)| (&path[..at], true));
    Some(
        above
            .chain([(path, is_directory)])
            .any(|(name, is_directory)| oracle.matched(name, is_directory).is_ignore()),
    )
}

fn fact(path: &str, is_directory: bool) -> PathFact {
    PathFact { is_directory, ..place(path) }
}

/// A part of a pattern between two slashes.
fn part() -> impl Strategy<Value = String> {
    let pieces = vec!["a", "b", "c", "A", ".", "*", "?", "[ab]", "[!a]", "[a-c]", "\\*", "\\?", "\\a", "-"];
    let mixed = prop::collection::vec(prop::sample::select(pieces), 1..4).prop_map(|pieces| pieces.concat());
    prop_oneof![
        5 => mixed.prop_filter("a dot alone is no name", |part| part != "." && part != ".."),
        1 => Just("**".to_owned()),
        1 => Just("*".to_owned()),
    ]
}

fn pattern_text() -> impl Strategy<Value = String> {
    let parts = prop::collection::vec(part(), 1..4);
    (any::<bool>(), parts, any::<bool>()).prop_map(|(anchored, parts, directory)| {
        let (before, after) = (if anchored { "/" } else { "" }, if directory { "/" } else { "" });
        format!("{before}{}{after}", parts.join("/"))
    })
}

fn name() -> impl Strategy<Value = String> {
    let names = vec!["a", "b", "c", "ab", "A", "aA", ".a", "a.b", "abc", "*", "?", "-", "a-", "ac"];
    prop::sample::select(names).prop_map(str::to_owned)
}

fn path_text() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..5).prop_map(|names| names.join("/"))
}

proptest! {
    #![proptest_config(seeded(20_000))]

    #[test]
    fn allowing_means_what_an_ignore_file_means(text in pattern_text(), path in path_text(), is_directory in any::<bool>()) {
        let Some(expected) = is_ignored(&text, &path, is_directory) else { return Ok(()) };
        let full = format!("{ROOT}/{path}");
        let seen = parsed(&text, Behaviour::Allow).unwrap().covers(&fact(&full, is_directory));
        prop_assert_eq!(seen, expected, "{} {}", text, path);
    }

    #[test]
    fn denying_means_at_least_that(text in pattern_text(), path in path_text(), is_directory in any::<bool>()) {
        if is_ignored(&text, &path, is_directory) == Some(true) {
            let full = format!("{ROOT}/{path}");
            let deny = parsed(&text, Behaviour::Deny).unwrap();
            prop_assert!(deny.restricts(&PathNames::of(&fact(&full, is_directory))), "{} {}", text, path);
        }
    }
}

/// Names with letters whose other case has another length or another place.
const NAME: &str = "([a-cA-C.]|[*?\\[\\]\\\\() !-]|[éßİſ\u{212a}中]|\\PC){1,6}";

/// Whether a path is another one or lies below it.
fn is_at_or_below(path: &str, other: &str) -> bool {
    Path::new(path).starts_with(other)
}

fn is_odd(name: &str) -> bool {
    matches!(name, "." | "..") || name.contains('/')
}

proptest! {
    #![proptest_config(seeded(6_000))]

    #[test]
    fn any_text_is_a_pattern_or_is_refused(text in "\\PC{0,30}|[\\[\\]*?/!.~\\\\a-c-]{0,20}", path in path_text()) {
        for behaviour in [Behaviour::Allow, Behaviour::Deny] {
            if let Ok(pattern) = parsed(&text, behaviour) {
                let full = place(&format!("{ROOT}/{path}"));
                let _ = (pattern.covers(&full), pattern.restricts(&PathNames::of(&full)));
            }
        }
    }

    #[test]
    fn what_a_pattern_allows_it_also_denies(
        text in "[a-cA-Z*?\\[\\]!.-]{1,6}(/[a-cA-C*?]{1,4})?|[a-c?*é]{0,3}[ßİſ\u{212a}?]?",
        names in prop::collection::vec("[a-cA-CZ._-]{1,3}|[a-c]{0,1}[ßİſk\u{212a}é]?[a-c]{0,1}", 1..3),
    ) {
        let (Ok(allow), Ok(deny)) = (parsed(&text, Behaviour::Allow), parsed(&text, Behaviour::Deny)) else { return Ok(()) };
        let full = place(&format!("{ROOT}/{}", names.join("/")));
        prop_assert!(!allow.covers(&full) || deny.restricts(&PathNames::of(&full)), "{} {}", text, names.join("/"));
    }

    #[test]
    fn a_literal_path_means_itself_and_no_other(names in prop::collection::vec(NAME, 1..4), others in prop::collection::vec(NAME, 1..4)) {
        if names.iter().chain(&others).any(|name| is_odd(name)) { return Ok(()) }
        let (path, other) = (format!("/{}", names.join("/")), format!("/{}", others.join("/")));
        let Some(text) = PathPattern::literal(Path::new(&path)) else { return Ok(()) };
        let rule = parsed(&text, Behaviour::Allow).unwrap();
        prop_assert!(rule.covers(&place(&path)), "{}", text);
        let shorter = path.trim_end().to_owned();
        for other in [other, format!("{path}x"), path.to_uppercase(), shorter, format!("{ROOT}{path}")] {
            let expected = is_at_or_below(&other, &path);
            prop_assert_eq!(rule.covers(&place(&other)), expected, "{} {}", text, other);
        }
    }

    #[test]
    fn no_spelling_gets_round_a_denial(names in prop::collection::vec("[a-cA-Cé.]{1,3}", 1..4)) {
        if names.iter().any(|name| is_odd(name)) { return Ok(()) }
        let path = format!("{ROOT}/{}", names.join("/"));
        for text in [PathPattern::literal(Path::new(&path)).unwrap(), names.join("/"), format!("./{}", names.join("/"))] {
            let deny = parsed(&text, Behaviour::Deny).unwrap();
            for spelled in [path.clone(), path.to_uppercase(), path.to_lowercase()] {
                let spelled = spelled.replacen(&ROOT.to_uppercase(), ROOT, 1);
                prop_assert!(deny.restricts(&PathNames::of(&place(&spelled))), "{} {}", text, spelled);
            }
        }
    }
}
