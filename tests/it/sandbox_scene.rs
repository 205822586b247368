//! What the tests of the sandbox share: a workspace between places that no
//! command may touch, and commands in it under each tier.

#![expect(
    clippy::print_stderr,
    reason = "what is not tested on a machine is said"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::process::{CommandSpec, Confinement, Ending, Process, Progress, Streams};
use agent::sandbox::{
    Grounds, Sandbox, SandboxMode, SandboxOptions, Tier, TierChoice, environment,
};
use tokio_util::sync::CancellationToken;

/// The tiers to test. `landlock` must work wherever the tests run; `namespaces`
/// is what some containers forbid, and then it is said.
pub(crate) async fn tiers() -> Vec<Tier> {
    let mut tiers = Vec::new();
    for (tier, works) in agent::sandbox::tiers().await {
        match (tier, works) {
            (_, Ok(())) => tiers.push(tier),
            (Tier::Namespaces, Err(reason)) => {
                not_tested(&format!("namespaces do not work here: {reason}"));
            }
            (Tier::Landlock, Err(reason)) => panic!("no Landlock here: {reason}"),
        }
    }
    tiers
}

/// Says that something cannot be tested on this machine.
pub(crate) fn not_tested(reason: &str) {
    eprintln!("not tested: {reason}");
}

/// A scene for what only namespaces do; none where they do not work.
pub(crate) async fn namespaces() -> Option<Scene> {
    let there = tiers().await.contains(&Tier::Namespaces);
    there.then(|| Scene::new(Tier::Namespaces))
}

/// A workspace with neighbours.
pub(crate) struct Scene {
    root: tempfile::TempDir,
    /// What the task says.
    pub(crate) options: SandboxOptions,
    /// Where it is.
    pub(crate) grounds: Grounds,
    /// How long a command may take.
    pub(crate) timeout: Duration,
}

/// How a command went.
#[derive(Debug)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) ending: Ending,
    /// What it printed, errors included.
    pub(crate) said: String,
    /// What was undone.
    pub(crate) undone: Vec<String>,
}

impl Scene {
    /// `work` is the workspace, `home` the user's home with a secret, `outside`
    /// a place of somebody else.
    pub(crate) fn new(tier: Tier) -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().canonicalize().unwrap();
        for name in ["work", "home/.ssh", "home/.cargo/bin", "outside", "private"] {
            std::fs::create_dir_all(at.join(name)).unwrap();
        }
        std::fs::write(at.join("home/.ssh/id_rsa"), "canary-key\n").unwrap();
        std::fs::write(at.join("home/.cargo/credentials.toml"), "canary-token\n").unwrap();
        std::fs::write(at.join("home/.cargo/bin/tool"), "#!/bin/sh\necho tool\n").unwrap();
        std::fs::write(at.join("outside/file"), "canary-outside\n").unwrap();
        Self {
            options: SandboxOptions {
                mode: SandboxMode::Require,
                tier: match tier {
                    Tier::Namespaces => TierChoice::Namespaces,
                    Tier::Landlock => TierChoice::Landlock,
                },
                ..SandboxOptions::default()
            },
            grounds: Grounds {
                workspace: at.join("work"),
                home: Some(at.join("home")),
                private: at.join("private"),
                path: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned(),
                ..Grounds::default()
            },
            root,
            timeout: Duration::from_secs(60),
        }
    }

    /// A path of the scene.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file of the scene.
    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// The content of a file of the scene; empty when there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The sandbox.
    pub(crate) async fn sandbox(&self) -> Arc<dyn Confinement> {
        let established = Sandbox::establish(&self.options, self.grounds.clone()).await;
        Arc::new(established.unwrap().sandbox.unwrap())
    }

    /// A command line in it. `$OUT` is the place outside, `$RUNNER` this process.
    pub(crate) fn command(&self, script: &str, sandbox: Arc<dyn Confinement>) -> CommandSpec {
        let env = vec![
            ("PATH".to_owned(), self.grounds.path.clone()),
            ("OUT".to_owned(), self.path("outside").display().to_string()),
            ("REAL".to_owned(), self.path("home").display().to_string()),
            ("RUNNER".to_owned(), std::process::id().to_string()),
        ];
        let env = environment(&env, &self.grounds, |_| false);
        CommandSpec {
            program: "bash".into(),
            args: vec!["-c".into(), script.into()],
            cwd: self.grounds.workspace.clone(),
            env: env.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
            stdin: None,
            streams: Streams::Merged,
            timeout: Some(self.timeout),
            confinement: Some(sandbox),
        }
    }

    /// Runs a command line.
    pub(crate) async fn run(&self, script: &str) -> Ran {
        let sandbox = self.sandbox().await;
        self.run_in(script, sandbox).await
    }

    /// Runs a command line in a sandbox that is there already.
    pub(crate) async fn run_in(&self, script: &str, sandbox: Arc<dyn Confinement>) -> Ran {
        let mut process = Process::spawn(self.command(script, sandbox)).unwrap();
        let mut said = Vec::new();
        loop {
            match process.next(&CancellationToken::new()).await {
                Progress::Output(bytes) => said.extend_from_slice(&bytes),
                Progress::Ended(ending) => {
                    return Ran {
                        ending,
                        said: String::from_utf8_lossy(&said).into_owned(),
                        undone: process.undone().to_vec(),
                    };
                }
            }
        }
    }
}

/// Runs each script in each tier: it must print `closed` and nothing that says
/// it got anywhere.
pub(crate) async fn closed(scripts: &[&str]) {
    for tier in tiers().await {
        let scene = Scene::new(tier);
        let sandbox = scene.sandbox().await;
        for script in scripts {
            let ran = scene
                .run_in(&format!("{script}\necho closed"), sandbox.clone())
                .await;
            let at = format!("{} `{script}`: {ran:?}", tier.name());
            assert!(!ran.said.contains("OPEN"), "{at}");
            assert!(ran.said.contains("closed"), "{at}");
        }
    }
}
