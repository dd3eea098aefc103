//! Two lists of lines with one verdict each: what only looks and runs without a question, and what must never be taken for that.

use crate::lines::read;
use windlass_shell::{CommandDirectory, LineEffect, StrictCommand, analyse};

/// Whether a line would run without a question, if all it looks at may be looked at.
fn is_free(line: &str) -> bool {
    let looks = |command: &StrictCommand| {
        let is_start = command.directory == CommandDirectory::Start;
        let looks =
            command.effect == LineEffect::Looks || (command.effect == LineEffect::LooksAtStart && is_start);
        looks && command.writes.is_empty()
    };
    let analysis = analyse(line);
    analysis.plain.is_ok_and(|commands| commands.iter().all(looks))
}

/// The same, if the line goes back to where it started.
fn looks_at_start(line: &str) -> bool {
    let looks = |command: &StrictCommand| {
        matches!(command.effect, LineEffect::Looks | LineEffect::LooksAtStart) && command.writes.is_empty()
    };
    analyse(line).plain.is_ok_and(|commands| commands.iter().all(looks))
}

#[test]
fn harmless_lines_only_look() {
    let lines = read(include_str!("../corpus/harmless.txt"));
    assert!(lines.len() > 300);
    let asked: Vec<&String> = lines.iter().filter(|line| !looks_at_start(line)).collect();
    assert!(asked.is_empty(), "{asked:#?}");
    let unseen: Vec<&String> = lines.iter().filter(|line| analyse(line).unseen.is_some()).collect();
    assert!(unseen.is_empty(), "{unseen:#?}");
}

#[test]
fn attacks_are_never_free() {
    let lines = read(include_str!("../corpus/attacks.txt"));
    assert!(lines.len() > 700);
    let free: Vec<&String> = lines.iter().filter(|line| is_free(line)).collect();
    assert!(free.is_empty(), "{free:#?}");
}

#[test]
fn an_attack_behind_a_harmless_line_is_an_attack() {
    let lines = read(include_str!("../corpus/attacks.txt"));
    for joint in ["ls; ", "ls && ", "ls | ", "ls\n", "ls & ", "NODE_ENV=test ls || "] {
        // Behind a pipe the first command of a line does not move the shell.
        let moves = |line: &&String| joint == "ls | " && line.starts_with("cd ");
        let others = lines.iter().filter(|line| !moves(line));
        let free: Vec<&String> = others.filter(|line| is_free(&format!("{joint}{line}"))).collect();
        assert!(free.is_empty(), "{joint:?} {free:#?}");
    }
}

#[test]
fn both_readings_list_the_same() {
    let files = [
        include_str!("../corpus/harmless.txt"),
        include_str!("../corpus/attacks.txt"),
        include_str!("../corpus/odd.txt"),
    ];
    for line in files.iter().flat_map(|file| read(file)) {
        let unseen = analyse(&line).unseen.unwrap_or_default();
        assert!(!unseen.contains("differ"), "{line:?}: {unseen}");
    }
}
