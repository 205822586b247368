//! A call before anything is decided about it: its tool is found, its arguments
//! are checked, the hooks that may rewrite or block it are asked.

use std::sync::Arc;

use serde_json::Value;

use crate::access::Access;
use crate::context::notes;
use crate::event::ToolErrorStatus;
use crate::hook::ToolVerdict;
use crate::message::ToolCall;
use crate::tool::Tool;

use super::dispatch::Batch;

/// A call whose tool, arguments and accesses are known.
pub(super) struct Examined {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) args: Value,
    pub(super) accesses: Vec<Access>,
}

/// A call that is not run, and why.
pub(super) struct Refused {
    pub(super) title: String,
    pub(super) status: ToolErrorStatus,
    pub(super) message: String,
}

/// A call that policy may decide about.
pub(super) struct Prepared<'c> {
    pub(super) call: &'c ToolCall,
    /// As the hooks left it.
    pub(super) examined: Result<Examined, Refused>,
    /// Why a hook blocks it.
    pub(super) blocked: Option<String>,
}

/// Whether the hooks that may change a call are asked about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guarded {
    /// They are.
    Yes,
    /// It will not run whatever they say.
    No,
}

impl Examined {
    /// Whether it changes nothing.
    pub(super) fn is_read_only(&self) -> bool {
        self.accesses.iter().all(Access::is_read_only)
    }
}

impl Batch<'_> {
    /// Prepares one call. After this no hook comes before its execution.
    pub(super) async fn prepare<'c>(&self, call: &'c ToolCall, guarded: Guarded) -> Prepared<'c> {
        let mut prepared = Prepared {
            call,
            examined: self.examine(call),
            blocked: None,
        };
        let cancel = self.interrupt.token();
        if let (Ok(examined), Guarded::Yes) = (&prepared.examined, guarded) {
            let input = &examined.args;
            match self
                .hooks
                .before_tool(call, input, &self.feed, cancel)
                .await
            {
                ToolVerdict::Continue => {}
                ToolVerdict::Replace(input) => prepared.examined = self.rewritten(call, input),
                ToolVerdict::Block(reason) => prepared.blocked = Some(reason),
            }
        }
        let input = match &prepared.examined {
            Ok(examined) => &examined.args,
            Err(_) => &call.arguments,
        };
        self.hooks.on_action(call, input, &self.feed, cancel).await;
        prepared
    }

    /// Finds the tool, checks the arguments, asks what the call would touch.
    pub(super) fn examine(&self, call: &ToolCall) -> Result<Examined, Refused> {
        let Some(tool) = self.tools.find(&call.name) else {
            let names = self.tools.names();
            let note = if self.tools.is_inactive(&call.name) {
                notes::inactive_tool(&call.name, &names)
            } else {
                notes::unknown_tool(&call.name, &names)
            };
            return Err(refused(call, ToolErrorStatus::NotFound, note));
        };
        if let Some(raw) = &call.invalid_arguments {
            return Err(invalid(call, &notes::unparsable_arguments(raw)));
        }
        self.fitting(call, tool, call.arguments.clone())
            .map_err(|problem| invalid(call, &problem))
    }

    /// The call with the arguments of a hook, which must fit like the model's own.
    fn rewritten(&self, call: &ToolCall, input: Value) -> Result<Examined, Refused> {
        let tool = self.tools.find(&call.name);
        let fitting = match tool {
            Some(tool) => self.fitting(call, tool, input),
            None => Err("the tool is gone".to_owned()),
        };
        fitting.map_err(|problem| {
            let note = notes::rewritten_arguments(&call.name, &problem);
            refused(call, ToolErrorStatus::InvalidInput, note)
        })
    }

    fn fitting(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
        input: Value,
    ) -> Result<Examined, String> {
        let args = self
            .tools
            .check_arguments(&call.name, &tool.spec().parameters, input)?;
        let accesses = tool.accesses(&args, self.workbench.place())?;
        Ok(Examined {
            tool: Arc::clone(tool),
            args,
            accesses,
        })
    }
}

fn refused(call: &ToolCall, status: ToolErrorStatus, message: String) -> Refused {
    Refused {
        title: call.name.clone(),
        status,
        message,
    }
}

fn invalid(call: &ToolCall, problem: &str) -> Refused {
    let note = notes::invalid_arguments(&call.name, problem);
    refused(call, ToolErrorStatus::InvalidInput, note)
}
