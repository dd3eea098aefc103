//! The keys themselves, by topic.

use super::KeyScope::{ForeignOnly, Managed, NotForeign, OutsideRepositories};
use super::MergeRule::{ManagedReplaces, Strict};
use super::ValueType::{Any, Choice, Fields, Group, List, Map, Object, Share, Switch, Text, Whole};
use super::{Key, MergeRule, TEXTS};

const MODES: &[&str] = &["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"];
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const DISABLE: &[&str] = &["disable"];
const CREDENTIAL: &[&str] = &["deny", "mask"];
const PORT: super::ValueType = Whole(1, 65_535);

/// Every key that is known, in the order of the documentation.
pub(crate) static KEYS: &[Key] = &[
    Key::new("$schema", Text, "The JSON schema for editors: `docs/settings.schema.json`."),
    // Models.
    Key::new("model", Text, "The model, unless `--model` or `ANTHROPIC_MODEL` names one.").waits(),
    Key::new("availableModels", TEXTS, "The only models that may be chosen: ids, or names of families.")
        .or("all")
        .merged(ManagedReplaces),
    Key::new("fallbackModel", TEXTS, "The models to try, in order, when the model is overloaded.")
        .merged(MergeRule::Whole)
        .waits(),
    Key::idle("modelOverrides", Map(&Text), "Provider-specific model ids.").waits(),
    Key::new(
        "effortLevel",
        Choice(EFFORTS),
        "The effort level, unless `--effort` or `CLAUDE_CODE_EFFORT_LEVEL` sets it.",
    )
    .waits(),
    Key::idle("maxEffortLevel", Choice(EFFORTS), "The highest effort level allowed."),
    Key::new(
        "alwaysThinkingEnabled",
        Switch,
        "`false` turns thinking off, unless a flag or `MAX_THINKING_TOKENS` turns it on.",
    )
    .waits(),
    Key::idle("showThinkingSummaries", Switch, "Show summaries of thinking."),
    Key::idle("language", Text, "The language of answers."),
    Key::idle("outputStyle", Text, "The output style of answers."),
    Key::new(
        "env",
        Map(&Text),
        "Environment variables for the run and its commands; they override the shell's. `\"\"` unsets one.",
    )
    .waits(),
    // Permissions.
    Key::new("permissions", Group, "Permission rules and modes.").forbids(),
    Key::new("permissions.allow", TEXTS, "Rules for calls that run without asking.").waits().anchored(),
    Key::new("permissions.ask", TEXTS, "Rules for calls that always ask.").anchored().forbids(),
    Key::new("permissions.deny", TEXTS, "Rules for calls that never run.").anchored().forbids(),
    Key::new("permissions.additionalDirectories", TEXTS, "Additional working directories.")
        .waits()
        .anchored(),
    Key::new(
        "permissions.defaultMode",
        Choice(MODES),
        "The permission mode at the start, unless `--permission-mode` sets it.",
    )
    .or("`default`")
    .waits(),
    Key::new(
        "permissions.disableBypassPermissionsMode",
        Choice(DISABLE),
        "`disable` forbids the mode `bypassPermissions`.",
    )
    .forbids(),
    Key::new("permissions.disableAutoMode", Choice(DISABLE), "`disable` forbids the mode `auto`.").forbids(),
    Key::new(
        "allowManagedPermissionRulesOnly",
        Switch,
        "Only managed rules can allow calls. Other rules can still deny and ask.",
    )
    .only(Managed)
    .forbids(),
    Key::idle(
        "skipDangerousModePermissionPrompt",
        Switch,
        "Skip the warning when `bypassPermissions` starts.",
    )
    .only(NotForeign),
    Key::new("disableAutoMode", Choice(DISABLE), "`disable` forbids the mode `auto`.").forbids(),
    Key::idle("useAutoModeDuringPlan", Switch, "Let a model classify commands in plan mode.")
        .merged(Strict(false)),
    Key::new("autoMode", Group, "Instructions for the model that classifies commands in auto mode.")
        .only(OutsideRepositories),
    Key::new(
        "autoMode.environment",
        TEXTS,
        "Facts about the environment. `$defaults` stands for the built-in list, here and below.",
    ),
    Key::new("autoMode.allow", TEXTS, "Actions it may allow."),
    Key::new("autoMode.soft_deny", TEXTS, "Actions it denies unless the user asked for them."),
    Key::new("autoMode.hard_deny", TEXTS, "Actions it always denies."),
    Key::idle("autoMode.classifyAllShell", Switch, "Classify every command, even those that a rule allows."),
    // Hooks.
    Key::new("hooks", Map(&List(&Object)), "Hooks: for each event a list of matcher groups.")
        .merged(MergeRule::AddUp)
        .waits(),
    Key::new("disableAllHooks", Switch, "Run no hooks. Managed hooks run unless this is a managed setting.")
        .waits(),
    Key::new("allowManagedHooksOnly", Switch, "Run managed hooks only.").only(Managed).forbids(),
    Key::new("allowedHttpHookUrls", TEXTS, "URLs that HTTP hooks may call; `*` matches anything.")
        .or("all")
        .waits(),
    Key::new("httpHookAllowedEnvVars", TEXTS, "Environment variables that HTTP hooks may put into headers.")
        .or("all that the hook lists")
        .waits(),
    // Sandbox.
    Key::new("sandbox", Group, "The sandbox for commands.").forbids(),
    Key::new("sandbox.enabled", Switch, "Run commands in a sandbox.")
        .or("false")
        .only(ForeignOnly(true))
        .forbids(),
    Key::new(
        "sandbox.failIfUnavailable",
        Switch,
        "Refuse to start when the sandbox is on and unavailable; `false` runs commands without it.",
    )
    .or("true")
    .only(ForeignOnly(true))
    .forbids(),
    Key::new("sandbox.hooks", Switch, "Run command hooks in the sandbox too.")
        .or("false")
        .only(ForeignOnly(true))
        .forbids(),
    Key::new("sandbox.autoAllowBashIfSandboxed", Switch, "Run sandboxed commands without asking.")
        .or("true")
        .only(ForeignOnly(false)),
    Key::new("sandbox.excludedCommands", TEXTS, "Commands that run outside the sandbox.").only(NotForeign),
    Key::new(
        "sandbox.allowUnsandboxedCommands",
        Switch,
        "Let the model ask to run a command outside the sandbox.",
    )
    .or("true")
    .only(ForeignOnly(false)),
    Key::new("sandbox.filesystem", Group, "File access in the sandbox.").forbids(),
    Key::new("sandbox.filesystem.allowWrite", TEXTS, "Paths that commands can write.")
        .anchored()
        .only(NotForeign),
    Key::new("sandbox.filesystem.denyWrite", TEXTS, "Paths that commands cannot write.").anchored().forbids(),
    Key::new("sandbox.filesystem.denyRead", TEXTS, "Paths that commands cannot read.").anchored().forbids(),
    Key::new("sandbox.filesystem.allowRead", TEXTS, "Paths inside `denyRead` that commands can read.")
        .anchored()
        .only(NotForeign),
    Key::new("sandbox.filesystem.disabled", Switch, "Turn off file restrictions in the sandbox.")
        .or("false")
        .only(OutsideRepositories),
    Key::new(
        "sandbox.filesystem.allowManagedReadPathsOnly",
        Switch,
        "Use only the managed `allowRead` list.",
    )
    .only(Managed)
    .forbids(),
    Key::new("sandbox.network", Group, "Network access in the sandbox.").forbids(),
    Key::new("sandbox.network.allowedDomains", TEXTS, "Hosts that commands can reach.").only(NotForeign),
    Key::new("sandbox.network.deniedDomains", TEXTS, "Hosts that commands can never reach.").forbids(),
    Key::new("sandbox.network.strictAllowlist", Switch, "Deny other hosts without asking.")
        .or("false")
        .only(OutsideRepositories),
    Key::new(
        "sandbox.network.allowManagedDomainsOnly",
        Switch,
        "Use only the managed `allowedDomains` list.",
    )
    .only(Managed)
    .forbids(),
    Key::idle("sandbox.network.httpProxyPort", PORT, "A proxy of your own.").only(OutsideRepositories),
    Key::idle("sandbox.network.socksProxyPort", PORT, "A proxy of your own.").only(OutsideRepositories),
    Key::idle("sandbox.network.tlsTerminate", Any, "Let the proxy decrypt TLS.").only(OutsideRepositories),
    Key::idle("sandbox.network.allowUnixSockets", TEXTS, "Unix sockets that commands can reach.")
        .only(NotForeign),
    Key::idle("sandbox.network.allowAllUnixSockets", Switch, "Let commands reach every Unix socket.")
        .only(NotForeign),
    Key::idle("sandbox.network.allowLocalBinding", Switch, "Let commands listen on local ports.")
        .only(NotForeign),
    Key::idle("sandbox.network.allowMachLookup", TEXTS, "Mach services that commands can reach.")
        .only(NotForeign),
    Key::new("sandbox.credentials", Group, "Credentials hidden from commands.").forbids(),
    Key::new(
        "sandbox.credentials.files",
        List(&Fields(&[("path", Text, true), ("mode", Choice(CREDENTIAL), true)])),
        "Files hidden from commands. `mask` is not supported and hides them too.",
    )
    .anchored()
    .forbids(),
    Key::new(
        "sandbox.credentials.envVars",
        List(&Fields(&[("name", Text, true), ("mode", Choice(CREDENTIAL), true)])),
        "Variables hidden from commands. `mask` is not supported and hides them too.",
    )
    .forbids(),
    Key::idle("sandbox.ignoreViolations", Map(&TEXTS), "Violations that are not reported.").only(NotForeign),
    Key::idle("sandbox.enableWeakerNestedSandbox", Switch, "Use a weaker sandbox inside containers.")
        .only(OutsideRepositories),
    Key::idle("sandbox.enableWeakerNetworkIsolation", Switch, "Use weaker network isolation.")
        .only(OutsideRepositories),
    Key::idle("sandbox.allowAppleEvents", Switch, "Let commands send Apple events.")
        .only(OutsideRepositories),
    Key::idle("sandbox.ripgrep", Object, "The search program of the sandbox.").only(OutsideRepositories),
    Key::new("sandbox.bwrapPath", Text, "The path of `bwrap`.").only(OutsideRepositories),
    Key::idle("sandbox.socatPath", Text, "The path of `socat`.").only(OutsideRepositories),
    // Context, files, commands.
    Key::new(
        "autoCompactEnabled",
        Switch,
        "Compact automatically. Off: nothing is summarised automatically, a run ends when the context is full, and \
         `/compact` makes room.",
    )
    .or("true")
    .waits(),
    Key::new(
        "autoCompactWindow",
        Whole(1, u64::MAX),
        "The context window, in tokens, that the thresholds are computed from.",
    )
    .or("the model's window")
    .waits(),
    Key::new(
        "toolUseSummariesEnabled",
        Switch,
        "Let the small model label what the calls of a response did, for a person or host that watches.",
    )
    .or("true if `ANTHROPIC_SMALL_FAST_MODEL` is set")
    .waits(),
    Key::new("promptSuggestionEnabled", Switch, "Let the small model suggest the next prompt after a run.")
        .or("true at a terminal if `ANTHROPIC_SMALL_FAST_MODEL` is set")
        .waits(),
    Key::new(
        "repeatedCallsMax",
        Whole(1, u32::MAX as u64),
        "After this many equal calls with equal results, a run without a user ends. Calls that wait do not count.",
    )
    .or("25")
    .waits(),
    Key::new(
        "claudeMdExcludes",
        TEXTS,
        "Patterns of memory files to skip; managed memory files are always read.",
    )
    .waits(),
    Key::idle("claudeMd", Text, "Managed memory for all users.").only(Managed),
    Key::idle("autoMemoryEnabled", Switch, "Let sessions save memories on their own."),
    Key::idle("autoMemoryDirectory", Text, "The directory for such memories.").only(OutsideRepositories),
    Key::new(
        "fileCheckpointingEnabled",
        Switch,
        "Save the previous content of files before tool calls change them, for `/rewind`.",
    )
    .or("true"),
    Key::idle("cleanupPeriodDays", Whole(1, u64::MAX), "Delete sessions after this many days."),
    Key::idle("plansDirectory", Text, "The directory for plans.").waits(),
    Key::idle("defaultShell", Choice(&["bash", "powershell"]), "The shell for lines that begin with `!`."),
    Key::new(
        "bashOutputMaxChars",
        Whole(1, u64::MAX),
        "The most characters of a command's output in a tool result, from 4000 to 128000.",
    )
    .or("30000"),
    Key::idle("bashEditDiffEnabled", Switch, "Show the file changes a command made."),
    Key::idle("processWrapper", Any, "A program that starts commands.").only(OutsideRepositories),
    Key::idle("worktree", Group, "How Git worktrees are created."),
    Key::idle("worktree.baseRef", Choice(&["fresh", "head"]), "The commit they start from."),
    Key::idle("worktree.symlinkDirectories", TEXTS, "Directories to symlink into them.").waits(),
    Key::idle("worktree.sparsePaths", TEXTS, "Paths to check out."),
    Key::idle("worktree.bgIsolation", Any, "Give background work its own worktree."),
    // Credentials.
    Key::idle("apiKeyHelper", Text, "A command that prints the API key.").only(OutsideRepositories),
    Key::idle("awsAuthRefresh", Text, "A command that refreshes the login.").only(OutsideRepositories),
    Key::idle("awsCredentialExport", Text, "A command that prints credentials.").only(OutsideRepositories),
    Key::idle("gcpAuthRefresh", Text, "A command that refreshes the login.").only(OutsideRepositories),
    Key::idle("otelHeadersHelper", Text, "A command that prints headers.").only(OutsideRepositories),
    Key::idle("policyHelper", Any, "A command that prints managed settings.").only(Managed),
    // Agents, servers, plugins, skills.
    Key::idle("agent", Text, "The agent that the session runs as.").waits(),
    Key::idle("enableAllProjectMcpServers", Switch, "Start every server in `.mcp.json`.").waits(),
    Key::idle("enabledMcpjsonServers", TEXTS, "Servers in `.mcp.json` to start.").waits(),
    Key::idle("disabledMcpjsonServers", TEXTS, "Servers in `.mcp.json` not to start."),
    Key::idle("allowedMcpServers", List(&Object), "The only MCP servers allowed.").waits(),
    Key::idle("deniedMcpServers", List(&Object), "MCP servers that never start."),
    Key::idle("allowManagedMcpServersOnly", Switch, "Use only the managed list of allowed MCP servers.")
        .only(Managed),
    Key::idle("enabledPlugins", Map(&Any), "Plugins to load.").waits(),
    Key::idle("extraKnownMarketplaces", Map(&Object), "Additional plugin marketplaces.").waits(),
    Key::idle("pluginConfigs", Map(&Any), "Configuration of plugins.").only(OutsideRepositories),
    Key::idle("strictKnownMarketplaces", Any, "The only plugin marketplaces allowed.").only(Managed),
    Key::idle("strictPluginOnlyCustomization", Any, "Allow customization through plugins only.")
        .only(Managed),
    Key::idle("disableSideloadFlags", Any, "Refuse flags that load plugins and MCP servers.").only(Managed),
    Key::idle("requiredMinimumVersion", Text, "The oldest version allowed to start.").only(Managed),
    Key::idle(
        "skillOverrides",
        Map(&Choice(&["on", "name-only", "user-invocable-only", "off"])),
        "How each skill is offered.",
    ),
    Key::idle("disableBundledSkills", Switch, "Offer no built-in skills."),
    Key::idle("disableSkillShellExecution", Switch, "Do not let skills run commands."),
    Key::idle(
        "skillListingBudgetFraction",
        Share(0.0, 1.0),
        "The share of the context window for the list of skills.",
    ),
    Key::idle(
        "skillListingMaxDescChars",
        Whole(1, u64::MAX),
        "The most characters of a skill's description in the list.",
    ),
    Key::idle("disableClaudeAiConnectors", Switch, "Offer no claude.ai connectors.").merged(Strict(true)),
    Key::idle("syncClaudeAiSkills", Switch, "Sync skills from claude.ai.").merged(Strict(false)),
    Key::idle("isolatePeerMachines", Switch, "Isolate this machine from the account's other machines.")
        .merged(Strict(true)),
    Key::idle("remoteControlAtStartup", Switch, "Allow remote control of the session.").merged(Strict(false)),
    Key::idle("crossSessionInbound", Any, "Messages accepted from other sessions."),
    // Git.
    Key::idle("attribution", Group, "Attribution in commits and pull requests."),
    Key::idle("attribution.commit", Text, "The attribution in commits."),
    Key::idle("attribution.pr", Text, "The attribution in pull requests."),
    Key::idle("attribution.sessionUrl", Any, "Include the session's URL."),
    Key::idle("includeCoAuthoredBy", Switch, "Deprecated; use `attribution`."),
    Key::idle("includeGitInstructions", Switch, "Include Git instructions in the system prompt."),
    Key::idle("prUrlTemplate", Text, "The URL template of pull requests."),
    // Screens.
    Key::idle("statusLine", Object, "A command that prints the status line.").waits(),
    Key::idle("subagentStatusLine", Object, "A command that prints the status line of subagents.").waits(),
    Key::idle("fileSuggestion", Object, "A command that suggests files.").waits(),
    Key::idle("footerLinksRegexes", Any, "Links below the input.").only(OutsideRepositories),
    Key::idle("spellcheck", Any, "Check the spelling of prompts.").only(OutsideRepositories),
    Key::idle("spinnerVerbs", Any, "The words shown while the model works."),
    Key::idle("spinnerTipsEnabled", Switch, "Show tips while the model works."),
    Key::idle("theme", Text, "The colour theme."),
    Key::idle("tui", Any, "The terminal UI."),
    Key::idle("viewMode", Text, "How much detail is shown."),
    Key::idle("verbose", Switch, "Show full tool output."),
    Key::idle("editorMode", Text, "Key bindings of the input."),
    Key::idle("vimInsertModeRemaps", Any, "Key bindings of the input.").only(OutsideRepositories),
    Key::idle("keybindingFlavor", Text, "Key bindings of the input."),
    Key::idle("preferredNotifChannel", Text, "The channel for notifications."),
    Key::idle("prefersReducedMotion", Switch, "Reduce animations."),
    Key::idle("axScreenReader", Switch, "Optimize output for screen readers."),
    Key::idle("respectGitignore", Switch, "Leave Git-ignored files out of suggestions."),
    Key::idle("respondToBashCommands", Switch, "Let the model respond to commands entered with `!`."),
    Key::idle("showTurnDuration", Switch, "Show how long each turn took."),
    Key::idle("askUserQuestionTimeout", Any, "The timeout of questions to the user.")
        .only(OutsideRepositories),
];
