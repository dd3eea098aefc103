use crate::analyse;

/// How many words of the last command of a line a rule with a star has to spell out.
#[track_caller]
fn check(line: &str, expected: impl Into<Option<usize>>) {
    let commands = analyse(line).plain.unwrap_or_else(|reason| panic!("{line:?}: {reason}"));
    assert_eq!(commands.last().unwrap().spelled, expected.into(), "{line:?}");
}

/// Whether any word has to be spelled out.
#[track_caller]
fn check_all(lines: &[&str], expected: bool) {
    for line in lines {
        let commands = analyse(line).plain.unwrap_or_else(|reason| panic!("{line:?}: {reason}"));
        assert_eq!(commands.iter().any(|command| command.spelled.is_some()), expected, "{line:?}");
    }
}

#[test]
fn what_is_run_has_to_be_spelled_out_with_its_option() {
    check("rg --pre ./x foo", 3);
    check("rg foo --pre=./x src", 3);
    check("timeout 5 rg --pre ./x foo", 3);
    check("tar -I ./x -xf a", 3);
    check("tar -xI./x -f a", 2);
    check("tar xIf ./x a", 4);
    check("git -c core.pager=./x log", 3);
    check("git -c a.b=c -c core.pager=./x log", 5);
    check("git bisect run ./x a b", 3);
    check("git submodule foreach --recursive ./x", 3);
    check("sed -n '1e ./x' a", 3);
    check("awk 'BEGIN{system(\"./x\")}' a", 2);
    check("make -j4 SHELL=./x all", 3);
    check("fd -e rs -x ./x a", 6);
    check("rg foo", None);
}

#[test]
fn options_that_run_a_program_are_seen() {
    check_all(
        &[
            "/usr/bin/rg --pre ./x foo",
            "rg -n --hostname-bin=./x foo",
            "for o in --pre=./x; do rg $o foo; done",
            "for o in a --pre=./x; do rg \"$o\" foo; done",
            "sort --co=./x a",
            "for a in -v -I; do for b in ./x zstd; do tar $a $b -f c; done; done",
            "xargs rg foo --pre",
            "sort --compress-program=./x a",
            "sort --compress-prog ./x a",
            "tar xf a --to-command=./x",
            "tar xf a --to-com=./x",
            "tar -cf a b --checkpoint=1 --checkpoint-action=exec=./x",
            "tar -cf a b --checkpoint-action exec=./x",
            "tar -I 'zstd; ./x' -xf a",
            "tar -I 'zstd -T0 $(./x)' -xf a",
            "tar -I ./zstd -xf a",
            "tar --use-compress-program=./x -xf a",
            "tar -xvF ./x -f a",
            "man -P ./x ls",
            "man --pager=./x ls",
            "man -P 'less +!./x' ls",
            "ssh -o ProxyCommand=./x h",
            "ssh -oProxyCommand=./x h",
            "ssh -vo 'proxycommand ./x' h",
            "ssh -o PermitLocalCommand=yes -o LocalCommand=./x h",
            "ssh -o 'ProxyCommand=ssh -o ProxyCommand=./x h' h",
            "ssh -o \"$X\" h",
            "ssh -Xo ProxyCommand=./x h",
            "scp -po ProxyCommand=./x a h:b",
            "scp -BS ./x a h:b",
            "ssh -I ./x.so h",
            "scp -S ./x a h:b",
            "sftp -D ./x h",
            "rsync -e ./x a b",
            "rsync -ave ./x a b",
            "rsync --rsh=./x a b",
            "rsync -e 'ssh -o ProxyCommand=./x' a h:b",
            "rsync -e 'ssh -F ./x' a h:b",
            "rsync -e \"sh -c './x'\" a h:b",
            "rsync --rsync-path=./x a h:b",
            "split --filter=./x a",
            "zip a b -T -TT ./x",
            "zip a b -T --unzip-command ./x",
            "zip -rTT ./x a b",
            "rpm --eval '%(./x)'",
            "tcpdump -w a -G 1 -z ./x",
            "wget --use-askpass=./x http://a",
            "wget -e use_askpass=./x http://a",
            "gcc -wrapper ./x a.c",
            "clang -fplugin=./x.so a.c",
            "nc -e ./x h 1",
            "socat TCP:h:1 EXEC:./x",
            "less +!./x a",
            "fzf --preview './x {}'",
            "fzf --bind 'enter:execute(./x)'",
            "fd -X ./x",
            "fd --exec ./x",
            "npm test --script-shell=./x",
            "helm install a b --post-renderer ./x",
            "hg --config alias.l='!./x' l",
            "svn diff --diff-cmd ./x",
            "apt-get -o APT::Update::Pre-Invoke::=./x update",
            "install -s --strip-program=./x a b",
        ],
        true,
    );
}

