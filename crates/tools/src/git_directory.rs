//! Git's own directories, known by their content: behind a `.git` file or bare, they have any name.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use windlass_git::{is_git_directory, would_be_git_directory};
use windlass_protocol::CommandPath;

/// What git keeps in such a directory, beside notes about commands. Other names cost no system call.
const PARTS: &[&[&str]] = &[
    &["head", "config", "config.worktree", "commondir", "gitdir", "hooks", "index", "info", "modules"],
    &["worktrees", "objects", "refs", "packed-refs", "branches", "remotes", "logs", "rebase-apply"],
    &["rebase-merge", "sequencer"],
];

/// The git directories that these paths are, or are parts of, by either name. Together they may add what makes a directory one.
pub(crate) fn git_directories<'a>(paths: impl IntoIterator<Item = &'a CommandPath>) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for path in paths {
        let lexical = path.lexical();
        let resolved =
            path.as_known().and_then(|path| path.resolved.clone()).filter(|resolved| *resolved != *lexical);
        let name = |name| (name, path.is_directory());
        names.extend([Some(lexical.into_owned()), resolved].into_iter().flatten().map(name));
    }
    let mut added: BTreeMap<&Path, Vec<String>> = BTreeMap::new();
    for (directory, part) in names.iter().flat_map(|(name, _)| parts(name)) {
        added.entry(directory).or_default().push(part);
    }
    let mut found: Vec<PathBuf> = Vec::new();
    for (name, is_directory) in &names {
        let git = if *is_directory && is_git_directory(name) { Some(&**name) } else { holder(name, &added) };
        found.extend(git.map(Path::to_owned));
    }
    found.sort();
    found.dedup();
    found
}

/// The directories of which a path may be a part that git knows, with what that is called.
fn parts(path: &Path) -> impl Iterator<Item = (&Path, String)> {
    path.ancestors().filter_map(|part| {
        let name = part.file_name().filter(|name| can_be_part(name))?;
        Some((part.parent()?, fold_case(name)))
    })
}

/// The innermost git directory of which a path is a part.
fn holder<'a>(path: &'a Path, added: &BTreeMap<&Path, Vec<String>>) -> Option<&'a Path> {
    let mut directories = parts(path).map(|(directory, _)| directory);
    directories
        .find(|directory| would_be_git_directory(directory, added.get(directory).map_or(&[], Vec::as_slice)))
}

/// A name that the line itself does not tell, which holds a `…`, or that a file system may take for another one, may be any.
fn can_be_part(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let is_open = |byte: &u8| !byte.is_ascii() || matches!(byte, b'*' | b'?' | b'[');
    bytes.iter().any(is_open)
        || PARTS.iter().copied().flatten().any(|part| bytes.eq_ignore_ascii_case(part.as_bytes()))
}

/// Whether a name is that of something git goes by in a work tree: a part of a repository, or its own settings.
pub(crate) fn is_guide_of_git(name: &OsStr) -> bool {
    can_be_part(name) || fold_case(name).starts_with(".git")
}

fn fold_case(name: &OsStr) -> String {
    name.to_string_lossy().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;
    use windlass_ports::ExamineContext;

    use super::*;
    use crate::describe::describe;

    /// `files` are made in a fresh directory (a name that ends in a slash is a directory, `a -> b` a link); then `tool` would
    /// change what `input` says, and these directories of git are found.
    fn check(files: &[&str], tool: &str, input: &str, expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in files {
            if let Some((link, target)) = file.split_once(" -> ") {
                symlink(target, root.join(link)).unwrap();
                continue;
            }
            let path = root.join(file);
            fs::create_dir_all(if file.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
            if !file.ends_with('/') {
                fs::write(path, "").unwrap();
            }
        }
        let cx = ExamineContext::new(root.clone(), [root.clone()].into());
        let input = match tool {
            "Bash" => json!({ "command": input }),
            _ => json!({ "file_path": input }),
        };
        let found = describe(tool, &input, &cx).unwrap().git_directories;
        let expected: Vec<PathBuf> = expected.iter().map(|name| root.join(name)).collect();
        assert_eq!(found, expected, "{tool} {input}");
    }

    const REAL: [&str; 4] = ["real/HEAD", "real/objects/", "real/refs/", "src/main.rs"];

    #[test]
    fn a_git_directory_is_known_by_what_is_in_it() {
        let edit = |path: &str, expected: &[&str]| check(&REAL, "Edit", path, expected);
        edit("real/config", &["real"]);
        edit("real/CONFIG", &["real"]);
        edit("real/hoo\u{212a}s/x", &["real"]);
        edit("real/hooks/post-commit", &["real"]);
        edit("real/hooks/deep/er", &["real"]);
        edit("real/info/attributes", &["real"]);
        edit("real/modules/a/config", &["real"]);
        edit("real/worktrees/x/commondir", &["real"]);
        edit("real/rebase-merge/git-rebase-todo", &["real"]);
        edit("src/../real/./config", &["real"]);
        // Work trees may lie beside the parts.
        edit("real/main/src/a.rs", &[]);
        edit("src/config", &[]);
        edit("src/hooks/use.ts", &[]);
        edit("config", &[]);
    }

    #[test]
    fn links_do_not_hide_a_git_directory() {
        let with = |link: &'static str| [&REAL[..], &[link]].concat();
        check(&[&with("link -> real/config")[..], &["real/config"]].concat(), "Write", "link", &["real"]);
        check(&with("other -> real"), "Write", "other/config", &["other", "real"]);
        check(&with("real/hooks -> ../src"), "Write", "real/hooks/x", &["real"]);
    }

    #[test]
    fn linked_work_trees_and_what_becomes_a_git_directory_count() {
        check(&["tree/HEAD", "tree/commondir"], "Write", "tree/config.worktree", &["tree"]);
        check(&["bare/objects/", "bare/refs/"], "Write", "bare/HEAD", &["bare"]);
        check(&["bare/HEAD", "bare/refs/"], "Write", "bare/objects/info/x", &["bare"]);
        check(&["bare/HEAD"], "Write", "bare/commondir", &["bare"]);
        check(&["bare/HEAD"], "Write", "bare/config", &[]);
        check(&["bare/refs/"], "Write", "bare/HEAD", &[]);
        check(&["HEAD", "objects/", "refs/"], "Write", "config", &[""]);
    }

    #[test]
    fn commands_change_git_directories_too() {
        let bash = |line: &str, expected: &[&str]| check(&REAL, "Bash", line, expected);
        bash("echo x > real/config", &["real"]);
        bash("cp src/main.rs real/hooks/post-commit", &["real"]);
        bash("cp -r src real", &["real"]);
        bash("mv src/main.rs real/con*", &["real"]);
        bash("tee real/$NAME", &["real"]);
        bash("cd real && echo x >> config", &["real"]);
        bash("rm -r real", &["real"]);
        bash("cat real/config", &[]);
        bash("mkdir new/objects new/refs && touch new/HEAD new/config", &["new"]);
        bash("mkdir new/objects && touch new/HEAD new/config", &[]);
        bash("cp src/main.rs src/config", &[]);
    }
}
