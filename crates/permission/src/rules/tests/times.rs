//! How long it takes to read a rule and to compare it: in proportion to the text, whatever the rule says.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the time it takes is what is tested"
)]

use std::time::{Duration, Instant};

use windlass_protocol::{NamedPath, PathNaming};

use super::properties::{command, line};
use super::*;

/// Longer is never right, on any machine and in any build.
const TIME_MAX: Duration = Duration::from_secs(4);

/// So long may a line be that is looked at closely.
const LONG: usize = 10_000;

fn in_time<T>(what: &str, check: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let seen = check();
    assert!(start.elapsed() < TIME_MAX, "{what} took {:?}", start.elapsed());
    seen
}

/// Patterns that are slow for those who try one way after the other.
#[test]
fn long_commands_and_patterns_end_in_time() {
    let patterns = [
        "a*".repeat(LONG / 2),
        "*a".repeat(LONG / 2),
        "*".repeat(LONG),
        "a ".repeat(LONG / 2),
        "\"*\"".repeat(LONG / 3),
    ];
    let words = [vec!["a".repeat(LONG)], vec!["a".to_owned(); LONG / 2], vec!["\0a".to_owned(); LONG / 3]];
    for pattern in &patterns {
        let deny = rule(Behaviour::Deny, &format!("Bash({pattern}b)")).unwrap();
        let allow = rule(Behaviour::Allow, &format!("Bash({pattern}b)")).unwrap();
        for words in &words {
            let what = format!("{}… with {} words", &pattern[..8], words.len());
            in_time(&what, || allow.covers_command("Bash", &command(words)));
            let facts = CallFacts { commands: Some(line(words).into()), ..CallFacts::new(CallKind::Execute) };
            in_time(&what, || {
                deny.restricts(&RuleSubject::new("Bash", ToolProfile::BASH, RawValue::NULL, &facts))
            });
        }
    }
}

/// A short pattern costs in proportion to the text: eight times the text, not sixty-four times the work.
#[test]
fn the_time_grows_with_the_text_and_not_faster() {
    let deny = rule(Behaviour::Deny, "Bash(git * push *a*b*c* --force)").unwrap();
    let time = |length: usize| {
        let words = ["git".to_owned(), "push".to_owned(), "abc".repeat(length)];
        let facts = CallFacts { commands: Some(line(&words).into()), ..CallFacts::new(CallKind::Execute) };
        let run = || {
            let start = Instant::now();
            assert_eq!(
                deny.restricts(&RuleSubject::new("Bash", ToolProfile::BASH, RawValue::NULL, &facts)),
                RestrictionMatch::No
            );
            start.elapsed()
        };
        (0..5).map(|_| run()).min().unwrap_or_default()
    };
    let (short, long) = (time(20_000), time(160_000));
    assert!(long < short * 8 * 4, "{short:?} became {long:?}");
}

/// Every rule is compared with those that are there, to find doubles.
#[test]
fn the_time_grows_with_the_number_of_rules_and_not_faster() {
    let time = |count: usize| {
        let texts: Vec<String> = (0..count).map(|number| format!("Bash(tool{number} *)")).collect();
        let run = || {
            let (start, mut rules) = (Instant::now(), Rules::default());
            // The second time, all of them are doubles.
            for text in texts.iter().chain(&texts) {
                rules.add(Behaviour::Deny, text, RuleSource::session(), &anchors()).unwrap();
            }
            assert_eq!(rules.list(Behaviour::Deny).len(), count);
            start.elapsed()
        };
        (0..3).map(|_| run()).min().unwrap_or_default()
    };
    // Eight times as many would take 64 times as long if each were compared with all others.
    let (some, many) = (time(5_000), time(40_000));
    assert!(many <= some * 8 * 3, "{some:?} became {many:?}");
}

#[test]
fn long_names_of_tools_and_values_end_in_time() {
    let text = "a".repeat(LONG);
    let other = CallFacts::new(CallKind::Execute);
    let server = rule(Behaviour::Deny, &format!("mcp__s__{}b", "*a".repeat(LONG / 2))).unwrap();
    let name = format!("mcp__s__{text}");
    assert_eq!(
        in_time("a name", || server.restricts(&RuleSubject::new(
            &name,
            ToolProfile::DEFAULT,
            RawValue::NULL,
            &other
        ))),
        RestrictionMatch::No
    );
    let value = rule(Behaviour::Deny, &format!("Tool(x:{}b)", "*a".repeat(LONG / 2))).unwrap();
    let input = RawValue::from_string(format!("{{\"x\":\"{text}\"}}")).unwrap();
    assert_eq!(
        in_time("a value", || value.restricts(&RuleSubject::new(
            "Tool",
            ToolProfile::DEFAULT,
            &input,
            &other
        ))),
        RestrictionMatch::No
    );
}

#[test]
fn long_paths_and_patterns_end_in_time() {
    let patterns = [
        "a*".repeat(LONG / 2),
        "*/".repeat(LONG / 2),
        "**/a/".repeat(LONG / 5),
        "?".repeat(LONG),
        "[a-c]".repeat(LONG / 5),
    ];
    let paths = ["a".repeat(LONG), "a/".repeat(LONG / 2), "*".repeat(LONG), "*/".repeat(LONG / 2)];
    for text in &patterns {
        let deny = PathPattern::parse(&format!("{text}z"), Behaviour::Deny, &anchors()).unwrap();
        for path in &paths {
            let lexical = format!("/srv/app/{path}").into();
            let path_fact = PathFact { lexical, resolved: None, is_directory: false };
            let named = NamedPath {
                path: path_fact.into(),
                naming: PathNaming::Pattern,
                is_recursive: true,
                is_redirected: false,
            };
            in_time(&format!("{}… {}…", &text[..8], &path[..8]), || {
                deny.restricts(&PathNames::of_named(&named.path))
            });
            in_time(&format!("{}… {}…", &text[..8], &path[..8]), || {
                deny.restricts_named(&named, &PathNames::of_named(&named.path), named.is_recursive)
            });
        }
    }
}
