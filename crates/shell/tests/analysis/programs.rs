//! The real programs say what their options do: whatever the tables call looking runs in a jail, with options picked at random, and
//! must leave every file as it is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::jail::Jail;
use crate::lines::{self, Rng};
use windlass_shell::{LineEffect, analyse};

/// The lines are part of the test: the same ones each time.
const SEED: u64 = 20_261_116;
const LINES: usize = 5_000;

/// Programs that cannot do anything to the machine itself, whatever their options.
const PROGRAMS: &[&str] = &[
    "awk", "base64", "basename", "cat", "cmp", "column", "comm", "cp", "cut", "diff", "du", "expand", "file",
    "find", "fmt", "fold", "git", "grep", "head", "hexdump", "jq", "join", "ls", "md5sum", "mkdir", "nl",
    "od", "paste", "readlink", "realpath", "rev", "sed", "sort", "stat", "strings", "tac", "tail", "tr",
    "tree", "uniq", "wc", "xargs", "xxd", "rg", "fd", "tee", "touch",
];
const OPTIONS: &[&str] = &[
    "--output=out",
    "--output",
    "-o",
    "-oout",
    "--in-place",
    "-i",
    "-i.bak",
    "--compress-program=./x",
    "--pre=./x",
    "--exec",
    "--files0-from=a",
    "-T",
    "-f",
    "--file=a",
    "--debug",
    "-S1",
    "--buffer-size=1K",
    "-k1",
    "-t:",
    "-d:",
    "-f1",
    "-n",
    "-n5",
    "-5",
    "-r",
    "-R",
    "-z",
    "-0",
    "-a",
    "-e",
    "-E",
    "-c",
    "-C",
    "-m",
    "--merge",
    "-u",
    "-l",
    "-L",
    "-s",
    "-w",
    "-v",
    "-x",
    "-q",
    "-h",
    "-A1",
    "-B",
    "--color=always",
    "--include=*",
    "-P",
    "-p",
    "-F",
    "-M",
    "-D",
    "-b",
    "-g",
    "-G",
    "-H",
    "-I",
    "-N",
    "-O",
    "-Q",
    "-U",
    "-V",
    "-W",
    "-X",
    "-Y",
    "-y",
    "-Z",
    "-j",
    "-k",
    "-t",
    "-1",
    "--",
    "--expression=p",
    "--posix",
    "--sandbox",
    "--recursive",
    "--dereference",
    "--indent=2",
    "--arg",
    "--slurpfile",
    "--rawfile",
    "--from-file",
    "--stat",
    "--patch",
    "--oneline",
    "--all",
    "--graph",
    "--name-only",
    "--no-pager",
    "-C.",
    "-Csub",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager=./x",
    "-O./x",
    "--no-index",
    "--contents",
    "--cached",
    "--word-diff",
    "-S",
    "--diff-filter=A",
    "--list",
    "-D1",
    "--format=%h",
    "--show-current",
    "--get",
    "--unset",
    "--replace-all",
    "--global",
    "-delete",
    "-print",
    "-exec",
    "-execdir",
    "-ok",
    "-fprint",
    "-fls",
    "-fprintf",
    "-name",
    "-type",
    "-maxdepth",
    "-prune",
    "-quit",
    "-printf",
    "-print0",
    "-newer",
    "-size",
    "-empty",
    "-ls",
    "!",
    "(",
    ")",
    "-or",
    "-regex",
    "-path",
    "-perm",
    "-user",
    "-depth",
    "-xdev",
];
const WORDS: &[&str] = &[
    "a",
    "b",
    "f.txt",
    "sub",
    ".",
    "out",
    "./x",
    "x",
    "5",
    "1p",
    "p",
    "s/a/b/",
    "s/a/b/w out",
    "s/a/b/e",
    "e ./x",
    "w out",
    "r a",
    "$!d",
    "/a/,/b/p",
    "{print}",
    "{print > \"out\"}",
    "BEGIN{system(\"./x\")}",
    "/a/",
    "{print | \"./x\"}",
    "length",
    "1",
    ".",
    ".a",
    "keys",
    "input_filename",
    "import \"a\" as a; .",
    "a=b",
    "-n",
    "log",
    "status",
    "diff",
    "show",
    "branch",
    "tag",
    "config",
    "remote",
    "stash",
    "reflog",
    "grep",
    "blame",
    "ls-files",
    "rev-parse",
    "cat-file",
    "describe",
    "shortlog",
    "worktree",
    "list",
    "add",
    "HEAD",
    "HEAD:a",
    "new",
    "user.name",
    "alias.x",
    "!./x",
    "core.pager",
    "get",
    "set",
    "drop",
    "pop",
    "expire",
    "delete",
    "-",
    "+",
    "{}",
    ";",
    "rm",
    "sh",
    "cat",
    "wc",
    "ls",
    "f",
    "d",
    "*.txt",
    "%p",
    "-5",
];
/// Words that bash expands: what the variable holds writes a file if `sed` takes it for a script.
const EXPANDED: &[&str] = &[
    "\"$CODE\"",
    "\"p;$CODE\"",
    "-e\"$CODE\"",
    "-e \"p;$CODE\"",
    "--expression=\"p;$CODE\"",
    "\"$(cat f.txt)\"",
    "[[:lower:]]",
];
/// How commands of other programs begin, so that they get far enough to do something.
const STARTS: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "log", "diff", "show", "status", "branch", "tag", "config", "remote", "stash", "reflog", "grep",
            "blame", "ls-files", "cat-file", "worktree",
        ],
    ),
    ("find", &[".", "sub", ". -name a", ". -type f"]),
    ("sed", &["-n", "s/a/b/", "-e p", "1p"]),
    ("awk", &["{print}", "/a/", "-F: {print}"]),
    ("xargs", &["wc", "-n1 wc", "cat", "sh"]),
    ("jq", &[".", "-n 1", "-r ."]),
];

