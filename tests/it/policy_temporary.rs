//! Redirections into the temporary files that a sandbox gives commands.

use std::fs;
use std::os::unix::fs::symlink;

use agent::access::Access;
use agent::policy::{
    Enforcement, Mode, Permissions, Policy, PrivateDirectory, Rule, Surroundings, TemporaryFiles,
};
use serde_json::{Value, json};

use crate::sandbox_run::{said, tiers};
use crate::support::cli::Cli;

/// The decisions about commands under `Bash(echo:*)`, in a tier with a private
/// `/tmp` or with `$TMPDIR` alone.
struct Fixture {
    root: tempfile::TempDir,
    mounted: bool,
    mode: Mode,
}

impl Fixture {
    fn new(mounted: bool, mode: Mode) -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["work", "private"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        Self {
            root,
            mounted,
            mode,
        }
    }

    fn check(&self, command: &str) -> (bool, String) {
        let root = self.root.path().canonicalize().unwrap();
        let place = root.join("private");
        let mut private = vec![PrivateDirectory::at(place.clone(), place.clone())];
        if self.mounted {
            private.push(PrivateDirectory::at("/tmp".into(), place.clone()));
        }
        let permissions = Permissions {
            mode: self.mode,
            allow: vec![
                Rule::parse("Bash(echo:*)", "rules").unwrap(),
                Rule::parse("Bash(tee:*)", "rules").unwrap(),
            ],
            ..Permissions::default()
        };
        let surroundings = Surroundings {
            workspace: root.join("work"),
            protected: vec!["/tmp/task.yaml".into()],
            sandbox: Enforcement::Enforced,
            temporary: TemporaryFiles {
                variable: Some(place),
                private,
            },
            ..Surroundings::default()
        };
        let policy = Policy::new(permissions, surroundings);
        let decision = policy.decide("bash", &[Access::Exec(command.to_owned())]);
        (decision.is_allowed(), decision.reason)
    }

    fn allows(&self, commands: &[&str]) {
        for command in commands {
            let (allowed, reason) = self.check(command);
            assert!(allowed, "{command}: {reason}");
        }
    }

    fn denies(&self, commands: &[&str]) {
        for command in commands {
            let (allowed, reason) = self.check(command);
            assert!(!allowed, "{command}: {reason}");
        }
    }
}

const IN_TMPDIR: &[&str] = &[
    "echo a > $TMPDIR/x",
    "echo a 2>\"$TMPDIR/sub/err\"",
    "echo a >> ${TMPDIR}/x",
    "echo a < $TMPDIR/x",
    "echo a | tee $TMPDIR/x",
];

const IN_TMP: &[&str] = &[
    "echo a > /tmp/x",
    "echo a 2>/tmp/err",
    "echo a &> /tmp/sub/x",
    "echo a | tee /tmp/x",
];

#[test]
fn a_redirection_may_write_where_only_commands_do() {
    for mode in [Mode::AcceptEdits, Mode::Workspace] {
        let fixture = Fixture::new(true, mode);
        fixture.allows(IN_TMPDIR);
        fixture.allows(IN_TMP);
        fixture.denies(&[
            "echo a > /tmp/task.yaml",
            "echo a > /tmp/../etc/x",
            "echo a > /var/tmp/x",
            "echo a > /dev/shm/x",
            "echo a > $TMPDIR/../../../../../../etc/x",
        ]);
    }
    // The mode `workspace` leaves to the sandbox what cannot be known.
    let unknown = ["echo a > /tmp/$x", "echo a > ~/x", "echo a > $(mktemp)"];
    Fixture::new(true, Mode::AcceptEdits).denies(&unknown);
    Fixture::new(true, Mode::Workspace).allows(&unknown);
}

#[test]
fn a_link_there_leads_no_redirection_elsewhere() {
    let fixture = Fixture::new(true, Mode::AcceptEdits);
    let root = fixture.root.path();
    fs::create_dir(root.join("outside")).unwrap();
    symlink(root.join("outside"), root.join("private/link")).unwrap();
    fixture.denies(&[
        "echo a > /tmp/link/x",
        "echo a > $TMPDIR/link/x",
        "echo a | tee /tmp/link/x",
    ]);
}

#[test]
fn where_tmp_is_shared_the_refusal_names_tmpdir() {
    let fixture = Fixture::new(false, Mode::AcceptEdits);
    fixture.allows(IN_TMPDIR);
    fixture.denies(IN_TMP);
    let (_, reason) = fixture.check("echo a > /tmp/x");
    assert!(reason.contains("`$TMPDIR`"), "{reason}");
}

#[test]
fn a_read_only_run_writes_nowhere() {
    let fixture = Fixture::new(true, Mode::ReadOnly);
    fixture.denies(&["echo a > /tmp/x", "echo a > $TMPDIR/x"]);
    fixture.allows(&["echo a < $TMPDIR/x", "echo a < /tmp/x"]);
}

#[test]
fn another_shell_may_have_another_tmpdir() {
    let fixture = Fixture::new(true, Mode::AcceptEdits);
    fixture.denies(&[
        "env -i bash -c 'echo a > $TMPDIR/x'",
        "TMPDIR=/etc; echo a > $TMPDIR/x",
    ]);
}

/// The commands of a run find what policy promised.
#[test]
fn a_run_writes_its_temporary_files_in_every_tier() {
    for tier in tiers() {
        let task = format!(
            "version: 1\nprompt: go\nsettings: {{model: scripted/s.yaml}}\n\
             permissions: {{mode: accept_edits, allow: [\"Bash(echo:*)\", \"Bash(cat:*)\"]}}\n\
             sandbox: {{mode: require, tier: {tier}}}\n"
        );
        let commands = [
            "echo made-one > $TMPDIR/one && cat $TMPDIR/one",
            "echo made-two > /tmp/agent-two && cat /tmp/agent-two",
        ];
        let call = |command: &&str| json!({"calls": [{"name": "bash", "arguments": {"command": command}}]});
        let mut script: Vec<Value> = commands.iter().map(call).collect();
        script.push(json!({"text": "done"}));
        let done = Cli::new()
            .file("task.yaml", task)
            .file("s.yaml", Value::from(script).to_string())
            .args(["run", "task.yaml", "--output-format", "json"])
            .run();
        let said = said(&done);
        assert!(said.contains("made-one\\n"), "{tier}: {said}");
        assert_eq!(
            said.contains("made-two\\n"),
            tier == "namespaces",
            "{tier}: {said}"
        );
        assert_eq!(
            said.contains("`$TMPDIR`"),
            tier == "landlock",
            "{tier}: {said}"
        );
        assert!(!std::path::Path::new("/tmp/agent-two").exists(), "{tier}");
    }
}
