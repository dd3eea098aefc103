//! Options whose value is run, by the programs that have them.

use std::sync::LazyLock;

use super::harmless::{
    apt_setting, compressor, hg_setting, key_binding, literal, never, pager, pager_start, preview,
    remote_rsync, remote_shell, rpm_macro, shell, ssh_setting, wget_setting,
};
use super::{Telling, Value, long_option, name_and_value, short_option};
use crate::names::{Sieve, has_name as has, split_at_text};

/// Options behind one dash with one letter, or behind two with a name.
struct Row {
    names: &'static str,
    /// Letters whose value is run.
    letters: &'static str,
    /// Letters with another value.
    valued: &'static str,
    long: &'static str,
    /// Options that are never abbreviated; how many dashes are in front does not matter.
    words: &'static str,
    is_harmless: fn(&str) -> bool,
}

const NONE: Row = Row { names: "", letters: "", valued: "", long: "", words: "", is_harmless: never };

const TARS: &str = "tar gtar bsdtar";

const ROWS: &[Row] = &[
    Row { names: "npm pnpm", long: "script-shell", is_harmless: shell, ..NONE },
    Row { names: "npm pnpm", long: "node-options userconfig globalconfig", ..NONE },
    Row { names: "rg", long: "pre hostname-bin", ..NONE },
    Row { names: "sort gsort", long: "compress-program", is_harmless: compressor, ..NONE },
    Row {
        names: TARS,
        letters: "I",
        valued: "bCfFgHKLNTVX",
        long: "use-compress-program",
        is_harmless: compressor,
        ..NONE
    },
    Row {
        names: TARS,
        letters: "F",
        valued: "bCfgHIKLNTVX",
        long: "to-command info-script new-volume-script rmt-command rsh-command",
        ..NONE
    },
    Row { names: TARS, long: "checkpoint-action", valued: "bCfgHKLNTVX", is_harmless: is_checkpoint, ..NONE },
    Row {
        names: "man",
        letters: "PH",
        valued: "CRLmMSserpET",
        long: "pager html",
        is_harmless: pager,
        ..NONE
    },
    Row { names: "bat batcat delta ag ack", long: "pager", is_harmless: pager, ..NONE },
    Row { names: "mysql mariadb", long: "pager", is_harmless: pager, ..NONE },
    Row {
        names: "mysql mariadb",
        letters: "e",
        valued: "hDPpuS",
        long: "execute",
        is_harmless: literal,
        ..NONE
    },
    Row {
        names: "psql",
        letters: "c",
        valued: "dfhoPRTUvFLp",
        long: "command",
        is_harmless: literal,
        ..NONE
    },
    Row { names: "dc", letters: "e", valued: "f", long: "expression", is_harmless: literal, ..NONE },
    // The programs differ in what other letters mean; what is not a setting is harmless anyway.
    Row { names: "ssh scp sftp autossh sshfs ssh-copy-id", letters: "o", is_harmless: ssh_setting, ..NONE },
    Row { names: "ssh", letters: "I", valued: "BbcDEeFiJLlmOoPpQRSWw", ..NONE },
    Row { names: "scp sftp", letters: "SD", valued: "cFiJloPX", ..NONE },
    Row { names: "mosh", long: "ssh", is_harmless: remote_shell, ..NONE },
    Row { names: "rsync", letters: "e", valued: "fBTM@", long: "rsh", is_harmless: remote_shell, ..NONE },
    Row { names: "rsync", long: "rsync-path", is_harmless: remote_rsync, ..NONE },
    Row { names: "borg", long: "rsh", is_harmless: remote_shell, ..NONE },
    Row { names: "split gsplit", long: "filter", ..NONE },
    Row { names: "tcpdump", letters: "z", valued: "BcCEFGijMrsTVwWyQ", is_harmless: compressor, ..NONE },
    Row {
        names: "nc ncat netcat nc.traditional nc.openbsd",
        letters: "ec",
        valued: "ipqsw",
        long: "exec sh-exec",
        ..NONE
    },
    Row {
        names: "wget",
        letters: "e",
        valued: "oaiBtOTwQPUDARIl",
        long: "execute",
        is_harmless: wget_setting,
        ..NONE
    },
    Row { names: "wget", long: "use-askpass", ..NONE },
    Row {
        names: "apt apt-get aptitude",
        letters: "o",
        valued: "t",
        long: "option",
        is_harmless: apt_setting,
        ..NONE
    },
    Row { names: "dpkg", long: "pre-invoke post-invoke", ..NONE },
    Row { names: "rpm", letters: "E", long: "eval", is_harmless: rpm_macro, ..NONE },
    Row { names: "rpm", long: "pipe", ..NONE },
    Row { names: "fzf sk", long: "preview", is_harmless: preview, ..NONE },
    Row { names: "fzf sk", long: "bind", is_harmless: key_binding, ..NONE },
    Row {
        names: "hg",
        letters: "e",
        long: "ssh remotecmd tool",
        valued: "mr",
        is_harmless: remote_shell,
        ..NONE
    },
    Row { names: "hg", long: "config", is_harmless: hg_setting, ..NONE },
    Row { names: "gpg gpg2", long: "agent-program dirmngr-program keyboxd-program photo-viewer", ..NONE },
    Row { names: "install ginstall", long: "strip-program", ..NONE },
    Row { names: "diff3 sdiff", long: "diff-program", ..NONE },
    Row { names: "cpio", long: "rsh-command", ..NONE },
    Row { names: "yt-dlp youtube-dl", long: "exec exec-before-download", ..NONE },
    Row { names: "rclone restic", long: "password-command sftp-ssh", ..NONE },
    Row { names: "zip", words: "TT unzip-command", ..NONE },
    Row { names: "gcc g++ cc c++ clang clang++", words: "wrapper fplugin", ..NONE },
    Row { names: "bazel bazelisk", words: "run_under shell_executable", is_harmless: shell, ..NONE },
    Row { names: "helm", words: "post-renderer", ..NONE },
    Row { names: "npm pnpm yarn", words: "script-shell", is_harmless: shell, ..NONE },
    Row { names: "sqlite3", words: "cmd", is_harmless: literal, ..NONE },
    Row { names: "svn", words: "diff-cmd diff3-cmd editor-cmd config-option", ..NONE },
];

