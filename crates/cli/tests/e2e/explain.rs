//! What `windlass permissions explain` says, to people and to programs.

use serde_json::json;
use windlass_testkit::{FinishedProcess, Project};

use crate::support::{WINDLASS, check_refused};

fn windlass(project: &Project, arguments: &[&str]) -> FinishedProcess {
    project.command(WINDLASS).args(arguments).run().unwrap()
}

fn explain(project: &Project, arguments: &[&str]) -> FinishedProcess {
    windlass(project, &[&["permissions", "explain"], arguments].concat())
}

#[test]
fn a_mistyped_tool_is_an_error_and_an_unknown_one_is_told() {
    let project = Project::new().unwrap();
    let refused = |tool: &str, meant: &str| {
        let words = [&*format!("unknown tool {tool}; did you mean {meant}?")];
        check_refused(&explain(&project, &["--tool", tool, "--input", "{}"]), &words);
    };
    refused("bash", "Bash");
    refused("Bsah", "Bash");
    refused("webfetch", "WebFetch");
    let check = |tool: &str, is_known: bool| {
        let finished = explain(&project, &["--tool", tool]);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert_eq!(
            !finished.stdout.contains("unknown tool; decided like one that could do anything"),
            is_known,
            "{finished:?}"
        );
        let json = explain(&project, &["--tool", tool, "--json"]).json_lines().unwrap();
        assert_eq!(json[0].get("note").is_none(), is_known, "{json:?}");
    };
    check("Foo", false);
    check("mcp__files__read", true);
    check("TodoWrite", true);
}

