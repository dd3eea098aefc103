use crate::{FoundCommand, NamedPath, analyse};

/// The commands that are found, a `?` for what is only known at run time.
fn found(line: &str) -> Vec<String> {
    let commands = analyse(line).found;
    commands.iter().map(|command| command.words.join(" ").replace('\0', "?")).collect()
}

fn check(line: &str, expected: &str) {
    let found = found(line);
    assert!(found.iter().any(|command| command == expected), "{line:?} holds {found:?} and not {expected:?}");
}

const ANYWHERE: &[&str] = &[
    "rm x",
    "ls; rm x",
    "ls\nrm x",
    "ls && rm x",
    "ls | rm x",
    "ls & rm x",
    "(rm x)",
    "( (rm x) )",
    "((rm x) )",
    "{ rm x; }",
    "if rm x; then ls; fi",
    "if ls; then rm x; fi",
    "if ls; then ls; else rm x; fi",
    "while ls; do rm x; done",
    "for i in a; do rm x; done",
    "for ((i=0;i<3;i++)); do rm x; done",
    "case a in a) rm x;; esac",
    "case a in (a|b) ls;; c) rm x;; esac",
    "echo $(case a in a) rm x;; esac)",
    "f() { rm x; }",
    "function f { rm x; }",
    "coproc rm x",
    "! rm x",
    "time rm x",
    "echo $(rm x)",
    "echo \"$(rm x)\"",
    "echo \"a $(echo \"$(rm x)\") b\"",
    "echo `rm x`",
    "echo \"`rm x`\"",
    "echo `echo \\`rm x\\``",
    "echo ${v:-$(rm x)}",
    "echo \"${v:-`rm x`}\"",
    "echo ${v/$(rm x)/}",
    "echo ${a[$(rm x)]}",
    "echo $((1 + $(rm x)))",
    "echo $((rm x) )",
    "echo $[$(rm x)]",
    "cat <(rm x)",
    "tee >(rm x)",
    "a=(b $(rm x))",
    "v=$(rm x)",
    "v=$(rm x) ls",
    "ls > $(rm x)",
    "cat <<E\n$(rm x)\nE",
    "cat <<E\n`rm x`\nE",
    "cat <<'E'\ntext\nE\nrm x",
    "[[ -f $(rm x) ]]",
    "[[ a ]] && rm x",
    "[[ a ]];rm x",
    "ls # comment\nrm x",
    "ls 'a' \"b\" c\\ d; rm x",
    "r\\\nm x",
    "'rm' x",
    "r\"m\" x",
    "$'rm' x",
    "$'\\162m' x",
    "$'\\x72m' x",
    "\\rm x",
    "> out rm x",
    "2>&1 rm x",
    "A=1 B=2 rm x",
    "A+=1 rm x",
    "{rm,x}",
    "test -v 'a[$(rm x)]'",
    "printf -v 'a[`rm x`]' y",
    "x='$(rm x)'; echo $((x))",
    "echo 'unclosed $(rm y'; rm x",
];

#[test]
fn commands_are_found_wherever_they_are() {
    for line in ANYWHERE {
        check(line, "rm x");
    }
}

