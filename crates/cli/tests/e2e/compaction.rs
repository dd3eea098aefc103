//! Compaction on demand and by itself: what the summariser is asked, and what stands afterwards.

use serde_json::{Value, json};

use crate::host::{Host, LINES, prompt};
use crate::support::{Stage, Told};

const SUMMARY: &str = "replaced by what you write now";

fn said(text: &str) -> Value {
    json!({"blocks": [{"text": text}]})
}

/// Runs of a conversation, one after the other: the lines, the last result, the exit code.
fn conversation(stage: &Stage, prompts: &[&str], variables: &[(&str, &str)]) -> (Vec<Value>, Option<i32>) {
    let line =
        |text: &&str| format!("{}\n", json!({"type": "user", "message": {"role": "user", "content": text}}));
    let input: String = prompts.iter().map(line).collect();
    let command = variables.iter().fold(
        stage.command(&[&LINES[..], &["--allowedTools", "Bash"]].concat()),
        |command, (name, value)| command.env(name, value),
    );
    let finished = command.stdin(input).run().unwrap();
    assert_eq!(finished.stderr, "");
    (finished.json_lines().unwrap(), finished.code())
}

#[test]
fn the_summary_heeds_the_focus_and_the_memory_files() {
    let stage = Stage::serving(
        &json!([{"when": {"contains": SUMMARY}, "blocks": [{"text": "They spoke."}]}, said("One."), said("Two.")]),
        |server| server,
    );
    let memory =
        "# Build\nuse make\n\n# Compact instructions\nKeep every file name.\n\n# Style\nshort lines\n";
    stage.project.write("CLAUDE.md", memory).unwrap();
    let long = "many words ".repeat(3_000);
    let prompts = [&*long, "/compact the number seven", "go on"];
    let (lines, code) = conversation(&stage, &prompts, &[("WINDLASS_TAIL_TOKENS", "0")]);
    assert_eq!(code, Some(0));
    let asked = stage.newest(1);
    assert!(asked.contains(SUMMARY) && asked.contains("the number seven"), "{asked}");
    assert!(asked.contains("Keep every file name.") && !asked.contains("use make"), "{asked}");
    assert!(asked.matches("the number seven").count() == 1);
    let boundary = lines.iter().find(|line| line["subtype"] == "compact_boundary").unwrap();
    let metadata = &boundary["compact_metadata"];
    assert_eq!(metadata["trigger"], "manual");
    assert!(metadata["pre_tokens"].as_u64() > metadata["post_tokens"].as_u64(), "{metadata}");
    let last = stage.server.exchanges().last().unwrap().prompt();
    assert!(
        last.contains("They spoke.") && last.contains("Keep every file name."),
        "memory is attached again: {last}"
    );
    assert_eq!(stage.server.refusals(), [""; 0]);
}

#[test]
fn the_summariser_shares_the_prefix_and_runs_no_tools() {
    let call = json!({"tool": "Bash", "input": {"command": "touch made"}});
    let stage = Stage::serving(
        &json!([
            {"when": {"contains": SUMMARY}, "blocks": [{"text": "Let me look."}, call]},
            {"when": {"contains": "Tools are not available here."}, "blocks": [{"text": "They spoke."}]},
            said("One."),
            said("Two."),
        ]),
        |server| server,
    );
    let long = "many words ".repeat(3_000);
    let (_, code) = conversation(&stage, &[&long, "/compact", "go on"], &[]);
    assert_eq!(code, Some(0));
    assert!(stage.project.read("made").is_err(), "a summariser acts on nothing");
    let exchanges = stage.server.exchanges();
    assert!(crate::support::grew(&exchanges[0], &exchanges[1]), "the cache still holds it");
    assert_eq!(exchanges[0].json()["tools"], exchanges[1].json()["tools"]);
}

#[test]
fn there_is_nothing_to_compact_in_a_new_conversation() {
    let stage = Stage::hello();
    let finished = stage.run(&["-p", "/compact"]);
    assert_eq!((finished.code(), stage.requests()), (Some(0), 0), "{finished:?}");
    assert!(finished.stdout.contains("nothing to compact"), "{}", finished.stdout);
}

