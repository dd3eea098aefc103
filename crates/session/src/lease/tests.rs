use super::*;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

fn lock() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session").join("lock");
    (dir, path)
}

fn expect_busy(taken: Result<Lease, LeaseError>) -> Busy {
    match taken {
        Err(LeaseError::Busy(busy)) => busy,
        other => panic!("{other:?}"),
    }
}

/// A process that locks a file and tells when it has.
fn locking_process(path: &Path) -> Child {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let script = "exec 9>>\"$0\"; flock -n 9 || exit 1; echo '{\"pid\":'$$',\"start\":1,\"boot\":\"b\",\"host\":\"h\",\"since\":5}' >\"$0\"; echo locked; read line";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 7];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"locked\n");
    child
}

#[test]
fn a_second_one_is_told_who_holds_it() {
    let (_dir, path) = lock();
    let lease = Lease::take(&path).unwrap();
    assert!(!lease.taken_over());
    let busy = expect_busy(Lease::take(&path));
    assert_eq!(busy.pid, std::process::id());
    assert_eq!(busy.host, process::host());
    assert!(busy.since > 1_600_000_000_000, "{}", busy.since);
    assert!(busy.to_string().contains(&format!("process {}", busy.pid)), "{busy}");
    drop(lease);
    assert!(!Lease::take(&path).unwrap().taken_over());
}

#[test]
fn a_lease_given_back_leaves_nothing() {
    let (_dir, path) = lock();
    drop(Lease::take(&path).unwrap());
    assert!(!path.parent().unwrap().exists());
    let lease = Lease::take(&path).unwrap();
    fs::write(path.with_file_name("other"), "").unwrap();
    drop(lease);
    assert!(!path.exists());
    assert!(path.with_file_name("other").exists());
}

#[test]
fn it_is_private() {
    let (_dir, path) = lock();
    let _lease = Lease::take(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[test]
fn a_killed_owners_lease_is_taken_over() {
    let (_dir, path) = lock();
    let mut child = locking_process(&path);
    assert_eq!(expect_busy(Lease::take(&path)).pid, child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(Lease::take(&path).unwrap().taken_over());
}

#[test]
fn a_file_that_was_removed_does_not_count() {
    let (_dir, path) = lock();
    let first = Lease::take(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let second = Lease::take(&path).unwrap();
    // The first one must not remove what belongs to the second.
    drop(first);
    assert!(path.exists());
    expect_busy(Lease::take(&path));
    drop(second);
}

#[test]
fn a_link_in_its_place_is_refused() {
    let (dir, path) = lock();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
    let error = Lease::take(&path).unwrap_err().to_string();
    assert!(error.contains("symbolic link") && error.contains("lock"), "{error}");
    assert!(!dir.path().join("elsewhere").exists());
}

#[test]
fn nothing_is_made_behind_a_link_to_another_folder() {
    let (dir, path) = lock();
    let elsewhere = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    std::os::unix::fs::symlink(elsewhere.path(), &project).unwrap();
    let error = Lease::take(&project.join(path.strip_prefix(dir.path()).unwrap())).unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn one_of_many_gets_it() {
    let (_dir, path) = lock();
    let check = |take: fn(&Path) -> Option<Lease>| {
        for _ in 0..50 {
            let taken: Vec<Lease> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| take(&path))).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(taken.len(), 1);
        }
    };
    check(|path| Lease::take(path).ok());
}

/// Without locks of the system, what the file says decides.
mod without_locks {
    use super::*;

    fn take(path: &Path) -> Result<Lease, Busy> {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        unlocked::take(path).unwrap()
    }

    fn check(owner: &Owner, alive: bool) {
        let (_dir, path) = lock();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, owner.to_line()).unwrap();
        match take(&path) {
            Ok(lease) => assert!(!alive && lease.taken_over(), "{owner:?}"),
            Err(busy) => assert!(alive && busy.pid == owner.pid, "{owner:?}"),
        }
    }

    #[test]
    fn a_second_one_is_told_who_holds_it() {
        let (_dir, path) = lock();
        let lease = take(&path).unwrap();
        assert!(!lease.taken_over());
        assert_eq!(take(&path).unwrap_err().pid, std::process::id());
        drop(lease);
        assert!(!take(&path).unwrap().taken_over());
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
        let (_dir, path) = lock();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "{").unwrap();
        take(&path).unwrap();
        let left: Vec<_> = fs::read_dir(path.parent().unwrap()).into_iter().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
