//! What stays as it is inside of a project that can be written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use windlass_sandbox::{BackendChoice, CommandStatus, ProtectedPath, ShellProcess};

use crate::world::{World, block_on, finish, supervised};
use crate::{BOTH, Case, NAMESPACES, case};

pub(crate) const CASES: &[Case] = &[
    case("what_is_there_stays", BOTH, what_is_there_stays),
    case("what_is_missing_cannot_be_made", BOTH, what_is_missing),
    case("nothing_is_left_of_what_stood_in", NAMESPACES, nothing_is_left),
    case("a_directory_above_cannot_be_swapped", BOTH, directory_above),
    case("links_are_protected_with_their_targets", BOTH, links),
    case("one_command_does_not_open_what_another_keeps", NAMESPACES, two_commands),
    case("many_commands_at_once_open_nothing", NAMESPACES, many_commands),
    case("what_is_to_be_read_inside_stays", BOTH, readable_inside),
    case("a_secret_inside_the_project_is_hidden", BOTH, secret_inside),
];

const NAMES: &[(&str, bool)] = &[
    (".git/hooks", true),
    (".git/config", false),
    (".claude/settings.json", false),
    (".claude/agents", true),
    (".vscode", true),
    (".idea", true),
    (".mcp.json", false),
    (".bashrc", false),
    (".gitconfig", false),
];

fn names() -> Vec<ProtectedPath> {
    NAMES.iter().map(|(name, _)| ProtectedPath::new(name)).collect()
}

/// Everything one can do to a name to change it.
fn attacks(name: &str, is_directory: bool) -> Vec<String> {
    let mut attacks = Vec::new();
    let mut attack = |text: &str| attacks.push(text.replace("NAME", name));
    let upper = Path::new(name).parent().unwrap().to_str().unwrap();
    let upper = if upper.is_empty() { "." } else { upper };
    if is_directory {
        for text in [
            "mkdir NAME/new",
            "echo x > NAME/new",
            "echo x > NAME//new",
            "rmdir NAME",
            "ln -s $OUT NAME/link",
        ] {
            attack(text);
        }
    } else {
        for text in ["echo x > NAME", "echo x >> NAME", "truncate -s 9 NAME", "mkdir NAME"] {
            attack(text);
        }
    }
    for text in [
        "rm -r NAME",
        "mv NAME moved",
        "mv -T src NAME",
        "cp -T src/file NAME/",
        "ln -sfT src NAME",
        "ln -sfT src NAME/",
        "mkdir -p NAME/ && touch NAME/x",
        "mkdir -p e && mv -T --exchange e NAME",
        "install -D src/file NAME/x",
    ] {
        attack(text);
    }
    for text in ["echo x > $UPPER/./$LAST/../$LAST/new", "echo x > $PWD//NAME", "echo x > ../project/NAME"] {
        let last = Path::new(name).file_name().unwrap().to_str().unwrap();
        attack(&text.replace("$UPPER", upper).replace("$LAST", last));
    }
    attacks
}

fn check_attacks(world: &World) {
    let attacks: Vec<String> =
        NAMES.iter().flat_map(|&(name, is_directory)| attacks(name, is_directory)).collect();
    world.check_refused(&attacks.iter().map(String::as_str).collect::<Vec<_>>());
}

fn what_is_there_stays(backend: BackendChoice) {
    let mut world = World::new(backend);
    for &(name, is_directory) in NAMES {
        let path = world.path("project").join(name);
        let file = if is_directory { path.join("inner") } else { path };
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "before\n").unwrap();
    }
    world.protect(&names());
    check_attacks(&world);
    for &(name, is_directory) in NAMES {
        let path = world.path("project").join(name);
        let file = if is_directory { path.join("inner") } else { path };
        assert_eq!(fs::read_to_string(file).unwrap(), "before\n", "{name}");
    }
    world.check(
        "cat .git/config .vscode/inner; echo a >> src/file; echo b > src/new; cat src/new",
        "before\nbefore\nb\n",
    );
    if backend == BackendChoice::Bubblewrap {
        world.check(
            "echo a > .git/index; echo b > .claude/notes; echo c > new; mv new .claude/; ls .claude",
            "agents\nnew\nnotes\nsettings.json\n",
        );
    }
}

