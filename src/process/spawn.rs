//! Starting a program: its environment, its pipes, and errors that say what is wrong.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::Pid;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, ChildStdin, Command};
use tokio::runtime::Handle;

use super::confinement::{Confinement, Leader, Wrapped};
use super::fence::Fence;
use super::{CommandSpec, SpawnError, Streams, sweep, watchdog};
use crate::clock;

/// The variable by which descendants are known, wherever they went.
pub(super) const MARKER: &str = "AGENT_COMMAND_ID";
/// Where programs are looked up when the environment has no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program that was started.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) group: Pid,
    /// Where there is one.
    pub(super) fence: Option<Fence>,
    pub(super) leader: Leader,
    pub(super) marker: String,
    pub(super) input: Option<Input>,
    pub(super) output: Receiver,
    /// Standard error, when it is read apart.
    pub(super) errors: Option<Receiver>,
}

/// Starts `spec`.
pub(super) fn start(spec: CommandSpec) -> Result<Started, SpawnError> {
    let name = spec.program.to_string_lossy().into_owned();
    try_start(spec).map_err(|source| SpawnError {
        program: name,
        source,
    })
}

fn try_start(spec: CommandSpec) -> io::Result<Started> {
    exists(&spec.cwd)?;
    let program = locate(&spec.program, path_of(&spec.env), &spec.cwd)?;
    let marker = clock::new_id();
    let (reader, writer) = io::pipe()?;
    let output = Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let mut errors = None;
    let confinement = spec.confinement;
    let wrapped = match &confinement {
        Some(confinement) => confinement.wrap(program, spec.args, &spec.cwd)?,
        None => Wrapped {
            program,
            args: spec.args,
            handed: Vec::new(),
            leader: Leader::Command,
        },
    };
    let program = wrapped.program;
    let mut command = command(&program);
    command
        .args(&wrapped.args)
        .current_dir(&spec.cwd)
        .env_clear()
        .envs(spec.env)
        .env(MARKER, &marker)
        .process_group(0)
        .kill_on_drop(true)
        .stdin(if spec.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
    match spec.streams {
        Streams::Merged => command.stderr(writer.try_clone()?).stdout(writer),
        Streams::Stdout => command.stderr(Stdio::null()).stdout(writer),
        Streams::Apart => {
            let (error_reader, error_writer) = io::pipe()?;
            errors = Some(Receiver::from_owned_fd(OwnedFd::from(error_reader))?);
            command.stderr(error_writer).stdout(writer)
        }
    };
    let handed = wrapped.handed;
    let started = match confinement.filter(|confinement| confinement.binds_thread()) {
        Some(confinement) => start_bound(command, handed, confinement, marker.clone()),
        None => {
            sweep::start(&mut command, &handed, &marker).map(|(child, group)| (child, group, None))
        }
    };
    let (mut child, group, fence) = started.map_err(|error| explained(error, &program))?;
    let input = spec.stdin.and_then(|bytes| {
        let pipe = child.stdin.take()?;
        Some(Input {
            pipe,
            bytes,
            written: 0,
        })
    });
    Ok(Started {
        child,
        group,
        fence,
        leader: wrapped.leader,
        marker,
        input,
        output,
        errors,
    })
}

fn exists(cwd: &Path) -> io::Result<()> {
    if cwd.is_dir() {
        return Ok(());
    }
    let gone = format!("the working directory {} does not exist", cwd.display());
    Err(io::Error::new(io::ErrorKind::NotFound, gone))
}

/// Starts it from a thread that is bound for good and ends with that: what binds
/// a thread is passed on to what it starts, and nothing has to happen between
/// the fork and the program. The thread before it stays, where it is fenced in, to
/// end what was started.
fn start_bound(
    mut command: Command,
    handed: Vec<OwnedFd>,
    confinement: Arc<dyn Confinement>,
    mark: String,
) -> io::Result<(Child, Pid, Option<Fence>)> {
    watchdog::announce(&mark);
    let runtime = Handle::current();
    let (fence, orders) = Fence::new();
    let (tell, told) = std::sync::mpsc::channel();
    let panicked = || io::Error::other("the thread that starts it panicked");
    std::thread::Builder::new().spawn(move || {
        let fenced = confinement.fence_thread();
        let bound = std::thread::Builder::new().spawn(move || {
            let _inside = runtime.enter();
            confinement.bind_thread()?;
            sweep::start(&mut command, &handed, &mark)
        });
        let started = bound.and_then(|bound| bound.join().map_err(|_| panicked())?);
        let serves = fenced && started.is_ok();
        let heard = tell.send(started.map(|started| (started, fenced)));
        if serves && heard.is_ok() {
            orders.serve();
        }
    })?;
    let ((child, group), fenced) = told.recv().map_err(|_| panicked())??;
    Ok((child, group, fenced.then_some(fence)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that starts processes"
)]
pub(super) fn command(program: &Path) -> Command {
    Command::new(program)
}

fn path_of(env: &[(OsString, OsString)]) -> &OsStr {
    // The last one wins, as it does in the child.
    env.iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map_or(OsStr::new(PATH_DEFAULT), |(_, value)| value)
}

/// The file that `program` names: a path from `cwd`, or a name in the directories
/// of `path`. Found here and not by the system, because an absolute path starts
/// faster and its errors are unambiguous.
///
/// # Errors
/// When there is no such file, or it is no program.
pub fn locate(program: &OsStr, path: &OsStr, cwd: &Path) -> io::Result<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Ok(cwd.join(program));
    }
    let mut found = None;
    for directory in std::env::split_paths(path) {
        let candidate = cwd.join(directory).join(program);
        match std::fs::metadata(&candidate) {
            Ok(meta) if meta.is_file() && meta.permissions().mode() & 0o111 != 0 => {
                return Ok(candidate);
            }
            Ok(meta) if meta.is_file() => found = Some(candidate),
            Ok(_) | Err(_) => {}
        }
    }
    Err(match found {
        Some(file) => explained(io::Error::from(io::ErrorKind::PermissionDenied), &file),
        None => io::Error::new(io::ErrorKind::NotFound, "not found in PATH"),
    })
}

/// The error in words that name its object; the kind is kept.
fn explained(error: io::Error, file: &Path) -> io::Error {
    let file = file.display();
    let text = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) if Path::new(&file.to_string()).exists() => {
            format!("the interpreter that {file} names is not found")
        }
        Some(Errno::NOENT) => format!("{file} is not found"),
        Some(Errno::NOEXEC) => format!(
            "exec format error: {file} is neither a program for this machine nor a script with `#!`"
        ),
        Some(Errno::AGAIN) => "the system has no room for another process".to_owned(),
        Some(Errno::TOOBIG) => "the arguments and the environment are too long".to_owned(),
        _ if error.kind() == io::ErrorKind::PermissionDenied => {
            format!("permission denied: {file} is not executable")
        }
        _ => return error,
    };
    io::Error::new(error.kind(), text)
}

/// What a process still has to be given on its standard input.
#[derive(Debug)]
pub(super) struct Input {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    written: usize,
}

impl Input {
    /// Writes a piece. Cancel safe: a dropped future wrote nothing.
    pub(super) async fn write(&mut self) -> io::Result<usize> {
        self.pipe
            .write(self.bytes.get(self.written..).unwrap_or(&[]))
            .await
    }

    /// Notes that `count` bytes are written and says how many are left.
    pub(super) fn advance(&mut self, count: usize) -> usize {
        self.written += count;
        self.bytes.len().saturating_sub(self.written)
    }
}
