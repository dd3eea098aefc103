use windlass_protocol::{Behaviour, CommandEffect, CommandFacts, CommandWord, PlainCommand};

use super::*;
use crate::rules::{Anchors, CommandPattern, RuleSource};
use crate::settings::SandboxPermissions;

fn place(lexical: &str, resolved: Option<&str>) -> PathFact {
    PathFact { lexical: lexical.into(), resolved: resolved.map(PathBuf::from), is_directory: false }
}

fn facts(kind: CallKind, path: &str) -> CallFacts {
    let paths = match path {
        "" => vec![],
        path => vec![place(path, Some(path))],
    };
    CallFacts { paths, target: path.into(), ..CallFacts::new(kind) }
}

fn roots() -> [PathBuf; 2] {
    ["/srv/app".into(), "/data".into()]
}

fn anchors() -> Anchors {
    Anchors {
        settings: "/srv/app".into(),
        start: "/srv/app".into(),
        roots: roots().to_vec(),
        home: Some("/home/me".into()),
    }
}

fn permissions(mode: PermissionMode, asking: Answerer) -> Permissions {
    Permissions { mode, asking, anchors: anchors(), ..Permissions::default() }
}

impl Permissions {
    fn with(mut self, behaviour: Behaviour, rule: &str) -> Self {
        self.rules.add(behaviour, rule, RuleSource::session(), &anchors()).unwrap();
        self
    }
}

fn decide(tool: &str, facts: &CallFacts, permissions: &Permissions) -> Ruling {
    decide_call(&PermissionCase::new(tool, facts, permissions, &roots()))
}

fn word(ruling: &Ruling) -> &'static str {
    ruling.verdict.name()
}

/// One row: the kind of call and its path, then the verdict in each mode with a person to ask:
/// default, acceptEdits, plan, dontAsk, bypassPermissions.
#[track_caller]
fn check(kind: CallKind, path: &str, expected: [&str; 5]) {
    use PermissionMode::*;
    let modes = [Default, AcceptEdits, Plan, DontAsk, BypassPermissions];
    let seen =
        modes.map(|mode| word(&decide("Tool", &facts(kind, path), &permissions(mode, Answerer::Person))));
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
    check(Edit, "/srv/app/.windlass/settings.json", ["ask", "ask", "deny", "deny", "allow"]);
    check(Edit, "/srv/app/mirror.git/hooks/update", ["ask", "ask", "deny", "deny", "allow"]);
    check(Execute, "", ["ask", "ask", "deny", "deny", "allow"]);
    check(Session, "", ["allow", "allow", "allow", "allow", "allow"]);
}

/// A repository is known by what is in its directory, whatever that is called.
#[test]
fn the_parts_of_a_git_directory_are_protected_by_any_name() {
    let check = |git: &str, lexical: &str, resolved: Option<&str>, expected: &str| {
        let facts = CallFacts {
            paths: vec![place(lexical, resolved)],
            git_directories: vec![git.into()],
            ..CallFacts::new(CallKind::Edit)
        };
        let permissions =
            permissions(PermissionMode::AcceptEdits, Answerer::Person).with(Behaviour::Allow, "Edit");
        assert_eq!(word(&decide("Edit", &facts, &permissions)), expected, "{lexical} in {git}");
    };
    let itself = |git: &str, path: &str, expected| check(git, path, Some(path), expected);
    itself("/srv/app/realgit", "/srv/app/realgit/config", "ask");
    itself("/srv/app/realgit", "/srv/app/realgit/hooks/post-commit", "ask");
    itself("/srv/app/realgit", "/srv/app/realgit", "ask");
    itself("/srv/app/realgit", "/srv/app/realgit2/config", "allow");
    itself("/srv/app/realgit", "/srv/app/src/config", "allow");
    itself("/elsewhere/git", "/elsewhere/git/config", "ask");
    check("/srv/app/realgit", "/srv/app/link", Some("/srv/app/realgit/config"), "ask");
    check("/srv/app/realgit", "/srv/app/realgit/hooks/x", Some("/srv/app/scripts/x"), "ask");
    // The working directory itself may be a repository; one above it is the user's choice of place.
    itself("/srv/app", "/srv/app/config", "ask");
    itself("/srv", "/srv/app/config", "allow");
}

