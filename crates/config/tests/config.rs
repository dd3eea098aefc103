//! From an environment and flags to a configuration, or to one clear error.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use windlass_config::{
    ConfigError, FileSettings, Flags, ProcessContext, PromptText, RunConfig, Settings, VARIABLES,
};

fn settings(variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let os = |text: &str| OsString::from(text);
    Settings::from_environment(variables.iter().map(|(name, value)| (os(name), os(value))))
}

fn place(cwd: &Path) -> ProcessContext {
    ProcessContext { cwd: cwd.to_owned(), is_root: false, home: None, managed: "/nowhere".into() }
}

fn config(variables: &[(&str, &str)], flags: &Flags) -> Result<RunConfig, ConfigError> {
    RunConfig::new(settings(variables)?, flags, &place(Path::new("/")), FileSettings::default())
}

/// One variable with a value, and what it leads to: a piece of the settings, or the error.
#[track_caller]
fn check(name: &str, value: &str, expected: &str) {
    match settings(&[(name, value)]) {
        Ok(settings) => {
            let seen = format!("{settings:?}");
            assert!(seen.contains(expected), "{expected} is not in {seen}");
        }
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn every_variable_reaches_its_setting() {
    check("ANTHROPIC_API_KEY", "sk-abc", "key: Some([redacted])");
    check("ANTHROPIC_AUTH_TOKEN", "t", "token: Some([redacted])");
    check("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/", "base_url: Some([redacted])");
    check("ANTHROPIC_CUSTOM_HEADERS", "X-A: 1", r#"headers: [("X-A", [redacted])]"#);
    check("ANTHROPIC_BETAS", "a, b,", r#"betas: ["a", "b"]"#);
    check("CLAUDE_CODE_CLIENT_CERT", "/c.pem", r#"client_certificate: Some("/c.pem")"#);
    check("CLAUDE_CODE_CLIENT_KEY", "/k.pem", r#"client_key: Some("/k.pem")"#);
    check("NODE_EXTRA_CA_CERTS", "/ca.pem", r#"extra_authorities: Some("/ca.pem")"#);
    check("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "0", "silence_ms: Some(0)");
    check("DISABLE_PROMPT_CACHING", "1", "is_prompt_caching_off: true");
    check("ANTHROPIC_MODEL", "m", r#"model: Some("m")"#);
    check("ANTHROPIC_DEFAULT_MODEL", "m", r#"default: Some("m")"#);
    check("ANTHROPIC_DEFAULT_OPUS_MODEL", "m", r#"families: {"opus": "m"}"#);
    check("ANTHROPIC_DEFAULT_SONNET_MODEL", "m", r#"families: {"sonnet": "m"}"#);
    check("ANTHROPIC_DEFAULT_HAIKU_MODEL", "m", r#"families: {"haiku": "m"}"#);
    check("ANTHROPIC_DEFAULT_FABLE_MODEL", "m", r#"families: {"fable": "m"}"#);
    check("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "50", "window_tokens: Some(50), small");
    check("ANTHROPIC_SMALL_FAST_MODEL", "m", r#"small: Some("m")"#);
    check("CLAUDE_CODE_EFFORT_LEVEL", "XHigh", "effort: Some(XHigh)");
    check("CLAUDE_CODE_EFFORT_LEVEL", "auto", "effort: None");
    check("MAX_THINKING_TOKENS", "0", "thinking_tokens: Some(0)");
    check("WINDLASS_SCRIPT", "s.json", r#"script: Some("s.json")"#);
    check("CLAUDE_CODE_MAX_RETRIES", "99", "retries_max: 15");
    check("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "7", "explicit: Some(7)");
    check("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY", "3", "shared_calls_max: 3");
    check("WINDLASS_EARLY_START", "read-only", "early_start: ReadOnly");
    check("WINDLASS_SCRIPTED_HOOKS", "h.json", r#"scripted_hooks: Some("h.json")"#);
    check("IS_SANDBOX", "1", "in_sandbox: true");
    check("BASH_DEFAULT_TIMEOUT_MS", "700000", "timeout_ms: 700000, timeout_ms_max: 600000");
    check("BASH_MAX_TIMEOUT_MS", "900000", "timeout_ms_max: 900000");
    check("BASH_MAX_OUTPUT_LENGTH", "999999", "output_chars_max: 150000");
    check("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR", "yes", "keep_directory: true");
    check("CLAUDE_ENV_FILE", "/e.sh", r#"environment_file: Some("/e.sh")"#);
    check("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1", "background: false");
    check("WINDLASS_ENV_PASS", "A,B", r#"pass: ["A", "B"]"#);
    check("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "9", "read_tokens_max: 9");
    check("CLAUDE_CODE_GLOB_NO_IGNORE", "false", "glob_ignore: true");
    check("CLAUDE_CODE_GLOB_HIDDEN", "false", "glob_hidden: false");
    check("CLAUDE_CODE_GLOB_TIMEOUT_SECONDS", "4", "glob_timeout_s: 4");
}

#[test]
fn every_number_of_the_loop_has_a_variable_that_is_honoured_as_given() {
    check("WINDLASS_OUTPUT_TOKENS_FIRST", "1", "first: 1,");
    check("WINDLASS_OUTPUT_TOKENS_ESCALATED", "2", "escalated: 2,");
    check("WINDLASS_OUTPUT_RECOVERIES", "0", "recoveries_max: 0 ");
    check("WINDLASS_TOKEN_BUDGET", "1", "token_budget: Some(1)");
    check("WINDLASS_BUDGET_PERCENT", "100", "percent: 100,");
    check("WINDLASS_BUDGET_SMALL_GAIN_TOKENS", "0", "small_gain_tokens: 0,");
    check("WINDLASS_BUDGET_CONTINUATIONS", "0", "continuations_min: 0 ");
    check("MAX_STRUCTURED_OUTPUT_RETRIES", "0", "schema_retries_max: 0 ");
    check("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "1", "stop_hook_blocks_max: 1,");
    check("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", "1", "session_end_ms: Some(1),");
    check("WINDLASS_PAUSES", "0", "pauses_max: 0,");
    check("WINDLASS_REPEATS_TELL", "1", "tell_after: 1,");
    check("WINDLASS_REPEATS_ASK", "1", "ask_after: 1,");
    check("WINDLASS_REPEATS_END", "1", "end_after: 1 ");
    check("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", "1", "tool_use_summaries: Some(true)");
    check("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "0", "prompt_suggestions: Some(false)");
    check("CLAUDE_CODE_RETRY_WATCHDOG", "1", "patient: true");
    check("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1", "can_ask_whole: false");
    check("WINDLASS_BROKEN_STREAMS", "1", "broken_streams_max: 1,");
    check("WINDLASS_OVERLOADS", "1", "overloads_max: 1,");
    check("WINDLASS_STALLS", "0", "stalls_max: 0,");
    check("WINDLASS_MALFORMED_RETRIES", "0", "malformed_max: 0,");
    check("WINDLASS_FIRST_CONTACTS", "0", "first_contacts_max: 0,");
    check("WINDLASS_BACKOFF_MS", "0", "backoff_ms: 0,");
    check("WINDLASS_BACKOFF_MAX_MS", "0", "backoff_ms_max: 0,");
    check("WINDLASS_RETRY_AFTER_MAX_MS", "0", "retry_after_ms_max: 0,");
}

#[test]
fn every_number_of_the_context_has_a_variable_that_is_honoured_as_given() {
    check("DISABLE_AUTO_COMPACT", "1", "compaction: OnRequest, can_collapse: true, can_micro_compact: true");
    check("DISABLE_AUTO_COMPACT", "0", "compaction: Automatic");
    check("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "1", "window_tokens: Some(1), compact_percent");
    check("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "1", "compact_percent: Some(1)");
    check("WINDLASS_COLLAPSE", "0", "can_collapse: false");
    check("WINDLASS_MICRO_COMPACT", "0", "can_micro_compact: false");
    check("DISABLE_COMPACT", "1", "compaction: Off, can_collapse: true, can_micro_compact: false");
    check("DISABLE_COMPACT", "0", "compaction: Automatic");
    check("WINDLASS_OUTPUT_RESERVE_TOKENS", "0", "output_reserve_tokens: Some(0),");
    check("WINDLASS_COMPACT_MARGIN_TOKENS", "0", "compact_margin_tokens: Some(0),");
    check("WINDLASS_BLOCKING_MARGIN_TOKENS", "0", "blocking_margin_tokens: Some(0),");
    check("WINDLASS_WARNING_MARGIN_TOKENS", "0", "warning_margin_tokens: Some(0),");
    check("WINDLASS_MESSAGE_RESULT_CHARS", "1", "message_result_chars_max: 1,");
    check("WINDLASS_PREVIEW_CHARS", "0", "preview_chars: 0,");
    check("WINDLASS_RESULTS_KEPT", "0", "results_kept: 0,");
    check("WINDLASS_CLEAR_AT_LEAST_TOKENS", "0", "clear_at_least_tokens: 0,");
    check("WINDLASS_STAGE_PERCENT", "1", "stage_percent: 1,");
    check("WINDLASS_SPAN_TOKENS", "1", "span_tokens: 1,");
    check("WINDLASS_ROUNDS_KEPT", "0", "rounds_kept: 0,");
    check("WINDLASS_TAIL_TOKENS", "0", "tail_tokens_max: 0,");
    check("WINDLASS_FILES_ATTACHED", "0", "files_attached: 0,");
    check("WINDLASS_FILE_CHARS", "1", "file_chars_max: 1,");
    check("WINDLASS_SUMMARY_FAILURES", "0", "summary_failures_max: 0,");
    check("WINDLASS_SUMMARY_SHRINKS", "0", "summary_shrinks_max: 0,");
    check("WINDLASS_NO_PROGRESS", "1", "no_progress_max: 1,");
    check("WINDLASS_REFILL_TURNS", "0", "refill_turns: 0 ");
    check("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "1", "is_off: true");
    check("WINDLASS_HOME", "/w", r#"own: Some("/w")"#);
    check("CLAUDE_CONFIG_DIR", "/c", r#"shared: Some("/c")"#);
    check("CLAUDE_CODE_ENTRYPOINT", "sdk-py", r#"entrypoint: Some("sdk-py")"#);
    check("CLAUDE_AGENT_SDK_VERSION", "0.1", r#"sdk_version: Some("0.1")"#);
}

/// What a setting is by default stands in the documentation; it is what holds when the variable says it.
#[test]
fn defaults_are_what_the_documentation_says() {
    let standard = format!("{:?}", Settings::default());
    for variable in VARIABLES {
        let is_value = variable.default.chars().all(|c| c.is_ascii_digit());
        if is_value {
            let stated = settings(&[(variable.name, variable.default)]).unwrap();
            assert_eq!(format!("{stated:?}"), standard, "{variable:?}");
        }
    }
}

#[test]
fn nonsense_is_refused_by_name() {
    let check = |name: &str, value: &str| {
        let error = settings(&[(name, value)]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}={value} is not understood: it must be ")), "{error}");
    };
    let numbers = VARIABLES.iter().filter(|variable| variable.accepts.starts_with("a whole number"));
    for variable in numbers {
        for value in ["-1", "many", "1.5", "99999999999999999999999"] {
            check(variable.name, value);
        }
        if variable.accepts.contains("from 1") {
            check(variable.name, "0");
        }
        if variable.accepts.contains("to 100") && !variable.accepts.contains("1000") {
            check(variable.name, "101");
        }
    }
    check("CLAUDE_CODE_EFFORT_LEVEL", "hard");
}

#[test]
fn an_empty_variable_is_unset_and_others_are_not_read() {
    let empty: Vec<(&str, &str)> = VARIABLES.iter().map(|variable| (variable.name, "")).collect();
    let defaults = format!("{:?}", Settings::default());
    assert_eq!(format!("{:?}", settings(&empty).unwrap()), defaults);
    assert_eq!(format!("{:?}", settings(&[("SOMETHING_ELSE", "1")]).unwrap()), defaults);
}

#[test]
fn a_bad_value_is_named_with_what_is_accepted() {
    check(
        "CLAUDE_CODE_MAX_RETRIES",
        "many",
        "CLAUDE_CODE_MAX_RETRIES=many is not understood: it must be a whole number; more than 15 counts as 15. \
         Correct or unset the variable.",
    );
    check(
        "DISABLE_PROMPT_CACHING",
        "maybe",
        "DISABLE_PROMPT_CACHING=maybe is not understood: it must be 1, true, yes or on, or 0, false, no or off. \
         Correct or unset the variable.",
    );
    check(
        "WINDLASS_EARLY_START",
        "sometimes",
        "WINDLASS_EARLY_START=sometimes is not understood: it must be all, read-only or off. \
         Correct or unset the variable.",
    );
}

#[test]
fn secrets_never_show() {
    let all = [
        ("ANTHROPIC_API_KEY", "s3cret"),
        ("ANTHROPIC_AUTH_TOKEN", "s3cret"),
        ("ANTHROPIC_BASE_URL", "http://user:s3cret@host"),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Key: s3cret"),
    ];
    assert!(!format!("{:?}", config(&all, &Flags::default()).unwrap()).contains("s3cret"));
    for (name, _) in all {
        let error = settings(&[(name, "s3cret\u{1}")]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        assert!(error.to_string().contains(name));
    }
}

#[cfg(unix)]
#[test]
fn a_value_that_is_not_text_is_an_error() {
    use std::os::unix::ffi::OsStringExt as _;
    let value = OsString::from_vec(vec![0xff, b'1']);
    let error = Settings::from_environment([("BASH_MAX_TIMEOUT_MS".into(), value)]).unwrap_err();
    assert!(error.to_string().starts_with("BASH_MAX_TIMEOUT_MS="));
}

#[test]
fn the_nearest_name_of_a_model_wins() {
    let check = |variables: &[(&str, &str)], flag: Option<&str>, expected: (&str, bool)| {
        let flags = Flags { model: flag.map(str::to_owned), ..Flags::default() };
        let choice = config(variables, &flags).unwrap().model;
        assert_eq!((choice.name.as_str(), choice.is_from_flag), expected);
    };
    let both = [("ANTHROPIC_MODEL", "env"), ("ANTHROPIC_DEFAULT_MODEL", "default")];
    check(&both, Some("flag"), ("flag", true));
    check(&both, None, ("env", false));
    check(&both[1..], None, ("default", false));
    check(&[], None, ("claude-opus-5-5", false));
    for nothing in ["", " "] {
        let flags = Flags { model: Some(nothing.into()), ..Flags::default() };
        let error = config(&both, &flags).unwrap_err().to_string();
        assert!(error.starts_with("--model '' is not understood: give the id of a model"), "{error}");
    }
}

#[test]
fn a_client_certificate_needs_its_key() {
    let check = |name, expected: &str| {
        let error = config(&[(name, "x.pem")], &Flags::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        "CLAUDE_CODE_CLIENT_CERT",
        "CLAUDE_CODE_CLIENT_CERT is set but CLAUDE_CODE_CLIENT_KEY is not. Set both or none.",
    );
    check(
        "CLAUDE_CODE_CLIENT_KEY",
        "CLAUDE_CODE_CLIENT_KEY is set but CLAUDE_CODE_CLIENT_CERT is not. Set both or none.",
    );
}

#[test]
fn modes_are_checked() {
    let check = |mode: &str, expected: &str| {
        let flags = Flags { permission_mode: Some(mode.into()), ..Flags::default() };
        let seen = match config(&[], &flags) {
            Ok(config) => config.settings.run.permissions.mode.name().to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(seen, expected);
    };
    check("default", "default");
    check("manual", "default");
    check("acceptEdits", "acceptEdits");
    check("plan", "plan");
    check("dontAsk", "dontAsk");
    check("bypassPermissions", "bypassPermissions");
    check(
        "",
        "--permission-mode '' is not understood: \
         use default, acceptEdits, plan, dontAsk, auto or bypassPermissions.",
    );
    check(
        "yolo",
        "--permission-mode yolo is not understood: \
         use default, acceptEdits, plan, dontAsk, auto or bypassPermissions.",
    );
    check("auto", "auto");
}

#[test]
fn skipping_permissions_leaves_no_other_mode() {
    let check = |mode: Option<&str>, expected: &str| {
        let permission_mode = mode.map(str::to_owned);
        let flags = Flags { permission_mode, should_skip_permissions: true, ..Flags::default() };
        let seen = match config(&[], &flags) {
            Ok(config) => config.settings.run.permissions.mode.name().to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(seen.starts_with(expected), "{seen}");
    };
    check(None, "bypassPermissions");
    check(Some("bypassPermissions"), "bypassPermissions");
    check(Some("plan"), "--dangerously-skip-permissions contradicts --permission-mode plan. Give only one");
    check(Some("manual"), "--dangerously-skip-permissions contradicts --permission-mode manual.");
    check(Some("yolo"), "--permission-mode yolo is not understood");
}

#[test]
fn root_may_not_bypass_outside_a_sandbox() {
    let root = ProcessContext { is_root: true, ..place(Path::new("/")) };
    let bypass = [
        Flags { should_skip_permissions: true, ..Flags::default() },
        Flags { permission_mode: Some("bypassPermissions".into()), ..Flags::default() },
    ];
    for flags in &bypass {
        let refused =
            RunConfig::new(settings(&[]).unwrap(), flags, &root, FileSettings::default()).unwrap_err();
        assert!(refused.to_string().contains("refused for the root user"), "{refused}");
        assert!(!refused.to_string().contains('\n'));
        let sandboxed = settings(&[("IS_SANDBOX", "1")]).unwrap();
        assert!(RunConfig::new(sandboxed, flags, &root, FileSettings::default()).is_ok());
        assert!(
            RunConfig::new(settings(&[]).unwrap(), flags, &place(Path::new("/")), FileSettings::default())
                .is_ok()
        );
    }
    // Whoever advises another mode has to know it in every mode.
    let check = |variables: &[(&str, &str)], place: &ProcessContext, expected: bool| {
        let config =
            RunConfig::new(settings(variables).unwrap(), &Flags::default(), place, FileSettings::default())
                .unwrap();
        assert_eq!(
            config.settings.run.permissions.is_bypass_refused, expected,
            "{variables:?} {}",
            place.is_root
        );
    };
    check(&[], &root, true);
    check(&[("IS_SANDBOX", "1")], &root, false);
    check(&[], &place(Path::new("/")), false);
}

#[test]
fn prompts_come_from_text_or_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.md"), "\u{feff}From a file.").unwrap();
    std::fs::write(folder.path().join("binary"), [0xff, 0xfe, 0x00]).unwrap();
    let check = |prompt: PromptText, expected: &str| {
        let flags = Flags { system_prompt: Some(prompt), ..Flags::default() };
        let seen = match RunConfig::new(
            settings(&[]).unwrap(),
            &flags,
            &place(folder.path()),
            FileSettings::default(),
        ) {
            Ok(config) => config.system_prompt.unwrap(),
            Err(error) => error.to_string(),
        };
        assert_eq!(seen, expected);
    };
    check(PromptText::Text(String::new()), "");
    check(PromptText::File("p.md".into()), "From a file.");
    check(
        PromptText::File("none.md".into()),
        "--system-prompt-file none.md: it does not exist. Give the path of a readable text file.",
    );
    check(
        PromptText::File("binary".into()),
        "--system-prompt-file binary: it is not UTF-8 text. Give the path of a readable text file.",
    );
    check(
        PromptText::File(".".into()),
        "--system-prompt-file .: it is a directory. Give the path of a readable text file.",
    );
}

#[test]
fn added_directories_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("lib")).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let check = |path: &str, expected: &str| {
        let flags = Flags { add_directories: vec![path.into()], ..Flags::default() };
        let seen = match RunConfig::new(
            settings(&[]).unwrap(),
            &flags,
            &place(folder.path()),
            FileSettings::default(),
        ) {
            Ok(config) => config.added_directories[0].display().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(seen, expected);
    };
    check("lib", &folder.path().join("lib").display().to_string());
    check("/", "/");
    check("none", "--add-dir none: it does not exist. Give the path of an existing directory.");
    check("file", "--add-dir file: it is not a directory. Give the path of an existing directory.");
}

/// The page of the variables as Markdown.
fn environment_page() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         Windlass reads them once, at the start. An empty variable counts as unset; an invalid value is an error.\n\
         This page is made from the table in `crates/config/src/variables.rs`; a test compares the two.\n",
    );
    for variables in VARIABLES.chunk_by(|one, next| one.area == next.area) {
        let heading = variables[0].area;
        let _ =
            write!(page, "\n## {heading}\n\n| Variable | Value | Default | Meaning |\n|---|---|---|---|\n");
        for variable in variables {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                variable.name, variable.accepts, variable.default, variable.meaning
            );
        }
    }
    page.push_str(
        "\nThe HTTP client also respects the usual `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, and\n\
         `SSL_CERT_FILE` and `SSL_CERT_DIR` for the authorities it trusts.\n",
    );
    page.push_str(SCRIPTED_HOOKS);
    page
}

const SCRIPTED_HOOKS: &str = r#"
## Answers that stand in for hooks

`WINDLASS_SCRIPTED_HOOKS` names a JSON file with a list of answers for each event (`PreToolUse`, `PostToolUse`,
`PostToolUseFailure`, `Stop`, `StopFailure`, `PreCompact`). Each time hooks of an event would run, the next answer of its
list is used; after the last, hooks say nothing. Every field of an answer is optional:

```json
{
  "PreToolUse": [
    {"permission": "allow", "input": {"file_path": "b.txt"}, "context": ["Told to the model."]},
    {"permission": {"deny": "Why not, for the model."}},
    {"permission": {"ask": "Why, for the person."}},
    {"permission": "defer"}
  ],
  "Stop": [
    {"blocks": ["Run the tests before you end."]},
    {"stop": "Enough for today.", "notices": ["Told to the user."]}
  ]
}
```
"#;

/// The page in the documentation is made from the table; `WINDLASS_WRITE_DOCS=1 cargo test` writes it.
#[test]
fn the_page_of_the_variables_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/environment.md");
    let page = environment_page();
    if std::env::var_os("WINDLASS_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/environment.md is out of date; run this test with WINDLASS_WRITE_DOCS=1");
}
