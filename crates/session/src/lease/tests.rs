use super::*;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

fn log() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    fs::write(&path, "{}\n").unwrap();
    (dir, path)
}

fn expect_busy(taken: Result<Lease, LeaseError>) -> SessionBusy {
    match taken {
        Err(LeaseError::Busy(busy)) => busy,
        other => panic!("{other:?}"),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// A process that locks a file and tells when it has.
fn locking_process(path: &Path) -> Child {
    let script = "exec 9>>\"$0\"; flock -n 9 || exit 1; echo locked; read line";
    let mut command = Command::new("sh");
    let command = command.args(["-c", script]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = [0; 7];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"locked\n");
    child
}

#[test]
fn a_second_one_is_told_who_holds_it() {
    let (_dir, path) = log();
    let lease = Lease::take(&path).unwrap();
    let busy = expect_busy(Lease::take(&path));
    assert_eq!((busy.pid, &*busy.host), (std::process::id(), &*process::host()));
    assert!(busy.to_string().contains(&format!("process {}", busy.pid)), "{busy}");
    let copy = lease.clone();
    drop(lease);
    expect_busy(Lease::take(&path));
    drop(copy);
    Lease::take(&path).unwrap();
}

#[test]
fn what_a_process_had_just_started_keeps_nobody_away_for_long() {
    let (_dir, path) = log();
    let script = "exec 9>>\"$0\"; flock -n 9; sleep 0.2 & kill -9 $$";
    let mut killed = Command::new("sh").args(["-c", script]).arg(&path).spawn().unwrap();
    assert!(!killed.wait().unwrap().success());
    Lease::take(&path).unwrap();
}

#[test]
fn it_leaves_nothing_behind() {
    let (dir, path) = log();
    let lease = Lease::take(&path).unwrap();
    assert_eq!(names(dir.path()), ["session.jsonl"]);
    drop(lease);
    assert_eq!(names(dir.path()), ["session.jsonl"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
}

#[test]
fn a_killed_owners_lease_is_taken_over() {
    let (_dir, path) = log();
    let mut child = locking_process(&path);
    // Who asked for the shell's lock has gone, so it cannot be named; the lock is there all the same.
    expect_busy(Lease::take(&path));
    child.kill().unwrap();
    child.wait().unwrap();
    Lease::take(&path).unwrap();
}

#[test]
fn a_log_that_was_removed_does_not_count() {
    let (_dir, path) = log();
    let first = Lease::take(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    let second = Lease::take(&path).unwrap();
    drop(first);
    expect_busy(Lease::take(&path));
    drop(second);
}

#[test]
fn the_lease_of_a_new_session_comes_with_its_log() {
    let (_dir, path) = log();
    let lease = Lease::of_new(&path);
    Lease::take(&path).unwrap();
    let file = disk::open_log(&path).unwrap();
    lease.cover(&file).unwrap();
    expect_busy(Lease::take(&path));
    // It lasts beyond the file that it came with.
    drop(file);
    expect_busy(Lease::take(&path));
    lease.cover(&disk::open_log(&path).unwrap()).unwrap();
    // A log that is made anew is covered, too.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    lease.cover(&disk::open_log(&path).unwrap()).unwrap();
    expect_busy(Lease::take(&path));
    drop(lease);
    Lease::take(&path).unwrap();
}

#[test]
fn a_session_that_is_reserved_is_not_begun_by_another() {
    let (dir, path) = log();
    let lease = Lease::reserve(&path).unwrap();
    assert_eq!(expect_busy(Lease::reserve(&path)).pid, std::process::id());
    lease.cover(&disk::open_log(&path).unwrap()).unwrap();
    expect_busy(Lease::take(&path));
    assert_eq!(names(dir.path()), ["session.jsonl"], "the log itself is locked now");
    drop(lease);
    drop(Lease::reserve(&path).unwrap());
    assert_eq!(names(dir.path()), ["session.jsonl"]);
}

#[test]
fn a_log_that_another_one_has_is_not_covered() {
    let (_dir, path) = log();
    let _first = Lease::take(&path).unwrap();
    let error = Lease::of_new(&path).cover(&disk::open_log(&path).unwrap()).unwrap_err();
    assert!(error.to_string().contains("is using the session"), "{error}");
}

#[test]
fn a_link_in_its_place_is_refused() {
    let (dir, path) = log();
    fs::remove_file(&path).unwrap();
    fs::write(dir.path().join("elsewhere"), "").unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
    let error = Lease::take(&path).unwrap_err().to_string();
    assert!(error.contains("is a symbolic link") && error.contains("cannot lock"), "{error}");
}

#[test]
fn one_of_many_gets_it() {
    let (_dir, path) = log();
    for _ in 0..50 {
        let taken: Vec<Lease> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Lease::take(&path).ok())).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(taken.len(), 1);
    }
}

/// Without locks of the system, what a file says decides.
mod without_locks {
    use super::*;
    use lock_file::{Owner, take};

    fn lock() -> (tempfile::TempDir, PathBuf) {
        let (dir, path) = log();
        (dir, lock_file(&path))
    }

    fn put(path: &Path, content: impl AsRef<[u8]>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn check(owner: &Owner, alive: bool) {
        let (_dir, path) = lock();
        put(&path, serde_json::to_vec(&owner).unwrap());
        match take(&path).unwrap() {
            Ok(_) => assert!(!alive, "{owner:?}"),
            Err(busy) => assert!(alive && busy.pid == owner.pid, "{owner:?}"),
        }
    }

    #[test]
    fn a_second_one_is_told_who_holds_it() {
        let (dir, path) = lock();
        let lock = take(&path).unwrap().unwrap();
        assert_eq!(take(&path).unwrap().unwrap_err().pid, std::process::id());
        drop(lock);
        assert_eq!(names(dir.path()), ["session.jsonl"]);
        take(&path).unwrap().unwrap();
    }

    #[test]
    fn only_a_process_that_still_runs_holds_it() {
        let alive = Owner::this_process();
        check(&alive, true);
        check(&Owner { start: alive.start + 1, ..alive.clone() }, false);
        check(&Owner { boot: "another".to_owned(), ..alive.clone() }, false);
        check(&Owner { pid: u32::MAX, ..alive.clone() }, false);
        // Nobody here can know.
        check(&Owner { host: "another".to_owned(), pid: u32::MAX, ..alive }, true);
    }

    #[test]
    fn what_cannot_be_read_is_nobodys() {
        let (dir, path) = lock();
        put(&path, "{");
        drop(take(&path).unwrap().unwrap());
        assert_eq!(names(dir.path()), ["session.jsonl"]);
    }

    #[test]
    fn one_of_many_gets_it() {
        let (_dir, path) = lock();
        let first = take(&path).unwrap().unwrap();
        for _ in 0..20 {
            assert!(take(&path).unwrap().is_err());
        }
        drop(first);
    }
}
