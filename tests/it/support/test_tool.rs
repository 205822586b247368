//! Tools of a test's own.

use std::future::Future;
use std::pin::Pin;

use agent::access::Access;
use agent::tool::{CallContext, CallFuture, Place, Tool, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

type Run = dyn Fn(Value, CancellationToken) -> Pin<Box<dyn Future<Output = ToolOutput> + Send>>
    + Send
    + Sync;

/// A tool of the test's own.
pub(crate) struct TestTool {
    spec: ToolSpec,
    writes: bool,
    run: Box<Run>,
}

impl TestTool {
    /// A tool that only reads.
    pub(crate) fn reads<F>(
        name: &str,
        run: impl Fn(Value, CancellationToken) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ToolOutput> + Send + 'static,
    {
        Self {
            spec: ToolSpec {
                name: name.to_owned(),
                description: format!("Does {name}."),
                short_description: name.to_owned(),
                guidelines: Vec::new(),
                parameters: json!({"type": "object"}),
            },
            writes: false,
            run: Box::new(move |args, cancel| Box::pin(run(args, cancel))),
        }
    }

    /// A tool that only reads and says `text`.
    pub(crate) fn says(name: &str, text: &'static str) -> Self {
        Self::reads(
            name,
            move |_, _| async move { ToolOutput::text(text, "said") },
        )
    }

    /// A tool that gives its arguments back.
    pub(crate) fn echo(schema: Value) -> Self {
        let mut tool = Self::reads("echo", |args, _| async move {
            ToolOutput::text(args.to_string(), "echoed")
        });
        tool.spec.parameters = schema;
        tool
    }

    /// The same as a tool that writes `out.txt`.
    pub(crate) fn writing(mut self) -> Self {
        self.writes = true;
        self
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, _args: &Value) -> String {
        format!("the title of {}", self.spec.name)
    }

    fn accesses(&self, _args: &Value, place: &Place) -> Result<Vec<Access>, String> {
        let out = || Access::Write(place.workspace.join("out.txt"));
        Ok(self.writes.then(out).into_iter().collect())
    }

    fn call<'a>(&'a self, args: Value, cx: CallContext<'a>) -> CallFuture<'a> {
        let running = (self.run)(args, cx.cancel.clone());
        // The sender of updates must live as long as the call.
        Box::pin(async move {
            let output = running.await;
            drop(cx);
            output
        })
    }
}