const BEHIND: &[&str] = &[
    "sudo rm x",
    "sudo -u root rm x",
    "sudo -uroot A=1 rm x",
    "sudo -- rm x",
    "sudo env A=1 rm x",
    "env rm x",
    "env -i -u B A=1 rm x",
    "env -S 'rm x'",
    "env --split-string='rm x'",
    "timeout 5 rm x",
    "timeout -k 1 5 rm x",
    "timeout --signal KILL 5 rm x",
    "nice rm x",
    "nice -n 5 rm x",
    "nohup rm x",
    "setsid rm x",
    "ionice -c3 rm x",
    "flock lock rm x",
    "flock -w 5 lock rm x",
    "watch rm x",
    "watch -n 1 'rm x'",
    "stdbuf -oL rm x",
    "command rm x",
    "builtin command rm x",
    "exec rm x",
    "exec -a name rm x",
    "busybox rm x",
    "doas rm x",
    "time -p rm x",
    "taskset 1 rm x",
    "chroot / rm x",
    "strace -o f rm x",
    "sh -c 'rm x'",
    "bash -c \"rm x\"",
    "bash -lc 'rm x'",
    "bash -o pipefail -c 'ls; rm x'",
    "/bin/bash --norc -c 'rm x'",
    "sh -c 'sh -c \"rm x\"'",
    "sudo sh -c 'rm x'",
    "eval 'rm x'",
    "eval rm x",
    "eval \"$(echo; rm x)\"",
    "trap 'rm x' EXIT",
    "alias l='rm x'",
    "echo 'rm x' | sh",
    "sh <<< 'rm x'",
    "sh <<E\nrm x\nE",
    "bash -s <<'E'\nrm x\nE",
    "su -c 'rm x'",
    "su root -c 'rm x'",
    "ssh host rm x",
    "ssh -p 22 host 'rm x'",
    "script -qc 'rm x' f",
    "parallel rm x",
    "docker run image rm x",
    "docker exec -it box sh -c 'rm x'",
    "kubectl exec pod -- rm x",
    "npx rm x",
    "uv run rm x",
    "git -c alias.y='!rm x' y",
    "git -c core.pager='rm x' log",
    "git submodule foreach 'rm x'",
    "git submodule foreach rm x",
    "git bisect run rm x",
    "git rebase -x 'rm x' HEAD~1",
    "git rebase --exec='rm x' HEAD~1",
    "git difftool --extcmd='rm x'",
    "tar --to-command='rm x' -xf f",
    "tar --checkpoint-action=exec='rm x' -xf f",
    "sort --compress-program='rm x' f",
    "ssh -o ProxyCommand='rm x' host",
    "python3 -c 'import os; os.system(\"rm x\")'",
    "perl -e 'system(\"rm x\")'",
    "node -e 'require(\"child_process\").execSync(\"rm x\")'",
    "awk 'BEGIN{system(\"rm x\")}'",
    "jobs -x rm x",
    "at now <<< 'rm x'",
    "ssh host <<'E'\nrm x\nE",
    "flock .l -c 'rm x'",
    "flock --command 'rm x' .l",
    "coproc X { rm x; }",
    "coproc X while rm x; do ls; done",
    "coproc X (rm x)",
    "coproc { rm x; }",
    "eval -- rm x",
    "env - rm x",
    "env -vS 'rm x'",
    "env -iS'rm x'",
    "env -S rm x",
    "env -S 'A=1 rm' x",
    "trap -- 'rm x' 0",
    "csh -c 'rm x'",
    "tcsh -fc 'rm x'",
    "pwsh -c 'rm x'",
    "pwsh -Command 'rm x'",
    "fish -c 'rm x'",
    "zsh -c 'rm x'",
    "batch <<< 'rm x'",
    "echo 'rm x' | at now",
    "at now <<E\nrm x\nE",
    "tmux new -d 'rm x'",
    "tmux new-session -d rm x",
    "screen -dm sh -c 'rm x'",
    "npx -c 'rm x'",
    "npm exec -c 'rm x'",
    "npm exec -- rm x",
    "tar -I 'rm x' -xf y",
    "tar -cI'rm x' -f y",
    "tar --use-compress-program 'rm x' -xf y",
    "man -P 'rm x' y",
    "GIT_PAGER='rm x' git log",
    "GIT_EDITOR='rm x' git commit",
    "export PAGER='rm x'",
    "PAGER='rm x'; man y",
    "env EDITOR='rm x' crontab -e",
    "LESSOPEN='|rm x' less y",
    "git grep -O'rm x' y",
    "git grep --open-files-in-pager='rm x' y",
    "vim -c '!rm x'",
    "vim '+!rm x' y",
    "vi -c ':silent !rm x'",
    "docker compose exec box rm x",
    "docker --context a exec box rm x",
    "kubectl -n a exec pod -- rm x",
];

#[test]
fn options_in_front_hide_no_subcommand() {
    for line in [
        "git -C x push a",
        "git -c a=b push a",
        "git --no-pager push a",
        "git --git-dir=x --work-tree y -p push a",
        "sudo git -C x push a",
        "/usr/bin/git -C x push a",
    ] {
        check(line, "git push a");
    }
    check("docker --context a push b", "docker push b");
    check("kubectl -n a --context=b delete pod", "kubectl delete pod");
    check("npm --prefix a publish", "npm publish");
    check("cargo +nightly --offline publish", "cargo publish");
    check("gh -R a/b pr merge", "gh pr merge");
}

#[test]
fn commands_are_found_behind_what_runs_them() {
    for line in BEHIND {
        check(line, "rm x");
    }
    for line in [
        "compgen -C 'rm x'",
        "complete -C 'rm x' y",
        "mapfile -C 'rm x' -c1 y < f",
        "readarray -c1 -C'rm x' y",
    ] {
        check(line, "rm x ?");
    }
    check("xargs rm -f", "rm -f ?");
    check("ls | xargs -0 -n1 rm", "rm ?");
    check("find . -exec rm {} \\;", "rm ./?");
    check("find a b -exec rm {} \\;", "rm b/?");
    check("find src -type f -execdir rm -f {} +", "rm -f src/?");
    check("find / -ok rm {} ';'", "rm /?");
    check("sudo env X=1 /bin/rm -rf x", "/bin/rm -rf x");
    check("rm $X", "rm ?");
    check("rm \"$X\"/*", "rm ?/*");
}

#[test]
fn words_are_no_commands() {
    for line in [
        "ls | xargs grep rm",
        "echo rm x",
        "printf '$(rm x)'",
        "grep 'rm x' f",
        "git log --grep='rm x'",
        "time ls rm",
        "docker rm x",
        "docker image rm x",
        "npm run rm",
        "npm rm x",
        "npm run test -- --grep 'rm x'",
        "kubectl rm x",
        "yarn rm x",
        "uv pip install rm",
        "git log -O",
    ] {
        let found = found(line);
        assert!(!found.iter().any(|command| command.starts_with("rm")), "{line:?} holds {found:?}");
    }
}

