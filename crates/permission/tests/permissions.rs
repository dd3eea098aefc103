//! The permission check is a pure function, and this is what holds for whatever it is given.

#![expect(clippy::print_stdout, reason = "a seed that is not printed cannot be tried again")]

use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use windlass_permission::{
    Anchors, Answerer, Behaviour, PermissionCase, PermissionMode, Permissions, RuleSource, Rules,
    decide_call, missing_rules,
};
use windlass_protocol::{
    CallFacts, CallKind, CommandEffect, CommandFacts, CommandWord, FoundCommand, HookPermission, NamedPath,
    PathFact, PathNaming, PlainCommand, Ruling, Verdict,
};

const ROOT: &str = "/srv/app";

/// The same cases each time, unless `PROPTEST_RNG_SEED` names a seed; it is printed, so that a failure can be repeated.
fn seeded(cases: u32) -> ProptestConfig {
    let config = ProptestConfig::with_cases(cases);
    let rng_seed = if config.rng_seed == RngSeed::Random { RngSeed::Fixed(7) } else { config.rng_seed };
    println!("seed {rng_seed}");
    ProptestConfig { failure_persistence: None, rng_seed, ..config }
}

fn anchors() -> Anchors {
    Anchors {
        settings: ROOT.into(),
        start: ROOT.into(),
        roots: vec![ROOT.into()],
        home: Some("/home/me".into()),
    }
}

/// A rule in a list.
type Listed = (Behaviour, String);

fn one_of(choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(choices).prop_map(str::to_owned)
}

const WORDS: &[&str] =
    &["rm", "ls", "git", "push", "-x", "a b", "*", "it's", "", "$", "a\\b", ":*", "/bin/rm", "x=y"];
const PATHS: &[&str] = &[
    "/srv/app/a",
    "/srv/app/.env",
    "/srv/app/s/k",
    "/srv/app/.git/hooks/x",
    "/etc/x",
    "/home/me/.aws/c",
    "/srv/app",
];
const INSIDE: &[&str] = &[
    "rm *",
    "rm",
    "ls",
    "ls:*",
    "git push",
    "git * main",
    "*",
    "* x",
    "-x",
    "rm 'a b'",
    "git \\*",
    "/bin/rm *",
    "x=y *",
];
const PLACES: &[&str] = &[
    "a",
    ".env",
    "**/.env",
    "s/**",
    "//etc/**",
    "~/.aws/**",
    "//srv/app/s/k",
    "*",
    "/a",
    "./s/k",
    "**",
    "/.git/**",
];
const TOOLS: &[&str] = &["Bash", "Edit", "Read", "Write", "Tool", "mcp__s__t", "Monitor"];

fn rule_text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => one_of(TOOLS),
        4 => one_of(INSIDE).prop_map(|inside| format!("Bash({inside})")),
        2 => one_of(PLACES).prop_map(|place| format!("Read({place})")),
        2 => one_of(PLACES).prop_map(|place| format!("Edit({place})")),
        1 => Just("mcp__s".to_owned()),
    ]
}

fn listed() -> impl Strategy<Value = Vec<Listed>> {
    let behaviour = prop::sample::select(vec![Behaviour::Allow, Behaviour::Ask, Behaviour::Deny]);
    prop::collection::vec((behaviour, rule_text()), 0..6)
}

fn path() -> impl Strategy<Value = PathFact> {
    (one_of(PATHS), prop::option::weighted(0.8, one_of(PATHS)), any::<bool>(), any::<bool>()).prop_map(
        |(lexical, other, same, is_directory)| {
            let resolved = if same { Some(lexical.clone()) } else { other };
            PathFact { lexical: lexical.into(), resolved: resolved.map(PathBuf::from), is_directory }
        },
    )
}

fn named() -> impl Strategy<Value = NamedPath> {
    use PathNaming::{Exact, Mentioned, Pattern, Unknown};
    let naming = prop::sample::select(vec![Exact, Exact, Pattern, Unknown, Mentioned]);
    (path(), naming, any::<bool>(), any::<bool>()).prop_map(|(path, naming, is_recursive, is_redirected)| {
        let path = path.into();
        NamedPath { path, naming, is_recursive, is_redirected }
    })
}

