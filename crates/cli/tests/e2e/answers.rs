//! What goes back to the model with its next request: its own words untouched, and what its calls found.

use crate::support::{PNG, Stage};

#[test]
fn an_answer_goes_back_byte_for_byte() {
    let stage = Stage::new(
        r#"[{"blocks": [
                {"thinking": "Hm \u2014 \"a\" or \"b\"?\nRead it.", "signature": "c2ln/+bmVk=="},
                {"redacted_thinking": "b3BhcXVl/+=="},
                {"raw": {"type": "hologram", "zeta": [1.50, -0.0, null], "alpha": {"\u00e9": "\ud83d\ude00\t"}}},
                {"tool": "Read", "id": "toolu_7", "input_json": "{ \"limit\" : 1,\n \"file_path\":\"\\u0061.txt\" }"}
             ], "delta_chars": 3},
            {"blocks": [{"text": "Done."}]}]"#,
    );
    stage.project.write("a.txt", "hi\n").unwrap();
    let finished = stage.run(&["-p", "go"]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Done.\n"), "{finished:?}");
    let body = String::from_utf8(stage.server.exchanges()[1].body.to_vec()).unwrap();
    let blocks = [
        r#"{"type":"thinking","thinking":"Hm — \"a\" or \"b\"?\nRead it.","signature":"c2ln/+bmVk=="}"#,
        r#"{"type":"redacted_thinking","data":"b3BhcXVl/+=="}"#,
        r#"{"type":"hologram","zeta":[1.5,-0.0,null],"alpha":{"é":"😀\t"}}"#,
        "{\"type\":\"tool_use\",\"id\":\"toolu_7\",\"name\":\"Read\",\
         \"input\":{ \"limit\" : 1,\n \"file_path\":\"\\u0061.txt\" }}",
    ];
    let expected = format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","));
    assert!(body.contains(&expected), "{expected} is not in {body}");
}

#[test]
fn an_image_is_read_as_an_image() {
    let stage = Stage::call("Read", r#"{"file_path": "dot.png"}"#);
    stage.project.write("dot.png", PNG).unwrap();
    let finished = stage.run(&["-p", "go"]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Done.\n"), "{finished:?}");
    let request = stage.request(1);
    let result = &request["messages"][2]["content"][0];
    assert_eq!(
        (&result["type"], &result["tool_use_id"]),
        (&"tool_result".into(), &"toolu_script_1_1".into())
    );
    let image = &result["content"][0];
    assert_eq!(image["type"], "image", "{result}");
    assert_eq!(image["source"]["type"], "base64");
    assert_eq!(image["source"]["media_type"], "image/png");
    assert_eq!(
        image["source"]["data"],
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
    );
}
