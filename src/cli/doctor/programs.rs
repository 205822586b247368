//! The programs that the task needs: the shell, git, its hooks.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use crate::process;

use super::finding::Finding;
use super::{Patient, command_env, probe};

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
    let env = command_env(patient);
    let cwd = &patient.job.workspace.path;
    let (mut findings, git) = tokio::join!(shell(patient, cwd, &env), git(patient, cwd, &env));
    findings.push(git);
    findings.extend(hooks(patient, &env));
    findings
}

/// The shell, when the task may run commands.
async fn shell(patient: &Patient<'_>, cwd: &Path, env: &[(String, String)]) -> Vec<Finding> {
    if !patient.job.tools.iter().any(|tool| tool == BASH) {
        return Vec::new();
    }
    let found = match probe::ask(&[BASH, "--version"], cwd, env).await {
        Ok(said) if said.well => Finding::ok(BASH, said.line),
        Ok(said) => missing(said.line),
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
        async move { probe::ask(&command, cwd, env).await }
    };
    let inside = ["rev-parse", "--is-inside-work-tree"];
    let (version, inside, identity) = tokio::join!(
        ask(&["--version"]),
        ask(&inside),
        ask(&["var", "GIT_COMMITTER_IDENT"]),
    );
    let required = patient.job.workspace.require_clean;
    let version = match version {
        Ok(said) => said.line,
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
        (Ok(said), _) if !said.well && said.line.contains("dubious ownership") => Finding::warning(
            "git",
            format!("{version}; {}: {}", cwd.display(), said.line),
            format!(
                "git in commands of the task refuses the repository; `git config --global --add \
                 safe.directory {}` trusts it",
                cwd.display()
            ),
        ),
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

/// The programs of the task's hooks.
fn hooks(patient: &Patient<'_>, env: &[(String, String)]) -> Option<Finding> {
    let hooks = &patient.job.hooks;
    if hooks.is_empty() {
        return None;
    }
    let programs: BTreeSet<&Path> = hooks.iter().map(|hook| hook.program.as_path()).collect();
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or("", |(_, value)| value.as_str());
    let gone: Vec<String> = programs
        .iter()
        .filter(|program| {
            let (program, path) = (program.as_os_str(), OsStr::new(path));
            process::locate(program, path, &patient.job.workspace.path).is_err()
        })
        .map(|program| program.display().to_string())
        .collect();
    Some(match gone.is_empty() {
        true => Finding::ok("hooks", format!("{} programs are there", programs.len())),
        false => Finding::warning(
            "hooks",
            format!("not found: {}", gone.join(", ")),
            "install them, or name them in `hooks` by a path that is there",
        ),
    })
}
