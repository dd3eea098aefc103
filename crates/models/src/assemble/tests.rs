mod notes;

use std::time::{Duration, Instant};

use windlass_protocol::{Delta, ModelEvent};

use super::ResponseAssembler;
use crate::random::XorShift;

const START: &str = r#"{"type":"message_start","message":{"id":"m1","model":"x","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}"#;
const END: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn line(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Started { message_id, model, usage } => {
            format!("started {message_id} {model} in={}", usage.input_tokens)
        }
        ModelEvent::Delta { index, delta: Delta::Start(block) } => format!("start {index} {block}"),
        ModelEvent::Delta { index, delta } => format!("delta {index} {delta:?}"),
        ModelEvent::Note(note) => format!("note {note:?}"),
        ModelEvent::Block { index, block } => format!("block {index} {block:?}"),
        ModelEvent::Ended { stop, usage } => {
            format!("ended {} in={} out={}", stop.name(), usage.input_tokens, usage.output_tokens)
        }
        ModelEvent::Failed(failure) => format!("{:?}: {}", failure.class, failure.message),
    }
}

fn run(events: &[&str]) -> Vec<ModelEvent> {
    let mut response = ResponseAssembler::default();
    let mut seen = Vec::new();
    for event in events {
        seen.extend(response.on_event(event));
        seen.extend(std::iter::from_fn(|| response.take_held()));
    }
    seen.extend(response.on_eof());
    assert!(response.has_ended);
    assert!(response.on_event(START).is_none(), "nothing follows the last item");
    assert!(response.on_eof().is_none(), "nothing follows the last item");
    seen
}

fn check(events: &[&str], expected: &[&str]) {
    let seen: Vec<_> = run(events).iter().map(line).collect();
    assert_eq!(seen, expected);
}

/// The block that comes of a skeleton and some deltas.
fn check_block(skeleton: &str, deltas: &[&str], expected: &str) -> Vec<ModelEvent> {
    let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{skeleton}}}"#);
    let deltas: Vec<_> = deltas
        .iter()
        .map(|delta| format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#))
        .collect();
    let mut events = vec![START, &start];
    events.extend(deltas.iter().map(String::as_str));
    events.extend([r#"{"type":"content_block_stop","index":0}"#, END, STOP]);
    let seen = run(&events);
    let found = seen.iter().find_map(|event| match event {
        ModelEvent::Block { block, .. } => Some(block.json().to_owned()),
        ModelEvent::Failed(failure) => Some(format!("{:?}: {}", failure.class, failure.message)),
        _ => None,
    });
    assert_eq!(found.as_deref(), Some(expected));
    seen
}

/// What a last event after the start of a response leads to.
fn check_failure(events: &[&str], expected: &str) {
    let all: Vec<&str> = std::iter::once(START).chain(events.iter().copied()).collect();
    let seen = run(&all);
    let last = line(seen.last().unwrap());
    assert!(last.contains(expected), "{last}");
}

#[test]
fn a_response_comes_out_in_order() {
    check(
        &[
            r#"{"type":"ping"}"#,
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"something_new","index":0}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi \"you\""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\n"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            END,
            STOP,
        ],
        &[
            "started m1 x in=7",
            r#"start 0 {"type":"text","text":""}"#,
            r#"delta 0 Text("Hi \"you\"")"#,
            r#"delta 0 Text("\n")"#,
            r#"block 0 {"type":"text","text":"Hi \"you\"\n"}"#,
            "ended end_turn in=7 out=9",
        ],
    );
}

#[test]
fn blocks_that_are_open_at_once_come_out_in_their_order() {
    let seen = run(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"c"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        END,
        STOP,
    ]);
    let blocks: Vec<_> = seen.iter().map(line).filter(|line| line.starts_with("block")).collect();
    let texts = ["a", "b", "c"].iter().enumerate();
    let expected = texts.map(|(index, text)| format!(r#"block {index} {{"type":"text","text":"{text}"}}"#));
    assert_eq!(blocks, expected.collect::<Vec<_>>());
}

#[test]
fn unknown_events_and_deltas_may_use_known_names_for_something_else() {
    check(
        &[
            START,
            r#"{"type":"news","index":"first","delta":3,"usage":[],"message":null,"content_block":"x"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"news_delta","text":{"a":1},"signature":5}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            END,
            STOP,
        ],
        &[
            "started m1 x in=7",
            r#"start 0 {"type":"text","text":"a"}"#,
            r#"delta 0 Other("{\"type\":\"news_delta\",\"text\":{\"a\":1},\"signature\":5}")"#,
            r#"block 0 {"type":"text","text":"a"}"#,
            "ended end_turn in=7 out=9",
        ],
    );
    check_block(
        r#"{"type":"news", "text":{"a":1.10},"id":7,"is_error":"no","n":1e400}"#,
        &[],
        r#"{"type":"news", "text":{"a":1.10},"id":7,"is_error":"no","n":1e400}"#,
    );
}

#[test]
fn blocks_keep_their_skeleton() {
    check_block(r#"{"type": "text", "text": ""}"#, &[], r#"{"type": "text", "text": ""}"#);
    check_block(
        r#"{"a":[1, 2],"text":"","type":"text","z":null}"#,
        &[r#"{"type":"text_delta","text":"hi"}"#],
        r#"{"a":[1, 2],"text":"hi","type":"text","z":null}"#,
    );
    check_block(
        r#"{"type":"text","text":"be"}"#,
        &[r#"{"type":"text_delta","text":"gun"}"#],
        r#"{"type":"text","text":"begun"}"#,
    );
    check_block(
        r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"x":1.0}]}"#,
        &[],
        r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"x":1.0}]}"#,
    );
    check_block(
        r#"{"type":"connector_text","text":""}"#,
        &[r#"{"type":"text_delta","text":"n"}"#],
        r#"{"type":"connector_text","text":"n"}"#,
    );
    check_block(
        r#"{"type":"redacted_thinking","data":"zz"}"#,
        &[],
        r#"{"type":"redacted_thinking","data":"zz"}"#,
    );
}

