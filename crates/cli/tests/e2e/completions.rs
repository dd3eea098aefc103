//! Completions and manual pages, read by the programs they are made for.

use std::process::{Command, Stdio};

use clap_names::{flags, subcommands};
use windlass_testkit::Project;

use crate::support::{WINDLASS, check_refused};

/// What stands in `windlass --help`.
mod clap_names {
    /// The long flags.
    pub(super) fn flags(help: &str) -> Vec<String> {
        let is_flag = |word: &&str| word.starts_with("--") && word.len() > 2;
        let lines = help.lines().take_while(|line| !line.starts_with("Commands:"));
        let lines = lines.filter(|line| line.trim_start().starts_with('-'));
        let words = lines.filter_map(|line| line.split([' ', ',']).find(is_flag));
        words.map(|word| word.split(['[', '=']).next().unwrap().to_owned()).collect()
    }

    /// The commands.
    pub(super) fn subcommands(help: &str) -> Vec<String> {
        let lines = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
        let lines = lines.take_while(|line| !line.is_empty());
        let lines = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
    }
}

fn windlass(arguments: &[&str]) -> String {
    let finished = Project::new().unwrap().command(WINDLASS).args(arguments).run().unwrap();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    finished.stdout
}

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok()
}

#[test]
fn bash_completes_commands_and_flags() {
    let project = Project::new().unwrap();
    project.write("windlass.bash", windlass(&["completions", "bash"])).unwrap();
    let check = |words: &[&str], expected: &[&str]| {
        let (last, before) = words.split_last().unwrap();
        let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let script = format!(
            "source ./windlass.bash && COMP_WORDS=({line}); COMP_CWORD={}; _windlass windlass '{last}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.len() - 1,
            before.last().unwrap()
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(project.path())
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let seen = String::from_utf8(output.stdout).unwrap();
        assert_eq!(seen.lines().collect::<Vec<_>>(), expected, "{words:?}");
    };
    check(&["windlass", "conf"], &["config"]);
    check(&["windlass", "--output-f"], &["--output-format"]);
    check(&["windlass", "config", "sh"], &["show"]);
    check(&["windlass", "config", "show", "--js"], &["--json"]);
    check(&["windlass", "--output-format", "stream"], &["stream-json"]);
    check(&["windlass", "--permission-mode", "a"], &["acceptEdits", "auto"]);
    check(&["windlass", "--effort", ""], &["low", "medium", "high", "xhigh", "max"]);
    check(&["windlass", "--thinking", "d"], &["disabled"]);
    check(&["windlass", "--thinking-display", ""], &["summarized", "omitted"]);
    check(&["windlass", "permissions", "explain", "--permission-mode", "p"], &["plan"]);
    check(&["windlass", "help", "env"], &["environment"]);
}

#[test]
fn every_flag_and_command_of_the_help_is_in_completions_and_page() {
    let help = windlass(&["--help"]);
    let (flags, commands) = (flags(&help), subcommands(&help));
    assert!(flags.len() > 30 && commands.len() > 10, "{flags:?} {commands:?}");
    let page = windlass(&["man"]).replace('\\', "");
    for shell in ["bash", "zsh", "fish"] {
        let script = windlass(&["completions", shell]);
        for name in flags.iter().chain(&commands) {
            let bare = name.trim_start_matches('-');
            assert!(script.contains(bare), "{name} is not in the completions for {shell}");
        }
    }
    for name in flags.iter().chain(&commands) {
        assert!(page.contains(name), "{name} is not in the page");
    }
    for section in ["NAME", "SYNOPSIS", "OPTIONS", "SUBCOMMANDS", "\"EXIT CODES\"", "SETUP"] {
        assert!(page.contains(&format!(".SH {section}\n")), "{section} is not in the page");
    }
    assert!(!page.contains("EXTRA"), "{page}");
}

#[test]
fn examples_can_be_copied() {
    let help = windlass(&["completions", "--help"]);
    let example = "  windlass completions bash > ~/.local/share/bash-completion/completions/windlass\n";
    assert!(help.contains(example), "{help}");
}

#[test]
fn other_shells_can_read_their_completions() {
    for (shell, flags) in [("zsh", &["-n"][..]), ("fish", &["--no-execute"])] {
        let project = Project::new().unwrap();
        let script = windlass(&["completions", shell]);
        project.write("script", &script).unwrap();
        if is_installed(shell) {
            let status =
                Command::new(shell).args(flags).arg("script").current_dir(project.path()).status().unwrap();
            assert!(status.success(), "{shell}");
        }
        assert!(script.contains("windlass") && script.contains("sessions"), "{script}");
    }
}

#[test]
fn pages_are_rendered_without_a_complaint() {
    for command in [&["man"][..], &["man", "config"], &["man", "config", "show"]] {
        let page = windlass(command);
        if !is_installed("groff") {
            continue;
        }
        let project = Project::new().unwrap();
        project.write("page.1", &page).unwrap();
        let output = Command::new("groff")
            .args(["-man", "-Tutf8", "-wall", "page.1"])
            .current_dir(project.path())
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let mut text = String::new();
        for character in String::from_utf8(output.stdout).unwrap().chars() {
            // What is bold is printed twice.
            match character {
                '\u{8}' => _ = text.pop(),
                other => text.push(other),
            }
        }
        assert!(text.contains("SYNOPSIS") && text.contains("OPTIONS"), "{text}");
    }
}

#[test]
fn what_is_not_there_is_refused() {
    let project = Project::new().unwrap();
    let check = |arguments: &[&str], words: &[&str]| {
        check_refused(&project.command(WINDLASS).args(arguments).run().unwrap(), words);
    };
    check(&["completions"], &["Missing argument <SHELL>."]);
    check(&["completions", "dos"], &["dos", "bash", "fish", "zsh"]);
    check(&["man", "wether"], &["There is no command `windlass wether`."]);
}
