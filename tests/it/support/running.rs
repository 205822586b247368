//! The program while it runs: what it has logged, signals to it, its end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The most that anything here is waited for.
const MOST: Duration = Duration::from_secs(30);

/// A started program, killed when the test forgets it.
pub struct Running {
    child: Child,
    run_dir: PathBuf,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// How it ended.
pub struct Finished {
    /// The exit status; none for a signal.
    pub code: Option<i32>,
    /// From the signal to the end.
    pub took: Duration,
    /// Standard output, unless the test has it.
    pub stdout: String,
    /// Standard error, unless the test has it.
    pub stderr: String,
    run_dir: PathBuf,
}

impl Running {
    /// Starts it with its output in files beside `run_dir`.
    pub fn start(mut command: Command, run_dir: &Path) -> Self {
        let (stdout, stderr) = outputs(run_dir);
        command.stdin(Stdio::null());
        command.stdout(File::create(&stdout).unwrap());
        command.stderr(File::create(&stderr).unwrap());
        Self::start_as_is(command, run_dir)
    }

    /// Starts it with the streams that the test has set.
    pub fn start_as_is(mut command: Command, run_dir: &Path) -> Self {
        let (stdout, stderr) = outputs(run_dir);
        Self {
            child: command.spawn().unwrap(),
            run_dir: run_dir.to_owned(),
            stdout,
            stderr,
        }
    }

    /// Waits until the log has this event.
    pub fn wait_for_event(&self, name: &str) {
        let wanted = format!("\"event\":\"{name}\"");
        let log = self.run_dir.join("events.jsonl");
        self.wait_until(name, || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains(&wanted))
        });
    }

    /// Waits until something is so.
    pub fn wait_until(&self, what: &str, so: impl Fn() -> bool) {
        wait_until(what, so);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Signals, and waits for the end.
    pub fn end_by(self, signal: Signal) -> Finished {
        let since = now();
        self.signal(signal);
        self.end(since)
    }

    /// Signals twice while it is stopped, so that it finds both when it goes
    /// on, and waits for the end.
    pub fn end_by_both(self, first: Signal, second: Signal) -> Finished {
        self.signal(Signal::STOP);
        self.wait_until("its stop", || self.is_stopped());
        self.signal(first);
        self.signal(second);
        let since = now();
        self.signal(Signal::CONT);
        self.end(since)
    }

    /// Whether every thread of it is stopped.
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state stands behind the name, which may hold anything.
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    }

    /// Signals again and again until it ends, as an impatient person does.
    pub fn end_by_repeating(mut self, signal: Signal) -> Finished {
        let since = now();
        while self.child.try_wait().unwrap().is_none() && since.elapsed() < MOST {
            self.signal(signal);
            pause();
        }
        self.end(since)
    }

    /// Waits for the end.
    pub fn end(mut self, since: Instant) -> Finished {
        let mut status = None;
        while status.is_none() && since.elapsed() < MOST {
            status = self.child.try_wait().unwrap();
            pause();
        }
        let took = since.elapsed();
        let status = status.unwrap_or_else(|| panic!("it does not end"));
        let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        Finished {
            code: status.code(),
            took,
            stdout: text(&self.stdout),
            stderr: text(&self.stderr),
            run_dir: self.run_dir.clone(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// The event log's text.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.run_dir.join("events.jsonl")).unwrap()
    }

    /// The result document.
    pub fn result(&self) -> Value {
        let text = std::fs::read_to_string(self.run_dir.join("result.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// Waits until something is so; at most half a minute.
pub fn wait_until(what: &str, so: impl Fn() -> bool) {
    let since = now();
    while !so() {
        assert!(since.elapsed() < MOST, "{what} does not come");
        pause();
    }
}

/// The processes with this variable in their environment, and their commands.
pub fn marked(variable: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        if environment
            .split(|byte| *byte == 0)
            .any(|one| one == variable.as_bytes())
        {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&command).replace('\0', " "));
        }
    }
    found
}

/// A point in time.
#[expect(clippy::disallowed_methods, reason = "tests measure real processes")]
pub fn now() -> Instant {
    Instant::now()
}

fn pause() {
    agent::clock::pause(Duration::from_millis(10));
}

fn outputs(run_dir: &Path) -> (PathBuf, PathBuf) {
    (run_dir.with_extension("out"), run_dir.with_extension("err"))
}
