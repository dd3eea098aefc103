//! What is left after the process was killed, and after the manifest was damaged.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use windlass_protocol::CallKind;

use crate::world::World;

#[test]
fn a_call_that_was_never_seen_to_end() {
    let mut world = World::new();
    fs::write(world.path("a"), "old").unwrap();
    let point = world.says("work");
    let changes = [world.path("a"), world.path("new")];
    world.begins(CallKind::Execute, "echo", &changes);
    fs::write(world.path("a"), "half").unwrap();
    fs::write(world.path("new"), "half").unwrap();
    world.reopen();
    let plan = world.plans(point);
    assert!(!plan.commands[0].is_finished);
    assert!(plan.skipped[0].reason.contains("no recorded call created it"), "{}", plan.skipped[0].reason);
    world.rewinds(point);
    assert_eq!((world.read("a"), world.read("new")), ("old".to_owned(), "half".to_owned()));
}

#[test]
fn a_torn_line_loses_only_itself() {
    let mut world = World::new();
    let manifest = world.home.join("checkpoints/journal.jsonl");
    fs::write(world.path("a"), "old").unwrap();
    let point = world.says("work");
    world.edits("a", "1");
    OpenOptions::new()
        .append(true)
        .open(&manifest)
        .unwrap()
        .write_all(b"{\"kind\":\"before\",\"fil")
        .unwrap();
    world.reopen();
    let second = world.says("go on");
    world.edits("a", "2");
    world.edits("b", "2");
    world.rewinds(second);
    assert_eq!(world.read("a"), "1");
    assert!(!world.path("b").exists());
    world.rewinds(point);
    assert_eq!(world.read("a"), "old");
}

#[test]
fn every_prefix_and_any_damaged_byte_can_be_read() {
    let mut world = World::new();
    let manifest = world.home.join("checkpoints/journal.jsonl");
    fs::write(world.path("a"), "old").unwrap();
    let point = world.says("work");
    world.edits("a", "1");
    world.runs("rm a; echo x > b", &["a", "b"]);
    let whole = fs::read(&manifest).unwrap();
    let first_line = whole.iter().position(|&byte| byte == b'\n').unwrap();
    for length in 0..=whole.len() {
        fs::write(&manifest, &whole[..length]).unwrap();
        let known = world.checkpoints.plan(point).is_ok();
        // A line without its end counts as soon as it is whole.
        assert_eq!(known, length >= first_line, "{length}");
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&manifest, &damaged).unwrap();
        // Either it is not found, or something is said to be missing.
        assert!(world.checkpoints.plan(point).map_or(true, |plan| plan.unread > 0), "{at}");
    }
}

#[test]
fn a_damaged_content_is_not_brought_back() {
    let mut world = World::new();
    fs::write(world.path("a"), "old").unwrap();
    fs::write(world.path("b"), "also").unwrap();
    let point = world.says("work");
    world.edits("a", "new");
    world.edits("b", "new");
    let blobs =
        fs::read_dir(world.home.join("checkpoints/blobs")).unwrap().map(|entry| entry.unwrap().path());
    for blob in blobs.filter(|blob| fs::read(blob).unwrap() == b"old") {
        fs::write(&blob, "bad").unwrap();
    }
    let rewound = world.rewinds(point);
    assert_eq!(rewound.done, [world.path("b")]);
    assert!(rewound.failed[0].reason.contains("damaged"), "{}", rewound.failed[0].reason);
    assert_eq!(world.read("a"), "new");
    assert_eq!(world.tree().len(), 2, "nothing is left behind");
}

#[test]
fn contents_are_private_and_stored_once() {
    let mut world = World::new();
    world.sync = true;
    for name in ["a", "b", "c"] {
        fs::write(world.path(name), "the same").unwrap();
    }
    world.says("work");
    world.runs("rm a b c", &["a", "b", "c"]);
    let blobs: Vec<_> = fs::read_dir(world.home.join("checkpoints/blobs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(blobs.len(), 1);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&blobs[0]), 0o600);
    assert_eq!(mode(&world.home.join("checkpoints/journal.jsonl")), 0o600);
    assert_eq!(mode(&world.home.join("checkpoints")), 0o700);
    assert_eq!(mode(&world.home.join("checkpoints/blobs")), 0o700);
}
