//! Which files a program may read, write or remove, by its arguments. Too many is fine, too few is not.

mod git;
mod words;
mod writers;

pub(super) use words::{is_known, mentioned};

use std::sync::LazyLock;

use windlass_protocol::CommandWord;

use super::word::Argument;
use super::{below, search, unwrap};
use crate::analysis::UNKNOWN;
use crate::effect::FROM_COMMAND;
use crate::names::{Sieve, behind_letter, has_name as has, letter_group, name_and_value, split_at_text};
use crate::places::{Places, named};
use crate::{LinePath, LooseCommand};

/// Programs that show or take in the files they are told.
const READS: &str = "cat tac head tail less more most bat batcat nl sed grep egrep fgrep zgrep rg ag ack awk gawk mawk nawk sort uniq cut \
    paste join comm cmp diff diff3 sdiff colordiff vimdiff od xxd hexdump hd strings base64 base32 basenc md5sum sha1sum sha224sum \
    sha256sum sha384sum sha512sum b2sum cksum sum file stat wc fold fmt column rev jq yq xq source . python python2 python3 perl ruby \
    node nodejs deno bun php lua bash sh zsh dash ksh ash fish vim vi nvim view gvim rvim rview gview gvimdiff nvimdiff nano emacs ed ex code open xdg-open cp mv ln rsync scp sftp \
    tar zip gzip gunzip zcat bzip2 bzcat xz xzcat zstd zstdcat 7z 7za openssl gpg age curl wget nc ncat socat git dd split csplit pr look \
    iconv dos2unix xmllint envsubst find fd ls tree du realpath readlink install expand unexpand shuf tsort pygmentize patch tee \
    sqlite3 psql mysql dotenv cd pushd sponge ts hexyl xsv csvcut mlr pandoc strace mapfile readarray \
    [ test [[ export env make gmake cmake docker podman kubectl helm terraform ssh ssh-add ssh-keygen mail sendmail lp lpr print \
    comm vimcat highlight ccat glow unzip zipinfo lsattr getfacl exiftool objdump nm readelf";

/// Programs that take in the files they are told and what those name, and no directories.
const COMPILES: &str = "gcc g++ cc c++ clang clang++ rustc rustdoc go javac tsc protoc pytest py.test mypy pyright pylint flake8 tokei cloc \
    scc shellcheck hadolint actionlint yamllint eslint prettier biome ruff black isort rustfmt stylua gofmt goimports clang-format \
    clang-tidy cppcheck shfmt rubocop ctags delta difft ffprobe identify";

/// Programs that change every file they are told.
const WRITES: &str = "tee touch mkdir rm rmdir unlink truncate shred mkfifo mknod vim vi nvim view gvim rvim rview gview vimdiff gvimdiff nvimdiff nano emacs ed ex gzip gunzip bzip2 \
    bunzip2 xz unxz zstd dos2unix unix2dos patch sponge split csplit code mv ln install trash rename";
/// Programs that change every file but the first operand, which says how.
const WRITES_BUT_FIRST: &str = "chmod chown chgrp setfacl chattr";
/// Programs that change the last operand.
const WRITES_LAST: &str = "cp rsync scp uniq xxd";
/// Programs that put the others into the last operand if that is a directory.
const PUTS_INTO: &str = "cp rsync scp mv ln install";
/// Programs whose first operand says what to look for, unless an option does.
const LOOKS_FOR: &str = "grep egrep fgrep zgrep rg ag ack sed awk gawk mawk nawk jq yq xq perl fd";
/// Programs that look at everything below a directory by letters among their options.
const RECURSES_BY: &[(&str, &str)] = &[
    ("cp gcp", "rRa"),
    ("rm scp grep egrep fgrep zgrep zip", "rR"),
    ("diff colordiff gzip gunzip zstd sftp", "r"),
    ("ls chmod chown chgrp setfacl chattr lsattr getfacl", "R"),
];
/// Programs that look at everything below a directory.
const RECURSES: &str = "find fd rg ag ack tree du tar zip rsync mv";

