//! The keys themselves, by topic.

use super::Allowed::{ForeignOnly, Managed, NotForeign, OutsideRepositories};
use super::Kind::{Any, Choice, Fields, Group, List, Map, Object, Share, Switch, Text, Whole};
use super::Merging::{ManagedReplaces, Strict};
use super::{Key, Merging, TEXTS};

const MODES: &[&str] = &["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"];
const DISABLE: &[&str] = &["disable"];
const CREDENTIAL: &[&str] = &["deny", "mask"];
const PORT: super::Kind = Whole(1, 65_535);

/// Every key that is known, in the order of the documentation.
pub(crate) static KEYS: &[Key] = &[
    Key::new("$schema", Text, "The schema for editors; `docs/settings.schema.json`."),
    // Models.
    Key::new("model", Text, "The model, unless `--model` or `ANTHROPIC_MODEL` names one.").waits(),
    Key::new("availableModels", TEXTS, "The only models that may be chosen: ids, or names of families.")
        .or("all")
        .merged(ManagedReplaces),
    Key::new("fallbackModel", TEXTS, "The models that take over when the model is overloaded, in order.")
        .merged(Merging::Whole)
        .waits(),
    Key::idle("modelOverrides", Map(&Text), "What the provider calls a model.").waits(),
    Key::new(
        "effortLevel",
        Choice(&["low", "medium", "high", "xhigh", "max"]),
        "How hard the model tries, unless `--effort` or `CLAUDE_CODE_EFFORT_LEVEL` says it.",
    )
    .waits(),
    Key::idle(
        "maxEffortLevel",
        Choice(&["low", "medium", "high", "xhigh", "max"]),
        "The most effort that may be chosen.",
    ),
    Key::new(
        "alwaysThinkingEnabled",
        Switch,
        "`false` turns thinking off, unless a flag or `MAX_THINKING_TOKENS` says more.",
    )
    .waits(),
    Key::idle("showThinkingSummaries", Switch, "Whether summaries of thinking are shown."),
    Key::idle("language", Text, "The language of answers."),
    Key::idle("outputStyle", Text, "How answers are written."),
    Key::new(
        "env",
        Map(&Text),
        "Variables for the run and its commands; they win over the shell's. `\"\"` takes one away.",
    )
    .waits(),
    // Permissions.
    Key::new("permissions", Group, "Who may do what.").forbids(),
    Key::new("permissions.allow", TEXTS, "Rules for what runs unasked.").waits().anchored(),
    Key::new("permissions.ask", TEXTS, "Rules for what is always asked about.").anchored().forbids(),
    Key::new("permissions.deny", TEXTS, "Rules for what never runs.").anchored().forbids(),
    Key::new("permissions.additionalDirectories", TEXTS, "Working directories beside the project's.")
        .waits()
        .anchored(),
    Key::new(
        "permissions.defaultMode",
        Choice(MODES),
        "The mode at the start, unless `--permission-mode` says it.",
    )
    .or("`default`")
    .waits(),
    Key::new(
        "permissions.disableBypassPermissionsMode",
        Choice(DISABLE),
        "Nobody can choose `bypassPermissions`.",
    )
    .forbids(),
    Key::new("permissions.disableAutoMode", Choice(DISABLE), "Nobody can choose `auto`.").forbids(),
    Key::new(
        "allowManagedPermissionRulesOnly",
        Switch,
        "Only the administrator's rules allow anything. Rules of others still forbid and ask.",
    )
    .only(Managed)
    .forbids(),
    Key::idle("skipDangerousModePermissionPrompt", Switch, "`bypassPermissions` starts without a warning.")
        .only(NotForeign),
    Key::new("disableAutoMode", Choice(DISABLE), "Nobody can choose `auto`.").forbids(),
    Key::idle("useAutoModeDuringPlan", Switch, "Whether commands may be judged by a model while planning.")
        .merged(Strict(false)),
    Key::new("autoMode", Group, "What the model that judges commands is told.").only(OutsideRepositories),
    Key::new(
        "autoMode.environment",
        TEXTS,
        "What it should know. `$defaults` stands for the built-in list, here and below.",
    ),
    Key::new("autoMode.allow", TEXTS, "What it may let pass."),
    Key::new("autoMode.soft_deny", TEXTS, "What it should stop unless the user asked for it."),
    Key::new("autoMode.hard_deny", TEXTS, "What it must stop."),
    Key::idle("autoMode.classifyAllShell", Switch, "It judges every command, also those that a rule allows."),
    // Hooks.
    Key::new(
        "hooks",
        Map(&List(&Object)),
        "Programs that are asked at fixed points: for each event a list of groups.",
    )
    .merged(Merging::AddUp)
    .waits(),
    Key::new(
        "disableAllHooks",
        Switch,
        "No hook runs. Only the administrator can turn off the administrator's.",
    )
    .waits(),
    Key::new("allowManagedHooksOnly", Switch, "Only the administrator's hooks run.").only(Managed).forbids(),
    Key::new("allowedHttpHookUrls", TEXTS, "Addresses that hooks may call; `*` stands for anything.")
        .or("all")
        .waits(),
    Key::new("httpHookAllowedEnvVars", TEXTS, "Variables that hooks may put into headers.")
        .or("all that the hook lists")
        .waits(),
    // Sandbox.
    Key::new("sandbox", Group, "What commands can reach.").forbids(),
    Key::new("sandbox.enabled", Switch, "Commands run in a sandbox.")
        .or("false")
        .only(ForeignOnly(true))
        .forbids(),
    Key::new(
        "sandbox.failIfUnavailable",
        Switch,
        "Nothing starts where the sandbox is on and cannot be made; `false` lets commands run without it.",
    )
    .or("true")
    .only(ForeignOnly(true))
    .forbids(),
    Key::new("sandbox.hooks", Switch, "Hooks that are programs run in the sandbox too.")
        .or("false")
        .only(ForeignOnly(true))
        .forbids(),
    Key::new("sandbox.autoAllowBashIfSandboxed", Switch, "Commands in the sandbox run unasked.")
        .or("true")
        .only(ForeignOnly(false)),
    Key::new("sandbox.excludedCommands", TEXTS, "Commands that run outside of the sandbox.").only(NotForeign),
    Key::new("sandbox.allowUnsandboxedCommands", Switch, "The model may ask to leave the sandbox.")
        .or("true")
        .only(ForeignOnly(false)),
    Key::new("sandbox.filesystem", Group, "Files that commands can reach.").forbids(),
    Key::new("sandbox.filesystem.allowWrite", TEXTS, "Can be written.").anchored().only(NotForeign),
    Key::new("sandbox.filesystem.denyWrite", TEXTS, "Cannot be written.").anchored().forbids(),
    Key::new("sandbox.filesystem.denyRead", TEXTS, "Cannot be read.").anchored().forbids(),
    Key::new("sandbox.filesystem.allowRead", TEXTS, "Can be read inside of what cannot.")
        .anchored()
        .only(NotForeign),
    Key::new("sandbox.filesystem.disabled", Switch, "Files are not confined.")
        .or("false")
        .only(OutsideRepositories),
    Key::new(
        "sandbox.filesystem.allowManagedReadPathsOnly",
        Switch,
        "Of `allowRead` only the administrator's list counts.",
    )
    .only(Managed)
    .forbids(),
    Key::new("sandbox.network", Group, "Hosts that commands can reach.").forbids(),
    Key::new("sandbox.network.allowedDomains", TEXTS, "Hosts that can be reached.").only(NotForeign),
    Key::new("sandbox.network.deniedDomains", TEXTS, "Hosts that cannot be reached, whatever else is said.")
        .forbids(),
    Key::new("sandbox.network.strictAllowlist", Switch, "Other hosts are refused and not asked about.")
        .or("false")
        .only(OutsideRepositories),
    Key::new(
        "sandbox.network.allowManagedDomainsOnly",
        Switch,
        "Of `allowedDomains` only the administrator's list counts.",
    )
    .only(Managed)
    .forbids(),
    Key::idle("sandbox.network.httpProxyPort", PORT, "A proxy of your own.").only(OutsideRepositories),
    Key::idle("sandbox.network.socksProxyPort", PORT, "A proxy of your own.").only(OutsideRepositories),
    Key::idle("sandbox.network.tlsTerminate", Any, "Whether the proxy looks into TLS.")
        .only(OutsideRepositories),
    Key::idle("sandbox.network.allowUnixSockets", TEXTS, "Sockets that can be reached.").only(NotForeign),
    Key::idle("sandbox.network.allowAllUnixSockets", Switch, "Every socket can be reached.").only(NotForeign),
    Key::idle("sandbox.network.allowLocalBinding", Switch, "Commands may listen on local ports.")
        .only(NotForeign),
    Key::idle("sandbox.network.allowMachLookup", TEXTS, "Services that can be reached.").only(NotForeign),
    Key::new("sandbox.credentials", Group, "Secrets that commands do not see.").forbids(),
    Key::new(
        "sandbox.credentials.files",
        List(&Fields(&[("path", Text, true), ("mode", Choice(CREDENTIAL), true)])),
        "Files that are hidden. `mask` is not supported and hides too.",
    )
    .anchored()
    .forbids(),
    Key::new(
        "sandbox.credentials.envVars",
        List(&Fields(&[("name", Text, true), ("mode", Choice(CREDENTIAL), true)])),
        "Variables that are hidden. `mask` is not supported and hides too.",
    )
    .forbids(),
    Key::idle("sandbox.ignoreViolations", Map(&TEXTS), "What is not told when it is refused.")
        .only(NotForeign),
    Key::idle("sandbox.enableWeakerNestedSandbox", Switch, "A weaker sandbox inside of containers.")
        .only(OutsideRepositories),
    Key::idle("sandbox.enableWeakerNetworkIsolation", Switch, "A weaker sandbox for the network.")
        .only(OutsideRepositories),
    Key::idle("sandbox.allowAppleEvents", Switch, "Commands may steer other programs.")
        .only(OutsideRepositories),
    Key::idle("sandbox.ripgrep", Object, "The search program of the sandbox.").only(OutsideRepositories),
    Key::new("sandbox.bwrapPath", Text, "The program that makes the sandbox.").only(OutsideRepositories),
    Key::idle("sandbox.socatPath", Text, "The program that bridges the network.").only(OutsideRepositories),
    // Context, files, commands.
    Key::new("autoCompactEnabled", Switch, "Compacts when the context passes its threshold.")
        .or("true")
        .waits(),
    Key::new("autoCompactWindow", Whole(1, u64::MAX), "The window that thresholds follow from, in tokens.")
        .or("the model's window")
        .waits(),
    Key::new(
        "claudeMdExcludes",
        TEXTS,
        "Patterns of memory files that are not read; the administrator's are always read.",
    )
    .waits(),
    Key::idle("claudeMd", Text, "Memory for everybody.").only(Managed),
    Key::idle("autoMemoryEnabled", Switch, "Whether sessions remember things on their own."),
    Key::idle("autoMemoryDirectory", Text, "Where they keep them.").only(OutsideRepositories),
    Key::new("fileCheckpointingEnabled", Switch, "Keeps the former content of files that calls may change.")
        .or("true"),
    Key::idle("cleanupPeriodDays", Whole(1, u64::MAX), "After how many days old sessions go."),
    Key::idle("plansDirectory", Text, "Where plans are kept.").waits(),
    Key::idle("defaultShell", Choice(&["bash", "powershell"]), "The shell of lines that begin with `!`."),
    Key::new(
        "bashOutputMaxChars",
        Whole(1, u64::MAX),
        "How much output of a command a result holds; at least 4000, at most 128000.",
    )
    .or("30000"),
    Key::idle("bashEditDiffEnabled", Switch, "Shows what a command changed."),
    Key::idle("processWrapper", Any, "A program that starts commands.").only(OutsideRepositories),
    Key::idle("worktree", Group, "How work trees are made."),
    Key::idle("worktree.baseRef", Choice(&["fresh", "head"]), "What they begin with."),
    Key::idle("worktree.symlinkDirectories", TEXTS, "Directories that are linked into them.").waits(),
    Key::idle("worktree.sparsePaths", TEXTS, "Paths that are checked out."),
    Key::idle("worktree.bgIsolation", Any, "Whether background work has its own."),
    // Credentials.
    Key::idle("apiKeyHelper", Text, "A program that prints the key.").only(OutsideRepositories),
    Key::idle("awsAuthRefresh", Text, "A program that renews a login.").only(OutsideRepositories),
    Key::idle("awsCredentialExport", Text, "A program that prints credentials.").only(OutsideRepositories),
    Key::idle("gcpAuthRefresh", Text, "A program that renews a login.").only(OutsideRepositories),
    Key::idle("otelHeadersHelper", Text, "A program that prints headers.").only(OutsideRepositories),
    Key::idle("policyHelper", Any, "A program that prints managed settings.").only(Managed),
    // Agents, servers, plugins, skills.
    Key::idle("agent", Text, "The agent that the session runs as.").waits(),
    Key::idle("enableAllProjectMcpServers", Switch, "Starts every server of `.mcp.json`.").waits(),
    Key::idle("enabledMcpjsonServers", TEXTS, "Servers of `.mcp.json` that are started.").waits(),
    Key::idle("disabledMcpjsonServers", TEXTS, "Servers of `.mcp.json` that are not started."),
    Key::idle("allowedMcpServers", List(&Object), "The only servers that may be started.").waits(),
    Key::idle("deniedMcpServers", List(&Object), "Servers that are never started."),
    Key::idle("allowManagedMcpServersOnly", Switch, "Only the administrator's list of servers counts.")
        .only(Managed),
    Key::idle("enabledPlugins", Map(&Any), "Plugins that are loaded.").waits(),
    Key::idle("extraKnownMarketplaces", Map(&Object), "Where plugins come from.").waits(),
    Key::idle("pluginConfigs", Map(&Any), "What plugins are told.").only(OutsideRepositories),
    Key::idle("strictKnownMarketplaces", Any, "The only places plugins may come from.").only(Managed),
    Key::idle("strictPluginOnlyCustomization", Any, "Only plugins add anything.").only(Managed),
    Key::idle("disableSideloadFlags", Any, "Flags that load plugins and servers are refused.").only(Managed),
    Key::idle("requiredMinimumVersion", Text, "Older versions do not start.").only(Managed),
    Key::idle(
        "skillOverrides",
        Map(&Choice(&["on", "name-only", "user-invocable-only", "off"])),
        "Which skills are offered.",
    ),
    Key::idle("disableBundledSkills", Switch, "Offers no built-in skills."),
    Key::idle("disableSkillShellExecution", Switch, "Skills run no commands."),
    Key::idle(
        "skillListingBudgetFraction",
        Share(0.0, 1.0),
        "How much of the window the list of skills takes.",
    ),
    Key::idle("skillListingMaxDescChars", Whole(1, u64::MAX), "How much of a skill's description is listed."),
    Key::idle("disableClaudeAiConnectors", Switch, "Offers no connectors of an account.")
        .merged(Strict(true)),
    Key::idle("syncClaudeAiSkills", Switch, "Takes over skills of an account.").merged(Strict(false)),
    Key::idle("isolatePeerMachines", Switch, "Keeps machines of an account apart.").merged(Strict(true)),
    Key::idle("remoteControlAtStartup", Switch, "Lets other devices steer the session.")
        .merged(Strict(false)),
    Key::idle("crossSessionInbound", Any, "What other sessions may send."),
    // Git.
    Key::idle("attribution", Group, "What commits and pull requests say about their author."),
    Key::idle("attribution.commit", Text, "In commits."),
    Key::idle("attribution.pr", Text, "In pull requests."),
    Key::idle("attribution.sessionUrl", Any, "Whether the session is named."),
    Key::idle("includeCoAuthoredBy", Switch, "An old name for `attribution`."),
    Key::idle("includeGitInstructions", Switch, "Tells the model how to commit."),
    Key::idle("prUrlTemplate", Text, "How addresses of pull requests look."),
    // Screens.
    Key::idle("statusLine", Object, "A program that prints the status line.").waits(),
    Key::idle("subagentStatusLine", Object, "The same for agents.").waits(),
    Key::idle("fileSuggestion", Object, "A program that suggests files.").waits(),
    Key::idle("footerLinksRegexes", Any, "Links below the input.").only(OutsideRepositories),
    Key::idle("spellcheck", Any, "Marks misspelt words.").only(OutsideRepositories),
    Key::idle("spinnerVerbs", Any, "Words while the model works."),
    Key::idle("spinnerTipsEnabled", Switch, "Tips while the model works."),
    Key::idle("theme", Text, "Colours."),
    Key::idle("tui", Any, "How the screen is drawn."),
    Key::idle("viewMode", Text, "How much is shown."),
    Key::idle("verbose", Switch, "Shows more."),
    Key::idle("editorMode", Text, "Keys of the input."),
    Key::idle("vimInsertModeRemaps", Any, "Keys of the input.").only(OutsideRepositories),
    Key::idle("keybindingFlavor", Text, "Keys of the input."),
    Key::idle("preferredNotifChannel", Text, "How notifications arrive."),
    Key::idle("prefersReducedMotion", Switch, "Nothing moves on the screen."),
    Key::idle("axScreenReader", Switch, "For screen readers."),
    Key::idle("respectGitignore", Switch, "Suggests no ignored files."),
    Key::idle("respondToBashCommands", Switch, "The model sees lines that begin with `!`."),
    Key::idle("showTurnDuration", Switch, "Shows how long turns take."),
    Key::idle("askUserQuestionTimeout", Any, "How long a question waits.").only(OutsideRepositories),
];
