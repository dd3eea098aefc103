//! What commands may read, write and remove, and where they run.

use crate::{LinePath, LooseCommand, analyse};

/// Paths of one kind, with the directory they are relative to if that is not the start.
fn paths(line: &str, kind: impl Fn(&LooseCommand) -> &Vec<LinePath>) -> Vec<String> {
    let name = |path: &LinePath| path.text.marked("?").into_owned();
    analyse(line)
        .found
        .iter()
        .flat_map(|command| kind(command).iter().map(name).collect::<Vec<_>>())
        .collect()
}

const READ: &[&str] = &[
    "cat .env",
    "gvim .env",
    "rview .env",
    "nvimdiff a .env",
    "cat<.env",
    "cat < .env",
    "< .env cat",
    "head -c9 .env",
    "sed -n p .env",
    "sed -n -e p .env",
    "grep x .env",
    "grep -e x .env",
    "grep -A 3 x .env",
    "awk 1 .env",
    "sort .env",
    "base64 .env",
    "source .env",
    ". .env",
    "cp .env x",
    "mv .env x",
    "tar czf x.tgz .env",
    "zip x .env",
    "curl -d @.env x",
    "curl -T .env x",
    "curl --data-binary=@.env x",
    "curl -F f=@.env x",
    "curl file://.env",
    "dd if=.env",
    "git show HEAD:.env",
    "git diff --no-index /dev/null .env",
    "python3 .env",
    "node .env",
    "sudo cat .env",
    "sh -c 'cat .env'",
    "echo $(cat .env)",
    "echo \"$(<.env)\"",
    "while read l; do echo $l; done < .env",
    "f=.env; cat $f",
    "cat \"\"'.e'nv",
    "xargs cat < .env",
    "find . -exec cat .env \\;",
    "openssl enc -in .env",
    "rsync .env host:",
    "scp .env host:",
    "diff .env x",
    "vim .env",
    "wc -l -- .env",
    "rg --file=.env x",
    "xargs -a .env echo",
    "xargs -0a.env echo",
    "xargs --arg-file=.env echo",
    "date -f .env",
    "date --file .env",
    "awk 'BEGIN{while((getline l < \".env\")>0) print l}'",
    "cat .{x,env}",
    "cat {.env,x}",
];

#[test]
fn files_that_may_be_read() {
    for line in READ {
        let paths = paths(line, |command| &command.reads);
        assert!(paths.iter().any(|path| path == ".env"), "{line:?} reads {paths:?}");
    }
    for line in ["head -c9 \"$PWD/.env\"", "cat ./.env", "cat ${PWD}/.env"] {
        let paths = paths(line, |command| &command.reads);
        assert!(paths.iter().any(|path| path == "./.env"), "{line:?} reads {paths:?}");
    }
    for line in ["cat ~/.env", "cat $HOME/.env", "cat \"${HOME}/.env\"", "cat \"$HOME\"/.env"] {
        let paths = paths(line, |command| &command.reads);
        assert!(paths.iter().any(|path| path == "~/.env"), "{line:?} reads {paths:?}");
    }
    for line in
        ["grep .env .gitignore", "echo .env", "sed s/.env/x/ f", "git commit -m .env", "rg '.env' src"]
    {
        let paths = paths(line, |command| &command.reads);
        assert!(
            line.starts_with("git") || !paths.iter().any(|path| path == ".env"),
            "{line:?} reads {paths:?}"
        );
    }
}

