//! What comes back, and what is left alone.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use windlass_protocol::SessionKey;
use windlass_protocol::{CallKind, MessageId};
use windlass_session::{Checkpoints, RewindAction, RewindChange, RewindError, RewindPoint, copy_checkpoints};

use crate::world::{KEY, World, paths};

fn actions(world: &World, to: RewindPoint) -> Vec<(String, RewindAction)> {
    let name = |path: &Path| path.strip_prefix(&world.project).unwrap().to_string_lossy().into_owned();
    world.plans(to).changes.iter().map(|change| (name(&change.path), change.action)).collect()
}

#[test]
fn edits_come_back_to_each_prompt() {
    let mut world = World::new();
    let contents: [&[u8]; 5] = [b"one\n", b"two\r\nlines\r\n", b"", b"\xff\xfe\0binary", b"no end of line"];
    fs::write(world.path("a"), "at first").unwrap();
    let mut points = Vec::new();
    let mut trees = Vec::new();
    for (n, content) in contents.into_iter().enumerate() {
        trees.push(world.tree());
        points.push(world.says(&format!("prompt {n}")));
        world.edits("a", "meanwhile");
        world.edits("a", content);
        world.edits(format!("made/by/{n}"), content);
        world.edits(OsStr::from_bytes(b"not text \xff"), content);
    }
    // From the end to each, and back again: time in the manifest only goes forward.
    for at in [3, 0, 4, 2, 1, 0] {
        let rewound = world.rewinds(points[at]);
        assert_eq!(rewound.failed, []);
        assert_eq!(world.tree(), trees[at], "prompt {at}");
    }
    world.reopen();
    world.rewinds(points[4]);
    assert_eq!(world.tree(), trees[4]);
}

#[test]
fn files_made_deleted_moved_and_with_another_mode() {
    let mut world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    for name in ["gone", "moved", "tool", "d/kept"] {
        fs::write(world.path(name), name).unwrap();
    }
    fs::set_permissions(world.path("gone"), fs::Permissions::from_mode(0o640)).unwrap();
    let before = world.tree();
    let point = world.says("work");
    world.runs(
        "rm gone; mv moved d/here; chmod 755 tool; touch new",
        &["gone", "moved", "d/here", "tool", "new"],
    );
    let after = world.tree();
    assert_eq!(
        actions(&world, point),
        [
            ("d/here", RewindAction::Delete),
            ("gone", RewindAction::Recreate),
            ("moved", RewindAction::Recreate),
            ("new", RewindAction::Delete),
            ("tool", RewindAction::RestoreMode)
        ]
        .map(|(name, action)| (name.to_owned(), action))
    );
    world.rewinds(point);
    assert_eq!(world.tree(), before);
    world.rewinds(RewindPoint::Undo);
    assert_eq!(world.tree(), after);
    world.rewinds(RewindPoint::Undo);
    assert_eq!(world.tree(), before, "undoing the undo");
}

#[test]
fn whole_directories_come_back() {
    let mut world = World::new();
    for name in ["src/a", "src/deep/b", "src/deep/c"] {
        fs::create_dir_all(world.path(name).parent().unwrap()).unwrap();
        fs::write(world.path(name), name).unwrap();
    }
    fs::set_permissions(world.path("src/deep"), fs::Permissions::from_mode(0o700)).unwrap();
    let before = world.tree();
    let point = world.says("work");
    let check = |world: &mut World, command: &str, changes: &[&str]| {
        world.runs(command, changes);
        assert_ne!(world.tree(), before, "{command}");
        let rewound = world.rewinds(point);
        assert_eq!(rewound.failed, [], "{command}");
        assert_eq!(world.tree(), before, "{command}");
    };
    check(&mut world, "rm -r src", &["src"]);
    check(&mut world, "mv src lib", &["src", "lib"]);
    check(&mut world, "rm -r src; echo file > src", &["src"]);
    check(&mut world, "mkdir -p new/er; touch new/er/f", &["new/er", "new"]);
    check(&mut world, "cp -r src/deep src/copy", &["src/copy"]);
    check(&mut world, "rm src/a; mkdir src/a; touch src/a/x", &["src/a"]);
    check(&mut world, "chmod 777 src/deep", &["src/deep"]);
    fs::set_permissions(world.path("src/deep"), fs::Permissions::from_mode(0o500)).unwrap();
    let before = world.tree();
    let point = world.says("work on");
    world.runs("chmod 700 src/deep; rm -r src", &["src"]);
    assert_eq!(world.rewinds(point).failed, []);
    assert_eq!(world.tree(), before, "a directory that may not be written to");
}

