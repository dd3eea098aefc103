use crate::{LineEffect, StrictCommand, analyse};

/// The commands of a line: words with `|` between, commands with ` / ` between, a `?` for what is only known at run time.
fn shown(line: &str) -> String {
    match analyse(line).plain {
        Ok(commands) => commands.iter().map(words).collect::<Vec<_>>().join(" / "),
        Err(reason) => format!("not plain: {reason}"),
    }
}

fn words(command: &StrictCommand) -> String {
    let words: Vec<String> = command.words.iter().map(|word| word.text.replace('\0', "?")).collect();
    words.join("|")
}

fn check(line: &str, expected: &str) {
    assert_eq!(shown(line), expected, "{line:?}");
}

#[test]
fn words_are_what_bash_makes_of_them() {
    check("a b  c\td", "a|b|c|d");
    check("a 'b  c' \"d  e\" f\\ g", "a|b  c|d  e|f g");
    check("a \"b\"'c'd", "a|bcd");
    check("a \"\\$x \\\" \\\\ \\n\"", "a|$x \" \\ \\n");
    check("a '' \"\"", "a||");
    check("a $'x\\ty\\'z'", "a|x\ty'z");
    check("a b\\\nc", "a|bc");
    check("a \\\n b", "a|b");
    check("a # b", "a");
    check("a b#c", "a|b#c");
    check("a ~ ~/x '~' x~ \\~", "a|~|~/x|~|x~|~");
    check("a $x \"$x\" ${x} \"y${x}z\"", "a|?|?|?|y?z");
    check("a $? $$ $1 \"$@\"", "a|?|?|?|?");
    check("a ${x:-y} ${x%.c} ${x##*/} ${#x} ${x/a/b} ${x:1:2} ${x^^}", "a|?|?|?|?|?|?|?");
    check("a \"cost: 5$\" $ x$", "a|cost: 5$|$|x$");
    check("a $HOME/x \"$PWD/y\" $HOMEx", "a|~/x|./y|?");
    check("a {b,c}d {1..3} {} {x} a{b", "a|bd|cd|1|2|3|{}|{x}|a{b");
    check("a \"{b,c}\" \\{b,c\\}", "a|{b,c}|{b,c}");
    check("a HEAD@{1} stash@{0}", "a|HEAD@{1}|stash@{0}");
    check("a =b c=d e+=f", "a|=b|c=d|e+=f");
    check("a $((1 + 2)) \"x$((3*4))y\"", "a|?|x?y");
    check("a ! [ ] % ^ @ + : , .", "a|!|[|]|%|^|@|+|:|,|.");
    check("a if then do", "a|if|then|do");
    check("a \"it's !important!\"", "a|it's !important!");
}

#[test]
fn lists_and_compounds_are_taken_apart() {
    check("a; b && c || d | e |& f & g", "a / b / c / d / e / f / g");
    check("a\nb\n\nc", "a / b / c");
    check("a &&\nb |\nc", "a / b / c");
    check("(a; b) && { c; d; }", "a / b / c / d");
    check("! a && ! b", "a / b");
    check("if a; then b; elif c; then d; else e; fi", "a / b / c / d / e");
    check("while a; do b; done; until c; do d; done", "a / b / c / d");
    check("for i in x y; do a; done", "a");
    check("for i in x y\ndo\na\ndone", "a");
    check("case x in a|b) c;; (d) e;; *) ;; esac", "c / e");
    check("[[ -f x && ! -d y ]] || a", "[[|-f|x|&&|!|-d|y|]] / a");
    check("a \"$(b $(c))\"", "c / b|? / a|?");
    check("a <(b) <(c)", "b / c / a|/dev/fd/?|/dev/fd/?");
    check("time a | b", "a / b");
    check("time -p a", "a");
    check("a > x 2>&1 < y", "a");
    check("> x", "");
    check("(a) > x", "a / ");
    check("a <<'E'\n$(b) `c`\nE\nd", "a / d");
    check("a <<E\nplain\nE", "a");
    check("a <<-'E'\n\tx\n\tE\nb", "a / b");
    check("a <<< 'b c'", "a");
    check("git commit -m \"$(cat <<'E'\nit's \"done\" $x\n\nE\n)\"", "cat / git|commit|-m|it's \"done\" $x");
    check("a \"$(cat <<'E'\nx\nE\n) y\"", "cat / a|x y");
    check("a $(cat <<'E'\nx\nE\n)", "cat / a|?");
    check("while IFS= read -r l; do a \"$l\"; done", "read|-r|l / a|?");
}

