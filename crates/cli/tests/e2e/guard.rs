//! Settings files, trust, hooks and the sandbox, in whole runs.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{STREAM, Stage, check_refused};

const TOUCH: &str = r#"{"command": "touch made"}"#;

/// A stage whose project has these settings.
fn with_settings(tool: &str, input: &str, settings: &str) -> Stage {
    let stage = Stage::call(tool, input);
    write(&stage.project.path().join(".claude/settings.json"), settings);
    stage
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn made(stage: &Stage) -> bool {
    stage.project.path().join("made").exists()
}

#[test]
fn what_a_project_allows_waits_for_trust_and_what_it_denies_does_not() {
    let check = |settings: &str, flags: &[&str], runs: bool| {
        let stage = with_settings("Bash", TOUCH, settings);
        let finished = stage.run(&[&["-p", "go"], flags].concat());
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert_eq!(made(&stage), runs, "{settings} {flags:?} {}", finished.stderr);
        let told = finished
            .stderr
            .contains("Project not trusted: 1 setting ignored. Review it with `windlass trust`.\n");
        assert_eq!(told, settings.contains("allow") && flags.is_empty(), "{}", finished.stderr);
    };
    let allow = r#"{"permissions": {"allow": ["Bash(touch *)"]}}"#;
    check(allow, &[], false);
    check(allow, &["--trust-project"], true);
    check(allow, &["--setting-sources", "user,project"], true);
    check(allow, &["--setting-sources", "user"], false);
    let deny = r#"{"permissions": {"deny": ["Bash(touch *)"]}}"#;
    check(deny, &["--allowedTools", "Bash"], false);
    check(deny, &["--allowedTools", "Bash", "--setting-sources", "user"], true);
}

#[test]
fn trust_is_given_once_and_lapses_with_the_content() {
    let allow = |rule: &str| format!(r#"{{"permissions": {{"allow": ["Bash({rule})"]}}}}"#);
    let stage = with_settings("Bash", TOUCH, &allow("touch made"));
    assert!(stage.run(&["trust"]).stdout.contains("not trusted"));
    assert!(stage.run(&["trust", "add"]).stdout.contains("is trusted"));
    stage.run(&["-p", "go"]);
    assert!(made(&stage));
    write(&stage.project.path().join(".claude/settings.json"), &allow("touch *"));
    let changed = stage.run(&["trust"]).stdout;
    let new =
        "New:\n  allow rule Bash(touch *) (.claude/settings.json:1)\nGone:\n  allow rule Bash(touch made)\n";
    assert!(changed.contains("changed") && changed.contains(new), "{changed}");
    assert!(stage.run(&["trust", "remove"]).stdout.contains("no longer trusted"));
}

#[test]
fn hosts_read_what_was_left_out_when_the_session_begins() {
    let stage = with_settings("Bash", TOUCH, r#"{"permissions": {"allow": ["Bash(touch *)"]}}"#);
    let finished = stage.run(&STREAM);
    assert!(finished.stderr.contains("Project not trusted: 1 setting ignored."), "{}", finished.stderr);
    let lines = finished.json_lines().unwrap();
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["untrusted_settings"], json!(["allow rule Bash(touch *)"]), "{init}");
}

#[test]
fn a_broken_restriction_stops_the_start_and_a_broken_permission_does_not() {
    let refused = |settings: &str, words: &[&str]| {
        let stage = with_settings("Bash", TOUCH, settings);
        check_refused(&stage.run(&["-p", "go"]), words);
        assert_eq!(stage.requests(), 0);
    };
    refused(r#"{"permissions": {"deny": ["Bash("]}}"#, &["settings.json:1", "Bash(", "not closed"]);
    refused("{\n\"permissions\": {\"ask\": [5]}}", &["settings.json:2"]);
    refused("{", &["settings.json"]);
    let stage = with_settings("Bash", TOUCH, r#"{"permissions": {"allow": ["Bash("], "alow": []}}"#);
    let finished = stage.run(&["-p", "go", "--trust-project"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    for words in ["`Bash(` is invalid", "; ignored. Did you mean `permissions.allow`?"] {
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
}

#[test]
fn a_hook_of_the_settings_blocks_before_anything_happens() {
    let hook = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "cat > asked.json; echo not now >&2; exit 2"}]}]}}"#;
    let stage = Stage::call("Bash", TOUCH);
    let finished = stage.run(&["-p", "go", "--allowedTools", "Bash", "--settings", hook]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(!made(&stage) && stage.last_user_text().contains("not now"));
    let asked: Value =
        serde_json::from_slice(&std::fs::read(stage.project.path().join("asked.json")).unwrap()).unwrap();
    assert_eq!(
        (&asked["tool_name"], &asked["tool_input"]["command"]),
        (&json!("Bash"), &json!("touch made"))
    );
    assert!(Path::new(asked["transcript_path"].as_str().unwrap()).exists());
}

#[test]
fn a_model_judges_in_auto_mode_and_where_it_cannot_the_user_decides() {
    let check = |verdict: &str, runs: bool, words: &str| {
        let responses = json!([
            {"blocks": [{"tool": "Bash", "input": {"command": "sh -c 'touch made'"}}]},
            {"blocks": [{"text": verdict}]},
            {"blocks": [{"text": "Done."}]},
        ]);
        let stage = Stage::new(&responses.to_string());
        let finished = stage.run(&["-p", "go", "--permission-mode", "auto"]);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert_eq!(made(&stage), runs, "{verdict} {}", finished.stderr);
        assert!(stage.request(2).to_string().contains(words), "{verdict}");
        let judge = stage.request(1).to_string();
        assert!(judge.contains("The user said: go") && judge.contains("touch made"), "{judge}");
    };
    check("ALLOW", true, "tool_result");
    check("BLOCK: it makes a file", false, "may do harm: it makes a file");
    check("I cannot say", false, "Denied: not running interactively");
}

#[test]
fn every_decision_is_in_the_log_with_its_rule() {
    let stage = with_settings("Bash", TOUCH, r#"{"permissions": {"deny": ["Bash(touch *)"]}}"#);
    let id = "6f1d1f6e-58a5-4b0e-9f0e-0d9f1b1c2d3e";
    stage.run(&["-p", "go", "--session-id", id]);
    let log = find(&stage.project.home(), &format!("{id}.jsonl")).expect("the log");
    let log = std::fs::read_to_string(log).unwrap();
    let ruled = log.lines().find(|line| line.contains(r#""kind":"ruled""#)).unwrap();
    let ruled: Value = serde_json::from_str(ruled).unwrap();
    let ruling = &ruled["of"]["ruling"];
    assert_eq!((&ruling["decision"], &ruling["rule"]["text"]), (&json!("deny"), &json!("Bash(touch *)")));
    assert!(ruling["rule"]["source"].as_str().unwrap().ends_with(".claude/settings.json:1"), "{ruling}");
}

/// A file of this name, wherever it is below a directory.
pub(crate) fn find(directory: &Path, name: &str) -> Option<std::path::PathBuf> {
    std::fs::read_dir(directory).ok()?.flatten().find_map(|entry| match entry.file_type().ok()? {
        kind if kind.is_dir() => find(&entry.path(), name),
        _ => (entry.file_name() == *name).then(|| entry.path()),
    })
}

/// Whether there is a sandbox to test.
fn has_sandbox() -> bool {
    let found = Path::new("/usr/bin/bwrap").exists();
    assert!(found || std::env::var_os("CI").is_none(), "CI has bubblewrap");
    found
}

#[test]
fn hooks_run_in_the_sandbox_if_the_settings_say_so() {
    if !has_sandbox() {
        return;
    }
    let check = |sandbox: &Value, escapes: bool, variable: &str| {
        let outside = tempfile::tempdir().unwrap();
        let escaped = outside.path().join("escaped");
        let command = format!(
            "cat > asked.json; touch made; touch {} 2> why; echo ${{MY_LOGIN:-none}} ${{CLAUDE_ENV_FILE:-none}} > variables",
            escaped.display()
        );
        let one = json!([{"hooks": [{"type": "command", "command": command}]}]);
        let settings = json!({"sandbox": sandbox, "hooks": {"SessionStart": one}}).to_string();
        let stage = Stage::hello();
        let finished =
            stage.command(&["-p", "go", "--settings", &settings]).env("MY_LOGIN", "m").run().unwrap();
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Hello.\n"), "{finished:?}");
        assert!(made(&stage), "{sandbox}: {finished:?}");
        assert!(stage.project.read("asked.json").unwrap().contains("SessionStart"));
        assert_eq!(escaped.exists(), escapes, "{sandbox}: {:?}", stage.project.read("why"));
        let variables = stage.project.read("variables").unwrap();
        assert!(variables.starts_with(variable), "{sandbox}: {variables}");
    };
    let hidden = json!({"envVars": [{"name": "MY_LOGIN", "mode": "deny"}]});
    check(&json!({"enabled": true, "credentials": hidden}), true, "m /");
    check(&json!({"enabled": false, "hooks": true}), true, "m /");
    check(&json!({"enabled": true, "hooks": true}), false, "m none");
    check(&json!({"enabled": true, "hooks": true, "credentials": hidden}), false, "none none");
}

#[test]
fn commands_run_unasked_in_the_sandbox_and_reach_nothing_else() {
    if !has_sandbox() {
        return;
    }
    let outside = tempfile::tempdir().unwrap();
    let command = format!("touch made; touch {}/escaped", outside.path().display());
    let stage = Stage::call("Bash", &json!({ "command": command }).to_string());
    let finished = stage.run(&["-p", "go", "--settings", r#"{"sandbox": {"enabled": true}}"#]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(made(&stage), "{} {}", finished.stderr, stage.last_user_text());
    assert!(!outside.path().join("escaped").exists());
    assert!(stage.last_user_text().contains("Read-only file system"), "{}", stage.last_user_text());
}

/// Every protected file, in a project that has none: the page on the sandbox names those that can be made all the same.
#[test]
fn protected_files_that_are_missing_cannot_be_made_in_the_sandbox() {
    if !has_sandbox() {
        return;
    }
    let stage = Stage::call("Bash", &json!({ "command": "sh make.sh; ls -A > seen" }).to_string());
    let names = windlass_engine::PROTECTED_FILES;
    let lines = names.map(|name| format!("echo evil > {name}\n")).concat();
    stage.project.write("make.sh", &lines).unwrap();
    let finished = stage.run(&["-p", "go", "--settings", r#"{"sandbox": {"enabled": true}}"#]);
    assert!(stage.project.path().join("seen").exists(), "{finished:?}");
    let page = include_str!("../../../../docs/SANDBOX.md");
    let (_, section) = page.split_once("## What is missing").unwrap();
    let section = section.split("\n## ").next().unwrap();
    for name in names {
        let family = name.split('.').next().unwrap_or(name);
        let is_exception = section.contains(&format!("`{name}`"))
            || matches!(family, "lefthook" | "lefthook-local" | "gradle-wrapper" | "maven-wrapper");
        assert_eq!(
            stage.project.path().join(name).exists(),
            is_exception,
            "{name}: {}",
            stage.last_user_text()
        );
    }
}

/// A project may have its commands confined; that nobody is asked about them any more is not its to say.
#[test]
fn a_project_that_turns_the_sandbox_on_spares_no_question() {
    if !has_sandbox() {
        return;
    }
    let check = |project: &str, settings: &str, runs: bool| {
        let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
        write(&stage.project.path().join(".claude/settings.json"), project);
        let finished = stage.run(&["-p", "go", "--settings", settings]);
        assert_eq!(made(&stage), runs, "{project} {settings}: {finished:?}");
    };
    let on = r#"{"sandbox": {"enabled": true}}"#;
    check(on, "{}", false);
    check(on, r#"{"permissions": {"ask": ["Bash"]}}"#, false);
    check(on, on, true);
    check("{}", on, true);
}

#[test]
fn what_is_denied_is_not_reached_by_another_name_of_the_process() {
    for path in
        ["/proc/self/cwd/.env", "/proc/thread-self/cwd/.env", "/dev/fd/../cwd/.env", "/proc/self/root/.env"]
    {
        let stage = Stage::call("Bash", &json!({ "command": format!("cat {path}") }).to_string());
        write(&stage.project.path().join(".env"), "TOKEN=sesame");
        let finished = stage
            .command(&[
                "-p",
                "go",
                "--permission-mode",
                "bypassPermissions",
                "--disallowedTools",
                "Read(.env)",
            ])
            .env("IS_SANDBOX", "1")
            .run()
            .unwrap();
        assert!(!stage.last_user_text().contains("sesame"), "{path}: {finished:?}");
        assert!(stage.last_user_text().contains("Read(.env)"), "{path}: {}", stage.last_user_text());
    }
}
