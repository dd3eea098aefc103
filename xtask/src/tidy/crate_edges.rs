//! Dependencies between our crates go in the direction that ARCHITECTURE.md draws.

use super::WorkspaceMember;

/// What each crate may depend on. Dependencies of tests are free: they do not ship.
const CRATES: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("git", &["text"]),
    ("protocol", &[]),
    ("shell", &["protocol", "text"]),
    ("sandbox", &["git", "text"]),
    ("permission", &["protocol"]),
    ("core", &["permission", "protocol"]),
    ("ports", &["protocol"]),
    ("wire", &["protocol", "text"]),
    ("secrets", &[]),
    ("session", &["git", "ports", "protocol", "text"]),
    ("trace", &["protocol", "text"]),
    ("config", &["core", "git", "permission", "protocol", "text"]),
    ("engine", &["core", "permission", "ports", "protocol", "secrets", "text"]),
    ("models", &["ports", "protocol", "text"]),
    ("tools", &["git", "ports", "protocol", "shell", "sandbox", "text"]),
    ("hooks", &["ports", "protocol", "sandbox", "text"]),
    (
        "windlass",
        &[
            "protocol", "sandbox", "ports", "wire", "config", "engine", "models", "tools", "secrets",
            "session", "trace", "hooks", "text",
        ],
    ),
    // Whatever the command needs of the others, a library user may need too, so it comes through `windlass`.
    ("cli", &["text", "windlass"]),
    ("example", &["windlass"]),
    ("sim", &["core", "permission", "protocol"]),
    ("testkit", &["models", "ports", "protocol"]),
    ("lab", &["hooks", "permission", "ports", "protocol", "session", "shell", "testkit", "tools"]),
];

/// The command of the developers; it judges the others and so depends on none.
const OUTSIDE: &str = "xtask";

#[cfg(test)]
pub(crate) fn is_listed(name: &str) -> bool {
    CRATES.iter().any(|(listed, _)| *listed == name)
}

pub(crate) fn edges(members: &[WorkspaceMember]) -> Vec<String> {
    members.iter().flat_map(edges_of).collect()
}

fn edges_of(member: &WorkspaceMember) -> Vec<String> {
    let name = short(&member.package);
    let allowed = match CRATES.iter().find(|(listed, _)| *listed == name) {
        Some((_, allowed)) => *allowed,
        None if name == OUTSIDE => &[],
        None => {
            return vec![format!(
                "{}: {name} is not listed; add it to ARCHITECTURE.md and xtask/src/tidy/crate_edges.rs",
                member.folder
            )];
        }
    };
    let edges = member.dependencies.iter().filter(|dependency| dependency.is_ours && !dependency.is_dev);
    let wrong = edges.map(|dependency| short(&dependency.package)).filter(|to| !allowed.contains(to));
    let complaint = |to: &str| {
        let list = if allowed.is_empty() { "no workspace crate".to_owned() } else { allowed.join(", ") };
        format!("{}: {name} must not depend on {to}; it may depend on {list}", member.folder)
    };
    wrong.map(complaint).collect()
}

fn short(package: &str) -> &str {
    package.strip_prefix("windlass-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::member;

    fn check(line: &str, expected: &[&str]) {
        assert_eq!(edges(&[member(line)]), expected, "for {line}");
    }

    #[test]
    fn edges_go_one_way() {
        check("core: protocol serde dev:engine", &[]);
        check(
            "core: ports",
            &["crates/core: core must not depend on ports; it may depend on permission, protocol"],
        );
        check(
            "protocol: core",
            &["crates/protocol: protocol must not depend on core; it may depend on no workspace crate"],
        );
        check("cli: windlass dev:testkit", &[]);
        check("cli: tools", &["crates/cli: cli must not depend on tools; it may depend on text, windlass"]);
        check(
            "novel: core",
            &["crates/novel: novel is not listed; add it to ARCHITECTURE.md and \
               xtask/src/tidy/crate_edges.rs"],
        );
    }

    /// A cycle would make the order of the list meaningless.
    #[test]
    fn every_crate_stands_after_what_it_depends_on() {
        for (at, (name, below)) in CRATES.iter().enumerate() {
            for other in *below {
                let place = CRATES.iter().position(|(name, _)| name == other);
                assert!(place.is_some_and(|place| place < at), "{name} stands before {other}");
            }
        }
    }
}
