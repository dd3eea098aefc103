//! The tool Write: creates a file or replaces all of it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_ports::{ExamineContext, Tool, ToolContext};
use windlass_protocol::{CallFacts, CallKind, ToolOutput, ToolProfile};
use windlass_text::plurals::quantity;
use xxhash_rust::xxh3::xxh3_64;

use crate::change::{PendingChange, unless_large};
use crate::content::{FileContent, with_lf};
use crate::file::{OnCancel, blocking, facts};
use crate::patch::hunks;

/// Creates a file, or replaces all of an existing one; it never appends. Creates missing directories.
///
/// - To change part of a file use Edit: it is shorter and touches nothing else.
/// - An existing file must have been read whole in this conversation. If its content has changed since, the write is
///   refused and you are shown what changed.
/// - Write line ends as \n. A file that had Windows line ends, a byte order mark or another encoding keeps them.
///
/// Returns a short confirmation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {
    /// The file: absolute, relative to the working directory, or starting with `~/`.
    pub(crate) file_path: String,
    /// All of the new content.
    pub(crate) content: String,
}

/// The tool Write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Write;

impl Tool for Write {
    type Input = WriteInput;
    const NAME: &'static str = "Write";
    const PROFILE: ToolProfile = ToolProfile::EDIT;
    const SPEC: Option<&'static str> = Some(include_str!("../specs/Write.json"));

    fn facts(&self, input: &WriteInput, cx: &ExamineContext) -> Result<CallFacts, String> {
        facts(CallKind::Edit, &input.file_path, cx)
    }

    async fn run(&self, input: WriteInput, cx: ToolContext) -> ToolOutput {
        blocking(cx, OnCancel::Wait, move |cx| write(&input, cx)).await
    }
}

fn write(input: &WriteInput, cx: &ToolContext) -> Result<ToolOutput, String> {
    let change = PendingChange::new(&input.file_path, cx)?;
    let old = change.old.as_ref();
    if let Some(old) = old {
        check_replaceable(&change, old)?;
    }
    let seen = change.save_text(&input.content)?;
    let what = match old {
        Some(old) if xxh3_64(&old.bytes) == seen.hash => "already had this content",
        Some(_) => "was replaced",
        None => "was created",
    };
    let lines = quantity(input.content.lines().count(), "line");
    let text = format!("{} {what} ({lines}).", change.subject.shown);
    let patch = old.map(|old| hunks(&with_lf(&old.text()), &with_lf(&input.content)));
    let output = json!({
        "type": if old.is_some() { "update" } else { "create" },
        "content": unless_large(&input.content),
        "structuredPatch": patch.unwrap_or_default(),
    });
    Ok(change.tool_output(&text, output, seen))
}

