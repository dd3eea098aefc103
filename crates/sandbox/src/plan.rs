//! How a command is to be confined, as the processes between the engine and the command are told.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::policy::{Limits, Protected, StandIn};
use crate::wire::{wire_enum, wire_struct};

/// How a command is to be confined: the policy as far as other processes need it, and what was found to work here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) backend: Backend,
    pub(crate) files: Files,
    pub(crate) network: Reach,
    pub(crate) unix_sockets: bool,
    pub(crate) limits: Limits,
}

impl Plan {
    /// Whether nothing but Landlock keeps a command from sockets that have a name and no file: they belong to a network.
    pub(crate) fn shares_abstract_sockets(&self) -> bool {
        self.unix_sockets && self.network == Reach::Open
    }
}

/// What is done about which paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) protected: Vec<Protected>,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) temp: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Bubblewrap(Bubblewrap),
    Landlock(Landlock),
}

/// What is known about `bwrap` here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bubblewrap {
    pub(crate) program: PathBuf,
    /// Whether it can make a user namespace. Root can do without.
    pub(crate) user_namespace: bool,
}

/// What is known about Landlock here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Landlock {
    /// The version of the kernel's interface.
    pub(crate) version: u32,
    /// Whether protected paths hold inside writable directories.
    pub(crate) exceptions: bool,
}

/// What of the network can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Off,
    Proxied,
    Open,
}

/// What a process inside the sandbox is told: what to run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Confined {
    pub(crate) plan: Plan,
    pub(crate) cwd: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

wire_struct!(Plan { backend, files, network, unix_sockets, limits });
wire_struct!(Files { writable, readable, protected, hidden, temp });
wire_enum!(Backend { 0 => Bubblewrap(bubblewrap), 1 => Landlock(landlock) });
wire_struct!(Bubblewrap { program, user_namespace });
wire_struct!(Landlock { version, exceptions });
wire_enum!(Reach { 0 => Off, 1 => Proxied, 2 => Open });
wire_struct!(Confined { plan, cwd, environment });
wire_struct!(Limits { processes, open_files, file_bytes });
wire_struct!(Protected { path, stand_in });
wire_enum!(StandIn { 0 => Directory, 1 => Pointer });
