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

/// Words in one line, so that it does not matter where lines break, and with the times left out.
fn masked(text: &str) -> String {
    let mut words = text.split_whitespace().peekable();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        let is_number = word.strip_prefix('(').is_some_and(|number| number.parse::<f64>().is_ok());
        let unit = words.next_if(|unit| is_number && unit.starts_with(['m', 's']));
        kept.push(
            unit.map_or(word.to_owned(), |unit| format!("(time{}", unit.trim_start_matches(['m', 's']))),
        );
    }
    kept.join(" ")
}

#[test]
fn the_picture_in_the_readme_is_the_demo() {
    let readme = include_str!("../../../../README.md");
    let (_, picture) = readme.split_once("```text\n").unwrap();
    let (picture, _) = picture.split_once("```").unwrap();
    // What is left out is marked.
    let parts: Vec<String> = picture.split('…').map(masked).filter(|part| !part.is_empty()).collect();
    assert!(parts.iter().any(|part| part.contains("Read total.sh (time)")), "{parts:?}");
    let finished = Project::new().unwrap().command(WINDLASS).args(["demo"]).run().unwrap();
    let shown = masked(&finished.stdout);
    let mut from = 0;
    for part in &parts {
        let at = shown[from..].find(part);
        from += at.unwrap_or_else(|| panic!("{part:?} is not where it should be in {}", finished.stdout));
        from += part.len();
    }
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