#[test]
fn nothing_is_deleted_that_no_call_made() {
    let mut world = World::new();
    let point = world.says("work");
    // Named by a call that does not make it, then made by the user.
    world.runs("true", &["mine"]);
    fs::write(world.path("mine"), "mine").unwrap();
    // Made by a call, then changed by the user.
    world.edits("shared", "by the call");
    fs::write(world.path("shared"), "by the user").unwrap();
    // In a directory that a call made.
    world.edits("made/file", "x");
    fs::write(world.path("made/other"), "mine").unwrap();
    // Never named.
    fs::write(world.path("untracked"), "mine").unwrap();
    let plan = world.plans(point);
    let skipped: Vec<&Path> = plan.skipped.iter().map(|skipped| skipped.path.as_path()).collect();
    assert_eq!(skipped, [world.path("shared")]);
    assert!(plan.skipped[0].reason.contains("another program changed it"), "{}", plan.skipped[0].reason);
    world.rewinds(point);
    let left: Vec<String> = world.tree().keys().map(|path| path.to_string_lossy().into_owned()).collect();
    assert_eq!(left, ["made/", "made/other", "mine", "shared", "untracked"]);
    assert_eq!(world.read("shared"), "by the user");
}

#[test]
fn changes_by_others_are_told_and_kept_for_an_undo() {
    let mut world = World::new();
    for name in ["during", "after", "ours", "theirs"] {
        fs::write(world.path(name), "old").unwrap();
    }
    let point = world.says("work");
    world.edits("during", "1");
    fs::write(world.path("during"), "user").unwrap();
    world.edits("during", "2");
    world.edits("after", "1");
    world.edits("ours", "1");
    world.runs("true", &["theirs"]);
    fs::write(world.path("after"), "user").unwrap();
    fs::write(world.path("theirs"), "user").unwrap();
    let plan = world.plans(point);
    let told: Vec<(&str, bool)> = plan
        .changes
        .iter()
        .map(|change| (change.path.file_name().unwrap().to_str().unwrap(), change.is_changed_by_others))
        .collect();
    assert_eq!(told, [("after", true), ("during", true), ("ours", false)]);
    world.rewinds(point);
    assert_eq!(
        ["during", "after", "ours", "theirs"].map(|name| world.read(name)),
        ["old", "old", "old", "user"]
    );
    world.rewinds(RewindPoint::Undo);
    assert_eq!(["during", "after", "ours"].map(|name| world.read(name)), ["2", "user", "1"]);
}

#[test]
fn a_command_that_does_not_say_what_it_changes() {
    let mut world = World::new();
    let point = world.says("write it");
    world.edits("a", "one\n");
    let second = world.says("format it");
    world.runs("echo two >> $(ls)", &[]);
    let plan = world.plans(point);
    assert!(plan.skipped.is_empty(), "{:?}", plan.skipped);
    let texts: Vec<&str> = plan.commands.iter().map(|command| command.text.as_str()).collect();
    assert_eq!(texts, ["echo two >> $(ls)"], "what it did elsewhere is not known");
    world.rewinds(second);
    assert_eq!(world.read("a"), "one\n");
    // The same after the session was opened again.
    world.reopen();
    world.says("again");
    world.runs("echo three >> a", &[]);
    world.rewinds(second);
    assert_eq!(world.read("a"), "one\n");
    world.rewinds(point);
    assert!(!world.path("a").exists());
}

