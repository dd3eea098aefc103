use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode};
use windlass_ports::AnyTool;
use windlass_protocol::BlockKind;

use super::*;
use crate::fingerprint::{seen_bytes, seen_file};
use crate::fixture::{Fixture, structured, text};

fn input(file: &str) -> ReadInput {
    ReadInput { file_path: file.to_owned(), ..ReadInput::default() }
}

fn part(file: &str, offset: u64, limit: u64) -> ReadInput {
    ReadInput { offset: Some(offset), limit: Some(limit), ..input(file) }
}

fn small() -> ReadLimits {
    ReadLimits { tokens_max: 100, ..ReadLimits::default() }
}

/// What is known of the content, whatever was shown of it. That the file looked as it does now is checked on the way.
fn known(outcome: &ToolOutput) -> Vec<FileSeen> {
    for seen in &outcome.seen {
        assert_eq!(seen.stamp, seen_file(&seen.path, true).unwrap().stamp);
    }
    outcome.seen.iter().cloned().map(|seen| FileSeen { shown: Vec::new(), stamp: None, ..seen }).collect()
}

/// What is to be known of a file that was shown whole.
fn on_disk(path: &std::path::Path) -> FileSeen {
    FileSeen { stamp: None, ..seen_file(path, true).unwrap() }
}

/// Reads a file with this content and compares the text.
fn check(content: &[u8], expected: &str) {
    let fixture = Fixture::new(&[("f", content)]);
    let outcome = read(&input("f"), &fixture.context(&[]), ReadLimits::default()).unwrap();
    assert_eq!(text(&outcome), expected);
    assert_eq!(known(&outcome), [on_disk(&fixture.path("f"))], "a whole read");
}

#[test]
fn text_is_numbered() {
    check(b"a\nb\n", "1\ta\n2\tb");
    check(b"a\n\n b", "1\ta\n2\t\n3\t b");
    check(b"a\r\nb\r\n", "1\ta\n2\tb");
    check(b"a\rb\r", "1\ta\n2\tb");
    check(b"", "[f is empty.]");
    check(b"\xef\xbb\xbfa\n", "1\ta");
    check("日本\n".as_bytes(), "1\t日本");
}

#[test]
fn other_encodings_are_shown_and_named() {
    let note = |name: &str| format!("\n\n[The file is encoded as {name}; Edit and Write keep that.]");
    check(b"\xff\xfea\0\r\0\n\0\xe9\0", &format!("1\ta\n2\té{}", note("UTF-16LE")));
    check(b"\xfe\xff\0a\0\n\0b", &format!("1\ta\n2\tb{}", note("UTF-16BE")));
    check(b"caf\xe9\n", &format!("1\tcafé{}", note("windows-1252")));
    check(
        b"\xc3\xa9\xc3\xa8\xff\n",
        "1\téè\u{fffd}\n\n[Some bytes are not valid UTF-8 and are shown as \u{fffd}; Edit keeps them if you do not change them.]",
    );
}

#[test]
fn parts_of_a_file() {
    let fixture = Fixture::new(&[("f", b"a\nb\nc\nd\n")]);
    let check = |input: ReadInput, expected: &str, whole: bool| {
        let outcome = read(&input, &fixture.context(&[]), ReadLimits::default()).unwrap();
        assert_eq!(text(&outcome), expected);
        assert_eq!(known(&outcome), [seen_bytes(fixture.path("f"), b"a\nb\nc\nd\n", whole)]);
    };
    check(part("f", 2, 2), "2\tb\n3\tc", false);
    check(part("f", 0, 1), "1\ta", false);
    check(part("f", 1, 4), "1\ta\n2\tb\n3\tc\n4\td", true);
    check(ReadInput { offset: Some(4), ..input("f") }, "4\td", false);
    check(ReadInput { limit: Some(1), ..input("f") }, "1\ta", false);
    check(part("f", 9, 2), "[f has only 4 lines; line 9 is past its end.]", false);
}

