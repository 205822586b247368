//! One tool call that runs: its updates, its result, what tells of its end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::{self, Activity};
use crate::context::notes;
use crate::event::{EventKind, ToolComplete, ToolError, ToolErrorStatus, ToolUpdate};
use crate::hook::{HookPoint, ResultVerdict};
use crate::message::{Content, ToolCall};
use crate::model::TapedCall;
use crate::tool::{CallFuture, Failure, Tool, ToolOutput};

use super::feed::Feed;
use super::hooks::{Ended, SessionHooks};
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
    pub(super) hooks: &'s SessionHooks,
    /// Unique in the session; prefixes the names of spilled outputs.
    pub(super) name: String,
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
    /// What tells of its end, once its result is kept.
    pub(super) end: EventKind,
}

impl Finished {
    /// Puts a note behind the result, for the model and for whoever listens.
    pub(super) fn add_note(&mut self, note: &str) {
        self.content.push(Content::text(note));
        match &mut self.end {
            EventKind::ToolComplete(end) => add_paragraph(&mut end.content, note),
            EventKind::ToolError(end) => add_paragraph(&mut end.content, note),
            _ => {}
        }
    }

    /// Puts something else in place of the result, for the model and for whoever
    /// listens.
    fn replace(&mut self, content: Vec<Content>) {
        self.text = text_of(&content);
        self.content = content;
        match &mut self.end {
            EventKind::ToolComplete(end) => end.content.clone_from(&self.text),
            EventKind::ToolError(end) => end.content.clone_from(&self.text),
            _ => {}
        }
    }

    /// A call that is not run.
    pub(super) fn refused(
        call: &ToolCall,
        title: String,
        status: ToolErrorStatus,
        message: String,
    ) -> Self {
        Self {
            content: vec![Content::text(message.clone())],
            text: message.clone(),
            details: None,
            is_error: true,
            // A refused call counts as a repeat too: a model that insists is stuck.
            ran: matches!(
                status,
                ToolErrorStatus::InvalidInput | ToolErrorStatus::NotFound
            ),
            files: Vec::new(),
            end: EventKind::ToolError(ToolError {
                agent_id: "main".to_owned(),
                tool_name: call.name.clone(),
                title,
                content: message,
                tool_call_id: call.id.clone(),
                duration_ms: 0,
                status,
                exit_code: None,
            }),
        }
    }
}

impl Runner<'_> {
    /// Runs a call that was allowed. `index` counts the calls of the reply.
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
        let call_id = file_name(&self.name, index, &call.id);
        let place = format!("{}-{}", self.name, index + 1);
        let input = self
            .hooks
            .listen(HookPoint::AfterTool)
            .then(|| args.clone());
        let tape = self.workbench.tape();
        let taped = TapedCall {
            session: self.feed.session(),
            place: &place,
            name: &call.name,
            arguments: &args,
        };
        let output = if let Some(output) = tape.played(taped) {
            output
        } else if tape.is_recording() {
            let output = self.work(call, &call_id, tool, args.clone()).await;
            tape.keep(taped, &output);
            output
        } else {
            self.work(call, &call_id, tool, args).await
        };
        self.activity.touch();
        let mut finished = self.finished(call, title, output, clock::elapsed_ms(started));
        if let Some(input) = input {
            self.show(call, input, &mut finished).await;
        }
        finished
    }

    /// Lets the tool work, and passes on what it says meanwhile.
    async fn work(
        &self,
        call: &ToolCall,
        call_id: &str,
        tool: Arc<dyn Tool>,
        args: Value,
    ) -> ToolOutput {
        let (updates, waiting) = mpsc::channel(UPDATES_WAITING_MAX);
        let permit = self.workbench.permit(&tool.spec().name);
        let running = tool.call(
            args,
            self.workbench
                .context(call_id, &permit, updates, (self.cancel, self.activity)),
        );
        self.follow(call, running, waiting).await
    }

    /// Shows a result to the hooks, which may put another in its place.
    async fn show(&self, call: &ToolCall, input: Value, finished: &mut Finished) {
        let ended = Ended {
            call,
            input,
            content: &finished.content,
            is_error: finished.is_error,
        };
        let verdict = self.hooks.after_tool(ended, self.feed, self.cancel).await;
        if let ResultVerdict::Replace(content) = verdict {
            finished.replace(content);
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

    fn finished(
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
        let end = match output.failure {
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
        Finished {
            content: output.content,
            text,
            details: output.details,
            is_error: output.failure.is_some(),
            ran: true,
            files,
            end,
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

fn add_paragraph(text: &mut String, paragraph: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}

/// The text of a result; an image is named.
pub(super) fn text_of(content: &[Content]) -> String {
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
