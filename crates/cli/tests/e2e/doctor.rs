//! What `windlass doctor` finds.

use serde_json::Value;
use windlass_testkit::{FinishedProcess, Project};

use crate::support::{WINDLASS, check_order};

fn doctor(project: &Project, flags: &[&str], variables: &[(&str, &str)]) -> FinishedProcess {
    let command = project.command(WINDLASS).args(["doctor"]).args(flags);
    variables.iter().fold(command, |command, (name, value)| command.env(name, value)).run().unwrap()
}

/// What it says with a key.
#[track_caller]
fn check(project: &Project, code: i32, lines: &[&str]) {
    let finished = doctor(project, &[], &[("ANTHROPIC_API_KEY", "sk-sesame")]);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(code), ""), "{}", finished.stdout);
    check_order(&finished.stdout, lines);
}

fn with_settings(settings: &str) -> Project {
    let project = Project::new().unwrap();
    project.write(".claude/settings.json", settings).unwrap();
    project
}

#[test]
fn a_place_where_runs_work() {
    let project = Project::new().unwrap();
    let home = project.home();
    let sessions = format!("  ok       Sessions are saved in {}/.windlass.\n", home.display());
    let lines = [
        concat!("windlass ", env!("CARGO_PKG_VERSION"), " ("),
        "\nPrograms\n",
        "  ok       GNU bash, version ",
        "\nSettings\n",
        "\nTrust\n",
        "  ok       No settings of this project need trust.\n",
        "\nModel\n",
        "  ok       ANTHROPIC_API_KEY is set (environment).\n",
        "  ok       The model is claude-",
        "\nSandbox\n",
        "Off by default (to turn it on, set `sandbox.enabled` to true in your settings.json); it ",
        "\nSessions\n",
        &sessions,
        " are free there.\n",
        "\nReady to run (the server was not contacted).\n",
    ];
    check(&project, 0, &lines);
    assert!(!home.join(".windlass").exists(), "it only looks");
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    std::fs::write(home.join(".claude/settings.json"), r#"{"sandbox": {"enabled": false}}"#).unwrap();
    check(&project, 0, &["\nSandbox\n", "Off in the settings (`sandbox.enabled`); it ", "\nSessions\n"]);
}

#[test]
fn ignored_settings_are_listed_with_their_place() {
    let project = with_settings("{\n\"mcpServers\": {},\n\"theme\": \"dark\"}");
    let file = project.path().join(".claude/settings.json");
    let file = file.display();
    let lines = [
        format!("  ok       {file} (project)\n"),
        format!("  note     {file}:2:1: Unknown setting `mcpServers`; ignored.\n"),
        format!("  note     {file}:3:10: `theme`: Not supported yet; ignored.\n"),
    ];
    check(&project, 0, &lines.each_ref().map(String::as_str));
}

#[test]
fn what_would_stop_a_run_is_a_problem() {
    let broken = with_settings(r#"{"permissions": {"dney": ["Read"]}}"#);
    let end = "\n1 problem would keep a run from working.\n";
    check(&broken, 1, &["  problem  ", "Unknown setting `permissions.dney`. Did you mean", end]);
    let rule = with_settings(r#"{"permissions": {"deny": ["Bash("]}}"#);
    check(&rule, 1, &["  problem  ", "Bash(", end]);
    let hook = r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "comand", "command": "x", "onFailure": "block"}]}]}}"#;
    let guarded = with_settings(hook);
    guarded.command(WINDLASS).args(["trust", "add"]).run().unwrap();
    check(&guarded, 1, &["  problem  ", "comand", end]);
    let unsaved = Project::new().unwrap();
    std::fs::write(unsaved.home().join(".windlass"), "").unwrap();
    check(&unsaved, 1, &["  problem  Sessions cannot be saved in ", "--no-session-persistence.\n", end]);
    let torn = doctor(&with_settings("{"), &[], &[("ANTHROPIC_API_KEY", "sk-sesame")]).stdout;
    check_order(&torn, &["  problem  ", "settings.json", end]);
    assert!(!torn.contains("No settings"), "{torn}");
    let no_key = doctor(&Project::new().unwrap(), &[], &[]);
    assert_eq!(no_key.code(), Some(1));
    check_order(&no_key.stdout, &["  problem  No API key is set. Set ANTHROPIC_API_KEY", end]);
}

#[test]
fn nothing_of_a_project_acts() {
    let made = r#"{"env": {"ANTHROPIC_MODEL": "evil", "MODE": "x"}, "permissions": {"allow": ["Bash"]},
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch made"}]}]}}"#;
    let project = with_settings(made);
    project.write("bin/git", "#!/bin/sh\ntouch made\n").unwrap();
    let lines = [
        "/bash (not run before this project is trusted)\n",
        "\nTrust\n",
        "  note     Project not trusted: 4 settings ignored. Review them with `windlass trust`.\n",
        "The model is claude-",
    ];
    check(&project, 0, &lines);
    assert!(!project.path().join("made").exists());
    let trusted = project.command(WINDLASS).args(["trust", "add"]).run().unwrap();
    assert_eq!(trusted.code(), Some(0), "{trusted:?}");
    check(&project, 0, &["  ok       This project is trusted.\n"]);
    assert!(!project.path().join("made").exists());
}

#[test]
fn programs_of_the_project_are_not_run() {
    let project = Project::new().unwrap();
    let fake = project.write("bin/git", "#!/bin/sh\ntouch made\n").unwrap();
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:.:/usr/bin:/bin", fake.parent().unwrap().display());
    doctor(&project, &[], &[("PATH", &path)]);
    assert!(!project.path().join("made").exists());
}

#[test]
fn no_secret_is_shown() {
    let project = Project::new().unwrap();
    let folder = project.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = r#"{"env": {"ANTHROPIC_AUTH_TOKEN": "sk-sesame"}}"#;
    std::fs::write(folder.join("settings.json"), settings).unwrap();
    let finished =
        doctor(&project, &[], &[("ANTHROPIC_BASE_URL", "http://me:sesame@localhost:1/?key=sesame")]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let origin = format!("ANTHROPIC_AUTH_TOKEN is set ({}:1).", folder.join("settings.json").display());
    check_order(&finished.stdout, &[&origin, "The base URL is http://localhost:1/."]);
    assert!(!finished.stdout.contains("sesame"), "{}", finished.stdout);
}

#[test]
fn programs_read_the_same_as_json() {
    let project = with_settings(r#"{"mcpServers": {}}"#);
    let report: Value = serde_json::from_str(&doctor(&project, &["--json"], &[]).stdout).unwrap();
    assert_eq!(report["ok"], false);
    let checks = report["checks"].as_array().unwrap();
    let find =
        |words: &str| checks.iter().find(|check| check["text"].as_str().unwrap().contains(words)).unwrap();
    assert_eq!(
        (&find("`mcpServers`")["topic"], &find("`mcpServers`")["status"]),
        (&"Settings".into(), &"note".into())
    );
    assert_eq!(find("No API key is set.")["status"], "problem");
}
