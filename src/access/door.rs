//! Opens what was judged and nothing else: no symbolic link is followed on the
//! way to a real path, so that a directory swapped for a link between the
//! decision and the use leads nowhere.

use std::fs::File;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens the real path `real`; the flags against links and inheritance are added.
/// On kernels without `openat2` only its last component is kept from being a link.
///
/// # Errors
/// The kernel's; `LOOP` when a part of the path is a link by now.
pub fn open_judged(real: &Path, flags: OFlags) -> Result<File, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = match rustix::fs::openat2(CWD, real, flags, Mode::empty(), no_links) {
        // The kernel is old, or a filter of system calls does not know it.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(real, flags, Mode::empty()),
        opened => opened,
    };
    opened.map(File::from)
}
