use super::*;
use crate::set::HookSet;
use serde_json::json;

fn read_from(hooks: &Value, source: &HookSource) -> (HookSet, Vec<String>) {
    let mut set = HookSet::default();
    let problems = set.read(hooks, source);
    (set, problems.iter().map(ToString::to_string).collect())
}

#[track_caller]
fn check(hooks: &Value, handlers: usize, expected: &[&str]) {
    let (set, problems) = read_from(hooks, &HookSource::settings("s:1"));
    assert_eq!(problems, expected, "{hooks}");
    assert_eq!(set.handlers.len(), handlers, "{hooks}");
}

/// A handler of an event that takes every kind.
#[track_caller]
fn check_handler(handler: &Value, handlers: usize, expected: &[&str]) {
    let expected: Vec<String> =
        expected.iter().map(|text| format!("s:1 PreToolUse[0].hooks[0]: {text}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&json!({"PreToolUse": [{"hooks": [handler]}]}), handlers, &expected);
}

#[test]
fn every_field_is_read() {
    let hooks = json!({"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [
        {"type": "command", "if": "Bash(git *)", "command": "./check.sh", "timeout": 2.5, "statusMessage": "checking",
         "onFailure": "block", "shell": "bash"},
        {"type": "command", "command": "prog", "args": ["a", "b"], "asyncRewake": true},
        {"type": "command", "command": "prog", "args": [], "async": true},
        {"type": "http", "url": "https://a.example/x", "headers": {"X": "$A"}, "allowedEnvVars": ["A"]},
        {"type": "prompt", "prompt": "p", "model": "m", "continueOnBlock": true,
         "onFailure": "block"}
    ]}]});
    let (set, problems) = read_from(&hooks, &HookSource::settings("s:1"));
    assert!(problems.is_empty(), "{problems:?}");
    let seen: Vec<String> =
        set.for_event(HookEvent::PreToolUse).map(|handler| format!("{:?}", handler.action)).collect();
    let expected = [
        r#"Command(CommandHandler { form: Shell { line: "./check.sh", shell: "bash" }, pace: Awaited })"#,
        r#"Command(CommandHandler { form: Exec { argv: ["prog", "a", "b"] }, pace: Background { should_wake: true } })"#,
        r#"Command(CommandHandler { form: Exec { argv: ["prog"] }, pace: Background { should_wake: false } })"#,
        r#"Http(HttpHandler { url: "https://a.example/x", headers: [("X", "$A")], variables: ["A"] })"#,
        r#"Prompt(PromptHandler { prompt: "p", model: Some("m"), should_continue_on_block: true })"#,
    ];
    assert_eq!(seen, expected);
    let first = set.for_event(HookEvent::PreToolUse).next().unwrap();
    assert_eq!(first.condition, Condition::Rule("Bash(git *)".into()));
    assert_eq!(first.timeout, Some(Duration::from_millis(2_500)));
    assert_eq!(first.status.as_deref(), Some("checking"));
    assert!(first.should_block_on_failure);
    assert_eq!(first.origin, "s:1 PreToolUse[0].hooks[0]");
}

#[test]
fn an_unknown_event_is_named_with_the_nearest() {
    check(
        &json!({"PreTooluse": []}),
        0,
        &["s:1: unknown hook event PreTooluse, so none of its hooks run; did you mean PreToolUse?"],
    );
    let (_, problems) = read_from(&json!({"Nonsense": []}), &HookSource::settings("s:1"));
    assert!(problems[0].starts_with(
        "s:1: unknown hook event Nonsense, so none of its hooks run; the events are SessionStart, Setup,"
    ));
}

#[test]
fn an_event_that_nothing_reaches_is_told() {
    let one = json!([{"hooks": [{"type": "command", "command": "x"}]}]);
    let text = |event: &str| format!("s:1: hooks for {event} are not supported yet; they never run");
    for (event, handlers) in [("SubagentStop", 1), ("SubagentStart", 1), ("FileChanged", 0), ("Setup", 0)] {
        check(&json!({event: one}), handlers, &[&text(event)]);
    }
    check(&json!({"Stop": one, "PermissionDenied": one}), 2, &[]);
}