#[test]
fn where_a_model_judges_only_the_rest_is_left_to_it() {
    let check = |kind, path: &str, expected| {
        let permissions = permissions(PermissionMode::Auto, Answerer::Person).with(Behaviour::Allow, "Bash");
        assert_eq!(decide("Tool", &facts(kind, path), &permissions).verdict, expected, "{kind:?} {path}");
    };
    check(CallKind::Read, "/srv/app/a", Verdict::Allow);
    check(CallKind::Edit, "/srv/app/a", Verdict::Allow);
    check(CallKind::Edit, "/srv/app/.npmrc", Verdict::Classify);
    check(CallKind::Read, "/etc/passwd", Verdict::Classify);
    check(CallKind::Execute, "", Verdict::Classify);
    let permissions = permissions(PermissionMode::Auto, Answerer::Person).with(Behaviour::Allow, "Bash");
    let bash = decide("Bash", &facts(CallKind::Execute, ""), &permissions);
    assert_eq!(bash.verdict, Verdict::Classify, "a rule that lets anything run does not count");
}

#[test]
fn a_link_that_leads_outside_is_outside() {
    let link = place("/srv/app/link", Some("/etc/passwd"));
    let nowhere = place("/srv/app/loop", None);
    for path in [link, nowhere] {
        let facts = CallFacts { paths: vec![path], ..facts(CallKind::Read, "") };
        let ruling = decide("Read", &facts, &permissions(PermissionMode::Default, Answerer::Person));
        assert_eq!(word(&ruling), "ask");
    }
}

#[test]
fn what_a_tool_made_for_reading_can_be_read_and_nothing_else() {
    let readable = BTreeSet::from(["/tmp/output/1.txt".into()]);
    let permissions = permissions(PermissionMode::Default, Answerer::Person);
    let verdict = |kind, path: &str| {
        let (facts, roots) = (facts(kind, path), roots());
        word(&decide_call(&PermissionCase {
            readable: &readable,
            ..PermissionCase::new("Tool", &facts, &permissions, &roots)
        }))
    };
    assert_eq!(verdict(CallKind::Read, "/tmp/output/1.txt"), "allow");
    assert_eq!(verdict(CallKind::Read, "/tmp/output/2.txt"), "ask");
    assert_eq!(verdict(CallKind::Edit, "/tmp/output/1.txt"), "ask");
}

#[test]
fn rules_beat_the_default_and_deny_beats_allow() {
    let mut permissions = permissions(PermissionMode::Default, Answerer::Nobody);
    let facts = facts(CallKind::Execute, "");
    assert_eq!(word(&decide("Bash", &facts, &permissions)), "deny");
    permissions = permissions.with(Behaviour::Allow, "Bash");
    let allowed = decide("Bash", &facts, &permissions);
    assert_eq!(allowed.rule.map(|rule| rule.text.to_string()).as_deref(), Some("Bash"));
    permissions.mode = PermissionMode::Plan;
    assert_eq!(word(&decide("Bash", &facts, &permissions)), "deny");
    permissions.mode = PermissionMode::BypassPermissions;
    permissions = permissions.with(Behaviour::Deny, "Bash");
    let denied = decide("Bash", &facts, &permissions);
    assert_eq!(denied.reason, "The rule Bash (this session) denies this call.");
}

#[test]
fn allowing_a_tool_does_not_mean_protected_files() {
    let permissions = permissions(PermissionMode::Default, Answerer::Person).with(Behaviour::Allow, "Write");
    let verdict = |path: &str| word(&decide("Write", &facts(CallKind::Edit, path), &permissions));
    assert_eq!(verdict("/srv/app/a.rs"), "allow");
    assert_eq!(verdict("/srv/app/.git/hooks/pre-commit"), "ask");
}

