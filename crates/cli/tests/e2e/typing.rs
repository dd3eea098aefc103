//! What somebody types at a terminal, and what they see of a run while they do.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

use crate::host::{Host, prompt};
use crate::support::{Stage, check_failed};
use crate::talk::{CTRL_C, Talk, check_order};

const CTRL_D: &str = "\x04";

/// Asks a terminal to say where pasted text begins and ends, and not to.
const MARKS_PASTES: &str = "\x1b[?2004h";
const MARKS_NO_PASTES: &str = "\x1b[?2004l";

/// Longer than keys take to be looked at.
const MOMENT: Duration = Duration::from_millis(100);

/// An answer that takes some seconds, and one that comes at once.
fn slow() -> Stage {
    Stage::serving(
        &json!([
            {"blocks": [{"text": "one two three four"}], "delta_chars": 4, "delta_delay_ms": 600},
            {"blocks": [{"text": "The next answer."}]},
        ]),
        |server| server,
    )
}

/// Whether the terminal hands over whole lines, as shells expect.
fn reads_lines(talk: &Talk) -> bool {
    tcgetattr(&talk.terminal).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn text_is_seen_as_it_comes_and_once() {
    for arguments in [&["go"][..], &["-p", "go"]] {
        let stage = slow();
        let mut talk = Talk::begin(&stage, arguments);
        talk.sees("one two ");
        assert!(!talk.screen().contains("four"), "{:?}", talk.screen());
        talk.sees("tokens in");
        if arguments.len() == 1 {
            talk.types("/exit");
        }
        let (code, screen) = talk.ends();
        assert_eq!(code, Some(0), "{screen:?}");
        assert_eq!(screen.matches("one two three four\r\n").count(), 1, "{screen:?}");
        assert!(!screen.contains("Ignore the text above"), "{screen:?}");
    }
}

#[test]
fn half_an_answer_that_does_not_stand_is_told_as_such() {
    let stage = Stage::new(
        r#"[{"blocks": [{"text": "This is never fin"}], "delta_chars": 5, "fault": {"cut": {"after_events": 4}}},
            {"blocks": [{"text": "Here it is."}]}]"#,
    );
    let talk = Talk::at("dumb", &stage, &["-p", "go"]);
    let (_, screen) = talk.ends();
    check_order(
        &screen,
        &["This is", "(Ignore the text above: that answer was not completed.)", "Here it is."],
    );
    assert_eq!(screen.matches("Ignore").count(), 1, "{screen:?}");
}

/// A terminal that can redraw shows nothing of an answer that does not stand, neither of its last block nor of those that were complete.
#[test]
fn half_an_answer_that_does_not_stand_is_taken_off_the_screen() {
    let check = |blocks: &serde_json::Value| {
        let stage = Stage::serving(
            &json!([
                {"blocks": blocks, "delta_chars": 5, "fault": {"cut": {"after_events": 9}}},
                {"blocks": [{"text": "Here it is."}]},
            ]),
            |server| server,
        );
        let mut talk = Talk::begin(&stage, &["go"]);
        talk.sees("Here it is.");
        talk.sees("tokens in");
        assert!(talk.screen().contains("This "), "it was seen: {:?}", talk.screen());
        let rows = talk.rows().join("\n");
        assert!(!rows.contains("This ") && !rows.contains("Ignore"), "{rows}");
        assert!(rows.contains("\nHere it is."), "{rows}");
        talk.types("/exit");
        talk.ends();
    };
    check(&json!([{"text": "This is\nin several lines, and it is never fin"}]));
    check(&json!([{"text": "This is."}, {"text": "And never fin"}]));
}

