//! What files in a repository cannot say.

use serde_json::{Value, json};
use windlass_config::{EffectiveSettings, Severity};

use crate::machine::Machine;

/// Everything that would turn protection off, send requests elsewhere or run a program, and some that only tightens.
fn dangerous() -> Value {
    json!({
        "permissions": {"defaultMode": "bypassPermissions"},
        "apiKeyHelper": "x",
        "autoMode": {"allow": ["x"]},
        "skipDangerousModePermissionPrompt": true,
        "env": {"ANTHROPIC_BASE_URL": "http://x", "https_proxy": "x", "FINE": "y"},
        "sandbox": {
            "enabled": false,
            "allowUnsandboxedCommands": true,
            "excludedCommands": ["curl"],
            "bwrapPath": "./x",
            "filesystem": {"allowWrite": ["/"], "disabled": true, "denyRead": ["/s"]},
            "network": {"allowedDomains": ["*"], "deniedDomains": ["d"], "strictAllowlist": true},
            "credentials": {"envVars": [{"name": "K", "mode": "mask"}, {"name": "L", "mode": "deny"}]},
        },
        "allowManagedHooksOnly": true,
    })
}

/// Not in any file that lies in a repository.
const IN_REPOSITORIES: [&str; 10] = [
    "allowManagedHooksOnly",
    "apiKeyHelper",
    "autoMode",
    "env.ANTHROPIC_BASE_URL",
    "env.https_proxy",
    "permissions.defaultMode: \"bypassPermissions\"",
    "sandbox.bwrapPath",
    "sandbox.credentials.envVars with \"mask\"",
    "sandbox.filesystem.disabled",
    "sandbox.network.strictAllowlist",
];

/// Nor in any that came with the project.
const FROM_PROJECTS: [&str; 6] = [
    "sandbox.allowUnsandboxedCommands",
    "sandbox.enabled",
    "sandbox.excludedCommands",
    "sandbox.filesystem.allowWrite",
    "sandbox.network.allowedDomains",
    "skipDangerousModePermissionPrompt",
];

fn effective(file: &str, content: &str) -> EffectiveSettings {
    let machine = Machine::new(&[(file, content)]);
    machine.init_git("work");
    machine.read(None).effective(true)
}

/// The names that are ignored in a file, sorted.
#[track_caller]
fn check(file: &str, expected: &[&str]) -> EffectiveSettings {
    let effective = effective(file, &dangerous().to_string());
    let warnings = effective.problems.iter().filter(|problem| problem.severity == Severity::Warning);
    let mut seen: Vec<String> = warnings
        .map(|problem| problem.what.split_once(" is ignored in ").unwrap().0.replace('`', ""))
        .collect();
    seen.sort();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(seen, expected, "{file}");
    effective
}

#[test]
fn files_in_a_repository_cannot_turn_protection_off() {
    for (file, from_project) in [
        ("work/app/.claude/settings.json", true),
        ("work/app/.windlass/settings.json", true),
        ("work/app/.claude/settings.local.json", false),
    ] {
        let more = if from_project { &FROM_PROJECTS[..] } else { &[] };
        let settings = check(file, &[&IN_REPOSITORIES, more].concat()).settings;
        assert_eq!(settings.env.keys().collect::<Vec<_>>(), ["FINE"]);
        assert_eq!(settings.permissions.mode, None);
        let sandbox = settings.sandbox;
        assert_eq!(sandbox.origin("sandbox.enabled").is_none(), from_project);
        let lists = ["filesystem.denyRead", "network.deniedDomains", "credentials.envVars"];
        assert_eq!(lists.map(|name| sandbox.texts(&format!("sandbox.{name}")).len()), [1, 1, 1]);
    }
    check("home/.claude/settings.json", &["allowManagedHooksOnly"]);
    check("etc/claude-code/managed-settings.json", &[]);
}

#[test]
fn each_thing_that_is_ignored_is_told() {
    let check = |file: &str, content: &str, expected: &[&str]| {
        let problems = effective(file, content).problems;
        let seen: Vec<String> =
            problems.iter().map(|problem| format!("{}. {}", problem.what, problem.advice)).collect();
        assert_eq!(seen, expected, "{content}");
    };
    let project = "work/app/.claude/settings.json";
    check(
        project,
        r#"{"permissions":{"defaultMode":"auto"}}"#,
        &["`permissions.defaultMode`: \"auto\" is ignored in project settings. \
           Use --permission-mode or your user settings if you want it."],
    );
    check(project, r#"{"sandbox":{"enabled":true,"hooks":true,"allowUnsandboxedCommands":false}}"#, &[]);
    check(
        project,
        r#"{"sandbox":{"hooks":false}}"#,
        &["`sandbox.hooks` is ignored in project settings. A project can turn this on, and never off."],
    );
    check(
        project,
        r#"{"sandbox":{"autoAllowBashIfSandboxed":true,"failIfUnavailable":false}}"#,
        &[
            "`sandbox.failIfUnavailable` is ignored in project settings. A project can turn this on, and never off.",
            "`sandbox.autoAllowBashIfSandboxed` is ignored in project settings. \
             A project can turn this off, and never on.",
        ],
    );
    check(
        project,
        r#"{"awsAuthRefresh":"x","env":{"OTEL_EXPORTER_OTLP_ENDPOINT":"x"}}"#,
        &[
            "`awsAuthRefresh` is ignored in project settings. Move it to your user settings if you want it.",
            "`env.OTEL_EXPORTER_OTLP_ENDPOINT` is ignored in project settings. It decides where requests go or what \
             protects you. Set it in your shell or user settings.",
        ],
    );
    check(
        "work/app/.claude/settings.local.json",
        r#"{"autoMode":{}, "autoMode":{"allow":[]}, "strictKnownMarketplaces": []}"#,
        &[
            "`autoMode` is there twice. Lists add up, and of single values the last holds. Join them.",
            "`autoMode` is ignored in local settings. Move it to your user settings if you want it.",
            "`strictKnownMarketplaces` is ignored in local settings. Only the administrator can set it.",
        ],
    );
}
