//! Hooks of settings files in whole runs: real programs around a scripted model.

use serde_json::{Value, json};

use crate::support::Stage;

/// Settings with one command at an event.
fn hook(event: &str, command: &str) -> Value {
    json!({"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}})
}

#[test]
fn hooks_hear_whether_a_session_is_new_goes_on_or_is_a_copy() {
    let id = "6f1d1f6e-58a5-4b0e-9f0e-0d9f1b1c2d3e";
    let stage = Stage::new(r#"[{"blocks": [{"text": "Hello."}], "repeat": 5}]"#);
    let settings = hook("SessionStart", "cat > started.json").to_string();
    let check = |flags: &[&str], source: &str, is_same: bool| {
        let finished = stage.run(&[&["-p", "go", "--settings", &settings], flags].concat());
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let started: Value = serde_json::from_str(&stage.project.read("started.json").unwrap()).unwrap();
        assert_eq!(started["source"], source, "{flags:?}: {started}");
        assert_eq!(started["session_id"] == id, is_same, "{flags:?}: {started}");
    };
    check(&["--session-id", id], "startup", true);
    check(&["--resume", id], "resume", true);
    check(&["--resume", id, "--fork-session"], "fork", false);
    check(&["--resume", id, "--fork-session", "--no-session-persistence"], "fork", false);
    check(&["--resume", id], "resume", true);
}

#[test]
fn the_end_of_a_session_waits_as_long_as_the_user_says() {
    let check = |seconds: &str, limit_ms: Option<&str>, heard: bool| {
        let stage = Stage::hello();
        let settings = hook("SessionEnd", &format!("sleep {seconds}; touch ended")).to_string();
        let command = stage.command(&["-p", "go", "--settings", &settings]);
        let command = match limit_ms {
            Some(ms) => command.env("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", ms),
            None => command,
        };
        let finished = command.run().unwrap();
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Hello.\n"), "{finished:?}");
        assert_eq!(stage.project.read("ended").is_ok(), heard, "{seconds} s, {limit_ms:?}: {finished:?}");
    };
    check("0", None, true);
    check("3", None, false);
    check("3", Some("30000"), true);
    check("1", Some("200"), false);
}
