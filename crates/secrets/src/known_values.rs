//! Values the engine itself knows, such as its keys, in the forms in which they are printed.

use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::span::{SecretKind, Span};

/// Shorter values are too common to be taken out of everything.
const VALUE_BYTES_MIN: usize = 8;
/// So much of a form must be left where it depends on what stands around it.
const INSIDE_BYTES_MIN: usize = 12;

#[derive(Clone, Default)]
pub(crate) struct KnownValues {
    values: Vec<Box<str>>,
    /// Made when the first text is looked through: many runs have none.
    finder: Arc<OnceLock<Option<AhoCorasick>>>,
}

impl KnownValues {
    pub(crate) fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut known = Self::default();
        for value in values {
            let value = value.as_ref().trim();
            // What stands for a secret must not be taken for one.
            if value.len() >= VALUE_BYTES_MIN && !"[redacted: known secret]".contains(value) {
                known.values.push(value.into());
            }
        }
        known
    }

    pub(crate) fn find(&self, text: &str) -> Vec<Span> {
        let finder = self.finder.get_or_init(|| finder(&self.values));
        let found = finder.iter().flat_map(|finder| finder.find_iter(text));
        found.map(|at| Span { start: at.start(), end: at.end(), kind: SecretKind::Known }).collect()
    }

    /// Where a text that ends in the middle of a value begins with it.
    pub(crate) fn unfinished_start(&self, text: &str) -> Option<usize> {
        let cut = |value: &str| {
            let lengths = (VALUE_BYTES_MIN..value.len()).rev().filter(|at| value.is_char_boundary(*at));
            lengths.map(|length| &value[..length]).find(|front| text.ends_with(front)).map(str::len)
        };
        let longest = self.values.iter().filter_map(|value| cut(value)).max()?;
        Some(text.len() - longest)
    }
}

fn finder(values: &[Box<str>]) -> Option<AhoCorasick> {
    let mut forms: Vec<String> = values.iter().flat_map(|value| forms_of(value)).collect();
    forms.sort();
    forms.dedup();
    let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&forms);
    finder.ok().filter(|_| !forms.is_empty())
}

/// A value as it is, in JSON, in an address, and in base64 wherever it may stand there.
fn forms_of(value: &str) -> Vec<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned();
    let mut forms = vec![value.to_owned(), json.replace('/', "\\/"), json];
    forms.extend([percent_encoded(value, true), percent_encoded(value, false)]);
    for before in 0..3 {
        forms.extend(inside_base64(value, before));
    }
    forms.retain(|form| form.len() >= VALUE_BYTES_MIN);
    forms
}

fn percent_encoded(value: &str, is_upper_case: bool) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if is_upper_case => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    };
    value.bytes().map(encode).collect()
}

/// The characters that are the same whatever stands around the value, if so many bytes stand before it in its group of three.
fn inside_base64(value: &str, before: usize) -> Vec<String> {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value.as_bytes());
    let skipped = [0, 2, 3][before];
    let kept = bytes.len() * 8 / 6;
    if kept < skipped + INSIDE_BYTES_MIN {
        return Vec::new();
    }
    let cut = |encoded: String| encoded[skipped..kept].to_owned();
    vec![cut(STANDARD_NO_PAD.encode(&bytes)), cut(URL_SAFE_NO_PAD.encode(&bytes))]
}
