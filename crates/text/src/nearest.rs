//! The known name that was probably meant by a misspelt one (edit distance, where a swap of neighbours counts once).

/// The nearest of some names, if no more than a third of the letters that were written are slips. Case does not matter.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    best(written, known, |written, _| written)
}

/// The same, counted in letters of the known name: a long word, such as a prompt, is then no slip for a short one.
pub fn closest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    best(written, known.iter().copied(), |_, known| known)
}

/// `counted` picks one of two numbers of letters.
fn best<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
    counted: impl Fn(usize, usize) -> usize,
) -> Option<&'a str> {
    let written = written.to_lowercase();
    let written_letters = written.chars().count();
    let near = known.into_iter().filter_map(|name| {
        let folded = name.to_lowercase();
        let letters = folded.chars().count();
        let slips_max = (counted(written_letters, letters) / 3).max(1);
        // Comparing names of very different lengths would take long and find nothing.
        let is_alike = letters.abs_diff(written_letters) <= slips_max;
        let slips = is_alike.then(|| strsim::osa_distance(&written, &folded))?;
        (slips <= slips_max).then_some((slips, name))
    });
    near.min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_recognised_and_a_strange_one_is_not() {
        let check = |written: &str, known: &[&'static str], expected: Option<&str>| {
            assert_eq!(nearest(written, known.iter().copied()), expected, "{written}");
        };
        let keys = ["permissions", "deny", "env", "model"];
        check("permisions", &keys, Some("permissions"));
        check("PERMISSIONS", &keys, Some("permissions"));
        check("dney", &keys, Some("deny"));
        check("denied", &keys, None);
        check("modle", &keys, Some("model"));
        check("enc", &keys, Some("env"));
        check("something", &keys, None);
        check("", &keys, None);
        check(&"x".repeat(100_000), &keys, None);
        let types = ["command", "http", "prompt", "mcp_tool"];
        check("comand", &types, Some("command"));
        check("Command", &types, Some("command"));
        check("htpt", &types, Some("http"));
        check("htt", &types, Some("http"));
        check("promt", &types, Some("prompt"));
        check("mcp-tool", &types, Some("mcp_tool"));
        check("script", &types, None);
        check("", &types, None);
    }

    #[test]
    fn slips_are_recognised_and_prompts_are_not() {
        let check = |word, expected| assert_eq!(closest(word, &["demo", "help"]), expected, "{word}");
        for word in ["dmeo", "Demo", "demos", "deom", "dem", "demp"] {
            check(word, Some("demo"));
        }
        check("hlep", Some("help"));
        for word in ["hello", "helper", "explain", "x", "refactor", &"demo ".repeat(1_000_000)] {
            check(word, None);
        }
        assert_eq!(closest("Bsah", &["Bash", "Read"]), Some("Bash"));
        assert_eq!(closest("--output-fromat", &["--output-format", "--model"]), Some("--output-format"));
    }
}