#[test]
fn nothing_that_comes_in_pieces_controls_the_terminal() {
    let stage =
        Stage::new(r#"[{"blocks": [{"text": "a\u001b]0;owned\u0007b\u001b[2Jc\u202e"}], "delta_chars": 1}]"#);
    let (_, screen) = Talk::begin(&stage, &["-p", "go"]).ends();
    let ours = screen.replace("\r\x1b[K", "");
    assert!(ours.contains("abc\r\n") && !ours.contains(['\x1b', '\u{202e}']), "{screen:?}");
}

#[test]
fn a_line_typed_during_calls_joins_the_run() {
    let stage = Stage::call("Bash", r#"{"command": "sleep 1.5"}"#);
    let mut talk = Talk::begin(&stage, &["go", "--allowedTools", "Bash"]);
    talk.sees("Bash sleep");
    talk.types("and hurry");
    talk.sees("Queued: and hurry");
    talk.presses("next");
    talk.sees("tokens in");
    talk.shows(&["> next"]);
    talk.presses(CTRL_C);
    talk.types("/exit");
    let (_, screen) = talk.ends();
    let sent = ["Queued: and hurry", "  Bash  sleep", "\r\x1b[K> and hurry\r\n", "Done."];
    check_order(&screen, &sent);
    assert_eq!(screen.matches("> and hurry\r\n").count(), 1, "{screen:?}");
    assert_eq!(stage.requests(), 2, "{screen:?}");
    assert!(stage.last_user_text().contains("and hurry"), "{screen:?}");
}

#[test]
fn lines_typed_during_an_answer_are_sent_next_and_commands_are_no_prompts() {
    let stage = slow();
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.sees("one");
    talk.presses("wha");
    talk.sees("> wha");
    talk.types("t else?");
    talk.sees("Queued: what else?");
    talk.types("/cost");
    talk.sees("Queued: /cost (runs when this run ends)");
    talk.types("/compcat");
    talk.sees("Unknown command /compcat. Did you mean /compact?");
    talk.sees("Time: ");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    check_order(
        &screen,
        &["tokens in", "> what else?", "The next answer.", "tokens in", "> /cost", "Cost: "],
    );
    assert_eq!(stage.requests(), 2, "{screen:?}");
    let asked = stage.last_user_text();
    assert!(asked.contains("what else?") && !asked.contains("/co"), "{asked}");
}

/// `/help` promises both.
#[test]
fn a_queued_prompt_outlives_an_interrupt_and_exit_ends_a_run_at_once() {
    let stage = slow();
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.sees("one");
    talk.types("what else?");
    talk.sees("Queued: what else?");
    talk.presses(CTRL_C);
    talk.sees("The next answer.");
    check_order(&talk.screen(), &["Interrupted while", "> what else?\r\n", "The next answer."]);
    assert!(stage.last_user_text().contains("what else?"), "{}", stage.last_user_text());
    talk.types("/exit");
    talk.ends();
    let stage = slow();
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.sees("one");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    assert!(!screen.contains("three"), "{screen:?}");
}

/// What is typed, queued or told during an answer does not break its lines.
#[test]
fn an_answer_is_in_one_piece_whatever_is_typed_meanwhile() {
    let check = |text: &str, keys: &str, expected: &[&str]| {
        let answer = json!({"blocks": [{"text": text}], "delta_chars": text.chars().count() - 8, "delta_delay_ms": 1500});
        let next = json!({"blocks": [{"text": "The next answer."}]});
        let stage = Stage::serving(&json!([answer, next]), |server| server);
        let mut talk = Talk::begin(&stage, &["go"]);
        let begun: String = text.chars().skip(text.chars().count() - 14).take(6).collect();
        talk.sees(&begun);
        talk.presses(keys);
        talk.sees_times("tokens in", 1 + keys.matches('\r').count());
        talk.shows(expected);
        let first = expected[0];
        let (shown, wanted) = (talk.rows(), expected.iter().filter(|row| **row == first).count());
        assert_eq!(shown.iter().filter(|row| *row == first).count(), wanted, "once: {shown:#?}");
        talk.presses("\x15");
        talk.presses(CTRL_D);
        talk.ends();
    };
    let long = format!("{}, end of it.", "word ".repeat(40).trim_end());
    let rows = [&long[..80], &long[80..160], &long[160..]].map(str::trim_end);
    // Higher than the screen.
    let tall = format!("{}, end of it.", "lots ".repeat(480).trim_end());
    let tall_rows: Vec<&str> =
        (0..=tall.len() / 80).map(|row| tall[row * 80..tall.len().min((row + 1) * 80)].trim_end()).collect();
    // Where nobody can tell how wide a line is, it goes on in a new one.
    let broken = format!("{} to the end of it.", "日本語".repeat(60));
    let wide = format!("{}, end of it.", "größer ".repeat(20).trim_end());
    let start: String = wide.chars().take(80).collect();
    let rest: String = wide.chars().skip(80).collect();
    let short = "One two three four.";
    let cases: [(&str, &str, &[&str]); 10] = [
        (short, "wh", &[short]),
        (short, "wh\x15", &[short]),
        (short, "later\r", &["Queued: later", short]),
        ("First.\nOne two three four.", "wh", &["First.", short]),
        (&long, "wh", &rows),
        (&long, "later\r", &["Queued: later", rows[0], rows[1], rows[2]]),
        ("Ein schöner Tag, end of it.", "wh", &["Ein schöner Tag, end of it."]),
        (&wide, "wh", &[start.trim_end(), &rest]),
        (&tall, "wh", &tall_rows),
        (&broken, "wh", &["d of it."]),
    ];
    std::thread::scope(|scope| {
        for (text, keys, expected) in cases {
            scope.spawn(move || check(text, keys, expected));
        }
    });
}

#[test]
fn a_pasted_text_is_one_prompt() {
    let stage = Stage::hello();
    let mut talk = Talk::begin(&stage, &[]);
    talk.sees("> ");
    talk.presses("see: \x1b[200~one\ntw");
    std::thread::sleep(MOMENT);
    talk.presses("o\r\n/exit\x03\x1b[2J\n\x1b[20");
    std::thread::sleep(MOMENT);
    talk.presses("1~");
    talk.shows(&["> see: one⏎two⏎/exit⏎"]);
    assert_eq!(stage.requests(), 0, "{:?}", talk.screen());
    talk.presses("\r");
    talk.sees("tokens in");
    talk.shows(&["> see: one", "  two", "  /exit"]);
    talk.types("/exit");
    let (code, screen) = talk.ends();
    assert_eq!((code, stage.requests()), (Some(0), 1), "{screen:?}");
    assert!(stage.last_user_text().contains(r"see: one\ntwo\n/exit"), "{}", stage.last_user_text());
    check_order(&screen, &[MARKS_PASTES, "Hello.", MARKS_NO_PASTES]);
}

#[test]
fn a_pasted_text_of_several_lines_answers_no_question() {
    let call = |name: &str| json!({"tool": "Bash", "input": {"command": format!("touch {name}")}});
    let stage = Stage::serving(
        &json!([{"blocks": [call("a"), call("b")]}, {"blocks": [{"text": "Done."}]}]),
        |server| server,
    );
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.is_asked();
    talk.presses("\x1b[200~y\ny\n\x1b[201~");
    talk.shows(&["> y⏎y⏎"]);
    assert!(stage.project.read("a").is_err(), "{:?}", talk.screen());
    talk.presses("\r");
    talk.sees("only n takes words.");
    talk.presses("\x1b[200~y\x1b[201~\r");
    talk.sees_times("needs your approval", 2);
    std::thread::sleep(MOMENT);
    assert!(stage.project.read("a").is_ok() && stage.project.read("b").is_err(), "{:?}", talk.screen());
    talk.types("n");
    talk.sees("tokens in");
    talk.types("/exit");
    talk.ends();
}

#[test]
fn what_becomes_of_a_kept_rule_is_not_mixed_with_a_draft() {
    let call = json!({"tool": "Bash", "input": {"command": "touch made"}});
    let stage = Stage::serving(
        &json!([{"blocks": [call], "delay_ms": 1000}, {"blocks": [{"text": "Done."}]}]),
        |server| server,
    );
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.sees("waiting for");
    talk.presses("please");
    talk.sees("> please");
    talk.is_asked();
    talk.presses("a\r");
    talk.sees("kept in");
    talk.sees("tokens in");
    assert!(talk.rows().iter().any(|row| row.starts_with("windlass: kept in")), "{:#?}", talk.rows());
    talk.presses(CTRL_C);
    talk.types("/exit");
    talk.ends();
}

#[test]
fn whoever_leaves_during_a_run_is_told_when_it_happens() {
    let stage = slow();
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.sees("one two ");
    talk.presses(CTRL_D);
    talk.sees("Windlass exits when this run ends.");
    let (code, screen) = talk.ends();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(screen.contains("three four"), "{screen:?}");
}

/// The question comes after the paste, which began before it.
#[test]
fn a_question_waits_for_the_end_of_a_pasted_text() {
    let stage = Stage::serving(
        &json!([
            {"blocks": [{"tool": "Bash", "input": {"command": "touch made"}}], "delay_ms": 1500},
            {"blocks": [{"text": "Done."}]},
        ]),
        |server| server,
    );
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.sees("waiting for");
    talk.presses("\x1b[200~y\n");
    std::thread::sleep(Duration::from_millis(2300));
    assert!(!talk.screen().contains("approval"), "{:?}", talk.screen());
    talk.presses("y\n\x1b[201~");
    talk.is_asked();
    assert!(stage.project.read("made").is_err(), "{:?}", talk.screen());
    talk.types("n");
    talk.sees("tokens in");
    talk.shows(&["> y⏎y⏎"]);
    // A paste without an end: Ctrl-C is pressed nonetheless.
    talk.presses("\x1b[200~z");
    std::thread::sleep(MOMENT);
    talk.presses(CTRL_C);
    std::thread::sleep(MOMENT);
    talk.types("/exit");
    talk.ends();
}

#[test]
fn nothing_comes_between_a_question_and_its_answer() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "sleep 2; cat a.txt"}},
                        {"tool": "Read", "input": {"file_path": "b.txt"}}]},
            {"blocks": [{"text": "Done."}]}]"#,
    );
    for name in ["a.txt", "b.txt"] {
        stage.project.write(name, "text\n").unwrap();
    }
    let asks = r#"{"permissions": {"ask": ["Read(b.txt)"]}}"#;
    let mut talk = Talk::begin(&stage, &["go", "--settings", asks, "--allowedTools", "Bash"]);
    talk.is_asked();
    assert!(!talk.screen().contains("sleep 2; cat a.txt  ("), "the call still runs: {:?}", talk.screen());
    std::thread::sleep(Duration::from_millis(2600));
    let rows = talk.rows();
    assert!(rows.last().is_some_and(|row| row == ">"), "{rows:#?}");
    assert!(rows[rows.len() - 2].starts_with("Asked every time"), "{rows:#?}");
    talk.types("perhaps");
    talk.sees("Answer y or n;");
    talk.types("y");
    talk.sees("tokens in");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    check_order(
        &screen,
        &["Answer y or n;", "> y\r\n", "  Bash  sleep 2; cat a.txt  (", "  Read  b.txt", "Done."],
    );
}

