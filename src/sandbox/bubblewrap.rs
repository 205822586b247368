//! The stronger tier: namespaces of the command's own, made by bubblewrap. What
//! is not allowed is not there.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use seccompiler::BpfProgram;

use crate::process::{Leader, Wrapped};

use super::exposed::{Exposed, exposed, exposed_repositories};
use super::filter;
use super::git_directory::settings;
use super::options::Network;
use super::places::{Grounds, Places};

/// Where bubblewrap is looked for: a place that only an administrator writes.
const PROGRAMS: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// What sets the kernel up. The administrator of a namespace that is one outside
/// owns these files.
const KERNEL: &[&str] = &[
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/driver",
    "/proc/fs",
    "/proc/irq",
    "/proc/mtrr",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/sys",
];

/// The command of our own program that passes on.
const FORWARD: &str = "sandbox-forward";

/// The program that makes the namespaces.
///
/// # Errors
/// In words, when it is not installed.
pub fn program() -> Result<&'static Path, String> {
    let program = PROGRAMS.iter().map(Path::new).find(|path| path.is_file());
    program.ok_or_else(|| {
        format!(
            "bubblewrap is not installed: there is no {}",
            PROGRAMS.join(" or ")
        )
    })
}

/// A command line that puts what follows it into namespaces.
#[derive(Debug)]
pub(super) struct Bubble {
    program: PathBuf,
    args: Vec<OsString>,
    filters: Vec<Vec<u8>>,
    /// What starts the command in its place; nothing where it needs no help.
    forwarder: Vec<OsString>,
}

impl Bubble {
    /// Makes the command line for these places. The proxy for listed hosts listens on
    /// `proxy`.
    ///
    /// # Errors
    /// In words, when bubblewrap is not installed, or nothing can pass on what goes
    /// to hosts.
    pub(super) fn new(
        places: &Places,
        grounds: &Grounds,
        (network, proxy): (&Network, &Path),
        filters: &[BpfProgram],
    ) -> Result<Self, String> {
        let program = program()?;
        let mut args = arguments(places, grounds, network);
        show_views(&mut args, places, grounds)?;
        let mut forwarder = Vec::new();
        if matches!(network, Network::Hosts(_)) {
            forwarder = way_out(&mut args, grounds, proxy)?;
        }
        args.one("--remount-ro", "/");
        Ok(Self {
            program: program.to_owned(),
            args: args.0,
            filters: filters.iter().map(filter::bytes).collect(),
            forwarder,
        })
    }

    /// The same with a command.
    ///
    /// # Errors
    /// When the system has no room for another pipe.
    pub(super) fn wrap(
        &self,
        command: PathBuf,
        args: Vec<OsString>,
        cwd: &Path,
    ) -> io::Result<Wrapped> {
        let mut all = self.args.clone();
        all.extend(["--chdir".into(), cwd.into()]);
        let mut handed: Vec<OwnedFd> = Vec::new();
        for filter in &self.filters {
            // A pipe holds far more than the largest filter.
            let (reader, mut writer) = io::pipe()?;
            writer.write_all(filter)?;
            all.push("--add-seccomp-fd".into());
            all.push(reader.as_raw_fd().to_string().into());
            handed.push(reader.into());
        }
        all.push("--".into());
        all.extend_from_slice(&self.forwarder);
        all.push(command.into());
        all.extend(args);
        Ok(Wrapped {
            program: self.program.clone(),
            args: all,
            handed,
            leader: Leader::Wrapper,
        })
    }
}

/// An argument list in the making.
#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn flag(&mut self, flag: &str) {
        self.0.push(flag.into());
    }

    fn one(&mut self, flag: &str, value: impl Into<OsString>) {
        self.0.extend([flag.into(), value.into()]);
    }

    fn two(&mut self, flag: &str, from: impl Into<OsString>, to: impl Into<OsString>) {
        self.0.extend([flag.into(), from.into(), to.into()]);
    }

    /// The place at its own path.
    fn bind(&mut self, flag: &str, place: &Path) {
        self.two(flag, place, place);
    }
}

