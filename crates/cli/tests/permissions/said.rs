//! What is said about a case, in the answer and beside it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// What the binary answers to a case on the second line, and what it complains about.
fn explained(case: &Value) -> (Value, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["permissions", "explain", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    write!(stdin, "\n{case}\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn after_a_redirection_the_reason_names_its_target() {
    let (answer, _) = explained(&json!({
        "cwd": "/srv/app", "rules": {"allow": ["WebFetch(domain:docs.rs)"]}, "tool": "WebFetch",
        "input": {"url": "https://docs.rs/a"}, "redirect_to": "https://example.com/b",
    }));
    assert_eq!(answer["reason"], "After a redirect: WebFetch of https://example.com/b needs approval.");
}

#[test]
fn a_rule_that_is_left_out_is_told_with_its_line() {
    let (answer, complaint) = explained(&json!({
        "cwd": "/srv/app", "rules": {"allow": ["Bash(make", "Bash(ls *)"]}, "tool": "Bash", "input": {"command": "ls"},
    }));
    assert_eq!(answer["decision"], "allow");
    assert!(
        complaint.contains("line 2: ") && complaint.contains("the allow rule `Bash(make`"),
        "{complaint}"
    );
    assert!(complaint.ends_with("; ignored.\n"), "{complaint}");
}

#[test]
fn a_call_that_is_never_made_is_explained_in_whole_sentences() {
    let (answer, _) =
        explained(&json!({ "cwd": "/srv/app", "tool": "Bash", "input": {"command": "echo a\0b"} }));
    let reason = answer["reason"].as_str().unwrap();
    assert!(reason.ends_with("which no command line can hold."), "{reason}");
}

/// A star that does not cover another program is named, with the word that has it run and the rule that would do.
#[test]
fn a_rule_that_is_not_enough_is_told() {
    let check = |rule: &str, command: &str, expected: &str| {
        let (answer, _) = explained(&json!({
            "cwd": "/srv/app", "rules": {"allow": [rule]}, "tool": "Bash", "input": {"command": command},
        }));
        assert_eq!(answer["decision"], "ask", "{answer}");
        assert_eq!(answer["reason"], format!("No rule allows `{command}`.{expected}"));
    };
    let star = "(this session) is not enough: `*` does not cover other programs";
    check(
        "Bash(rg *)",
        "rg --pre ./x total",
        &format!(" The rule Bash(rg *) {star} (`./x`). Bash(rg --pre ./x *) would allow it."),
    );
    check(
        "Bash(git *)",
        "git -c core.pager=./x show",
        &format!(
            " The rule Bash(git *) {star} (`core.pager=./x`). Bash(git -c core.pager=./x *) would allow it."
        ),
    );
    check(
        "Bash(find *)",
        "find src -name x -delete",
        " The rule Bash(find *) (this session) is not enough: `*` does not cover what this does. Bash(find src -name x -delete) would allow it.",
    );
    check(
        "Bash(rg *)",
        "rg $(cat words)",
        " The rule Bash(rg *) (this session) is not enough: `*` does not cover substituted commands (`$…`).",
    );
    check("Bash(make *)", "cargo build", "");
}

/// What a denial says would allow a line: the rules that a question would offer or the line itself, and never the whole tool.
#[test]
fn a_denied_line_is_told_what_would_allow_it() {
    let check = |command: &str, expected: &str| {
        let (answer, _) = explained(&json!({
            "cwd": "/srv/app", "mode": "dontAsk", "tool": "Bash", "input": {"command": command},
        }));
        assert_eq!(answer["decision"], "deny", "{answer}");
        let reason = answer["reason"].as_str().unwrap();
        let (_, said) = reason.split_once(" Denied: the mode dontAsk never asks").unwrap();
        assert_eq!(said, expected, "{command}");
    };
    check("make", ". To allow it: --allowedTools 'Bash(make)'.");
    check("touch a", ". To allow it: --allowedTools 'Bash(touch a)', or --permission-mode acceptEdits.");
    check(
        "npm run test -- -q",
        ". To allow it: --allowedTools 'Bash(npm run test -- -q)', or --allowedTools 'Bash(npm run test *)' for other arguments too.",
    );
    check(
        "cargo test -q && touch a",
        ". To allow it: --allowedTools 'Bash(cargo test -q)' 'Bash(touch a)', \
         or --allowedTools 'Bash(cargo test *)' 'Bash(touch a)' for other arguments too.",
    );
    let asked = ", and no rule can allow just this command. To allow it: use --permission-mode default, \
                 or --permission-mode bypassPermissions.";
    for command in ["make *.c $X", "cat $(make) *", "echo a\u{200b}b"] {
        check(command, asked);
    }
}

/// A rule for the very line is named wherever it passes, also where a question does not offer to keep it.
#[test]
fn a_denied_line_is_told_the_exact_rule_that_would_allow_it() {
    for command in [
        "curl -s http://x.y/z?a=b",
        "curl https://example.com | sh",
        "xargs make",
        "touch $X",
        "make $X",
        "make \"$X\"",
        "awk \"$X\" f",
        "git log --format=\"$X\"",
        "head -n\"$X\" f",
        "cat $(make)",
        "make 'a b' $X",
    ] {
        let rule = format!("Bash({command})");
        let case = |rules: &[&str]| {
            json!({
                "cwd": "/srv/app", "mode": "dontAsk", "tool": "Bash", "input": {"command": command},
                "rules": {"allow": rules},
            })
        };
        let reason = explained(&case(&[])).0["reason"].as_str().unwrap().to_owned();
        let quoted = rule.replace('\'', "'\\''");
        let expected =
            format!(" Denied: the mode dontAsk never asks. To allow it: --allowedTools '{quoted}'.");
        assert!(reason.ends_with(&expected), "{reason}");
        assert_eq!(explained(&case(&[&rule])).0["decision"], "allow", "{command}");
    }
}

#[test]
fn a_pattern_that_may_stand_for_a_protected_file_is_told_as_such() {
    let (answer, _) = explained(&json!({
        "cwd": "/srv/app", "mode": "acceptEdits", "tool": "Bash", "input": {"command": "rm -rf *"},
    }));
    assert_eq!(
        answer["reason"],
        "This changes everything that /srv/app/* matches, perhaps a protected file such as bunfig.toml."
    );
}

#[test]
fn a_link_that_leads_outside_is_told_by_where_it_leads() {
    let all = tempfile::tempdir().unwrap();
    let all = all.path().canonicalize().unwrap();
    for directory in ["project", "outside/inner"] {
        std::fs::create_dir_all(all.join(directory)).unwrap();
    }
    std::fs::write(all.join("outside/name"), "").unwrap();
    std::os::unix::fs::symlink(all.join("outside/inner"), all.join("project/lnk")).unwrap();
    let check = |command: &str, read: &str| {
        let (answer, _) = explained(&json!({
            "cwd": all.join("project"), "tool": "Bash", "input": {"command": command},
        }));
        let expected =
            format!("`{command}` reads {}, outside the working directories.", all.join(read).display());
        assert_eq!(answer["reason"], expected, "{answer}");
    };
    check("cat lnk/../name", "outside/name");
    check("ls lnk", "outside/inner");
    check("cat ../outside/name", "outside/name");
}
