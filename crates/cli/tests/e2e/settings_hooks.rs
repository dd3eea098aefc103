//! Hooks of settings files in whole runs: real programs around a scripted model.

use serde_json::{Value, json};

use crate::host::{Host, prompt};
use crate::support::{STREAM, Stage, check_refused};
use crate::talk::Talk;

/// Settings with one command at an event.
fn hook(event: &str, command: &str) -> Value {
    json!({"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}})
}

#[test]
fn hooks_hear_whether_a_session_is_new_goes_on_or_is_a_copy() {
    let id = "6f1d1f6e-58a5-4b0e-9f0e-0d9f1b1c2d3e";
    let stage = Stage::new(r#"[{"blocks": [{"text": "Hello."}], "repeat": 5}]"#);
    let settings = hook("SessionStart", "cat > started.json").to_string();
    let check = |flags: &[&str], source: &str, is_same: bool| {
        let finished = stage.run(&[&["-p", "go", "--settings", &settings], flags].concat());
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let started: Value = serde_json::from_str(&stage.project.read("started.json").unwrap()).unwrap();
        assert_eq!(started["source"], source, "{flags:?}: {started}");
        assert_eq!(started["session_id"] == id, is_same, "{flags:?}: {started}");
    };
    check(&["--session-id", id], "startup", true);
    check(&["--resume", id], "resume", true);
    check(&["--resume", id, "--fork-session"], "fork", false);
    check(&["--resume", id, "--fork-session", "--no-session-persistence"], "fork", false);
    check(&["--resume", id], "resume", true);
}

/// Rules that depend on who asks: a hook may say the first words of a print run, and of nobody else.
#[test]
fn a_person_and_a_host_are_no_print_run() {
    let answer = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "initialUserMessage": "words of a hook"}});
    let settings = hook("SessionStart", &format!("echo '{answer}'")).to_string();
    let has_words = |stage: &Stage| stage.request(0)["messages"].to_string().contains("words of a hook");
    let printed = Stage::hello();
    assert_eq!(printed.run(&["-p", "go", "--settings", &settings]).code(), Some(0));
    assert!(has_words(&printed));
    let talked = Stage::hello();
    let mut talk = Talk::begin(&talked, &["--settings", &settings, "--", "go"]);
    talk.sees("tokens in");
    talk.types("/exit");
    assert_eq!(talk.ends().0, Some(0));
    assert!(!has_words(&talked));
    let hosted = Stage::hello();
    let mut host = Host::start(&hosted, &["--settings", &settings]);
    host.say(&prompt("go", "u1"));
    host.hear_until("result");
    assert!(!has_words(&hosted));
}

#[test]
fn the_end_of_a_session_waits_as_long_as_the_user_says() {
    let check = |seconds: &str, limit_ms: Option<&str>, heard: bool| {
        let stage = Stage::hello();
        let settings = hook("SessionEnd", &format!("sleep {seconds}; touch ended")).to_string();
        let command = stage.command(&["-p", "go", "--settings", &settings]);
        let command = match limit_ms {
            Some(ms) => command.env("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", ms),
            None => command,
        };
        let finished = command.run().unwrap();
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Hello.\n"), "{finished:?}");
        assert_eq!(stage.project.read("ended").is_ok(), heard, "{seconds} s, {limit_ms:?}: {finished:?}");
    };
    check("0", None, true);
    check("3", None, false);
    check("3", Some("30000"), true);
    check("1", Some("200"), false);
}

/// What is answered without a run begins no session, and ends none.
#[test]
fn hooks_hear_of_the_end_only_if_they_heard_of_the_start() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Hello."}], "repeat": 5}]"#);
    let said =
        |name: &str| json!([{"hooks": [{"type": "command", "command": format!("echo {name} >> heard")}]}]);
    let settings = json!({"hooks": {"SessionStart": said("start"), "SessionEnd": said("end")}}).to_string();
    let check = |prompt: &[&str], heard: &str| {
        let _ = std::fs::remove_file(stage.project.path().join("heard"));
        let finished = stage.run(&[prompt, &["--settings", &settings]].concat());
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert_eq!(stage.project.read("heard").unwrap_or_default(), heard, "{prompt:?}");
    };
    check(&["-p", "go"], "start\nend\n");
    check(&["-p", "/cost", "--continue"], "");
    check(&["-p", "/context", "--continue"], "");
    check(&["-p", "/rewind", "--continue"], "");
    check(&["-p", "go", "--continue"], "start\nend\n");
}

