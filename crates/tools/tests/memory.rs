//! Searches of very large things, in a process of their own so that its memory tells.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use windlass_ports::{AnyTool, ToolContext};
use windlass_tools::Grep;

/// One test at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn grep(&self, input: &Value) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let input = serde_json::value::to_raw_value(input).unwrap();
        let cx = ToolContext::detached(self.path());
        let outcome = runtime.block_on(AnyTool::run(Arc::new(Grep::default()), input.into(), cx));
        outcome.content[0].as_text().unwrap().to_owned()
    }

    fn check(&self, input: &Value, expected: &str) {
        assert_eq!(self.grep(input), expected, "{input}");
    }
}

/// Until it is dropped, no other test of this file uses memory.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells by how many kB memory grew at most.
fn growth(work: impl FnOnce()) -> u64 {
    let status = |field: &str| -> u64 {
        let text = fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    // The highest mark starts again from here.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = status("VmRSS:");
    work();
    status("VmHWM:").saturating_sub(before)
}

#[test]
fn a_line_of_a_hundred_megabytes_is_searched_in_pieces() {
    let _alone = alone();
    let folder = Folder::new();
    let mut file = fs::File::create(folder.path().join("big")).unwrap();
    file.write_all(b"first\n").unwrap();
    for _ in 0..100 {
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    file.write_all(b"needle\nthird needle\n").unwrap();
    let grown = growth(|| {
        let text = folder.grep(&json!({ "pattern": "needle", "output_mode": "content" }));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("big:2:") && lines[0].contains("needle"), "{}", lines[0]);
        assert_eq!(lines[1], "big:3:third needle");
    });
    assert!(grown < 12_000, "{grown} kB");
    let grown = growth(|| {
        let note = "No files found\n(1 file not searched: too large.)";
        folder.check(&json!({ "pattern": "needle\\nthird", "multiline": true }), note);
    });
    assert!(grown < 24_000, "{grown} kB");
}

#[test]
fn a_million_matches_are_counted_and_paged_without_being_held() {
    let _alone = alone();
    let folder = Folder::new();
    fs::write(folder.path().join("a"), "word\n".repeat(1_000_000)).unwrap();
    fs::write(folder.path().join("b"), "word\n").unwrap();
    let grown = growth(|| {
        let total = "a:1000000\nb:1\n\nFound 1000001 total occurrences across 2 files.";
        folder.check(&json!({ "pattern": "word", "output_mode": "count" }), total);
        let page = json!({ "pattern": "word", "output_mode": "content", "offset": 999_999, "head_limit": 5 });
        folder.check(&page, "a:1000000:word\nb:1:word");
        let page = json!({ "pattern": "word", "output_mode": "content", "offset": 500_000, "head_limit": 1 });
        let more = "(Showing 1 entries; there are more. Continue with offset 500001, or narrow the search.)";
        folder.check(&page, &format!("a:500001:word\n{more}"));
        let all = folder.grep(&json!({ "pattern": "word", "output_mode": "content", "head_limit": 0 }));
        assert!(all.len() < 50_000 && all.contains("there are more"));
    });
    assert!(grown < 12_000, "{grown} kB");
}
