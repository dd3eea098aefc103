//! One clear error each, an exit code, and nothing lost.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;

use rustix::net::{AddressFamily, SocketType};
use windlass_testkit::Project;

use crate::support::{STREAM, Stage, WINDLASS, check_failed, check_refused, result};

/// Arguments that are refused before anything is sent.
#[track_caller]
fn check(arguments: &[&str], words: &[&str]) {
    let stage = Stage::hello();
    check_refused(&stage.run(arguments), words);
    assert_eq!(stage.server.exchanges().len(), 0, "nothing was sent");
}

#[test]
fn flags_are_checked() {
    check(&["-p", "go", "--nope"], &["windlass: Unknown flag --nope. "]);
    check(&["-p", "go", "--output-fromat", "json"], &["Did you mean --output-format?"]);
    check(&["-p", "go", "--output-format", "xml"], &["--output-format xml", "text, json, stream-json"]);
    check(&["-p", "go", "--model"], &["--model needs a value."]);
    check(&["-p", "go", "--model", ""], &["--model ''", "opus"]);
    check(&["-p", "go", "--verbose=1"], &["windlass: unexpected value '1'"]);
    check(
        &["-p", "go", "--dangerously-skip-permissions", "--permission-mode", "plan"],
        &["--dangerously-skip-permissions contradicts --permission-mode plan"],
    );
    check(&["-p", "go", "--output-format=stream-json"], &["--verbose"]);
    check(&["-p", "go", "--include-partial-messages"], &["stream-json"]);
    for turns in ["0", "-1", "many"] {
        check(&["-p", "go", "--max-turns", turns], &["--max-turns", turns, "a whole number from 1 on"]);
    }
    check(&["-p", "go", "--permission-mode", "yolo"], &["yolo", "acceptEdits"]);
    check(&["-p", "go", "--allowedTools", "Bash(ls"], &["--allowedTools", "Bash(ls", "not closed"]);
    check(
        &["-p", "go", "--disallowedTools", "Bash()"],
        &["--disallowedTools", "Bash()", "parentheses are empty"],
    );
    check(&["-p", "go", "--setting-sources", "moon"], &["--setting-sources moon", "user, project and local"]);
    check(
        &["-p", "go", "--setting-sources", "user,project", "--setting-sources", ""],
        &["--setting-sources is given more than once", "Give it once"],
    );
    check(&["-p", "go", "--settings", "none.json", "--settings", "{}"], &["none.json", "does not exist"]);
    check(&["-p", "go", "--settings", "none.json"], &["none.json", "does not exist"]);
    check(&["-p", "go", "--system-prompt", "a", "--system-prompt-file", "b"], &["cannot be used with"]);
    check(&["-p", "go", "--system-prompt-file", "none.md"], &["none.md", "does not exist"]);
    check(&["-p", "go", "--append-system-prompt-file", "none.md"], &["none.md", "does not exist"]);
    check(&["-p", "go", "--add-dir", "missing"], &["missing", "does not exist"]);
}

#[test]
fn a_session_needs_print_mode_and_a_prompt() {
    check(&[], &["needs a terminal", "windlass -p", "windlass demo"]);
    check(&["fix the test"], &["needs a terminal"]);
    check(&["dmeo"], &["Did you mean `windlass demo`?", "`windlass -p -- dmeo`"]);
    check(
        &["session", "list"],
        &["Did you mean `windlass sessions list`?", "as a prompt: `windlass -p -- 'session list'`."],
    );
    check(&["docter", "-p"], &["Did you mean `windlass doctor`?", "`windlass -p -- 'docter -p'`."]);
    check(&["docter", "--json"], &["Did you mean `windlass doctor --json`?"]);
    check(&["sesions", "lst", "--limit=2"], &["Did you mean `windlass sessions list --limit=2`?"]);
    check(&["helo", "it's", "me"], &[r"`windlass -p -- 'helo it'\''s me'`."]);
    check(&["config"], &["Missing subcommand; try `windlass config show`."]);
    check(&["-p"], &["no prompt"]);
    check(&["-p", "  "], &["no prompt"]);
    check(&["demo", "--fast"], &["takes no arguments", "--fast"]);
}

