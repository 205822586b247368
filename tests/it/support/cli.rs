//! The program under test, in an environment of its own.
//!
//! It expects success, and silence on standard error under `--quiet`, unless told.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::log;

/// The program's file.
pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_agent")
}

/// The caller's `PATH`, the only variable that tests take over.
#[expect(
    clippy::disallowed_methods,
    reason = "programs are where the caller has them"
)]
pub fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// One start of the program.
pub struct Cli {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    code: i32,
    place: Place,
}

/// The directories of one test: removed when it ends.
pub struct Place {
    home: TempDir,
    cwd: PathBuf,
    own: Option<TempDir>,
}

impl Cli {
    /// In an empty working directory.
    pub fn new() -> Self {
        let own = tempfile::tempdir().unwrap();
        let cwd = own.path().canonicalize().unwrap();
        let mut cli = Self::at(cwd);
        cli.place.own = Some(own);
        cli
    }

    /// In the given working directory.
    pub fn at(cwd: impl AsRef<Path>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let cwd = cwd.as_ref().to_owned();
        let place = Place {
            home,
            cwd,
            own: None,
        };
        Self {
            args: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
            code: 0,
            place,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the otherwise empty environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Gives it this on standard input, which is empty otherwise.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Writes a file below the working directory.
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let file = self.place.cwd.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
        self
    }

    /// Expects this exit status and not 0.
    pub fn expect_code(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// The working directory.
    pub fn cwd(&self) -> &Path {
        &self.place.cwd
    }

    /// The home directory.
    pub fn home(&self) -> &Path {
        self.place.home.path()
    }

    /// The program with its arguments, for tests that start it themselves.
    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    pub fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(program());
        command
            .args(&self.args)
            .current_dir(&self.place.cwd)
            .env_clear();
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command
    }

    /// Runs it to its end, at most a minute.
    ///
    /// Panics when the exit status is not the expected one, or when something
    /// was said under `--quiet` without a failure.
    pub fn run(self) -> Output {
        let done = assert_cmd::Command::from_std(self.command())
            .write_stdin(self.stdin.clone())
            .timeout(Duration::from_secs(60))
            .output()
            .unwrap();
        let output = Output {
            stdout: String::from_utf8(done.stdout).unwrap(),
            stderr: String::from_utf8(done.stderr).unwrap(),
            code: done.status.code().unwrap_or(-1),
            run_dir: self.run_dir_option(),
            place: self.place,
        };
        assert_eq!(
            output.code, self.code,
            "{:?}\nstdout: {}\nstderr: {}",
            self.args, output.stdout, output.stderr
        );
        if self.code == 0 && self.args.iter().any(|arg| arg == "--quiet") {
            assert_eq!(output.stderr, "", "{:?} is not quiet", self.args);
        }
        output
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment = vec![
            ("PATH".into(), path()),
            ("HOME".into(), self.place.home.path().into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
        ];
        environment.extend(self.env.iter().cloned());
        environment
    }

    fn run_dir_option(&self) -> Option<PathBuf> {
        let at = self.args.iter().position(|arg| arg == "--run-dir")?;
        Some(self.place.cwd.join(self.args.get(at + 1)?))
    }
}

/// What a start of the program left.
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit status; -1 for a signal.
    pub code: i32,
    run_dir: Option<PathBuf>,
    place: Place,
}

impl Output {
    /// The working directory.
    pub fn cwd(&self) -> &Path {
        &self.place.cwd
    }

    /// The home directory.
    pub fn home(&self) -> &Path {
        self.place.home.path()
    }

    /// The run directory: the one asked for, or the only one there is.
    pub fn run_dir(&self) -> PathBuf {
        if let Some(dir) = &self.run_dir {
            return dir.clone();
        }
        let parent = self.place.cwd.join(".agent/runs");
        let entries = std::fs::read_dir(&parent)
            .unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
        let mut dirs: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .collect();
        dirs.sort();
        assert_eq!(dirs.len(), 1, "{dirs:?}");
        dirs.remove(0)
    }

    /// A file of the run directory.
    pub fn artifact(&self, name: &str) -> String {
        let file = self.run_dir().join(name);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// The event log, which must obey its laws.
    pub fn events(&self) -> Vec<Value> {
        log::lawful(&self.artifact("events.jsonl"))
    }

    /// The names of the events, in order.
    pub fn event_names(&self) -> Vec<String> {
        self.events()
            .iter()
            .map(|event| event["event"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The result document.
    pub fn result(&self) -> Value {
        serde_json::from_str(&self.artifact("result.json")).unwrap()
    }

    /// The session file's lines.
    pub fn session(&self) -> Vec<Value> {
        let text = self.artifact("session.jsonl");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}
