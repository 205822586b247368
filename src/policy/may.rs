//! Questions about single files that no call asks: what a walk may read, what the
//! sandbox lets commands write.

use std::path::Path;

use super::decide::Judged;
use super::protect::Protection;
use super::rule::PathAccess;
use super::scope::Located;
use super::{Bound, Policy};

impl Policy {
    /// Whether a file that `tool` meets on a walk may be read. `path` is
    /// absolute; a file that this refuses is to be passed over.
    pub fn may_read(&self, tool: &str, path: &Path) -> bool {
        self.may(PathAccess::Read, tool, path)
    }

    /// Whether `tool` may write the file or directory at the absolute `path`.
    pub fn may_write(&self, tool: &str, path: &Path) -> bool {
        self.may(PathAccess::Write, tool, path)
    }

    /// Whether an allow rule speaks of something below the absolute `path`.
    pub fn allows_below(&self, path: &Path) -> bool {
        let mut patterns = self.allow.iter().filter_map(|bound| bound.pattern.as_ref());
        patterns.any(|pattern| pattern.is_below(path))
    }

    fn may(&self, kind: PathAccess, tool: &str, path: &Path) -> bool {
        let judged = self.path(kind, path.into());
        let refuses = |rules: &[Bound]| {
            let mut rules = rules.iter();
            rules.any(|bound| self.refuses(bound, tool, &judged).is_some())
        };
        if refuses(&self.deny) || refuses(&self.ask) {
            return false;
        }
        let Judged::Path {
            place: Ok(place), ..
        } = judged
        else {
            return false;
        };
        let protection = self.protections.of(kind, &place);
        match self.path_rule(tool, kind, &place, protection.as_ref()) {
            Some(_) => true,
            None => protection.is_none() && self.mode_allows(kind, &place),
        }
    }

    /// Whether an allow rule lifts a protection of a path, or of what is below it.
    pub(super) fn is_lifted(
        &self,
        kind: PathAccess,
        place: &Located,
        protection: &Protection,
    ) -> bool {
        let mut patterns = self.allow.iter().filter_map(|bound| bound.pattern.as_ref());
        self.path_rule("bash", kind, place, Some(protection))
            .is_some()
            || (protection.by_writing
                && patterns.any(|pattern| {
                    pattern.names(&protection.component) && pattern.is_below(&place.real)
                }))
    }
}
