//! Which sandbox can be had here, and what it is worth.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use windlass_text::folders::create_temporary;

use crate::confine::PROXY_PORT;
use crate::launch_plan::{Backend, Bubblewrap, ConfinementPlan, FileAccess, Landlock, NetworkReach};
use crate::network::{Arbiter, Network};
use crate::policy::{BackendChoice, SandboxPolicy};
use crate::{landlock_rules, limits, mounts, sockets};

/// The only places where `bwrap` is looked for. A work tree must not provide it.
const BWRAP: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// Variables that name sockets outside, or programs' ways to them.
const OUTSIDE: &[&[&str]] = &[
    &["SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS"],
    &["DBUS_SYSTEM_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"],
    &["DOCKER_HOST", "CONTAINER_HOST"],
];

/// Variables that name a proxy, here in upper case.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"];

/// A sandbox that commands can be started in. A clone is the same sandbox.
#[derive(Clone, Debug)]
pub struct Sandbox(pub(crate) Arc<SandboxState>);

#[derive(Debug)]
pub(crate) struct SandboxState {
    pub(crate) plan: ConfinementPlan,
    pub(crate) arbiter: Option<Arbiter>,
    barriers: Vec<ActiveBarrier>,
    /// Why a better backend was passed over.
    passed_over: Option<SandboxUnavailable>,
    /// Removed when the last clone is gone, and no command in it is left.
    _temp: Option<TempDir>,
}

/// What a sandbox is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Barrier {
    /// Only some places can be written.
    Writing,
    /// Inside of those, some cannot.
    Protected,
    /// Credentials cannot be read.
    Hidden,
    /// The network is closed, or open only as decided.
    Network,
    /// Sockets of other programs on this machine cannot be reached.
    Sockets,
    /// Other processes cannot be seen, signalled or looked into, and nothing stays behind.
    Processes,
    /// There are no privileges and no way to get any.
    Privileges,
    /// Dangerous system calls are refused.
    SystemCalls,
    /// The number of processes is limited.
    ProcessLimit,
}

/// A barrier as it is in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveBarrier {
    /// Which one.
    pub barrier: Barrier,
    /// What it is made with.
    pub by: String,
    /// What it does not hold here.
    pub gap: Option<String>,
    /// What a command cannot do because of it, in a sentence for the model that runs it.
    pub limit: Option<String>,
}

/// Why there is no sandbox. Nothing that needs one may run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sandbox: {missing} is missing ({why}). {advice}")]
pub struct SandboxUnavailable {
    /// What there is not.
    pub missing: String,
    /// How that was found out.
    pub why: String,
    /// What the user can do.
    pub advice: String,
}

impl Barrier {
    /// Its name on screens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Writing => "writing",
            Self::Protected => "protected paths",
            Self::Hidden => "hidden paths",
            Self::Network => "network",
            Self::Sockets => "sockets",
            Self::Processes => "processes",
            Self::Privileges => "privileges",
            Self::SystemCalls => "system calls",
            Self::ProcessLimit => "process limit",
        }
    }
}

impl Sandbox {
    /// Finds out how a policy can be enforced here. Takes a few milliseconds the first time.
    pub fn prepare(policy: &SandboxPolicy) -> Result<Self, SandboxUnavailable> {
        if rustix::thread::secure_computing_mode().is_err() {
            let (why, advice) = ("the kernel has no seccomp", "Use a kernel with CONFIG_SECCOMP_FILTER.");
            return Err(SandboxUnavailable::new("the system call filter", why, advice));
        }
        let (backend, passed_over) = match policy.backend {
            BackendChoice::Bubblewrap => (bubblewrap(policy)?, None),
            BackendChoice::Landlock => (landlock(policy)?, None),
            BackendChoice::Best => match bubblewrap(policy) {
                Ok(backend) => (backend, None),
                Err(first) => match landlock(policy) {
                    Ok(backend) => (backend, Some(first)),
                    Err(second) => return Err(first.merge(&second)),
                },
            },
        };
        let (temp, own_temp) = temporary(policy)?;
        let network = reach(policy, &backend);
        let files = FileAccess {
            writable: policy.writable.clone(),
            readable: policy.readable.clone(),
            protected: policy.protected.clone(),
            hidden: policy.hidden.iter().cloned().chain(sockets::outside()).collect(),
            temp,
        };
        let SandboxPolicy { can_make_unix_sockets, limits, .. } = *policy;
        let plan = ConfinementPlan { backend, files, network, can_make_unix_sockets, limits };
        let barriers = barriers(policy, &plan);
        let arbiter = match &policy.network {
            Network::Proxied(arbiter) => Some(arbiter.clone()),
            Network::Off | Network::Open => None,
        };
        Ok(Self(Arc::new(SandboxState { plan, arbiter, barriers, passed_over, _temp: own_temp })))
    }

