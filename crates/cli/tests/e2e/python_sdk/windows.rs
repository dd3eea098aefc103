//! What lists show. They read only the two ends of a file, so what they need has to stand there.

use serde_json::{Value, json};

use super::{Live, Sdk, bash, check_requests, converse, kept, prompt_id, says, stage};
use crate::host::{Host, prompt};
use crate::resume::log;
use crate::support::Stage;

/// More than a list reads at one end.
const LONG: usize = 80 * 1024;

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

#[track_caller]
fn check(listed: &Value, stage: &Stage, [summary, first, title]: [Option<&str>; 3]) {
    let seen = ["summary", "first_prompt", "custom_title"].map(|key| listed[key].as_str());
    assert_eq!(seen, [summary, first, title], "{listed}");
    assert_eq!(listed["cwd"], stage.project.path().to_str().unwrap());
    let modified = listed["last_modified"].as_u64().unwrap();
    let created = listed["created_at"].as_u64().unwrap();
    assert!(created <= modified + 1 && created + 600_000 > now_ms() && modified <= now_ms() + 1, "{listed}");
}

#[test]
fn a_session_is_listed_with_all_that_is_known_of_it() {
    let stage = stage(&json!([says("One."), says("Two."), says("Three.")]));
    stage.project.write(".git/HEAD", "ref: refs/heads/topic\n").unwrap();
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    assert_eq!(sdk.list(&stage), [Value::Null; 0]);
    let live = converse(&stage, &[], &[(1, "first\nof all"), (2, "second")]);
    let [listed] = &sdk.list(&stage)[..] else { panic!("one session") };
    assert_eq!(listed["session_id"], live.id().as_str());
    check(listed, &stage, [Some("second"), Some("first of all"), None]);
    assert_eq!((&listed["git_branch"], &listed["tag"]), (&json!("topic"), &Value::Null));
    assert_eq!(listed["file_size"], log(&stage).metadata().unwrap().len());
    assert_eq!(&sdk.info(&live.id()), listed);
    assert_eq!(sdk.call("list_sessions", &json!({})), json!([listed]), "without a directory too");

    let named = converse(&stage, &["--name", "the parser"], &[(3, "third")]);
    let ids: Vec<Value> = sdk.list(&stage).iter().map(|listed| listed["session_id"].clone()).collect();
    assert_eq!(ids, [json!(named.id()), json!(live.id())], "the newest first");
    check(&sdk.info(&named.id()), &stage, [Some("the parser"), Some("third"), Some("the parser")]);
}

#[test]
fn a_session_in_which_nothing_was_said_is_not_listed() {
    let stage = stage(&json!([says("Never.")]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    assert_eq!(Host::start(&stage, &[]).end().1.code(), Some(0));
    assert_eq!(sdk.list(&stage), [Value::Null; 0]);
    assert!(!kept(&stage).join("projects").exists() || crate::resume::logs(&stage).is_empty());
}

#[test]
fn long_sessions_keep_their_names_and_prompts_in_sight() {
    let big = json!({"blocks": [bash("seq 1 6000"), bash("seq 2 6000"), bash("seq 3 6000")]});
    let stage = stage(&json!([says("One."), big, big, says("Two."), big, says("Three.")]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let first = converse(&stage, &["--name", "the parser"], &[(1, "first")]);
    let id = first.id();
    sdk.call("tag_session", &json!({"session_id": id, "tag": "important"}));
    let second = converse(&stage, &["--resume", &id], &[(2, "second"), (3, "third")]);
    assert!(log(&stage).metadata().unwrap().len() > LONG as u64 * 2, "a list does not see all of it");
    let listed = sdk.info(&id);
    check(&listed, &stage, [Some("the parser"), Some("first"), Some("the parser")]);
    assert_eq!(listed["tag"], "important");
    assert_eq!(sdk.messages(&second.id()).len(), 6 + 3 * 6);
    check_requests(&stage);
}

#[test]
fn what_stands_before_the_first_prompt_may_be_long() {
    let stage = stage(&json!([says("One.")]));
    stage.project.write("CLAUDE.md", "Be kind. ".repeat(LONG / 9)).unwrap();
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let live = converse(&stage, &["--system-prompt", &"Be brief. ".repeat(LONG / 10)], &[(1, "first")]);
    let listed = sdk.info(&live.id());
    assert_eq!(listed["summary"], "first", "{listed}");
    assert_eq!(listed["cwd"], stage.project.path().to_str().unwrap());
    assert!(listed["created_at"].is_u64());
}

/// Otherwise only the end of a run tells lists what was asked last.
#[test]
fn a_long_prompt_is_listed_before_it_was_answered() {
    let much = json!({"blocks": [bash("seq 1 6000"), bash("seq 2 6000"), bash("seq 3 6000")]});
    let stage = stage(&json!([much, {"blocks": [bash("touch begun; sleep 30")]}]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let mut host = Host::start(&stage, &["--allowedTools", "Bash"]);
    host.say(&prompt(&format!("read this: {}", "words ".repeat(LONG / 6)), &prompt_id(1)));
    let live = Live(host.hear_until("user"));
    let check = |sdk: &mut Sdk| {
        let [listed] = &sdk.list(&stage)[..] else { panic!("one session") };
        assert_eq!(listed["session_id"], live.id().as_str());
        assert!(listed["summary"].as_str().unwrap().starts_with("read this: words"), "{listed}");
    };
    check(&mut sdk);
    while !host.hear_until("assistant").pop().unwrap().to_string().contains("begun") {}
    stage.wait_for_file("begun");
    check(&mut sdk);
}
