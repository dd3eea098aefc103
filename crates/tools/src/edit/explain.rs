//! Why an edit found no place, or too many, with numbered lines. The search is bounded in time.

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use super::replace::{line_ends, lines_back, lines_on, push_lines};

const PLACES_MAX: usize = 8;
/// Lines of the wanted text that take part in the search.
const WANTED_LINES_MAX: usize = 200;
/// Lines shown of the closest place.
const LINES_SHOWN_MAX: usize = 24;
const LINE_BYTES_MAX: usize = 300;
/// Bytes of one line that are compared.
const COMPARED_BYTES_MAX: usize = 2000;
const SEARCH_TIME_MAX: Duration = Duration::from_millis(150);
/// How alike two lines must be to count as close, in percent of their pairs of letters.
const ALIKE_PERCENT_MIN: u32 = 40;

/// The error for a text that occurs more than once. `more` says that there are more places than these.
pub(crate) fn ambiguous(text: &[u8], places: &[Range<usize>], has_more: bool, shown: &str) -> String {
    let count = places.len();
    let at_least = if has_more { "more than " } else { "" };
    let mut message = format!("Not changed: `old_string` occurs {at_least}{count} times in {shown}:\n");
    for place in places.iter().take(PLACES_MAX) {
        let around = lines_back(text, place.start, 1)..lines_on(text, place.start, 1);
        let _ = writeln!(message, "Line {}:", line_ends(&text[..place.start]) + 1);
        let first = line_ends(&text[..around.start]) + 1;
        push_lines(&mut message, &text[around], first, LINES_SHOWN_MAX, LINE_BYTES_MAX);
    }
    if count > PLACES_MAX {
        let _ = writeln!(message, "… and {at_least}{} more.", count - PLACES_MAX);
    }
    message.push_str(
        "Add surrounding lines to `old_string` to make it unique, or set `replace_all` to change all of \
         them.",
    );
    message
}

pub(crate) fn not_found(text: &[u8], wanted: &str, shown: &str) -> String {
    let mut message = format!("Not changed: `old_string` does not occur in {shown}.");
    if let Some(hint) = hint_from_wanted(text, wanted) {
        let _ = write!(message, " {hint}");
    }
    let Some(place) = closest(text, wanted) else {
        message.push_str(" Nothing in the file is similar. Read the file again.");
        return message;
    };
    let lines = text.split_inclusive(|byte| *byte == b'\n').skip(place.start).take(place.len());
    let found = lines.collect::<Vec<_>>().concat();
    if let Some(difference) = difference(&String::from_utf8_lossy(&found), wanted) {
        let _ = write!(message, " {difference}");
    }
    message.push_str(" The most similar place:\n");
    push_lines(&mut message, &found, place.start + 1, LINES_SHOWN_MAX, LINE_BYTES_MAX);
    message.truncate(message.trim_end().len());
    message
}

/// Mistakes that can be told from the wanted text and whether the file holds it without them.
fn hint_from_wanted(text: &[u8], wanted: &str) -> Option<&'static str> {
    let occurs =
        |candidate: &str| !candidate.is_empty() && memchr::memmem::find(text, candidate.as_bytes()).is_some();
    let numbered = without_line_numbers(wanted);
    if numbered.as_deref().is_some_and(occurs) {
        return Some("It begins with the line numbers of Read; leave them out.");
    }
    if wanted.contains('\\') {
        let unescaped = wanted.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
        if unescaped != wanted && occurs(&unescaped) {
            return Some("It is escaped once too often: the file has real line ends, tabs or quotes there.");
        }
    }
    if wanted.trim() != wanted && occurs(wanted.trim()) {
        return Some("It does occur without the blanks at its start or end.");
    }
    if wanted.contains('\u{fffd}') {
        return Some("It contains the replacement character, which Read shows for bytes it cannot decode.");
    }
    None
}

/// The text without `12<tab>` at the start of every line, if every line has it.
fn without_line_numbers(wanted: &str) -> Option<String> {
    let lines = wanted.lines().map(|line| {
        let (number, rest) = line.trim_start().split_once('\t')?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
    });
    lines.collect::<Option<Vec<_>>>().map(|lines| lines.join("\n"))
}

