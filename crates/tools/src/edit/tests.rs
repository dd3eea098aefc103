use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;
use windlass_protocol::BlockKind;

use windlass_protocol::FileSeen;

use super::*;
use crate::fingerprint::seen_bytes;
use crate::fixture::{Fixture, structured, text};
use crate::text_encoding::TextEncoding;

fn input(file: &str, old: &str, new: &str) -> EditInput {
    EditInput {
        file_path: file.to_owned(),
        old_string: old.to_owned(),
        new_string: new.to_owned(),
        replace_all: false,
    }
}

/// Edits a file that was read before and compares its bytes.
fn check(before: &[u8], old: &str, new: &str, after: &[u8]) {
    let fixture = Fixture::one("f", before);
    edit(&input("f", old, new), &fixture.context(&["f"])).unwrap();
    assert_eq!(fixture.content("f"), after, "{old:?} -> {new:?}");
}

#[test]
fn only_the_span_changes() {
    check(b"a\nb\nc", "b", "B", b"a\nB\nc");
    check(b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n");
    check(b"a\r\nb\nc\n", "b\n", "b\nnew\n", b"a\r\nb\nnew\nc\n");
    check(b"a\nb\r\nc\r\n", "b\nc", "b\nnew\nc", b"a\nb\r\nnew\r\nc\r\n");
    check(b"a\r\nb\nc\r\nd", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc\r\nd");
    check(b"a\rb\rc", "a\nb", "a\nx\nb", b"a\rx\rb\rc");
    check(b"progress 1\rprogress 2\nend\n", "end", "end\nmore", b"progress 1\rprogress 2\nend\nmore\n");
    check(b"\xef\xbb\xbfa\r\nb", "a", "x\ny", b"\xef\xbb\xbfx\r\ny\r\nb");
    check(b"\xff\xfea\0\r\0\n\0b\0", "a", "\u{e9}", b"\xff\xfe\xe9\0\r\0\n\0b\0");
    check(b"\xfe\xff\0a\0b", "b", "c", b"\xfe\xff\0a\0c");
    check(b"caf\xe9 au lait\n", "au lait", "cr\u{e8}me", b"caf\xe9 cr\xe8me\n");
    check(b"\xc3\xa9\xc3\xa9 \xff bad\nx\n", "x", "y", b"\xc3\xa9\xc3\xa9 \xff bad\ny\n");
    check(b"one\r\ntwo\r\n", "one\r\ntwo", "one\r\n2", b"one\r\n2\r\n");
    check(b"gone\nstay\n", "gone\n", "", b"stay\n");
}

#[test]
fn every_occurrence_when_asked() {
    let fixture = Fixture::one("f", b"a b\r\na b\na b");
    let all = EditInput { replace_all: true, ..input("f", "a ", "x\ny ") };
    let outcome = edit(&all, &fixture.context(&["f"])).unwrap();
    assert_eq!(fixture.content("f"), b"x\r\ny b\r\nx\r\ny b\nx\ny b");
    assert_eq!(text(&outcome), "Edited f in 3 places. New text:\n1\tx\n2\ty b\n3\tx\n4\ty b\n5\tx\n6\ty b");
}

/// Replaces every `x` by `new` and compares the report with the file.
fn check_report(lines: &[&str], new: &str, expected_lines: &[usize], end: &str) {
    let fixture = Fixture::one("f", (lines.join("\n") + "\n").as_bytes());
    let all = EditInput { replace_all: true, ..input("f", "x", new) };
    let report = text(&edit(&all, &fixture.context(&["f"])).unwrap());
    let file = String::from_utf8(fixture.content("f")).unwrap();
    let now: Vec<&str> = file.lines().collect();
    let shown: Vec<&str> = report.lines().skip(1).filter(|line| line.contains('\t')).collect();
    let expected: Vec<String> = expected_lines.iter().map(|n| format!("{n}\t{}", now[n - 1])).collect();
    assert_eq!(shown, expected, "{report}");
    assert!(report.ends_with(end), "{report}");
}

#[test]
fn the_report_shows_the_file_as_it_now_is() {
    let far = ["x1", "2", "3", "4", "5", "6", "7", "8", "9", "x10", "11", "x12", "13"];
    check_report(&far, "Y", &[1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13], "13\t13");
    check_report(&far, "Y\nZ", &[1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16], "16\t13");
    check_report(&["x x x", "2"], "Y", &[1, 2], "1\tY Y Y\n2\t2");
    let spread: Vec<&str> = ["x", "", "", "", "", "", "", "", ""].repeat(5);
    let places = [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19, 20, 21, 22];
    check_report(&spread, "Y", &places, "… and 2 more places.");
    let many: Vec<usize> = (1..=40).collect();
    check_report(&["x"; 90], "Y", &many, "… 50 more lines");
}

#[test]
fn the_report_shows_numbered_lines_and_structure() {
    let fixture = Fixture::one("f", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let outcome = edit(&input("f", "5\n", "five\nfünf\n"), &fixture.context(&["f"])).unwrap();
    assert_eq!(text(&outcome), "Edited f. New text:\n2\t2\n3\t3\n4\t4\n5\tfive\n6\tfünf\n7\t6\n8\t7\n9\t8");
    let json = structured(&outcome);
    assert_eq!(json["filePath"], fixture.path("f").to_str().unwrap());
    assert_eq!(json["oldString"], "5\n");
    assert_eq!(json["newString"], "five\nfünf\n");
    assert_eq!(json["originalFile"], "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(json["userModified"], false);
    assert_eq!(json["replaceAll"], false);
    let hunk = &json["structuredPatch"][0];
    assert_eq!((&hunk["oldStart"], &hunk["oldLines"]), (&2.into(), &7.into()));
    assert_eq!((&hunk["newStart"], &hunk["newLines"]), (&2.into(), &8.into()));
    assert_eq!(hunk["lines"][3], "-5");
    let path = fixture.path("f");
    let stamp = Some(crate::open::stamp(&path.metadata().unwrap()));
    let expected = FileSeen { stamp, ..seen_bytes(path, &fixture.content("f"), true) };
    assert_eq!(outcome.seen, [expected], "further edits must work");
}

/// Tries an edit that must be refused with these words, and changes nothing.
fn refuse(before: &[u8], input: &EditInput, expected: &[&str]) {
    let fixture = Fixture::one("f", before);
    let error = edit(input, &fixture.context(&["f"])).unwrap_err();
    for part in expected {
        assert!(error.contains(part), "{error}\nlacks {part:?}");
    }
    assert_eq!(fixture.content("f"), before);
}

#[test]
fn refusals_say_why_and_change_nothing() {
    refuse(b"a", &input("f", "a", "a"), &["are the same"]);
    refuse(b"a\nb", &input("f", "a\nb", "a\r\nb"), &["only in line ends"]);
    refuse(b"a", &input("none", "a", "b"), &["none does not exist", "working directory"]);
    refuse(b"a", &input("F", "a", "b"), &["Did you mean f?"]);
    refuse(b"a", &input("f", "", "b"), &["already exists with content"]);
    refuse(b"a\na\n", &input("f", "a", "b"), &["occurs 2 times", "Line 1:", "Line 2:"]);
    refuse(b"hello world\n", &input("f", "hello earth", "b"), &["does not occur", "1\thello world"]);
    refuse(b"caf\xe9", &input("f", "caf", "日本 caf"), &["windows-1252", "U+65E5"]);
    refuse(b"ok", &input("f", "ok", "o\u{fffd}"), &["replacement character"]);
    refuse(b"a", &input(".", "a", "b"), &["is a directory"]);
    refuse(b"a", &input("f\0", "a", "b"), &["NUL"]);
    refuse(b"a", &input("new\u{fffd}", "", "b"), &["Not created", "not UTF-8"]);
    refuse(b"a", &input("/dev/null", "a", "b"), &["character device"]);
    refuse(b"a", &input("/proc/self/cwd/f", "a", "b"), &["Cannot resolve"]);
}

#[test]
fn a_replacement_character_that_is_really_there_may_stay() {
    check("a \u{fffd} b".as_bytes(), "a \u{fffd}", "x \u{fffd}", "x \u{fffd} b".as_bytes());
}

#[test]
fn unread_and_changed_files_are_refused() {
    let fixture = Fixture::one("f", b"one\ntwo\nthree\n");
    let unread = fixture.context(&[]);
    let error = edit(&input("f", "two", "2"), &unread).unwrap_err();
    assert!(error.contains("you have not read"), "{error}");

    let cx = fixture.context(&["f"]);
    fs::write(fixture.path("f"), "one\ntwo\n3\n").unwrap();
    let error = edit(&input("f", "two", "2"), &cx).unwrap_err();
    assert!(
        error.contains("has changed since") && error.contains("Changed line 3 (was line 3):\n3\t3"),
        "{error}"
    );
    assert_eq!(fixture.content("f"), b"one\ntwo\n3\n");
}

#[test]
fn a_new_timestamp_is_no_change() {
    let fixture = Fixture::one("f", b"one\n");
    let cx = fixture.context(&["f"]);
    let file = fs::File::options().write(true).open(fixture.path("f")).unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_mins(1)).unwrap();
    edit(&input("f", "one", "two"), &cx).unwrap();
    assert_eq!(fixture.content("f"), b"two\n");
}

#[test]
fn a_part_that_was_seen_is_enough_and_stays_a_part() {
    let fixture = Fixture::one("f", b"one\n");
    let mut cx = fixture.context(&["f"]);
    cx.seen[0].is_whole = false;
    let outcome = edit(&input("f", "one", "two"), &cx).unwrap();
    assert!(!outcome.seen[0].is_whole);
}

#[test]
fn of_a_file_seen_in_part_one_place_can_be_changed() {
    let fixture = Fixture::one("f", b"one\ntwo\none\n");
    let mut cx = fixture.context(&["f"]);
    cx.seen[0].is_whole = false;
    let all = |old: &str| EditInput { replace_all: true, ..input("f", old, "1") };
    let error = edit(&all("one"), &cx).unwrap_err();
    assert!(error.contains("you have read only a part of f, and `old_string` occurs 2 times"), "{error}");
    edit(&all("two"), &cx).unwrap();
    assert_eq!(fixture.content("f"), b"one\n1\none\n");
}

#[test]
fn a_file_keeps_its_one_byte_order_mark_when_it_is_created_anew() {
    for new in ["hello\n", "\u{feff}hello\n"] {
        let fixture = Fixture::one("f", b"\xef\xbb\xbf");
        edit(&input("f", "", new), &fixture.context(&[])).unwrap();
        assert_eq!(fixture.content("f"), b"\xef\xbb\xbfhello\n");
    }
}

#[test]
fn an_empty_old_string_creates() {
    let fixture = Fixture::one("empty", b"");
    for name in ["new/dir/f", "empty"] {
        let cx = fixture.context(&[]);
        let outcome = edit(&input(name, "", "hello\n"), &cx).unwrap();
        assert_eq!(fixture.content(name), b"hello\n");
        assert!(outcome.seen[0].is_whole && text(&outcome).contains("Created"));
        assert_eq!(outcome.seen[0].path, fixture.path(name));
    }
}

#[test]
fn links_and_mode_are_kept() {
    let fixture = Fixture::one("real", b"a");
    fs::set_permissions(fixture.path("real"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real", fixture.path("link")).unwrap();
    edit(&input("link", "a", "b"), &fixture.context(&["real"])).unwrap();
    assert_eq!(fs::read_link(fixture.path("link")).unwrap(), Path::new("real"));
    assert_eq!(fixture.content("real"), b"b");
    assert_eq!(fs::metadata(fixture.path("real")).unwrap().permissions().mode() & 0o7777, 0o640);
}

#[test]
fn facts_name_the_file_both_ways() {
    let fixture = Fixture::one("real", b"a");
    symlink("real", fixture.path("link")).unwrap();
    let cx = fixture.examine();
    let facts = Edit.facts(&input("./link", "a", "b"), &cx).unwrap();
    assert_eq!((facts.kind, facts.is_shared, &*facts.target), (CallKind::Edit, false, "link"));
    assert_eq!(facts.paths[0].lexical, fixture.path("link"));
    assert_eq!(facts.paths[0].resolved, Some(fixture.path("real")));
    assert!(Edit.facts(&input("link", "a", "a"), &cx).is_err());
}

#[tokio::test]
async fn the_whole_way_through_json() {
    use windlass_ports::AnyTool;
    let fixture = Fixture::one("f", b"a");
    let raw =
        |json: &str| std::sync::Arc::from(serde_json::value::RawValue::from_string(json.to_owned()).unwrap());
    let run = |json: &str| AnyTool::run(std::sync::Arc::new(Edit), raw(json), fixture.context(&["f"]));
    let bad = run(r#"{"file_path":"f","old_string":"a","new_string":"b","extra":1}"#).await;
    assert!(bad.is_error && text(&bad).contains("extra"), "{}", text(&bad));
    let good = run(r#"{"file_path":"f","old_string":"a","new_string":"b","replace_all":"true"}"#).await;
    assert!(!good.is_error && matches!(good.content[0].kind(), BlockKind::Text(_)));
    assert_eq!(fixture.content("f"), b"b");
}

fn line_end() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("\n"), 4 => Just("\r\n"), 1 => Just("\r")]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Lines of random content and ends; a run of them is replaced. Every byte before and after must stay.
    #[test]
    fn bytes_outside_the_span_never_change(
        lines in prop::collection::vec(("[a-zé \t]{0,5}", line_end()), 3..12),
        bom in any::<bool>(),
        final_end in any::<bool>(),
        from in 0_usize..8,
        count in 1_usize..4,
        new in "[A-Z\n]{0,8}",
    ) {
        let from = from % (lines.len() - 1);
        let to = (from + count).min(lines.len() - 1);
        // A mark makes the run of lines unique.
        let piece = |index: usize| {
            let (content, end) = &lines[index];
            let end = if index + 1 == lines.len() && !final_end { "" } else { end };
            format!("{content}#{index}{end}")
        };
        let join = |range: Range<usize>| range.map(piece).collect::<String>();
        let bom: &str = if bom { "\u{feff}" } else { "" };
        let (before, old, after) = (join(0..from), join(from..to), join(to..lines.len()));
        let content = format!("{bom}{before}{old}{after}");
        let fixture = Fixture::one("f", content.as_bytes());
        let has_lf = content.contains('\n');
        // The model writes \n for what it was shown as a line end.
        let asked = if has_lf { old.replace("\r\n", "\n") } else { old.replace('\r', "\n") };
        prop_assume!(asked != new);

        edit(&input("f", &asked, &new), &fixture.context(&["f"])).unwrap();

        let now = String::from_utf8(fixture.content("f")).unwrap();
        let head = format!("{bom}{before}");
        prop_assert!(now.starts_with(&head), "{now:?} {head:?}");
        prop_assert!(now.ends_with(&after), "{now:?} {after:?}");
        let inserted = &now[head.len()..now.len() - after.len()];
        let folded = if has_lf { inserted.replace("\r\n", "\n") } else { inserted.replace('\r', "\n") };
        prop_assert_eq!(folded, new);
    }

    /// The same for encodings that are not UTF-8: what decodes must decode to the edited text.
    #[test]
    fn other_encodings_stay_themselves(
        words in prop::collection::vec("[a-zàéîõü]{1,6}", 2..8),
        which in 0_usize..3,
        new in "[A-Zàéîõü]{1,6}",
    ) {
        let content = words.iter().enumerate().map(|(n, word)| format!("{word}{n}é")).collect::<Vec<_>>().join("\r\n");
        let encoding = [
            TextEncoding::Utf16(encoding_rs::UTF_16LE),
            TextEncoding::Utf16(encoding_rs::UTF_16BE),
            TextEncoding::Legacy(encoding_rs::WINDOWS_1252),
        ][which];
        let mut bytes = encoding.bom().to_vec();
        bytes.extend_from_slice(&encoding.encode(&content).unwrap());
        prop_assume!(TextEncoding::detect(&bytes) == encoding);
        let fixture = Fixture::one("f", &bytes);
        let old = format!("{}1é", words[1]);
        prop_assume!(content.matches(&old).count() == 1 && old != new);

        edit(&input("f", &old, &new), &fixture.context(&["f"])).unwrap();

        let mut expected = encoding.bom().to_vec();
        expected.extend_from_slice(&encoding.encode(&content.replace(&old, &new)).unwrap());
        prop_assert_eq!(fixture.content("f"), expected);
    }
}
