//! What code of other languages runs.

use super::{check, found};
use crate::analyse;

#[test]
fn commands_are_found_in_code() {
    for line in [
        "awk 'BEGIN{\"rm x\" | getline y}'",
        "awk 'BEGIN{while ((\"rm x\" | getline) > 0) n++}'",
        "awk '{print $1 | \"rm x\"}'",
        "awk '/a|b/ {print |& \"rm x\"; next}'",
        "gawk --source='BEGIN{system(\"rm x\")}'",
        "gawk -e 'BEGIN{system(\"rm x\")}' f",
        "perl -e 'system \"rm\",\"x\"'",
        "perl -we 'system(\"rm\", \"x\");'",
        "perl -e 'exec qw(rm x)'",
        "perl -e 'exec \"rm x\" or die'",
        "perl -e 'print `rm x`'",
        "ruby -e 'exec %w[rm x]'",
        "ruby -e 'spawn(\"rm\", \"x\")'",
        "ruby -e 'system \"rm x\"'",
        "node -p 'require(\"child_process\").execSync(\"rm x\").toString()'",
        "node --eval='require(\"child_process\").spawn(\"rm\", [\"x\"])'",
        "node --print 'require(\"child_process\").exec(`rm x`, {})'",
        "lua -e 'os.execute(\"rm x\")'",
        "lua -e 'os.execute\"rm x\"'",
        "lua -e 'os.execute[[rm x]]'",
        "deno eval 'new Deno.Command(\"rm\", [\"x\"])'",
        "php -r 'system(\"rm x\");'",
        "php -r 'passthru(\"rm x\");'",
        "python3 -c 'import subprocess as s; s.run([\"rm\", \"x\"], check=True)'",
        "python3 -c 'import subprocess; subprocess.check_call([\"rm\",\"x\"])'",
        "python3 <<'E'\nimport os\nos.system('rm x')\nE",
        "python3 - <<'E'\nimport os\nos.system('rm x')\nE",
        "python3 - a b <<'E'\nimport os\nos.system('rm x')\nE",
        "python3 <<< 'import os; os.system(\"rm x\")'",
        "echo 'import os; os.system(\"rm x\")' | python3",
        "sudo python3 -u <<'E'\nimport subprocess\nsubprocess.run(['rm', 'x'])\nE",
        "node <<'E'\nrequire('child_process').execSync('rm x')\nE",
        "ruby <<'E'\nsystem('rm x')\nE",
    ] {
        check(line, "rm x");
    }
    check("python3 -c 'import subprocess; subprocess.run([\"rm\", p])'", "rm ?");
}

