//! Beginnings of commands that are offered with a star behind them.

use windlass_protocol::CommandWord;

/// Commands that do the same whatever follows, by their first words, and the words of which one comes next: they run no code in
/// arguments, delete, publish or install nothing.
const ROWS: &[(&str, &str)] = &[
    ("bun", "test"),
    ("bun run", SCRIPTS),
    ("cargo", "bench build check clippy doc fmt test tree"),
    ("cargo nextest", "list run"),
    ("deno", "fmt lint"),
    ("docker", "images inspect logs"),
    ("gh issue", "list status view"),
    ("gh pr", "checks diff list status view"),
    ("gh run", "list view"),
    ("git", "add branch commit status tag"),
    ("go", "build fmt test vet"),
    ("npm", "test"),
    ("pnpm", "test"),
    ("yarn", SCRIPTS),
    ("yarn run", SCRIPTS),
];

/// Usual names of scripts. `bun run` and `yarn run` also run programs by their names, so others are not offered there.
const SCRIPTS: &str = "build check format lint test typecheck";

/// Programs whose `run` runs a script of the project, and nothing else.
const SCRIPT_RUNNERS: [&str; 2] = ["npm", "pnpm"];

/// The words of a command that are worth a rule with a star behind them.
pub(super) fn useful(words: &[CommandWord]) -> Option<&[CommandWord]> {
    if let [program, run, script, ..] = words
        && SCRIPT_RUNNERS.iter().any(|name| program == name)
        && run == "run"
        && script.as_known().is_some_and(is_script_name)
    {
        return words.get(..3);
    }
    ROWS.iter().find_map(|(begins, next)| {
        let count = begins.split(' ').count();
        let is_row = words.iter().zip(begins.split(' ')).all(|(word, begins)| word == begins);
        let is_next = words.get(count).is_some_and(|word| next.split(' ').any(|next| word == next));
        (is_row && is_next).then(|| &words[..=count])
    })
}

/// A name, and neither an option nor a path.
fn is_script_name(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_:".contains(c);
    word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(is_plain)
}