static MAY_READ: LazyLock<Sieve> = LazyLock::new(|| Sieve::of([READS]));
static MAY_COMPILE: LazyLock<Sieve> = LazyLock::new(|| Sieve::of([COMPILES]));
static MAY_WRITE: LazyLock<Sieve> = LazyLock::new(|| Sieve::of([WRITES]));

/// The path an argument names, once for each directory it may be relative to.
pub(super) fn path(argument: &Argument, places: &Places) -> Vec<LinePath> {
    let text = &argument.text;
    if text.is_empty() || matches!(text.as_str(), "-" | "/dev/null" | FROM_COMMAND) {
        return Vec::new();
    }
    if !argument.choices.is_empty() {
        let whole = |choice: &String| Argument {
            text: text.replacen('\0', choice, 1),
            is_pattern: argument.is_pattern || choice.contains(['*', '?', '[']),
            choices: Vec::new(),
            ..argument.clone()
        };
        return argument.choices.iter().flat_map(|choice| path(&whole(choice), places)).collect();
    }
    if argument.is_other_home {
        // That other user may be the one who runs it; `~-` and `~1` are directories that were visited before.
        let (user, below) = text.split_at(text.find('/').unwrap_or(text.len()));
        let other = named(&format!("\0{below}"), argument.is_pattern, places);
        let is_user = !user[1..].starts_with(|c: char| !c.is_alphabetic() && c != '_');
        let own = is_user.then(|| named(&format!("~{below}"), argument.is_pattern, places));
        return other.into_iter().chain(own.into_iter().flatten()).collect();
    }
    let is_file = text.starts_with('~') && !argument.is_home;
    let text = if is_file { format!("./{text}") } else { text.clone() };
    named(&text, argument.is_pattern, places)
}

/// The files that a program shows or takes in.
fn read(
    base: &str,
    split: &Split<'_>,
    arguments: &[Argument],
    places: &Places,
    is_recursive: bool,
) -> Vec<LinePath> {
    let operands = &split.operands[..];
    let has_letters = base == "tar" && !arguments.get(1).is_some_and(|word| word.text.starts_with('-'));
    let skip = usize::from(has_letters || (has(LOOKS_FOR, base) && !split.brings_text(base)));
    let files = operands.get(skip..).unwrap_or_default();
    let mut reads = below(files.iter().flat_map(|word| path(word, places)).collect(), is_recursive);
    for value in split.options.iter().chain(operands) {
        reads.extend(embedded(base, value, places));
    }
    if has(TAKES_MORE, base) && !names_files(base, split) {
        reads.retain(|path| path.text.is_known());
    }
    if is_recursive && files.is_empty() && has("grep egrep rg ag ack find fd ls tree du", base) {
        reads.extend(below(named(".", false, places), true));
    }
    if is_recursive && has("grep egrep rg", base) {
        let only = search::only(base, &arguments[1..]);
        for path in &mut reads {
            path.only.clone_from(&only);
        }
    }
    reads
}