#[test]
fn files_that_may_be_written() {
    for line in [
        "echo x > f",
        "echo x >> f",
        "echo x >| f",
        "echo x &> f",
        "echo x 2> f",
        "> f",
        "ls | tee f",
        "tee -a f",
        "cp a f",
        "cp -t f a",
        "mv a f",
        "mv f a",
        "ln -s a f",
        "install a f",
        "dd of=f",
        "sed -i s/a/b/ f",
        "sed -n -i p f",
        "sed --in-place s/a/b/ f",
        "perl -pi -e s/a/b/ f",
        "sort -o f a",
        "sort --output=f a",
        "rm f",
        "rmdir f",
        "truncate -s0 f",
        "touch f",
        "mkdir f",
        "chmod +x f",
        "curl -o f x",
        "curl -of x",
        "wget -O f x",
        "tar -xf a -C f",
        "sudo tee f",
        "sh -c 'echo > f'",
        "(echo) > f",
        "{ echo; } > f",
        "for i in a; do echo; done > f",
        "uniq a f",
        "patch f",
        "xxd a f",
        "awk '{print > \"f\"}'",
        "shuf -o f a",
        "vimdiff a f",
        "gvim f",
        "shuf --output=f a",
        "git archive -o f HEAD",
        "git archive --output=f HEAD",
        "git archive --output f HEAD",
        "git format-patch -o f HEAD~1",
        "cmake -E copy a f",
        "cmake -E touch f",
        "git config --file f a.b c",
        "git config -f f a.b c",
        "git config --file=f --unset a.b",
        "awk '{print $1 >> \"f\"; next}' a",
    ] {
        let paths = paths(line, |command| &command.writes);
        assert!(paths.iter().any(|path| path == "f"), "{line:?} writes {paths:?}");
    }
    assert_eq!(paths("diff <(ls a) <(ls b)", |command| &command.reads), ["a", "b"]);
    assert_eq!(paths("ls | tee >(wc)", |command| &command.writes), Vec::<String>::new());
    let inside = paths("cp hooks/pre-commit .git/hooks", |command| &command.writes);
    assert!(inside.contains(&".git/hooks/pre-commit".to_owned()), "{inside:?}");
}

#[test]
fn settings_of_git_are_files() {
    let writes = |line: &str| paths(line, |command| &command.writes);
    assert_eq!(writes("git config a.b c"), [".git/config"]);
    assert_eq!(writes("git config set a.b c"), [".git/config"]);
    assert_eq!(writes("git config --global a.b c"), ["~/.gitconfig", "~/.config/git/config"]);
    assert_eq!(writes("git config --unset a.b"), [".git/config"]);
    for line in ["git config a.b", "git config --get a.b", "git config -l", "git config get a.b"] {
        assert_eq!(writes(line), Vec::<String>::new(), "{line:?}");
    }
    for line in ["git config -l", "git config --global --list", "git config --global --get a.b"] {
        let paths = paths(line, |command| &command.reads);
        assert!(paths.iter().any(|path| path == "~/.gitconfig"), "{line:?} reads {paths:?}");
    }
}

#[test]
fn git_shows_what_is_in_files() {
    let shown = |line: &str| -> Vec<String> {
        let reads = analyse(line).found.into_iter().flat_map(|command| command.reads);
        let mut shown: Vec<String> =
            reads.filter(|path| path.is_recursive).map(|path| path.marked()).collect();
        shown.dedup();
        shown
    };
    for line in [
        "git grep x",
        "git grep -n -A 3 x.rs",
        "git grep x main",
        "git diff",
        "git diff HEAD~1",
        "git diff --cached",
        "git diff --stat -p",
        "git show",
        "git show HEAD",
        "git log -p",
        "git log -S x",
        "git log -Gx",
        "git log --patch -3",
        "git log -p --author a.b",
        "git stash show -p",
        "sudo git -c a=b diff",
    ] {
        assert!(shown(line).contains(&".".to_owned()), "{line:?} shows {:?}", shown(line));
    }
    assert_eq!(shown("git diff HEAD -- a b"), ["a", "b"]);
    assert_eq!(shown("git grep x -- a"), ["a"]);
    assert_eq!(shown("git grep x src/"), ["src/"]);
    assert_eq!(shown("git diff a.rs"), ["a.rs"]);
    for line in [
        "git status",
        "git log",
        "git log --oneline -5",
        "git log --stat",
        "git diff --stat",
        "git diff --name-only HEAD",
        "git show --stat HEAD",
        "git show HEAD:a",
        "git stash show",
        "git stash list",
        "git branch",
    ] {
        assert_eq!(shown(line), Vec::<String>::new(), "{line:?}");
    }
}

