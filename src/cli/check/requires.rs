//! What tasks require and whether it is there, for `agent check`.

use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::event::Warning;
use crate::run::{self, Environment, Finding};
use crate::task::Job;

/// What one job requires, looked for, and what will not hold here.
pub(super) struct Requirements {
    findings: Vec<Finding>,
    /// What of its deny rules the sandbox of this machine cannot hold.
    pub(super) warnings: Vec<Warning>,
}

/// Looks for what each of the jobs requires.
///
/// # Errors
/// In words, when the programs cannot be asked.
pub(super) fn look_for(
    jobs: &[Job],
    environment: &Environment,
) -> Result<Vec<Requirements>, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime cannot be started: {error}"))?;
    runtime.block_on(async {
        let mut all = Vec::new();
        for job in jobs {
            all.push(Requirements {
                findings: run::look_for(job, environment).await,
                warnings: run::rules_not_held(job, environment).await,
            });
        }
        Ok(all)
    })
}

impl Requirements {
    /// Whether the run would start.
    pub(super) fn are_met(&self) -> bool {
        self.findings.iter().all(|finding| finding.outcome.is_ok())
    }

    /// The lines of the description, each with its name.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let line = |finding: &Finding| {
            let (need, place) = (&finding.requirement.need, &finding.requirement.place);
            let note = finding.note.as_ref().map(|note| format!(" ({note})"));
            let note = note.unwrap_or_default();
            match &finding.outcome {
                Ok(found) => ("requires", format!("{} {need}: {found}{note}", need.kind())),
                Err(unmet) => {
                    let (problem, advice) = (&unmet.problem, &unmet.advice);
                    ("missing", format!("{place}: {problem}: {advice}{note}"))
                }
            }
        };
        self.findings.iter().map(line).collect()
    }

    /// The list for machines.
    pub(super) fn json(&self) -> Value {
        let row = |finding: &Finding| {
            let (need, place) = (&finding.requirement.need, &finding.requirement.place);
            let unmet = finding.outcome.as_ref().err();
            json!({
                "kind": need.kind(),
                "name": need.to_string(),
                "met": unmet.is_none(),
                "found": finding.outcome.as_ref().ok(),
                "message": unmet.map(|unmet| &unmet.problem),
                "hint": unmet.map(|unmet| &unmet.advice),
                "note": finding.note,
                "file": place.file,
                "line": place.line,
                "column": place.column,
            })
        };
        self.findings.iter().map(row).collect()
    }
}
