//! Which reads and writes rules, protections and modes allow.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use agent::access::Access;
use agent::event::Decider;
use agent::policy::{Decision, Mode, Permissions, Policy, Rule, Surroundings, Verdict};

/// A workspace beside a home and a foreign directory.
struct World {
    root: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for directory in [
            "ws/src/deep",
            "ws/.git/hooks",
            "ws/runs/1",
            "home/.ssh",
            "other/out",
        ] {
            fs::create_dir_all(root.path().join(directory)).expect("a directory");
        }
        for file in [
            "ws/src/a.rs",
            "ws/.env",
            "other/file",
            "home/.ssh/id_rsa",
            "ws/task.yaml",
        ] {
            fs::write(root.path().join(file), "x").expect("a file");
        }
        Self { root }
    }

    /// `~/x` is the home, `^x` beside the workspace, `/x` absolute, else inside.
    fn path(&self, text: &str) -> PathBuf {
        if text.starts_with('/') {
            return PathBuf::from(text);
        }
        match (text.strip_prefix("~/"), text.strip_prefix('^')) {
            (Some(rest), _) => self.root.path().join("home").join(rest),
            (_, Some(rest)) => self.root.path().join(rest),
            _ => self.root.path().join("ws").join(text),
        }
    }

    fn policy(&self, mode: Mode, allow: &[&str], deny: &[&str]) -> Policy {
        let parse = |texts: &[&str], list: &str| {
            let numbered = texts.iter().enumerate();
            numbered
                .map(|(at, text)| {
                    let text = text.replace('^', &format!("{}/", self.root.path().display()));
                    Rule::parse(&text, &format!("permissions.{list}[{at}]")).expect("a rule")
                })
                .collect()
        };
        let permissions = Permissions {
            mode,
            allow: parse(allow, "allow"),
            deny: parse(deny, "deny"),
            additional_directories: vec![PathBuf::from("../other/out")],
            ..Permissions::default()
        };
        Policy::new(
            permissions,
            Surroundings {
                workspace: self.path(""),
                home: Some(self.path("~/")),
                protected: vec![self.path("task.yaml"), self.path("runs/1")],
                ..Surroundings::default()
            },
        )
    }
}

/// `r path` reads, `w path` writes.
fn decide(world: &World, policy: &Policy, call: &str) -> Decision {
    let (kind, text) = call.split_once(' ').expect("a kind and a path");
    let path = world.path(text);
    match kind {
        "r" => policy.decide("read", &[Access::Read(path)]),
        _ => policy.decide("edit", &[Access::Write(path)]),
    }
}

fn check(world: &World, policy: &Policy, allowed: &[&str], denied: &[&str]) {
    for call in allowed {
        let decision = decide(world, policy, call);
        assert!(decision.is_allowed(), "{call}: {}", decision.reason);
    }
    for call in denied {
        let decision = decide(world, policy, call);
        assert_eq!(
            decision.verdict,
            Verdict::Deny,
            "{call}: {}",
            decision.reason
        );
    }
}

#[test]
fn modes_end_at_the_workspace() {
    let world = World::new();
    let reads = [
        "r src/a.rs",
        "r new/x",
        "r .",
        "r ^other/out/x",
        "r task.yaml",
        "r .git/HEAD",
    ];
    let writes = [
        "w src/a.rs",
        "w new/deep/x",
        "w ^other/out/x",
        "w .gitignore",
        "w runs/2",
    ];
    let outside = [
        "r /etc/passwd",
        "r ^other/file",
        "w ^other/file",
        "w ^wsx",
        "r ~/x",
    ];
    let strict = world.policy(Mode::ReadOnly, &[], &[]);
    check(&world, &strict, &reads, &writes);
    check(&world, &strict, &[], &outside);
    let edits = world.policy(Mode::AcceptEdits, &[], &[]);
    check(&world, &edits, &reads, &outside);
    check(&world, &edits, &writes, &[]);
    let bypass = world.policy(Mode::Bypass, &[], &["Read(/etc/**)"]);
    check(
        &world,
        &bypass,
        &["r ^other/file", "w ^other/file", "w ~/x"],
        &["r /etc/passwd"],
    );
}