#[test]
fn programs_that_are_harmless_in_their_place_need_no_spelling_out() {
    check_all(
        &[
            "rg foo --pre-glob '*.pdf'",
            "rg -e --foo src",
            "sort -u a",
            "sort --compress-program=gzip a",
            "tar -I zstd -cf a b",
            "tar -I 'zstd -T0 -19' -cf a b",
            "tar --use-compress-program=pigz -xf a",
            "tar --use-compress-program='pigz -p4' -xf a",
            "tar czf a.tgz -C dir .",
            "tar xzf a.tgz --to-stdout",
            "tar -cf a --checkpoint=100 --checkpoint-action=dot b",
            "tar -cf Files.tar b",
            "tar -cf a b --checkpoint",
            "svn log --diff",
            "install --strip a b",
            "man -P cat ls",
            "man ls",
            "rsync -avz -e ssh a h:b",
            "rsync -e \"ssh -p 2222\" a h:b",
            "rsync -e 'ssh -i ~/.ssh/id -o StrictHostKeyChecking=no' a h:b",
            "rsync -a --rsh='ssh -p 22' a h:b",
            "rsync -a --rsync-path='sudo rsync' a h:b",
            "rsync -a --exclude=node_modules a b",
            "ssh host 'ls'",
            "ssh host ps -o pid",
            "ssh -o StrictHostKeyChecking=no h ls",
            "ssh -o 'ProxyCommand=ssh -W %h:%p jump' h",
            "ssh -J jump h",
            "scp -o BatchMode=yes a h:b",
            "split -l 100 a",
            "zip -r a b",
            "rpm -E %fedora",
            "scp -oStrictHostKeyChecking=no a h:b",
            "tcpdump -w a -G 1 -z gzip",
            "wget -qO- http://a",
            "gcc -Wall -o a a.c",
            "less +G a",
            "fd -e rs foo",
            "npm test -- --watch",
            "pnpm --filter web test",
            "docker ps --filter status=running",
            "apt-get -o Dpkg::Options::=--force-confold install a",
            "socat - TCP:h:1",
        ],
        false,
    );
}

#[test]
fn git_is_told_by_settings_options_and_subcommands() {
    check_all(
        &[
            "git grep -O./x foo",
            "git grep -nO./x foo",
            "git grep --open-files-in-pager=./x foo",
            "git difftool --extcmd=./x",
            "git difftool -y -x ./x",
            "git -c alias.l='!./x' l",
            "git -c core.sshCommand=./x fetch",
            "git -c core.hooksPath=. commit -m z",
            "git -c core.fsmonitor=./x status",
            "git -c include.path=./x log",
            "git -c diff.external=./x diff",
            "git -c credential.helper='!./x' fetch",
            "git -c \"$X\" log",
            "git --config-env=core.pager=P log",
            "git --exec-path=. status",
            "git rebase -x ./x HEAD~2",
            "git rebase -ix ./x HEAD~2",
            "git rebase --exec ./x HEAD~2",
            "git rebase --exe=./x HEAD~2",
            "git -C dir bisect run ./x",
            "git filter-branch --tree-filter ./x HEAD",
            "git fetch --upload-pack=./x a",
            "git clone -u ./x a",
            "git clone -c core.pager=./x a",
            "git clone --template=./x a",
            "git clone 'ext::sh -c x'",
            "git -c protocol.ext.allow=always fetch",
            "git -c remote.o.url='ext::sh -c x' fetch o",
            "git push --receive-pack=./x a",
            "git config core.pager ./x",
            "git config --global alias.l '!./x'",
            "git config set core.editor ./x",
        ],
        true,
    );
}

#[test]
fn everyday_work_with_git_needs_no_spelling_out() {
    check_all(
        &[
            "git -c user.name=x -c user.email=y commit -m z",
            "git -c core.pager=cat diff",
            "git -c core.pager='less -FRX' diff",
            "git -c color.ui=never log",
            "git -c core.editor=true rebase --continue",
            "git -c core.editor=: rebase --continue",
            "git -c core.hooksPath=/dev/null commit -m z",
            "git -c credential.helper= fetch",
            "git -c pager.log=false log",
            "git -c core.sshCommand='ssh -i key' fetch",
            "git -c core.fsmonitor=false status",
            "git -c commit.gpgsign=false commit -m z",
            "git -c sequence.editor=: rebase -i main",
            "git log --ext-diff",
            "git log --exclude=x --all",
            "git clean -fdx",
            "git cherry-pick -x abc",
            "git grep -n foo",
            "git grep foo -- -O./x",
            "git commit -m 'Use -x ./x'",
            "git commit --template=t",
            "git diff -Oorder",
            "git bisect start",
            "git bisect good",
            "git submodule update --init",
            "git run-something",
            "git clone https://a/b",
            "git config user.name x",
            "git config core.pager",
            "git config --get core.pager",
            "git config --unset core.pager",
            "git config core.editor vim",
            "git remote add a https://a/b",
            "git format-patch --to=a -1",
            "git push origin main",
            "git apply --index a",
            "git merge --commit a",
            "for f in a b; do git add \"$f\"; done",
            "git --exec-path",
        ],
        false,
    );
}

