use super::*;

/// The message of the error, or `ok`.
fn check(json: &str, expected: &str) {
    let seen = match Script::parse(json) {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(seen, expected, "for {json}");
}

/// The same for one block.
fn check_block(block: &str, expected: &str) {
    let json = format!(r#"{{"responses":[{{"blocks":[{block}]}}]}}"#);
    let seen = match Script::parse(&json) {
        Ok(_) => "ok".to_owned(),
        Err(ScriptError::Invalid { place, what, .. }) => {
            assert!(place.starts_with("at `responses[0].blocks[0]"), "{place}");
            what
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(seen, expected, "for {block}");
}

#[test]
fn a_malformed_script_is_told_place_and_expectation() {
    check(r#"{"responses":[{"blocks":[]}]}"#, "ok");
    check(r#"{"responses":[]}"#, "invalid script, at `responses`: expected at least one response");
    check("{}", "invalid script, at line 1 column 2: missing field `responses`");
    check(
        "{\"responses\":[{\"blocks\":[]},\n {\"bloks\":[]}]}",
        "invalid script, at `responses[1].bloks` (line 2 column 9): unknown field `bloks`, expected one of \
         `blocks`, `stop_reason`, `usage`, `delay_ms`, `delta_chars`, `delta_delay_ms`, `block_delay_ms`, \
         `end_delay_ms`, `repeat`, `expect`, `when`, `model`, `notes`, `fault`",
    );
    check(
        r#"{"responses":[{}]}"#,
        "invalid script, at `responses[0]` (line 1 column 17): expected `blocks` or `fault`",
    );
    check(
        r#"{"responses":[{"blocks":[],"delta_chars":0}]}"#,
        "invalid script, at `responses[0]` (line 1 column 44): `delta_chars` is 0, expected at least 1",
    );
    check(
        r#"{"responses":[{"blocks":[],"repeat":0}]}"#,
        "invalid script, at `responses[0]` (line 1 column 39): `repeat` is 0, expected 1 to 100000",
    );
    check(
        r#"{"responses":[{"blocks":[]}],"then":"loop"}"#,
        "invalid script, at `then` (line 1 column 42): unknown variant `loop`, expected `fail` or `repeat`",
    );
    check(r#"{"responses":[{"blocks":[]}]} x"#, "invalid script, at line 1 column 31: trailing characters");
    check(r#"{"responses":["#, "invalid script, at `responses` (line 1 column 14): EOF while parsing a list");
}

#[test]
fn a_block_is_exactly_one_thing() {
    check_block(r#"{"text":"a","delay_ms":5}"#, "ok");
    check_block(r#"{"tool":"Read","input":{"file_path":"a"},"id":"t"}"#, "ok");
    check_block(r#"{"tool":"Read","input_json":"{\"fi"}"#, "ok");
    check_block(r#"{"thinking":"a","signature":"s"}"#, "ok");
    check_block(r#"{"raw":{"type":"server_tool_use"}}"#, "ok");
    check_block("{}", "expected one of `text`, `tool`, `thinking`, `redacted_thinking`, `raw`");
    check_block(
        r#"{"text":"a","tool":"b"}"#,
        "expected only one of `text`, `tool`, `thinking`, `redacted_thinking`, `raw`",
    );
    check_block(r#"{"text":"a","id":"b"}"#, "`id` needs `tool`");
    check_block(r#"{"tool":"a","signature":"b"}"#, "`signature` needs `thinking`");
    check_block(r#"{"tool":"a","input":{},"input_json":""}"#, "expected only one of `input`, `input_json`");
    check_block(
        r#"{"tool":"a","input":[]}"#,
        "`input` must be an object; use `input_json` for any other text",
    );
    check_block(r#"{"raw":{"text":"a"}}"#, "`raw` must be an object with a `type`");
    check_block(r#"{"text":3}"#, "invalid type: integer `3`, expected a string");
}

#[test]
fn a_fault_is_checked_too() {
    let fault = |fault: &str| format!(r#"{{"responses":[{{"fault":{fault}}}]}}"#);
    for good in [
        r#""refuse""#,
        r#"{"status":{"code":529}}"#,
        r#"{"status":{"code":429,"type":"x","message":"m","headers":{"retry-after":"1"},"body":"b"}}"#,
        r#"{"error":{"type":"overloaded_error","message":"m","after_events":3}}"#,
        r#"{"cut":{"after_events":3}}"#,
        r#"{"cut":{"after_bytes":3}}"#,
        r#"{"stall":{"after_events":3,"ping_ms":10}}"#,
        r#"{"malformed":{"after_events":1,"data":"x"}}"#,
        r#"{"failure":{"class":"overflow","needed":9,"limit":8}}"#,
        r#"{"failure":{"class":"quota","resets_in_s":9,"retry_after_ms":1,"should_retry":false,"message":"m"}}"#,
        r#"{"failure":{"class":"media","culprit":[3,1]}}"#,
    ] {
        check(&fault(good), "ok");
    }
    check(
        &fault(r#"{"cut":{}}"#),
        "invalid script, at `responses[0].fault.cut` (line 1 column 33): \
         expected one of `after_events`, `after_bytes`",
    );
    check(
        &fault(r#"{"status":{"code":200}}"#),
        "invalid script, at `responses[0]` (line 1 column 48): \
         `fault.status.code` is 200, expected 400 to 599",
    );
    check(
        &fault(r#"{"stall":{"after":1}}"#),
        "invalid script, at `responses[0].fault.stall.after` (line 1 column 40): \
         unknown field `after`, expected `after_events` or `ping_ms`",
    );
}

#[test]
fn a_failure_has_only_what_belongs_to_its_class() {
    let check_failure = |fields: &str, expected: &str| {
        let json = format!(r#"{{"responses":[{{"fault":{{"failure":{fields}}}}}]}}"#);
        let told = Script::parse(&json).unwrap_err().to_string();
        assert!(told.ends_with(expected), "{told}");
    };
    check_failure(r#"{"class":"overflow","needed":1}"#, "expected `needed` and `limit` together");
    check_failure(r#"{"class":"auth","needed":1,"limit":1}"#, "`needed` belongs to the class overflow");
    check_failure(r#"{"class":"overloaded","resets_at":1}"#, "`resets_at` belongs to the class quota");
    check_failure(r#"{"class":"auth","culprit":[0,0]}"#, "`culprit` belongs to the class media and binding");
    check_failure(
        r#"{"class":"quota","resets_at":1,"resets_in_s":1}"#,
        "expected only one of `resets_at`, `resets_in_s`",
    );
    check_failure(
        r#"{"class":"cut"}"#,
        "unknown variant `cut`, expected one of `overflow`, `media`, `rate_limited`, `quota`, `overloaded`, `server`, \
         `auth`, `forbidden`, `not_found`, `bad_request`, `binding`",
    );
}

#[test]
fn a_condition_says_something() {
    let check_response = |fields: &str, expected: &str| {
        let json = format!(r#"{{"responses":[{{"blocks":[],{fields}}}]}}"#);
        let told = Script::parse(&json).err().map_or_else(|| "ok".to_owned(), |error| error.to_string());
        assert!(told.ends_with(expected), "{told}");
    };
    check_response(r#""when":{"model":"haiku"}"#, "ok");
    check_response(r#""expect":{"model":"haiku","contains":"x"}"#, "ok");
    check_response(r#""when":{}"#, "expected `contains`, `model` or both");
    check_response(r#""when":{"model":"a"},"expect":{"model":"a"}"#, "expected only one of `expect`, `when`");
    check_response(
        r#""notes":{"clear":1}"#,
        "unknown field `clear`, expected one of `cleared`, `thinking_dropped`, `refusal`",
    );
}

#[test]
fn a_file_is_named_in_its_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo.json");
    let missing = Script::load(&path).unwrap_err().to_string();
    assert!(missing.starts_with(&format!("cannot read the script {}: ", path.display())), "{missing}");
    std::fs::write(&path, "[").unwrap();
    let malformed = Script::load(&path).unwrap_err().to_string();
    assert!(malformed.starts_with(&format!("invalid script {}, at ", path.display())), "{malformed}");
}

/// Every block of the page that is marked as JSON is a whole script.
#[test]
fn the_examples_of_the_page_are_scripts() {
    let page = include_str!("../../../../../docs/script-format.md");
    let mut examples = 0;
    for block in page.split("```json\n").skip(1) {
        let json = block.split("```").next().unwrap();
        Script::parse(json).unwrap_or_else(|error| panic!("{error}\n{json}"));
        examples += 1;
    }
    assert!(examples >= 5, "only {examples} examples found");
}

/// A field that the page does not name does not exist for its reader.
#[test]
fn the_page_names_every_field() {
    let page = include_str!("../../../../../docs/script-format.md");
    let source = [include_str!("../format.rs"), include_str!("../fault.rs")].concat();
    let fields = source.lines().filter_map(|line| line.trim().strip_suffix(",")?.split_once(": "));
    let names = fields.map(|(name, _)| name.trim_start_matches("pub ").trim());
    let inner = ["kind", "content", "path", "place", "what", "source", "name", "overflow", "resets"];
    let written =
        |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !inner.contains(name);
    for name in names.filter(written) {
        let explained = [format!("`{name}`"), format!("\"{name}\"")].iter().any(|form| page.contains(form));
        assert!(explained, "docs/script-format.md does not explain `{name}`");
    }
}