#[test]
fn protections_hold_in_every_mode() {
    let world = World::new();
    let protected = [
        "w .git/config",
        "w .git/hooks/pre-commit",
        "w .git",
        "w .GIT/x",
        "w sub/.git/config",
        "w .git./x",
        "w .g\u{200d}it/x",
        "w task.yaml",
        "w runs/1/events.jsonl",
        "w runs/1",
        "r .env",
        "r .env.local",
        "r deep/.ENV",
        "r .envrc",
        "w .env",
        "r ~/.ssh/id_rsa",
        "r ~/.ssh",
        "r ~/.aws/credentials",
        "r ~/.config/gcloud/x",
        "r ~/.netrc",
        "r .git/config",
        "r ~/.docker/config.json",
        "r /proc/self/environ",
        "r /proc/1/environ",
        "r /proc/self/root/x",
        "r /dev/fd/0",
        "r /etc/shadow",
        "r /run/secrets/x",
    ];
    for mode in Mode::ALL {
        for allow in [
            &[][..],
            &[
                "Read",
                "Edit",
                "Read(/**)",
                "Edit(**)",
                "Read(**)",
                "Edit(*/**)",
            ],
        ] {
            let policy = world.policy(*mode, allow, &[]);
            check(&world, &policy, &[], &protected);
            let decision = decide(&world, &policy, "r .env");
            assert_eq!(decision.by, Decider::Policy);
        }
    }
}

#[test]
fn a_rule_that_names_it_lifts_a_protection() {
    let world = World::new();
    let policy = world.policy(
        Mode::ReadOnly,
        &[
            "Read(.env.example)",
            "Edit(.git/info/**)",
            "Read(~/.ssh/config)",
            "Edit(task.yaml)",
            "Edit(runs/1/**)",
        ],
        &[],
    );
    check(
        &world,
        &policy,
        &[
            "r .env.example",
            "w .git/info/exclude",
            "r ~/.ssh/config",
            "w task.yaml",
            "w runs/1/x",
        ],
        &[
            "r .env",
            "w .git/config",
            "r ~/.ssh/id_rsa",
            "w .env.example",
            "r /proc/self/environ",
        ],
    );
}

#[test]
fn links_are_judged_by_where_they_lead() {
    let world = World::new();
    let link = |target: PathBuf, name: &str| symlink(target, world.path(name)).expect("a link");
    link(world.path("^other"), "out");
    link(world.path("src"), "alias");
    link(world.path("^nowhere"), "dangling");
    link(world.path("loop"), "loop");
    link(PathBuf::from("/proc/self"), "me");
    link(world.path(".env"), "harmless.txt");
    link(world.path(".git"), "repository");
    let policy = world.policy(Mode::AcceptEdits, &["Edit(out/**)"], &["Edit(src/deep/**)"]);
    check(
        &world,
        &policy,
        &["r alias/a.rs", "w alias/new", "w out/out/x"],
        &[
            "r out/file",
            "w out/file",
            "w out/new/x",
            "w dangling",
            "r dangling",
            "r loop",
            "r me/environ",
            "r harmless.txt",
            "w repository/config",
            "w alias/deep/x",
        ],
    );
    let reason = decide(&world, &policy, "r out/file").reason;
    assert!(
        reason.contains("really") && reason.contains("other/file"),
        "{reason}"
    );
}

#[test]
fn patterns_are_rooted_and_stars_stay_in_their_directory() {
    let world = World::new();
    let policy = world.policy(
        Mode::ReadOnly,
        &[
            "Edit(src/*.rs)",
            "Edit(./docs/**)",
            "Edit(^other/*.txt)",
            "Edit(~/notes/**)",
            "Edit(lit/)",
            "Edit(file)",
        ],
        &[],
    );
    check(
        &world,
        &policy,
        &[
            "w src/a.rs",
            "w docs/a/b",
            "w docs",
            "w ^other/a.txt",
            "w ~/notes/x",
            "w lit/a/b",
            "w file",
        ],
        &[
            "w src/deep/a.rs",
            "w src/a.py",
            "w x/docs/a",
            "w ^other/a/b.txt",
            "w file/x",
            "w ^ws2/docs/x",
        ],
    );
}

#[test]
fn denials_cover_directories_and_beat_everything() {
    let world = World::new();
    let policy = world.policy(
        Mode::Bypass,
        &["Edit(src/a.rs)", "Read"],
        &[
            "Edit(src)",
            "Read(secret/)",
            "Read(*.pem)",
            "Read(**/private/**)",
            "Ls",
            "Write",
        ],
    );
    check(
        &world,
        &policy,
        &["w srcx", "r src/a.rs", "r sub/x.pen", "w secret/x"],
        &[
            "w src/a.rs",
            "w src/deep/x",
            "w src",
            "r secret",
            "r secret/a/b",
            "r x.pem",
            "r sub/x.pem",
            "r a/private/b",
            "r a/private",
        ],
    );
    let decision = decide(&world, &policy, "w src/a.rs");
    assert_eq!(
        decision.rule.as_deref(),
        Some("permissions.deny[0] Edit(src)")
    );
    assert_eq!(decision.suggested_rule, None);
    let start = "denied by permissions.deny[0] Edit(src): writing src/a.rs is not allowed";
    assert!(decision.reason.starts_with(start), "{}", decision.reason);
    // Whole-tool rules speak of one tool.
    let read = [Access::Read(world.path("src"))];
    assert_eq!(policy.decide("ls", &read).verdict, Verdict::Deny);
    assert!(policy.decide("find", &read).is_allowed());
    let write = [Access::Write(world.path("x"))];
    assert_eq!(policy.decide("write", &write).verdict, Verdict::Deny);
    assert!(policy.decide("edit", &write).is_allowed());
}

