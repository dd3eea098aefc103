//! What `git` is told to run: by settings on the line, by options, and by subcommands that run a command.

use super::harmless::{self, never};
use super::{Telling, Value, long_option, short_option};
use crate::names::has_name as has;

pub(super) const NAMES: &str = "git";

/// Options in front of the subcommand whose value is the next word.
const VALUED: &str = "-C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source";

/// Options whose value is run, whatever the subcommand.
const OPTIONS: &str = "exec extcmd upload-pack receive-pack access-hook";

const FILTERS: &str =
    "tree-filter index-filter msg-filter env-filter commit-filter parent-filter tag-name-filter setup";

/// How keys of settings end whose value is a program, or says where programs are.
#[rustfmt::skip]
const KEYS: [&str; 25] = [
    "pager", "editor", "sshcommand", "fsmonitor", "external", "textconv", "command", "program", "helper", ".clean", ".smudge", ".process",
    ".driver", "cmd", "askpass", "packobjectshook", "gitproxy", "uploadpack", "receivepack", ".path", "difffilter", "templatedir",
    "hookspath", ".httpd", "smtpserver",
];

pub(super) fn look(telling: &mut Telling<'_>) {
    if telling.base != NAMES {
        return;
    }
    let mut at = 1;
    while let Some(word) = telling.text(at).filter(|word| word.starts_with('-')) {
        global(telling, at, word);
        at += if has(VALUED, word) { 2 } else { 1 };
    }
    let Some(subcommand) = telling.text(at) else { return };
    match subcommand {
        "config" => configured(telling, at),
        "bisect" if telling.text(at + 1) == Some("run") => telling.tells(at + 1),
        "submodule" => each(telling, at),
        _ => options(telling, at, subcommand),
    }
}

fn global(telling: &mut Telling<'_>, at: usize, word: &str) {
    if word == "-c" {
        telling.tells_value(at, Some(Value::Next), is_harmless_setting);
    } else if let Some(Value::InWord(_)) = long_option(word, "exec-path") {
        // Without a value the path is only shown.
        telling.tells(at);
    } else {
        telling.tells_value(at, long_option(word, "config-env"), is_harmless_setting);
    }
}

/// `key=value`. A key alone is a switch.
fn is_harmless_setting(setting: &str) -> bool {
    match setting.split_once('=') {
        Some((key, value)) => is_harmless(key, value),
        None => !setting.contains('\0'),
    }
}

fn is_harmless(key: &str, value: &str) -> bool {
    let key = key.to_ascii_lowercase();
    // A transport that is a command, or leave to use one.
    let transports =
        key.contains("ext::") || value.starts_with("ext::") || has("protocol.ext.allow protocol.allow", &key);
    if key.contains('\0') || transports {
        return false;
    }
    let is_included = key.starts_with("include.") || key.starts_with("includeif.");
    let is_update = key.starts_with("submodule.") && key.ends_with(".update");
    let is_pager = key.ends_with("pager") || key.starts_with("pager.");
    let is_other = key.starts_with("alias.") || KEYS.iter().any(|end| key.ends_with(end));
    match () {
        () if is_included => false,
        () if is_update => !value.starts_with(['!', '\0']),
        () if key == "core.hookspath" => value == "/dev/null",
        () if is_pager => harmless::pager(value) || is_switch(value),
        () if is_other && value.is_empty() => true,
        () if key.ends_with("editor") => harmless::editor(value),
        () if key.ends_with("sshcommand") => harmless::remote_shell(value),
        () if key.ends_with("fsmonitor") => is_switch(value),
        () if key.ends_with("helper") => is_helper(value),
        () if key.ends_with("program") => has("gpg gpg2 gpgsm ssh-keygen", value),
        () => !is_other,
    }
}

fn is_switch(value: &str) -> bool {
    has("true false yes no on off 0 1", value)
}

/// Helpers that keep passwords, as they come with git.
fn is_helper(value: &str) -> bool {
    let (name, options) = value.split_once(' ').unwrap_or((value, "--"));
    let is_plain = options.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-= ".contains(&byte));
    has("cache store osxkeychain libsecret manager manager-core wincred", name) && is_plain
}

/// `git config key value`: the program runs with a later command.
fn configured(telling: &mut Telling<'_>, at: usize) {
    let mut operands = Vec::new();
    let mut words = (at + 1..telling.words.len()).filter_map(|at| Some((at, telling.text(at)?)));
    while let Some((place, word)) = words.next() {
        if has("-f --file --blob -t --type --default --comment --value --url", word) {
            words.next();
        } else if !word.starts_with('-') || !operands.is_empty() {
            operands.push((place, word));
        }
    }
    let operands = match &operands[..] {
        [(_, "set"), rest @ ..] => rest,
        [(_, "get" | "unset" | "list" | "edit"), ..] => return,
        operands => operands,
    };
    if let [(_, key), (place, value), ..] = operands
        && !is_harmless(key, value)
    {
        telling.tells(*place);
    }
}

fn each(telling: &mut Telling<'_>, at: usize) {
    let mut words = telling.arguments().skip_while(|(place, _)| *place <= at);
    let subcommand = words.find(|(_, word)| !word.starts_with('-'));
    if let Some((place, "foreach")) = subcommand {
        telling.tells(place);
    } else {
        options(telling, at, "submodule");
    }
}

fn options(telling: &mut Telling<'_>, at: usize, subcommand: &str) {
    for (place, word) in telling.options().filter(|(place, _)| *place > at) {
        telling.tells_value(place, long_option(word, OPTIONS), harmless::remote_git);
        // A format may have a signature checked, which another program does.
        telling.tells_value(place, long_option(word, "format pretty"), harmless::literal);
        // A transport that is a command.
        if word.starts_with("ext::") || word.contains("=ext::") {
            telling.tells(place);
        }
        option_of(telling, place, word, subcommand);
    }
}

/// Options that mean something else to other subcommands.
fn option_of(telling: &mut Telling<'_>, place: usize, word: &str, subcommand: &str) {
    let long = |names: &str| long_option(word, names);
    let behind = |letters: &str, valued: &str| short_option(word, letters, valued);
    match subcommand {
        "rebase" => telling.tells_value(place, behind("x", "sXCS"), never),
        "difftool" => telling.tells_value(place, behind("x", "tSGOlU"), harmless::pager),
        "grep" => {
            let value = long("open-files-in-pager").or_else(|| behind("O", "efABCm"));
            // Without a value the usual pager is meant.
            let program = value.filter(|value| matches!(value, Value::InWord(_)));
            telling.tells_value(place, program, harmless::pager);
        }
        "clone" | "init" => {
            telling.tells_value(place, behind("u", "bcoj"), harmless::remote_git);
            let setting = behind("c", "bouj").or_else(|| long("config"));
            telling.tells_value(place, setting, is_harmless_setting);
            telling.tells_value(place, long("template"), str::is_empty);
        }
        "filter-branch" => telling.tells_value(place, long(FILTERS), never),
        "send-email" => {
            telling.tells_value(place, long("sendmail-cmd to-cmd cc-cmd header-cmd"), never);
            telling.tells_value(place, long("smtp-server"), |server| !server.contains(['/', '\0']));
        }
        "instaweb" => telling.tells_value(place, long("httpd browser"), never),
        _ => {}
    }
}