/// An existing file may be replaced if all of it was seen and it still holds that. An empty one has nothing to lose.
fn check_replaceable(change: &PendingChange<'_>, old: &FileContent) -> Result<(), String> {
    if old.body().is_empty() || change.check_seen(old)? {
        return Ok(());
    }
    Err(format!(
        "Not replaced: you have read only a part of {}. Read all of it first, or use Edit to change the \
         part you know.",
        change.subject.shown
    ))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use windlass_protocol::FileSeen;

    use super::*;
    use crate::content::STRUCTURED_BYTES_MAX;
    use crate::fingerprint::seen_bytes;
    use crate::fixture::{Fixture, structured};

    fn input(file: &str, content: &str) -> WriteInput {
        WriteInput { file_path: file.to_owned(), content: content.to_owned() }
    }

    /// Replaces a file that was read before and compares its bytes.
    fn check(before: &[u8], content: &str, after: &[u8]) {
        let fixture = Fixture::new(&[("f", before)]);
        let outcome = write(&input("f", content), &fixture.context(&["f"])).unwrap();
        assert_eq!(fs::read(fixture.path("f")).unwrap(), after, "{content:?} over {before:?}");
        let [seen] = &outcome.seen[..] else { panic!("{:?}", outcome.seen) };
        let stamp = crate::open::stamp(&fixture.path("f").metadata().unwrap());
        assert_eq!(*seen, FileSeen { stamp: Some(stamp), ..seen_bytes(fixture.path("f"), after, true) });
    }

    #[test]
    fn the_style_of_the_old_file_is_kept() {
        check(b"a\n", "b\nc\n", b"b\nc\n");
        check(b"a\r\nb\r\n", "c\nd", b"c\r\nd");
        check(b"a\r\nb\r\n", "c\r\nd", b"c\r\nd");
        check(b"a\r\nb\n", "c\nd", b"c\nd");
        check(b"a\rb", "c\nd", b"c\rd");
        check(b"\xef\xbb\xbfa", "b", b"\xef\xbb\xbfb");
        check(b"\xef\xbb\xbfa", "\u{feff}b", b"\xef\xbb\xbfb");
        check(b"\xff\xfea\0\r\0\n\0", "é\n", b"\xff\xfe\xe9\0\r\0\n\0");
        check(b"caf\xe9\n", "crème\n", b"cr\xe8me\n");
        check(b"a\n", "", b"");
        check(b"same\n", "same\n", b"same\n");
    }

    #[test]
    fn new_files_are_created_with_directories() {
        let fixture = Fixture::new(&[]);
        let outcome = write(&input("a/b/new.txt", "hi\nyou\n"), &fixture.context(&[])).unwrap();
        assert_eq!(fs::read_to_string(fixture.path("a/b/new.txt")).unwrap(), "hi\nyou\n");
        assert_eq!(outcome.content[0].as_text(), Some("a/b/new.txt was created (2 lines)."));
        let json = structured(&outcome);
        assert_eq!(json["type"], "create");
        assert_eq!(json["filePath"], fixture.path("a/b/new.txt").to_str().unwrap());
        assert_eq!(json["content"], "hi\nyou\n");
        assert_eq!(json["originalFile"], serde_json::Value::Null);
        assert!(json.get("originalFile").is_some());
        assert_eq!(json["structuredPatch"], serde_json::json!([]));
    }

    #[test]
    fn replacing_reports_the_difference_and_keeps_link_and_mode() {
        let fixture = Fixture::new(&[("real", b"one\ntwo\n")]);
        let real = fixture.path("real");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("real", fixture.path("link")).unwrap();
        let outcome = write(&input("link", "one\n2\n"), &fixture.context(&["real"])).unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "one\n2\n");
        assert_eq!(fs::read_link(fixture.path("link")).unwrap(), Path::new("real"));
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o755);
        let json = structured(&outcome);
        assert_eq!(json["type"], "update");
        assert_eq!(json["originalFile"], "one\ntwo\n");
        assert_eq!(json["structuredPatch"][0]["lines"], serde_json::json!([" one", "-two", "+2"]));
    }

    #[test]
    fn large_texts_stay_out_of_the_structured_form() {
        let big = "x".repeat(STRUCTURED_BYTES_MAX + 1);
        let fixture = Fixture::new(&[("f", big.as_bytes())]);
        let outcome = write(&input("f", &format!("{big}y")), &fixture.context(&["f"])).unwrap();
        let json = structured(&outcome);
        assert!(json.get("content").is_none() && json.get("originalFile").is_none());
        assert!(outcome.structured.unwrap().0.get().len() < 300_000);
    }

    fn refuse(fixture: &Fixture, cx: &ToolContext, input: &WriteInput, expected: &str) {
        let before = fs::read(fixture.path("f")).unwrap();
        let error = write(input, cx).unwrap_err();
        assert!(error.contains(expected), "{error}\nlacks {expected:?}");
        assert_eq!(fs::read(fixture.path("f")).unwrap(), before);
    }

    #[test]
    fn refusals_say_why_and_change_nothing() {
        let fixture = Fixture::new(&[("f", b"caf\xe9\n"), ("empty", b"")]);
        let seen = fixture.context(&["f"]);
        refuse(&fixture, &fixture.context(&[]), &input("f", "x"), "you have not read");
        let mut partly = fixture.context(&["f"]);
        partly.seen[0].is_whole = false;
        refuse(&fixture, &partly, &input("f", "x"), "you have read only a part of f");
        refuse(&fixture, &seen, &input("f", "日本"), "windows-1252, which has no '日' (U+65E5)");
        refuse(&fixture, &seen, &input("f", "caf\u{fffd}"), "replacement character");
        refuse(&fixture, &seen, &input("new", "caf\u{fffd}"), "replacement character");
        refuse(&fixture, &seen, &input(".", "x"), "is a directory");
        refuse(&fixture, &seen, &input("/dev/null", "x"), "character device");
        refuse(&fixture, &seen, &input("f/below", "x"), "cannot open its directory");
        symlink("nowhere", fixture.path("dangling")).unwrap();
        refuse(&fixture, &seen, &input("dangling", "x"), "Cannot resolve");
        write(&input("empty", "now"), &fixture.context(&[])).unwrap();
    }

    #[test]
    fn a_name_that_is_not_text_is_refused_and_nothing_else_is_made() {
        let fixture = Fixture::new(&[("f", b"x")]);
        fs::write(fixture.path("").join(OsStr::from_bytes(b"caf\xe9")), "x").unwrap();
        let cx = fixture.context(&[]);
        refuse(&fixture, &cx, &input("caf\u{fffd}", "y"), "bytes that are not UTF-8");
        refuse(&fixture, &cx, &input("caf\\xe9", "y"), "bytes that are not UTF-8");
        assert_eq!(fs::read_dir(fixture.path("")).unwrap().count(), 2);
        write(&input("caf\\xe8", "nothing of that name is there"), &cx).unwrap();
    }

    #[test]
    fn changed_content_is_refused_and_shown() {
        let fixture = Fixture::new(&[("f", b"one\ntwo\n")]);
        let cx = fixture.context(&["f"]);
        fs::write(fixture.path("f"), "one\nTWO\n").unwrap();
        refuse(&fixture, &cx, &input("f", "x"), "Changed line 2 (was line 2):\n2\tTWO");
        fs::write(fixture.path("f"), "one\ntwo\n").unwrap();
        write(&input("f", "x"), &cx).unwrap();
    }
}
