//! Temporary workspaces, with git or without.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::cli::path;

/// A directory with files, removed when the test ends.
pub struct Workspace {
    _dir: TempDir,
    root: PathBuf,
}

impl Workspace {
    /// A plain directory with these files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let workspace = Self { _dir: dir, root };
        for (name, content) in files {
            workspace.write(name, content);
        }
        workspace
    }

    /// The same as a git repository with one commit.
    pub fn git(files: &[(&str, &str)]) -> Self {
        let workspace = Self::new(files);
        workspace.run_git(&["init", "-q", "-b", "main"]);
        workspace.commit("first");
        workspace
    }

    /// Its real path.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes a file and the directories above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.root.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content).unwrap();
        file
    }

    /// A file's text.
    pub fn read(&self, name: &str) -> String {
        let file = self.root.join(name);
        std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Whether there is such a file or directory.
    pub fn exists(&self, name: &str) -> bool {
        self.root.join(name).symlink_metadata().is_ok()
    }

    /// Commits everything.
    pub fn commit(&self, message: &str) {
        self.run_git(&["add", "-A"]);
        self.run_git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// Runs git without any configuration of the machine and gives its output.
    pub fn run_git(&self, args: &[&str]) -> String {
        let done = self.git_command(args).output().unwrap();
        assert!(
            done.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the git of the test, not of the program"
    )]
    fn git_command(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new("git");
        command
            .args(args)
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", path());
        command.env("HOME", &self.root);
        for (name, value) in GIT_ENV {
            command.env(name, value);
        }
        command
    }
}

/// What makes git the same everywhere.
pub const GIT_ENV: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_AUTHOR_NAME", "Test"),
    ("GIT_AUTHOR_EMAIL", "test@example.invalid"),
    ("GIT_COMMITTER_NAME", "Test"),
    ("GIT_COMMITTER_EMAIL", "test@example.invalid"),
    ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
    ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
];
