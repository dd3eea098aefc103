//! What a confined command may reach, as plain data.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::network::Network;
use crate::raw_text;

/// What a confined command may reach. Everything else of the file system can be read and not be written. All paths are
/// absolute. Of two that contradict each other the longer one counts, of two equal ones the stricter.
#[derive(Clone, Debug)]
pub struct SandboxPolicy {
    /// Directories and files that can be written. One that does not exist is left out.
    pub writable: Vec<PathBuf>,
    /// What can only be read, inside a writable directory or inside a hidden one.
    pub readable: Vec<PathBuf>,
    /// What can only be read and, where it does not exist, not be made.
    pub protected: Vec<ProtectedPath>,
    /// What can be neither read nor written; see [`credential_stores`].
    pub hidden: Vec<PathBuf>,
    /// What of the network can be reached.
    pub network: Network,
    /// Whether Unix sockets can be made, beside connected pairs. Known ways out are hidden all the same.
    pub can_make_unix_sockets: bool,
    /// The directory that `TMPDIR` names. Without one the sandbox makes its own and removes it at its end.
    pub temp: Option<PathBuf>,
    /// How much a command may use.
    pub limits: ResourceLimits,
    /// Which way to confine is taken.
    pub backend: BackendChoice,
    /// Where `bwrap` is, if not in one of the usual places.
    pub bwrap: Option<PathBuf>,
}

impl SandboxPolicy {
    /// Only `writable` and temporary files can be written, no network, and credentials in `home` are hidden.
    pub fn new(writable: Vec<PathBuf>, home: &Path) -> Self {
        Self {
            writable,
            readable: Vec::new(),
            protected: Vec::new(),
            hidden: credential_stores(home).into_iter().chain(SYSTEM.map(PathBuf::from)).collect(),
            network: Network::Off,
            can_make_unix_sockets: false,
            temp: None,
            limits: ResourceLimits::default(),
            backend: BackendChoice::Best,
            bwrap: None,
        }
    }
}

/// Something inside a writable directory that cannot be changed, made, moved or removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProtectedPath {
    /// Where it is, or would be.
    #[serde(with = "raw_text")]
    pub path: PathBuf,
    /// What stands in for it where it is missing, while a command runs.
    pub stand_in: StandIn,
}

/// What stands in for something that is missing. It can be seen inside and outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StandIn {
    /// An empty directory: no file can be made or read in its place, and git does not see it.
    Directory,
    /// A file that names the directory it is in, for what is read wherever it exists.
    Pointer,
}

impl ProtectedPath {
    /// A protected file or directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), stand_in: StandIn::Directory }
    }

    /// A protected file that names a directory.
    pub fn pointer(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), stand_in: StandIn::Pointer }
    }
}

/// How much a command may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Processes and threads at a time.
    pub processes: u32,
    /// Open files of one process.
    pub open_files: u64,
    /// Bytes of one file that is written.
    pub file_bytes: Option<u64>,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self { processes: 4096, open_files: 65_536, file_bytes: None }
    }
}

/// Which way to confine is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendChoice {
    /// The stronger one that works here.
    Best,
    /// Namespaces made by `bwrap`, or none at all.
    Bubblewrap,
    /// Landlock, or none at all.
    Landlock,
}

/// Where programs keep what lets others in: below the home directory.
const CREDENTIALS: &[&[&str]] = &[
    // Keys, and clouds.
    &[".ssh", ".gnupg", ".pki", ".aws", ".azure", ".kube", ".docker/config.json"],
    &[".config/containers/auth.json", ".config/gcloud", ".config/doctl", ".config/heroku", ".config/rclone"],
    &[".config/op", ".config/sops", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".vault-token"],
    &[".pgpass", ".my.cnf"],
    // Repositories and packages.
    &[".config/gh", ".config/hub", ".config/glab-cli", ".config/git/credentials", ".git-credentials"],
    &[".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml"],
    &[".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties"],
    // Keyrings.
    &[".password-store", ".local/share/keyrings", ".config/keepassxc", ".local/share/kwalletd"],
    &[".local/share/kwalletd5", ".local/share/kwalletd6"],
    // Browsers and messengers.
    &[".mozilla", ".thunderbird", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium"],
    &[".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", "snap/firefox"],
    &["snap/chromium", ".var/app/org.mozilla.firefox", ".var/app/com.google.Chrome"],
    &[".var/app/org.chromium.Chromium", ".config/Signal", ".config/Slack"],
    // Our own.
    &[".config/anthropic", ".config/windlass", ".windlass", ".claude", ".claude.json"],
];

/// Where the system keeps passwords, and who may act for whom. Root could read them even without capabilities.
const SYSTEM: [&str; 3] = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers.d"];

/// Places below a home directory that hold credentials: keys, tokens, keyrings, browser profiles, ours.
pub fn credential_stores(home: &Path) -> Vec<PathBuf> {
    CREDENTIALS.iter().copied().flatten().map(|name| home.join(name)).collect()
}
