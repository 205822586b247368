//! What of this process its commands could get hold of: its memory, and files
//! that it was started with.

use std::fs;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use rustix::process::{DumpableBehavior, Resource, Rlimit};

/// Keeps this process to itself. Called once at start, by a program that owns
/// its process: from then on neither it nor its commands leave core dumps,
/// nobody but an administrator of the machine reads its memory and environment,
/// and commands get no descriptor that the program happened to be started with.
pub fn keep_to_itself() {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Neither can fail for want of a right.
    let _ = rustix::process::setrlimit(Resource::Core, none);
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
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
