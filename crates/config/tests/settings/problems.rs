//! What is wrong with a file is told where it stands, and what forbids is never lost on the way.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;
use windlass_config::{ReportStore, SettingsFiles, Severity};

use crate::machine::Machine;

/// The problems of user settings with this content, each with what becomes of it.
#[track_caller]
fn check(content: &str, expected: &[&str]) {
    check_in("home/.claude/settings.json", content, expected);
}

#[track_caller]
fn check_in(file: &str, content: &str, expected: &[&str]) {
    let machine = Machine::new(&[(file, content)]);
    let prefix = format!("{}:", machine.path(file).display());
    let seen: Vec<String> = machine
        .read(None)
        .effective(true)
        .problems
        .iter()
        .map(|problem| format!("{:?} {}", problem.severity, problem.to_string().replacen(&prefix, "", 1)))
        .collect();
    assert_eq!(seen, expected, "{content}");
}

#[test]
fn a_wrong_value_is_left_out_and_the_rest_holds() {
    let content = r#"{
        "model": 5,
        "effortLevel": "huge",
        "autoCompactWindow": 0,
        "autoCompactEnabled": "yes",
        "env": {"A": 1, "B": "b"},
        "permissions": {"allow": ["Read", 7], "deny": ["Bash"]},
        "hooks": {"Stop": {}}
    }"#;
    let advice = "Correct or remove it; the rest of the file holds.";
    check(
        content,
        &[
            &format!("Warning 2:18: `model` must be text, not a number. {advice}"),
            &format!(
                "Warning 3:24: `effortLevel` must be \"low\", \"medium\", \"high\", \"xhigh\" or \"max\", not \"huge\". {advice}"
            ),
            &format!("Warning 4:30: `autoCompactWindow` must be a whole number from 1 on, not 0. {advice}"),
            &format!("Warning 5:31: `autoCompactEnabled` must be true or false, not text. {advice}"),
            &format!("Warning 6:22: `env.A` must be text, not a number. {advice}"),
            &format!("Warning 7:43: `permissions.allow[1]` must be text, not a number. {advice}"),
            "Warning 8:27: `hooks.Stop` must be a list, not an object. Correct or remove it: these hooks do not run. The rest of \
             the file holds.",
        ],
    );
    let machine = Machine::new(&[("home/.claude/settings.json", content)]);
    let settings = machine.read(None).effective(true).settings;
    assert_eq!(settings.env.keys().collect::<Vec<_>>(), ["B"]);
    assert_eq!(settings.permissions.allow[0].value, "Read");
    assert_eq!(settings.permissions.deny[0].value, "Bash");
}

