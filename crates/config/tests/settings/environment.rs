//! How settings files and the environment go together.

use std::ffi::OsString;

use serde_json::json;
use windlass_config::{
    FileSettings, Flags, ProcessContext, RecordedSettings, RunConfig, SettingSources, SourcedValue,
};

use crate::machine::Machine;

fn user(content: &serde_json::Value) -> FileSettings {
    Machine::new(&[("home/.claude/settings.json", &content.to_string())]).read(None).effective(false).settings
}

/// What a setting and the shell's variables lead to: a piece of the settings, or the error.
#[track_caller]
fn check(content: &serde_json::Value, shell: &[(&str, &str)], expected: &str) {
    let files = user(content);
    let shell = shell.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    match files.settings(&files.environment(shell)) {
        Ok(settings) => {
            let seen = format!("{settings:?}");
            assert!(seen.contains(expected), "{expected} is not in {seen}");
        }
        Err(error) => assert!(error.to_string().ends_with(expected), "{expected} is not the end of {error}"),
    }
}

#[test]
fn a_setting_counts_where_its_variable_is_not_set() {
    check(&json!({"model": "m"}), &[], r#"model: Some("m")"#);
    check(&json!({"model": "m"}), &[("ANTHROPIC_MODEL", "")], r#"model: Some("m")"#);
    check(&json!({"model": "m"}), &[("ANTHROPIC_MODEL", "n")], r#"model: Some("n")"#);
    check(
        &json!({"model": "m"}),
        &[("ANTHROPIC_DEFAULT_MODEL", "n")],
        r#"model: Some("m"), default: Some("n")"#,
    );
    check(&json!({"effortLevel": "high"}), &[], "effort: Some(High)");
    check(&json!({"effortLevel": "high"}), &[("CLAUDE_CODE_EFFORT_LEVEL", "low")], "effort: Some(Low)");
    check(&json!({"alwaysThinkingEnabled": false}), &[], "thinking_tokens: Some(0)");
    check(&json!({"alwaysThinkingEnabled": true}), &[], "thinking_tokens: None");
    check(&json!({"autoCompactEnabled": false}), &[], "compaction: OnRequest");
    check(&json!({"repeatedCallsMax": 7}), &[], "end_after: 7");
    check(&json!({"repeatedCallsMax": 7}), &[("WINDLASS_REPEATS_END", "8")], "end_after: 8");
    check(&json!({"autoCompactEnabled": true}), &[("DISABLE_AUTO_COMPACT", "1")], "compaction: OnRequest");
    check(&json!({"autoCompactWindow": 50_000}), &[], "window_tokens: Some(50000)");
    check(&json!({"fileCheckpointingEnabled": false}), &[], "is_without_checkpoints: true");
    check(&json!({"bashOutputMaxChars": 1}), &[], "output_chars_max: 4000");
    check(&json!({"bashOutputMaxChars": 50_000}), &[], "output_chars_max: 50000");
    check(&json!({"bashOutputMaxChars": 1_000_000}), &[], "output_chars_max: 128000");
    check(&json!({"claudeMdExcludes": ["**/x"]}), &[], r#"excludes: ["**/x"]"#);
}

#[test]
fn variables_of_files_win_over_the_shell() {
    let value = json!({"env": {"A": "file", "GONE": "", "ANTHROPIC_MODEL": "m"}});
    let shell = [("A", "shell"), ("B", "shell"), ("GONE", "shell")]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let seen: Vec<_> = user(&value)
        .environment(shell)
        .into_iter()
        .map(|(name, value)| format!("{}={}", name.display(), value.display()))
        .collect();
    assert_eq!(seen, ["A=file", "ANTHROPIC_MODEL=m", "B=shell"]);
    check(&value, &[("ANTHROPIC_MODEL", "shell")], r#"model: Some("m")"#);
    check(
        &json!({"env": {"CLAUDE_CODE_MAX_RETRIES": "many"}}),
        &[],
        "home/.claude/settings.json:1: CLAUDE_CODE_MAX_RETRIES=many is not understood: it must be a whole number; \
         more than 15 counts as 15. Correct or remove it there.",
    );
    let debug = format!("{:?}", user(&json!({"env": {"A_TOKEN": "sesame"}})));
    assert!(!debug.contains("sesame"), "{debug}");
}

#[test]
fn a_list_of_models_is_a_limit() {
    let check = |list: Option<&[&str]>, name: &str, expected: bool| {
        let content = list.map_or(json!({}), |list| json!({ "availableModels": list }));
        assert_eq!(user(&content).allows_model(name), expected, "{list:?} {name}");
    };
    check(None, "claude-opus-5-5", true);
    check(Some(&[]), "claude-opus-5-5", false);
    check(Some(&["opus"]), "claude-opus-5-5", true);
    check(Some(&["opus"]), "opus", true);
    check(Some(&["sonnet", "haiku"]), "claude-opus-5-5", false);
    check(Some(&["claude-opus-5-5"]), "Claude-Opus-5-5", true);
    check(Some(&["claude-opus-5"]), "claude-opus-5-5", false);
}

/// What is chosen, and what is said, where only some models may be.
#[test]
fn only_available_models_are_chosen() {
    let check = |flags: Flags, content: serde_json::Value, expected: &str| {
        let place = ProcessContext { cwd: "/".into(), is_root: false, home: None, managed: "/none".into() };
        let files = user(&content);
        let settings = files.settings(&files.environment(std::iter::empty())).unwrap();
        let seen = match RunConfig::new(settings, &flags, &place, files) {
            Ok(config) => {
                format!("{} {:?} {}", config.model.name, config.fallbacks, config.warnings.join(" "))
            }
            Err(error) => error.to_string(),
        };
        assert!(seen.contains(expected), "{content}: {seen}");
    };
    let named = |model: &str| Flags { model: Some(model.into()), ..Flags::default() };
    let taking_over = |models: &str| Flags { fallback_models: Some(models.into()), ..Flags::default() };
    check(Flags::default(), json!({"availableModels": ["sonnet", "haiku"]}), "sonnet []");
    check(Flags::default(), json!({"availableModels": ["haiku", "opus"]}), "claude-opus-5-5 []");
    check(
        named("opus"),
        json!({"availableModels": ["sonnet", "haiku"]}),
        "opus may not be chosen here: choose sonnet, haiku",
    );
    check(named("opus"), json!({"availableModels": []}), "opus may not be chosen here: none may be");
    check(named("claude-sonnet-5"), json!({"availableModels": ["sonnet"]}), "claude-sonnet-5 []");
    check(
        Flags::default(),
        json!({"model": "opus", "availableModels": ["sonnet"]}),
        "opus may not be chosen here",
    );
    check(taking_over("haiku"), json!({"availableModels": ["opus"]}), "haiku may not be chosen here");
    check(
        Flags::default(),
        json!({"fallbackModel": ["haiku", "opus"], "availableModels": ["opus"]}),
        "home/.claude/settings.json:1: haiku does not take over",
    );
}

#[test]
fn recorded_settings_say_the_same_again() {
    let mut files = user(&json!({
        "permissions": {
            "allow": ["Bash(make *)", "Read(/x)"], "ask": ["WebFetch"], "deny": ["Edit(.env)"],
            "additionalDirectories": ["/tmp"], "defaultMode": "acceptEdits", "disableAutoMode": "disable",
        },
        "autoMode": {"allow": ["builds"], "soft_deny": ["pushes"]},
        "fallbackModel": ["sonnet"], "claudeMdExcludes": ["**/x"],
        "env": {"SECRET_TOKEN": "hush"},
    }));
    files.memory_sources = SettingSources::parse("user").unwrap();
    let text = serde_json::to_string(&RecordedSettings::of(&files)).unwrap();
    assert!(!text.contains("hush"), "{text}");
    let restored = serde_json::from_str::<RecordedSettings>(&text).unwrap().restore();
    let rules = |files: &FileSettings| {
        let permissions = &files.permissions;
        [&permissions.allow, &permissions.ask, &permissions.deny].map(|rules| {
            let rules = rules.iter().cloned().map(|SourcedValue { value, origin }| {
                (value, origin.level, origin.file, origin.line, origin.anchor)
            });
            rules.collect::<Vec<_>>()
        })
    };
    assert_eq!(rules(&restored), rules(&files));
    assert_eq!(RecordedSettings::of(&restored), RecordedSettings::of(&files));
    let nothing = serde_json::to_string(&RecordedSettings::of(&FileSettings::default())).unwrap();
    assert_eq!(nothing, "{}", "a log says nothing about settings that are not there");
}

#[test]
fn the_variables_of_a_run_are_those_of_shell_and_files_without_secrets() {
    let files = user(&json!({
        "effortLevel": "high", "model": "m",
        "env": {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "5000", "ANTHROPIC_API_KEY": "hush", "OTHER": "1"},
    }));
    let shell = [("ANTHROPIC_MODEL", "n"), ("PATH", "/bin")];
    let shell = shell.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let seen = files.plain_variables(&files.environment(shell));
    let expected = [
        ("ANTHROPIC_MODEL", "n"),
        ("CLAUDE_CODE_EFFORT_LEVEL", "high"),
        ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "5000"),
    ];
    assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}
