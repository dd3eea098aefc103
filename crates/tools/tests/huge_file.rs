//! A file larger than memory may hold is read in pieces. Alone in its process, so that the peak is its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::Path;

use windlass_ports::{Tool, ToolContext};
use windlass_tools::{Read, ReadInput};

const LINES: usize = 1_100_000;

async fn read(dir: &Path, json: &str) -> (String, serde_json::Value) {
    let input: ReadInput = serde_json::from_str(json).unwrap();
    let outcome = Read::default().run(input, ToolContext::detached(dir.to_owned())).await;
    let text = outcome.content[0].as_text().unwrap().to_owned();
    (text, serde_json::from_str(outcome.structured.unwrap().0.get()).unwrap())
}

/// The most memory this process ever held, in kB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_huge_file_never_sits_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let lines = format!("{}\n", "0123456789".repeat(10)).repeat(1000);
    let mut file = fs::File::create(dir.path().join("big")).unwrap();
    for _ in 0..LINES / 1000 {
        file.write_all(lines.as_bytes()).unwrap();
    }
    let (text, json) = read(dir.path(), r#"{"file_path":"big"}"#).await;
    assert!(text.contains("PARTIAL view: lines 1-"), "{}", &text[text.len() - 300..]);
    assert_eq!(json["file"]["totalLines"], LINES);
    let (text, _) = read(dir.path(), r#"{"file_path":"big","offset":5,"limit":6}"#).await;
    assert!(text.starts_with("5\t0123") && text.contains("\n10\t0123"));
    let (text, _) = read(dir.path(), r#"{"file_path":"big","offset":1000000,"limit":1}"#).await;
    assert!(text.starts_with("1000000\t0123"));

    // Nothing but line ends: every line is empty, and there are very many.
    let mut file = fs::File::create(dir.path().join("empty")).unwrap();
    for _ in 0..1000 {
        file.write_all(&[b'\n'; 10_000]).unwrap();
    }
    let (_, json) = read(dir.path(), r#"{"file_path":"empty"}"#).await;
    assert_eq!(json["file"]["totalLines"], 10_000_000);
    assert!(peak() < 40_000, "{} kB", peak());
}