#[test]
fn lines_are_counted_and_only_what_differs_is_touched() {
    let mut world = World::new();
    fs::write(world.path("a"), "1\n2\n3\n").unwrap();
    fs::write(world.path("same"), "same").unwrap();
    let point = world.says("work");
    world.edits("a", "1\n3\n4\n5\n");
    world.edits("same", "other");
    world.edits("same", "same");
    world.edits("b", "x\n");
    let stamp = |name: &str| fs::metadata(world.path(name)).unwrap().modified().unwrap();
    let before = stamp("same");
    let plan = world.plans(point);
    let lines = |count: fn(&RewindChange) -> u64| plan.changes.iter().map(count).sum::<u64>();
    assert_eq!((lines(|change| change.insertions), lines(|change| change.deletions)), (1, 3));
    assert_eq!(plan.changes.len(), 2);
    world.rewinds(point);
    assert_eq!(stamp("same"), before);
    let rewound = world.rewinds(point);
    assert_eq!((rewound.done.len(), rewound.failed.len()), (0, 0));
}

#[test]
fn a_plan_that_is_out_of_date_touches_nothing_that_changed() {
    let mut world = World::new();
    fs::write(world.path("a"), "old").unwrap();
    fs::write(world.path("b"), "old").unwrap();
    let point = world.says("work");
    world.edits("a", "new");
    world.edits("b", "new");
    let plan = world.plans(point);
    fs::write(world.path("a"), "just now").unwrap();
    let rewound = world.checkpoints.apply(&plan).unwrap();
    assert_eq!((rewound.done, rewound.failed.len()), (vec![world.path("b")], 1));
    assert_eq!((world.read("a"), world.read("b")), ("just now".to_owned(), "old".to_owned()));
}

#[test]
fn a_repository_is_never_touched() {
    let mut world = World::new();
    let git = |world: &World, words: &str| {
        let output = Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"])
            .args(words.split(' '))
            .current_dir(&world.project)
            .output()
            .unwrap();
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&world, "init");
    fs::write(world.path("a"), "committed").unwrap();
    git(&world, "add a");
    git(&world, "commit -m first");
    fs::write(world.path("a"), "staged").unwrap();
    git(&world, "add a");
    fs::write(world.path("a"), "not committed").unwrap();
    let point = world.says("throw it away");
    world.runs(
        "git checkout -q -b topic && git checkout -q HEAD -- a && echo x > .git/mine",
        &["a", ".git/mine", "."],
    );
    assert_eq!(world.read("a"), "committed");
    let state = |world: &World| {
        (
            git(world, "branch --show-current"),
            git(world, "ls-files --stage"),
            fs::read(world.path(".git/index")).unwrap(),
        )
    };
    let before = state(&world);
    world.rewinds(point);
    assert_eq!(world.read("a"), "not committed");
    assert_eq!(state(&world), before);
    assert!(world.path(".git/mine").exists());
}

#[test]
fn points_are_found_by_id_and_number() {
    let mut world = World::new();
    world.says("first");
    world.edits("a", "1");
    world.edits("b", "1");
    world.says(&"second ".repeat(100));
    world.runs("echo 2 > a", &["a"]);
    let points = world.checkpoints.points().unwrap();
    let told: Vec<(u64, usize, usize)> =
        points.iter().map(|point| (point.number, point.files, point.commands)).collect();
    assert_eq!(told, [(1, 2, 0), (2, 1, 1)]);
    assert_eq!(points[0].text, "first");
    assert_eq!(points[1].text.chars().count(), 200);
    assert_eq!(points[1].uuid, KEY.message_uuid(MessageId(2)).to_string());
    assert_eq!(actions(&world, RewindPoint::Number(MessageId(2))).len(), 1);
    let unknown = world.checkpoints.plan(RewindPoint::Number(MessageId(9))).unwrap_err();
    assert!(matches!(unknown, RewindError::Unknown(_)), "{unknown}");
    assert!(matches!(world.checkpoints.plan(RewindPoint::Undo), Err(RewindError::NothingToUndo)));
}

