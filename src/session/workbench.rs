//! The tools of a session with everything a call needs: policy, place,
//! commands, the memory of files.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::clock::Activity;
use crate::event::SandboxReport;
use crate::policy::Policy;
use crate::secret::Redactor;
use crate::tool::{CallContext, CommandSettings, FileLedger, Permit, Place, Toolset};

use super::tape::ToolTape;
use super::toolbox::Toolbox;

/// What the calls of a session work with. Only the toolbox and the ledger of
/// files change.
#[derive(Debug)]
pub struct Workbench {
    toolbox: Toolbox,
    policy: Arc<Policy>,
    place: Place,
    commands: CommandSettings,
    output_dir: Option<PathBuf>,
    redactor: Redactor,
    files: FileLedger,
    tape: ToolTape,
    sandbox: Option<SandboxReport>,
}

impl Workbench {
    /// Puts tools, their policy and their surroundings together. Output above
    /// the limits goes whole into `output_dir`.
    pub fn new(
        tools: Toolset,
        policy: Arc<Policy>,
        place: Place,
        commands: CommandSettings,
        output_dir: Option<PathBuf>,
    ) -> Self {
        Self {
            toolbox: Toolbox::new(tools),
            policy,
            place,
            commands,
            output_dir,
            redactor: Redactor::default(),
            files: FileLedger::default(),
            tape: ToolTape::default(),
            sandbox: None,
        }
    }

    /// Hides these secrets in the output that is kept on disk; without it
    /// only texts in the shape of a well-known token are hidden.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// Records the results of tools, or takes them from a recording.
    #[must_use]
    pub fn with_tape(self, tape: ToolTape) -> Self {
        Self { tape, ..self }
    }

    /// Says how its commands are kept in.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Option<SandboxReport>) -> Self {
        Self { sandbox, ..self }
    }

    pub(super) fn sandbox(&self) -> Option<&SandboxReport> {
        self.sandbox.as_ref()
    }

    pub(super) fn tape(&self) -> &ToolTape {
        &self.tape
    }

    /// What a call works with.
    pub(super) fn context<'c>(
        &'c self,
        call_id: &'c str,
        permit: &'c Permit,
        updates: mpsc::Sender<String>,
        (cancel, activity): (&'c CancellationToken, &'c Activity),
    ) -> CallContext<'c> {
        CallContext {
            call_id,
            place: &self.place,
            files: &self.files,
            permit,
            commands: &self.commands,
            redactor: &self.redactor,
            output_dir: self.output_dir.as_deref(),
            cancel,
            updates,
            activity,
        }
    }

    /// What `tool` may do with the files that it meets.
    pub(super) fn permit(&self, tool: &str) -> Permit {
        let policy = Arc::clone(&self.policy);
        let tool = tool.to_owned();
        Permit::new(move |access| match access {
            Access::Read(path) => policy.may_read(&tool, path),
            _ => policy
                .decide(&tool, std::slice::from_ref(access))
                .is_allowed(),
        })
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub(super) fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// The same for a session of its own: its tools and what it has read go on
    /// apart from these.
    pub(super) fn forked(&self) -> Self {
        Self {
            toolbox: self.toolbox.forked(),
            policy: Arc::clone(&self.policy),
            place: self.place.clone(),
            commands: self.commands.clone(),
            output_dir: self.output_dir.clone(),
            redactor: self.redactor.clone(),
            files: self.files.forked(),
            tape: self.tape.clone(),
            sandbox: self.sandbox.clone(),
        }
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn files(&self) -> &FileLedger {
        &self.files
    }
}
