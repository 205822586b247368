//! This process keeps to itself what it knows, and the files that it was started
//! with.

use std::fs;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use rustix::process::{DumpableBehavior, Resource, Rlimit};

/// Closes this process to others of the same user, which every command is: its
/// environment and memory hold keys. They can no longer be read through `/proc`
/// or traced, and a crash leaves no core file, of its children neither. Commands get no descriptor that this process happened to
/// be started with.
///
/// Processes with `CAP_SYS_PTRACE`, `CAP_SYS_ADMIN` or `CAP_PERFMON` still can:
/// those of root outside of containers, unless a sandbox takes these away.
/// Called once at start; afterwards this process cannot write its own
/// `/proc/self/uid_map`.
pub fn harden() {
    // A kernel that refuses has no such attribute, and nothing else would help.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = rustix::process::setrlimit(Resource::Core, none);
    let descriptors = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let numbers = descriptors.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|number: &i32| *number > 2) {
        // The directory that is being read is closed by the time.
        let _ = fcntl(number, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
    }
}