#[test]
fn a_project_below_a_protected_name_can_be_edited() {
    let permissions = permissions(PermissionMode::AcceptEdits, Answerer::Person);
    let roots = [PathBuf::from("/home/me/.claude/worktrees/x")];
    let verdict = |path: &str| {
        let facts = facts(CallKind::Edit, path);
        word(&decide_call(&PermissionCase::new("Edit", &facts, &permissions, &roots)))
    };
    assert_eq!(verdict("/home/me/.claude/worktrees/x/a.rs"), "allow");
    assert_eq!(verdict("/home/me/.claude/worktrees/x/.claude/a.json"), "ask");
}

#[test]
fn the_advice_for_a_directory_is_that_directory() {
    let paths = vec![PathFact { is_directory: true, ..place("/etc", Some("/etc")) }];
    let facts = CallFacts { paths, ..facts(CallKind::Read, "") };
    let ruling = decide("Grep", &facts, &permissions(PermissionMode::Default, Answerer::Nobody));
    assert!(ruling.reason.ends_with(", or --add-dir /etc."), "{ruling:?}");
}

#[test]
fn a_denial_says_what_is_wrong_and_what_would_allow_it() {
    let check = |kind, lexical: &str, resolved: Option<&str>, expected: &str| {
        let paths = match lexical {
            "" => vec![],
            lexical => vec![place(lexical, resolved)],
        };
        let facts = CallFacts { paths, target: "a".into(), ..CallFacts::new(kind) };
        let ruling = decide("Tool", &facts, &permissions(PermissionMode::Default, Answerer::Nobody));
        let (reason, advice) = expected.split_once('|').unwrap();
        let denied = "Denied: not running interactively. To allow it:";
        assert_eq!((ruling.verdict, ruling.reason), (Verdict::Deny, format!("{reason} {denied} {advice}.")));
    };
    check(CallKind::Execute, "", None, "Tool needs approval.|--allowedTools Tool");
    check(
        CallKind::Edit,
        "/srv/app/a",
        Some("/srv/app/a"),
        "Tool of a needs approval.|--allowedTools 'Edit(//srv/app/a)', or --permission-mode acceptEdits",
    );
    check(
        CallKind::Edit,
        "/srv/app/.npmrc",
        Some("/srv/app/.npmrc"),
        "This changes the protected file /srv/app/.npmrc.|--permission-mode bypassPermissions",
    );
    check(
        CallKind::Read,
        "/etc/x",
        Some("/etc/x"),
        "/etc/x is outside the working directories.|--allowedTools 'Read(//etc/x)', or --add-dir /etc",
    );
    check(
        CallKind::Edit,
        "/etc/x",
        Some("/etc/x"),
        "/etc/x is outside the working directories.|--allowedTools 'Edit(//etc/x)', or --add-dir /etc and --permission-mode acceptEdits",
    );
    check(
        CallKind::Read,
        "/srv/app/link",
        Some("/etc/x"),
        "/srv/app/link leads to /etc/x, outside the working directories.|--add-dir /etc",
    );
    check(
        CallKind::Read,
        "/srv/app/loop",
        None,
        "Where /srv/app/loop leads cannot be checked.|--allowedTools Tool",
    );
}

/// One row: the mode, the rules, the call, and what its denial says would allow it.
#[track_caller]
fn check_advice(mode: PermissionMode, rules: &[(Behaviour, &str)], call: (&str, &CallFacts), expected: &str) {
    let start = permissions(mode, Answerer::Nobody);
    let all = rules.iter().fold(start, |all, (behaviour, rule)| all.with(*behaviour, rule));
    let ruling = decide(call.0, call.1, &all);
    let (_, advice) = ruling.reason.split_once(". ").unwrap_or_default();
    assert_eq!((ruling.verdict, advice), (Verdict::Deny, expected), "{ruling:?}");
}

