//! The programs that every task may need: the shell and git.

use std::path::Path;

use crate::run::probe;

use super::finding::Finding;
use super::{Patient, TIMEOUT, trusted_env};

/// The tool that runs commands, and the program that it runs them with.
const BASH: &str = "bash";

/// Settings under which git runs nothing that a repository names.
const GIT: [&str; 5] = [
    "git",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
];

/// All of them.
pub(super) async fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let env = trusted_env(patient);
    let cwd = &patient.job.workspace.path;
    let (mut findings, git) = tokio::join!(shell(patient, cwd, &env), git(patient, cwd, &env));
    findings.push(git);
    findings
}

/// The shell, when the task may run commands.
async fn shell(patient: &Patient<'_>, cwd: &Path, env: &[(String, String)]) -> Vec<Finding> {
    if !patient.job.tools.iter().any(|tool| tool == BASH) {
        return Vec::new();
    }
    let found = match probe::ask(&[BASH, "--version"], cwd, env, TIMEOUT).await {
        Ok(said) if said.well => Finding::ok(BASH, said.line()),
        Ok(said) => missing(said.line()),
        Err(error) => missing(error),
    };
    vec![found]
}

fn missing(found: String) -> Finding {
    let advice = "install bash, or leave `bash` out of tools.enabled";
    Finding::error(BASH, found, advice)
}

/// Git tells what changed; without it the files are remembered instead.
async fn git(patient: &Patient<'_>, cwd: &Path, env: &[(String, String)]) -> Finding {
    let ask = |args: &[&'static str]| {
        let command: Vec<&str> = GIT.iter().copied().chain(args.iter().copied()).collect();
        async move { probe::ask(&command, cwd, env, TIMEOUT).await }
    };
    let inside = ["rev-parse", "--is-inside-work-tree"];
    let (version, inside, identity) = tokio::join!(
        ask(&["--version"]),
        ask(&inside),
        ask(&["var", "GIT_COMMITTER_IDENT"]),
    );
    let required = patient.job.workspace.require_clean;
    let version = match version {
        Ok(said) => said.line(),
        Err(error) => {
            let advice = "install git: without it the diff holds only what the file tools changed";
            return match required {
                true => Finding::error("git", error, "workspace.require_clean needs git"),
                false => Finding::warning("git", error, advice),
            };
        }
    };
    match (inside, identity) {
        (Err(error), _) => Finding::warning("git", error, "look at what git waits for there"),
        (Ok(said), _) if !said.well && said.line().contains("dubious ownership") => {
            Finding::warning(
                "git",
                format!("{version}; {}: {}", cwd.display(), said.line()),
                format!(
                    "git in commands of the task refuses the repository; `git config --global --add \
                 safe.directory {}` trusts it",
                    cwd.display()
                ),
            )
        }
        (Ok(said), _) if !said.well => {
            let found = format!("{version}; the workspace is in no repository");
            match required {
                true => Finding::error("git", found, "workspace.require_clean needs one"),
                false => Finding::ok("git", found),
            }
        }
        (Ok(_), Ok(said)) if said.well => Finding::ok("git", format!("{version}; a repository")),
        (Ok(_), _) => Finding::warning(
            "git",
            format!("{version}; a repository, and nobody to commit as"),
            "commits by commands of the task fail; set user.name and user.email, or \
             GIT_AUTHOR_NAME and its kin in env.set",
        ),
    }
}
