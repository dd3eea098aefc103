//! Ctrl-C once and twice, SIGTERM, and a reader that goes away or does not read.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use windlass_testkit::TestProcess;

use crate::support::{STREAM, Stage, WINDLASS, result};

const STALLED: &str =
    r#"[{"blocks": [{"text": "I was going to"}], "fault": {"stall": {"after_events": 3}}}]"#;

/// A run whose command has started: it writes its process id to `pid`.
fn busy(command: &str) -> (Stage, TestProcess) {
    let input = serde_json::json!({ "command": command });
    let stage = Stage::call("Bash", &input.to_string());
    let running = stage.command(&[&STREAM[..], &["--allowedTools", "Bash"]].concat()).start().unwrap();
    wait_for_pid(&stage);
    (stage, running)
}

fn wait_for_pid(stage: &Stage) {
    let began = Instant::now();
    while !stage.project.read("pid").is_ok_and(|pid| pid.ends_with('\n')) {
        assert!(began.elapsed() < Duration::from_secs(10), "the command did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process that wrote `pid` is gone within a second.
fn is_gone(stage: &Stage) -> bool {
    let pid = stage.project.read("pid").unwrap();
    let place = format!("/proc/{}/stat", pid.trim());
    let began = Instant::now();
    loop {
        let gone = std::fs::read_to_string(&place).map_or(true, |stat| stat.contains(") Z "));
        if gone || began.elapsed() > Duration::from_secs(1) {
            return gone;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn one_interrupt_ends_an_answer_and_the_result_is_printed() {
    // The limit is meant for a machine that has time for us.
    let times: Vec<Duration> = (0..3).map(|_| time_to_interrupt()).collect();
    assert!(times.iter().any(|time| *time < Duration::from_secs(1)), "{times:?}");
}

/// Interrupts an answer and checks its end; how long that took.
fn time_to_interrupt() -> Duration {
    let stage = Stage::new(STALLED);
    let running = stage.command(&[&STREAM[..], &["--include-partial-messages"]].concat()).start().unwrap();
    running.wait_for_output("I was going to").unwrap();
    let began = Instant::now();
    running.interrupt().unwrap();
    let finished = running.finish().unwrap();
    let time = began.elapsed();
    assert_eq!(finished.code(), Some(1));
    let result = result(&finished);
    assert_eq!(result["terminal_reason"], "aborted_streaming");
    assert_eq!(result["subtype"], "error_during_execution");
    time
}

#[test]
fn one_interrupt_ends_a_command_and_the_result_is_printed() {
    let (stage, running) = busy("echo $$ > pid; sleep 30");
    running.interrupt().unwrap();
    let finished = running.finish().unwrap();
    assert_eq!(finished.code(), Some(1));
    assert_eq!(result(&finished)["terminal_reason"], "aborted_tools");
    assert!(is_gone(&stage));
}

/// The first one has printed the result, and the process gives the command its time.
#[test]
fn a_second_interrupt_does_not_wait_for_a_command_that_does_not_listen() {
    let (stage, running) = busy("trap '' TERM INT; echo $$ > pid; while :; do sleep 0.1; done");
    running.interrupt().unwrap();
    running.wait_for_output(r#""type":"result""#).unwrap();
    let began = Instant::now();
    running.interrupt().unwrap();
    let finished = running.finish().unwrap();
    assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
    assert_eq!(finished.code(), Some(130));
    assert_eq!(result(&finished)["terminal_reason"], "aborted_tools");
    assert!((0..5).any(|_| is_gone(&stage)), "its supervisor ends it");
}

#[test]
fn text_mode_says_that_it_was_interrupted() {
    let stage = Stage::new(STALLED);
    let running = stage.command(&["-p", "go"]).start().unwrap();
    assert!(stage.server.wait_for_requests(1, Duration::from_secs(10)));
    running.interrupt().unwrap();
    let finished = running.finish().unwrap();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(1), ""), "{finished:?}");
    // What had arrived of the answer stands above it.
    let last = finished.stdout.lines().last().unwrap_or_default();
    assert_eq!(last, "Interrupted while the model was answering.", "{finished:?}");
}

#[test]
fn sigterm_ends_everything_with_its_code() {
    let (stage, running) = busy("echo $$ > pid; sleep 30");
    running.terminate().unwrap();
    let finished = running.finish().unwrap();
    assert_eq!(finished.code(), Some(143), "{finished:?}");
    assert_eq!(result(&finished)["is_error"], true);
    assert!(is_gone(&stage));
}

#[test]
fn a_command_that_does_not_listen_is_gone_when_the_process_is() {
    let (stage, running) = busy("trap '' TERM INT; echo $$ > pid; while :; do sleep 0.1; done");
    running.terminate().unwrap();
    assert_eq!(running.finish().unwrap().code(), Some(143));
    let pid = stage.project.read("pid").unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(), "it lives on");
}

#[test]
fn a_lost_terminal_ends_everything_unless_nohup_asked_to_go_on() {
    let hang_up = |running: &TestProcess| {
        let id = rustix::process::Pid::from_raw(running.id().cast_signed()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::HUP).unwrap();
    };
    let (stage, running) = busy("echo $$ > pid; sleep 30");
    hang_up(&running);
    let finished = running.finish().unwrap();
    assert_eq!(finished.code(), Some(129), "{finished:?}");
    assert_eq!(result(&finished)["terminal_reason"], "aborted_tools");
    assert!(is_gone(&stage));

    let command = r#"{"command": "echo $$ > pid; until [ -e go ]; do sleep 0.05; done; echo still here"}"#;
    let stage = Stage::call("Bash", command);
    let command = stage
        .project
        .command("/usr/bin/nohup")
        .args([WINDLASS])
        .args(STREAM)
        .args(["--allowedTools", "Bash"]);
    let command = command.env("ANTHROPIC_BASE_URL", stage.server.url()).env("ANTHROPIC_API_KEY", "k");
    let running = command.start().unwrap();
    wait_for_pid(&stage);
    hang_up(&running);
    stage.project.write("go", "").unwrap();
    let finished = running.finish().unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stdout.contains("still here"));
}

/// Nobody is left to clean up but the supervisors: a daemon in a session of its own, one that ignores requests.
#[test]
fn nothing_outlives_an_engine_that_is_killed() {
    let (stage, running) =
        busy("trap '' TERM INT; setsid sleep 31 & (trap '' TERM; sleep 32) & echo $$ > pid; sleep 33");
    running.kill().unwrap();
    drop(running.finish());
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) && !is_gone(&stage) {}
    assert!(is_gone(&stage));
    let project = stage.project.path();
    let alive = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok())
            .filter(|cwd| *cwd == project)
            .count()
    };
    while began.elapsed() < Duration::from_secs(6) && alive() > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(alive(), 0);
}

