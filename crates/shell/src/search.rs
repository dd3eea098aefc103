//! Which files a search below a directory opens, by its options.

use crate::Only;
use crate::expansion::is_unusual_text;
use crate::names::has_name;

/// What a search leaves out, if its options or its ways are known to leave something out.
pub(crate) fn only<'a>(program: &str, options: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Only> {
    let mut only = Only { visible: program == "rg", patterns: Vec::new() };
    for (name, value) in options {
        let is_whole =
            has_name("u uu uuu unrestricted . hidden follow L", name) || name.starts_with("no-ignore");
        only.visible &= !is_whole;
        if name == "include" && program != "rg" {
            only.patterns.push(value.to_owned());
        }
    }
    // If one of them may fit anything, all of them together may.
    if only.patterns.iter().any(|pattern| is_unusual_text(pattern)) {
        only.patterns.clear();
    }
    (only.visible || !only.patterns.is_empty()).then_some(only)
}