#[test]
fn a_conversation_that_cannot_become_shorter_is_not_summarised() {
    let stage = Stage::serving(&json!([said("One."), said("never")]), |server| server);
    let (lines, code) = conversation(&stage, &["Hello.", "/compact"], &[]);
    let result = lines.last().unwrap();
    let expected = "Not compacted: The conversation is already as short as a compaction would leave it.";
    assert_eq!((result["result"].as_str(), code), (Some(expected), Some(0)), "{result}");
    let failed = lines.iter().find(|line| line["compact_result"] == "failed").unwrap();
    assert!(expected.ends_with(failed["compact_error"].as_str().unwrap()), "{failed}");
    let finished = stage.run(&["-p", "--continue", "/compact"]);
    assert_eq!((finished.stdout.trim_end(), finished.code()), (expected, Some(0)), "{finished:?}");
    assert_eq!(stage.requests(), 1, "no summary is paid for");
}

#[test]
fn a_full_context_waits_for_a_compaction_by_the_user() {
    let stage = Stage::serving(
        &json!([
            {"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}]},
            {"blocks": [{"tool": "Bash", "input": {"command": "seq 3000"}}], "usage": {"input_tokens": 178_000}},
            said("Done."),
        ]),
        |server| server,
    );
    let command = stage.command(&[&LINES[..], &["--allowedTools", "Bash"]].concat());
    let command = command.env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "200000").env("DISABLE_AUTO_COMPACT", "1");
    let mut host = Host::spawn(command.into_command());
    let long = "many words ".repeat(3_000);
    let results: Vec<Value> = [&long, "/compact", "go on"]
        .map(|text| {
            host.say(&prompt(text, text));
            host.hear_until("result").pop().unwrap()
        })
        .into();
    let seen: Vec<_> =
        results.iter().map(|result| result["terminal_reason"].as_str().unwrap_or("")).collect();
    assert_eq!(seen, ["blocking_limit", "", "completed"], "{results:?}");
    assert!(results[0]["errors"][0].as_str().unwrap().contains("Use /compact"), "{}", results[0]);
    assert_eq!(stage.requests(), 3, "the call, the summary, the rest");
    assert!(stage.newest(1).contains(SUMMARY));
    assert!(stage.server.exchanges()[2].prompt().contains("They counted."));
}

#[test]
fn a_threshold_that_is_passed_compacts_before_the_next_request() {
    let stage = Stage::serving(
        &json!([
            {"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}]},
            {"blocks": [{"tool": "Bash", "input": {"command": "seq 2000"}}], "usage": {"input_tokens": 168_000}},
            said("Done."),
        ]),
        |server| server,
    );
    let told = stage.told(
        &["--allowedTools", "Bash"],
        &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "200000"), ("WINDLASS_COLLAPSE", "0")],
    );
    told.completed("Done.");
    let boundary = told.of("compact_boundary")[0];
    assert_eq!(boundary["compact_metadata"]["trigger"], "auto");
    assert!(boundary["compact_metadata"]["pre_tokens"].as_u64().unwrap() > 168_000);
    let statuses: Vec<&Value> = told.of("status").iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [&json!("compacting"), &Value::Null]);
    assert_eq!(stage.requests(), 3);
}

