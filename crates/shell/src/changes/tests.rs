use proptest::prelude::*;

use super::*;

/// Expected: `directory:path`, a pattern as `<path>`, a name in a directory as `path + name`.
fn check(line: &str, expected: &[&str]) {
    let shown = |path: ChangedPath| {
        let mut text = path.path;
        if path.is_pattern {
            text = format!("<{text}>");
        }
        if !path.directory.is_empty() {
            text = format!("{}:{text}", path.directory);
        }
        if let Some(inside) = path.inside {
            text = format!("{text} + {inside}");
        }
        text
    };
    let found: Vec<String> = changed_paths(line).into_iter().map(shown).collect();
    assert_eq!(found, expected, "{line:?}");
}

#[test]
fn redirections_write_files() {
    check("echo a > b", &["b"]);
    check("echo a >b", &["b"]);
    check("echo a>>b", &["b"]);
    check("echo a >| b", &["b"]);
    check("make &> log", &["log"]);
    check("make &>> log", &["log"]);
    check("make >& log", &["log"]);
    check("make 2>&1 >log", &["log"]);
    check("make 2> err 1> out", &["err", "out"]);
    check("make >&2", &[]);
    check("make 2>&-", &[]);
    check("cat < a", &[]);
    check("cat <> a", &["a"]);
    check("> a", &["a"]);
    check("echo 'a > b'", &[]);
    check("echo \"a > b\"", &[]);
    check("echo a \\> b", &[]);
    check("[[ a > b ]]", &[]);
    check("cat <<< word > b", &["b"]);
    check("diff <(sort a) <(sort b) > c", &["c"]);
    check("echo $((1 > 0)) > c", &["c"]);
}

#[test]
fn here_documents_are_no_commands() {
    check("cat > a <<EOF\nrm b\nEOF\nrm c", &["a", "c"]);
    check("cat <<'E O' > a\nrm b\nE O\nrm c", &["a", "c"]);
    check("cat <<-EOF >a\n\trm b\n\tEOF\nrm c", &["a", "c"]);
    check("cat <<A <<B >x\nrm a\nA\nrm b\nB\nrm c", &["x", "c"]);
    check("cat > a <<EOF\nnever ends", &["a"]);
}

#[test]
fn operands_of_known_programs() {
    check("rm -rf a 'b c' -- -d", &["a", "b c", "-d"]);
    check("mkdir -p -m 700 a/b", &["a/b"]);
    check("touch -d yesterday a", &["a"]);
    check("tee -a a b < c", &["a", "b"]);
    check("truncate -s 0 a", &["a"]);
    check("truncate --size=0 a", &["a"]);
    check("chmod +x a b", &["a", "b"]);
    check("chmod -x a", &["a"]);
    check("chmod -R 755 a", &["a"]);
    check("chmod --reference=r a", &["a"]);
    check("cp a b", &["b + a"]);
    check("cp -r x/a y/b d", &["d + a", "d + b"]);
    check("cp -t d a b", &["d + a", "d + b"]);
    check("cp --target-directory=d a", &["d + a"]);
    check("mv a b", &["a", "b + a"]);
    check("mv -t d a", &["a", "d + a"]);
    check("install -m 755 a b", &["b + a"]);
    check("install -d a b", &["a", "b"]);
    check("ln -s ../a b", &["b + a"]);
    check("ln -s ../a", &["a"]);
    check("dd if=a of=b bs=1M", &["b"]);
    check("patch -p1 -i fix.diff a", &["a"]);
    check("patch -o b a fix.diff", &["a", "b"]);
    check("sort -o a a", &["a"]);
    check("curl -sSLo a https://example.org", &["a"]);
    check("wget -O a https://example.org", &["a"]);
    check("cat a b", &[]);
    check("make all", &[]);
    check("/bin/rm a", &["a"]);
}

#[test]
fn changes_in_place() {
    check("sed -i s/a/b/ x y", &["x", "y"]);
    check("sed -i -e s/a/b/ x", &["x"]);
    check("sed -Ei.bak 's/a/b/' x", &["x", "x.bak"]);
    check("sed -ni p x", &["x"]);
    check("sed --in-place=.old --expression=p x", &["x", "x.old"]);
    check("sed -n p x", &[]);
    check("sed -e p -- x", &[]);
    check("perl -pi -e 's/a/b/' x y", &["x", "y"]);
    check("perl -i.bak -pe 's/a/b/' x", &["x", "x.bak"]);
    check("perl -Mutf8 -i -pe 's/a/b/' x", &["x"]);
    check("perl -pe 's/a/b/' x", &[]);
}

