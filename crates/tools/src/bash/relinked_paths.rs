//! Places that lead elsewhere once a line has begun: links that it makes, and links that it moves or copies with a directory.

use std::path::PathBuf;

use ignore::WalkBuilder;
use windlass_protocol::{CommandWord, FoundCommand, NamedPath, PathNaming, PlainCommand};

/// More entries of a directory are not looked through.
const ENTRIES_MAX: usize = 5_000;

/// Nobody knows what a path is by then that lies in such a place.
pub(super) fn doubt(plain: &mut Result<Vec<PlainCommand>, String>, found: &mut [FoundCommand]) {
    let places: Vec<PathBuf> = found.iter().flat_map(find_relinked).collect();
    if places.is_empty() {
        return;
    }
    let plain = plain.iter_mut().flatten().map(|command| (&mut command.reads, &mut command.writes));
    let found = found.iter_mut().map(|command| (&mut command.reads, &mut command.writes));
    for (reads, writes) in plain.chain(found) {
        doubt_each(&places, reads, writes);
    }
}

fn doubt_each(places: &[PathBuf], reads: &mut [NamedPath], writes: &mut [NamedPath]) {
    // The command that makes a place knows what it does there; a redirection to it makes none.
    let is_made = |named: &NamedPath| places.iter().any(|place| **place == *named.path.lexical());
    let makes = writes.iter().any(|named| !named.is_redirected && is_made(named));
    if makes {
        return;
    }
    for named in reads.iter_mut().chain(writes) {
        if places.iter().any(|place| named.path.lexical().starts_with(place)) {
            named.naming = PathNaming::Unknown;
        }
    }
}

/// The places that lead elsewhere behind a command.
fn find_relinked(command: &FoundCommand) -> Vec<PathBuf> {
    let targets = command
        .writes
        .iter()
        .filter(|named| !named.is_redirected)
        .map(|named| named.path.lexical().into_owned());
    match command.words.first().and_then(CommandWord::base_name).unwrap_or_default() {
        // What it leads to comes first.
        "ln" | "link" => targets.skip(1).collect(),
        "cp" if command.words.iter().any(is_link_option) => targets.collect(),
        "mv" | "cp" | "rsync" if command.reads.iter().any(holds_link) => targets.collect(),
        _ => Vec::new(),
    }
}

fn is_link_option(word: &CommandWord) -> bool {
    let word = word.to_string();
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    letters.is_some_and(|letters| letters.contains('s')) || word.starts_with("--sym")
}

/// Whether something is a link, or a directory with one in it. Too much to look through may hold one.
fn holds_link(named: &NamedPath) -> bool {
    let mut entries = WalkBuilder::new(named.path.lexical()).standard_filters(false).build().enumerate();
    entries.any(|(count, entry)| count > ENTRIES_MAX || entry.is_ok_and(|entry| entry.path_is_symlink()))
}

#[cfg(test)]
mod tests {
    use windlass_ports::ExamineContext;

    use super::super::commands::{LineBasis, line_facts};
    use super::*;

    #[test]
    fn nobody_knows_what_lies_behind_a_link_that_the_line_makes_or_moves() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(cwd.join("linked")).unwrap();
        std::fs::create_dir_all(cwd.join("plain")).unwrap();
        std::os::unix::fs::symlink("/etc", cwd.join("linked/out")).unwrap();
        let check = |line: &str, expected: bool| {
            let place = ExamineContext::new(cwd.clone(), [cwd.clone()].into());
            let facts = line_facts(line, &place, LineBasis::ByWords).commands.unwrap();
            let commands = facts.plain.as_ref().unwrap();
            let mut named = commands.iter().flat_map(|command| command.reads.iter().chain(&command.writes));
            assert_eq!(named.any(|named| named.naming == PathNaming::Unknown), expected, "{line}");
        };
        check("mv linked e && echo y > e/out/f", true);
        check("mv linked e && cat e/out/hostname", true);
        check("cp -a linked e && cat e/out/hostname", true);
        check("ln -s plain z && cat z/a", true);
        check("mv linked e", false);
        check("mv linked e && cat f", false);
        check("mv plain e && echo y > e/f", false);
        check("cp -r plain e && cat e/f", false);
    }
}
