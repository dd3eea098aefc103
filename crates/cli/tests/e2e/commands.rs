//! Prompts that are commands, answered without a turn of the model.

use crate::support::{Stage, check_failed, result};

#[test]
fn cost_and_context_ask_no_model() {
    let check = |prompt: &str, words: &[&str]| {
        let stage = Stage::hello();
        let finished = stage.run(&["-p", prompt]);
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
        let json = result(&stage.run(&["-p", prompt, "--output-format", "json"]));
        assert_eq!(json["result"], finished.stdout);
        assert_eq!((json.get("terminal_reason"), &json["num_turns"]), (None, &0.into()));
        let stream = stage.run(&["-p", prompt, "--output-format", "stream-json", "--verbose"]);
        assert_eq!(result(&stream)["result"], finished.stdout);
        assert_eq!(stream.json_lines().unwrap()[0]["subtype"], "init");
        for word in words {
            assert!(finished.stdout.contains(word), "{word:?} is not in {}", finished.stdout);
        }
        assert_eq!(stage.server.exchanges().len(), 0, "nothing was sent");
    };
    check("/cost", &["Cost: $0.0000", "No model was asked yet."]);
    check(" /usage\n", &["Cost: $0.0000"]);
    check("/context", &["Context of claude-opus-5-5:", "environment", "free", "compacted"]);
    let stage = Stage::hello();
    assert!(!stage.run(&["-p", "/context"]).stdout.contains("memory"), "no memory file is there");
    stage.project.write("CLAUDE.md", "Use tabs.").unwrap();
    assert!(stage.run(&["-p", "/context"]).stdout.contains("memory"));
}

#[test]
fn a_path_is_no_command() {
    let stage = Stage::hello();
    assert_eq!(stage.run(&["-p", "/etc/hosts says what?"]).stdout, "Hello.\n");
    assert!(stage.last_user_text().contains("/etc/hosts says what?"));
}

#[test]
fn a_mistaken_command_is_refused_and_asks_no_model() {
    let stage = Stage::hello();
    check_failed(&stage.run(&["-p", "/Compact"]), &["Unknown command /Compact. Did you mean /compact?"]);
    check_failed(&stage.run(&["-p", "/cost of what?"]), &["/cost takes no argument."]);
    assert_eq!(stage.requests(), 0);
    let help = stage.run(&["-p", "/help"]);
    assert!(help.code() == Some(0) && help.stdout.contains("/rewind [N]"), "{help:?}");
    assert_eq!(stage.requests(), 0);
}

#[test]
fn compact_can_be_turned_off() {
    let stage = Stage::hello();
    let refused = stage.command(&["-p", "/compact"]).env("DISABLE_COMPACT", "1").run().unwrap();
    check_failed(&refused, &["/compact is turned off by DISABLE_COMPACT"]);
    let command = stage.command(&["-p", "/compact", "--output-format", "json"]);
    let refused = result(&command.env("DISABLE_COMPACT", "1").run().unwrap());
    assert_eq!(
        (&refused["is_error"], &refused["terminal_reason"]),
        (&true.into(), &"turn_setup_failed".into())
    );
    assert_eq!(stage.server.exchanges().len(), 0, "nothing was sent");
}
