//! CI definitions and the configuration of other programs: written by no tool and no
//! command, unless a rule names them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use agent::access::Access;
use agent::policy::{
    Decision, Enforcement, Mode, Permissions, Policy, Rule, Surroundings, automation_places,
};

use crate::sandbox_run::{said, task, tiers};

/// Places that the promise names; the table has more.
const PROMISED: &[&str] = &[
    ".github/workflows/ci.yml",
    ".github/workflows",
    ".github/actions/setup/action.yml",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    ".buildkite/pipeline.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".travis.yml",
    ".drone.yml",
    ".woodpecker.yml",
    ".woodpecker/build.yaml",
    "appveyor.yml",
    ".teamcity/settings.kts",
    "cloudbuild.yaml",
    ".forgejo/workflows/x.yml",
    ".gitea/workflows/x.yml",
    ".agent/skills/x/SKILL.md",
    ".claude/settings.json",
    ".codex/config.toml",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".mcp.json",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".husky/pre-commit",
    ".envrc",
    ".cargo/config.toml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".npmrc",
    ".yarnrc.yml",
];

/// The same by other names.
const SPELLED: &[&str] = &[
    ".GitHub/WorkFlows/ci.yml",
    "sub/.github/workflows/ci.yml",
    ".github./workflows /ci.yml",
    ".github::$INDEX_ALLOCATION/workflows/ci.yml",
    ".g\u{200d}ithub/workflows/ci.yml",
    "GITHUB~1/workflows/ci.yml",
    ".github/WORKFL~2/ci.yml",
    "GITLAB~1.YML",
    "jenkinsfile",
    "JENKIN~1",
    ".vscode:stream/tasks.json",
    "VSCODE~1/tasks.json",
    "\u{ff0e}vscode/../.vscode/tasks.json",
    "alias/workflows/ci.yml",
    "pipelines/ci.yml",
    ".git::$INDEX_ALLOCATION/config",
    "git~1/hooks/x",
];

/// What lies beside them, and everyday work.
const ORDINARY: &[&str] = &[
    ".github/CODEOWNERS",
    ".github/workflows.md",
    ".gitignore",
    ".gitattributes",
    ".vscode-test/x",
    ".cargo/audit.toml",
    "Cargo.toml",
    "package.json",
    "docs/Jenkinsfile.md",
    "src/vscode/a.ts",
    "pipelines.md",
    "a~1",
    "x:y",
];

struct World(tempfile::TempDir);

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = root.path();
        for directory in [".github/workflows", "pipelines", "other"] {
            fs::create_dir_all(at.join("ws").join(directory)).unwrap();
        }
        fs::write(at.join("ws/.github/workflows/ci.yml"), "x").unwrap();
        symlink(".github", at.join("ws/alias")).unwrap();
        symlink("pipelines", at.join("ws/.circleci")).unwrap();
        Self(root)
    }

    fn policy(&self, mode: Mode, allow: &[&str]) -> Policy {
        self.policy_at("ws", mode, allow)
    }

    fn policy_at(&self, workspace: &str, mode: Mode, allow: &[&str]) -> Policy {
        let rules = allow.iter().map(|text| Rule::parse(text, "allow").unwrap());
        let permissions = Permissions {
            mode,
            allow: rules.collect(),
            ..Permissions::default()
        };
        let surroundings = Surroundings {
            workspace: self.0.path().join(workspace),
            sandbox: Enforcement::Enforced,
            ..Surroundings::default()
        };
        Policy::new(permissions, surroundings)
    }

    fn write(&self, policy: &Policy, path: &str) -> Decision {
        let mut at = self.0.path().join("ws");
        for part in Path::new(path) {
            if part == ".." {
                at.pop();
            } else {
                at.push(part);
            }
        }
        policy.decide("edit", &[Access::Write(at)])
    }
}

fn run(policy: &Policy, command: &str) -> Decision {
    policy.decide("bash", &[Access::Exec(command.to_owned())])
}

#[test]
fn what_makes_others_run_something_is_not_written_in_any_mode() {
    let world = World::new();
    for mode in [Mode::AcceptEdits, Mode::Workspace, Mode::Bypass] {
        for allow in [&[][..], &["Edit", "Edit(**)", "Edit(.github/**)", "Bash"]] {
            let policy = world.policy(mode, allow);
            for path in PROMISED.iter().chain(SPELLED).copied() {
                let decision = world.write(&policy, path);
                assert!(!decision.is_allowed(), "{mode} {path}: {}", decision.reason);
            }
            for path in automation_places() {
                assert!(!world.write(&policy, path).is_allowed(), "{path}");
                let below = format!("{path}/x");
                assert!(!world.write(&policy, &below).is_allowed(), "{below}");
            }
            for path in ORDINARY {
                let decision = world.write(&policy, path);
                assert!(decision.is_allowed(), "{mode} {path}: {}", decision.reason);
            }
        }
    }
}

#[test]
fn the_refusal_names_the_rule_that_lifts_it() {
    let world = World::new();
    for path in PROMISED {
        let denied = world.write(&world.policy(Mode::AcceptEdits, &[]), path);
        let rule = denied.suggested_rule.unwrap();
        assert!(
            denied.reason.contains(&format!("`{rule}`")),
            "{}",
            denied.reason
        );
        let lifted = world.write(&world.policy(Mode::AcceptEdits, &[&rule]), path);
        assert!(lifted.is_allowed(), "{rule}: {}", lifted.reason);
    }
    let policy = world.policy(Mode::AcceptEdits, &["Edit(.github/workflows/**)"]);
    for path in [
        ".github/workflows/ci.yml",
        ".github/workflows/new/x",
        "alias/workflows/ci.yml",
    ] {
        assert!(world.write(&policy, path).is_allowed(), "{path}");
    }
    assert!(!world.write(&policy, ".github/actions/x").is_allowed());
    assert!(!world.write(&policy, "sub/.github/workflows/x").is_allowed());
}

