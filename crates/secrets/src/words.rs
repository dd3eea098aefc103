//! Long words, where secrets can be, found cheaply; classes of bytes; whether a value looks random.

use std::ops::Range;

/// Shorter words hold no secret that could be told from other words.
pub(crate) const WORD_BYTES_MIN: usize = 16;

/// The words of at least [`WORD_BYTES_MIN`] bytes, in order.
pub(crate) fn long_words(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    // The next word may begin at `at`; from there to `known_to` everything is part of one.
    let (mut at, mut known_to) = (0, 0);
    std::iter::from_fn(move || {
        while let Some(window) = text.get(at.max(known_to)..at + WORD_BYTES_MIN) {
            let looked_to = at + WORD_BYTES_MIN;
            // From the back: the first byte that is no part of a word rules out every start before it.
            if let Some(gap) = window.iter().rposition(|byte| !is(*byte, WORD)) {
                at = looked_to - window.len() + gap + 1;
                known_to = looked_to;
            } else {
                let start = at;
                at = looked_to + count(&text[looked_to..], WORD);
                known_to = at;
                return Some(start..at);
            }
        }
        None
    })
}

/// The parts of a word that are made of letters, digits, `-` and `_` alone, if they are long enough.
pub(crate) fn token_runs(text: &[u8], word: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut next = word.start;
    let runs = text[word].split(|byte| !is(*byte, TOKEN)).map(move |run| {
        let start = next;
        next = start + run.len() + 1;
        start..start + run.len()
    });
    runs.filter(|run| run.len() >= WORD_BYTES_MIN)
}

/// Where in a run a token may begin: behind the rest of an escape, if the run begins inside one.
pub(crate) fn token_start(text: &[u8], run: &Range<usize>) -> usize {
    let may_be_inside = matches!(text[..run.start].last(), Some(b'\\' | b'%' | b'[' | b';'));
    let mut ends = (run.start + 1..=run.end.min(run.start + 5)).rev();
    let end = ends.find(|end| may_be_inside && escape_length(&text[..*end]) > *end - run.start);
    end.unwrap_or(run.start)
}

/// Whether something that begins behind this text does not continue a word.
pub(crate) fn stands_alone(before: &[u8]) -> bool {
    !before.last().is_some_and(u8::is_ascii_alphanumeric) || escape_length(before) > 0
}

/// The length of an escape at the end: `\n`, `\u003d`, `%3D`, or a colour of a terminal.
fn escape_length(text: &[u8]) -> usize {
    match text {
        [.., b'\\', b'n' | b'r' | b't'] => 2,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => 3,
        [.., b'\\', b'u', a, b, c, d] if [a, b, c, d].into_iter().all(u8::is_ascii_hexdigit) => 6,
        [front @ .., b'm' | b'K'] => {
            let digits = count_back(front, 16, |byte| byte.is_ascii_digit() || byte == b';');
            if front[..front.len() - digits].ends_with(b"\x1b[") { digits + 3 } else { 0 }
        }
        _ => 0,
    }
}

/// Part of most tokens: letters, digits, `-` and `_`.
pub(crate) const TOKEN: u8 = 1;
/// Part of a long word without blanks, quotes and brackets.
pub(crate) const WORD: u8 = 2;
/// Part of base64 without its padding.
pub(crate) const BASE64: u8 = 4;

/// Everything that ends a word, besides blanks and what is not ASCII.
const ENDS: &[u8] = b"\"'`\\=:,;<>(){}[]";

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte: u8 = 0x21;
    while byte < 0x7f {
        let alphanumeric = byte.is_ascii_alphanumeric();
        let mut class = WORD;
        let mut end = 0;
        while end < ENDS.len() {
            if ENDS[end] == byte {
                class = 0;
            }
            end += 1;
        }
        if alphanumeric || byte == b'-' || byte == b'_' {
            class |= TOKEN;
        }
        if alphanumeric || byte == b'+' || byte == b'/' {
            class |= BASE64;
        }
        table[byte as usize] = class;
        byte += 1;
    }
    table
}

/// Whether a byte can be part of this.
pub(crate) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// How many bytes at the front can be part of this.
pub(crate) fn count(bytes: &[u8], class: u8) -> usize {
    bytes.iter().position(|byte| !is(*byte, class)).unwrap_or(bytes.len())
}

/// How many bytes at the end can be part of this, at most `max`.
pub(crate) fn count_back(bytes: &[u8], max: usize, wanted: impl Fn(u8) -> bool) -> usize {
    bytes.iter().rev().take(max).take_while(|byte| wanted(**byte)).count()
}

/// Whether letters of one case alone make it up, or digits alone, besides what is neither.
pub(crate) fn is_varied(bytes: &[u8]) -> bool {
    let has = |wanted: fn(&u8) -> bool| bytes.iter().any(wanted);
    let kinds = [has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase), has(u8::is_ascii_digit)];
    kinds.into_iter().filter(|found| *found).count() >= 2
}

/// What is longer is data.
const VALUE_BYTES_MAX: usize = 2048;
/// So much says enough.
const LOOKED_AT: usize = 128;

