//! What programs say, by their exit codes and by what they print.

use serde_json::json;
use windlass_hooks::HookHost;
use windlass_ports::HookRunner;
use windlass_protocol::{EndReason, HookCall, HookFailureKind, ToolOutput};

use crate::stage::{Stage, after, bash, before, prompt, shell, stop, words};

#[track_caller]
fn check_words(seen: &str, expected: &str, what: &str) {
    assert_eq!(seen, expected, "{what}");
}

async fn check(event: &str, call: HookCall, line: &str, expected: &str) {
    let answer = Stage::one(event, shell(line)).ask(call).await;
    check_words(&words(&answer), expected, line);
}

#[tokio::test]
async fn the_exit_code_says_whether_a_hook_objects() {
    let pre = || bash("ls");
    check("PreToolUse", pre(), "exit 0", "").await;
    check("PreToolUse", pre(), "echo hello", "").await;
    check("PreToolUse", pre(), "echo no >&2; exit 2", "deny no | notice objects: no").await;
    check("PreToolUse", pre(), "exit 2", "deny no reason given | notice objects: no reason given").await;
    check(
        "PreToolUse",
        pre(),
        "echo oops >&2; exit 1",
        "notice crashed: exit code 1: oops. Its answer is ignored.",
    )
    .await;
    check("PreToolUse", pre(), "exit 3", "notice crashed: exit code 3: no output. Its answer is ignored.")
        .await;
    check("PreToolUse", pre(), "kill -9 $$", "notice crashed: ended by signal 9. Its answer is ignored.")
        .await;
    check("Stop", stop(), "echo go on >&2; exit 2", "block go on | notice objects: go on").await;
    check("UserPromptSubmit", prompt("x"), "echo no >&2; exit 2", "block no | notice objects: no").await;
    let compact =
        HookCall::PreCompact { trigger: windlass_protocol::CompactTrigger::Manual, instructions: "".into() };
    check("PreCompact", compact, "echo no >&2; exit 2", "block no | notice objects: no").await;
    // What is done cannot be blocked, but the model hears of it.
    let done = after("Bash", &json!({}), ToolOutput::text("out"));
    check("PostToolUse", done, "echo bad >&2; exit 2", "block bad | notice objects: bad").await;
    let failed = after("Bash", &json!({}), ToolOutput::error("out"));
    check("PostToolUseFailure", failed, "echo bad >&2; exit 2", "block bad | notice objects: bad").await;
    // And what cannot be helped is only told.
    let end = HookCall::SessionEnd { reason: EndReason::Other };
    check("SessionEnd", end, "echo bad >&2; exit 2", "notice objects: bad").await;
}