#[test]
fn what_may_be_removed() {
    let check = |line: &str, expected: &[&str]| {
        assert_eq!(paths(line, |command| &command.removes), expected, "{line:?}");
    };
    check("rm -rf /", &["/"]);
    check("rm -rf ~", &["~"]);
    check("rm -rf $HOME", &["~"]);
    check("rm -rf \"$X\"/*", &["?/*"]);
    check("rm -rf $X/", &["?/"]);
    check("sudo rm -rf -- .", &["."]);
    check("sh -c 'rm -rf /usr'", &["/usr"]);
    check("rmdir a b", &["a", "b"]);
    check("rm -rf '~'", &["./~"]);
    check("cd a && rm -rf ..", &[".."]);
    check("cat a", &[]);
    check("rm -rf ${HOME:?}", &["~"]);
    check("rm -rf \"${HOME:?}\"/a", &["~/a"]);
    check("rm -rf ${HOME:0:1}", &["?"]);
    check("rm -rf ${PWD:-/}", &["."]);
    check("rm -rf \"$(pwd)\"", &["."]);
    check("rm -rf $(pwd -P)/..", &["./.."]);
    check("rm -rf `pwd`", &["."]);
    check("rm -rf ~+", &["."]);
    check("rm -rf ~+/a", &["./a"]);
    check("rm -rf ~-", &["?"]);
    check("rm -rf ~dev", &["?", "~"]);
    check("rm -rf ~dev/a", &["?/a", "~/a"]);
    check("rm -rf /$X", &["/?"]);
    check("rm -rf /*/*", &["/*/*"]);
    check("nice -n\"$X\" 5 rm -rf ~", &["~"]);
    // Once as a part of the whole, and once as a part of what the wrapper runs.
    check("env $X rm -rf ~", &["~", "~"]);
    check("$X /bin/rm -rf ~", &["~"]);
    check("$X eval 'rm -rf ~'", &["~"]);
    check("sudo -u\"$X\" root sh -c 'rm -rf ~'", &["~"]);
    check("find -D\"$X\" tree ~ -delete", &["?/?"]);
    check("find -D tree ~ -delete", &["?/?"]);
    check("git -C \"$X\" rm -r .", &[]);
    check("echo \"$X\" rm -rf ~", &[]);
    check("grep \"$X\" rm", &[]);
    check("x='-rf /'; rm $x", &["/"]);
    check("x='a /'; rm -rf $x", &["a", "/"]);
    check("x='/*'; rm -rf $x", &["?"]);
    check("x=~; rm -rf $x", &["?"]);
    check("x=$HOME; rm -rf $x", &["?"]);
    check("for d in / /etc; do rm -rf $d; done", &["/", "/etc"]);
    check("for d in a{b,c}; do rm -rf \"x/$d\"; done", &["x/ab", "x/ac"]);
    check("for d in a; do rm -rf $d$e; done", &["?"]);
    check("for d in a; do rm -rf $d\"$e\"; done", &["??"]);
    check("for d in a; do rm -rf $e$d; done", &["?"]);
    check("for d in a *; do rm -rf $d; done", &["a", "*"]);
    check("for d in a; do d=/; rm -rf $d; done", &["?"]);
    check("for d in a; do source f; rm -rf $d; done", &["?"]);
    check("for d in 'a /'; do rm -rf $d; done", &["?"]);
    check("for d in; do ls; done; rm -rf /$d", &["/?"]);
    check("ls && for d in a; do ls; done; rm -rf /$d", &["/?"]);
    check("for d in a; do ls; done & rm -rf /$d", &["/?"]);
    check("for d in a; do ls; done | cat; rm -rf /$d", &["/?"]);
    check("for d in a; do if b; then rm -rf /$d; fi; done", &["/a"]);
    check("rm -rf /$d; for d in a; do ls; done", &["/?"]);
    check("bash -c \"rm -rf $HOME\"", &["?"]);
    check("find / -exec rm -rf {} +", &["/?", "/"]);
    check("find a / -exec rm -rf {} +", &["a/?", "a", "/?", "/"]);
    check("find -L / -exec rm -rf {} +", &["/?", "/"]);
    check("find ~ -exec rm -rf {} \\;", &["~/?", "~"]);
    check("find $HOME -depth -execdir rm -rf {} +", &["~/?", "~"]);
    check("find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +", &["./?", "."]);
    check("find .. -xdev -type d -exec rm -rf {} +", &["../?", ".."]);
    check("find -exec rm -rf {} +", &["./?", "."]);
    check("find /srv -exec rm -rf {} +", &["/srv/?", "/srv"]);
    check("find ~ -name '*' -exec sudo rm -rf -- {} +", &["~/?", "~"]);
    check("find ~ ! -name x -exec rm -rf {} +", &["~/?", "~"]);
    check("find ~ -name x -o -exec rm -rf {} +", &["~/?", "~"]);
    check("find -x / -exec rm -rf {} +", &["/?", "/"]);
    check("find . -name x -exec rm -rf {} +", &["./?"]);
    check("find . -type f -exec rm {} +", &["./?"]);
    check("find . -mtime -5 -exec rm {} +", &["./?"]);
    check("find ~ -maxdepth 2 -delete", &["~"]);
    check("find ~ -type d -delete", &["~"]);
    check("fd . / -x rm -rf", &["/?", "/"]);
    check("fd -H . ~ -X rm -rf {}", &["~/?", "~"]);
    check("fd -e o -x rm", &["./?"]);
    check("fd x build -x rm -rf", &["build/?"]);
    check("find / -delete", &["/"]);
    check("find -L ~ a -delete", &["~", "a"]);
    check("find / -name x -delete", &["/?"]);
    check("find a -name x -delete", &["a/?"]);
    check("find -name x -delete", &["./?"]);
    check("find . -name x", &[]);
    check("rm -rf ~/$X", &["~/?", "~/"]);
    check("rm -rf ./$X", &["./?", "./"]);
    check("rm -rf \"$HOME/$X\"", &["~/?", "~/"]);
    check("rm -rf \"$HOME/$X$Y\"", &["~/?", "~/"]);
    check("rm -r a/$X", &["a/?", "a/"]);
    check("rm -rf ../$(cat y)", &["../?", "../"]);
    check("rm -rf a/x$X", &["a/x?"]);
    check("rm ./$X", &["./?"]);
    check("for d in a b; do rm -rf ./$d; done", &["./a", "./b"]);
}