#[test]
fn a_terminal_without_escape_sequences_gets_none() {
    for name in ["dumb", ""] {
        let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
        let mut talk = Talk::at(name, &stage, &[]);
        talk.sees("> ");
        assert!(reads_lines(&talk));
        talk.types("go");
        talk.is_asked();
        talk.types("perhaps");
        talk.sees("Answer y");
        talk.types("y");
        talk.sees("tokens in");
        std::thread::sleep(MOMENT);
        talk.types("");
        std::thread::sleep(MOMENT);
        talk.types("/cost");
        talk.sees("Cost: ");
        std::thread::sleep(MOMENT);
        talk.presses(CTRL_D);
        let (code, screen) = talk.ends();
        assert_eq!((code, stage.project.read("made").is_ok()), (Some(0), true), "{screen:?}");
        assert!(!screen.contains('\x1b') && !screen.contains("waiting for claude"), "{screen:?}");
        let answers = ["> go\r\n", "tabs`)\r\n> perhaps\r\nAnswer y, s, a, e or n; /exit leaves.\r\n> y\r\n"];
        check_order(&screen, &answers);
        check_order(
            &screen,
            &["  Bash  touch made", "Done.", "tokens in", "\r\n> \r\n> /cost\r\n", "Cost: ", "> "],
        );
        assert_eq!(screen.matches("> ").count(), 6, "{screen:?}");
    }
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let (_, screen) = Talk::at("dumb", &stage, &["-p", "go", "--allowedTools", "Bash"]).ends();
    check_order(&screen, &["  Bash  touch made", "Done.\r\n", "tokens in"]);
    assert!(!screen.contains(['\x1b']), "{screen:?}");
}