/// A denial may be in the part that is missing.
#[tokio::test]
async fn an_answer_that_is_cut_is_an_objection() {
    const CUT: &str = "its answer is longer than 1 MiB and was cut off";
    // More than is kept, of blanks or of a long reason.
    let blanks = "head -c 2000000 /dev/zero | tr '\\0' ' '";
    let long = "head -c 2000000 /dev/zero | tr '\\0' x";
    let denial = |reason: &str| {
        format!(
            "printf '{{\"hookSpecificOutput\": {{\"hookEventName\": \"PreToolUse\", \"permissionDecision\": \"deny\", \
             \"permissionDecisionReason\": \"'; {reason}; printf '\"}}}}'"
        )
    };
    for line in [denial(long), format!("{blanks}; {}", denial("printf no")), long.to_owned()] {
        let seen = words(&Stage::one("PreToolUse", shell(&line)).ask(bash("ls")).await);
        assert!(seen.starts_with("deny ") && seen.contains(CUT), "{line}: {seen}");
        let seen = words(&Stage::one("PreToolUse", shell(&format!("{line}; exit 1"))).ask(bash("ls")).await);
        assert!(seen.starts_with("deny ") && seen.contains(CUT), "{line}: {seen}");
    }
    let block = format!("printf '{{\"decision\": \"block\", \"reason\": \"'; {long}; printf '\"}}'");
    for (event, call) in [("UserPromptSubmit", prompt("x")), ("Stop", stop())] {
        let seen = words(&Stage::one(event, shell(&block)).ask(call).await);
        assert!(seen.starts_with("block ") && seen.contains(CUT), "{event}: {seen}");
    }
    // Plain text is no answer, and what an exit code says needs none.
    let seen = words(&Stage::one("UserPromptSubmit", shell(long)).ask(prompt("x")).await);
    assert!(seen.starts_with("context ") && !seen.contains(CUT), "{}", &seen[..200.min(seen.len())]);
    let seen = words(
        &Stage::one("PreToolUse", shell(&format!("{long}; echo no >&2; exit 2"))).ask(bash("ls")).await,
    );
    assert_eq!(seen, "deny no | notice objects: no");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_apart_from_one_that_crashes() {
    let answer = Stage::one("PreToolUse", shell("./no-such-script.sh")).ask(bash("ls")).await;
    let seen = words(&answer);
    assert!(seen.starts_with("notice could not be started: ") && seen.contains("no-such-script"), "{seen}");
    let exec = json!({"type": "command", "command": "/no/such/program", "args": []});
    let answer = Stage::one("PreToolUse", exec).ask(bash("ls")).await;
    let seen = words(&answer);
    assert!(seen.starts_with("notice could not be started: ") && seen.contains("No such file"), "{seen}");
}

/// Whoever shows failures tells them apart by their kind, whatever words the program itself used.
#[tokio::test]
async fn every_way_of_failing_has_its_kind() {
    use HookFailureKind::*;
    let kinds = async |handler: serde_json::Value| {
        let answer = Stage::one("PreToolUse", handler).ask(bash("ls")).await;
        assert!(answer.notices.is_empty(), "{answer:?}");
        let is_named = |hook: &str| hook == "The PreToolUse hook of settings.json:1 PreToolUse[0].hooks[0]";
        assert!(answer.failures.iter().all(|failure| is_named(&failure.hook)), "{answer:?}");
        answer.failures.iter().map(|failure| failure.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(shell("./no-such-script.sh")).await, [NotStarted]);
    assert_eq!(kinds(shell("echo it took longer than 1 s >&2; exit 1")).await, [Crashed]);
    assert_eq!(kinds(json!({"type": "command", "command": "sleep 9", "timeout": 0.1})).await, [TimedOut]);
    assert_eq!(kinds(shell("echo '{\"crashed'")).await, [Misspoke]);
    let strict = json!({"type": "command", "command": "exit 1", "onFailure": "block"});
    assert_eq!(kinds(strict).await, [Crashed]);
    let objects = Stage::one("PreToolUse", shell("echo it crashed. Its answer is ignored. >&2; exit 2"));
    assert!(objects.ask(bash("ls")).await.failures.is_empty());
}

#[tokio::test]
async fn an_object_counts_on_every_exit_code_and_cannot_undo_an_objection() {
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
    let allow = deny.replace("deny", "allow");
    for code in [0, 1, 7, 127] {
        let line = format!("echo '{deny}'; echo ignored >&2; exit {code}");
        check("PreToolUse", bash("ls"), &line, "deny no | notice objects: no").await;
    }
    check("PreToolUse", bash("ls"), &format!("echo '{allow}'; exit 2"), "deny no | notice objects: no").await;
    check("PreToolUse", bash("ls"), &format!("echo '{allow}'"), "allow").await;
    let message = r#"{"systemMessage":"look","decision":"block","reason":"r"}"#;
    check("Stop", stop(), &format!("echo '{message}'; exit 2"), "block r | notice look | notice objects: r")
        .await;
}

#[tokio::test]
async fn an_object_that_does_not_fit_is_told_and_an_exit_code_still_counts() {
    let line = r#"echo '{"decision":"nonsense"}'"#;
    let told =
        "gave an answer that cannot be read: decision is \"nonsense\"; it can be \"block\" or \"approve\"";
    check("Stop", stop(), line, &format!("notice {told}. Its answer is ignored.")).await;
    let line = format!("{line}; echo stop >&2; exit 2");
    check("Stop", stop(), &line, "block stop | notice objects: stop").await;
    // A refusal that went wrong is not plain text.
    let answer = Stage::one("PreToolUse", shell(r#"echo '{"decision": "block'"#)).ask(bash("ls")).await;
    assert!(
        words(&answer).starts_with("notice gave an answer that cannot be read: EOF"),
        "{}",
        words(&answer)
    );
}

#[tokio::test]
async fn plain_output_is_for_the_model_where_a_session_or_a_prompt_begins() {
    check("UserPromptSubmit", prompt("x"), "echo be brief", "context be brief").await;
    check("UserPromptSubmit", prompt("x"), "echo '{not json'", "context {not json").await;
    check(
        "UserPromptSubmit",
        prompt("x"),
        "echo lost; exit 1",
        "notice crashed: exit code 1: no output. Its answer is ignored.",
    )
    .await;
    let start = HookCall::SessionStart { source: windlass_protocol::StartSource::Startup, model: "m".into() };
    check("SessionStart", start, "echo today is monday", "context today is monday").await;
    check("Stop", stop(), "echo hello", "").await;
}

#[tokio::test]
async fn a_program_reads_the_question_and_knows_its_place() {
    let stage = Stage::one("PreToolUse", shell("cat > seen.json; env > seen.env; pwd > seen.cwd"));
    stage.ask(before("Edit", &json!({"file_path": "a.rs"}))).await;
    let seen: serde_json::Value = serde_json::from_str(&stage.read("seen.json")).unwrap();
    assert_eq!(seen["hook_event_name"], "PreToolUse");
    assert_eq!(seen["tool_input"]["file_path"], stage.path().join("a.rs").to_str().unwrap());
    assert!(stage.read("seen.json").ends_with("}\n"));
    let environment = stage.read("seen.env");
    for line in [
        format!("CLAUDE_PROJECT_DIR={}", stage.path().display()),
        "CLAUDECODE=1".into(),
        "CLAUDE_CODE_CHILD_SESSION=1".into(),
        format!("CLAUDE_CODE_SESSION_ID={}", seen["session_id"].as_str().unwrap()),
    ] {
        assert!(environment.lines().any(|seen| seen == line), "{line} is not in {environment}");
    }
    assert_eq!(stage.read("seen.cwd").trim(), stage.path().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn a_program_gets_no_secrets_unless_they_are_passed_on() {
    let stage = Stage::one("Stop", shell("env > seen.env"));
    let environment = [
        ("PATH", "/usr/bin:/bin"),
        ("ANTHROPIC_API_KEY", "sk-ant-1"),
        ("GITHUB_TOKEN", "gh-1"),
        ("TEAM_TOKEN", "team-1"),
        ("OTEL_EXPORTER", "x"),
        ("LANG", "C"),
    ];
    let environment = environment.map(|(name, value)| (name.into(), value.into())).to_vec();
    let pass = vec!["TEAM_TOKEN".into(), "ANTHROPIC_API_KEY".into()];
    let runner = stage.runner_with(HookHost { environment, pass, ..stage.host() });
    stage.ask_with(&runner, stop()).await;
    let seen = stage.read("seen.env");
    assert!(seen.contains("TEAM_TOKEN=team-1") && seen.contains("LANG=C"), "{seen}");
    assert!(!seen.contains("sk-ant") && !seen.contains("gh-1") && !seen.contains("OTEL"), "{seen}");
}

#[tokio::test]
async fn the_exec_form_needs_no_shell_and_fills_in_the_project() {
    let handler = json!({
        "type": "command", "command": "${CLAUDE_PROJECT_DIR}/keep.sh", "args": ["${CLAUDE_PROJECT_DIR}/x", "$HOME; ls", ""]
    });
    let stage = Stage::one("Stop", handler);
    stage.script("keep.sh", "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > seen\n");
    assert_eq!(words(&stage.ask(stop()).await), "");
    assert_eq!(stage.read("seen"), format!("3\n{}/x\n$HOME; ls\n\n", stage.path().display()));
}

#[tokio::test]
async fn the_shell_form_reads_the_project_as_a_variable() {
    let stage = Stage::one("Stop", shell("\"${CLAUDE_PROJECT_DIR}\"/keep.sh"));
    stage.script("keep.sh", "#!/bin/sh\ntouch done\n");
    stage.ask(stop()).await;
    assert!(stage.path().join("done").exists());
    let stage = Stage::one(
        "Stop",
        json!({"type": "command", "command": "[[ 1 == 1 ]] && touch done", "shell": "bash"}),
    );
    assert_eq!(words(&stage.ask(stop()).await), "");
    assert!(stage.path().join("done").exists());
}

#[tokio::test]
async fn a_directory_that_is_gone_does_not_keep_a_hook_from_running() {
    let stage = Stage::one("Stop", shell("pwd > \"$CLAUDE_PROJECT_DIR\"/seen"));
    let mut scene = stage.scene();
    scene.cwd = std::sync::Arc::new(stage.path().join("gone"));
    stage.runner().run(stop(), scene, windlass_ports::CancellationToken::new()).await;
    assert_eq!(stage.read("seen").trim(), stage.path().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn a_program_that_does_not_read_its_question_is_no_failure() {
    let long = "x".repeat(300_000);
    let stage = Stage::one("UserPromptSubmit", shell("exec 0<&-; echo fine"));
    assert_eq!(words(&stage.ask(prompt(&long)).await), "context fine");
}

#[tokio::test]
async fn long_output_goes_into_a_file_and_endless_output_is_cut() {
    let stage = Stage::one("UserPromptSubmit", shell("head -c 20000 /dev/zero | tr '\\0' x"));
    let runner = stage.runner_with(HookHost { outputs: Some(stage.path().join("outputs")), ..stage.host() });
    let answer = stage.ask_with(&runner, prompt("x")).await;
    assert!(answer.context[0].len() < 3_000 && answer.context[0].contains("20000 characters"));
    assert_eq!(std::fs::read_dir(stage.path().join("outputs")).unwrap().count(), 1);

    let stage = Stage::one("UserPromptSubmit", shell("head -c 30000000 /dev/zero | tr '\\0' x"));
    let answer = stage.ask(prompt("x")).await;
    assert!(answer.context[0].contains("1048576 characters"), "{}", answer.context[0].len());
}

/// A decision under a name that nobody knows is no decision, which somebody has to hear of.
#[tokio::test]
async fn a_misspelt_decision_is_told_and_blocks_where_failures_do() {
    let check = async |answer: &str, policy: &str, expected: &str| {
        let handler = json!({"type": "command", "command": format!("echo '{answer}'"), "onFailure": policy});
        let seen = words(&Stage::one("PreToolUse", handler).ask(bash("ls")).await);
        assert_eq!(seen, expected, "{answer} {policy}");
    };
    let own = |field: &str| {
        format!(r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","{field}":"deny","ticket":"1"}}}}"#)
    };
    check(&own("permissionDecision"), "block", "deny no reason given | notice objects: no reason given")
        .await;
    let lost = "\"hookSpecificOutput.permisionDecision\"; did you mean \
                \"hookSpecificOutput.permissionDecision\"?";
    check(
        &own("permisionDecision"),
        "continue",
        &format!("notice gave an answer with an unknown field: {lost}"),
    )
    .await;
    let unread = format!("gave an answer that cannot be read: {lost}. Blocked: this hook must succeed.");
    let name = "The PreToolUse hook of settings.json:1 PreToolUse[0].hooks[0]";
    check(&own("permisionDecision"), "block", &format!("deny {name} {unread} | notice {unread}")).await;
    let lost = "\"decison\"; did you mean \"decision\"?";
    let told = format!("notice gave an answer with an unknown field: {lost}");
    check(r#"{"decison":"block"}"#, "continue", &told).await;
    check(r#"{"ticket":"block"}"#, "block", "").await;
}
