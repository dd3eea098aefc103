//! Names of files in code.

use crate::analyse;

fn mentions(line: &str) -> Vec<String> {
    let paths = analyse(line).found.into_iter().flat_map(|command| command.mentions);
    paths.map(|path| path.marked()).collect()
}

#[test]
fn texts_in_code_may_name_files() {
    let check = |line: &str, expected: &str| {
        let mentions = mentions(line);
        assert!(mentions.iter().any(|text| text == expected), "{line:?} mentions {mentions:?}");
    };
    for line in [
        "python3 -c 'open(\".env\").read()'",
        "python3 -c \"print(open('.env').read())\"",
        "python3 -Sc 'import pathlib; pathlib.Path(\".env\").read_text()'",
        "python3 - <<'E'\nprint(open('.env').read())\nE",
        "python3 <<E\nopen(r'''.env''')\nE",
        "python3 <<< 'open(\".env\")'",
        "python3 <<'E'\n# it's here\nopen('.env')\nE",
        "python3 -c 'open(\"\\x2eenv\")'",
        "echo 'print(open(\".env\").read())' | python3",
        "sudo bash -c \"python3 -c 'open(\\\".env\\\")'\"",
        "ruby -e 'puts File.read(\".env\")'",
        "ruby -e 'puts File.read(%q(.env))'",
        "ruby -e '%w[.env a].each { |f| puts IO.read f }'",
        "ruby <<'E'\nputs IO.read '.env'\nE",
        "node -e 'require(\"fs\").readFileSync(\".env\")'",
        "node -p 'fs.readFileSync(`.env`, \"utf8\")'",
        "node --eval='a.replace(/\"/g, 1); fs.readFileSync(\".env\")'",
        "deno eval 'Deno.readTextFileSync(\".env\")'",
        "php -r 'echo file_get_contents(\".env\");'",
        "perl -e 'open F, \"<.env\"; print <F>'",
        "perl -e 'open(F, \"<\", q{.env})'",
        "perl -ne 'BEGIN { @ARGV = qw(.env) } print'",
        "lua -e 'print(io.open(\".env\"):read())'",
        "lua -e 'io.lines([[.env]])'",
        "Rscript -e 'readLines(\".env\")'",
        "elixir -e 'File.read!(\".env\")'",
        "awk 'BEGIN { ARGV[1] = \".env\"; ARGC = 2; while ((getline l < ARGV[1]) > 0) print l }'",
        "sed 'r .env' f",
        "sed -e '$r.env' f",
        "sed -n '/x/w .env' f",
        "sed 's/a/b/w .env' f",
        "sed 's/a/b/gw .env' f",
        "sed '1{R .env\n}' f",
        "sqlite3 a '.read .env'",
        "sqlite3 a 'select readfile(\".env\")'",
        "vim -c 'r .env' -c 'w !cat' -c q",
        "ed f <<'E'\nr .env\nE",
    ] {
        check(line, ".env");
    }
    check("python3 -c 'open(\"/home/dev/.ssh/id_rsa\")'", "/home/dev/.ssh/id_rsa");
    check("python3 -c 'open(os.path.expanduser(\"~/.ssh/id_rsa\"))'", "~/.ssh/id_rsa");
    check("python3 -c \"open('$HOME/.ssh/id_rsa')\"", "~/.ssh/id_rsa");
    check("python3 -c \"open('$PWD/.env')\"", "./.env");
    check("python3 -c 'open(\"a b.txt\")'", "a b.txt");
    check("python3 -c 'shutil.rmtree(\"config\")'", "config");
    check("node -e '[\"config\"].forEach(f)'", "config");
    check("python3 -c 'd[\".env\"]'", ".env");
    check("node -e 'fetch(\"file:///etc/x\")'", "/etc/x");
}

#[test]
fn what_is_no_text_in_code_mentions_nothing() {
    for line in [
        "python3 -c 'import secrets; print(secrets.token_hex())'",
        "node -e 'Object.keys(process.env)'",
        "python3 -c 'print(d[\"config\"], d.get(\"config\"))'",
        "python3 -c 'd = {\"config\": 1}'",
        "ruby -e 'd = {\"config\" => 1}'",
        "node -p 'a()[0][\"config\"]'",
        "python3 run.py",
        "echo \".env\"",
        "git commit -m 'Ignore \".env\"'",
        "grep '\".env\"' src",
        "sed -n 1,20p f",
        "sed s/a/b/ f",
        "awk '{print $1}' f",
        "cat <<'E'\nopen('.env')\nE",
        "python3 -c \"print('$X')\"",
    ] {
        assert_eq!(mentions(line), [""; 0], "{line:?}");
    }
}

#[test]
fn too_many_texts_may_be_any_name() {
    let texts: Vec<String> = (0..300).map(|n| format!("'{n}'")).collect();
    let line = format!("python3 -c \"[{}]\"", texts.join(","));
    let reads = analyse(&line).found.into_iter().flat_map(|command| command.reads);
    assert!(reads.into_iter().any(|path| !path.text.is_known()));
}
