//! The only spawn: own process group, time limit, TERM then KILL, a sweep of
//! what escaped.

mod capture;
mod confinement;
mod fence;
mod harden;
mod inherit;
mod phase;
mod spawn;
mod sweep;
mod watchdog;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

use self::fence::Fence;
use self::phase::Phase;
use self::spawn::Input;
use self::sweep::Left;
use crate::clock;

pub use self::capture::{Captured, capture};
pub use self::confinement::{CommandSandbox, Confinement, Leader, SandboxMissing, Wrapped};
pub use self::harden::harden;
pub use self::inherit::Inherited;
pub use self::spawn::locate;
pub use self::sweep::{adopt_orphans, kill_all_children};
pub use self::watchdog::{set_watchdog, watch};

/// The grace between SIGTERM and SIGKILL when the time is up: a tenth of the
/// limit within these, so that the end comes near the limit.
const TIMEOUT_GRACE_MIN: Duration = Duration::from_millis(700);
const TIMEOUT_GRACE_MAX: Duration = Duration::from_secs(2);
/// The same after a cancellation, which has somebody waiting.
const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// How long SIGKILL may take before the process is given up as unkillable.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long a pipe that outlives the process may be silent.
const QUIET: Duration = Duration::from_millis(100);
/// How long such a pipe is read at most.
const DRAIN: Duration = Duration::from_millis(500);
/// The pause between two sweeps, and how many there are: 2 s.
const SWEEP_PAUSE: Duration = Duration::from_millis(5);
const SWEEPS_MAX: u32 = 400;
/// The pause between two counts of the processes of a command.
const COUNT_PAUSE: Duration = Duration::from_millis(100);
/// The most bytes of one [`Progress::Output`]: what a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;
/// What is kept of a standard error that is read apart.
pub const ERROR_BYTES_MAX: usize = 16 * 1024;

/// A program to start, with everything it may see.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The program, looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its environment; nothing is inherited, and only a marker is added.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads from standard input; none closes it.
    pub stdin: Option<Vec<u8>>,
    /// Which of its streams are read.
    pub streams: Streams,
    /// The wall-clock limit.
    pub timeout: Option<Duration>,
    /// What keeps it in; none lets it do what this process may.
    pub confinement: Option<Arc<dyn Confinement>>,
}

/// Which output of a process is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Standard output and error as one stream, in order of arrival.
    Merged,
    /// Standard output only; standard error goes nowhere.
    Stdout,
    /// Standard output; of standard error the first [`ERROR_BYTES_MAX`] bytes
    /// are kept for [`Process::errors`].
    Apart,
}

/// What a running process did next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It wrote these bytes.
    Output(Bytes),
    /// It ended, and so did all it left behind.
    Ended(Ending),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal, not of ours, killed it.
    Signalled(i32),
    /// Its time was up; we killed it.
    TimedOut,
    /// The token was cancelled; we killed it.
    Cancelled,
    /// It was more processes than this at a time; we killed it.
    Crowded(u64),
}

/// A program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start `{program}`: {source}")]
pub struct SpawnError {
    /// The program.
    pub program: String,
    /// Why.
    pub source: std::io::Error,
}

/// A running process with its group.
///
/// Dropping it kills the group and what escaped from it. It waits for their end, 2 s
/// at most, only where what they did is undone.
#[derive(Debug)]
pub struct Process {
    child: Child,
    group: Pid,
    /// What ends everything that it became, where the kernel has that.
    fence: Option<Fence>,
    leader: Leader,
    processes_max: Option<u64>,
    confinement: Option<Arc<dyn Confinement>>,
    /// What was undone of what it did.
    undone: Vec<String>,
    /// The value of [`spawn::MARKER`] in its environment.
    marker: String,
    input: Option<Input>,
    output: Option<Receiver>,
    scratch: Vec<u8>,
    /// Standard error, when it is read apart.
    error_output: Option<Receiver>,
    /// The start of it.
    errors: Vec<u8>,
    phase: Phase,
    timeout_grace: Duration,
}

/// What [`Process::next`] waits for.
enum Happened {
    Wrote(io::Result<usize>),
    Read(io::Result<usize>),
    ReadError(io::Result<Bytes>),
    Exited(io::Result<ExitStatus>),
    Due,
    Cancelled,
}

impl Process {
    /// Starts it in a process group of its own.
    ///
    /// Needs a tokio runtime with I/O, signals and time. Its environment is the
    /// given one and a variable that marks its descendants.
    ///
    /// # Errors
    /// When the program or the working directory is missing, the program is not
    /// executable, or the system has no room.
    pub fn spawn(spec: CommandSpec) -> Result<Self, SpawnError> {
        let timeout = spec.timeout;
        let confinement = spec.confinement.clone();
        let processes_max = confinement.as_ref().and_then(|one| one.processes_max());
        let started = spawn::start(spec)?;
        Ok(Self {
            child: started.child,
            group: started.group,
            fence: started.fence,
            leader: started.leader,
            processes_max,
            confinement,
            undone: Vec::new(),
            marker: started.marker,
            input: started.input,
            output: Some(started.output),
            scratch: Vec::new(),
            error_output: started.errors,
            errors: Vec::new(),
            phase: Phase::Running {
                deadline: timeout.and_then(|limit| clock::monotonic().checked_add(limit)),
                count_at: processes_max.map(|_| clock::monotonic() + COUNT_PAUSE),
            },
            timeout_grace: (timeout.unwrap_or_default() / 10)
                .clamp(TIMEOUT_GRACE_MIN, TIMEOUT_GRACE_MAX),
        })
    }

