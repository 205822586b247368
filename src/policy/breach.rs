//! What of a command goes against path rules that deny, and against protections:
//! what it names, what its globs could mean, and what it would meet on a walk.

use std::path::Path;

use super::Policy;
use super::exec::Exec;
use super::overlap::PathGlob;
use super::pattern::BoundPattern;
use super::protect::Protection;
use super::rule::PathAccess;
use super::scope::{Located, Unresolved, normal};
use super::shell::{NUMBER, UNKNOWN};
use super::touched::Touched;
use super::writes;

/// Programs whose words are texts and not paths.
const PRINTERS: &[&str] = &[
    "basename", "dirname", "echo", "expr", "printf", "seq", "sleep", "tr",
];

/// Programs that look at files and do not open them.
const LOOKERS: &[&str] = &["[", "ls", "readlink", "realpath", "stat", "test"];

/// Whether the words of a program are texts.
pub(super) fn prints(program: &str) -> bool {
    PRINTERS.contains(&program)
}

/// Whether a program opens no file that it is given.
pub(super) fn opens_nothing(program: &str) -> bool {
    prints(program) || LOOKERS.contains(&program)
}

impl Exec {
    /// Whether the unknown part of a word is a name that another command gives,
    /// among the files that are walked over.
    fn is_named(&self, touched: &Touched) -> bool {
        let Some(roots) = &self.named_below else {
            return false;
        };
        let (before, behind) = touched.text.split_once(UNKNOWN).unwrap_or_default();
        let root = before.strip_suffix('/');
        let known = root.is_some_and(|root| match roots.as_slice() {
            [] => root == ".",
            roots => roots
                .iter()
                .any(|known| known.trim_end_matches('/') == root),
        });
        behind.is_empty() && (before.is_empty() || known)
    }
}

impl Policy {
    /// Why a command touches what a path rule that denies speaks about; a rule
    /// without a pattern speaks about every path.
    pub(super) fn command_breaks(
        &self,
        kind: PathAccess,
        pattern: Option<&BoundPattern>,
        exec: &Exec,
    ) -> Option<String> {
        // An exact rule is the author's word that this very command is fine:
        // `bash test.sh` may run though `Edit(test.sh)` is denied.
        if kind == PathAccess::Write && (exec.reads_only || exec.vetted) {
            return None;
        }
        // To take note of files is not to write them.
        if kind == PathAccess::Write && exec.only_records() {
            return None;
        }
        if let Err(unclear) = &exec.command.words
            && !exec.vetted
        {
            return Some(format!(
                "a command of which cannot be said what it touches ({unclear}) is"
            ));
        }
        let (Some(touched), Some(walked)) = (&exec.touched, &exec.walked) else {
            return Some("a command with that many paths is".to_owned());
        };
        let denies = |path: &Path| pattern.is_none_or(|pattern| pattern.denies(path));
        let counts = |touched: &&Touched| kind == PathAccess::Read || exec.may_write(touched);
        let hit = touched.iter().filter(counts).find(|touched| {
            // What it names may be what is denied.
            if touched.is_uncertain() && !exec.is_named(touched) && !prints(exec.program()) {
                return true;
            }
            touched.place.as_ref().is_ok_and(|place| {
                let above = |pattern: &BoundPattern| {
                    pattern.is_below(&place.real) && !exec.leaves_files_alone()
                };
                denies(&place.real)
                    || denies(&place.lexical)
                    || (kind == PathAccess::Write && pattern.is_some_and(above))
            })
        });
        if let Some(hit) = hit {
            return Some(format!("a command with `{}` is", hit.text));
        }
        let met = walked.iter().find(|path| denies(path));
        let written = kind == PathAccess::Write && exec.named_below.is_some();
        if let Some(met) = met.filter(|_| kind == PathAccess::Read || written) {
            let shown = self.scope.shown(met);
            return Some(format!("a command that also reaches {shown} is"));
        }
        if kind == PathAccess::Write {
            let words = exec.command.words.as_ref().ok()?;
            let inside = pattern.is_none_or(|pattern| pattern.is_inside(&self.scope));
            let wide = inside && (writes::rewrites_tree(words) || writes::unpacks(words));
            return wide.then(|| "a command that may rewrite every file is".to_owned());
        }
        let could = |glob: &&PathGlob| pattern.is_some_and(|pattern| pattern.could_be_met(glob));
        let glob = exec
            .globs
            .iter()
            .find(could)
            .filter(|_| !prints(exec.program()))?;
        Some(format!(
            "a command with `{}`, which may mean what is denied, is",
            glob.text
        ))
    }

