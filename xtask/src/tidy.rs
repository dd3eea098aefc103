//! `cargo xtask tidy`: the rules that no lint knows. Each is a function from facts about the workspace to
//! complaints, so that each can be tried on made-up facts.

mod crate_edges;
mod dependencies;
mod documents;
mod manifests;
mod names;
mod rules;
mod sources;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::cargo::{cargo, output, root, say};

/// A file of the project, with its path from the root. What is no text, such as a picture, counts as empty.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A crate of the workspace, as its manifest says.
#[derive(Debug)]
pub(crate) struct WorkspaceMember {
    /// The name of its package.
    pub(crate) package: String,
    /// Its folder from the root.
    pub(crate) folder: String,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) package: String,
    /// For tests only.
    pub(crate) is_dev: bool,
    /// Of this workspace.
    pub(crate) is_ours: bool,
}

/// Runs the rules as a command of its own.
pub(crate) fn main() -> Result<ExitCode> {
    Ok(if passes()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the rules and prints the complaints.
pub(crate) fn passes() -> Result<bool> {
    let complaints = complaints()?;
    for complaint in &complaints {
        say(complaint);
    }
    match complaints.len() {
        0 => say("tidy"),
        count => say(&format!("{count} problems")),
    }
    Ok(complaints.is_empty())
}

/// Every package of the binary with its licence.
fn licences() -> Result<String> {
    output(cargo(&["tree", "-p", "windlass-cli", "-e", "normal", "--prefix", "none", "--format", "{p}\t{l}"]))
}

fn complaints() -> Result<Vec<String>> {
    let sources = sources()?;
    let members = members(&output(cargo(&["metadata", "--format-version", "1", "--no-deps"]))?)?;
    let tree = |package: &str| output(cargo(&["tree", "-p", package, "-e", "normal", "--prefix", "none"]));
    let document =
        |path: &str| sources.iter().find(|source| source.path == path).map_or("", |found| &*found.text);
    Ok([
        crate_edges::edges(&members),
        dependencies::core_is_small(&members),
        dependencies::core_is_pure(&tree("windlass-core")?),
        dependencies::binary_is_small(&tree("windlass-cli")?),
        dependencies::licences_fit(&licences()?),
        dependencies::lock_is_public(document("Cargo.lock")),
        documents::dependencies_are_explained(&members, document("docs/DEPENDENCIES.md")),
        documents::crates_have_purposes_and_invariants(&members, document("ARCHITECTURE.md")),
        documents::crates_have_docs(&members, &sources),
        documents::pages_are_there(&sources),
        documents::links_lead_somewhere(&sources),
        rules::rules_name_functions_and_tests(&sources),
        rules::rules_are_complete(&sources),
        manifests::crates_inherit(&members, &sources),
        sources::files_are_short(&sources),
        sources::names_mean_something(&sources),
        names::types_have_names_of_their_own(&sources),
        names::names_say_what_things_are(&sources),
        names::functions_say_what_they_do(&sources),
        names::booleans_are_conditions(&sources),
        sources::nothing_is_waved_through(&sources),
        sources::errors_have_types(&sources),
        sources::channels_are_bounded(&sources),
        sources::qualifiers_come_last(&sources),
        sources::carry_is_written_out(&sources),
        sources::no_machine_is_named(&sources),
    ]
    .concat())
}

/// All files that are or will be under version control.
fn sources() -> Result<Vec<SourceFile>> {
    let root = root();
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&root);
    let list = output(git)?;
    let read = |path: &str| read_text(&root, path).transpose();
    list.split('\0').filter(|path| !path.is_empty()).filter_map(read).collect()
}

/// The text of a file; `None` for a file that is deleted but not yet committed.
fn read_text(root: &Path, path: &str) -> Result<Option<SourceFile>> {
    let file = root.join(path);
    if !file.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(&file).with_context(|| format!("cannot read {path}"))?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    Ok(Some(SourceFile { path: path.to_owned(), text }))
}

/// The crates of the workspace, from `cargo metadata`.
fn members(metadata: &str) -> Result<Vec<WorkspaceMember>> {
    let metadata: Value = serde_json::from_str(metadata).context("cargo metadata printed no JSON")?;
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dependency = |dependency: &Value| Dependency {
        package: text(&dependency["name"]),
        is_dev: dependency["kind"] == "dev",
        is_ours: dependency["path"].is_string(),
    };
    let member = |package: &Value| {
        let manifest = text(&package["manifest_path"]);
        let folder = manifest.strip_prefix(root).unwrap_or(&manifest).trim_start_matches('/');
        WorkspaceMember {
            package: text(&package["name"]),
            folder: folder.trim_end_matches("/Cargo.toml").to_owned(),
            dependencies: list(&package["dependencies"]).iter().map(dependency).collect(),
        }
    };
    Ok(list(&metadata["packages"]).iter().map(member).collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod made_up {
    //! Facts about workspaces that do not exist.

    use super::{Dependency, SourceFile, WorkspaceMember};

    /// A crate from a line such as `core: protocol serde dev:insta`; crates of the workspace have a layer's name.
    pub(crate) fn member(line: &str) -> WorkspaceMember {
        let (name, words) = line.split_once(':').unwrap();
        let ours = |name: &str| crate::tidy::crate_edges::is_listed(name);
        let dependency = |word: &str| {
            let name = word.trim_start_matches("dev:");
            let package = if ours(name) { format!("windlass-{name}") } else { name.to_owned() };
            Dependency { package, is_dev: word.starts_with("dev:"), is_ours: ours(name) }
        };
        WorkspaceMember {
            package: format!("windlass-{name}"),
            folder: format!("crates/{name}"),
            dependencies: words.split_whitespace().map(dependency).collect(),
        }
    }

    pub(crate) fn source(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_metadata() {
        let json = r#"{"workspace_root":"/x","packages":[{"name":"windlass-core","manifest_path":"/x/crates/core/Cargo.toml",
            "dependencies":[{"name":"serde","kind":null},{"name":"windlass-protocol","kind":"dev","path":"/x/crates/protocol"}]}]}"#;
        let members = members(json).unwrap();
        assert_eq!((&*members[0].package, &*members[0].folder), ("windlass-core", "crates/core"));
        let seen: Vec<_> =
            members[0].dependencies.iter().map(|d| (&*d.package, d.is_dev, d.is_ours)).collect();
        assert_eq!(seen, [("serde", false, false), ("windlass-protocol", true, true)]);
    }
}
