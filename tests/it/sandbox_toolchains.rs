//! Toolchains in the sandbox: where variables say that they are, commands can use
//! them, and their credentials stay closed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::sandbox_run::{said, task, tiers};
use crate::sandbox_scene::{self, Scene};
use crate::support::cli::{self, Cli};

/// Directories of a machine, as an official image has them.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn file(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn program(&self, name: &str, script: &str) {
        self.file(name, &format!("#!/bin/bash\n{script}\n"));
        open_to(&self.path(name), 0o755);
    }

    /// `cli` on this machine: the variables name directories of it, and the programs
    /// are in `bins`.
    fn with(&self, cli: Cli, bins: &[&str], variables: &[(&str, &str)]) -> Cli {
        let mut path = std::ffi::OsString::new();
        for bin in bins {
            path.push(self.path(bin));
            path.push(":");
        }
        path.push(cli::path());
        let named = variables.iter();
        named.fold(cli.env("PATH", path), |cli, (name, place)| {
            cli.env(name, self.path(place))
        })
    }
}

fn open_to(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_layouts_of_official_images_work() {
    let machine = Machine::new();
    machine.file("rustup/settings.toml", "rust-works");
    machine.program(
        "cargo/bin/cargo",
        "cat $RUSTUP_HOME/settings.toml $CARGO_HOME/env",
    );
    machine.file("cargo/env", "-env");
    machine.file("go/src/lib.go", "go-works");
    machine.file("gopath/pkg/mod/x/x.go", "-mod");
    machine.program("go/bin/go", "cat $GOROOT/src/lib.go $GOPATH/pkg/mod/x/x.go");
    machine.file("bundle/gems/rake/rake.rb", "ruby-works");
    machine.file("bundle/config", "---\nBUNDLE_FROZEN: \"true\"\n");
    machine.program(
        "bundle/bin/rake",
        "cat $GEM_HOME/gems/rake/rake.rb && grep -c FROZEN $BUNDLE_APP_CONFIG/config",
    );
    machine.file("venv/lib/site.py", "venv-works");
    machine.program("venv/bin/py", "cat $VIRTUAL_ENV/lib/site.py");
    let bins = ["cargo/bin", "go/bin", "bundle/bin", "venv/bin"];
    let variables = [
        ("CARGO_HOME", "cargo"),
        ("RUSTUP_HOME", "rustup"),
        ("GOROOT", "go"),
        ("GOPATH", "gopath"),
        ("GEM_HOME", "bundle"),
        ("BUNDLE_APP_CONFIG", "bundle"),
        ("VIRTUAL_ENV", "venv"),
    ];
    for tier in tiers().into_iter().chain(["off"]) {
        let section = match tier {
            "off" => "{mode: off}".to_owned(),
            tier => format!("{{mode: require, tier: {tier}}}"),
        };
        let cli = task(&["cargo; echo; go; echo; rake; py"], &section);
        let done = machine.with(cli, &bins, &variables).run();
        let told = said(&done);
        for works in [
            "rust-works-env",
            "go-works-mod",
            "ruby-works1",
            "venv-works",
        ] {
            assert!(told.contains(works), "{tier} {works}: {told}");
        }
    }
}

#[test]
fn credentials_of_toolchains_elsewhere_stay_closed() {
    let machine = Machine::new();
    for name in [
        "cargo/credentials.toml",
        "cargo/config.toml",
        "gems/credentials",
        "bundle/config",
        "gradle/gradle.properties",
        "gradle/init.gradle",
        "gradle/init.d/a.gradle",
        "composer/auth.json",
    ] {
        let text = match name {
            "bundle/config" => "BUNDLE_GEMS__EXAMPLE__COM: \"me:canary\"\n",
            _ => "[registry]\ntoken = \"canary\"\n",
        };
        machine.file(name, text);
    }
    let variables = [
        ("CARGO_HOME", "cargo"),
        ("GEM_HOME", "gems"),
        ("BUNDLE_APP_CONFIG", "bundle"),
        ("GRADLE_USER_HOME", "gradle"),
        ("COMPOSER_HOME", "composer"),
    ];
    for tier in tiers() {
        let command = "for d in $CARGO_HOME $GEM_HOME $BUNDLE_APP_CONFIG $GRADLE_USER_HOME \
                       $COMPOSER_HOME; do ls $d && cat $d/* $d/init.d/*; done; echo looked";
        let cli = task(&[command], &format!("{{tier: {tier}}}"));
        let told = said(&machine.with(cli, &[], &variables).run());
        assert!(
            told.contains("credentials.toml") && told.contains("looked"),
            "{tier}: {told}"
        );
        assert!(!told.contains("canary"), "{tier}: {told}");
    }
}

#[test]
fn what_names_no_directory_does_not_reach_commands() {
    let machine = Machine::new();
    machine.file("file", "");
    std::fs::create_dir_all(machine.path("cache")).unwrap();
    let variables = [
        ("CARGO_HOME", "missing"),
        ("JAVA_HOME", "file"),
        ("GOCACHE", "cache"),
    ];
    for tier in tiers() {
        let command = "echo \"<$CARGO_HOME$JAVA_HOME$GOROOT$GOTOOLCHAIN$GOCACHE>\"";
        let cli = task(&[command], &format!("{{tier: {tier}}}"))
            .env("GOROOT", "usr")
            .env("GOTOOLCHAIN", "local");
        let told = said(&machine.with(cli, &[], &variables).run());
        assert!(told.contains("<local>"), "{tier}: {told}");
    }
}

#[test]
fn requirements_are_looked_for_with_the_variables_of_commands() {
    let machine = Machine::new();
    machine.file("rustup/version", "cargo 1.90.0");
    machine.program("cargo/bin/cargo", "cat $RUSTUP_HOME/version");
    let text = "version: 1\nprompt: go\nsettings: {model: scripted/s.yaml}\n\
                requires: {commands: [cargo >= 1.80]}\n";
    for command in ["run", "doctor"] {
        let cli = Cli::new()
            .file("task.yaml", text)
            .file("s.yaml", "- text: done\n")
            .args([command, "task.yaml"]);
        let variables = [("CARGO_HOME", "cargo"), ("RUSTUP_HOME", "rustup")];
        machine.with(cli, &["cargo/bin"], &variables).run();
    }
}

#[tokio::test]
async fn credentials_in_tools_of_the_home_directory_are_closed() {
    for tier in sandbox_scene::tiers().await {
        let mut scene = Scene::new(tier);
        let closed = [
            ".cargo/config.toml",
            ".local/share/uv/credentials/api.toml",
            ".gradle/init.gradle",
            ".gradle/init.gradle.kts",
            ".gradle/init.d/login.gradle",
            ".gradle/gradle.properties",
            ".gem/credentials",
            ".bundle/config",
        ];
        for name in closed {
            scene.file(&format!("home/{name}"), "password = 'canary'\n");
        }
        scene.file("home/.local/share/uv/python/bin/python", "open\n");
        let script = "cd $REAL; cat .cargo/config.toml .local/share/uv/credentials/* \
                      .gradle/init.* .gradle/init.d/* .gradle/*.properties .gem/credentials \
                      .bundle/config; cat .local/share/uv/python/bin/python";
        let ran = scene.run(script).await;
        let at = format!("{} {ran:?}", tier.name());
        assert!(!ran.said.contains("canary"), "{at}");
        assert!(ran.said.ends_with("open\n"), "{at}");

        // A task may open one, and settings without a credential are open.
        scene.options.read = vec![scene.path("home/.gradle/gradle.properties")];
        scene.file("home/.cargo/config.toml", "[build]\njobs = 2\n");
        let ran = scene
            .run("cat $REAL/.gradle/gradle.properties $REAL/.cargo/config.toml")
            .await;
        assert_eq!(
            ran.said,
            "password = 'canary'\n[build]\njobs = 2\n",
            "{}",
            tier.name()
        );
    }
}

/// A self-hosted runner keeps its own credentials below `/opt`.
#[tokio::test]
async fn what_others_may_not_read_below_opt_is_closed() {
    if !rustix::process::geteuid().is_root() {
        sandbox_scene::not_tested("only an administrator installs anything below /opt");
        return;
    }
    for tier in sandbox_scene::tiers().await {
        let installed = tempfile::Builder::new()
            .prefix("agent-test-")
            .tempdir_in("/opt")
            .unwrap();
        let root = installed.path();
        open_to(root, 0o755);
        std::fs::create_dir_all(root.join("deep/er/bin")).unwrap();
        std::fs::create_dir_all(root.join("private")).unwrap();
        for (name, mode) in [
            ("open", 0o644),
            (".credentials", 0o600),
            ("deep/er/key", 0o640),
            ("deep/er/bin/tool", 0o755),
            ("private/inside", 0o644),
        ] {
            std::fs::write(root.join(name), format!("canary-{mode:o}\n")).unwrap();
            open_to(&root.join(name), mode);
        }
        open_to(&root.join("private"), 0o700);
        let at = root.display();
        let script = format!(
            "cd {at}; cat open deep/er/bin/tool .credentials deep/er/key private/inside; \
             find . -type f -exec cat {{}} +; true"
        );
        let scene = Scene::new(tier);
        let ran = scene.run(&script).await;
        let seen: std::collections::BTreeSet<&str> = ran
            .said
            .lines()
            .filter(|line| line.starts_with("canary"))
            .collect();
        let open = ["canary-644", "canary-755"].into();
        assert_eq!(seen, open, "{} {ran:?}", tier.name());
        assert_eq!(ran.said.matches("canary-644").count(), 2, "{ran:?}");

        // So it stays where programs of the installation are in PATH.
        let mut scene = Scene::new(tier);
        scene.grounds.path = format!("{at}/deep/er/bin:{at}:{}", scene.grounds.path);
        let ran = scene.run(&script).await;
        assert!(!ran.said.contains("canary-6400"), "{ran:?}");
        assert!(!ran.said.contains("canary-600"), "{} {ran:?}", tier.name());
    }
}

#[test]
fn directories_of_credentials_in_the_workspace_are_hidden_in_namespaces() {
    if !tiers().contains(&"namespaces") {
        return;
    }
    let command = "cat app/.aws/* app/.aws/sso/* .ssh/* .kube/config; echo looked; \
                   cat .gnupg/allowed; cat .azure/none";
    let mut cli = task(&[command], "{tier: namespaces}");
    for name in [
        "app/.aws/credentials",
        "app/.aws/sso/cache.json",
        ".ssh/deploy",
        ".kube/config",
        ".gnupg/secret",
    ] {
        cli = cli.file(name, "canary\n");
    }
    let cli = cli.file(".gnupg/allowed", "let-through\n");
    let done = cli.args(["--allow", "Read(.gnupg/allowed)"]).run();
    let told = said(&done);
    assert!(told.contains("looked"), "{told}");
    assert!(!told.contains("canary"), "{told}");
    assert!(told.contains("let-through"), "{told}");
}
