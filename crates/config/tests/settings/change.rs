//! Changing settings files, also by many processes at once.
//!
//! The processes are this very test program, started again with a variable that says what to do.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use windlass_config::{ChangeError, SavedChange, SettingsPlaces, update_settings};
use windlass_protocol::{Behaviour, PermissionChange, PermissionUpdate, SettingsDestination};

use crate::machine::Machine;

const PROCESSES: usize = 16;
const RULES_EACH: usize = 20;
/// What a process is to do: the start directory, the home and its own name.
const TASK: &str = "SETTINGS_CHANGE_TASK";

fn change_permissions(
    places: &SettingsPlaces,
    destination: SettingsDestination,
    change: &PermissionChange,
) -> Result<SavedChange, ChangeError> {
    let kept = places.keep(&PermissionUpdate { change: change.clone(), destination })?;
    Ok(kept.unwrap())
}

fn add(rules: &[&str]) -> PermissionChange {
    PermissionChange::AddRules(Behaviour::Allow, texts(rules))
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

/// Does nothing, unless the program was started as one of many.
#[test]
fn one_of_many() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [start, home, name] = task.split('\n').collect::<Vec<_>>().try_into().unwrap();
    let place = windlass_config::ProcessContext {
        cwd: start.into(),
        is_root: false,
        home: Some(home.into()),
        managed: "/none".into(),
    };
    let home = windlass_config::Home::new(&windlass_config::Settings::default().home, &place);
    let places = SettingsPlaces::new(&place, &home);
    for count in 0..RULES_EACH {
        change_permissions(&places, SettingsDestination::Local, &add(&[&format!("Bash({name} {count})")]))
            .unwrap();
    }
}

#[test]
fn many_processes_lose_no_rule() {
    let machine = Machine::new(&[]);
    machine.init_git("work");
    let start = |name: usize| -> Child {
        let task =
            format!("{}\n{}\n{name}", machine.path("work/app").display(), machine.path("home").display());
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "change::one_of_many", "--nocapture"])
            .env(TASK, task)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..PROCESSES).map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let rules = machine.read(None).effective(false).settings.permissions.allow;
    for name in 0..PROCESSES {
        for count in 0..RULES_EACH {
            let rule = format!("Bash({name} {count})");
            assert!(rules.iter().any(|there| there.value == rule), "{rule}");
        }
    }
    assert_eq!(rules.len(), PROCESSES * RULES_EACH);
    let left: Vec<_> = fs::read_dir(machine.path("work/.windlass"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["settings.local.json"]);
    let ignored = fs::read_to_string(machine.path("home/.config/git/ignore")).unwrap();
    assert_eq!(ignored, "**/.claude/settings.local.json\n**/.windlass/settings.local.json\n");
}

/// Changes local settings, and what the file says then.
#[track_caller]
fn check(before: &str, change: &PermissionChange, after: &str) {
    let machine = Machine::new(&[("work/app/.claude/settings.local.json", before)]);
    let saved = change_permissions(&machine.places(), SettingsDestination::Local, change).unwrap();
    assert_eq!(saved.file, machine.path("work/app/.claude/settings.local.json"));
    assert_eq!(fs::read_to_string(saved.file).unwrap().trim_end(), after, "{change:?}");
}

