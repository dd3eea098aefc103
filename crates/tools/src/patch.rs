//! The difference between two texts as hunks of lines, for people and hosts.

use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, ChangeTag, DiffOp};

const CONTEXT_LINES: usize = 3;
/// Comparing stops here and falls back to coarser hunks.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);
/// Texts above this size, together, are not compared.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lines beyond this size, together, are left out with their hunk.
const PATCH_BYTES_MAX: usize = 128 * 1024;

/// One changed place with the lines around it. Each line begins with ` `, `-` or `+`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hunk {
    old_start: usize,
    old_lines: usize,
    new_start: usize,
    new_lines: usize,
    lines: Vec<String>,
}

/// The hunks between two texts; empty for texts that are too large to compare.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    hunks_from(old, new, 0)
}

/// As [`hunks`], for texts that have this many lines in front of them.
pub(crate) fn hunks_from(old: &str, new: &str, lines_before: usize) -> Vec<Hunk> {
    if old.len() + new.len() > DIFF_BYTES_MAX {
        return Vec::new();
    }
    let [old, new] = [old, new].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let deadline = Instant::now() + DIFF_TIME_MAX;
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let mut room = PATCH_BYTES_MAX;
    let groups = similar::group_diff_ops(ops, CONTEXT_LINES).into_iter();
    groups
        .filter(|group| !group.is_empty())
        .map_while(|group| hunk(&group, [&old, &new], lines_before, &mut room))
        .collect()
}

/// `None` when there is no room left for it.
fn hunk(ops: &[DiffOp], [old, new]: [&[&str]; 2], lines_before: usize, room: &mut usize) -> Option<Hunk> {
    let mut shown = Vec::new();
    for change in ops.iter().flat_map(|op| op.iter_changes(old, new)) {
        let sign = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let line: &str = change.value();
        *room = room.checked_sub(line.len() + 1)?;
        let ended = line.strip_suffix('\n');
        shown.push(format!("{sign}{}", ended.unwrap_or(line)));
        if ended.is_none() {
            shown.push("\\ No newline at end of file".to_owned());
        }
    }
    let (first, last) = (ops.first()?, ops.last()?);
    let span = |start: usize, end: usize| (lines_before + start + usize::from(end > start), end - start);
    let (old_start, old_lines) = span(first.old_range().start, last.old_range().end);
    let (new_start, new_lines) = span(first.new_range().start, last.new_range().end);
    Some(Hunk { old_start, old_lines, new_start, new_lines, lines: shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        let shown: Vec<String> = hunks(old, new)
            .iter()
            .map(|hunk| {
                let (a, b, c, d) = (hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines);
                format!("@ {a},{b} {c},{d}|{}", hunk.lines.join("|"))
            })
            .collect();
        assert_eq!(shown.join("\n"), expected);
    }

    #[test]
    fn hunks_have_context_and_line_numbers() {
        check("a\n", "a\n", "");
        check("", "a\nb\n", "@ 0,0 1,2|+a|+b");
        check("a\n", "", "@ 1,1 0,0|-a");
        check("a\nb\nc\n", "a\nB\nc\n", "@ 1,3 1,3| a|-b|+B| c");
        check("a", "a\n", "@ 1,1 1,1|-a|\\ No newline at end of file|+a");
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let new = old.replace("2\n3", "x\n3").replace("11", "y");
        check(old, &new, "@ 1,5 1,5| 1|-2|+x| 3| 4| 5\n@ 8,5 8,5| 8| 9| 10|-11|+y| 12");
    }

    #[test]
    fn large_texts_make_no_large_patch() {
        let old = "line\n".repeat(100_000);
        assert!(hunks(&old, &"other\n".repeat(100_000)).is_empty(), "no room for it");
        assert!(hunks(&old, &"x".repeat(DIFF_BYTES_MAX)).is_empty(), "not compared");
    }
}
