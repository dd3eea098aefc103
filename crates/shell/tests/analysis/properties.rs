//! What holds for every text.

use std::time::{Duration, Instant};

use crate::lines::{self, Rng};
use proptest::prelude::*;
use windlass_protocol::CommandWord;
use windlass_shell::{Analysis, LineEffect, StrictCommand, Word, analyse};

/// Everything that opens something, with what would close it.
const OPENERS: &[(&str, &str)] = &[
    ("(", ")"),
    ("( ", " )"),
    ("((", "))"),
    ("$(", ")"),
    ("$((", "))"),
    ("$((1+", "))"),
    ("$[", "]"),
    ("${a:-", "}"),
    ("${a[", "]}"),
    ("${a/", "}"),
    ("\"$(", ")\""),
    ("\"${a:-", "}\""),
    ("`", "`"),
    ("\\`", "\\`"),
    ("\"`", "`\""),
    ("<(", ")"),
    (">(", ")"),
    ("a <(", ")"),
    ("{ ", "; }"),
    ("{", "}"),
    ("{a,", "}"),
    ("if a; then ", "; fi"),
    ("while ", "; do a; done"),
    ("for x in a; do ", "; done"),
    ("case a in a) ", ";; esac"),
    ("[[ ", " ]]"),
    ("[[ ( ", " ) ]]"),
    ("a() { ", "; }"),
    ("function a { ", "; }"),
    ("! ", ""),
    ("time ", ""),
    ("a=(", ")"),
    ("a[", "]=b"),
    ("cat <<A\n", "\nA\n"),
    ("$'", "'"),
    ("sh -c '", "'"),
    ("sh -c \"", "\""),
    ("eval ", ""),
    ("sudo ", ""),
    ("sudo env ", ""),
    ("xargs ", ""),
    ("find . -exec ", " \\;"),
    ("docker run ", ""),
    ("npx ", ""),
    ("timeout 5 ", ""),
    ("@(", ")"),
    ("coproc ", ""),
    ("a | ", ""),
    ("a && ", ""),
    ("a > b ", ""),
    ("cd a; ", ""),
    ("cd a && ", ""),
    ("a=$a ", ""),
    ("a=$a; ", ""),
    ("\\", ""),
    ("'", ""),
    ("\"", ""),
    ("$", ""),
    ("*", ""),
    ("~", ""),
    ("#", ""),
    ("\n", ""),
    ("<<a ", ""),
    ("-", ""),
    ("python -c 'system(\"", "\")'"),
    ("git -c alias.a=!", ""),
    ("for f in a b; do cat \"$f\"", "; done"),
    ("sed -e s/a/b/ ", ""),
    ("awk '{print}' ", ""),
];

/// Longer is never right, on any machine and in any build.
const TIME_MAX: Duration = Duration::from_secs(15);

fn check_time(text: &str) {
    let start = Instant::now();
    let analysis = analyse(text);
    let time = start.elapsed();
    let head: String = text.chars().take(40).collect();
    assert!(time < TIME_MAX, "{head:?}… of {} bytes took {time:?}", text.len());
    let words: usize = analysis.found.iter().map(|command| command.words.len()).sum();
    assert!(words < 40_000 + text.len() * 3, "{head:?}… of {} bytes gave {words} words", text.len());
}

#[test]
fn there_is_an_end_to_any_nesting() {
    for (open, close) in OPENERS {
        for length in [100, 9_000] {
            let count = length / (open.len() + close.len());
            check_time(&open.repeat(count));
            check_time(&format!("{}a{}", open.repeat(count), close.repeat(count)));
            check_time(&format!("a {}b", open.repeat(count)));
            check_time(&close.repeat(count));
        }
    }
}

#[test]
fn there_is_an_end_to_long_nesting() {
    for (open, close) in OPENERS {
        let count = 100_000 / (open.len() + close.len());
        check_time(&format!("{}a{}", open.repeat(count), close.repeat(count)));
    }
}

/// Pairs of openers, which may be worse together than alone.
#[test]
fn there_is_an_end_to_mixed_nesting() {
    let mut rng = Rng::new(3);
    for _ in 0..300 {
        let mut text = String::new();
        let mut ends = Vec::new();
        let pairs: Vec<_> = (0..3).map(|_| OPENERS[rng.below(OPENERS.len())]).collect();
        while text.len() < 5_000 {
            let (open, close) = pairs[rng.below(3)];
            text.push_str(open);
            ends.push(close);
        }
        if rng.chance(50) {
            text.extend(ends.iter().rev().copied());
        }
        check_time(&text);
    }
}

