//! What the model is allowed to do. A call states its accesses, and policy
//! judges those, so that a renamed tool cannot slip past a rule.
//!
//! For each access, in this order: a **deny** rule, an **ask** rule, the
//! protections (credentials, `.git`, what makes other programs run something, the
//! files of the run), an **allow** rule,
//! the mode. All accesses of a call have to be allowed. Nobody is there to be
//! asked, so an ask rule denies or ends the run; it never waits.
//!
//! Allow rules are matched strictly and on real paths; deny and ask rules
//! laxly, on the path as named and as it is, without regard to case and Unicode
//! form, and with a directory they cover what is below it. A deny or ask rule whose glob has no slash (`Read(*.pem)`)
//! means such names in every directory of the workspace; `./*.pem` means the
//! top. An allow rule means the top either way.
//!
//! A command line is read by `shell`, and every command that it could run has
//! to be allowed by itself; what its redirections open is judged as paths are.
//! A line that cannot be read is allowed only by a rule with exactly its text,
//! by a bare `Bash` rule or by `bypass`, the latter two only while no rule denies
//! any command. A rule with exactly the text of a line covers all of it. What a
//! command changes for those behind it is in `order`, what nobody knows before
//! it runs in `uncertain`.
//!
//! A denial of paths holds for commands as far as their words show: what they
//! name, what they would meet when they walk over directories, and every file
//! for the commands of git that rewrite the workspace.
//!
//! Reading a directory does not mean reading every file in it: tools that walk
//! ask [`Policy::may_read`] for each file. What a program does with what it is
//! allowed to run (a build, a test, a script) is out of sight here.
//!
//! Decisions are synchronous; the only I/O is that of resolving paths, and of
//! looking at the names that a glob or a walk would meet, and at the script that
//! activates a virtual environment.

mod activate;
mod assignment;
mod automation;
mod bash;
mod breach;
mod builtins;
mod checks;
mod code;
mod command;
mod companion;
mod decide;
mod denials;
mod exec;
mod explain;
mod find;
mod globs;
mod guard;
mod lax;
mod lenient;
mod linked;
mod listing;
mod may;
mod mode;
mod named;
mod opening;
mod options;
mod order;
mod overlap;
mod pattern;
mod protect;
mod repository;
mod rule;
mod scope;
mod shell;
mod suggest;
mod sweep;
mod table;
mod temporary;
mod texts;
mod touched;
mod tree;
mod uncertain;
mod walkers;
mod writes;

use std::path::PathBuf;

use serde::Serialize;

pub use automation::{automation_places, is_automation};
pub use denials::PathDenials;
pub use explain::{Explanation, Part};
pub use mode::{Enforcement, Mode, OnAsk, UnknownMode};
pub use named::server_access;
pub use protect::{is_credential_directory, is_credential_name};
pub use rule::{Effect, Rule, RuleError, changes_rules};
pub use shell::{Refusal, literal_words, simple_commands};
pub use temporary::{PrivateDirectory, TemporaryFiles};

use crate::event::Decider;
use pattern::BoundPattern;
use protect::Protections;
use rule::Target;
use scope::Scope;

/// What a task allows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Permissions {
    /// What happens when no rule speaks.
    pub mode: Mode,
    /// Rules that allow.
    pub allow: Vec<Rule>,
    /// Rules that would ask.
    pub ask: Vec<Rule>,
    /// Rules that deny; nothing overrides them.
    pub deny: Vec<Rule>,
    /// What an ask rule means.
    pub on_ask: OnAsk,
    /// Whether a run with a denial exits with status 3 once it has finished.
    pub fail_on_denied: bool,
    /// Directories that count as the workspace; relative ones start from it.
    pub additional_directories: Vec<PathBuf>,
}

impl Permissions {
    /// Whether a call could be allowed to start a command.
    pub fn may_start_commands(&self) -> bool {
        let by_mode = matches!(self.mode, Mode::Workspace | Mode::Bypass);
        by_mode || self.allow.iter().any(Rule::is_about_commands)
    }
}

/// Where the job runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The workspace root, absolute.
    pub workspace: PathBuf,
    /// What `~` means.
    pub home: Option<PathBuf>,
    /// The task file, the run directory, session files: never written by calls.
    pub protected: Vec<PathBuf>,
    /// Files with keys of the run: neither read nor written by calls.
    pub keys: Vec<PathBuf>,
    /// Whether commands run in a sandbox; mode `workspace` rests on it.
    pub sandbox: Enforcement,
    /// The temporary files that the sandbox gives commands.
    pub temporary: TemporaryFiles,
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
    /// It may not, and the run ends: an ask rule under `on_ask: fail`.
    Fail,
}

/// A decision, explained. Serialised it is what `agent permissions check`
/// prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The answer.
    #[serde(rename = "decision")]
    pub verdict: Verdict,
    /// Who decided.
    pub by: Decider,
    /// The rule and its place, as `permissions.deny[0] Edit(.github/**)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, for the model.
    pub reason: String,
    /// A rule that would have allowed what was denied, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_rule: Option<String>,
}

impl Decision {
    /// Whether the call may run.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// The rules of a job, compiled and rooted.
#[derive(Debug)]
pub struct Policy {
    permissions: Permissions,
    scope: Scope,
    protections: Protections,
    sandbox: Enforcement,
    temporary: TemporaryFiles,
    allow: Vec<Bound>,
    ask: Vec<Bound>,
    deny: Vec<Bound>,
}

/// A rule with its pattern rooted in the job's directories.
#[derive(Debug)]
struct Bound {
    rule: Rule,
    pattern: Option<BoundPattern>,
}

impl Policy {
    /// Roots the rules in the directories of a job.
    pub fn new(permissions: Permissions, surroundings: Surroundings) -> Self {
        let Surroundings {
            workspace,
            home,
            protected,
            keys,
            sandbox,
            temporary,
        } = surroundings;
        let scope = Scope::new(
            &workspace,
            home.as_deref(),
            &permissions.additional_directories,
        );
        let bind = |rules: &[Rule]| {
            let bound = rules.iter().map(|rule| Bound {
                pattern: match &rule.target {
                    Target::Path { pattern, .. } => pattern.clone(),
                    Target::Bash(_) | Target::Named(_) => None,
                }
                .map(|pattern| pattern.bind(&scope)),
                rule: rule.clone(),
            });
            bound.collect()
        };
        Self {
            allow: bind(&permissions.allow),
            ask: bind(&permissions.ask),
            deny: bind(&permissions.deny),
            protections: Protections::new(&protected, &keys, &scope),
            scope,
            sandbox,
            temporary,
            permissions,
        }
    }

    /// What happens when no rule speaks.
    pub fn mode(&self) -> Mode {
        self.permissions.mode
    }

    /// Whether commands run in a sandbox.
    pub fn sandbox(&self) -> Enforcement {
        self.sandbox
    }

    /// What the task allows.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }
}