/// A command with the files it may touch.
pub(super) fn found(base: &str, arguments: &[Argument], places: &Places) -> LooseCommand {
    let split = Split::new(&arguments[1..]);
    let compiles = MAY_COMPILE.may_have(base) && has(COMPILES, base);
    let recurses = |(names, letters): &(&str, &str)| has(names, base) && split.has_letter(letters);
    let is_recursive = has(RECURSES, base)
        || RECURSES_BY.iter().any(recurses)
        || split.has_long("recursive")
        || is_deep(base, &split);
    let all = |words: &[&Argument]| -> Vec<LinePath> {
        below(words.iter().flat_map(|word| path(word, places)).collect(), is_recursive)
    };
    let operands = &split.operands[..];
    let mut command = LooseCommand {
        words: arguments.iter().map(|argument| CommandWord::from_marked(&argument.text, UNKNOWN)).collect(),
        ..LooseCommand::default()
    };
    if compiles || (MAY_READ.may_have(base) && has(READS, base)) {
        command.reads = read(base, &split, arguments, places, is_recursive);
    }
    command.reads.extend(named_by_options(base, &arguments[1..], places));
    command.writes = match base {
        _ if MAY_WRITE.may_have(base) && has(WRITES, base) => all(operands),
        _ if has(WRITES_BUT_FIRST, base) => {
            // With an option that says how files are changed, all operands are files: `chmod -x`.
            let gives_mode = split.has_letter("rwxXstugo") || split.has_long("reference");
            all(operands.get(usize::from(!gives_mode)..).unwrap_or_default())
        }
        "uniq" | "xxd" if operands.len() < 2 => Vec::new(),
        _ if has(WRITES_LAST, base) => all(&operands[operands.len().saturating_sub(1)..]),
        "zip" => all(&operands[..operands.len().min(1)]),
        "sed" | "perl" if split.has_letter("i") || split.has_long("in-place") => {
            [all(operands), backups(&split, places)].concat()
        }
        _ => Vec::new(),
    };
    if has(PUTS_INTO, base) {
        command.writes.extend(inside(base, operands, places));
    }
    command.writes.extend(outputs(base, &split, places));
    writers::add(&mut command, base, &arguments[1..], places);
    // A file may hold more options.
    if base == "curl" && (split.has_letter("K") || split.has_long("config")) {
        let anything = named("\0", false, places);
        command.reads.extend(anything.clone());
        command.writes.extend(anything);
    }
    if base == "git" {
        git::add(&mut command, &arguments[1..], places);
    }
    if has("awk gawk mawk nawk", base) {
        let written = unwrap::written_by_awk(&arguments[1..]).into_iter();
        command.writes.extend(written.flat_map(|text| path(&Argument::new(text), places)));
    }
    if matches!(base, "rm" | "rmdir" | "unlink") {
        command.removes = all(operands);
        if base == "rm" && is_recursive {
            let holders = operands.iter().filter_map(|operand| without_tail(operand));
            let paths = holders.flat_map(|holder| path(&holder, places)).collect();
            command.removes.extend(below(paths, true));
        }
    }
    if matches!(base, "find" | "fd" | "fdfind") {
        let removed = search::deleted(base, &arguments[1..]);
        command.removes = below(removed.iter().flat_map(|root| path(root, places)).collect(), true);
    }
    command
}

/// The directory that is meant if what is only known at run time turns out to be nothing: the home directory for `~/$x`.
fn without_tail(operand: &Argument) -> Option<Argument> {
    let holder = operand.text.trim_end_matches('\0');
    // What may lie right below the root is bad enough.
    let is_meant = holder.len() < operand.text.len() && holder.len() > 1 && holder.ends_with('/');
    let is_known = operand.is_below || !operand.choices.is_empty();
    (is_meant && !is_known).then(|| Argument { text: holder.to_owned(), ..operand.clone() })
}

/// The copies that are kept of files which are changed in place: `-i.bak`.
fn backups(split: &Split<'_>, places: &Places) -> Vec<LinePath> {
    let suffix = split.options.iter().find_map(|option| {
        option.text.strip_prefix("--in-place=").or_else(|| behind_letter(&option.text, "i"))
    });
    let Some(suffix) = suffix.filter(|suffix| !suffix.is_empty() && !suffix.contains(['*', '/'])) else {
        return Vec::new();
    };
    let backup = |file: &&Argument| Argument { text: format!("{}{suffix}", file.text), ..(**file).clone() };
    split.operands.iter().map(backup).flat_map(|file| path(&file, places)).collect()
}

/// What the operands in front would be called inside the last one. A link without a name of its own is made here.
fn inside(base: &str, operands: &[&Argument], places: &Places) -> Vec<LinePath> {
    let here = Argument::new(".");
    let (target, sources) = match operands {
        [_] if base == "ln" => (&here, operands),
        [sources @ .., target] => (*target, sources),
        [] => return Vec::new(),
    };
    let mut paths = Vec::new();
    for source in sources.iter().take(64) {
        let Some(name) = source.text.trim_end_matches('/').rsplit('/').next() else { continue };
        let text = format!("{}/{name}", target.text.trim_end_matches('/'));
        paths.extend(path(&Argument { text, is_pattern: source.is_pattern, ..target.clone() }, places));
    }
    paths
}

