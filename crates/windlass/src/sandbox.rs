//! The sandbox that settings ask for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use windlass_config::RunConfig;
use windlass_engine::protocol::{HostFact, PathFact};
use windlass_engine::{CommandPattern, Hosts, Rules, SandboxPermissions};
use windlass_hooks::Confinement;
use windlass_sandbox::{
    Arbiter, Host, Network, NetworkDestination, NetworkVerdict, ProtectedPath, Sandbox, SandboxPolicy,
    SandboxUnavailable, protect_repositories,
};

pub use windlass_sandbox::{child_environment, close_to_others, run_command, tried_sandbox, wait_for_trees};

use crate::error::Error;
use crate::supervision::check_for_sandbox;

/// Entries of the working directories that are looked through for what may not be read.
const ENTRIES_MAX: usize = 20_000;

/// Whether the settings ask for a sandbox.
pub fn is_wanted(config: &RunConfig) -> bool {
    config.files.sandbox.switch("sandbox.enabled") == Some(true)
}

/// Whether nothing starts where the sandbox cannot be had.
pub fn must_be_there(config: &RunConfig) -> bool {
    config.files.sandbox.switch("sandbox.failIfUnavailable") != Some(false)
}

/// The sandbox that can be had here, whether the settings ask for it or not.
pub fn available(config: &RunConfig) -> Result<Sandbox, SandboxUnavailable> {
    check_for_sandbox()?;
    Sandbox::prepare(&policy(config))
}

/// The sandbox that the settings ask for; an error where it cannot be had, unless commands may run without.
pub fn prepare(config: &mut RunConfig) -> Result<Option<Sandbox>, Error> {
    if !is_wanted(config) {
        return Ok(None);
    }
    let lost = lost_bwrap(config);
    match available(config) {
        Ok(sandbox) => {
            config.run_warnings.extend(lost);
            config.settings.run.permissions.sandbox = sandbox_permissions(config);
            if sandbox.is_reduced() {
                config.run_warnings.push(sandbox.report().trim_end().replace('\n', ";\n"));
            }
            Ok(Some(sandbox))
        }
        Err(unavailable) if must_be_there(config) => Err(Error::Sandbox(unavailable)),
        Err(unavailable) => {
            config.run_warnings.push(format!("commands run without a sandbox: {unavailable}"));
            Ok(None)
        }
    }
}

/// What hooks that are programs run in, by the settings. Where there is no sandbox for them, they do not start.
pub fn hook_confinement(config: &RunConfig, sandbox: Option<&Sandbox>) -> Confinement {
    match sandbox {
        _ if !is_wanted(config) => Confinement::Free,
        _ if config.files.sandbox.switch("sandbox.hooks") != Some(true) => Confinement::Free,
        Some(sandbox) => Confinement::In(sandbox.clone()),
        None => Confinement::Missing,
    }
}

/// Which commands run in the sandbox and what that spares, if the settings ask for one.
pub fn sandbox_permissions(config: &RunConfig) -> Option<SandboxPermissions> {
    let wanted = &config.files.sandbox;
    let patterns = wanted.texts("sandbox.excludedCommands");
    // A project may have its commands confined. That they then need no leave is for the user to say.
    let by_project = wanted.origin("sandbox.enabled").is_some_and(|origin| origin.is_foreign);
    is_wanted(config).then(|| SandboxPermissions {
        should_auto_allow: wanted.switch("sandbox.autoAllowBashIfSandboxed").unwrap_or(!by_project),
        can_leave: wanted.switch("sandbox.allowUnsandboxedCommands").unwrap_or(true),
        excluded: patterns.iter().filter_map(|pattern| CommandPattern::parse(pattern)).collect(),
    })
}

/// What is said about a `sandbox.bwrapPath` that leads nowhere: another way to confine commands may be found without it.
pub fn lost_bwrap(config: &RunConfig) -> Option<String> {
    let wanted = &config.files.sandbox;
    let path = wanted.text("sandbox.bwrapPath").filter(|path| !Path::new(path).is_file())?;
    let origin = wanted.origin("sandbox.bwrapPath")?;
    Some(format!(
        "{origin}: sandbox.bwrapPath is {path}, which is not a file. Correct it, or remove it to use the installed bwrap."
    ))
}

