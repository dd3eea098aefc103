//! What barriers keep a command from, in words: all that a model reads about its sandbox.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::cgroup::ControlGroup;
use crate::landlock_rules;
use crate::launch_plan::{Backend, ConfinementPlan, FileAccess, NetworkReach};
use crate::sandbox::{ActiveBarrier, Barrier, Sandbox};

/// So many directories are named in one sentence.
const NAMED_MAX: usize = 6;

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
    /// What commands cannot do in this sandbox, in sentences.
    pub fn limits(&self) -> String {
        self.limits_of(&[Barrier::Writing, Barrier::Protected, Barrier::Hidden, Barrier::Network])
    }

    /// How the sandbox may explain a failed command with this output, and what it allows; else `None`.
    pub fn explain(&self, output: &str) -> Option<String> {
        let start = output.len().saturating_sub(BYTES_MAX);
        let end = (start..=output.len()).find_map(|at| output.get(at..)).unwrap_or_default();
        let says = |signs: &[&str]| signs.iter().any(|sign| end.contains(sign));
        let reach = self.0.plan.network;
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

    /// What these barriers keep a command from; empty if they keep it from nothing.
    fn limits_of(&self, wanted: &[Barrier]) -> String {
        let active = self.active_barriers().iter().filter(|active| wanted.contains(&active.barrier));
        active.filter_map(|ActiveBarrier { limit, .. }| limit.as_deref()).collect::<Vec<_>>().join(" ")
    }
}

/// What a barrier keeps a command from.
pub(crate) fn limit(barrier: Barrier, plan: &ConfinementPlan) -> Option<String> {
    let files = &plan.files;
    match barrier {
        Barrier::Writing => Some(format!("Commands can write only in {}.", writable(files))),
        Barrier::Protected => protected_sentence(plan),
        Barrier::Hidden if files.hidden.is_empty() => None,
        Barrier::Hidden => Some("Credentials and other hidden files cannot be read.".to_owned()),
        Barrier::Network => match plan.network {
            NetworkReach::Off => Some("There is no network, not even on this machine.".to_owned()),
            NetworkReach::Proxied => Some(
                "Only allowed hosts can be reached, through the proxy that HTTP_PROXY and HTTPS_PROXY name."
                    .to_owned(),
            ),
            NetworkReach::Open => None,
        },
        Barrier::ProcessLimit => match process_limit(&plan.backend) {
            (NO_LIMIT, _) => None,
            _ => Some(format!("At most {} processes can run at a time.", plan.limits.processes)),
        },
        Barrier::Sockets | Barrier::Processes | Barrier::Privileges | Barrier::SystemCalls => None,
    }
}

/// The writable places without those inside of others. The name of the temporary directory is another one in each session.
fn writable(files: &FileAccess) -> String {
    let is_inside =
        |place: &PathBuf| files.writable.iter().any(|other| other != place && place.starts_with(other));
    let places: BTreeSet<&PathBuf> = files.writable.iter().filter(|place| !is_inside(place)).collect();
    let names = places.iter().map(|place| place.display().to_string());
    list_names(names.chain(["$TMPDIR".to_owned()]).collect())
}

fn protected_sentence(plan: &ConfinementPlan) -> Option<String> {
    let files = &plan.files;
    let stay = "Protected files in there cannot be changed: git hooks and configuration, settings of editors and agents, \
                shell start-up files.";
    let stay = (!files.protected.is_empty()).then(|| stay.to_owned());
    let Backend::Landlock(_) = &plan.backend else { return stay };
    let in_part = landlock_rules::opened_in_part(files);
    if in_part.is_empty() {
        return stay;
    }
    let is_git = |directory: &PathBuf| directory.file_name().is_some_and(|name| name == ".git");
    let git = if in_part.iter().any(is_git) { " Git can read and not commit." } else { "" };
    let names = in_part.iter().map(|directory: &PathBuf| Path::display(directory).to_string()).collect();
    let closed = format!(
        "Nothing can be created, deleted or renamed directly in {}; files there can be changed in place, and other \
         directories in them are open.{git}",
        list_names(names)
    );
    Some(stay.into_iter().chain([closed]).collect::<Vec<_>>().join(" "))
}

/// Names in a sentence.
fn list_names(mut names: Vec<String>) -> String {
    if names.len() > NAMED_MAX {
        let more = names.len() + 1 - NAMED_MAX;
        names.truncate(NAMED_MAX - 1);
        names.push(format!("{more} more"));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// In place of what limits the number of processes.
const NO_LIMIT: &str = "none";

/// What limits the number of processes, and what that does not hold.
pub(crate) fn process_limit(backend: &Backend) -> (&'static str, Option<&'static str>) {
    let is_own = matches!(backend, Backend::Bubblewrap(bubblewrap) if bubblewrap.has_user_namespace);
    if ControlGroup::make(1).is_some() {
        ("control group", None)
    } else if rustix::process::getuid().is_root() {
        (NO_LIMIT, Some("root has no limit without writable control groups"))
    } else if is_own {
        ("resource limit of the user namespace", None)
    } else {
        ("resource limit", Some("counts all processes of the user"))
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
