//! A workspace with tools, for the tests of the tools.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::access::Access;
use agent::clock::Activity;
use agent::message::Content;
use agent::process::CommandSandbox;
use agent::secret::Redactor;
use agent::tool::{
    CallContext, CommandSettings, Failure, FileLedger, Permit, Place, ToolOutput, Toolset,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A workspace in a temporary directory, a session's memory, and its settings.
pub(crate) struct Scene {
    _dir: tempfile::TempDir,
    pub(crate) place: Place,
    pub(crate) files: FileLedger,
    pub(crate) permit: Permit,
    pub(crate) commands: CommandSettings,
    pub(crate) redactor: Redactor,
    pub(crate) output_dir: PathBuf,
    pub(crate) cancel: CancellationToken,
    pub(crate) activity: Activity,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let workspace = base.join("work");
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::create_dir_all(base.join("home")).unwrap();
        Self {
            _dir: dir,
            place: Place {
                workspace,
                home: Some(base.join("home")),
            },
            files: FileLedger::default(),
            permit: Permit::everything(),
            redactor: Redactor::default(),
            commands: CommandSettings {
                env: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
                shell_path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
                timeout: Duration::from_secs(60),
                timeout_max: Duration::from_secs(120),
                sandbox: CommandSandbox::Off,
            },
            output_dir: base.join("output"),
            cancel: CancellationToken::new(),
            activity: Activity::new(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.place.workspace
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Puts a file there behind the session's back.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> ToolOutput {
        let (updates, mut received) = mpsc::channel(64);
        let output = self.call_with(tool, args, updates).await;
        received.close();
        output
    }

    pub(crate) async fn call_with(
        &self,
        tool: &str,
        args: Value,
        updates: mpsc::Sender<String>,
    ) -> ToolOutput {
        let tools = Toolset::built_in(&[tool.to_owned()]);
        let cx = CallContext {
            call_id: "call-1",
            place: &self.place,
            files: &self.files,
            permit: &self.permit,
            commands: &self.commands,
            redactor: &self.redactor,
            output_dir: Some(&self.output_dir),
            cancel: &self.cancel,
            updates,
            activity: &self.activity,
        };
        tools.find(tool).unwrap().call(args, cx).await
    }

    /// The text of a call that succeeds.
    pub(crate) async fn ok(&self, tool: &str, args: Value) -> String {
        let output = self.call(tool, args).await;
        assert_eq!(output.failure, None, "{}", text(&output));
        text(&output)
    }

    /// The text of a call that fails by itself.
    pub(crate) async fn refused(&self, tool: &str, args: Value) -> String {
        let output = self.call(tool, args).await;
        assert_eq!(output.failure, Some(Failure::Error), "{}", text(&output));
        assert!(!output.summary.is_empty());
        text(&output)
    }

    pub(crate) fn accesses(&self, tool: &str, args: Value) -> Result<Vec<Access>, String> {
        let tools = Toolset::built_in(&[tool.to_owned()]);
        tools.find(tool).unwrap().accesses(&args, &self.place)
    }
}

/// All text for the model.
pub(crate) fn text(output: &ToolOutput) -> String {
    let texts = output.content.iter().filter_map(|block| match block {
        Content::Text(text) => Some(text.text.as_str()),
        Content::Image(_) | Content::Thinking(_) | Content::ToolCall(_) => None,
    });
    texts.collect()
}
