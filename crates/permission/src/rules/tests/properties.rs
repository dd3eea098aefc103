//! What holds for every rule and every command.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use windlass_protocol::{CommandEffect, CommandFacts, CommandWord, FoundCommand};

use super::*;

/// The same cases each time, unless `PROPTEST_RNG_SEED` names a seed; it is printed, so that a failure can be repeated.
pub(in crate::rules) fn seeded(cases: u32) -> ProptestConfig {
    let config = ProptestConfig::with_cases(cases);
    let rng_seed = if config.rng_seed == RngSeed::Random { RngSeed::Fixed(7) } else { config.rng_seed };
    println!("seed {rng_seed}");
    ProptestConfig { failure_persistence: None, rng_seed, ..config }
}

/// Characters that mean something to a rule, a shell or a terminal, among those that do not.
const WORD: &str = "([a-cA-C:.=/~-]|[*?\\[\\]\\\\'\"$`(){}!#&;|<>]|[ \t]|[é中ßİ\u{1f}\u{202e}]|\\PC){0,8}";

pub(super) fn command(words: &[String]) -> PlainCommand {
    PlainCommand {
        text: words.join(" "),
        words: known(words),
        whole: known(words),
        is_exact_only: false,
        spelled: None,
        effect: CommandEffect::Unknown,
        reads: vec![],
        writes: vec![],
        has_network: false,
    }
}

/// Words in which a NUL stands for what is not known.
fn known(words: &[String]) -> Vec<CommandWord> {
    words.iter().map(|word| CommandWord::from_marked(word, "\0")).collect()
}

/// A line of one command, in both of its readings.
pub(super) fn line(words: &[String]) -> CommandFacts {
    let found = FoundCommand { words: known(words), reads: vec![], writes: vec![], removes: vec![] };
    CommandFacts {
        line: words.join(" ").into(),
        plain: Ok(vec![command(words)]),
        found: vec![found],
        unseen: None,
        has_hidden: false,
    }
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
        let Some(text) = CommandPattern::literal(&known(&words)) else { return Ok(()) };
        let Ok(rule) = rule(Behaviour::Allow, &format!("Bash({text})")) else { return Ok(()) };
        if matches!(rule.what, RuleScope::Commands(_)) {
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
            prop_assert_eq!(deny.restricts(&RuleSubject::new("Bash", ToolProfile::BASH, RawValue::NULL, &facts)), RestrictionMatch::Yes);
        }
    }

    #[test]
    fn a_star_at_the_end_stands_for_more_words(words in list(), more in list()) {
        let Some(text) = CommandPattern::literal(&known(&words)) else { return Ok(()) };
        let Ok(rule) = rule(Behaviour::Allow, &format!("Bash({text} *)")) else { return Ok(()) };
        if matches!(rule.what, RuleScope::Commands(_)) {
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
