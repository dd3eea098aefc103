//! The system calls refused to a confined command: those that reach into other processes, change mounts, make
//! namespaces, talk to parts of the kernel that no ordinary program needs, or open a way out of the sandbox. A filter
//! sees numbers only, never what a pointer points to.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use crate::launch_plan::{ConfinementPlan, NetworkReach};

/// Refused with "not permitted".
const REFUSED: &[&[libc::c_long]] = &[
    // Other processes.
    &[libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_process_madvise],
    &[libc::SYS_pidfd_getfd, libc::SYS_kcmp],
    // Parts of the kernel that have often been a way in.
    &[libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_vmsplice],
    &[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key],
    &[libc::SYS_fanotify_init, libc::SYS_open_by_handle_at],
    // What is mounted.
    &[libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount],
    &[libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick, libc::SYS_mount_setattr],
    &[libc::SYS_open_tree, OPEN_TREE_ATTR, libc::SYS_swapon, libc::SYS_swapoff],
    &[libc::SYS_quotactl, QUOTACTL_FD],
    // The machine.
    &[libc::SYS_kexec_load, libc::SYS_kexec_file_load, libc::SYS_reboot, libc::SYS_acct, libc::SYS_syslog],
    &[libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module, libc::SYS_setns],
    &[libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_sethostname, libc::SYS_setdomainname],
    #[cfg(target_arch = "x86_64")]
    &[libc::SYS_iopl, libc::SYS_ioperm],
];

/// Numbers that are the same on all machines and that have no name in `libc` everywhere.
const OPEN_TREE_ATTR: libc::c_long = 467;
const QUOTACTL_FD: libc::c_long = 443;

/// Not there: programs then do without. What `clone3` is asked for stands behind a pointer.
const MISSING: &[libc::c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Each of these flags makes a namespace.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
/// As `unshare` knows it; for `clone` the same bits are the signal of a child's end.
const NEW_TIME: libc::c_int = 0x80;

/// What writes into a terminal as if it had been typed.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// The lower bits of a socket's type, without the flags beside it.
const TYPE_MASK: u64 = 0xf;

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;
type Result<T> = std::result::Result<T, seccompiler::Error>;

/// Applies the filters to this process and what it starts, for good.
pub(crate) fn apply(plan: &ConfinementPlan) -> Result<()> {
    for program in programs(plan)? {
        apply_filter(&program)?;
    }
    Ok(())
}

fn programs(plan: &ConfinementPlan) -> Result<Vec<BpfProgram>> {
    let mut refused: SyscallRules =
        REFUSED.iter().copied().flatten().map(|&call| (call, Vec::new())).collect();
    let typing = TYPING.iter().map(|&code| one(1, SeccompCmpOp::Eq, code));
    refused.insert(libc::SYS_ioctl, typing.collect::<Result<_>>()?);
    let namespace = |&flag: &libc::c_int| one(0, SeccompCmpOp::MaskedEq(number(flag)), number(flag));
    refused.insert(libc::SYS_clone, NAMESPACES.iter().map(namespace).collect::<Result<_>>()?);
    let unshared = NAMESPACES.iter().chain([&NEW_TIME]).map(namespace);
    refused.insert(libc::SYS_unshare, unshared.collect::<Result<_>>()?);
    refused.insert(libc::SYS_socket, sockets(plan)?);
    refused.insert(libc::SYS_socketpair, pairs()?);
    let missing: SyscallRules = MISSING.iter().map(|&call| (call, Vec::new())).collect();
    Ok(vec![program(missing, libc::ENOSYS)?, program(refused, libc::EPERM)?])
}

/// Which sockets cannot be made. No rule at all means: none.
fn sockets(plan: &ConfinementPlan) -> Result<Vec<SeccompRule>> {
    let mut families = Vec::new();
    if plan.network != NetworkReach::Off {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
    }
    if plan.can_make_unix_sockets {
        families.push(libc::AF_UNIX);
    }
    if families.is_empty() {
        return Ok(Vec::new());
    }
    let others =
        families.into_iter().map(|family| is(0, SeccompCmpOp::Ne, number(family))).collect::<Result<_>>()?;
    // Of what can be asked about the kernel only the network's own tables.
    let netlink = vec![
        is(0, SeccompCmpOp::Eq, number(libc::AF_NETLINK))?,
        is(2, SeccompCmpOp::Ne, number(libc::NETLINK_ROUTE))?,
    ];
    Ok(vec![SeccompRule::new(others)?, SeccompRule::new(netlink)?])
}

/// A pair is connected for good, unless it is one for single messages, which can be sent elsewhere too.
fn pairs() -> Result<Vec<SeccompRule>> {
    let kind = |kind| is(1, SeccompCmpOp::MaskedEq(TYPE_MASK), number(kind));
    Ok(vec![
        one(0, SeccompCmpOp::Ne, number(libc::AF_UNIX))?,
        SeccompRule::new(vec![kind(libc::SOCK_DGRAM)?])?,
        SeccompRule::new(vec![kind(libc::SOCK_RAW)?])?,
    ])
}

fn number(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

fn is(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

fn one(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule> {
    Ok(SeccompRule::new(vec![is(argument, operator, value)?])?)
}

/// Refuses what the rules name with this error. Calls of another kind of machine end the process.
fn program(rules: SyscallRules, errno: libc::c_int) -> Result<BpfProgram> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let filter: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine)?.try_into()?;
    Ok(without_x32(filter))
}

/// On x86-64, the same calls have a second set of numbers, which no rule would match.
fn without_x32(filter: BpfProgram) -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    const KILL: u32 = 0x8000_0000;
    if cfg!(not(target_arch = "x86_64")) {
        return filter;
    }
    let statement = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    // Load the number; if it is one of those, end the process.
    let check = [statement(0x20, 0, 0, 0), statement(0x35, 0, 1, X32), statement(0x06, 0, 0, KILL)];
    check.into_iter().chain(filter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch_plan::{Backend, FileAccess, Landlock};
    use crate::policy::ResourceLimits;

    #[test]
    fn every_plan_has_a_filter() {
        for network in [NetworkReach::Off, NetworkReach::Proxied, NetworkReach::Open] {
            for can_make_unix_sockets in [false, true] {
                let files = FileAccess {
                    writable: Vec::new(),
                    readable: Vec::new(),
                    protected: Vec::new(),
                    hidden: Vec::new(),
                    temp: "/tmp".into(),
                };
                let backend = Backend::Landlock(Landlock { version: 3 });
                let plan = ConfinementPlan {
                    backend,
                    files,
                    network,
                    can_make_unix_sockets,
                    limits: ResourceLimits::default(),
                };
                let programs = programs(&plan).unwrap();
                assert!(programs.iter().all(|program| (4..4096).contains(&program.len())));
            }
        }
    }
}
