//! A repository and a user's directory, for the tests of what is loaded.

use std::path::{Path, PathBuf};

use agent::context::{RepoConfig, Resources, Sources};

/// All kinds of files through which a repository may speak.
pub(crate) const ALL: [RepoConfig; 3] = [
    RepoConfig::AgentsMd,
    RepoConfig::Skills,
    RepoConfig::Templates,
];

/// `agent/`, the user's, beside `repo/` with its `.git` and `outside/`.
pub(crate) struct Scene {
    _dir: tempfile::TempDir,
    base: PathBuf,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["agent", "repo/.git", "outside"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        Self { _dir: dir, base }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// Writes a file and the directories above it.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Makes a link and the directories above it.
    pub(crate) fn link(self, name: &str, target: &str) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    /// A skill that is right.
    pub(crate) fn skill(self, directory: &str, body: &str) -> Self {
        let name = directory.rsplit('/').next().unwrap();
        let text = format!("---\nname: {name}\ndescription: For {name}.\n---\n\n{body}\n");
        self.file(&format!("{directory}/SKILL.md"), text)
    }

    /// Loads everything for a job in `repo`.
    pub(crate) fn load(&self) -> Resources {
        self.load_in("repo", &ALL)
    }

    /// Loads these kinds for a job in a directory.
    pub(crate) fn load_in(&self, directory: &str, repository: &[RepoConfig]) -> Resources {
        let agent_dir = self.path("agent");
        let directory = self.path(directory);
        Resources::load(&Sources {
            agent_dir: Some(&agent_dir),
            directory: &directory,
            workspace: &directory,
            repository,
            permit: &|_: &Path| true,
        })
    }
}

/// The warnings: code and message, without the scene's own path.
pub(crate) fn warnings(scene: &Scene, resources: &Resources) -> Vec<String> {
    let base = format!("{}/", scene.base.display());
    let line = |warning: &agent::event::Warning| {
        let message = warning.message.replace(&base, "");
        format!("{}: {message}", warning.code)
    };
    resources.warnings.iter().map(line).collect()
}
