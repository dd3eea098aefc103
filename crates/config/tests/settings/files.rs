//! Which settings files are read, what they say together, and where each value comes from.

use serde_json::json;
use windlass_config::{
    EffectiveSettings, SettingOrigin, SettingSources, SettingsFiles, SettingsLevel, Severity, SourcedValue,
};

use crate::machine::Machine;

/// The rules that forbid, each with its level and line.
fn denied(effective: &EffectiveSettings) -> Vec<String> {
    listed(&effective.settings.permissions.deny)
}

fn listed(rules: &[SourcedValue<String>]) -> Vec<String> {
    rules
        .iter()
        .map(|rule| format!("{} {}:{}", rule.value, rule.origin.level.name(), rule.origin.line))
        .collect()
}

/// Every file there can be, the weakest first.
const FILES: [&str; 13] = [
    "home/.claude/settings.json",
    "home/.windlass/settings.json",
    "work/app/.claude/settings.json",
    "work/app/.windlass/settings.json",
    "work/app/.claude/settings.local.json",
    "work/app/.windlass/settings.local.json",
    "work/.claude/settings.local.json",
    "work/.windlass/settings.local.json",
    "flag.json",
    "etc/claude-code/managed-settings.json",
    "etc/claude-code/managed-settings.d/10-a.json",
    "etc/claude-code/managed-settings.d/20-b.json",
    "etc/windlass/managed-settings.json",
];

#[test]
fn the_stronger_file_wins_and_lists_add_up() {
    let machine = Machine::new(&[]);
    machine.init_git("work");
    for (count, file) in FILES.iter().enumerate() {
        let content = json!({
            "model": file,
            "permissions": { "deny": ["Bash(always)", format!("Bash({count})")] },
            "env": { "SAME": file, format!("V{count}"): "x" },
        });
        machine.write(file, &content.to_string());
        let flag = machine.path("flag.json");
        let effective = machine.read(Some(flag.to_str().unwrap()).filter(|_| count >= 8)).effective(true);
        let fatal: Vec<_> =
            effective.problems.iter().filter(|problem| problem.severity == Severity::Fatal).collect();
        assert!(fatal.is_empty(), "{fatal:?}");
        let settings = effective.settings;
        assert_eq!(settings.stand_ins["ANTHROPIC_MODEL"], *file);
        assert_eq!(settings.env["SAME"].value.reveal(), *file);
        assert_eq!(settings.env.len(), count + 2);
        for seen in 0..=count {
            let rule = format!("Bash({seen})");
            assert!(settings.permissions.deny.iter().any(|deny| deny.value == rule), "{rule} with {file}");
        }
    }
}

#[test]
fn every_value_knows_its_level_file_line_and_anchor() {
    let machine = Machine::new(&[
        ("home/.claude/settings.json", "{\n \"permissions\": {\n  \"deny\": [\n   \"Read(/a)\"]}}"),
        ("home/.windlass/settings.json", "{\"permissions\": {\"deny\": [\"Read(/a)\"]}}"),
        ("work/app/.claude/settings.json", "{\"permissions\": {\"deny\": [\"Read(/a)\",\n\"Read(/a)\"]}}"),
        ("work/.claude/settings.local.json", "\n{\"permissions\": {\"deny\": [\"Read(/a)\"]}}"),
        ("elsewhere/flag.json", "{\"permissions\": {\"deny\": [\"Read(/a)\"]}}"),
        ("etc/claude-code/managed-settings.json", "{\"permissions\": {\"deny\": [\"Read(/b)\"]}}"),
    ]);
    machine.init_git("work");
    let flag = machine.path("elsewhere/flag.json");
    let effective = machine.read(Some(flag.to_str().unwrap())).effective(false);
    let seen: Vec<_> = effective
        .settings
        .permissions
        .deny
        .into_iter()
        .map(|rule| {
            let SettingOrigin { level, file, line, anchor, .. } = rule.origin;
            (rule.value, level, machine.relative(&file.unwrap()), line, machine.relative(&anchor))
        })
        .collect();
    let row = |text: &str, level, file: &str, line, anchor: &str| {
        (text.to_owned(), level, file.to_owned(), line, anchor.to_owned())
    };
    assert_eq!(
        seen,
        [
            row("Read(/a)", SettingsLevel::User, "home/.claude/settings.json", 4, "home/.claude"),
            row("Read(/a)", SettingsLevel::User, "home/.windlass/settings.json", 1, "home/.windlass"),
            row("Read(/a)", SettingsLevel::Project, "work/app/.claude/settings.json", 1, "work/app"),
            row("Read(/a)", SettingsLevel::Flags, "elsewhere/flag.json", 1, "elsewhere"),
            row("Read(/b)", SettingsLevel::Managed, "etc/claude-code/managed-settings.json", 1, "work/app"),
        ]
    );
}

