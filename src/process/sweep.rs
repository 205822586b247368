//! The processes that a command leaves behind: found by a mark in their
//! environment or by descent, killed and reaped.
//!
//! A process that left its group (`setsid`, a double fork) is out of reach of
//! signals to the group. Once orphans are adopted, each of them is a child of
//! ours sooner or later, and nothing can hide. Without adoption, as in a
//! program that embeds the library and has children of its own, only processes
//! with the command's mark are touched.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};
use tokio::process::{Child, Command};

use super::spawn::MARKER;
use crate::clock;

/// The children that this process had before it adopted orphans: not ours to end.
static SPARED: OnceLock<Vec<Pid>> = OnceLock::new();
/// Children that this process started since and that are not commands.
static HELPERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
/// The commands that run now.
static LIVE: Mutex<Vec<Live>> = Mutex::new(Vec::new());
/// The pauses between two looks for a mark, and how many there are: a program that
/// is just being loaded shows none for a moment.
const LOOK_PAUSE: Duration = Duration::from_millis(1);
const LOOKS: u32 = 3;

/// A command that runs.
#[derive(Debug)]
struct Live {
    leader: Pid,
    mark: String,
}

/// Whether a sweep saw anything alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Something was told to die, and may need a moment.
    Some,
    /// Nothing is left.
    Nothing,
}

/// A process below this one.
struct Descendant {
    pid: Pid,
    /// Whether it is our own child, which only we can reap.
    child: bool,
}

/// Prepares this process to adopt the orphans of its commands, so that the
/// sweep finds every daemon too. Called once at start, by a program that owns
/// all of its children: from then on, a child that is no running command is killed.
pub fn adopt_orphans() {
    // Without the attribute, orphans go to init and only marks tell.
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        let mine = descendants(&[]);
        let _ = SPARED.set(
            mine.into_iter()
                .filter(|one| one.child)
                .map(|one| one.pid)
                .collect(),
        );
    }
}

/// Kills and reaps every process below this one, for the very end of a run.
/// Blocks for 2 s at most, and only while something is alive.
pub fn kill_all_children() {
    for _ in 0..400 {
        let commands = std::mem::take(&mut *live());
        for command in commands {
            let _ = rustix::process::kill_process_group(command.leader, Signal::KILL);
        }
        if SPARED.get().is_none() || pass("") == Left::Nothing {
            return;
        }
        clock::pause(Duration::from_millis(5));
    }
}

/// Starts a command and notes its leader, so that no sweep of another command
/// takes it for an orphan. One starts at a time, so that no other gets what is
/// `handed` to this one.
pub(super) fn start(
    command: &mut Command,
    handed: &[OwnedFd],
    mark: &str,
) -> io::Result<(Child, Pid)> {
    let mut live = live();
    for descriptor in handed {
        rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
    }
    let child = command.spawn();
    for descriptor in handed {
        rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    let child = child?;
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the process has no id"))?;
    live.push(Live {
        leader: pid,
        mark: mark.to_owned(),
    });
    Ok((child, pid))
}

/// Starts a program that no sweep ends.
pub(super) fn start_spared(command: &mut Command) -> io::Result<()> {
    // Nothing is handed to another one meanwhile, and no sweep sees it too early.
    let _live = live();
    let pid = command.spawn()?.id().and_then(|id| i32::try_from(id).ok());
    let mut helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    helpers.extend(pid.and_then(Pid::from_raw));
    Ok(())
}

/// Kills every process with one of these marks and what is below it, and says whether
/// there was any.
pub(super) fn kill_marked(marks: &HashSet<Vec<u8>>) -> bool {
    let wanted = |pid: Pid| marks_of(pid).iter().any(|mark| marks.contains(mark));
    let mut open: Vec<Pid> = all_pids().filter(|pid| wanted(*pid)).collect();
    if open.is_empty() {
        return false;
    }
    let table = parents();
    let mut found = HashSet::new();
    while let Some(pid) = open.pop() {
        if found.insert(pid) {
            open.extend(table.get(&pid).into_iter().flatten());
        }
    }
    for pid in found {
        kill(pid, || true);
    }
    true
}

/// The command of this leader runs no more.
pub(super) fn forget(leader: Pid) {
    live().retain(|one| one.leader != leader);
}

/// How many processes a command with this leader and mark is, with those that left
/// it; counting ends soon after `enough`.
pub(super) fn count(leader: Pid, mark: &str, enough: u64) -> u64 {
    let table = match children_of(leader) {
        None => parents(),
        Some(_) => HashMap::new(),
    };
    let mut counted = HashSet::new();
    let mut open = left_behind(mark);
    open.push(leader);
    while let Some(pid) = open.pop()
        && counted.len() as u64 <= enough
    {
        if counted.insert(pid) {
            let children = children_of(pid).or_else(|| table.get(&pid).cloned());
            open.extend(children.unwrap_or_default());
        }
    }
    counted.len() as u64
}

/// The living processes that left the command with this mark. Those that hide whose
/// they are count for every command.
fn left_behind(mark: &str) -> Vec<Pid> {
    let Some(spared) = SPARED.get() else {
        return all_pids().filter(|pid| is_marked(*pid, mark)).collect();
    };
    let live = live();
    let others: Vec<&Live> = live.iter().filter(|one| one.mark != mark).collect();
    let orphans = descendants(&known(&live, spared));
    let orphans = orphans.into_iter().filter(|one| one.child && !reap(one));
    orphans
        .map(|one| one.pid)
        .filter(|pid| !others.iter().any(|other| is_marked(*pid, &other.mark)))
        .collect()
}

/// Who is not looked at: the leaders, and the children that we had before.
fn known(live: &[Live], spared: &[Pid]) -> Vec<Pid> {
    let leaders = live.iter().map(|one| one.leader);
    let helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    let spared = spared.iter().chain(helpers.iter()).copied();
    leaders.chain(spared).collect()
}

/// Tells the sessions below a leader that stays itself.
pub(super) fn signal_below(leader: Pid, signal: Signal) {
    let table = || parents().remove(&leader);
    for child in children_of(leader).or_else(table).unwrap_or_default() {
        let _ = rustix::process::kill_process_group(child, signal);
    }
}

/// Whether a living process is in the group.
pub(super) fn group_lives(group: Pid) -> bool {
    if SPARED.get().is_some() {
        // A dead member that nobody reaped still counts for the kernel.
        let live = live();
        for one in descendants(&known(&live, &[])) {
            reap(&one);
        }
    }
    rustix::process::test_kill_process_group(group).is_ok()
}

/// Kills what the command with this mark left behind, and reaps what died.
pub(super) fn pass(mark: &str) -> Left {
    match SPARED.get() {
        Some(spared) => pass_over_descendants(spared, mark),
        None => pass_over_marked(mark),
    }
}

fn pass_over_descendants(spared: &[Pid], mark: &str) -> Left {
    let live = live();
    if live.is_empty() && !has_children() {
        return Left::Nothing;
    }
    let mut left = Left::Nothing;
    for one in descendants(&known(&live, spared)) {
        if reap(&one) {
            continue;
        }
        // While no other command runs, whatever is below us is this one's. Else an
        // orphan is, when no other command has its mark: what is below it follows.
        let ours = live.is_empty() || is_marked(one.pid, mark);
        if ours || (one.child && is_nobodys(one.pid, &live)) {
            kill(one.pid, || true);
            reap(&one);
            left = Left::Some;
        }
    }
    left
}

fn pass_over_marked(mark: &str) -> Left {
    let mut left = Left::Nothing;
    for pid in all_pids() {
        if kill(pid, || is_marked(pid, mark)) {
            left = Left::Some;
        }
    }
    left
}

/// Kills `pid` if `wanted`, and says whether it was. The handle is taken before
/// the question is asked, so that a reused id cannot be hit.
fn kill(pid: Pid, wanted: impl FnOnce() -> bool) -> bool {
    let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty());
    if !wanted() {
        return false;
    }
    let _ = match handle {
        Ok(handle) => rustix::process::pidfd_send_signal(handle, Signal::KILL),
        Err(Errno::SRCH) => return false,
        // An old kernel, or a sandbox that knows no such handles.
        Err(_) => rustix::process::kill_process(pid, Signal::KILL),
    };
    true
}