#[test]
fn builds_are_told_by_variables_and_settings() {
    check_all(
        &[
            "go test -exec ./x ./...",
            "go test -exec=./x ./...",
            "go build -toolexec ./x",
            "go vet -vettool=./x",
            "go build -ldflags '-extld ./x'",
            "cargo test --config 'target.x.runner=\"./x\"'",
            "cargo --config='build.rustc-wrapper=\"./x\"' test",
            "cargo test --config 'target.x={\"run\\u006eer\"=\"./x\"}'",
            "cargo test --config ./x.toml",
            "cargo build --config 'build.rustflags=[\"-Clinker=./x\"]'",
            "rustc -C linker=./x a.rs",
            "make SHELL=./x",
            "make CC=./x",
            "make --eval='$(shell ./x)'",
            "make FOO='$(shell ./x)'",
            "make MAKEFLAGS=--eval=x",
            "make 'A!=./x'",
            "make A='$(call shell,./x)'",
            "go run -exec ./x .",
            "mvn exec:exec -Dexec.executable=./x",
            "bazel test --run_under=./x //a",
        ],
        true,
    );
    check_all(
        &[
            "go test ./... -run X",
            "go test ./a -args -exec x",
            "go build -ldflags '-s -w'",
            "cargo test -- --nocapture",
            "cargo test -- --config a.runner=b",
            "cargo build --config net.git-fetch-with-cli=true",
            "cargo build --config 'build.rustflags=[\"-Ctarget-cpu=native\"]'",
            "cargo run",
            "rustc -C opt-level=3 a.rs",
            "make",
            "make CC=clang",
            "make CC='ccache gcc' -j8 all",
            "make CC=/usr/bin/clang V=1",
            "make SHELL=/bin/bash test",
            "make PYTHON=.venv/bin/python test",
            "make MAKEFLAGS=-j4",
            "go run . -exec x",
            "make test ARGS='-k a or b'",
            "mvn -q -DskipTests package",
        ],
        false,
    );
}

#[test]
fn languages_inside_programs_are_read() {
    check_all(
        &[
            "sed '1e ./x' a",
            "sed -n -e p -e 'e ./x' a",
            "sed 's/a/b/e' a",
            "sed --e='e ./x' a",
            "sed --expression='s/a/./x/ge' a",
            "sed -l 5 'e ./x' a",
            "sed -i '' 'e ./x' a",
            "sed -- 'e ./x' a",
            "sed 's/a/b/w f\ne ./x' a",
            "sed '/a/a\\\ntext\ne ./x' a",
            "sed \"$X\" a",
            "sed \"s/a/$(cat f)/\" a",
            "sed \"s/a/$(date '+/e')/\" a",
            "sed \"$(date +%n1e)\" a",
            "sed \"p;$(date +%n1e)\" a",
            "sed -e p -e \"s/a/$(cat f)/\" a",
            "x=$(cat f); sed --expression=\"s/a/$x/\" a",
            "for s in 'e ./x'; do sed \"$s\" a; done",
            "for s in *.c; do sed \"/$s/d\" a; done",
            "sed -n \"${A},${B}p\" a",
            "sed \"p;#$X\" a",
            "sed -i \"s/VERSION/$(date)/\" a",
            "sed -i \"s/VERSION/$(date +%F)/\" a",
            "awk '{print | \"./x\"}' a",
            "awk 'BEGIN{\"./x\" | getline}' a",
            "awk 'BEGIN{f=\"system\"; @f(\"./x\")}'",
            "awk 'BEGIN{x++ / system(\"./x\") / 1}'",
            "awk 'BEGIN{x++ / \"./x\" | getline / 1}'",
            "awk -F: 'BEGIN{system (\"./x\")}' a",
            "gawk -e 'BEGIN{system(\"./x\")}'",
            "gawk --source 'BEGIN{system(\"./x\")}'",
            "gawk -l ./x 'BEGIN{}'",
            "awk -F -v 'BEGIN{system(\"./x\")}'",
            "awk -i -v 'BEGIN{system(\"./x\")}'",
            "awk \"$X\" a",
            "vim -c '!./x'",
            "vim '+!./x' a",
            "vim -c 'call system(\"./x\")' a",
            "nvim --cmd 'lua os.execute(\"./x\")' a",
            "vim -es -c '%s/a/b/|!./x' a",
            "vim -c '%s/a/\\=system(\"./x\")/' a",
            "sqlite3 a.db '.shell ./x'",
            "sqlite3 a.db '.sh ./x'",
            "sqlite3 a.db '.output |./x'",
            "sqlite3 a.db \"$X\"",
            "sqlite3 -cmd \"$X\" a.db",
            "psql -tAc \"$X\"",
            "mysql -e \"select $X\"",
            "dc -e \"$X\"",
            "psql -c '\\! ./x'",
            "mysql -e 'system ./x'",
        ],
        true,
    );
}

