//! The demo shows a real session and ends well only if the sample's test passes.

use windlass_testkit::Project;

use crate::support::WINDLASS;

#[test]
fn the_demo_fixes_its_project() {
    let project = Project::new().unwrap();
    let finished = project.command(WINDLASS).args(["demo"]).run().unwrap();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    for text in [
        "the model is a script",
        "> test.sh fails.",
        "FAILED a last line without a line end",
        "Read  total.sh",
        "Grep  ^check",
        "+ while read -r _ amount ||",
        "Checked again: the test passes.",
        "no cost",
        "ANTHROPIC_API_KEY",
    ] {
        assert!(finished.stdout.contains(text), "{text:?} is not in {}", finished.stdout);
    }
    assert!(!finished.stdout.contains("not run"), "{}", finished.stdout);
    let folder = finished.stdout.lines().find_map(|line| line.strip_prefix("Project: ")).unwrap();
    let folder = std::path::Path::new(folder.split(" (").next().unwrap());
    let fixed = std::fs::read_to_string(folder.join("total.sh")).unwrap();
    assert!(fixed.contains("[ -n \"$amount\" ]"), "the folder is kept, with the change");
}

#[test]
fn without_bash_the_demo_fails_and_says_so() {
    let project = Project::new().unwrap();
    let finished = project.command(WINDLASS).args(["demo"]).env("PATH", "/nowhere").run().unwrap();
    assert_eq!(finished.code(), Some(1));
    assert!(!finished.stdout.contains("the test passes"), "{}", finished.stdout);
}
