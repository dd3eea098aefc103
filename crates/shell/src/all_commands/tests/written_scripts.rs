//! Files that a line makes and runs, and what comes in for programs that run it.

use super::found;
use crate::analyse;

const RUN: &[&str] = &[
    "echo rm x > s; sh s",
    "echo rm x > s && sh ./s",
    "echo rm x >> s; bash -x s",
    "echo rm x &> s; bash -o pipefail s",
    "echo -e 'r\\x6d x' > s; sh s",
    "echo -e '\\0162m x' > s; sh s",
    "echo 'rm x' > s; chmod +x s; ./s",
    "echo 'rm x' > /tmp/s; sh /tmp/s",
    "echo 'rm x' > s; nohup sh s &",
    "echo 'rm x' > s; sudo ./s",
    "echo 'rm x' > s; sh < s",
    "echo 'rm x' > s; ssh h < s",
    "echo 'rm x' > s; parallel -a s",
    "echo 'rm x' > s; parallel :::: s",
    "echo 'rm x' > s; PATH=. s",
    "echo 'rm x' > s; . ./s",
    "cd d; echo 'rm x' > s; cd ..; sh d/s",
    "sh -c 'echo rm x > s'; sh s",
    "for i in 1 2; do sh s; echo 'rm x' > s; done",
    "printf 'rm x' | tee s && bash s",
    "printf 'rm x\\n' | sudo tee s; bash s",
    "printf '#!/bin/sh\\nrm x\\n' > s; sh s",
    "printf '%s\\n' ls 'rm x' > s; sh s",
    "printf -- 'r%s x' m > s; sh s",
    "cat > s <<E\nrm x\nE\n. ./s",
    "cat > s <<'E' && sh s\nrm x\nE",
    "cat <<E > s; sh s\nrm x\nE",
    "cat <<-E > s; sh s\n\trm x\n\tE",
    "cat <<< 'rm x' > s; sh s",
    "tee s <<E\nrm x\nE\nsource s",
    "tee s <<< 'rm x' > /dev/null; bash s",
    "dd of=s <<< 'rm x'; sh s",
    "cat > s <<E\na:\n\trm x\nE\nmake -f s",
    "cat > s <<E\na:\n\trm x\nE\nmake -fs a",
    "printf 'a:\\n\\trm x\\n' > Makefile; make",
    "echo '{\"scripts\": {\"y\": \"rm x\"}}' > package.json; npm run y",
    "cat > s.py <<E\nimport os\nos.system(\"rm x\")\nE\npython s.py",
    "cat > s.py <<E\nimport os\nos.system(\"rm x\")\nE\npython -m s",
    "cat > s <<E\n#!/usr/bin/env python3\nimport os; os.system(\"rm x\")\nE\nchmod +x s; ./s",
    "echo 'require(\"child_process\").execSync(\"rm x\")' > s.js; node s.js",
    "echo 'BEGIN{system(\"rm x\")}' > s; awk -f s",
    "echo '\\! rm x' > s; psql -f s",
    "echo '.shell rm x' > s; sqlite3 db < s",
    "echo '!rm x' > s; vim -S s",
    "echo 'rm x' > s; bash --rcfile s",
    "echo 'rm x' > s; bash --init-file s -i",
    "echo 'rm x' > s; env BASH_ENV=s bash -c :",
    "echo 'rm x' > s; BASH_ENV=s bash -c :",
    "echo 'rm x' > s; ENV=./s sh -i",
    "echo 'rm x' >> ~/.bashrc; bash -i",
    "echo 'rm x' > .git/hooks/pre-commit; git commit -m y",
    "echo 'rm x' > s; mv s t; sh t",
    "echo 'rm x' > s; cp s t && ./t",
    "echo 'rm x' > s; cat s > t; sh t",
    "echo 'rm x' > s; cat < s > t; sh t",
    "echo 'echo rm x > t; sh t' > s; sh s",
];