#[test]
fn an_answer_may_take_half_of_a_small_window() {
    let check = |window: &str, expected: u64| {
        let stage = Stage::hello();
        let told = stage.told(&["--model", "local-7b"], &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", window)]);
        assert_eq!(told.result["result"], "Hello.", "{}", told.result);
        assert_eq!(stage.request(0)["max_tokens"], expected, "{window}");
    };
    check("8192", 4_096);
    check("32768", 8_000);
}

/// Margins are shares of a small window: one of 32,768 tokens is used up to about 26,000 of them.
#[test]
fn a_window_of_32k_is_used_before_it_is_compacted() {
    let call = |tokens: u32| {
        let usage =
            json!({"input_tokens": tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
        json!({"blocks": [{"tool": "Bash", "input": {"command": "seq 30"}}], "usage": usage})
    };
    let stage = Stage::serving(
        &json!([
            {"when": {"contains": SUMMARY}, "blocks": [{"text": "They counted."}]},
            call(9_000),
            call(20_000),
            call(25_000),
            call(26_500),
            said("Done."),
        ]),
        |server| server,
    );
    let variables = [("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "32768"), ("WINDLASS_COLLAPSE", "0")];
    let told = stage.told(&["--allowedTools", "Bash", "--model", "local-7b"], &variables);
    assert_eq!(told.result["result"], "Done.", "{}", told.result);
    let boundaries = told.of("compact_boundary");
    assert_eq!(boundaries.len(), 1, "{boundaries:?}");
    let before = boundaries[0]["compact_metadata"]["pre_tokens"].as_u64().unwrap();
    assert!((25_942..27_990).contains(&before), "{before}");
    let asked = stage.server.exchanges().iter().position(|one| one.prompt().contains(SUMMARY));
    assert_eq!(asked, Some(4), "four calls fitted before");
    let context = stage.command(&["-p", "/context", "--model", "local-7b"]);
    let context = context.env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "32768").run().unwrap();
    assert!(context.stdout.contains("compacted from 25,942 tokens on"), "{}", context.stdout);
}

#[test]
fn a_hook_can_object_to_a_compaction() {
    let stage = Stage::serving(
        &json!([
            {"blocks": [{"tool": "Bash", "input": {"command": "seq 200"}}], "usage": {"input_tokens": 168_000}},
            said("Done."),
        ]),
        |server| server,
    );
    stage.project.write("hooks.json", r#"{"PreCompact": [{"blocks": ["Not now."]}]}"#).unwrap();
    let variables = [
        ("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "200000"),
        ("WINDLASS_SCRIPTED_HOOKS", "hooks.json"),
        ("WINDLASS_COLLAPSE", "0"),
    ];
    let told = stage.told(&["--allowedTools", "Bash"], &variables);
    told.completed("Done.");
    let failed = told.of("status").into_iter().find(|line| line["compact_result"] == "failed").unwrap();
    assert!(failed["compact_error"].as_str().unwrap().contains("Not now."), "{failed}");
    assert_eq!((stage.requests(), told.of("compact_boundary").len()), (2, 0));
}

#[test]
fn files_that_were_read_are_shown_again() {
    let stage = Stage::serving(
        &json!([
            {"when": {"contains": SUMMARY}, "blocks": [{"text": "They looked."}]},
            {"blocks": [{"tool": "Read", "input": {"file_path": "notes.txt"}}], "usage": {"input_tokens": 100}},
            {"blocks": [{"tool": "Bash", "input": {"command": "seq 9000"}}], "usage": {"input_tokens": 168_000}},
            said("Done."),
        ]),
        |server| server,
    );
    stage.project.write("notes.txt", "the secret ingredient is salt\n").unwrap();
    let told = stage.told(
        &["--allowedTools", "Bash"],
        &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "200000"), ("WINDLASS_COLLAPSE", "0")],
    );
    told.completed("Done.");
    let last = stage.server.exchanges().last().unwrap().prompt();
    assert!(last.contains("the secret ingredient is salt") && last.contains("They looked."), "{last}");
}

#[test]
fn cost_and_context_tell_of_the_conversation_so_far() {
    let stage = Stage::serving(
        &json!([{"blocks": [{"text": "One."}], "usage": {"input_tokens": 50_000, "output_tokens": 1_000, "cache_creation_input_tokens": 0}}]),
        |server| server,
    );
    let (lines, code) = conversation(&stage, &["go", "/cost", "/context"], &[]);
    assert_eq!((code, stage.requests()), (Some(0), 1));
    let results: Vec<&str> = lines.iter().filter_map(|line| line["result"].as_str()).collect();
    // 50 000 tokens in at 4 USD and 1 000 out at 20 USD for a million.
    assert!(results[1].starts_with("Cost: $0.2200\n"), "{}", results[1]);
    assert!(results[2].contains("51,000 of 1,000,000 tokens (5 %)"), "{}", results[2]);
    assert!(results[2].contains("compacted from 967,000 tokens on"), "{}", results[2]);
}

#[test]
fn an_unknown_model_is_taken_to_have_the_usual_window() {
    let stage = Stage::hello();
    let told = Told::new(stage.run(&[&crate::support::STREAM[..], &["--model", "local-7b"]].concat()));
    assert!(
        told.notes().contains("200,000") && told.notes().contains("CLAUDE_CODE_MAX_CONTEXT_TOKENS"),
        "{}",
        told.notes()
    );
    let context = stage.run(&["-p", "/context", "--model", "local-7b"]);
    assert!(
        context.stdout.contains("of 200,000 tokens") && context.stdout.contains("167,000"),
        "{}",
        context.stdout
    );
}
