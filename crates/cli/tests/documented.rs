//! The examples of docs/PERMISSIONS.md, run by the real binary: the page cannot say what is not so.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use windlass_engine::{PROTECTED_DIRECTORIES, PROTECTED_FILES};
use windlass_testkit::Project;

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");
const PAGE: &str = include_str!("../../../docs/PERMISSIONS.md");
const STAGES: &str = include_str!("../../permission/src/stages.rs");

/// Where the page says that its project and its home are.
const PROJECT: &str = "/srv/app";
const HOME: &str = "/home/me";

/// A fenced block: what its first fence says, its lines, and the line of the page it begins behind.
struct Block {
    info: &'static str,
    lines: Vec<&'static str>,
    at: usize,
}

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (at, line) in PAGE.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                open = true;
                blocks.push(Block { info, lines: Vec::new(), at: at + 1 });
            }
            None if open => blocks.last_mut().unwrap().lines.push(line),
            None => {}
        }
    }
    assert!(!open, "the last block of the page is not closed");
    blocks
}

fn blocks_of(info: &str) -> Vec<Block> {
    let found: Vec<Block> = blocks().into_iter().filter(|block| block.info == info).collect();
    assert!(!found.is_empty(), "there is no {info} block");
    found
}

/// A call that the page shows: where, the case for the binary, and what it says about it.
struct Call {
    at: usize,
    case: Value,
    expected: &'static str,
}

/// The calls of a `rules` block, each with the rules and the mode that stand before the first.
fn calls(block: &Block, cwd: &Path) -> Vec<Call> {
    let mut rules = json!({"allow": [], "ask": [], "deny": []});
    let (mut mode, mut calls) = ("default", Vec::new());
    for (index, line) in block.lines.iter().enumerate() {
        let at = block.at + index + 1;
        if let Some((call, expected)) = line.split_once(" => ") {
            let (tool, argument) = call.split_once(' ').unwrap_or((call, ""));
            let input = input(tool, argument);
            let case =
                json!({"id": at, "rules": rules, "mode": mode, "cwd": cwd, "tool": tool, "input": input});
            calls.push(Call { at, case, expected });
            continue;
        }
        assert!(calls.is_empty(), "line {at}: rules stand before calls");
        match line.split_once(": ") {
            Some(("mode", name)) => mode = name,
            Some((list @ ("allow" | "ask" | "deny"), rule)) => {
                rules[list].as_array_mut().unwrap().push(rule.into());
            }
            _ => panic!("line {at} is neither a rule nor a call: {line}"),
        }
    }
    calls
}

/// The input of a call, from the one value that the page shows.
fn input(tool: &str, argument: &str) -> Value {
    if argument.starts_with("{\"") {
        return serde_json::from_str(argument).unwrap();
    }
    match tool {
        _ if argument.is_empty() => json!({}),
        "Bash" => json!({"command": argument}),
        "Read" | "Edit" | "Write" => json!({"file_path": argument}),
        "Grep" => json!({"path": argument}),
        "WebFetch" => json!({"url": argument}),
        _ => panic!("the page shows no single value of {tool}"),
    }
}

/// What the binary decides about cases, in order.
fn decide(project: &Project, cases: &[Value]) -> Vec<Value> {
    let lines = cases.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let command = project.command(WINDLASS).args(["permissions", "explain", "--batch"]).stdin(lines);
    let finished = command.run().unwrap();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    let decided = finished.json_lines().unwrap();
    assert_eq!(decided.len(), cases.len());
    decided
}

fn verdict(decided: &Value) -> &str {
    decided["decision"].as_str().unwrap()
}

#[test]
fn every_block_is_run_by_some_test() {
    let known = ["rules", "console", "only-looks", "text"];
    for Block { info, at, .. } in blocks() {
        let is_file = matches!(info.split_once(' '), Some(("json" | "jsonl", _)));
        assert!(is_file || known.contains(&info), "line {at}: nothing runs a block of {info}");
    }
}

