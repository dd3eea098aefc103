//! Where the prompt and the system prompt come from, and what reaches the model.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{Stage, check_refused};

fn system(request: &Value) -> String {
    request["system"].to_string()
}

#[test]
fn the_prompt_comes_from_the_argument_or_from_standard_input_or_both() {
    let check = |argument: Option<&str>, stdin: Option<&str>, expected: &[&str]| {
        let stage = Stage::hello();
        let arguments: Vec<&str> = ["-p"].into_iter().chain(argument).collect();
        let command = stage.command(&arguments);
        let command = match stdin {
            Some(text) => command.stdin(text),
            None => command,
        };
        let finished = command.run().unwrap();
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Hello.\n"), "{finished:?}");
        let told = stage.last_user_text();
        let mut from = 0;
        for part in expected {
            let at = told[from..].find(part);
            from += at.unwrap_or_else(|| panic!("{part} is not where it should be in {told}"));
        }
    };
    check(Some("from the argument"), None, &["from the argument"]);
    check(None, Some("from the pipe\n"), &["from the pipe"]);
    check(Some("from the argument"), Some("from the pipe"), &["from the argument", "from the pipe"]);
    check(Some("--"), Some("x"), &["x"]);
}

#[test]
fn standard_input_is_limited_and_must_be_text() {
    let long = vec![b'x'; 10_000_001];
    check_refused(&Stage::hello().command(&["-p"]).stdin(long).run().unwrap(), &["10000000 bytes"]);
    check_refused(&Stage::hello().command(&["-p"]).stdin([b'a', 0xff]).run().unwrap(), &["UTF-8"]);
}

#[test]
fn an_open_pipe_that_stays_silent_does_not_hold_up_for_ever() {
    let stage = Stage::hello();
    let mut command = stage.command(&["-p", "go"]).into_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let open = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(open);
    assert_eq!(output.stdout, b"Hello.\n");
    assert!(String::from_utf8(output.stderr).unwrap().contains("nothing came on standard input"));
}

#[test]
fn the_system_prompt_can_be_replaced_and_extended() {
    let check = |arguments: &[&str], expected: &[&str], absent: &[&str]| {
        let stage = Stage::hello();
        stage.project.write("system.md", "You are a file.").unwrap();
        stage.project.write("more.md", "And more.").unwrap();
        let finished = stage.run(&[&["-p", "go"], arguments].concat());
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let system = system(&stage.request(0));
        let mut from = 0;
        for text in expected {
            let at = system[from..].find(text);
            from += at.unwrap_or_else(|| panic!("{text} is not where it should be in {system}"));
        }
        for text in absent {
            assert!(!system.contains(text), "{text} is in {system}");
        }
    };
    check(&[], &["Windlass"], &[]);
    check(&["--system-prompt", "You are a test."], &["You are a test."], &["Windlass"]);
    check(&["--system-prompt="], &[], &["Windlass"]);
    check(&["--system-prompt-file", "system.md"], &["You are a file."], &["Windlass"]);
    check(&["--append-system-prompt", "Be brief."], &["Windlass", "Be brief."], &[]);
    check(&["--append-system-prompt-file=system.md"], &["Windlass", "You are a file."], &[]);
    let both = ["--append-system-prompt", "Be brief.", "--system-prompt", "You are a test."];
    check(&both, &["You are a test.", "Be brief."], &["Windlass"]);
    let files = ["--system-prompt-file", "system.md", "--append-system-prompt-file", "more.md"];
    check(&files, &["You are a file.", "And more."], &["Windlass"]);
}

#[test]
fn a_prompt_file_is_limited() {
    for flag in ["--system-prompt-file", "--append-system-prompt-file"] {
        let stage = Stage::hello();
        stage.project.write("long.md", vec![b'x'; 10_000_001]).unwrap();
        let finished = stage.run(&["-p", "go", flag, "long.md"]);
        check_refused(&finished, &[flag, "long.md", "larger than 10000000 bytes"]);
        assert_eq!(stage.server.exchanges().len(), 0, "nothing was sent");
    }
}

#[test]
fn the_model_and_its_limits_come_from_flag_or_environment() {
    let check = |arguments: &[&str], variables: &[(&str, &str)], model: &str, cap: u64| {
        let stage = Stage::hello();
        let command = stage.command(&[&["-p", "go"], arguments].concat());
        let command = variables.iter().fold(command, |command, (name, value)| command.env(name, value));
        assert_eq!(command.run().unwrap().code(), Some(0));
        let request = stage.request(0);
        assert_eq!((request["model"].as_str(), request["max_tokens"].as_u64()), (Some(model), Some(cap)));
    };
    check(&[], &[], "claude-opus-5-5", 8_000);
    check(&["--model", "sonnet"], &[("ANTHROPIC_MODEL", "x")], "claude-sonnet-5-5", 8_000);
    check(&["--model=haiku"], &[("ANTHROPIC_DEFAULT_HAIKU_MODEL", "tiny")], "tiny", 8_000);
    check(&[], &[("ANTHROPIC_MODEL", "claude-3-5-haiku")], "claude-3-5-haiku", 8_000);
    check(&[], &[("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "77")], "claude-opus-5-5", 77);
    check(&[], &[("WINDLASS_OUTPUT_TOKENS_FIRST", "99")], "claude-opus-5-5", 99);
}

#[test]
fn headers_and_betas_reach_the_server_and_secrets_stay_out_of_sight() {
    let stage = Stage::hello();
    let command = stage.command(&["-p", "go"]).env_remove("ANTHROPIC_API_KEY");
    let command =
        command.env("ANTHROPIC_AUTH_TOKEN", "tok-123").env("ANTHROPIC_CUSTOM_HEADERS", "X-Team: blue");
    let finished = command.env("ANTHROPIC_BETAS", "one,two").run().unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let exchange = &stage.server.exchanges()[0];
    assert_eq!(exchange.header("authorization"), Some("Bearer tok-123"));
    assert_eq!(exchange.header("x-api-key"), None);
    assert_eq!(exchange.header("x-team"), Some("blue"));
    assert!(
        exchange.header("anthropic-beta").is_some_and(|betas| betas.contains("one") && betas.contains("two"))
    );
}

#[test]
fn an_unknown_model_is_told_with_the_setting_to_correct() {
    let finished = Stage::hello().run(&["-p", "go", "--model", "local-7b"]);
    assert_eq!(finished.stdout, "Hello.\n");
    assert!(finished.stderr.contains("CLAUDE_CODE_MAX_CONTEXT_TOKENS"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("Did you mean"), "{}", finished.stderr);
    let finished = Stage::hello().run(&["-p", "go", "--model", "opsu"]);
    assert!(finished.stderr.contains("Unknown model opsu. Did you mean opus?"), "{}", finished.stderr);
    let stage = Stage::hello();
    let command = stage.command(&["-p", "go", "--model", "local-7b"]);
    assert_eq!(command.env("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "32000").run().unwrap().stderr, "");
}

/// Wrappers append flags to those they were given.
#[test]
fn of_a_flag_given_twice_the_last_counts() {
    let stage = Stage::hello();
    let finished = stage.run(&[
        "-p",
        "go",
        "--model",
        "opus",
        "--max-turns",
        "1",
        "--model",
        "sonnet",
        "--max-turns",
        "9",
        "-p",
    ]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let body = stage.server.exchanges()[0].json();
    assert_eq!(body["model"], "claude-sonnet-5-5");
}