/// Nobody who gives a second one means to take the first back.
#[test]
fn settings_that_are_given_several_times_all_hold() {
    let machine = Machine::new(&[]);
    let flags = [
        r#"{"model": "a", "permissions": {"deny": ["Bash(a)"], "ask": ["Bash(b)"]}}"#,
        r#"{"model": "b", "permissions": {"deny": ["Bash(c)"], "ask": []}}"#,
    ];
    let files = SettingsFiles::read(machine.places(), SettingSources::default(), &flags);
    let settings = files.effective(false).settings;
    let texts =
        |rules: &[SourcedValue<String>]| rules.iter().map(|rule| rule.value.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&settings.permissions.deny), ["Bash(a)", "Bash(c)"]);
    assert_eq!(texts(&settings.permissions.ask), ["Bash(b)"]);
    assert_eq!(settings.stand_ins["ANTHROPIC_MODEL"], "b");
}

#[test]
fn settings_on_the_command_line_stand_at_the_start_directory() {
    let machine = Machine::new(&[]);
    let effective = machine.read(Some(" {\"permissions\":{\"deny\":[\"Bash\"]}}")).effective(false);
    let rule = &effective.settings.permissions.deny[0];
    assert_eq!((rule.origin.level, &rule.origin.file, rule.origin.line), (SettingsLevel::Flags, &None, 1));
    assert_eq!(*rule.origin.anchor, *machine.path("work/app"));
    let missing = machine.read(Some("gone.json")).effective(false);
    assert_eq!(
        missing.fatal().unwrap().to_string(),
        format!(
            "{}: it does not exist. Give --settings the path of a file that exists, or JSON in braces.",
            machine.path("work/app/gone.json").display()
        )
    );
    let broken = machine.read(Some("{\"permissions\":")).effective(false);
    assert_eq!(
        broken.fatal().unwrap().to_string(),
        "--settings:1:16: the file ends; expected a value. Close all brackets."
    );
}