fn what_is_missing(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.protect(&names());
    check_attacks(&world);
    for (name, _) in NAMES {
        assert!(!world.path("project").join(name).exists(), "{name}");
    }
    world.check("echo a > src/new; cat src/new", "a\n");
}

fn nothing_is_left(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.protect(&names());
    world.git("project", &["init", "-q", "src"]);
    world.check("echo a > new; git -C src status --short; ls -A .vscode | wc -l", "?? file\n0\n");
    let mut left: Vec<_> =
        fs::read_dir(world.path("project")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["new", "src"]);
    // What stands in cannot be taken for a file of the project.
    world.policy.protected.clear();
    world.protect(&[ProtectedPath::new("src/.mcp.json"), ProtectedPath::new("src/.vscode")]);
    world.check("cd src; touch real; git status --short; git add -A", "?? file\n?? real\n");
    world.check("cat src/.mcp.json 2>&1 | sed 's/.*: //'", "Is a directory\n");
}

fn directory_above(backend: BackendChoice) {
    let mut world = World::new(backend);
    fs::create_dir_all(world.path("project/.git/hooks")).unwrap();
    fs::create_dir_all(world.path("project/a/b/c")).unwrap();
    world.protect(&[
        ProtectedPath::new(".git/hooks"),
        ProtectedPath::new("a/b/c/missing"),
        ProtectedPath::new("a/b/c/d/missing"),
    ]);
    world.check_refused(&[
        "mv .git away",
        "mv -T --exchange .git src",
        "rm -rf .git; mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "mv a away",
        "mv a/b away",
        "mv a/b/c away",
        "rm -rf a",
        "mkdir -p n/b/c && mv -T n a",
        "mv $PWD $PWD-away",
        "mkdir a/b/c/d && touch a/b/c/d/missing",
        "ln -sfT src a/b",
    ]);
    assert!(world.path("project/.git/hooks").is_dir() && world.path("project/a/b/c").is_dir());
}

fn links(backend: BackendChoice) {
    let mut world = World::new(backend);
    fs::create_dir_all(world.path("project/config/hooks")).unwrap();
    fs::write(world.path("project/config/settings.json"), "{}").unwrap();
    symlink("config", world.path("project/.claude")).unwrap();
    symlink("src/not-there", world.path("project/.vscode")).unwrap();
    symlink("../outside", world.path("project/.idea")).unwrap();
    symlink("config/settings.json", world.path("project/.mcp.json")).unwrap();
    world.protect(&[
        ProtectedPath::new(".claude/settings.json"),
        ProtectedPath::new(".vscode"),
        ProtectedPath::new(".idea"),
        ProtectedPath::new(".mcp.json"),
    ]);
    world.check_refused(&[
        "echo x > .claude/settings.json",
        "echo x > config/settings.json",
        "rm config/settings.json",
        "mv config away",
        "rm .claude && mkdir .claude && echo x > .claude/settings.json",
        "mv .claude away",
        "ln -sfT src .claude",
        "mv -T --exchange .claude src",
        "mkdir .vscode/x",
        "mkdir src/not-there",
        "rm .vscode && mkdir .vscode",
        "rm .idea && mkdir .idea",
        "echo x > .idea/new",
        "rm .mcp.json; echo x > .mcp.json && [ -f .mcp.json ]",
    ]);
    let target = |name: &str| fs::read_link(world.path("project").join(name)).unwrap();
    assert_eq!(target(".claude"), Path::new("config"));
    assert_eq!(target(".vscode"), Path::new("src/not-there"));
    assert_eq!(target(".mcp.json"), Path::new("config/settings.json"));
    assert_eq!(fs::read_to_string(world.path("project/config/settings.json")).unwrap(), "{}");
    assert!(!world.path("project/src/not-there").exists());
}

