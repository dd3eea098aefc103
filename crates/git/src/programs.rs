//! Whether what git reads of a repository names programs that it would run even where it only looks: filters, and drivers for
//! differences. Their names are the repository's own, so no setting from outside can take them back.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::directory::{common_directory, git_directory, is_git_directory, read_bytes, read_text};
use crate::index;
use crate::settings::CONFIG_BYTES_MAX;

/// More directories for repositories inside of another one are not looked through.
const MODULES_MAX: usize = 64;

/// Keys that git runs or reads settings from, in any section: a continued line could hide where one begins.
const KEYS: &str = "clean command defaultkeycommand driver external path process program smudge textconv";

/// Whether a repository or a submodule of it may name a program, or may enter nested work trees that do.
pub fn names_program(dot_git: &Path) -> bool {
    let Some(own) = own_settings(dot_git) else { return true };
    let mut waiting = vec![own[1].with_file_name("modules")];
    let mut files = own.to_vec();
    let mut visits = 0;
    while let Some(modules) = waiting.pop() {
        visits += 1;
        if visits > MODULES_MAX {
            return true;
        }
        let inside = fs::read_dir(modules).into_iter().flatten().flatten().map(|entry| entry.path());
        for directory in inside.filter(|path| path.is_dir()) {
            if is_git_directory(&directory) {
                files.extend(["config", "config.worktree"].map(|name| directory.join(name)));
                waiting.push(directory.join("modules"));
            } else {
                waiting.push(directory);
            }
        }
    }
    // Another place of the work, or a file that is shown when it is not understood.
    if own.iter().any(|file| can_set(file, "worktree ignorerevsfile")) {
        return true;
    }
    let enters = |file: &Path| can_set(file, "ignore");
    let modules = dot_git.with_file_name(".gitmodules");
    // Where the file is missing, git takes what it tracks of it, whose name may be cut to its end in the index.
    let may_be_tracked = || index_has(dot_git, b"modules") && can_hold_others(dot_git);
    let is_unseen = || modules.symlink_metadata().is_err() && may_be_tracked();
    files.iter().any(|file| can_set(file, KEYS) || enters(file)) || enters(&modules) || is_unseen()
}

/// Whether the repository that a `.git` is, or points to, names a program that tells it what has changed. What cannot be read may.
pub fn names_watcher(dot_git: &Path) -> bool {
    own_settings(dot_git).is_none_or(|own| own.iter().any(|file| can_set(file, "fsmonitor")))
}

/// Whether the names of objects in a repository may have another length than usual.
pub(crate) fn has_other_objects(dot_git: &Path) -> bool {
    own_settings(dot_git).is_none_or(|[_, shared]| can_set(&shared, "objectformat"))
}

/// The settings of a work tree, and those that it shares with others.
fn own_settings(dot_git: &Path) -> Option<[PathBuf; 2]> {
    let directory = git_directory(dot_git)?;
    Some([directory.join("config.worktree"), common_directory(&directory).join("config")])
}

/// Whether a file of settings may set one of the keys. What cannot be read may.
fn can_set(file: &Path, keys: &str) -> bool {
    match read_text(file, CONFIG_BYTES_MAX) {
        Ok(text) => text.lines().any(|line| sets(line, keys)),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Whether a repository may hold others, by the mode that its index gives them. What cannot be read may.
pub fn can_hold_others(dot_git: &Path) -> bool {
    const LINK: [u8; 4] = 0o160_000_u32.to_be_bytes();
    index_has(dot_git, &LINK)
}

/// Whether a mark is in the index. What cannot be read, or is elsewhere, may hold it.
fn index_has(dot_git: &Path, mark: &[u8]) -> bool {
    let Some(directory) = git_directory(dot_git) else { return true };
    match read_bytes(&directory.join("index"), index::BYTES_MAX) {
        Ok(bytes) => memchr::memmem::find(&bytes, mark).is_some() || index::is_split(&bytes),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Whether a line may set one of the keys. What stands behind the name of a section belongs to it.
fn sets(line: &str, keys: &str) -> bool {
    line.split(']').any(|part| {
        let part = part.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(part.len());
        let is_one = keys.split(' ').any(|key| part[..end].eq_ignore_ascii_case(key));
        is_one && !is_harmless(&part[end..])
    })
}

/// Neither the filters that `git lfs install --local` sets nor git's own watcher are programs of the repository's choice.
fn is_harmless(value: &str) -> bool {
    const SWITCHES: [&str; 2] = ["true", "false"];
    const FILTERS: [&str; 5] =
        ["clean -- %f", "smudge -- %f", "smudge --skip -- %f", "filter-process", "filter-process --skip"];
    let value = value.trim_start().strip_prefix('=').unwrap_or_default().trim();
    SWITCHES.contains(&value)
        || value.strip_prefix("git-lfs ").is_some_and(|arguments| FILTERS.contains(&arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_programs_are_known() {
        let check = |line: &str, expected: bool| assert_eq!(sets(line, KEYS), expected, "{line}");
        check("\tclean = ./x", true);
        check("[filter \"a]b\"] CLEAN=./x", true);
        check("[diff] external = ./x", true);
        check("  textconv=./x", true);
        check("[merge \"own\"] driver = ./x %O %A %B", true);
        check("\tpath = ../more", true);
        check("[gpg \"ssh\"]program=./x", true);
        check("\tclean = git-lfs clean -- %f", false);
        check("[filter \"lfs\"] process = git-lfs filter-process", false);
        check("\tclean = git-lfs clean -- %f; ./x", true);
        check("\tclean = git-lfs clean -- %f \\", true);
        check("\tclean = ./git-lfs clean -- %f", true);
        check("[core]", false);
        check("\tfilemode = true", false);
        check("\turl = https://example.com/clean", false);
        check("# clean = ./x", false);
        check("cleaning = 1", false);
    }
}
