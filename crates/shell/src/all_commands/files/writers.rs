//! Programs that change files in place if they are told to, and those that are told where to write by an option.

use std::sync::LazyLock;

use super::super::word::Argument;
use super::path;
use crate::LooseCommand;
use crate::all_commands::{below, search};
use crate::names::{Sieve, firsts, has_name as has, name_and_value};
use crate::places::{Places, named};

/// Programs that change all that they are told and all below it, by the words that make them do so; without any they always do.
const FORMATTERS: &[(&str, &str)] = &[
    ("prettier", "--write -w"),
    (
        "eslint xo standard semistandard ts-standard oxlint stylelint markdownlint markdownlint-cli2 standardrb",
        "--fix",
    ),
    ("gofmt goimports gofumpt golines", "-w"),
    (
        "clang-format yapf autopep8 cmake-format docformatter ocamlformat swift-format nimpretty",
        "-i --in-place --inplace",
    ),
    ("shfmt buf", "-w --write"),
    ("biome rome", "--write --apply --apply-unsafe --fix"),
    ("rubocop", "-a -A -x --auto-correct --autocorrect --auto-correct-all --autocorrect-all --fix-layout"),
    ("ruff", "format --fix --fix-only --unsafe-fixes"),
    ("black isort rustfmt stylua swiftformat phpcbf pyupgrade nixfmt alejandra mogrify", ""),
    ("autoflake", "-i --in-place"),
    ("terraform tofu dprint deno zig taplo", "fmt format"),
    ("php-cs-fixer golangci-lint", "fix --fix"),
    ("ktlint google-java-format", "-F --format -i -r --replace"),
];

/// What the names end in of the files that they look for in directories; of the others, nobody knows.
const ENDINGS: &[(&str, &str)] = &[
    ("black isort ruff yapf autopep8 autoflake docformatter pyupgrade", "py pyi ipynb"),
    (
        "prettier eslint xo standard semistandard ts-standard oxlint biome rome deno dprint",
        "js ts jsx tsx mjs cjs mts cts json css scss less html vue svelte md mdx yml yaml graphql toml",
    ),
    ("stylelint", "css scss less"),
    ("markdownlint markdownlint-cli2", "md"),
    ("gofmt goimports gofumpt golines golangci-lint", "go"),
    ("rustfmt", "rs"),
    ("clang-format", "c h cc cpp hpp cxx m java js proto"),
    ("shfmt", "sh bash"),
    ("buf", "proto"),
    ("rubocop standardrb", "rb rake"),
    ("stylua", "lua"),
    ("swiftformat swift-format", "swift"),
    ("terraform tofu", "tf tfvars hcl"),
    ("php-cs-fixer phpcbf", "php"),
    ("zig", "zig"),
    ("taplo", "toml"),
    ("ktlint", "kt kts"),
    ("google-java-format", "java"),
];

/// Words with which they only say what they would do.
const ONLY_SAYS: &str =
    "--check --check-only -check --diff --dry-run --fix-dry-run --list-different --version --help -h -V";
/// Words of theirs that are no paths.
const SUBCOMMANDS: &str = "format fmt fix check lint ci run";
/// Those that take the working directory if they are told none.
const TAKE_ALL: &str = "ruff terraform tofu dprint rubocop standardrb biome rome php-cs-fixer golangci-lint xo standard deno taplo";

/// Options that say where to write.
const OUTPUTS: &[(&str, &str)] = &[
    ("g++ c++ clang++ rustc go swiftc ghc nvcc ldc2", "-o --out-dir --outdir"),
    ("javac kotlinc scalac", "-d"),
    ("tsc", "--outDir --outFile --declarationDir"),
    ("esbuild rollup webpack vite parcel", "--outfile --outdir --dir --output-path --outDir --dist-dir -o"),
    ("pandoc dot neato bindgen cbindgen graphviz sass plantuml", "-o --output"),
    ("curl", "--output-dir"),
    ("7z 7za 7zz 7zr", "-o"),
    ("bsdtar gtar", "-C --directory"),
    ("cpio", "-D --directory"),
    ("mktemp", "-p --tmpdir"),
    ("patch", "-d --directory -o --output"),
    ("npm pnpm yarn", "--pack-destination"),
    ("find", "-fprint -fprint0 -fprintf -fls"),
];

/// Programs that write what they are told last.
const LAST: &str = "ffmpeg avconv convert magick montage composite cwebp optipng";
/// Programs that write every operand.
const ALL: &str = "mktemp script scriptreplay";

/// Programs that write in ways of their own.
const OTHERS: &str = "awk gawk mawk nawk ruby yq mlr sqlite3 protoc cpio docker podman kubectl patch";

static MAY_FORMAT: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(firsts(FORMATTERS)));
static MAY_OUTPUT: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(firsts(OUTPUTS)));
static MAY_WRITE: LazyLock<Sieve> =
    LazyLock::new(|| Sieve::of(firsts(FORMATTERS).chain(firsts(OUTPUTS)).chain([LAST, ALL, OTHERS])));

