//! What keeps the transcript small before it has to be compacted, and what tells of a cache that missed.

use serde_json::{Value, json};
use windlass_testkit::Exchange;

use crate::support::{Stage, grew, script};

const BASH: [&str; 2] = ["--allowedTools", "Bash"];

fn stage(responses: &Value) -> Stage {
    Stage::serving(responses, |server| server)
}

fn bash(command: &str) -> Value {
    json!({"blocks": [{"tool": "Bash", "input": {"command": command}}]})
}

fn done() -> Value {
    json!({"blocks": [{"text": "Done."}]})
}

#[test]
fn a_large_result_goes_to_a_file_once_and_for_all() {
    let stage = stage(&json!([bash("seq 2000"), bash("echo short"), done()]));
    let told =
        stage.told(&BASH, &[("WINDLASS_MESSAGE_RESULT_CHARS", "1000"), ("WINDLASS_PREVIEW_CHARS", "100")]);
    told.completed("Done.");
    let exchanges = stage.server.exchanges();
    assert!(exchanges.windows(2).all(|pair| grew(&pair[0], &pair[1])), "what was decided stays");
    let preview = stage.newest(1);
    assert!(preview.len() < 2_000 && preview.contains("1\\n2\\n3"), "{preview}");
    let path = preview.split(['"', ' ', '\\']).find(|word| word.starts_with('/')).unwrap();
    assert!(path.len() > 1, "the model is told where the rest is: {preview}");
    assert!(stage.newest(2).contains("short"));
}

#[test]
fn a_file_read_again_is_taken_out_where_it_was_read_first() {
    let read = |usage: u32| json!({"blocks": [{"tool": "Read", "input": {"file_path": "a.txt"}}], "usage": {"input_tokens": usage}});
    let stage = stage(&json!([read(100), bash("echo two >> a.txt"), read(161_000), done()]));
    stage.project.write("a.txt", "the only line of this file\n".repeat(200)).unwrap();
    let variables = [
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "200000"),
        ("WINDLASS_COLLAPSE", "0"),
        ("WINDLASS_ROUNDS_KEPT", "1"),
    ];
    let told = stage.told(&BASH, &variables);
    told.completed("Done.");
    let counts: Vec<usize> =
        stage.server.exchanges().iter().map(|one| one.prompt().matches("the only line").count()).collect();
    assert!(counts[3] < 400 && counts[3] >= 200, "{counts:?} {}", told.notes());
    assert_eq!(stage.server.refusals(), [""; 0]);
    // The host can take away what it was shown of the first round: the call and its result.
    let boundary = told.lines.iter().find(|line| line["subtype"] == "snip_boundary").unwrap();
    let metadata = &boundary["snip_metadata"];
    let shown: Vec<&Value> = ["assistant", "user"].iter().map(|kind| &told.of(kind)[0]["uuid"]).collect();
    assert_eq!(metadata["removed_uuids"], json!(shown), "{}", told.finished.stdout);
    assert!(metadata["tokens_freed"].as_u64() > Some(1_000), "{boundary}");
}

#[test]
fn a_cache_that_missed_is_told_with_what_differs() {
    let usage = |read: u32, written: u32| json!({"input_tokens": 4, "cache_read_input_tokens": read, "cache_creation_input_tokens": written});
    let mut first = bash("echo one");
    first["usage"] = usage(0, 50_000);
    let mut missed = done();
    missed["usage"] = usage(0, 50_100);
    let told = stage(&json!([first, missed])).told(&BASH, &[]);
    told.completed("Done.");
    assert!(told.notes().contains("Cache miss: the provider's cache held 0 of"), "{}", told.notes());
    assert!(told.notes().contains("The request has the same beginning as the last one."), "{}", told.notes());

    let mut hit = done();
    hit["usage"] = usage(50_000, 100);
    let told = stage(&json!([first, hit])).told(&BASH, &[]);
    assert!(!told.notes().contains("cache"), "{}", told.notes());
}

#[test]
fn the_model_is_told_what_changed_on_disk() {
    let stage = stage(&json!([
        {"blocks": [{"tool": "Read", "input": {"file_path": "a.txt"}}]},
        bash("echo 'a new line' >> a.txt"),
        bash("echo again"),
        done(),
    ]));
    stage.project.write("a.txt", "old\n").unwrap();
    let told = stage.told(&BASH, &[]);
    told.completed("Done.");
    let notice = stage.newest(2);
    assert!(notice.contains("a.txt") && notice.contains("a new line"), "{notice}");
    assert!(!stage.newest(3).contains("a new line"), "once: {}", stage.newest(3));
    let exchanges = stage.server.exchanges();
    assert!(exchanges.windows(2).all(|pair| grew(&pair[0], &pair[1])));
}

#[test]
fn summaries_of_calls_are_told_and_delay_nothing() {
    let small = json!([{"model": "claude-haiku-5-5", "blocks": [{"text": "Counts to three"}], "delay_ms": 200, "repeat": 9}]);
    let stage = Stage::serving(&json!([bash("seq 3"), bash("sleep 1"), done()]), |server| {
        server.script_for("haiku", script(&small))
    });
    let told = stage.told(&BASH, &[("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", "1")]);
    told.completed("Done.");
    let summaries = told.of("tool_use_summary");
    assert_eq!(summaries[0]["summary"], "Counts to three", "{}", told.finished.stdout);
    assert_eq!(summaries[0]["preceding_tool_use_ids"], json!(["toolu_script_1_1"]));
    let prompts = stage
        .server
        .exchanges()
        .iter()
        .filter(|one| one.model().contains("opus"))
        .map(Exchange::prompt)
        .collect::<String>();
    assert!(!prompts.contains("Counts to three"), "it is not for the model");

    let slow =
        json!([{"model": "claude-haiku-5-5", "blocks": [{"text": "late"}], "delay_ms": 20_000, "repeat": 9}]);
    let stage =
        Stage::serving(&json!([bash("seq 3"), done()]), |server| server.script_for("haiku", script(&slow)));
    let told = stage.told(&BASH, &[("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", "1")]);
    told.completed("Done.");
    assert!(told.finished.elapsed.as_secs() < 15, "{:?}", told.finished.elapsed);
}