#[test]
fn ctrl_c_clears_what_is_typed_before_it_interrupts_or_leaves() {
    let stage = slow();
    let mut talk = Talk::begin(&stage, &["go"]);
    talk.sees("one");
    talk.presses("no");
    talk.sees("> no");
    talk.presses(CTRL_C);
    talk.sees("two");
    assert!(!talk.screen().contains("Interrupted"), "{:?}", talk.screen());
    talk.presses(CTRL_C);
    talk.sees("Interrupted while the model was answering.");
    talk.sees("tokens in");
    talk.presses("again");
    talk.sees("> again");
    talk.presses(CTRL_C);
    talk.types("more");
    talk.sees("The next answer.");
    talk.sees_times("tokens in", 2);
    talk.presses(CTRL_C);
    talk.sees("Press Ctrl-C again to exit.");
    talk.presses(CTRL_C);
    let (code, screen) = talk.ends();
    assert_eq!((code, stage.requests()), (Some(0), 2), "{screen:?}");
    let asked = stage.last_user_text();
    assert!(asked.contains("more") && !asked.contains("again"), "{asked}");
}

#[test]
fn a_line_can_be_corrected_and_its_characters_are_whole() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Hello."}]}]"#);
    let mut talk = Talk::begin(&stage, &[]);
    talk.sees("> ");
    talk.presses("wrong\x15say é日\x7f and those words\x17\x17it\x1b[D\r");
    talk.sees("tokens in");
    talk.presses(CTRL_D);
    let (code, screen) = talk.ends();
    assert_eq!(code, Some(0), "{screen:?}");
    assert!(stage.last_user_text().contains("say é and it"), "{}", stage.last_user_text());
}

