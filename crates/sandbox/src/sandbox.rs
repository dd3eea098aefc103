//! Which sandbox can be had here, and what it is worth.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;

use crate::confine::PROXY_PORT;
use crate::grants;
use crate::limits;
use crate::mounts::{self, Devices};
use crate::network::{Arbiter, Network};
use crate::plan::{Backend, Bubblewrap, Files, Landlock, Plan, Reach};
use crate::policy::{Choice, Exceptions, Policy};
use crate::sockets;

/// The only places where `bwrap` is looked for. A work tree must not provide it.
const BWRAP: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// Variables that name sockets outside, or programs' ways to them.
const OUTSIDE: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
    "CONTAINER_HOST",
];

/// Variables that name a proxy, here in upper case.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"];

/// A sandbox that commands can be started in. A clone is the same sandbox.
#[derive(Clone, Debug)]
pub struct Sandbox(Arc<Prepared>);

#[derive(Debug)]
struct Prepared {
    plan: Plan,
    network: Network,
    layers: Vec<ActiveLayer>,
    /// Why a better backend was passed over.
    passed_over: Option<Unavailable>,
    /// Removed when the last clone is gone, and no command in it is left.
    _temp: Option<TempDir>,
}

/// What a sandbox is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
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

/// A layer as it is in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveLayer {
    /// Which one.
    pub layer: Layer,
    /// What it is made with.
    pub by: String,
    /// What it does not hold here.
    pub gap: Option<String>,
    /// What a command cannot do because of it, in a sentence for whoever runs the command.
    pub limit: Option<String>,
}

/// Why there is no sandbox. Nothing that needs one may run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no sandbox: {missing} is missing ({why}). {advice}")]
pub struct Unavailable {
    /// What there is not.
    pub missing: String,
    /// How that was found out.
    pub why: String,
    /// What the user can do.
    pub advice: String,
}

impl Layer {
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
    pub fn prepare(policy: &Policy) -> Result<Self, Unavailable> {
        if rustix::thread::secure_computing_mode().is_err() {
            return Err(Unavailable {
                missing: "the system call filter".to_owned(),
                why: "the kernel has no seccomp".to_owned(),
                advice: "Use a kernel with CONFIG_SECCOMP_FILTER.".to_owned(),
            });
        }
        let (backend, passed_over) = match policy.backend {
            Choice::Bubblewrap => (bubblewrap(policy)?, None),
            Choice::Landlock => (landlock(policy)?, None),
            Choice::Best => match bubblewrap(policy) {
                Ok(backend) => (backend, None),
                Err(first) => match landlock(policy) {
                    Ok(backend) => (backend, Some(first)),
                    Err(second) => return Err(first.and(&second)),
                },
            },
        };
        let (temp, own_temp) = temporary(policy)?;
        let network = reach(policy, &backend);
        let files = Files {
            writable: policy.writable.clone(),
            readable: policy.readable.clone(),
            protected: policy.protected.clone(),
            hidden: policy.hidden.iter().cloned().chain(sockets::outside()).collect(),
            temp,
        };
        let plan = Plan { backend, files, network, unix_sockets: policy.unix_sockets, limits: policy.limits };
        let layers = layers(policy, &plan);
        let network = policy.network.clone();
        Ok(Self(Arc::new(Prepared { plan, network, layers, passed_over, _temp: own_temp })))
    }

    /// What the sandbox is made of, and where it has gaps.
    #[must_use]
    pub fn active_layers(&self) -> &[ActiveLayer] {
        &self.0.layers
    }

    /// Whether some layer does not hold all it should.
    #[must_use]
    pub fn is_reduced(&self) -> bool {
        self.0.layers.iter().any(|layer| layer.gap.is_some())
    }

