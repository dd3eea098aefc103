//! A project finds its sessions although it lies elsewhere now.

use std::path::Path;

use serde_json::{Value, json};
use windlass_session::{GitProgram, Identity, Repository, SessionFilter};

use crate::support::{World, git, git_program, numbers, repository, user};

/// The line that says in which repository a session was started.
fn line(identity: &Identity) -> Value {
    json!({"type": "windlass", "kind": "repository", "seq": 2, "of": identity})
}

#[track_caller]
fn check(world: &World, cwd: &Path, listed: &[u128]) {
    assert_eq!(numbers(&world.list(cwd)), listed);
    let newest: Vec<_> = world.catalogue().newest(cwd, SessionFilter::Any).into_iter().collect();
    assert_eq!(numbers(&newest), listed.iter().take(1).copied().collect::<Vec<_>>());
}

#[test]
fn a_moved_project_finds_its_sessions_by_its_first_commits() {
    let world = World::new();
    let (old, other) = (world.project("old"), world.project("other"));
    repository(&old);
    repository(&other);
    let identity = Repository::discover(&old).unwrap().identity_with_roots(&git_program());
    assert_eq!((identity.roots.len(), &identity.origin), (1, &None));
    world.session(&old, 1, &[user(&old, "hello"), line(&identity)]);
    std::fs::rename(&old, world.path("new")).unwrap();
    check(&world, &world.path("new"), &[1]);
    check(&world, &other, &[]);
    check(&world, &world.project("plain"), &[]);
}

#[test]
fn a_clone_finds_sessions_by_where_it_came_from() {
    let world = World::new();
    let [first, second, third] = ["first", "second", "third"].map(|name| world.project(name));
    for (directory, origin) in [
        (&first, "https://me:key@code.example/team/app.git"),
        (&second, "git@code.example:team/app"),
        (&third, "git@code.example:team/other"),
    ] {
        git(directory, &["init", "-q"]);
        git(directory, &["remote", "add", "origin", origin]);
    }
    assert_eq!(Repository::discover(&first).unwrap().origin.as_deref(), Some("code.example/team/app"));
    world.said(&first, 1, "written by a program that knows nothing of repositories");
    check(&world, &second, &[1]);
    check(&world, &third, &[]);
    let identity = Repository::discover(&first).unwrap().identity();
    world.session(&first, 2, &[user(&first, "hello"), line(&identity)]);
    std::fs::remove_dir_all(&first).unwrap();
    check(&world, &second, &[2]);
}

#[test]
fn a_local_clone_shares_the_first_commits() {
    let world = World::new();
    let old = world.project("old");
    repository(&old);
    let identity = Repository::discover(&old).unwrap().identity_with_roots(&git_program());
    world.session(&old, 1, &[user(&old, "hello"), line(&identity)]);
    git(&world.path(""), &["clone", "-q", "old", "new"]);
    check(&world, &world.path("new"), &[1]);
    git(&world.path(""), &["clone", "-q", "--depth", "1", &format!("file://{}", old.display()), "shallow"]);
    let shallow = Repository::discover(&world.path("shallow")).unwrap();
    assert_eq!(shallow.identity_with_roots(&git_program()).roots, Vec::<String>::new());
}

#[test]
fn a_session_of_a_subdirectory_belongs_to_the_same_subdirectory() {
    let world = World::new();
    for name in ["old", "new"] {
        world.project(&format!("{name}/sub"));
        git(&world.path(name), &["init", "-q"]);
        git(&world.path(name), &["remote", "add", "origin", "h:a/b"]);
    }
    world.said(&world.path("old/sub"), 1, "hello");
    check(&world, &world.path("new/sub"), &[1]);
    check(&world, &world.path("new"), &[]);
}

#[test]
fn work_trees_of_a_repository_share_their_sessions() {
    let world = World::new();
    let main = world.project("main");
    repository(&main);
    git(&main, &["worktree", "add", "-q", "../tree", "-b", "topic"]);
    world.said(&main, 1, "in the main tree");
    let tree = world.path("tree");
    check(&world, &tree, &[1]);
    world.said(&tree, 2, "in the other");
    check(&world, &tree, &[2, 1]);
    // Its own come first, even if they are older.
    let newest = world.catalogue().newest(&main, SessionFilter::Any);
    assert_eq!(numbers(&newest.into_iter().collect::<Vec<_>>()), [1]);
    let linked = Repository::discover(&tree).unwrap();
    assert_eq!(linked.branch().as_deref(), Some("topic"));
    assert_eq!(linked.worktrees(), [main.clone(), tree]);
    assert_eq!(Repository::discover(&main).unwrap().branch().as_deref(), Some("main"));
}

#[test]
fn nothing_that_a_repository_configures_is_run() {
    let world = World::new();
    let project = world.project("project");
    repository(&project);
    let mark = world.path("ran");
    let program = format!("touch {}", mark.display());
    for key in
        ["core.fsmonitor", "core.pager", "core.sshCommand", "core.alternateRefsCommand", "alias.rev-list"]
    {
        git(&project, &["config", key, &format!("!{program}")]);
        git(&project, &["config", key, &program]);
    }
    let found = Repository::discover(&project).unwrap();
    assert_eq!(found.identity_with_roots(&git_program()).roots.len(), 1);
    assert!(!mark.exists());
}

#[test]
fn broken_repositories_are_none() {
    let world = World::new();
    let check = |name: &str, make: &dyn Fn(&Path)| {
        let directory = world.project(name);
        make(&directory);
        assert_eq!(Repository::discover(&directory), None, "{name}");
    };
    check("empty", &|directory| std::fs::create_dir(directory.join(".git")).unwrap());
    check("words", &|directory| std::fs::write(directory.join(".git"), "hello").unwrap());
    check("dangling", &|directory| std::fs::write(directory.join(".git"), "gitdir: ../gone").unwrap());
    assert_eq!(Repository::discover(&world.path("missing")), None);
}

#[test]
fn only_a_git_in_an_absolute_place_is_run_and_with_the_given_environment() {
    let world = World::new();
    let (project, bin) = (world.project("project"), world.project("bin"));
    repository(&project);
    let log = world.path("log");
    let stub = format!("#!/bin/sh\n/usr/bin/env > {}\n", log.display());
    std::fs::write(bin.join("git"), stub).unwrap();
    let check = |path: &str, is_found: bool| {
        let environment = [("PATH", path), ("GIT_DIR", "/nowhere"), ("SHOWN", "yes")];
        let environment = environment.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(GitProgram::find(environment.to_vec()).is_some(), is_found, "{path}");
        GitProgram::find(environment.to_vec())
    };
    let absolute = bin.display().to_string();
    check(&absolute, false);
    let mut mode = std::fs::metadata(bin.join("git")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(bin.join("git"), mode).unwrap();
    check("bin", false);
    check("", false);
    let git = check(&format!("bin:.:{absolute}"), true).unwrap();
    assert!(Repository::discover(&project).unwrap().identity_with_roots(&git).roots.is_empty());
    let environment = std::fs::read_to_string(&log).unwrap();
    assert!(environment.contains("SHOWN=yes") && !environment.contains("GIT_DIR"), "{environment}");
}
