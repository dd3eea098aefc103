//! Each variable of `docs/environment.md` about commands, files and requests changes what a run does.

use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode};

use crate::support::Stage;

const ALLOWED: [&str; 4] = ["-p", "go", "--allowedTools", "Bash"];

/// What one call of a tool tells the model with these variables set. The project holds a few files.
fn told(tool: &str, input: &str, variables: &[(&str, &str)]) -> String {
    let stage = Stage::call(tool, input);
    let files = [("seen.txt", "one\ntwo\nthree\n"), (".hidden.txt", ""), ("ignored.txt", "")];
    for (name, content) in files.into_iter().chain([(".gitignore", "ignored.txt"), ("env.sh", "A=sourced")]) {
        stage.project.write(name, content).unwrap();
    }
    let command =
        variables.iter().fold(stage.command(&ALLOWED), |command, (name, value)| command.env(*name, *value));
    let finished = command.run().unwrap();
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Done.\n"), "{finished:?}");
    stage.last_user_text()
}

/// The words are told with the variable set to this, and only then.
#[track_caller]
fn check(name: &str, value: &str, (tool, input): (&str, &str), words: &str) {
    assert!(!told(tool, input, &[]).contains(words), "{words:?} is told without {name}");
    let told = told(tool, input, &[(name, value)]);
    assert!(told.contains(words), "{words:?} is not told with {name}={value}: {told}");
}

#[test]
fn commands() {
    check("BASH_DEFAULT_TIMEOUT_MS", "150", ("Bash", r#"{"command": "sleep 0.6"}"#), "timeout of 150 ms");
    let long = r#"{"command": "sleep 0.6", "timeout": 5000}"#;
    let told = told("Bash", long, &[("BASH_DEFAULT_TIMEOUT_MS", "100"), ("BASH_MAX_TIMEOUT_MS", "150")]);
    assert!(told.contains("timeout of 150 ms"), "{told}");
    check("BASH_MAX_OUTPUT_LENGTH", "100", ("Bash", r#"{"command": "seq 200"}"#), "bytes omitted");
    check("CLAUDE_ENV_FILE", "env.sh", ("Bash", r#"{"command": "echo \"[$A]\""}"#), "[sourced]");
    let background = r#"{"command": "true", "run_in_background": true}"#;
    check("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1", ("Bash", background), "tool_use_error");
}

#[test]
fn a_variable_with_the_name_of_a_secret_is_passed_on_when_asked() {
    let call = ("Bash", r#"{"command": "echo \"[$MY_TOKEN]\""}"#);
    let hidden = told(call.0, call.1, &[("MY_TOKEN", "open")]);
    assert!(hidden.contains("[]"), "{hidden}");
    let passed = told(call.0, call.1, &[("MY_TOKEN", "open"), ("WINDLASS_ENV_PASS", "MY_TOKEN")]);
    assert!(passed.contains("[open]"), "{passed}");
}

#[test]
fn the_directory_of_commands() {
    let last_directory = |value: &str| {
        let stage = Stage::new(
            r#"[{"blocks": [{"tool": "Bash", "input": {"command": "mkdir sub; cd sub"}}]},
                {"blocks": [{"tool": "Bash", "input": {"command": "basename \"$PWD\""}}]},
                {"blocks": [{"text": "Done."}]}]"#,
        );
        let command = stage.command(&ALLOWED).env("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", value);
        assert_eq!(command.run().unwrap().stdout, "Done.\n");
        let request = stage.request(2);
        request["messages"][4]["content"][0].to_string().contains("sub")
    };
    assert!(last_directory("0"));
    assert!(!last_directory("1"));
}

#[test]
fn files() {
    let read = ("Read", r#"{"file_path": "seen.txt"}"#);
    check("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "5", read, "PARTIAL");
    let glob = |variables| told("Glob", r#"{"pattern": "*.txt"}"#, variables);
    let all = glob(&[]);
    assert!(all.contains(".hidden.txt") && all.contains("ignored.txt"), "{all}");
    assert!(!glob(&[("CLAUDE_CODE_GLOB_HIDDEN", "0")]).contains(".hidden.txt"));
    assert!(!glob(&[("CLAUDE_CODE_GLOB_NO_IGNORE", "0")]).contains("ignored.txt"));
}

#[test]
fn breakpoints_of_the_cache() {
    let marked = |value: &str| {
        let stage = Stage::hello();
        assert_eq!(
            stage.command(&["-p", "go"]).env("DISABLE_PROMPT_CACHING", value).run().unwrap().code(),
            Some(0)
        );
        stage.request(0).to_string().contains("cache_control")
    };
    assert!(marked("0"));
    assert!(!marked("1"));
}

#[test]
fn early_start() {
    let was_early = |value: &str| {
        let stage = Stage::new(
            r#"[{"blocks": [{"tool": "Bash", "input": {"command": "touch made"}}], "end_delay_ms": 1500},
                {"blocks": [{"text": "Done."}]}]"#,
        );
        let finished = stage.command(&ALLOWED).env("WINDLASS_EARLY_START", value).run().unwrap();
        assert_eq!(finished.stdout, "Done.\n");
        let made = std::fs::metadata(stage.project.path().join("made")).unwrap().modified().unwrap();
        SystemTime::now().duration_since(made).unwrap() > Duration::from_secs(1)
    };
    assert!(was_early("all"));
    assert!(!was_early("read-only"));
    assert!(!was_early("off"));
}

#[test]
fn calls_at_once() {
    /// How long each of the two pipes keeps its reader.
    const HELD: Duration = Duration::from_millis(600);
    let took = |value: &str| {
        let stage = Stage::new(
            r#"[{"blocks": [{"tool": "Bash", "input": {"command": "cat a"}},
                            {"tool": "Bash", "input": {"command": "cat b"}}]},
                {"blocks": [{"text": "Done."}]}]"#,
        );
        for name in ["a", "b"] {
            let pipe = stage.project.path().join(name);
            rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            std::thread::spawn(move || {
                let _writer = std::fs::OpenOptions::new().write(true).open(pipe);
                std::thread::sleep(HELD);
            });
        }
        let command = stage.command(&ALLOWED).env("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", value);
        assert_eq!(command.run().unwrap().stdout, "Done.\n");
        let exchanges = stage.server.exchanges();
        exchanges[1].first_byte.duration_since(exchanges[0].read)
    };
    assert!(took("2") < HELD * 2);
    assert!(took("1") >= HELD * 2);
}

#[test]
fn authorities_that_cannot_be_read() {
    let stage = Stage::hello();
    let command = stage.command(&["-p", "go"]).env("NODE_EXTRA_CA_CERTS", "none.pem");
    let finished = command.env("ANTHROPIC_BASE_URL", "https://127.0.0.1:9").run().unwrap();
    assert_eq!(finished.code(), Some(1));
    assert!(finished.stdout.contains("none.pem") || finished.stderr.contains("none.pem"), "{finished:?}");
}
