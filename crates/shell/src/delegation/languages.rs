//! Programs with a language inside that can run other programs.

use super::{Telling, Value, long_option, short_option};
use crate::Word;
use crate::all_commands::runs_in_awk;
use crate::effect::runs_in_sed;
use crate::names::{find_text, has_name as has};

pub(super) const ORDERED: [&str; 3] = ["sed gsed sqlite3 vim.basic vim.tiny vim.nox", AWKS, VIMS];
/// Programs of which every word is looked at for itself.
pub(super) const UNORDERED: &str = "psql mysql mariadb dc";

const AWKS: &str = "awk gawk mawk nawk original-awk";
const VIMS: &str =
    "vim vi nvim view ex gvim vimdiff nvimdiff gvimdiff rvim rview gview rgvim rgview evim vimx mvim";

pub(super) fn look(telling: &mut Telling<'_>) {
    match telling.base {
        "sed" | "gsed" => sed(telling),
        base if has(AWKS, base) => awk(telling),
        base if has(VIMS, base) => vim(telling),
        "sqlite3" => {
            telling.tells_each(runs_in_sqlite);
            statements(telling);
        }
        "psql" => telling.tells_each(runs_in_psql),
        "mysql" | "mariadb" => telling.tells_each(runs_in_mysql),
        "dc" => telling.tells_each(|word| word.contains('!')),
        _ => {}
    }
}

/// The first operand is the database, the others are run.
fn statements(telling: &mut Telling<'_>) {
    let operands = telling.arguments().filter(|(_, word)| !word.starts_with('-'));
    if let Some((at, _)) = operands.skip(1).filter(|(_, word)| word.contains('\0')).last() {
        telling.tells(at);
    }
}

/// All scripts together are one; the first operand is one only if no option gave any.
fn sed(telling: &mut Telling<'_>) {
    let mut scripts: Vec<(usize, &str)> = Vec::new();
    let mut operands = Vec::new();
    let mut has_script = false;
    let mut words = telling.arguments();
    while let Some((at, word)) = words.next() {
        if word == "--" {
            operands.extend(words.by_ref());
        } else if let Some(value) = long_option(word, "expression file line-length") {
            let value = value.in_word().map(|value| (at, value)).or_else(|| words.next());
            has_script |= !word.starts_with("--l");
            scripts.extend(value.filter(|_| word.starts_with("--e")));
        } else if let Some(value) = short_option(word, "efl", "iI") {
            let behind = value.in_word().unwrap_or_default();
            let letter = word[..word.len() - behind.len()].chars().next_back();
            let value = value.in_word().map(|value| (at, value)).or_else(|| words.next());
            has_script |= letter != Some('l');
            scripts.extend(value.filter(|_| letter == Some('e')));
        } else if !word.starts_with('-') || word == "-" {
            operands.push((at, word));
        }
    }
    if !has_script {
        // Some programs of this name take the ending of a copy, which may be empty, in a word of its own.
        let empty = operands.iter().take_while(|(_, word)| word.is_empty()).count();
        scripts.extend(operands.get(empty));
    }
    let script = scripts.iter().map(|(_, script)| *script).collect::<Vec<_>>().join("\n");
    // What is only known at run time may be any command of a script.
    let is_any = scripts.iter().any(|(at, script)| script.contains('\0') && is_open(&telling.words[*at]));
    if let Some((at, _)) = scripts.last()
        && (is_any || runs_in_sed(&script))
    {
        telling.tells(*at);
    }
}

/// Whether it is not even known what a word may be. Each word of a loop is looked at by itself, unless it stands for names of files.
fn is_open(word: &Word) -> bool {
    word.is_arbitrary || word.choices.is_empty() || word.choices.iter().any(|choice| choice.is_pattern)
}

/// A program may stand in any word that is not known to be something else.
fn awk(telling: &mut Telling<'_>) {
    let mut words = telling.arguments();
    while let Some((at, word)) = words.next() {
        let is_value =
            ["-F", "-v", "--field-separator", "--assign"].iter().any(|option| word.starts_with(option));
        if has("-F -v --field-separator --assign", word) {
            words.next();
            continue;
        }
        // The next word is no option, though it may look like one.
        let taken =
            if has("-f -e -i -E --file --source --include --exec", word) { words.next() } else { None };
        let loads = short_option(word, "lW", "Fvfei").is_some() || long_option(word, "load").is_some();
        let runs = |program: &str| program.contains('\0') || runs_in_awk(program);
        if loads {
            telling.tells(at + 1);
        } else if let Some((place, program)) = taken {
            if runs(program) {
                telling.tells(place);
            }
        } else if !is_value && runs(word) {
            telling.tells(at);
        }
    }
}

/// Commands behind `-c`, `--cmd` and `+`.
fn vim(telling: &mut Telling<'_>) {
    for (at, word) in telling.options() {
        if let Some(command) = word.strip_prefix('+') {
            telling.tells_value(at, Some(Value::InWord(command)), is_usual_editing);
        } else if has("-c --cmd", word) {
            telling.tells_value(at, Some(Value::Next), is_usual_editing);
        } else if word.starts_with("-c") || word.starts_with("--cmd") || word.starts_with("--remote-e") {
            telling.tells(at);
        }
    }
}

/// Going somewhere, replacing text, writing and leaving.
fn is_usual_editing(command: &str) -> bool {
    const COMMANDS: &str = "w w! wa wa! wq wq! wqa wqa! x x! xa xa! q q! qa qa! qall qall! update";
    let command = command.trim().trim_start_matches(':');
    let digits = command.trim_start_matches(|c: char| c.is_ascii_digit());
    let replaces = ["s/", "%s/"].iter().any(|start| command.starts_with(start));
    let is_option = |c: char| c.is_ascii_alphanumeric() || " =-_".contains(c);
    if command.contains(['\n', '\r', '\0']) {
        return false;
    }
    match command {
        _ if digits.is_empty() || digits == "$" => true,
        _ if has(COMMANDS, command) || command.starts_with('/') => true,
        _ if replaces => !command.contains("\\=") && !command.contains('|'),
        _ => command.strip_prefix("set ").is_some_and(|option| option.chars().all(is_option)),
    }
}

/// Commands that begin with a dot may be abbreviated.
fn runs_in_sqlite(word: &str) -> bool {
    let text = word.to_ascii_lowercase();
    let has_any = |list: &[&str]| list.iter().any(|part| find_text(&text, part).is_some());
    has_any(&[".sh ", ".she", ".sy", ".loa", "load_extension", "edit("])
        || (has_pipe(&text) && has_any(&[".im", ".ou", ".on", ".rea", ".ex", ".w"]))
}

fn runs_in_psql(word: &str) -> bool {
    let text = word.to_ascii_lowercase();
    let copies = find_text(&text, "copy").is_some() && find_text(&text, "program").is_some();
    text.contains("\\!") || copies || (text.contains('\\') && has_pipe(&text))
}

fn runs_in_mysql(word: &str) -> bool {
    let runs = |statement: &str| {
        let statement = statement.trim_start().to_ascii_lowercase();
        ["system ", "pager ", "\\p "].iter().any(|start| statement.starts_with(start))
    };
    word.contains("\\!") || word.split([';', '\n']).any(runs)
}

/// Whether there is a pipe, and not two that join texts.
fn has_pipe(text: &str) -> bool {
    text.replace("||", "").contains('|')
}
