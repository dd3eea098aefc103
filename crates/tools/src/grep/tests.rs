use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::{Instant, SystemTime};

use serde_json::{Value, json};

use super::*;

struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    /// Files are as old as they come late in the list.
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self { dir: tempfile::tempdir().unwrap() };
        for (age, (name, content)) in (0..).zip(files) {
            let path = tree.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            let modified = SystemTime::now() - Duration::from_secs(100 * (age + 1));
            fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        }
        tree
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    async fn grep(&self, input: &Value) -> ToolOutput {
        let cx = ToolContext::detached(self.root());
        Grep::default().run(serde_json::from_value(input.clone()).unwrap(), cx).await
    }

    async fn check(&self, input: Value, expected: &str) {
        assert_eq!(text(&self.grep(&input).await), expected, "{input}");
    }
}

fn text(outcome: &ToolOutput) -> &str {
    outcome.content[0].as_text().unwrap()
}

fn structured(outcome: &ToolOutput) -> Value {
    serde_json::from_str(outcome.structured.as_ref().unwrap().0.get()).unwrap()
}

fn poem() -> Tree {
    Tree::new(&[
        ("b.txt", "one\ntwo\nTwo two\nfour\nfive\nsix\n"),
        ("a.txt", "two\r\nthree\n"),
        ("sub/c.rs", "fn two() {}\n"),
        ("sub/d.txt", "nothing\n"),
    ])
}

#[tokio::test]
async fn modes() {
    let tree = poem();
    tree.check(json!({ "pattern": "two" }), "Found 3 files\nb.txt\na.txt\nsub/c.rs").await;
    tree.check(json!({ "pattern": "absent" }), "No files found").await;
    tree.check(json!({ "pattern": "absent", "output_mode": "content" }), "No matches found").await;
    tree.check(
        json!({ "pattern": "two", "output_mode": "count" }),
        "a.txt:1\nb.txt:2\nsub/c.rs:1\n\nFound 4 total occurrences across 3 files.",
    )
    .await;
    tree.check(
        json!({ "pattern": "two", "output_mode": "content" }),
        "a.txt:1:two\nb.txt:2:two\nb.txt:3:Two two\nsub/c.rs:1:fn two() {}",
    )
    .await;
}

#[tokio::test]
async fn switches() {
    let tree = poem();
    let check = async |more: Value, expected: &str| {
        let mut input = json!({ "pattern": "two", "output_mode": "content", "path": "b.txt" });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        tree.check(input, expected).await;
    };
    check(json!({}), "2:two\n3:Two two").await;
    check(json!({ "-n": false }), "two\nTwo two").await;
    check(json!({ "-n": "true", "-o": true }), "2:two\n3:two").await;
    check(json!({ "-i": true, "-o": true }), "2:two\n3:Two\n3:two").await;
    check(json!({ "-A": 1 }), "2:two\n3:Two two\n4-four").await;
    check(json!({ "-B": 1.0 }), "1-one\n2:two\n3:Two two").await;
    check(json!({ "-C": "1" }), "1-one\n2:two\n3:Two two\n4-four").await;
    check(json!({ "context": 1, "-A": 0 }), "1-one\n2:two\n3:Two two").await;
    check(json!({ "pattern": "one|five", "-A": 1 }), "1:one\n2-two\n--\n5:five\n6-six").await;
    check(json!({ "pattern": "two\\nTwo", "multiline": true }), "2:two\n3:Two two").await;
    check(json!({ "pattern": "one.*Two", "multiline": true, "-o": true }), "1:one\ntwo\nTwo").await;
    check(json!({ "pattern": "^two$", "path": "a.txt" }), "No matches found").await;
    check(json!({ "pattern": "^two\\r?$", "path": "a.txt" }), "1:two").await;
}

#[tokio::test]
async fn pages() {
    let tree = poem();
    let check = async |mode: &str, offset: u64, limit: u64, expected: &str| {
        tree.check(
            json!({ "pattern": "two", "output_mode": mode, "offset": offset, "head_limit": limit }),
            expected,
        )
        .await;
    };
    let rest = |shown: u64, next: u64| {
        format!(
            "(Showing {shown} entries; there are more. Continue with offset {next}, or narrow the search.)"
        )
    };
    check("content", 0, 2, &format!("a.txt:1:two\nb.txt:2:two\n{}", rest(2, 2))).await;
    check("content", 2, 2, "b.txt:3:Two two\nsub/c.rs:1:fn two() {}").await;
    check("content", 1, 1, &format!("b.txt:2:two\n{}", rest(1, 2))).await;
    check("content", 4, 2, "No entries at this offset").await;
    check("files_with_matches", 0, 2, &format!("Found 3 files\nb.txt\na.txt\n{}", rest(2, 2))).await;
    check("files_with_matches", 2, 2, "Found 3 files\nsub/c.rs").await;
    check("files_with_matches", 3, 2, "No entries at this offset").await;
    let total = "\n\nFound 4 total occurrences across 3 files.\n";
    check("count", 1, 1, &format!("b.txt:2{total}{}", rest(1, 2))).await;
    check("count", 0, 0, "a.txt:1\nb.txt:2\nsub/c.rs:1\n\nFound 4 total occurrences across 3 files.").await;
}