fn texts(words: &[Word]) -> Vec<CommandWord> {
    words.iter().map(Word::text).collect()
}

fn listed(analysis: &Analysis) -> Option<Vec<Vec<CommandWord>>> {
    let commands = analysis.plain.as_ref().ok()?;
    Some(commands.iter().map(|command| texts(&command.words)).collect())
}

/// Words that bash does not change, quoted so that they are sure to stay what they are.
fn quoted(command: &StrictCommand) -> Option<String> {
    let is_fixed = |word: &Word| !word.is_unknown() && !word.is_pattern && !word.is_split && !word.is_home;
    let quote = |word: &Word| format!("'{}'", word.text().to_string().replace('\'', "'\\''"));
    let (name, arguments) = command.words.split_first()?;
    let arguments: Vec<String> = arguments.iter().map(quote).collect();
    let text = format!("{} {}", name.text(), arguments.join(" "));
    command.words.iter().all(is_fixed).then_some(text)
}

#[test]
fn quotes_change_nothing() {
    let mut checked = 0;
    for line in lines::corpus() {
        for command in analyse(&line).plain.unwrap_or_default() {
            let keeps_name = command.words.first().is_some_and(|name| {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
                name.text().as_known().is_some_and(|name| name.bytes().all(is_plain) && name != "[[")
            });
            let Some(text) = keeps_name.then(|| quoted(&command)).flatten() else { continue };
            let again = analyse(&text).plain;
            let Ok([same]) = again.as_deref() else { panic!("{line:?} as {text:?}: {again:?}") };
            let elsewhere = matches!(command.effect, LineEffect::LooksAtStart);
            let moves = line.contains("cd ") || line.contains("pushd ");
            let has_input = command.words.iter().any(|word| word.text() == "xargs") || line.contains("xargs");
            if !elsewhere && !has_input && command.network.is_none() {
                assert!(same.effect == command.effect || moves, "{line:?} as {text:?}");
            }
            assert_eq!(texts(&same.words), texts(&command.words), "{line:?} as {text:?}");
            checked += 1;
        }
    }
    assert!(checked > 500, "only {checked}");
}

#[test]
fn a_list_holds_what_its_parts_hold() {
    let mut rng = Rng::new(5);
    let corpus = lines::corpus();
    let plain: Vec<&String> = corpus.iter().filter(|line| analyse(line).plain.is_ok()).collect();
    for _ in 0..2_000 {
        let (one, other) = (plain[rng.below(plain.len())], plain[rng.below(plain.len())]);
        let joint = rng.pick(&["\n", "\n\n"]);
        let (first, second) = (analyse(one), analyse(other));
        let both = analyse(&format!("{one}{joint}{other}"));
        let parts = [listed(&first).unwrap_or_default(), listed(&second).unwrap_or_default()].concat();
        // A line that is too long, or that sets a variable for the second time, is not plain; nothing else may change.
        if let Some(list) = listed(&both) {
            assert_eq!(list, parts, "{one:?} and {other:?}");
        }
        let found = |analysis: &Analysis| {
            analysis.found.iter().map(|command| command.words.clone()).collect::<Vec<_>>()
        };
        if first.unseen.is_none() && second.unseen.is_none() {
            let together = found(&both);
            for words in [found(&first), found(&second)].concat() {
                let is_there = together.contains(&words) || words.iter().any(|word| !word.is_known());
                assert!(is_there, "{one:?} and {other:?} lack {words:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_is_too_much(text in "\\PC{0,80}") {
        check_time(&text);
    }

    #[test]
    fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        check_time(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn plain_commands_are_found(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let corpus = vec!["ls -la | grep x".to_owned(), "a \"$(b)\" > c".to_owned()];
        let line = lines::generate(&mut rng, &corpus);
        let analysis = analyse(&line);
        for command in analysis.plain.as_deref().unwrap_or_default() {
            let Some(name) = command.whole.first() else { continue };
            let is_found = analysis.found.iter().any(|found| found.words.first() == Some(&name.text()));
            prop_assert!(is_found, "{line:?} lacks {:?}", name.text());
            prop_assert!(line.get(command.source.clone()).is_some(), "{line:?}");
        }
    }
}