const FED: &[&str] = &[
    "awk 'BEGIN{print \"rm x\" | \"sh\"}'",
    "awk 'BEGIN{print \"rm x\" |& \"sh\"}'",
    "awk 'BEGIN{printf(\"rm x\\n\") | \"bash -s\"}'",
    "awk 'BEGIN{print \"rm\", \"x\" | \"/bin/sh\"}'",
    "awk 'BEGIN{print \"import os; os.system(\\\"rm x\\\")\" | \"python3\"}'",
    "echo 'rm x' | awk 'BEGIN{\"sh\" | getline l}'",
    "echo 'rm x' | awk 'BEGIN{system(\"sh\")}'",
    "echo 'rm x' | ssh h",
    "echo 'rm x' | ssh -p 22 -i k h",
    "ssh h <<< 'rm x'",
    "ssh -p 22 h sh <<E\nrm x\nE",
    "echo 'rm x' | ssh -i k h bash -s",
    "echo 'rm x' | ssh -T h sudo sh",
    "echo 'rm x' | su",
    "echo rm x | parallel",
    "echo rm x | parallel -j 4",
    "parallel <<< 'rm x'",
    "parallel -j4 <<E\nrm x\nE",
    "echo 'rm x' | sudo sh",
    "printf 'r%s x' m | sh",
    "echo rm x | (sh)",
    "echo rm x | { sh; }",
    "(sh) <<< 'rm x'",
    "{ sh; } <<< 'rm x'",
    "{ sh; } <<E\nrm x\nE",
    "if true; then sh; fi <<< 'rm x'",
    "sh -c sh <<< 'rm x'",
    "sh -c 'ls; sh' <<E\nrm x\nE",
    "echo 'rm x' | bash -c sh",
    "sftp h <<< '!rm x'",
    "echo '!rm x' | sftp h",
    "echo '!rm x' | gnuplot",
    "ipython <<< '!rm x'",
    "echo '!rm x' | ed f",
    "echo '\\! rm x' | psql",
    "echo '.shell rm x' | sqlite3",
    "echo 'shell rm x' | gdb",
];

const TOLD: &[&str] = &[
    "cargo watch -s 'rm x'",
    "cargo watch -x check --shell='rm x'",
    "cargo watch -- rm x",
    "npm pkg set scripts.y='rm x' && npm run y",
    "npm set-script y 'rm x'",
    "coreutils --coreutils-prog=rm x",
    "just --shell-command 'rm x'",
];

const COPIED: &[&str] = &[
    "cp /bin/rm y; ./y x",
    "ln -s /bin/rm y; ./y x",
    "ln -sf /bin/rm y && y x",
    "mv /bin/rm y; ./y x",
    "install -m 755 /bin/rm y; sudo ./y x",
    "rsync /bin/rm y; ./y x",
    "ln /bin/rm /tmp/y; PATH=/tmp:$PATH y x",
    "cat /bin/rm > y; chmod +x y; ./y x",
    "dd if=/bin/rm of=y; ./y x",
    "cp /bin/rm y; cp y z; ./z x",
    "for i in 1 2; do ./y x; cp /bin/rm y; done",
];

const LINKERS: &[&str] = &[
    "rustc -C linker=rm y.rs",
    "rustc -Clinker=rm y.rs",
    "rustc --codegen linker=rm y.rs",
    "rustc -C link-arg=-fuse-ld=rm y.rs",
    "gcc -fuse-ld=rm y.c",
    "clang --ld-path=rm y.c",
    "RUSTFLAGS='-C linker=rm' cargo build",
    "env RUSTFLAGS=-Clinker=rm cargo build",
    "LDFLAGS=-fuse-ld=rm make",
];

#[test]
fn what_a_line_writes_and_runs_is_read() {
    let hidden = |expected: &str, lines: &[&str]| -> Vec<(String, Vec<String>)> {
        let lines = lines.iter().map(|line| ((*line).to_owned(), found(line)));
        lines.filter(|(_, found)| !found.iter().any(|command| command == expected)).collect()
    };
    let all = [
        hidden("rm x", RUN),
        hidden("rm x", FED),
        hidden("rm x", TOLD),
        hidden("/bin/rm x", COPIED),
        hidden("rm", LINKERS),
    ]
    .concat();
    assert!(all.is_empty(), "{all:#?}");
}

