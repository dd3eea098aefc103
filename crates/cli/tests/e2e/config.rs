//! What `windlass config` says.

use windlass_testkit::{FinishedProcess, Project};

use crate::support::{WINDLASS, check_order, check_refused};

fn windlass(project: &Project, arguments: &[&str]) -> FinishedProcess {
    project.command(WINDLASS).args(arguments).run().unwrap()
}

/// A project with these settings.
fn with_settings(settings: &str) -> Project {
    let project = Project::new().unwrap();
    project.write(".claude/settings.json", settings).unwrap();
    project
}

#[test]
fn rules_that_are_not_understood_are_marked() {
    let check = |settings: &str, flags: &[&str], code: i32, stdout: &str, stderr: &str| {
        let finished = windlass(&with_settings(settings), &[&["config", "show"], flags].concat());
        assert_eq!(finished.code(), Some(code), "{finished:?}");
        assert!(finished.stdout.contains(stdout) && finished.stderr.contains(stderr), "{finished:?}");
    };
    let deny = r#"{"permissions": {"deny": ["Read", "Bash("]}}"#;
    check(deny, &[], 1, "permissions.deny[1] = \"Bash(\" is invalid: ", "runs cannot start: ");
    check(deny, &["--json"], 1, "\"problem\":", "");
    let allow = r#"{"permissions": {"allow": ["Bash("]}}"#;
    check(allow, &["--trust-project"], 0, "permissions.allow[0] = \"Bash(\" is invalid: ", "");
    check(allow, &[], 0, "", ".claude/settings.json:1: invalid allow rule `Bash(` (waiting for trust)");
    check(
        r#"{"permissions": {"deny": ["Read"]}}"#,
        &[],
        0,
        "[0] = \"Read\"  (project, .claude/settings.json:1)\n",
        "",
    );
}

#[test]
fn a_name_that_is_not_set_is_told_with_the_nearest() {
    let project = with_settings(r#"{"permissions": {"deny": ["Read"]}}"#);
    let check = |key: &str, expected: &str| {
        let finished = windlass(&project, &["config", "show", key]);
        assert_eq!((finished.code(), finished.stdout.trim()), (Some(0), expected), "{finished:?}");
    };
    check("permisions", "No value is set whose name begins with permisions. Did you mean permissions?");
    check(
        "nothing",
        "No value is set whose name begins with nothing. `windlass config show` lists all values.",
    );
    check("model", "model is not set here. `windlass config list model` explains it.");
}

#[test]
fn values_fit_into_80_columns_with_their_origin() {
    let project = with_settings(
        r#"{"model": "opus", "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
            {"type": "command", "command": "./first-check --with-many-words"},
            {"type": "command", "command": "./second-check"}]}]}}"#,
    );
    let shown = windlass(&project, &["config", "show", "--trust-project"]).stdout;
    let expected = [
        "hooks.PreToolUse[0].matcher = \"Bash\"  (project, .claude/settings.json:1)\n",
        "hooks.PreToolUse[0].hooks[0] = {",
        "./first-check --with-many-words\"}\n    (project, .claude/settings.json:1)\n",
        "hooks.PreToolUse[0].hooks[1] = {",
        "model = \"opus\"  (project, .claude/settings.json:1)\n",
    ];
    check_order(&shown, &expected);
    let user = project.home().join(".claude/settings.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    std::fs::write(user, r#"{"permissions": {"ask": ["WebFetch"]}}"#).unwrap();
    let shown = windlass(&project, &["config", "show", "permissions"]).stdout;
    assert!(shown.contains("(user, ~/.claude/settings.json:1)"), "{shown}");
}

#[test]
fn settings_are_listed_for_a_terminal() {
    let project = Project::new().unwrap();
    let list = |arguments: &[&str]| windlass(&project, &[&["config", "list"], arguments].concat());
    let all = list(&[]).stdout;
    assert!(!all.contains('|') && all.lines().all(|line| line.chars().count() <= 80), "{all}");
    check_order(
        &all,
        &[
            "\nenv\n    Environment variables",
            "permissions.allow\n    Rules",
            "Value: a list of texts. Default: none.\n",
        ],
    );
    let some = list(&["sandbox"]).stdout;
    assert!(some.starts_with("sandbox.") && !some.contains("permissions.allow\n"), "{some}");
    check_refused(&list(&["wether"]), &["unknown setting `wether`.", "windlass config list"]);
    check_refused(&list(&["modle"]), &["Did you mean model?"]);
}

#[test]
fn what_has_the_shape_of_a_secret_is_hidden() {
    let project =
        with_settings(r#"{"env": {"DEPLOY": "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "MODE": "fast"}}"#);
    for flags in [&[][..], &["--json"]] {
        let shown = windlass(&project, &[&["config", "show", "--trust-project"], flags].concat()).stdout;
        assert!(shown.contains("redacted") && shown.contains("fast") && !shown.contains("ghp_"), "{shown}");
    }
}
