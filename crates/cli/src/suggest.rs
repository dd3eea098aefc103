//! What somebody may have meant.

/// The closest of some words, if one is close enough to be a slip of the fingers.
pub(crate) fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let longest = known.iter().map(|known| known.len()).max()?;
    // A whole prompt is no slip, and comparing it would take long.
    if word.len() > 2 * longest {
        return None;
    }
    let word = word.to_lowercase();
    let (distance, best) =
        known.iter().map(|known| (distance(&word, &known.to_lowercase()), *known)).min()?;
    (distance <= (best.len() / 3).max(1)).then_some(best)
}

/// How many single-letter changes and swaps of neighbours lead from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<usize>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let changed = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
            let swapped = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
            row.push(changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1).min(swapped));
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_prompts_are_not() {
        let check = |word, expected| assert_eq!(closest(word, &["demo", "help"]), expected, "{word}");
        for word in ["dmeo", "Demo", "demos", "deom", "dem", "demp"] {
            check(word, Some("demo"));
        }
        check("hlep", Some("help"));
        for word in ["hello", "explain", "x", "refactor", &"demo ".repeat(1_000_000)] {
            check(word, None);
        }
        assert_eq!(closest("Bsah", &["Bash", "Read"]), Some("Bash"));
        assert_eq!(closest("--output-fromat", &["--output-format", "--model"]), Some("--output-format"));
    }
}
