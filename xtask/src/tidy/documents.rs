//! Documents keep up with the code: every crate says what it is for and what must hold, every dependency why it is
//! there.

use std::collections::BTreeSet;

use super::{Member, Source};

/// Each package from elsewhere has a line in docs/DEPENDENCIES.md.
pub(crate) fn dependencies_are_explained(members: &[Member], page: &str) -> Vec<String> {
    let all = members.iter().flat_map(|member| &member.dependencies);
    let foreign: BTreeSet<&str> = all.filter(|d| !d.ours).map(|d| d.package.as_str()).collect();
    let explained = |name: &str| page.lines().any(|line| line.contains(&format!("`{name}`")));
    foreign
        .into_iter()
        .filter(|name| !explained(name))
        .map(|name| format!("docs/DEPENDENCIES.md: `{name}` has no line that says why it is needed"))
        .collect()
}

/// Each crate has a section of ARCHITECTURE.md under its name, which states an **Invariant**.
pub(crate) fn crates_have_invariants(members: &[Member], page: &str) -> Vec<String> {
    let title =
        |section: &str| section.lines().next().unwrap_or_default().trim_matches(['#', ' ', '`']).to_owned();
    let stated = |name: &str| {
        page.split("\n#").any(|section| title(section) == name && section.contains("**Invariant"))
    };
    members
        .iter()
        .filter_map(|member| member.folder.strip_prefix("crates/"))
        .filter(|name| !stated(name))
        .map(|name| format!("ARCHITECTURE.md: no section `### {name}` states its **Invariant**"))
        .collect()
}

/// Each crate begins with documentation of its own.
pub(crate) fn crates_have_docs(members: &[Member], sources: &[Source]) -> Vec<String> {
    let documented = |member: &&Member| {
        let roots = ["lib.rs", "main.rs"].map(|file| format!("{}/src/{file}", member.folder));
        let mut roots = sources.iter().filter(|source| roots.contains(&source.path));
        roots.any(|source| source.text.starts_with("//! "))
    };
    let bare = members.iter().filter(|member| !documented(member));
    bare.map(|member| format!("{}: its root file does not begin with `//!` documentation", member.folder))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::{member, source};

    #[test]
    fn every_foreign_dependency_needs_a_line() {
        let members = [member("core: protocol serde"), member("tools: dev:insta")];
        assert!(dependencies_are_explained(&members, "| `serde` | … |\n| `insta` | … |").is_empty());
        assert_eq!(
            dependencies_are_explained(&members, "| `serde` | … |\ninsta"),
            ["docs/DEPENDENCIES.md: `insta` has no line that says why it is needed"]
        );
    }

    #[test]
    fn every_crate_states_an_invariant() {
        let check = |page: &str, missing: bool| {
            let complaints = crates_have_invariants(&[member("core:")], page);
            assert_eq!(!complaints.is_empty(), missing, "for {page}");
        };
        check("# A\n\n### core\nIt decides. **Invariant:** pure.\n", false);
        check("# A\n\n## `core`\n\nIt decides.\n\n**Invariant**: pure.\n", false);
        check("", true);
        check("# A\n\n### core\nIt decides.\n", true);
        check("# A\n\n### core\nIt decides.\n\n### shell\n**Invariant**: pure.", true);
    }

    #[test]
    fn every_crate_begins_with_documentation() {
        let check = |path: &str, text: &str, missing: bool| {
            let complaints = crates_have_docs(&[member("core:")], &[source(path, text)]);
            assert_eq!(!complaints.is_empty(), missing, "for {path}");
        };
        check("crates/core/src/lib.rs", "//! It decides.\n", false);
        check("crates/core/src/main.rs", "//! It decides.\n", false);
        check("crates/core/src/lib.rs", "mod a;\n", true);
        check("crates/core/src/step.rs", "//! It decides.\n", true);
    }
}