#[test]
fn a_prompt_that_got_lost_is_found() {
    check(&["-p", "do", "it"], &["Unexpected argument \"it\". Quote a prompt of several words"]);
    check(
        &["-p", "--allowedTools", "Bash", "do it"],
        &["no prompt", "--allowedTools takes every word", "`windlass -p \"do it\" --allowedTools ...`"],
    );
    check(&["-p", "--disallowedTools", "Bash", "go"], &["--disallowedTools takes every word", "\"go\""]);
    check(
        &["-p", "--add-dir", "/tmp", "do it"],
        &["--add-dir takes every word", "`windlass -p \"do it\" --add-dir ...`"],
    );
    check(&["-p", "--allowedTools", "Bash"], &["no prompt. Give one"]);
    check(&["-p", "go", "--add-dir", "missing"], &["Give the path of an existing directory.\n"]);
}

#[test]
fn what_the_reference_has_and_we_do_not_is_said() {
    let flags = ["--mcp-config", "--agents", "--debug=api", "--worktree", "-w"];
    for flag in flags {
        let name = flag.split('=').next().unwrap();
        check(&["-p", "go", flag, "x"], &[&format!("windlass: {name} is not supported yet.")]);
    }
    check(&["mcp", "list"], &["`windlass mcp` is not supported yet"]);
}

