//! Git works inside a sandbox, and what it would run stays as it is.

use std::fs;

use windlass_sandbox::{BackendChoice, CommandStatus, protect_repositories};

use crate::world::World;
use crate::{Case, NAMESPACES, case};

pub(crate) const CASES: &[Case] = &[
    case("git_works_in_a_repository", NAMESPACES, repository),
    case("git_works_in_a_linked_work_tree", NAMESPACES, linked),
    case("git_works_in_a_folder_of_repositories", NAMESPACES, several),
    case("a_repository_that_a_file_points_to_is_kept", NAMESPACES, pointed_to),
    case("a_plain_folder_does_not_become_a_repository", NAMESPACES, plain),
];

const WORK: &str = "set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
                    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; echo x >> file; git add -A; git status --short; \
                    git commit -qm work; git checkout -q -b other-$RANDOM; echo y >> file; git stash -q; git stash pop -q; \
                    git commit -qam more; git gc -q; git fsck >/dev/null 2>&1; git log --format=%s | head -2";
const DONE: &str = "A  file\nmore\nwork\n";

/// What would make git run something later, outside.
const TRICKS: &[&str] = &[
    "git config core.fsmonitor ./x",
    "git config --worktree core.fsmonitor ./x",
    "echo x > $(git rev-parse --git-common-dir)/config",
    "echo x > $(git rev-parse --git-common-dir)/hooks/pre-commit",
    "echo x > $(git rev-parse --git-dir)/config.worktree",
    "echo ../x > $(git rev-parse --git-dir)/commondir",
    "rm $(git rev-parse --git-dir)/commondir",
    "mv .git away",
    "h=$(git rev-parse --git-common-dir)/hooks; rm -rf $h; [ ! -e $h ]",
    "mv $(git rev-parse --git-common-dir)/hooks away",
    "cp -r .git copy && mv -T copy .git",
    "echo 'gitdir: /tmp' > .git",
    "rm -rf .git && git init",
];

fn guard(world: &mut World, root: &str) {
    let root = world.path(root);
    let guard = protect_repositories(&root);
    assert!(guard.is_complete);
    world.policy.writable = [vec![root], guard.writable].concat();
    world.policy.protected = guard.protected;
}

fn work_in(world: &World, directory: &str) {
    let script = format!("cd {}; {WORK}", world.path(directory).display());
    let mut job = world.job(&script);
    job.cwd = world.path(directory);
    let (output, exit) = crate::world::run(&job);
    assert_eq!((output.as_str(), exit.status), (DONE, CommandStatus::Code(0)), "{directory}: {exit:?}");
    let tricks: Vec<String> =
        TRICKS.iter().map(|trick| format!("cd {} && {trick}", world.path(directory).display())).collect();
    world.check_refused(&tricks.iter().map(String::as_str).collect::<Vec<_>>());
}

fn repository(backend: BackendChoice) {
    let mut world = World::new(backend);
    fs::remove_dir_all(world.path("project/src")).unwrap();
    world.git("project", &["init", "-q"]);
    guard(&mut world, "project");
    work_in(&world, "project");
    assert!(!world.path("project/.git/commondir").exists());
}

fn linked(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.git("", &["init", "-q", "main"]);
    world.git("main", &["commit", "-q", "--allow-empty", "-m", "one"]);
    fs::remove_dir_all(world.path("project")).unwrap();
    world.git("main", &["worktree", "add", "-q", "../project"]);
    guard(&mut world, "project");
    work_in(&world, "project");
    world.check_refused(&["echo x > $ROOT/main/file", "rm -rf $ROOT/main/.git/hooks"]);
}

fn several(backend: BackendChoice) {
    let mut world = World::new(backend);
    for name in ["project/one", "project/group/two"] {
        world.git("", &["init", "-q", name]);
    }
    guard(&mut world, "project");
    for name in ["project/one", "project/group/two"] {
        work_in(&world, name);
    }
    world.check_refused(&["mv group away", "mv one away"]);
}

/// It lies deeper than repositories are looked for.
fn pointed_to(backend: BackendChoice) {
    let mut world = World::new(backend);
    fs::create_dir_all(world.path("project/a/b/c/d/e/f")).unwrap();
    world.git("project", &["init", "-q", "--separate-git-dir", "a/b/c/d/e/f/real", "."]);
    let guard = protect_repositories(&world.path("project"));
    world.policy.protected = guard.protected;
    world.check(
        "echo x > a/b/c/d/e/f/file && git add a/b/c/d/e/f/file && git status --short -uno",
        "A  a/b/c/d/e/f/file\n",
    );
    world.check_refused(&[
        "echo x > a/b/c/d/e/f/real/config",
        "echo x > a/b/c/d/e/f/real/hooks/post-commit",
        "mv a/b/c/d/e/f/real away",
        "mv a away",
        "git config core.fsmonitor ./x",
    ]);
}

fn plain(backend: BackendChoice) {
    let mut world = World::new(backend);
    guard(&mut world, "project");
    world.check_refused(&["git init", "mkdir .git", "echo x > HEAD", "echo x > .git/config"]);
    // It may write the rest of what makes a repository, but never what makes it one.
    world.run("git init --bare .");
    assert!(!world.path("project/.git").exists() && !world.path("project/HEAD").exists());
}
