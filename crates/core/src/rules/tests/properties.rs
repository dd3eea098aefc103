//! What holds for every rule and every command.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test of how long something takes looks at a clock"
)]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use windlass_protocol::{CommandEffect, FoundCommand};

use super::*;

const SEED: u64 = 7;

/// The same cases each time; the seed is printed, and another one can be tried by changing it.
pub(in crate::rules) fn seeded(cases: u32) -> ProptestConfig {
    let seed = SEED;
    println!("seed {seed}");
    let rng_seed = proptest::test_runner::RngSeed::Fixed(seed);
    ProptestConfig { failure_persistence: None, rng_seed, ..ProptestConfig::with_cases(cases) }
}

/// Longer is never right, on any machine and in any build.
const TIME_MAX: Duration = Duration::from_secs(4);

/// So long may a line be that is looked at closely.
const LONG: usize = 10_000;

/// Characters that mean something to a rule, a shell or a terminal, among those that do not.
const WORD: &str = "([a-cA-C:.=/~-]|[*?\\[\\]\\\\'\"$`(){}!#&;|<>]|[ \t]|[é中ßİ\u{1f}\u{202e}]|\\PC){0,8}";

fn command(words: &[String]) -> PlainCommand {
    PlainCommand {
        text: words.join(" "),
        words: words.to_vec(),
        whole: words.to_vec(),
        exact_only: false,
        effect: CommandEffect::Unknown,
        reads: vec![],
        writes: vec![],
        network: false,
    }
}

/// A line of one command, in both of its readings.
fn line(words: &[String]) -> CommandFacts {
    let found = FoundCommand { words: words.to_vec(), reads: vec![], writes: vec![], removes: vec![] };
    CommandFacts {
        line: words.join(" ").into(),
        plain: Ok(vec![command(words)]),
        found: vec![found],
        unseen: None,
        hidden: false,
    }
}

fn in_time<T>(what: &str, check: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let seen = check();
    assert!(start.elapsed() < TIME_MAX, "{what} took {:?}", start.elapsed());
    seen
}

fn list() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(WORD, 1..5)
}

proptest! {
    #![proptest_config(seeded(3_000))]

    #[test]
    fn any_text_is_a_rule_or_is_refused_with_a_reason(text in "\\PC{0,40}|[A-Za-z_*]{1,10}\\([^)]{0,20}\\)?|[\\x00-\\x7f]{0,20}") {
        for behaviour in [Behaviour::Allow, Behaviour::Ask, Behaviour::Deny] {
            match rule(behaviour, &text) {
                Ok(rule) => prop_assert_eq!(&*rule.text, text.trim()),
                Err(error) => {
                    prop_assert!(!error.problem.is_empty());
                    prop_assert!(error.to_string().contains(text.trim()));
                }
            }
        }
    }

    #[test]
    fn a_literal_command_means_its_words_and_no_others(words in list(), others in list()) {
        let Some(text) = CommandPattern::literal(&words) else { return Ok(()) };
        let Ok(rule) = rule(Behaviour::Allow, &format!("Bash({text})")) else { return Ok(()) };
        if rule.is_scoped_command() {
            prop_assert!(rule.covers_command("Bash", &command(&words)), "{}", text);
            let others = [others, words[1..].to_vec(), [&words[..], &["x".to_owned()]].concat(), vec![words.join(" ")]];
            for other in others.iter().filter(|other| **other != words) {
                prop_assert!(!rule.covers_command("Bash", &command(other)), "{} {:?}", text, other);
            }
        }
    }

    #[test]
    fn what_a_pattern_allows_it_also_denies(pattern in "[a-c*\\\\'\":A-C -]{1,12}", words in list()) {
        let text = format!("Bash({pattern})");
        let (Ok(allow), Ok(deny)) = (rule(Behaviour::Allow, &text), rule(Behaviour::Deny, &text)) else { return Ok(()) };
        if allow.covers_command("Bash", &command(&words)) {
            let facts = CallFacts { commands: Some(line(&words).into()), ..CallFacts::new(CallKind::Execute) };
            prop_assert_eq!(deny.restricts(&Subject::new("Bash", RawValue::NULL, &facts)), Match::Yes);
        }
    }

    #[test]
    fn a_star_at_the_end_stands_for_more_words(words in list(), more in list()) {
        let Some(text) = CommandPattern::literal(&words) else { return Ok(()) };
        let Ok(rule) = rule(Behaviour::Allow, &format!("Bash({text} *)")) else { return Ok(()) };
        if rule.is_scoped_command() {
            prop_assert!(rule.covers_command("Bash", &command(&words)), "{}", text);
            prop_assert!(rule.covers_command("Bash", &command(&[&words[..], &more].concat())), "{}", text);
            let longer = [&words[..words.len() - 1], &[format!("{}x", words[words.len() - 1])]].concat();
            prop_assert!(!rule.covers_command("Bash", &command(&longer)), "{}", text);
        }
    }

    #[test]
    fn hosts_never_reach_beyond_their_labels(host in "[a-z*.]{1,10}", name in "[a-z.]{1,12}") {
        let Ok(pattern) = HostPattern::parse(&host) else { return Ok(()) };
        let covered = pattern.covers(&windlass_protocol::HostFact::Name(name.clone()));
        let behind = format!("{name}.evil.example");
        let ends_in_star = host.trim_end_matches('.').ends_with('*');
        let covers_behind = pattern.covers(&windlass_protocol::HostFact::Name(behind));
        prop_assert!(!(covered && covers_behind) || ends_in_star || host == "*", "{} {}", host, name);
    }
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
            in_time(&what, || deny.restricts(&Subject::new("Bash", RawValue::NULL, &facts)));
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
            assert_eq!(deny.restricts(&Subject::new("Bash", RawValue::NULL, &facts)), Match::No);
            start.elapsed()
        };
        (0..5).map(|_| run()).min().unwrap_or_default()
    };
    let (short, long) = (time(20_000), time(160_000));
    assert!(long < short * 8 * 4, "{short:?} became {long:?}");
}

#[test]
fn long_names_of_tools_and_values_end_in_time() {
    let text = "a".repeat(LONG);
    let other = CallFacts::new(CallKind::Execute);
    let server = rule(Behaviour::Deny, &format!("mcp__s__{}b", "*a".repeat(LONG / 2))).unwrap();
    let name = format!("mcp__s__{text}");
    assert_eq!(
        in_time("a name", || server.restricts(&Subject::new(&name, RawValue::NULL, &other))),
        Match::No
    );
    let value = rule(Behaviour::Deny, &format!("Tool(x:{}b)", "*a".repeat(LONG / 2))).unwrap();
    let input = RawValue::from_string(format!("{{\"x\":\"{text}\"}}")).unwrap();
    assert_eq!(in_time("a value", || value.restricts(&Subject::new("Tool", &input, &other))), Match::No);
}
