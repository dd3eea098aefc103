//! What is said about settings files that other agents read too.

use crate::support::Stage;

/// What a settings file that is shared with other agents may hold.
const SHARED: &str =
    r#"{"mcpServers": {"a": {}}, "theme": "dark", "statusLine": {"type": "command", "command": "x"}}"#;

/// A stage whose user has these settings.
fn with_user_settings(settings: &str) -> Stage {
    let hello = r#"{"blocks": [{"text": "Hello."}]}"#;
    let stage = Stage::new(&format!("[{}]", [hello; 8].join(",")));
    set(&stage, settings);
    stage
}

fn set(stage: &Stage, settings: &str) {
    let folder = stage.project.home().join(".claude");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), settings).unwrap();
}

/// A run that goes well and says this on standard error.
#[track_caller]
fn check(stage: &Stage, arguments: &[&str], expected: &str) {
    let finished = stage.run(arguments);
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), expected), "{finished:?}");
}

#[test]
fn ignored_settings_are_one_line_per_change_of_the_file() {
    let stage = with_user_settings(SHARED);
    let line = "windlass: 3 settings ignored: `windlass doctor`\n";
    check(&stage, &["-p", "go"], line);
    check(&stage, &["-p", "go"], "");
    check(&stage, &["-p", "go", "--output-format", "json"], "");
    set(&stage, &SHARED.replacen('{', r#"{"foo": 1, "#, 1));
    check(&stage, &["-p", "go"], "windlass: 4 settings ignored: `windlass doctor`\n");
    check(&stage, &["-p", "go"], "");
    set(&stage, r#"{"foo": 1}"#);
    check(&stage, &["-p", "go"], "windlass: 1 setting ignored: `windlass doctor`\n");
}

#[test]
fn what_waits_for_trust_is_said_once_per_change() {
    let stage = with_user_settings("{}");
    let project = |rules: &str| {
        let settings = format!(r#"{{"permissions": {{"allow": [{rules}]}}}}"#);
        stage.project.write(".claude/settings.json", settings).unwrap();
    };
    let one = "Project not trusted: 1 setting ignored. Review it with `windlass trust`.";
    project(r#""Bash(make)""#);
    check(&stage, &["-p", "go"], &format!("windlass: {one}\n"));
    check(&stage, &["-p", "go"], "");
    check(&stage, &["-p", "go", "--output-format", "json"], "");
    // Who asks for it, and every host, reads it each time.
    assert!(stage.run(&["doctor"]).stdout.contains(one));
    assert_eq!(stage.run(&["config", "show"]).stderr, format!("windlass: {one}\n"));
    let told = stage.told(&[], &[]);
    assert_eq!((told.notes().contains(one), told.finished.stderr.as_str()), (true, ""));
    project(r#""Bash(make all)""#);
    check(&stage, &["-p", "go"], &format!("windlass: {one}\n"));
    check(&stage, &["-p", "go"], "");
    let other = Stage::hello();
    let run = stage.command(&["-p", "go"]).current_dir(other.project.path());
    other
        .project
        .write(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(make all)"]}}"#)
        .unwrap();
    assert_eq!(run.run().unwrap().stderr, format!("windlass: {one}\n"), "another project");
}

#[test]
fn a_memory_that_cannot_be_written_is_no_error() {
    let stage = with_user_settings(SHARED);
    std::fs::create_dir_all(stage.project.home().join(".windlass/reported.json")).unwrap();
    for _ in 0..2 {
        check(&stage, &["-p", "go"], "windlass: 3 settings ignored: `windlass doctor`\n");
    }
}

#[test]
fn nothing_is_remembered_where_there_is_nothing_to_say() {
    let stage = with_user_settings(r#"{"model": "opus"}"#);
    check(&stage, &["-p", "go"], "");
    assert!(!stage.project.home().join(".windlass/reported.json").exists());
}

#[test]
fn a_wrong_value_is_said_in_full_and_once() {
    let stage = with_user_settings(r#"{"cleanupPeriodDays": "many", "permissions": {"alow": []}}"#);
    let finished = stage.run(&["-p", "go"]);
    for words in ["`cleanupPeriodDays` must be", "; ignored. Did you mean `permissions.allow`?"] {
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
    check(&stage, &["-p", "go"], "");
}

/// What is wrong with rules, hooks, directories and the model stays so from run to run; a flag is of this run.
#[test]
fn rules_hooks_directories_and_models_are_complained_of_once() {
    let stage = with_user_settings(
        r#"{"permissions": {"allow": ["FooBar(x)", "Bash(", "WebSearch(y)"], "additionalDirectories": ["/nope"]},
            "hooks": {"Foo": [{"hooks": [{"type": "command", "command": "x"}]}], "Stop": [{"hooks": [{"type": "weird"}]}]}}"#,
    );
    let complaints = |run: &[&str]| stage.run(run).stderr;
    let local = ["-p", "go", "--model", "qwen3:8b"];
    let first = complaints(&local);
    for words in
        ["FooBar", "`Bash(`", "/nope does not exist", "hook event Foo", "\"weird\"", "Unknown model qwen3:8b"]
    {
        assert!(first.contains(words), "{words} is not in {first}");
    }
    assert!(!first.contains("take it out") && !first.contains("remove"), "{first}");
    assert_eq!(complaints(&local), "");
    for _ in 0..2 {
        let told = complaints(&["-p", "go", "--allowedTools", "Baz"]);
        assert!(told.contains("unknown tool Baz") && !told.contains("FooBar"), "{told}");
    }
    let doctor = stage.run(&["doctor"]).stdout;
    assert!(doctor.contains("/nope does not exist") && doctor.contains("`Bash(`"), "{doctor}");
}

#[test]
fn hosts_and_config_show_read_every_ignored_setting() {
    let stage = with_user_settings(SHARED);
    for _ in 0..2 {
        let told = stage.told(&[], &[]);
        for words in ["Unknown setting `mcpServers`; ignored.", "`theme`: Not supported yet; ignored."] {
            assert!(told.notes().contains(words), "{}", told.notes());
        }
        let shown = stage.run(&["config", "show"]).stderr;
        assert!(shown.contains("settings.json:1:2: Unknown setting `mcpServers`; ignored.\n"), "{shown}");
    }
}