/// What kind of difference there is, if it is of one kind.
fn difference(found: &str, wanted: &str) -> Option<&'static str> {
    let blanks = |text: &str| text.split_whitespace().collect::<Vec<_>>().concat();
    let (plain_found, plain_wanted) = (blanks(found), blanks(wanted));
    if plain_found.contains(&plain_wanted) {
        return Some(match (found.contains('\t'), wanted.contains('\t')) {
            (true, false) => {
                "The difference is white space: the file has tabs where `old_string` has spaces."
            }
            (false, true) => {
                "The difference is white space: the file has spaces where `old_string` has tabs."
            }
            _ if found.contains('\r') => {
                "The difference is white space: the file has lone carriage returns there."
            }
            _ => "The difference is only white space.",
        });
    }
    let (quotes_found, quotes_wanted) = (plain_marks(&plain_found), plain_marks(&plain_wanted));
    if quotes_found.contains(&quotes_wanted) {
        return Some("The difference is quotes, dashes or other marks that look alike.");
    }
    if quotes_found.to_lowercase().contains(&quotes_wanted.to_lowercase()) {
        return Some("The difference is upper and lower case.");
    }
    None
}

/// Typographic marks as their plain forms.
fn plain_marks(text: &str) -> String {
    let plain = |character| match character {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    };
    text.replace('\u{2026}', "...").chars().map(plain).collect()
}

fn closest(text: &[u8], wanted: &str) -> Option<Range<usize>> {
    let wanted: Vec<&str> = wanted.trim_matches('\n').split('\n').take(WANTED_LINES_MAX).collect();
    let deadline = Instant::now() + SEARCH_TIME_MAX;
    let start = by_equal_lines(text, &wanted, deadline).or_else(|| by_likeness(text, &wanted, deadline))?;
    Some(start..start + wanted.len())
}

/// A line without its blanks, which is what two lines are compared by.
fn key(line: &[u8]) -> u64 {
    let plain: Vec<u8> = line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if plain.is_empty() { 0 } else { xxh3_64(&plain) }
}

/// Lines with their numbers, until time is up.
fn lines_in_time(text: &[u8], deadline: Instant) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    lines.take_while(move |(number, _)| number % 512 != 0 || *number == 0 || Instant::now() < deadline)
}

