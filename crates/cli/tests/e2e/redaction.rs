//! Secrets in what tools print: the model, the host and the log see the same text, without them.

use crate::resume::log;
use crate::support::Stage;

const KEY: &str = "our-own-key-0123456789";

/// Shaped like a token of a well-known kind.
fn token() -> String {
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat()
}

#[test]
fn secrets_in_a_file_reach_nobody() {
    let stage = Stage::call("Read", r#"{"file_path": "settings.env"}"#);
    let content = format!("GITHUB_TOKEN={}\nKEY={KEY}\nNAME=windlass\n", token());
    stage.project.write("settings.env", &content).unwrap();
    let told = stage.told(&[], &[("ANTHROPIC_API_KEY", KEY)]);
    assert_eq!(told.finished.code(), Some(0), "{}", told.finished.stderr);
    let request = stage.request(1)["messages"].to_string();
    let log = std::fs::read_to_string(log(&stage)).unwrap();
    for (where_to, text) in [("the model", &request), ("stdout", &told.finished.stdout), ("the log", &log)] {
        assert!(!text.contains(KEY) && !text.contains(&token()), "{where_to} got a secret: {text}");
        assert!(text.contains("GITHUB_TOKEN=[redacted: GitHub token]"), "{where_to}: {text}");
        assert!(text.contains("KEY=[redacted: known secret]"), "{where_to}: {text}");
        assert!(text.contains("NAME=windlass"), "{where_to}: {text}");
    }
}

#[test]
fn secrets_that_a_command_prints_reach_nobody() {
    let stage = Stage::call("Bash", r#"{"command": "cat secret.txt | base64 -w0; cat secret.txt"}"#);
    stage.project.write("secret.txt", KEY).unwrap();
    let told =
        stage.told(&["--dangerously-skip-permissions"], &[("ANTHROPIC_API_KEY", KEY), ("IS_SANDBOX", "1")]);
    assert_eq!(told.finished.code(), Some(0), "{}", told.finished.stderr);
    let request = stage.request(1)["messages"].to_string();
    assert!(!request.contains(KEY) && !told.finished.stdout.contains(KEY), "{request}");
    assert_eq!(request.matches("[redacted: known secret]").count(), 2, "{request}");
}

#[test]
fn secrets_that_a_stop_hook_prints_reach_nobody() {
    let stage = Stage::hello();
    stage.project.write("secret.txt", KEY).unwrap();
    let hook = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cat secret.txt"}]}]}}"#;
    let told = stage.told(&["--settings", hook], &[("ANTHROPIC_API_KEY", KEY)]);
    assert_eq!(told.finished.code(), Some(0), "{}", told.finished.stderr);
    let log = std::fs::read_to_string(log(&stage)).unwrap();
    for (where_to, text) in [("stdout", &told.finished.stdout), ("the log", &log)] {
        assert!(!text.contains(KEY) && text.contains("[redacted: known secret]"), "{where_to}: {text}");
    }
}