/// What stands in for a missing path must stay as long as anybody needs it.
fn two_commands(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.protect(&[ProtectedPath::new(".vscode"), ProtectedPath::new(".mcp.json")]);
    block_on(async {
        let script = "echo up; until [ -e $TMPDIR/go ]; do sleep 0.02; done; mkdir .vscode && echo escaped; echo x > .mcp.json && echo escaped; true";
        let long = supervised().start(&world.job(&format!("exec 2>/dev/null; {script}"))).unwrap();
        let ShellProcess { mut output, mut exit, tree } = long;
        let mut bytes = [0; 3];
        output.read_exact(&mut bytes).await.unwrap();
        for _ in 0..3 {
            let (_, short) = finish(supervised().start(&world.job("true")).unwrap()).await;
            assert_eq!(short.status, CommandStatus::Code(0), "{short:?}");
            assert!(world.path("project/.vscode").is_dir(), "still needed");
        }
        fs::write(world.path("temp/go"), "").unwrap();
        let mut rest = String::new();
        output.read_to_string(&mut rest).await.unwrap();
        assert_eq!((rest.as_str(), exit.recv().await.status), ("", CommandStatus::Code(0)));
        tokio::time::timeout(Duration::from_secs(5), tree.stop()).await.unwrap();
    });
    assert!(!world.path("project/.vscode").exists() && !world.path("project/.mcp.json").exists());
}

/// They start and end all the time, and each needs what the others make and remove.
fn many_commands(backend: BackendChoice) {
    let mut world = World::new(backend);
    world.protect(&[
        ProtectedPath::new(".vscode"),
        ProtectedPath::new(".mcp.json"),
        ProtectedPath::new(".claude/settings.json"),
    ]);
    block_on(async {
        let mut waiting = Vec::new();
        for number in 0..24 {
            let script = format!(
                "exec 2>/dev/null; for i in $(seq {}); do mkdir .vscode .claude && echo escaped; echo x > .mcp.json && echo \
                 escaped; sleep 0.01; done; true",
                number % 4 * 3
            );
            waiting.push(supervised().start(&world.job(&script)).unwrap());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for process in waiting {
            let (output, exit) = finish(process).await;
            assert_eq!((output.as_str(), exit.status), ("", CommandStatus::Code(0)), "{exit:?}");
        }
    });
    for name in [".vscode", ".mcp.json", ".claude"] {
        assert!(!world.path("project").join(name).exists(), "{name}");
    }
}

fn readable_inside(backend: BackendChoice) {
    let mut world = World::new(backend);
    fs::create_dir_all(world.path("project/vendor/lib")).unwrap();
    world.policy.readable.push(world.path("project/vendor"));
    world.policy.readable.push(world.path("project/not-there"));
    world.check_refused(&["echo x > vendor/new", "mkdir vendor/lib/new", "mv vendor away", "rm -r vendor"]);
    if backend == BackendChoice::Bubblewrap {
        world.check("mkdir not-there; ls", "not-there\nsrc\nvendor\n");
    }
}

fn secret_inside(backend: BackendChoice) {
    let mut world = World::new(backend);
    fs::write(world.path("project/.env"), "secret").unwrap();
    world.policy.hidden.push(world.path("project/.env"));
    world.policy.hidden.push(world.path("project/.missing"));
    world.check_refused(&[
        "cat .env",
        "cp .env copy",
        "mv .env copy",
        "rm .env",
        "echo x > .env",
        "ln .env hard",
        "grep -r secret .",
        "touch .missing",
    ]);
    assert_eq!(fs::read_to_string(world.path("project/.env")).unwrap(), "secret");
}
