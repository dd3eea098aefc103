//! `/rewind`: back to a prompt.

use crate::host::{Host, interrupt, prompt};
use crate::support::Stage;

/// Two prompts, each of which changes a file, then another.
fn changed() -> Stage {
    let write = |text: &str| {
        format!(
            r#"{{"blocks": [{{"tool": "Write", "input": {{"file_path": "note.txt", "content": "{text}\n"}}}}]}}"#
        )
    };
    let say = |text: &str| format!(r#"{{"blocks": [{{"text": "{text}"}}]}}"#);
    let stage = Stage::new(&format!(
        "[{},{},{},{},{}]",
        write("one"),
        say("Done."),
        write("two"),
        say("Done."),
        say("Third.")
    ));
    for text in ["first", "second"] {
        let session = if text == "first" { "--verbose" } else { "--continue" };
        let finished = stage.run(&["-p", text, session, "--permission-mode", "acceptEdits"]);
        assert_eq!(finished.stdout.trim(), "Done.", "{}", finished.stderr);
    }
    assert_eq!(stage.project.read("note.txt").unwrap(), "two\n");
    stage
}

#[test]
fn what_there_is_to_go_back_to_is_listed() {
    let stage = changed();
    let listed = stage.run(&["-p", "--continue", "/rewind"]);
    assert!(listed.stdout.contains("  first") && listed.stdout.contains("  second"), "{}", listed.stdout);
    let wrong = stage.run(&["-p", "--continue", "/rewind 7"]);
    assert_eq!(wrong.code(), Some(1));
    assert!(
        wrong.stdout.contains("There is no prompt 7") || wrong.stderr.contains("There is no prompt 7"),
        "{wrong:?}"
    );
}

#[test]
fn files_and_conversation_go_back_together_and_stay_there() {
    let stage = changed();
    let rewound = stage.run(&["-p", "--continue", "/rewind 2"]);
    assert!(rewound.stdout.contains("The conversation was rewound to before: second"), "{rewound:?}");
    assert_eq!(stage.project.read("note.txt").unwrap(), "one\n");
    let third = stage.run(&["-p", "--continue", "third"]);
    assert_eq!(third.stdout.trim(), "Third.", "{}", third.stderr);
    let text = stage.last_user_text();
    assert!(text.contains("first") && text.contains("third") && !text.contains("second"), "{text}");
    let listed = stage.run(&["-p", "--continue", "/rewind"]).stdout;
    let left: Vec<&str> =
        listed.lines().filter(|line| line.contains("no longer in the conversation")).collect();
    assert!(left.len() == 1 && left[0].contains("second"), "{listed}");
    check_ids(&stage);
}

#[test]
fn only_one_of_the_two_goes_back_if_only_that_is_wanted() {
    let stage = changed();
    stage.run(&["-p", "--continue", "/rewind 2 files"]);
    assert_eq!(stage.project.read("note.txt").unwrap(), "one\n");
    stage.project.write("note.txt", "mine\n").unwrap();
    stage.run(&["-p", "--continue", "/rewind 1 conversation"]);
    assert_eq!(stage.project.read("note.txt").unwrap(), "mine\n");
    stage.run(&["-p", "--continue", "third"]);
    let text = stage.last_user_text();
    assert!(text.contains("third") && !text.contains("first") && !text.contains("second"), "{text}");
}

#[test]
fn a_host_goes_back_while_the_session_is_open() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "One."}]}, {"blocks": [{"text": "Two."}]}, {"blocks": [{"text": "Three."}]}]"#,
    );
    let mut host = Host::start(&stage, &[]);
    for (text, expected) in [("first", "One."), ("second", "Two."), ("/rewind 2", ""), ("third", "Three.")] {
        host.say(&prompt(text, &format!("11111111-2222-4333-8444-55555555555{}", text.len())));
        let result = host.hear_until("result").pop().unwrap();
        assert!(result["result"].as_str().unwrap().contains(expected), "{result}");
    }
    let (_, status) = host.end();
    assert_eq!(status.code(), Some(0));
    let text = stage.last_user_text();
    assert!(text.contains("first") && text.contains("third") && !text.contains("second"), "{text}");
}

