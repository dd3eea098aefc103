//! Places that lead elsewhere once a line has begun: links that it makes, and links that it moves or copies with a directory.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use windlass_protocol::{FoundCommand, NamedPath, Naming, PlainCommand};

/// More entries of a directory are not looked through.
const ENTRIES_MAX: usize = 5_000;

/// Nobody knows what a path is by then that lies in such a place.
pub(super) fn doubt(plain: &mut Result<Vec<PlainCommand>, String>, found: &mut [FoundCommand]) {
    let places: Vec<PathBuf> = found.iter().flat_map(|command| made(command)).collect();
    if places.is_empty() {
        return;
    }
    let doubt = |named: &mut NamedPath| {
        // The command that makes the place names it as well.
        let lies_there =
            |place: &PathBuf| named.path.lexical.starts_with(place) && named.path.lexical != *place;
        if places.iter().any(lies_there) {
            named.naming = Naming::Unknown;
        }
    };
    let in_plain = plain.iter_mut().flatten();
    in_plain.flat_map(|command| command.reads.iter_mut().chain(&mut command.writes)).for_each(doubt);
    found.iter_mut().flat_map(|command| command.reads.iter_mut().chain(&mut command.writes)).for_each(doubt);
}

/// The places that lead elsewhere behind a command.
fn made(command: &FoundCommand) -> Vec<PathBuf> {
    let name = command.words.first().map_or("", |name| name.rsplit('/').next().unwrap_or_default());
    let makes_links = match name {
        "ln" | "link" => true,
        "cp" | "gcp" => command.words.iter().any(|word| is_link_option(word)),
        _ => false,
    };
    let carries_links = || matches!(name, "mv" | "cp" | "rsync") && command.reads.iter().any(holds_link);
    let targets = command.writes.iter().map(|named| named.path.lexical.clone());
    if makes_links || carries_links() { targets.collect() } else { Vec::new() }
}

fn is_link_option(word: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    letters.is_some_and(|letters| letters.contains('s'))
        || word.starts_with("--sym")
        || word.starts_with("--link")
}

/// Whether something is a link, or a directory with one in it. Too much to look through may hold one.
fn holds_link(named: &NamedPath) -> bool {
    let path: &Path = &named.path.lexical;
    let mut entries = WalkBuilder::new(path).standard_filters(false).build().enumerate();
    entries.any(|(count, entry)| count > ENTRIES_MAX || entry.is_ok_and(|entry| entry.path_is_symlink()))
}
