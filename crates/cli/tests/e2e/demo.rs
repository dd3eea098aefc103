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
fn the_demo_fits_and_its_commands_can_be_copied() {
    let project = Project::new().unwrap();
    let folder = project.path().join("it's here");
    std::fs::create_dir(&folder).unwrap();
    let finished = project.command(WINDLASS).args(["demo"]).env("TMPDIR", &folder).run().unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let is_text = |line: &&str| !line.starts_with([' ', '>']) && !line.starts_with("Project: ");
    let longest = finished.stdout.lines().filter(is_text).map(str::len).max().unwrap();
    assert!((60..=80).contains(&longest), "{longest} in {}", finished.stdout);
    let look = finished.stdout.lines().find(|line| line.starts_with("  cd ")).unwrap();
    let shell = std::process::Command::new("bash").args(["-c", look]).output().unwrap();
    assert!(shell.status.success(), "{look}: {shell:?}");
}

#[test]
fn without_what_it_needs_the_demo_fails_and_says_so() {
    let project = Project::new().unwrap();
    let finished = project.command(WINDLASS).args(["demo"]).env("PATH", "/nowhere").run().unwrap();
    assert_eq!(finished.code(), Some(1));
    assert!(!finished.stdout.contains("the test passes"), "{}", finished.stdout);
    assert!(finished.stderr.contains("it needs bash"), "{}", finished.stderr);
    let finished = project.command(WINDLASS).args(["demo"]).env("TMPDIR", "/nowhere").run().unwrap();
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(1), ""));
    assert!(finished.stderr.contains("set TMPDIR"), "{}", finished.stderr);
}
