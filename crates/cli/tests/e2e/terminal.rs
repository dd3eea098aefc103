//! What somebody at a terminal sees while a run goes on.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::Stage;

/// Runs with standard error on a terminal; gives what went to standard output and what the terminal got.
fn on_terminal(stage: &Stage, arguments: &[&str]) -> (String, String) {
    on_terminal_of(80, false, stage, arguments)
}

/// A terminal of some columns: the end of whoever sits there, and that of programs.
pub(crate) fn terminal(columns: u16) -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    (File::from(master), terminal)
}

/// Runs with standard error, and perhaps standard output, on a terminal of some columns.
pub(crate) fn on_terminal_of(
    columns: u16,
    stdout_too: bool,
    stage: &Stage,
    arguments: &[&str],
) -> (String, String) {
    let (master, terminal) = terminal(columns);
    let stdout = if stdout_too { Stdio::from(terminal.try_clone().unwrap()) } else { Stdio::piped() };
    let mut command = stage.command(arguments).env("TERM", "xterm").into_command();
    let child = command.stdin(Stdio::null()).stdout(stdout).stderr(terminal).spawn().unwrap();
    drop(command);
    let mut screen = Vec::new();
    // A terminal whose other end is gone reports an error where a pipe reports its end.
    let _ = (&master).read_to_end(&mut screen);
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(screen).unwrap())
}

#[test]
fn a_terminal_shows_tools_targets_times_and_tokens() {
    let stage = Stage::call("Bash", r#"{"command": "echo hi; echo there"}"#);
    let (stdout, screen) = on_terminal(&stage, &["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(stdout, "Done.\n");
    for text in
        ["waiting for claude-opus-5-5", "Bash  echo hi; echo there  (", " ms)", "2 turns", "tokens in"]
    {
        assert!(screen.contains(text), "{text:?} is not in {screen:?}");
    }
    let last = screen.split("\r\x1b[K").last().unwrap();
    assert!(last.starts_with("2 turns") && last.ends_with('\n'), "{screen:?}");
}

#[test]
fn nothing_a_model_says_controls_the_terminal() {
    let stage = Stage::call("Bash", r#"{"command": "echo '\u001b]0;owned\u0007\u001b[2J\u202e'"}"#);
    let (_, screen) = on_terminal(&stage, &["-p", "go", "--allowedTools", "Bash"]);
    // Our own sequences clear the last line and nothing else.
    let ours = screen.replace("\r\x1b[K", "");
    assert!(ours.contains("Bash  echo") && !ours.contains("owned") && !ours.contains("2J"), "{screen:?}");
    assert!(!ours.contains(['\x1b', '\x07', '\u{202e}']), "{screen:?}");
}

#[test]
fn json_is_quiet_on_a_terminal_too() {
    let (stdout, screen) = on_terminal(&Stage::hello(), &["-p", "go", "--output-format", "json"]);
    assert!(stdout.starts_with("{\"type\":\"result\""));
    assert_eq!(screen, "");
}

#[test]
fn the_changing_line_never_breaks() {
    let check = |columns: u16| {
        let command =
            r#"{"command": "echo first; echo the last line; sleep 1.2; echo 'this is a long command'"}"#;
        let stage = Stage::call("Bash", command);
        let flags = ["-p", "go", "--allowedTools", "Bash"];
        let (stdout, screen) = on_terminal_of(columns, false, &stage, &flags);
        assert_eq!(stdout, "Done.\n");
        let changing = screen.split("\r\x1b[K").skip(1).filter(|line| !line.ends_with('\n'));
        let longest = changing.map(str::len).max().unwrap();
        assert!(longest <= usize::from(columns).saturating_sub(3), "{longest} of {columns}: {screen:?}");
        assert!(columns < 30 || screen.contains("...: the las"), "{columns}: {screen:?}");
    };
    std::thread::scope(|scope| {
        for columns in [1, 5, 12, 19, 30, 80] {
            scope.spawn(move || check(columns));
        }
    });
}

#[test]
fn an_answer_that_goes_to_a_file_needs_no_flag() {
    let stage = Stage::hello();
    let (_master, terminal) = terminal(80);
    let mut command = stage.command(&["say hello"]).into_command();
    command.stdin(terminal.try_clone().unwrap()).stdout(Stdio::piped()).stderr(terminal);
    let child = command.spawn().unwrap();
    drop(command);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"Hello.\n".as_slice()));
}

/// Nobody was asked in such a run, so nobody is asked when it is played again.
#[test]
fn a_run_whose_answer_goes_to_a_file_replays_equal() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let (_master, terminal) = terminal(80);
    let mut command = stage.command(&["go on"]).into_command();
    command.stdin(terminal.try_clone().unwrap()).stdout(Stdio::piped()).stderr(terminal);
    let child = command.spawn().unwrap();
    drop(command);
    child.wait_with_output().unwrap();
    let log = crate::resume::log(&stage);
    let replayed = stage.run(&["replay", log.file_stem().unwrap().to_str().unwrap()]);
    assert!(replayed.stdout.contains(", no differences. "), "{}", replayed.stdout);
}

#[test]
fn a_denial_takes_one_line() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let (_, screen) = on_terminal(&stage, &["-p", "go"]);
    assert!(screen.contains("Bash: No rule allows"), "{screen:?}");
    assert!(
        !screen.replace("not running", "").contains("not run") && !screen.contains("a call was denied"),
        "{screen:?}"
    );
}