/// Adds what a program changes.
pub(super) fn add(command: &mut LooseCommand, base: &str, arguments: &[Argument], places: &Places) {
    if !MAY_WRITE.may_have(base) {
        return;
    }
    let operands: Vec<&Argument> = arguments.iter().filter(|word| !word.text.starts_with('-')).collect();
    let mut write = |words: &[&Argument], is_recursive: bool| {
        let paths = words.iter().flat_map(|word| path(word, places)).collect();
        command.writes.extend(below(paths, is_recursive));
    };
    if let Some(mut formatted) = formatted(base, arguments) {
        let whole = Argument::new(".");
        if formatted.is_empty() && has(TAKE_ALL, base) {
            formatted.push(&whole);
        }
        write(&formatted, false);
        let directories: Vec<&Argument> = formatted.into_iter().filter(|word| !is_file(&word.text)).collect();
        return write_below(command, base, &directories, places);
    }
    if MAY_OUTPUT.may_have(base)
        && let Some((_, names)) = OUTPUTS.iter().find(|(programs, _)| has(programs, base))
    {
        for output in values(names, arguments) {
            write(&[&output], !is_file(&output.text));
        }
    }
    let has_word = |names: &str| arguments.iter().any(|word| has(names, &word.text));
    match base {
        _ if has(LAST, base) => write(&operands[operands.len().saturating_sub(1)..], false),
        _ if has(ALL, base) => write(&operands, false),
        "awk" | "gawk" | "mawk" | "nawk" if edits_in_place(arguments) => write(&operands, false),
        "ruby" if arguments.iter().any(|word| is_group_with_i(&word.text)) => write(&operands, false),
        "yq" | "mlr" if has_word("-i -I --inplace --in-place") => write(&operands, false),
        "sqlite3" if !has_word("-readonly --readonly") => write(&operands[..operands.len().min(1)], false),
        "cpio" if arguments.iter().any(|word| copies_through(&word.text)) => write(&operands, true),
        "protoc" => write(&generated(arguments).iter().collect::<Vec<_>>(), true),
        "docker" | "podman" | "kubectl" if has_word("cp") => {
            write(&operands[operands.len().saturating_sub(1)..], true);
        }
        "patch" if operands.is_empty() => command.writes.extend(below(named(".", false, places), true)),
        "find" => {
            let (named, removed): (Vec<_>, Vec<_>) =
                search::changed(arguments).into_iter().partition(|word| word.text.contains("/**/"));
            write(&removed.iter().collect::<Vec<_>>(), true);
            command.mentions.extend(named.iter().flat_map(|word| path(word, places)));
        }
        _ => {}
    }
}

/// Whether a word is hardly the name of a directory.
fn is_file(word: &str) -> bool {
    let name = word.trim_start_matches('.').rsplit('/').next().unwrap_or_default();
    name.trim_start_matches('.').contains('.')
}

/// Adds the files that a formatter finds in directories. Which those are is not known, so they are only mentioned.
fn write_below(command: &mut LooseCommand, base: &str, directories: &[&Argument], places: &Places) {
    let endings = ENDINGS.iter().find(|(programs, _)| has(programs, base)).map(|(_, endings)| *endings);
    for directory in directories {
        let Some(endings) = endings else {
            command.writes.extend(below(path(directory, places), true));
            continue;
        };
        let root = directory.text.trim_end_matches('/');
        for ending in endings.split(' ') {
            let text = format!("{root}/**/*.{ending}");
            let files = Argument { text, is_pattern: true, ..(*directory).clone() };
            command.mentions.extend(path(&files, places));
        }
    }
}

/// What a formatter changes, if it changes anything.
fn formatted<'a>(base: &str, arguments: &'a [Argument]) -> Option<Vec<&'a Argument>> {
    if !MAY_FORMAT.may_have(base) {
        return None;
    }
    let (_, words) = FORMATTERS.iter().find(|(programs, _)| has(programs, base))?;
    let has_word = |names: &str| arguments.iter().any(|word| has(names, name_and_value(&word.text).0));
    let changes = (words.is_empty() || has_word(words)) && !has_word(ONLY_SAYS);
    let is_path = |word: &&Argument| !word.text.starts_with('-') && !has(SUBCOMMANDS, &word.text);
    changes.then(|| arguments.iter().filter(is_path).collect())
}

/// The values of options, in the same word or the next.
fn values(names: &str, arguments: &[Argument]) -> Vec<Argument> {
    let mut values = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        if has(names, &word.text) {
            values.extend(arguments.get(at + 1).cloned());
            continue;
        }
        let (name, value) = match word.text.split_once('=') {
            Some((name, value)) => (name, value),
            None if !word.text.starts_with("--") => word.text.split_at_checked(2).unwrap_or_default(),
            None => continue,
        };
        if has(names, name) && !value.is_empty() {
            values.push(word.part(value));
        }
    }
    values
}

/// `-i inplace` in its spellings.
fn edits_in_place(arguments: &[Argument]) -> bool {
    values("-i --include -l --load", arguments).iter().any(|value| value.text.starts_with("inplace"))
}

/// `-i`, `-pi`, `-i.bak`.
fn is_group_with_i(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    let flags = letters.bytes().take_while(|byte| b"pnalsw0F".contains(byte)).count();
    letters[flags..].starts_with('i')
}

/// `-p` of `cpio`, in a group.
fn copies_through(word: &str) -> bool {
    word == "--pass-through" || (word.starts_with('-') && !word.starts_with("--") && word.contains('p'))
}

/// Where `protoc` writes: `--go_out=plugins=grpc:dir`.
fn generated(arguments: &[Argument]) -> Vec<Argument> {
    let is_output = |name: &str| name.ends_with("_out") || name == "-o";
    let value = |word: &Argument| {
        let (_, value) = word.text.split_once('=').filter(|(name, _)| is_output(name))?;
        Some(word.part(value.rsplit(':').next().unwrap_or(value)))
    };
    let attached = arguments.iter().filter_map(value);
    let next = arguments.windows(2).filter(|two| is_output(&two[0].text)).map(|two| two[1].clone());
    attached.chain(next).collect()
}