#[test]
fn what_is_wrong_with_a_handler_is_said_and_the_rest_stays() {
    check_handler(&json!({"type": "command", "command": "x"}), 1, &[]);
    check_handler(&json!("x"), 0, &["a hook is a text, so this hook does not run; it must be an object"]);
    check_handler(
        &json!({"command": "x"}),
        0,
        &["\"type\" is missing, so this hook does not run; add it, such as \"command\""],
    );
    check_handler(
        &json!({"type": "comand"}),
        0,
        &["unknown hook type \"comand\", so this hook does not run; did you mean command?"],
    );
    check_handler(
        &json!({"type": "script"}),
        0,
        &["unknown hook type \"script\", so this hook does not run; the types are command, http and prompt"],
    );
    for kind in ["mcp_tool", "agent"] {
        let text = format!(
            "hooks of type {kind} are not supported yet, so this hook does not run; use a command or http hook"
        );
        check_handler(&json!({"type": kind, "server": "s"}), 0, &[&text]);
    }
    check_handler(
        &json!({"type": "command"}),
        0,
        &["\"command\" is missing, so this hook does not run; give it"],
    );
    check_handler(
        &json!({"type": "command", "command": "x", "tiemout": 3}),
        1,
        &["unknown field \"tiemout\"; did you mean \"timeout\"?"],
    );
    check_handler(
        &json!({"type": "command", "command": "x", "url": "https://a.example"}),
        1,
        &["unknown field \"url\"; it has no effect"],
    );
    for (timeout, is) in
        [(json!(0), "0"), (json!(-5), "-5"), (json!("5"), "a text"), (json!(1e9), "1000000000.0")]
    {
        let (_, problems) = read_from(
            &json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": timeout}]}]}),
            &HookSource::settings("s:1"),
        );
        let expected = format!(
            "s:1 Stop[0].hooks[0]: \"timeout\" is {is}, so this hook does not run; it must be a number of seconds above zero, at \
             most a day"
        );
        assert_eq!(problems, [expected]);
    }
    check_handler(
        &json!({"type": "command", "command": "x", "args": "a b"}),
        0,
        &["\"args\" is a text, so this hook does not run; it must be a list of strings"],
    );
}

#[test]
fn what_has_another_effect_than_it_seems_is_said() {
    check_handler(
        &json!({"type": "command", "command": "x", "shell": "powershell"}),
        0,
        &[
            "the shell \"powershell\" is not supported, so this hook does not run; use \"bash\", or remove it to use sh",
        ],
    );
    check_handler(
        &json!({"type": "command", "command": "x", "onFailure": "stop"}),
        1,
        &["\"onFailure\" is \"stop\"; treated as \"block\"; write \"block\" or \"continue\""],
    );
    check_handler(
        &json!({"type": "command", "command": "x", "once": true}),
        1,
        &["\"once\" works only in hooks of a skill; this hook runs every time"],
    );
    check_handler(
        &json!({"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/x"}),
        1,
        &[
            "${CLAUDE_PLUGIN_ROOT} has no value in a settings file; use ${CLAUDE_PROJECT_DIR} or an absolute path",
        ],
    );
    check_handler(
        &json!({"type": "http", "url": "file:///etc/passwd"}),
        0,
        &[
            "\"file:///etc/passwd\" is not a web address, so this hook does not run; write one that begins with https:// or http://",
        ],
    );
    check_handler(
        &json!({"type": "http", "url": "https://a.example", "headers": {"X": 1}}),
        0,
        &["\"headers\" is an object, so this hook does not run; it must be an object of strings"],
    );
}