/// Whether a program goes into directories by another word.
fn is_deep(base: &str, split: &Split<'_>) -> bool {
    let says = |word: &&Argument| word.text.contains("recurs");
    match base {
        "cp" | "gcp" => split.has_long("archive"),
        "grep" | "egrep" | "fgrep" => {
            split.options.iter().any(says) || split.operands.iter().any(|word| word.text == "recurse")
        }
        _ => false,
    }
}

/// Programs most of whose words are no files, so that one which is not known need not be one.
const TAKES_MORE: &str = "git make gmake cmake docker podman kubectl helm terraform ssh node nodejs deno bun php lua python python2 python3 \
    perl ruby [ test [[ export env";
/// Those of them that run the file which they are told first.
const RUNS_FIRST: &str = "node nodejs deno bun php lua python python2 python3 perl ruby";

/// Whether an option or a subcommand of such a program says that files of this machine are taken.
fn names_files(base: &str, split: &Split<'_>) -> bool {
    if has(RUNS_FIRST, base) {
        return split.operands.first().is_some_and(|word| word.text.contains('\0'));
    }
    let names = match base {
        "git" => "show cat-file blame annotate archive hash-object",
        "docker" | "podman" => "-v --volume --mount --env-file cp",
        "kubectl" => "-f --filename --from-file --from-env-file cp",
        _ => return false,
    };
    let mut words = split.options.iter().chain(&split.operands);
    words.any(|word| has(names, name_and_value(&word.text).0))
}

/// Arguments taken apart without knowing the program.
struct Split<'a> {
    options: Vec<&'a Argument>,
    operands: Vec<&'a Argument>,
}

impl<'a> Split<'a> {
    fn new(arguments: &'a [Argument]) -> Self {
        let mut split = Self { options: Vec::new(), operands: Vec::new() };
        let mut only_operands = false;
        for argument in arguments {
            if !only_operands && argument.text == "--" {
                only_operands = true;
            } else if !only_operands && argument.text.starts_with('-') && argument.text.len() > 1 {
                split.options.push(argument);
            } else {
                split.operands.push(argument);
            }
        }
        split
    }

    fn has_letter(&self, letters: &str) -> bool {
        self.options.iter().any(|option| behind_letter(&option.text, letters).is_some())
    }

    /// Whether a long option is there that may be short for a name.
    fn has_long(&self, name: &str) -> bool {
        self.options.iter().any(|option| {
            let (long, _) = name_and_value(option.text.strip_prefix("--").unwrap_or_default());
            long.len() >= 2 && name.starts_with(long)
        })
    }

    /// Whether an option says what to look for, so that all operands are files.
    fn brings_text(&self, base: &str) -> bool {
        let letters = if base.ends_with("awk") || base == "jq" { "f" } else { "ef" };
        let is_long =
            |option: &&Argument| ["--r", "--e", "--f"].iter().any(|start| option.text.starts_with(start));
        self.options.iter().any(is_long) || self.has_letter(letters)
    }
}

/// More parts of a word are not looked at.
const EMBEDDED_MAX: usize = 8;

/// Files that stand inside a word: `--file=x`, `@x`, `name=@x`, `name=<x`, `if=x`, `file:///x`, `HEAD:x`, `x:/y`, `-fx`.
fn embedded(base: &str, word: &Argument, places: &Places) -> Vec<LinePath> {
    let text = word.text.as_str();
    let mut parts: Vec<&str> = Vec::new();
    if let Some((_, value)) = text.split_once('=') {
        parts.push(value);
    }
    parts.extend(text.split_once('@').map(|(_, path)| path));
    parts.extend(split_at_text(text, "file://").map(|(_, path)| path));
    match base {
        "git" | "scp" | "rsync" => parts.extend(text.split_once(':').map(|(_, path)| path)),
        "docker" | "podman" | "kubectl" | "helm" => {
            parts
                .extend(text.split([':', '=', ',']).take(EMBEDDED_MAX).filter(|part| !part.starts_with('-')));
        }
        "curl" => parts.extend(text.split(['=', '@', '<', ';']).skip(1).take(EMBEDDED_MAX)),
        _ => {}
    }
    parts.extend(letter_group(text).and_then(|letters| letters.get(1..)));
    parts.iter().filter(|part| !part.is_empty()).flat_map(|part| path(&word.part(part), places)).collect()
}

