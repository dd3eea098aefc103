//! What flags say about models, budgets, thinking and the form of the answer.

use std::ffi::OsString;
use std::path::Path;

use windlass_config::{FileSettings, Flags, ProcessContext, RunConfig, Settings};

/// The configuration, or the error.
fn config(variables: &[(&str, &str)], flags: &Flags, cwd: &Path) -> Result<RunConfig, String> {
    let pairs = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let settings = Settings::from_environment(pairs).map_err(|error| error.to_string())?;
    let place =
        ProcessContext { cwd: cwd.to_owned(), is_root: false, home: None, managed: "/nowhere".into() };
    RunConfig::new(settings, flags, &place, FileSettings::default()).map_err(|error| error.to_string())
}

/// A change of the flags, and what it leads to: a piece of the configuration, or the error.
#[track_caller]
fn check(change: fn(&mut Flags), expected: &str) {
    check_with(&[], change, expected);
}

#[track_caller]
fn check_with(variables: &[(&str, &str)], change: fn(&mut Flags), expected: &str) {
    let mut flags = Flags::default();
    change(&mut flags);
    let seen = match config(variables, &flags, Path::new("/")) {
        Ok(config) => format!("{config:?}"),
        Err(error) => error,
    };
    assert!(seen.contains(expected), "{expected} is not in {seen}");
}

#[test]
fn budgets_are_amounts() {
    check(|flags| flags.budget_usd = Some("0.01".into()), "budget_usd: Some(0.01)");
    check(|flags| flags.budget_usd = Some("2".into()), "budget_usd: Some(2.0)");
    for nonsense in ["0", "-1", "NaN", "inf", "much", ""] {
        let flags = Flags { budget_usd: Some(nonsense.into()), ..Flags::default() };
        let error = config(&[], &flags, Path::new("/")).unwrap_err();
        assert!(error.starts_with("--max-budget-usd ") && error.contains("an amount above 0"), "{error}");
    }
    check(|flags| flags.task_budget = Some("20000".into()), "task_budget: Some(20000)");
    check(|flags| flags.task_budget = Some("19999".into()), "--task-budget 19999 is not understood");
}

