//! What is said about a case, in the answer and beside it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// What the binary answers to a case on the second line, and what it complains about.
fn explained(case: &Value) -> (Value, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["permissions", "explain", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    write!(stdin, "\n{case}\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn after_a_redirection_the_reason_names_its_target() {
    let (answer, _) = explained(&json!({
        "cwd": "/srv/app", "rules": {"allow": ["WebFetch(domain:docs.rs)"]}, "tool": "WebFetch",
        "input": {"url": "https://docs.rs/a"}, "redirect_to": "https://example.com/b",
    }));
    assert_eq!(answer["reason"], "After a redirection: WebFetch of https://example.com/b needs permission.");
}

#[test]
fn a_rule_that_is_left_out_is_told_with_its_line() {
    let (answer, complaint) = explained(&json!({
        "cwd": "/srv/app", "rules": {"allow": ["Bash(make", "Bash(ls *)"]}, "tool": "Bash", "input": {"command": "ls"},
    }));
    assert_eq!(answer["decision"], "allow");
    assert!(
        complaint.contains("line 2: ") && complaint.contains("the allow rule `Bash(make`"),
        "{complaint}"
    );
    assert!(complaint.ends_with("it is left out.\n"), "{complaint}");
}

#[test]
fn a_call_that_is_never_made_is_explained_in_whole_sentences() {
    let (answer, _) =
        explained(&json!({ "cwd": "/srv/app", "tool": "Bash", "input": {"command": "echo a\0b"} }));
    let reason = answer["reason"].as_str().unwrap();
    assert!(reason.ends_with("which no command line can hold."), "{reason}");
}
