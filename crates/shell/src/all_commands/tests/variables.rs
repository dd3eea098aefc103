//! What the line sets variables to, and how long all that takes.

use super::found;
use crate::analyse;

#[test]
fn variables_are_known_only_if_nothing_else_sets_them() {
    let check = |line: &str, expected: &str| {
        let found = found(line);
        assert_eq!(found.iter().rfind(|command| !command.is_empty()).unwrap(), expected, "{line:?}");
    };
    check("x=ls; $x a", "ls a");
    check("x=ls\n$x a", "ls a");
    check("x=ls && $x a", "ls a");
    check("x='a b'; cat \"$x\"", "cat a b");
    check("x=a; for i in 1 2; do cat $x; done", "cat a");
    for line in [
        "x='rm *'; $x",
        "x=*; $x",
        "x=; $x",
        "x=ls | y; $x",
        "x=ls & $x",
        "x=ls && y & $x",
        "false && x=ls; $x",
        "a ||\nx=ls; $x",
        "if a; then x=ls; fi; $x",
        "while a; do x=ls; done; $x",
        "for i in 1; do x=ls; done; $x",
        "case a in b) x=ls;; esac; $x",
        "f() { x=ls; }; $x",
        "(x=ls); $x",
        "$x; x=ls",
        "x=ls; y=rm; declare -n y=x; $x",
        "x=ls; source f; $x",
        "x=ls; . f; $x",
        "x=ls; eval \"$y\"; $x",
        "x=ls; read x; $x",
        "x=ls; read $y; $x",
        "x=ls; readonly x=rm; $x",
        "x=ls; : ${x:=rm}; $x",
        "x=ls; printf -v $'\\x78' rm; $x",
        "x=ls; printf -v \"$y\" rm; $x",
        "IFS=z; x=lsza; $x",
        "x=ls; x=rm; $x",
        "x=ls; x+=a; $x",
        "x=~/a; $x",
        "coproc x=ls; $x",
        "x=ls > f; $x",
    ] {
        let unseen = analyse(line).unseen;
        assert!(unseen.is_some(), "{line:?}: {:?}", found(line));
    }
    check("x='-rf /'; rm $x", "rm -rf /");
    check("x=' ls  -la '; $x", "ls -la");
    check("x='a b'; cat c$x'd'", "cat ca bd");
    check("x='rm a'; nice $x", "rm a");
    check("x='a b'; y=$x; cat $y", "cat ?");
    check("x='a b'; cat $x$x", "cat a ba b");
    check("x='if a'; $x", "if a");
    check("for d in / /etc; do rm -rf $d; done", "rm -rf ?");
    check("x=ls; while :; do $x a; x=rm; done", "? a");
    check("HOME=/; cat $HOME/a", "cat //a");
    check("HOME=$x; cat $HOME/a", "cat ?/a");
}

/// The limit leaves room for a machine that is busy; what is not linear takes minutes here.
#[test]
fn time_goes_with_length() {
    let time = |line: &str| {
        let start = std::time::Instant::now();
        let _ = analyse(line);
        start.elapsed()
    };
    let mut doubling = "a=xx; a0=$a$a".to_owned();
    for at in 0..60 {
        doubling = format!("{doubling}; a{}=$a{at}$a{at}", at + 1);
    }
    let lines = [
        format!("{doubling}; $a60"),
        format!("{doubling}; cat {}", "$a9".repeat(30_000)),
        format!("rm {}", "abc ".repeat(50_000)),
        "sudo env ".repeat(10_000),
        "$(".repeat(50_000),
        "(".repeat(50_000),
        "\"$(".repeat(30_000),
        "`".repeat(50_000),
        "cd a; ".repeat(20_000),
        "a=b; ".repeat(20_000),
        "x$y=1 ".repeat(20_000),
        "cat <<E\n".repeat(10_000),
        "{a,b}".repeat(10_000),
        "sh -c 'ls' ".repeat(10_000),
        "docker ".repeat(20_000),
        "eval ".repeat(20_000),
        "[[ ".repeat(20_000),
        "case a in ".repeat(10_000),
        "timeout --a ".repeat(10_000),
    ];
    for line in lines {
        let took = time(&line);
        assert!(took.as_secs() < 5, "{took:?} for {}…", &line[..20]);
    }
}