/// What commands can reach, by the settings.
pub fn policy(config: &RunConfig) -> SandboxPolicy {
    let wanted = &config.files.sandbox;
    let home = config.settings.run.permissions.anchors.home.clone().unwrap_or_else(|| "/nonexistent".into());
    let roots: Vec<PathBuf> =
        std::iter::once(&config.cwd).chain(&config.added_directories).cloned().collect();
    let unconfined = wanted.switch("sandbox.filesystem.disabled") == Some(true);
    let mut policy = SandboxPolicy::new(roots.clone(), &home);
    for root in &roots {
        let git = protect_repositories(root);
        policy.writable.extend(git.writable);
        policy.protected.extend(git.protected);
        policy.protected.extend(protected_paths(root));
    }
    policy.writable.extend(wanted.paths("sandbox.filesystem.allowWrite"));
    if unconfined {
        policy.writable.push("/".into());
    }
    policy.readable.extend(wanted.paths("sandbox.filesystem.denyWrite"));
    policy.hidden.extend(config.home.directory().map(Path::to_owned));
    policy.hidden.extend(wanted.paths("sandbox.filesystem.denyRead"));
    policy.hidden.extend(wanted.paths("sandbox.credentials.files"));
    policy.hidden.extend(denied_paths(&config.settings.run.permissions.rules, &roots));
    policy.readable.extend(wanted.paths("sandbox.filesystem.allowRead"));
    policy.bwrap = wanted.text("sandbox.bwrapPath").map(PathBuf::from);
    policy.network = Network::Proxied(arbiter(config));
    policy
}

/// Files for which an empty directory would be an error to the programs that read them.
#[rustfmt::skip]
const DISTURBED: [&str; 9] = [
    ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".pnpmfile.cjs", ".bunfig.toml",
    ".bazelrc", ".bazelversion", ".bazeliskrc",
];

/// What of a working directory makes other programs run something, but for repositories.
///
/// What is missing cannot be made either, where an empty directory in its place disturbs nothing.
fn protected_paths(root: &Path) -> impl Iterator<Item = ProtectedPath> {
    let disturbs_nobody = |name: &str| name.starts_with('.') && !DISTURBED.contains(&name);
    // Yarn keeps its own data in it.
    let left_alone = |name: &&str| ![".git", ".yarn"].contains(name);
    let directories = windlass_engine::PROTECTED_DIRECTORIES.into_iter().filter(left_alone);
    let files = windlass_engine::PROTECTED_FILES.into_iter();
    let (root, place) = (root.to_owned(), root.to_owned());
    let there = files.filter(move |name| disturbs_nobody(name) || root.join(name).symlink_metadata().is_ok());
    directories.chain(there).map(move |name| ProtectedPath::new(place.join(name)))
}

/// What rules deny to read, as far as it is there: a sandbox knows names and no patterns.
fn denied_paths(rules: &Rules, roots: &[PathBuf]) -> Vec<PathBuf> {
    if !rules.hides_anything() {
        return Vec::new();
    }
    let hides = |path: &Path| {
        rules.hides(&PathFact { lexical: path.to_owned(), resolved: None, is_directory: false })
    };
    let mut found = Vec::new();
    let mut waiting: Vec<PathBuf> = roots.to_vec();
    let mut left = ENTRIES_MAX;
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten().take(left) {
            left = left.saturating_sub(1);
            let path = entry.path();
            if hides(&path) {
                found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            }
        }
    }
    found
}

/// Variables that commands must not see.
pub fn without_hidden(
    environment: Vec<(OsString, OsString)>,
    config: &RunConfig,
) -> Vec<(OsString, OsString)> {
    let hidden = config.files.sandbox.texts("sandbox.credentials.envVars");
    let is_hidden = |name: &OsString| hidden.iter().any(|variable| name == variable.as_str());
    environment.into_iter().filter(|(name, _)| !is_hidden(name)).collect()
}

/// Decides which hosts commands may reach: those of the settings, and those that rules for fetching name.
fn arbiter(config: &RunConfig) -> Arbiter {
    let wanted = &config.files.sandbox;
    let mut hosts = Hosts::default();
    hosts.allow(&wanted.texts("sandbox.network.allowedDomains"));
    hosts.deny(&wanted.texts("sandbox.network.deniedDomains"));
    if wanted.switch("sandbox.network.allowManagedDomainsOnly") != Some(true) {
        hosts.add_rules(&config.settings.run.permissions.rules);
    }
    Arbiter::new(move |destination: NetworkDestination| {
        let fact = match &destination.host {
            Host::Name(name) => HostFact::Name(name.trim_end_matches('.').to_lowercase()),
            Host::Address(std::net::IpAddr::V4(address)) => HostFact::V4(*address),
            Host::Address(std::net::IpAddr::V6(address)) => HostFact::V6(*address),
        };
        let verdict = match hosts.reach(&fact, destination.port) {
            windlass_engine::HostReach::Named => NetworkVerdict::AllowLiterally,
            windlass_engine::HostReach::Allowed => NetworkVerdict::Allow,
            windlass_engine::HostReach::Denied => NetworkVerdict::Deny("the settings deny this host".into()),
            windlass_engine::HostReach::Unknown => NetworkVerdict::Deny(format!(
                "not an allowed host; add {fact} to sandbox.network.allowedDomains"
            )),
        };
        async move { verdict }
    })
}
