//! What a call gives back: results, long output, progress.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use windlass_ports::{ProgressReceiver, progress_channel};

use super::{Session, block_on, is_alive, numbers, structured, text, trial, until};

pub(super) fn trials() -> Vec<Trial> {
    vec![
        trial("results_tell_output_and_status", results_tell_output_and_status),
        trial("the_structured_form_says_the_same", the_structured_form_says_the_same),
        trial("invalid_input_is_explained", invalid_input_is_explained),
        trial("long_output_shows_both_ends_and_a_file", long_output_shows_both_ends_and_a_file),
        trial("less_is_shown_of_a_failure", less_is_shown_of_a_failure),
        trial("a_hundred_megabytes_never_sit_in_memory", a_hundred_megabytes_never_sit_in_memory),
        trial("printing_without_end_is_stopped", printing_without_end_is_stopped),
        trial("saved_output_has_an_end", saved_output_has_an_end),
        trial("a_question_stops_the_command", a_question_stops_the_command),
        trial("progress_tells_the_latest_line", progress_tells_the_latest_line),
    ]
}

fn results_tell_output_and_status() {
    let check = |command: &str, is_error: bool, expected: &str| {
        let outcome = block_on(Session::new().bash(json!({ "command": command })));
        assert_eq!((text(&outcome), outcome.is_error), (expected, is_error), "{command}");
    };
    check("echo out; echo err >&2", false, "out\nerr");
    check("true", false, "(no output)");
    check("echo a; exit 3", true, "Exit code 3\na");
    check("grep x /dev/null", false, "Exit code 1: nothing matched");
    check("echo b | grep a", false, "Exit code 1: nothing matched");
    check("kill -SEGV $$", true, "Ended by signal 11 (SIGSEGV: invalid memory access)");
    check("\n\nnope", true, "Exit code 127 (command not found)\nbash: line 3: nope: command not found");
    check("set -u; echo $nothing", true, "Exit code 127\nbash: line 1: nothing: unbound variable");
    check("-x", true, "Exit code 127 (command not found)\nbash: line 1: -x: command not found");
    check("cat", false, "(no output)");
    check("printf 'a\\377b'", false, "a\u{fffd}b");
    check("alias; declare -F", false, "(no output)");
}

fn the_structured_form_says_the_same() {
    block_on(async {
        let session = Session::new();
        let outcome = session.bash(json!({ "command": "echo a" })).await;
        assert_eq!(
            structured(&outcome),
            json!({ "stdout": "a", "stderr": "", "interrupted": false, "isImage": false })
        );
        let outcome = session.bash(json!({ "command": "grep x /dev/null" })).await;
        assert_eq!(structured(&outcome)["returnCodeInterpretation"], "nothing matched");
        let outcome = session.bash(json!({ "command": "seq 100000" })).await;
        let output = structured(&outcome);
        assert_eq!(output["persistedOutputSize"], 588_895);
        assert!(Path::new(output["persistedOutputPath"].as_str().unwrap()).exists());
        assert!(output["stdout"].as_str().unwrap().len() < 12_000);
    });
}

fn invalid_input_is_explained() {
    let check = |input: Value, expected: &str| {
        let outcome = block_on(Session::new().bash(input));
        assert!(outcome.is_error && text(&outcome).contains(expected), "{}", text(&outcome));
    };
    check(json!({}), "missing field `command`");
    check(json!({ "command": "true", "timeout": "soon" }), "in `timeout`");
    check(json!({ "command": "true", "shell": "zsh" }), "unknown field `shell`");
    check(json!({ "command": format!("true {}", "x".repeat(1 << 20)) }), "too long for the system");
    let outcome = block_on(Session::new().bash(json!({ "command": "echo a", "timeout": "5000.0" })));
    assert_eq!(text(&outcome), "a");
}

fn long_output_shows_both_ends_and_a_file() {
    block_on(async {
        for (command, is_error) in [("seq 100000", false), ("seq 100000; exit 9", true)] {
            let session = Session::new();
            let outcome = session.bash(json!({ "command": command })).await;
            let text = text(&outcome);
            assert_eq!(outcome.is_error, is_error);
            let body = text.strip_prefix("Exit code 9\n").unwrap_or(text);
            assert!(
                body.starts_with("1\n2\n3\n") && body.ends_with("\n99999\n100000") && text.len() < 12_000,
                "{text}"
            );
            let path = structured(&outcome)["persistedOutputPath"].as_str().unwrap().to_owned();
            assert!(text.contains(&path));
            let expected = numbers(1..=100_000);
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            drop(session);
            assert!(!Path::new(&path).exists(), "deleted with the session");
        }
    });
}