#[test]
fn wrappers_and_assignments_are_looked_through() {
    check("timeout 5 a b", "a|b");
    check("timeout -k 5 --signal=KILL 10s a", "a");
    check("nice -n 10 a", "a");
    check("nice -5 nohup a", "a");
    check("stdbuf -oL -e 0 a", "a");
    check("command a", "a");
    check("builtin echo a", "echo|a");
    check("xargs a b", "a|b");
    check("nohup timeout 5 nice a", "a");
    check("NODE_ENV=test LC_ALL=C a", "a");
    check("TZ=Europe/Berlin a", "a");
    check("GIT_PAGER=cat git log", "git|log");
    // Used in another way they are programs like all others.
    check("timeout a", "timeout|a");
    check("timeout --unknown 5 a", "timeout|--unknown|5|a");
    check("timeout $x a", "timeout|?|a");
    check("nice -x a", "nice|-x|a");
    check("command -v a", "command|-v|a");
    check("xargs -n1 a", "xargs|-n1|a");
    check("timeout 5 $x", "timeout|5|?");
    check("env A=1 a", "env|A=1|a");
    check("sudo a", "sudo|a");
}

const NOT_PLAIN: &[&str] = &[
    "a() { b; }",
    "a=(b)",
    "a[0]=b",
    "a+=b",
    "a;;",
    "a ;; b",
    "a &&",
    "| a",
    "a )",
    "( a",
    "{ a",
    "{ a }",
    "if a; fi",
    "for i do a; done",
    "'if' a",
    "\"\"",
    "%1",
    "a ${b@P}",
    "a ${!b}",
    "a ${b[0]}",
    "a ${b:=c}",
    "a ${b:?}",
    "a $\"b\"",
    "a $[1]",
    "coproc a",
    "select a in b; do c; done",
    "[[ a -eq b ]]",
    "[[ a =~ b ]]",
    "[[ -v a ]]",
    "[[ ]]",
    "a {b,{c,d}}",
    "a {a..c}",
    "a b=~",
    "a \\",
    "a {v}> b",
    "a <&b",
    "a 2>&b",
    "a >&-b",
    "a > *",
    "a > {b,c}",
    "time",
    "time -v a",
    "! ! a",
    "for PATH in b; do a; done",
    "while a; do cd b; done",
    "exec a",
    "eval a",
    "trap a EXIT",
    "set_x=1",
    "command",
    "command -- a",
    "command -p a",
    "builtin -x",
    "( )",
    "{ }",
    "a <<E\nb",
    "a <<'E'\nb",
    "for i in a; do for i in b; do c; done; done",
];

#[test]
fn what_is_not_plain_says_why() {
    let check = |line: &str, expected: &str| check(line, &format!("not plain: {expected}"));
    check("a `b`", "it uses a backquote");
    check("a $((x))", "it uses arithmetic");
    check("a $((1+(2)))", "it uses arithmetic");
    check("a $((1) )", "it uses arithmetic");
    check("((a))", "it uses arithmetic");
    check("$a", "the name of a command is only known at run time");
    check("a*", "the name of a command is unusual");
    check("A=1", "it sets A");
    check("CI=1", "it sets a variable");
    check("A=1 a", "it sets A");
    check("a > $b", "the target of a redirection is not a plain path");
    check("a <<E\n$b\nE", "an unquoted here document contains expansions");
    check("a 'b", "a quote is not closed");
    check("a ~b", "it names another user's home directory");
    check("a >(b)", "it uses a process substitution");
    check("function a { b; }", "it uses `function`");
    check("a\u{202e}", "it contains the invisible character U+202E");
    check("alias a=b", "`alias` may change the shell itself");
    check("", "it contains no command");
    check("# a", "it contains no command");
    for line in NOT_PLAIN {
        assert!(analyse(line).plain.is_err(), "{line:?} is {}", shown(line));
    }
    let long = format!("a {}", "b".repeat(10_000));
    check(&long, "it is longer than 10000 bytes");
    let deep = format!("{}a{}", "( ".repeat(65), " )".repeat(65));
    check(&deep, "it is nested too deeply");
    assert!(analyse(&format!("{}a{}", "( ".repeat(64), " )".repeat(64))).plain.is_ok());
}