#[tokio::test]
async fn a_page_has_250_entries_unless_more_are_wanted() {
    let tree = Tree::new(&[("f", &"x\n".repeat(300))]);
    let outcome = tree.grep(&json!({ "pattern": "x", "output_mode": "content" })).await;
    let text = text(&outcome);
    assert_eq!(text.lines().filter(|line| line.ends_with(":x")).count(), 250);
    assert!(text.contains("Continue with offset 250"), "{text}");
}

#[tokio::test]
async fn structured_results() {
    let tree = poem();
    let output = structured(&tree.grep(&json!({ "pattern": "two", "head_limit": 1, "offset": 1 })).await);
    assert_eq!(
        output,
        json!({ "mode": "files_with_matches", "numFiles": 1, "filenames": ["a.txt"], "totalFiles": 3, "appliedLimit": 1, "appliedOffset": 1 })
    );
    let output = structured(&tree.grep(&json!({ "pattern": "Two", "output_mode": "content" })).await);
    let expected = json!({ "mode": "content", "numFiles": 1, "filenames": [], "content": "b.txt:3:Two two", "numLines": 1 });
    assert_eq!(output, expected);
    let output = structured(&tree.grep(&json!({ "pattern": "two", "output_mode": "count" })).await);
    assert_eq!((&output["numMatches"], &output["totalFiles"]), (&json!(4), &json!(3)));
}

#[tokio::test]
async fn which_files_are_searched() {
    let tree = Tree::new(&[
        ("a.rs", "x"),
        ("b.py", "x"),
        ("c.ts", "x"),
        (".hidden/d.rs", "x"),
        (".git/e.rs", "x"),
        ("target/f.rs", "x"),
        (".gitignore", "target\n"),
    ]);
    let check = async |more: Value, expected: &[&str]| {
        let mut input = json!({ "pattern": "x", "output_mode": "count" });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let outcome = tree.grep(&input).await;
        let names: Vec<&str> = text(&outcome).lines().filter_map(|line| line.strip_suffix(":1")).collect();
        assert_eq!(names, expected, "{input}");
    };
    check(json!({}), &[".hidden/d.rs", "a.rs", "b.py", "c.ts"]).await;
    check(json!({ "type": "rust" }), &[".hidden/d.rs", "a.rs"]).await;
    check(json!({ "glob": "*.rs" }), &[".hidden/d.rs", "a.rs"]).await;
    check(json!({ "glob": "*.{py,ts}" }), &["b.py", "c.ts"]).await;
    check(json!({ "glob": "*.py,*.ts" }), &["b.py", "c.ts"]).await;
    check(json!({ "glob": "!*.rs" }), &["b.py", "c.ts"]).await;
    check(json!({ "glob": ".hidden/**" }), &[".hidden/d.rs"]).await;
    check(json!({ "path": "target" }), &["target/f.rs"]).await;
    check(json!({ "path": "target/f.rs", "output_mode": "count" }), &["target/f.rs"]).await;
    check(json!({ "path": ".git" }), &[".git/e.rs"]).await;
    fs::remove_dir_all(tree.root().join(".git")).unwrap();
    check(json!({}), &[".hidden/d.rs", "a.rs", "b.py", "c.ts"]).await;
}

#[tokio::test]
async fn ignore_files_above_count_only_inside_a_repository() {
    let tree = Tree::new(&[(".gitignore", "*\n"), ("project/a.txt", "word\n")]);
    let found = async || {
        let outcome = tree.grep(&json!({ "pattern": "word", "path": "project" })).await;
        text(&outcome).lines().next().unwrap().to_owned()
    };
    assert_eq!(found().await, "Found 1 file");
    fs::create_dir(tree.root().join(".git")).unwrap();
    assert_eq!(found().await, "No files found");
}

#[tokio::test]
async fn what_is_not_text() {
    let tree = Tree::new(&[("a.txt", "word\n")]);
    fs::write(tree.root().join("bin"), b"word\n\0word\n").unwrap();
    fs::write(tree.root().join(OsStr::from_bytes(b"\xff.txt")), b"word \xfe\n").unwrap();
    let utf16: Vec<u8> = "\u{feff}a\nword é\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(tree.root().join("wide.txt"), utf16).unwrap();
    let expected = "a.txt:1:word\nwide.txt:2:word é\n\\xff.txt:1:word \u{fffd}";
    tree.check(json!({ "pattern": "word", "output_mode": "content" }), expected).await;
    let note = "No files found\n(Not searched: the file is binary.)";
    tree.check(json!({ "pattern": "word", "path": "bin" }), note).await;
}

#[tokio::test]
async fn long_lines_are_cut_around_the_match() {
    let line = format!("{}needle{}\n", "é".repeat(400), "b".repeat(2000));
    let tree = Tree::new(&[("a", &line), ("b", &format!("needle {}", "b".repeat(2000)))]);
    let outcome = tree.grep(&json!({ "pattern": "needle", "output_mode": "content" })).await;
    for line in text(&outcome).lines() {
        assert!(line.contains("needle") && line.ends_with("… [long line cut]") && line.len() < 700, "{line}");
        assert!(!line.contains('\u{fffd}'));
    }
}