/// An executable file that leaves a trace, and a repository.
fn fill(jail: &Jail) -> PathBuf {
    let dir = jail.path("looking");
    let program = dir.join("x");
    fs::write(&program, "#!/bin/sh\necho ran >> trace\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for arguments in [
        &["init", "-q", "."][..],
        &["add", "a", "b"],
        &["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "one"],
    ] {
        let _ = Command::new("git").args(arguments).current_dir(&dir).env("HOME", jail.path("home")).output();
    }
    dir
}

/// What must not change. Git may refresh what it knows about the files.
fn tree(jail: &Jail) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut tree = jail.tree("looking");
    tree.retain(|path, _| !path.ends_with(".git/index") && !path.ends_with(".git"));
    tree
}

fn push(line: &mut String, word: &str) {
    line.extend([" '", word, "'"]);
}

fn line(rng: &mut Rng) -> String {
    let program = rng.pick(PROGRAMS);
    let mut line = program.to_owned();
    let starts = STARTS.iter().find(|(name, _)| *name == program).map(|(_, starts)| *starts);
    if let Some(starts) = starts.filter(|_| rng.chance(80)) {
        let start = rng.pick(starts);
        for word in start.split(' ') {
            push(&mut line, word);
        }
    }
    for _ in 0..rng.below(4) {
        if rng.chance(10) {
            line.extend([" ", rng.pick(EXPANDED)]);
            continue;
        }
        let word = if rng.chance(50) { rng.pick(OPTIONS) } else { rng.pick(WORDS) };
        // Some options are put together to a group, as people do.
        push(&mut line, word);
        if rng.chance(10) && word.len() == 2 && word.starts_with('-') {
            line.pop();
            line.push_str(&rng.pick(OPTIONS).replace('-', ""));
            line.push('\'');
        }
    }
    line
}