#[test]
fn each_change_touches_what_it_means_and_nothing_else() {
    use PermissionChange::{AddDirectories, AddRules, RemoveDirectories, RemoveRules, ReplaceRules, SetMode};
    let before = r#"{"z":1,"permissions":{"deny":["D"],"allow":["A","B"],"x":null},"a":2}"#;
    check(
        before,
        &add(&["B", "C"]),
        r#"{"z":1,"permissions":{"deny":["D"],"allow":["A","B","C"],"x":null},"a":2}"#,
    );
    check(
        before,
        &RemoveRules(Behaviour::Allow, texts(&["A", "Q"])),
        r#"{"z":1,"permissions":{"deny":["D"],"allow":["B"],"x":null},"a":2}"#,
    );
    check(
        before,
        &ReplaceRules(Behaviour::Deny, texts(&["E"])),
        r#"{"z":1,"permissions":{"deny":["E"],"allow":["A","B"],"x":null},"a":2}"#,
    );
    check("{}", &AddRules(Behaviour::Ask, texts(&["E"])), r#"{"permissions":{"ask":["E"]}}"#);
    check("{}", &SetMode("plan".into()), r#"{"permissions":{"defaultMode":"plan"}}"#);
    check("{}", &AddDirectories(vec!["/a".into()]), r#"{"permissions":{"additionalDirectories":["/a"]}}"#);
    check(
        r#"{"permissions":{"additionalDirectories":["/a","/b"]}}"#,
        &RemoveDirectories(vec!["/a".into()]),
        r#"{"permissions":{"additionalDirectories":["/b"]}}"#,
    );
    for nothing in
        [RemoveRules(Behaviour::Deny, texts(&["D"])), ReplaceRules(Behaviour::Ask, vec![]), add(&[])]
    {
        check(r#"{ "a" : 1 }"#, &nothing, r#"{ "a" : 1 }"#);
    }
}

#[test]
fn a_change_reaches_every_file_that_is_read() {
    let machine = Machine::new(&[
        ("work/.claude/settings.local.json", r#"{"permissions":{"allow":["A","B"]}}"#),
        ("work/.windlass/settings.local.json", r#"{"permissions":{"allow":["A","C"]}}"#),
        ("work/app/.claude/settings.local.json", r#"{"permissions":{"allow":["A","D"]}}"#),
    ]);
    machine.init_git("work");
    let change = |change: &PermissionChange| {
        change_permissions(&machine.places(), SettingsDestination::Local, change).unwrap();
        let rules = machine.read(None).effective(false).settings.permissions.allow;
        rules.into_iter().map(|rule| rule.value).collect::<Vec<_>>()
    };
    assert_eq!(change(&PermissionChange::RemoveRules(Behaviour::Allow, texts(&["A"]))), ["D", "B", "C"]);
    assert_eq!(change(&PermissionChange::ReplaceRules(Behaviour::Allow, texts(&["E"]))), ["E"]);
    assert_eq!(change(&PermissionChange::AddRules(Behaviour::Allow, texts(&["F"]))), ["E", "F"]);
}

#[test]
fn the_users_settings_for_other_agents_are_only_read() {
    let machine = Machine::new(&[
        ("home/.claude/settings.json", r#"{"permissions":{"allow":["A","B"]}}"#),
        ("home/.windlass/settings.json", r#"{"permissions":{"allow":["A","C"]}}"#),
    ]);
    let notice = |change: PermissionChange| {
        change_permissions(&machine.places(), SettingsDestination::User, &change).unwrap().notice
    };
    let told = format!(
        "part of it is also in {}; change that file yourself.",
        machine.path("home/.claude/settings.json").display()
    );
    assert_eq!(notice(PermissionChange::RemoveRules(Behaviour::Allow, texts(&["C"]))), None);
    assert_eq!(notice(PermissionChange::RemoveRules(Behaviour::Allow, texts(&["A"]))), Some(told));
    assert_eq!(
        fs::read_to_string(machine.path("home/.windlass/settings.json")).unwrap(),
        "{\"permissions\":{\"allow\":[]}}\n"
    );
    assert_eq!(
        fs::read_to_string(machine.path("home/.claude/settings.json")).unwrap(),
        r#"{"permissions":{"allow":["A","B"]}}"#
    );
}

#[test]
fn new_entries_go_to_our_own_folder_unless_there_is_only_the_other() {
    let check = |existing: &[&str], destination: SettingsDestination, expected: &str| {
        let machine = Machine::new(&[]);
        for folder in existing {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        let saved = change_permissions(&machine.places(), destination, &add(&["A"])).unwrap();
        assert_eq!(machine.relative(&saved.file), expected);
        assert!(saved.file.exists() && saved.notice.is_none());
    };
    check(&[], SettingsDestination::Local, "work/app/.windlass/settings.local.json");
    check(&["work/app/.claude"], SettingsDestination::Local, "work/app/.claude/settings.local.json");
    check(
        &["work/app/.claude", "work/app/.windlass"],
        SettingsDestination::Local,
        "work/app/.windlass/settings.local.json",
    );
    check(&["work/app/.claude"], SettingsDestination::Project, "work/app/.claude/settings.json");
    check(&["home/.claude"], SettingsDestination::User, "home/.windlass/settings.json");
    let machine = Machine::new(&[]);
    let nothing = PermissionChange::RemoveRules(Behaviour::Allow, texts(&["A"]));
    change_permissions(&machine.places(), SettingsDestination::Project, &nothing).unwrap();
    assert!(!machine.path("work/app/.windlass").exists());
}

/// The change is refused and the file stays as it was.
#[track_caller]
fn check_refused(
    machine: &Machine,
    destination: SettingsDestination,
    change: &PermissionChange,
    expected: &str,
) {
    let error = change_permissions(&machine.places(), destination, change).unwrap_err().to_string();
    let root = format!("{}/", machine.path("work").parent().unwrap().display());
    assert_eq!(error.replace(&root, ""), expected);
}

#[test]
fn what_cannot_be_changed_safely_is_refused() {
    let local = "work/app/.claude/settings.local.json";
    let broken = |content: &str, expected: &str| {
        let machine = Machine::new(&[(local, content)]);
        check_refused(&machine, SettingsDestination::Local, &add(&["A"]), expected);
        assert_eq!(fs::read_to_string(machine.path(local)).unwrap(), content);
        let left: Vec<_> = fs::read_dir(machine.path("work/app/.claude")).unwrap().collect();
        assert_eq!(left.len(), 1);
    };
    broken(
        r#"{"permissions":{"deny":["A"]},"permissions":{}}"#,
        "work/app/.claude/settings.local.json: `permissions` appears twice (line 1). Correct the file; nothing was changed.",
    );
    broken(
        r#"{"permissions":[]}"#,
        "work/app/.claude/settings.local.json: `permissions` must be an object. Correct the file; nothing was changed.",
    );
    broken(
        r#"{"permissions":{"allow":"x"}}"#,
        "work/app/.claude/settings.local.json: `permissions.allow` must be a list. Correct the file; nothing was changed.",
    );
    broken(
        "{\"a\":1,}",
        "work/app/.claude/settings.local.json:1: trailing comma. Correct the file or move it away; nothing was changed.",
    );
}

#[test]
fn nothing_is_written_through_links_or_into_files_of_the_project() {
    let behind = "work/app/.claude/settings.local.json belongs to the project or is behind a symlink. \
                  Remove it from git, or replace the symlink with a file.";
    let machine = Machine::new(&[("home/x", "")]);
    symlink("../../home", machine.path("work/app/.claude")).unwrap();
    check_refused(&machine, SettingsDestination::Local, &add(&["A"]), behind);
    check_refused(
        &machine,
        SettingsDestination::Project,
        &add(&["A"]),
        "work/app/.claude/settings.json belongs to the project or is behind a symlink. \
         Replace the symlink with a file.",
    );
    assert_eq!(fs::read_dir(machine.path("home")).unwrap().count(), 1);
    let machine = Machine::new(&[("work/app/.claude/settings.local.json", "{}")]);
    machine.init_git("work/app");
    machine.git("work/app", &["add", "--force", "."]);
    check_refused(&machine, SettingsDestination::Local, &add(&["A"]), behind);
}

#[test]
fn modes_that_let_everything_run_are_not_kept() {
    let machine = Machine::new(&[]);
    let mode = |mode: &str| PermissionChange::SetMode(mode.into());
    let bypass = "the mode bypassPermissions cannot be saved in settings. Use --permission-mode.";
    check_refused(&machine, SettingsDestination::User, &mode("bypassPermissions"), bypass);
    let auto = "the mode auto cannot be saved in files of a repository. Use --permission-mode.";
    check_refused(&machine, SettingsDestination::Local, &mode("auto"), auto);
    change_permissions(&machine.places(), SettingsDestination::User, &mode("auto")).unwrap();
    assert_eq!(machine.read(None).effective(false).settings.permissions.mode.unwrap().value, "auto");
}

#[test]
fn git_ignores_local_settings_from_their_first_day_on() {
    let check = |before: Option<&str>, after: &str| {
        let machine = Machine::new(&[]);
        machine.init_git("work");
        let config = machine.path("home/config");
        if let Some(before) = before {
            machine.write("home/config/git/ignore", before);
        }
        let places = machine.places().with_config_home(Some(config.clone()));
        let saved = change_permissions(&places, SettingsDestination::Local, &add(&["A"])).unwrap();
        let notice = saved.notice.unwrap();
        assert!(
            notice.ends_with(&format!(
                " to {}, so that git ignores local settings.",
                config.join("git/ignore").display()
            )),
            "{notice}"
        );
        assert_eq!(fs::read_to_string(config.join("git/ignore")).unwrap(), after);
        // Whoever takes it out again wants it so.
        fs::write(config.join("git/ignore"), "").unwrap();
        let again = change_permissions(&places, SettingsDestination::Local, &add(&["B"])).unwrap();
        assert_eq!(again.notice, None);
        assert_eq!(fs::read_to_string(config.join("git/ignore")).unwrap(), "");
    };
    let both = "**/.claude/settings.local.json\n**/.windlass/settings.local.json\n";
    check(None, both);
    check(Some("*.o"), &format!("*.o\n{both}"));
    check(
        Some("**/.windlass/settings.local.json\n"),
        "**/.windlass/settings.local.json\n**/.claude/settings.local.json\n",
    );
    let machine = Machine::new(&[("home/.config/git", "")]);
    machine.init_git("work");
    let notice = change_permissions(&machine.places(), SettingsDestination::Local, &add(&["A"]))
        .unwrap()
        .notice
        .unwrap();
    assert!(notice.starts_with("saved local settings, but git does not ignore them: "), "{notice}");
}

#[test]
fn other_settings_can_be_changed_too() {
    let machine = Machine::new(&[("home/.claude/settings.json", "{\n    \"theme\": \"dark\"\n}\n")]);
    let file = machine.path("home/.claude/settings.json");
    let seen = update_settings(&file, |settings| {
        settings.insert("model".into(), json!("m"));
        Ok(settings.len())
    });
    assert_eq!(seen.unwrap(), 2);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n    \"theme\": \"dark\",\n    \"model\": \"m\"\n}\n");
    let failed = update_settings(&file, |settings| {
        settings.clear();
        Err::<(), _>("no".to_owned())
    });
    assert!(
        failed
            .unwrap_err()
            .to_string()
            .ends_with("settings.json: no. Correct the file; nothing was changed.")
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\n    \"theme\": \"dark\",\n    \"model\": \"m\"\n}\n");
}
