//! What the task itself says that it needs, and the programs of its hooks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::hook::HookPoint;
use crate::process;
use crate::run;

use super::finding::Finding;
use super::{Patient, command_env};

/// A row for each requirement, then one for each program of a hook.
pub(super) async fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let found = run::look_for(patient.job, patient.environment).await;
    let mut findings: Vec<Finding> = found.into_iter().map(requirement).collect();
    findings.extend(hooks(patient));
    findings
}

fn requirement(found: run::Finding) -> Finding {
    let need = found.requirement.need;
    let note = found.note.map(|note| format!("; {note}"));
    let note = note.unwrap_or_default();
    let finding = match found.outcome {
        Ok(there) => Finding::ok(need.kind(), format!("{there}{note}")),
        Err(unmet) => {
            let place = found.requirement.place;
            let problem = format!("{place}: {}{note}", unmet.problem);
            Finding::error(need.kind(), problem, unmet.advice)
        }
    };
    finding.about(need.to_string())
}

/// The programs of the task's hooks. One that cannot be started is only told in
/// the log, but a guard that cannot be asked blocks every call that it guards.
fn hooks(patient: &Patient<'_>) -> Vec<Finding> {
    let mut programs: BTreeMap<&Path, bool> = BTreeMap::new();
    for hook in &patient.job.hooks {
        let guards = programs.entry(hook.program.as_path()).or_default();
        *guards |= hook.point == HookPoint::BeforeTool;
    }
    let env = command_env(patient);
    let path = env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or("", |(_, value)| value.as_str());
    let row = |(program, guards): (&Path, bool)| {
        let finding = match executable(program, path, &patient.job.workspace.path) {
            Ok(place) => Finding::ok("hook", place.display().to_string()),
            Err(problem) if guards => {
                let advice = "install it: until then it blocks every call that it is for";
                Finding::error("hook", problem, advice)
            }
            Err(problem) => {
                let advice = "install it, or name it by a path that is there";
                Finding::warning("hook", problem, advice)
            }
        };
        finding.about(program.display().to_string())
    };
    programs.into_iter().map(row).collect()
}

/// The file that a hook runs.
fn executable(program: &Path, path: &str, workspace: &Path) -> Result<PathBuf, String> {
    let place = process::locate(program.as_os_str(), OsStr::new(path), workspace);
    let place = place.map_err(|error| error.to_string())?;
    let found = fs::metadata(&place).map_err(|error| format!("it cannot be read: {error}"))?;
    match found.is_file() && found.permissions().mode() & 0o111 != 0 {
        true => Ok(place),
        false => Err("it is not executable".to_owned()),
    }
}
