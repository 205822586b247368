//! The decision about a call.

use std::borrow::Cow;
use std::path::Path;

use super::exec::Exec;
use super::named;
use super::protect::Protection;
use super::rule::{PathAccess, Target};
use super::scope::{Located, Unresolved};
use super::suggest;
use super::{Bound, Decision, Mode, OnAsk, Policy, Verdict};
use crate::access::Access;
use crate::event::Decider;

/// An access, looked at once.
pub(super) enum Judged<'a> {
    Path {
        kind: PathAccess,
        path: Cow<'a, Path>,
        place: Result<Located, Unresolved>,
        /// The rule that allows every command, for what a redirection opens.
        by_command: Option<String>,
        /// Of a redirection, whether it leads into the commands' temporary files.
        temporary: Option<bool>,
    },
    /// A redirection to a path of which a part is not known.
    Somewhere {
        kind: PathAccess,
        text: String,
    },
    Exec(Box<Exec>),
    Named(&'a Access),
}

impl Policy {
    /// Decides about a call of `tool` that wants `accesses`.
    ///
    /// A call without accesses touches nothing and is allowed, unless the tool
    /// is one that always touches something.
    pub fn decide(&self, tool: &str, accesses: &[Access]) -> Decision {
        if accesses.is_empty() {
            return self.decide_untouching(tool);
        }
        let (judged, exact) = self.judged(accesses);
        if let Some(refusal) = self.refusal(tool, &judged) {
            return refusal;
        }
        if let Some(rule) = exact {
            let reason = format!("allowed by {rule}");
            return allow(Decider::Rule, Some(rule), reason);
        }
        let mut allowed: Option<Decision> = None;
        for access in &judged {
            let decision = self.grant(tool, access);
            if decision.verdict != Verdict::Allow {
                return self.suggested_for_all(decision, tool, &judged);
            }
            // Of several reasons a rule says more than the mode.
            if allowed.is_none() || decision.rule.is_some() {
                allowed = Some(decision);
            }
        }
        allowed.unwrap_or_else(|| self.decide_untouching(tool))
    }

