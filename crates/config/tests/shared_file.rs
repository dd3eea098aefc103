//! Files that several processes change.
//!
//! The processes are this very test program, started again with a variable that says what to do. For a longer run set
//! `SHARED_FILE_UPDATES` to how many updates all of them make together.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use windlass_config::{SharedFile, SharedFileError};

const PROCESSES: usize = 16;
/// What a process is to do: the file, its own name and how many updates.
const TASK: &str = "SHARED_FILE_TASK";

/// Does nothing, unless the program was started as one of many.
#[test]
fn one_of_many() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [path, name, updates] = task.split('\n').collect::<Vec<_>>().try_into().unwrap();
    let file = SharedFile::new(path);
    for _ in 0..updates.parse::<u64>().unwrap() {
        let update = |json: &mut Value| {
            for count in [name, "total"] {
                json[count] = (json[count].as_u64().unwrap_or(0) + 1).into();
            }
        };
        file.update(update).unwrap();
    }
}

fn start(path: &Path, name: &str, updates: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "one_of_many", "--nocapture"])
        .env(TASK, format!("{}\n{name}\n{updates}", path.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A file system in memory: there, thousands of updates do not wait for a disk. Who comes before whom is the same anywhere.
const MEMORY: &str = "/dev/shm";

#[test]
fn no_update_is_lost() {
    let updates = std::env::var("SHARED_FILE_UPDATES").map_or(10_000, |text| text.parse().unwrap());
    let in_memory = tempfile::Builder::new().prefix("windlass-").tempdir_in(MEMORY);
    check_that_none_is_lost(&in_memory.or_else(|_| tempdir()).unwrap(), updates);
}

#[test]
fn no_update_is_lost_on_a_disk() {
    check_that_none_is_lost(&tempdir().unwrap(), 20 * PROCESSES);
}

fn check_that_none_is_lost(directory: &TempDir, updates: usize) {
    let each = updates / PROCESSES;
    let path = directory.path().join("shared.json");
    let children: Vec<Child> =
        (0..PROCESSES).map(|at| start(&path, &format!("process {at}"), each)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let found = SharedFile::new(&path).read().unwrap();
    for at in 0..PROCESSES {
        assert_eq!(found[format!("process {at}")], each, "{found}");
    }
    assert_eq!(found["total"], each * PROCESSES);
}

#[test]
fn killed_writers_leave_a_whole_file() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("shared.json");
    let file = SharedFile::new(&path);
    file.update(|json| json["ours"] = "kept".into()).unwrap();
    let mut total = 0;
    for round in 0..20 {
        let children: Vec<Child> =
            (0..4).map(|at| start(&path, &format!("process {at}"), 1_000_000)).collect();
        while SharedFile::new(&path).read().unwrap()["total"].as_u64().unwrap_or(0) < total + 10 {
            std::thread::yield_now();
        }
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let found = file.read().unwrap();
        let counted: u64 = (0..4).map(|at| found[format!("process {at}")].as_u64().unwrap_or(0)).sum();
        total = found["total"].as_u64().unwrap();
        assert_eq!((counted, &found["ours"]), (total, &json!("kept")), "in round {round}");
    }
    file.update(|json| json["ours"] = "still".into()).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".shared.json.lock", "shared.json"]);
}

/// A file with this content, and what is said about it.
fn file_with(content: &str) -> (TempDir, SharedFile) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("shared.json");
    fs::write(&path, content).unwrap();
    (directory, SharedFile::new(path))
}

#[test]
fn what_is_not_changed_stays_as_it_is() {
    let check = |before: &str, after: &str| {
        let (_directory, file) = file_with(before);
        file.update(|json| json["new"] = 1.into()).unwrap();
        assert_eq!(fs::read_to_string(&file.path).unwrap(), after, "from {before}");
    };
    check("", "{\n  \"new\": 1\n}\n");
    check(" \n", "{\n  \"new\": 1\n}\n");
    check("{}", "{\"new\":1}\n");
    check(
        "{\"z\":{\"unknown\":[1.0,null]},\"a\":\"ü\"}\n",
        "{\"z\":{\"unknown\":[1.0,null]},\"a\":\"ü\",\"new\":1}\n",
    );
    check("{\n\t\"z\": 1,\n\t\"new\": 0,\n\t\"a\": 2\n}", "{\n\t\"z\": 1,\n\t\"new\": 1,\n\t\"a\": 2\n}\n");
    check("{\n    \"z\": 1\n}\n", "{\n    \"z\": 1,\n    \"new\": 1\n}\n");
}

#[test]
fn an_update_without_a_change_writes_nothing() {
    let (_directory, file) = file_with("{ \"a\":1 }");
    let before = fs::metadata(&file.path).unwrap();
    assert_eq!(file.update(|json| json["a"].clone()).unwrap(), 1);
    let after = fs::metadata(&file.path).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(fs::read_to_string(&file.path).unwrap(), "{ \"a\":1 }");
}

#[test]
fn a_broken_file_is_never_overwritten() {
    let check = |content: &str, expected: &str| {
        let (_directory, file) = file_with(content);
        let error = file.update(|json| *json = json!({})).unwrap_err().to_string();
        let expected = format!(
            "{}:{expected}. Correct the file or move it away; nothing was changed.",
            file.path.display()
        );
        assert_eq!(error, expected);
        assert_eq!(file.read().unwrap_err().to_string(), expected);
        assert_eq!(fs::read_to_string(&file.path).unwrap(), content);
    };
    check("{\"a\":1", "1: EOF while parsing an object");
    check("{\n  \"a\": 1,\n  b\n}", "3: key must be a string");
    check("{}\n{}", "2: trailing characters");
}

#[test]
fn modes_are_kept_and_new_files_are_private() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = tempdir().unwrap();
    let path = directory.path().join("deep/er/shared.json");
    let file = SharedFile::new(&path);
    assert_eq!(file.read().unwrap(), json!({}));
    file.update(|json| json["a"] = 1.into()).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&path.with_file_name(".shared.json.lock")), 0o600);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    file.update(|json| json["a"] = 2.into()).unwrap();
    assert_eq!(mode(&path), 0o644);
}

#[test]
fn a_link_is_followed_and_kept() {
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("real")).unwrap();
    symlink("real/shared.json", path("second")).unwrap();
    symlink(path("second"), path("first")).unwrap();
    for count in 1..3 {
        let added = |json: &mut Value| json["a"] = count.into();
        SharedFile::new(path("first")).update(added).unwrap();
        assert_eq!(SharedFile::new(path("real/shared.json")).read().unwrap(), json!({ "a": count }));
    }
    assert_eq!(fs::read_link(path("first")).unwrap(), path("second"));
    assert!(path("real/.shared.json.lock").exists() && !path(".first.lock").exists());
}

#[test]
fn what_is_no_file_is_refused() {
    let check = |path: &Path, expected: &str| {
        let error = SharedFile::new(path).update(|json| json["a"] = 1.into()).unwrap_err();
        assert!(matches!(error, SharedFileError::Foreign { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let directory = tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("folder")).unwrap();
    check(&path("folder"), "not a regular file");
    symlink("round", path("round")).unwrap();
    check(&path("round"), "lead nowhere");
    symlink("/dev/null", path("device")).unwrap();
    let refused = SharedFile::new(path("device")).read().unwrap_err();
    assert!(refused.to_string().contains("cannot use /dev/null"), "{refused}");
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "").unwrap();
    let error = SharedFile::new(path.join("shared.json")).update(|json| json["a"] = 1.into()).unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("cannot create {}/shared.json: ", path.display())),
        "{error}"
    );
}