#[test]
fn plain_text_as_input_is_shown_as_it_must_be_given() {
    let project = Project::new().unwrap();
    let check = |tool: &str, input: &str, expected: &str| {
        check_refused(&explain(&project, &["--tool", tool, "--input", input]), &[expected]);
    };
    check(
        "Bash",
        "git status",
        r#"--input is not JSON. Give an object: --input '{"command":"git status"}'."#,
    );
    check("Bash", "\"ls\"", r#"not an object. Give an object: --input '{"command":"ls"}'."#);
    check("Bash", "echo 'a'", r#"'{"command":"echo '\''a'\''"}'."#);
    check("Read", "a.txt", r#"'{"file_path":"a.txt"}'."#);
    check(
        "Bash",
        "{\"command\":",
        "not JSON (EOF while parsing a value at line 1 column 11). Give an object",
    );
    check("Bash", "[]", r#"'{"command":"..."}'."#);
}

#[test]
fn settings_are_taken_as_a_run_takes_them() {
    let project = Project::new().unwrap();
    project.write(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(make)"]}}"#).unwrap();
    let check = |flags: &[&str], decision: &str| {
        let call = ["--tool", "Bash", "--input", r#"{"command": "make"}"#, "--json"];
        let finished = explain(&project, &[&call, flags].concat());
        assert_eq!(finished.json_lines().unwrap()[0]["decision"], decision, "{flags:?} {finished:?}");
    };
    check(&[], "ask");
    check(&["--trust-project"], "allow");
    check(&["--setting-sources", "project"], "allow");
    check(&["--setting-sources", "user", "--trust-project"], "ask");
    check(&["--settings", r#"{"permissions": {"deny": ["Bash(make)"]}}"#, "--trust-project"], "deny");
    let (deny, ask) =
        (r#"{"permissions": {"deny": ["Bash(make)"]}}"#, r#"{"permissions": {"ask": ["Bash(make)"]}}"#);
    check(&["--settings", deny, "--settings", r#"{"model": "opus"}"#, "--trust-project"], "deny");
    check(&["--settings", ask, "--settings", r#"{"model": "opus"}"#, "--trust-project"], "ask");
}

/// A repository is protected by what its directory holds, whatever it is called: one that a `.git` file points to, one
/// without a work tree, and what keeps track of a linked work tree.
#[test]
fn git_directories_by_any_name_are_protected() {
    let project = Project::new().unwrap();
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command
            .current_dir(project.path())
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments);
        assert!(command.env("GIT_CONFIG_GLOBAL", "/dev/null").status().unwrap().success(), "{arguments:?}");
    };
    git(&["init", "-q", "--separate-git-dir", "realgit", "."]);
    git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&["worktree", "add", "-q", "tree"]);
    git(&["init", "-q", "--bare", "mirror"]);
    let check = |tool: &str, input: &str, decision: &str| {
        let input = match tool {
            "Bash" => serde_json::json!({ "command": input }),
            _ => serde_json::json!({ "file_path": input, "content": "x" }),
        };
        let flags = [
            "--permission-mode",
            "acceptEdits",
            "--settings",
            r#"{"permissions": {"allow": ["Bash(tee *)"]}}"#,
        ];
        let call = ["--tool", tool, "--input", &input.to_string(), "--json"];
        let finished = explain(&project, &[&call[..], &flags].concat());
        let said = &finished.json_lines().unwrap()[0];
        assert_eq!(said["decision"], decision, "{tool} {input}: {finished:?}");
        let is_protected = said["reason"].as_str().unwrap().contains("changes the protected file");
        assert_eq!(is_protected, decision == "ask", "{finished:?}");
    };
    for path in [
        "realgit/config",
        "realgit/hooks/post-commit",
        "realgit/worktrees/tree/commondir",
        "mirror/hooks/update",
    ] {
        check("Write", path, "ask");
        check("Bash", &format!("cp hook {path}"), "ask");
        check("Bash", &format!("echo x | tee {path}"), "ask");
    }
    check("Write", "tree/.git", "ask");
    check("Write", "tree/config", "allow");
    check("Write", "hooks/post-commit", "allow");
    check("Bash", "cp hook config", "allow");
}

#[test]
fn the_page_that_helps_is_named() {
    let project = Project::new().unwrap();
    let check = |arguments: &[&str], page: &str| {
        let words = [&*format!("`windlass {page} --help` shows what there is.")];
        check_refused(&windlass(&project, arguments), &words);
    };
    check(&["permissions", "explain", "--wether"], "permissions explain");
    check(&["permissions", "explain"], "permissions explain");
    check(&["permissions", "wether"], "permissions");
    check(&["sandbox", "run"], "sandbox run");
    check(&["sandbox", "status", "x"], "sandbox status");
    check(&["config", "show", "--wether"], "config show");
    check(&["config", "schema", "x"], "config schema");
    check(&["config", "list", "--wether"], "config list");
    check(&["trust", "add", "x"], "trust add");
    check(&["trust", "remove", "--wether"], "trust remove");
    check(&["trust", "--wether"], "trust");
}

#[test]
fn auto_mode_says_that_a_model_judges_first() {
    let project = Project::new().unwrap();
    let check = |mode: &str, expected: bool| {
        let call = ["--tool", "Bash", "--input", r#"{"command": "make"}"#, "--permission-mode", mode];
        let finished = explain(&project, &call);
        assert!(finished.stdout.contains("decision: ask"), "{finished:?}");
        assert_eq!(finished.stdout.contains("a model decides first"), expected, "{finished:?}");
    };
    check("auto", true);
    check("default", false);
}

#[test]
fn a_batch_answers_under_the_id_it_was_given() {
    let project = Project::new().unwrap();
    let check = |line: &str, expected: serde_json::Value| {
        let command = project.command(WINDLASS).args(["permissions", "explain", "--batch"]);
        let finished = command.stdin(format!("{line}\n")).run().unwrap();
        let answer = &finished.json_lines().unwrap()[0];
        assert_eq!(
            (&answer["id"], &answer["decision"]),
            (&expected[0], &expected[1]),
            "{line}: {finished:?}"
        );
    };
    check(r#"{"id": "a", "cwd": "/srv", "tool": "Bash", "rules": {"allow": "Bash"}}"#, json!(["a", "deny"]));
    check(r#"{"id": 7, "tool": "Bash", "input": {"command": "ls"}}"#, json!([7, "deny"]));
    check(r#"{"id": "a", "#, json!([null, "deny"]));
    let fetch = |target: &str| {
        let case = r#"{"id": 1, "cwd": "/srv", "tool": "WebFetch", "rules": {"allow": ["WebFetch(domain:docs.rs)"]},"#;
        let input = r#""input": {"url": "https://docs.rs/a", "prompt": "p"}"#;
        format!("{case} {input}, \"redirect_to\": \"{target}\"}}")
    };
    check(&fetch("/b"), json!([1, "allow"]));
    check(&fetch("//crates.io/b"), json!([1, "ask"]));
    check(&fetch("file:///etc/passwd"), json!([1, "deny"]));
}

/// A restriction under a name that means nothing would be lost, and with it a refusal.
#[test]
fn a_batch_refuses_restrictions_that_are_misspelt() {
    let project = Project::new().unwrap();
    let check = |field: &str, decision: &str, said: &str| {
        let call = r#""cwd": "/srv", "tool": "Bash", "input": {"command": "ls"}"#;
        let command = project.command(WINDLASS).args(["permissions", "explain", "--batch"]);
        let finished = command.stdin(format!("{{\"id\": 5, {call}, {field}}}\n")).run().unwrap();
        let answer = &finished.json_lines().unwrap()[0];
        assert_eq!((&answer["id"], &answer["decision"]), (&json!(5), &json!(decision)), "{finished:?}");
        assert!(answer["reason"].as_str().unwrap().contains(said), "{finished:?}");
        assert_eq!(finished.code(), Some(i32::from(decision == "deny")), "{finished:?}");
    };
    check(r#""rules": {"Deny": ["Bash(ls)"]}"#, "deny", "unknown field `Deny`");
    check(r#""rules": {"denied": ["Bash(ls)"], "allow": []}"#, "deny", "unknown field `denied`");
    check(r#""Rules": {"deny": ["Bash(ls)"]}"#, "deny", "did you mean `rules`?");
    check(r#""rule": {"deny": ["Bash(ls)"]}"#, "deny", "did you mean `rules`?");
    check(r#""deny": ["Bash(ls)"]"#, "deny", "put lists of rules in `rules`");
    check(r#""permissions": {"deny": ["Bash(ls)"]}"#, "deny", "put lists of rules in `rules`");
    check(r#""Mode": "plan""#, "deny", "did you mean `mode`?");
    check(r#""redirectTo": "http://localhost/""#, "deny", "did you mean `redirect_to`?");
    for note in [
        r#""rule": "Bash(ls)""#,
        r#""rule": null"#,
        r#""code": "3.3""#,
        r#""class": "3.3 separators""#,
        r#""expect": "allow""#,
        r#""tags": ["a"]"#,
    ] {
        check(note, "allow", "only reads");
    }
}

#[test]
fn a_batch_tells_once_which_fields_mean_nothing() {
    let project = Project::new().unwrap();
    let line = r#"{"id": 1, "cwd": "/srv", "tool": "Bash", "input": {"command": "ls"}, "rule": null, "expect": "allow"}"#;
    let command = project.command(WINDLASS).args(["permissions", "explain", "--batch"]);
    let finished = command.stdin(format!("{line}\n{line}\n")).run().unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let fields: Vec<String> =
        finished.json_lines().unwrap()[0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["id", "decision", "rule", "reason"]);
    let told: Vec<&str> = finished.stderr.lines().collect();
    assert_eq!(told.len(), 2, "{}", finished.stderr);
    assert!(told[0].contains("line 1: unknown field `expect`; ignored."), "{}", finished.stderr);
    assert!(told[1].contains("`rule`") && told[1].contains("Did you mean `rules`?"), "{}", finished.stderr);
    for page in [&["permissions", "--help"][..], &["permissions", "explain", "--help"]] {
        let help = windlass(&project, page).stdout.replace('\n', " ");
        assert!(help.contains("cwd and tool are required"), "{help}");
    }
}

/// Twice as many rules may take twice as long, not four times.
#[test]
fn very_many_rules_cost_what_each_costs() {
    let rules = |count: usize| (0..count).map(|number| format!("Bash(tool{number} *)")).collect::<Vec<_>>();
    let explain = ["permissions", "explain", "--tool", "Bash", "--input", r#"{"command": "ls"}"#];
    let ways: [(&str, &[&str]); 3] = [
        ("home/.claude/settings.json", &explain),
        ("project/.claude/settings.json", &explain),
        ("project/.claude/settings.json", &["trust", "add"]),
    ];
    for (file, arguments) in ways {
        check_growth(&arguments.join(" "), |project, count| {
            let file = project.home().parent().unwrap().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, json!({"permissions": {"allow": rules(count)}}).to_string()).unwrap();
            project.command(WINDLASS).args(arguments)
        });
    }
    check_growth("--batch", |project, count| {
        let deny = json!({"deny": rules(count)});
        let case = json!({"cwd": "/srv", "tool": "Bash", "input": {"command": "ls"}, "rules": deny});
        let command = project.command(WINDLASS).args(["permissions", "explain", "--batch"]);
        command.stdin(format!("{case}\n"))
    });
}

/// Compares what two numbers of rules cost, by the better of two tries: others use this machine too.
fn check_growth(what: &str, command: impl Fn(&Project, usize) -> windlass_testkit::WindlassCommand) {
    let best = |count: usize| {
        let tries = (0..2).map(|_| {
            let project = Project::new().unwrap();
            let command = command(&project, count);
            let start = std::time::Instant::now();
            let finished = command.run().unwrap();
            assert_eq!(finished.code(), Some(0), "{what}");
            start.elapsed()
        });
        tries.min().unwrap_or_default()
    };
    // Eight times as many would take 64 times as long if each were compared with all others; a busy machine may treble a time.
    let (some, many) = (best(5_000), best(40_000));
    assert!(many <= some * 24, "{what}: 5,000 rules take {some:?} and 40,000 take {many:?}");
}