/// A hook may be a guard, so a rule that nobody can read does not keep it from objecting.
#[test]
fn a_hook_whose_rule_cannot_be_read_is_told_and_still_guards() {
    let write = json!({"tool": "Write", "input": {"file_path": "made.txt", "content": "x"}});
    let stage = Stage::new(&json!([{"blocks": [write]}, {"blocks": [{"text": "Done."}]}]).to_string());
    let settings = json!({"hooks": {"PreToolUse": [{"hooks": [
        {"type": "command", "if": "Write(", "command": "echo 'Not today.' >&2; exit 2"}
    ]}]}});
    let settings = settings.to_string();
    let flags = ["-p", "go", "--permission-mode", "acceptEdits", "--settings", &settings];
    let finished = stage.run(&flags);
    assert!(finished.stderr.contains("the rule \"Write(\" in \"if\" is invalid: "), "{finished:?}");
    assert!(finished.stderr.contains("its permission to allow is ignored"), "{finished:?}");
    assert!(stage.project.read("made.txt").is_err(), "{finished:?}");
}

/// Whoever says that nothing passes without a hook is not served by a session without it.
#[test]
fn nothing_starts_without_a_hook_that_blocks_on_failure() {
    let check = |settings: &Value, words: &[&str]| {
        let stage = Stage::hello();
        let finished = stage.run(&["-p", "go", "--settings", &settings.to_string()]);
        check_refused(&finished, words);
        assert_eq!(stage.requests(), 0);
    };
    let end = "nothing starts without a hook whose \"onFailure\" blocks";
    let hook = json!({"type": "comand", "command": "exit 2", "onFailure": "block"});
    check(
        &json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}),
        &[
            "--settings:1 PreToolUse[0].hooks[0]: ",
            "unknown hook type \"comand\"",
            "did you mean command?",
            end,
        ],
    );
    check(&json!({"hooks": {"PreToolUse": {"hooks": [hook]}}}), &["`hooks.PreToolUse` must be a list", end]);
    check(&json!({"hooks": {"PreTooluse": [{"hooks": [hook]}]}}), &["did you mean PreToolUse?", end]);
    check(&json!({"hook": {"PreToolUse": [{"hooks": [hook]}]}}), &["did you mean `hooks`?", end]);
    let untrusted = Stage::hello();
    let settings = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}).to_string();
    untrusted.project.write(".claude/settings.json", &settings).unwrap();
    assert_eq!(untrusted.run(&["-p", "go"]).code(), Some(0));
    check_refused(&untrusted.run(&["-p", "go", "--trust-project"]), &["settings.json:1 ", end]);
}

/// A host that shows only the result has to hear why nothing was done.
#[test]
fn the_result_says_why_a_prompt_was_refused_and_says_it_once() {
    let settings = hook("UserPromptSubmit", "echo Not now. >&2; exit 2").to_string();
    let reason = "A hook blocked the prompt; it was not sent: Not now.";
    let finished = Stage::hello().run(&["-p", "go", "--output-format", "json", "--settings", &settings]);
    let result = crate::support::result(&finished);
    assert_eq!((&result["result"], &result["terminal_reason"]), (&json!(reason), &json!("hook_stopped")));
    let told = Stage::hello().told(&["--settings", &settings], &[]);
    let lines = told.lines.iter().filter(|line| line["content"] == reason).count();
    assert_eq!(lines, 1, "{:?}", told.lines);
    assert_eq!(told.of("result")[0]["result"], reason);
}