#[test]
fn git_changes_its_operands() {
    check("git checkout -- a b", &["a", "b"]);
    check("git checkout .", &["."]);
    check("git checkout -b topic", &[]);
    check("git restore --source HEAD~1 a", &["a"]);
    check("git -C sub rm a", &["sub:a"]);
    check("git -c x=y mv a b", &["a", "b + a"]);
    check("git commit -m 'rm a'", &[]);
}

#[test]
fn lists_pipelines_and_subshells() {
    check("rm a; rm b && rm c || rm d\nrm e & rm f", &["a", "b", "c", "d", "e", "f"]);
    check("cat a | tee b | sort -o c", &["b", "c"]);
    check("(rm a); { rm b; }", &["a", "b"]);
    check("if true; then rm a; else rm b; fi", &["a", "b"]);
    check("for x in a b; do rm $x c; done", &["c"]);
    check("! rm a", &["a"]);
    check("X=1 Y+=2 rm a", &["a"]);
    check("sudo -E rm a", &["a"]);
    check("env A=b rm a", &["a"]);
    check("bash -c 'rm a; cd b; rm c'; rm d", &["a", "b:c", "d"]);
    check("sh -ec 'rm a'", &["a"]);
    check("rm a # rm b", &["a"]);
    check("rm a\\\n b", &["a", "b"]);
}

#[test]
fn changes_of_the_directory_are_followed() {
    check("cd src && rm a", &["src:a"]);
    check("cd src; cd ../lib; rm a /b", &["src/../lib:a", "/b"]);
    check("cd /x && > a", &["/x:a"]);
    check("(cd src; rm a); rm b", &["src:a", "b"]);
    check("cd src | true; rm a", &["a"]);
    check("cd src & rm a", &["a"]);
    check("cd src | rm a", &["a"]);
    check("cd x | (cd y; rm a; rm b); rm c", &["y:a", "y:b", "c"]);
    check("cd && rm a", &["~:a"]);
    check("cd ~/x && rm a", &["~/x:a"]);
    check("cd '~' && rm a", &["./~:a"]);
    check("cd $X && rm a /b", &["/b"]);
    check("cd - && rm a", &[]);
    check("pushd a; rm b; popd; rm c", &["a:b"]);
}

#[test]
fn what_only_a_shell_knows_is_left_out() {
    check("rm $a ${b} \"$c\" $(d) `e` $'f' g", &["g"]);
    check("rm \"a b\"$c", &[]);
    check("rm ~/a ~ '~/b' ~root/c", &["~:a", "~:.", "~/b"]);
    check("rm *.o 'x*' a\\*b*", &["<*.o>", "x*", "<a\\*b*>"]);
    check("touch {a,b}.{c,d} 'e{f,g}' {1..3}", &["a.c", "a.d", "b.c", "b.d", "e{f,g}"]);
    check("mv a{,.bak}", &["a", "a.bak + a"]);
    check("rm $(echo 'a)' \")\") b", &["b"]);
    check("rm ''", &[]);
}

#[test]
fn there_is_an_end_to_it() {
    let many = format!("rm {}", "a ".repeat(10_000));
    assert_eq!(changed_paths(&many).len(), PATHS_MAX);
    let long = format!("rm {}", "a".repeat(BYTES_MAX));
    assert_eq!(changed_paths(&long), []);
    let nested =
        (0..12).fold("rm a".to_owned(), |script, _| format!("bash -c '{}'", script.replace('\'', "'\\''")));
    assert!(changed_paths(&nested).len() <= 1);
}

proptest! {
    #[test]
    fn any_line_is_looked_at(line in "\\PC{0,200}") {
        let _ = changed_paths(&line);
    }

    #[test]
    fn any_mixture_of_grammar_is_looked_at(
        parts in proptest::collection::vec(
            prop::sample::select(vec![
                "rm", " ", "a", "'", "\"", "\\", "$", "(", ")", "{", "}", ",", "`", "<<", "<", ">", "&", "|", ";", "\n",
                "#", "~", "*", "-", "--", "-t", "-i", "cd", "mv", "cp", "sed", "ln", "=", "é", "\t", "EOF", "git",
                "checkout", "bash -c", "install", "[[",
            ]),
            0..60,
        )
    ) {
        let _ = changed_paths(&parts.concat());
    }

    /// Quoting a name never changes which file is meant.
    #[test]
    fn quoted_names_are_found(name in "[a-z *?{},$`\"\\\\~]{1,12}") {
        let line = format!("rm -- '{name}'");
        let found = changed_paths(&line);
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(&found[0].path, &name);
        prop_assert!(!found[0].is_pattern);
    }
}
