//! Ten thousand sessions, and an index that may be wrong, missing or written by several at once.

use std::path::Path;
use std::time::{Duration, Instant};

use windlass_session::ListScope;

use crate::support::{World, id, numbers};

const CWD: &str = "/nowhere/app";

/// Far more than it takes on a slow machine; reading everything again would still pass, hanging would not.
const GENEROUS: Duration = Duration::from_mins(1);

fn index(world: &World) -> std::path::PathBuf {
    let name = world.layout().project(Path::new(CWD)).file_name().unwrap().to_owned();
    world.path("home/index").join(format!("{}.json", name.to_str().unwrap()))
}

#[test]
fn ten_thousand_sessions_are_listed_fast() {
    const SESSIONS: u128 = 10_000;
    let world = World::new();
    for number in 1..=SESSIONS {
        world.said(
            Path::new(&format!("/nowhere/project{}", number % 100)),
            number,
            &format!("prompt {number}"),
        );
    }
    let timed = |what: &str| {
        let start = Instant::now();
        let listed = world.catalogue().list(ListScope::Everywhere);
        println!("{what}: {} sessions in {:?}", listed.len(), start.elapsed());
        assert!(start.elapsed() < GENEROUS);
        assert_eq!(listed.len() as u128, SESSIONS);
        assert_eq!(listed[0].preview.summary.as_deref(), Some("prompt 10000"));
    };
    timed("first");
    timed("second");
    let start = Instant::now();
    world.catalogue().newest(Path::new("/nowhere/project7"), windlass_session::SessionFilter::Any).unwrap();
    println!("newest: {:?}", start.elapsed());
}

#[test]
fn a_large_session_is_not_read_whole() {
    let world = World::new();
    let path = world.said(Path::new(CWD), 1, "hello");
    // A hole: reading it whole would take seconds and a terabyte.
    std::fs::File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
    let start = Instant::now();
    assert_eq!(numbers(&world.list(Path::new(CWD))), [1]);
    assert!(start.elapsed() < GENEROUS);
}

#[test]
fn a_session_is_listed_whatever_the_index_says() {
    let world = World::new();
    let cwd = Path::new(CWD);
    world.said(cwd, 1, "one");
    let check = |expected: &[(u128, &str)]| {
        let listed = world.list(cwd);
        let summaries = listed.iter().map(|session| session.preview.summary.as_deref().unwrap());
        let seen: Vec<_> = numbers(&listed).into_iter().zip(summaries).collect();
        assert_eq!(seen, expected);
    };
    check(&[(1, "one")]);
    let old = std::fs::read(index(&world)).unwrap();
    world.said(cwd, 2, "two");
    check(&[(2, "two"), (1, "one")]);
    for wrong in [
        &old[..],
        b"{",
        b"",
        b"\xff",
        b"{\"version\":99,\"sessions\":{}}",
        b"{\"version\":1,\"sessions\":[]}",
    ] {
        std::fs::write(index(&world), wrong).unwrap();
        check(&[(2, "two"), (1, "one")]);
    }
    std::fs::remove_dir_all(world.path("home/index")).unwrap();
    check(&[(2, "two"), (1, "one")]);
    // The same length and the same time, but another file.
    std::fs::remove_file(world.layout().session(cwd, id(2)).file()).unwrap();
    check(&[(1, "one")]);
    world.said(cwd, 2, "owt");
    check(&[(2, "owt"), (1, "one")]);
    assert_eq!(std::fs::read_dir(world.path("home/index")).unwrap().count(), 1);
}

#[test]
fn an_index_that_cannot_be_written_does_not_matter() {
    let world = World::new();
    let cwd = Path::new(CWD);
    world.said(cwd, 1, "one");
    std::fs::write(world.path("home/index"), "in the way").unwrap();
    assert_eq!(numbers(&world.list(cwd)), [1]);
}

#[test]
fn the_index_is_used_while_nothing_has_changed() {
    let world = World::new();
    let cwd = Path::new(CWD);
    world.said(cwd, 1, "one");
    world.list(cwd);
    let text = std::fs::read_to_string(index(&world)).unwrap();
    std::fs::write(index(&world), text.replace("\"one\"", "\"from the index\"")).unwrap();
    assert_eq!(world.list(cwd)[0].preview.summary.as_deref(), Some("from the index"));
}

#[test]
fn several_lists_at_once_do_no_harm() {
    let world = World::new();
    let cwd = Path::new(CWD);
    for number in 1..=50 {
        world.said(cwd, number, "hello");
    }
    std::thread::scope(|scope| {
        for worker in 0..8_u128 {
            let world = &world;
            scope.spawn(move || {
                for round in 0..10 {
                    world.said(cwd, 1000 + worker * 100 + round, "new");
                    assert!(world.list(cwd).len() >= 50);
                }
            });
        }
    });
    assert_eq!(world.list(cwd).len(), 130);
    let names: Vec<_> = std::fs::read_dir(world.path("home/index")).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}