/// Every line that the file shares with the wanted text votes for where it would begin.
fn by_equal_lines(text: &[u8], wanted: &[&str], deadline: Instant) -> Option<usize> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, line) in wanted.iter().enumerate() {
        let key = key(line.as_bytes());
        if key != 0 {
            places.entry(key).or_default().push(index);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (number, line) in lines_in_time(text, deadline) {
        let Some(indices) = places.get(&key(line)) else { continue };
        // Longer lines say more: a lone brace is everywhere.
        let weight = line.trim_ascii().len().min(60);
        for start in indices.iter().filter_map(|index| number.checked_sub(*index)) {
            *votes.entry(start).or_default() += weight;
        }
    }
    let (weight, std::cmp::Reverse(start)) =
        votes.into_iter().map(|(start, weight)| (weight, std::cmp::Reverse(start))).max()?;
    (weight > 2).then_some(start)
}

/// Compares every line of the file with the longest wanted line by the pairs of letters they hold.
fn by_likeness(text: &[u8], wanted: &[&str], deadline: Instant) -> Option<usize> {
    let (index, line) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let wanted = letters(line.as_bytes());
    if wanted.len() < 2 {
        return None;
    }
    let scored = lines_in_time(text, deadline)
        .map(|(number, line)| (likeness(&wanted, &letters(line)), std::cmp::Reverse(number)));
    let (percent, std::cmp::Reverse(number)) = scored.max()?;
    (percent >= ALIKE_PERCENT_MIN).then(|| number.saturating_sub(index))
}

/// How alike a line is to the wanted one, in percent; of a longer line the part counts that is most like it.
fn likeness(wanted: &[u8], line: &[u8]) -> u32 {
    let pairs = letter_pairs(wanted);
    let compare = |part: &[u8]| {
        let other = letter_pairs(part);
        (pairs & other).count_ones() * 200 / (pairs.count_ones() + other.count_ones()).max(1)
    };
    let size = wanted.len() * 3 / 2;
    let last = line.len().saturating_sub(size);
    let starts = (0..last).step_by(wanted.len().div_ceil(2)).chain([last]);
    starts.map(|start| compare(&line[start..line.len().min(start + size)])).max().unwrap_or(0)
}

/// The start of a line without its blanks, in lower case.
fn letters(line: &[u8]) -> Vec<u8> {
    let line = &line[..line.len().min(COMPARED_BYTES_MAX)];
    line.iter().filter(|byte| !byte.is_ascii_whitespace()).map(u8::to_ascii_lowercase).collect()
}

/// The pairs of neighbouring letters as a small set.
fn letter_pairs(letters: &[u8]) -> u128 {
    let bit = |pair: &[u8]| (u32::from(pair[0]) * 31 + u32::from(pair[1]) * 7) % 128;
    letters.windows(2).fold(0, |set, pair| set | 1 << bit(pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn main() {\n\tlet name = \"world\";\n\tprintln!(\"Hello, {name}\");\n}\n\nfn other() {\n\treturn;\n}\n";

    fn check(wanted: &str, expected: &[&str]) {
        assert!(!FILE.contains(wanted), "{wanted} occurs");
        let message = not_found(FILE.as_bytes(), wanted, "a.rs");
        for part in expected {
            assert!(message.contains(part), "{message}\nlacks {part:?}");
        }
    }

    #[test]
    fn a_failed_match_shows_the_closest_place_and_why() {
        check(
            "    let name = \"world\";\n    println!",
            &["tabs where `old_string` has spaces", "2\t\tlet name"],
        );
        check("let name = “world”;", &["marks that look alike", "2\t"]);
        check("LET NAME = \"world\";", &["upper and lower case", "2\t"]);
        check("2\t\tlet name = \"world\";", &["line numbers of Read"]);
        check("{\\n\\tlet name", &["escaped once too often"]);
        check("let name = \"world\";   ", &["without the blanks"]);
        check("let name = \"earth\";", &["most similar place:\n2\t\tlet name = \"world\";"]);
        check("fn other() {\n\treturn 1;\n}", &["most similar place:\n6\tfn other() {\n7\t\treturn;\n8\t}"]);
        check("lo, {nome}", &["most similar place:\n3\t\tprintln!"]);
        check("zzzz qqqq", &["Nothing in the file is similar"]);
        check("name\u{fffd}", &["replacement character"]);
    }

    #[test]
    fn a_part_of_a_long_line_is_found() {
        let line =
            format!("{} he said “hello”, {}", "some words before it ".repeat(20), "and after it ".repeat(20));
        let text = format!("first\n{line}\nlast\n");
        let message = not_found(text.as_bytes(), "he said \"hello\"", "f");
        assert!(
            message.contains("marks that look alike. The most similar place:\n2\tsome words"),
            "{message}"
        );
    }

    #[test]
    fn ambiguity_lists_the_places_with_context() {
        let text = "one\nsame\ntwo\nsame\n";
        let places: Vec<_> = text.match_indices("same").map(|(at, _)| at..at + 4).collect();
        let start = |more| ambiguous(text.as_bytes(), &places, more, "f").lines().next().unwrap().to_owned();
        assert_eq!(start(true), "Not changed: `old_string` occurs more than 2 times in f:");
        assert_eq!(
            ambiguous(text.as_bytes(), &places, false, "f"),
            "Not changed: `old_string` occurs 2 times in f:\nLine 2:\n1\tone\n2\tsame\n3\ttwo\nLine 4:\n\
             3\ttwo\n4\tsame\nAdd surrounding lines to `old_string` to make it unique, or set `replace_all` to change all of them."
        );
    }

    #[test]
    fn explanations_are_bounded() {
        let text = format!("{}\n", "needle and more ".repeat(1000)).repeat(2000);
        let started = Instant::now();
        let message = not_found(text.as_bytes(), &"needle und mehr\n".repeat(500), "f");
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
        assert!(message.len() < 20_000, "{}", message.len());
        let places: Vec<_> = text.match_indices("needle").map(|(at, _)| at..at + 6).collect();
        let message = ambiguous(text.as_bytes(), &places, false, "f");
        assert!(message.len() < 20_000 && message.contains("more."), "{}", message.len());
    }
}
