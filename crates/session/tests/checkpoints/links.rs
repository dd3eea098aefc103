//! Links are never followed, whoever made them and whenever.

use std::fs;
use std::os::unix::fs::symlink;

use crate::world::World;

#[test]
fn a_link_in_the_place_of_a_file_stays() {
    let mut world = World::new();
    fs::write(world.path("a"), "old").unwrap();
    fs::write(world.path("victim"), "victim").unwrap();
    let point = world.says("work");
    world.edits("a", "new");
    fs::remove_file(world.path("a")).unwrap();
    symlink("victim", world.path("a")).unwrap();
    let plan = world.plans(point);
    assert!(plan.is_empty());
    assert_eq!(plan.skipped_links(), [world.path("a")]);
    world.rewinds(point);
    assert!(world.path("a").is_symlink());
    assert_eq!(world.read("victim"), "victim");
}

#[test]
fn a_link_in_the_place_of_a_directory_is_not_entered() {
    let mut world = World::new();
    fs::create_dir_all(world.path("d")).unwrap();
    fs::create_dir_all(world.path("elsewhere")).unwrap();
    fs::write(world.path("d/a"), "old").unwrap();
    fs::write(world.path("elsewhere/a"), "victim").unwrap();
    fs::write(world.path("elsewhere/b"), "made").unwrap();
    let point = world.says("work");
    world.edits("d/a", "new");
    world.edits("d/b", "made");
    let plan = world.plans(point);
    assert_eq!(plan.changes.len(), 2);
    fs::rename(world.path("d"), world.path("moved")).unwrap();
    symlink("elsewhere", world.path("d")).unwrap();
    let before = world.tree();
    assert_eq!(world.plans(point).skipped_links(), [world.path("d/a"), world.path("d/b")]);
    // A plan made before does no harm either.
    let rewound = world.checkpoints.apply(&plan).unwrap();
    assert_eq!((rewound.done.len(), rewound.failed.len()), (0, 2));
    assert_eq!(world.tree(), before);
}

#[test]
fn links_that_calls_name_are_noted() {
    let mut world = World::new();
    fs::write(world.path("target"), "x").unwrap();
    symlink("target", world.path("link")).unwrap();
    fs::hard_link(world.path("target"), world.path("second")).unwrap();
    let point = world.says("work");
    world.runs("rm link second; echo link > link; echo second > second", &["link", "second"]);
    let notices = world.checkpoints.take_notices();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].contains("link, so it cannot be rewound"), "{notices:?}");
    assert_eq!(world.plans(point).skipped_links(), [world.path("link"), world.path("second")]);
    let before = world.tree();
    world.rewinds(point);
    assert_eq!(world.tree(), before);
}

#[test]
fn a_pipe_is_not_waited_for() {
    let mut world = World::new();
    let point = world.says("work");
    world.runs("mkfifo pipe", &["pipe"]);
    world.runs("true", &["pipe"]);
    let plan = world.plans(point);
    assert!(plan.is_empty());
    assert_eq!(plan.skipped.len(), 1);
}