/// Flags with nonsense: one clear line, and for hosts a result that says the same.
#[test]
fn limits_and_forms_that_cannot_be_meant() {
    let check = |flags: &[&str], words: &[&str]| {
        let stage = Stage::hello();
        check_refused(&stage.run(&[&["-p", "go"][..], flags].concat()), words);
        let finished = stage.run(&[&STREAM[..], flags].concat());
        assert_eq!(finished.code(), Some(1));
        let result = result(&finished);
        assert_eq!(
            (&result["subtype"], &result["is_error"]),
            (&"error_during_execution".into(), &true.into())
        );
        let error = result["errors"][0].as_str().unwrap().to_owned();
        assert_eq!(finished.stderr, format!("windlass: {error}\n"));
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
        assert_eq!(stage.server.exchanges().len(), 0, "nothing was sent");
    };
    check(&["--max-budget-usd", "0"], &["--max-budget-usd 0", "an amount above 0"]);
    check(&["--max-budget-usd=-1"], &["--max-budget-usd -1"]);
    check(&["--max-budget-usd", "1", "--model", "local-7b"], &["local-7b", "price", "unknown"]);
    check(&["--fallback-model", "opus"], &["--fallback-model opus is already the model"]);
    check(&["--fallback-model", "sonnet,sonnet"], &["already among the fallback models"]);
    check(&["--effort", "hard"], &["--effort hard", "low, medium, high, xhigh or max"]);
    check(&["--thinking", "lots"], &["--thinking lots"]);
    check(&["--thinking", "disabled", "--max-thinking-tokens", "5000"], &["contradicts"]);
    check(&["--json-schema", "{"], &["--json-schema {", "it is not JSON"]);
    check(&["--json-schema", r#"{"type": 5}"#], &["--json-schema", "not a valid JSON schema"]);
    check(&["--task-budget", "5"], &["--task-budget 5", "from 20000 on"]);
    check(&["--autocompact", "5"], &["--autocompact 5"]);
}

#[test]
fn variables_are_checked() {
    let check = |name: &str, value: &str, words: &[&str]| {
        let stage = Stage::hello();
        check_refused(&stage.command(&["-p", "go"]).env(name, value).run().unwrap(), words);
        assert_eq!(stage.server.exchanges().len(), 0, "nothing was sent");
    };
    check("CLAUDE_CODE_MAX_RETRIES", "many", &["CLAUDE_CODE_MAX_RETRIES=many", "whole number"]);
    check("ANTHROPIC_BASE_URL", "localhost:80", &["localhost:80", "http://"]);
    check("CLAUDE_CODE_CLIENT_CERT", "a.pem", &["CLAUDE_CODE_CLIENT_KEY"]);
    check("WINDLASS_SCRIPT", "none.json", &["none.json"]);
    check(
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
        "101",
        &["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=101", "from 1 to 100"],
    );
    check("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0", &["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0"]);
    check("WINDLASS_SCRIPTED_HOOKS", "none.json", &["WINDLASS_SCRIPTED_HOOKS=none.json", "does not exist"]);
}

#[test]
fn a_malformed_script_is_explained() {
    let project = Project::new().unwrap();
    project.write("bad.json", r#"{"responses": [{"blocks": [{"txt": "x"}]}]}"#).unwrap();
    let finished =
        project.command(WINDLASS).args(["-p", "go"]).env("WINDLASS_SCRIPT", "bad.json").run().unwrap();
    check_refused(&finished, &["bad.json", "txt"]);
}

#[test]
fn without_a_key_the_ways_out_are_named() {
    let project = Project::new().unwrap();
    let ways = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "windlass demo"];
    check_refused(&project.command(WINDLASS).args(["-p", "go"]).run().unwrap(), &ways);
    for format in [&STREAM[..], &["-p", "go", "--output-format", "json"]] {
        let finished = project.command(WINDLASS).args(format).run().unwrap();
        assert_eq!(finished.code(), Some(1));
        let result = result(&finished);
        assert_eq!(result["subtype"], "error_during_execution");
        assert_eq!(result["terminal_reason"], "turn_setup_failed");
        assert!(ways.iter().all(|way| result["errors"][0].as_str().unwrap().contains(way)), "{result}");
    }
}

#[test]
fn root_may_not_bypass_outside_a_sandbox() {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    for flags in [&["--dangerously-skip-permissions"][..], &["--permission-mode", "bypassPermissions"]] {
        let stage = Stage::hello();
        let finished = stage.run(&[&["-p", "go"], flags].concat());
        if is_root {
            check_refused(&finished, &["root", "IS_SANDBOX=1"]);
        } else {
            assert_eq!(finished.code(), Some(0), "{finished:?}");
        }
        let stage = Stage::hello();
        let finished = stage.command(&[&["-p", "go"], flags].concat()).env("IS_SANDBOX", "1").run().unwrap();
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Hello.\n"));
    }
}

#[test]
fn a_refused_connection_ends_the_run_with_the_address() {
    let project = Project::new().unwrap();
    // Bound, so that nobody else gets it, and not listening.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let free = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    let command = |arguments: &[&str]| {
        let command = project.command(WINDLASS).args(arguments).env("CLAUDE_CODE_MAX_RETRIES", "0");
        command.env("ANTHROPIC_API_KEY", "k").env("ANTHROPIC_BASE_URL", format!("http://{free}"))
    };
    check_failed(&command(&["-p", "go"]).run().unwrap(), &[&free.to_string(), "ANTHROPIC_BASE_URL"]);
    let finished = command(&STREAM).run().unwrap();
    let result = result(&finished);
    assert_eq!(finished.code(), Some(1));
    assert_eq!(result["api_error_status"], serde_json::Value::Null);
    assert_eq!(result["terminal_reason"], "api_error");
}

#[test]
fn a_wrong_key_is_said_at_once_and_in_the_form_hosts_know() {
    let refusal = r#"[{"fault": {"status": {"code": 401, "message": "invalid x-api-key"}}}]"#;
    let stage = Stage::new(refusal);
    check_failed(&stage.run(&["-p", "go"]), &["401", "ANTHROPIC_API_KEY"]);
    assert_eq!(stage.server.exchanges().len(), 1, "it is not sent again");

    let finished = Stage::new(refusal).run(&STREAM);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(1), ""));
    let lines = finished.json_lines().unwrap();
    let said = &lines[lines.len() - 2];
    assert_eq!(said["type"], "assistant");
    assert_eq!(said["error"], "authentication_failed");
    let result = result(&finished);
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["is_error"], true);
    assert_eq!(result["api_error_status"], 401);
    assert_eq!(result["result"], said["message"]["content"][0]["text"]);
}

