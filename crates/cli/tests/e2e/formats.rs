//! What appears on standard output, and that nothing else does.

use serde_json::Value;

use crate::support::{STREAM, Stage, check_failed, check_refused, result};

fn types(lines: &[Value]) -> Vec<String> {
    let name = |line: &Value| match line["subtype"].as_str() {
        Some(subtype) => format!("{}/{subtype}", line["type"].as_str().unwrap()),
        None => line["type"].as_str().unwrap().to_owned(),
    };
    lines.iter().map(name).collect()
}

#[test]
fn text_is_the_final_text_and_nothing_else() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "Looking."}, {"tool": "Read", "input": {"file_path": "a.txt"}}]},
            {"blocks": [{"text": "It says hi."}]}]"#,
    );
    stage.project.write("a.txt", "hi\n").unwrap();
    let finished = stage.run(&["-p", "go"]);
    assert_eq!(finished.stdout, "It says hi.\n");
    assert_eq!(finished.stderr, "");
    assert_eq!(finished.code(), Some(0));
}

#[test]
fn verbose_text_says_what_happens_on_standard_error() {
    let stage = Stage::call("Read", r#"{"file_path": "a.txt"}"#);
    stage.project.write("a.txt", "hi\n").unwrap();
    let finished = stage.run(&["-p", "go", "--verbose"]);
    assert_eq!(finished.stdout, "Done.\n");
    assert!(finished.stderr.contains("Read") && finished.stderr.contains("a.txt"), "{}", finished.stderr);
    assert!(finished.stderr.contains("2 turns") && finished.stderr.contains("tokens"), "{}", finished.stderr);
    assert!(!finished.stderr.contains('\x1b'), "no control sequences where there is no terminal");
}

#[test]
fn json_is_one_result() {
    let finished = Stage::hello().run(&["-p", "go", "--output-format", "json"]);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
    let result = result(&finished);
    assert_eq!(finished.stdout.lines().count(), 1);
    assert_eq!(result["result"], "Hello.");
    assert_eq!(result["is_error"], false);
    assert!(result["total_cost_usd"].as_f64().is_some_and(|usd| usd > 0.0), "the default model has a price");
}

#[test]
fn a_stream_begins_with_init_and_ends_with_the_result() {
    let stage = Stage::call("Read", r#"{"file_path": "a.txt"}"#);
    stage.project.write("a.txt", "hi\n").unwrap();
    let finished = stage.run(&STREAM);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
    let lines = finished.json_lines().unwrap();
    assert_eq!(types(&lines), ["system/init", "assistant", "user", "assistant", "result/success"]);
    assert_eq!(lines[0]["cwd"], stage.project.path().canonicalize().unwrap().to_str().unwrap());
    assert_eq!(lines[0]["model"], "claude-opus-5-5");
    assert_eq!(lines[0]["apiKeySource"], "ANTHROPIC_API_KEY");
    assert_eq!(lines[2]["tool_use_result"]["type"], "text");
    assert!(lines.iter().all(|line| line["session_id"] == lines[0]["session_id"]));
    assert_eq!(lines[4]["num_turns"], 2);
}

#[test]
fn partial_messages_come_as_stream_events() {
    let finished = Stage::hello().run(&[&STREAM[..], &["--include-partial-messages"]].concat());
    let lines = finished.json_lines().unwrap();
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"]["type"].as_str()).collect();
    assert_eq!(
        events,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    result(&finished);
}

#[test]
fn the_limit_of_turns_is_an_error_without_a_text() {
    let call = r#"{"blocks": [{"tool": "Read", "input": {"file_path": "a.txt"}}], "repeat": 5}"#;
    let finished = Stage::new(&format!("[{call}]")).run(&[&STREAM[..], &["--max-turns", "2"]].concat());
    let result = result(&finished);
    assert_eq!(finished.code(), Some(1));
    assert_eq!(result["subtype"], "error_max_turns");
    assert_eq!(result["terminal_reason"], "max_turns");
    assert_eq!(result.get("result"), None);
    assert!(!result["errors"][0].as_str().unwrap().is_empty());
    let finished = Stage::new(&format!("[{call}]")).run(&["-p", "go", "--max-turns", "2"]);
    check_failed(&finished, &["Reached maximum number of turns (2)", "--max-turns"]);
}

#[test]
fn a_retry_is_shown() {
    let stage = Stage::new(
        r#"[{"fault": {"status": {"code": 529, "message": "Overloaded", "headers": {"retry-after-ms": "5"}}}},
            {"blocks": [{"text": "Hello."}]}]"#,
    );
    let lines = stage.run(&STREAM).json_lines().unwrap();
    assert_eq!(types(&lines), ["system/init", "system/api_retry", "assistant", "result/success"]);
    assert_eq!(lines[1]["error"], "overloaded");
    assert_eq!(lines[1]["error_status"], 529);
}

#[test]
fn version_and_help_are_for_people_and_hosts() {
    let stage = Stage::hello();
    for flag in ["-v", "-V", "--version"] {
        let finished = stage.run(&[flag]);
        assert_eq!(finished.code(), Some(0));
        let ours = concat!("windlass ", env!("CARGO_PKG_VERSION"), " (");
        assert!(finished.stdout.starts_with(ours), "{}", finished.stdout);
    }
}

#[test]
fn help_says_what_there_is() {
    let stage = Stage::hello();
    let check = |arguments: &[&str], words: &[&str]| {
        let help = stage.run(arguments);
        assert_eq!((help.code(), help.stderr.as_str()), (Some(0), ""));
        assert!(help.stdout.lines().all(|line| line.len() <= 80), "{}", help.stdout);
        for word in words {
            assert!(help.stdout.contains(word), "{word:?} is not in {}", help.stdout);
        }
    };
    let flags = [
        "--allowedTools",
        "demo",
        "help environment",
        "130",
        "143",
        "three seconds",
        "manual",
        "-V",
        "--verbose",
        "--max-budget-usd",
        "--input-format",
        "/compact [focus]",
        "+500k",
    ];
    for arguments in [&["--help"][..], &["-h"], &["help"]] {
        check(arguments, &flags);
    }
    check(&["help", "environment"], &["ANTHROPIC_API_KEY", "WINDLASS_SCRIPT", "Default: 120000."]);
    for arguments in [&["demo", "--help"], &["help", "demo"]] {
        check(arguments, &["Usage: windlass demo", "needs no key"]);
    }
    for command in [&["config"][..], &["config", "show"], &["sessions", "export"]] {
        let asked = stage.run(&[&["help"], command].concat()).stdout;
        assert_eq!(asked, stage.run(&[command, &["--help"]].concat()).stdout, "{command:?}");
    }
    check_refused(&stage.run(&["help", "wether"]), &["No help for wether", "windlass help environment"]);
    check_refused(&stage.run(&["help", "config", "wether"]), &["No help for config wether"]);
}