#[test]
fn sources_limit_what_is_read_and_managed_settings_always_are() {
    let machine = Machine::new(&[
        ("home/.claude/settings.json", r#"{"permissions":{"deny":["Bash(user)"]}}"#),
        ("work/app/.claude/settings.json", r#"{"permissions":{"deny":["Bash(project)"]}}"#),
        ("work/app/.claude/settings.local.json", r#"{"permissions":{"deny":["Bash(local)"]}}"#),
        ("etc/claude-code/managed-settings.json", r#"{"permissions":{"deny":["Bash(managed)"]}}"#),
    ]);
    let check = |sources: &str, expected: &[&str]| {
        let sources = SettingSources::parse(sources).unwrap();
        assert!(sources.stated);
        let effective = machine.read_from(sources, None).effective(true);
        let seen: Vec<_> =
            effective.settings.permissions.deny.iter().map(|rule| rule.origin.level.name()).collect();
        assert_eq!(seen, expected);
    };
    check("", &["managed"]);
    check("user", &["user", "managed"]);
    check("project, local", &["project", "local", "managed"]);
    check("local,user,project", &["user", "project", "local", "managed"]);
    assert_eq!(
        SettingSources::parse("user,managed").unwrap_err().to_string(),
        "--setting-sources managed is not understood: give user, project and local, separated by commas."
    );
}

#[test]
fn a_project_is_read_in_the_start_directory_alone_and_home_is_no_project() {
    let machine = Machine::new(&[
        ("work/.claude/settings.json", r#"{"permissions":{"deny":["Bash(above)"]}}"#),
        ("home/.claude/settings.json", r#"{"permissions":{"deny":["Bash(home)"],"allow":["Read"]}}"#),
    ]);
    machine.init_git("work");
    assert_eq!(denied(&machine.read(None).effective(true)), ["Bash(home) user:1"]);
    let at_home = machine.started_in("home").read(None);
    assert!(at_home.parts().list.is_empty());
    let effective = at_home.effective(false);
    assert_eq!(denied(&effective), ["Bash(home) user:1"]);
    assert_eq!(listed(&effective.settings.permissions.allow), ["Read user:1"]);
}

#[test]
fn merging_has_its_exceptions() {
    let check = |weak: &str, strong: &str, managed: &str, expected: serde_json::Value| {
        let machine = Machine::new(&[
            ("home/.claude/settings.json", weak),
            ("work/app/.claude/settings.local.json", strong),
            ("etc/claude-code/managed-settings.json", managed),
        ]);
        machine.init_git("work");
        assert_eq!(machine.merged(), expected, "{weak} {strong} {managed}");
    };
    // Taken whole.
    check(
        r#"{"fallbackModel":["a","b"]}"#,
        r#"{"fallbackModel":["c"]}"#,
        "{}",
        json!({"fallbackModel":["c"]}),
    );
    // Adds up below, and is replaced by the administrator's.
    check(
        r#"{"availableModels":["a","b"]}"#,
        r#"{"availableModels":["b","c"]}"#,
        "{}",
        json!({"availableModels":["a","b","c"]}),
    );
    check(
        r#"{"availableModels":["a"]}"#,
        r#"{"availableModels":["b"]}"#,
        r#"{"availableModels":["c"]}"#,
        json!({"availableModels":["c"]}),
    );
    check(r#"{"availableModels":["a"]}"#, "{}", r#"{"availableModels":[]}"#, json!({"availableModels":[]}));
    // Entries replace each other by name.
    check(
        r#"{"extraKnownMarketplaces":{"m":{"a":1},"n":{}}}"#,
        r#"{"extraKnownMarketplaces":{"m":{"b":2}}}"#,
        "{}",
        json!({"extraKnownMarketplaces":{"m":{"b":2},"n":{}}}),
    );
    // The stricter value holds, wherever it stands.
    for (key, strict) in [
        ("disableClaudeAiConnectors", true),
        ("isolatePeerMachines", true),
        ("remoteControlAtStartup", false),
        ("useAutoModeDuringPlan", false),
        ("syncClaudeAiSkills", false),
    ] {
        let [strict, loose] = [strict, !strict].map(|value| json!({ key: value }));
        let [strict_text, loose_text] = [&strict, &loose].map(ToString::to_string);
        check(&strict_text, "{}", &loose_text, strict.clone());
        check(&loose_text, &strict_text, &loose_text, strict.clone());
        check(&loose_text, &loose_text, &strict_text, strict.clone());
        check(&loose_text, "{}", "{}", loose.clone());
    }
    // Hooks add up, even equal ones.
    check(
        r#"{"hooks":{"Stop":[{"hooks":[]}]}}"#,
        r#"{"hooks":{"Stop":[{"hooks":[]}],"PreToolUse":[{"matcher":"Bash"}]}}"#,
        r#"{"hooks":{"Stop":[{"hooks":[]}]}}"#,
        json!({"hooks":{"Stop":[{"hooks":[]},{"hooks":[]},{"hooks":[]}],"PreToolUse":[{"matcher":"Bash"}]}}),
    );
    // Objects by name, lists without doubles.
    check(
        r#"{"sandbox":{"enabled":true,"network":{"allowedDomains":["a","b"]}}}"#,
        r#"{"sandbox":{"enabled":false,"network":{"allowedDomains":["b","c"]}}}"#,
        "{}",
        json!({"sandbox":{"enabled":false,"network":{"allowedDomains":["a","b","c"]}}}),
    );
}

#[test]
fn the_administrator_locks_what_others_may_allow() {
    let others = r#"{
        "permissions": {"allow": ["Bash"], "ask": ["Read"], "deny": ["Write"]},
        "hooks": {"Stop": [{"hooks": []}]},
        "sandbox": {
            "network": {"allowedDomains": ["a"], "deniedDomains": ["b"]},
            "filesystem": {"allowRead": ["/a"], "denyRead": ["/b"]}
        }
    }"#;
    let managed = r#"{
        "allowManagedPermissionRulesOnly": true,
        "allowManagedHooksOnly": true,
        "permissions": {"allow": ["Grep"]},
        "hooks": {"Stop": [{"matcher": "m"}]},
        "sandbox": {
            "network": {"allowManagedDomainsOnly": true, "allowedDomains": ["m"]},
            "filesystem": {"allowManagedReadPathsOnly": true}
        }
    }"#;
    let machine = Machine::new(&[
        ("home/.claude/settings.json", others),
        ("etc/claude-code/managed-settings.json", managed),
    ]);
    let effective = machine.read(None).effective(true);
    let settings = &effective.settings;
    let permissions = &settings.permissions;
    assert_eq!(listed(&permissions.allow), ["Grep managed:4"]);
    assert_eq!(listed(&permissions.ask), ["Read user:2"]);
    assert_eq!(listed(&permissions.deny), ["Write user:2"]);
    assert!(
        permissions.managed_only.is_some()
            && settings.sandbox.switch("sandbox.network.allowManagedDomainsOnly") == Some(true)
    );
    assert_eq!(settings.hooks.len(), 1);
    assert_eq!(settings.hooks[0].origin.level, SettingsLevel::Managed);
    assert_eq!(settings.sandbox.texts("sandbox.network.allowedDomains"), ["m"]);
    assert_eq!(settings.sandbox.texts("sandbox.network.deniedDomains"), ["b"]);
    assert!(settings.sandbox.paths("sandbox.filesystem.allowRead").is_empty());
    assert_eq!(settings.sandbox.paths("sandbox.filesystem.denyRead").len(), 1);
    machine.check_problems(
        &effective.problems,
        &[
            "home/.claude/settings.json:2:34: `permissions.allow` is ignored in user settings. \
             The administrator set `allowManagedPermissionRulesOnly`.",
            "home/.claude/settings.json:3:27: `hooks` is ignored in user settings. \
             The administrator set `allowManagedHooksOnly`.",
            "home/.claude/settings.json:6:41: `sandbox.filesystem.allowRead` is ignored in user settings. \
             The administrator set `sandbox.filesystem.allowManagedReadPathsOnly`.",
            "home/.claude/settings.json:5:43: `sandbox.network.allowedDomains` is ignored in user settings. \
             The administrator set `sandbox.network.allowManagedDomainsOnly`.",
        ],
    );
}

#[test]
fn hooks_can_be_turned_off_but_not_those_of_the_administrator() {
    let check = |user: bool, managed: Option<bool>, expected: &[&str]| {
        let hooks = json!({"Stop": [{"hooks": []}]});
        let mut managed_file = json!({ "hooks": hooks });
        if let Some(off) = managed {
            managed_file["disableAllHooks"] = off.into();
        }
        let machine = Machine::new(&[
            ("home/.claude/settings.json", &json!({ "hooks": hooks, "disableAllHooks": user }).to_string()),
            ("etc/claude-code/managed-settings.json", &managed_file.to_string()),
        ]);
        let effective = machine.read(None).effective(true);
        let seen: Vec<_> = effective.settings.hooks.iter().map(|group| group.origin.level.name()).collect();
        assert_eq!(seen, expected);
    };
    check(false, None, &["user", "managed"]);
    check(true, None, &["managed"]);
    check(true, Some(true), &[]);
    check(true, Some(false), &["user", "managed"]);
}

#[test]
fn a_mode_that_was_taken_away_stays_away() {
    let check = |file: &str, bypass: Option<SettingsLevel>, auto: Option<SettingsLevel>| {
        let machine = Machine::new(&[("work/app/.claude/settings.json", file)]);
        let permissions = machine.read(None).effective(false).settings.permissions;
        assert_eq!(permissions.bypass_disabled.map(|origin| origin.level), bypass, "{file}");
        assert_eq!(permissions.auto_disabled.map(|origin| origin.level), auto, "{file}");
    };
    check("{}", None, None);
    check(
        r#"{"permissions":{"disableBypassPermissionsMode":"disable"}}"#,
        Some(SettingsLevel::Project),
        None,
    );
    check(r#"{"permissions":{"disableAutoMode":"disable"}}"#, None, Some(SettingsLevel::Project));
    check(r#"{"disableAutoMode":"disable"}"#, None, Some(SettingsLevel::Project));
}

#[test]
fn a_place_without_an_administrator_has_no_managed_settings() {
    let machine = Machine::new(&[("work/app/managed-settings.json", r#"{"model":"evil"}"#)]);
    let place = windlass_config::ProcessContext { managed: "".into(), ..machine.place() };
    let places = windlass_config::SettingsPlaces::new(&place, &machine.home());
    assert_eq!(places.managed, [std::path::Path::new("/etc/windlass")]);
}