#[test]
fn prompts_that_change_nothing_leave_nothing_and_are_known() {
    let mut world = World::new();
    fs::write(world.path("a"), "old").unwrap();
    let first = world.says("tell me");
    assert!(!world.home.exists(), "there is nothing to keep");
    assert!(actions(&world, first).is_empty());
    world.reopen();
    let second = world.says("and now?");
    world.reopen();
    let third = world.says("change it");
    world.edits("a", "new");
    world.reopen();
    let fourth = world.says("thanks");
    for (point, count) in [(first, 1), (second, 1), (third, 1), (fourth, 0)] {
        assert_eq!(actions(&world, point).len(), count, "{point:?}");
    }
    let points = world.checkpoints.points().unwrap();
    let texts: Vec<&str> = points.iter().map(|point| &*point.text).collect();
    assert_eq!(texts, ["tell me", "and now?", "change it", "thanks"]);
    assert_eq!(points.iter().map(|point| point.files).collect::<Vec<_>>(), [0, 0, 1, 0]);
    world.rewinds(first);
    assert_eq!(world.read("a"), "old");
}

#[test]
fn a_prompt_between_rewinds_is_a_point_of_its_own() {
    let mut world = World::new();
    let first = world.says("write");
    world.edits("a", "v1");
    world.reopen();
    let second = world.says("nothing");
    world.reopen();
    world.rewinds(first);
    assert!(!world.path("a").exists());
    assert_eq!(actions(&world, second).len(), 1, "it was there at the second");
    world.says("write again");
    world.edits("a", "v3");
    world.rewinds(second);
    assert_eq!(world.read("a"), "v1");
}

#[test]
fn a_lost_manifest_is_not_taken_for_one_that_never_was() {
    let mut world = World::new();
    let first = world.says("nothing");
    let second = world.says("write");
    world.edits("a", "v1");
    let third = world.says("thanks");
    fs::remove_file(world.home.join("checkpoints/journal.jsonl")).unwrap();
    world.reopen();
    for point in [first, second] {
        let unknown = world.checkpoints.plan(point).unwrap_err();
        assert!(unknown.to_string().contains("the record of later changes is incomplete"), "{unknown}");
    }
    assert!(actions(&world, third).is_empty());
    let texts: Vec<_> = world.checkpoints.points().unwrap().into_iter().map(|point| point.text).collect();
    assert_eq!(texts, ["thanks"]);
}

#[test]
fn a_session_that_goes_on_without_a_prompt_belongs_to_its_last() {
    let mut world = World::new();
    fs::write(world.path("a"), "old").unwrap();
    let first = world.says("change it");
    world.reopen();
    world.edits("a", "new");
    world.reopen();
    world.edits("a", "newer");
    assert_eq!(actions(&world, first).len(), 1);
    assert_eq!(world.checkpoints.points().unwrap().len(), 1);
    world.rewinds(first);
    assert_eq!(world.read("a"), "old");
}

#[test]
fn a_fork_can_go_back_on_its_own() {
    let mut world = World::new();
    fs::write(world.path("a"), "old").unwrap();
    let point = world.says("work");
    world.edits("a", "new");
    let fork = paths(&world.home.with_file_name("00000000-0000-4000-8000-000000000008"));
    copy_checkpoints(&world.home.join("checkpoints"), &fork.checkpoints()).unwrap();
    copy_checkpoints(&world.home.join("nothing"), &world.home.join("none")).unwrap();
    let forked = Checkpoints::new(&fork, SessionKey::from(KEY));
    forked.apply(&forked.plan(point).unwrap()).unwrap();
    assert_eq!(world.read("a"), "old");
    assert!(
        matches!(world.checkpoints.plan(RewindPoint::Undo), Err(RewindError::NothingToUndo)),
        "it has a manifest of its own"
    );
}

#[test]
fn only_calls_that_may_change_files_are_looked_at() {
    let mut world = World::new();
    world.says("look");
    world.begins(CallKind::Read, "", &[]);
    world.begins(CallKind::Session, "", &[]);
    let point = world.says("more");
    assert!(world.plans(point).is_empty());
    assert!(!world.home.exists());
}