/// Files that single options or the code of a program say to read.
fn named_by_options(base: &str, arguments: &[Argument], places: &Places) -> Vec<LinePath> {
    let (letters, long) = match base {
        "xargs" => ("a", "--arg-file"),
        "date" => ("fr", "--file --reference"),
        _ if base.ends_with("awk") => {
            let quoted = |word: &Argument| -> Vec<String> {
                let parts = word.text.split('"').skip(1).step_by(2);
                parts.take(if word.text.contains("getline") { 64 } else { 0 }).map(str::to_owned).collect()
            };
            let texts = arguments.iter().flat_map(quoted);
            return texts.flat_map(|text| path(&Argument::new(text), places)).collect();
        }
        _ => return Vec::new(),
    };
    let mut paths = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
        let is_long = name.len() > 2 && long.split(' ').any(|long| long.starts_with(name));
        let value = match behind_letter(&word.text, letters) {
            Some(value) => value,
            None if is_long => value,
            None => continue,
        };
        let attached = Argument::new(value);
        let next = arguments.get(at + 1).filter(|_| value.is_empty());
        paths.extend(path(next.unwrap_or(&attached), places));
    }
    paths
}

/// Files that options say to write.
fn outputs(base: &str, split: &Split<'_>, places: &Places) -> Vec<LinePath> {
    let names = match base {
        "curl" => {
            "-o --output -D --dump-header -c --cookie-jar --trace --trace-ascii --stderr --etag-save --hsts --alt-svc"
        }
        "time" | "strace" | "ltrace" | "iconv" | "xmllint" | "xsltproc" => "-o --output",
        "sort" | "shuf" | "gpg" | "gcc" | "cc" | "clang" | "openssl" | "tree" | "sdiff" | "objcopy"
        | "ld" => "-o --output -out",
        "wget" => "-O --output-document -P --directory-prefix -o --output-file",
        "tar" | "unzip" | "7z" => "-C -d --directory -f --file",
        "cp" | "mv" | "ln" | "install" => "-t --target-directory",
        "ssh-keygen" => "-f",
        "git" => "--output -C",
        "dd" => {
            let output = |word: &&Argument| {
                let file = word.text.strip_prefix("of=")?;
                Some(Argument { is_home: file.starts_with('~'), ..word.part(file) })
            };
            let outputs = split.operands.iter().filter_map(output);
            return outputs.flat_map(|output| path(&output, places)).collect();
        }
        _ => return Vec::new(),
    };
    let mut paths = Vec::new();
    let mut emit = |text: &str, like: &Argument| {
        let is_home = text.starts_with('~') && (like.is_home || like.text != text);
        paths.extend(path(&Argument { is_home, ..like.part(text) }, places));
    };
    for option in &split.options {
        for value in names.split(' ').filter_map(|name| option.text.strip_prefix(name)) {
            if !value.is_empty() {
                emit(value.trim_start_matches('='), option);
            }
        }
    }
    // The value of an option may stand in the next word; which one that is does not matter here.
    let is_output = |option: &&Argument| has(names, &option.text) || ends_with_letter(names, &option.text);
    if split.options.iter().any(is_output) {
        split.operands.iter().for_each(|operand| emit(&operand.text, operand));
    }
    if base == "tar" && split.options.iter().chain(&split.operands).any(|word| word.text.contains('x')) {
        paths.extend(below(named(".", false, places), true));
    }
    paths
}

/// Whether a group of letters ends with the letter of one of these options: `-xzf`.
fn ends_with_letter(names: &str, option: &str) -> bool {
    let last = option.chars().next_back().filter(|_| !option.starts_with("--"));
    last.is_some_and(|last| names.split(' ').any(|name| name.len() == 2 && name.ends_with(last)))
}
