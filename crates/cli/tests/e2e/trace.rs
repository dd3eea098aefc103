//! `windlass trace`: real sessions as pages.

use std::os::unix::fs::PermissionsExt as _;

use windlass_testkit::FinishedProcess;

use crate::support::{Stage, check_refused, result};

/// A stage whose model reads a file, and the id of a session in which it did.
fn stage(prompt: &str) -> (Stage, String) {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Read", "input": {"file_path": "notes.txt"}}]},
            {"blocks": [{"text": "Done."}]}, {"blocks": [{"text": "You are welcome."}]}]"#,
    );
    stage.project.write("notes.txt", "the needle lies here\n").unwrap();
    let told = stage.run(&["-p", prompt, "--output-format", "json"]);
    let id = result(&told)["session_id"].as_str().unwrap().to_owned();
    (stage, id)
}

#[track_caller]
fn printed(finished: &FinishedProcess) -> &str {
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    &finished.stdout
}

#[test]
fn a_session_is_drawn_into_a_private_file() {
    let (stage, id) = stage("Find the <needle>");
    let name = format!("windlass-trace-{}.html", &id[..8]);
    assert_eq!(printed(&stage.run(&["trace", &id])), format!("{name}\n"));
    let file = stage.project.path().join(&name);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let page = std::fs::read_to_string(&file).unwrap();
    for told in [
        &*id,
        "Find the &lt;needle&gt;",
        ">Read</td><td>notes.txt</td><td>succeeded",
        "completed",
        "2 requests",
    ] {
        assert!(page.contains(told), "{told} is not on the page");
    }
    // A trace may be written again, and by the beginning of an id.
    assert_eq!(printed(&stage.run(&["trace", &id[..6], "-o", &name])), format!("{name}\n"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), page);
    assert_eq!(printed(&stage.run(&["trace", &id, "-o", "-"])), page);
}

#[test]
fn a_resumed_session_shows_where_another_process_went_on() {
    let (stage, id) = stage("Find the needle");
    stage.run(&["-p", "Thanks.", "--resume", &id, "--output-format", "json"]);
    let finished = stage.run(&["trace", &id, "-o", "-"]);
    let page = printed(&finished);
    assert!(page.contains("resumed by another process after"), "{page}");
    assert!(page.contains("id=\"run2\"") && !page.contains("id=\"run3\""));
}

#[test]
fn no_other_file_is_written_over_without_a_word() {
    let (stage, id) = stage("Find the needle");
    check_refused(
        &stage.run(&["trace", &id, "-o", "notes.txt"]),
        &["notes.txt", "is not a trace", "--force"],
    );
    assert_eq!(stage.project.read("notes.txt").unwrap(), "the needle lies here\n");
    printed(&stage.run(&["trace", &id, "-o", "notes.txt", "--force"]));
    assert!(stage.project.read("notes.txt").unwrap().starts_with("<!DOCTYPE html>"));
}

#[test]
fn secrets_are_not_on_the_page() {
    let token = format!("ghp_{}", "aB3dE6gH9j".repeat(4).split_at(36).0);
    let (stage, id) = stage(&format!("Log in with {token} and find the needle"));
    let finished = stage.run(&["trace", &id, "-o", "-"]);
    let page = printed(&finished);
    assert!(page.contains("Log in with") && !page.contains(&token));
}

#[test]
fn bad_input_is_refused() {
    let (stage, id) = stage("Find the needle");
    check_refused(&stage.run(&["trace"]), &["Missing argument <SESSION>.", "windlass trace --help"]);
    check_refused(&stage.run(&["trace", "0000-nothing"]), &["0000-nothing"]);
    check_refused(&stage.run(&["trace", &id, "--htlm"]), &["--htlm", "windlass trace --help"]);
    check_refused(&stage.run(&["trace", &id, "-o", "none/such/page.html"]), &["none/such/page.html", "-o"]);
    check_refused(&stage.run(&["trace", &id, "-o", "."]), &["is not a trace"]);
}
