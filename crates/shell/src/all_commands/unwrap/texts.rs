//! Texts in the arguments of a program, or in variables, that it hands to a shell.

use super::super::word::Argument;
use super::settings::variable;
use super::{Inside, Seen, input, joined, with_next};
use crate::effect::is_plain_sed;
use crate::names::{has_name as has, letter_group, name_and_value, split_at_text};

/// Options whose value is run.
const RUN_OPTIONS: &str = "--exec --extcmd --upload-pack --receive-pack --to-command --use-compress-program --rsh-command --info-script \
    --compress-program --pre --rsh --command --run --shell --tree-filter --index-filter --msg-filter --env-filter --commit-filter \
    --parent-filter --tag-name-filter --pager --open-files-in-pager --call --preview --filter --to-stdout-command --new-volume-script --shell-cmd --editor --rmt-command --rsync-path \
    --hostname-bin --use-askpass --test-command --pre-invoke --post-invoke --unzip-command";

/// Programs that run what comes in, or what is in a file, at another time.
pub(super) fn scheduled(seen: &Seen<'_>, inside: &mut Inside) {
    input(seen, inside);
    let has_option = |names: &str| seen.arguments.iter().any(|word| has(names, &word.text));
    let is_later = match seen.base {
        "crontab" => !has_option("-l -r"),
        _ => seen.arguments.iter().any(|word| word.text.starts_with("-f")),
    };
    if is_later {
        inside.unseen = Some("it runs something at another time");
    }
}

/// Scripts of `sed` may hold the command `e`, or that flag of a replacement, and name files.
pub(super) fn edited(arguments: &[Argument], inside: &mut Inside) {
    code_in_files(arguments, ("f", "file"), "eil", inside);
    for script in edit_scripts(arguments) {
        if script.contains('\0') {
            inside.unseen = Some("code in it is only known at run time");
        }
        if is_plain_sed(script) {
            continue;
        }
        if has_command_e(script) {
            inside.unseen = Some("`sed` runs something");
        }
        inside.mentions.read_edits(script);
    }
}

/// Code in a file, by the letters and names of options that say so. Behind a letter in `valued` come no others.
pub(super) fn code_in_files(
    arguments: &[Argument],
    (letters, names): (&str, &str),
    valued: &str,
    inside: &mut Inside,
) {
    let is_one = |word: &Argument| match word.text.strip_prefix("--") {
        Some(option) => {
            let name = option.split('=').next().unwrap_or_default();
            !name.is_empty() && names.split(' ').any(|full| full.starts_with(name))
        }
        None => word.text.strip_prefix('-').is_some_and(|group| {
            let first = group.find(|c| letters.contains(c) || valued.contains(c));
            first.is_some_and(|at| group[at..].starts_with(|c| letters.contains(c)))
        }),
    };
    if arguments.iter().take_while(|word| word.text != "--").any(is_one) {
        inside.unseen = Some("code in a file is run");
    }
}

/// What a script of `sed` runs: a NUL, if anything.
pub(super) fn edit_commands(script: &str) -> Vec<String> {
    let runs = !is_plain_sed(script) && has_command_e(script);
    runs.then(|| "\0".to_owned()).into_iter().collect()
}

fn edit_scripts(arguments: &[Argument]) -> Vec<&str> {
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut words = arguments.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        let attached = letter_group(word).and_then(|letters| letters.split_once('e'));
        if let Some((_, script)) =
            attached.filter(|(flags, _)| flags.bytes().all(|flag| b"nErsuz".contains(&flag)))
        {
            scripts.extend(if script.is_empty() { words.next() } else { Some(script) });
        } else if word.starts_with("--e") {
            scripts.extend(word.split_once('=').map(|(_, script)| script).or_else(|| words.next()));
        } else if !word.starts_with('-') {
            operands.push(word);
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    scripts
}

/// Whether an `e` stands where a command of `sed` or a flag may.
fn has_command_e(script: &str) -> bool {
    let mut before = '\n';
    script.chars().any(|c| {
        let may_begin = !before.is_ascii_alphabetic() || b"gpiIMmw".contains(&(before as u8));
        let runs = c == 'e' && may_begin;
        before = c;
        runs
    })
}

/// `--exec=…`, `--exec …` and their like, for any program; and settings that name a program.
pub(super) fn run_options(arguments: &[Argument], inside: &mut Inside) {
    for (text, next) in with_next(arguments) {
        let (name, value) = name_and_value(text);
        if name.starts_with("--") && has(RUN_OPTIONS, name) {
            inside.scripts.extend(value.or(next).map(str::to_owned));
        }
        let setting = split_at_text(text, "exec=").map(|(_, value)| value);
        inside.scripts.extend(setting.map(str::to_owned));
    }
}

/// `env -S`: its value is split into words, which the words behind it follow.
pub(super) fn split_string(option: &str, rest: &[Argument], inside: &mut Inside) {
    if let Some(value) = option.strip_prefix("--s") {
        let value = value.split_once('=').map(|(_, value)| value);
        inside
            .scripts
            .extend(value.map(|value| format!("{value} {}", joined(rest.get(1..).unwrap_or_default()))));
        inside.scripts.push(joined(rest));
        return;
    }
    let letters = option.trim_start_matches('-');
    let Some((flags, value)) = letters.split_once('S') else { return };
    if flags.bytes().all(|byte| b"iv0".contains(&byte)) {
        let skip = usize::from(!value.is_empty());
        inside.scripts.push(format!("{value} {}", joined(rest.get(skip..).unwrap_or_default())));
    }
}

/// A program that is run because a variable names it.
pub(super) fn assigned(text: &str, inside: &mut Inside) {
    if let Some((name, value)) = text.split_once('=') {
        variable(name, value, inside);
    }
}