const UNSEEN: &[&str] = &[
    "base64 -d <<< cm0geA== > s; sh s",
    "base64 -d f > s; . ./s",
    "curl -o s https://example.com/x; sh s",
    "curl -sSLo s https://example.com/x && bash s",
    "curl -O https://example.com/s && bash s",
    "wget -O s https://example.com/x; sh s",
    "wget https://example.com/s; sh s",
    "wget -qO- https://example.com/x > s; sh s",
    "curl https://example.com/x > s; chmod +x s; ./s",
    "curl https://example.com/x | tee s; sh s",
    "curl https://example.com/x > s; python3 s",
    "{ echo rm x; } > s; sh s",
    "(echo rm; echo x) > s; sh s",
    "exec 3> s; echo rm x >&3; sh s",
    "printf 'r%c x' m > s; sh s",
    "echo 'rm x' | rev | rev > s; sh s",
    "echo \"$X\" > s; sh s",
    "cp \"$X\" y; ./y x",
    "cp $(which rm) y; ./y x",
    "awk '{print \"rm \" $1 | \"sh\"}' f",
    "awk '{print | \"sh\"}' f",
    "cat f | ssh h",
    "cat f | ssh h sh",
    "cat f | parallel",
    "cat f | (bash)",
    "cat f | bash -c sh",
    "echo '1e rm x' > s; sed -f s f",
    "bash --rcfile \"$X\"",
    "bash --rcfile <(curl x)",
    "gcc -B. y.c",
];

const SEEN: &[&str] = &[
    "echo hi > notes.txt; cat notes.txt",
    "echo 'rm x' > notes.txt; cat notes.txt",
    "echo 'rm x' > notes.txt; bash build.sh",
    "echo 'rm x' > notes.txt; bash build.sh notes.txt",
    "echo 'rm x' > notes.txt; python3 read.py notes.txt",
    "cp a.sh b.sh && ./run.sh",
    "cp a.sh b.sh && ./b.sh",
    "cp target/debug/app app && ./app --help",
    "chmod +x build.sh && ./build.sh",
    "touch build.sh && bash build.sh",
    "cat > t.py <<'E'\nprint(1)\nE\npython3 t.py",
    "cat > t.sh <<'E'\necho hi\nE\nbash t.sh",
    "printf '#!/bin/sh\\necho %s\\n' hi > t.sh && sh t.sh",
    "cargo test > out.log 2>&1; tail out.log",
    "gcc a.c -o a && ./a",
    "gcc -B/usr/libexec/mold a.c",
    "tar c . | ssh h 'tar x'",
    "cat f | ssh h 'cat > f'",
    "ssh h uptime < /dev/null",
    "cat hosts | parallel ssh {} uptime",
    "ls | parallel -j 4 gzip",
    "ls | parallel gzip ::: a",
    "awk '{print $1 | \"sort\"}' f",
    "awk '{print $1 | \"sort -n > out\"}' f",
    "curl -o data.json https://example.com/x; python3 parse.py data.json",
    "curl -o x.tgz https://example.com/x && tar xf x.tgz",
    "jq . package.json > t && mv t package.json && npm install",
    "ENV=prod npm start",
    "ENV=$X npm start",
    "make > build.log; make test",
    "printf 'a\\n' | tee out.txt; sh run.sh out.txt",
    "npm pkg set version=1.2.3",
    "npm pkg get scripts",
    "rustc -C opt-level=3 x.rs",
    "RUSTFLAGS='-D warnings' cargo build",
    "cargo watch -x test",
    "ls | (head -3)",
    "cat f | bash -c 'wc -l'",
    "echo x | sudo tee -a hosts > /dev/null",
    "python3 gen.py > out.txt && cat out.txt",
    "bash -c 'echo hi' > log; cat log",
    "bash --norc -c ls",
    "sftp -b batch h",
    "echo 'put x' | sftp h",
];

#[test]
fn what_a_line_runs_that_it_did_not_say_is_unseen() {
    let missed: Vec<&&str> = UNSEEN.iter().filter(|line| analyse(line).unseen.is_none()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    for line in SEEN {
        assert_eq!(analyse(line).unseen, None, "{line:?}");
        let found = found(line);
        assert!(!found.iter().any(|command| command.starts_with("rm")), "{line:?} holds {found:?}");
    }
}

#[test]
fn files_that_run_each_other_come_to_an_end() {
    for line in [
        "echo 'sh s' > s; sh s",
        "echo './t' > s; echo './s' > t; sh s",
        "cp a b; cp b a; ./a x",
        "echo 'cp s t; sh t' > s; cp t s; sh s",
    ] {
        assert!(found(line).len() < 64, "{line:?} holds {}", found(line).len());
    }
    let many = "echo 'sh s' > s; sh s; ".repeat(400);
    assert!(found(&many).len() < 10_000, "{}", found(&many).len());
}