#[test]
fn a_denial_names_the_least_permissive_mode_and_no_more() {
    use Behaviour::{Allow, Ask, Deny};
    use PermissionMode::{DontAsk, Plan};
    let default = PermissionMode::Default;
    let (edit, run) = (facts(CallKind::Edit, "/srv/app/a"), facts(CallKind::Execute, ""));
    let protected = facts(CallKind::Edit, "/srv/app/.npmrc");
    let edits = "--allowedTools 'Edit(//srv/app/a)', or --permission-mode acceptEdits.";
    let asks_nobody = format!("Denied: not running interactively. To allow it: {edits}");
    check_advice(default, &[], ("Edit", &edit), &asks_nobody);
    check_advice(
        DontAsk,
        &[],
        ("Edit", &edit),
        &format!("Denied: the mode dontAsk never asks. To allow it: {edits}"),
    );
    // What denies is named alone: nothing allows the call beside it.
    check_advice(default, &[(Deny, "Edit")], ("Edit", &edit), "");
    check_advice(
        default,
        &[(Allow, "Edit")],
        ("Edit", &protected),
        "Denied: not running interactively. To allow it: --permission-mode bypassPermissions.",
    );
    let refused =
        Permissions { is_bypass_refused: true, ..permissions(default, Answerer::Nobody).with(Allow, "Edit") };
    let denied = decide("Edit", &protected, &refused).reason;
    assert!(
        denied.ends_with(" Denied: not running interactively. To allow it: run interactively."),
        "{denied}"
    );
    let by_rule = "run interactively, or remove that rule from this session.";
    check_advice(
        default,
        &[(Ask, "Edit")],
        ("Edit", &edit),
        &format!("Denied: not running interactively. To allow it: {by_rule}"),
    );
    check_advice(
        DontAsk,
        &[(Ask, "Edit")],
        ("Edit", &edit),
        "Denied: the mode dontAsk never asks. To allow it: run interactively and use --permission-mode default, \
         or remove that rule from this session.",
    );
    check_advice(Plan, &[(Allow, "Bash")], ("Bash", &run), "To allow it: --permission-mode default.");
    check_advice(Plan, &[], ("Edit", &edit), "To allow it: --permission-mode acceptEdits.");
    check_advice(Plan, &[], ("Edit", &protected), "");
}

#[test]
fn a_critical_removal_is_refused_in_every_mode() {
    use windlass_protocol::{CommandFacts, FoundCommand};
    let check = |mode, asking, path: &str, expected: &str| {
        let word = CommandWord::from_marked(path, "$");
        let (path, naming) = match word.as_known() {
            Some(path) => (place(path, None).into(), PathNaming::Exact),
            None => (CommandPath::Partial(word), PathNaming::Unknown),
        };
        let removed = NamedPath { path, naming, is_redirected: false, is_recursive: true };
        let found = vec![FoundCommand {
            words: vec!["rm".into()],
            reads: vec![],
            writes: vec![],
            removes: vec![removed],
        }];
        let line = "rm".into();
        let commands = CommandFacts { line, plain: Ok(vec![]), found, unseen: None, has_hidden: false };
        let facts = CallFacts { commands: Some(commands.into()), ..facts(CallKind::Execute, "") };
        let permissions = permissions(mode, asking).with(Behaviour::Allow, "Bash");
        assert_eq!(decide("Bash", &facts, &permissions).reason, expected);
    };
    for mode in [PermissionMode::Default, PermissionMode::BypassPermissions] {
        check(mode, Answerer::Person, "/", "This would delete `/`.");
        let hand = "No rule or mode allows that; do it by hand.";
        check(mode, Answerer::Nobody, "/", &format!("Refused: this would delete `/`. {hand}"));
        let unknown = "`$…/x`, which is only known at run time";
        check(
            mode,
            Answerer::Nobody,
            "/srv/app/$/x",
            &format!("Refused: this would delete {unknown}. {hand}"),
        );
    }
}

#[test]
fn a_session_is_offered_to_accept_edits_where_that_allows_the_call() {
    let check = |mode, path: &str, expected: bool| {
        let permissions = permissions(mode, Answerer::Person);
        let (facts, roots) = (facts(CallKind::Edit, path), roots());
        let offers = offers(&PermissionCase::new("Edit", &facts, &permissions, &roots));
        assert_eq!(offers.can_accept_edits, expected, "{mode:?} {path}");
    };
    check(PermissionMode::Default, "/srv/app/a", true);
    check(PermissionMode::Default, "/srv/app/.npmrc", false);
    check(PermissionMode::Default, "/etc/x", false);
    check(PermissionMode::AcceptEdits, "/srv/app/a", false);
    check(PermissionMode::Auto, "/srv/app/a", false);
}

