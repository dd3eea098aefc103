//! A log that cannot be written.

use std::os::unix::fs::PermissionsExt as _;

use crate::resume::log;
use crate::support::{Stage, Told};

fn told(stage: &Stage, wrapper: &str) -> Told {
    let flags = "-p go --output-format stream-json --verbose --allowedTools Bash";
    let line = format!("{wrapper} exec \"$WINDLASS\" {flags} \"$@\"");
    let command = stage.project.command("bash").server(&stage.server);
    let command = command.env("WINDLASS", crate::support::WINDLASS).args(["-c", &line, "bash"]);
    Told::new(command.run().unwrap())
}

/// The log may have so many blocks of 1024 bytes: the run ends, nothing is done that the log does not know of, and the session
/// goes on as soon as there is room.
#[test]
fn a_log_that_may_not_grow_ends_the_run_and_the_session_goes_on_later() {
    let long = "x".repeat(40_000);
    let stage = Stage::new(&format!(
        r#"[{{"blocks": [{{"text": "{long}"}}, {{"tool": "Bash", "input": {{"command": "touch made"}}}}]}}, {{"blocks": [{{"text": "Done."}}]}}]"#
    ));
    let limited = told(&stage, "ulimit -f 16;");
    limited.ended("error_during_execution", "store_failed", 1);
    assert!(stage.project.read("made").is_err(), "a command ran that the log does not know of");
    let error = limited.result["errors"][0].as_str().unwrap();
    assert!(error.contains("cannot write the session log"), "{error}");
    let finished = stage.run(&["-p", "--continue", "go on"]);
    assert_eq!(finished.stdout.trim(), "Done.", "{}", finished.stderr);
    assert!(std::fs::metadata(log(&stage)).unwrap().len() > 16 * 1024 || stage.requests() == 2);
}

/// Root may write everywhere, so a file stands where the directory should be.
#[test]
fn a_home_that_cannot_be_written_ends_the_run_and_says_what_to_do() {
    let stage = Stage::hello();
    std::fs::write(stage.project.home().join(".windlass"), "in the way").unwrap();
    let refused = told(&stage, "");
    refused.ended("error_during_execution", "store_failed", 1);
    refused.says(&["--no-session-persistence"]);
    assert_eq!(stage.requests(), 0, "nothing is asked before the prompt is in the log");
    let finished = stage.run(&["-p", "--no-session-persistence", "go"]);
    assert_eq!(finished.stdout.trim(), "Hello.");
    // No directory can be made there.
    let nowhere = Stage::hello();
    let lost = nowhere.told(&[], &[("WINDLASS_HOME", "/proc/windlass")]);
    lost.ended("error_during_execution", "store_failed", 1);
    lost.says(&["/proc/windlass", "WINDLASS_HOME", "--no-session-persistence"]);
    // A file is where a directory should be, and a project that needs trust is looked up there first.
    nowhere.project.write(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(make)"]}}"#).unwrap();
    let lost = nowhere.told(&[], &[("HOME", "/dev/null/x")]);
    lost.says(&["/dev/null/x", "--no-session-persistence"]);
    let home = std::fs::metadata(stage.project.home()).unwrap();
    assert_ne!(home.permissions().mode() & 0o700, 0);
}
