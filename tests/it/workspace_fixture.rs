//! Working copies for the tests: made, changed, patched and compared.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agent::workspace::{Baseline, Changes, GitSettings};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A workspace in a temporary directory, with a scratch directory beside it.
pub(crate) struct Fixture {
    dir: TempDir,
    /// The workspace.
    pub(crate) root: PathBuf,
}

impl Fixture {
    /// An empty directory that is in no repository.
    pub(crate) fn plain() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("work");
        fs::create_dir(&root).unwrap();
        fs::create_dir(dir.path().join("scratch")).unwrap();
        Self { dir, root }
    }

    /// A repository without commits.
    pub(crate) fn repository() -> Self {
        let fixture = Self::plain();
        fixture.git(&["init", "--quiet"]);
        fixture
    }

    /// The directory `sub dir` of a repository.
    pub(crate) fn subdirectory() -> Self {
        let mut fixture = Self::repository();
        fixture.write("outside.txt", "outside\n");
        fixture.root.push("sub dir");
        fs::create_dir(&fixture.root).unwrap();
        fixture
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.join(name)
    }

    /// A directory beside the workspace.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn git(&self, args: &[&str]) -> Vec<u8> {
        run("git", args, &self.root)
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&[
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@x",
            "commit",
            "-qm",
            "m",
        ]);
    }

    pub(crate) fn settings(&self) -> GitSettings {
        GitSettings::new(search_path(), self.beside("scratch"))
    }

    pub(crate) fn take_with(&self, settings: &GitSettings) -> Baseline {
        wait(Baseline::take(
            &self.root,
            settings,
            &CancellationToken::new(),
        ))
        .unwrap()
    }

    pub(crate) fn take(&self) -> Baseline {
        self.take_with(&self.settings())
    }

    /// Copies the workspace, to apply a patch there later.
    pub(crate) fn keep(&self, name: &str) -> PathBuf {
        let target = self.beside(name);
        run(
            "cp",
            &["-a".as_ref(), self.root.as_os_str(), target.as_os_str()],
            self.dir.path(),
        );
        let _ = fs::remove_dir_all(target.join(".git"));
        target
    }
}

pub(crate) fn diff(baseline: &Baseline) -> Changes {
    wait(baseline.diff(&[], &CancellationToken::new())).unwrap()
}

pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests run with the developer's tools"
)]
pub(crate) fn search_path() -> std::ffi::OsString {
    std::env::var_os("PATH").unwrap()
}

/// Runs a program that must succeed.
#[expect(
    clippy::disallowed_methods,
    reason = "tests judge with the real programs"
)]
pub(crate) fn run(program: &str, args: &[impl AsRef<OsStr>], cwd: &Path) -> Vec<u8> {
    let output = std::process::Command::new(program)
        .args(args)
        .current_dir(cwd)
        .env("GIT_CEILING_DIRECTORIES", std::env::temp_dir())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    output.stdout
}

/// Applies `patch` in `dir` with git, which is no repository.
pub(crate) fn apply(dir: &Path, patch: &[u8]) {
    if patch.is_empty() {
        return;
    }
    let file = dir.with_extension("patch");
    fs::write(&file, patch).unwrap();
    run(
        "git",
        &[
            "apply".as_ref(),
            "--whitespace=nowarn".as_ref(),
            file.as_os_str(),
        ],
        dir,
    );
}

/// Every file below `dir` but git's: its content and whether it may be
/// executed, or where a link points.
pub(crate) fn contents(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, &'static str)> {
    let mut all = BTreeMap::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if entry.file_name() == ".git" {
                continue;
            }
            let name = path.strip_prefix(dir).unwrap().to_owned();
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap().into_os_string();
                all.insert(name, (target.into_encoded_bytes(), "link"));
            } else {
                let executable = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
                let kind = if executable { "executable" } else { "file" };
                all.insert(name, (fs::read(&path).unwrap(), kind));
            }
        }
    }
    all
}

/// `status path +additions -deletions` of each changed file.
pub(crate) fn listed(changes: &Changes) -> Vec<String> {
    let line = |file: &agent::event::ChangedFile| {
        let status = format!("{:?}", file.status).to_lowercase();
        format!(
            "{status} {} +{} -{}",
            file.path, file.additions, file.deletions
        )
    };
    changes.files.iter().map(line).collect()
}

pub(crate) fn codes(changes: &Changes) -> Vec<&str> {
    changes
        .warnings
        .iter()
        .map(|warning| warning.code.as_str())
        .collect()
}
