//! What bytes can be part of.

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
