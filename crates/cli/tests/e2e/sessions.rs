//! `windlass sessions`: what is listed, shown, found, written and moved away, for real sessions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;
use windlass_testkit::FinishedProcess;

use crate::support::{Stage, check_refused, result};

/// A stage whose model reads a file with a secret, then says that it is done.
fn stage() -> Stage {
    let stage = Stage::call("Read", r#"{"file_path": "notes.txt"}"#);
    stage.project.write("notes.txt", "the needle lies here\n").unwrap();
    stage
}

impl Stage {
    fn sessions(&self, arguments: &[&str]) -> FinishedProcess {
        self.run(&[&["sessions"], arguments].concat())
    }

    /// What a command prints that succeeds.
    #[track_caller]
    fn printed(&self, arguments: &[&str]) -> String {
        let finished = self.sessions(arguments);
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{arguments:?}: {finished:?}");
        finished.stdout
    }

    /// Runs a prompt; returns the id of its session.
    fn prompted(&self, prompt: &str) -> String {
        let told = self.run(&["-p", prompt, "--output-format", "json"]);
        result(&told)["session_id"].as_str().unwrap().to_owned()
    }

    fn listed(&self) -> Vec<Value> {
        serde_json::from_str(&self.printed(&["list", "--json"])).unwrap()
    }

    fn kept(&self) -> PathBuf {
        self.project.home().join(".windlass")
    }
}

#[test]
fn a_session_is_listed_shown_and_searched() {
    let stage = stage();
    let nothing = stage.printed(&["list"]);
    assert!(
        nothing.contains("No sessions of this project yet") && nothing.contains("windlass -p"),
        "{nothing}"
    );
    assert!(stage.printed(&["list", "--all"]).contains("No sessions yet."));
    assert_eq!(stage.printed(&["list", "--json"]), "[]\n");

    let id = stage.prompted("Find the needle \u{1b}[31mnow");
    let list = stage.printed(&["list"]);
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert!(rows[0].starts_with("ID        LAST CHANGE  SUMMARY"), "{list}");
    assert_eq!(rows[1], format!("{}  just now     Find the needle now", &id[..8]));
    assert_eq!(stage.printed(&[]), list, "a list is what is meant without more words");

    let listed = stage.listed();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["sessionId"], id.as_str());
    assert_eq!(listed[0]["entrypoint"], "sdk-cli");
    let project = stage.project.path().canonicalize().unwrap();
    assert_eq!(listed[0]["cwd"], project.to_str().unwrap());
    assert!(listed[0]["path"].as_str().unwrap().starts_with(stage.kept().to_str().unwrap()));

    let shown = stage.printed(&["show", &id[..6]]);
    for words in [id.as_str(), "1 prompt, 1 call", "Last answer:\n  Done.", "windlass -p --resume"] {
        assert!(shown.contains(words), "{words:?} is not in {shown}");
    }
    let shown: Value = serde_json::from_str(&stage.printed(&["show", "find the", "--json"])).unwrap();
    assert_eq!((&shown["calls"], &shown["lastAnswer"]), (&1.into(), &"Done.".into()));

    let found = stage.printed(&["search", "NEEDLE"]);
    let lines: Vec<&str> = found.lines().map(str::trim).collect();
    assert!(lines[0].starts_with(&id[..8]), "{found}");
    assert!(lines[1].starts_with("You") && lines[1].ends_with("Find the needle now"), "{found}");
    assert!(lines[2].starts_with("Read") && lines[2].contains("the needle lies here"), "{found}");
    assert!(stage.printed(&["search", "haystack"]).contains("No matches for \"haystack\" in 1 session."));
    let found: Vec<Value> = serde_json::from_str(&stage.printed(&["search", "lies here", "--json"])).unwrap();
    assert_eq!((found.len(), &found[0]["who"]), (1, &"read".into()));
}

#[test]
fn lists_are_about_the_project_or_about_everything() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "A."}]}, {"blocks": [{"text": "B."}]}]"#);
    stage.prompted("here");
    let elsewhere = stage.project.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    stage.command(&["-p", "there"]).current_dir(&elsewhere).run().unwrap();
    let list = stage.printed(&["list"]);
    assert!(list.contains("here") && !list.contains("there"), "{list}");
    let all = stage.printed(&["list", "--all"]);
    assert!(all.contains("DIRECTORY") && all.contains("~/elsewhere  there"), "{all}");
    assert!(all.find("there") < all.find("  here"), "the latest first: {all}");
    let one = stage.printed(&["list", "--all", "--limit", "1"]);
    assert!(one.contains("1 older session not shown; add --limit"), "{one}");
}

#[test]
fn an_export_holds_everything_but_secrets() {
    let stage = stage();
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH";
    let id = stage.prompted(&format!("Use {key} and test-key"));
    let text = stage.printed(&["export", &id]);
    for words in ["== You (", "(calls Read)", "== Result of Read (", "the needle lies here", "Done."] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    assert!(!text.contains(key) && !text.contains("test-key"), "{text}");

    let file = stage.project.path().join("run.md");
    assert_eq!(stage.printed(&["export", &id, "-o", "run.md"]), "run.md\n");
    check_refused(&stage.sessions(&["export", &id, "-o", "run.md"]), &["run.md already exists", "--force"]);
    assert_eq!(stage.printed(&["export", &id, "-o", "run.md", "--force"]), "run.md\n");
    assert_eq!(stage.printed(&["export", &id, "-o", "-"]), text);
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("# Use ") && page.contains("Calls **Read**"), "{page}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let json: Value = serde_json::from_str(&stage.printed(&["export", &id, "--format", "json"])).unwrap();
    assert_eq!(json["session"]["sessionId"], id.as_str());
    assert!(json["messages"].as_array().unwrap().len() >= 4, "{json}");
    assert!(!json.to_string().contains(key), "{json}");
    check_refused(&stage.sessions(&["export", &id, "-o", "no/such/folder.md"]), &["no/such/folder.md", "-o"]);
}