    /// The name of the way commands are confined.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        match self.0.plan.backend {
            Backend::Bubblewrap(_) => "bubblewrap",
            Backend::Landlock(_) => "landlock",
        }
    }

    /// The directory for temporary files, as commands inside know it.
    #[must_use]
    pub fn temp(&self) -> &Path {
        &self.0.plan.files.temp
    }

    /// The whole in one line, with the gaps if there are any.
    #[must_use]
    pub fn summary(&self) -> String {
        let gap = |active: &ActiveLayer| Some(format!("{}: {}", active.layer.name(), active.gap.as_ref()?));
        let gaps: Vec<String> = self.0.layers.iter().filter_map(gap).collect();
        match gaps[..] {
            [] => format!("sandbox: {} (complete)", self.backend()),
            _ => format!("sandbox: {} (reduced: {})", self.backend(), gaps.join("; ")),
        }
    }

    /// All of this for people: one line for the whole, then one for each layer.
    #[must_use]
    pub fn report(&self) -> String {
        let state = if self.is_reduced() { "reduced" } else { "complete" };
        let mut text = format!("sandbox: {} ({state})\n", self.backend());
        for ActiveLayer { layer, by, gap, .. } in &self.0.layers {
            let gap = gap.as_ref().map_or_else(String::new, |gap| format!("; gap: {gap}"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {}: {by}{gap}", layer.name());
        }
        if let (true, Backend::Landlock(_)) = (self.is_reduced(), &self.0.plan.backend) {
            text.push_str("  for a complete sandbox, install bubblewrap and allow user namespaces\n");
        }
        if let Some(Unavailable { missing, why, .. }) = &self.0.passed_over {
            let _ = writeln!(text, "  bubblewrap cannot be used here: {missing} is missing ({why})");
        }
        text
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.0.plan
    }

    pub(crate) fn arbiter(&self) -> Option<&Arbiter> {
        match &self.0.network {
            Network::Proxied(arbiter) => Some(arbiter),
            Network::Off | Network::Open => None,
        }
    }

    /// The environment of a command as it must be inside.
    pub(crate) fn environment(&self, given: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let is_closed = self.0.plan.network != Reach::Open;
        let is_kept = |name: &OsStr| {
            let upper = name.to_string_lossy().to_ascii_uppercase();
            let is_proxy = PROXIES.contains(&upper.as_str()) || upper == "NO_PROXY";
            upper != "TMPDIR" && !OUTSIDE.contains(&upper.as_str()) && !(is_closed && is_proxy)
        };
        let mut environment: Vec<_> = given.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        environment.push(("TMPDIR".into(), self.temp().into()));
        if self.0.plan.network == Reach::Proxied {
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

impl Unavailable {
    /// Neither of two ways works.
    fn and(self, other: &Self) -> Self {
        Self {
            missing: format!("{}, and so is {}", self.missing, other.missing),
            why: format!("{}; {}", self.why, other.why),
            advice: self.advice,
        }
    }
}

fn temporary(policy: &Policy) -> Result<(PathBuf, Option<TempDir>), Unavailable> {
    if let Some(temp) = &policy.temp {
        return Ok((temp.clone(), None));
    }
    let private = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().prefix("windlass-").permissions(private).tempdir().and_then(|temp| {
        let path = temp.path().canonicalize()?;
        Ok((path, Some(temp)))
    });
    made.map_err(|error| Unavailable {
        missing: "a temporary directory".to_owned(),
        why: error.to_string(),
        advice: "Set TMPDIR to a writable directory.".to_owned(),
    })
}

fn reach(policy: &Policy, backend: &Backend) -> Reach {
    match (&policy.network, backend) {
        (Network::Open, _) => Reach::Open,
        (Network::Proxied(_), Backend::Bubblewrap(_)) => Reach::Proxied,
        // Without a network of its own there is no telling where a command goes.
        (Network::Off, _) | (Network::Proxied(_), Backend::Landlock(_)) => Reach::Off,
    }
}

fn landlock(policy: &Policy) -> Result<Backend, Unavailable> {
    let unavailable = |missing: &str, why: String, advice: &str| Unavailable {
        missing: missing.to_owned(),
        why,
        advice: advice.to_owned(),
    };
    let advice = "Use Linux 6.2 or later with Landlock enabled, or install bubblewrap.";
    let version = match grants::version() {
        Some(version) if version >= grants::VERSION_MIN => version,
        Some(version) => {
            return Err(unavailable("Landlock", format!("the kernel has only version {version}"), advice));
        }
        None => return Err(unavailable("Landlock", "the kernel does not offer it".to_owned(), advice)),
    };
    if policy.unix_sockets {
        return Err(unavailable(
            "a way to hide sockets",
            "Unix sockets are allowed, and Landlock cannot close those of other programs".to_owned(),
            "Install bubblewrap, or do not allow Unix sockets.",
        ));
    }
    Ok(Backend::Landlock(Landlock { version, exceptions: policy.exceptions == Exceptions::Enforced }))
}

fn bubblewrap(policy: &Policy) -> Result<Backend, Unavailable> {
    let program = find_bwrap(policy)?;
    let isolates_network = !matches!(policy.network, Network::Open);
    if !isolates_network && policy.unix_sockets && grants::version() < Some(grants::VERSION_SIGNALS) {
        return Err(Unavailable {
            missing: "a way to close abstract sockets".to_owned(),
            why: "the network is open, Unix sockets are allowed, and the kernel's Landlock is too old"
                .to_owned(),
            advice: "Use Linux 6.12 or later, close the network, or do not allow Unix sockets.".to_owned(),
        });
    }
    let user_namespace = probe(&program, isolates_network).map_err(|why| Unavailable {
        missing: "the right to create namespaces".to_owned(),
        why,
        advice: "Allow unprivileged user namespaces (sysctl user.max_user_namespaces and, where they exist, \
                 kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0)."
            .to_owned(),
    })?;
    Ok(Backend::Bubblewrap(Bubblewrap { program, user_namespace }))
}

fn find_bwrap(policy: &Policy) -> Result<PathBuf, Unavailable> {
    let unavailable = |why: String| Unavailable {
        missing: "bubblewrap".to_owned(),
        why,
        advice: "Install the package bubblewrap.".to_owned(),
    };
    let Some(named) = &policy.bwrap else {
        let found = BWRAP.iter().map(Path::new).find(|path| is_safe_program(path, policy));
        return found
            .map(Path::to_owned)
            .ok_or_else(|| unavailable(format!("it is not in {}", BWRAP.join(", "))));
    };
    if named.is_absolute() && is_safe_program(named, policy) {
        return Ok(named.clone());
    }
    let why = match named.metadata() {
        Err(error) => format!("sandbox.bwrapPath is {}: {error}", named.display()),
        Ok(_) => format!(
            "sandbox.bwrapPath is {}, which is not a program, or others can change it",
            named.display()
        ),
    };
    let advice = "Correct sandbox.bwrapPath, or remove it to use the installed one.".to_owned();
    Err(Unavailable { advice, ..unavailable(why) })
}

/// Whether a program is one that no confined command could have put there.
fn is_safe_program(path: &Path, policy: &Policy) -> bool {
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

/// What was found out about a program before.
type Known = (PathBuf, bool, Result<bool, String>);
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Whether `bwrap` works with a user namespace, or works at all; else what it says.
fn probe(program: &Path, isolates_network: bool) -> Result<bool, String> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |(path, network, _): &&Known| path == program && *network == isolates_network;
    if let Some((_, _, result)) = known.iter().find(same) {
        return result.clone();
    }
    let network = if isolates_network { Reach::Off } else { Reach::Open };
    let result = try_bwrap(program, network, true).map(|()| true).or_else(|error| {
        if rustix::process::geteuid().is_root() {
            try_bwrap(program, network, false).map(|()| false)
        } else {
            Err(error)
        }
    });
    known.push((program.to_owned(), isolates_network, result.clone()));
    result
}

fn try_bwrap(program: &Path, network: Reach, user_namespace: bool) -> Result<(), String> {
    let bubblewrap = Bubblewrap { program: program.to_owned(), user_namespace };
    let mut command = Command::new(program);
    command
        .args(mounts::base_arguments(&bubblewrap, network, Devices::Full))
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

fn layers(policy: &Policy, plan: &Plan) -> Vec<ActiveLayer> {
    let backend = &plan.backend;
    let mut layers = Vec::new();
    let mut add = |layer, by: &str, gap: Option<&str>| {
        let (by, gap) = (by.to_owned(), gap.map(str::to_owned));
        layers.push(ActiveLayer { layer, by, gap, limit: limits::limit(layer, plan) });
    };
    let closed = match plan.network {
        Reach::Off => "no network and no network sockets",
        Reach::Proxied => "own network, with a proxy that decides by name and address",
        Reach::Open => "open",
    };
    match backend {
        Backend::Bubblewrap(bubblewrap) => {
            add(Layer::Writing, "mount namespace", None);
            add(Layer::Protected, "mount namespace", None);
            add(Layer::Hidden, "mount namespace", None);
            add(Layer::Network, closed, None);
            add(Layer::Sockets, "mount namespace and system call filter", None);
            let user = if bubblewrap.user_namespace { ", user namespace" } else { "" };
            add(Layer::Processes, &format!("PID and IPC namespaces{user}"), None);
        }
        Backend::Landlock(landlock) => {
            let meta = "permissions, times and attributes of your files can be changed everywhere";
            add(Layer::Writing, &format!("Landlock version {}", landlock.version), Some(meta));
            add(Layer::Protected, "Landlock", Some(protected_gap(*landlock)));
            add(Layer::Hidden, "Landlock", Some("the names of hidden files can be listed"));
            let asked = matches!(policy.network, Network::Proxied(_));
            let gap = "hosts cannot be allowed by name, so the network is off";
            add(Layer::Network, closed, asked.then_some(gap));
            add(Layer::Sockets, "system call filter", None);
            let signals = landlock.version < grants::VERSION_SIGNALS;
            let gap = if signals {
                "your other processes can be seen and signalled"
            } else {
                "your other processes can be seen"
            };
            add(Layer::Processes, "supervisor and Landlock", Some(gap));
        }
    }
    add(Layer::Privileges, "no capabilities, no new privileges", None);
    add(Layer::SystemCalls, "seccomp", None);
    let (by, gap) = limits::process_limit(backend);
    add(Layer::ProcessLimit, by, gap);
    layers
}

fn protected_gap(landlock: Landlock) -> &'static str {
    if landlock.exceptions {
        "nothing can be created, deleted or renamed directly in a directory that contains a protected path"
    } else {
        "protected paths inside writable directories can be changed"
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