#[test]
fn sources_are_the_text_of_each_command() {
    let line = "cd x && grep 'a b' f 2>/dev/null | (wc -l) > out; echo \"$(date)\"";
    let commands = analyse(line).plain.unwrap();
    let sources: Vec<&str> = commands.iter().map(|command| &line[command.source.clone()]).collect();
    assert_eq!(sources, ["cd x", "grep 'a b' f 2>/dev/null", "wc -l", "> out", "date", "echo \"$(date)\""]);
}

#[test]
fn directories_are_followed() {
    let check = |line: &str, expected: &str| {
        let commands = analyse(line).plain.unwrap();
        let last = commands.last().unwrap();
        let reads: Vec<String> =
            last.reads.iter().map(|path| format!("{:?}:{}", path.from, path.marked())).collect();
        assert_eq!(format!("{:?} {}", last.directory, reads.join(" ")), expected, "{line:?}");
    };
    check("cat f", "Start Start:f");
    check("cd a && cat f", "Within(\"a\") Within(\"a\"):f");
    check("cd a; cat f", "Unknown Within(\"a\"):f Start:f");
    check("cd a || cat f", "Start Start:f");
    check("cd a && ls; cat f", "Unknown Within(\"a\"):f Start:f");
    check("(cd a && ls); cat f", "Start Start:f");
    check("cd a | ls; cat f", "Start Start:f");
    check("cd a & cat f", "Start Start:f");
    check("{ cd a && ls; } && cat f", "Within(\"a\") Within(\"a\"):f");
    check("! cd a || cat f", "Within(\"a\") Within(\"a\"):f");
    check("if cd a; then cat f; fi", "Within(\"a\") Within(\"a\"):f");
    check("cd a && cd .. && cat f", "Start Start:f");
    check("cd \"$x\" && cat f", "Unknown Unknown:f");
    check("cd - && cat f", "Unknown Unknown:f");
    check("pushd a && cat f", "Unknown Unknown:f");
    check("cd && cat f", "Within(\"~\") Within(\"~\"):f");
    check("command cd a && cat f", "Within(\"a\") Within(\"a\"):f");
    check("nice cd a && cat f", "Start Start:f");
    check("cd /a && cat f", "Within(\"/a\") Within(\"/a\"):f");
    check("cd a && cat \"$(cd b && ls)\" f", "Within(\"a\") Within(\"a\"):\0 Within(\"a\"):f");
}

#[test]
fn redirections_are_named() {
    let check = |line: &str, reads: &[&str], writes: &[&str]| {
        let commands = analyse(line).plain.unwrap();
        let texts = |kind: fn(&StrictCommand) -> &Vec<crate::LinePath>| -> Vec<String> {
            commands.iter().flat_map(|command| kind(command).iter().map(crate::LinePath::marked)).collect()
        };
        assert_eq!(texts(|command| &command.reads), reads, "{line:?}");
        assert_eq!(texts(|command| &command.writes), writes, "{line:?}");
    };
    check("a > b", &[], &["b"]);
    check("a >> b 2> c", &[], &["b", "c"]);
    check("a &> b", &[], &["b"]);
    check("a >& b", &[], &["b"]);
    check("a < b", &["b"], &[]);
    check("a <> b", &["b"], &["b"]);
    check("a > ~/b", &[], &["~/b"]);
    check("a > '~/b'", &[], &["./~/b"]);
    check("a > /dev/null 2>&1 < /dev/null", &[], &[]);
    check("a >&2 3>&-", &[], &[]);
    check("(a) > b", &[], &["b"]);
    check("for i in x; do a; done < b > c", &["b"], &["c"]);
    check("a $(b > c)", &[], &["c"]);
    let commands = analyse("cat < /dev/tcp/localhost/80").plain.unwrap();
    assert_eq!(commands[0].network.as_deref(), Some("/dev/tcp/localhost/80"));
    assert_eq!(commands[0].effect, LineEffect::Unknown);
}

