//! Memory files reach the model with the first prompt.

use crate::support::Stage;

#[test]
fn the_users_and_the_projects_files_are_told() {
    let stage = Stage::hello();
    let user = stage.project.home().join(".claude");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("CLAUDE.md"), "Answer in rhymes.").unwrap();
    stage.project.write("CLAUDE.md", "The tests are in @spec.md").unwrap();
    stage.project.write("spec.md", "folder spec").unwrap();
    assert_eq!(stage.run(&["-p", "go"]).stdout, "Hello.\n");
    let text = stage.last_user_text();
    let places =
        ["Answer in rhymes.", "The tests are in @spec.md", "folder spec"].map(|words| text.find(words));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");

    let off = stage.command(&["-p", "go"]).env("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1").run().unwrap();
    assert_eq!(off.code(), Some(1), "the script has no second answer: {off:?}");
    assert!(!stage.last_user_text().contains("Answer in rhymes."));
}

#[test]
fn each_setting_source_brings_its_own_memory_files() {
    let check = |flags: &[&str], expected: &[&str]| {
        let stage = Stage::hello();
        stage.project.write("CLAUDE.md", "project words").unwrap();
        stage.project.write("CLAUDE.local.md", "local words").unwrap();
        let user = stage.project.home().join(".claude");
        std::fs::create_dir_all(&user).unwrap();
        std::fs::write(user.join("CLAUDE.md"), "user words").unwrap();
        assert_eq!(stage.run(&[&["-p", "go"], flags].concat()).stdout, "Hello.\n");
        let text = stage.last_user_text();
        let seen: Vec<_> = ["user words", "project words", "local words"]
            .into_iter()
            .filter(|words| text.contains(words))
            .collect();
        assert_eq!(seen, expected, "{flags:?}");
    };
    check(&[], &["user words", "project words", "local words"]);
    check(&["--setting-sources", ""], &[]);
    check(&["--setting-sources", "user"], &["user words"]);
    check(&["--setting-sources", "project"], &["project words"]);
    check(&["--setting-sources", "local"], &["local words"]);
    check(&["--setting-sources=user,local"], &["user words", "local words"]);
}
