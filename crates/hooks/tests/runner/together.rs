//! Several handlers at once: side by side, each once, and their answers in the order of the configuration.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_hooks::{HookHost, HookSet, HookSource, RuleMatch, ShowStatus, SourceKind};
use windlass_ports::HookRunner;
use windlass_protocol::{HookEnding, HookEvent, HookPermission};

use crate::stage::{Stage, bash, before, prompt, shell, stop, words};

#[tokio::test]
async fn handlers_run_side_by_side() {
    let one = |name: &str| shell(&format!("touch {name}; sleep 0.5; ls a b c > seen-{name}"));
    let stage = Stage::with(&json!({"Stop": [{"hooks": [one("a"), one("b")]}, {"hooks": [one("c")]}]}));
    let started = Instant::now();
    assert_eq!(words(&stage.ask(stop()).await), "");
    assert!(started.elapsed() < Duration::from_millis(1_400), "{:?}", started.elapsed());
    for name in ["a", "b", "c"] {
        assert_eq!(stage.read(&format!("seen-{name}")), "a\nb\nc\n");
    }
}

#[tokio::test]
async fn each_handler_at_the_end_of_a_run_is_reported_with_its_time_and_words() {
    let object = json!({"decision": "block", "reason": "Not yet."});
    let stage = Stage::with(&json!({"Stop": [{"hooks": [
        shell("sleep 0.3; echo all clean"), shell("echo no >&2; exit 2"), shell(&format!("echo '{object}'")),
        shell("exit 3"), shell("true"),
    ]}], "PostToolUse": [{"hooks": [shell("true")]}]}));
    let answer = stage.ask(stop()).await;
    let seen: Vec<_> =
        answer.runs.iter().map(|run| (run.hook.as_str(), run.ending, run.said.as_str())).collect();
    let (worked, failed) = (HookEnding::Worked, HookEnding::Failed);
    let block = format!("echo '{object}'");
    assert_eq!(
        seen[..3],
        [
            ("sleep 0.3; echo all clean", worked, "all clean"),
            ("echo no >&2; exit 2", failed, "no"),
            (&*block, worked, "Not yet."),
        ]
    );
    assert!(seen[3].1 == failed && seen[3].2.contains("exit code 3"), "{seen:?}");
    assert_eq!(seen[4], ("true", worked, ""));
    assert!((300..5_000).contains(&answer.runs[0].duration_ms), "{:?}", answer.runs);
    assert!(stage.ask(bash("ls")).await.runs.is_empty(), "only where a run ends");
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_configuration_whoever_is_first() {
    let deny = |why: &str, pause: f64| {
        let object = json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": why,
            "additionalContext": format!("context {why}"), "updatedInput": {"from": why}
        }});
        shell(&format!("sleep {pause}; echo '{object}'"))
    };
    let stage =
        Stage::with(&json!({"PreToolUse": [{"hooks": [deny("a", 0.4), deny("b", 0.0), deny("c", 0.2)]}]}));
    let answer = stage.ask(bash("ls")).await;
    assert_eq!(answer.permission, Some(HookPermission::Deny("a\nb\nc".into())));
    assert_eq!(answer.context, ["context a", "context b", "context c"]);
    assert_eq!(answer.input.unwrap().get(), r#"{"from":"c"}"#);
}

#[tokio::test]
async fn the_same_handler_in_two_settings_files_runs_once() {
    let counts = json!({"Stop": [{"hooks": [shell("echo x >> count")]}]});
    let mut stage = Stage::with(&counts);
    stage.add(&counts, "other.json:1");
    stage.add(
        &json!({"Stop": [{"hooks": [{"type": "command", "command": "echo x >> count", "timeout": 5}]}]}),
        "third:1",
    );
    stage.ask(stop()).await;
    // The third is configured in another way, so it is another.
    assert_eq!(stage.read("count"), "x\nx\n");

    let mut stage = Stage::with(&counts);
    let skill = HookSource { origin: "skill".into(), kind: SourceKind::Skill };
    assert!(stage.set.read(&counts, &skill).is_empty());
    stage.ask(stop()).await;
    assert_eq!(stage.read("count"), "x\nx\n");
}

#[tokio::test]
async fn a_matcher_decides_who_is_asked_and_nobody_else_is_started() {
    let hooks = json!({"PreToolUse": [
        {"matcher": "Bash", "hooks": [shell("echo bash >> seen")]},
        {"matcher": "Edit|Write", "hooks": [shell("echo change >> seen")]},
        {"matcher": "mcp__.*", "hooks": [shell("echo server >> seen")]},
        {"hooks": [shell("echo all >> all")]}
    ]});
    let stage = Stage::with(&hooks);
    for tool in ["Bash", "Write", "Read", "mcp__memory__get"] {
        stage.ask(before(tool, &json!({}))).await;
    }
    assert_eq!(stage.read("seen"), "bash\nchange\nserver\n");
    assert_eq!(stage.read("all").lines().count(), 4);
}