#[test]
fn what_cannot_be_found_is_said() {
    let check = |line: &str, expected: bool| {
        assert_eq!(analyse(line).unseen.is_some(), expected, "{line:?}: {:?}", analyse(line).unseen);
    };
    for line in [
        "$X y",
        "\"$X\" y",
        "$(echo rm) y",
        "`echo rm` y",
        "sudo $X",
        "r* y",
        "/bin/r? y",
        "curl x | sh",
        "cat x | bash -s",
        "base64 -d x | sudo bash",
        "sh -c \"$X\"",
        "sh -c \"ls; $X\"",
        "eval \"$X\"",
        "eval $(cat x)",
        "source <(curl x)",
        ". /dev/stdin",
        "source \"$X\"",
        "bash <(curl x)",
        "hash -p /bin/rm ls",
        "enable -f x y",
        "echo 'unclosed",
        "echo \"unclosed",
        "echo `unclosed",
        "echo ${unclosed",
        "cat <<E\nunclosed",
        "echo ${x@P}",
        "find . -exec $X {} \\;",
        "xargs $X",
        "env $X",
        "x\0y",
        "ls | xargs -I{} {} a",
        "ls | xargs -I % sh -c '% a'",
        "ls | xargs -i {} a",
        "ls | xargs --replace {} a",
        "sed '1e rm a' f",
        "sed e f",
        "sed -n '$!e date' f",
        "sed 's/a/b/e' f",
        "sed 's|a|b|ge' f",
        "crontab -",
        "echo '* * * * * rm x' | crontab -",
        "crontab f",
        "at -f f now",
        "cat f | at now",
        "perl -e '`rm x`'",
        "ruby -e 'puts `rm x`'",
        "ruby -e '%x(rm x)'",
        "perl -e 'qx(rm x)'",
        "pwsh -EncodedCommand x",
    ] {
        check(line, true);
    }
    for line in [
        "ls -la",
        "rm -rf x",
        "cat $X",
        "echo \"$(date)\"",
        "for f in *; do cat \"$f\"; done",
        "source venv/bin/activate",
        "bash x.sh",
        "./build.sh",
        "make",
        "ls | xargs rm",
        "find . -name '*.c' -exec grep x {} +",
        "sh -c 'ls'",
        "cat <<'E'\n$(x)\nE",
        "ls | grep x",
        "[[ -f a ]] && ls",
        "a=1; echo $a",
        "sed -n 's/see/tree/gp' f",
        "sed -e '1,5d' -e 's/a/the end/' f",
        "sed -i 's/one/two/' file",
        "sed '/^use /d' f",
        "crontab -l",
        "ls | xargs -I{} cp {} x",
        "perl -ne 'print if /x/' f",
    ] {
        check(line, false);
    }
}

/// Paths of one kind, with the directory they are relative to if that is not the start.
fn paths(line: &str, kind: impl Fn(&FoundCommand) -> &Vec<NamedPath>) -> Vec<String> {
    let name = |path: &NamedPath| path.text.replace('\0', "?");
    analyse(line)
        .found
        .iter()
        .flat_map(|command| kind(command).iter().map(name).collect::<Vec<_>>())
        .collect()
}

#[test]
fn files_that_may_be_read() {
    for line in [
        "cat .env",
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
    ] {
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
    check("x='-rf /'; rm $x", &["?"]);
    check("x='a /'; rm -rf $x", &["?"]);
    check("x=~; rm -rf $x", &["?"]);
    check("x=$HOME; rm -rf $x", &["?"]);
    check("for d in / /etc; do rm -rf $d; done", &["?"]);
    check("bash -c \"rm -rf $HOME\"", &["?"]);
    check("find / -exec rm -rf {} +", &["/?"]);
    check("find a / -exec rm -rf {} +", &["a/?", "/?"]);
    check("find -L / -exec rm -rf {} +", &["/?"]);
    check("find / -delete", &["/"]);
    check("find -L ~ a -delete", &["~", "a"]);
    check("find / -name x -delete", &["/?"]);
    check("find a -name x -delete", &["a/?"]);
    check("find -name x -delete", &["./?"]);
    check("find . -name x", &[]);
}

#[test]
fn directories_are_followed() {
    let places = |line: &str| -> Vec<String> {
        let found = analyse(line).found;
        found.last().map_or(Vec::new(), |command| {
            command.reads.iter().map(|path| format!("{:?}:{}", path.from, path.text)).collect()
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
        "x='rm a'; $x",
        "x='rm a'; nice $x",
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
    check("x='-rf /'; rm $x", "rm ?");
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
        doubling.push_str(&format!("; a{}=$a{at}$a{at}", at + 1));
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
