//! What redirections open, and whether that is allowed.

use std::path::PathBuf;

use super::decide::{Judged, allow, doing};
use super::rule::PathAccess;
use super::scope::{Located, Unresolved, normal};
use super::shell::{self, Opening};
use super::{Decision, Mode, Policy};
use crate::event::Decider;

/// A path that a redirection may open, and where it leads.
pub(super) type Opened = (PathBuf, Result<Located, Unresolved>);

impl Policy {
    /// What a redirection opens.
    pub(super) fn opening(&self, opening: &Opening) -> Vec<Judged<'static>> {
        let kind = match opening.writes {
            true => PathAccess::Write,
            false => PathAccess::Read,
        };
        match self.opened(opening) {
            Ok(paths) => paths
                .into_iter()
                .map(|(path, place)| Judged::Path {
                    kind,
                    temporary: Some(self.temporary.hold(&path, &self.scope)),
                    path: path.into(),
                    place,
                    by_command: self.any_command(),
                })
                .collect(),
            Err(text) => vec![Judged::Somewhere { kind, text }],
        }
    }

    /// Redirections into the commands' own temporary files are as good as those
    /// into the workspace: a mode in which commands may write allows them.
    pub(super) fn or_temporary(
        &self,
        granted: Decision,
        kind: PathAccess,
        place: Option<&Located>,
        own: bool,
    ) -> Decision {
        let mode = self.permissions.mode;
        let protected = place.is_none_or(|place| self.protections.of(kind, place).is_some());
        let writes = kind == PathAccess::Write;
        if granted.is_allowed() || protected || (writes && mode == Mode::ReadOnly) {
            return granted;
        }
        if own {
            let reason = format!("allowed by mode {mode}: only commands have that directory");
            return allow(Decider::Mode, None, reason);
        }
        if writes && self.temporary.variable.is_some() {
            let reason = format!("{}; a command may write below `$TMPDIR`", granted.reason);
            return Decision { reason, ..granted };
        }
        granted
    }

    /// A rule for every command covers what its redirections open, but for
    /// what is protected.
    pub(super) fn or_by_command(
        &self,
        granted: Decision,
        kind: PathAccess,
        place: Option<&Located>,
        rule: Option<&String>,
    ) -> Decision {
        let protected = place.is_none_or(|place| self.protections.of(kind, place).is_some());
        match rule.filter(|_| !granted.is_allowed() && !protected) {
            Some(rule) => allow(
                Decider::Rule,
                Some(rule.clone()),
                format!("allowed by {rule}"),
            ),
            None => granted,
        }
    }

    /// A redirection of which nobody knows where it leads: reading is covered
    /// as far as its text shows, writing by a rule for every command.
    pub(super) fn grant_somewhere(&self, kind: PathAccess, text: &str) -> Decision {
        if let Some(rule) = self.any_command() {
            let reason = format!("allowed by {rule}");
            return allow(Decider::Rule, Some(rule), reason);
        }
        // Of processes any is as bad as another.
        let shown = self.scope.workspace.join(text.replace('…', "0"));
        let place = self.scope.locate(&normal(&shown));
        let harmless = place.is_ok_and(|place| {
            self.scope.contains(&place.real) && self.protections.of(kind, &place).is_none()
        });
        // Where any command may run, one that writes there could.
        let any = self.permissions.mode.runs_commands(self.sandbox);
        if any || (kind == PathAccess::Read && harmless) {
            let reason = format!("allowed by mode {}", self.permissions.mode);
            return allow(Decider::Mode, None, reason);
        }
        let why = format!(
            "{} is not allowed: a part of it is not known before it runs",
            doing(kind, text)
        );
        self.refused(Decider::Policy, &why, None)
    }

    /// The paths that a redirection may open, as named and located; an error
    /// when that is not known.
    pub(super) fn opened(&self, opening: &Opening) -> Result<Vec<Opened>, String> {
        if opening.path.contains(shell::UNKNOWN) {
            return Err(opening.path.replace(shell::UNKNOWN, "…"));
        }
        let named = opening.path.replace(shell::NUMBER, "0");
        if opening.writes && named != opening.path {
            return Err(named);
        }
        let mut paths = Vec::new();
        for directory in &opening.directories {
            let path = match (named.strip_prefix("~/"), &self.scope.home) {
                (Some(rest), Some(home)) => home.join(rest),
                (None, Some(home)) if named == "~" => home.clone(),
                // The shell knows a home directory all the same.
                (_, None) if named == "~" || named.starts_with("~/") => return Err(named),
                _ => directory.join(&named),
            };
            let mut places = vec![normal(&path)];
            // The kernel follows a link before it goes up: `link/../x`.
            if opening.path.contains("..")
                && let Some(parent) = path.parent().and_then(|parent| parent.canonicalize().ok())
            {
                places.extend(path.file_name().map(|name| parent.join(name)));
            }
            paths.extend(places.into_iter().map(|path| {
                let place = self.scope.locate(&path);
                (path, place)
            }));
        }
        Ok(paths)
    }
}