/// Whether it was a dead child and is gone now.
fn reap(one: &Descendant) -> bool {
    one.child
        && matches!(
            rustix::process::waitpid(Some(one.pid), WaitOptions::NOHANG),
            Ok(Some(_))
        )
}

fn has_children() -> bool {
    // Looks without reaping: the exit status of a command is not ours to take.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(
        rustix::process::waitid(WaitId::All, look),
        Err(Errno::CHILD)
    )
}

/// Whether a process has the mark of no command that runs.
fn is_nobodys(pid: Pid, live: &[Live]) -> bool {
    (0..LOOKS).all(|look| {
        if look > 0 {
            clock::pause(LOOK_PAUSE);
        }
        !live.iter().any(|one| is_marked(pid, &one.mark))
    })
}

fn is_marked(pid: Pid, mark: &str) -> bool {
    marks_of(pid).iter().any(|its| its == mark.as_bytes())
}

/// The marks that a process has: usually one, or none.
fn marks_of(pid: Pid) -> Vec<Vec<u8>> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    let environment = environment.unwrap_or_default();
    let variables = environment.split(|byte| *byte == 0);
    let marks = variables.filter_map(|variable| {
        let rest = variable.strip_prefix(MARKER.as_bytes())?;
        rest.strip_prefix(b"=")
    });
    marks.map(<[u8]>::to_vec).collect()
}

/// The processes below this one, without `except` and what is below those.
fn descendants(except: &[Pid]) -> Vec<Descendant> {
    let me = rustix::process::getpid();
    let table = if children_of(me).is_none() {
        parents()
    } else {
        HashMap::new()
    };
    let mut found = Vec::new();
    let mut open = vec![me];
    while let Some(parent) = open.pop() {
        let children = children_of(parent).or_else(|| table.get(&parent).cloned());
        for pid in children.unwrap_or_default() {
            if !except.contains(&pid) {
                found.push(Descendant {
                    pid,
                    child: parent == me,
                });
                open.push(pid);
            }
        }
    }
    found
}

/// The children of `pid` as the kernel lists them; not every kernel does.
fn children_of(pid: Pid) -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok()? {
        let list = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        children.extend(list.split_ascii_whitespace().filter_map(parsed));
    }
    Some(children)
}

/// Every process by its parent, for kernels that do not list children.
fn parents() -> HashMap<Pid, Vec<Pid>> {
    let mut table: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for pid in all_pids() {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        // `pid (name) state parent …`, and a name may hold anything.
        let parent = stat.ok().and_then(|stat| {
            let (_, rest) = stat.rsplit_once(')')?;
            parsed(rest.split_ascii_whitespace().nth(1)?)
        });
        if let Some(parent) = parent {
            table.entry(parent).or_default().push(pid);
        }
    }
    table
}

fn all_pids() -> impl Iterator<Item = Pid> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| parsed(entry.ok()?.file_name().to_str()?))
}

fn parsed(pid: &str) -> Option<Pid> {
    pid.parse().ok().and_then(Pid::from_raw)
}

fn live() -> MutexGuard<'static, Vec<Live>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}
