//! The files that a command line may change: their content is kept before it runs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use windlass_protocol::{CommandFacts, CommandWord, NamedPath, PathFact, PathNaming};

use super::commands::knows_all;
use crate::paths::resolve;

const CHANGES_MAX: usize = 64;
/// Nothing below these is a file whose content could be kept.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Programs that change directories themselves, or all that is in them. Of what others name, only files are meant.
const CHANGE_DIRECTORIES: [&str; 14] = [
    "chgrp", "chmod", "chown", "cp", "install", "ln", "mkdir", "mv", "rm", "rmdir", "rsync", "shred",
    "touch", "unlink",
];
/// Subcommands of git that change all that is in the directories they name.
const GIT_CHANGES: [&str; 4] = ["checkout", "mv", "restore", "rm"];
/// Those that put files into a directory which they name last.
const PUT_INTO: [&str; 5] = ["cp", "install", "ln", "mv", "rsync"];

/// The files and directories that a line may change, resolved: a guess, as far as they can be known before it runs. The
/// strict reading tells them if it knows everything that the line does, else the generous one does.
pub(super) fn changes(facts: &CommandFacts) -> Vec<PathBuf> {
    let mut changes = Changes::default();
    match &facts.plain {
        Ok(commands) if knows_all(&facts.plain) => {
            for command in commands {
                changes.add_command(&command.words, command.writes.iter());
            }
        }
        _ => {
            for command in &facts.found {
                // What may be a branch as well is only mentioned.
                let is_checkout = command.words.iter().any(|word| word == "checkout");
                let is_written = |read: &&NamedPath| is_checkout && read.naming == PathNaming::Mentioned;
                let reads = command.reads.iter().filter(is_written);
                changes
                    .add_command(&command.words, command.writes.iter().chain(&command.removes).chain(reads));
            }
        }
    }
    changes.0
}

#[derive(Default)]
struct Changes(Vec<PathBuf>);

impl Changes {
    fn add_command<'a>(&mut self, words: &[CommandWord], list: impl Iterator<Item = &'a NamedPath> + Clone) {
        let name = words.first().and_then(CommandWord::base_name).unwrap_or_default();
        let is_git =
            name == "git" && words.iter().any(|word| GIT_CHANGES.iter().any(|change| word == change));
        let list: Vec<_> = list.map(|named| (named, named.path.lexical())).collect();
        let holders: HashSet<&Path> = list.iter().filter_map(|(_, lexical)| lexical.parent()).collect();
        let files = list.iter().filter(|(named, _)| !named.path.is_directory());
        let files: HashSet<&Path> = files.map(|(_, lexical)| &**lexical).collect();
        let mut seen = HashSet::new();
        for (NamedPath { path, is_recursive, naming, .. }, lexical) in &list {
            if self.0.len() >= CHANGES_MAX {
                return;
            }
            // A name inside of a directory is meant if there is one, and else the directory is the file.
            let is_directory = path.is_directory();
            let is_target = PUT_INTO.contains(&name) && is_directory && holders.contains(&**lexical);
            let is_in_file = lexical.parent().is_some_and(|parent| files.contains(parent));
            let is_meant = !is_directory
                || CHANGE_DIRECTORIES.contains(&name)
                || (is_git && (*is_recursive || *naming == PathNaming::Mentioned));
            // What is only known when the line runs cannot be kept.
            if let Some(path) = path.as_known()
                && is_meant
                && !is_target
                && !is_in_file
                && seen.insert((&path.lexical, &path.resolved))
            {
                self.add(path);
            }
        }
    }

    fn add(&mut self, path: &PathFact) {
        // A link may be changed itself, or what it leads to.
        let lexical = &path.lexical;
        if lexical.is_symlink()
            && let (Some(parent), Some(name)) = (lexical.parent().and_then(resolve), lexical.file_name())
        {
            self.add_resolved(parent.join(name));
        }
        if let Some(resolved) = &path.resolved {
            self.add_resolved(resolved.clone());
        }
    }

    fn add_resolved(&mut self, path: PathBuf) {
        let of_system = SYSTEM.iter().any(|system| path.starts_with(system));
        if !of_system && self.0.len() < CHANGES_MAX && !self.0.contains(&path) {
            self.0.push(path);
        }
    }
}

#[cfg(test)]
mod tests;