/// Whether a value is a random one. Words, numbers, paths, addresses and references to variables are not.
pub(crate) fn is_random(value: &[u8]) -> bool {
    let looked_at = &value[..value.len().min(LOOKED_AT)];
    (WORD_BYTES_MIN..=VALUE_BYTES_MAX).contains(&value.len())
        && !value.contains(&b' ')
        && !is_reference(looked_at)
        && !is_uuid(value)
        && is_varied(looked_at)
        && changes_often(looked_at)
        && entropy(looked_at) >= if looked_at.len() < 20 { 2.8 } else { 3.0 }
}

/// The form of a UUID. Alone it is a name, not a secret.
pub(crate) fn is_uuid(value: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    value.len() == 36 && value.iter().enumerate().all(fits)
}

/// Whether a value says where something is, or is a digest, or an example.
fn is_reference(value: &[u8]) -> bool {
    let begins = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| value.starts_with(prefix));
    let holds = |parts: &[&[u8]]| parts.iter().any(|part| value.windows(part.len()).any(|at| at == *part));
    begins(&[
        b"$", b"%", b"@", b"/", b"./", b"../", b"~/", b"#", b"&", b"sha1", b"sha256", b"sha384", b"sha512",
    ]) || holds(&[b"${", b"{{", b"$(", b"://", b"EXAMPLE", b"example", b"redacted"])
}

/// Words and names keep to one kind of character for a while; what is random does not. Random letters of both cases and digits
/// make pieces of 2.2 characters, two of three of them short; names make pieces of 4, few of them short.
fn changes_often(value: &[u8]) -> bool {
    let (mut letters, mut pieces, mut short) = (0_u32, 0_u32, 0_u32);
    for piece in value.chunk_by(|former, byte| continues(*former, *byte)) {
        if piece[0].is_ascii_alphanumeric() {
            letters += u32::try_from(piece.len()).unwrap_or(u32::MAX);
            pieces += 1;
            short += u32::from(piece.len() <= 2);
        }
    }
    letters * 5 <= pieces * 16 && short * 5 >= pieces * 2
}

/// Whether two characters belong to one piece: a number, or letters of one case, or a capital and what follows.
fn continues(former: u8, byte: u8) -> bool {
    (former.is_ascii_digit() && byte.is_ascii_digit())
        || (former.is_ascii_alphabetic() && byte.is_ascii_lowercase())
        || (former.is_ascii_uppercase() && byte.is_ascii_uppercase())
}

/// Bits in each byte, by how often each occurs.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let total = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let share = |count: u32| f64::from(count) / total;
    counts.into_iter().filter(|count| *count > 0).map(|count| -share(count) * share(count).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_are_found_wherever_they_are() {
        let long = "abcdefghijklmnop";
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<&str> = long_words(text.as_bytes()).map(|range| &text[range]).collect();
            assert_eq!(found, expected, "in {text}");
        };
        check("", &[]);
        check("abcdefghijklmno", &[]);
        check(long, &[long]);
        for before in 0..40 {
            let blank = " a".repeat(before);
            check(&format!("{blank} {long}"), &[long]);
            check(&format!("{blank} {long} "), &[long]);
            check(&format!("{blank} {long}q \"{long}\" x"), &["abcdefghijklmnopq", long]);
            check(&format!("{}é{long}=", "a".repeat(before.min(15))), &[long]);
        }
    }

    #[test]
    fn a_token_may_stand_behind_an_escape() {
        let check = |before: &str, inside: &str, skipped: usize| {
            let text = format!("{before}{inside}");
            let start = token_start(text.as_bytes(), &(before.len()..text.len()));
            assert_eq!(start - before.len(), skipped, "{text:?}");
        };
        check("", "nghp", 0);
        check("\\", "nghp", 1);
        check("\\", "u003dghp", 5);
        check("%", "3Dghp", 2);
        check("%", "zzghp", 0);
        check("\x1b[01;", "31mghp", 3);
        check("\x1b[", "Kghp", 1);
        check("[", "31mghp", 0);
        let check = |before: &[u8], expected: bool| assert_eq!(stands_alone(before), expected, "{before:?}");
        check(b"", true);
        check(b"a ", true);
        check(b"a", false);
        check(b"an", false);
        check(b"a\\n", true);
        check(b"%3D", true);
        check(b"\\u003d", true);
        check(b"\x1b[1;31m", true);
        check(b"[31m", false);
    }

    #[test]
    fn random_values_are_told_from_others() {
        let check =
            |value: &str, expected: bool| assert_eq!(is_random(value.as_bytes()), expected, "{value}");
        check("q7Zx2LmV9bTr4WcN", true);
        check("wJalrXUtn5FEMI/K7MdEN3/bPxRfiCYz1", true);
        check("3f786850e387550fdab836ed7e6dc881de23001b", true);
        check("9a0364b9e99bb480dd25e1f0284c8555", true);
        check("p8#Kd!2xQz@7Lm$w", true);
        check("short1A", false);
        check("correct-horse-battery-staple", false);
        check("getAccessTokenFromSession2", false);
        check("AccessTokenV2Response32", false);
        check("xxxxxxxxxxxxxxxxxxxxxxxx", false);
        check("your_api_key_goes_here_1", false);
        check("123456789012345678901234", false);
        check("123e4567-e89b-12d3-a456-426614174000", false);
        check("process.env.SECRET_TOKEN_V2", false);
        check("${SECRET_a1B2c3D4e5F6}", false);
        check("/run/secrets/a1B2c3D4e5F6g7", false);
        check("sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU", false);
    }
}
