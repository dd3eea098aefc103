//! Whether a call may run: an ordered list of stages over the facts of the call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windlass_protocol::{CallFacts, CallKind, HookPermission, PathFact};

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
pub(crate) struct Case<'a> {
    pub(crate) tool: &'a str,
    pub(crate) facts: &'a CallFacts,
    /// What a hook wants to become of it.
    pub(crate) hook: Option<&'a HookPermission>,
    /// Whether the same call was started before, and nobody knows what came of it.
    pub(crate) doubtful: bool,
    /// Files outside the working directories that tools made for reading.
    pub(crate) readable: &'a BTreeSet<PathBuf>,
    pub(crate) config: &'a Config,
}

/// A stage settles the matter or passes it on.
type Stage = fn(&Case<'_>) -> Option<Verdict>;

/// The stages, in order; the first that settles decides. What none settles is asked.
const STAGES: [Stage; 11] = [
    denied_by_hook,
    disallowed_tool,
    plan_mode,
    asked_by_hook,
    outcome_unknown,
    bypass_mode,
    protected_edit,
    allowed_by_hook,
    allowed_tool,
    harmless_call,
    accepted_edit,
];

/// Decides about a call.
pub(crate) fn decide(case: &Case<'_>) -> Verdict {
    STAGES.iter().find_map(|stage| stage(case)).unwrap_or_else(|| ask(case))
}

/// Whether there is somebody who answers questions.
pub(crate) fn can_ask(config: &Config) -> bool {
    config.permissions.asking == Asking::Person && config.permissions.mode != PermissionMode::DontAsk
}

fn denied_by_hook(case: &Case<'_>) -> Option<Verdict> {
    let Some(HookPermission::Deny(reason)) = case.hook else { return None };
    Some(Verdict::Deny(format!("A hook denied this call: {reason}")))
}

fn disallowed_tool(case: &Case<'_>) -> Option<Verdict> {
    let named = case.config.permissions.disallowed.contains(case.tool);
    named.then(|| Verdict::Deny(format!("{} is disallowed in this session.", case.tool)))
}

/// A hook's question is asked whatever would allow the call; what denies it stands before this.
fn asked_by_hook(case: &Case<'_>) -> Option<Verdict> {
    let Some(HookPermission::Ask(reason)) = case.hook else { return None };
    Some(ask_because(case, format!("A hook asks about {}: {reason}", case.tool), "a hook that allows it"))
}

/// Nothing that does more than read is made twice without a decision, whatever else allows it.
fn outcome_unknown(case: &Case<'_>) -> Option<Verdict> {
    let doubtful = case.doubtful && !case.facts.kind.is_read_only();
    doubtful.then(|| {
        let reason = format!(
            "This very call of {} was running when the session was cut off, and whether it took effect is unknown.",
            case.tool
        );
        ask_because(case, reason, "another prompt, once the outcome is known")
    })
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

/// Files that can make other programs run something are always asked about: allowing a tool does not mean these.
fn protected_edit(case: &Case<'_>) -> Option<Verdict> {
    changes_protected(case).then(|| ask(case))
}

/// A hook's permission spares the question, and nothing else: what denies a call and what is always asked stand before it.
fn allowed_by_hook(case: &Case<'_>) -> Option<Verdict> {
    (case.hook == Some(&HookPermission::Allow)).then_some(Verdict::Allow)
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
    (edits && all_inside(case)).then_some(Verdict::Allow)
}

fn ask(case: &Case<'_>) -> Verdict {
    ask_because(case, reason(case), &advice(case))
}

/// Asks, or denies with the same reason where nobody answers.
fn ask_because(case: &Case<'_>, reason: String, advice: &str) -> Verdict {
    match case.config.permissions.asking {
        Asking::Person if can_ask(case.config) => Verdict::Ask(reason),
        Asking::Person => Verdict::Deny(format!("{reason} The mode dontAsk denies what would be asked.")),
        Asking::Nobody => {
            Verdict::Deny(format!("{reason} Nobody is there to ask; the user can allow it with {advice}."))
        }
    }
}

/// Why the call is not simply allowed.
fn reason(case: &Case<'_>) -> String {
    let (tool, facts) = (case.tool, case.facts);
    if changes_protected(case) {
        return format!("{tool} of {} changes a protected file.", facts.target);
    }
    match outside(case) {
        None if facts.kind == CallKind::Edit => format!("{tool} of {} needs permission.", facts.target),
        None => format!("{tool} needs permission."),
        Some(PathFact { lexical, resolved: None, .. }) => {
            format!("{tool} of {} leads nowhere or where nobody can tell.", lexical.display())
        }
        Some(PathFact { lexical, resolved: Some(resolved), .. })
            if is_within(lexical, &case.config.roots) =>
        {
            format!(
                "{tool} of {} leads to {}, outside the working directories.",
                lexical.display(),
                resolved.display()
            )
        }
        Some(PathFact { lexical, .. }) => {
            format!("{tool} of {} is outside the working directories.", lexical.display())
        }
    }
}

/// The narrowest thing a user can do about it.
fn advice(case: &Case<'_>) -> String {
    if changes_protected(case) {
        return "--permission-mode bypassPermissions".into();
    }
    let place = outside(case).and_then(directory);
    match (case.facts.kind, place) {
        (CallKind::Read, Some(place)) => format!("--add-dir {}", place.display()),
        (CallKind::Edit, Some(place)) => {
            format!(
                "--add-dir {} and --permission-mode acceptEdits, or --allowedTools {}",
                place.display(),
                case.tool
            )
        }
        _ => format!("--allowedTools {} or another --permission-mode", case.tool),
    }
}

/// The directory that holds a path, or that it is.
fn directory(path: &PathFact) -> Option<&Path> {
    let resolved = path.resolved.as_deref()?;
    if path.is_directory { Some(resolved) } else { resolved.parent() }
}

/// The first path that is not free to read.
fn outside<'a>(case: &'a Case<'_>) -> Option<&'a PathFact> {
    case.facts.paths.iter().find(|path| !may_read(case, path))
}

fn changes_protected(case: &Case<'_>) -> bool {
    case.facts.kind == CallKind::Edit
        && case.facts.paths.iter().any(|path| is_protected(path, &case.config.roots))
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
    is_within(&path.lexical, roots)
        && path.resolved.as_deref().is_some_and(|resolved| is_within(resolved, roots))
}

fn is_within(name: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| name.starts_with(root))
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
#[rustfmt::skip]
const PROTECTED_FILES: [&str; 38] = [
    ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
    ".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".envrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs",
    ".pnp.loader.mjs", ".pnpmfile.cjs", "bunfig.toml", ".bunfig.toml", ".bazelrc", ".bazelversion", ".bazeliskrc",
    ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml",
    "gradle-wrapper.properties", "maven-wrapper.properties", ".devcontainer.json", ".ripgreprc", "pyrightconfig.json",
    ".mcp.json", ".claude.json",
];
/// Protected only together.
const PROTECTED_PAIRS: [[&str; 2]; 1] = [[".config", "git"]];
/// Where a protected directory holds ordinary work.
const UNPROTECTED_PAIRS: [[&str; 2]; 1] = [[".claude", "worktrees"]];

/// What lies above a working directory is the user's choice of place and says nothing about the file.
fn is_protected(path: &PathFact, roots: &[PathBuf]) -> bool {
    is_listed(&path.lexical, roots) || path.resolved.as_deref().is_some_and(|name| is_listed(name, roots))
}

fn is_listed(path: &Path, roots: &[PathBuf]) -> bool {
    let below = roots
        .iter()
        .filter_map(|root| path.strip_prefix(root).ok())
        .min_by_key(|rest| rest.as_os_str().len());
    let parts = below.unwrap_or(path).components();
    let names: Vec<String> = parts.map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    let begins = |at: usize, pairs: &[[&str; 2]]| {
        names.get(at..at + 2).is_some_and(|two| pairs.iter().any(|pair| two == pair))
    };
    let is_directory = |(at, name): (usize, &String)| {
        PROTECTED_DIRECTORIES.contains(&name.as_str()) && !begins(at, &UNPROTECTED_PAIRS)
            || begins(at, &PROTECTED_PAIRS)
    };
    names.last().is_some_and(|name| PROTECTED_FILES.contains(&name.as_str()))
        || names.iter().enumerate().any(is_directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(lexical: &str, resolved: Option<&str>) -> PathFact {
        PathFact { lexical: lexical.into(), resolved: resolved.map(PathBuf::from), is_directory: false }
    }

    fn facts(kind: CallKind, path: &str) -> CallFacts {
        let paths = match path {
            "" => vec![],
            path => vec![place(path, Some(path))],
        };
        CallFacts { kind, shared: false, paths, changes: vec![], target: path.into() }
    }

    fn config(mode: PermissionMode, asking: Asking) -> Config {
        let mut config = Config { roots: ["/srv/app".into(), "/data".into()].into(), ..Config::default() };
        config.permissions.mode = mode;
        config.permissions.asking = asking;
        config
    }

    fn decide(tool: &str, facts: &CallFacts, config: &Config) -> Verdict {
        super::decide(&Case { tool, facts, hook: None, readable: &BTreeSet::new(), doubtful: false, config })
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
        check(Edit, "/srv/app/.config/git/config", ["ask", "ask", "deny", "deny", "allow"]);
        check(Edit, "/srv/app/.claude/worktrees/x/a.rs", ["ask", "allow", "deny", "deny", "allow"]);
        check(Edit, "/srv/app/.claude/worktrees/x/.git", ["ask", "ask", "deny", "deny", "allow"]);
        check(Edit, "/srv/app/.claude/worktrees/x/.vscode/a", ["ask", "ask", "deny", "deny", "allow"]);
        check(Execute, "", ["ask", "ask", "deny", "deny", "allow"]);
        check(Session, "", ["allow", "allow", "allow", "allow", "allow"]);
    }

    #[test]
    fn a_link_that_leads_outside_is_outside() {
        let link = place("/srv/app/link", Some("/etc/passwd"));
        let nowhere = place("/srv/app/loop", None);
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
        let verdict = |kind, path: &str| {
            let (facts, readable, config) = (&facts(kind, path), &readable, &config);
            word(&super::decide(&Case { tool: "Tool", facts, hook: None, readable, doubtful: false, config }))
        };
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
    fn allowing_a_tool_does_not_mean_protected_files() {
        let mut config = config(PermissionMode::Default, Asking::Person);
        config.permissions.allowed.insert("Write".into());
        let verdict = |path: &str| word(&decide("Write", &facts(CallKind::Edit, path), &config));
        assert_eq!(verdict("/srv/app/a.rs"), "allow");
        assert_eq!(verdict("/srv/app/.git/hooks/pre-commit"), "ask");
    }

    #[test]
    fn a_project_below_a_protected_name_can_be_edited() {
        let mut config = config(PermissionMode::AcceptEdits, Asking::Person);
        config.roots = ["/home/me/.claude/worktrees/x".into()].into();
        let verdict = |path: &str| word(&decide("Edit", &facts(CallKind::Edit, path), &config));
        assert_eq!(verdict("/home/me/.claude/worktrees/x/a.rs"), "allow");
        assert_eq!(verdict("/home/me/.claude/worktrees/x/.claude/a.json"), "ask");
    }

    #[test]
    fn the_advice_for_a_directory_is_that_directory() {
        let paths = vec![PathFact { is_directory: true, ..place("/etc", Some("/etc")) }];
        let facts = CallFacts { paths, ..facts(CallKind::Read, "") };
        let verdict = decide("Grep", &facts, &config(PermissionMode::Default, Asking::Nobody));
        assert!(matches!(&verdict, Verdict::Deny(text) if text.ends_with("--add-dir /etc.")), "{verdict:?}");
    }

    #[test]
    fn a_denial_says_what_is_wrong_and_what_would_allow_it() {
        let check = |kind, lexical: &str, resolved: Option<&str>, expected: &str| {
            let paths = match lexical {
                "" => vec![],
                lexical => vec![place(lexical, resolved)],
            };
            let facts = CallFacts { kind, shared: false, paths, changes: vec![], target: "a".into() };
            let verdict = decide("Tool", &facts, &config(PermissionMode::Default, Asking::Nobody));
            let (reason, advice) = expected.split_once('|').unwrap();
            let nobody = "Nobody is there to ask; the user can allow it with";
            assert_eq!(verdict, Verdict::Deny(format!("{reason} {nobody} {advice}.")));
        };
        let any = "--allowedTools Tool or another --permission-mode";
        check(CallKind::Execute, "", None, &format!("Tool needs permission.|{any}"));
        check(
            CallKind::Edit,
            "/srv/app/a",
            Some("/srv/app/a"),
            &format!("Tool of a needs permission.|{any}"),
        );
        check(
            CallKind::Edit,
            "/srv/app/.npmrc",
            Some("/srv/app/.npmrc"),
            "Tool of a changes a protected file.|--permission-mode bypassPermissions",
        );
        check(
            CallKind::Read,
            "/etc/x",
            Some("/etc/x"),
            "Tool of /etc/x is outside the working directories.|--add-dir /etc",
        );
        check(
            CallKind::Edit,
            "/etc/x",
            Some("/etc/x"),
            "Tool of /etc/x is outside the working directories.|--add-dir /etc and --permission-mode acceptEdits, or --allowedTools Tool",
        );
        check(
            CallKind::Read,
            "/srv/app/link",
            Some("/etc/x"),
            "Tool of /srv/app/link leads to /etc/x, outside the working directories.|--add-dir /etc",
        );
        check(
            CallKind::Read,
            "/srv/app/loop",
            None,
            &format!("Tool of /srv/app/loop leads nowhere or where nobody can tell.|{any}"),
        );
    }

    /// One row: what a hook wants and the mode, then the verdict about reading inside, editing inside, editing a protected
    /// file, and a disallowed tool.
    #[track_caller]
    fn check_hook(hook: &HookPermission, mode: PermissionMode, expected: [&str; 4]) {
        let mut config = config(mode, Asking::Person);
        config.permissions.disallowed.insert("Forbidden".into());
        let calls = [
            ("Tool", facts(CallKind::Read, "/srv/app/a.rs")),
            ("Tool", facts(CallKind::Edit, "/srv/app/a.rs")),
            ("Tool", facts(CallKind::Edit, "/srv/app/.npmrc")),
            ("Forbidden", facts(CallKind::Read, "/srv/app/a.rs")),
        ];
        let seen = calls.map(|(tool, facts)| {
            let (readable, config) = (&BTreeSet::new(), &config);
            word(&super::decide(&Case {
                tool,
                facts: &facts,
                hook: Some(hook),
                readable,
                doubtful: false,
                config,
            }))
        });
        assert_eq!(seen, expected, "{hook:?} {mode:?}");
    }

    #[test]
    fn hooks_can_spare_a_question_but_beat_no_denial() {
        use HookPermission::*;
        let (deny, ask) = (|| Deny("no".into()), || Ask("sure?".into()));
        check_hook(&Allow, PermissionMode::Default, ["allow", "allow", "ask", "deny"]);
        check_hook(&Allow, PermissionMode::Plan, ["allow", "deny", "deny", "deny"]);
        check_hook(&Allow, PermissionMode::DontAsk, ["allow", "allow", "deny", "deny"]);
        check_hook(&ask(), PermissionMode::BypassPermissions, ["ask", "ask", "ask", "deny"]);
        check_hook(&ask(), PermissionMode::Plan, ["ask", "deny", "deny", "deny"]);
        check_hook(&ask(), PermissionMode::DontAsk, ["deny", "deny", "deny", "deny"]);
        check_hook(&deny(), PermissionMode::BypassPermissions, ["deny", "deny", "deny", "deny"]);
        check_hook(&deny(), PermissionMode::Default, ["deny", "deny", "deny", "deny"]);
    }
}
