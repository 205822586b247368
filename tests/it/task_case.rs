//! What the tests of task files share: a directory with a task in it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::path::{Path, PathBuf};

use agent::task::{Diagnostics, Job, Overrides, load};

/// A temporary directory with a task file.
pub(crate) struct Case {
    dir: tempfile::TempDir,
    /// What the command line says.
    pub(crate) overrides: Overrides,
}

impl Case {
    /// A directory with `task.yaml`.
    pub(crate) fn new(yaml: impl AsRef<[u8]>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("task.yaml"), yaml).unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        Self {
            dir,
            overrides: Overrides {
                cwd,
                ..Overrides::default()
            },
        }
    }

    /// A task that runs, plus `more` of it.
    pub(crate) fn with(more: &str) -> Self {
        Self::new(format!("version: 1\nprompt: Do it.\n{more}\n"))
    }

    /// Adds a file.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Gives `--param`.
    pub(crate) fn param(mut self, key: &str, value: &str) -> Self {
        self.overrides.params.push((key.into(), value.into()));
        self
    }

    /// Gives `--set`.
    pub(crate) fn set(mut self, path: &str, value: &str) -> Self {
        self.overrides.set.push((path.into(), value.into()));
        self
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.overrides.env.insert(name.into(), value.into());
        self
    }

    /// The directory, real.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// Loads the task.
    pub(crate) fn load(&self) -> Result<Job, Diagnostics> {
        load(Path::new("task.yaml"), &self.overrides)
    }

    /// Loads the task, which is right.
    pub(crate) fn job(&self) -> Job {
        self.load()
            .unwrap_or_else(|problems| panic!("{}", problems.render(false)))
    }

    /// Loads the task, which is wrong.
    pub(crate) fn problems(&self) -> Diagnostics {
        match self.load() {
            Ok(job) => panic!("the task was accepted: {}", job.resolved),
            Err(problems) => problems,
        }
    }

    /// The problems, one a line: `file:line:column: code: message (hint)`.
    pub(crate) fn lines(&self) -> Vec<String> {
        lines(&self.problems())
    }
}

/// The problems, one a line: `file:line:column: code: message (hint)`.
pub(crate) fn lines(problems: &Diagnostics) -> Vec<String> {
    let line = |d: &agent::task::Diagnostic| {
        let hint = d
            .hint
            .as_ref()
            .map(|hint| format!(" ({hint})"))
            .unwrap_or_default();
        format!(
            "{}:{}:{}: {}: {}{hint}",
            d.file, d.line, d.column, d.code, d.message
        )
    };
    problems.list.iter().map(line).collect()
}