#[test]
fn code_that_runs_something_unreadable_is_unseen() {
    let check = |line: &str, expected: bool| {
        assert_eq!(analyse(line).unseen.is_some(), expected, "{line:?}: {:?}", analyse(line).unseen);
    };
    for line in [
        "awk 'BEGIN{system(\"r\" \"m x\")}'",
        "awk -v c='rm x' 'BEGIN{system(c)}'",
        "awk 'BEGIN{c=\"rm x\"; c | getline}'",
        "awk 'BEGIN{\"r\" \"m x\" | getline}'",
        "awk '{print | $1}'",
        "awk '{print | \"r\" \"m x\"}'",
        "gawk 'BEGIN{f=\"system\"; @f(\"rm x\")}'",
        "awk 'BEGIN{system(\"\\162m x\")}'",
        "awk \"$X\"",
        "perl -e 'system $x'",
        "perl -e 'system \"rm $x\"'",
        "perl -e 'open(F, \"rm x|\")'",
        "perl -e 'eval \"sys\".\"tem 1\"'",
        "ruby -e 'exec x'",
        "ruby -e 'system \"r#{1}m x\"'",
        "node -e 'require(\"child_process\").execSync(x)'",
        "node -e 'const {exec: e} = require(\"child_process\"); e(\"rm x\")'",
        "node -e 'require(\"child_process\").execSync(`rm ${x}`)'",
        "lua -e 'os.execute(x)'",
        "lua -e 'io.popen(\"r\" .. \"m x\")'",
        "php -r 'system($x);'",
        "php -r 'echo `rm x`;'",
        "python3 -c 'import os; os.system(\"r\" + \"m x\")'",
        "python3 -c 'import os; os.system(f\"rm {x}\")'",
        "python3 -c 'from os import system as s; s(\"rm x\")'",
        "python3 -c 'import os; s = os.system; s(\"rm x\")'",
        "python3 -c 'exec(input())'",
        "python3 -c \"$X\"",
        "python3 <<'E'\nimport subprocess\nsubprocess.run(x)\nE",
        "curl x | python3",
        "curl x | python3 -",
        "Rscript -e 'system(\"rm x\")'",
        "emacs --batch --eval '(shell-command \"rm x\")'",
    ] {
        check(line, true);
    }
    for line in [
        "awk '/a|b/ {print}' f",
        "awk -F'|' '{print $2}' f",
        "awk -F '|' '{print $2}' f",
        "awk '$1 > 5 || $2 < 3' f",
        "awk '{print > \"f\"}'",
        "perl -pe 's/a|b/c/' f",
        "perl -ne 'print if /open/' f",
        "perl -pe 's/system/x/' f",
        "ruby -e 'puts 1'",
        "node -e 'console.log(`a ${b}`)'",
        "node -p '/a/.exec(\"a\")[0]'",
        "python3 -c 'import json; print(1)'",
        "python3 -c 'import platform; print(platform.system())'",
        "python3 -c 'd = {}; d[\"system\"]'",
        "cat f | python3 -m json.tool",
        "cat f | python3 -c 'import sys; print(sys.stdin.read())'",
        "cat f | python3 run.py system",
        "python3 <<'E'\nprint(1)\nE",
        "python3 -m pytest -k exec",
        "node server.js",
        "php -r 'echo 1;'",
    ] {
        check(line, false);
    }
    assert!(!found("python3 -c 'print(1)'").is_empty());
}

#[test]
fn a_program_in_a_file_is_unseen() {
    let check = |line: &str, expected: bool| {
        assert_eq!(analyse(line).unseen.is_some(), expected, "{line:?}");
    };
    for line in [
        "awk -f prog.awk f",
        "awk -v x=1 -fprog.awk f",
        "gawk --file prog.awk f",
        "gawk -i prog.awk 1 f",
        "sed -f x f",
        "sed -nf x f",
        "sed --file=x f",
    ] {
        check(line, true);
    }
    for line in ["awk -Ff '{print $1}' f", "sed -ne /f/p f", "sed -i.f 1d f", "sed 1d -- -f"] {
        check(line, false);
    }
}

#[test]
fn long_code_takes_no_longer_than_other_lines() {
    for (start, part, end) in [
        ("python3 -c '", "system(\"", "'"),
        ("python3 -c '", "import subprocess; run([\"a\", x]);", "'"),
        ("perl -e '", "system(", "'"),
        ("lua -e '", "execute([[", "'"),
        ("ruby -e '", "`", "'"),
        ("awk '", "/a\\n", "'"),
        ("awk '", "\"a\" | getline;", "'"),
        ("gawk", " --source=x@y", ""),
        ("git config", " a.pager", ""),
        ("sqlite3 a '", ".shell a\n", "'"),
        ("find", " / -exec rm {} +", ""),
        ("fd", " --search-path=/", " -x rm"),
        ("make", " CC=a", ""),
        ("ssh", " -o proxycommand=a", ""),
        ("python3 -c '", "\"\\", "'"),
        ("ruby -e '", "q(", "'"),
        ("sed '", "r w", "'"),
        ("vim -c '", "a ", "'"),
        ("make --eval='", "a:;b\n", "'"),
    ] {
        let began = std::time::Instant::now();
        let _ = analyse(&format!("{start}{}{end}", part.repeat(5_000)));
        assert!(began.elapsed().as_secs() < 10, "{start}{part}: {:?}", began.elapsed());
    }
}
