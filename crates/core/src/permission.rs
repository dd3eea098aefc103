//! Whether a call may run: an ordered list of stages over the facts of the call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windlass_protocol::{CallFacts, CallKind, PathFact};

use crate::config::{Asking, Config, PermissionMode};

/// What the stages decide about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Run it.
    Allow,
    /// Ask the caller, for this reason.
    Ask(String),
    /// Do not run it; the reason says what would allow it.
    Deny(String),
}

/// A call as the stages see it.
struct Case<'a> {
    tool: &'a str,
    facts: &'a CallFacts,
    /// Files outside the working directories that tools made for reading.
    readable: &'a BTreeSet<PathBuf>,
    config: &'a Config,
}

/// A stage settles the matter or passes it on.
type Stage = fn(&Case<'_>) -> Option<Verdict>;

/// The stages, in order; the first that settles decides. What none settles is asked.
const STAGES: [Stage; 6] =
    [disallowed_tool, bypass_mode, plan_mode, allowed_tool, harmless_call, accepted_edit];

/// Decides about a call.
pub(crate) fn decide(
    tool: &str,
    facts: &CallFacts,
    readable: &BTreeSet<PathBuf>,
    config: &Config,
) -> Verdict {
    let case = Case { tool, facts, readable, config };
    STAGES.iter().find_map(|stage| stage(&case)).unwrap_or_else(|| ask(&case))
}

fn disallowed_tool(case: &Case<'_>) -> Option<Verdict> {
    let named = case.config.permissions.disallowed.contains(case.tool);
    named.then(|| Verdict::Deny(format!("{} is disallowed in this session.", case.tool)))
}

fn bypass_mode(case: &Case<'_>) -> Option<Verdict> {
    (case.config.permissions.mode == PermissionMode::BypassPermissions).then_some(Verdict::Allow)
}

/// Plan mode stands before the allow list: nothing changes while a plan is made.
fn plan_mode(case: &Case<'_>) -> Option<Verdict> {
    let changes = matches!(case.facts.kind, CallKind::Edit | CallKind::Execute);
    (case.config.permissions.mode == PermissionMode::Plan && changes).then(|| {
        Verdict::Deny(format!("{} would change something, and plan mode allows only reading.", case.tool))
    })
}

fn allowed_tool(case: &Case<'_>) -> Option<Verdict> {
    case.config.permissions.allowed.contains(case.tool).then_some(Verdict::Allow)
}

/// Reading inside the working directories, and what touches only the session itself.
fn harmless_call(case: &Case<'_>) -> Option<Verdict> {
    match case.facts.kind {
        CallKind::Session => Some(Verdict::Allow),
        CallKind::Read => case.facts.paths.iter().all(|path| may_read(case, path)).then_some(Verdict::Allow),
        CallKind::Edit | CallKind::Execute => None,
    }
}

fn accepted_edit(case: &Case<'_>) -> Option<Verdict> {
    let edits =
        case.config.permissions.mode == PermissionMode::AcceptEdits && case.facts.kind == CallKind::Edit;
    (edits && all_inside(case) && !case.facts.paths.iter().any(is_protected)).then_some(Verdict::Allow)
}

/// Asks, or denies with the same reason where nobody answers.
fn ask(case: &Case<'_>) -> Verdict {
    let reason = no_rule(case);
    let permissions = &case.config.permissions;
    match (permissions.asking, permissions.mode) {
        (Asking::Person, mode) if mode != PermissionMode::DontAsk => Verdict::Ask(reason),
        (Asking::Person, _) => {
            Verdict::Deny(format!("{reason} The mode dontAsk denies what would be asked."))
        }
        (Asking::Nobody, _) => Verdict::Deny(format!(
            "{reason} Nobody is there to ask; the user can allow it with --allowedTools {} or another --permission-mode.",
            case.tool
        )),
    }
}

fn no_rule(case: &Case<'_>) -> String {
    let outside = case.facts.paths.iter().find(|path| !may_read(case, path));
    match (case.facts.kind, outside) {
        (CallKind::Read, Some(path)) => {
            format!("{} of {} is outside the working directories.", case.tool, path.lexical.display())
        }
        (CallKind::Edit, _) if case.facts.paths.iter().any(is_protected) => {
            format!("{} of {} changes a protected file.", case.tool, case.facts.target)
        }
        (CallKind::Edit, _) => format!("{} of {} needs permission.", case.tool, case.facts.target),
        _ => format!("{} needs permission.", case.tool),
    }
}

fn may_read(case: &Case<'_>, path: &PathFact) -> bool {
    let made_for_it = path.resolved.as_ref().is_some_and(|resolved| case.readable.contains(resolved));
    made_for_it || is_inside(path, &case.config.roots)
}

fn all_inside(case: &Case<'_>) -> bool {
    case.facts.paths.iter().all(|path| is_inside(path, &case.config.roots))
}

/// Both names of the path must be inside, compared by components: a link inside may point outside.
fn is_inside(path: &PathFact, roots: &[PathBuf]) -> bool {
    let within = |name: &Path| roots.iter().any(|root| name.starts_with(root));
    within(&path.lexical) && path.resolved.as_deref().is_some_and(within)
}

/// Names whose change can make other programs run something. Compared without case.
const PROTECTED_DIRECTORIES: [&str; 10] = [
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
    ".claude",
    ".windlass",
];
const PROTECTED_FILES: [&str; 27] = [
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".bunfig.toml",
    ".bazelrc",
    ".bazelversion",
    ".bazeliskrc",
    ".pre-commit-config.yaml",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
];

fn is_protected(path: &PathFact) -> bool {
    let names = |path: &Path| {
        let names: Vec<String> =
            path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
        let file = names.last().is_some_and(|name| PROTECTED_FILES.contains(&name.as_str()));
        file || names.iter().any(|name| PROTECTED_DIRECTORIES.contains(&name.as_str()))
    };
    names(&path.lexical) || path.resolved.as_deref().is_some_and(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(kind: CallKind, path: &str) -> CallFacts {
        let paths = match path {
            "" => vec![],
            path => vec![PathFact { lexical: path.into(), resolved: Some(path.into()) }],
        };
        CallFacts { kind, shared: false, paths, target: path.into() }
    }

    fn config(mode: PermissionMode, asking: Asking) -> Config {
        let mut config = Config { roots: ["/srv/app".into(), "/data".into()].into(), ..Config::default() };
        config.permissions.mode = mode;
        config.permissions.asking = asking;
        config
    }

    fn decide(tool: &str, facts: &CallFacts, config: &Config) -> Verdict {
        super::decide(tool, facts, &BTreeSet::new(), config)
    }

    fn word(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Allow => "allow",
            Verdict::Ask(_) => "ask",
            Verdict::Deny(_) => "deny",
        }
    }

    /// One row: the kind of call and its path, then the verdict in each mode with a person to ask:
    /// default, acceptEdits, plan, dontAsk, bypassPermissions.
    #[track_caller]
    fn check(kind: CallKind, path: &str, expected: [&str; 5]) {
        use PermissionMode::*;
        let modes = [Default, AcceptEdits, Plan, DontAsk, BypassPermissions];
        let seen = modes.map(|mode| word(&decide("Tool", &facts(kind, path), &config(mode, Asking::Person))));
        assert_eq!(seen, expected, "{kind:?} {path}");
    }

    #[test]
    fn modes_decide_by_kind_and_place() {
        use CallKind::*;
        check(Read, "/srv/app/a.rs", ["allow", "allow", "allow", "allow", "allow"]);
        check(Read, "/data", ["allow", "allow", "allow", "allow", "allow"]);
        check(Read, "", ["allow", "allow", "allow", "allow", "allow"]);
        check(Read, "/srv/app2/a.rs", ["ask", "ask", "ask", "deny", "allow"]);
        check(Read, "/etc/passwd", ["ask", "ask", "ask", "deny", "allow"]);
        check(Edit, "/srv/app/a.rs", ["ask", "allow", "deny", "deny", "allow"]);
        check(Edit, "/etc/passwd", ["ask", "ask", "deny", "deny", "allow"]);
        check(Edit, "/srv/app/.GIT/hooks/x", ["ask", "ask", "deny", "deny", "allow"]);
        check(Edit, "/srv/app/.npmrc", ["ask", "ask", "deny", "deny", "allow"]);
        check(Execute, "", ["ask", "ask", "deny", "deny", "allow"]);
        check(Session, "", ["allow", "allow", "allow", "allow", "allow"]);
    }

    #[test]
    fn a_link_that_leads_outside_is_outside() {
        let link = PathFact { lexical: "/srv/app/link".into(), resolved: Some("/etc/passwd".into()) };
        let nowhere = PathFact { lexical: "/srv/app/loop".into(), resolved: None };
        for path in [link, nowhere] {
            let facts = CallFacts { paths: vec![path], ..facts(CallKind::Read, "") };
            let verdict = decide("Read", &facts, &config(PermissionMode::Default, Asking::Person));
            assert_eq!(word(&verdict), "ask");
        }
    }

    #[test]
    fn what_a_tool_made_for_reading_can_be_read_and_nothing_else() {
        let readable = BTreeSet::from(["/tmp/output/1.txt".into()]);
        let config = config(PermissionMode::Default, Asking::Person);
        let verdict = |kind, path: &str| word(&super::decide("Tool", &facts(kind, path), &readable, &config));
        assert_eq!(verdict(CallKind::Read, "/tmp/output/1.txt"), "allow");
        assert_eq!(verdict(CallKind::Read, "/tmp/output/2.txt"), "ask");
        assert_eq!(verdict(CallKind::Edit, "/tmp/output/1.txt"), "ask");
    }

    #[test]
    fn lists_of_tools_beat_the_default_and_deny_beats_allow() {
        let mut config = config(PermissionMode::Default, Asking::Nobody);
        let facts = facts(CallKind::Execute, "");
        assert_eq!(word(&decide("Bash", &facts, &config)), "deny");
        config.permissions.allowed.insert("Bash".into());
        assert_eq!(decide("Bash", &facts, &config), Verdict::Allow);
        config.permissions.mode = PermissionMode::Plan;
        assert_eq!(word(&decide("Bash", &facts, &config)), "deny");
        config.permissions.mode = PermissionMode::BypassPermissions;
        config.permissions.disallowed.insert("Bash".into());
        assert_eq!(word(&decide("Bash", &facts, &config)), "deny");
    }

    #[test]
    fn a_denial_says_what_would_allow_it() {
        let verdict =
            decide("Bash", &facts(CallKind::Execute, ""), &config(PermissionMode::Default, Asking::Nobody));
        let Verdict::Deny(reason) = verdict else { panic!("{verdict:?}") };
        assert_eq!(
            reason,
            "Bash needs permission. Nobody is there to ask; the user can allow it with --allowedTools Bash or another --permission-mode."
        );
    }
}
