//! What the SDK changes behind the binary's back, while a session is open and afterwards.

use serde_json::{Value, json};

use super::{Live, Sdk, bash, check_requests, converse, kept, outline, prompt_id, says, stage, uuids};
use crate::host::{Host, prompt};
use crate::resume::log;
use crate::support::{Stage, Told};

/// The sessions as our own list shows them.
fn listed(stage: &Stage) -> Vec<Value> {
    serde_json::from_str(&stage.run(&["sessions", "list", "--json"]).stdout).unwrap()
}

/// Goes on with a session in a further process, and gives what the model was asked.
#[track_caller]
fn go_on(stage: &Stage, words: &str) -> (String, Value) {
    let stream = ["-p", "--output-format", "stream-json", "--verbose", "--resume", words, "go on"];
    let told = Told::new(stage.run(&stream));
    assert_eq!(
        (told.finished.code(), &told.result["subtype"]),
        (Some(0), &json!("success")),
        "{}",
        told.result
    );
    check_requests(stage);
    let mut messages = stage.request(stage.requests() - 1)["messages"].take();
    without_cache_marks(&mut messages);
    (told.result["session_id"].as_str().unwrap().to_owned(), messages)
}

/// What the provider is to keep depends on what it was sent before.
fn without_cache_marks(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_cache_marks),
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(without_cache_marks);
        }
        _ => {}
    }
}

