use super::*;

fn seen(event: HookEvent, json: &str) -> String {
    match read(event, json, "s:1") {
        Err(why) => format!("error: {why}"),
        Ok(ParsedAnswer { answer, .. }) => {
            let HookAnswer {
                stop,
                blocks,
                permission,
                input,
                updates,
                output,
                first_prompt,
                context,
                notices,
                failures,
                runs,
            } = answer;
            assert!(failures.is_empty() && runs.is_empty());
            let mut words = Vec::new();
            words.extend(stop.map(|reason| format!("stop {reason}")));
            words.extend(blocks.iter().map(|text| format!("block {text}")));
            words.extend(permission.map(|permission| format!("{permission:?}")));
            words.extend(input.map(|input| format!("input {}", input.get())));
            words.extend(updates.iter().map(|update| format!("update {}", update.get())));
            words.extend(output.map(|output| format!("output {}", output.get())));
            words.extend(first_prompt.map(|text| format!("first {text}")));
            words.extend(context.iter().map(|text| format!("context {text}")));
            words.extend(notices.iter().map(|text| format!("notice {text}")));
            words.join(" | ")
        }
    }
}

#[track_caller]
fn check(event: HookEvent, json: &str, expected: &str) {
    assert_eq!(seen(event, json), expected, "{json}");
}