#[test]
fn fallbacks_are_a_list() {
    check(|flags| flags.fallback_models = Some("sonnet, haiku".into()), r#"fallbacks: ["sonnet", "haiku"]"#);
    check(
        |flags| flags.fallback_models = Some(" ,".into()),
        "--fallback-model '' is not understood: give one or more",
    );
    check(|_| {}, "fallbacks: []");
}

#[test]
fn effort_is_a_level() {
    check(|flags| flags.effort = Some("xhigh".into()), "effort: Some(XHigh)");
    check(
        |flags| flags.effort = Some("hard".into()),
        "--effort hard is not understood: use low, medium, high, xhigh or max.",
    );
    check_with(
        &[("CLAUDE_CODE_EFFORT_LEVEL", "low")],
        |flags| flags.effort = Some("max".into()),
        "effort: Some(Max), cache_safe",
    );
    check_with(&[("CLAUDE_CODE_EFFORT_LEVEL", "low")], |_| {}, "effort: Some(Low), cache_safe");
}

#[test]
fn thinking_is_a_wish() {
    let wish = |mode: &str, budget: &str| format!("ThinkingWish {{ mode: {mode}, budget_tokens: {budget},");
    check(|_| {}, &wish("Auto", "None"));
    check(|flags| flags.thinking = Some("adaptive".into()), &wish("Adaptive", "None"));
    check(|flags| flags.thinking = Some("enabled".into()), &wish("Adaptive", "None"));
    check(|flags| flags.thinking = Some("disabled".into()), &wish("Disabled", "None"));
    check(|flags| flags.thinking_tokens = Some("7".into()), &wish("Auto", "Some(7)"));
    check(|flags| flags.thinking_tokens = Some("0".into()), &wish("Disabled", "None"));
    check(|flags| flags.thinking_display = Some("omitted".into()), "display: Some(Omitted)");
    check(|flags| flags.thinking_display = Some("summarized".into()), "display: Some(Summarized)");

    let inherited = |tokens: &'static str| [("MAX_THINKING_TOKENS", tokens)];
    check_with(&inherited("9"), |_| {}, &wish("Auto", "Some(9)"));
    check_with(&inherited("0"), |_| {}, &wish("Disabled", "None"));
    check_with(
        &inherited("9"),
        |flags| flags.thinking = Some("enabled".into()),
        &wish("Adaptive", "Some(9)"),
    );
    check_with(&inherited("0"), |flags| flags.thinking = Some("enabled".into()), &wish("Adaptive", "None"));
    check_with(&inherited("9"), |flags| flags.thinking = Some("adaptive".into()), &wish("Adaptive", "None"));
    check_with(&inherited("9"), |flags| flags.thinking_tokens = Some("5".into()), &wish("Auto", "Some(5)"));

    check(
        |flags| flags.thinking = Some("lots".into()),
        "--thinking lots is not understood: use adaptive, enabled or disabled.",
    );
    check(|flags| flags.thinking_display = Some(String::new()), "--thinking-display '' is not understood");
    check(|flags| flags.thinking_tokens = Some("-1".into()), "--max-thinking-tokens -1 is not understood");
    check(
        |flags| {
            flags.thinking = Some("disabled".into());
            flags.thinking_tokens = Some("5".into());
        },
        "--thinking disabled contradicts --max-thinking-tokens 5.",
    );
    check(
        |flags| {
            flags.thinking = Some("adaptive".into());
            flags.thinking_tokens = Some("0".into());
        },
        "--thinking adaptive contradicts --max-thinking-tokens 0.",
    );
}

#[test]
fn the_window_of_compaction_comes_from_the_nearest_place() {
    let inherited = [("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "5")];
    let window = |tokens: &str| format!("window_tokens: {tokens}, compact_percent: None");
    check_with(
        &inherited,
        |flags| flags.autocompact = Some("500k".into()),
        &format!(
            "context: ContextPolicy {{ compaction: Automatic, can_collapse: true, can_micro_compact: true, {}",
            window("Some(500000)")
        ),
    );
    check_with(&inherited, |flags| flags.autocompact = Some("auto".into()), &window("None"));
    check_with(&inherited, |_| {}, &window("Some(5)"));
    check(
        |flags| flags.autocompact = Some("5".into()),
        "--autocompact 5 is not understood: give auto or a number",
    );
}

#[test]
fn a_schema_is_a_json_object() {
    check(
        |flags| flags.json_schema = Some(r#"{"type": "object"}"#.into()),
        r#"json_schema: Some(RawValue({"type": "object"}))"#,
    );
    check(
        |flags| flags.json_schema = Some("{".into()),
        "--json-schema { is not understood: it is not JSON (EOF",
    );
    check(
        |flags| flags.json_schema = Some("schema.json".into()),
        r#", or the contents of a file as "$(cat schema.json)"."#,
    );
    check(
        |flags| flags.json_schema = Some("[1]".into()),
        "--json-schema [1] is not understood: it is not a JSON object",
    );
    check(|flags| flags.json_schema = Some(String::new()), "--json-schema '' is not understood");
    let long = Flags { json_schema: Some("x".repeat(5000)), ..Flags::default() };
    assert!(config(&[], &long, Path::new("/")).unwrap_err().len() < 250);
}

#[test]
fn answers_that_stand_in_for_hooks_are_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("h.json"), r#"{"Stop": [{"blocks": ["no"]}]}"#).unwrap();
    std::fs::write(folder.path().join("bad.json"), "{").unwrap();
    let check = |name: &str, expected: &str| {
        let variables = [("WINDLASS_SCRIPTED_HOOKS", name)];
        let seen = match config(&variables, &Flags::default(), folder.path()) {
            Ok(config) => format!("{:?}", config.scripted_hooks),
            Err(error) => error,
        };
        assert!(seen.contains(expected), "{seen}");
    };
    check("h.json", "{Stop: [HookAnswer");
    check("bad.json", "WINDLASS_SCRIPTED_HOOKS=bad.json: EOF while parsing");
    check("none.json", "WINDLASS_SCRIPTED_HOOKS=none.json: it does not exist.");
}

#[test]
fn a_rule_that_allows_nothing_is_told_with_the_one_to_use() {
    let check = |rule: &str, expected: &[&str]| {
        let flags = Flags { allowed_tools: vec![rule.into()], ..Flags::default() };
        assert_eq!(config(&[], &flags, Path::new("/")).unwrap().run_warnings, expected, "{rule}");
    };
    for rule in ["Write(w.txt)", "Write(src/**)", "NotebookEdit(a.ipynb)"] {
        let told = format!(
            "--allowedTools: the allow rule `{rule}` has no effect: use Edit(path), which covers every tool that changes files."
        );
        check(rule, &[&told]);
    }
    check("Edit(src/**)", &[]);
    check("Write", &[]);
}
