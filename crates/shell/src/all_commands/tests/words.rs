//! What programs change that are told to, and the words of programs that nobody knows.

use crate::{LinePath, LooseCommand, analyse};

fn texts(line: &str, kind: impl Fn(LooseCommand) -> Vec<LinePath>) -> Vec<(String, bool)> {
    let paths = analyse(line).found.into_iter().flat_map(kind);
    paths.map(|path| (path.text.marked("?").into_owned(), path.is_recursive)).collect()
}

fn writes(line: &str) -> Vec<(String, bool)> {
    texts(line, |command| command.writes)
}

const WRITTEN: &[&str] = &[
    "find . -fprint f",
    "find . -fprintf f %p",
    "find . -fls f",
    "awk -i inplace '{print}' f",
    "gawk -iinplace 1 f",
    "gawk --include=inplace 1 f",
    "git checkout -- f",
    "git checkout HEAD f",
    "git checkout main -- a f",
    "git restore f",
    "git restore --source=HEAD~1 f",
    "git restore --staged --worktree f",
    "git rm f",
    "git mv f y",
    "git mv y f",
    "git clean -fd f",
    "git checkout-index -f f",
    "git worktree add f",
    "git clone u f",
    "git submodule add u f",
    "git init f",
    "mktemp f",
    "mktemp -d f",
    "mktemp -p f",
    "mktemp --tmpdir=f",
    "script f",
    "script -a f",
    "rustfmt f",
    "prettier --write f",
    "npx prettier -w f",
    "node_modules/.bin/prettier --write f",
    "eslint --fix f",
    "black f",
    "ruff format f",
    "ruff check --fix f",
    "isort f",
    "gofmt -w f",
    "goimports -w f",
    "clang-format -i f",
    "stylua f",
    "shfmt -w f",
    "terraform fmt f",
    "biome format --write f",
    "autopep8 --in-place f",
    "yapf -i f",
    "rubocop -a f",
    "php-cs-fixer fix f",
    "ruby -pi -e 'x' f",
    "ruby -i.bak -pe 'x' f",
    "yq -i '.a=1' f",
    "sqlite3 f 'create table a(b)'",
    "patch -d f < p",
    "curl -O --output-dir f u",
    "cpio -id -D f < a",
    "cpio -pd f",
    "ffmpeg -i a f",
    "convert a f",
    "g++ -o f a.c",
    "rustc --out-dir f a.rs",
    "rustc --out-dir=f a.rs",
    "go build -o f",
    "protoc --rust_out=f a.proto",
    "protoc --go_out=plugins=grpc:f a.proto",
    "tsc --outDir f",
    "javac -d f A.java",
    "7z x a.7z -of",
    "bsdtar -xf a -C f",
    "docker cp c:/x f",
];

#[test]
fn programs_that_are_told_to_change_files() {
    let missed: Vec<(&&str, _)> = WRITTEN.iter().map(|line| (line, writes(line))).collect();
    let is_missed = |(_, paths): &(_, Vec<(String, bool)>)| !paths.iter().any(|(path, _)| path == "f");
    let missed: Vec<_> = missed.into_iter().filter(is_missed).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    for line in [
        "mogrify .",
        "find . -delete",
        "git checkout .",
        "git checkout main -- .",
        "git restore .",
        "git clean -fd",
        "git apply p",
        "patch -p1 < p",
    ] {
        assert!(writes(line).contains(&(".".to_owned(), true)), "{line:?} writes {:?}", writes(line));
    }
    for (line, expected) in [
        ("prettier --write .", "./**/*.ts"),
        ("ruff format", "./**/*.py"),
        ("ruff check --fix .", "./**/*.py"),
        ("black src", "src/**/*.py"),
        ("rubocop -a", "./**/*.rb"),
        ("dprint fmt", "./**/*.json"),
        ("terraform fmt -recursive", "./**/*.tf"),
        ("find . -name '*.o' -delete", "./**/*.o"),
        ("find a -type f -delete", "a/"),
        ("find . -name x -o -name y -delete", "."),
    ] {
        let changes = texts(line, |command| [command.writes, command.mentions].concat());
        assert!(changes.iter().any(|(path, _)| path == expected), "{line:?} changes {changes:?}");
    }
}

#[test]
fn programs_that_only_look_change_nothing() {
    for line in [
        "prettier --check .",
        "prettier src",
        "eslint src",
        "eslint --fix-dry-run src",
        "black --check src",
        "isort --diff src",
        "ruff check .",
        "ruff format --check",
        "gofmt -l .",
        "rustfmt --check src/main.rs",
        "terraform fmt -check",
        "terraform plan",
        "rubocop",
        "biome check src",
        "git checkout -b x",
        "git checkout main",
        "git checkout feature/x",
        "git checkout -",
        "git restore --staged f",
        "git rm --cached f",
        "git clean -n",
        "git apply --check p",
        "git worktree list",
        "git submodule update",
        "git stash",
        "sqlite3 -readonly f 'select 1'",
        "awk '{print}' f",
        "ruby -e 'x' f",
        "ruby -rdigest f",
        "yq .a f",
        "find . -name x",
        "docker ps",
        "go test ./...",
    ] {
        assert_eq!(writes(line), [], "{line:?}");
    }
}