#[test]
fn the_end_ends_what_runs_in_the_background_and_leaves_no_files() {
    let stage = Stage::new(
        r#"[{"blocks": [{"tool": "Bash", "input": {"command": "echo $$ > pid; sleep 30", "run_in_background": true}}]},
            {"blocks": [{"tool": "Bash", "input": {"command": "until [ -s pid ]; do sleep 0.05; done"}}]},
            {"blocks": [{"text": "Started."}]}]"#,
    );
    let finished = stage.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), "Started.\n"), "{finished:?}");
    assert!(is_gone(&stage));
    let temporary = stage.project.path().with_file_name("tmp");
    let left: Vec<_> = std::fs::read_dir(temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

fn child(stage: &Stage, arguments: &[&str]) -> std::process::Child {
    let mut command = stage.command(arguments).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let stage = Stage::new(r#"[{"blocks": [{"text": "Hello."}], "delay_ms": 200}]"#);
    let mut child = child(&stage, &STREAM);
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(1), ""));
}

/// The pipe is full, so the first interrupt cannot come to its end.
#[test]
fn two_interrupts_quit_at_once_even_if_nobody_reads() {
    let text = "x".repeat(400_000);
    let call = r#"{"tool": "Bash", "input": {"command": "echo $$ > pid; sleep 30"}}"#;
    let stage = Stage::new(&format!(r#"[{{"blocks": [{call}, {{"text": "{text}"}}]}}]"#));
    let flags = ["--include-partial-messages", "--allowedTools", "Bash"];
    let mut child = child(&stage, &[&STREAM[..], &flags].concat());
    wait_for_pid(&stage);
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none(), "it waits for its reader");
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    for _ in 0..2 {
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    let began = Instant::now();
    let status = child.wait().unwrap();
    // Less than a command would get to end.
    assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
    assert_eq!(status.code(), Some(130));
    assert!(is_gone(&stage), "the command ends with it");
}
