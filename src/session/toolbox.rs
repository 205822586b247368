//! The tools of a session: which there are, which of them are active. They may
//! change while a turn runs; the next request has the change, and the calls of
//! a reply are run with the tools that their request named.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::model::ToolDefinition;
use crate::tool::{Tool, ToolSpec, Toolset};

use super::arguments::Validator;
use super::refusal::SessionError;

/// How the names of tools of MCP servers begin.
const MCP_PREFIX: &str = "mcp__";

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSource {
    /// It is one of [`Toolset::BUILT_IN`].
    BuiltIn,
    /// The embedding program's own.
    Custom,
    /// An MCP server's; its name begins with `mcp__` and the server.
    Mcp,
}

/// A tool as it is listed.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDescriptor {
    /// The name that the model calls.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// A few words.
    pub short_description: String,
    /// The arguments as a JSON Schema object.
    pub parameters: Value,
    /// Where it comes from.
    pub source: ToolSource,
    /// Whether the model may call it.
    pub enabled: bool,
}

/// The tools of a session, to look at and to change.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'s> {
    toolbox: &'s Toolbox,
}

/// The tools that a request names.
#[derive(Debug)]
pub(super) struct ActiveTools {
    tools: Toolset,
    /// The names of the others.
    inactive: Vec<String>,
    definitions: Arc<[ToolDefinition]>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// All tools of a session.
#[derive(Debug)]
pub(super) struct Toolbox {
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    /// All of them, sorted by name.
    all: Toolset,
    inactive: Vec<String>,
    active: Arc<ActiveTools>,
}

impl Tools<'_> {
    /// All tools, sorted by name.
    pub fn descriptors(&self) -> Vec<ToolDescriptor> {
        let table = self.toolbox.lock();
        let descriptor = |spec: ToolSpec| ToolDescriptor {
            source: ToolSource::of(&spec.name),
            enabled: !table.inactive.contains(&spec.name),
            name: spec.name,
            description: spec.description,
            short_description: spec.short_description,
            parameters: spec.parameters,
        };
        table.all.specs().into_iter().map(descriptor).collect()
    }

    /// The names of the active tools, sorted.
    pub fn active(&self) -> Vec<String> {
        self.toolbox.active().names()
    }

    /// Makes these tools active and all others inactive, from the next request on.
    ///
    /// # Errors
    /// When there is no tool of one of the names; nothing is changed then.
    pub fn set_active(&self, names: &[&str]) -> Result<(), SessionError> {
        let mut table = self.toolbox.lock();
        if let Some(unknown) = names.iter().find(|name| table.all.find(name).is_none()) {
            return Err(SessionError::UnknownTool((*unknown).to_owned()));
        }
        let others = table.all.names();
        table.inactive = others
            .into_iter()
            .filter(|name| !names.contains(&name.as_str()))
            .collect();
        table.rebuild();
        Ok(())
    }

    /// Adds an active tool, from the next request on.
    ///
    /// # Errors
    /// When the name is taken, by an inactive tool too.
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<(), SessionError> {
        let mut table = self.toolbox.lock();
        table.all.register(tool)?;
        table.rebuild();
        Ok(())
    }

    /// Takes a tool away, from the next request on.
    ///
    /// # Errors
    /// When there is no tool of that name.
    pub fn unregister(&self, name: &str) -> Result<(), SessionError> {
        let mut table = self.toolbox.lock();
        if !table.all.remove(name) {
            return Err(SessionError::UnknownTool(name.to_owned()));
        }
        table.inactive.retain(|inactive| inactive != name);
        table.rebuild();
        Ok(())
    }
}

impl ToolSource {
    fn of(name: &str) -> Self {
        if name.starts_with(MCP_PREFIX) {
            Self::Mcp
        } else if Toolset::BUILT_IN.contains(&name) {
            Self::BuiltIn
        } else {
            Self::Custom
        }
    }
}

impl Toolbox {
    pub(super) fn new(tools: Toolset) -> Self {
        Self {
            table: Mutex::new(Table {
                active: Arc::new(ActiveTools::new(tools.clone(), Vec::new())),
                all: tools,
                inactive: Vec::new(),
            }),
        }
    }

    /// The same tools, which change apart from these.
    pub(super) fn forked(&self) -> Self {
        let table = self.lock();
        Self {
            table: Mutex::new(Table {
                all: table.all.clone(),
                inactive: table.inactive.clone(),
                active: Arc::clone(&table.active),
            }),
        }
    }

    pub(super) fn handle(&self) -> Tools<'_> {
        Tools { toolbox: self }
    }

    /// The active tools as they are now; the same `Arc` until they change.
    pub(super) fn active(&self) -> Arc<ActiveTools> {
        Arc::clone(&self.lock().active)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn rebuild(&mut self) {
        let mut active = self.all.clone();
        for name in &self.inactive {
            active.remove(name);
        }
        self.active = Arc::new(ActiveTools::new(active, self.inactive.clone()));
    }
}

impl ActiveTools {
    fn new(tools: Toolset, inactive: Vec<String>) -> Self {
        let definition = |spec: ToolSpec| ToolDefinition {
            name: spec.name,
            description: spec.description,
            parameters: spec.parameters,
        };
        Self {
            definitions: tools.specs().into_iter().map(definition).collect(),
            tools,
            inactive,
            validators: Mutex::default(),
        }
    }

    pub(super) fn toolset(&self) -> &Toolset {
        &self.tools
    }

    pub(super) fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.find(name)
    }

    /// Whether there is such a tool that the model may not call.
    pub(super) fn is_inactive(&self, name: &str) -> bool {
        self.inactive.iter().any(|inactive| inactive == name)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.tools.names()
    }

    /// The tools as a model sees them, sorted by name.
    pub(super) fn definitions(&self) -> &Arc<[ToolDefinition]> {
        &self.definitions
    }

    /// Checks and coerces the arguments of a call. Schemas are compiled when
    /// their tool is first called: most runs use few of them.
    pub(super) fn check_arguments(
        &self,
        tool: &str,
        schema: &Value,
        args: Value,
    ) -> Result<Value, String> {
        let known = self.validators().get(tool).cloned();
        let validator = match known {
            Some(validator) => validator,
            None => {
                let validator = Arc::new(Validator::compile(schema)?);
                self.validators()
                    .insert(tool.to_owned(), Arc::clone(&validator));
                validator
            }
        };
        validator.check(args)
    }

    fn validators(&self) -> MutexGuard<'_, HashMap<String, Arc<Validator>>> {
        self.validators
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
