//! One tool call that runs: its updates, its end, what is told of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::{self, Activity};
use crate::context::notes;
use crate::event::{EventKind, ToolComplete, ToolError, ToolErrorStatus, ToolUpdate};
use crate::message::{Content, ToolCall};
use crate::tool::{CallContext, CallFuture, Failure, Tool, ToolOutput};

use super::feed::Feed;
use super::workbench::Workbench;

/// Partial outputs that may wait for the feed.
const UPDATES_WAITING_MAX: usize = 16;

/// What a tool gets to end its call by itself once it was asked to. A command
/// and its children are gone before.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// What running a call needs.
pub(super) struct Runner<'s> {
    pub(super) workbench: &'s Workbench,
    pub(super) activity: &'s Activity,
    pub(super) feed: &'s Feed,
    pub(super) cancel: &'s CancellationToken,
    pub(super) name: &'s str,
}

/// A call that ended, or never ran.
pub(super) struct Finished {
    /// What the model is told.
    pub(super) content: Vec<Content>,
    /// The text of it.
    pub(super) text: String,
    /// Facts for viewers.
    pub(super) details: Option<Value>,
    /// Whether it failed.
    pub(super) is_error: bool,
    /// Whether the tool was started.
    pub(super) ran: bool,
    /// The files it wrote, relative to the workspace.
    pub(super) files: Vec<String>,
}

impl Runner<'_> {
    /// Runs a call that was allowed and tells how it ended.
    pub(super) async fn run(
        &self,
        call: &ToolCall,
        index: usize,
        tool: Arc<dyn Tool>,
        args: Value,
    ) -> Finished {
        let started = clock::monotonic();
        self.activity.touch();
        let title = tool.title(&args);
        let call_id = file_name(self.name, index, &call.id);
        let (updates, waiting) = mpsc::channel(UPDATES_WAITING_MAX);
        let permit = self.workbench.permit(&tool.spec().name);
        let running = tool.call(
            args,
            CallContext {
                call_id: &call_id,
                place: self.workbench.place(),
                files: self.workbench.files(),
                permit: &permit,
                commands: self.workbench.commands(),
                redactor: self.workbench.redactor(),
                output_dir: self.workbench.output_dir(),
                cancel: self.cancel,
                updates,
                activity: self.activity,
            },
        );
        let output = self.follow(call, running, waiting).await;
        self.activity.touch();
        self.tell_end(call, title, output, clock::elapsed_ms(started))
            .await
    }

    /// Tells that a call is not run.
    pub(super) async fn refuse(
        &self,
        call: &ToolCall,
        title: String,
        status: ToolErrorStatus,
        message: String,
    ) -> Finished {
        self.feed
            .send(EventKind::ToolError(ToolError {
                agent_id: "main".to_owned(),
                tool_name: call.name.clone(),
                title,
                content: message.clone(),
                tool_call_id: call.id.clone(),
                duration_ms: 0,
                status,
                exit_code: None,
            }))
            .await;
        Finished {
            content: vec![Content::text(message.clone())],
            text: message,
            details: None,
            is_error: true,
            // A refused call counts as a repeat too: a model that insists is stuck.
            ran: matches!(
                status,
                ToolErrorStatus::InvalidInput | ToolErrorStatus::NotFound
            ),
            files: Vec::new(),
        }
    }

    /// Waits for a call and passes its partial output on. A tool that was
    /// asked to stop and does not is made to: its future is dropped.
    async fn follow(
        &self,
        call: &ToolCall,
        mut running: CallFuture<'_>,
        mut waiting: mpsc::Receiver<String>,
    ) -> ToolOutput {
        let patience = async {
            self.cancel.cancelled().await;
            clock::sleep(STOP_GRACE, &CancellationToken::new()).await;
        };
        tokio::pin!(patience);
        let output = loop {
            tokio::select! {
                biased;
                Some(delta) = waiting.recv() => self.update(call, delta).await,
                output = &mut running => break output,
                () = &mut patience => break abandoned(),
            }
        };
        waiting.close();
        while let Ok(delta) = waiting.try_recv() {
            self.update(call, delta).await;
        }
        output
    }

    async fn update(&self, call: &ToolCall, delta: String) {
        self.feed
            .send(EventKind::ToolUpdate(ToolUpdate {
                tool_call_id: call.id.clone(),
                delta,
            }))
            .await;
    }

    async fn tell_end(
        &self,
        call: &ToolCall,
        title: String,
        output: ToolOutput,
        duration_ms: u64,
    ) -> Finished {
        let text = text_of(&output.content);
        let files: Vec<String> = output
            .files
            .iter()
            .map(|path| {
                let workspace = &self.workbench.place().workspace;
                let shown = path.strip_prefix(workspace).unwrap_or(path);
                shown.display().to_string()
            })
            .collect();
        let kind = match output.failure {
            None => EventKind::ToolComplete(ToolComplete {
                agent_id: "main".to_owned(),
                tool_name: call.name.clone(),
                title,
                summary: output.summary,
                content: text.clone(),
                tool_call_id: call.id.clone(),
                duration_ms,
                exit_code: output.exit_code,
                truncated: output.truncated,
                files: files.clone(),
            }),
            Some(failure) => EventKind::ToolError(ToolError {
                agent_id: "main".to_owned(),
                tool_name: call.name.clone(),
                title,
                content: text.clone(),
                tool_call_id: call.id.clone(),
                duration_ms,
                status: match failure {
                    Failure::Error => ToolErrorStatus::Error,
                    Failure::Timeout => ToolErrorStatus::Timeout,
                    Failure::Aborted => ToolErrorStatus::Aborted,
                },
                exit_code: output.exit_code,
            }),
        };
        self.feed.send(kind).await;
        Finished {
            content: output.content,
            text,
            details: output.details,
            is_error: output.failure.is_some(),
            ran: true,
            files,
        }
    }
}

/// The output of a call that did not stop in time.
fn abandoned() -> ToolOutput {
    ToolOutput {
        failure: Some(Failure::Aborted),
        ..ToolOutput::error(notes::interrupted_call())
    }
}

fn text_of(content: &[Content]) -> String {
    let mut text = String::new();
    for block in content {
        match block {
            Content::Text(block) => text.push_str(&block.text),
            Content::Image(image) => text.push_str(&format!("[image: {}]", image.mime_type)),
            Content::Thinking(_) | Content::ToolCall(_) => {}
        }
    }
    text
}

/// A name for the call's spilled output: unique, and safe in any folder.
fn file_name(batch: &str, index: usize, call_id: &str) -> String {
    let safe: String = call_id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        .take(40)
        .collect();
    format!("{batch}-{}-{safe}", index + 1)
}
