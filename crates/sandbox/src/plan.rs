//! How a command is to be confined, as the processes between the engine and the command are told.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::policy::{ProtectedPath, ResourceLimits};
use crate::raw_text;

/// How a command is to be confined: the policy as far as other processes need it, and what was found to work here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConfinementPlan {
    pub(crate) backend: Backend,
    pub(crate) files: FileAccess,
    pub(crate) network: NetworkReach,
    pub(crate) unix_sockets: bool,
    pub(crate) limits: ResourceLimits,
}

impl ConfinementPlan {
    /// Whether nothing but Landlock keeps a command from sockets that have a name and no file: they belong to a network.
    pub(crate) fn shares_abstract_sockets(&self) -> bool {
        self.unix_sockets && self.network == NetworkReach::Open
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileAccess {
    #[serde(with = "raw_text")]
    pub(crate) writable: Vec<PathBuf>,
    #[serde(with = "raw_text")]
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) protected: Vec<ProtectedPath>,
    #[serde(with = "raw_text")]
    pub(crate) hidden: Vec<PathBuf>,
    #[serde(with = "raw_text")]
    pub(crate) temp: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Backend {
    Bubblewrap(Bubblewrap),
    Landlock(Landlock),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bubblewrap {
    #[serde(with = "raw_text")]
    pub(crate) program: PathBuf,
    /// Whether it can make a user namespace. Root can do without.
    pub(crate) user_namespace: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Landlock {
    /// The version of the kernel's interface.
    pub(crate) version: u32,
    /// Whether protected paths hold inside writable directories.
    pub(crate) exceptions: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NetworkReach {
    Off,
    Proxied,
    Open,
}

/// What a process inside the sandbox is told: what to run, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConfinedRun {
    pub(crate) plan: ConfinementPlan,
    #[serde(with = "raw_text")]
    pub(crate) cwd: PathBuf,
    #[serde(with = "raw_text")]
    pub(crate) environment: Vec<(OsString, OsString)>,
}
