use super::*;

fn check(json: &str, bytes_max: usize, expected: &str) {
    let short = String::from_utf8(shorten_strings(json.as_bytes(), bytes_max)).unwrap();
    assert_eq!(short, expected);
    serde_json::from_str::<serde_json::Value>(&short).unwrap();
}

#[test]
fn strings_are_cut_between_characters_and_escapes() {
    check(r#"{"a":"1234"}"#, 4, r#"{"a":"1234"}"#);
    check(
        r#"{"a":"12345","b":[1,true]}"#,
        4,
        r#"{"a":"1234[1 bytes omitted to keep this line short]","b":[1,true]}"#,
    );
    check(r#""abc\n12""#, 4, r#""abc[4 bytes omitted to keep this line short]""#);
    check(r#""ab\u00e9x""#, 4, r#""ab[7 bytes omitted to keep this line short]""#);
    check(r#""\ud83d\ude00xx""#, 8, r#""[14 bytes omitted to keep this line short]""#);
    check("\"aé€😀\"", 4, "\"aé[7 bytes omitted to keep this line short]\"");
    check(r#"["\\","x\"y"]"#, 4, r#"["\\","x\"y"]"#);
}

fn check_lists(json: &str, items_max: usize, expected: &str) {
    let short = String::from_utf8(shorten_lists(json.as_bytes(), items_max)).unwrap();
    assert_eq!(short, expected);
    serde_json::from_str::<serde_json::Value>(&short).unwrap();
}

#[test]
fn lists_are_cut_between_items() {
    check_lists(r#"{"a":[1,2],"b":[],"c":"[,"}"#, 2, r#"{"a":[1,2],"b":[],"c":"[,"}"#);
    check_lists(r#"{"a":[1,2,3,4],"b":5,"c":6,"d":7}"#, 2, r#"{"a":[1,2],"b":5,"c":6,"d":7}"#);
    check_lists(r#"[[1,2,3],{"x":[]},[[4,5],6]]"#, 2, r#"[[1,2],{"x":[]}]"#);
    check_lists(
        r#"{"a":["x","y]","[\"",","],"b":1}"#,
        1,
        r#"{"a":["x","[3 more omitted to keep this line short]"],"b":1}"#,
    );
    check_lists(
        r#"[{"type":"text","text":"a"},{"type":"text","text":"b"},{"x":[1,2]}]"#,
        1,
        r#"[{"type":"text","text":"a"},{"type":"text","text":"[2 more omitted to keep this line short]"}]"#,
    );
}

#[test]
fn large_pictures_become_a_note() {
    let picture = Block::image("image/png", &"A".repeat(2000));
    let result = Block::tool_result("t", &[Block::text("seen"), picture.clone()], false);
    let seen = block_at(&result, DetailLevel::Shortened(1000));
    assert_eq!(
        seen.json(),
        format!(
            r#"{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"text","text":"seen"}},{{"type":"text","text":"[{} bytes omitted to keep this line short]"}}]}}"#,
            picture.json().len()
        )
    );
    assert_eq!(block_at(&result, DetailLevel::WithoutStructured), result);
}

#[test]
fn only_a_line_feed_ends_a_line() {
    let text = "é a\u{2028}b\u{2029}\u{85}c ≠ €";
    let mut out = Vec::new();
    append(&mut out, |_, out| write_json(&Block::text(text), out));
    let line = String::from_utf8(out).unwrap();
    assert_eq!(line, "{\"type\":\"text\",\"text\":\"é a\\u2028b\\u2029\\u0085c ≠ €\"}\n");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap()["text"], text);
}

#[test]
fn a_line_of_many_small_pieces_falls_back_to_the_bare_message() {
    let input = format!("[{}1]", "1,".repeat(LINE_BYTES_MAX));
    let input = format!(r#"{{"numbers":{input}}}"#);
    let block = Block::tool_use("t", "N", RawValue::from_string(input).unwrap());
    let mut out = b"before\n".to_vec();
    append(&mut out, |detail, out| write_json(&block_at(&block, detail), out));
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "before\n{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"N\",\"input\":{}}\n"
    );
}
