//! Hooks of settings files in whole runs: real programs around a scripted model.

use serde_json::{Value, json};

use crate::support::Stage;

/// Settings with one command at an event.
fn hook(event: &str, command: &str) -> Value {
    json!({"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}})
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