    /// Whether a text would be a path that holds credentials.
    pub(super) fn is_off_limits(&self, text: &str) -> bool {
        if text.contains([UNKNOWN, NUMBER]) {
            return false;
        }
        let path = match (text.strip_prefix('~'), &self.scope.home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => self.scope.workspace.join(text),
        };
        match self.scope.locate(&normal(&path)) {
            Ok(place) => self.protections.of(PathAccess::Read, &place).is_some(),
            Err(unresolved) => unresolved == Unresolved::Magic,
        }
    }

    /// The first thing among a command's arguments that is protected.
    pub(super) fn protected_in(&self, exec: &Exec) -> Option<String> {
        let Some(touched) = &exec.touched else {
            return Some("the command has too many paths to look at".to_owned());
        };
        // What is protected is what files hold, not that they are there.
        let kinds: &[PathAccess] = match (opens_nothing(exec.program()), exec.reads_only) {
            (true, true) => &[],
            (true, false) => &[PathAccess::Write],
            (false, true) => &[PathAccess::Read],
            (false, false) => &[PathAccess::Read, PathAccess::Write],
        };
        let named = touched.iter().find_map(|touched| match &touched.place {
            Err(Unresolved::Magic) => {
                let text = &touched.text;
                Some(format!("`{text}` is not allowed: {}", Unresolved::Magic))
            }
            Err(_) => None,
            Ok(place) => kinds.iter().find_map(|kind| {
                let protection = self.protection_in(*kind, touched, place, exec)?;
                Some(format!(
                    "`{}` is not allowed: it is {}, which only a rule such as `{}` allows",
                    touched.text,
                    protection.what,
                    protection.rule(*kind, &self.scope.shown(&place.real)),
                ))
            }),
        });
        named
            .or_else(|| self.protected_by_glob(exec))
            .or_else(|| self.protected_on_walk(exec))
    }

    /// The protection of a word that no rule lifts.
    fn protection_in(
        &self,
        kind: PathAccess,
        touched: &Touched,
        place: &Located,
        exec: &Exec,
    ) -> Option<Protection> {
        let writes =
            || kind == PathAccess::Write && exec.may_write(touched) && !exec.only_records();
        let whole = || writes() && !exec.leaves_files_alone();
        let protection = self.protections.of(kind, place);
        let mut found: Vec<Protection> = protection
            .filter(|found| !found.by_writing || writes())
            .into_iter()
            .collect();
        if found.is_empty() && whole() {
            found = self.protections.below(place);
        }
        let mut found = found.into_iter();
        found.find(|one| !self.is_lifted(kind, place, one))
    }

    /// The first glob among a command's arguments that may mean what is protected.
    fn protected_by_glob(&self, exec: &Exec) -> Option<String> {
        let names = |component: &str| {
            let mut patterns = self.allow.iter().filter_map(|bound| bound.pattern.as_ref());
            patterns.any(|pattern| pattern.names(component))
        };
        if opens_nothing(exec.program()) {
            return None;
        }
        exec.globs.iter().find_map(|glob| {
            let writes = !exec.reads_only && !exec.only_records();
            let written = || self.protections.of_written_glob(glob).filter(|_| writes);
            let protection = self.protections.of_glob(glob).or_else(written)?;
            (!names(&protection.component)).then(|| {
                format!(
                    "`{}` is not allowed: it is {}; name the files that are meant",
                    glob.text, protection.what
                )
            })
        })
    }

    /// The first protected file that a command would read on its walk.
    fn protected_on_walk(&self, exec: &Exec) -> Option<String> {
        let Some(walked) = &exec.walked else {
            let why = "the command walks over too many files to look at, over a home directory, or \
                       over the state of processes";
            return Some(why.to_owned());
        };
        walked.iter().find_map(|path| {
            let place = Located {
                lexical: path.clone(),
                real: path.clone(),
            };
            let protection = self.protections.of(PathAccess::Read, &place)?;
            let rule = self.path_rule("bash", PathAccess::Read, &place, Some(&protection));
            rule.is_none().then(|| {
                format!(
                    "the command would also read {}, which is {}: name other directories, or \
                     leave it out (`--exclude=…`)",
                    self.scope.shown(path),
                    protection.what
                )
            })
        })
    }
}