#[test]
fn a_hook_in_place_of_a_person_reads_every_offer() {
    let check = |tool: &str, input: &str, expected: &Value| {
        let stage = Stage::call(tool, input);
        let settings = hook("PermissionRequest", "cat > asked.json").to_string();
        let finished = stage.run(&["-p", "go", "--settings", &settings]);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let asked: Value = serde_json::from_str(&stage.project.read("asked.json").unwrap()).unwrap();
        assert_eq!(&asked["permission_suggestions"], expected, "{finished:?}");
    };
    let rule = |content: &str| {
        json!({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": content}], "behavior": "allow",
            "destination": "localSettings"})
    };
    let edits = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    check("Bash", r#"{"command": "cargo test -q"}"#, &json!([rule("cargo test -q"), rule("cargo test *")]));
    check("Bash", r#"{"command": "touch made"}"#, &json!([rule("touch made"), edits]));
    check("Write", r#"{"file_path": ".npmrc", "content": "x"}"#, &json!([]));
}

/// Whoever answers in a person's place may want to be asked no more, here and later.
#[test]
fn rules_that_a_hook_wants_kept_are_kept_on_every_surface() {
    let update = |destination: &str| {
        let rules = json!([{"toolName": "Bash", "ruleContent": "touch *"}]);
        json!([{"type": "addRules", "rules": rules, "behavior": "allow", "destination": destination}])
    };
    let check = |flags: &[&str], destination: &str, kept: bool| {
        let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
        let decision = json!({"behavior": "allow", "updatedPermissions": update(destination)});
        let answer =
            json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
        let settings = hook("PermissionRequest", &format!("echo '{answer}'")).to_string();
        let finished = stage.run(&[&["-p", "go", "--settings", &settings], flags].concat());
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert!(stage.project.read("made").is_ok(), "{finished:?}");
        let file = stage.project.read(".windlass/settings.local.json").unwrap_or_default();
        assert_eq!(file.contains("Bash(touch *)"), kept, "{flags:?} {destination}: {finished:?} {file}");
        assert_eq!(finished.stderr.contains("settings.local.json"), kept, "{flags:?}: {finished:?}");
    };
    for flags in [&[][..], &["--output-format", "json"], &["--output-format", "stream-json", "--verbose"]] {
        check(flags, "localSettings", true);
        check(flags, "session", false);
    }
}

/// A guard that wants a person's word is not answered by another hook, so nobody is told to write one.
#[test]
fn a_question_of_a_hook_is_answered_by_no_other_hook() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let say =
        |output: Value| json!([{"hooks": [{"type": "command", "command": format!("echo '{output}'")}]}]);
    let asks = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}});
    let decision = json!({"behavior": "allow"});
    let allows = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    let settings = json!({"hooks": {"PreToolUse": say(asks), "PermissionRequest": say(allows)}}).to_string();
    let finished = stage.run(&["-p", "go", "--settings", &settings]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(stage.project.read("made").is_err(), "{finished:?}");
    let advice =
        "]). Denied: not running interactively. To allow it: run interactively, or change that hook.";
    assert!(stage.newest(1).contains(advice), "{}", stage.newest(1));
}

/// The lines about hooks, in short: what happened, to which, and how it ended.
fn hook_lines(lines: &[Value]) -> Vec<String> {
    let is_hook = |line: &&Value| line["subtype"].as_str().is_some_and(|kind| kind.starts_with("hook_"));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let short = |line: &Value| {
        let fields = ["subtype", "hook_name", "stdout", "stderr", "output", "exit_code", "outcome"];
        let given = fields.iter().filter_map(|field| line.get(field)).map(text);
        given.collect::<Vec<_>>().join(" ").replace('\n', "/")
    };
    lines.iter().filter(is_hook).map(short).collect()
}

#[test]
fn hosts_hear_of_every_hook_if_they_want_to_and_of_the_start_always() {
    let one = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {
        "SessionStart": one("echo hello"),
        "PreToolUse": one("echo no >&2; exit 2"),
        "SessionEnd": one("exit 7"),
    }});
    let check = |flags: &[&str], expected: &[&str]| {
        let stage = Stage::call("Bash", r#"{"command": "true"}"#);
        let settings = settings.to_string();
        let finished = stage.run(&[&STREAM[..], &["--settings", &settings], flags].concat());
        let lines = finished.json_lines().unwrap();
        assert_eq!(hook_lines(&lines), expected, "{flags:?}: {}", finished.stdout);
        let ids: std::collections::BTreeSet<_> = lines.iter().map(|line| line["uuid"].to_string()).collect();
        assert_eq!(ids.len(), lines.len(), "every line has its own id");
        assert_eq!(lines[0]["subtype"], "init");
    };
    let start =
        ["hook_started SessionStart:startup", "hook_response SessionStart:startup hello/  hello/ 0 success"];
    check(&[], &start);
    let rest = [
        "hook_started PreToolUse:Bash",
        "hook_response PreToolUse:Bash  no/ no/ 2 error",
        "hook_started SessionEnd:other",
        "hook_response SessionEnd:other    7 error",
    ];
    check(&["--include-hook-events"], &[&start[..], &rest].concat());
}

