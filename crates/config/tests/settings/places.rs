//! Where local settings lie, and whose they are: repositories, linked work trees, links, files that git keeps.

use std::os::unix::fs::{chown, symlink};

use windlass_config::SettingsLevel;

use crate::machine::Machine;

const RULES: &str = r#"{"permissions":{"allow":["Bash"]}}"#;

/// The files that local settings are read from.
#[track_caller]
fn check_files(machine: &Machine, expected: &[&str]) {
    let effective = machine.read(None).effective(true);
    let rules = effective.settings.permissions.deny.into_iter();
    let seen: Vec<String> = rules
        .filter(|rule| rule.origin.level == SettingsLevel::Local)
        .map(|rule| {
            assert_eq!(*rule.origin.anchor, *machine.places().start);
            machine.relative(&rule.origin.file.unwrap())
        })
        .collect();
    assert_eq!(seen, expected);
}

fn deny(name: &str) -> String {
    format!(r#"{{"permissions":{{"deny":["Bash({name})"]}}}}"#)
}

fn with_local_files(directories: &[&str]) -> Machine {
    let machine = Machine::new(&[]);
    for directory in directories {
        machine.write(&format!("{directory}/.claude/settings.local.json"), &deny(directory));
    }
    machine
}

#[test]
fn local_settings_lie_at_the_top_of_the_repository() {
    let top = "work/.claude/settings.local.json";
    let start = "work/app/.claude/settings.local.json";
    let machine = with_local_files(&["work", "work/app"]);
    check_files(&machine, &[start]);
    machine.init_git("work");
    check_files(&machine, &[start, top]);
    // A folder that only has the name is no repository.
    std::fs::create_dir(machine.path("work/app/.git")).unwrap();
    check_files(&machine, &[start, top]);
    machine.init_git("work/app");
    check_files(&machine, &[start]);
}

#[test]
fn the_whole_home_and_what_belongs_to_others_is_no_project() {
    let machine = with_local_files(&["home", "home/app"]).started_in("home/app");
    machine.init_git("home");
    check_files(&machine, &["home/app/.claude/settings.local.json"]);
    let machine = with_local_files(&["work", "work/app"]);
    machine.init_git("work");
    // Only the root user can give files away.
    if chown(machine.path("work"), Some(12_345), None).is_ok() {
        check_files(&machine, &["work/app/.claude/settings.local.json"]);
    }
}

#[test]
fn a_linked_work_tree_shares_those_of_the_main_one() {
    let machine = with_local_files(&["work", "linked"]).started_in("linked/sub");
    machine.init_git("work");
    machine.git("work", &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    std::fs::remove_dir_all(machine.path("linked")).unwrap();
    machine.git("work", &["worktree", "add", "--quiet", "../linked"]);
    machine.write("linked/sub/x", "");
    machine.write("linked/.claude/settings.local.json", &deny("linked"));
    check_files(&machine, &["work/.claude/settings.local.json"]);
    assert_eq!(machine.places().root(), machine.path("linked"));
    assert_eq!(machine.places().local(), machine.path("work"));
    let machine = machine.started_in("linked");
    check_files(&machine, &["linked/.claude/settings.local.json", "work/.claude/settings.local.json"]);
}

#[test]
fn a_folder_cannot_claim_to_belong_to_a_repository() {
    let machine = with_local_files(&["work", "evil"]).started_in("evil");
    machine.init_git("work");
    machine.git("work", &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    machine.git("work", &["worktree", "add", "--quiet", "../linked"]);
    machine
        .write("evil/.git", &format!("gitdir: {}\n", machine.path("work/.git/worktrees/linked").display()));
    check_files(&machine, &["evil/.claude/settings.local.json"]);
    // Nor does a folder of git that cannot be found make a file the user's own.
    machine.write("evil/.git", "gitdir: /nowhere\n");
    machine.write("evil/.claude/settings.local.json", RULES);
    assert!(!machine.read(None).parts().list.is_empty());
}

/// Whether the local settings in the start directory count as the user's own.
#[track_caller]
fn check_own(machine: &Machine, expected: bool) {
    let files = machine.read(None);
    assert_eq!(files.parts().list.is_empty(), expected);
    assert_eq!(files.effective(false).settings.permissions.allow.is_empty(), !expected);
    assert!(!files.effective(true).settings.permissions.allow.is_empty());
}

#[test]
fn a_file_that_git_keeps_came_with_the_project() {
    const FILE: &str = "work/app/.claude/settings.local.json";
    let check = |setup: &[&[&str]]| {
        let machine = Machine::new(&[
            (FILE, RULES),
            // Names before, behind and around it.
            ("work/app/+", ""),
            ("work/app/.claude/agents/a.md", ""),
            ("work/app/.claude/settings.json", "{}"),
            ("work/app/a/long/name/to/share/a/beginning/with/one", ""),
            ("work/app/a/long/name/to/share/a/beginning/with/two", ""),
        ]);
        let (init, rest) = setup.split_first().unwrap();
        machine.git("work/app", init);
        check_own(&machine, true);
        machine.git("work/app", &["add", "+", "a", ".claude/agents", ".claude/settings.json"]);
        for arguments in rest {
            machine.git("work/app", arguments);
        }
        check_own(&machine, true);
        machine.git("work/app", &["add", "--force", ".claude/settings.local.json"]);
        check_own(&machine, false);
        machine.git("work/app", &["commit", "--quiet", "-m", "all"]);
        check_own(&machine, false);
        machine.git("work/app", &["rm", "--quiet", "--cached", ".claude/settings.local.json"]);
        check_own(&machine, true);
    };
    check(&[&["init", "--quiet"]]);
    check(&[&["init", "--quiet"], &["update-index", "--index-version", "4"]]);
    check(&[&["init", "--quiet", "--object-format=sha256"]]);
    // An entry with more flags makes it the third version.
    check(&[
        &["init", "--quiet"],
        &["add", "--intent-to-add", "--all", "."],
        &["rm", "-q", "--cached", ".claude/settings.local.json"],
    ]);
}

#[test]
fn what_cannot_be_known_about_a_file_counts_against_it() {
    const FILE: &str = "work/app/.claude/settings.local.json";
    let machine = |setup: &dyn Fn(&Machine)| {
        let machine = Machine::new(&[(FILE, RULES), ("work/app/x", "")]);
        machine.init_git("work/app");
        machine.git("work/app", &["add", "x"]);
        setup(&machine);
        machine
    };
    check_own(&machine(&|_| ()), true);
    check_own(&machine(&|machine| machine.write("work/app/.git/index", "DIRC garbage")), false);
    check_own(&machine(&|machine| machine.write("work/app/.git/index", "")), false);
    check_own(&machine(&|machine| machine.git("work/app", &["update-index", "--split-index"])), false);
    let cut = |machine: &Machine| {
        let bytes = std::fs::read(machine.path("work/app/.git/index")).unwrap();
        std::fs::write(machine.path("work/app/.git/index"), &bytes[..60]).unwrap();
    };
    check_own(&machine(&cut), false);
}

#[test]
fn a_folder_that_git_keeps_as_one_came_with_the_project() {
    let machine = Machine::new(&[("other/.claude/x", ""), ("other/x", "")]);
    machine.init_git("other");
    machine.git("other", &["add", "."]);
    machine.git("other", &["commit", "--quiet", "-m", "first"]);
    machine.init_git("work/app");
    let url = machine.path("other").display().to_string();
    machine.git(
        "work/app",
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, ".claude"],
    );
    machine.write("work/app/.claude/settings.local.json", RULES);
    check_own(&machine, false);
}

/// Whoever unpacks an archive has not written the files in it.
#[test]
fn without_a_repository_nothing_tells_whose_local_settings_are() {
    let rules =
        r#"{"permissions":{"allow":["Bash"],"deny":["Read(x)"]},"sandbox":{"excludedCommands":["a"]}}"#;
    for folder in [".claude", ".windlass"] {
        let machine = Machine::new(&[(&format!("work/app/{folder}/settings.local.json"), rules)]);
        check_own(&machine, false);
        let held = machine.read(None).effective(false).settings;
        assert_eq!(held.permissions.deny[0].value, "Read(x)");
        assert!(machine.read(None).effective(true).value("sandbox.excludedCommands").is_none());
        machine.init_git("work");
        check_own(&machine, true);
        // At home the folder is the user's own.
        let home = Machine::new(&[(&format!("home/{folder}/settings.local.json"), rules)]).started_in("home");
        check_own(&home, true);
    }
}

#[test]
fn what_is_behind_a_link_came_with_the_project() {
    let folder = Machine::new(&[("elsewhere/settings.local.json", RULES)]);
    symlink("../../elsewhere", folder.path("work/app/.claude")).unwrap();
    check_own(&folder, false);
    let file = Machine::new(&[("elsewhere/x.json", RULES), ("work/app/.claude/x", "")]);
    symlink("../../../elsewhere/x.json", file.path("work/app/.claude/settings.local.json")).unwrap();
    check_own(&file, false);
    let real = Machine::new(&[("work/app/.windlass/settings.local.json", RULES)]);
    real.init_git("work");
    check_own(&real, true);
    // Only the root user can give files away.
    if chown(real.path("work/app/.windlass/settings.local.json"), Some(12_345), None).is_ok() {
        check_own(&real, false);
    }
}