#[test]
fn every_access_of_a_call_has_to_be_allowed() {
    let world = World::new();
    let policy = world.policy(Mode::AcceptEdits, &[], &["Edit(b)"]);
    let write = |name: &str| Access::Write(world.path(name));
    assert!(
        policy
            .decide("edit", &[write("a"), write("c")])
            .is_allowed()
    );
    assert_eq!(
        policy.decide("edit", &[write("a"), write("b")]).verdict,
        Verdict::Deny
    );
    let exec = Access::Exec("ls".to_owned());
    assert_eq!(
        policy.decide("edit", &[write("a"), exec]).verdict,
        Verdict::Deny
    );
    assert_eq!(policy.decide("edit", &[]).verdict, Verdict::Deny);
    assert!(policy.decide("todo", &[]).is_allowed());
    let upward = Access::Write(world.path("../other/file"));
    assert_eq!(policy.decide("edit", &[upward]).verdict, Verdict::Deny);
    let relative = Access::Read(PathBuf::from("src/a.rs"));
    assert_eq!(policy.decide("read", &[relative]).verdict, Verdict::Deny);
}

#[test]
fn walkers_pass_over_what_must_not_be_read() {
    let world = World::new();
    let policy = world.policy(
        Mode::ReadOnly,
        &["Read(.env.example)"],
        &["Read(src/deep/**)"],
    );
    let may = |text: &str| policy.may_read("read", &world.path(text));
    assert!(may("src/a.rs") && may(".env.example") && may(".git/HEAD"));
    for refused in [
        ".env",
        "src/deep/x",
        ".git/config",
        "/etc/passwd",
        "/proc/self/environ",
        "^other/file",
    ] {
        assert!(!may(refused), "{refused}");
    }
}

#[test]
fn suggested_rules_would_have_allowed_it() {
    let world = World::new();
    for call in [
        "w src/a.rs",
        "w odd [x]{y}*",
        "r /etc/passwd",
        "r .env",
        "w .git/config",
        "w task.yaml",
        "r ~/.ssh/id_rsa",
    ] {
        let denied = decide(&world, &world.policy(Mode::ReadOnly, &[], &[]), call);
        let rule = denied
            .suggested_rule
            .unwrap_or_else(|| panic!("{call}: {}", denied.reason));
        let policy = world.policy(Mode::ReadOnly, &[&rule], &[]);
        let decision = decide(&world, &policy, call);
        assert!(
            decision.is_allowed(),
            "{rule} for {call}: {}",
            decision.reason
        );
        assert_eq!(decision.by, Decider::Rule);
    }
}

#[test]
fn a_workspace_behind_a_link_is_the_same_workspace() {
    let world = World::new();
    symlink(world.path(""), world.path("^link")).expect("a link");
    let policy = Policy::new(
        Permissions {
            allow: vec![Rule::parse("Edit(src/**)", "--allow").expect("a rule")],
            deny: vec![Rule::parse("Read(src/deep)", "--deny").expect("a rule")],
            ..Permissions::default()
        },
        Surroundings {
            workspace: world.path("^link"),
            ..Surroundings::default()
        },
    );
    let write = |path: &Path| policy.decide("edit", &[Access::Write(path.to_owned())]);
    assert!(write(&world.path("^link/src/x")).is_allowed());
    assert!(write(&world.path("src/x")).is_allowed());
    assert!(!policy.may_read("read", &world.path("^link/src/deep/x")));
    assert!(!policy.may_read("read", &world.path("src/deep/x")));
}

#[test]
fn a_decision_serialises_as_its_explanation() {
    let world = World::new();
    let denied = decide(
        &world,
        &world.policy(Mode::ReadOnly, &[], &[]),
        "w src/a.rs",
    );
    let value = serde_json::to_value(&denied).expect("json");
    assert_eq!(value["decision"], "deny");
    assert_eq!(value["by"], "mode");
    assert_eq!(value["suggestedRule"], "Edit(src/a.rs)");
    assert!(value.get("rule").is_none());
}

#[test]
fn a_walk_is_judged_as_the_tool_that_walks() {
    let world = World::new();
    let policy = world.policy(Mode::ReadOnly, &["Grep"], &["Ls"]);
    for (tool, path, expected) in [
        ("grep", "^other/file", false),
        ("find", "^other/file", false),
        ("grep", "src/a.rs", true),
        ("ls", "src/a.rs", false),
        ("grep", ".env", false),
    ] {
        let may = policy.may_read(tool, &world.path(path));
        assert_eq!(may, expected, "{tool} {path}");
    }
}