#[test]
fn a_removed_session_can_be_brought_back() {
    let stage = stage();
    let id = stage.prompted("Find it");
    let missing = "00000000-0000-4000-8000-000000000000";
    check_refused(&stage.sessions(&["rm", &id, missing]), &[missing, "windlass sessions list --all"]);
    check_refused(&stage.sessions(&["rm", "Find it"]), &["Find it"]);
    assert_eq!(stage.listed().len(), 1, "one wrong id moves none");
    let moved = stage.printed(&["rm", &id]);
    assert!(moved.contains(&id) && moved.contains("windlass sessions restore"), "{moved}");
    assert_eq!(stage.listed(), Vec::<Value>::new());
    check_refused(&stage.sessions(&["show", &id]), &[&id]);
    assert!(stage.printed(&["restore", &id]).contains(&id));
    assert_eq!(stage.listed().len(), 1);
    check_refused(&stage.sessions(&["restore", &id]), &["no session in the trash"]);
}

#[test]
fn a_session_that_is_open_is_not_removed() {
    let stage = Stage::call("Bash", r#"{"command": "touch began; sleep 20"}"#);
    let running =
        stage.command(&["-p", "wait", "--dangerously-skip-permissions"]).env("IS_SANDBOX", "1").start();
    stage.wait_for_file("began");
    let id = stage.listed()[0]["sessionId"].as_str().unwrap().to_owned();
    check_refused(&stage.sessions(&["rm", &id]), &[&id, "is using the session"]);
    assert_eq!(stage.listed().len(), 1);
    drop(running);
}

#[test]
fn mistakes_are_explained() {
    let stage = Stage::hello();
    check_refused(
        &stage.sessions(&["lst"]),
        &["windlass sessions lst", "Did you mean `windlass sessions list`?"],
    );
    check_refused(&stage.sessions(&["show"]), &["Missing argument <SESSION>."]);
    check_refused(&stage.sessions(&["list", "--wether"]), &["Unexpected argument --wether."]);
    check_refused(&stage.sessions(&["list", "--limit", "x"]), &["--limit x is not understood"]);
    check_refused(&stage.sessions(&["export", "a", "--format", "pdf"]), &["markdown"]);
    check_refused(&stage.sessions(&["search", " "]), &["missing search words"]);
    check_refused(&stage.sessions(&["show", "nothing"]), &["no session matches \"nothing\""]);
    for arguments in [&["--help"][..], &["list", "--help"]] {
        assert!(stage.printed(arguments).contains("Usage: windlass sessions"), "{arguments:?}");
    }
    assert!(stage.run(&["help", "sessions"]).stdout.contains("restore"));
    let none = stage.command(&["sessions"]).env("WINDLASS_SYNC", "").env("MAX_THINKING_TOKENS", "x").run();
    check_refused(&none.unwrap(), &["MAX_THINKING_TOKENS=x"]);
}

#[test]
fn sessions_are_kept_where_their_readers_look() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "A."}]}, {"blocks": [{"text": "B."}]}]"#);
    let home = stage.project.home();
    let reference = home.join(".claude");
    std::fs::create_dir(&reference).unwrap();
    let count = |folder: PathBuf| std::fs::read_dir(folder.join("projects")).map_or(0, Iterator::count);
    stage.prompted("by a person");
    assert_eq!((count(stage.kept()), count(reference.clone())), (1, 0));
    assert_eq!(std::fs::read_dir(&reference).unwrap().count(), 0, "it is only read");
    let by_sdk = stage.command(&["-p", "by an SDK"]).env("CLAUDE_CODE_ENTRYPOINT", "sdk-py");
    by_sdk.env("WINDLASS_HOME", home.join("own")).run().unwrap();
    assert_eq!((count(stage.kept()), count(reference.clone()), count(home.join("own"))), (1, 1, 0));
    let shared =
        stage.command(&["sessions", "list", "--json"]).env("CLAUDE_CONFIG_DIR", &reference).run().unwrap();
    let listed: Vec<Value> = serde_json::from_str(&shared.stdout).unwrap();
    assert_eq!((listed.len(), &listed[0]["entrypoint"]), (1, &"sdk-py".into()));
}

#[test]
fn a_project_that_was_moved_finds_its_sessions() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "A."}]}, {"blocks": [{"text": "B."}]}]"#);
    let (old, new) = (stage.project.home().join("old"), stage.project.home().join("new"));
    std::fs::create_dir_all(old.join(".git")).unwrap();
    std::fs::write(old.join(".git/HEAD"), "ref: refs/heads/topic\n").unwrap();
    std::fs::write(old.join(".git/config"), "[remote \"origin\"]\n\turl = git@code.example:team/app.git\n")
        .unwrap();
    let first = stage.command(&["-p", "first"]).current_dir(&old).run().unwrap();
    assert_eq!(first.stdout, "A.\n", "{first:?}");
    std::fs::rename(&old, &new).unwrap();
    let list = stage.command(&["sessions"]).current_dir(&new).run().unwrap().stdout;
    assert!(list.contains("~/old") && list.contains("topic") && list.contains("first"), "{list}");
    let second = stage.command(&["-p", "second", "--continue"]).current_dir(&new).run().unwrap();
    assert_eq!(second.stdout, "B.\n", "{second:?}");
    assert!(stage.last_user_text().contains("first"), "{}", stage.last_user_text());
}