#[test]
fn a_copy_can_go_back_to_prompts_of_its_original() {
    let stage = changed();
    let rewound = stage.run(&["-p", "--continue", "--fork-session", "/rewind 2"]);
    assert!(rewound.stdout.contains("The conversation was rewound to before: second"), "{rewound:?}");
    assert_eq!(stage.project.read("note.txt").unwrap(), "one\n");
}

/// Every message has an id of its own, also those that do not count any more.
#[track_caller]
fn check_ids(stage: &Stage) {
    let log = std::fs::read_to_string(crate::resume::log(stage)).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut ids: Vec<String> = lines.filter_map(|line| Some(line["uuid"].as_str()?.to_owned())).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count, "{log}");
}

#[test]
fn what_was_left_out_once_is_left_out_for_good() {
    let say = |text: &str| format!(r#"{{"blocks": [{{"text": "{text}"}}]}}"#);
    let stage = Stage::new(&format!("[{},{},{},{}]", say("One."), say("Two."), say("Three."), say("Four.")));
    let first = stage.run(&["-p", "first", "--output-format", "stream-json", "--verbose"]);
    let lines = first.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let answer = lines.into_iter().find(|line| line["type"] == "assistant").unwrap();
    stage.run(&["-p", "--continue", "second"]);
    let at = ["--resume-session-at", answer["uuid"].as_str().unwrap()];
    stage.run(&[&["-p", "--continue", "third"], &at[..]].concat());
    let fourth = stage.run(&["-p", "--continue", "fourth"]);
    assert_eq!((fourth.stdout.trim(), &*fourth.stderr), ("Four.", ""));
    let text = stage.last_user_text();
    assert!(text.contains("third") && !text.contains("second"), "{text}");
    check_ids(&stage);
}

#[test]
fn what_was_spent_stays_spent() {
    let cost = |stage: &Stage, prompt: &str| {
        let ran = stage.run(&["-p", "--continue", prompt, "--output-format", "json", "--model", "opus"]);
        let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        result["total_cost_usd"].as_f64().unwrap()
    };
    let answer = r#"{"blocks": [{"text": "Yes."}], "usage": {"input_tokens": 1000, "output_tokens": 1000}}"#;
    let stage = Stage::new(&format!("[{answer}, {answer}, {answer}]"));
    let first = cost(&stage, "first");
    let second = cost(&stage, "second");
    assert!(second > first && first > 0.0, "{first}, then {second}");
    stage.run(&["-p", "--continue", "/rewind 1 conversation"]);
    let third = cost(&stage, "third");
    assert!(third > second, "{second}, then {third}");
}

#[test]
fn a_note_about_an_interrupt_is_no_prompt_to_go_back_to() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "Slow."}], "end_delay_ms": 20000}, {"blocks": [{"text": "After."}]}]"#,
    );
    let mut host = Host::start(&stage, &[]);
    host.say(&prompt("first words", "11111111-2222-4333-8444-555555555555"));
    host.hear_until("assistant");
    host.say(&interrupt("r1"));
    host.hear_until("result");
    host.say(&prompt("second words", "21111111-2222-4333-8444-555555555555"));
    host.hear_until("result");
    assert!(stage.last_user_text().contains("The user interrupted"), "the model reads it");
    host.say(&prompt("/rewind", "31111111-2222-4333-8444-555555555555"));
    let listed = host.hear_until("result").pop().unwrap()["result"].as_str().unwrap().to_owned();
    assert!(listed.contains("first words") && listed.contains("second words"), "{listed}");
    assert!(!listed.contains("interrupted"), "{listed}");
}

#[test]
fn a_directory_that_a_command_made_goes_without_complaint() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "mkdir -p sub && echo q > sub/q.txt"}}]},
            {"blocks": [{"text": "Done."}]}]"#,
    );
    stage.run(&["-p", "make it", "--allowedTools", "Bash"]);
    assert!(stage.project.path().join("sub/q.txt").exists());
    let listed = stage.run(&["--continue", "--rewind-files"]).stdout;
    let uuid = listed.split_whitespace().find(|word| word.len() == 36).unwrap_or_default().to_owned();
    let rewound = stage.run(&["--continue", "--rewind-files", &uuid]);
    assert_eq!(rewound.code(), Some(0), "{listed}{}{}", rewound.stdout, rewound.stderr);
    assert!(!stage.project.path().join("sub").exists());
}
