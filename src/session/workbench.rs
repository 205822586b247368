//! The tools of a session with everything a call needs: policy, place,
//! commands, the memory of files, compiled argument schemas.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::access::Access;
use crate::model::ToolDefinition;
use crate::policy::Policy;
use crate::secret::Redactor;
use crate::tool::{CommandSettings, FileLedger, Permit, Place, Toolset};

use super::arguments::Validator;

/// What the calls of a session work with. Nothing in it changes while a call
/// runs but the ledger of files.
#[derive(Debug)]
pub struct Workbench {
    tools: Toolset,
    policy: Arc<Policy>,
    place: Place,
    commands: CommandSettings,
    output_dir: Option<PathBuf>,
    redactor: Redactor,
    files: FileLedger,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
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
            tools,
            policy,
            place,
            commands,
            output_dir,
            redactor: Redactor::default(),
            files: FileLedger::default(),
            validators: Mutex::default(),
        }
    }

    /// Hides these secrets in the output that is kept on disk; without it
    /// only texts in the shape of a well-known token are hidden.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// What `tool` may do with the files that it meets.
    pub(super) fn permit(&self, tool: &str) -> Permit {
        let policy = Arc::clone(&self.policy);
        let tool = tool.to_owned();
        Permit::new(move |access| match access {
            Access::Read(path) => policy.may_read(&tool, path),
            Access::Write(_) | Access::Exec(_) => policy
                .decide(&tool, std::slice::from_ref(access))
                .is_allowed(),
        })
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub(super) fn tools(&self) -> &Toolset {
        &self.tools
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn commands(&self) -> &CommandSettings {
        &self.commands
    }

    pub(super) fn output_dir(&self) -> Option<&std::path::Path> {
        self.output_dir.as_deref()
    }

    pub(super) fn files(&self) -> &FileLedger {
        &self.files
    }

    pub(super) fn tool_names(&self) -> Vec<String> {
        self.tools.names()
    }

    /// The tools as a model sees them, sorted by name.
    pub(super) fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.tools
            .specs()
            .into_iter()
            .map(|spec| ToolDefinition {
                name: spec.name,
                description: spec.description,
                parameters: spec.parameters,
            })
            .collect()
    }

    /// Checks and coerces the arguments of a call. Schemas are compiled when
    /// their tool is first called: most runs use few of them.
    pub(super) fn check_arguments(
        &self,
        tool: &str,
        schema: &Value,
        args: Value,
    ) -> Result<Value, String> {
        let known = {
            let validators = self
                .validators
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            validators.get(tool).cloned()
        };
        let validator = match known {
            Some(validator) => validator,
            None => {
                let validator = Arc::new(Validator::compile(schema)?);
                self.validators
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(tool.to_owned(), Arc::clone(&validator));
                validator
            }
        };
        validator.check(args)
    }
}
