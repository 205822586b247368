//! How far the file tools reach: bare rules mean the job's directories, and what
//! holds credentials is read by none of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use agent::access::{Access, HOME_CREDENTIALS, MACHINE_CREDENTIALS};
use agent::policy::{Decision, Mode, Permissions, Policy, Rule, Surroundings};
use serde_json::json;

use crate::sandbox_run::{said, tiers};
use crate::support::cli::Cli;

struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["ws", "more", "home", "other"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        Self(root)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn policy(&self, mode: Mode, allow: &[&str], deny: &[&str]) -> Policy {
        let rules = |texts: &[&str], list: &str| {
            let rules = texts.iter().map(|text| Rule::parse(text, list).unwrap());
            rules.collect()
        };
        let permissions = Permissions {
            mode,
            allow: rules(allow, "allow"),
            deny: rules(deny, "deny"),
            additional_directories: vec![self.path("more")],
            ..Permissions::default()
        };
        let surroundings = Surroundings {
            workspace: self.path("ws"),
            home: Some(self.path("home")),
            keys: vec![self.path("ws/key"), self.path("other/key")],
            ..Surroundings::default()
        };
        Policy::new(permissions, surroundings)
    }
}

fn read(policy: &Policy, path: impl AsRef<Path>) -> Decision {
    policy.decide("read", &[Access::Read(path.as_ref().to_owned())])
}

fn write(policy: &Policy, path: impl AsRef<Path>) -> Decision {
    policy.decide("write", &[Access::Write(path.as_ref().to_owned())])
}

#[test]
fn bare_rules_mean_the_directories_of_the_job() {
    let world = World::new();
    let bare = world.policy(Mode::ReadOnly, &["Read", "Edit", "Grep", "Write"], &[]);
    for inside in ["ws/a", "more/a"] {
        assert!(read(&bare, world.path(inside)).is_allowed(), "{inside}");
        assert!(write(&bare, world.path(inside)).is_allowed(), "{inside}");
    }
    for outside in [
        world.path("other/a"),
        world.path("home/a"),
        "/etc/passwd".into(),
    ] {
        let refused = read(&bare, &outside);
        assert!(!refused.is_allowed(), "{}", refused.reason);
        assert!(!write(&bare, &outside).is_allowed(), "{outside:?}");
        let grep = bare.decide("grep", &[Access::Read(outside.clone())]);
        assert!(!grep.is_allowed(), "{}", grep.reason);
        assert!(!bare.may_read("grep", &outside), "{outside:?}");
        let suggested = refused.suggested_rule.unwrap();
        let lifted = world.policy(Mode::ReadOnly, &[&suggested], &[]);
        assert!(read(&lifted, &outside).is_allowed(), "{suggested}");
    }
    let machine = world.policy(Mode::ReadOnly, &["Read(//**)", "Edit(//**)"], &[]);
    for outside in [world.path("other/a"), "/etc/passwd".into(), "/".into()] {
        let allowed = read(&machine, &outside);
        assert!(allowed.is_allowed(), "{}", allowed.reason);
        assert!(write(&machine, &outside).is_allowed(), "{outside:?}");
    }
    // A denial still means everything.
    let denied = world.policy(Mode::Bypass, &["Read(//**)"], &["Read", "Edit"]);
    for path in [
        world.path("ws/a"),
        world.path("other/a"),
        "/etc/passwd".into(),
    ] {
        assert!(!read(&denied, &path).is_allowed(), "{path:?}");
        assert!(!write(&denied, &path).is_allowed(), "{path:?}");
    }
}

