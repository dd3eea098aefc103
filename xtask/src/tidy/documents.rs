//! Documents keep up with the code: every crate says what it is for and what must hold, every dependency why it is
//! there.

use std::collections::BTreeSet;

use super::{SourceFile, WorkspaceMember};

/// Each package from elsewhere has a line in docs/DEPENDENCIES.md.
pub(crate) fn dependencies_are_explained(members: &[WorkspaceMember], page: &str) -> Vec<String> {
    let all = members.iter().flat_map(|member| &member.dependencies);
    let foreign: BTreeSet<&str> = all.filter(|d| !d.is_ours).map(|d| d.package.as_str()).collect();
    let explained = |name: &str| page.lines().any(|line| line.contains(&format!("`{name}`")));
    foreign
        .into_iter()
        .filter(|name| !explained(name))
        .map(|name| format!("docs/DEPENDENCIES.md: add a line that says why `{name}` is needed"))
        .collect()
}

/// Each crate has a section of ARCHITECTURE.md under its name, which states its **Purpose** and its **Invariant**.
pub(crate) fn crates_have_purposes_and_invariants(members: &[WorkspaceMember], page: &str) -> Vec<String> {
    let title =
        |section: &str| section.lines().next().unwrap_or_default().trim_matches(['#', ' ', '`']).to_owned();
    let stated = |name: &str, what: &str| {
        page.split("\n#").any(|section| title(section) == name && section.contains(&format!("**{what}")))
    };
    let crates = members.iter().filter_map(|member| member.folder.strip_prefix("crates/"));
    crates
        .flat_map(|name| ["Purpose", "Invariant"].map(|what| (name, what)))
        .filter(|(name, what)| !stated(name, what))
        .map(|(name, what)| format!("ARCHITECTURE.md: no section `### {name}` states its **{what}**"))
        .collect()
}

/// What every reader looks for.
const PAGES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/GLOSSARY.md",
    "docs/DEPENDENCIES.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

pub(crate) fn pages_are_there(sources: &[SourceFile]) -> Vec<String> {
    let written =
        |page: &&&str| sources.iter().any(|source| source.path == ***page && !source.text.trim().is_empty());
    let missing = PAGES.iter().filter(|page| !written(page));
    missing.map(|page| format!("{page}: the page is missing or empty")).collect()
}

/// Links from one page to another file of the project lead to one that is there, and to a title on it.
pub(crate) fn links_lead_somewhere(sources: &[SourceFile]) -> Vec<String> {
    let is_page = |source: &&SourceFile| source.path.rsplit_once('.').is_some_and(|(_, end)| end == "md");
    let broken = |page: &SourceFile| {
        let dead = |target: &&str| !leads_somewhere(page, target, sources);
        let complaint = |target: &str| format!("{}: broken link to `{target}`", page.path);
        links(&page.text).filter(dead).map(complaint).collect::<Vec<_>>()
    };
    sources.iter().filter(is_page).flat_map(broken).collect()
}

/// The targets of the links of a page that are not somewhere else in the world.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let ends = page.split("](").skip(1).filter_map(|rest| rest.split([')', '\n', ' ']).next());
    ends.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

fn leads_somewhere(page: &SourceFile, target: &str, sources: &[SourceFile]) -> bool {
    let (path, title) = target.split_once('#').map_or((target, None), |(path, title)| (path, Some(title)));
    let path = if path.is_empty() { Some(page.path.clone()) } else { joined(&page.path, path) };
    let Some(path) = path else { return false };
    let folder = format!("{}/", path.trim_end_matches('/'));
    match title {
        None => sources.iter().any(|source| source.path == path || source.path.starts_with(&folder)),
        Some(title) => sources.iter().any(|source| source.path == path && has_title(&source.text, title)),
    }
}

/// A path as seen from a page; `None` if it leads out of the project.
fn joined(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether a page has a title with this anchor.
fn has_title(page: &str, anchor: &str) -> bool {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    let titles = page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    titles.map(|title| title.trim().chars().filter_map(kept).collect::<String>()).any(|title| title == anchor)
}

/// Each crate begins with documentation of its own.
pub(crate) fn crates_have_docs(members: &[WorkspaceMember], sources: &[SourceFile]) -> Vec<String> {
    let documented = |member: &&WorkspaceMember| {
        let roots = ["lib.rs", "main.rs"].map(|file| format!("{}/src/{file}", member.folder));
        let mut roots = sources.iter().filter(|source| roots.contains(&source.path));
        roots.any(|source| source.text.starts_with("//! "))
    };
    let bare = members.iter().filter(|member| !documented(member));
    bare.map(|member| format!("{}: the root file must begin with `//!` documentation", member.folder))
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
            ["docs/DEPENDENCIES.md: add a line that says why `insta` is needed"]
        );
    }

    #[test]
    fn every_crate_states_its_purpose_and_its_invariant() {
        let check = |page: &str, missing: &[&str]| {
            let complaints = crates_have_purposes_and_invariants(&[member("core:")], page);
            let expected: Vec<String> = missing
                .iter()
                .map(|what| format!("ARCHITECTURE.md: no section `### core` states its **{what}**"))
                .collect();
            assert_eq!(complaints, expected, "for {page}");
        };
        check("# A\n\n### core\n**Purpose:** to decide. **Invariant:** pure.\n", &[]);
        check("# A\n\n## `core`\n\n**Purpose**: to decide.\n\n**Invariant**: pure.\n", &[]);
        check("", &["Purpose", "Invariant"]);
        check("# A\n\n### core\nIt decides. **Invariant:** pure.\n", &["Purpose"]);
        check("# A\n\n### core\n**Purpose:** to decide.\n\n### shell\n**Invariant**: pure.", &["Invariant"]);
    }

    #[test]
    fn every_page_is_there_and_says_something() {
        let all = || PAGES.iter().map(|page| source(page, "words"));
        let check =
            |sources: Vec<SourceFile>, expected: &[&str]| assert_eq!(pages_are_there(&sources), expected);
        check(all().collect(), &[]);
        check(
            all().filter(|page| page.path != "LICENSE-MIT").collect(),
            &["LICENSE-MIT: the page is missing or empty"],
        );
        let emptied = all().map(|page| match &*page.path {
            "docs/GLOSSARY.md" => source(&page.path, "\n"),
            _ => page,
        });
        check(emptied.collect(), &["docs/GLOSSARY.md: the page is missing or empty"]);
    }

    #[test]
    fn every_link_between_pages_leads_somewhere() {
        let check = |text: &str, dead: &[&str]| {
            let pages = [
                source("docs/a.md", text),
                source("docs/b.md", "# Two words, `code`"),
                source("README.md", "[x](docs/b.md)"),
                source("src/code.rs", "v[0](gone)"),
            ];
            let expected: Vec<String> =
                dead.iter().map(|target| format!("docs/a.md: broken link to `{target}`")).collect();
            assert_eq!(links_lead_somewhere(&pages), expected, "for {text}");
        };
        check("[b](b.md), [b](./b.md), [r](../README.md), [c](../src/code.rs), [s](../src/)", &[]);
        check("[b](b.md#two-words-code) [web](https://example.com/gone) # Here\n# Here\n[h](#here)", &[]);
        check("[gone](gone.md) and ![gone](../docs/gone.png)", &["gone.md", "../docs/gone.png"]);
        check("[out](../../b.md) [b](docs/b.md)", &["../../b.md", "docs/b.md"]);
        check("[b](b.md#three-words) [h](#here)", &["b.md#three-words", "#here"]);
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
