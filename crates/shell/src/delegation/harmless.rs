//! Programs that are harmless where they are told: compressors, pagers, editors, and the usual way to another machine.

use crate::names::{has_name as has, is_digits};

const COMPRESSORS: &str = "gzip gunzip pigz unpigz bzip2 bunzip2 pbzip2 lbzip2 xz unxz pixz zstd unzstd zstdmt pzstd lz4 lzip plzip lzma \
    lzop brotli compress uncompress";
const PAGERS: &str = "cat less more true : false";
const EDITORS: &str = "vim vi nvim nano emacs code";
const SHELLS: &str = "sh bash dash zsh ksh /bin/sh /bin/bash /bin/dash /bin/zsh /usr/bin/sh /usr/bin/bash /usr/bin/zsh \
    /usr/bin/env /usr/local/bin/bash";

/// Settings of `ssh` whose value is run or loaded.
const SSH_RUNS: &str = "proxycommand localcommand knownhostscommand pkcs11provider securitykeyprovider ssh_command \
    include";

/// The words of a text in which a shell would find nothing but words.
fn plain_words(text: &str) -> Option<Vec<&str>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./=:@,%~+".contains(c);
    text.chars().all(is_plain).then(|| text.split_whitespace().collect())
}

/// A program of a list with nothing but simple options, or no program at all.
fn is_simple(text: &str, names: &str) -> bool {
    let is_option = |word: &&str| {
        let option = word.trim_start_matches('-');
        option.len() < word.len() && option.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'=')
    };
    plain_words(text).is_some_and(|words| match words.split_first() {
        Some((name, options)) => has(names, name) && options.iter().all(is_option),
        None => true,
    })
}

pub(super) fn never(_: &str) -> bool {
    false
}

/// Code or a format is taken as it stands where all of it is known.
pub(super) fn literal(value: &str) -> bool {
    !value.contains('\0')
}

pub(super) fn compressor(value: &str) -> bool {
    is_simple(value, COMPRESSORS)
}

pub(super) fn pager(value: &str) -> bool {
    is_simple(value, PAGERS)
}

pub(super) fn editor(value: &str) -> bool {
    is_simple(value, PAGERS) || is_simple(value, EDITORS)
}

/// What shows the line that is chosen in a list.
pub(super) fn preview(value: &str) -> bool {
    let program = value.trim_end().strip_suffix("{}").unwrap_or(value);
    program.ends_with(' ') && is_simple(program, "cat head tail bat wc file ls")
}

pub(super) fn shell(value: &str) -> bool {
    has(SHELLS, value)
}

/// The program at the other end.
pub(super) fn remote_rsync(value: &str) -> bool {
    has("rsync /usr/bin/rsync /usr/local/bin/rsync", value.strip_prefix("sudo ").unwrap_or(value))
}

pub(super) fn remote_git(value: &str) -> bool {
    has("git-upload-pack git-receive-pack git-upload-archive", value)
}

/// `ssh` with options that run nothing, and with a host if there is one.
pub(super) fn remote_shell(value: &str) -> bool {
    let Some(words) = plain_words(value) else { return false };
    let Some((&"ssh", rest)) = words.split_first() else { return value.is_empty() };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if let Some(attached) = word.strip_prefix("-o") {
            let setting = if attached.is_empty() { words.next().copied() } else { Some(attached) };
            if setting.is_none_or(names_program) {
                return false;
            }
        } else if let Some(group) = word.strip_prefix('-') {
            // Other settings could come from a file, or behind other letters.
            if !group.starts_with(['i', 'p', 'l', 'J', 'W', 'c', 'L', 'R', 'D'])
                && group.contains(['o', 'F', 'I'])
            {
                return false;
            }
        }
    }
    true
}

/// A setting of `ssh` that runs nothing, or the usual way over another machine.
pub(super) fn ssh_setting(setting: &str) -> bool {
    if !names_program(setting) {
        return !setting.contains('\0');
    }
    let value = setting.trim_start().get("proxycommand".len()..).unwrap_or_default();
    let value = value.trim_start_matches(['=', ' ', '\t']).trim_matches(['"', '\'']);
    let is_proxy = setting.trim_start().to_ascii_lowercase().starts_with("proxycommand");
    is_proxy && (value.eq_ignore_ascii_case("none") || remote_shell(value))
}

fn names_program(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    SSH_RUNS.split(' ').any(|key| setting.contains(key))
}

/// Settings of `apt` that say what is asked and fetched.
pub(super) fn apt_setting(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    ["dpkg::options::=--force-", "acquire::", "debug::", "apt::get::", "apt::install-", "dpkg::use-pty"]
        .iter()
        .any(|start| setting.starts_with(start))
}

/// What keys do in a list to choose from.
pub(super) fn key_binding(value: &str) -> bool {
    !["execute", "become", "reload", "transform", "preview"].iter().any(|action| value.contains(action))
}

/// Names of values, without anything that is run for them.
pub(super) fn rpm_macro(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_%{}?!".contains(c))
}

pub(super) fn wget_setting(setting: &str) -> bool {
    let key: String = setting.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
    !key.to_ascii_lowercase().contains("askpass") && !key.contains('\0')
}

/// Settings of `hg` that have to do with what is shown.
pub(super) fn hg_setting(setting: &str) -> bool {
    ["ui.username=", "ui.color=", "ui.verbose=", "ui.interactive=", "diff.", "phases."]
        .iter()
        .any(|key| setting.starts_with(key))
}

/// Commands that a pager begins with: where to go, and what to look for.
pub(super) fn pager_start(command: &str) -> bool {
    has("G F g", command) || command.starts_with('/') || is_digits(command)
}