fn arguments(places: &Places, grounds: &Grounds, network: &Network) -> Arguments {
    let mut args = Arguments::default();
    for flag in [
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
    ] {
        args.flag(flag);
    }
    // Kernels without such groups have none to leave.
    args.flag("--unshare-cgroup-try");
    if *network != Network::On {
        args.flag("--unshare-net");
    }
    args.flag("--die-with-parent");
    args.flag("--new-session");
    args.two("--cap-drop", "ALL", "--hostname");
    args.flag("sandbox");
    // What is private comes first: the workspace may lie below.
    args.two("--bind", grounds.private_tmp(), "/tmp");
    args.two("--bind", grounds.private_tmp(), "/var/tmp");
    // One in another is visible with that, by whatever links it is named.
    let outermost = |place: &&PathBuf| {
        let mut above = place.ancestors().skip(1);
        !above.any(|above| places.read.iter().any(|place| place == above))
    };
    for place in places.read.iter().filter(outermost) {
        visible(&mut args, place);
    }
    args.one("--dev", "/dev");
    args.one("--proc", "/proc");
    for kernel in KERNEL {
        args.two("--ro-bind-try", kernel, kernel);
    }
    args.bind("--bind", &grounds.private_home());
    args.bind("--bind", &grounds.private_tmp());
    for place in &places.write {
        args.bind("--bind", place);
    }
    for place in inner(&places.read, &places.write) {
        args.bind("--ro-bind", place);
    }
    protect(&mut args, places, grounds);
    args
}

/// Brings the socket of the proxy in, and our own program, which passes on what
/// goes to it and starts the command.
fn way_out(
    args: &mut Arguments,
    grounds: &Grounds,
    socket: &Path,
) -> Result<Vec<OsString>, String> {
    let program = grounds.forwarder.as_ref();
    let program = program.ok_or("there is no program to pass on what goes to hosts")?;
    let inside = grounds.private.join("forward");
    args.two("--ro-bind", program, &inside);
    args.bind("--ro-bind", socket);
    Ok(vec![
        inside.into(),
        FORWARD.into(),
        "--socket".into(),
        socket.into(),
        "--".into(),
    ])
}

/// Makes a place visible as it is: a link stays one, so that programs find
/// what they are used to.
fn visible(args: &mut Arguments, place: &Path) {
    match place.read_link() {
        Ok(target) => args.two("--symlink", target, place),
        // One that is gone by now cannot be used either.
        Err(_) => args.bind("--ro-bind-try", place),
    }
}

/// The readable places that a writable one above has covered again.
fn inner<'p>(read: &'p [PathBuf], write: &'p [PathBuf]) -> impl Iterator<Item = &'p PathBuf> {
    read.iter().filter(move |place| {
        write
            .iter()
            .any(|above| place.starts_with(above) && *place != above)
    })
}

/// Makes the protected places that are there read-only, and hides what is secret.
/// The directories on the way become mounts too: those cannot be renamed, so that
/// nothing else can be put in their place, and the next command finds what is
/// hidden from it where it was.
fn protect(args: &mut Arguments, places: &Places, grounds: &Grounds) {
    let settings = grounds.repositories.iter().flat_map(|git| settings(git));
    let settings: Vec<PathBuf> = settings.collect();
    let protected = grounds.protected.iter().chain(&grounds.records);
    let bound = exposed(protected.chain(&settings), places);
    let bound: Vec<Exposed> = bound.into_iter().filter(Exposed::can_be_bound).collect();
    let secret = exposed(&places.secret, places);
    let repositories = exposed_repositories(&grounds.repositories, places);
    let mut ways: BTreeSet<&Path> = bound
        .iter()
        .chain(&secret)
        .chain(&repositories)
        .flat_map(Exposed::ways)
        .collect();
    // One without settings is not moved away either.
    ways.extend(grounds.repositories.iter().map(PathBuf::as_path));
    // Sorted, so that what is above comes first.
    for way in ways {
        args.bind("--bind", way);
    }
    for one in &bound {
        args.bind("--ro-bind", &one.path);
    }
    for secret in &places.secret {
        hide(args, secret);
    }
}

/// Puts what commands are to see of a file over it.
///
/// # Errors
/// In words, when it cannot be written down.
fn show_views(args: &mut Arguments, places: &Places, grounds: &Grounds) -> Result<(), String> {
    for (number, (path, text)) in grounds.views.iter().enumerate() {
        let below = |place: &PathBuf| path.starts_with(place);
        let is_open = places.read.iter().chain(&places.write).any(below);
        if !is_open || places.secret.iter().any(below) {
            continue;
        }
        let shown = grounds.private.join(format!("view-{number}"));
        std::fs::write(&shown, text)
            .map_err(|error| format!("{} cannot be written: {error}", shown.display()))?;
        args.two("--ro-bind", shown, path);
    }
    Ok(())
}

fn hide(args: &mut Arguments, secret: &Path) {
    match secret.metadata() {
        Ok(found) if found.is_dir() => {
            args.one("--tmpfs", secret);
            args.one("--remount-ro", secret);
        }
        // Devices do not work below such a mount: it cannot even be read.
        Ok(_) => args.two("--ro-bind", "/dev/null", secret),
        Err(_) => {}
    }
}