#[test]
fn bad_calls_are_answered_and_the_run_goes_on() {
    let check = |tool: &str, input: &str, words: &[&str]| {
        let stage = Stage::call(tool, input);
        stage.project.write("image.bin", [0_u8, 159, 146, 150, 0, 1, 2, 3]).unwrap();
        let finished = stage.run(&["-p", "go"]);
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Done.\n"), "{finished:?}");
        let told = stage.last_user_text();
        assert!(told.contains(r#""is_error":true"#), "{told}");
        for word in words {
            assert!(told.contains(word), "{word:?} is not in {told}");
        }
    };
    check("Read", "{}", &["file_path"]);
    check("Read", r#"{"file_path": 7}"#, &["file_path"]);
    check("Nothing", "{}", &["Nothing"]);
    check("Read", r#"{"file_path": "image.bin"}"#, &["binary"]);
    check("Read", r#"{"file_path": "missing.txt"}"#, &["missing.txt"]);
}

#[test]
fn names_that_are_not_utf_8_work_or_are_refused_clearly() {
    let strange = OsStr::from_bytes(b"caf\xe9");
    let stage = Stage::hello();
    let directory = stage.project.path().join(strange);
    std::fs::create_dir(&directory).unwrap();
    let finished = stage.command(&["-p", "go"]).current_dir(&directory).run().unwrap();
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Hello.\n"), "{finished:?}");

    let finished =
        Stage::hello().command(&["-p", "go", "--add-dir"]).args([directory.as_os_str()]).run().unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");

    check_refused(&Stage::hello().command(&["-p"]).args([strange]).run().unwrap(), &["UTF-8"]);
}

#[test]
fn tools_find_files_whose_names_are_not_utf_8() {
    let check = |tool: &str, input: &str, expected: &str| {
        let stage = Stage::call(tool, input);
        stage.project.write(OsStr::from_bytes(b"caf\xe9.txt"), "needle\n").unwrap();
        let finished = stage.run(&["-p", "go", "--allowedTools", "Bash"]);
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Done.\n"), "{finished:?}");
        let told = stage.last_user_text();
        assert!(told.contains(expected) && !told.contains(r#""is_error":true"#), "{told}");
    };
    check("Glob", r#"{"pattern": "*.txt"}"#, "caf");
    check("Grep", r#"{"pattern": "needle", "output_mode": "content"}"#, "needle");
    check("Bash", r#"{"command": "cat caf*"}"#, "needle");
}

#[test]
fn a_tool_that_does_not_exist_is_warned_about() {
    let finished = Stage::hello().run(&["-p", "go", "--allowedTools", "Bsah,Frobnicate"]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Hello.\n"));
    assert!(finished.stderr.contains("unknown tool Bsah. Did you mean Bash?"), "{}", finished.stderr);
    assert!(finished.stderr.contains("unknown tool Frobnicate"), "{}", finished.stderr);
    let lines = Stage::hello().run(&[&STREAM[..], &["--disallowedTools", "Bsah"]].concat());
    assert_eq!(lines.stderr, "");
    assert_eq!(lines.json_lines().unwrap()[1]["subtype"], "informational");
}

#[test]
fn input_that_is_not_utf_8_is_located() {
    let stage = Stage::hello();
    let finished = stage.command(&["-p"]).stdin(*b"caf\xe9\n").run().unwrap();
    check_refused(&finished, &["Standard input is not UTF-8 text: byte 3 (0xe9)", "iconv", "name the file"]);
    assert_eq!(stage.requests(), 0);
}