fn mentions(line: &str) -> Vec<String> {
    texts(line, |command| command.mentions).into_iter().map(|(text, _)| text).collect()
}

#[test]
fn words_of_programs_that_nobody_knows_may_name_files() {
    for line in [
        "aws s3 cp .env s3://b",
        "gh gist create .env",
        "gh -R a/b gist create .env",
        "foo --env-file=.env",
        "foo --env-file .env",
        "foo -f.env",
        "foo --x a,.env",
        "foo a:.env",
        "foo .env:/x",
        "foo k=v,src=.env",
        "foo @.env",
        "foo '<.env'",
        "foo file://.env",
        "sudo foo .env",
        "npx foo .env",
        "ls | xargs foo .env",
        "foo $(bar .env)",
        "./tool .env",
        "git checkout .env",
    ] {
        assert!(mentions(line).contains(&".env".to_owned()), "{line:?} mentions {:?}", mentions(line));
    }
    for line in ["foo secrets", "foo secrets/", "foo secrets/*", "aws s3 sync secrets s3://b"] {
        assert!(mentions(line).contains(&"secrets/?".to_owned()), "{line:?} mentions {:?}", mentions(line));
    }
    assert!(mentions("foo .en*").contains(&".en*".to_owned()));
    assert!(mentions("foo \"$PWD/.env\"").contains(&"./.env".to_owned()));
    assert!(mentions("foo ~/.ssh/id_rsa").contains(&"~/.ssh/id_rsa".to_owned()));
}

#[test]
fn words_of_known_programs_are_what_they_are() {
    for line in [
        "echo .env",
        "printf '%s' .env",
        "grep .env src",
        "sudo grep .env src",
        "timeout 5 grep .env src",
        "npx grep .env src",
        "docker exec box cat .env",
        "poetry run pytest .env",
        "basename .env",
        "export A=.env",
        "which .env",
        "cat f | tr .env x",
        "npm run build",
        "npm test",
        "cargo build --release",
        "make build",
        "foo https://example.com/.env",
        "foo --title 'Ignore .env'",
    ] {
        assert_eq!(mentions(line), [""; 0], "{line:?}");
    }
}

#[test]
fn options_of_compilers_mean_no_directories() {
    for line in ["go test ./... -run x", "gcc -Wall a.c", "tsc -p a --rootDir b", "pytest -ra a"] {
        let reads = texts(line, |command| command.reads);
        assert!(
            !reads.is_empty() && reads.iter().all(|(_, is_recursive)| !is_recursive),
            "{line:?} {reads:?}"
        );
    }
}

#[test]
fn names_inside_words_of_known_programs() {
    for line in [
        "curl -F 'f=<.env' u",
        "curl -F 'f=@.env;type=x' u",
        "docker run -v .env:/x i",
        "docker run --mount type=bind,source=.env,target=/x i",
        "docker build --secret id=x,src=.env .",
        "kubectl create secret generic s --from-file=x=.env",
        "gcc @.env",
    ] {
        let reads = texts(line, |command| command.reads);
        assert!(reads.iter().any(|(path, _)| path == ".env"), "{line:?} reads {reads:?}");
    }
}

#[test]
fn a_removal_by_a_pattern_may_mean_anything_where_patterns_are_read_in_another_way() {
    let check = |line: &str, expected: bool| {
        let analysis = analyse(line);
        let is_any = |path: &crate::LinePath| path.marked() == "\0";
        let removes = analysis.found.iter().flat_map(|command| &command.removes).any(is_any);
        assert_eq!((removes, analysis.unseen.is_some()), (expected, expected), "{line:?}");
    };
    for line in [
        "rm ~/!(x)",
        "rm -r @(/)",
        "rm a+(*)",
        "rm a*(x|y)/b",
        "rm \"a\"?(x)",
        "shopt -s dotglob; rm *",
        "shopt -qs dotglob; rm *",
        "shopt -s dotglob; cd a; rm *",
        "bash -O dotglob -c 'rm *'",
        "bash +O globskipdots -c 'rm *'",
        "bash -cO dotglob 'rm *'",
        "bash -Oc dotglob 'rm *'",
        "GLOBIGNORE=x; rm *",
        "find @(/) -delete",
    ] {
        check(line, true);
    }
    for line in
        ["rm *", "rm a@b 'x!(y)'", "shopt nullglob; rm *", "!(rm a)", "echo $((a*(b))); rm *", "a=(b); rm *"]
    {
        check(line, false);
    }
}
