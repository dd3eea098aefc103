//! Large files, many files, and a disk that is full.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use windlass_session::RewindPoint;

use crate::world::World;

#[test]
fn a_file_of_fifty_megabytes_comes_back() {
    let mut world = World::new();
    let content: Vec<u8> = (0..50 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(world.path("large"), &content).unwrap();
    let point = world.says("work");
    world.runs("truncate -s 10M large; echo more >> large", &["large"]);
    world.rewinds(point);
    assert!(fs::read(world.path("large")).unwrap() == content);
    world.rewinds(RewindPoint::Undo);
    assert_eq!(fs::metadata(world.path("large")).unwrap().len(), (10 << 20) + 5);
}

#[test]
fn a_file_that_is_too_large_is_told() {
    let mut world = World::new();
    File::create(world.path("huge")).unwrap().set_len(1 << 30).unwrap();
    let point = world.says("work");
    world.runs("rm huge", &["huge"]);
    let notices = world.checkpoints.take_notices();
    assert!(notices[0].contains("too large (1024 MiB)"), "{notices:?}");
    let plan = world.plans(point);
    assert!(plan.is_empty() && plan.skipped[0].reason.contains("too large"), "{plan:?}");
}

#[test]
fn a_directory_with_very_many_files_is_kept_in_part() {
    let mut world = World::new();
    world.sync = true;
    fs::create_dir(world.path("many")).unwrap();
    for n in 0..2_100 {
        fs::write(world.path(format!("many/{n:04}")), n.to_string()).unwrap();
    }
    let point = world.says("work");
    world.runs("rm -r many", &["many"]);
    assert!(world.checkpoints.take_notices()[0].contains("more files than a checkpoint can hold"));
    let rewound = world.rewinds(point);
    assert_eq!(rewound.failed, []);
    assert!(rewound.done.len() > 1_900, "{}", rewound.done.len());
    assert_eq!(world.read("many/0007"), "7");
}

/// Whether a file is opened while a command runs that names it.
#[cfg(target_os = "linux")]
fn is_opened(world: &mut World) -> bool {
    use rustix::fs::inotify;
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, world.path("a"), inotify::WatchFlags::OPEN).unwrap();
    world.runs("true", &["a"]);
    rustix::io::read(&watch, &mut [0; 1024]).is_ok()
}

#[cfg(target_os = "linux")]
#[test]
fn an_unchanged_file_is_not_read_again() {
    let mut world = World::new();
    fs::write(world.path("a"), "x").unwrap();
    world.says("work");
    assert!(is_opened(&mut world), "what has just been written may change again without looking different");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(is_opened(&mut world));
    assert!(!is_opened(&mut world));
    fs::write(world.path("a"), "y").unwrap();
    assert!(is_opened(&mut world));
}

const PLACE: &str = "WINDLASS_TEST_SMALL_PROJECT";
const CANNOT_MOUNT: i32 = 77;

/// Runs itself once more in a mount namespace of its own, on a small tmpfs, if that is permitted.
#[test]
fn a_full_disk_leaves_every_file_as_it_was() {
    if let Some(place) = std::env::var_os(PLACE) {
        return on_a_full_disk(Path::new(&place));
    }
    let place = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=2m,mode=700 none \"$0\" || exit 77; exec \"$@\"";
    for unshare in [&["-m"][..], &["-r", "-m"]] {
        let status = Command::new("unshare")
            .args(unshare)
            .args(["sh", "-c", mount])
            .arg(place.path())
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "limits::a_full_disk_leaves_every_file_as_it_was", "--nocapture"])
            .env(PLACE, place.path())
            .status();
        match status.map(|status| status.code()) {
            Ok(Some(0)) => return,
            // `unshare` itself says 1 when it is not permitted; a test that fails says 101.
            Ok(Some(1 | CANNOT_MOUNT)) | Err(_) => {}
            other => panic!("{other:?}"),
        }
    }
    println!("SKIPPED: no tmpfs can be mounted here, neither as root nor in a user namespace");
}

fn on_a_full_disk(place: &Path) {
    let mut world = World::new();
    let project = place.join("project");
    fs::create_dir(&project).unwrap();
    world.project = project;
    fs::write(world.path("big"), vec![b'a'; 1 << 20]).unwrap();
    fs::write(world.path("small"), "old").unwrap();
    let point = world.says("work");
    world.runs("echo > big; echo new > small", &["big", "small"]);
    fs::write(world.path("filler"), vec![b'f'; 1 << 20]).unwrap();
    let rewound = world.rewinds(point);
    assert_eq!(rewound.done, [world.path("small")]);
    assert_eq!(rewound.failed.len(), 1);
    assert_eq!((world.read("big"), world.read("small")), ("\n".to_owned(), "old".to_owned()));
    assert_eq!(world.tree().len(), 3, "nothing is left behind");
    fs::remove_file(world.path("filler")).unwrap();
    world.rewinds(point);
    assert_eq!(world.read("big").len(), 1 << 20);
    // The other way round: contents cannot be kept, so that nothing is touched and no call starts.
    world.move_to(&place.join("00000000-0000-4000-8000-000000000009"));
    let point = world.says("again");
    world.edits("small", "new");
    fs::write(world.path("filler"), vec![b'f'; 900 << 10]).unwrap();
    let _ = fs::write(world.path("rest"), vec![b'f'; 1 << 20]);
    fs::write(world.path("small"), "other").unwrap_or_default();
    let before = world.tree();
    assert!(world.checkpoints.apply(&world.plans(point)).is_err());
    assert_eq!(world.tree(), before);
}