    /// What the sandbox is made of, and where it has gaps.
    pub fn active_barriers(&self) -> &[ActiveBarrier] {
        &self.0.barriers
    }

    /// Whether some barrier does not hold all it should.
    pub fn is_reduced(&self) -> bool {
        self.0.barriers.iter().any(|barrier| barrier.gap.is_some())
    }

    /// The name of the way commands are confined.
    pub fn backend(&self) -> &'static str {
        match self.0.plan.backend {
            Backend::Bubblewrap(_) => "bubblewrap",
            Backend::Landlock(_) => "landlock",
        }
    }

    /// The directory for temporary files, as commands inside know it.
    pub fn temp(&self) -> &Path {
        &self.0.plan.files.temp
    }

    /// The whole in one line, with the gaps if there are any.
    pub fn summary(&self) -> String {
        let gap =
            |active: &ActiveBarrier| Some(format!("{}: {}", active.barrier.name(), active.gap.as_ref()?));
        let gaps: Vec<String> = self.0.barriers.iter().filter_map(gap).collect();
        let state =
            if gaps.is_empty() { "complete".to_owned() } else { format!("reduced: {}", gaps.join("; ")) };
        format!("sandbox: {} ({state})", self.backend())
    }

    /// All of this for people: one line for the whole, then one for each barrier.
    pub fn report(&self) -> String {
        let state = if self.is_reduced() { "reduced" } else { "complete" };
        let mut text = format!("sandbox: {} ({state})\n", self.backend());
        for ActiveBarrier { barrier, by, gap, .. } in &self.0.barriers {
            let gap = gap.as_ref().map_or_else(String::new, |gap| format!("; gap: {gap}"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {}: {by}{gap}", barrier.name());
        }
        if let (true, Backend::Landlock(_)) = (self.is_reduced(), &self.0.plan.backend) {
            text.push_str("  for a complete sandbox, install bubblewrap and allow user namespaces\n");
        }
        if let Some(SandboxUnavailable { missing, why, .. }) = &self.0.passed_over {
            let _ = writeln!(text, "  bubblewrap cannot be used here: {missing} is missing ({why})");
        }
        text
    }

    pub(crate) fn environment(&self, given: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let is_closed = self.0.plan.network != NetworkReach::Open;
        let is_kept = |name: &OsStr| {
            let upper = name.to_string_lossy().to_ascii_uppercase();
            let is_proxy = PROXIES.contains(&upper.as_str()) || upper == "NO_PROXY";
            upper != "TMPDIR"
                && !OUTSIDE.iter().any(|names| names.contains(&upper.as_str()))
                && !(is_closed && is_proxy)
        };
        let mut environment: Vec<_> = given.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        environment.push(("TMPDIR".into(), self.temp().into()));
        if self.0.plan.network == NetworkReach::Proxied {
            let mut set = |name: &str, value: &str| {
                environment.extend(
                    [name.to_owned(), name.to_ascii_lowercase()].map(|name| (name.into(), value.into())),
                );
            };
            for name in PROXIES {
                set(name, &format!("http://127.0.0.1:{PROXY_PORT}"));
            }
            set("NO_PROXY", "localhost,127.0.0.1,::1");
            environment.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
        }
        environment
    }
}

impl SandboxUnavailable {
    fn new(missing: &str, why: impl Into<String>, advice: &str) -> Self {
        Self { missing: missing.to_owned(), why: why.into(), advice: advice.to_owned() }
    }

    /// Neither of two ways works.
    fn merge(self, other: &Self) -> Self {
        Self {
            missing: format!("{}, and so is {}", self.missing, other.missing),
            why: format!("{}; {}", self.why, other.why),
            advice: self.advice,
        }
    }
}

fn temporary(policy: &SandboxPolicy) -> Result<(PathBuf, Option<TempDir>), SandboxUnavailable> {
    if let Some(temp) = &policy.temp {
        return Ok((temp.clone(), None));
    }
    let made = create_temporary("windlass-").and_then(|temp| {
        let path = temp.path().canonicalize()?;
        Ok((path, Some(temp)))
    });
    made.map_err(|error| {
        let advice = "Set TMPDIR to a writable directory.";
        SandboxUnavailable::new("a temporary directory", error.to_string(), advice)
    })
}

fn reach(policy: &SandboxPolicy, backend: &Backend) -> NetworkReach {
    match (&policy.network, backend) {
        (Network::Open, _) => NetworkReach::Open,
        (Network::Proxied(_), Backend::Bubblewrap(_)) => NetworkReach::Proxied,
        // Without a network of its own there is no telling where a command goes.
        (Network::Off, _) | (Network::Proxied(_), Backend::Landlock(_)) => NetworkReach::Off,
    }
}

fn landlock(policy: &SandboxPolicy) -> Result<Backend, SandboxUnavailable> {
    let missing = |why: String| {
        let advice = "Use Linux 6.2 or later with Landlock enabled, or install bubblewrap.";
        SandboxUnavailable::new("Landlock", why, advice)
    };
    let version =
        landlock_rules::version().ok_or_else(|| missing("the kernel does not offer it".to_owned()))?;
    if version < landlock_rules::VERSION_MIN {
        return Err(missing(format!("the kernel has only version {version}")));
    }
    if policy.can_make_unix_sockets {
        let why = "Unix sockets are allowed, and Landlock cannot close those of other programs";
        let advice = "Install bubblewrap, or do not allow Unix sockets.";
        return Err(SandboxUnavailable::new("a way to hide sockets", why, advice));
    }
    Ok(Backend::Landlock(Landlock { version }))
}

fn bubblewrap(policy: &SandboxPolicy) -> Result<Backend, SandboxUnavailable> {
    let program = find_bwrap(policy)?;
    let isolates_network = !matches!(policy.network, Network::Open);
    if !isolates_network
        && policy.can_make_unix_sockets
        && landlock_rules::version() < Some(landlock_rules::VERSION_SIGNALS)
    {
        let why = "the network is open, Unix sockets are allowed, and the kernel's Landlock is too old";
        let advice = "Use Linux 6.12 or later, close the network, or do not allow Unix sockets.";
        return Err(SandboxUnavailable::new("a way to close abstract sockets", why, advice));
    }
    let has_user_namespace = probe(&program, isolates_network).map_err(|why| {
        let advice = "Allow unprivileged user namespaces (sysctl user.max_user_namespaces and, where they exist, \
                      kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0).";
        SandboxUnavailable::new("the right to create namespaces", why, advice)
    })?;
    Ok(Backend::Bubblewrap(Bubblewrap { program, has_user_namespace }))
}

fn find_bwrap(policy: &SandboxPolicy) -> Result<PathBuf, SandboxUnavailable> {
    let Some(named) = &policy.bwrap else {
        let found = BWRAP.iter().map(PathBuf::from).find(|path| is_safe_program(path, policy));
        return found.ok_or_else(|| {
            let why = format!("it is not in {}", BWRAP.join(", "));
            SandboxUnavailable::new("bubblewrap", why, "Install the package bubblewrap.")
        });
    };
    if named.is_absolute() && is_safe_program(named, policy) {
        return Ok(named.clone());
    }
    let problem = match named.metadata() {
        Err(error) => format!(": {error}"),
        Ok(_) => ", which is not a program, or others can change it".to_owned(),
    };
    let why = format!("sandbox.bwrapPath is {}{problem}", named.display());
    let advice = "Correct sandbox.bwrapPath, or remove it to use the installed one.";
    Err(SandboxUnavailable::new("bubblewrap", why, advice))
}

/// Whether a program is one that no confined command could have put there.
fn is_safe_program(path: &Path, policy: &SandboxPolicy) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    let Ok(found) = real.metadata() else { return false };
    let is_ours = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    let is_inside = |root: &PathBuf| root.canonicalize().is_ok_and(|root| real.starts_with(root));
    found.is_file()
        && found.mode() & 0o111 != 0
        && found.mode() & 0o022 == 0
        && is_ours
        && !policy.writable.iter().any(is_inside)
}