fn less_is_shown_of_a_failure() {
    block_on(async {
        let session = Session::new();
        let length =
            async |command: &str| text(&session.bash(json!({ "command": command })).await).chars().count();
        assert!(length("seq 3500").await > 16_000);
        assert!(length("seq 3500; exit 9").await < 10_500);
    });
}

fn memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs one test again in a process of its own, so that no other adds to its memory.
fn run_alone(test: &str) {
    let mut command = Command::new("/proc/self/exe");
    let output = command.args(["--exact", test]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

const ALONE: &str = "WINDLASS_TEST_ALONE";

fn a_hundred_megabytes_never_sit_in_memory() {
    if std::env::var_os(ALONE).is_none() {
        return run_alone("a_hundred_megabytes_never_sit_in_memory");
    }
    block_on(async {
        let session = Session::new();
        let before = memory_kb();
        let command = json!({ "command": "head -c 100000000 /dev/zero | tr '\\0' x; echo end" });
        let call = session.bash(command);
        tokio::pin!(call);
        let mut most = 0;
        let outcome = loop {
            tokio::select! {
                outcome = &mut call => break outcome,
                () = tokio::time::sleep(Duration::from_millis(2)) => most = memory_kb().max(most),
            }
        };
        most = memory_kb().max(most);
        assert!(most < before + 12_000, "grew from {before} to {most} kB");
        assert_eq!(structured(&outcome)["persistedOutputSize"], 64 << 20);
        assert!(text(&outcome).ends_with("xend") && !outcome.is_error);
        assert!(
            text(&outcome).contains("of 100000004 bytes omitted; only the first 67108864 bytes are kept")
        );
    });
}

fn printing_without_end_is_stopped() {
    block_on(async {
        let session = Session::with(|settings| settings.output_bytes_max = 1_000_000);
        let outcome = session.bash(json!({ "command": "echo $$ > pid; yes" })).await;
        assert!(
            outcome.is_error && text(&outcome).contains("printed more than 1000000 bytes"),
            "{}",
            text(&outcome)
        );
        let pid = fs::read_to_string(session.project().join("pid")).unwrap();
        until("yes is stopped", Duration::from_secs(3), || !is_alive(&pid)).await;
    });
}

fn saved_output_has_an_end() {
    block_on(async {
        let session = Session::with(|settings| settings.saved_bytes_max = 200_000);
        let input = json!({ "command": "yes | head -c 400001; exit 3", "run_in_background": true });
        session.bash(input).await;
        let file = session.tasks.running()[0].output_file.clone();
        until("it ends", Duration::from_secs(5), || session.tasks.running().is_empty()).await;
        let kept = "y\n".repeat(100_000);
        let expected = "\n[The output continues, but only the first 200000 bytes are kept.]\n\
                        [The command ended with exit code 3.]\n";
        assert_eq!(fs::read_to_string(file).unwrap(), kept + expected);
    });
}

fn a_question_stops_the_command() {
    block_on(async {
        let session = Session::new();
        let start = Instant::now();
        let outcome = session.bash(json!({ "command": "echo work; printf 'Password: '; sleep 60" })).await;
        let took = start.elapsed();
        assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(5), "{took:?}");
        assert!(
            outcome.is_error
                && text(&outcome).contains("waits for input")
                && text(&outcome).contains("\"Password:\"")
        );
        // A question that is followed by more is none.
        let outcome =
            session.bash(json!({ "command": "printf 'Continue? [y/N] '; sleep 0.2; echo no" })).await;
        assert!(!outcome.is_error);
    });
}

fn progress_tells_the_latest_line() {
    async fn listen(mut news: ProgressReceiver) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok((_, progress)) =
            tokio::time::timeout(Duration::from_millis(1900), std::future::poll_fn(|cx| news.poll_recv(cx)))
                .await
        {
            lines.push(progress.text);
        }
        lines
    }
    block_on(async {
        let session = Session::new();
        let (sender, receiver) = progress_channel();
        let mut cx = session.context();
        cx.progress = sender;
        let call =
            session.bash_in(json!({ "command": "echo one; sleep 1.3; seq 1000; echo two; sleep 1.2" }), cx);
        let (_, lines) = tokio::join!(call, listen(receiver));
        assert_eq!(lines, ["one", "two"]);
    });
}
