//! What forbids holds, whatever else is said.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_config::EffectiveSettings;

use crate::machine::Machine;

const FILES: [&str; 10] = [
    "home/.claude/settings.json",
    "home/.windlass/settings.json",
    "work/app/.claude/settings.json",
    "work/app/.windlass/settings.json",
    "work/app/.claude/settings.local.json",
    "work/app/.windlass/settings.local.json",
    "etc/claude-code/managed-settings.json",
    "etc/claude-code/managed-settings.d/1.json",
    "etc/windlass/managed-settings.json",
    "etc/windlass/managed-settings.d/1.json",
];

/// Any settings around a few rules, with everything that could take rules away.
fn content() -> impl Strategy<Value = Value> {
    let rules = || prop::collection::vec(prop::sample::select(vec!["A", "B(/x)", "C", "D"]), 0..4);
    (rules(), rules(), rules(), any::<[bool; 4]>(), prop::option::of(any::<bool>())).prop_map(
        |(deny, ask, allow, switches, mode)| {
            let mut content = json!({
                "permissions": { "deny": deny, "ask": ask, "allow": allow },
                "allowManagedPermissionRulesOnly": switches[0],
                "disableAllHooks": switches[1],
                "sandbox": {"enabled": switches[2], "filesystem": {"denyRead": deny, "allowRead": ["/"]}},
                "availableModels": allow,
            });
            if let Some(bypass) = mode {
                content["permissions"]["defaultMode"] =
                    if bypass { "bypassPermissions" } else { "acceptEdits" }.into();
            }
            if switches[3] {
                content["unknown"] = json!({ "permissions": { "deny": [] } });
            }
            content
        },
    )
}

/// Everything that forbids or asks, with what it means.
fn forbidden(effective: &EffectiveSettings) -> BTreeSet<String> {
    let permissions = &effective.settings.permissions;
    let rules = [("deny", &permissions.deny), ("ask", &permissions.ask)];
    let rules = rules.into_iter().flat_map(|(kind, list)| {
        list.iter().map(move |rule| format!("{kind} {} {}", rule.value, rule.origin.anchor.display()))
    });
    let paths = effective.settings.sandbox.paths("sandbox.filesystem.denyRead").into_iter();
    rules.chain(paths.map(|path| path.display().to_string())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn another_file_never_takes_a_rule_away_that_forbids(
        files in prop::collection::btree_map(0..FILES.len(), content(), 0..6),
        added in (0..FILES.len(), content()),
        trusted in any::<bool>(),
    ) {
        let machine = Machine::new(&[]);
        for (&file, content) in &files {
            machine.write(FILES[file], &content.to_string());
        }
        prop_assume!(!files.contains_key(&added.0));
        let before = machine.read(None).effective(trusted);
        machine.write(FILES[added.0], &added.1.to_string());
        let after = machine.read(None).effective(trusted);
        prop_assert!(before.fatal().is_none() && after.fatal().is_none());
        let lost: Vec<_> = forbidden(&before).difference(&forbidden(&after)).cloned().collect();
        prop_assert!(lost.is_empty(), "{:?}", lost);
        // And trust adds nothing to what is forbidden, nor takes anything away.
        prop_assert_eq!(forbidden(&after), forbidden(&machine.read(None).effective(!trusted)));
    }
}
