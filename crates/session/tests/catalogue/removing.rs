//! The trash: what goes there comes back as it was.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use windlass_session::{
    Lease, LeaseError, SessionPaths, TrashError, outline, remove, restore, trashed_sessions,
};

use crate::support::{World, id, numbers};

const CWD: &str = "/nowhere/app";

/// A session with a side directory.
fn session(world: &World, number: u128) -> SessionPaths {
    let paths = SessionPaths::of_file(world.said(Path::new(CWD), number, "hello")).unwrap();
    windlass_session::create_private(&paths.side()).unwrap();
    std::fs::create_dir(paths.results()).unwrap();
    std::fs::write(paths.results().join("r.txt"), "a result").unwrap();
    paths
}

#[test]
fn a_removed_session_is_gone_and_comes_back_whole() {
    let world = World::new();
    let cwd = Path::new(CWD);
    let paths = session(&world, 1);
    session(&world, 2);
    let before = std::fs::read(paths.file()).unwrap();
    let directory = remove(&world.layout(), &world.list(cwd)[1]).unwrap();
    assert_eq!(directory.parent(), Some(world.layout().trash().as_path()));
    assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(directory.file_name().unwrap().to_str().unwrap().ends_with(&format!("-{}", id(1))));
    assert!(!paths.file().exists() && !paths.side().exists());
    assert_eq!(numbers(&world.list(cwd)), [2]);
    assert_eq!(trashed_sessions(&world.layout()).len(), 1);
    assert_eq!(restore(&world.layout(), &id(1).to_string()).unwrap(), paths.file());
    assert_eq!(std::fs::read(paths.file()).unwrap(), before);
    assert_eq!(std::fs::read_to_string(paths.results().join("r.txt")).unwrap(), "a result");
    assert!(!paths.lock().exists());
    assert_eq!(numbers(&world.list(cwd)), [2, 1]);
    assert!(trashed_sessions(&world.layout()).is_empty() && !directory.exists());
}

#[test]
fn a_session_without_side_directory_leaves_none() {
    let world = World::new();
    let cwd = Path::new(CWD);
    let path = world.said(cwd, 1, "hello");
    let directory = remove(&world.layout(), &world.list(cwd)[0]).unwrap();
    let names: Vec<_> =
        std::fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    restore(&world.layout(), &id(1).to_string()[..8]).unwrap();
    let paths = SessionPaths::of_file(path).unwrap();
    assert!(paths.file().exists() && !paths.side().exists());
}

#[test]
fn an_open_session_is_not_removed() {
    let world = World::new();
    let paths = session(&world, 1);
    let lease = Lease::take(paths.file()).unwrap();
    let info = &world.list(Path::new(CWD))[0];
    let refused = remove(&world.layout(), info);
    assert!(matches!(refused, Err(TrashError::Lease(LeaseError::Busy(_)))), "{refused:?}");
    assert!(paths.file().exists() && paths.results().exists());
    drop(lease);
    remove(&world.layout(), info).unwrap();
}

#[test]
fn nothing_is_put_over_something() {
    let world = World::new();
    let cwd = Path::new(CWD);
    session(&world, 1);
    remove(&world.layout(), &world.list(cwd)[0]).unwrap();
    session(&world, 1);
    let refused = restore(&world.layout(), &id(1).to_string());
    assert!(matches!(refused, Err(TrashError::Occupied { .. })), "{refused:?}");
    remove(&world.layout(), &world.list(cwd)[0]).unwrap();
    // Removed twice: the last one comes back, the other stays where it is.
    restore(&world.layout(), &id(1).to_string()).unwrap();
    assert_eq!(trashed_sessions(&world.layout()).len(), 1);
}

#[test]
fn what_is_removed_again_and_again_is_all_there() {
    let world = World::new();
    for _ in 0..20 {
        session(&world, 1);
        remove(&world.layout(), &world.list(Path::new(CWD))[0]).unwrap();
    }
    assert_eq!(trashed_sessions(&world.layout()).len(), 20);
}

#[test]
fn ids_among_the_removed_are_as_clear_as_others() {
    let world = World::new();
    let cwd = Path::new(CWD);
    for number in 1..=2 {
        session(&world, number);
        remove(&world.layout(), &world.list(cwd)[0]).unwrap();
    }
    assert!(matches!(restore(&world.layout(), "1111"), Err(TrashError::Several { count: 2, .. })));
    assert!(matches!(restore(&world.layout(), "9999"), Err(TrashError::Nothing { .. })));
    assert!(matches!(restore(&world.layout(), ""), Err(TrashError::Nothing { .. })));
}

#[test]
fn a_home_that_was_moved_takes_its_sessions_back_where_it_is_now() {
    let world = World::new();
    session(&world, 1);
    remove(&world.layout(), &world.list(Path::new(CWD))[0]).unwrap();
    std::fs::rename(world.path("home"), world.path("moved")).unwrap();
    let moved = windlass_session::SessionLayout::new(world.path("moved"));
    assert!(restore(&moved, &id(1).to_string()).unwrap().starts_with(world.path("moved")));
}

#[test]
fn a_note_cannot_send_a_session_elsewhere() {
    let world = World::new();
    session(&world, 1);
    let directory = remove(&world.layout(), &world.list(Path::new(CWD))[0]).unwrap();
    let note = directory.join("removed.json");
    let text = std::fs::read_to_string(&note).unwrap();
    let project = world.layout().project(Path::new(CWD)).file_name().unwrap().to_str().unwrap().to_owned();
    for wrong in ["..", "../..", "/tmp", ""] {
        std::fs::write(&note, text.replace(&project, wrong)).unwrap();
        assert_eq!(trashed_sessions(&world.layout()), [], "{wrong}");
    }
}

#[test]
fn an_outline_counts_what_stood() {
    let world = World::new();
    let cwd = Path::new(CWD);
    let answer = |uuid: &str, block: serde_json::Value| serde_json::json!({"type": "assistant", "uuid": uuid, "message": {"content": [block]}});
    let call = serde_json::json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
    let text = serde_json::json!({"type": "text", "text": "done"});
    world.session(cwd, 1, &[crate::support::user(cwd, "go"), answer("a", call), answer("b", text)]);
    let outline = outline(&world.list(cwd)[0]).unwrap();
    assert_eq!((outline.prompts, outline.calls, outline.compactions), (1, 1, 0));
    assert_eq!((outline.last_prompt.as_deref(), outline.last_answer.as_deref()), (Some("go"), Some("done")));
}