    /// What there is to judge in a call, and the rule that allows exactly its
    /// command.
    pub(super) fn judged<'a>(&self, accesses: &'a [Access]) -> (Vec<Judged<'a>>, Option<String>) {
        let mut judged: Vec<Judged<'_>> = Vec::new();
        let mut exact = None;
        for access in accesses {
            match access {
                Access::Read(path) => judged.push(self.path(PathAccess::Read, path.into())),
                Access::Write(path) => judged.push(self.path(PathAccess::Write, path.into())),
                Access::Exec(text) => {
                    let line = self.line(text);
                    exact = exact.or(line.exact.filter(|_| accesses.len() == 1));
                    judged.extend(
                        line.openings
                            .iter()
                            .flat_map(|opening| self.opening(opening)),
                    );
                    let commands = line.commands.into_iter().map(Box::new);
                    judged.extend(commands.map(Judged::Exec));
                }
                Access::Network(_)
                | Access::Server { .. }
                | Access::Agent(_)
                | Access::Skill(_) => judged.push(Judged::Named(access)),
            }
        }
        (judged, exact)
    }

    /// The denial by a deny or an ask rule, if one speaks about any of these.
    pub(super) fn refusal(&self, tool: &str, judged: &[Judged<'_>]) -> Option<Decision> {
        for (rules, asks) in [(&self.deny, false), (&self.ask, true)] {
            let refused = judged
                .iter()
                .find_map(|access| self.refused_by(rules, tool, access));
            if let Some((bound, why)) = refused {
                return Some(if asks {
                    self.asked(bound, &why)
                } else {
                    self.denied_by(bound, &why)
                });
            }
        }
        None
    }

    /// The decision about what no deny or ask rule speaks about.
    pub(super) fn grant(&self, tool: &str, access: &Judged<'_>) -> Decision {
        match access {
            Judged::Path {
                kind,
                path,
                place,
                by_command,
                temporary,
            } => {
                let granted = self.grant_path(tool, *kind, path, place.as_ref());
                let place_known = place.as_ref().ok();
                let granted = match temporary {
                    Some(own) => self.or_temporary(granted, *kind, place_known, *own),
                    None => granted,
                };
                self.or_by_command(granted, *kind, place_known, by_command.as_ref())
            }
            Judged::Somewhere { kind, text } => self.grant_somewhere(*kind, text),
            Judged::Exec(exec) => self.grant_exec(exec),
            Judged::Named(access) => self.grant_named(access),
        }
    }

    fn decide_untouching(&self, tool: &str) -> Decision {
        let touches = ["bash", "edit", "find", "grep", "ls", "read", "write"];
        if touches.contains(&tool) {
            return Decision {
                verdict: Verdict::Deny,
                by: Decider::Policy,
                rule: None,
                reason: format!("denied: `{tool}` did not say what it would touch"),
                suggested_rule: None,
            };
        }
        allow(Decider::Mode, None, format!("`{tool}` touches nothing"))
    }

    pub(super) fn path<'a>(&self, kind: PathAccess, path: Cow<'a, Path>) -> Judged<'a> {
        Judged::Path {
            kind,
            place: self.scope.locate(&path),
            path,
            by_command: None,
            temporary: None,
        }
    }

    fn refused_by<'r>(
        &self,
        rules: &'r [Bound],
        tool: &str,
        access: &Judged<'_>,
    ) -> Option<(&'r Bound, String)> {
        rules
            .iter()
            .find_map(|bound| Some((bound, self.refuses(bound, tool, access)?)))
    }

    /// Why a deny or ask rule speaks about an access, in words that precede
    /// "denied".
    pub(super) fn refuses(&self, bound: &Bound, tool: &str, access: &Judged<'_>) -> Option<String> {
        match (&bound.rule.target, access) {
            (Target::Bash(pattern), Judged::Exec(exec)) => {
                pattern.forbids(&exec.command, exec.vetted)
            }
            (Target::Named(pattern), Judged::Named(access)) => pattern
                .denies(access)
                .then(|| format!("{} is", named::doing(access))),
            (
                Target::Bash(_),
                Judged::Named(_) | Judged::Path { .. } | Judged::Somewhere { .. },
            )
            | (Target::Path { .. }, Judged::Named(_))
            | (
                Target::Named(_),
                Judged::Path { .. } | Judged::Somewhere { .. } | Judged::Exec(_),
            ) => None,
            (target @ Target::Path { .. }, Judged::Somewhere { kind, text }) => {
                let hit = is_about(target, *kind, tool);
                hit.then(|| format!("{}, of which a part is not known, is", doing(*kind, text)))
            }
            (
                target @ Target::Path { .. },
                Judged::Path {
                    kind, path, place, ..
                },
            ) => {
                if !is_about(target, *kind, tool) {
                    return None;
                }
                let Some(pattern) = &bound.pattern else {
                    return Some(format!("{} is", doing(*kind, &self.scope.shown(path))));
                };
                let real = place
                    .as_ref()
                    .is_ok_and(|place| pattern.denies(&place.real));
                (real || pattern.denies(path))
                    .then(|| format!("{} is", doing(*kind, &self.scope.shown(path))))
            }
            (Target::Path { tool: Some(_), .. }, Judged::Exec(_)) => None,
            (Target::Path { kind, .. }, Judged::Exec(exec)) => {
                self.command_breaks(*kind, bound.pattern.as_ref(), exec)
            }
        }
    }

    fn denied_by(&self, bound: &Bound, why: &str) -> Decision {
        Decision {
            verdict: Verdict::Deny,
            by: Decider::Rule,
            rule: Some(bound.rule.to_string()),
            reason: format!(
                "denied by {}: {why} not allowed; no other rule can override this. Allowed \
                 instead: {}",
                bound.rule,
                self.allowed_instead()
            ),
            suggested_rule: None,
        }
    }

    fn asked(&self, bound: &Bound, why: &str) -> Decision {
        Decision {
            verdict: match self.permissions.on_ask {
                OnAsk::Deny => Verdict::Deny,
                OnAsk::Fail => Verdict::Fail,
            },
            by: Decider::Rule,
            rule: Some(bound.rule.to_string()),
            reason: format!(
                "denied by {}: {why} allowed only after somebody is asked, and nobody is here. \
                 Allowed instead: {}",
                bound.rule,
                self.allowed_instead()
            ),
            suggested_rule: None,
        }
    }

    /// The allow rule that covers a path, which has to name what protects it.
    pub(super) fn path_rule(
        &self,
        tool: &str,
        kind: PathAccess,
        place: &Located,
        protection: Option<&Protection>,
    ) -> Option<&Bound> {
        self.allow.iter().find(|bound| {
            is_about(&bound.rule.target, kind, tool)
                && match (&bound.pattern, protection) {
                    (Some(pattern), Some(protection)) => {
                        pattern.allows(&place.real) && pattern.names(&protection.component)
                    }
                    (Some(pattern), None) => pattern.allows(&place.real),
                    (None, protection) => protection.is_none() && self.scope.contains(&place.real),
                }
        })
    }

    pub(super) fn mode_allows(&self, kind: PathAccess, place: &Located) -> bool {
        let inside = self.scope.contains(&place.real);
        match (self.permissions.mode, kind) {
            (Mode::Bypass, _) => true,
            (Mode::AcceptEdits | Mode::Workspace, _) | (Mode::ReadOnly, PathAccess::Read) => inside,
            (Mode::ReadOnly, PathAccess::Write) => false,
        }
    }

    fn grant_path(
        &self,
        tool: &str,
        kind: PathAccess,
        path: &Path,
        place: Result<&Located, &Unresolved>,
    ) -> Decision {
        let shown = self.scope.shown(path);
        let place = match place {
            Ok(place) => place,
            Err(unresolved) => {
                let reason = format!("{} is not allowed: {unresolved}", doing(kind, &shown));
                return self.refused(Decider::Policy, &reason, None);
            }
        };
        let protection = self.protections.of(kind, place);
        if let Some(bound) = self.path_rule(tool, kind, place, protection.as_ref()) {
            let rule = bound.rule.to_string();
            return allow(
                Decider::Rule,
                Some(rule.clone()),
                format!("allowed by {rule}"),
            );
        }
        let suggestion = suggest::path_rule(kind, &self.scope.shown(&place.real), "");
        if let Some(protection) = protection {
            let what = &protection.what;
            let reason = format!(
                "{} is not allowed: it is {what}, which only a rule such as `{suggestion}` allows",
                doing(kind, &shown)
            );
            return self.refused(Decider::Policy, &reason, Some(suggestion));
        }
        if self.mode_allows(kind, place) {
            let reason = format!("allowed by mode {}", self.permissions.mode);
            return allow(Decider::Mode, None, reason);
        }
        let outside = if self.scope.contains(&place.real) {
            String::new()
        } else if place.real == place.lexical {
            " (outside the workspace)".to_owned()
        } else {
            format!(" (really {}, outside the workspace)", place.real.display())
        };
        let reason = format!(
            "{}{outside} is not allowed in mode {}",
            doing(kind, &shown),
            self.permissions.mode
        );
        self.refused(Decider::Mode, &reason, Some(suggestion))
    }

    pub(super) fn refused(
        &self,
        by: Decider,
        why: &str,
        suggested_rule: Option<String>,
    ) -> Decision {
        Decision {
            verdict: Verdict::Deny,
            by,
            rule: None,
            reason: format!("denied: {why}. Allowed instead: {}", self.allowed_instead()),
            suggested_rule,
        }
    }

    /// What the job allows, in one line.
    fn allowed_instead(&self) -> String {
        const SHOWN: usize = 6;
        let mut line = self.permissions.mode.allows(self.sandbox).to_owned();
        for bound in self.allow.iter().take(SHOWN) {
            line.push_str(", ");
            line.push_str(bound.rule.text());
        }
        if self.allow.len() > SHOWN {
            line.push_str(&format!(" and {} more rules", self.allow.len() - SHOWN));
        }
        line
    }
}

pub(super) fn allow(by: Decider, rule: Option<String>, reason: String) -> Decision {
    Decision {
        verdict: Verdict::Allow,
        by,
        rule,
        reason,
        suggested_rule: None,
    }
}

/// Whether a path rule speaks about an access of this kind by this tool.
fn is_about(target: &Target, kind: PathAccess, tool: &str) -> bool {
    match target {
        Target::Path {
            kind: about,
            tool: only,
            ..
        } => *about == kind && only.is_none_or(|only| only == tool),
        Target::Bash(_) | Target::Named(_) => false,
    }
}

pub(super) fn doing(kind: PathAccess, shown: &str) -> String {
    match kind {
        PathAccess::Read => format!("reading {shown}"),
        PathAccess::Write => format!("writing {shown}"),
    }
}