    /// Waits for output or the end. After [`Progress::Ended`] it gives that again.
    ///
    /// When the time is up or `cancel` is cancelled, the group gets SIGTERM, a
    /// grace of at most 2 s or of 1 s, and SIGKILL. When the process ends, the rest of its
    /// output follows, for at most 500 ms should a background child keep the
    /// pipe open; then everything it started is killed and reaped.
    ///
    /// Cancel safe: a dropped future loses neither output nor state.
    pub async fn next(&mut self, cancel: &CancellationToken) -> Progress {
        loop {
            if let Phase::Ended(ending) = self.phase {
                return Progress::Ended(ending);
            }
            match self.happening(cancel).await {
                Happened::Read(Ok(count)) if count > 0 => {
                    let bytes = Bytes::copy_from_slice(self.scratch.get(..count).unwrap_or(&[]));
                    self.heard();
                    return Progress::Output(bytes);
                }
                Happened::Read(_) => {
                    self.output = None;
                    self.output_closed();
                }
                Happened::ReadError(Ok(bytes)) if !bytes.is_empty() => {
                    let room = ERROR_BYTES_MAX.saturating_sub(self.errors.len());
                    self.errors.extend(bytes.into_iter().take(room));
                    self.heard();
                }
                Happened::ReadError(_) => {
                    self.error_output = None;
                    self.output_closed();
                }
                Happened::Wrote(wrote) => self.advance_input(wrote),
                Happened::Exited(status) => self.leader_ended(status),
                Happened::Due => self.due(),
                Happened::Cancelled => self.terminate(Ending::Cancelled, CANCEL_GRACE),
            }
        }
    }

    /// The start of what it wrote to a standard error that is read apart.
    pub fn errors(&self) -> &[u8] {
        &self.errors
    }

    /// What it did against the rules and what was undone after its end, for the
    /// model.
    pub fn undone(&self) -> &[String] {
        &self.undone
    }

    async fn happening(&mut self, cancel: &CancellationToken) -> Happened {
        let due = self.phase.due();
        let leads = self.phase.has_leader();
        let running = matches!(self.phase, Phase::Running { .. });
        if self.output.is_some() && self.scratch.is_empty() {
            self.scratch = vec![0; CHUNK_BYTES];
        }
        // Time and cancellation come first, so that a flood of output delays neither.
        tokio::select! {
            biased;
            () = cancel.cancelled(), if running => Happened::Cancelled,
            () = clock::until(due), if due.is_some() => Happened::Due,
            status = self.child.wait(), if leads => Happened::Exited(status),
            read = read(&mut self.output, &mut self.scratch), if self.output.is_some() => Happened::Read(read),
            read = read_errors(&mut self.error_output), if self.error_output.is_some() => Happened::ReadError(read),
            wrote = write(&mut self.input), if self.input.is_some() => Happened::Wrote(wrote),
        }
    }

    fn advance_input(&mut self, wrote: io::Result<usize>) {
        let Some(input) = &mut self.input else { return };
        match wrote {
            Ok(count) if count > 0 && input.advance(count) > 0 => {}
            // Written whole, or the reader is gone: either way it sees the end.
            Ok(_) | Err(_) => self.input = None,
        }
    }

    /// While what is left in the pipes is read, each piece prolongs the wait.
    fn heard(&mut self) {
        if let Phase::Draining { quiet_at, .. } = &mut self.phase {
            *quiet_at = clock::monotonic() + QUIET;
        }
    }

    fn output_closed(&mut self) {
        let open = self.is_open();
        if let Phase::Draining { quiet_at, .. } = &mut self.phase
            && !open
        {
            *quiet_at = clock::monotonic();
        }
    }

    /// Whether something may still be read.
    fn is_open(&self) -> bool {
        self.output.is_some() || self.error_output.is_some()
    }

    fn leader_ended(&mut self, status: io::Result<ExitStatus>) {
        let now = clock::monotonic();
        let (ending, stop_at) = match self.phase {
            Phase::Terminating { ending, kill_at } => (ending, kill_at),
            Phase::Killing { ending, .. } => (ending, now + DRAIN),
            Phase::Running { .. }
            | Phase::Draining { .. }
            | Phase::Sweeping { .. }
            | Phase::Ended(_) => (ending_of(status), now + DRAIN),
        };
        let quiet_at = if self.is_open() { now + QUIET } else { now };
        self.input = None;
        self.phase = Phase::Draining {
            ending,
            quiet_at,
            stop_at,
        };
    }