#[tokio::test]
async fn many_files_come_in_the_order_of_their_names() {
    let files: Vec<(String, String)> =
        (0..1000).map(|n| (format!("d{}/{n:04}", n % 7), format!("x{n}\n"))).collect();
    let tree =
        Tree::new(&files.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect::<Vec<_>>());
    let mut names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    for offset in [0, 31, 600, 990] {
        let input = json!({ "pattern": "x", "output_mode": "count", "offset": offset, "head_limit": 20 });
        let outcome = tree.grep(&input).await;
        let seen: Vec<&str> = text(&outcome).lines().filter_map(|line| line.strip_suffix(":1")).collect();
        assert_eq!(seen, names[offset..names.len().min(offset + 20)]);
    }
}

#[test]
fn bad_input_is_explained() {
    let tree = Tree::new(&[("a", "x")]);
    let cx = ExamineContext::new(tree.root(), [tree.root()].into());
    let check = |input: Value, expected: &str| {
        let error = Grep::default().facts(&serde_json::from_value(input).unwrap(), &cx).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check(json!({ "pattern": "(" }), "`pattern` is not a valid regular expression: regex parse error:");
    check(json!({ "pattern": "(" }), "error: unclosed group");
    check(json!({ "pattern": "a\\nb" }), "Set `multiline` to match across lines");
    check(json!({ "pattern": "a", "glob": "{a" }), "`glob`: error parsing glob '{a'");
    check(json!({ "pattern": "a", "type": "klingon" }), "`type`: unrecognized file type: klingon");
    check(json!({ "pattern": "a", "path": "none" }), "none does not exist");
    check(json!({ "pattern": "a", "path": "/dev/null" }), "is a character device");
    let wrong = |input: Value| serde_json::from_value::<GrepInput>(input).unwrap_err().to_string();
    assert!(wrong(json!({ "pattern": "a", "output_mode": "lines" })).contains("expected one of"));
    assert!(wrong(json!({ "pattern": "a", "-X": 1 })).contains("unknown field `-X`"));
    assert!(wrong(json!({ "pattern": "a", "-A": "many" })).contains("whole number"));
}

#[test]
fn the_facts_name_what_is_searched() {
    let tree = Tree::new(&[("src/a", "x")]);
    let cx = ExamineContext::new(tree.root(), [tree.root()].into());
    let check = |input: Value, expected: PathBuf| {
        let facts = Grep::default().facts(&serde_json::from_value(input).unwrap(), &cx).unwrap();
        assert_eq!((facts.kind, facts.is_shared, facts.target.as_str()), (CallKind::Read, true, "x"));
        assert_eq!(facts.paths, [fact(expected)]);
    };
    check(json!({ "pattern": "x" }), tree.root());
    check(json!({ "pattern": "x", "path": "src/a" }), tree.root().join("src/a"));
}

#[tokio::test]
async fn a_search_can_be_cancelled_and_has_a_time_limit() {
    let tree = Tree::new(&[("a", "x")]);
    let cx = ToolContext::detached(tree.root());
    let cancel = cx.cancel.clone();
    let started = Instant::now();
    let input = json!({ "pattern": "no such text [0-9]+", "path": "/proc/self/task" });
    cancel.cancel();
    let outcome = Grep::default().run(serde_json::from_value(input).unwrap(), cx).await;
    assert!(outcome.is_error && started.elapsed() < Duration::from_millis(500));
    let grep = Grep { timeout: Duration::ZERO };
    let input = serde_json::from_value(json!({ "pattern": "x" })).unwrap();
    let outcome = grep.run(input, ToolContext::detached(tree.root())).await;
    assert!(text(&outcome).contains("Stopped after 0 s, so results may be missing"), "{}", text(&outcome));
}

#[tokio::test]
async fn a_link_that_was_swapped_after_the_decision_is_not_followed() {
    let tree = Tree::new(&[("mine", "two\n"), ("real/mine", "two\n"), ("outside/theirs", "two\n")]);
    let link = tree.root().join("link");
    for (first, then) in [("mine", "outside/theirs"), ("real", "outside")] {
        std::os::unix::fs::symlink(first, &link).unwrap();
        let examine = ExamineContext::new(tree.root(), [tree.root()].into());
        let input = || {
            let input = json!({ "pattern": "two", "path": "link", "output_mode": "content", "-n": false });
            serde_json::from_value(input).unwrap()
        };
        let mut cx = ToolContext::detached(tree.root());
        cx.facts = Grep::default().facts(&input(), &examine).unwrap().into();
        let outcome = Grep::default().run(input(), cx.clone()).await;
        assert!(text(&outcome).ends_with("two"), "{}", text(&outcome));
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(then, &link).unwrap();
        let outcome = Grep::default().run(input(), cx).await;
        fs::remove_file(&link).unwrap();
        let text = text(&outcome);
        assert!(outcome.is_error && text.contains("link now leads to another file"), "{text}");
    }
}