#[test]
fn what_is_wrong_around_handlers_is_said() {
    check(
        &json!([]),
        0,
        &["s:1: hooks is a list, so none of its hooks run; it must be an object with the names of events"],
    );
    check(
        &json!({"Stop": {}}),
        0,
        &["s:1 Stop: Stop is an object, so none of its hooks run; it must be a list of groups"],
    );
    check(
        &json!({"Stop": [{}]}),
        0,
        &[
            "s:1 Stop[0]: the list of hooks is missing, so the hooks of this group do not run; add it as \"hooks\"",
        ],
    );
    check(
        &json!({"Stop": [{"matcher": "x", "hooks": []}]}),
        0,
        &["s:1 Stop[0]: Stop takes no matcher; its hooks always run; remove the matcher"],
    );
    check(
        &json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "if": "Bash"}]}]}),
        0,
        &[
            "s:1 Stop[0].hooks[0]: \"if\" needs a tool call, and Stop has none, so this hook does not run; leave \"if\" out",
        ],
    );
    check(
        &json!({"SessionStart": [{"hooks": [{"type": "http", "url": "https://a.example"}]}]}),
        0,
        &[
            "s:1 SessionStart[0].hooks[0]: SessionStart does not support hooks of type http, so this hook does not run; use command",
        ],
    );
    check(
        &json!({"PreCompact": [{"hooks": [{"type": "prompt", "prompt": "p"}]}]}),
        0,
        &[
            "s:1 PreCompact[0].hooks[0]: PreCompact does not support hooks of type prompt, so this hook does not run; use command or http",
        ],
    );
    check(
        &json!({"SessionEnd": [{"hooks": [{"type": "command", "command": "x", "onFailure": "block"}]}]}),
        1,
        &[
            "s:1 SessionEnd[0].hooks[0]: \"onFailure\" cannot block SessionEnd; failures are only reported there",
        ],
    );
    let (set, problems) = read_from(
        &json!({"PreToolUse": [{"matcher": "Bash(", "hooks": [{"type": "command", "command": "x"}]}]}),
        &HookSource::settings("s:1"),
    );
    assert!(problems[0].contains("the matcher \"Bash(\" is not a regular expression"), "{problems:?}");
    assert!(problems[0].ends_with("so the hooks of this group do not run; correct it"), "{problems:?}");
    assert!(set.is_empty());
}

#[test]
fn a_matcher_that_names_no_tool_is_told() {
    let one = json!([{"type": "command", "command": "x"}]);
    let check = |event: &str, matcher: &str, expected: &[&str]| {
        let (set, problems) =
            read_from(&json!({event: [{"matcher": matcher, "hooks": one}]}), &HookSource::settings("s:1"));
        let expected: Vec<String> =
            expected.iter().map(|text| format!("s:1 {event}[0]: there is no tool {text}")).collect();
        assert_eq!(problems, expected, "{matcher}");
        assert_eq!(set.handlers.len(), 1, "{matcher}");
    };
    let bash = "bash, so the hooks of this group do not run for it; did you mean Bash?";
    for event in ["PreToolUse", "PermissionRequest", "PostToolUse"] {
        check(event, "bash", &[bash]);
    }
    check("PreToolUse", "Bash|Edt", &["Edt, so the matcher ignores it; did you mean Edit?"]);
    for known in ["", "*", "Bash|Edit", "Task", "KillShell", "mcp__a__b", "mcp__a", "bash.*"] {
        check("PreToolUse", known, &[]);
    }
    check("StopFailure", "rate_limit", &[]);
    let (_, problems) = read_from(
        &json!({"PreToolUse": [{"matcher": "Nonsense", "hooks": one}]}),
        &HookSource::settings("s:1"),
    );
    assert!(
        problems[0].contains("the matcher ignores it; available tools: Agent, AskUserQuestion, "),
        "{problems:?}"
    );
}