#[test]
fn hosts_see_what_a_slow_hook_has_printed_and_never_a_secret() {
    let stage = Stage::hello();
    let settings = hook("UserPromptSubmit", "echo one; sleep 1.6; echo two").to_string();
    let told = stage.told(&["--settings", &settings, "--include-hook-events"], &[]);
    told.completed("Hello.");
    let lines = hook_lines(&told.lines);
    assert!(lines[1].starts_with("hook_progress UserPromptSubmit") && lines[1].contains("one/"), "{lines:?}");
    assert!(!lines[1].contains("two"), "{lines:?}");
    assert!(
        lines.last().unwrap().contains("two") && lines.last().unwrap().ends_with("0 success"),
        "{lines:?}"
    );

    let settings = hook("UserPromptSubmit", "cat secret").to_string();
    let stage = Stage::hello();
    let key = "a-key-that-nobody-may-read-1234567890";
    stage.project.write("secret", key).unwrap();
    let arguments = [&STREAM[..], &["--settings", &settings, "--include-hook-events"]].concat();
    let finished = stage.command(&arguments).env("ANTHROPIC_API_KEY", key).run().unwrap();
    assert!(
        finished.stdout.contains("hook_response") && !finished.stdout.contains(key),
        "{}",
        finished.stdout
    );
}

#[test]
fn a_hook_that_nobody_waits_for_any_more_is_told_as_cancelled() {
    let stage = Stage::hello();
    let settings = json!({"hooks": {"UserPromptSubmit": [{"hooks": [
        {"type": "command", "command": "touch running; sleep 60", "async": true}]}]}})
    .to_string();
    let finished = stage.run(&[&STREAM[..], &["--settings", &settings, "--include-hook-events"]].concat());
    let expected = ["hook_started UserPromptSubmit", "hook_response UserPromptSubmit    cancelled"];
    assert_eq!(hook_lines(&finished.json_lines().unwrap()), expected, "{}", finished.stdout);
}

#[test]
fn only_lines_can_tell_of_hooks() {
    check_refused(
        &Stage::hello().run(&["-p", "go", "--include-hook-events"]),
        &["--include-hook-events needs"],
    );
}

