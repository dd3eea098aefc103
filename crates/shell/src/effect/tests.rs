use crate::{LineEffect, LinePath, StrictCommand, analyse};

fn commands(line: &str) -> Vec<StrictCommand> {
    analyse(line).plain.unwrap_or_else(|reason| panic!("{line:?}: {reason}"))
}

fn names(paths: &[LinePath]) -> String {
    let name = |path: &LinePath| {
        let below = if path.is_recursive { "/**" } else { "" };
        let pattern = if path.is_pattern { "~" } else { "" };
        format!("{pattern}{}{below}", path.text.marked("?"))
    };
    paths.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// What the last command of a line looks at.
fn check_looks(line: &str, reads: &str) {
    let commands = commands(line);
    let looks = |command: &StrictCommand| {
        let is_git = command.words.first().is_some_and(|name| name.text == "git");
        command.effect == if is_git { LineEffect::LooksAtStart } else { LineEffect::Looks }
    };
    assert!(commands.iter().all(looks), "{line:?}");
    let last = commands.last().unwrap();
    assert_eq!(names(&last.reads), reads, "{line:?}");
    assert_eq!(names(&last.writes), "", "{line:?}");
}

fn check_changes(line: &str, writes: &str) {
    let commands = commands(line);
    let last = commands.last().unwrap();
    assert_eq!(last.effect, LineEffect::ChangesFiles, "{line:?}");
    assert_eq!(names(&last.writes), writes, "{line:?}");
}

#[test]
fn what_is_looked_at_is_named() {
    check_looks("cat -n a -- -b", "a -b");
    check_looks("ls", ".");
    check_looks("ls -R", "./**");
    check_looks("ls -la src *.rs", "src ~*.rs");
    check_looks("head -20 f", "f");
    check_looks("head -n 20 f", "f");
    check_looks("head -n20 --bytes=5 f g", "f g");
    check_looks("grep x", "");
    check_looks("grep -rn x", "./**");
    check_looks("grep -rn x src", "src/**");
    check_looks("grep -e x -e y f", "f");
    check_looks("grep x f -n", "f");
    check_looks("grep -- -x f", "f");
    check_looks("rg x", "./**");
    check_looks("rg --files src", "src/**");
    check_looks("find", "./**");
    check_looks("find a b -name c", "a/** b/**");
    check_looks("sed -n 5p f", "f");
    check_looks("sed -e p -e d f g", "f g");
    check_looks("awk '{print}' f x=1", "f");
    check_looks("jq . f", "f");
    check_looks("sort -k 2 f", "f");
    check_looks("uniq -c f", "f");
    check_looks("xxd -l 16 f", "f");
    check_looks("diff a b", "a b");
    check_looks("diff -r --no-dereference a b", "a/** b/**");
    check_looks("ls -L a", "a");
    check_looks("test -f a", "a");
    check_looks("[ a -nt b ]", "a b");
    check_looks("[[ -d x ]]", "x");
    check_looks("cd a", "a");
    check_looks("git show HEAD:a", "a");
    check_looks("git diff /x y", "/x y /x/**");
    check_looks("git grep -n /api src", "src ./**");
    check_looks("git grep -e /api src", "src ./**");
    check_looks("git grep -e /api -- src", "src src/**");
    check_looks("git diff", "./**");
    check_looks("git diff --stat", "");
    check_looks("git show", "./**");
    check_looks("git log -p", "./**");
    check_looks("git log", "");
    check_looks("git log --oneline -- a", "a");
    check_looks("git status", "");
    check_looks("git blame a", "a");
    check_looks("git config -l", "~/.gitconfig");
    check_looks("git config --global --get a.b", "~/.gitconfig");
    check_looks("git config --local --get a.b", "");
    check_looks("cat ~/a '~/b'", "~/a ./~/b");
    check_looks("cat \"$x\"", "?");
    check_looks("cat \"a/$x\"", "a/?");
    check_looks("cat - /dev/null", "");
    check_looks("find a | xargs cat", "a/**");
    check_looks("find a | grep b | head | xargs -n1 cat", "a/**");
    check_looks("grep -rl x a | xargs wc -l", "a/**");
    check_looks("git ls-files | xargs wc -l", "./**");
    check_looks("find a | grep -v b | sort -u | xargs cat", "a/**");
    check_looks("find a | head -c 5 | xargs cat", "?");
    check_looks("find a | grep -o b | xargs cat", "?");
    check_looks("grep -l --label=/x y - a | xargs cat", "?");
    check_looks("git ls-files --format=/x | xargs cat", "?");
    check_looks("rg --files --path-separator x a | xargs cat", "?");
    check_looks("find a -printf /x | xargs cat", "?");
    check_looks("echo /x | xargs cat", "?");
    check_looks("find a | sed s/a/b/ | xargs cat", "?");
    check_looks("for f in a b; do cat \"$f\"; done", "a b");
    check_looks("for f in a b; do cat $f; done", "a b");
    check_looks("for f in *.c; do cat \"$f.bak\"; done", "~*.c.bak");
    check_looks("for f in *.c; do cat $f; done", "?");
    check_looks("for f in a b; do wc -l < \"$f\"; done", "a b");
    check_looks("for f in $(ls); do cat \"$f\"; done", "?");
    check_looks("find a | while read -r f; do cat \"$f\"; done", "a/**");
    check_looks("find a | while read f; do cat \"$f\"; done", "a/**");
    check_looks("echo a b > /dev/null", "");
    check_looks("echo ~/.ssh/* a", "~~/.ssh/*");
    check_looks("echo ../*", "~../*");
    check_looks("printf '%s\\n' /etc/* a", "~/etc/*");
    check_looks("basename -a /etc/*", "~/etc/*");
    check_looks("cat .*/id_rsa", "~?/id_rsa");
    check_looks("ls .?", "~?");
    check_looks("diff <(ls a) <(ls b)", "");
    check_looks("git symbolic-ref --short HEAD", "HEAD");
    check_looks("git submodule status", "");
    let lists = commands("for f in /etc/* a; do echo $f; done");
    assert_eq!(names(&lists[0].reads), "~/etc/*");
    assert_eq!(lists[0].words, []);
}

#[test]
fn changes_are_named() {
    check_changes("mkdir -p a b", "a b");
    check_changes("touch a", "a");
    check_changes("rm a", "a");
    check_changes("rm -rf a *.o", "a/** ~*.o/**");
    check_changes("rm *.o", "~*.o/**");
    check_changes("rm ./*.o", "~./*.o");
    check_changes("rmdir a", "a");
    check_changes("cp a b", "b b/a");
    check_changes("cp -r a b/", "b//** b/a/**");
    check_changes("cp a/b c ~/d", "~/d ~/d/b ~/d/c");
    check_changes("cp -t d a", "d/a");
    check_changes("cp a b/", "b/a");
    check_changes("cp a/b c .", "./b ./c");
    check_changes("cp -r lib/x .", "./x/**");
    check_changes("mv src/a.rs .", "src/a.rs/** ./a.rs/**");
    check_changes("cp -r evil/. .", "./**");
    check_changes("cp -rT evil .", "./** ./evil/**");
    check_changes("cp -r evil/ .", "./** ./evil/**");
    check_changes("cp -r evil/* .", "./** ~./*/**");
    check_changes("cp a .{x,git}/y", ".git/y .git/y/a .git/y/y");
    check_changes("rm -rf .*", "~?/**");
    check_changes("rm -r a/.[a-z]*", "~a/?/**");
    check_changes("mv a b", "a/** b/** b/a/**");
    check_changes("sed -i s/a/b/ f g", "f g");
    check_changes("sed -i.bak s/a/b/ f", "f f.bak");
    check_changes("sed -n -i p f", "f");
    check_changes("for f in a b; do rm \"$f\"; done", "a b");
    check_changes("NODE_ENV=x timeout 5 rm a", "a");
}

#[test]
fn everything_else_is_unknown() {
    for line in [
        "mkdir",
        "rm",
        "rm $x",
        "rm \"$x\"",
        "cp a",
        "cp a \"$x\"",
        "cp a *",
        "cp * a",
        "mv * a",
        "sed -i s/a/b/ *",
        "cp -s a b",
        "cp -l a b",
        "cp --backup a b",
        "cp --parents a b",
        "mv -b a b",
        "mv \"$x\" a",
        "rm --no-preserve-root -rf /",
        "rm --rec x",
        "rmdir -p a/b",
        "sed -i 's/a/b/w x' f",
        "sed -i s/a/b/",
        "sed -i.bak/x s/a/b/ f",
        "touch -r a b",
        "ln -s a b",
        "chmod +x a",
        "truncate -r b a",
        "install a b",
        "dd of=a",
        "tee $x",
        "strings @f",
        "strings a \"$x\"",
        "file -S a",
        "who f",
        "git for-each-ref --format='%(signature)'",
        "git log --format=%G?",
        "git log --format=\"$x\"",
        "git log --pretty=$x",
        "git for-each-ref --format \"$x\"",
        "git grep -f f",
        "git ls-files -X f",
        "git symbolic-ref HEAD refs/heads/x",
        "git symbolic-ref -d HEAD",
        "git submodule update",
        "git submodule",
        "grep -R x",
        "grep -rR x a",
        "grep -nR x a",
        "grep --dereference-recursive x a",
        "ls -RL",
        "ls -R --dereference a",
        "tree -l",
        "du -L",
        "du --dereference a",
        "diff -r a b",
        "diff -qr a b",
        "diff --recursive a b",
        "cp -rL a b",
        "unknown",
        "./ls",
        "ls/",
        "/bin/ls",
    ] {
        let commands = commands(line);
        assert_eq!(commands.last().unwrap().effect, LineEffect::Unknown, "{line:?}");
    }
}

#[test]
fn an_option_that_may_take_the_next_word_is_unknown() {
    for line in [
        "head -n\"$x\" f",
        "head -n\"$(true)\" -n /etc/hostname f",
        "awk -F\"${x:-}\" '{print $1}' 'BEGIN{system(\"id\")}' f",
        "awk -F $x '{print $1}' f",
        "awk -F* '{print $1}' f",
        "date -d\"$x\" -d 01010000",
        "git log -n $x",
        "for i in '' 1; do head -n\"$i\" -n a f; done",
        "for i in -n a; do head $i -n b f; done",
        "head [-]n -n b f",
        "ls | xargs -éP4 cat",
    ] {
        assert_eq!(commands(line).last().unwrap().effect, LineEffect::Unknown, "{line:?}");
    }
}

#[test]
fn tee_changes_the_files_it_names() {
    check_changes("echo x | tee -a a", "a");
    check_changes("ls | tee list", "list");
    check_changes("tee f <<'E'\nx\nE", "f");
    check_changes("ls | tee a b /dev/null", "a b");
    check_looks("ls | tee /dev/null", "");
}

#[test]
fn git_elsewhere_looks_only_if_that_is_the_start() {
    let check = |line: &str, effect: LineEffect, directory: &str| {
        let commands = commands(line);
        let last = commands.last().unwrap();
        assert_eq!(
            (last.effect, format!("{:?}", last.directory)),
            (effect, directory.to_owned()),
            "{line:?}"
        );
    };
    check("git status", LineEffect::LooksAtStart, "Start");
    check("git -C . status", LineEffect::LooksAtStart, "Start");
    check("cd a && cd .. && git status", LineEffect::LooksAtStart, "Start");
    check("cd a && git status", LineEffect::LooksAtStart, "Within(\"a\")");
    check("cd /a && git status", LineEffect::LooksAtStart, "Within(\"/a\")");
    check("git -C a status", LineEffect::LooksAtStart, "Within(\"a\")");
    check("cd a; git status", LineEffect::Unknown, "Unknown");
    check("cd \"$x\" && git status", LineEffect::Unknown, "Unknown");
}

#[test]
fn what_runs_its_arguments_needs_an_exact_rule() {
    let check = |line: &str, expected: bool| {
        assert_eq!(commands(line).iter().any(|command| command.is_exact_only), expected, "{line:?}");
    };
    for line in [
        "watch ls",
        "setsid ls",
        "ionice ls",
        "flock f ls",
        "find . -exec ls {} \\;",
        "find . -delete",
        "find . -okdir x \\;",
        "find . -fprint x",
        "/usr/bin/watch ls",
        "for o in -delete; do find sub -name v $o; done",
        "for o in -delete; do find sub -name v \"$o\"; done",
        "find . $(cat opts)",
        "find . \"$(echo -delete)\"",
        "while read -r o; do find . \"$o\"; done < f",
        "echo -delete | xargs find .",
        "find . $X",
        "find $X",
        "find . -name $X",
        "find . \"-de$X\"",
        "find . -d*",
        "find . *",
        "find . -name *",
        "find *",
        "find . -name x -unknown \"$X\"",
        "nice -n\"$X\" 5 ls",
        "nice $X ls",
        "env -u\"$X\" A ls",
        "env \"$X\" ls",
    ] {
        check(line, true);
    }
    for line in [
        "find . -name \"$X\"",
        "find . -name *.c",
        "find ./* -name x",
        "find \"a/$X\" -newer \"$X\"",
        "for d in a b; do find \"$d\" -name '*.c'; done",
        "find . -name x",
        "timeout 5 ls",
        "nice -n 5 ls \"$X\"",
        "env A=\"$X\" ls",
        "ls watch",
        "xargs ls",
    ] {
        check(line, false);
    }
}

#[test]
fn archives_objects_and_the_system_are_looked_at() {
    check_looks("tar tf a.tar.gz", "a.tar.gz");
    check_looks("awk '{print n}' n=1 1=n f", "1=n f");
    check_looks("zcat a.gz", "a.gz");
    check_looks("git cherry -v main", "main");
    check_looks("git diff-tree --no-commit-id --name-only -r HEAD", "HEAD");
    check_looks("find . -name '*.rs' -print | head", "");
    check_looks("tar -tzvf a.tgz b/c", "a.tgz");
    check_looks("unzip -l a.zip", "a.zip");
    check_looks("nm -C a.o", "a.o");
    check_looks("readelf -h a.out", "a.out");
    check_looks("objdump -d a.o", "a.o");
    check_looks("docker logs -f --tail 20 web", "");
    check_looks("lsof -i :3000", "");
    check_looks("lsof -nP -iTCP:3000 -sTCP:LISTEN", "");
    check_looks("ulimit -n", "");
    check_looks("export NODE_ENV=test CI=1", "");
    check_looks("jq --help", "");
    check_looks("gcc --version", "");
    check_looks("ps -eo pid,comm,%cpu --sort=-%cpu", "");
    check_looks("ps axo pid,args", "");
    check_looks("ps -eLf", "");
    check_looks("LANG= date", "");
    check_looks("cat /etc/os-release a", "a");
    check_looks("git config --get user.email", "");
    check_looks("git config --list", "~/.gitconfig");
    check_looks("git config --get-regexp user", "~/.gitconfig");
    check_looks("git config --get http.extraheader", "~/.gitconfig");
    let check = |line: &str| {
        let last = commands(line).pop().unwrap();
        assert_eq!(last.effect, LineEffect::Unknown, "{line:?}");
    };
    check("tar xf a.tar");
    check("zcat a");
    check("unzip -l a");
    check("unzip -l 'a*.zip'");
    check("nm -f @a b.o");
    check("tar tf host:a.tar");
    check("tar tf a.tar --to-command=x");
    check("tar tfI a.tar x");
    check("tar -I x -tf a.tar");
    check("unzip a.zip");
    check("unzip -l -d x a.zip");
    check("unzip -lo a.zip");
    check("objdump -S a.o");
    check("nm --plugin ./x.so a.o");
    check("nm @x");
    check("docker -H x logs web");
    check("docker logs --config=x web");
    check("lsof a");
    check("lsof -i +D /");
    check("ulimit -n 5");
    check("export PATH=.");
    check("export NODE_ENV=test PATH=.");
    check("export NODE_ENV");
    check("git --help");
    check("export NODE_ENV=\"$(a)\"");
}

#[test]
fn what_a_loop_moves_is_named() {
    check_changes(
        "for f in a b; do cp $f.txt $f.md; done",
        "a.md a.md/a.txt a.md/b.txt b.md b.md/a.txt b.md/b.txt",
    );
    check_changes("for f in a b; do mv \"$f\" c; done", "a/** b/** c/** c/a/** c/b/**");
    check_changes("for f in src/*.txt; do cp \"$f\" old; done", "old ~old/*.txt");
    check_changes("for f in a b; do truncate -s 0 $f.log; done", "a.log b.log");
    check_changes("rm /etc/os-release", "/etc/os-release");
    let check = |line: &str| {
        let last = commands(line).pop().unwrap();
        assert_eq!(last.effect, LineEffect::Unknown, "{line:?}");
    };
    check("find . | while read -r f; do mv \"$f\" old; done");
    check("for f in a b; do mv $f $x; done");
    check("for f in a b; do mv a ${f%.c}; done");
}

#[test]
fn what_find_lets_others_look_at_is_named() {
    check_looks("find src -name '*.rs' -exec grep -l x {} +", "src/** src/**");
    check_looks("find . -exec wc -l {} \\;", "./** ./**");
    check_looks("find . -exec grep -q x {} \\; -print", "./** ./**");
    let check = |line: &str| {
        let commands = commands(line);
        assert!(commands.iter().any(|command| command.effect == LineEffect::Unknown), "{line:?}");
    };
    check("find . -exec rm {} +");
    check("find . -exec sort -o {} x \\;");
    check("find . -exec sh -c 'cat {}' \\;");
    check("find . -exec cat {}/x \\;");
    check("find . -exec cat {}");
    check("find . -exec {} \\;");
    check("find . -execdir cat {} +");
    check("find . -exec cat {} + -exec rm {} +");
    check("find . -exec cat {} \\; -delete");
}
