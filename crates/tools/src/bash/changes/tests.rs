use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::super::commands::{LineBasis, line_facts};
use super::*;
use crate::fixture::Fixture;

fn changes_of(fixture: &Fixture, line: &str) -> Vec<PathBuf> {
    line_facts(line, &fixture.examine(), LineBasis::ByWords).changes
}

fn check_in(fixture: &Fixture, line: &str, expected: &[&str]) {
    let home = std::env::home_dir().unwrap();
    let resolved = |path: &&str| match path.strip_prefix('~') {
        Some(rest) => home.join(rest.trim_start_matches('/')),
        None => windlass_text::paths::clean(fixture.root.join(path)),
    };
    let expected: Vec<PathBuf> = expected.iter().map(resolved).collect();
    let found = changes_of(fixture, line);
    assert_eq!(found, expected, "{line}");
}

/// In a directory with nothing in it but directories. What is no file is named too where it may be one: `yesterday` in
/// `touch -d yesterday a` if not all of the line is known.
fn check(line: &str, expected: &[&str]) {
    let fixture = Fixture::new(&[]);
    for directory in ["d", "src", "lib", "sub"] {
        std::fs::create_dir_all(fixture.path(directory)).unwrap();
    }
    check_in(&fixture, line, expected);
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
    check("cp a b", &["b"]);
    check("cp -r x/a y/b d", &["d/a", "d/b"]);
    check("cp -t d a b", &["d/a", "d/b"]);
    check("cp --target-directory=d a", &["d/a"]);
    check("mv a b", &["a", "b"]);
    check("mv -t d a", &["a", "d/a"]);
    check("install -m 755 a b", &["755", "a", "b"]);
    check("install -d a b", &["a", "b"]);
    check("ln -s ../a b", &["../a", "b"]);
    check("ln -s ../a", &["../a", "a"]);
    check("dd if=a of=b bs=1M", &["b"]);
    check("patch -p1 -i fix.diff a", &["fix.diff", "a"]);
    check("patch -o b a fix.diff", &["b", "a", "fix.diff"]);
    check("sort -o a a", &["a"]);
    check("curl -sSLo a https://example.org", &["a", "https:/example.org"]);
    check("wget -O a https://example.org", &["a", "https:/example.org"]);
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
    check("perl -pi -e 's/a/b/' x y", &["s/a/b", "x", "y"]);
    check("perl -i.bak -pe 's/a/b/' x", &["s/a/b", "x", "x.bak"]);
    check("perl -Mutf8 -i -pe 's/a/b/' x", &["s/a/b", "x"]);
    check("perl -pe 's/a/b/' x", &[]);
}

#[test]
fn git_changes_its_operands() {
    check("git checkout -- a b", &["a", "b"]);
    check("git checkout .", &["."]);
    check("git checkout -b topic", &[]);
    check("git restore --source HEAD~1 a", &["a"]);
    check("git -C sub rm a", &["rm", "a", "sub/a"]);
    check("git -c x=y mv a b", &["a", "b"]);
    check("git commit -m 'rm a'", &[]);
}

#[test]
fn lists_pipelines_and_subshells() {
    check("rm a; rm b && rm c || rm d\nrm e & rm f", &["a", "b", "c", "d", "e", "f"]);
    check("cat a | tee b | sort -o c", &["b", "c"]);
    check("(rm a); { rm b; }", &["a", "b"]);
    check("if true; then rm a; else rm b; fi", &["a", "b"]);
    check("for x in a b; do rm $x c; done", &["a", "b", "c"]);
    check("! rm a", &["a"]);
    check("X=1 Y+=2 rm a", &["a"]);
    check("sudo -E rm a", &["a"]);
    check("env A=b rm a", &["a"]);
    check("bash -c 'rm a; cd b; rm c'; rm d", &["a", "c", "b/c", "d"]);
    check("sh -ec 'rm a'", &["a"]);
    check("rm a # rm b", &["a"]);
    check("rm a\\\n b", &["a", "b"]);
}

