//! Every reason for which a run ends, seen from outside: subtype, reason, exit code, and words that say what to do next.
//! A log that cannot be written has a file of its own.

use serde_json::{Value, json};

use crate::support::{Stage, Told};

const BASH: [&str; 2] = ["--allowedTools", "Bash"];

fn stage(responses: &Value) -> Stage {
    Stage::serving(responses, |server| server)
}

fn call(command: &str) -> Value {
    json!({"blocks": [{"tool": "Bash", "input": {"command": command}}]})
}

fn hooked(stage: &Stage, answers: &Value) -> Told {
    stage.project.write("hooks.json", answers.to_string()).unwrap();
    stage.told(&BASH, &[("WINDLASS_SCRIPTED_HOOKS", "hooks.json")])
}

#[test]
fn completed() {
    let stage = stage(&json!([{"blocks": [{"text": "Hello."}]}]));
    let told = stage.told(&[], &[]);
    told.completed("Hello.");
    assert_eq!((&told.result["stop_reason"], &told.result["num_turns"]), (&json!("end_turn"), &json!(1)));
    assert_eq!(told.result["api_error_status"], Value::Null);
}

#[test]
fn token_budget_completed() {
    let answer = |tokens: u32| json!({"blocks": [{"text": "More."}], "usage": {"output_tokens": tokens}});
    let stage = stage(&json!([answer(900), answer(900), answer(900)]));
    let told = stage.told(&[], &[("WINDLASS_TOKEN_BUDGET", "2000")]);
    told.completed("More.");
    assert_eq!(stage.requests(), 2, "1800 of 2000 are nine tenths");
}

#[test]
fn stop_hook_prevented() {
    let stage = stage(&json!([{"blocks": [{"text": "Done."}]}, {"blocks": [{"text": "never"}]}]));
    let told = hooked(&stage, &json!({"Stop": [{"stop": "Enough for today."}]}));
    told.ended("success", "stop_hook_prevented", 0);
    assert_eq!((&told.result["result"], stage.requests()), (&json!("Done."), 1));
    assert!(told.notes().contains("A stop hook ended the run: Enough for today."), "{}", told.notes());
}

#[test]
fn hook_stopped() {
    let check = |event: &str, made: bool| {
        let stage = stage(&json!([call("touch made"), {"blocks": [{"text": "never"}]}]));
        let told = hooked(&stage, &json!({event: [{"stop": "Not on a Friday."}]}));
        told.ended("success", "hook_stopped", 0);
        assert_eq!(stage.requests(), 1);
        assert_eq!(stage.project.read("made").is_ok(), made, "{event}");
        assert_eq!(told.notes(), "A hook of Bash ended the run: Not on a Friday.", "once, at the end");
        assert_eq!(told.of("user").len(), 1, "the call is answered: {}", told.finished.stdout);
    };
    check("PreToolUse", false);
    check("PostToolUse", true);
}

#[test]
fn a_hook_before_a_call_stops_the_others_and_one_after_it_does_not() {
    let check = |event: &str, answers: &[Value], made: &[&str]| {
        let write = |name: &str| json!({"tool": "Bash", "input": {"command": format!("touch {name}")}});
        let calls = json!({"blocks": [write("one"), write("two"), write("three")]});
        let stage = stage(&json!([calls, {"blocks": [{"text": "never"}]}]));
        let told = hooked(&stage, &json!({event: answers}));
        told.ended("success", "hook_stopped", 0);
        let files = ["one", "two", "three"].into_iter().filter(|name| stage.project.read(name).is_ok());
        assert_eq!(files.collect::<Vec<_>>(), made, "{event}");
        assert_eq!(stage.requests(), 1);
    };
    check("PreToolUse", &[json!({}), json!({"stop": "Enough."}), json!({})], &["one"]);
    check("PostToolUse", &[json!({"stop": "Enough."}), json!({}), json!({})], &["one", "two", "three"]);
}

#[test]
fn max_turns() {
    let stage = stage(&json!([call("echo 1"), call("echo 2"), {"blocks": [{"text": "never"}]}]));
    let told = stage.told(&[&BASH[..], &["--max-turns", "2"]].concat(), &[]);
    told.ended("error_max_turns", "max_turns", 1);
    assert_eq!(
        told.result["errors"],
        json!(["Reached maximum number of turns (2). Raise it with --max-turns."])
    );
    let reached = told.of("max_turns_reached");
    assert_eq!(reached.len(), 1, "{}", told.finished.stdout);
    assert_eq!((&reached[0]["turn_count"], &reached[0]["max_turns"]), (&json!(2), &json!(2)));
    assert_eq!(stage.requests(), 2);
    assert_eq!(told.of("user").len(), 2, "the last results are collected");
    assert_eq!(told.result["stop_reason"], "tool_use");
}

