//! Deny rules about paths, as far as the sandbox keeps programs from these too.

use std::path::PathBuf;

use crate::event::Warning;
use crate::policy::{PathDenials, Policy, Surroundings};
use crate::sandbox::{self, Denials, PathTest, Survey, Tier};
use crate::task::Job;

use super::blocking::blocking;
use super::environment::Environment;

/// So many files that globs mean are kept from programs: each takes a mount, and
/// there is an end to their number.
const MATCHES_MAX: usize = 500;
/// So many rules are named in a warning.
const NAMED_MAX: usize = 5;

/// What of a job's deny rules about paths will not hold for programs here, for
/// `agent check`.
pub async fn rules_not_held(job: &Job, environment: &Environment) -> Vec<Warning> {
    let policy = Policy::new(
        job.permissions.clone(),
        Surroundings {
            workspace: job.workspace.path.clone(),
            home: environment.home(),
            ..Surroundings::default()
        },
    );
    let rules = PathRules::of(&policy);
    if rules.0.is_none() || !job.may_start_commands() {
        return Vec::new();
    }
    let mut warnings = rules.not_held(sandbox::expected_tier(&job.sandbox).await);
    let denials = rules.denials();
    if denials.read.is_some() || denials.write.is_some() {
        let workspace = job.workspace.path.clone();
        let look = move || sandbox::survey(&workspace, |_, _| false, |_| false, &denials);
        let survey = blocking(look).await;
        warnings.extend(rules.too_many(&survey));
    }
    warnings
}

/// The deny rules of a job that mean paths.
#[derive(Debug, Default)]
pub(super) struct PathRules(Option<Rules>);

#[derive(Debug)]
struct Rules {
    read: PathDenials,
    write: PathDenials,
}

impl PathRules {
    /// Those of a policy.
    pub(super) fn of(policy: &Policy) -> Self {
        let (read, write) = (policy.read_denials(), policy.write_denials());
        let any = !read.is_empty() || !write.is_empty();
        Self(any.then_some(Rules { read, write }))
    }

    /// What is to be looked for in the workspace.
    pub(super) fn denials(&self) -> Denials {
        let Some(rules) = &self.0 else {
            return Denials::default();
        };
        Denials {
            read: rules.read.globs().map(PathTest::new),
            write: rules.write.globs().map(PathTest::new),
        }
    }

    /// What programs may not read and may not write: what rules name, and what their
    /// globs mean of what was found.
    pub(super) fn held(&self, survey: &Survey) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let Some(rules) = &self.0 else {
            return Default::default();
        };
        let held = |denials: &PathDenials, found: &[PathBuf]| {
            let found = found.iter().take(MATCHES_MAX).cloned();
            denials.places().into_iter().chain(found).collect()
        };
        (
            held(&rules.read, &survey.denied_reads),
            held(&rules.write, &survey.denied_writes),
        )
    }

    /// The warning that globs mean more than can be held.
    pub(super) fn too_many(&self, survey: &Survey) -> Option<Warning> {
        let found = survey.denied_reads.len().max(survey.denied_writes.len());
        (found > MATCHES_MAX).then(|| {
            warning(&format!(
                "deny rules mean {found} files and directories of the workspace, and programs \
                 are kept from the first {MATCHES_MAX} only; name directories, as in \
                 `Edit(dist/**)`"
            ))
        })
    }

    /// What of the rules does not hold for programs in this tier, or without one.
    pub(super) fn not_held(&self, tier: Option<Tier>) -> Vec<Warning> {
        let Some(rules) = &self.0 else {
            return Vec::new();
        };
        let read = rules.read.rules_inside();
        let write = rules.write.rules_inside();
        let (lost, why) = match tier {
            Some(Tier::Namespaces) => (Vec::new(), ""),
            Some(Tier::Landlock) => (read, "the tier `landlock` hides no file of the workspace"),
            None => (
                read.into_iter().chain(write).collect(),
                "there is no sandbox for commands",
            ),
        };
        let outside = rules.read.globs_outside().into_iter();
        let outside: Vec<&str> = outside.chain(rules.write.globs_outside()).collect();
        let lost = (!lost.is_empty()).then(|| {
            let rules = named(&lost);
            warning(&format!(
                "programs that commands start are not kept from what is denied by {rules}: {why}"
            ))
        });
        let outside = (!outside.is_empty()).then(|| {
            let rules = named(&outside);
            warning(&format!(
                "programs that commands start are kept by the sandbox alone, and not by {rules}: \
                 globs are looked up in the workspace only"
            ))
        });
        lost.into_iter().chain(outside).collect()
    }
}

fn named(rules: &[&str]) -> String {
    let mut text = rules
        .iter()
        .take(NAMED_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    let rest = rules.len().saturating_sub(NAMED_MAX);
    if rest > 0 {
        text.push_str(&format!(" and {rest} more"));
    }
    text
}

fn warning(message: &str) -> Warning {
    Warning {
        code: "deny_rules".to_owned(),
        message: message.to_owned(),
    }
}