#[test]
fn a_read_tells_what_it_showed_and_leaves_adding_up_to_the_core() {
    let fixture = Fixture::new(&[("f", b"a\nb\n")]);
    let outcome = read(&part("f", 2, 1), &fixture.context(&["f"]), ReadLimits::default()).unwrap();
    assert!(!outcome.seen[0].is_whole);
}

#[test]
fn the_structured_form() {
    let fixture = Fixture::new(&[("f", b"a\nb\nc\n")]);
    let outcome = read(&part("f", 2, 1), &fixture.context(&[]), ReadLimits::default()).unwrap();
    let path = fixture.path("f");
    assert_eq!(
        structured(&outcome),
        serde_json::json!({"type": "text", "file": {
            "filePath": path, "content": "b\n", "numLines": 1, "startLine": 2, "totalLines": 3,
        }})
    );
}

#[test]
fn what_was_read_and_is_unchanged_is_not_shown_again() {
    let fixture = Fixture::new(&[("f", b"a\nb\n"), ("n.ipynb", &notebook())]);
    let mut cx = fixture.context(&[]);
    let mut shown = |input: &ReadInput| {
        let outcome = read(input, &cx, ReadLimits::default()).unwrap();
        for seen in &outcome.seen {
            let earlier = cx.seen_file(&seen.path).filter(|known| known.hash == seen.hash);
            let shown = [earlier.map_or(&[][..], |known| &known.shown), &seen.shown].concat();
            cx.seen.retain(|known| known.path != seen.path);
            cx.seen.push(FileSeen { shown, ..seen.clone() });
        }
        let is_unchanged = structured(&outcome)["type"] == "file_unchanged";
        assert_eq!(is_unchanged, text(&outcome).contains("is unchanged"));
        if is_unchanged { "unchanged".to_owned() } else { text(&outcome) }
    };
    assert_eq!(shown(&input("f")), "1\ta\n2\tb");
    assert_eq!(shown(&input("f")), "unchanged");
    assert_eq!(shown(&part("f", 2, 1)), "2\tb", "another part");
    assert_eq!(shown(&part("f", 2, 1)), "unchanged");
    assert_eq!(shown(&input("f")), "unchanged");
    assert!(shown(&part("f", 9, 1)).contains("past its end"));
    assert!(shown(&part("f", 9, 1)).contains("past its end"));
    std::fs::write(fixture.path("f"), "c\n").unwrap();
    assert_eq!(shown(&input("f")), "1\tc");
    assert!(shown(&input("n.ipynb")).contains("cell 1"));
    assert_eq!(shown(&input("n.ipynb")), "unchanged");
}

#[test]
fn what_was_only_written_is_shown() {
    let fixture = Fixture::new(&[("f", b"a\n")]);
    let outcome = read(&input("f"), &fixture.context(&["f"]), ReadLimits::default()).unwrap();
    assert_eq!(text(&outcome), "1\ta");
}

#[test]
fn a_long_file_gives_its_first_page() {
    let content: Vec<u8> = (1..=200).flat_map(|n| format!("line number {n}\n").into_bytes()).collect();
    let fixture = Fixture::new(&[("f", &content)]);
    let outcome = read(&input("f"), &fixture.context(&[]), small()).unwrap();
    let shown = text(&outcome);
    assert!(shown.starts_with("1\tline number 1\n2\t"), "{shown}");
    let notice = "[PARTIAL view: lines 1-20 of 200 of f; at most 100 tokens are shown at once. To continue, call Read with offset 21 and limit 15; to find a place, use Grep.]";
    assert!(shown.ends_with(notice), "{shown}");
    assert_eq!(outcome.seen, [], "a page that was not asked for does not count as read");
    let json = structured(&outcome);
    assert_eq!((&json["file"]["numLines"], &json["file"]["totalLines"]), (&20.into(), &200.into()));
    assert_eq!(json["file"]["truncatedByTokenCap"], true);

    let error = read(&part("f", 10, 100), &fixture.context(&[]), small()).unwrap_err();
    assert!(
        error.contains("From line 10, ask for at most 19 lines (`limit`), or find the place with Grep"),
        "{error}"
    );
    let outcome = read(&part("f", 21, 19), &fixture.context(&[]), small()).unwrap();
    assert!(text(&outcome).ends_with("39\tline number 39"));
    assert_eq!(
        known(&outcome),
        [seen_bytes(fixture.path("f"), &content, false)],
        "a part that was asked for counts"
    );
}