#[test]
fn names_and_tags_that_come_while_a_session_is_open() {
    let stage =
        stage(&json!([says("One."), {"blocks": [bash("touch begun; until [ -e go ]; do sleep 0.05; done")]},
        says("Two."), says("Three."), says("Four.")]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let mut host = Host::start(&stage, &["--replay-user-messages", "--allowedTools", "Bash"]);
    host.say(&prompt("first", &prompt_id(1)));
    let mut lines = host.hear_until("result");
    let id = Live(lines.clone()).id();
    sdk.call("rename_session", &json!({"session_id": id, "title": "the parser"}));
    host.say(&prompt("second", &prompt_id(2)));
    lines.extend(host.hear_until("assistant"));
    stage.wait_for_file("begun");
    sdk.call("rename_session", &json!({"session_id": id, "title": "the new parser"}));
    sdk.call("tag_session", &json!({"session_id": id, "tag": "important"}));
    stage.project.write("go", "").unwrap();
    lines.extend(host.hear_until("result"));
    assert_eq!(host.end().1.code(), Some(0));
    assert_eq!(sdk.messages(&id).len(), 6);
    assert_eq!(
        uuids(&sdk.messages(&id)).into_iter().collect::<std::collections::BTreeSet<_>>(),
        Live(lines).standing()
    );

    let [session] = &listed(&stage)[..] else { panic!("one session") };
    assert_eq!((&session["title"], &session["tag"]), (&json!("the new parser"), &json!("important")));
    let (same, messages) = go_on(&stage, "the new parser");
    assert_eq!((same, messages.to_string().contains("first")), (id.clone(), true));
    sdk.call("tag_session", &json!({"session_id": id, "tag": null}));
    go_on(&stage, &id);
    assert_eq!((&sdk.info(&id)["tag"], &listed(&stage)[0]["tag"]), (&Value::Null, &Value::Null));
    assert_eq!(sdk.info(&id)["custom_title"], "the new parser");
}

#[test]
fn a_copy_goes_on_where_it_was_made_from_wherever_that_is() {
    let first =
        json!({"blocks": [{"text": "Two\u{2028}at once."}, bash("sleep 0.2; echo slow"), bash("echo fast")]});
    let rest = (0..20).map(|n| says(&format!("Answer {n}.")));
    let responses: Vec<Value> = [first].into_iter().chain(rest).collect();
    let stage = stage(&responses.into());
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let live = converse(&stage, &[], &[(1, "first"), (2, "second")]);
    let before = std::fs::read(log(&stage)).unwrap();
    let original = sdk.messages(&live.id());
    assert_eq!(original.len(), 9, "{:?}", outline(&original));

    for (index, upto) in uuids(&original).iter().enumerate() {
        let fork = sdk.fork(&live.id(), Some(upto), Some(&format!("copy {index}")));
        let (id, request) = go_on(&stage, &fork);
        assert_eq!(id, fork);
        let messages = sdk.messages(&fork);
        assert!(outline(&messages).contains(&"user: first".to_owned()), "{:?}", outline(&messages));
        assert!(request.to_string().contains("go on"));
        assert_eq!(request.to_string().contains("second"), index >= 7, "{request}");
    }
    let whole = sdk.fork(&live.id(), None, None);
    assert_eq!(outline(&sdk.messages(&whole)), outline(&original));
    let (id, request) = go_on(&stage, "first (fork)");
    assert_eq!(id, whole);
    let (_, expected) = go_on(&stage, &live.id());
    let (request, expected) = (request.as_array().unwrap(), expected.as_array().unwrap());
    let last = expected.len() - 1;
    assert_eq!(request[..last], expected[..last], "the copy asks what the original would have asked");
    assert_eq!((request.len(), request[last].to_string().contains("go on")), (expected.len(), true));
    assert!(std::fs::read(log_of(&stage, &live.id())).unwrap().starts_with(&before));
    let titles: Vec<Value> = listed(&stage).iter().map(|session| session["title"].clone()).collect();
    assert!(titles.contains(&json!("copy 3")) && titles.contains(&json!("first (fork)")), "{titles:?}");
}

fn log_of(stage: &Stage, id: &str) -> std::path::PathBuf {
    crate::resume::logs(stage).into_iter().find(|log| log.to_str().unwrap().contains(id)).unwrap()
}

#[test]
fn copies_of_sessions_that_are_open_compacted_or_cut_off() {
    let summary =
        json!({"when": {"contains": "replaced by what you write now"}, "blocks": [{"text": "They spoke."}]});
    let stage =
        stage(&json!([summary, says("One."), says("Two."), {"blocks": [bash("touch begun; sleep 30")]},
        says("Three."), says("Four."), says("Five.")]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let mut host = Host::start(&stage, &["--replay-user-messages", "--allowedTools", "Bash"]);
    let long = "many words ".repeat(3_000);
    host.say(&prompt(&long, &prompt_id(1)));
    let id = Live(host.hear_until("result")).id();
    let open = sdk.fork(&id, None, Some("while open"));
    host.say(&prompt("/compact", &prompt_id(2)));
    host.hear_until("result");
    host.say(&prompt("second", &prompt_id(3)));
    host.hear_until("result");
    let compacted = sdk.fork(&id, None, Some("compacted"));
    host.say(&prompt("third", &prompt_id(4)));
    host.hear_until("assistant");
    stage.wait_for_file("begun");
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    let cut_off = sdk.fork(&id, None, Some("cut off"));

    let (_, request) = go_on(&stage, &open);
    assert!(request.to_string().contains("many words"), "{request}");
    let (_, request) = go_on(&stage, &compacted);
    let text = request.to_string();
    assert!(text.contains("They spoke.") && text.contains("second") && !text.contains("third"), "{text}");
    let (_, request) = go_on(&stage, &cut_off);
    let text = request.to_string();
    assert!(text.contains("They spoke.") && text.contains("third") && text.contains("unknown"), "{text}");
}

#[test]
fn a_session_that_is_removed_while_it_is_open() {
    let stage = stage(&json!([says("One."), says("Two."), says("Three."), says("Four.")]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let mut host = Host::start(&stage, &[]);
    host.say(&prompt("first", &prompt_id(1)));
    let id = Live(host.hear_until("result")).id();
    sdk.call("delete_session", &json!({"session_id": id}));
    assert_eq!(sdk.list(&stage), [Value::Null; 0]);
    host.say(&prompt("second", &prompt_id(2)));
    let result = host.hear_until("result").pop().unwrap();
    assert_eq!(
        (&result["subtype"], &result["terminal_reason"]),
        (&json!("error_during_execution"), &json!("store_failed"))
    );
    let why = result["errors"].to_string();
    assert!(why.contains("removed") && why.contains("Send the prompt again"), "{why}");
    host.say(&prompt("third", &prompt_id(3)));
    let result = host.hear_until("result").pop().unwrap();
    assert_eq!(result["subtype"], "success", "{result}");
    assert_eq!(host.end().1.code(), Some(0));
    let (same, request) = go_on(&stage, &id);
    assert_eq!(same, id);
    let text = request.to_string();
    assert!(
        text.contains("first") && text.contains("third"),
        "what the session knew is written anew: {text}"
    );
}

#[test]
fn a_session_that_was_removed_is_gone() {
    let stage = stage(&json!([says("One."), says("Two.")]));
    let Some(mut sdk) = Sdk::start(&stage) else { return };
    let id = converse(&stage, &[], &[(1, "first")]).id();
    sdk.call("delete_session", &json!({"session_id": id, "directory": stage.project.path()}));
    let left = std::fs::read_dir(log_folder(&stage)).unwrap().count();
    assert_eq!(left, 0, "neither log nor side directory");
    assert_eq!(listed(&stage), [Value::Null; 0]);
    let again = stage.run(&["-p", "--resume", &id, "go on"]);
    assert_eq!(again.code(), Some(1));
    assert!(again.stderr.contains(&id), "{}", again.stderr);
    let error = sdk.outcome("delete_session", &json!({"session_id": id})).unwrap_err();
    assert!(error.starts_with("FileNotFoundError"), "{error}");
}

fn log_folder(stage: &Stage) -> std::path::PathBuf {
    std::fs::read_dir(kept(stage).join("projects")).unwrap().next().unwrap().unwrap().path()
}