fn plain() -> impl Strategy<Value = PlainCommand> {
    let effect =
        prop::sample::select(vec![CommandEffect::Looks, CommandEffect::ChangesFiles, CommandEffect::Unknown]);
    let word = one_of(WORDS).prop_map(|word| CommandWord::from_marked(&word, "$"));
    let words = prop::collection::vec(word, 1..4);
    let paths = || prop::collection::vec(named(), 0..2);
    (words, effect, paths(), paths(), any::<[bool; 4]>()).prop_map(|(words, effect, reads, writes, dice)| {
        PlainCommand {
            text: format!("{words:?}"),
            whole: words.clone(),
            words,
            is_exact_only: dice == [true; 4],
            spelled: (dice == [true, false, true, false]).then_some(2),
            effect,
            reads,
            writes,
            has_network: dice == [false; 4],
        }
    })
}

/// The facts of a line. What one reading lists, the other finds.
fn line(
    commands: Vec<PlainCommand>,
    why: Option<String>,
    unseen: Option<String>,
    has_hidden: bool,
) -> CallFacts {
    let found = commands.iter().map(|command| FoundCommand {
        words: command.words.clone(),
        reads: command.reads.clone(),
        writes: command.writes.clone(),
        removes: vec![],
    });
    let found = found.collect();
    let text: Vec<&str> = commands.iter().map(|command| command.text.as_str()).collect();
    let line = text.join(" && ").into();
    let plain = why.map_or(Ok(commands), Err);
    let facts = CommandFacts { line, plain, found, unseen, has_hidden };
    CallFacts { commands: Some(facts.into()), ..CallFacts::new(CallKind::Execute) }
}

/// A call: the tool and its facts.
type Call = (String, CallFacts);

fn lines() -> impl Strategy<Value = Call> {
    let reason = |weight| prop::option::weighted(weight, Just("it is odd".to_owned()));
    (prop::collection::vec(plain(), 1..4), reason(0.2), reason(0.1), any::<[bool; 3]>()).prop_map(
        |(commands, why, unseen, dice)| ("Bash".to_owned(), line(commands, why, unseen, dice == [true; 3])),
    )
}

fn calls() -> impl Strategy<Value = Call> {
    let kinds = [CallKind::Read, CallKind::Edit, CallKind::Execute, CallKind::Session, CallKind::Fetch];
    let others = (one_of(TOOLS), prop::sample::select(kinds.to_vec()), prop::collection::vec(path(), 0..3))
        .prop_map(|(tool, kind, paths)| (tool, CallFacts { paths, ..CallFacts::new(kind) }));
    prop_oneof![3 => lines(), 2 => others]
}

fn modes() -> impl Strategy<Value = PermissionMode> {
    let names = ["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"];
    prop::sample::select(names.to_vec()).prop_map(|name| PermissionMode::from_name(name).unwrap_or_default())
}

/// Who may do what. A text that is no rule is left out.
fn permissions(mode: PermissionMode, listed: &[Listed]) -> Permissions {
    let mut rules = Rules::default();
    for (behaviour, text) in listed {
        let _ = rules.add(*behaviour, text, RuleSource::session(), &anchors());
    }
    Permissions { mode, rules, asking: Answerer::Person, anchors: anchors(), ..Permissions::default() }
}

fn decide((tool, facts): &Call, permissions: &Permissions) -> Ruling {
    decide_call(&PermissionCase::new(tool, facts, permissions, &[ROOT.into()]))
}

fn strictness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Classify => 1,
        Verdict::Ask => 2,
        Verdict::Deny => 3,
    }
}

