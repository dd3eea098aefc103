//! A whole session, for people and for programs.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};
use windlass_session::{ExportFormat, export};

use crate::support::{World, user};

const CWD: &str = "/nowhere/app";

fn entry(kind: &str, uuid: &str, content: &Value) -> Value {
    json!({"type": kind, "uuid": uuid, "timestamp": "2026-11-13T10:20:31.000Z", "message": {"content": content}})
}

/// A session with a call, a compaction, a response that did not stand, and a secret.
fn lines() -> Vec<Value> {
    let mut gone = entry("assistant", "u2", &json!([{"type": "text", "text": "never mind"}]));
    gone["windlass"] = json!({"is": "answered", "n": 2});
    let boundary = json!({
        "type": "system", "subtype": "compact_boundary", "uuid": "u7", "parentUuid": null,
        "timestamp": "2026-11-13T10:20:31.000Z", "compactMetadata": {"trigger": "auto", "preTokens": 167_000},
    });
    let mut summary = entry("user", "u8", &json!("They fixed it."));
    summary["isCompactSummary"] = true.into();
    let mut note = entry("attachment", "u9", &json!("a note"));
    note["isMeta"] = true.into();
    let call = json!([
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.md"}},
    ]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [
        {"type": "text", "text": "```\nsecret-7\n```"}, {"type": "image"}]}]);
    vec![
        user(Path::new(CWD), "Fix it with secret-7"),
        gone,
        json!({"type": "windlass", "kind": "retracted", "seq": 2, "of": [2]}),
        entry("assistant", "u3", &call),
        entry("assistant", "u3", &call),
        entry("user", "u4", &result),
        boundary,
        summary,
        note,
        json!({"type": "windlass", "kind": "rewound", "seq": 3, "of": {"to": null}}),
        entry("assistant", "u10", &json!([{"type": "text", "text": "# Done"}])),
    ]
}

fn exported(format: ExportFormat) -> String {
    let world = World::new();
    world.session(Path::new(CWD), 1, &lines());
    let session = world.list(Path::new(CWD)).remove(0);
    let mut bytes = Vec::new();
    export(&session, format, &|text| Cow::Owned(text.replace("secret-7", "[hidden]")), &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn text_holds_everything_that_stood() {
    let expected = "\
Fix it with [hidden]

Session      11110000-0000-4000-8000-000000000001
Started      2026-11-13 10:20:30 UTC
Last change  2023-11-14 22:13:21 UTC
Directory    /nowhere/app
Branch       main

== You (2026-11-13 10:20:30 UTC)
Fix it with [hidden]

== Assistant (2026-11-13 10:20:31 UTC)
(thinking)
hm
(calls Read)
{\"file_path\":\"a.md\"}

== Result of Read (2026-11-13 10:20:31 UTC)
(failed)
```
[hidden]
```
[image]

---- Compacted at 2026-11-13 10:20:31 UTC, auto, 167000 tokens before: the model continued from a summary ----

== Summary of the compacted conversation (2026-11-13 10:20:31 UTC)
They fixed it.

== Note to the model (2026-11-13 10:20:31 UTC)
a note

---- The conversation was rewound to an earlier message and continues from there ----

== Assistant (2026-11-13 10:20:31 UTC)
# Done
";
    assert_eq!(exported(ExportFormat::Text), expected);
}

#[test]
fn markdown_fences_what_tools_returned() {
    let page = exported(ExportFormat::Markdown);
    for piece in [
        "# Fix it with [hidden]\n\n| | |\n|---|---|\n| Session | 1111",
        "### You \u{b7} 2026-11-13 10:20:30 UTC\n\n> Fix it with [hidden]\n",
        "*Thinking:*\n\n> hm\n",
        "Calls **Read**:\n\n```json\n{\"file_path\":\"a.md\"}\n```\n",
        "Failed:\n\n````\n```\n[hidden]\n```\n[image]\n````\n",
        "\n---\n\n**Compacted at",
        "\n# Done\n",
    ] {
        assert!(page.contains(piece), "{piece}\nis not in\n{page}");
    }
    assert!(!page.contains("secret-7") && !page.contains("never mind"), "{page}");
}

#[test]
fn json_is_one_object_with_every_message() {
    let text = exported(ExportFormat::Json);
    assert!(!text.contains("secret-7"), "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["session"]["sessionId"], "11110000-0000-4000-8000-000000000001");
    let of = |line: &Value| match line["type"].as_str().unwrap() {
        "message" => line["who"].as_str().unwrap().to_owned(),
        other => other.to_owned(),
    };
    let kinds: Vec<String> = value["messages"].as_array().unwrap().iter().map(of).collect();
    let expected =
        ["user", "assistant", "assistant", "tool", "compacted", "summary", "engine", "rewound", "assistant"];
    assert_eq!(kinds, expected);
    assert_eq!(value["messages"][1]["retracted"], true);
    assert_eq!(value["messages"][2].get("retracted"), None);
    assert_eq!(value["messages"][3]["tool"], "Read");
    assert_eq!(value["messages"][2]["message"]["content"][0]["thinking"], "hm");
    assert_eq!(value["messages"][0]["timestamp"], "2026-11-13T10:20:30.123Z");
}
