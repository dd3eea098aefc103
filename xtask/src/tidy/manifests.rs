//! Manifests: every crate is under the lints and the licence of the workspace.

use super::{SourceFile, WorkspaceMember};

/// What the manifest of each crate says: a table, a line in it, and what is lost without it.
const INHERITED: &[(&str, &str, &str)] = &[
    ("[lints]", "workspace = true", "the lints of the workspace"),
    ("[package]", "license.workspace = true", "the licence of the workspace"),
];

pub(crate) fn crates_inherit(members: &[WorkspaceMember], sources: &[SourceFile]) -> Vec<String> {
    let complaints = members.iter().flat_map(|member| {
        let path = format!("{}/Cargo.toml", member.folder);
        let manifest = sources.iter().find(|source| source.path == path).map_or("", |found| &*found.text);
        let missing = INHERITED.iter().filter(|(table, line, _)| !says(manifest, table, line));
        let complaint = |(table, line, what): &(&str, &str, &str)| {
            format!("{path}: does not inherit {what}; add `{line}` under `{table}`")
        };
        missing.map(complaint).collect::<Vec<_>>()
    });
    complaints.collect()
}

/// Whether a line stands in a table of a manifest.
fn says(manifest: &str, table: &str, line: &str) -> bool {
    let lines = manifest.lines().map(str::trim);
    let rest = lines.skip_while(|other| *other != table).skip(1);
    rest.take_while(|other| !other.starts_with('[')).any(|other| other == line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::{member, source};

    #[test]
    fn lints_and_licence_come_from_the_workspace() {
        let check = |manifest: &str, missing: &[&str]| {
            let sources = [source("crates/core/Cargo.toml", manifest)];
            let complaints = crates_inherit(&[member("core:")], &sources);
            assert_eq!(complaints.len(), missing.len(), "for {manifest}: {complaints:?}");
            for (complaint, what) in complaints.iter().zip(missing) {
                assert!(
                    complaint.starts_with("crates/core/Cargo.toml: ") && complaint.contains(what),
                    "{complaint}"
                );
            }
        };
        let package = "[package]\nname = \"windlass-core\"\nlicense.workspace = true\n";
        check(&format!("{package}\n[lints]\nworkspace = true\n\n[dependencies]\n"), &[]);
        check(package, &["lints"]);
        check(&format!("{package}[lints]\n[dependencies.x]\nworkspace = true\n"), &["lints"]);
        check("[package]\nlicense = \"MIT\"\n[lints]\nworkspace = true\n", &["licence"]);
        check("", &["lints", "licence"]);
    }
}