    fn due(&mut self) {
        let now = clock::monotonic();
        match self.phase {
            Phase::Running { deadline, .. } if deadline.is_none_or(|deadline| now < deadline) => {
                self.count(deadline);
            }
            Phase::Running { .. } => self.terminate(Ending::TimedOut, self.timeout_grace),
            Phase::Terminating { ending, .. } => {
                self.signal(Signal::KILL);
                self.phase = Phase::Killing {
                    ending,
                    abandon_at: now + KILL_GRACE,
                };
            }
            Phase::Killing { ending, .. } => self.sweep_next(ending, 0),
            Phase::Draining {
                ending, stop_at, ..
            } => {
                if now < stop_at && self.cleans_up(ending) {
                    self.phase = Phase::Draining {
                        ending,
                        quiet_at: now + QUIET,
                        stop_at,
                    };
                } else {
                    self.output = None;
                    self.error_output = None;
                    self.signal(Signal::KILL);
                    sweep::forget(self.group);
                    self.sweep_next(ending, 0);
                }
            }
            Phase::Sweeping { ending, rounds, .. } => self.sweep_next(ending, rounds),
            Phase::Ended(_) => {}
        }
    }

    /// Whether the rest of a group that we told to end is still at it.
    fn cleans_up(&self, ending: Ending) -> bool {
        match ending {
            Ending::TimedOut | Ending::Cancelled => sweep::group_lives(self.group),
            Ending::Exited(_) | Ending::Signalled(_) | Ending::Crowded(_) => false,
        }
    }

    fn sweep_next(&mut self, ending: Ending, rounds: u32) {
        let left = sweep::pass(&self.marker);
        self.phase = if left == Left::Some && rounds < SWEEPS_MAX {
            let at = clock::monotonic() + SWEEP_PAUSE;
            Phase::Sweeping {
                ending,
                rounds: rounds + 1,
                at,
            }
        } else {
            sweep::forget(self.group);
            self.settle();
            Phase::Ended(ending)
        };
    }

    fn terminate(&mut self, ending: Ending, grace: Duration) {
        self.signal(Signal::TERM);
        // A stopped process would not see the first signal.
        self.signal(Signal::CONT);
        self.phase = Phase::Terminating {
            ending,
            kill_at: clock::monotonic() + grace,
        };
    }

    /// Counts its processes; too many are killed without a word, because each of
    /// them could become more meanwhile.
    fn count(&mut self, deadline: Option<Instant>) {
        let most = self.processes_max.unwrap_or(u64::MAX);
        if sweep::count(self.group, &self.marker, most) <= most {
            let count_at = Some(clock::monotonic() + COUNT_PAUSE);
            self.phase = Phase::Running { deadline, count_at };
            return;
        }
        self.signal(Signal::KILL);
        self.phase = Phase::Killing {
            ending: Ending::Crowded(most),
            abandon_at: clock::monotonic() + KILL_GRACE,
        };
    }

    fn settle(&mut self) {
        if let Some(confinement) = self.confinement.take() {
            self.undone = confinement.settle();
        }
    }

    fn signal(&self, signal: Signal) {
        if self.leader == Leader::Wrapper && signal != Signal::KILL {
            return sweep::signal_below(self.group, signal);
        }
        // An error says that the group is gone, which is what is wanted.
        let _ = rustix::process::kill_process_group(self.group, signal);
        if let (Some(fence), Signal::KILL) = (&self.fence, signal) {
            fence.kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.signal(Signal::KILL);
            sweep::forget(self.group);
            // What is undone must not be done again by what is still dying.
            let rounds = if self.confinement.is_some() {
                SWEEPS_MAX
            } else {
                1
            };
            for _ in 0..rounds {
                if sweep::pass(&self.marker) == Left::Nothing {
                    break;
                }
                clock::pause(SWEEP_PAUSE);
            }
            self.settle();
        }
    }
}

async fn read(output: &mut Option<Receiver>, scratch: &mut [u8]) -> io::Result<usize> {
    match output {
        Some(output) => output.read(scratch).await,
        None => std::future::pending().await,
    }
}

async fn read_errors(output: &mut Option<Receiver>) -> io::Result<Bytes> {
    // Little is expected here, so the space for it is made when it comes.
    let mut scratch = bytes::BytesMut::with_capacity(4 * 1024);
    match output {
        Some(output) => output.read_buf(&mut scratch).await,
        None => std::future::pending().await,
    }?;
    Ok(scratch.freeze())
}

async fn write(input: &mut Option<Input>) -> io::Result<usize> {
    match input {
        Some(input) => input.write().await,
        None => std::future::pending().await,
    }
}

fn ending_of(status: io::Result<ExitStatus>) -> Ending {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exited(code),
            (None, Some(signal)) => Ending::Signalled(signal),
            (None, None) => Ending::Exited(-1),
        },
        // Someone else reaped it; how it ended is lost.
        Err(_) => Ending::Exited(-1),
    }
}
