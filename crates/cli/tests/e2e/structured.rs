//! Answers that must match a schema.

use serde_json::json;

use crate::support::{STREAM, Stage, result};

const SCHEMA: [&str; 2] = ["--json-schema", r#"{"type": "object", "required": ["n"]}"#];

#[test]
fn an_answer_is_tried_again_until_it_matches() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "{}"}]}, {"blocks": [{"text": "{\"n\": 1}"}]}]"#);
    let finished = stage.run(&[&STREAM[..], &SCHEMA].concat());
    let result = result(&finished);
    assert_eq!((finished.code(), &result["structured_output"]), (Some(0), &json!({"n": 1})));
    assert!(stage.last_user_text().contains("does not match the schema"));
}

#[test]
fn the_number_of_tries_is_a_setting() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "{}"}], "repeat": 9}]"#);
    let command = stage.command(&[&STREAM[..], &SCHEMA].concat()).env("MAX_STRUCTURED_OUTPUT_RETRIES", "1");
    let finished = command.run().unwrap();
    let result = result(&finished);
    assert_eq!(finished.code(), Some(1));
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(result["terminal_reason"], "structured_output_retry_exhausted");
    assert_eq!((result.get("structured_output"), stage.server.exchanges().len()), (None, 2));
}