/// Whether `bwrap` works with a user namespace, or works at all; else what it says.
fn probe(program: &Path, can_isolate_network: bool) -> Result<bool, String> {
    static RESULTS: Mutex<BTreeMap<(PathBuf, bool), Result<bool, String>>> = Mutex::new(BTreeMap::new());
    let mut results = RESULTS.lock().unwrap_or_else(PoisonError::into_inner);
    let network = if can_isolate_network { NetworkReach::Off } else { NetworkReach::Open };
    let probe = || match try_bwrap(program, network, true) {
        Err(_) if rustix::process::geteuid().is_root() => try_bwrap(program, network, false).map(|()| false),
        result => result.map(|()| true),
    };
    results.entry((program.to_owned(), can_isolate_network)).or_insert_with(probe).clone()
}

fn try_bwrap(program: &Path, network: NetworkReach, has_user_namespace: bool) -> Result<(), String> {
    let bubblewrap = Bubblewrap { program: program.to_owned(), has_user_namespace };
    let mut command = Command::new(program);
    command
        .args(mounts::base_arguments(&bubblewrap, network, false))
        .args(["--perms", "0000", "--tmpfs", "/dev/shm"]);
    // What it runs is itself: that file is there for certain.
    command.arg("--").arg(program).arg("--version");
    let output = command.env_clear().current_dir("/").stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() && output.stdout.starts_with(b"bubblewrap") {
        return Ok(());
    }
    if output.status.success() {
        return Err(format!("{} does not behave like bubblewrap", program.display()));
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().next().unwrap_or("it failed without a message").to_owned())
}