/// Programs that run all that stands behind one of these.
const REST: &str = "fd fdfind";

const PAGERS: &str = "less more most";
const SOCKETS: &str = "socat";

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.names).chain([REST, PAGERS, SOCKETS])
}

static MAY_HAVE: LazyLock<Sieve> = LazyLock::new(|| Sieve::of(names()));

pub(super) fn look(telling: &mut Telling<'_>) {
    if !MAY_HAVE.may_have(telling.base) {
        return;
    }
    if telling.arguments().any(|(_, word)| word.starts_with('-')) {
        from_tables(telling);
    }
    match telling.base {
        base if has(TARS, base) => old_letters(telling),
        base if has(REST, base) => rest(telling),
        base if has(PAGERS, base) => first_commands(telling),
        SOCKETS => telling.tells_each(is_command_address),
        _ => {}
    }
}

fn from_tables(telling: &mut Telling<'_>) {
    for row in ROWS.iter().filter(|row| has(row.names, telling.base)) {
        for (at, word) in telling.options() {
            let value = long_option(word, row.long).or_else(|| short_option(word, row.letters, row.valued));
            telling.tells_value(at, value.or_else(|| whole_option(word, row)), row.is_harmless);
        }
    }
}

/// The value of an option that is not abbreviated. For `zip` it may follow other letters.
fn whole_option<'a>(word: &'a str, row: &Row) -> Option<Value<'a>> {
    let (name, value) = name_and_value(word.trim_start_matches('-'));
    let is_group = row.names == "zip" && word.starts_with('-') && !word.starts_with("--");
    let behind = split_at_text(name, "TT").filter(|_| is_group).map(|(_, value)| Value::behind(value));
    let is_whole = word.starts_with('-') && has(row.words, name);
    behind.or_else(|| is_whole.then_some(value))
}

/// Letters of `tar` without a dash, whose values follow in other words.
fn old_letters(telling: &mut Telling<'_>) {
    let is_group = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if telling.text(1).is_some_and(|word| is_group(word) && word.contains(['I', 'F'])) {
        telling.tells(telling.words.len());
    }
}

fn is_checkpoint(action: &str) -> bool {
    !action.starts_with("exec") && !action.contains('\0')
}

fn rest(telling: &mut Telling<'_>) {
    let runs = |word: &str| {
        long_option(word, "exec exec-batch").is_some() || short_option(word, "xX", "dtEeScjo").is_some()
    };
    if telling.options().any(|(_, word)| runs(word)) {
        telling.tells(telling.words.len());
    }
}

fn first_commands(telling: &mut Telling<'_>) {
    for (at, word) in telling.options() {
        let command = word.strip_prefix('+').map(|command| command.trim_start_matches('+'));
        telling.tells_value(at, command.map(Value::InWord), pager_start);
    }
}

fn is_command_address(word: &str) -> bool {
    let address = word.to_ascii_lowercase();
    ["exec:", "system:", "shell:"].iter().any(|kind| address.contains(kind))
}