#[test]
fn calls_are_decided_as_the_page_says() {
    let project = Project::new().unwrap();
    let calls: Vec<Call> =
        blocks_of("rules").iter().flat_map(|block| calls(block, &project.path())).collect();
    let cases: Vec<Value> = calls.iter().map(|call| call.case.clone()).collect();
    let decided = decide(&project, &cases);
    let wrong: Vec<String> = std::iter::zip(&calls, &decided)
        .filter(|(call, decided)| verdict(decided) != call.expected)
        .map(|(call, decided)| format!("line {}: {} is not {}: {decided}", call.at, call.case, call.expected))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What may stand behind the name of a command that only looks.
const WAYS: [&str; 14] = [
    "",
    " a",
    " a b",
    " status",
    " ps",
    " -a",
    " cols",
    " -e",
    " -v a",
    " a ]",
    " <<< a",
    " -l a.zip",
    " -tf a",
    " list",
];

/// Those of some names that are commands which run unasked in one way or another.
fn unasked(names: &[String]) -> Vec<&str> {
    let project = Project::new().unwrap();
    let case = |name: &String| {
        let cwd = project.path();
        WAYS.map(|rest| json!({"cwd": cwd, "tool": "Bash", "input": {"command": format!("{name}{rest}")}}))
    };
    let decided = decide(&project, &names.iter().flat_map(case).collect::<Vec<_>>());
    let names = std::iter::zip(names, decided.chunks(WAYS.len()));
    let found = names.filter(|(_, decided)| decided.iter().any(|decided| verdict(decided) == "allow"));
    found.map(|(name, _)| name.as_str()).collect()
}

fn commands_that_only_look() -> Vec<String> {
    let lines = blocks_of("only-looks").into_iter().flat_map(|block| block.lines);
    lines.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

#[test]
fn commands_that_only_look_run_unasked() {
    let named = commands_that_only_look();
    assert_eq!(unasked(&named), named, "the page names commands that are asked about");
    assert!(named.is_sorted(), "{named:?}");
}

/// Words of the tables of commands that could be names of commands.
fn words_of_tables(paths: Vec<PathBuf>) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            words.extend(words_of_tables(entries.map(|entry| entry.unwrap().path()).collect()));
        } else if path.extension() == Some(OsStr::new("rs")) && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap().replace("'\"'", "").replace("\\\"", "");
            let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            let quoted = code.split('"').skip(1).step_by(2).flat_map(str::split_whitespace);
            words.extend(quoted.filter(|word| is_name(word)).map(str::to_owned));
        }
    }
    words
}

fn is_name(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.+".contains(c);
    [":", "[", "[["].contains(&word)
        || word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(is_plain)
}

#[test]
fn commands_that_only_look_are_all_named() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shell/src");
    let tables = ["effect", "effect.rs"].map(|name| source.join(name));
    let words: Vec<String> = words_of_tables(tables.into()).into_iter().collect();
    let named = commands_that_only_look();
    let found = unasked(&words);
    assert!(found.len() > 50, "the tables are not found: {found:?}");
    let missing: Vec<&str> =
        found.into_iter().filter(|name| !named.iter().any(|named| named == name)).collect();
    assert!(
        missing.is_empty(),
        "add these to the only-looks block of docs/PERMISSIONS.md: {}",
        missing.join(" ")
    );
}

#[test]
fn stages_stand_in_the_order_of_the_program() {
    let (_, list) = STAGES.split_once("const STAGES").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let name = |line: &'static str| line.trim().trim_end_matches(',').rsplit("::").next().unwrap();
    let program: Vec<&str> = list.lines().skip(1).map(name).collect();
    let comment = |line: &'static str| line.split_once("<!-- ")?.1.split_once(" -->");
    let page: Vec<&str> = PAGE.lines().filter_map(comment).map(|(name, _)| name).collect();
    assert_eq!(page, program);
}