#[tokio::test]
async fn a_rule_decides_and_where_nobody_can_tell_the_handler_runs() {
    let handler =
        |rule: &str, name: &str| json!({"type": "command", "if": rule, "command": format!("touch {name}")});
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [
        handler("Bash(git *)", "git"), handler("Bash(rm *)", "rm"), handler("Bash(?)", "unclear")
    ]}]});
    let stage = Stage::with(&hooks);
    let rules: RuleMatch = Arc::new(|rule, call| {
        assert!(&*call.tool == "Bash");
        let input = call.tool_use.input.json();
        match rule {
            "Bash(git *)" => Some(input.get().contains("git ")),
            "Bash(rm *)" => Some(input.get().contains("rm ")),
            _ => None,
        }
    });
    let host = HookHost { rules: Some(rules), ..stage.host() };
    stage.ask_with(&stage.runner_with(host), bash("git status")).await;
    let there = |name: &str| stage.path().join(name).exists();
    assert!(there("git") && there("unclear") && !there("rm"));
    // Without anybody who knows rules, a guard is not left out.
    stage.ask(bash("ls")).await;
    assert!(there("rm"));
}

#[tokio::test]
async fn a_handler_whose_rule_cannot_be_read_may_object_to_everything_and_allow_nothing() {
    let decides = |decision: &str| {
        let said =
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}});
        json!({"type": "command", "if": "Bash(git *", "command": format!("echo '{said}'")})
    };
    let answered = async |handler: serde_json::Value| {
        let mut stage = Stage::new();
        let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]});
        let source = HookSource::settings("s:1");
        let problems = stage.set.read_checked(&hooks, &source, &|_| Err("it is not closed".into()));
        assert_eq!(problems.len(), 1);
        let host = HookHost { rules: Some(Arc::new(|_, _| Some(false))), ..stage.host() };
        stage.ask_with(&stage.runner_with(host), bash("ls")).await
    };
    let answer = answered(decides("allow")).await;
    assert_eq!(answer.permission, None);
    assert!(answer.notices[0].ends_with("allows a call; ignored, since its \"if\" is invalid."));
    assert!(matches!(answered(decides("deny")).await.permission, Some(HookPermission::Deny(_))));
    assert!(matches!(answered(decides("ask")).await.permission, Some(HookPermission::Ask(_))));
}

#[tokio::test]
async fn a_handler_of_a_skill_may_be_asked_only_until_it_has_worked() {
    let mut stage = Stage::new();
    let skill = HookSource { origin: "skill".into(), kind: SourceKind::Skill };
    let line = "echo x >> count; test -e ready";
    let hooks = json!({"Stop": [{"hooks": [{"type": "command", "command": line, "once": true}]}]});
    assert!(stage.set.read(&hooks, &skill).is_empty());
    let runner = stage.runner();
    for round in 0..4 {
        if round == 1 {
            std::fs::write(stage.path().join("ready"), "").unwrap();
        }
        stage.ask_with(&runner, stop()).await;
    }
    assert_eq!(stage.read("count"), "x\nx\n");
}

#[tokio::test]
async fn only_events_with_handlers_are_asked_for() {
    let events = |hooks: &serde_json::Value| {
        let mut set = HookSet::default();
        set.read(hooks, &HookSource::settings("s"));
        windlass_hooks::SettingsHooks::new(set, windlass_hooks::HookHost::new("/".into())).events()
    };
    assert!(events(&json!({})).is_empty());
    assert!(events(&json!({"Stop": [{"hooks": []}]})).is_empty());
    let one = json!([{"hooks": [shell("x")]}]);
    assert_eq!(events(&json!({"Stop": one})), [HookEvent::Stop].into());
    let background = json!([{"hooks": [{"type": "command", "command": "x", "async": true}]}]);
    let expected = [HookEvent::Stop, HookEvent::UserPromptSubmit, HookEvent::PostToolBatch];
    assert_eq!(events(&json!({"Stop": background})), expected.into());
}

#[tokio::test]
async fn what_is_shown_while_a_hook_runs_is_shown() {
    let stage = Stage::one(
        "UserPromptSubmit",
        json!({"type": "command", "command": "true", "statusMessage": "looking it up"}),
    );
    let shown = Arc::new(std::sync::Mutex::new(Vec::new()));
    let show = shown.clone();
    let status: ShowStatus = Arc::new(move |text| show.lock().unwrap().push(text.to_owned()));
    let host = HookHost { status: Some(status), ..stage.host() };
    stage.ask_with(&stage.runner_with(host), prompt("x")).await;
    assert_eq!(*shown.lock().unwrap(), ["looking it up"]);
}
