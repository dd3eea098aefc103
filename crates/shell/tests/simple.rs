//! Bash itself says what a line means: for every line the scanner accepts, bash must run exactly one program, with
//! exactly the words the scanner found.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use windlass_shell::simple_command;

/// Pieces that have a meaning to bash, and a few that do not.
const PIECES: &[&str] = &[
    "a", "b", "if", "do", "time", "coproc", "function", "select", "x1", "-n", "--", "..", "/", "'", "'",
    "\"", "\"", "\\", "\\", " ", " ", "  ", "\t", "\n", "\r", "\0", "$", "$(a)", "${a}", "$'a'", "`a`", "*",
    "?", "[", "]", "[[", "{", "}", ",", "{a,b}", "~", "~/", "#", "!", "!!", "!a", "^a^b", "%", "%1", "=",
    "a=b", "+=", "a[0]=", ":", "@", "+", "@(a)", ";", "&", "&&", "|", "<", ">", ">&", "2>", "<<a", "(", ")",
    "é", "日", "\u{a0}", "\u{2028}", "\u{202e}", "\u{7f}", "\u{1}", "\u{301}",
];

/// Each accepted line is run with every name on `PATH` leading to one stub. The stub's output is the words it got.
fn run_in_bash(dir: &Path, lines: &[(String, Vec<String>)]) {
    // One bash per line would be exact and slow; one `bash -c` per line from a driving shell is exact too.
    let mut driver = Command::new(dir.join("bash"))
        .args(["--noprofile", "--norc", "-s"])
        .env_clear()
        .env("PATH", dir.join("bin"))
        .env("HOME", "/home/nobody")
        .current_dir(dir.join("here"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut script = String::new();
    for (index, (line, words)) in lines.iter().enumerate() {
        let file = dir.join("lines").join(index.to_string());
        fs::write(&file, line).unwrap();
        if !words[0].contains('/') {
            let stub = dir.join("bin").join(&words[0]);
            if !stub.exists() {
                fs::hard_link(dir.join("stub"), stub).unwrap();
            }
        }
        let _ = writeln!(
            script,
            "{} --noprofile --norc -c -- \"$(< {})\"; printf '\nEND\n'",
            dir.join("bash").display(),
            file.display()
        );
    }
    let mut stdin = driver.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = driver.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<&str> = printed.split("\nEND\n").collect();
    assert_eq!(answers.len(), lines.len() + 1);
    for ((line, words), answer) in lines.iter().zip(answers) {
        let expected: String = words.iter().flat_map(|word| [word.as_str(), "\n"]).collect();
        assert_eq!(answer, format!("ran\n{expected}"), "{line:?}");
    }
}

/// Builtins and paths do not go through the stubs; their words are checked by the lines that do.
fn goes_to_a_stub(name: &str) -> bool {
    !name.contains('/') && ![":", ".", "..", "[", "do"].contains(&name)
}

#[test]
fn accepted_lines_mean_to_bash_what_they_mean_to_us() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["bin", "lines", "here"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    // Something for globs to find.
    for name in ["a", "b", "ab", "x1", "é"] {
        fs::write(dir.path().join("here").join(name), "").unwrap();
    }
    let stub = dir.path().join("stub");
    fs::write(
        &stub,
        "#!/bin/sh\nprintf 'ran\\n%s\\n' \"${0##*/}\"\nfor word; do printf '%s\\n' \"$word\"; done\n",
    )
    .unwrap();
    fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
    let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| Path::new(path).exists()).unwrap();
    std::os::unix::fs::symlink(bash, dir.path().join("bash")).unwrap();

    let line = prop::collection::vec(prop::sample::select(PIECES), 0..8).prop_map(|pieces| pieces.concat());
    // A fixed seed: the corpus is part of the test, and what it found once it finds again.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut accepted = Vec::new();
    let mut tried = 0;
    while accepted.len() < 600 && tried < 400_000 {
        tried += 1;
        // Half of the lines begin with a plain name, so that more of them get through.
        let mut text = line.new_tree(&mut runner).unwrap().current();
        if tried % 2 == 0 {
            text = format!("cmd {text}");
        }
        if let Some(words) = simple_command(&text)
            && goes_to_a_stub(&words[0])
        {
            accepted.push((text, words));
        }
    }
    assert_eq!(accepted.len(), 600, "of {tried} lines");
    run_in_bash(dir.path(), &accepted);
}
