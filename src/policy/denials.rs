//! The paths that deny rules mean, for those who keep programs from them.

use std::path::{Path, PathBuf};

use super::pattern::BoundPattern;
use super::rule::{PathAccess, Target};
use super::{Bound, Policy};

/// The deny rules of a job that mean paths, for one way to touch these.
#[derive(Debug, Clone)]
pub struct PathDenials(Vec<Denial>);

#[derive(Debug, Clone)]
struct Denial {
    pattern: BoundPattern,
    /// The rule and its place.
    rule: String,
    /// The place that the rule names, when it is not a glob.
    places: Option<Vec<PathBuf>>,
    /// Whether that is in the job's directories; in the workspace.
    inside: bool,
    in_workspace: bool,
}

impl Policy {
    /// The paths that no program may read.
    pub fn read_denials(&self) -> PathDenials {
        self.denials(PathAccess::Read)
    }

    /// The paths that no program may write.
    pub fn write_denials(&self) -> PathDenials {
        self.denials(PathAccess::Write)
    }

    fn denials(&self, kind: PathAccess) -> PathDenials {
        let is_meant = |bound: &&Bound| match &bound.rule.target {
            Target::Path { kind: own, .. } => *own == kind,
            Target::Bash(_) | Target::Named(_) => false,
        };
        let denial = |bound: &Bound| {
            let pattern = bound.pattern.clone()?;
            let workspace = &self.scope.real_workspace;
            let around =
                |places: &Vec<PathBuf>| places.iter().any(|one| workspace.starts_with(one));
            Some(Denial {
                rule: bound.rule.to_string(),
                // The workspace as a whole is all that is in it.
                places: pattern.places().filter(|places| !around(places)),
                in_workspace: pattern.reaches_into(workspace),
                inside: pattern.is_inside(&self.scope),
                pattern,
            })
        };
        PathDenials(
            self.deny
                .iter()
                .filter(is_meant)
                .filter_map(denial)
                .collect(),
        )
    }
}

impl PathDenials {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The files and directories that rules name in so many words.
    pub fn places(&self) -> Vec<PathBuf> {
        let places = self.0.iter().filter_map(|denial| denial.places.as_ref());
        places.flatten().cloned().collect()
    }

    /// Whether a path is meant by a glob; none where there are no globs.
    pub fn globs(&self) -> Option<impl Fn(&Path) -> bool + Send + Sync + 'static + use<>> {
        let globs = self.0.iter().filter(|denial| denial.places.is_none());
        let globs: Vec<BoundPattern> = globs.map(|denial| denial.pattern.clone()).collect();
        let any = !globs.is_empty();
        any.then_some(move |path: &Path| globs.iter().any(|glob| glob.denies(path)))
    }

    /// The rules about paths in the job's directories.
    pub fn rules_inside(&self) -> Vec<&str> {
        let inside = self.0.iter().filter(|denial| denial.inside);
        inside.map(|denial| denial.rule.as_str()).collect()
    }

    /// The rules with globs about paths outside of the workspace.
    pub fn globs_outside(&self) -> Vec<&str> {
        let outside = |denial: &&Denial| denial.places.is_none() && !denial.in_workspace;
        let rules = self.0.iter().filter(outside);
        rules.map(|denial| denial.rule.as_str()).collect()
    }
}