#[test]
fn a_lone_escape_takes_nothing_with_it() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let mut talk = Talk::begin(&stage, &[]);
    talk.sees("> ");
    talk.presses("\x1b");
    std::thread::sleep(MOMENT);
    talk.presses("hello\x1b[D\x1b");
    std::thread::sleep(MOMENT);
    talk.presses("[200~\r");
    talk.is_asked();
    talk.presses("\x1b");
    std::thread::sleep(MOMENT);
    talk.types("n wrong");
    talk.sees("tokens in");
    talk.shows(&["> hello[200~"]);
    assert!(stage.last_user_text().contains("wrong"), "{}", stage.last_user_text());
    talk.presses("\x1b");
    std::thread::sleep(MOMENT);
    talk.types("/exit");
    let (code, screen) = talk.ends();
    assert_eq!((code, stage.requests()), (Some(0), 2), "{screen:?}");
}

#[test]
fn the_terminal_is_as_it_was_however_the_session_ends() {
    let check = |end: fn(&mut Talk)| {
        let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
        let mut talk = Talk::begin(&stage, &["go"]);
        talk.is_asked();
        assert!(!reads_lines(&talk));
        end(&mut talk);
        let terminal = talk.terminal.try_clone().unwrap();
        let (_, screen) = talk.ends();
        let modes = tcgetattr(&terminal).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "{screen:?}");
    };
    check(|talk| talk.types("/exit"));
    check(|talk| talk.is_sent(Signal::TERM));
    check(|talk| talk.is_sent(Signal::HUP));
    check(|talk| talk.presses("\x03\x03\x03\x03"));
}

#[test]
fn a_session_that_is_suspended_leaves_the_terminal_and_takes_it_again() {
    let stage = Stage::hello();
    let mut talk = Talk::begin(&stage, &[]);
    talk.sees("> ");
    talk.presses("hel");
    talk.sees("> hel");
    talk.is_sent(Signal::TSTP);
    let status = format!("/proc/{}/stat", talk.pid());
    let is_stopped = || std::fs::read_to_string(&status).unwrap().contains(") T ");
    wait_until("it stops", is_stopped);
    assert!(reads_lines(&talk));
    talk.is_sent(Signal::CONT);
    wait_until("it takes the terminal again", || !reads_lines(&talk));
    talk.sees_times("> hel", 2);
    check_order(&talk.screen(), &[MARKS_PASTES, MARKS_NO_PASTES, MARKS_PASTES, "> hel"]);
    talk.types("lo");
    talk.sees("tokens in");
    talk.types("/exit");
    talk.ends();
    assert!(stage.last_user_text().contains("hello"));
}