#[test]
fn what_is_called_looking_changes_nothing() {
    let seed = lines::seed(SEED);
    println!("seed {seed}");
    let jail = Jail::new();
    let present = PROGRAMS.iter().filter(|name| jail.add_program(name)).count();
    fill(&jail);
    let mut rng = Rng::new(seed);
    let mut lines: Vec<String> = (0..LINES).map(|_| line(&mut rng)).collect();
    lines.sort();
    lines.dedup();
    let looks = |line: &String| {
        // It would wait for more to come.
        let waits = line.starts_with("tail") && line.contains('f') || line.contains("/dev/stdin");
        let commands = analyse(line).plain.unwrap_or_default();
        let only_looks = commands.iter().all(|command| {
            matches!(command.effect, LineEffect::Looks | LineEffect::LooksAtStart)
                && command.writes.is_empty()
        });
        !commands.is_empty() && only_looks && !waits
    };
    lines.retain(looks);
    println!("{} lines look, {present} programs are there", lines.len());
    assert!(lines.len() > 800, "only {} lines look", lines.len());
    let before = tree(&jail);
    for part in lines.chunks(200) {
        jail.run("looking", part.iter().map(String::as_str));
        let after = tree(&jail);
        assert!(
            after == before,
            "one of these lines changed a file: {part:#?}\n{:?}",
            difference(&before, &after)
        );
    }
}

/// What is new, gone or other.
fn difference(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let changed = after
        .iter()
        .filter(|(path, content)| before.get(*path) != Some(content))
        .map(|(path, _)| path.clone());
    let gone = before.keys().filter(|path| !after.contains_key(*path)).cloned();
    changed.chain(gone).collect()
}

/// Words for `ps`, in any order: letters with and without a dash, fields, values that are wrong.
const PROCESS_WORDS: &[&str] = &[
    "-e",
    "-ef",
    "-A",
    "-a",
    "-x",
    "-u",
    "-f",
    "-l",
    "-w",
    "-ww",
    "-H",
    "-T",
    "-L",
    "-j",
    "-E",
    "-axe",
    "-eax",
    "-eo",
    "-o",
    "-p",
    "aux",
    "auxww",
    "axf",
    "ax",
    "e",
    "x",
    "f",
    "ww",
    "o",
    "p",
    "axo",
    "1",
    "pid,args",
    "pid=,comm",
    "args",
    "environ",
    "pid,environ",
    "nobody9",
    "here",
    "--sort=-rss",
    "--sort",
    "rss",
    "--sort=x",
    "--forest",
    "--no-headers",
    "--format=environ",
    "-C",
    "-O",
    "user:20,cmd",
];

/// A process whose environment holds a secret, ended with the test.
struct Secretive(std::process::Child);

impl Drop for Secretive {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn no_list_of_processes_shows_an_environment() {
    const SECRET: &str = "a-secret-of-one-process";
    let sleeper = Command::new("sleep").arg("60").env("SHOWN_BY_NOBODY", SECRET).spawn().unwrap();
    let _sleeper = Secretive(sleeper);
    let shows = |arguments: &[&str]| {
        let output = Command::new("ps").args(arguments).env_clear().env("COLUMNS", "10000").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(SECRET))
    };
    if !shows(&["axeww"]) {
        println!("there is no `ps` that shows environments");
        return;
    }
    let mut rng = Rng::new(lines::seed(SEED));
    let mut tried = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        let arguments: Vec<&str> = (0..=rng.below(4)).map(|_| rng.pick(PROCESS_WORDS)).collect();
        let line = format!("ps {}", arguments.join(" "));
        let looks = || analyse(&line).plain.unwrap()[0].effect == LineEffect::Looks;
        if looks() && tried.insert(line.clone()) {
            assert!(!shows(&arguments), "{line}");
        }
    }
    assert!(tried.len() > 100, "only {} lines look", tried.len());
}