#[test]
fn where_only_managed_rules_count_no_other_is_advised_or_offered() {
    let check = |tool: &str, facts: &CallFacts, expected: &str| {
        let permissions =
            Permissions { is_managed_only: true, ..permissions(PermissionMode::Default, Answerer::Nobody) };
        let roots = roots();
        let case = PermissionCase::new(tool, facts, &permissions, &roots);
        let reason = decide_call(&case).reason;
        assert!(reason.ends_with(expected), "{reason}");
        assert!(!reason.contains("--allowedTools"), "{reason}");
        assert_eq!(missing_rules(&case), Vec::<String>::new());
    };
    let administrator = "Denied: not running interactively, and only rules in managed settings can allow it; ask your administrator.";
    check("Tool", &facts(CallKind::Execute, ""), administrator);
    check("Skill", &facts(CallKind::Execute, ""), administrator);
    let host = windlass_protocol::HostFact::Name("localhost".into());
    let url =
        windlass_protocol::UrlFact { text: "http://localhost/".into(), host, is_secure: false, port: 80 };
    check("WebFetch", &CallFacts { url: Some(url), ..facts(CallKind::Fetch, "") }, administrator);
    // What is no rule helps all the same.
    check("Edit", &facts(CallKind::Edit, "/srv/app/a"), "To allow it: --permission-mode acceptEdits.");
    check("Read", &facts(CallKind::Read, "/etc/x"), "To allow it: --add-dir /etc.");
    let asked =
        Permissions { is_managed_only: true, ..permissions(PermissionMode::Default, Answerer::Person) };
    let execute = facts(CallKind::Execute, "");
    let why = why_each_time(&PermissionCase::new("Tool", &execute, &asked, &roots()));
    assert!(why.contains("only rules in managed settings"), "{why}");
}

