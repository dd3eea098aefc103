//! What somebody at a terminal sees while a run goes on.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{Stage, WINDLASS};

/// Runs with standard error on a terminal; gives what went to standard output and what the terminal got.
fn on_terminal(stage: &Stage, arguments: &[&str]) -> (String, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).unwrap();
    let mut command = Command::new(WINDLASS);
    command.args(arguments).current_dir(stage.project.path());
    command.env("ANTHROPIC_BASE_URL", stage.server.url()).env("ANTHROPIC_API_KEY", "k");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(terminal).spawn().unwrap();
    drop(command);
    let mut screen = Vec::new();
    // A terminal whose other end is gone reports an error where a pipe reports its end.
    let _ = File::from(master).read_to_end(&mut screen);
    let output = child.wait_with_output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(screen).unwrap())
}

#[test]
fn a_terminal_shows_tools_targets_times_and_tokens() {
    let stage = Stage::call("Bash", r#"{"command": "echo hi; echo there"}"#);
    let (stdout, screen) = on_terminal(&stage, &["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(stdout, "Done.\n");
    for text in ["waiting for claude-opus-5-5", "Bash echo hi; echo there (", " ms)", "2 turns", "tokens in"]
    {
        assert!(screen.contains(text), "{text:?} is not in {screen:?}");
    }
    let last = screen.split("\r\x1b[K").last().unwrap();
    assert!(last.starts_with("2 turns") && last.ends_with('\n'), "{screen:?}");
}

#[test]
fn nothing_a_model_says_controls_the_terminal() {
    let stage = Stage::call("Bash", r#"{"command": "echo \u001b]0;owned\u0007\u001b[2J\u202e"}"#);
    let (_, screen) = on_terminal(&stage, &["-p", "go", "--allowedTools", "Bash"]);
    // Our own sequences clear the last line and nothing else.
    let ours = screen.replace("\r\x1b[K", "");
    assert!(ours.contains("owned"), "{screen:?}");
    assert!(!ours.contains(['\x1b', '\x07', '\u{202e}']), "{screen:?}");
}

#[test]
fn json_is_quiet_on_a_terminal_too() {
    let (stdout, screen) = on_terminal(&Stage::hello(), &["-p", "go", "--output-format", "json"]);
    assert!(stdout.starts_with("{\"type\":\"result\""));
    assert_eq!(screen, "");
}
