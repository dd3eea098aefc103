mod code;
mod files;
mod variables;

use crate::analyse;

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
    "sudo -s -- 'rm x'",
    "sudo -s rm x",
    "sudo -i 'rm x'",
    "sshpass -p x rm x",
    "sshpass -p y ssh host rm x",
    "ssh-agent rm x",
    "ssh-agent sh -c 'rm x'",
    "xterm -e rm x",
    "xterm -e 'rm x'",
    "faketime '2020-01-01' rm x",
    "eatmydata rm x",
    "tsocks rm x",
    "proxychains rm x",
    "proxychains4 -q rm x",
    "runcon -t y rm x",
    "schroot -c y -- rm x",
    "capsh -- -c 'rm x'",
    "capsh --drop=y -- -c 'rm x'",
    "ip netns exec y rm x",
    "/lib64/ld-linux-x86-64.so.2 rm x",
    "/lib/ld-linux.so.2 --library-path y rm x",
    "cmake -E rm x",
    "cmake -E env A=1 rm x",
    "pyenv exec rm x",
    "rbenv exec rm x",
    "nodenv exec rm x",
    "fnm exec --using=y rm x",
    "pixi run rm x",
    "toolbox run rm x",
    "toolbox run -c y rm x",
    "poetry run rm x",
    "uv run --with y rm x",
    "pipenv run rm x",
    "hatch run rm x",
    "hatch -e y run 'rm x'",
    "pdm run rm x",
    "conda run -n y rm x",
    "mise exec -- rm x",
    "mise x node@20 -- rm x",
    "direnv exec y rm x",
    "firejail rm x",
    "systemd-run --user -p y rm x",
    "dbus-run-session -- rm x",
    "xvfb-run -a rm x",
    "catchsegv rm x",
    "valgrind --tool=y rm x",
    "perf record -g -- rm x",
    "perf stat rm x",
    "ltrace -f rm x",
    "strace -f -e trace=y rm x",
    "script -c 'rm x' f",
    "script f -c 'rm x'",
    "script --command 'rm x' f",
    "script --command='rm x' f",
    "flock f rm x",
    "flock -n f -c 'rm x'",
    "flock f sh -c 'rm x'",
    "setarch x86_64 rm x",
    "setarch -R rm x",
    "linux32 rm x",
    "unbuffer rm x",
    "watch -d 'rm x'",
    "ls | entr rm x",
    "ls | entr -s 'rm x'",
    "parallel ::: 'rm x'",
    "parallel 'rm x' ::: a",
    "systemd-inhibit --why=y rm x",
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

const UNSEEN: &[&str] = &[
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
    "sed '/x/erm a' f",
    "sed -ne '$erm a' f",
    "sed -n -e p -e 'p;erm a' f",
    "sed --expression='1!erm a' f",
    "sed 's/a/b/gie' f",
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
];

const SEEN: &[&str] = &[
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
    "sed 's/,/ e /g' a",
    "sed -n p src/e2e.rs",
    "sed -n '/a/,/e/p' f",
    "sed -i 's/a/b/w out' f",
    "crontab -l",
    "ls | xargs -I{} cp {} x",
    "perl -ne 'print if /x/' f",
];

#[test]
fn what_cannot_be_found_is_said() {
    let check = |line: &str, expected: bool| {
        assert_eq!(analyse(line).unseen.is_some(), expected, "{line:?}: {:?}", analyse(line).unseen);
    };
    for line in UNSEEN {
        check(line, true);
    }
    for line in SEEN {
        check(line, false);
    }
}
