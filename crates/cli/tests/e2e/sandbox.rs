//! What `windlass sandbox` says.

use windlass_testkit::{FinishedProcess, Project};

use crate::support::{Stage, WINDLASS, check_order};

fn windlass(project: &Project, arguments: &[&str]) -> FinishedProcess {
    project.command(WINDLASS).args(arguments).run().unwrap()
}

#[test]
fn the_sandbox_says_little_before_a_program() {
    let project = Project::new().unwrap();
    let run = |arguments: &[&str]| windlass(&project, &[&["sandbox", "run", "--"], arguments].concat());
    let finished = run(&["true"]);
    if finished.code() == Some(126) {
        assert!(std::env::var_os("CI").is_none(), "CI has a sandbox: {finished:?}");
        return;
    }
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.starts_with("sandbox: "), "{}", finished.stderr);
    assert!(windlass(&project, &["sandbox", "status"]).stdout.lines().count() > 5);
    let missing = run(&["nosuch --flag"]);
    assert_eq!(missing.code(), Some(127), "{missing:?}");
    check_order(&missing.stderr, &["\"nosuch --flag\" could not be started", "sh -c"]);
}

#[test]
fn a_path_of_bubblewrap_that_leads_nowhere_is_named() {
    let stage = Stage::hello();
    let settings = r#"{"sandbox": {"enabled": true, "bwrapPath": "/nope", "failIfUnavailable": false}}"#;
    let finished = stage.run(&["-p", "go", "--settings", settings]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stderr.contains("sandbox.bwrapPath is /nope"), "{}", finished.stderr);
}

/// A program that succeeds whatever it is given is no sandbox.
#[test]
fn the_status_is_that_of_a_sandbox_that_was_tried() {
    let project = Project::new().unwrap();
    std::fs::create_dir_all(project.home().join(".claude")).unwrap();
    let settings = r#"{"sandbox": {"enabled": true, "bwrapPath": "/bin/true"}}"#;
    std::fs::write(project.home().join(".claude/settings.json"), settings).unwrap();
    let finished = windlass(&project, &["sandbox", "status"]);
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(!said.contains("sandbox: bubblewrap"), "{finished:?}");
    assert!(said.contains("/bin/true does not behave like bubblewrap"), "{finished:?}");
}
