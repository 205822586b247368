//! An end for the commands of a runner that was killed: a process of its own, which
//! hears of each command and, when the pipe to the runner closes, ends what is left.
//!
//! It is for commands that the kernel does not end with the runner. They are known by
//! the mark in their environment, and by descent.

use std::collections::HashSet;
use std::io::{self, BufRead, PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::{spawn, sweep};
use crate::clock;

/// The program that watches, and its argument.
static PROGRAM: OnceLock<(PathBuf, &'static str)> = OnceLock::new();
static WATCHDOG: Mutex<Watchdog> = Mutex::new(Watchdog::NotStarted);

/// The pauses between two looks for what is left, and how many there are.
const PAUSE: Duration = Duration::from_millis(5);
const LOOKS_MAX: u32 = 400;

enum Watchdog {
    NotStarted,
    Running(PipeWriter),
    /// It cannot be started, or was killed.
    Gone,
}

/// Lets `program`, started with `argument`, watch over commands from the first one on.
/// It has to call [`watch`].
pub fn set_watchdog(program: &Path, argument: &'static str) {
    let _ = PROGRAM.set((program.to_owned(), argument));
}

/// Tells the watchdog of the command with this mark, which is about to start. Without a
/// watchdog a command runs all the same: it is there for what should never happen.
pub(super) fn announce(mark: &str) {
    let Some((program, argument)) = PROGRAM.get() else {
        return;
    };
    let mut watchdog = WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*watchdog, Watchdog::NotStarted) {
        *watchdog = start(program, argument).map_or(Watchdog::Gone, Watchdog::Running);
    }
    if let Watchdog::Running(pipe) = &mut *watchdog
        && writeln!(pipe, "{mark}").is_err()
    {
        *watchdog = Watchdog::Gone;
    }
}

fn start(program: &Path, argument: &str) -> io::Result<PipeWriter> {
    let (reader, writer) = io::pipe()?;
    let mut command = spawn::command(program);
    command
        .arg(argument)
        .current_dir("/")
        .env_clear()
        // What is sent to the group of the runner is not meant for it.
        .process_group(0)
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    sweep::start_spared(&mut command)?;
    Ok(writer)
}

/// Hears of commands on `input` until it closes, then ends what is left of them.
///
/// # Errors
/// When the input cannot be read.
pub fn watch(input: impl BufRead) -> io::Result<()> {
    let mut marks = HashSet::new();
    for mark in input.lines() {
        marks.insert(mark?.into_bytes());
    }
    for _ in 0..LOOKS_MAX {
        if !sweep::kill_marked(&marks) {
            break;
        }
        clock::pause(PAUSE);
    }
    Ok(())
}