#[test]
fn directories_are_followed() {
    let places = |line: &str| -> Vec<String> {
        let found = analyse(line).found;
        found.last().map_or(Vec::new(), |command| {
            command.reads.iter().map(|path| format!("{:?}:{}", path.from, path.marked())).collect()
        })
    };
    let check = |line: &str, expected: &[&str]| assert_eq!(places(line), expected, "{line:?}");
    check("cat f", &["Start:f"]);
    check("cd a && cat f", &["Within(\"a\"):f"]);
    check("cd a; cat f", &["Start:f", "Within(\"a\"):f"]);
    check("cd a && cd b && cat f", &["Within(\"a/b\"):f"]);
    check("cd a && cd .. && cat f", &["Start:f"]);
    check("(cd a); cat f", &["Start:f"]);
    check("cd \"$X\" && cat f", &["Unknown:f"]);
    check("cd - && cat f", &["Unknown:f"]);
    check("cd && cat f", &["Within(\"~\"):f"]);
    check("cd a && cat /f", &["Within(\"a\"):/f"]);
    check("pushd a && cat f", &["Within(\"a\"):f"]);
    check("popd && cat f", &["Unknown:f"]);
}

#[test]
fn options_in_a_file_may_name_any_file() {
    for (line, expected) in [
        ("curl -K x", true),
        ("curl -sKx", true),
        ("curl --config x", true),
        ("curl -sSf https://example.com/x", false),
    ] {
        let is_any = |paths: Vec<String>| paths.iter().any(|path| path == "?");
        assert_eq!(is_any(paths(line, |command| &command.reads)), expected, "{line}");
        assert_eq!(is_any(paths(line, |command| &command.writes)), expected, "{line}");
    }
}