#[test]
fn a_long_line_is_cut() {
    let content = format!("{}é\nshort\n", "x".repeat(20_001));
    let fixture = Fixture::new(&[("f", content.as_bytes())]);
    let outcome = read(&input("f"), &fixture.context(&[]), ReadLimits::default()).unwrap();
    let shown = text(&outcome);
    assert!(shown.contains("[line cut here: it has 20003 bytes"), "{}", &shown[9_900..]);
    assert!(shown.contains("\n2\tshort\n") && shown.len() < 10_500);
    assert!(!outcome.seen[0].is_whole, "not all of it was shown");
}

fn refuse(fixture: &Fixture, input: &ReadInput, expected: &str) {
    let error = read(input, &fixture.context(&[]), ReadLimits::default()).unwrap_err();
    assert!(error.contains(expected), "{error}\nlacks {expected:?}");
}

#[test]
fn what_cannot_be_read_is_said() {
    let fixture = Fixture::new(&[
        ("dir/inner.rs", b"x"),
        ("binary", b"\x7fELF\x02\x01\0\0"),
        ("late", &[&b"a\n".repeat(35_000)[..], b"\0\n"].concat()),
        ("f.txt", b"x"),
        ("broken.png", b"\x89PNG\r\n\x1a\nrest"),
    ]);
    refuse(&fixture, &input("dir"), "dir is a directory. List it with Glob");
    refuse(&fixture, &input("none.txt"), "none.txt does not exist. The working directory is /");
    refuse(&fixture, &input("F.TXT"), "Did you mean f.txt?");
    refuse(&fixture, &input("no/such"), "Its directory does not exist either.");
    refuse(&fixture, &input("caf\u{fffd}"), "not UTF-8");
    refuse(&fixture, &input("caf\\xe9"), "escapes such as `\\xff` stand for bytes that are not UTF-8");
    refuse(&fixture, &input("binary"), "is not text but an ELF executable or library (8 bytes)");
    refuse(&fixture, &part("late", 35_000, 5), "is not text but binary data");
    refuse(&fixture, &input("/dev/zero"), "is a character device");
    refuse(&fixture, &input("/proc/self/environ"), "Cannot resolve");
    refuse(&fixture, &input("broken.png"), "broken.png cannot be shown as an image: it is damaged");
    refuse(&fixture, &ReadInput { limit: Some(0), ..input("f.txt") }, "`limit` must be at least 1");
    refuse(&fixture, &ReadInput { pages: Some("1".into()), ..input("f.txt") }, "is not a PDF");
    refuse(&fixture, &ReadInput { pages: Some("x".into()), ..input("f.txt") }, "`pages` is \"x\"");
    rustix::fs::mknodat(CWD, fixture.path("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    refuse(&fixture, &input("fifo"), "is a named pipe");
    symlink("nowhere", fixture.path("link")).unwrap();
    refuse(&fixture, &input("link"), "Cannot resolve");
}

#[test]
fn files_without_a_size_are_read_to_their_end() {
    let fixture = Fixture::new(&[]);
    let outcome = read(&input("/proc/cpuinfo"), &fixture.context(&[]), ReadLimits::default()).unwrap();
    assert!(text(&outcome).starts_with("1\t"));
}

#[tokio::test]
async fn a_cancelled_read_ends_at_once() {
    let fixture = Fixture::new(&[]);
    let file = std::fs::File::create(fixture.path("sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    // A text start, so that it is not refused as binary before it is scanned.
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![b'a'; PIECE_BYTES], 0).unwrap();
    let cx = fixture.context(&[]);
    let cancel = cx.cancel.clone();
    let started = Instant::now();
    let tool = Read::default();
    let run = Tool::run(&tool, ReadInput { offset: Some(9), ..input("sparse") }, cx);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(run, stop);
    assert!(outcome.is_error && text(&outcome).contains("cancelled"), "{}", text(&outcome));
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[test]
fn images_come_as_blocks() {
    let mut png = Vec::new();
    let image = image::DynamicImage::new_rgb8(300, 100);
    image.write_to(&mut io::Cursor::new(&mut png), image::ImageFormat::Png).unwrap();
    let fixture = Fixture::new(&[("picture", &png)]);
    let outcome = read(&input("picture"), &fixture.context(&[]), ReadLimits::default()).unwrap();
    assert_eq!(outcome.content[0].kind(), &BlockKind::Image);
    assert!(outcome.content[0].json().contains("image/png"));
    let json = structured(&outcome);
    assert_eq!((&json["type"], &json["file"]["type"]), (&"image".into(), &"image/png".into()));
    assert_eq!(json["file"]["originalSize"], png.len());
    assert_eq!(json["file"]["dimensions"]["originalWidth"], 300);
    let limits = ReadLimits { image_edge_px_max: 150, ..ReadLimits::default() };
    let outcome = read(&input("picture"), &fixture.context(&[]), limits).unwrap();
    assert_eq!(structured(&outcome)["file"]["dimensions"]["displayHeight"], 50);
    refuse(&fixture, &part("picture", 1, 1), "is an image: leave them out");
}

fn notebook() -> Vec<u8> {
    let mut png = Vec::new();
    let image = image::DynamicImage::new_rgb8(2, 2);
    image.write_to(&mut io::Cursor::new(&mut png), image::ImageFormat::Png).unwrap();
    let png = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, png);
    serde_json::json!({
        "metadata": {"kernelspec": {"language": "python"}},
        "cells": [
            {"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# Title\n", "text"]},
            {"cell_type": "code", "id": "calc", "execution_count": 3, "metadata": {}, "source": "1 + 1", "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["hello\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"], "text/html": "<b>2</b>"}},
                {"output_type": "display_data", "data": {"image/png": png, "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "E", "evalue": "bad", "traceback": ["\u{1b}[31mline\u{1b}[0m"]},
            ]},
        ],
        "nbformat": 4, "nbformat_minor": 5,
    })
    .to_string()
    .into_bytes()
}

#[test]
fn notebooks_show_cells_and_outputs() {
    let fixture = Fixture::new(&[("n.ipynb", &notebook())]);
    let outcome = read(&input("n.ipynb"), &fixture.context(&[]), ReadLimits::default()).unwrap();
    let kinds: Vec<_> = outcome.content.iter().map(|block| block.as_text().is_some()).collect();
    assert_eq!(kinds, [true, false, true]);
    assert_eq!(
        outcome.content[0].as_text(),
        Some(
            "--- cell 1 (markdown, id intro) ---\n# Title\ntext\n--- cell 2 (code, id calc, run 3) ---\n1 + 1\n--- output \
             ---\nhello\n2\n<Figure>\n[image]"
        )
    );
    assert_eq!(outcome.content[2].as_text(), Some("E: bad\nline"));
    assert!(outcome.seen[0].is_whole);
    assert_eq!(known(&outcome), [on_disk(&fixture.path("n.ipynb"))]);
    let json = structured(&outcome);
    assert_eq!(json["type"], "notebook");
    assert_eq!(json["file"]["cells"][1]["cellType"], "code");
    assert_eq!(json["file"]["cells"][0]["source"], "# Title\ntext");
}

#[test]
fn large_outputs_are_cut() {
    let output = |text: String| serde_json::json!({"output_type": "stream", "text": text});
    let check = |outputs: Vec<serde_json::Value>, expected: &str| {
        let cell = serde_json::json!({"cell_type": "code", "source": "x", "outputs": outputs});
        let content = serde_json::json!({"cells": [cell]}).to_string();
        let fixture = Fixture::new(&[("n.ipynb", content.as_bytes())]);
        let outcome = read(&input("n.ipynb"), &fixture.context(&[]), ReadLimits::default()).unwrap();
        let shown = text(&outcome);
        assert!(shown.contains(expected) && shown.len() < 50_000, "{} bytes", shown.len());
        assert!(!outcome.seen[0].is_whole);
    };
    check(vec![output("y".repeat(90_000))], "[cut: showing 10000 of 90000 bytes]");
    check(vec![output("y".repeat(1000)); 1000], "[960 more outputs of this cell omitted]");
}

#[test]
fn notebooks_are_paged_by_cell() {
    let cells: Vec<_> = (0..50)
        .map(|n| serde_json::json!({"cell_type": "code", "source": format!("x = {n} # {}", "y".repeat(60))}))
        .collect();
    let content = serde_json::json!({"cells": cells}).to_string();
    let fixture = Fixture::new(&[
        ("n.ipynb", content.as_bytes()),
        ("bad.ipynb", b"{\"cells\": 3}"),
        ("none.ipynb", b"{}"),
        ("one.ipynb", br#"{"cells": [{"source": "", "cell_type": "raw"}]}"#),
        ("deep.ipynb", format!("{{\"a\": {}", "[".repeat(1000)).as_bytes()),
    ]);
    let cx = fixture.context(&[]);
    let outcome = read(&input("n.ipynb"), &cx, small()).unwrap();
    let shown = text(&outcome);
    assert!(shown.ends_with("To continue, call Read with offset 3 and limit 2.]"), "{shown}");
    assert!(shown.contains("PARTIAL view: cells 1-2 of 50") && outcome.seen.is_empty());
    let shown = text(&read(&part("n.ipynb", 7, 1), &cx, small()).unwrap());
    assert!(shown.starts_with("--- cell 7 (code) ---\nx = 6"), "{shown}");
    let error = read(&part("n.ipynb", 1, 40), &cx, small()).unwrap_err();
    assert!(error.contains("at most 2 cells"), "{error}");
    let shown = text(&read(&part("n.ipynb", 60, 1), &cx, small()).unwrap());
    assert!(shown.contains("only 50 cells"), "{shown}");
    let shown = text(&read(&part("one.ipynb", 3, 1), &cx, small()).unwrap());
    assert!(shown.contains("has only 1 cell;"), "{shown}");
    refuse(&fixture, &input("bad.ipynb"), "bad.ipynb is not a valid notebook");
    refuse(&fixture, &input("deep.ipynb"), "nested too deeply");
    refuse(&fixture, &input("none.ipynb"), "missing field `cells`");
    let huge = std::fs::File::create(fixture.path("n.ipynb")).unwrap();
    huge.set_len(100_000_001).unwrap();
    let start = format!("{{{}", " ".repeat(PIECE_BYTES));
    std::os::unix::fs::FileExt::write_all_at(&huge, start.as_bytes(), 0).unwrap();
    refuse(&fixture, &input("n.ipynb"), "at most 100 MB can be shown");
}

#[test]
fn facts_are_shared_and_read_only() {
    let fixture = Fixture::new(&[("src/a.rs", b"x")]);
    let facts = Tool::facts(&Read::default(), &input("./src/../src/a.rs"), &fixture.examine()).unwrap();
    assert_eq!((facts.kind, facts.is_shared, &*facts.target), (CallKind::Read, true, "src/a.rs"));
    assert_eq!(facts.paths[0].resolved, Some(fixture.path("src/a.rs")));
    let outside = Tool::facts(&Read::default(), &input("/etc/hostname"), &fixture.examine()).unwrap();
    assert_eq!(outside.target, "/etc/hostname");
    assert!(Tool::facts(&Read::default(), &part("a", 1, 0), &fixture.examine()).is_err());
}

#[test]
fn the_schema_is_what_the_model_needs() {
    let spec = Read::default().spec();
    assert!(spec.description.starts_with("Shows a file."));
    let schema: serde_json::Value = serde_json::from_str(spec.input_schema.get()).unwrap();
    assert_eq!(schema["required"], serde_json::json!(["file_path"]));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["offset"]["type"], "integer");
}