/// A hook whose `onFailure` blocks says that nothing passes without it.
#[test]
fn hooks_that_stand_where_nobody_looks_are_never_lost_in_silence() {
    let check = |around: fn(&str) -> String, expected: &str| {
        let advice = "Correct it: nothing starts without a hook whose \"onFailure\" blocks.";
        let strict = around(r#"{"hooks":[{"type":"command","command":"x","onFailure":"block"}]}"#);
        check(&strict, &[&format!("Fatal {expected}. {advice}")]);
        let advice = "Correct or remove it: these hooks do not run. The rest of the file holds.";
        let loose = around(r#"{"hooks":[{"type":"command","command":"x"}]}"#);
        check(&loose, &[&format!("Warning {expected}. {advice}")]);
    };
    check(
        |group| format!(r#"{{"hooks":{{"PreToolUse":{group}}}}}"#),
        "1:24: `hooks.PreToolUse` must be a list, not an object",
    );
    check(
        |group| format!(r#"{{"hooks":{{"PreToolUse":[[{group}]]}}}}"#),
        "1:25: `hooks.PreToolUse[0]` must be an object, not a list",
    );
    check(|group| format!(r#"{{"hooks":[{group}]}}"#), "1:10: `hooks` must be an object, not a list");
    check(
        |group| format!(r#"{{"hook":{{"PreToolUse":[{group}]}}}}"#),
        "1:9: Unknown setting `hook`; did you mean `hooks`?",
    );
    check(
        |group| format!(r#"{{"permissions":{{"hooks":{{"PreToolUse":[{group}]}}}}}}"#),
        "1:25: Unknown setting `permissions.hooks`; did you mean `hooks`?",
    );
}

#[test]
fn lost_hooks_stop_nothing_where_no_hook_would_run() {
    let lost = r#""hooks":{"PreToolUse":{"hooks":[{"onFailure":"block"}]}}"#;
    let check = |files: &[(&str, String)], trusted: bool, stops: bool| {
        let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (*file, &**text)).collect();
        let effective = Machine::new(&files).read(None).effective(trusted);
        assert_eq!(effective.fatal().is_some(), stops, "{files:?}: {:?}", effective.problems);
    };
    let (user, project) = ("home/.claude/settings.json", "work/app/.claude/settings.json");
    let managed = "etc/claude-code/managed-settings.json";
    let plain = || format!("{{{lost}}}");
    let with = |more: &str| format!("{{{lost},{more}}}");
    check(&[(project, plain())], true, true);
    check(&[(project, plain())], false, false);
    check(&[(user, plain())], false, true);
    check(&[(user, with(r#""disableAllHooks":true"#))], true, false);
    check(&[(user, r#"{"disableAllHooks":true}"#.into()), (managed, plain())], true, true);
    check(&[(managed, with(r#""disableAllHooks":true"#))], true, false);
    check(&[(user, plain()), (managed, r#"{"allowManagedHooksOnly":true}"#.into())], true, false);
    check(&[(managed, with(r#""allowManagedHooksOnly":true"#))], true, true);
}

#[test]
fn what_forbids_is_never_left_out() {
    let stops = "Correct it: nothing starts while something that protects you may be left out.";
    let fatal = |content: &str, expected: &str| check(content, &[&format!("Fatal {expected}. {stops}")]);
    fatal(r#"{"permissions":{"deny":"Bash"}}"#, "1:24: `permissions.deny` must be a list of texts, not text");
    fatal(
        r#"{"permissions":{"deny":["Bash",["x"]]}}"#,
        "1:32: `permissions.deny[1]` must be text, not a list",
    );
    fatal(r#"{"permissions":{"ask":null}}"#, "1:23: `permissions.ask` must be a list of texts, not null");
    fatal(r#"{"permissions":["deny"]}"#, "1:16: `permissions` must be an object, not a list");
    fatal(
        r#"{"permissions":{"disableBypassPermissionsMode":true}}"#,
        "1:48: `permissions.disableBypassPermissionsMode` must be \"disable\", not true or false",
    );
    fatal(r#"{"sandbox":true}"#, "1:12: `sandbox` must be an object, not true or false");
    fatal(r#"{"sandbox":{"enabled":"yes"}}"#, "1:23: `sandbox.enabled` must be true or false, not text");
    fatal(
        r#"{"sandbox":{"filesystem":{"denyRead":[1]}}}"#,
        "1:39: `sandbox.filesystem.denyRead[0]` must be text, not a number",
    );
    fatal(
        r#"{"sandbox":{"credentials":{"files":[{"mode":"deny"}]}}}"#,
        "1:37: `sandbox.credentials.files[0]` has no `path`",
    );
    fatal("[]", "1:1: settings must be an object, not a list");
}

#[test]
fn a_file_that_cannot_be_used_stops_everything() {
    let files = [
        "home/.claude/settings.json",
        "home/.windlass/settings.json",
        "work/app/.claude/settings.json",
        "work/app/.windlass/settings.local.json",
        "etc/claude-code/managed-settings.json",
        "etc/claude-code/managed-settings.d/a.json",
    ];
    for file in files {
        check_in(
            file,
            "{\"permissions\": {\n\"deny\": [\"Bash\",]}}",
            &["Fatal 2:16: there is a comma after the last value. Remove the comma."],
        );
    }
    let advice = "Correct the file or move it away: nothing starts while its rules cannot be known.";
    let unusable = |make: &dyn Fn(&std::path::Path), expected: &str| {
        let machine = Machine::new(&[("home/.claude/other", "")]);
        let file = machine.path("home/.claude/settings.json");
        make(&file);
        let effective = machine.read(None).effective(true);
        assert_eq!(
            effective.fatal().unwrap().to_string(),
            format!("{}: {expected}. {advice}", file.display())
        );
    };
    unusable(&|file| std::fs::create_dir(file).unwrap(), "it is not a regular file");
    unusable(&|file| symlink("/dev/zero", file).unwrap(), "it is not a regular file");
    unusable(&|file| std::fs::write(file, vec![b' '; 1024 * 1024 + 1]).unwrap(), "it is larger than 1 MiB");
    unusable(&|file| std::fs::write(file, b"{\"\xff\":1}").unwrap(), "it is not UTF-8 text");
    unusable(
        &|file| assert!(Command::new("mkfifo").arg(file).status().unwrap().success()),
        "it is not a regular file",
    );
}

/// Whoever gives one of these another name has something forbidden that nothing would hold to.
#[test]
fn a_name_that_was_probably_meant_to_forbid_stops_everything() {
    let check = |group: &str, name: &str, meant: &str| {
        let (mut content, mut column) = (format!("{{\"{name}\": []}}"), 2);
        for outer in group.rsplit('.').filter(|outer| !outer.is_empty()) {
            content = format!("{{\"{outer}\": {content}}}");
            column += outer.len() + 5;
        }
        let dot = if group.is_empty() { "" } else { "." };
        check(
            &content,
            &[&format!(
                "Fatal 1:{column}: Unknown setting `{group}{dot}{name}`. Did you mean `{meant}`? \
                 Correct it: nothing starts while something that protects you may be left out."
            )],
        );
    };
    check("", "permisions", "permissions");
    check("permissions", "denny", "permissions.deny");
    check("permissions", "dney", "permissions.deny");
    check("permissions", "block", "permissions.deny");
    check("permissions", "forbid", "permissions.deny");
    check("permissions", "denied", "permissions.deny");
    check("permissions", "disallowedTools", "permissions.deny");
    check("permissions", "confirm", "permissions.ask");
    check("permissions", "disableBypassPermissionMode", "permissions.disableBypassPermissionsMode");
    check("", "deny", "permissions.deny");
    check("", "ask", "permissions.ask");
    check("", "disallowedTools", "permissions.deny");
    check("", "disallowed_tools", "permissions.deny");
    check("", "sandbx", "sandbox");
    check("", "deniedDomains", "sandbox.network.deniedDomains");
    check("sandbox", "enable", "sandbox.enabled");
    check("sandbox", "denyRead", "sandbox.filesystem.denyRead");
    check("sandbox.filesystem", "denyReed", "sandbox.filesystem.denyRead");
    check("sandbox.filesystem", "denywrites", "sandbox.filesystem.denyWrite");
    check("sandbox.network", "denyDomains", "sandbox.network.deniedDomains");
    check("sandbox.network", "blockedDomains", "sandbox.network.deniedDomains");
    check("sandbox.credentials", "file", "sandbox.credentials.files");
}

#[test]
fn unknown_names_are_told_with_what_was_probably_meant() {
    check(
        r#"{"allowedTools": []}"#,
        &["Warning 1:2: Unknown setting `allowedTools`; ignored. Did you mean `permissions.allow`?"],
    );
    check(r#"{"somethingElse": 1}"#, &["Ignored 1:2: Unknown setting `somethingElse`; ignored."]);
    check(
        r#"{"sandbox": {"network": {"allowedDomain": []}}}"#,
        &[
            "Warning 1:26: Unknown setting `sandbox.network.allowedDomain`; ignored. Did you mean `sandbox.network.allowedDomains`?",
        ],
    );
    check(r#"{"$schema": "https://example.org/s.json"}"#, &[]);
}

#[test]
fn a_name_that_is_there_twice_holds_twice() {
    let content = "{\"permissions\": {\"deny\": [\"A\"]},\n\"permissions\": {\"deny\": [\"B\"], \"deny\": [\"C\"]},\n\"model\": \"x\", \"model\": \"y\"}";
    let advice = "Lists add up, and of single values the last holds. Join them.";
    check(
        content,
        &[
            &format!("Warning 2:32: `permissions.deny` is there twice. {advice}"),
            &format!("Warning 2:1: `permissions` is there twice. {advice}"),
            &format!("Warning 3:15: `model` is there twice. {advice}"),
        ],
    );
    let settings =
        Machine::new(&[("home/.claude/settings.json", content)]).read(None).effective(true).settings;
    let rules: Vec<_> = settings.permissions.deny.iter().map(|rule| &*rule.value).collect();
    assert_eq!(rules, ["A", "B", "C"]);
    assert_eq!(settings.stand_ins["ANTHROPIC_MODEL"], "y");
}

#[test]
fn doubles_inside_of_a_value_are_told_too() {
    check(
        r#"{"hooks":{"Stop":[{"hooks":[],"hooks":[{}]}]}}"#,
        &["Warning 1:31: `hooks` is there twice in `hooks.Stop[0]`. Only the last holds. Remove one."],
    );
    check(
        r#"{"sandbox":{"credentials":{"files":[{"path":"a","path":"b","mode":"deny"}]}}}"#,
        &["Fatal 1:49: `path` is there twice in `sandbox.credentials.files[0]`. \
           Correct it: nothing starts while something that protects you may be left out."],
    );
}

#[test]
fn what_no_system_takes_is_no_variable() {
    let advice = "Correct or remove it; the rest of the file holds.";
    check(
        r#"{"env":{"":"x","A=B":"x","C":"\u0000","D":"="}}"#,
        &[
            &format!("Warning 1:9: `env.` cannot be a variable. {advice}"),
            &format!("Warning 1:16: `env.A=B` cannot be a variable. {advice}"),
            &format!("Warning 1:26: `env.C` cannot be a variable. {advice}"),
        ],
    );
}

#[test]
fn a_name_cannot_write_on_the_screen() {
    check(
        &format!(r#"{{"\u001b[2J":1,"{}":1}}"#, "x".repeat(1000)),
        &[
            "Ignored 1:2: Unknown setting `<U+001B>[2J`; ignored.",
            &format!("Ignored 1:16: Unknown setting `{}...`; ignored.", "x".repeat(60)),
        ],
    );
    let many: Vec<String> = (0..1000).map(|count| format!("\"ANTHROPIC_{count}\":\"x\"")).collect();
    let machine =
        Machine::new(&[("work/app/.claude/settings.json", &format!("{{\"env\":{{{}}}}}", many.join(",")))]);
    let problems = machine.read(None).effective(true).problems;
    assert_eq!(problems.len(), 51);
    assert_eq!(problems[50].what, "950 more values are ignored in project settings");
}

#[test]
fn what_has_no_effect_is_told_once() {
    let machine = Machine::new(&[
        ("home/.claude/settings.json", r#"{"theme": "dark", "attribution": {"commit": "x"}}"#),
        ("work/app/.claude/settings.local.json", "{\n\"theme\": \"light\"}"),
    ]);
    let effective = machine.read(None).effective(true);
    machine.check_problems(
        &effective.problems,
        &[
            "home/.claude/settings.json:1:45: `attribution.commit`: Not supported yet; ignored.",
            "work/app/.claude/settings.local.json:2:10: `theme`: Not supported yet; ignored.",
        ],
    );
    assert!(effective.problems.iter().all(|problem| problem.severity == Severity::Ignored));
    let names: Vec<_> = effective.unsupported.iter().map(|key| &*key.value).collect();
    assert_eq!(names, ["attribution.commit", "theme"]);
    assert_eq!(effective.value("theme").unwrap().value, json!("light"));
    assert_eq!(effective.value("attribution").unwrap().value, json!({"commit": "x"}));
    assert_eq!(effective.value("agent"), None);
}

#[test]
fn a_mask_hides() {
    let content = r#"{"sandbox":{"credentials":{"files":[{"path":"~/k","mode":"mask"}]}}}"#;
    check(
        content,
        &[
            "Notice 1:37: `sandbox.credentials.files` with \"mask\" removes the secret without a placeholder. \
           Placeholders are not supported yet.",
        ],
    );
    let machine = Machine::new(&[("home/.claude/settings.json", content)]);
    let sandbox = machine.read(None).effective(true).settings.sandbox;
    assert_eq!(sandbox.paths("sandbox.credentials.files")[0], machine.path("home/k"));
}

#[test]
fn a_file_full_of_mistakes_is_told_in_short_and_in_time() {
    let members: Vec<String> = (0..40_000).map(|count| format!("\"unknownName{count}\":1")).collect();
    let rules: Vec<String> = (0..10_000).map(|count| format!("\"Bash({count})\"")).collect();
    let content = format!("{{{},\"permissions\":{{\"deny\":[{},1]}}}}", members.join(","), rules.join(","));
    let machine = Machine::new(&[("home/.claude/settings.json", &content)]);
    let start = std::time::Instant::now();
    let effective = machine.read(None).effective(true);
    assert!(start.elapsed() < std::time::Duration::from_secs(10));
    assert_eq!(effective.problems.len(), 52);
    assert!(effective.fatal().unwrap().what.starts_with("`permissions.deny[10000]`"));
    assert_eq!(effective.problems[51].what, "39950 more values are left out");
    assert_eq!(effective.settings.permissions.deny.len(), 10_000);
}

#[test]
fn what_protects_is_missed_behind_no_number_of_mistakes() {
    let check = |last: &str, expected: Option<&str>| {
        let members: Vec<String> = (0..200).map(|count| format!("\"unknownName{count}\":1")).collect();
        let content = format!("{{{},{last}}}", members.join(","));
        let machine = Machine::new(&[("home/.claude/settings.json", &content)]);
        let effective = machine.read(None).effective(true);
        let fatal = effective.fatal().map(|problem| problem.what.clone());
        match expected {
            None => assert_eq!(fatal, None, "{last}"),
            Some(expected) => {
                assert!(fatal.as_ref().is_some_and(|what| what.contains(expected)), "{fatal:?}");
            }
        }
    };
    check(r#""permissions":{"dney":["Bash(rm *)"]}"#, Some("`permissions.dney`"));
    check(r#""permissions":{"Ask":["Bash(rm *)"]}"#, Some("`permissions.Ask`"));
    check(r#""permissions":{"deny":[1]}"#, Some("`permissions.deny[0]`"));
    check(r#""permisions":{"deny":["Bash(rm *)"]}"#, Some("`permisions`"));
    check(r#""deny":["Bash(rm *)"]"#, Some("`deny`"));
    check(r#""disallowedTools":["Bash(rm *)"]"#, Some("`disallowedTools`"));
    check(r#""sandbox":{"filesystem":{"denyReed":["/a"]}}"#, Some("`sandbox.filesystem.denyReed`"));
    let hooks = r#"{"PreToolUse":[{"hooks":[{"type":"command","command":"x","onFailure":"block"}]}]}"#;
    check(&format!(r#""hoks":{hooks}"#), Some("`hoks`"));
    check(r#""modle":"m""#, None);
    check(r#""permissions":{"alow":["Bash(ls)"]}"#, None);
}

#[test]
fn shown_values_have_their_origin_and_hide_secrets() {
    let machine = Machine::new(&[
        (
            "home/.claude/settings.json",
            r#"{"env": {"MY_TOKEN": "sesame", "ANTHROPIC_BASE_URL": "http://u:sesame@h", "PLAIN": "p"},
            "permissions": {"deny": ["A"]},
            "hooks": {"Stop": [{"hooks": [{"type": "http", "url": "u", "headers": {"X": "sesame"}}]}]}}"#,
        ),
        ("work/app/.claude/settings.local.json", r#"{"permissions": {"deny": ["B"]}}"#),
    ]);
    let files: SettingsFiles = machine.read(None);
    let shown: Vec<String> = windlass_config::show(&files.effective(true))
        .into_iter()
        .map(|value| {
            let file = machine.relative(&value.file.unwrap());
            format!("{} = {} ({}, {file}:{})", value.key, value.value_json, value.level.name(), value.line)
        })
        .collect();
    let user = "(user, home/.claude/settings.json";
    assert_eq!(
        shown,
        [
            format!("env.ANTHROPIC_BASE_URL = \"(hidden)\" {user}:1)"),
            format!("env.MY_TOKEN = \"(hidden)\" {user}:1)"),
            format!("env.PLAIN = \"p\" {user}:1)"),
            format!(
                "hooks.Stop[0] = {{\"hooks\":[{{\"type\":\"http\",\"url\":\"u\",\"headers\":{{\"X\":\"(hidden)\"}}}}]}} {user}:3)"
            ),
            format!("permissions.deny[0] = \"A\" {user}:2)"),
            "permissions.deny[1] = \"B\" (local, work/app/.claude/settings.local.json:1)".to_owned(),
        ]
    );
}

#[test]
fn problems_are_reported_once_per_change_of_their_file() {
    let machine = Machine::new(&[
        ("home/.claude/settings.json", r#"{"theme": "dark", "foo": 1}"#),
        ("work/app/.claude/settings.json", r#"{"bar": 1}"#),
    ]);
    let store = ReportStore::new(&machine.path("home/.windlass"));
    let check = |expected: &[&str]| {
        let files = machine.read(None);
        let problems = files.effective(true).problems;
        let new = store.take_unreported(&files, &problems);
        let new: Vec<&str> = new.iter().filter_map(|problem| problem.what.split('`').nth(1)).collect();
        assert_eq!(new, expected);
    };
    check(&["foo", "theme", "bar"]);
    check(&[]);
    machine.write("work/app/.claude/settings.json", r#"{"bar": 1, "model": "x"}"#);
    check(&["bar"]);
    machine.write("work/app/.claude/settings.json", "{}");
    check(&[]);
    machine.write("home/.windlass/reported.json", "[broken");
    check(&["foo", "theme"]);
    check(&["foo", "theme"]);
    assert_eq!(std::fs::read_to_string(machine.path("home/.windlass/reported.json")).unwrap(), "[broken");
}