#[test]
fn a_failure_is_said_where_somebody_sees_it() {
    let refusal = r#"[{"fault": {"status": {"code": 401, "message": "invalid x-api-key"}}}]"#;
    let (stdout, screen) = on_terminal(&Stage::new(refusal), &["-p", "go"]);
    assert!(stdout.contains("401"), "{stdout}");
    assert!(screen.contains("windlass: ") && screen.contains("401"), "{screen:?}");
    let (_, screen) = on_terminal_of(80, true, &Stage::new(refusal), &["-p", "go"]);
    assert_eq!(screen.matches("(HTTP 401)").count(), 1, "{screen:?}");
}

#[test]
fn help_fits_the_terminal() {
    for columns in [40, 72] {
        let (_, screen) = on_terminal_of(columns, true, &Stage::hello(), &["--help"]);
        let longest = screen.lines().map(str::len).max().unwrap();
        assert!((30..=usize::from(columns)).contains(&longest), "{longest} of {columns}: {screen}");
    }
}

#[test]
fn hooks_hear_of_a_question_that_waits_for_an_answer() {
    let stage = Stage::call("Bash", r#"{"command": "touch made"}"#);
    let one = serde_json::json!([{"hooks": [{"type": "command", "command": "cat > new.json; mv new.json told.json"}]}]);
    let settings = serde_json::json!({"hooks": {"Notification": one}}).to_string();
    let (mut master, terminal) = terminal(80);
    let mut command = stage.command(&["go", "--settings", &settings]).env("TERM", "xterm").into_command();
    let end = || terminal.try_clone().unwrap();
    command.stdin(end()).stdout(end()).stderr(end());
    drop(terminal);
    let mut child = command.spawn().unwrap();
    drop(command);
    stage.wait_for_file("told.json");
    let told: serde_json::Value = serde_json::from_str(&stage.project.read("told.json").unwrap()).unwrap();
    assert_eq!(told["notification_type"], "permission_prompt", "{told}");
    assert!(told["message"].as_str().unwrap().contains("Bash"), "{told}");
    // The answer, and the end of what is typed.
    master.write_all(b"y\n").unwrap();
    stage.wait_for_file("made");
    assert!(stage.server.wait_for_requests(2, Duration::from_secs(20)));
    master.write_all(b"\x04").unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(20), "it ends at the end of what is typed");
        master.write_all(b"\x04").unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
}
