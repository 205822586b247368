//! The system calls that no command may use, as filters for the kernel.
//!
//! Everything is allowed but what is listed: programs of all kinds run here.
//! Listed is what leads out (other processes, mounts, namespaces, keys, raw
//! sockets), what reaches around the other walls (`io_uring` opens sockets
//! that no filter sees), and what only an administrator has a use for.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::Tier;

/// Which sockets a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sockets {
    /// Connected pairs of local stream sockets only.
    Pairs,
    /// Local sockets.
    Local,
    /// Those of the Internet, but for raw ones.
    Internet,
    /// These and local ones.
    Network,
}

/// Refused whatever their arguments are.
const REFUSED: &[i64] = &[
    // Other processes: their memory, their descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Work for the kernel that no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Programs in the kernel, its counters, faults in user space.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    // Keys, which belong to the user and not to the process.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Another view of the files.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Input for the terminal of somebody else, by the request of an `ioctl`.
const TERMINAL_INPUT: &[u64] = &[0x5412, 0x541C];

/// New namespaces: each of these flags of `clone` and `unshare`.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The old way to raw packets.
const SOCK_PACKET: i32 = 10;

/// The kind of a socket, below the flags of its type.
const SOCKET_KIND: u64 = 0xf;

/// Calls that send a signal to the process in their first argument.
const SIGNALS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_open,
];

/// Calls that set the order in which the thread in their first argument runs.
const ORDERS: &[i64] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The same for what their second argument says of their first: a process, a
/// group, everything of a user; and the numbers for these.
const PRIORITIES: &[(i64, [u64; 3])] = &[
    (libc::SYS_setpriority, [0, 1, 2]),
    (libc::SYS_ioprio_set, [1, 2, 3]),
];

/// Memory, messages and locks that belong to the user, not to a process: they reach
/// other programs of his and outlive a command.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, in the order in which they are put on.
///
/// # Errors
/// When the machine is of a kind that has none.
pub(super) fn filters(sockets: Sockets, tier: Tier) -> Result<Vec<BpfProgram>, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
        format!(
            "there are no filters for {} machines",
            std::env::consts::ARCH
        )
    })?;
    let mut refused = rules(sockets).map_err(|error| error.to_string())?;
    if matches!(sockets, Sockets::Pairs | Sockets::Internet) {
        only_stream_pairs(&mut refused).map_err(|error| error.to_string())?;
    }
    // Its flags are out of a filter's sight. The C library goes on with `clone`.
    let mut unknown = Rules::from([(libc::SYS_clone3, Vec::new())]);
    if tier == Tier::Landlock {
        spare_the_runner(&mut refused).map_err(|error| error.to_string())?;
        refused.extend(SHARED.iter().map(|call| (*call, Vec::new())));
        // A directory of `/proc` is a handle to its process as well, and whose it
        // is cannot be seen. Programs go on with `kill`.
        unknown.insert(libc::SYS_pidfd_send_signal, Vec::new());
    }
    let program = |rules, errno: i32| {
        let errno = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, errno, arch)
            .and_then(BpfProgram::try_from)
            .map_err(|error| error.to_string())
    };
    let mut filters = vec![
        program(refused, libc::EPERM)?,
        program(unknown, libc::ENOSYS)?,
    ];
    if arch == TargetArch::x86_64 {
        filters.push(other_numbers());
    }
    Ok(filters)
}

fn rules(sockets: Sockets) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut refuse = |call: i64, when: Vec<SeccompCondition>| {
        rules.entry(call).or_default().push(SeccompRule::new(when)?);
        Ok::<_, seccompiler::BackendError>(())
    };
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        for call in [libc::SYS_clone, libc::SYS_unshare] {
            refuse(call, vec![masked(0, flag, flag)?])?;
        }
    }
    for request in TERMINAL_INPUT {
        refuse(libc::SYS_ioctl, vec![equal(1, *request)?])?;
    }
    // Another personality turns protections off; asking for it is harmless.
    let asked = u64::from(u32::MAX);
    refuse(libc::SYS_personality, vec![other(0, 0)?, other(0, asked)?])?;
    // Limits of another process, such as the runner's.
    refuse(libc::SYS_prlimit64, vec![other(0, 0)?])?;
    let (kind, character, block) = (
        u64::from(libc::S_IFMT),
        u64::from(libc::S_IFCHR),
        u64::from(libc::S_IFBLK),
    );
    let set_user = u64::from(libc::S_ISUID);
    for device in [character, block] {
        refuse(libc::SYS_mknodat, vec![masked(2, kind, device)?])?;
        #[cfg(target_arch = "x86_64")]
        refuse(libc::SYS_mknod, vec![masked(1, kind, device)?])?;
    }
    // A program that runs as its owner outlives the sandbox.
    refuse(libc::SYS_fchmod, vec![masked(1, set_user, set_user)?])?;
    refuse(libc::SYS_fchmodat, vec![masked(2, set_user, set_user)?])?;
    refuse(SYS_FCHMODAT2, vec![masked(2, set_user, set_user)?])?;
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_chmod, vec![masked(1, set_user, set_user)?])?;
    let (local, internet, internet6) = (
        libc::AF_UNIX.unsigned_abs().into(),
        libc::AF_INET.unsigned_abs().into(),
        libc::AF_INET6.unsigned_abs().into(),
    );
    refuse(libc::SYS_socketpair, vec![other(0, local)?])?;
    match sockets {
        Sockets::Pairs => {
            rules.insert(libc::SYS_socket, Vec::new());
        }
        Sockets::Local => refuse(libc::SYS_socket, vec![other(0, local)?])?,
        Sockets::Internet | Sockets::Network => {
            // Netlink tells programs of the interfaces that there are.
            let netlink = libc::AF_NETLINK.unsigned_abs().into();
            let mut known = vec![internet, internet6, netlink];
            known.extend((sockets == Sockets::Network).then_some(local));
            let unknown = known.into_iter().map(|one| other(0, one));
            refuse(libc::SYS_socket, unknown.collect::<Result<_, _>>()?)?;
            for family in [internet, internet6] {
                for raw in [libc::SOCK_RAW, SOCK_PACKET] {
                    let raw = masked(1, SOCKET_KIND, u64::from(raw.unsigned_abs()))?;
                    refuse(libc::SYS_socket, vec![equal(0, family)?, raw])?;
                }
            }
        }
    }
    Ok(rules)
}

