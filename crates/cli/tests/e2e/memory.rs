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