#[test]
fn no_rule_for_the_machine_opens_credentials() {
    let world = World::new();
    symlink(world.path("home/.config/gcloud"), world.path("ws/cloud")).unwrap();
    fs::create_dir_all(world.path("home/.config/gcloud")).unwrap();
    symlink("/proc/self/environ", world.path("ws/environment")).unwrap();
    for mode in [Mode::ReadOnly, Mode::Bypass] {
        let policy = world.policy(mode, &["Read(//**)", "Edit(//**)", "Read(~/**)"], &[]);
        let home = HOME_CREDENTIALS
            .iter()
            .map(|name| world.path("home").join(name));
        let machine = MACHINE_CREDENTIALS.iter().map(PathBuf::from);
        let process = [
            "/proc/self/environ",
            "/proc/1/environ",
            "/proc/1/mem",
            "/proc/self/fd/3",
            "/proc/thread-self/environ",
            "/proc/1/task/1/environ",
            "/proc/kcore",
            "/dev/fd/3",
        ];
        let more = [
            "ws/cloud/x",
            "ws/environment",
            "ws/.env",
            "ws/key",
            "other/key",
        ];
        let more = more.iter().map(|name| world.path(name));
        for path in home
            .chain(machine)
            .chain(more)
            .chain(process.map(PathBuf::from))
        {
            let below = (!path.ends_with(".env")).then(|| path.join("x"));
            for path in [path].into_iter().chain(below) {
                let decision = read(&policy, &path);
                assert!(
                    !decision.is_allowed(),
                    "{mode} {path:?}: {}",
                    decision.reason
                );
                assert!(!policy.may_read("grep", &path), "{mode} {path:?}");
            }
        }
    }
    let named = world.policy(Mode::ReadOnly, &["Read(key)"], &[]);
    assert!(read(&named, world.path("ws/key")).is_allowed());
}

#[test]
fn settings_of_the_machine_that_are_closed_to_others_stay_closed() {
    let world = World::new();
    let policy = world.policy(Mode::ReadOnly, &["Read(//**)"], &[]);
    let closed = |path: &Path| {
        let found = path.metadata().ok();
        found.is_some_and(|found| found.is_file() && found.permissions().mode() & 0o4 == 0)
    };
    let mut seen = 0;
    for entry in fs::read_dir("/etc").unwrap().flatten() {
        let path = entry.path();
        if closed(&path) {
            let decision = read(&policy, &path);
            assert!(!decision.is_allowed(), "{path:?}: {}", decision.reason);
            seen += 1;
        }
    }
    assert!(seen > 0, "every machine has such a file, as /etc/shadow");
}

#[test]
fn a_key_file_in_the_workspace_is_read_by_no_tool_and_no_program() {
    for tier in tiers() {
        let task = format!(
            "version: 1\nprompt: go\nsettings: {{model: scripted/s.yaml}}\n\
             permissions: {{mode: accept_edits, allow: [Read, 'Bash(bash go.sh)']}}\n\
             sandbox: {{mode: require, tier: {tier}}}\n"
        );
        let call = |name: &str, arguments: serde_json::Value| json!({"calls": [{"name": name, "arguments": arguments}]});
        let script = json!([
            call("read", json!({"path": "provider.txt"})),
            call("grep", json!({"pattern": "canary", "path": "."})),
            call("bash", json!({"command": "bash go.sh"})),
            {"text": "done"},
        ]);
        let cli = Cli::new();
        let key = cli.cwd().join("provider.txt");
        let done = cli
            .file("task.yaml", task)
            .file("s.yaml", script.to_string())
            // Only a part of it, so that no redaction hides that it was read.
            .file("go.sh", "head -c 12 provider.txt | rev; echo end\n")
            .file("provider.txt", "canary-of-the-key-file\n")
            .env("ANTHROPIC_API_KEY_FILE", key)
            .args(["run", "task.yaml", "--output-format", "json"])
            .run();
        let said = said(&done);
        assert!(said.contains("end"), "{tier}: {said}");
        assert!(
            said.contains("a file with a key of this run"),
            "{tier}: {said}"
        );
        if tier == "namespaces" {
            assert!(!said.contains("yranac"), "{tier}: {said}");
        }
    }
}