fn barriers(policy: &SandboxPolicy, plan: &ConfinementPlan) -> Vec<ActiveBarrier> {
    let backend = &plan.backend;
    let mut barriers = Vec::new();
    let mut add = |barrier, by: &str, gap: Option<&str>| {
        let (by, gap) = (by.to_owned(), gap.map(str::to_owned));
        barriers.push(ActiveBarrier { barrier, by, gap, limit: limits::limit(barrier, plan) });
    };
    let closed = match plan.network {
        NetworkReach::Off => "no network and no network sockets",
        NetworkReach::Proxied => "own network, with a proxy that decides by name and address",
        NetworkReach::Open => "open",
    };
    match backend {
        Backend::Bubblewrap(bubblewrap) => {
            add(Barrier::Writing, "mount namespace", None);
            add(Barrier::Protected, "mount namespace", None);
            add(Barrier::Hidden, "mount namespace", None);
            add(Barrier::Network, closed, None);
            add(Barrier::Sockets, "mount namespace and system call filter", None);
            let user = if bubblewrap.has_user_namespace { ", user namespace" } else { "" };
            add(Barrier::Processes, &format!("PID and IPC namespaces{user}"), None);
        }
        Backend::Landlock(landlock) => {
            let meta = "permissions, times and attributes of your files can be changed everywhere";
            add(Barrier::Writing, &format!("Landlock version {}", landlock.version), Some(meta));
            add(Barrier::Protected, "Landlock", Some(PROTECTED_GAP));
            add(Barrier::Hidden, "Landlock", Some("the names of hidden files can be listed"));
            let asked = matches!(policy.network, Network::Proxied(_));
            let gap = "hosts cannot be allowed by name, so the network is off";
            add(Barrier::Network, closed, asked.then_some(gap));
            add(Barrier::Sockets, "system call filter", None);
            let signals = landlock.version < landlock_rules::VERSION_SIGNALS;
            let gap = if signals {
                "your other processes can be seen and signalled"
            } else {
                "your other processes can be seen"
            };
            add(Barrier::Processes, "supervisor and Landlock", Some(gap));
        }
    }
    add(Barrier::Privileges, "no capabilities, no new privileges", None);
    add(Barrier::SystemCalls, "seccomp", None);
    let (by, gap) = limits::process_limit(backend);
    add(Barrier::ProcessLimit, by, gap);
    barriers
}

/// Landlock knows no exceptions inside writable directories.
const PROTECTED_GAP: &str =
    "nothing can be created, deleted or renamed directly in a directory that contains a protected path";