#[test]
fn scripts_that_run_nothing_need_no_spelling_out() {
    check_all(
        &[
            "sed -n 's/a/b/p' a",
            "sed -i 's/a/b/w log' a",
            "sed -i.bak -e 's/e/x/' -e '/e/d' a",
            "sed '/a/r other' a",
            "sed '/a/a\\\nexport e=1' a",
            "sed -e '/a/a\\' -e 'export e=1' a",
            "sed '\\|/e|d' a",
            "sed -i '' 's/a/b/' a",
            "sed -f script a",
            "for v in a b; do sed \"s/VERSION/$v/\" a; done",
            "awk '{print $1}' a",
            "awk -F'|' '{print $1 > \"out\"}' a",
            "awk -F '|' '{print $1}' a",
            "awk '/a|b/ {print > \"out\"}' a",
            "awk '{ system_time += $1 } END { print system_time > \"out\" }' system.log",
            "awk -v n=\"$N\" '{print n}' a",
            "awk '$1 ~ /x/ || $2 {n++} END {print n > \"f\"}' a",
            "vim file",
            "vim +12 file",
            "vim +/foo file",
            "vim -es -c '%s/a/b/ge' -c wq file",
            "vim -c 'set ff=unix' -c 'wq!' file",
            "sqlite3 a.db 'select a || b from t'",
            "sqlite3 a.db .schema",
            "sqlite3 \"$DB\" 'select 1'",
            "psql -h \"$H\" -c 'select 1'",
            "psql -c '\\dt'",
            "mysql -e 'select * from system'",
        ],
        false,
    );
}

#[test]
fn what_may_turn_out_to_be_an_option_has_to_be_spelled_out() {
    check("rg $(echo --pre=./x) y", 3);
    check("rg -e\"$X\" -- --pre=./x", 2);
    check("rg -e\"$X\" y", None);
    check("git -C\"$X\" -C -c core.pager=./x log", 2);
    check("awk -F\"$X\" 1 f", 2);
    check("make -j$(nproc)", None);
    check("mysql -u\"$X\" -e 'select 1' db", None);
    check("rg \"$(cat f)\" y", 3);
    check("true && o=--pre=./x; rg $o y", 3);
    check("o=$(cat f); rg $o y", 3);
    check("o=$(cat f); rg \"${o%x}\" y", 3);
    check("o=--pre=./x; rg $o y", 2);
    check("a | while read -r o; do rg $o y; done", 3);
    check("cat f | xargs rg y", 3);
    check("git ls-files | xargs rg y", 3);
    check("git log --format=$(cat f)", 3);
    check("git log --format=\"$X\" a", 3);
    check("git log a --pretty \"$X\"", 5);
    check("git log --format=%s a", None);
    check("cargo test $(cat f)", 3);
    check("rg -- $(cat f) y", None);
    check("rg $o y", None);
    check("rg y $(git rev-parse --show-toplevel)", None);
    check("git log $(git merge-base main HEAD)..HEAD", None);
    check("git log $(git rev-parse --pre=./x)", 3);
    check("git commit -m \"$(cat f)\"", None);
    check("git add $(git diff --name-only)", None);
    check("find . -name '*.rs' | xargs rg y", None);
    check("x=src; rg y $x", None);
    check("rg y src/$(cat f)", 3);
    check("rg y \"src/$(cat f)\"", None);
    check("rg y \"--$(cat f)\"", 3);
    check("make -j$(cat f)", 2);
    check("make -j\"$(cat f)\"", None);
    check("for f in a b; do rg y $f; done", None);
    check("make -j$(nproc)", None);
    check("npm test -- $(cat f)", None);
}
