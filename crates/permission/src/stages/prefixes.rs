//! Beginnings of commands that are offered with a star behind them.

use windlass_protocol::CommandWord;

/// Commands that do the same whatever follows: they run no code in arguments, delete, publish or install nothing.
struct Row {
    /// The first words.
    begins: &'static [&'static str],
    /// The words of which one comes next.
    next: &'static [&'static str],
}

#[rustfmt::skip]
const ROWS: [Row; 15] = [
    Row { begins: &["bun"], next: &["test"] },
    Row { begins: &["bun", "run"], next: SCRIPTS },
    Row { begins: &["cargo"], next: &["bench", "build", "check", "clippy", "doc", "fmt", "test", "tree"] },
    Row { begins: &["cargo", "nextest"], next: &["list", "run"] },
    Row { begins: &["deno"], next: &["fmt", "lint"] },
    Row { begins: &["docker"], next: &["images", "inspect", "logs"] },
    Row { begins: &["gh", "issue"], next: &["list", "status", "view"] },
    Row { begins: &["gh", "pr"], next: &["checks", "diff", "list", "status", "view"] },
    Row { begins: &["gh", "run"], next: &["list", "view"] },
    Row { begins: &["git"], next: &["add", "branch", "commit", "status", "tag"] },
    Row { begins: &["go"], next: &["build", "fmt", "test", "vet"] },
    Row { begins: &["npm"], next: &["test"] },
    Row { begins: &["pnpm"], next: &["test"] },
    Row { begins: &["yarn"], next: SCRIPTS },
    Row { begins: &["yarn", "run"], next: SCRIPTS },
];

/// Usual names of scripts. `bun run` and `yarn run` also run programs by their names, so others are not offered there.
const SCRIPTS: &[&str] = &["build", "check", "format", "lint", "test", "typecheck"];

/// Programs whose `run` runs a script of the project, and nothing else.
const SCRIPT_RUNNERS: [&str; 2] = ["npm", "pnpm"];

/// The words of a command that are worth a rule with a star behind them.
pub(super) fn useful(words: &[CommandWord]) -> Option<&[CommandWord]> {
    let is_script = match words {
        [program, run, script, ..] => {
            SCRIPT_RUNNERS.iter().any(|name| program == name)
                && run == "run"
                && script.as_known().is_some_and(is_script_name)
        }
        _ => false,
    };
    if is_script {
        return words.get(..3);
    }
    let fits = |row: &&Row| {
        let next = words.get(row.begins.len());
        words.iter().zip(row.begins).all(|(word, begins)| word == begins)
            && next.is_some_and(|next| row.next.iter().any(|word| next == word))
    };
    ROWS.iter().find(fits).and_then(|row| words.get(..=row.begins.len()))
}

/// A name, and neither an option nor a path.
fn is_script_name(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_:".contains(c);
    word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(is_plain)
}