#[test]
fn max_budget_usd() {
    let stage = stage(&json!([call("touch made"), {"blocks": [{"text": "never"}]}]));
    let told = stage.told(&[&BASH[..], &["--max-budget-usd", "0.000001"]].concat(), &[]);
    told.ended("error_max_budget_usd", "budget_exhausted", 1);
    told.says(&["Reached maximum budget ($0.000001): ", "USD spent", "--max-budget-usd"]);
    assert_eq!(stage.requests(), 1);
    assert!(told.result["total_cost_usd"].as_f64().unwrap() >= 0.000_001);
}

#[test]
fn structured_output_retries() {
    let stage = stage(&json!([{"blocks": [{"text": "Not JSON."}], "repeat": 9}]));
    let told = stage.told(&["--json-schema", r#"{"type": "object"}"#], &[]);
    told.ended("error_max_structured_output_retries", "structured_output_retry_exhausted", 1);
    told.says(&["schema", "MAX_STRUCTURED_OUTPUT_RETRIES"]);
    assert_eq!(stage.requests(), 6, "the answer and five tries");
    assert!(told.result.get("structured_output").is_none());
}

#[test]
fn aborted_streaming() {
    let stage = stage(&json!([
        {"blocks": [{"text": "I was going to"}], "fault": {"stall": {"after_events": 4}}},
    ]));
    let running = stage.command(&crate::support::STREAM).start().unwrap();
    running.wait_for_output("I was going to").unwrap();
    running.interrupt().unwrap();
    let told = Told::new(running.finish().unwrap());
    told.failed("aborted_streaming", &["Interrupted while the model was answering."]);
    assert_eq!(stage.requests(), 1);
}

#[test]
fn aborted_tools() {
    let stage = stage(&json!([call("touch began; sleep 20"), {"blocks": [{"text": "never"}]}]));
    let running = stage.command(&[&crate::support::STREAM[..], &BASH].concat()).start().unwrap();
    stage.wait_for_file("began");
    running.interrupt().unwrap();
    let told = Told::new(running.finish().unwrap());
    told.failed("aborted_tools", &["Interrupted while tools were running."]);
    let answered = told.of("user");
    assert_eq!(answered[0]["message"]["content"][0]["is_error"], true, "{}", told.finished.stdout);
    assert_eq!(stage.requests(), 1);
}

#[test]
fn blocking_limit() {
    let check = |flags: &[&str], variables: &[(&str, &str)], words: &[&str]| {
        let stage = stage(&json!([call("echo 1"), {"blocks": [{"text": "never"}]}]));
        stage.project.write("long.txt", "a line of text\n".repeat(4_000)).unwrap();
        let command =
            stage.command(&[&["-p", "--output-format", "stream-json", "--verbose"], flags].concat());
        let command = command.env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "20000");
        let command = variables.iter().fold(command, |command, (name, value)| command.env(name, value));
        let told = Told::new(command.stdin(stage.project.read("long.txt").unwrap()).run().unwrap());
        told.failed("blocking_limit", &[&["context window is full", "new session"], words].concat());
        told.showed_failure("invalid_request");
        assert_eq!(stage.requests(), 0, "a doomed request is not paid for");
    };
    check(&[], &[("DISABLE_COMPACT", "1")], &["compaction is off (DISABLE_COMPACT)"]);
    let words = ["autoCompactEnabled", "DISABLE_AUTO_COMPACT", "Use /compact"];
    check(&[], &[("DISABLE_AUTO_COMPACT", "1")], &words);
    check(&["--settings", r#"{"autoCompactEnabled": false}"#], &[], &words);
}

#[test]
fn prompt_too_long() {
    let too_long = json!({"fault": {"failure": {"class": "overflow", "needed": 210_000, "limit": 200_000}}, "repeat": 99});
    let stage = stage(&json!([call("echo 1"), too_long]));
    let told = stage.told(&BASH, &[]);
    told.failed("prompt_too_long", &["prompt is too long", "210000"]);
    told.showed_failure("invalid_request");
    // Where automatic compaction is off, nothing is summarised, and the user is told what to do.
    let stage = self::stage(&json!([call("echo 1"), too_long]));
    let told = stage.told(&BASH, &[("DISABLE_AUTO_COMPACT", "1")]);
    told.failed("prompt_too_long", &["prompt is too long", "automatic compaction is off", "Use /compact"]);
    assert_eq!(stage.requests(), 2);
}

#[test]
fn max_output_tokens() {
    let stage = stage(&json!([{"blocks": [{"text": "And "}], "stop_reason": "max_tokens", "repeat": 20}]));
    let told = stage.told(&[], &[]);
    told.failed(
        "max_output_tokens",
        &["output limit", "Ask for less at once", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"],
    );
    let caps: Vec<Value> =
        stage.server.exchanges().iter().map(|one| one.json()["max_tokens"].clone()).collect();
    assert_eq!(caps, [8_000, 64_000, 64_000, 64_000, 64_000].map(Value::from));
    assert_eq!(told.result["stop_reason"], "max_tokens");
    told.showed_failure("max_output_tokens");
    assert!(
        told.text().starts_with("And And And And The answer exceeded"),
        "{}: what was said stands",
        told.text()
    );
}

#[test]
fn image_error() {
    let refused = json!({"fault": {"failure": {"class": "media"}}, "repeat": 9});
    let stage = stage(&json!([refused]));
    let told = stage.told(&[], &[]);
    told.failed("image_error", &["image"]);
    told.showed_failure("invalid_request");
    assert_eq!(stage.requests(), 1, "there is no picture that could be left out");
}

#[test]
fn model_error() {
    let garbled =
        json!({"blocks": [{"text": "Mind"}], "fault": {"malformed": {"after_events": 2}}, "repeat": 9});
    let stage = stage(&json!([garbled]));
    let told = stage.told(&[], &[]);
    told.failed("model_error", &["Tried 3 times."]);
    told.showed_failure("server_error");
    assert_eq!(stage.requests(), 3);
}

#[test]
fn api_error() {
    let check = |(class, kind): (&str, &str), status: u16, requests: usize, words: &[&str]| {
        let stage = stage(&json!([{"fault": {"failure": {"class": class}}, "repeat": 20}]));
        let told = stage.told(&[], &[("CLAUDE_CODE_MAX_RETRIES", "2")]);
        told.ended("success", "api_error", 1);
        assert_eq!(
            (&told.result["api_error_status"], stage.requests()),
            (&json!(status), requests),
            "{class}"
        );
        told.says(words);
        told.showed_failure(kind);
    };
    check(("auth", "authentication_failed"), 401, 1, &["ANTHROPIC_API_KEY"]);
    check(("forbidden", "authentication_failed"), 403, 1, &[]);
    check(("not_found", "model_not_found"), 404, 1, &["Check the model name"]);
    check(("bad_request", "invalid_request"), 400, 1, &[]);
    check(("server", "server_error"), 500, 3, &["Tried 3 times.", "Try again later."]);
    check(("overloaded", "overloaded"), 529, 3, &["Tried 3 times.", "Try again later."]);
    check(("rate_limited", "rate_limit"), 429, 3, &["Tried 3 times.", "Try again later."]);
}

#[test]
fn refused() {
    let stage = stage(&json!([
        {"blocks": [], "notes": {"refusal": {"category": "cyber", "explanation": "This looks like an attack."}}},
    ]));
    let told = stage.told(&[], &[]);
    told.ended("success", "completed", 0);
    assert_eq!(told.result["stop_reason"], "refusal");
    told.says(&["declined", "This looks like an attack.", "use another model"]);
    assert_eq!(told.of("model_refusal_no_fallback").len(), 1);
}

#[test]
fn repeated_call() {
    let stage = stage(
        &json!([{"blocks": [{"tool": "Bash", "input": {"command": "echo same; echo x >> made"}}], "repeat": 40}]),
    );
    let told = stage.told(&BASH, &[]);
    told.failed("repeated_call", &["same call", "Tell it what to do instead"]);
    assert_eq!(stage.requests(), 26, "25 are made; nobody can be asked about the next");
    assert_eq!(stage.project.read("made").unwrap(), "x\n".repeat(25));
    assert!(stage.newest(3).contains("this call 3 times with the same input"), "{}", stage.newest(3));
    assert!(!stage.newest(2).contains("with the same input"), "{}", stage.newest(2));
}

#[test]
fn polling_does_not_end_a_run() {
    let limit = ["--settings", r#"{"repeatedCallsMax": 2}"#];
    let check = |calls: &[&str], count: usize| {
        let calls = calls.iter().cycle().take(count).map(|line| call(line));
        let responses: Vec<Value> = calls.chain([json!({"blocks": [{"text": "Ready."}]})]).collect();
        let stage = stage(&Value::from(responses));
        let told = stage.told(&[&BASH[..], &limit].concat(), &[]);
        told.ended("success", "completed", 0);
        assert_eq!(stage.requests(), count + 1);
        assert!(!stage.newest(count).contains("with the same input"), "{}", stage.newest(count));
    };
    check(&["sleep 1; echo pending"], 4);
    check(&["echo pending", "sleep 1"], 6);
}

#[test]
fn rapid_refill() {
    let summary = json!({"when": {"contains": "replaced by what you write now"}, "blocks": [{"text": "Nothing much."}], "repeat": 99});
    let calls: Vec<Value> = (0..30)
        .map(|n| json!({"blocks": [{"tool": "Bash", "input": {"command": format!("seq {n} 2000")}}], "usage": {"input_tokens": 39_000}}))
        .collect();
    let stage = stage(&Value::from([vec![summary], calls].concat()));
    let told = stage.told(&BASH, &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "50000"), ("WINDLASS_COLLAPSE", "0")]);
    told.failed("rapid_refill_breaker", &["Compaction makes no progress", "Start a new session"]);
    assert_eq!(told.of("compact_boundary").len(), 3, "{}", told.finished.stdout);
}

#[test]
fn tool_deferred() {
    let stage = stage(&json!([call("touch made"), {"blocks": [{"text": "never"}]}]));
    let told = hooked(&stage, &json!({"PreToolUse": [{"permission": "defer"}]}));
    told.ended("success", "tool_deferred", 0);
    let deferred = json!({"id": "toolu_script_1_1", "name": "Bash", "input": {"command": "touch made"}});
    assert_eq!(told.result["deferred_tool_use"], deferred);
    assert!(stage.project.read("made").is_err(), "it was not run");
    assert_eq!(stage.requests(), 1);
}

/// In the other formats an end says the same: the text is for people, the object is the last line of the stream.
#[test]
fn text_and_json_say_the_same() {
    let check = |responses: Value, flags: &[&str], (code, reason, words): (i32, &str, &str)| {
        let prompt = ["-p", "go"];
        let text = stage(&responses).run(&[&prompt, flags].concat());
        assert_eq!((text.code(), text.stderr.as_str()), (Some(code), ""), "{text:?}");
        let last = text.stdout.lines().last().unwrap_or_default();
        assert!(last.contains(words), "{words:?} is not in {last:?}");
        let json = stage(&responses).run(&[&prompt, &["--output-format", "json"], flags].concat());
        assert_eq!((json.code(), json.stdout.lines().count()), (Some(code), 1), "{json:?}");
        let object: Value = serde_json::from_str(&json.stdout).unwrap();
        assert_eq!(object["terminal_reason"], reason);
        let told = if object["result"].is_string() { &object["result"] } else { &object["errors"][0] };
        assert!(told.as_str().unwrap().contains(words), "{words:?} is not in {told}");
    };
    let answer = json!([{"blocks": [{"text": "Hello."}]}]);
    check(answer, &[], (0, "completed", "Hello."));
    let turns = [&BASH[..], &["--max-turns", "1"]].concat();
    check(json!([call("true")]), &turns, (1, "max_turns", "Raise it with --max-turns."));
    let money = [&BASH[..], &["--max-budget-usd", "0.000001"]].concat();
    check(json!([call("true")]), &money, (1, "budget_exhausted", "Raise it with --max-budget-usd."));
    let key = json!([{"fault": {"failure": {"class": "auth"}}}]);
    check(key, &[], (1, "api_error", "ANTHROPIC_API_KEY"));
    let cut = json!([{"blocks": [{"text": "And "}], "stop_reason": "max_tokens", "repeat": 9}]);
    check(cut, &[], (1, "max_output_tokens", "Ask for less at once"));
    let too_long =
        json!([{"fault": {"failure": {"class": "overflow", "needed": 300, "limit": 200}}, "repeat": 99}]);
    check(too_long, &[], (1, "prompt_too_long", "too long"));
    let schema = ["--json-schema", r#"{"type": "object"}"#];
    let wrong = json!([{"blocks": [{"text": "No."}], "repeat": 9}]);
    check(wrong, &schema, (1, "structured_output_retry_exhausted", "Simplify the schema"));
}