#[test]
fn protected_paths_are_all_named() {
    let (_, section) = PAGE.split_once("## Protected paths").unwrap();
    let (section, _) = section.split_once("```").unwrap();
    let named: Vec<&str> = section.split('`').skip(1).step_by(2).collect();
    for name in PROTECTED_DIRECTORIES.iter().chain(&PROTECTED_FILES) {
        assert!(named.contains(name), "{name} is protected, and the page does not say so");
    }
    let project = Project::new().unwrap();
    let others = ["bypassPermissions", "auto", ".claude/worktrees", "hooks", "config"];
    let named: Vec<&&str> = named.iter().filter(|name| !others.contains(*name)).collect();
    let case = |name: &&&str| {
        let is_directory = name.contains('/') || PROTECTED_DIRECTORIES.contains(name);
        let path = format!("deep/{name}{}", if is_directory { "/x" } else { "" });
        json!({"cwd": project.path(), "mode": "acceptEdits", "tool": "Write", "input": {"file_path": path}})
    };
    let decided = decide(&project, &named.iter().map(case).collect::<Vec<_>>());
    for (name, decided) in std::iter::zip(named, decided) {
        assert_eq!(verdict(&decided), "ask", "{name}: {decided}");
    }
}

/// Runs a line as a shell would, with both outputs in one.
fn shell(project: &Project, line: &str) -> String {
    let directory = Path::new(WINDLASS).parent().unwrap();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap_or_default());
    let command = project.command("/bin/sh").args(["-c", &format!("exec 2>&1; {line}")]).env("PATH", path);
    command.run().unwrap().stdout
}

#[test]
fn what_the_page_types_says_what_it_shows() {
    let project = Project::new().unwrap();
    let (path, home) = (project.path().display().to_string(), project.home().display().to_string());
    for block in blocks() {
        let text = block.lines.join("\n") + "\n";
        if let Some((_, name)) = block.info.split_once(' ') {
            project.write(name, &text).unwrap();
        }
        if block.info != "console" {
            continue;
        }
        let typed = block.lines.iter().filter_map(|line| line.strip_prefix("$ "));
        let printed = |line| shell(&project, line).replace(&path, PROJECT).replace(&home, HOME);
        let seen = typed.map(|line| format!("$ {line}\n{}", printed(line))).collect::<Vec<_>>().concat();
        assert_eq!(seen, text, "the block in line {}", block.at);
    }
}

/// Starts a session at a terminal, answers the first question with a no, and gives what was shown until then.
fn asked_at_terminal(project: &Project) -> String {
    let script = r#"{"responses": [{"blocks": [{"tool": "Bash", "input": {"command": "cargo test -q && touch made.txt"}}]},
        {"blocks": [{"text": "Done."}]}]}"#;
    let script = project.write("script.json", script).unwrap();
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).unwrap();
    let mut command: Command = project.command(WINDLASS).env("WINDLASS_SCRIPT", script).into_command();
    let end = || terminal.try_clone().unwrap();
    command.arg("touch it").stdin(end()).stderr(end()).stdout(end());
    drop(terminal);
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut master, mut screen, mut piece) = (File::from(master), Vec::new(), [0; 4096]);
    let mut answered = false;
    // A terminal whose other end is gone reports an error where a pipe reports its end.
    while let Ok(read @ 1..) = master.read(&mut piece) {
        screen.extend_from_slice(&piece[..read]);
        let shown = String::from_utf8_lossy(&screen);
        if !answered && shown.contains("`n use tabs`)") && shown.ends_with("> ") {
            // The second line ends the session: it is the end of input.
            master.write_all(b"n\n\x04").unwrap();
            answered = true;
        }
    }
    child.wait().unwrap();
    String::from_utf8(screen).unwrap().replace("\r\n", "\n")
}

#[test]
fn the_question_looks_as_the_page_shows_it() {
    let project = Project::new().unwrap();
    let screen = asked_at_terminal(&project);
    for block in blocks_of("text") {
        let text = block.lines.join("\n");
        assert!(screen.contains(&text), "{text}\nis not in\n{screen}");
    }
    assert!(project.read("made.txt").is_err(), "nothing is run after a no");
}
