use super::*;
use std::os::unix::fs::{chown, symlink};

pub(crate) mod simulated_disk;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn refusal(opened: io::Result<Arc<dyn LogFile>>) -> FileRefusal {
    let error = opened.err().expect("it must be refused");
    *error.get_ref().and_then(|inner| inner.downcast_ref()).unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn files_and_directories_are_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("projects/p/s.jsonl");
    let file = RealDisk::default().open(&path, OpenMode::New).unwrap();
    assert_eq!(file.append(b"a line\n").unwrap(), 7);
    file.sync().unwrap();
    file.sync_name().unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&dir.path().join("projects")), 0o700);
    assert_eq!(mode(&dir.path().join("projects/p")), 0o700);
    assert_eq!(fs::read(&path).unwrap(), b"a line\n");
}

#[test]
fn a_file_that_others_could_read_is_made_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "a line\n").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
    RealDisk::default().open(&path, OpenMode::Existing).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_new_file_takes_nobodys_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "a line\n").unwrap();
    assert_eq!(refusal(RealDisk::default().open(&path, OpenMode::New)), FileRefusal::Taken);
    // An empty one counts as missing.
    fs::write(&path, "").unwrap();
    RealDisk::default().open(&path, OpenMode::New).unwrap();
    let missing = RealDisk::default().open(&dir.path().join("none.jsonl"), OpenMode::Existing).err().unwrap();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn links_and_things_that_are_no_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/s.jsonl"), "").unwrap();
    symlink(at("real"), at("linked")).unwrap();
    symlink(at("real/s.jsonl"), at("link.jsonl")).unwrap();
    symlink(at("nowhere"), at("dangling.jsonl")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe.jsonl"),
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    for how in [OpenMode::New, OpenMode::Existing, OpenMode::Any] {
        let check = |name: &str, expected| {
            assert_eq!(refusal(RealDisk::default().open(&at(name), how)), expected, "{name} {how:?}");
        };
        check("linked/s.jsonl", FileRefusal::Link);
        check("link.jsonl", FileRefusal::Link);
        check("dangling.jsonl", FileRefusal::Link);
        check("real", FileRefusal::Kind);
    }
    assert_eq!(refusal(RealDisk::default().open(&at("pipe.jsonl"), OpenMode::Existing)), FileRefusal::Kind);
    assert!(!at("nowhere").exists());
}

#[test]
fn a_file_of_another_user_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "").unwrap();
    if chown(&path, Some(4711), None).is_err() {
        println!("skipped: only root can give a file away");
        return;
    }
    assert_eq!(refusal(RealDisk::default().open(&path, OpenMode::Existing)), FileRefusal::Owner(4711));
}

#[test]
fn it_tells_what_others_did_to_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let file = RealDisk::default().open(&path, OpenMode::New).unwrap();
    assert_eq!(file.look().unwrap(), FileStatus { len: 0, is_named: true });
    fs::write(&path, "ab").unwrap();
    assert_eq!(file.look().unwrap(), FileStatus { len: 2, is_named: true });
    assert_eq!(file.read(1..2).unwrap(), b"b");
    assert_eq!(file.append(b"c").unwrap(), 1);
    assert_eq!(fs::read(&path).unwrap(), b"abc");
    fs::remove_file(&path).unwrap();
    assert!(!file.look().unwrap().is_named);
}

#[test]
fn a_file_that_was_moved_away_is_not_found_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("s.jsonl"), dir.path().join("moved"));
    let file = RealDisk::default().open(&path, OpenMode::New).unwrap();
    file.append(b"a line\n").unwrap();
    assert!(file.look().unwrap().is_named);
    fs::rename(&path, &moved).unwrap();
    assert!(!file.look().unwrap().is_named);
    fs::copy(&moved, &path).unwrap();
    assert!(!file.look().unwrap().is_named, "this is another file");
    fs::rename(&moved, &path).unwrap();
    assert!(file.look().unwrap().is_named);
}

#[test]
fn a_log_that_is_not_the_one_of_the_lease_is_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "one\n").unwrap();
    let disk = RealDisk { lease: Some(Lease::take(&path).unwrap()) };
    disk.open(&path, OpenMode::Existing).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "two\n").unwrap();
    assert_eq!(refusal(disk.open(&path, OpenMode::Existing)), FileRefusal::Removed);
    // Whoever knows that it is another one gets the lease on it, too.
    disk.open(&path, OpenMode::Any).unwrap();
    assert!(Lease::take(&path).is_err());
}