/// Refuses pairs of datagram sockets: one of them reaches every such socket by its
/// path. A raw local socket is one of those too.
fn only_stream_pairs(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        let kind = masked(1, SOCKET_KIND, u64::from(kind.unsigned_abs()))?;
        let rule = SeccompRule::new(vec![kind])?;
        rules.entry(libc::SYS_socketpair).or_default().push(rule);
    }
    Ok(())
}

/// Where processes see each other, a kernel before 6.12 would let a command end
/// the runner, or everything of its user.
fn spare_the_runner(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let runner = std::process::id();
    let group = own_group();
    let mut all = vec![runner, runner.wrapping_neg(), u32::MAX];
    all.extend(group.map(u32::wrapping_neg));
    for call in SIGNALS {
        for target in &all {
            let rule = SeccompRule::new(vec![equal(0, (*target).into())?])?;
            rules.entry(*call).or_default().push(rule);
        }
    }
    let mut refuse = |call: i64, when: Vec<SeccompCondition>| {
        rules.entry(call).or_default().push(SeccompRule::new(when)?);
        Ok::<_, seccompiler::BackendError>(())
    };
    for call in ORDERS {
        refuse(*call, vec![equal(0, runner.into())?])?;
    }
    for (call, [process, of_group, of_user]) in PRIORITIES {
        refuse(*call, vec![equal(0, *process)?, equal(1, runner.into())?])?;
        if let Some(group) = group {
            refuse(*call, vec![equal(0, *of_group)?, equal(1, group.into())?])?;
        }
        refuse(*call, vec![equal(0, *of_user)?])?;
    }
    Ok(())
}

/// The process group of the runner; none where that has no number here, because it
/// began outside of the namespace of processes.
fn own_group() -> Option<u32> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may hold anything: state, parent, group.
    let (_, rest) = stat.rsplit_once(')')?;
    let group: u32 = rest.split_whitespace().nth(2)?.parse().ok()?;
    (group > 0).then_some(group)
}

/// `fchmodat2`, the same on all machines.
const SYS_FCHMODAT2: i64 = 452;

fn masked(
    argument: u8,
    mask: u64,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value)
}

fn equal(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn other(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    condition(argument, SeccompCmpOp::Ne, value)
}

/// The kernel looks at the lower half of all of these arguments only.
fn condition(
    argument: u8,
    operation: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}

/// The same calls have other numbers in the x32 interface, which the filters
/// above would not know: that interface is not there.
fn other_numbers() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let statement = |code, k| sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    };
    vec![
        statement(LOAD_NUMBER, 0),
        sock_filter {
            code: JUMP_IF_AT_LEAST,
            jt: 0,
            jf: 1,
            k: X32,
        },
        statement(RETURN, ERRNO | libc::ENOSYS.unsigned_abs()),
        statement(RETURN, ALLOW),
    ]
}

/// A filter as the kernel's own bytes, for a program that reads it.
pub(super) fn bytes(filter: &BpfProgram) -> Vec<u8> {
    filter
        .iter()
        .flat_map(|one| {
            let mut bytes = [0; 8];
            let (code, rest) = bytes.split_at_mut(2);
            code.copy_from_slice(&one.code.to_ne_bytes());
            let (jumps, value) = rest.split_at_mut(2);
            jumps.copy_from_slice(&[one.jt, one.jf]);
            value.copy_from_slice(&one.k.to_ne_bytes());
            bytes
        })
        .collect()
}
