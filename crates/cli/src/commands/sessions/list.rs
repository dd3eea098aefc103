//! `windlass sessions list`.

use std::fmt::Write as _;
use std::path::Path;

use windlass::SessionStore;
use windlass::session_store::SessionInfo;
use windlass_text::time::now_ms;

use super::{ListArguments, columns, json_list, print, short};
use crate::display;
use crate::views::layout;

/// A summary with less room than this says nothing.
const SUMMARY_MIN: usize = 20;

/// Between two columns.
const GAP: usize = 2;

pub(super) fn run(store: &SessionStore, wanted: &ListArguments) -> anyhow::Result<()> {
    let mut listed = wanted.sessions(store);
    let limit = wanted.limit();
    let left_out = listed.len().saturating_sub(limit);
    listed.truncate(limit);
    if wanted.json {
        return print(&json_list(listed.iter().map(SessionInfo::to_json)));
    }
    if listed.is_empty() && left_out == 0 {
        return print(&nothing(wanted.all));
    }
    let mut text = table(&listed, store.cwd(), now_ms(), columns());
    if left_out > 0 {
        let more = display::quantity(left_out as u64, "older session");
        let _ = write!(text, "\n{more} not shown; add --limit N.\n");
    }
    print(&text)
}

fn nothing(is_everywhere: bool) -> String {
    let begin = "Start one with `windlass -p \"your prompt\"`";
    if is_everywhere {
        return format!("No sessions yet. {begin}.\n");
    }
    format!(
        "No sessions of this project yet. {begin}, or list all projects with `windlass sessions list --all`.\n"
    )
}

/// What a list shows of a session that says nothing about itself.
pub(crate) fn summary(session: &SessionInfo) -> String {
    let summary = display::line(session.preview.summary.as_deref().unwrap_or_default());
    if summary.is_empty() { "(no prompt)".into() } else { summary }
}

/// A column: its name, its width, and a cell for each session.
type Column = (&'static str, usize, Vec<String>);

/// Rows below each other. The last column gets the rest; empty columns, and then others, make room for it.
fn table(sessions: &[SessionInfo], cwd: &Path, now_ms: u64, columns: usize) -> String {
    let branch = |session: &SessionInfo| display::line(session.preview.branch.as_deref().unwrap_or_default());
    let place = |session: &SessionInfo| match &session.preview.cwd {
        Some(place) if place != cwd => display::home_as_tilde(place),
        _ => String::new(),
    };
    let change = |session: &SessionInfo| display::ago(session.modified_ms, now_ms);
    let fixed: [Column; 4] = [
        ("ID", 8, sessions.iter().map(short).collect()),
        ("LAST CHANGE", 12, sessions.iter().map(change).collect()),
        ("BRANCH", 16, sessions.iter().map(branch).collect()),
        ("DIRECTORY", 30, sessions.iter().map(place).collect()),
    ];
    let says_something = |(_, _, cells): &Column| cells.iter().any(|cell| !cell.is_empty());
    let as_wide_as_needed = |(name, most, cells): Column| {
        let widest = cells.iter().map(|cell| layout::width(cell)).max().unwrap_or_default();
        (name, widest.min(most).max(name.len()), cells)
    };
    let mut fixed: Vec<Column> = fixed.into_iter().filter(says_something).map(as_wide_as_needed).collect();
    let room = |fixed: &[Column]| {
        columns.saturating_sub(fixed.iter().map(|(_, width, _)| width + GAP).sum::<usize>())
    };
    for name in ["BRANCH", "DIRECTORY", "LAST CHANGE"] {
        let is_tight = room(&fixed) < SUMMARY_MIN;
        fixed.retain(|column| !is_tight || column.0 != name);
    }
    let rest = room(&fixed);
    let mut text = row(fixed.iter().map(|(name, width, _)| (*name, *width)), &layout::cut("SUMMARY", rest));
    for (at, session) in sessions.iter().enumerate() {
        let cells = fixed.iter().map(|(_, width, cells)| (cells[at].as_str(), *width));
        text.push_str(&row(cells, &layout::cut(&summary(session), rest)));
    }
    text
}

fn row<'a>(cells: impl Iterator<Item = (&'a str, usize)>, last: &str) -> String {
    let mut line = String::new();
    for (cell, width) in cells {
        let cell = layout::cut(cell, width);
        line.push_str(&cell);
        line.push_str(&" ".repeat(width + GAP - layout::width(&cell)));
    }
    line.push_str(last);
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass::session_store::SessionPreview;

    fn session(number: u128, summary: &str, branch: Option<&str>, cwd: &str) -> SessionInfo {
        SessionInfo {
            id: uuid::Uuid::from_u128(number << 96),
            path: "/x".into(),
            size: 1,
            modified_ms: 0,
            preview: SessionPreview {
                summary: Some(summary.into()),
                cwd: Some(cwd.into()),
                branch: branch.map(Into::into),
                said: true,
                ..SessionPreview::default()
            },
        }
    }

    #[test]
    fn columns_are_aligned_and_cut() {
        let sessions = [
            session(0x1234_5678, "Fix \x1b[31mthe\x1b[0m parser\nnow", Some("main"), "/work"),
            session(0xabc, "日本 a rather long prompt that does not fit", None, "/elsewhere"),
        ];
        let check = |columns: usize, expected: &str| {
            let table = table(&sessions, Path::new("/work"), 125_000, columns);
            assert_eq!(table, expected, "{columns}");
        };
        check(
            63,
            "\
ID        LAST CHANGE  BRANCH  DIRECTORY   SUMMARY
12345678  2 min ago    main                Fix the parser now
00000abc  2 min ago            /elsewhere  日本 a rather lon...
",
        );
        check(
            60,
            "\
ID        LAST CHANGE  DIRECTORY   SUMMARY
12345678  2 min ago                Fix the parser now
00000abc  2 min ago    /elsewhere  日本 a rather long pro...
",
        );
        check(30, "ID        SUMMARY\n12345678  Fix the parser now\n00000abc  日本 a rather lon...\n");
        check(10, "ID\n12345678\n00000abc\n");
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        let sessions = [session(1, "  ", None, "/work")];
        let expected = "ID        LAST CHANGE  SUMMARY\n00000000  just now     (no prompt)\n";
        assert_eq!(
            table(&sessions, Path::new("/work"), 0, usize::MAX).replace("00000001", "00000000"),
            expected
        );
    }
}