/// Whoever says that nothing passes without a hook is not served by a session without it.
#[test]
fn nothing_starts_without_a_hook_that_blocks_on_failure() {
    #[track_caller]
    fn check(hooks: &Value, what: &str, stops: bool) {
        let problems = HookSet::default().read(hooks, &HookSource::settings("s:1"));
        let problem = problems.iter().find(|problem| problem.to_string().contains(what));
        let problem = problem.unwrap_or_else(|| panic!("{what:?} is not in {problems:?}"));
        assert_eq!(problem.is_fatal, stops, "{hooks}");
        let end = "; nothing starts without a hook whose \"onFailure\" blocks";
        assert_eq!(problem.to_string().ends_with(end), stops, "{problem}");
    }
    let around = |around: fn(Value) -> Value, what: &str| {
        for (policy, stops) in [("block", true), ("deny", true), ("continue", false)] {
            check(&around(json!({"type": "command", "command": "exit 2", "onFailure": policy})), what, stops);
        }
    };
    around(|hook| json!({"PreToolUse": hook}), "PreToolUse is an object, so none of its hooks run");
    around(|hook| json!({"PreToolUse": {"hooks": [hook]}}), "none of its hooks run");
    around(|hook| json!({"PreTooluse": [{"hooks": [hook]}]}), "unknown hook event PreTooluse");
    around(|hook| json!({"Nonsense": [{"hooks": [hook]}]}), "unknown hook event Nonsense");
    around(|hook| json!([{"hooks": [hook]}]), "none of its hooks run");
    around(|hook| json!({"Stop": [{"hook": [hook]}]}), "the list of hooks is missing");
    around(|hook| json!({"Stop": [{"hooks": hook}]}), "the list of hooks is missing");
    around(|hook| json!({"Stop": [[hook]]}), "a group is a list");
    around(
        |hook| json!({"PreToolUse": [{"matcher": "Bash(", "hooks": [hook]}]}),
        "is not a regular expression",
    );
    around(|hook| json!({"PreToolUse": [{"matcher": 5, "hooks": [hook]}]}), "\"matcher\" is a number");
    around(|hook| json!({"PreToolUse": [{"matcher": "bash", "hooks": [hook]}]}), "there is no tool bash");
    let hook = |event: &str, hook: &Value, what: &str, stops: bool| {
        check(&json!({event: [{"hooks": [hook]}]}), what, stops);
    };
    let block = "block";
    let text = json!({"type": "command", "command": "exit 2", "timeout": "5", "onFailure": block});
    hook("PreToolUse", &text, "\"timeout\" is a text", true);
    let misspelt = json!({"type": "command", "command": "exit 2", "timeout": "5", "on_failure": block});
    hook("PreToolUse", &misspelt, "\"timeout\" is a text", true);
    hook("PreToolUse", &json!({"type": "comand", "onFailure": block}), "unknown hook type", true);
    hook("PreToolUse", &json!({"type": "mcp_tool", "onFailure": block}), "not supported yet", true);
    hook("PreToolUse", &json!({"type": "command", "command": "x", "onFailure": 5}), "is a number", true);
    hook("PreToolUse", &json!([{"onFailure": block}]), "a hook is a list", true);
    hook("PreToolUse", &json!("exit 2"), "a hook is a text", false);
    hook("PreToolUse", &json!({"type": "comand"}), "unknown hook type", false);
    for pace in ["async", "asyncRewake"] {
        let idle = json!({"type": "command", "command": "x", pace: true, "onFailure": block});
        hook("PreToolUse", &idle, "a background hook cannot block", true);
    }
    hook("Setup", &json!({"type": "comand", "onFailure": block}), "unknown hook type", false);
}

/// It may be a guard, so it is not left out.
#[test]
fn a_handler_whose_rule_cannot_be_read_is_told_and_stays() {
    let check = |condition: Value, expected: Option<&str>| {
        let hooks =
            json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "if": condition}]}]});
        let mut set = HookSet::default();
        let rules = |rule: &str| if rule == "Bash(" { Err("it is not closed".into()) } else { Ok(()) };
        let problems = set.read_checked(&hooks, &HookSource::settings("s:1"), &rules);
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let expected = expected.map(|what| {
            format!(
                "s:1 PreToolUse[0].hooks[0]: {what}; write one permission rule, such as \"Bash(git *)\"; until then this hook \
                 runs for every call that its matcher covers, and its permission to allow is ignored"
            )
        });
        assert_eq!(problems, Vec::from_iter(expected.clone()), "{condition}");
        let handler = set.for_event(HookEvent::PreToolUse).next().unwrap();
        assert_eq!(handler.condition == Condition::Unreadable, expected.is_some(), "{condition}");
    };
    check(json!("Bash(git *)"), None);
    check(json!("Bash("), Some("the rule \"Bash(\" in \"if\" is invalid: it is not closed"));
    check(json!(["Bash"]), Some("\"if\" is a list"));
    check(json!(null), Some("\"if\" is null"));
}

#[test]
fn whatever_stands_there_is_read_without_a_crash() {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just("command".to_owned()), Just("http".to_owned()), ".{0,12}"].prop_map(Value::from),
    ];
    let names = prop_oneof![
        Just("PreToolUse".to_owned()),
        Just("hooks".to_owned()),
        Just("type".to_owned()),
        Just("command".to_owned()),
        Just("matcher".to_owned()),
        Just("timeout".to_owned()),
        "[a-z]{1,6}",
    ];
    let value = leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    proptest!(|(value in value)| {
        let (set, problems) = read_from(&value, &HookSource::settings("s:1"));
        let is_known = value.as_object().is_some_and(Map::is_empty);
        prop_assert!(!set.is_empty() || !problems.is_empty() || is_known || value["PreToolUse"].is_array());
    });
}