#[test]
fn calls_show_their_output_and_their_changes() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "seq 1 14; false"}},
                        {"tool": "Write", "input": {"file_path": "a.txt", "content": "one\ntwo\n"}}]},
            {"blocks": [{"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "two", "new_string": "2"}}]},
            {"blocks": [{"text": "Done."}]}]"#,
    );
    let flags = ["-p", "go", "--allowedTools", "Bash", "--permission-mode", "acceptEdits"];
    let (_, screen) = Talk::begin(&stage, &flags).ends();
    check_order(
        &screen,
        &[
            "  Bash  seq 1 14; false  (",
            " ms, failed)\r\n        Exit code 1\r\n        1\r\n        2\r\n        … +3 lines\r\n        6\r\n",
            "        13\r\n        14\r\n",
            "  Write a.txt  (",
            "        + one\r\n        + two\r\n",
            "preparing the next request ... 0 s",
            "  Edit  a.txt  (",
            "        - two\r\n        + 2\r\n",
            "Done.",
        ],
    );
    assert!(!screen.contains("        5\r\n") && !screen.contains("- one"), "{screen:?}");
}

#[test]
fn a_call_takes_its_own_time() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "sleep 1.5"}},
                        {"tool": "Read", "input": {"file_path": "a.txt"}}]},
            {"blocks": [{"text": "Done."}]}]"#,
    );
    stage.project.write("a.txt", "a").unwrap();
    let (_, screen) = Talk::begin(&stage, &["-p", "go", "--allowedTools", "Bash"]).ends();
    check_order(&screen, &["  Bash  sleep 1.5  (1.", "  Read  a.txt  (", " ms)"]);
}

#[test]
fn an_unknown_command_costs_nothing_anywhere() {
    let stage = Stage::hello();
    let expected = "Unknown command /compcat. Did you mean /compact?";
    check_failed(&stage.run(&["-p", "/compcat the names"]), &[expected]);
    let mut host = Host::start(&stage, &[]);
    host.say(&prompt("/compcat", "u1"));
    let result = host.hear_until("result").pop().unwrap();
    assert!(result["is_error"] == true && result.to_string().contains(expected), "{result}");
    host.say(&prompt("/cost of what?", "u2"));
    let result = host.hear_until("result").pop().unwrap();
    assert!(result.to_string().contains("/cost takes no argument."), "{result}");
    host.end();
    let mut talk = Talk::begin(&stage, &["/compcat"]);
    talk.sees(expected);
    talk.types("/hlep");
    talk.sees("Did you mean /help?");
    talk.types("/exit now");
    talk.sees("/exit takes no argument.");
    talk.types("/exit");
    let (code, screen) = talk.ends();
    assert_eq!((code, stage.requests()), (Some(0), 0), "{screen:?}");
    // A path is no command.
    assert_eq!(stage.run(&["-p", "/home/me/x.rs explain"]).stdout, "Hello.\n");
}

#[test]
fn a_compaction_that_was_asked_for_is_reported_once_and_time_is_counted_over_processes() {
    let stage = Stage::new(
        r#"[{"when": {"contains": "will be replaced by what you write now"}, "blocks": [{"text": "They said go."}], "repeat": 9},
            {"blocks": [{"text": "One."}], "delay_ms": 1200},
            {"blocks": [{"text": "Two."}]}]"#,
    );
    let long = "word ".repeat(3000);
    let mut talk = Talk::begin(&stage, &[&long]);
    talk.sees("One.");
    talk.sees("tokens in");
    talk.types("/compact");
    talk.sees("The conversation was compacted");
    talk.sees_times("tokens in", 2);
    talk.types("/exit");
    let (_, screen) = talk.ends();
    assert_eq!(screen.matches("The conversation was compacted").count(), 1, "{screen:?}");
    let cost = stage.run(&["-p", "--continue", "/cost"]);
    assert!(cost.stdout.contains("\nTime: 1.") || cost.stdout.contains("\nTime: 2."), "{cost:?}");
    assert!(!cost.stdout.contains("of which 0 ms"), "{cost:?}");
}

#[test]
fn a_compaction_of_nothing_is_told_once() {
    let stage = Stage::hello();
    let mut talk = Talk::begin(&stage, &["/compact"]);
    talk.sees("Not compacted: There is nothing to compact.");
    talk.types("/exit");
    let (_, screen) = talk.ends();
    assert_eq!(screen.matches("nothing to compact").count(), 1, "{screen:?}");
}