/// One row: what a hook wants and the mode, then the verdict about reading inside, editing inside, editing a protected
/// file, and a disallowed tool.
#[track_caller]
fn check_hook(hook: &HookPermission, mode: PermissionMode, expected: [&str; 4]) {
    let permissions = permissions(mode, Answerer::Person).with(Behaviour::Deny, "Forbidden");
    let calls = [
        ("Tool", facts(CallKind::Read, "/srv/app/a.rs")),
        ("Tool", facts(CallKind::Edit, "/srv/app/a.rs")),
        ("Tool", facts(CallKind::Edit, "/srv/app/.npmrc")),
        ("Forbidden", facts(CallKind::Read, "/srv/app/a.rs")),
    ];
    let seen = calls.map(|(tool, facts)| {
        let roots = roots();
        word(&decide_call(&PermissionCase {
            hook: Some(hook),
            ..PermissionCase::new(tool, &facts, &permissions, &roots)
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

#[test]
fn a_rule_that_asks_is_not_to_be_beaten_by_another() {
    let permissions = permissions(PermissionMode::Default, Answerer::Nobody)
        .with(Behaviour::Ask, "Tool")
        .with(Behaviour::Allow, "Tool");
    let reason = decide("Tool", &facts(CallKind::Execute, ""), &permissions).reason;
    let source = RuleSource::session();
    assert!(
        reason.ends_with(&format!("To allow it: run interactively, or remove that rule from {source}.")),
        "{reason}"
    );
}

#[test]
fn a_question_that_no_rule_spares_says_why() {
    let permissions = permissions(PermissionMode::Default, Answerer::Person);
    let check = |tool: &str, facts: &CallFacts, permissions: &Permissions, expected: &str| {
        let why = why_each_time(&PermissionCase::new(tool, facts, permissions, &roots()));
        assert!(why.starts_with(expected), "{why}");
    };
    let execute = facts(CallKind::Execute, "");
    let asked = permissions.clone().with(Behaviour::Ask, "Tool");
    check("Tool", &execute, &asked, "the rule Tool (");
    check("AskUserQuestion", &execute, &permissions, "only you can answer it");
    check("Edit", &facts(CallKind::Edit, "/srv/app/.npmrc"), &permissions, "it changes a protected file");
    check("Tool", &execute, &permissions, "no rule can describe just this call");
}

#[test]
fn a_skill_is_offered_by_its_name() {
    let permissions = permissions(PermissionMode::Default, Answerer::Person);
    let check = |input: &str, expected: &[&str]| {
        let (facts, raw) = (facts(CallKind::Execute, ""), RawValue::from_string(input.to_owned()).unwrap());
        let roots = roots();
        let case =
            PermissionCase { input: &raw, ..PermissionCase::new("Skill", &facts, &permissions, &roots) };
        assert_eq!(missing_rules(&case), expected, "{input}");
    };
    check(r#"{"skill": "review"}"#, &["Skill(review)"]);
    check(r#"{"skill": "/review"}"#, &["Skill(review)"]);
    check(r#"{"command": "/review main"}"#, &["Skill(review *)"]);
    check(r#"{"skill": "review", "args": "main"}"#, &["Skill(review *)"]);
    check(r#"{"skill": "re*"}"#, &[]);
    check(r#"{"skill": "review:*"}"#, &[]);
    check("{}", &[]);
}

/// A line that only looks, and what is allowed by a rule, in a sandbox that the model asks to leave.
#[test]
fn leaving_the_sandbox_is_asked_about_whatever_allows_the_command() {
    use PermissionMode::*;
    let line = |name: &str, effect: CommandEffect| {
        let words = vec![name.into()];
        let plain = PlainCommand {
            text: name.to_owned(),
            words: words.clone(),
            whole: words,
            is_exact_only: false,
            spelled: None,
            effect,
            reads: Vec::new(),
            writes: Vec::new(),
            has_network: false,
        };
        let plain = Ok(vec![plain]);
        let commands =
            CommandFacts { line: name.into(), plain, found: Vec::new(), unseen: None, has_hidden: false };
        let kind = if effect == CommandEffect::Looks { CallKind::Read } else { CallKind::Execute };
        CallFacts { commands: Some(commands.into()), ..CallFacts::new(kind) }
    };
    let check = |name: &str, mode: PermissionMode, leave: bool, expected: &str| {
        let effect = if name == "ls" { CommandEffect::Looks } else { CommandEffect::Unknown };
        let excluded = vec![CommandPattern::parse("docker").unwrap()];
        let sandbox = SandboxPermissions { should_auto_allow: true, can_leave: true, excluded };
        let permissions = Permissions { sandbox: Some(sandbox), ..permissions(mode, Answerer::Person) };
        let permissions =
            permissions.with(Behaviour::Allow, "Bash(make)").with(Behaviour::Allow, "Bash(docker)");
        let input = RawValue::from_string(format!("{{\"dangerouslyDisableSandbox\": {leave}}}")).unwrap();
        let (facts, roots) = (line(name, effect), roots());
        let case =
            PermissionCase { input: &input, ..PermissionCase::new("Bash", &facts, &permissions, &roots) };
        let hooked = PermissionCase { hook: Some(&HookPermission::Allow), ..case };
        for case in [case, hooked] {
            assert_eq!(word(&decide_call(&case)), expected, "{name} {mode:?} {leave}");
        }
        assert_eq!(missing_rules(&case), [""; 0], "{name} {mode:?} {leave}");
    };
    for name in ["ls", "make"] {
        for mode in [Default, AcceptEdits, Auto] {
            check(name, mode, true, "ask");
            check(name, mode, false, "allow");
        }
        check(name, DontAsk, true, "deny");
        check(name, BypassPermissions, true, "ask");
        check(name, BypassPermissions, false, "allow");
    }
    check("ls", Plan, true, "ask");
    // What settings run outside asks for nothing more.
    for mode in [Default, BypassPermissions] {
        check("docker", mode, true, "allow");
    }
}
