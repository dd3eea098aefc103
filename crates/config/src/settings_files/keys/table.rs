//! The keys themselves, by topic.

use super::KeyScope::{ForeignOnly, Managed, NotForeign, OutsideRepositories};
use super::MergeRule::{ManagedReplaces, Strict};
use super::ValueType::{Any, Choice, Fields, Group, List, Map, Object, Share, Switch, Text, Whole};
use super::{Key, MergeRule, TEXTS, idle, key, protect, trusted};

const MODES: &[&str] = &["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"];
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const DISABLE: &[&str] = &["disable"];
const CREDENTIAL: &[&str] = &["deny", "mask"];
const PORT: super::ValueType = Whole(1, 65_535);

/// Every key that is known, in the order of the documentation.
#[rustfmt::skip]
pub(crate) static KEYS: &[Key] = &[
    key("$schema", Text).about("The JSON schema for editors: `docs/settings.schema.json`."),
    // Models.
    trusted("model", Text).about("The model, unless `--model` or `ANTHROPIC_MODEL` names one."),
    key("availableModels", TEXTS).about("The only models that may be chosen: ids, or names of families.").or("all").merge(ManagedReplaces),
    trusted("fallbackModel", TEXTS).about("The models to try, in order, when the model is overloaded.").merge(MergeRule::Whole),
    idle("modelOverrides", Map(&Text)).about("Provider-specific model ids.").waits(),
    trusted("effortLevel", Choice(EFFORTS)).about("The effort level, unless `--effort` or `CLAUDE_CODE_EFFORT_LEVEL` sets it."),
    idle("maxEffortLevel", Choice(EFFORTS)).about("The highest effort level allowed."),
    trusted("alwaysThinkingEnabled", Switch).about("`false` turns thinking off, unless a flag or `MAX_THINKING_TOKENS` turns it on."),
    idle("showThinkingSummaries", Switch).about("Show summaries of thinking."),
    idle("language", Text).about("The language of answers."),
    idle("outputStyle", Text).about("The output style of answers."),
    trusted("env", Map(&Text)).about("Environment variables for the run and its commands; they override the shell's. `\"\"` unsets one."),
    // Permissions.
    protect("permissions", Group).about("Permission rules and modes."),
    trusted("permissions.allow", TEXTS).about("Rules for calls that run without asking.").anchor(),
    protect("permissions.ask", TEXTS).about("Rules for calls that always ask.").anchor(),
    protect("permissions.deny", TEXTS).about("Rules for calls that never run.").anchor(),
    trusted("permissions.additionalDirectories", TEXTS).about("Additional working directories.").anchor(),
    trusted("permissions.defaultMode", Choice(MODES)).about("The permission mode at the start, unless `--permission-mode` sets it.").or("`default`"),
    protect("permissions.disableBypassPermissionsMode", Choice(DISABLE)).about("`disable` forbids the mode `bypassPermissions`."),
    protect("permissions.disableAutoMode", Choice(DISABLE)).about("`disable` forbids the mode `auto`."),
    protect("allowManagedPermissionRulesOnly", Switch)
        .about("Only managed rules can allow calls. Other rules can still deny and ask.")
        .scope(Managed),
    idle("skipDangerousModePermissionPrompt", Switch).about("Skip the warning when `bypassPermissions` starts.").scope(NotForeign),
    protect("disableAutoMode", Choice(DISABLE)).about("`disable` forbids the mode `auto`."),
    idle("useAutoModeDuringPlan", Switch).about("Let a model classify commands in plan mode.").merge(Strict(false)),
    key("autoMode", Group).about("Instructions for the model that classifies commands in auto mode.").scope(OutsideRepositories),
    key("autoMode.environment", TEXTS).about("Facts about the environment. `$defaults` stands for the built-in list, here and below."),
    key("autoMode.allow", TEXTS).about("Actions it may allow."),
    key("autoMode.soft_deny", TEXTS).about("Actions it denies unless the user asked for them."),
    key("autoMode.hard_deny", TEXTS).about("Actions it always denies."),
    idle("autoMode.classifyAllShell", Switch).about("Classify every command, even those that a rule allows."),
    // Hooks.
    trusted("hooks", Map(&List(&Object))).about("Hooks: for each event a list of matcher groups.").merge(MergeRule::AddUp),
    trusted("disableAllHooks", Switch).about("Run no hooks. Managed hooks run unless this is a managed setting."),
    protect("allowManagedHooksOnly", Switch).about("Run managed hooks only.").scope(Managed),
    trusted("allowedHttpHookUrls", TEXTS).about("URLs that HTTP hooks may call; `*` matches anything.").or("all"),
    trusted("httpHookAllowedEnvVars", TEXTS).about("Environment variables that HTTP hooks may put into headers.").or("all that the hook lists"),
    // Sandbox.
    protect("sandbox", Group).about("The sandbox for commands."),
    protect("sandbox.enabled", Switch).about("Run commands in a sandbox.").or("false").scope(ForeignOnly(true)),
    protect("sandbox.failIfUnavailable", Switch)
        .about("Refuse to start when the sandbox is on and unavailable; `false` runs commands without it.")
        .or("true")
        .scope(ForeignOnly(true)),
    protect("sandbox.hooks", Switch).about("Run command hooks in the sandbox too.").or("false").scope(ForeignOnly(true)),
    key("sandbox.autoAllowBashIfSandboxed", Switch).about("Run sandboxed commands without asking.").or("true").scope(ForeignOnly(false)),
    key("sandbox.excludedCommands", TEXTS).about("Commands that run outside the sandbox.").scope(NotForeign),
    key("sandbox.allowUnsandboxedCommands", Switch)
        .about("Let the model ask to run a command outside the sandbox.")
        .or("true")
        .scope(ForeignOnly(false)),
    protect("sandbox.filesystem", Group).about("File access in the sandbox."),
    key("sandbox.filesystem.allowWrite", TEXTS).about("Paths that commands can write.").anchor().scope(NotForeign),
    protect("sandbox.filesystem.denyWrite", TEXTS).about("Paths that commands cannot write.").anchor(),
    protect("sandbox.filesystem.denyRead", TEXTS).about("Paths that commands cannot read.").anchor(),
    key("sandbox.filesystem.allowRead", TEXTS).about("Paths inside `denyRead` that commands can read.").anchor().scope(NotForeign),
    key("sandbox.filesystem.disabled", Switch).about("Turn off file restrictions in the sandbox.").or("false").scope(OutsideRepositories),
    protect("sandbox.filesystem.allowManagedReadPathsOnly", Switch).about("Use only the managed `allowRead` list.").scope(Managed),
    protect("sandbox.network", Group).about("Network access in the sandbox."),
    key("sandbox.network.allowedDomains", TEXTS).about("Hosts that commands can reach.").scope(NotForeign),
    protect("sandbox.network.deniedDomains", TEXTS).about("Hosts that commands can never reach."),
    key("sandbox.network.strictAllowlist", Switch).about("Deny other hosts without asking.").or("false").scope(OutsideRepositories),
    protect("sandbox.network.allowManagedDomainsOnly", Switch).about("Use only the managed `allowedDomains` list.").scope(Managed),
    idle("sandbox.network.httpProxyPort", PORT).about("A proxy of your own.").scope(OutsideRepositories),
    idle("sandbox.network.socksProxyPort", PORT).about("A proxy of your own.").scope(OutsideRepositories),
    idle("sandbox.network.tlsTerminate", Any).about("Let the proxy decrypt TLS.").scope(OutsideRepositories),
    idle("sandbox.network.allowUnixSockets", TEXTS).about("Unix sockets that commands can reach.").scope(NotForeign),
    idle("sandbox.network.allowAllUnixSockets", Switch).about("Let commands reach every Unix socket.").scope(NotForeign),
    idle("sandbox.network.allowLocalBinding", Switch).about("Let commands listen on local ports.").scope(NotForeign),
    idle("sandbox.network.allowMachLookup", TEXTS).about("Mach services that commands can reach.").scope(NotForeign),
    protect("sandbox.credentials", Group).about("Credentials hidden from commands."),
    protect(
        "sandbox.credentials.files",
        List(&Fields(&[("path", Text, true), ("mode", Choice(CREDENTIAL), true)])),
    )
    .about("Files hidden from commands. `mask` is not supported and hides them too.")
    .anchor(),
    protect(
        "sandbox.credentials.envVars",
        List(&Fields(&[("name", Text, true), ("mode", Choice(CREDENTIAL), true)])),
    )
    .about("Variables hidden from commands. `mask` is not supported and hides them too."),
    idle("sandbox.ignoreViolations", Map(&TEXTS)).about("Violations that are not reported.").scope(NotForeign),
    idle("sandbox.enableWeakerNestedSandbox", Switch).about("Use a weaker sandbox inside containers.").scope(OutsideRepositories),
    idle("sandbox.enableWeakerNetworkIsolation", Switch).about("Use weaker network isolation.").scope(OutsideRepositories),
    idle("sandbox.allowAppleEvents", Switch).about("Let commands send Apple events.").scope(OutsideRepositories),
    idle("sandbox.ripgrep", Object).about("The search program of the sandbox.").scope(OutsideRepositories),
    key("sandbox.bwrapPath", Text).about("The path of `bwrap`.").scope(OutsideRepositories),
    idle("sandbox.socatPath", Text).about("The path of `socat`.").scope(OutsideRepositories),
    // Context, files, commands.
    trusted("autoCompactEnabled", Switch)
        .about(
            "Compact automatically. Off: nothing is summarised automatically, a run ends when the \
             context is full, and `/compact` makes room.",
        )
        .or("true"),
    trusted("autoCompactWindow", Whole(1, u64::MAX))
        .about("The context window, in tokens, that the thresholds are computed from.")
        .or("the model's window"),
    trusted("toolUseSummariesEnabled", Switch)
        .about(
            "Let the small model label what the calls of a response did, for a person or host that \
             watches.",
        )
        .or("true if `ANTHROPIC_SMALL_FAST_MODEL` is set"),
    trusted("promptSuggestionEnabled", Switch)
        .about("Let the small model suggest the next prompt after a run.")
        .or("true at a terminal if `ANTHROPIC_SMALL_FAST_MODEL` is set"),
    trusted("repeatedCallsMax", Whole(1, u32::MAX as u64))
        .about(
            "After this many equal calls with equal results, a run without a user ends. Calls that \
             wait do not count.",
        )
        .or("25"),
    trusted("claudeMdExcludes", TEXTS).about("Patterns of memory files to skip; managed memory files are always read."),
    idle("claudeMd", Text).about("Managed memory for all users.").scope(Managed),
    idle("autoMemoryEnabled", Switch).about("Let sessions save memories on their own."),
    idle("autoMemoryDirectory", Text).about("The directory for such memories.").scope(OutsideRepositories),
    key("fileCheckpointingEnabled", Switch).about("Save the previous content of files before tool calls change them, for `/rewind`.").or("true"),
    idle("cleanupPeriodDays", Whole(1, u64::MAX)).about("Delete sessions after this many days."),
    idle("plansDirectory", Text).about("The directory for plans.").waits(),
    idle("defaultShell", Choice(&["bash", "powershell"])).about("The shell for lines that begin with `!`."),
    key("bashOutputMaxChars", Whole(1, u64::MAX))
        .about("The most characters of a command's output in a tool result, from 4000 to 128000.")
        .or("30000"),
    idle("bashEditDiffEnabled", Switch).about("Show the file changes a command made."),
    idle("processWrapper", Any).about("A program that starts commands.").scope(OutsideRepositories),
    idle("worktree", Group).about("How Git worktrees are created."),
    idle("worktree.baseRef", Choice(&["fresh", "head"])).about("The commit they start from."),
    idle("worktree.symlinkDirectories", TEXTS).about("Directories to symlink into them.").waits(),
    idle("worktree.sparsePaths", TEXTS).about("Paths to check out."),
    idle("worktree.bgIsolation", Any).about("Give background work its own worktree."),
    // Credentials.
    idle("apiKeyHelper", Text).about("A command that prints the API key.").scope(OutsideRepositories),
    idle("awsAuthRefresh", Text).about("A command that refreshes the login.").scope(OutsideRepositories),
    idle("awsCredentialExport", Text).about("A command that prints credentials.").scope(OutsideRepositories),
    idle("gcpAuthRefresh", Text).about("A command that refreshes the login.").scope(OutsideRepositories),
    idle("otelHeadersHelper", Text).about("A command that prints headers.").scope(OutsideRepositories),
    idle("policyHelper", Any).about("A command that prints managed settings.").scope(Managed),
    // Agents, servers, plugins, skills.
    idle("agent", Text).about("The agent that the session runs as.").waits(),
    idle("enableAllProjectMcpServers", Switch).about("Start every server in `.mcp.json`.").waits(),
    idle("enabledMcpjsonServers", TEXTS).about("Servers in `.mcp.json` to start.").waits(),
    idle("disabledMcpjsonServers", TEXTS).about("Servers in `.mcp.json` not to start."),
    idle("allowedMcpServers", List(&Object)).about("The only MCP servers allowed.").waits(),
    idle("deniedMcpServers", List(&Object)).about("MCP servers that never start."),
    idle("allowManagedMcpServersOnly", Switch).about("Use only the managed list of allowed MCP servers.").scope(Managed),
    idle("enabledPlugins", Map(&Any)).about("Plugins to load.").waits(),
    idle("extraKnownMarketplaces", Map(&Object)).about("Additional plugin marketplaces.").waits(),
    idle("pluginConfigs", Map(&Any)).about("Configuration of plugins.").scope(OutsideRepositories),
    idle("strictKnownMarketplaces", Any).about("The only plugin marketplaces allowed.").scope(Managed),
    idle("strictPluginOnlyCustomization", Any).about("Allow customization through plugins only.").scope(Managed),
    idle("disableSideloadFlags", Any).about("Refuse flags that load plugins and MCP servers.").scope(Managed),
    idle("requiredMinimumVersion", Text).about("The oldest version allowed to start.").scope(Managed),
    idle("skillOverrides", Map(&Choice(&["on", "name-only", "user-invocable-only", "off"]))).about("How each skill is offered."),
    idle("disableBundledSkills", Switch).about("Offer no built-in skills."),
    idle("disableSkillShellExecution", Switch).about("Do not let skills run commands."),
    idle("skillListingBudgetFraction", Share(0.0, 1.0)).about("The share of the context window for the list of skills."),
    idle("skillListingMaxDescChars", Whole(1, u64::MAX)).about("The most characters of a skill's description in the list."),
    idle("disableClaudeAiConnectors", Switch).about("Offer no claude.ai connectors.").merge(Strict(true)),
    idle("syncClaudeAiSkills", Switch).about("Sync skills from claude.ai.").merge(Strict(false)),
    idle("isolatePeerMachines", Switch).about("Isolate this machine from the account's other machines.").merge(Strict(true)),
    idle("remoteControlAtStartup", Switch).about("Allow remote control of the session.").merge(Strict(false)),
    idle("crossSessionInbound", Any).about("Messages accepted from other sessions."),
    // Git.
    idle("attribution", Group).about("Attribution in commits and pull requests."),
    idle("attribution.commit", Text).about("The attribution in commits."),
    idle("attribution.pr", Text).about("The attribution in pull requests."),
    idle("attribution.sessionUrl", Any).about("Include the session's URL."),
    idle("includeCoAuthoredBy", Switch).about("Deprecated; use `attribution`."),
    idle("includeGitInstructions", Switch).about("Include Git instructions in the system prompt."),
    idle("prUrlTemplate", Text).about("The URL template of pull requests."),
    // Screens.
    idle("statusLine", Object).about("A command that prints the status line.").waits(),
    idle("subagentStatusLine", Object).about("A command that prints the status line of subagents.").waits(),
    idle("fileSuggestion", Object).about("A command that suggests files.").waits(),
    idle("footerLinksRegexes", Any).about("Links below the input.").scope(OutsideRepositories),
    idle("spellcheck", Any).about("Check the spelling of prompts.").scope(OutsideRepositories),
    idle("spinnerVerbs", Any).about("The words shown while the model works."),
    idle("spinnerTipsEnabled", Switch).about("Show tips while the model works."),
    idle("theme", Text).about("The colour theme."),
    idle("tui", Any).about("The terminal UI."),
    idle("viewMode", Text).about("How much detail is shown."),
    idle("verbose", Switch).about("Show full tool output."),
    idle("editorMode", Text).about("Key bindings of the input."),
    idle("vimInsertModeRemaps", Any).about("Key bindings of the input.").scope(OutsideRepositories),
    idle("keybindingFlavor", Text).about("Key bindings of the input."),
    idle("preferredNotifChannel", Text).about("The channel for notifications."),
    idle("prefersReducedMotion", Switch).about("Reduce animations."),
    idle("axScreenReader", Switch).about("Optimize output for screen readers."),
    idle("respectGitignore", Switch).about("Leave Git-ignored files out of suggestions."),
    idle("respondToBashCommands", Switch).about("Let the model respond to commands entered with `!`."),
    idle("showTurnDuration", Switch).about("Show how long each turn took."),
    idle("askUserQuestionTimeout", Any).about("The timeout of questions to the user.").scope(OutsideRepositories),
];
