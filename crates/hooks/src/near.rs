//! The known name that somebody probably meant.

/// The name that is nearest to what was written, if one is near enough to be meant.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > LENGTH_MAX {
        return None;
    }
    let lower = written.to_lowercase();
    let near = known.into_iter().map(|name| (distance(&lower, &name.to_lowercase()), name));
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= (written.len() / 3).max(1)).then_some(name)
}

/// Longer words are no misspelt names.
const LENGTH_MAX: usize = 64;

/// How many letters have to be added, taken away or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, also) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *also);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: Option<&str>) {
        assert_eq!(nearest(written, ["command", "http", "prompt", "mcp_tool"]), expected, "{written}");
    }

    #[test]
    fn a_misspelt_name_is_recognised_and_a_strange_one_is_not() {
        check("comand", Some("command"));
        check("Command", Some("command"));
        check("htpt", None);
        check("htt", Some("http"));
        check("promt", Some("prompt"));
        check("mcp-tool", Some("mcp_tool"));
        check("script", None);
        check("", None);
        check(&"x".repeat(10_000), None);
    }
}