#[test]
fn commands_get_the_variables_that_a_hook_writes_for_them_and_no_secrets() {
    let write =
        "echo 'export TEAM=blue ANTHROPIC_API_KEY=stolen BASH_ENV=/x MY_TOKEN=t' >> \"$CLAUDE_ENV_FILE\"";
    let settings = hook("SessionStart", write).to_string();
    let line = r#"{"command": "env > seen; echo team $TEAM"}"#;
    let stage = Stage::call("Bash", line);
    let finished = stage.run(&["-p", "go", "--allowedTools", "Bash", "--settings", &settings]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Done.\n"), "{finished:?}");
    let seen = stage.project.read("seen").unwrap();
    assert!(seen.lines().any(|line| line == "TEAM=blue"), "{seen}");
    for name in ["ANTHROPIC_API_KEY", "BASH_ENV", "MY_TOKEN", "CLAUDE_ENV_FILE"] {
        assert!(!seen.contains(name), "{name}: {seen}");
    }
    assert!(stage.last_user_text().contains("team blue"));
}

/// A command that runs unasked because it only looks is judged by its words, so variables of hooks are not for it; one that shows
/// variables is no such command.
#[test]
fn variables_of_hooks_do_not_reach_commands_that_run_unasked() {
    let settings = hook("SessionStart", "echo 'export TEAM=blue' >> \"$CLAUDE_ENV_FILE\"").to_string();
    let check = |command: &str, settings: &[&str], denied: usize| {
        let stage = Stage::call("Bash", &json!({ "command": command }).to_string());
        let finished = stage.run(&[&["-p", "go", "--output-format", "json"], settings].concat());
        let result: Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!(result["permission_denials"].as_array().unwrap().len(), denied, "{command}: {result}");
    };
    check("echo $TEAM", &[], 0);
    check("echo $TEAM", &["--settings", &settings], 1);
    check("ls", &["--settings", &settings], 0);
}

#[test]
fn a_hook_that_fails_is_told_once_on_standard_error() {
    let call = r#"{"tool": "Bash", "input": {"command": "true"}}"#;
    let responses = format!(r#"[{{"blocks": [{call}, {call}]}}, {{"blocks": [{{"text": "Done."}}]}}]"#);
    let check = |command: &str, format: &str, expected: &[&str]| {
        let settings = hook("PreToolUse", command).to_string();
        let flags = ["-p", "go", "--verbose", "--settings", &settings, "--output-format", format];
        // Lines need --verbose, and elsewhere it would show all progress.
        let flags: Vec<&str> =
            flags.into_iter().filter(|flag| *flag != "--verbose" || format == "stream-json").collect();
        let finished = Stage::new(&responses).run(&flags);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let told: Vec<&str> = finished.stderr.lines().collect();
        assert_eq!(told.len(), expected.len(), "{format}: {}", finished.stderr);
        for (line, expected) in told.iter().zip(expected) {
            assert!(line.starts_with("windlass: The PreToolUse hook of "), "{line}");
            assert!(line.contains(expected) && line.ends_with("Its answer is ignored."), "{line}");
        }
    };
    for format in ["text", "json"] {
        check("echo $$ >&2; exit 7", format, &[" crashed"]);
        check("echo '{'", format, &["gave an answer that cannot be read"]);
        check("true", format, &[]);
    }
    check("exit 7", "stream-json", &[]);
}

/// A denial that is too long to be read whole is one all the same.
#[test]
fn a_denial_of_more_than_a_mebibyte_holds() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let denial = "printf '{\"hookSpecificOutput\": {\"hookEventName\": \"PreToolUse\", \"permissionDecision\": \"deny\", \
                  \"permissionDecisionReason\": \"'; head -c 1500000 /dev/zero | tr '\\0' x; printf '\"}}'";
    let settings = hook("PreToolUse", denial).to_string();
    let finished = stage.run(&["-p", "go", "--allowedTools", "Bash", "--settings", &settings]);
    assert!(stage.project.read("made").is_err(), "{finished:?}");
    assert!(finished.stderr.contains("its answer is longer than 1 MiB and was cut off"), "{finished:?}");
    assert!(stage.last_user_text().contains("was cut off"), "{}", stage.last_user_text());
}

#[test]
fn what_stop_hooks_did_is_one_message() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Done."}], "repeat": 9}]"#);
    let command = |line: &str| json!({"type": "command", "command": line});
    // The first try is objected to, the second is not.
    let hooks = [
        command("sleep 0.2; echo clean"),
        command("test -e told || { touch told; echo 'Run them.' >&2; exit 2; }"),
    ];
    let settings = json!({"hooks": {"Stop": [{"hooks": hooks}]}}).to_string();
    let told = stage.told(&["--settings", &settings], &[]);
    let summaries: Vec<&Value> =
        told.lines.iter().filter(|line| line["subtype"] == "stop_hook_summary").collect();
    let [blocked, passed] = summaries[..] else { panic!("two summaries: {}", told.finished.stdout) };
    assert_eq!((&blocked["hook_event"], &blocked["hook_count"]), (&json!("Stop"), &json!(2)));
    assert_eq!(
        (&blocked["blocked"], &blocked["hook_errors"]),
        (&json!(true), &json!(["Run them."])),
        "{blocked}"
    );
    let infos = &blocked["hook_infos"];
    assert_eq!(
        (&infos[0]["command"], &infos[0]["output"]),
        (&json!("sleep 0.2; echo clean"), &json!("clean"))
    );
    assert!(infos[0]["duration_ms"].as_u64() >= Some(200), "{blocked}");
    assert_eq!((&infos[0]["outcome"], &infos[1]["outcome"]), (&json!("success"), &json!("error")));
    assert_eq!((&passed["blocked"], &passed["hook_errors"]), (&json!(false), &json!([])), "{passed}");
    assert_eq!(passed["prevented_continuation"], false);

    let _ = std::fs::remove_file(stage.project.path().join("told"));
    let shown = stage.run(&["-p", "go", "--verbose", "--settings", &settings]).stderr;
    assert!(shown.contains("2 stop hooks ran: sleep 0.2; echo clean (2"), "{shown}");
    let quiet = stage.run(&["-p", "go", "--settings", &settings]);
    assert!(!quiet.stderr.contains("stop hooks ran"), "{quiet:?}");

    let end = hook("Stop", r#"echo '{"continue": false, "stopReason": "Enough."}'"#).to_string();
    let told = stage.told(&["--settings", &end], &[]);
    let summary = told.lines.iter().find(|line| line["subtype"] == "stop_hook_summary").unwrap();
    assert_eq!(
        (&summary["prevented_continuation"], &summary["stop_reason"]),
        (&json!(true), &json!("Enough."))
    );
}