#[test]
fn thinking_takes_its_signature() {
    check_block(
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        &[
            r#"{"type":"thinking_delta","thinking":"hm","estimated_tokens":3}"#,
            r#"{"type":"thinking_delta","thinking":"m"}"#,
            r#"{"type":"signature_delta","signature":"old"}"#,
            r#"{"type":"signature_delta","signature":"EqQ="}"#,
        ],
        r#"{"type":"thinking","thinking":"hmm","signature":"EqQ="}"#,
    );
    check_block(
        r#"{"type":"thinking","thinking":""}"#,
        &[r#"{"type":"signature_delta","signature":"s"}"#],
        r#"{"type":"thinking","thinking":"","signature":"s"}"#,
    );
}

#[test]
fn thinking_that_a_start_and_its_first_delta_both_hold_counts_once() {
    let check = |start: &str, deltas: &[&str], expected: &str| {
        let deltas: Vec<String> = deltas
            .iter()
            .map(|text| format!(r#"{{"type":"thinking_delta","thinking":"{text}"}}"#))
            .chain([r#"{"type":"signature_delta","signature":"s"}"#.to_owned()])
            .collect();
        let seen = check_block(
            &format!(r#"{{"type":"thinking","thinking":"{start}","signature":""}}"#),
            &deltas.iter().map(String::as_str).collect::<Vec<_>>(),
            &format!(r#"{{"type":"thinking","thinking":"{expected}","signature":"s"}}"#),
        );
        // Whoever puts the pieces together themselves gets the same.
        let pieces = seen.iter().filter_map(|event| match event {
            ModelEvent::Delta { delta: Delta::Thinking(text), .. } => Some(text.as_str()),
            _ => None,
        });
        let pieces = [start].into_iter().chain(pieces).collect::<String>();
        assert_eq!(pieces.replace('\n', "\\n"), expected);
    };
    check("hmm", &["hmm"], "hmm");
    check("hmm", &["hmm", " so"], "hmm so");
    check("hmm", &["hmm", "hmm"], "hmmhmm");
    check("hmm", &[" so", "hmm"], "hmm sohmm");
    check("hmm", &[], "hmm");
    check("hm", &["hmm"], "hmhmm");
    check("", &["", "hmm"], "hmm");
    check("a\\nb", &["a\\nb", "c"], "a\\nbc");
}

#[test]
fn tool_input_is_kept_as_the_model_wrote_it() {
    let tool = r#"{"type":"tool_use","id":"t","name":"N","input":{},"caller":{"type":"direct"}}"#;
    let input =
        |json: &str| serde_json::json!({"type": "input_json_delta", "partial_json": json}).to_string();
    let check = |pieces: &[&str], expected: &str| {
        let deltas: Vec<_> = pieces.iter().map(|piece| input(piece)).collect();
        let deltas: Vec<_> = deltas.iter().map(String::as_str).collect();
        let expected = format!(
            r#"{{"type":"tool_use","id":"t","name":"N","input":{expected},"caller":{{"type":"direct"}}}}"#
        );
        check_block(tool, &deltas, &expected);
    };
    check(&[], "{}");
    check(&["", ""], "{}");
    check(&["", r#"{"z": 1,"#, r#" "a":"x"}"#], r#"{"z": 1, "a":"x"}"#);
    check(&[r#"{"a":"cut"#], r#"{"unparsed":"{\"a\":\"cut"}"#);
    check(&["[1]"], r#"{"unparsed":"[1]"}"#);
    check(&[r#"{"unparsed":"x"}"#], r#"{"unparsed":"x"}"#);
    check(&[r#"{"a":"\ud83d"#, r#"\ude00 \ud800"}"#], r#"{"a":"\ud83d\ude00 \ufffd"}"#);
    check_block(
        r#"{"type":"tool_use","id":"t","name":"N","input":{"whole":true}}"#,
        &[],
        r#"{"type":"tool_use","id":"t","name":"N","input":{"whole":true}}"#,
    );
    check_block(
        r#"{"type":"tool_use","id":"t","name":"N","input":""}"#,
        &[],
        r#"{"type":"tool_use","id":"t","name":"N","input":{}}"#,
    );
    check_block(
        r#"{"type":"server_tool_use","id":"t","name":"N","input":{}}"#,
        &[&input(r#"{"query":"q"}"#)],
        r#"{"type":"server_tool_use","id":"t","name":"N","input":{"query":"q"}}"#,
    );
}

#[test]
fn citations_compaction_and_unknown_deltas() {
    check_block(
        r#"{"type":"text","text":"","citations":[{"n":0}]}"#,
        &[
            r#"{"type":"citations_delta","citation":{"n": 1}}"#,
            r#"{"type":"text_delta","text":"x"}"#,
            r#"{"type":"citations_delta","citation":{"n":2}}"#,
        ],
        r#"{"type":"text","text":"x","citations":[{"n":0},{"n": 1},{"n":2}]}"#,
    );
    check_block(
        r#"{"type":"text","text":"","citations":null}"#,
        &[r#"{"type":"citations_delta","citation":{"n":1}}"#],
        r#"{"type":"text","text":"","citations":[{"n":1}]}"#,
    );
    check_block(
        r#"{"type":"compaction","content":null}"#,
        &[r#"{"type":"compaction_delta","content":"sum","encrypted_content":"e"}"#],
        r#"{"type":"compaction","content":"sum","encrypted_content":"e"}"#,
    );
    check_block(
        r#"{"type":"text","text":"x"}"#,
        &[r#"{"type":"sparkle_delta","s":1}"#],
        r#"{"type":"text","text":"x"}"#,
    );
    let mut response = ResponseAssembler::default();
    response.on_event(START);
    response
        .on_event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#);
    let event = response
        .on_event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"sparkle_delta","s":1}}"#);
    let Some(ModelEvent::Delta { delta, .. }) = event else {
        panic!("no delta: {event:?}");
    };
    assert!(
        matches!(&delta, Delta::Other(json) if &**json == r#"{"type":"sparkle_delta","s":1}"#),
        "{delta:?}"
    );
}

#[test]
fn lone_surrogates_do_not_stop_a_response() {
    check_block(
        r#"{"type":"text","text":""}"#,
        &[r#"{"type":"text_delta","text":"a\ud83d \ud83d\ude00"}"#],
        "{\"type\":\"text\",\"text\":\"a\u{fffd} \u{1f600}\"}",
    );
}

#[test]
fn a_surrogate_pair_may_be_split_over_two_deltas() {
    let text = r#"{"type":"text","text":""}"#;
    let check = |pieces: &[&str], expected: &str| {
        let deltas: Vec<_> =
            pieces.iter().map(|piece| format!(r#"{{"type":"text_delta","text":"{piece}"}}"#)).collect();
        let deltas: Vec<_> = deltas.iter().map(String::as_str).collect();
        check_block(text, &deltas, &format!(r#"{{"type":"text","text":"{expected}"}}"#));
    };
    check(&[r"a\ud83d", r"\ude00b"], "a\u{1f600}b");
    check(&[r"a\uD83D", "", r"\uDE00"], "a\u{1f600}");
    check(&[r"a\ud83d", "mpa"], "a\u{fffd}mpa");
    check(&[r"a\ud83d", r"\ud83d", r"\ude00"], "a\u{fffd}\u{1f600}");
    check(&[r"\ude00", r"a\ud83d"], "\u{fffd}a\u{fffd}");
    check(&[r"\ud83d", "\u{1f600}"], "\u{fffd}\u{1f600}");
    check_block(
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        &[
            r#"{"type":"thinking_delta","thinking":"\ud83d"}"#,
            r#"{"type":"thinking_delta","thinking":"\ude00"}"#,
            r#"{"type":"signature_delta","signature":"s"}"#,
        ],
        "{\"type\":\"thinking\",\"thinking\":\"\u{1f600}\",\"signature\":\"s\"}",
    );
    check_block(
        r#"{"type":"tool_use","id":"t","name":"N","input":{}}"#,
        &[
            r#"{"type":"input_json_delta","partial_json":"{\"a\":\"\ud83d"}"#,
            r#"{"type":"input_json_delta","partial_json":"\ude00\"}"}"#,
        ],
        "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"N\",\"input\":{\"a\":\"\u{1f600}\"}}",
    );
    let shown: String = run(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00b"}}"#,
    ])
    .iter()
    .filter_map(|event| match event {
        ModelEvent::Delta { delta: Delta::Text(text), .. } => Some(text.as_str()),
        _ => None,
    })
    .collect();
    assert_eq!(shown, "a\u{1f600}b");
}

#[test]
fn lone_surrogates_of_other_deltas_are_replaced() {
    check_block(
        r#"{"type":"text","text":"x"}"#,
        &[
            r#"{"type":"citations_delta","citation":{"t":"\ud83d"}}"#,
            r#"{"type":"compaction_delta","more":"\ude00"}"#,
        ],
        r#"{"type":"text","text":"x","citations":[{"t":"\ufffd"}],"more":"\ufffd"}"#,
    );
}

#[test]
fn the_model_that_was_asked_stands_in_for_one_without_a_name() {
    let check = |message: &str, expected: &str| {
        let mut response = ResponseAssembler::for_model("asked".into());
        let start = format!(r#"{{"type":"message_start","message":{message}}}"#);
        let Some(ModelEvent::Started { model, .. }) = response.on_event(&start) else {
            panic!("not started: {message}");
        };
        assert_eq!(&*model, expected, "{message}");
    };
    check(r#"{"id":"m","model":"answering"}"#, "answering");
    check(r#"{"id":"m","model":""}"#, "asked");
    check(r#"{"id":"m","model":" "}"#, "asked");
    check(r#"{"id":"m","model":null}"#, "asked");
    check(r#"{"id":"m"}"#, "asked");
}

#[test]
fn odd_usage_says_nothing_and_stops_nothing() {
    let check = |usage: &str, expected: &str| {
        let end =
            format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#);
        let seen = run(&[START, &end, STOP]);
        assert_eq!(line(seen.last().unwrap()), expected, "{usage}");
    };
    check(r#"{"input_tokens":"12","output_tokens":3}"#, "ended end_turn in=7 out=3");
    check(r#"{"output_tokens":true,"input_tokens":9}"#, "ended end_turn in=9 out=1");
    check(r#"{"output_tokens":3,"cache_creation":0}"#, "ended end_turn in=7 out=3");
    check(r#"{"output_tokens":3,"cache_creation":null,"server_tool_use":null}"#, "ended end_turn in=7 out=3");
    check(r#"{"output_tokens":3,"server_tool_use":{"web_search_requests":{}}}"#, "ended end_turn in=7 out=3");
    check(r#"{"output_tokens":3,"service_tier":1,"iterations":{}}"#, "ended end_turn in=7 out=3");
    check(r#"{"output_tokens":3,"output_tokens":4}"#, "ended end_turn in=7 out=1");
    check("[]", "ended end_turn in=7 out=1");
    check("null", "ended end_turn in=7 out=1");
    let many = format!(r#"{{"output_tokens":3,"iterations":[{}1]}}"#, "1,".repeat(100_000));
    let end = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{many}}}"#);
    let Some(ModelEvent::Ended { usage, .. }) = run(&[START, &end, STOP]).pop() else {
        panic!("not ended");
    };
    assert!(usage.iterations.is_none(), "a list of this size is not usage");
}

#[test]
fn usage_is_cumulative() {
    let mut response = ResponseAssembler::default();
    response.on_event(
        r#"{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":5,"output_tokens":2,
            "cache_creation_input_tokens":100,"cache_read_input_tokens":10,"service_tier":"standard",
            "cache_creation":{"ephemeral_5m_input_tokens":60,"ephemeral_1h_input_tokens":40},"server_tool_use":null}}}"#,
    );
    response.on_event(
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20.0}}"#,
    );
    response.on_event(
        r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":30,"input_tokens":900,
            "cache_read_input_tokens":null,"server_tool_use":{"web_search_requests":2},"iterations":[{"type":"message"}]}}"#,
    );
    let Some(ModelEvent::Ended { stop, usage }) = response.on_event(STOP) else {
        panic!("not ended");
    };
    assert_eq!(stop.name(), "tool_use");
    assert_eq!((usage.input_tokens, usage.output_tokens), (900, 30));
    assert_eq!((usage.cache_creation_input_tokens, usage.cache_read_input_tokens), (100, 10));
    assert_eq!(usage.cache_creation.ephemeral_1h_input_tokens, 40);
    assert_eq!(usage.server_tool_use.web_search_requests, 2);
    assert_eq!(usage.service_tier.as_deref(), Some("standard"));
    assert_eq!(usage.iterations.as_deref().unwrap().0.get(), r#"[{"type":"message"}]"#);
}

#[test]
fn errors_in_the_stream_are_classified() {
    let check = |json: &str, expected: &str| check(&[START, json], &["started m1 x in=7", expected]);
    check(
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
        "Overloaded: The model's server is overloaded: Overloaded.",
    );
    check(
        r#"{"error":{"type":"api_error","message":"Internal server error"}}"#,
        "Server: The model's server failed: Internal server error.",
    );
    check(
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#,
        "RateLimited: The model's server reports too many requests: slow down.",
    );
}

#[test]
fn what_breaks_the_protocol_is_malformed() {
    let block = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"N","input":{}}}"#;
    check_failure(&[r#"{"type":"content_block_"#], "Malformed: Invalid response stream: not JSON");
    check_failure(&["{}"], "event without `type`");
    check_failure(&[START], "a second `message_start`");
    check_failure(&[block, block], "block 0 starts twice");
    check_failure(
        &[block, r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}"#],
        "`delta`: invalid type",
    );
    check_failure(
        &[r#"{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"x"}}"#],
        "block 4 is not open",
    );
    check_failure(&[r#"{"type":"content_block_stop","index":0}"#], "block 0 is not open");
    check_failure(&[r#"{"type":"content_block_stop"}"#], "without `index`");
    check_failure(&[r#"{"type":"content_block_start","index":0,"content_block":7}"#], "`content_block`:");
    check_failure(&[r#"{"type":"content_block_start","index":0}"#], "`content_block` is missing");
    check_failure(
        &[block, r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#],
        "`text_delta` does not fit the type of block 0",
    );
    check_failure(
        &[block, r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta"}}"#],
        "`input_json_delta` without `partial_json`",
    );
    check_failure(&[block, END, STOP], "`message_stop` before the end of block 0");
    check_failure(
        &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
        ],
        "block 0: not a content block: `tool_use` without `name`",
    );
    let mut response = ResponseAssembler::default();
    assert!(
        line(&response.on_event(block).unwrap()).contains("`content_block_start` before `message_start`")
    );
}

#[test]
fn a_stream_without_its_end_is_cut() {
    check(&[], &["Cut: The response stream broke off before the response."]);
    check_failure(&[], "Cut: The response stream broke off during the response.");
    check_failure(&[END], "Cut: The response stream broke off");
    check_failure(&[STOP], "Cut: The response stream ended without a stop reason.");
}

/// How long it takes to put one text block together from pieces.
fn time_of(pieces: usize, piece_bytes: usize) -> Duration {
    let delta = format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{}"}}}}"#,
        "x".repeat(piece_bytes)
    );
    let start = Instant::now();
    let mut response = ResponseAssembler::default();
    response.on_event(START);
    response
        .on_event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#);
    for _ in 0..pieces {
        response.on_event(&delta);
    }
    let Some(ModelEvent::Block { block, .. }) =
        response.on_event(r#"{"type":"content_block_stop","index":0}"#)
    else {
        panic!("no block");
    };
    assert_eq!(block.as_text().unwrap().len(), pieces * piece_bytes);
    start.elapsed()
}

/// Eight times the work may take 32 times as long, for a busy machine, but not 64 times, five times in a row.
#[test]
fn time_grows_with_the_size_alone() {
    let check = |small: (usize, usize), large: (usize, usize)| {
        let linear = || time_of(large.0, large.1) < time_of(small.0, small.1) * 8 * 4;
        assert!((0..5).any(|_| linear()), "{large:?}");
    };
    check((12_500, 10), (100_000, 10));
    check((1, 128 * 1024), (1, 1024 * 1024));
}

/// Cuts, swaps and repeats events and damages their text.
fn mutate(random: &mut XorShift, events: &mut Vec<String>) {
    const SPICE: &[&str] = &["\"", "{", "}", "\\ud800", "null", "-1", "é", ":", "index", ","];
    for _ in 0..=random.below(3) {
        let at = random.below(events.len());
        match random.below(5) {
            0 => events.insert(at, events[random.below(events.len())].clone()),
            1 if events.len() > 1 => {
                events.remove(at);
            }
            2 => {
                let other = random.below(events.len());
                events.swap(at, other);
            }
            _ => {
                let places: Vec<_> = events[at].char_indices().map(|(place, _)| place).collect();
                let from = places.get(random.below(places.len())).copied().unwrap_or(0);
                let to =
                    places.iter().copied().find(|place| *place >= from + random.below(8)).unwrap_or(from);
                events[at].replace_range(from..to, SPICE[random.below(SPICE.len())]);
            }
        }
    }
}

#[test]
fn mutated_responses_never_panic_and_end_once() {
    let delta = |json: &str| format!(r#"{{"type":"content_block_delta","index":0,"delta":{json}}}"#);
    let corpus: Vec<String> = vec![
        START.to_owned(),
        r#"{"type":"ping"}"#.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"connector_text","text":""}}"#
            .to_owned(),
        delta(r#"{"type":"text_delta","text":"a\ud83d\ude00"}"#),
        delta(r#"{"type":"input_json_delta","partial_json":"{\"a\":1}"}"#),
        delta(r#"{"type":"signature_delta","signature":"s"}"#),
        delta(r#"{"type":"citations_delta","citation":{"n":1}}"#),
        delta(r#"{"type":"compaction_delta","content":"c"}"#),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        END.to_owned(),
        STOP.to_owned(),
    ];
    let seed = XorShift::seed_for_this_run();
    println!("seed {seed}");
    let mut random = XorShift::new(seed);
    for _ in 0..10_000 {
        let mut events = corpus.clone();
        mutate(&mut random, &mut events);
        let events: Vec<_> = events.iter().map(String::as_str).collect();
        let seen = run(&events);
        let ends = |event: &ModelEvent| matches!(event, ModelEvent::Ended { .. } | ModelEvent::Failed(_));
        assert_eq!(seen.iter().filter(|event| ends(event)).count(), 1, "seed {seed}: {events:?}");
        assert!(seen.last().is_some_and(ends), "seed {seed}: {events:?}");
    }
}