#[test]
fn changes_of_the_directory_are_followed() {
    check("cd src && rm a", &["src/a"]);
    check("cd src; cd ../lib; rm a /b", &["lib/a", "../lib/a", "/b"]);
    check("cd /x && > a", &["/x/a"]);
    check("(cd src; rm a); rm b", &["src/a", "a", "b"]);
    check("cd src | true; rm a", &["a"]);
    check("cd src & rm a", &["a"]);
    check("cd src | rm a", &["a"]);
    check("cd x | (cd y; rm a; rm b); rm c", &["y/a", "a", "y/b", "b", "c"]);
    check("cd && rm a", &["~/a"]);
    check("cd ~/x && rm a", &["~/x/a"]);
    check("cd '~' && rm a", &["./~/a"]);
    check("cd $X && rm a /b", &["/b"]);
    check("cd - && rm a", &[]);
    check("pushd a; rm b; popd; rm c", &["b", "a/b"]);
}

#[test]
fn what_only_a_shell_knows_is_left_out() {
    check("rm $a ${b} \"$c\" $(d) `e` $'f' g", &["f", "g"]);
    check("rm \"a b\"$c", &[]);
    check("rm ~/a ~ '~/b' ~root/c", &["~/a", "~", "./~/b", "~/c"]);
    check("rm *.o 'x*' a\\*b*", &["*.o", "x*"]);
    check("touch {a,b}.{c,d} 'e{f,g}' {1..3}", &["a.c", "a.d", "b.c", "b.d", "e{f,g}", "1", "2", "3"]);
    check("mv a{,.bak}", &["a", "a.bak"]);
    check("rm $(echo 'a)' \")\") b", &["b"]);
    check("rm ''", &[]);
}

#[test]
fn what_a_command_may_change_is_found_on_disk() {
    let fixture = Fixture::new(&[("a.txt", b""), ("b.txt", b""), ("d/c.txt", b""), (".hidden.txt", b"")]);
    let check = |line: &str, expected: &[&str]| check_in(&fixture, line, expected);
    check("rm a.txt missing", &["a.txt", "missing"]);
    check("cd d && rm c.txt; touch ../n", &["d/c.txt", "n", "../n"]);
    check("cp a.txt d", &["d/a.txt"]);
    check("cp a.txt new", &["new"]);
    check("mv a.txt b.txt d", &["a.txt", "b.txt", "d/a.txt", "d/b.txt"]);
    check("rm *.txt", &["a.txt", "b.txt"]);
    check("rm .*.txt */c*", &[".hidden.txt", "d/c.txt"]);
    check("rm '*.txt' x\\*", &["*.txt", "x*"]);
    check("make > /dev/null 2> log", &["log"]);
    check("rm a.txt; rm ./a.txt", &["a.txt"]);
    check("make", &[]);
}

#[test]
fn a_link_and_what_it_leads_to_are_both_named() {
    let fixture = Fixture::one("a.txt", b"");
    symlink("a.txt", fixture.path("link")).unwrap();
    symlink("nowhere", fixture.path("lost")).unwrap();
    check_in(&fixture, "echo > link", &["link", "a.txt"]);
    check_in(&fixture, "echo > lost", &["lost"]);
}

#[test]
fn there_is_an_end_to_it() {
    let fixture = Fixture::new(&[]);
    for n in 0..200 {
        std::fs::write(fixture.path(format!("f{n:03}")), "").unwrap();
    }
    assert_eq!(changes_of(&fixture, "rm *").len(), CHANGES_MAX);
    assert!(changes_of(&fixture, &format!("rm {}", "f{1,2,3,4}".repeat(9))).len() <= CHANGES_MAX);
}

proptest! {
    /// Quoting a name never changes which file is meant.
    #[test]
    fn quoted_names_are_found(name in "[a-z *?{},$`\"\\\\~]{1,12}") {
        // Two backslashes in front name another machine elsewhere.
        prop_assume!(!name.starts_with("\\\\"));
        let fixture = Fixture::new(&[]);
        prop_assert_eq!(changes_of(&fixture, &format!("rm -- '{name}'")), [fixture.path(&name)]);
    }
}
