//! Sockets of other programs that would lead out of a sandbox.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Where daemons that do things for others listen. Both spellings of `/run` exist.
const DAEMONS: &[&[&str]] = &[
    &["/run/docker.sock", "/run/docker", "/run/containerd", "/run/podman", "/run/crio", "/run/buildkit"],
    &["/run/k3s", "/run/libvirt", "/run/lxd", "/run/incus", "/var/lib/lxd/unix.socket"],
    &["/var/snap/lxd/common/lxd/unix.socket", "/run/snapd.socket", "/run/snapd-snap.socket", "/run/user"],
    &["/run/dbus", "/run/gpg-agent", "/run/pcscd", "/run/systemd/private"],
    &["/run/systemd/io.system.ManagedOOM", "/run/systemd/userdb", "/tmp/.X11-unix", "/tmp/.ICE-unix"],
    &["/tmp/.font-unix"],
];

/// Variables whose value is the path of a socket or of what opens one.
const NAMED: &[&str] = &["SSH_AUTH_SOCK", "XAUTHORITY", "XDG_RUNTIME_DIR"];
/// Variables whose value contains such a path behind one of these words.
const ADDRESSES: &[&str] = &["DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "CONTAINER_HOST"];
const BEFORE_PATH: &[&str] = &["unix:path=", "unix://"];

/// Directories in `/tmp` in which agents put their sockets begin like this.
const AGENTS: &[&str] = &["ssh-", "gpg-", "tmux-", "com.apple.launchd"];

/// All of them that exist.
pub(crate) fn outside() -> Vec<PathBuf> {
    let daemons = DAEMONS.iter().copied().flatten().flat_map(|path| {
        let other = path.strip_prefix("/run/").map(|rest| Path::new("/var/run").join(rest));
        [Some(PathBuf::from(path)), other]
    });
    let named = NAMED.iter().map(|name| std::env::var_os(name).map(PathBuf::from));
    let addresses = ADDRESSES.iter().map(|name| std::env::var_os(name).as_ref().and_then(path_in));
    let mut found: Vec<PathBuf> = daemons
        .chain(named)
        .chain(addresses)
        .flatten()
        .chain(agents())
        .filter_map(|path| path.canonicalize().ok())
        // A variable that names all of a large place would hide too much.
        .filter(|path| path.components().count() > 2)
        .collect();
    found.sort();
    found.dedup();
    found
}

fn path_in(address: &OsString) -> Option<PathBuf> {
    let bytes = address.clone().into_vec();
    let text = String::from_utf8_lossy(&bytes);
    let rest = BEFORE_PATH.iter().find_map(|word| text.split_once(word)).map(|(_, rest)| rest)?;
    rest.split([',', ';']).next().map(PathBuf::from)
}

fn agents() -> Vec<PathBuf> {
    let list = fs::read_dir("/tmp").into_iter().flatten().flatten();
    let is_agent = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        AGENTS.iter().any(|begin| name.starts_with(begin))
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    list.filter(is_agent).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_in_an_address() {
        let check = |address: &str, expected: Option<&str>| {
            assert_eq!(path_in(&OsString::from(address)), expected.map(PathBuf::from), "{address}");
        };
        check("unix:path=/run/user/1000/bus", Some("/run/user/1000/bus"));
        check("unix:path=/run/bus,guid=1;tcp:host=a", Some("/run/bus"));
        check("unix:///var/run/docker.sock", Some("/var/run/docker.sock"));
        check("tcp://host:2375", None);
        check("unix:abstract=/tmp/dbus-x", None);
    }
}