#[test]
fn a_line_may_set_variables_for_itself() {
    check("x=src; cat $x/a", "cat|src/a");
    check("x=src && cat \"$x\"", "cat|src");
    check("x='a b'; cat \"$x\"", "cat|a b");
    check("x='a b'; cat $x", "not plain: a variable in it becomes several words");
    check("x='*'; cat $x \"$x\"", "cat|?|*");
    check("T=foo; cargo test $T", "cargo|test|foo");
    check("x=$(git rev-parse HEAD); echo $x", "git|rev-parse|HEAD / echo|?");
    check("npm test; EXIT=$?; echo $EXIT; exit $EXIT", "npm|test / echo|? / exit|?");
    check("o=--pre=./x; rg $o y", "rg|--pre=./x|y");
    check("x=$HOME/a; cat $x", "cat|?");
    check("x=; cat $x/etc", "cat|?/etc");
    check("for f in a b; do n=$(wc -l < $f); echo $n; done", "wc|-l / echo|?");
    // It may not be set at all.
    check("a && x=src; cat $x/etc", "a / cat|?/etc");
    check("a || x=src; cat $x/etc", "a / cat|?/etc");
    check("(x=src); cat $x/etc", "cat|?/etc");
    check("x=src | a; cat $x/etc", "a / cat|?/etc");
    check("a | x=src; cat $x/etc", "a / cat|?/etc");
    check("if a; then x=src; fi; cat $x/etc", "a / cat|?/etc");
    check("cat $x/etc; x=src", "cat|?/etc");
    check("false && x=$(a); cat $x/etc", "false / a / cat|?/etc");
    let twice = "not plain: it sets a variable twice";
    check("x=src; x=; cat $x/etc", twice);
    check("x=src; (x=/; cat $x/etc)", twice);
    check("x=src; for x in /; do cat $x/etc; done", twice);
    check("for x in a; do x=/etc; cat $x/b; done", twice);
    check("x=src; read -r x; cat $x/etc", twice);
    check("x=src; command read -r x; cat $x/etc", twice);
    check("x=src; export x=/etc; cat $x/b", twice);
    check("x=src; . ./s; cat $x/etc", "not plain: it sources a file that may set its variables");
    check("x=src & cat $x/etc", "not plain: it sets a variable in the background");
    check("x=src && true & cat $x/etc", "not plain: it sets a variable in the background");
    check("PATH=.; a", "not plain: it sets PATH");
    check("x=a b", "not plain: it sets x");
    check("LD_PRELOAD=./x.so; a", "not plain: it sets LD_PRELOAD");
    check("x=1 > f", "not plain: it sets a variable");
    check("x=(a b); cat $x", "not plain: something unexpected follows a command");
}

#[test]
fn harmless_settings_are_looked_through() {
    check("env RUST_BACKTRACE=1 cargo test", "cargo|test");
    check("env CI=1 NODE_ENV=test npm test", "npm|test");
    check("env PATH=. cargo test", "env|PATH=.|cargo|test");
    check("env CI=1 PATH=. cargo test", "env|CI=1|PATH=.|cargo|test");
    check("env -i CI=1 cargo test", "env|-i|CI=1|cargo|test");
    check("env cargo test", "env|cargo|test");
    check("DEBUG=app:* PORT=3000 npm start", "npm|start");
    check("PORT=$(a) npm start", "not plain: it sets PORT");
}
