//! Credentials in the configuration of a repository are not what programs see.

use std::path::PathBuf;

use agent::sandbox::{Denials, GitCredentials, Tier, git_credentials, survey};

use crate::sandbox_run::{said, tiers};
use crate::support::cli::Cli;
use crate::support::workspace::Workspace;

/// What checkouts leave, and people write; each secret begins with `canary`.
const CONFIG: &str = r#"
# canary-in-a-comment
[http "https://github.com/"]
	extraheader = AUTHORIZATION: basic eC1hY2Nlc3MtdG9rZW46Y2FuYXJ5LWhlYWRlci0x
	sslVerify = true
[http]
	extraHeader = "Private-Token: \
canary-header-2" ; canary-comment
	proxy = http://user:canary-proxy@proxy.example.invalid:3128
[remote "origin"]
	url = https://x-access-token:canary%2Durl@github.com/o/r.git?x#y
	pushurl = https://canary0123456789abcdef@github.com/o/r.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[remote "ssh"]
	url = ssh://git@github.com/o/r.git
	url = git@github.com:o/r.git
[url "https://oauth2:canary-subsection@gitlab.example.invalid/"]
	insteadOf = https://gitlab.example.invalid/
[credential "https://github.com"]
	helper = "!f() { echo username=x; echo password=canary-helper-1; }; f"
	username = somebody
[github]
	token = canary-token-1
[sendemail]
	smtpPass = canary-smtp-1
[user]
	name = "Zo\"e \\ # ; x"
"#;

const SECRETS: &[&str] = &[
    "canary-header-1",
    "canary-header-2",
    "canary-helper-1",
    "canary-proxy",
    "canary-smtp-1",
    "canary-subsection",
    "canary-token-1",
    "canary-url",
    "canary0123456789abcdef",
];

fn repository() -> Workspace {
    let workspace = Workspace::git(&[("a.txt", "a\n"), (".gitignore", "step*\n")]);
    let config = workspace.read(".git/config");
    workspace.write(".git/config", format!("{config}{CONFIG}"));
    workspace
}

fn found(workspace: &Workspace) -> GitCredentials {
    git_credentials(
        &survey(
            workspace.path(),
            |_, _| false,
            |_| false,
            &Denials::default(),
        ),
        None,
    )
}

#[test]
fn a_configuration_without_its_credentials_says_the_same() {
    let workspace = repository();
    let found = found(&workspace);
    for secret in SECRETS {
        assert!(
            found.secrets.iter().any(|one| one == secret),
            "{secret} {found:#?}"
        );
    }
    let innocent = ["somebody", "git", "x-access-token", "oauth2"];
    assert!(
        !found
            .secrets
            .iter()
            .any(|one| innocent.contains(&one.as_str()))
    );
    let [(path, view)] = found.views.as_slice() else {
        panic!("{found:#?}");
    };
    assert_eq!(*path, workspace.path().join(".git/config"));
    assert!(
        !view.contains("canary") && !view.contains("eC1hY2"),
        "{view}"
    );
    // Git reads the same of what is left.
    let list = |file: PathBuf| {
        let file = file.display().to_string();
        workspace.run_git(&["config", "--file", &file, "--list"])
    };
    let clean = list(workspace.write("clean", view));
    let expected: Vec<String> = list(path.clone())
        .lines()
        .filter(|line| !line.contains("extraheader=") && !line.starts_with("credential."))
        .filter(|line| !line.contains("token=") && !line.contains("smtppass="))
        .map(|line| {
            let line = line.replace("x-access-token:canary%2Durl@", "");
            let line = line.replace("canary0123456789abcdef@", "");
            let line = line.replace("user:canary-proxy@", "");
            line.replace("oauth2:canary-subsection@", "")
        })
        .collect();
    assert_eq!(clean.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn an_ordinary_configuration_is_shown_as_it_is() {
    let workspace = Workspace::git(&[("a.txt", "a\n")]);
    assert_eq!(found(&workspace), GitCredentials::default());
}

#[test]
fn configurations_of_worktrees_and_submodules_and_included_ones_are_read() {
    let workspace = Workspace::git(&[("a.txt", "a\n")]);
    let secret = |name: &str| format!("[github]\n\ttoken = canary-{name}\n");
    for name in [
        "modules/a/b/config",
        "worktrees/w/config.worktree",
        "included",
    ] {
        workspace.write(&format!(".git/{name}"), secret(name));
    }
    workspace.write(
        ".git/config.worktree",
        "[include]\n\tpath = included\n\tpath = included\n",
    );
    // A file that git cannot read may still hold a token.
    workspace.write(".git/modules/c/config", "[github\n token = canary-broken\n");
    let found = found(&workspace);
    let mut paths: Vec<_> = found.views.iter().map(|(path, _)| path.clone()).collect();
    paths.sort();
    let expected = [
        "included",
        "modules/a/b/config",
        "modules/c/config",
        "worktrees/w/config.worktree",
    ];
    assert_eq!(
        paths,
        expected.map(|name| workspace.path().join(".git").join(name))
    );
    assert!(found.views.iter().all(|(_, view)| !view.contains("canary")));
    assert_eq!(found.secrets.len(), 3, "{found:#?}");
}

#[test]
fn programs_do_not_see_the_token_of_a_checkout() {
    let script = "cat .git/config; git config --list; cp .git/config copy; cat copy; git status
        git remote get-url origin; base64 .git/config; rev .git/config; echo end";
    for (tier, git) in tiers()
        .into_iter()
        .flat_map(|tier| [(tier, "read_only"), (tier, "writable")])
    {
        let workspace = repository();
        workspace.write("step.sh", script);
        let task = serde_json::json!({
            "version": 1,
            "prompt": "x",
            "settings": {"model": "scripted/model.yaml"},
            "permissions": {"mode": "bypass"},
            "workspace": {"path": workspace.path()},
            "sandbox": {"mode": "require", "tier": tier, "git": git},
        });
        let call = serde_json::json!([
            {"calls": [{"name": "bash", "arguments": {"command": "bash step.sh"}}]},
            {"text": "done"},
        ]);
        let done = Cli::new()
            .file("task.yaml", task.to_string())
            .file("model.yaml", call.to_string())
            .args(["run", "task.yaml", "--allow-bypass", "--run-dir", "out"])
            .run();
        let told = said(&done);
        assert!(told.contains("end"), "{tier}: {told}");
        for secret in SECRETS {
            assert!(!told.contains(secret), "{tier} {git} {secret}: {told}");
        }
        // In landlock a file of the workspace cannot be another one: what comes out is
        // redacted as far as it is recognised.
        if tier != Tier::Namespaces.name() {
            continue;
        }
        assert!(told.contains("https://github.com/o/r.git"), "{told}");
        let backwards = |text: &&str| text.chars().rev().collect::<String>();
        for secret in SECRETS.iter().map(backwards) {
            assert!(!told.contains(&secret), "{git} {secret}: {told}");
        }
        // The repository itself is as it was.
        assert!(workspace.read(".git/config").contains("canary-header-2"));
    }
}
