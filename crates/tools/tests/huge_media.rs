//! Images and notebooks that would take gigabytes, in a process of their own so that its memory tells.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder};
use windlass_ports::{Tool, ToolContext};
use windlass_protocol::{BlockKind, ToolOutput};
use windlass_tools::{Read, ReadInput};

/// One test at a time, what it writes included.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn status(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Reads these files at once and tells by how many kB memory grew at most.
fn read(dir: &Path, names: &[&str]) -> (Vec<ToolOutput>, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The highest mark starts again from here.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = status("VmRSS:");
    let outcomes = runtime.block_on(async {
        let calls = names.iter().map(|name| {
            let input: ReadInput = serde_json::from_value(serde_json::json!({ "file_path": name })).unwrap();
            let cx = ToolContext::detached(dir.to_owned());
            tokio::spawn(async move { Read::default().run(input, cx).await })
        });
        let mut outcomes = Vec::new();
        for call in calls.collect::<Vec<_>>() {
            outcomes.push(call.await.unwrap());
        }
        outcomes
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    (outcomes, status("VmHWM:").saturating_sub(before))
}

fn text(outcome: &ToolOutput) -> String {
    outcome.content.iter().filter_map(|block| block.as_text()).collect()
}

/// A picture whose rows are all the same, so that the file is small.
fn write_png(path: &Path, edge: u32) {
    let mut encoder = png::Encoder::new(BufWriter::new(fs::File::create(path).unwrap()), edge, edge);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    let mut stream = writer.stream_writer().unwrap();
    let row: Vec<u8> = (0..edge * 3).map(|value| (value / 64).to_le_bytes()[0]).collect();
    for _ in 0..edge {
        stream.write_all(&row).unwrap();
    }
    stream.finish().unwrap();
}

fn write_jpeg(path: &Path, width: u32, height: u32) {
    let pixels = vec![90; (width * height) as usize];
    let file = BufWriter::new(fs::File::create(path).unwrap());
    JpegEncoder::new(file).write_image(&pixels, width, height, ExtendedColorType::L8).unwrap();
}

#[test]
fn huge_pictures_are_scaled_or_refused_in_little_memory() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_png(&path("a.png"), 2800);
    fs::copy(path("a.png"), path("b.png")).unwrap();
    let (outcomes, grown) = read(dir.path(), &["a.png", "b.png"]);
    for outcome in &outcomes {
        assert_eq!(outcome.content[0].kind(), &BlockKind::Image, "{}", text(outcome));
    }
    assert!(grown < 30_000, "{grown} kB");

    write_jpeg(&path("photo.jpg"), 2700, 2700);
    let (outcomes, grown) = read(dir.path(), &["photo.jpg"]);
    assert_eq!(outcomes[0].content[0].kind(), &BlockKind::Image, "{}", text(&outcomes[0]));
    assert!(grown < 15_000, "{grown} kB");

    // The same file with another size in its header.
    let mut poster = fs::read(path("photo.jpg")).unwrap();
    let frame = poster.windows(2).position(|marker| marker == b"\xff\xc0").unwrap();
    poster[frame + 5..frame + 9].copy_from_slice(&[0x1f, 0x40, 0x1f, 0x40]);
    fs::write(path("poster.jpg"), poster).unwrap();
    let (outcomes, grown) = read(dir.path(), &["poster.jpg"]);
    let error = text(&outcomes[0]);
    assert!(error.contains("8000×8000 pixels would take") && error.contains("scale it down"), "{error}");
    assert!(grown < 5_000, "{grown} kB");
}

#[test]
fn a_picture_that_is_too_large_is_refused_unread() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let mut file = fs::File::create(dir.path().join("a.png")).unwrap();
    file.write_all(b"\x89PNG\r\n\x1a\n").unwrap();
    file.set_len(36_000_000).unwrap();
    let (outcomes, grown) = read(dir.path(), &["a.png"]);
    assert!(text(&outcomes[0]).contains("is an image of 36 MB; at most 33 MB"), "{}", text(&outcomes[0]));
    assert!(grown < 3_000, "{grown} kB");
}

/// A notebook with one cell whose outputs are `piece`, repeated, between `start` and `end`.
fn write_notebook(path: &Path, megabytes: usize, (start, piece, end): (&str, &str, &str)) {
    let mut file = BufWriter::new(fs::File::create(path).unwrap());
    write!(file, r#"{{"cells": [{{"cell_type": "code", "source": "x", "outputs": [{start}"#).unwrap();
    let many = piece.repeat(1 + 1_000_000 / piece.len());
    for _ in 0..megabytes {
        file.write_all(many.as_bytes()).unwrap();
    }
    write!(file, r#"{end}]}}, {{"cell_type": "markdown", "source": "the last"}}]}}"#).unwrap();
}

#[test]
fn a_huge_notebook_never_sits_in_memory() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let check = |megabytes, outputs, expected: &str, grown_max: u64| {
        write_notebook(&dir.path().join("n.ipynb"), megabytes, outputs);
        let (outcomes, grown) = read(dir.path(), &["n.ipynb"]);
        let shown = text(&outcomes[0]);
        assert!(shown.contains(expected) && shown.contains("the last"), "{}", &shown[..shown.len().min(300)]);
        assert!(shown.len() < 100_000);
        assert!(grown < grown_max, "{grown} kB for {outputs:?}");
    };
    check(10, (r#"{"text": ["#, r#""line\n", "#, r#""end"]}"#), "cut: showing ", 3_000);
    check(
        10,
        ("", r#"{"text": "line"}, "#, r#"{"text": "end"}"#),
        "more outputs of this cell omitted",
        3_000,
    );
    let json = (r#"{"data": {"application/json": ["#, r#"{"a": [1, 2]}, "#, "0]}}");
    check(10, json, "output of type application/json", 3_000);
    check(40, (r#"{"text": ""#, "0123456789", "\"}"), "of more than 5600000 bytes]", 15_000);
    check(40, (r#"{"data": {"image/png": ""#, "iVBORw0K", r#""}}"#), "image not shown: larger than", 20_000);
}
