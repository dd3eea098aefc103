//! What a sandbox has to do with a failure, for whoever reads the output of a command.

use crate::plan::NetworkReach;
use crate::sandbox::{Barrier, Sandbox};

/// Only the end of an output is looked at: a command that fails says why at last.
const BYTES_MAX: usize = 16 * 1024;

/// What programs say when they may not write.
const WRITING: &[&str] = &["Read-only file system", "EROFS", "Device or resource busy", "EBUSY"];
/// What they may also say, for many other reasons too.
const DENIED: &[&str] = &["Permission denied", "EACCES", "Operation not permitted", "EPERM"];
const NETWORK: &[&str] = &[
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
    "failed to lookup address information",
    "Immediate connect fail",
];
const SOCKETS: &[&str] =
    &["socket: Operation not permitted", "/dev/tcp", "/dev/udp", "Couldn't connect to server"];
const PROCESSES: &[&str] = &["fork: retry", "Resource temporarily unavailable", "EAGAIN"];

impl Sandbox {
    /// What the sandbox may have to do with a command that failed and printed this, and what it allows; `None` if nothing
    /// points to it.
    #[must_use]
    pub fn explain(&self, output: &str) -> Option<String> {
        let start = output.len().saturating_sub(BYTES_MAX);
        let end = (start..=output.len()).find_map(|at| output.get(at..)).unwrap_or_default();
        let says = |signs: &[&str]| signs.iter().any(|sign| end.contains(sign));
        let reach = self.plan().network;
        let is_offline = reach == NetworkReach::Off && (says(NETWORK) || says(SOCKETS));
        let barriers: &[Barrier] = if is_offline || (reach == NetworkReach::Proxied && says(NETWORK)) {
            &[Barrier::Network]
        } else if says(WRITING) || says(DENIED) {
            &[Barrier::Writing, Barrier::Protected, Barrier::Hidden]
        } else if says(PROCESSES) {
            &[Barrier::ProcessLimit]
        } else {
            &[]
        };
        let limits = self.limits_of(barriers);
        (!limits.is_empty()).then(|| format!("The command runs in a sandbox. {limits}"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::network::{Arbiter, Network, NetworkVerdict};
    use crate::policy::SandboxPolicy;

    fn check(network: &Network, output: &str, expected: Option<&str>) {
        let mut policy = SandboxPolicy::new(vec!["/work".into()], Path::new("/home/me"));
        policy.network = network.clone();
        let Ok(sandbox) = Sandbox::prepare(&policy) else { return };
        let found = sandbox.explain(output);
        match expected {
            Some(part) => {
                assert!(found.as_ref().is_some_and(|text| text.contains(part)), "{output}: {found:?}");
            }
            None => assert_eq!(found, None, "{output}"),
        }
    }

    #[test]
    fn only_what_points_to_the_sandbox_is_explained() {
        let proxied = Network::Proxied(Arbiter::new(|_| async { NetworkVerdict::Allow }));
        check(&Network::Off, "all is well", None);
        check(&Network::Off, "", None);
        check(&Network::Off, "touch: /etc/x: Read-only file system", Some("only in /work and $TMPDIR."));
        check(&Network::Off, "curl: (6) Could not resolve host: a", Some("There is no network"));
        check(&Network::Open, "curl: (6) Could not resolve host: a", None);
        let limited =
            Sandbox::prepare(&SandboxPolicy::new(Vec::new(), Path::new("/"))).is_ok_and(|sandbox| {
                sandbox
                    .active_barriers()
                    .iter()
                    .any(|active| active.barrier == Barrier::ProcessLimit && active.by != "none")
            });
        check(&Network::Open, "bash: fork: retry: no", limited.then_some("At most 4096 processes"));
        check(&Network::Off, &format!("Read-only file system{}", "ü".repeat(BYTES_MAX)), None);
        if Sandbox::prepare(&SandboxPolicy {
            network: proxied.clone(),
            ..SandboxPolicy::new(Vec::new(), Path::new("/"))
        })
        .is_ok_and(|sandbox| sandbox.backend() == "bubblewrap")
        {
            check(&proxied, "curl: (6) Could not resolve host: a", Some("HTTP_PROXY"));
        }
    }
}