proptest! {
    #![proptest_config(seeded(4_000))]

    #[test]
    fn one_restriction_more_never_widens(call in calls(), mode in modes(), rules in listed(), rule in rule_text()) {
        let before = decide(&call, &permissions(mode, &rules));
        for behaviour in [Behaviour::Deny, Behaviour::Ask] {
            let more = [&rules[..], &[(behaviour, rule.clone())]].concat();
            let after = decide(&call, &permissions(mode, &more));
            prop_assert!(strictness(after.verdict) >= strictness(before.verdict), "{:?} {:?}", before, after);
        }
    }

    #[test]
    fn one_permission_more_lifts_no_restriction(call in calls(), mode in modes(), rules in listed(), rule in rule_text()) {
        let before = decide(&call, &permissions(mode, &rules));
        if before.rule.is_some() && before.verdict != Verdict::Allow {
            let more = [&rules[..], &[(Behaviour::Allow, rule)]].concat();
            prop_assert_eq!(decide(&call, &permissions(mode, &more)), before);
        }
    }

    #[test]
    fn the_order_of_rules_makes_no_difference(call in calls(), mode in modes(), rules in listed()) {
        let turned: Vec<Listed> = rules.iter().rev().cloned().collect();
        let (one, other) = (decide(&call, &permissions(mode, &rules)), decide(&call, &permissions(mode, &turned)));
        prop_assert_eq!(one.verdict, other.verdict);
    }

    #[test]
    fn what_a_rule_denies_is_denied_in_every_mode(call in calls(), rules in listed(), other in modes()) {
        let before = decide(&call, &permissions(PermissionMode::Default, &rules));
        if before.verdict == Verdict::Deny {
            prop_assert_eq!(decide(&call, &permissions(other, &rules)).verdict, Verdict::Deny);
        }
    }

    #[test]
    fn a_line_is_allowed_only_if_each_command_alone_is(call in lines(), mode in modes(), rules in listed()) {
        let permissions = permissions(mode, &rules);
        let (_, CallFacts { commands: Some(commands), .. }) = &call else { return Ok(()) };
        let Ok(list) = &commands.plain else { return Ok(()) };
        let unseen = commands.unseen.clone();
        if decide(&call, &permissions).verdict == Verdict::Allow {
            for command in list {
                let alone = ("Bash".to_owned(), line(vec![command.clone()], None, unseen.clone(), commands.has_hidden));
                prop_assert_eq!(decide(&alone, &permissions).verdict, Verdict::Allow, "{:?}", command);
            }
        }
    }

    #[test]
    fn nothing_runs_unasked_without_a_rule(call in calls()) {
        let ruling = decide(&call, &permissions(PermissionMode::Default, &[]));
        let looks = |command: &PlainCommand| command.effect == CommandEffect::Looks && !command.has_network;
        let harmless = match &call.1.commands {
            Some(commands) => commands.plain.as_ref().is_ok_and(|list| list.iter().all(looks)),
            None => matches!(call.1.kind, CallKind::Read | CallKind::Session),
        };
        prop_assert!(ruling.verdict != Verdict::Allow || harmless, "{:?}", ruling);
    }

    #[test]
    fn the_rules_offered_make_the_same_call_pass(call in calls(), mode in modes(), rules in listed()) {
        let (tool, facts) = &call;
        let before = permissions(mode, &rules);
        if decide(&call, &before).verdict != Verdict::Ask { return Ok(()) }
        let offered = missing_rules(&PermissionCase::new(tool, facts, &before, &[ROOT.into()]));
        prop_assert!(offered.is_empty() || !facts.commands.as_ref().is_some_and(|commands| commands.has_hidden));
        if !offered.is_empty() {
            let offered = offered.into_iter().map(|rule| (Behaviour::Allow, rule));
            let more: Vec<Listed> = rules.iter().cloned().chain(offered).collect();
            prop_assert_eq!(decide(&call, &permissions(mode, &more)).verdict, Verdict::Allow, "{:?}", more);
        }
    }

    #[test]
    fn a_hook_that_allows_lifts_nothing_that_stands_against_a_call(call in calls(), mode in modes(), rules in listed()) {
        let (tool, facts) = &call;
        let permissions = permissions(mode, &rules);
        let without = decide(&call, &permissions);
        let roots = [ROOT.into()];
        let with = |hook: &HookPermission| decide_call(&PermissionCase { hook: Some(hook), ..PermissionCase::new(tool, facts, &permissions, &roots) });
        if without.rule.is_some() && without.verdict != Verdict::Allow {
            prop_assert_eq!(with(&HookPermission::Allow).verdict, without.verdict);
        }
        for hook in [HookPermission::Ask("sure?".into()), HookPermission::Deny("no".into())] {
            prop_assert!(strictness(with(&hook).verdict) >= strictness(without.verdict).min(2), "{:?}", hook);
        }
    }
}