#[test]
fn commands_do_not_write_them_either() {
    let world = World::new();
    let policy = world.policy(Mode::Workspace, &["Bash(tee:*)"]);
    for command in [
        "echo x > .github/workflows/ci.yml",
        "echo x | tee -a .github/workflows/ci.yml",
        "cp a .vscode/tasks.json",
        "mv evil .github",
        "mv evil .cargo",
        "rm -rf .github",
        "sed -i s/a/b/ .gitlab-ci.yml",
        "ln -s /tmp/x .husky",
        "cp a alias/workflows/ci.yml",
        "touch Jenkinsfile",
        "mkdir .claude",
        "cp x .vsc*/tasks.json",
        "rm .gitl*",
        "yq -i .a=1 .github/workflows/ci.yml",
    ] {
        let decision = run(&policy, command);
        assert!(!decision.is_allowed(), "{command}: {}", decision.reason);
    }
    for command in [
        "cat .github/workflows/ci.yml",
        "grep -rn uses .github",
        "git add .github/workflows/ci.yml",
        "git diff .github",
        "yamllint .github/workflows/ci.yml",
        "ls -la .vscode",
        "mkdir -p .github",
        "cp a .github/CODEOWNERS",
        "rm *.yml",
        "cp -r src out",
    ] {
        let decision = run(&policy, command);
        assert!(decision.is_allowed(), "{command}: {}", decision.reason);
    }
    let rules = ["Edit(.github/workflows/**)", "Edit(.github/actions/x.yml)"];
    let policy = world.policy(Mode::Workspace, &rules);
    for command in ["sed -i s/a/b/ .github/workflows/ci.yml", "rm -rf .github"] {
        let decision = run(&policy, command);
        assert!(decision.is_allowed(), "{command}: {}", decision.reason);
    }
    let policy = world.policy(Mode::Workspace, &rules[..1]);
    let reason = run(&policy, "rm -rf .github").reason;
    assert!(reason.contains("`Edit(.github/actions/**)`"), "{reason}");
}

#[test]
fn a_workspace_may_lie_in_such_a_place() {
    let world = World::new();
    let policy = world.policy_at("ws/.claude/worktrees/one", Mode::AcceptEdits, &[]);
    assert!(
        world
            .write(&policy, ".claude/worktrees/one/src/a.rs")
            .is_allowed()
    );
    assert!(
        !world
            .write(&policy, ".claude/worktrees/one/.vscode/x")
            .is_allowed()
    );
}

/// What a program tries that policy does not see into.
const ATTEMPT: &str = "echo evil > .github/workflows/ci.yml; mv .github moved; \
    mkdir -p .github/workflows; echo evil > .github/workflows/new.yml; \
    echo evil > Jenkinsfile; mkdir -p .claude .cargo .agent/skills/x; \
    echo evil > .claude/settings.json; echo evil > .cargo/config.toml; \
    echo evil > .agent/skills/x/SKILL.md; echo evil > sub/.vscode/tasks.json; \
    echo fine > node_modules/a/.npmrc; rm -r node_modules; echo fine > .github/CODEOWNERS; \
    echo end";

#[test]
fn programs_in_the_sandbox_do_not_write_them() {
    for tier in tiers() {
        let done = task(&[ATTEMPT], &format!("{{tier: {tier}}}"))
            .file(".github/workflows/ci.yml", "ours\n")
            .file(".github/workflows/keep.yml", "ours\n")
            .file("sub/.vscode/tasks.json", "ours\n")
            .file("node_modules/a/.npmrc", "ours\n")
            .run();
        let at = format!("{tier}: {}", said(&done));
        let read = |name: &str| fs::read_to_string(done.cwd().join(name)).unwrap_or_default();
        assert_eq!(read(".github/workflows/ci.yml"), "ours\n", "{at}");
        assert_eq!(read(".github/workflows/keep.yml"), "ours\n", "{at}");
        assert_eq!(read("sub/.vscode/tasks.json"), "ours\n", "{at}");
        for made in [
            ".github/workflows/new.yml",
            "Jenkinsfile",
            ".claude",
            ".cargo/config.toml",
            ".agent/skills",
        ] {
            assert!(!done.cwd().join(made).exists(), "{made} {at}");
        }
        assert!(!done.cwd().join("node_modules").exists(), "{at}");
        assert!(at.contains("end"), "{at}");
    }
}

#[test]
fn programs_write_what_a_rule_names() {
    for tier in tiers() {
        let command = "echo new > .github/workflows/ci.yml; echo new > .github/workflows/other.yml; \
            echo new > .npmrc; echo new > .vscode/tasks.json";
        let done = task(&[command], &format!("{{tier: {tier}}}"))
            .file(".github/workflows/ci.yml", "old\n")
            .file(".github/workflows/other.yml", "old\n")
            .file(".vscode/tasks.json", "old\n")
            .args([
                "--allow",
                "Edit(.github/workflows/ci.yml)",
                "--allow",
                "Edit(.npmrc)",
            ])
            .run();
        let at = format!("{tier}: {}", said(&done));
        let read = |name: &str| fs::read_to_string(done.cwd().join(name)).unwrap_or_default();
        assert_eq!(read(".github/workflows/ci.yml"), "new\n", "{at}");
        assert_eq!(read(".npmrc"), "new\n", "{at}");
        assert_eq!(read(".github/workflows/other.yml"), "old\n", "{at}");
        assert_eq!(read(".vscode/tasks.json"), "old\n", "{at}");
    }
}
