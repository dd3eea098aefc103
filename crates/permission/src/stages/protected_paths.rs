//! Names whose change can make other programs run something.

use std::path::{Path, PathBuf};

use crate::rules::fold;

/// Directories in which nothing is changed unasked.
#[rustfmt::skip]
pub const PROTECTED_DIRECTORIES: [&str; 10] = [
    ".git", ".vscode", ".idea", ".husky", ".cargo", ".devcontainer", ".yarn", ".mvn", ".claude",
    ".windlass",
];

/// Files that are not changed unasked.
#[rustfmt::skip]
pub const PROTECTED_FILES: [&str; 50] = [
    ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
    ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".inputrc", ".envrc", ".npmrc",
    ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs", "bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazelversion",
    ".bazeliskrc", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml",
    ".lefthook.yaml", ".lefthook.toml", ".lefthook.json", "lefthook-local.yml", "lefthook-local.yaml", "lefthook-local.toml",
    ".lefthook-local.yml", ".lefthook-local.yaml", "gradle-wrapper.properties", "maven-wrapper.properties", ".devcontainer.json", ".ripgreprc",
    "pyrightconfig.json", ".mcp.json", ".claude.json",
];

/// Protected only together.
const PROTECTED_PAIRS: [[&str; 2]; 2] = [[".config", "git"], [".config", "fish"]];
/// Where a protected directory holds ordinary work.
const UNPROTECTED_PAIRS: [[&str; 2]; 1] = [[".claude", "worktrees"]];
/// Bare repositories: their parts as they lie in the directory itself.
const BARE_PARTS: [&str; 2] = ["hooks", "config"];

/// Whether a path that a call changes has a protected name, or lies in one of the directories that git keeps a repository in.
pub(crate) fn is_protected(path: &Path, git_directories: &[PathBuf], roots: &[PathBuf]) -> bool {
    // What lies above a working directory is the user's choice of place and says nothing about the file.
    let is_above_root = |git: &PathBuf| {
        roots.iter().any(|root| root != git && root.starts_with(git) && path.starts_with(root))
    };
    is_listed(path, roots) || git_directories.iter().any(|git| path.starts_with(git) && !is_above_root(git))
}

/// A protected name that a pattern of names, which a command changes, may stand for.
pub(crate) fn perhaps_protected(path: &Path) -> Option<&'static str> {
    let names = PROTECTED_DIRECTORIES.iter().chain(&PROTECTED_FILES);
    path.components().find_map(|part| {
        let part = fold(&part.as_os_str().to_string_lossy());
        if !part.contains(['*', '?', '[']) {
            return None;
        }
        let stands_for = |name: &&&str| {
            // The patterns of the shell stand for no hidden name unless they begin with its dot.
            name.starts_with('.') == part.starts_with('.') && crate::rules::text_covers(&rough(&part), name)
        };
        names.clone().find(stands_for).copied()
    })
}

/// A pattern of the shell with a star for whatever is not a plain character.
fn rough(pattern: &str) -> String {
    let mut inside = false;
    let star = |c: char| {
        let was_inside = inside;
        inside = if inside { c != ']' } else { c == '[' };
        if was_inside || matches!(c, '?' | '[' | '*') { '*' } else { c }
    };
    pattern.chars().map(star).collect()
}

fn is_listed(path: &Path, roots: &[PathBuf]) -> bool {
    let below = roots
        .iter()
        .filter_map(|root| path.strip_prefix(root).ok())
        .min_by_key(|rest| rest.as_os_str().len());
    let parts = below.unwrap_or(path).components();
    let names: Vec<String> = parts.map(|part| fold(&part.as_os_str().to_string_lossy())).collect();
    let begins = |at: usize, pairs: &[[&str; 2]]| {
        names.get(at..at + 2).is_some_and(|two| pairs.iter().any(|pair| two == pair))
    };
    let is_directory = |(at, name): (usize, &String)| {
        PROTECTED_DIRECTORIES.contains(&name.as_str()) && !begins(at, &UNPROTECTED_PAIRS)
            || begins(at, &PROTECTED_PAIRS)
    };
    let in_bare_repository = |(at, name): (usize, &String)| {
        name.strip_suffix("git").is_some_and(|rest| rest.ends_with('.'))
            && names.get(at + 1).is_some_and(|part| BARE_PARTS.contains(&part.as_str()))
    };
    names.last().is_some_and(|name| PROTECTED_FILES.contains(&name.as_str()))
        || names.iter().enumerate().any(is_directory)
        || names.iter().enumerate().any(in_bare_repository)
}
