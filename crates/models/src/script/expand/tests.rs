use super::*;

fn playback(script: &str, play: usize) -> Playback {
    Script::parse(script).unwrap().playback(play).unwrap()
}

/// The events of the only response, one line each: wait, name, and the part of the data that matters.
fn lines(response: &str) -> Vec<String> {
    let playback = playback(&format!(r#"{{"responses":[{response}]}}"#), 0);
    let line = |event: &TimedEvent| {
        let data: Value = serde_json::from_str(&event.json).unwrap_or(Value::String(event.json.clone()));
        let detail = match event.name {
            "content_block_start" => data["content_block"].to_string(),
            "content_block_delta" if data.is_object() => data["delta"].to_string(),
            "message_delta" => data["delta"]["stop_reason"].to_string(),
            "error" => data["error"].to_string(),
            "content_block_delta" => event.json.clone(),
            _ => String::new(),
        };
        format!("{} {} {detail}", event.delay.as_millis(), event.name).trim_end().to_owned()
    };
    playback.events.iter().map(line).collect()
}

fn check(response: &str, expected: &[&str]) {
    assert_eq!(lines(response), expected, "for {response}");
}

#[test]
fn blocks_become_the_events_of_the_api() {
    check(
        r#"{"blocks":[{"text":"héllo you"},{"tool":"Read","input":{"b":1,"a":2}}],"delta_chars":5}"#,
        &[
            "0 message_start",
            r#"0 content_block_start {"type":"text","text":""}"#,
            r#"0 content_block_delta {"type":"text_delta","text":"héllo"}"#,
            r#"0 content_block_delta {"type":"text_delta","text":" you"}"#,
            "0 content_block_stop",
            r#"0 content_block_start {"type":"tool_use","id":"toolu_script_1_2","name":"Read","input":{}}"#,
            r#"0 content_block_delta {"type":"input_json_delta","partial_json":"{\"b\":"}"#,
            r#"0 content_block_delta {"type":"input_json_delta","partial_json":"1,\"a\""}"#,
            r#"0 content_block_delta {"type":"input_json_delta","partial_json":":2}"}"#,
            "0 content_block_stop",
            r#"0 message_delta "tool_use""#,
            "0 message_stop",
        ],
    );
    check(
        r#"{"blocks":[{"thinking":"","signature":"s"},{"redacted_thinking":"x"},{"raw":{"type":"new","z":[1]}}]}"#,
        &[
            "0 message_start",
            r#"0 content_block_start {"type":"thinking","thinking":"","signature":""}"#,
            r#"0 content_block_delta {"type":"signature_delta","signature":"s"}"#,
            "0 content_block_stop",
            r#"0 content_block_start {"type":"redacted_thinking","data":"x"}"#,
            "0 content_block_stop",
            r#"0 content_block_start {"type":"new","z":[1]}"#,
            "0 content_block_stop",
            r#"0 message_delta "end_turn""#,
            "0 message_stop",
        ],
    );
}

#[test]
fn waits_stand_where_the_script_puts_them() {
    check(
        r#"{"blocks":[{"text":"ab"},{"text":"c","delay_ms":100}],"delta_chars":1,"delta_delay_ms":2,
            "block_delay_ms":30,"end_delay_ms":7,"delay_ms":9,"stop_reason":"max_tokens"}"#,
        &[
            "0 message_start",
            r#"30 content_block_start {"type":"text","text":""}"#,
            r#"2 content_block_delta {"type":"text_delta","text":"a"}"#,
            r#"2 content_block_delta {"type":"text_delta","text":"b"}"#,
            "0 content_block_stop",
            r#"130 content_block_start {"type":"text","text":""}"#,
            r#"2 content_block_delta {"type":"text_delta","text":"c"}"#,
            "0 content_block_stop",
            r#"7 message_delta "max_tokens""#,
            "0 message_stop",
        ],
    );
    let playback = playback(r#"{"responses":[{"blocks":[],"delay_ms":9}]}"#, 0);
    assert_eq!(playback.delay, Duration::from_millis(9));
}

#[test]
fn faults_happen_at_their_place() {
    let start = r#"0 content_block_start {"type":"text","text":""}"#;
    check(
        r#"{"blocks":[{"text":"a"}],"fault":{"error":{"type":"api_error","message":"m","after_events":2}}}"#,
        &["0 message_start", start, r#"0 error {"type":"api_error","message":"m"}"#],
    );
    check(r#"{"blocks":[{"text":"a"}],"fault":{"cut":{"after_events":1}}}"#, &["0 message_start"]);
    check(r#"{"blocks":[{"text":"a"}],"fault":{"stall":{"after_events":2}}}"#, &["0 message_start", start]);
    check(
        r#"{"blocks":[],"fault":{"malformed":{"after_events":1,"data":"{no"}}}"#,
        &["0 message_start", "0 content_block_delta {no", r#"0 message_delta "end_turn""#, "0 message_stop"],
    );
    check(r#"{"fault":{"status":{"code":529}}}"#, &[]);
    check(r#"{"fault":"refuse"}"#, &[]);
}

#[test]
fn a_cut_after_bytes_leaves_whole_events_and_a_piece() {
    let whole = playback(r#"{"responses":[{"blocks":[{"text":"aé"}]}]}"#, 0);
    let all: String = whole.events.iter().map(TimedEvent::wire).collect();
    for bytes in 0..=all.len() {
        let script = format!(
            r#"{{"responses":[{{"blocks":[{{"text":"aé"}}],"fault":{{"cut":{{"after_bytes":{bytes}}}}}}}]}}"#
        );
        let cut = playback(&script, 0);
        let PlaybackEnd::Cut(piece) = &cut.ending else { panic!("{:?}", cut.ending) };
        let sent: String = cut.events.iter().map(TimedEvent::wire).chain([piece.clone()]).collect();
        assert_eq!(sent, all[..all.floor_char_boundary(bytes)]);
    }
}

#[test]
fn a_status_looks_like_the_api() {
    let script = r#"{"responses":[{"fault":{"status":{"code":429,"message":"slow","headers":{"retry-after":"2"}}}},
        {"fault":{"status":{"code":502,"body":"<html>"}}}]}"#;
    let PlaybackStart::Status(status) = playback(script, 0).opening else { panic!("no status") };
    assert_eq!(
        status.body,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"},"request_id":"req_script"}"#
    );
    assert_eq!(status.headers, [("retry-after".to_owned(), "2".to_owned())]);
    let PlaybackStart::Status(status) = playback(script, 1).opening else { panic!("no status") };
    assert_eq!((status.code, &*status.body), (502, "<html>"));
}

/// The ids and usages of so many requests.
fn usages(script: &str, plays: usize) -> Vec<(String, Value)> {
    let of = |play| {
        let events = playback(script, play).events;
        let start: Value = serde_json::from_str(&events[0].json).unwrap();
        let tool = events.iter().find(|event| event.json.contains("tool_use"));
        let tool: Value = serde_json::from_str(&tool.unwrap().json).unwrap();
        (
            tool["content_block"]["id"].as_str().unwrap_or_default().to_owned(),
            start["message"]["usage"].clone(),
        )
    };
    (0..plays).map(of).collect()
}

#[test]
fn repeated_responses_have_ids_of_their_own_and_growing_usage() {
    let script = r#"{"then":"repeat","responses":[{"blocks":[{"tool":"Read"}],"repeat":3}]}"#;
    let usages = usages(script, 7);
    let ids: Vec<_> = usages.iter().map(|(id, _)| &**id).collect();
    assert_eq!(ids[..3], ["toolu_script_1_1", "toolu_script_2_1", "toolu_script_3_1"]);
    assert_eq!(ids[6], "toolu_script_7_1");
    for pair in usages.windows(2) {
        let total = |usage: &Value| {
            usage["cache_read_input_tokens"].as_u64().unwrap()
                + usage["cache_creation_input_tokens"].as_u64().unwrap()
        };
        assert_eq!(
            pair[1].1["cache_read_input_tokens"].as_u64().unwrap(),
            total(&pair[0].1),
            "what was there before is read from the cache"
        );
        assert!(total(&pair[1].1) > total(&pair[0].1));
    }
}

#[test]
fn given_usage_wins() {
    let script = r#"{"responses":[{"blocks":[],"usage":{"input_tokens":11,"output_tokens":22,
        "cache_creation_input_tokens":33,"cache_read_input_tokens":44}}]}"#;
    let events = playback(script, 0).events;
    let delta: Value = serde_json::from_str(&events[1].json).unwrap();
    assert_eq!(
        delta["usage"].to_string(),
        r#"{"input_tokens":11,"cache_creation_input_tokens":33,"cache_read_input_tokens":44,"cache_creation":{"ephemeral_5m_input_tokens":33,"ephemeral_1h_input_tokens":0},"output_tokens":22,"service_tier":"standard"}"#
    );
}