/// With `hookEventName` in place.
#[track_caller]
fn check_own(event: HookEvent, fields: &str, expected: &str) {
    let json = format!(r#"{{"hookSpecificOutput": {{"hookEventName": "{}", {fields}}}}}"#, event.name());
    check(event, &json, expected);
}

#[test]
fn common_fields_count_everywhere() {
    use HookEvent::*;
    check(Stop, "{}", "");
    check(Stop, r#"{"continue": true}"#, "");
    check(Stop, r#"{"continue": false}"#, "stop ");
    check(PostToolUse, r#"{"continue": false, "stopReason": "enough"}"#, "stop enough");
    check(Stop, r#"{"stopReason": "unused"}"#, "");
    check(Stop, r#"{"systemMessage": "look", "suppressOutput": true}"#, "notice look");
    check(Stop, r#"{"unknown": 1, "reason": "unused"}"#, "");
    check(Stop, r#"{"async": true, "decision": "block"}"#, "");
    check(
        Stop,
        r#"{"terminalSequence": "x"}"#,
        "notice The Stop hook of s:1 returned terminalSequence, which has no effect there.",
    );
    check(Stop, r#"{"continue": null, "decision": null, "hookSpecificOutput": null}"#, "");
}

#[test]
fn the_old_decision_means_what_it_meant() {
    use HookEvent::*;
    for event in
        [Stop, SubagentStop, UserPromptSubmit, PostToolUse, PostToolUseFailure, PostToolBatch, PreCompact]
    {
        check(event, r#"{"decision": "block", "reason": "no"}"#, "block no");
        check(event, r#"{"decision": "approve"}"#, "");
    }
    check(Stop, r#"{"decision": "block"}"#, "block no reason given");
    check(PreToolUse, r#"{"decision": "block", "reason": "no"}"#, r#"Deny("no")"#);
    check(PreToolUse, r#"{"decision": "approve"}"#, "Allow");
    check(PermissionRequest, r#"{"decision": "block", "reason": "no"}"#, r#"Deny("no")"#);
    check(PermissionRequest, r#"{"decision": "approve"}"#, "");
    check(
        SessionEnd,
        r#"{"decision": "block"}"#,
        "notice The SessionEnd hook of s:1 returned decision, which has no effect there.",
    );
}

#[test]
fn a_decision_before_a_call() {
    use HookEvent::PreToolUse;
    check_own(PreToolUse, r#""permissionDecision": "allow""#, "Allow");
    check_own(
        PreToolUse,
        r#""permissionDecision": "deny", "permissionDecisionReason": "no""#,
        r#"Deny("no")"#,
    );
    check_own(PreToolUse, r#""permissionDecision": "deny""#, r#"Deny("no reason given")"#);
    check_own(
        PreToolUse,
        r#""permissionDecision": "ask", "permissionDecisionReason": "sure?""#,
        r#"Ask("sure? (the hook of s:1)")"#,
    );
    check_own(PreToolUse, r#""permissionDecision": "defer""#, "Defer");
    check_own(
        PreToolUse,
        r#""updatedInput": {"b": 1,  "a": 1.10}, "additionalContext": "c""#,
        r#"input {"b": 1,  "a": 1.10} | context c"#,
    );
    check_own(
        PreToolUse,
        r#""permissionDecision": "maybe""#,
        r#"error: hookSpecificOutput.permissionDecision is "maybe""#,
    );
    check_own(
        PreToolUse,
        r#""updatedInput": "x""#,
        "error: hookSpecificOutput.updatedInput is not an object",
    );
}

#[test]
fn a_decision_in_place_of_a_person() {
    use HookEvent::PermissionRequest;
    check_own(PermissionRequest, r#""decision": {"behavior": "allow"}"#, "Allow");
    check_own(
        PermissionRequest,
        r#""decision": {"behavior": "allow", "updatedInput": {"a": 1}, "updatedPermissions": [{"type": "setMode"}]}"#,
        r#"Allow | input {"a": 1} | update {"type": "setMode"}"#,
    );
    check_own(PermissionRequest, r#""decision": {"behavior": "deny", "message": "no"}"#, r#"Deny("no")"#);
    check_own(
        PermissionRequest,
        r#""decision": {"behavior": "deny", "message": "no", "interrupt": true}"#,
        r#"stop no | Deny("no")"#,
    );
    check_own(
        PermissionRequest,
        r#""decision": {"behavior": "ask"}"#,
        r#"error: hookSpecificOutput.decision.behavior is Some("ask")"#,
    );
    check_own(
        PermissionRequest,
        r#""decision": "allow""#,
        "error: hookSpecificOutput.decision is not an object",
    );
}

#[test]
fn what_other_events_may_say() {
    use HookEvent::*;
    check_own(PostToolUse, r#""updatedToolOutput": "hidden""#, r#"output "hidden""#);
    check_own(PostToolUse, r#""updatedMCPToolOutput": [1]"#, "output [1]");
    check_own(SessionStart, r#""additionalContext": "c", "initialUserMessage": "f""#, "first f | context c");
    check_own(PermissionDenied, r#""retry": true"#, "Allow");
    check_own(Stop, r#""additionalContext": "c""#, "context c");
    check_own(
        SessionEnd,
        r#""additionalContext": "c""#,
        "notice The SessionEnd hook of s:1 returned additionalContext, which has no effect there.",
    );
    check_own(
        SessionStart,
        r#""watchPaths": []"#,
        "notice The SessionStart hook of s:1 returned watchPaths, which has no effect there.",
    );
    // Who asked counts, not who the hook thinks it was.
    check(
        Stop,
        r#"{"hookSpecificOutput": {"hookEventName": "Other", "additionalContext": "c"}}"#,
        "context c",
    );
}

#[test]
fn what_does_not_fit_is_named() {
    use HookEvent::*;
    check(Stop, r#"{"decision": "no"}"#, r#"error: decision is "no"; it can be "block" or "approve""#);
    check(Stop, r#"{"continue": "no"}"#, "error: continue is not true or false");
    check(Stop, r#"{"systemMessage": 1}"#, "error: systemMessage is not a string");
    check(Stop, r#"{"hookSpecificOutput": {}}"#, "error: hookSpecificOutput.hookEventName is missing");
    check(
        Stop,
        r#"{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": 1}}"#,
        "error: hookSpecificOutput.additionalContext is not a string",
    );
    assert!(seen(Stop, r#"{"hookSpecificOutput": []}"#).starts_with("error: not an object"));
}

#[test]
fn whatever_is_printed_is_read_without_a_crash() {
    use proptest::prelude::*;
    proptest!(|(text in r#"(\{|\}|"|:|,|decision|block|hookSpecificOutput|hookEventName|null|true|\[|\]|\\u12| ){0,40}"#)| {
        for event in HookEvent::ALL {
            let _ = read(event, &text, "s:1");
        }
    });
}

#[track_caller]
fn check_misspelt(json: &str, path: &str, known: &'static str, expected: &[(&str, &str, bool)]) {
    let object = RawObject::parse(json).unwrap();
    let seen = misspelt(&object, path, known);
    let seen: Vec<_> = seen.iter().map(|one| (&*one.field, &*one.meant, one.is_decision)).collect();
    assert_eq!(seen, expected, "{json}");
}

#[test]
fn what_is_near_to_a_field_or_decides_elsewhere_is_a_mistake() {
    check_misspelt(r#"{"decison": "block"}"#, "", ANSWER_FIELDS, &[("decison", "decision", true)]);
    check_misspelt(r#"{"Continue": false}"#, "", ANSWER_FIELDS, &[("Continue", "continue", true)]);
    check_misspelt(
        r#"{"systemMesage": "x"}"#,
        "",
        ANSWER_FIELDS,
        &[("systemMesage", "systemMessage", false)],
    );
    check_misspelt(
        r#"{"permissionDecision": "deny"}"#,
        "",
        ANSWER_FIELDS,
        &[("permissionDecision", "hookSpecificOutput.permissionDecision", true)],
    );
    let own = "hookSpecificOutput.";
    check_misspelt(
        r#"{"permisionDecision": "deny", "permissionDecisionReasons": "x"}"#,
        own,
        OWN_FIELDS,
        &[
            ("hookSpecificOutput.permisionDecision", "hookSpecificOutput.permissionDecision", true),
            (
                "hookSpecificOutput.permissionDecisionReasons",
                "hookSpecificOutput.permissionDecisionReason",
                false,
            ),
        ],
    );
    check_misspelt(
        r#"{"continue": false}"#,
        own,
        OWN_FIELDS,
        &[("hookSpecificOutput.continue", "continue", true)],
    );
    let person = "hookSpecificOutput.decision.";
    let meant = "hookSpecificOutput.decision.behavior";
    check_misspelt(
        r#"{"behaviour": "deny"}"#,
        person,
        PERSON_FIELDS,
        &[("hookSpecificOutput.decision.behaviour", meant, true)],
    );
}

#[test]
fn answers_may_say_more_than_is_known() {
    check_misspelt(
        r#"{"version": 2, "x": 1, "decison": null, "metrics": {"decison": 1}}"#,
        "",
        ANSWER_FIELDS,
        &[],
    );
    check_misspelt(r#"{"ticket": "A-1", "reason": "r"}"#, "hookSpecificOutput.", OWN_FIELDS, &[]);
    let known: Vec<String> = ANSWER_FIELDS.split(' ').map(|name| format!("{name:?}: 1")).collect();
    check_misspelt(&format!("{{{}}}", known.join(",")), "", ANSWER_FIELDS, &[]);
}
