//! `--rewind-files`: what calls did to files is taken back, up to a prompt.

use windlass_testkit::FinishedProcess;

use crate::support::{Stage, check_refused, result};

const ALLOWED: [&str; 2] = ["--allowedTools", "Write,Bash"];

/// A stage on which two prompts changed files, the id of the session and the uuids of the prompts.
fn stage() -> (Stage, String, Vec<String>) {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Write", "input": {"file_path": "made/new.txt", "content": "one\n"}}]},
            {"blocks": [{"tool": "Bash", "input": {"command": "echo more >> notes.txt"}}]},
            {"blocks": [{"text": "Done."}]},
            {"blocks": [{"tool": "Bash", "input": {"command": "rm notes.txt && touch elsewhere.$((1 + 1))"}}]},
            {"blocks": [{"text": "Gone."}]}]"#,
    );
    stage.project.write("notes.txt", "first\n").unwrap();
    let told = stage.run(&["-p", "Change it", "--output-format", "json", ALLOWED[0], ALLOWED[1]]);
    let id = result(&told)["session_id"].as_str().unwrap().to_owned();
    let again =
        stage.run(&["-p", "Remove it", "--resume", &id, "--output-format", "json", ALLOWED[0], ALLOWED[1]]);
    assert_eq!(result(&again)["result"], "Gone.", "{again:?}");
    let list = stage.run(&["--resume", &id, "--rewind-files"]);
    let points = printed(&list).lines().filter(|line| line.contains("changed")).map(str::to_owned);
    let uuids = points.map(|line| line[..36].to_owned()).collect();
    (stage, id, uuids)
}

#[track_caller]
fn printed(finished: &FinishedProcess) -> &str {
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    &finished.stdout
}

/// What is in the two files; a dash for one that does not exist.
fn files(stage: &Stage) -> [String; 2] {
    ["notes.txt", "made/new.txt"].map(|name| stage.project.read(name).unwrap_or_else(|_| "-".into()))
}

#[test]
fn files_go_back_to_a_prompt_and_forth_again() {
    let (stage, id, points) = stage();
    assert_eq!(points.len(), 2);
    let after = files(&stage);
    assert_eq!(after, ["-", "one\n"]);
    let dry = stage.run(&["--continue", "--rewind-files", &points[1], "--dry-run"]);
    assert!(
        printed(&dry).starts_with("Would rewind 1 path:\n  recreate          notes.txt (+2 -0)\n"),
        "{dry:?}"
    );
    assert_eq!(files(&stage), after, "a dry run changes nothing");
    printed(&stage.run(&["--resume", &id, "--rewind-files", &points[1]]));
    assert_eq!(files(&stage), ["first\nmore\n", "one\n"]);
    let first = stage.run(&["--resume", &id, "--rewind-files", &points[0]]);
    let told = printed(&first);
    for part in [
        "Rewound 2 paths:",
        "delete            made/new.txt (+0 -1)",
        "2 commands ran since then",
        "are not undone:",
        "rm notes.txt",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(files(&stage), ["first\n", "-"]);
    assert!(!stage.project.path().join("made").exists(), "a directory that a call made goes with its file");
    assert!(stage.project.path().join("elsewhere.2").exists(), "nobody could know of it");
    printed(&stage.run(&["--resume", &id, "--rewind-files", "undo"]));
    assert_eq!(files(&stage), ["first\nmore\n", "one\n"]);
    let nothing = stage.run(&["--resume", &id, "--rewind-files", &points[1]]);
    assert!(
        printed(&nothing).starts_with("Nothing to rewind: the files are already as they were then."),
        "{nothing:?}"
    );
}

#[test]
fn hosts_read_what_was_done_as_json() {
    let (stage, id, points) = stage();
    let json = |words: &[&str]| {
        let finished = stage.run(&[&["--resume", &id, "--output-format", "json"], words].concat());
        serde_json::from_str::<serde_json::Value>(&finished.stdout).unwrap()
    };
    let path = stage.project.path().canonicalize().unwrap().join("notes.txt");
    let expected =
        serde_json::json!({"canRewind": true, "filesChanged": [path], "insertions": 2, "deletions": 0});
    assert_eq!(json(&["--rewind-files", &points[1], "--dry-run"]), expected);
    assert_eq!(json(&["--rewind-files", &points[1]]), expected);
    let unknown = json(&["--rewind-files", "11111111-2222-4333-8444-555555555555"]);
    assert_eq!(unknown["canRewind"], false);
    assert!(unknown["error"].as_str().unwrap().contains("not a prompt of this session"), "{unknown}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let (stage, id, points) = stage();
    check_refused(&stage.run(&["--rewind-files", &points[0]]), &["--rewind-files needs a session"]);
    check_refused(&stage.run(&["--resume", &id, "--rewind-files", "x"]), &["x is not the UUID of a prompt"]);
    check_refused(&stage.run(&["--resume", &id, "--rewind-files", "undo"]), &["no rewind to undo"]);
    check_refused(
        &stage.run(&["--resume", &id, "--rewind-files", &points[0], "more"]),
        &["Leave out the prompt"],
    );
    check_refused(&stage.run(&["-p", "x", "--dry-run"]), &["--rewind-files"]);
}

#[test]
fn without_checkpoints_there_is_nothing_to_go_back_to() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Hello."}]}]"#);
    stage.run(&["-p", "Hi"]);
    let list = stage.run(&["--continue", "--rewind-files"]);
    assert!(printed(&list).contains("Hi (0 files changed)"), "{list:?}");
}
