//! What the model may do: the tools, their contract, and the set that is active.
//!
//! A tool parses its arguments, states what it would touch, and runs. It never
//! decides whether it may run, and a failure of it is text for the model, never
//! an `Err`.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::clock::Activity;
use crate::message::Content;
use crate::process::CommandSandbox;
use crate::secret::Redactor;

mod bash;
mod capture;
mod command;
mod diff;
mod edit;
mod file;
mod find;
mod grep;
mod ledger;
mod ls;
mod path;
mod permit;
mod read;
mod replacement;
pub mod truncate;
mod walk;
mod work;
mod write;

pub use command::{CommandOutput, run_command};
pub use ledger::{BeforeImage, FileLedger, Fingerprint, Freshness};
pub use permit::Permit;

/// What the model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name the model calls.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// A few words, for the tool list of the system prompt.
    pub short_description: String,
    /// Advice for the system prompt, one sentence each.
    pub guidelines: Vec<String>,
    /// The arguments as a JSON Schema object.
    pub parameters: Value,
}

/// A tool.
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn spec(&self) -> &ToolSpec;

    /// One line for people: what this call is about.
    fn title(&self, args: &Value) -> String;

    /// What the call would touch. `args` fit the schema.
    ///
    /// # Errors
    /// A message for the model when the arguments cannot mean anything.
    fn accesses(&self, args: &Value, place: &Place) -> Result<Vec<Access>, String>;

    /// Runs the call. It has been allowed.
    fn call<'a>(&'a self, args: Value, cx: CallContext<'a>) -> CallFuture<'a>;
}

/// The future of a running call.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = ToolOutput> + Send + 'a>>;

/// Where paths of a session are resolved.
#[derive(Debug, Clone)]
pub struct Place {
    /// The workspace root: absolute, real.
    pub workspace: PathBuf,
    /// What `~` means.
    pub home: Option<PathBuf>,
}

/// How commands of a session run.
#[derive(Debug, Clone)]
pub struct CommandSettings {
    /// The whole environment of a command.
    pub env: Vec<(String, String)>,
    /// Where the shell is looked up, as in `PATH`: commands can write none of it.
    pub shell_path: String,
    /// The time limit when the call names none.
    pub timeout: Duration,
    /// The longest time limit a call may ask for.
    pub timeout_max: Duration,
    /// What keeps commands in. Without one that was set up, none starts.
    pub sandbox: CommandSandbox,
}

/// What a tool gets with a call, beyond its arguments.
#[derive(Debug)]
pub struct CallContext<'a> {
    /// The call's id, safe as a file name.
    pub call_id: &'a str,
    /// Where paths are resolved.
    pub place: &'a Place,
    /// What the session has read and changed.
    pub files: &'a FileLedger,
    /// What of the files that the call meets it may use: those below its root,
    /// and those where its paths lead when they are opened.
    pub permit: &'a Permit,
    /// How commands run.
    pub commands: &'a CommandSettings,
    /// Hides secrets in what is kept on disk.
    pub redactor: &'a Redactor,
    /// Where output above the limits is kept whole; none keeps only what is shown.
    pub output_dir: Option<&'a std::path::Path>,
    /// Cancelled when the call shall end.
    pub cancel: &'a CancellationToken,
    /// Partial output, for `tool:execution:update`; bounded, the tool waits.
    pub updates: mpsc::Sender<String>,
    /// Touched whenever the tool hears of its work.
    pub activity: &'a Activity,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// What the model is told.
    pub content: Vec<Content>,
    /// One line for people.
    pub summary: String,
    /// How it failed; none is success.
    pub failure: Option<Failure>,
    /// Facts for viewers (a diff, a path), never sent to the model.
    pub details: Option<Value>,
    /// A command's exit status.
    pub exit_code: Option<i32>,
    /// Whether the content is a part of the whole.
    pub truncated: bool,
    /// Files that were written, absolute.
    pub files: Vec<PathBuf>,
}

/// How a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The tool's own failure; the content says which.
    Error,
    /// It ran out of time.
    Timeout,
    /// It was cancelled.
    Aborted,
}

impl ToolOutput {
    /// A success with one text for the model.
    pub fn text(text: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            summary: summary.into(),
            ..Self::default()
        }
    }

    /// A failure with one text for the model.
    pub fn error(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            summary: text.lines().next().unwrap_or_default().to_owned(),
            content: vec![Content::text(text)],
            failure: Some(Failure::Error),
            ..Self::default()
        }
    }

    /// The same with facts for viewers.
    #[must_use]
    pub fn with_details(self, details: Value) -> Self {
        Self {
            details: Some(details),
            ..self
        }
    }
}

/// The tools of a session, in the order in which the model sees them.
#[derive(Clone, Default)]
pub struct Toolset {
    tools: Vec<Arc<dyn Tool>>,
}

impl std::fmt::Debug for Toolset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A tool with this name exists already.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("there are two tools named `{0}`")]
pub struct DuplicateTool(pub String);

impl Toolset {
    /// The names of all built-in tools.
    pub const BUILT_IN: &'static [&'static str] =
        &["bash", "edit", "find", "grep", "ls", "read", "write"];

    /// The named built-in tools; unknown names are left out.
    pub fn built_in(names: &[String]) -> Self {
        let tools = Self::BUILT_IN
            .iter()
            .filter(|name| names.iter().any(|asked| asked == *name))
            .filter_map(|name| built_in(name))
            .collect();
        Self { tools }
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), DuplicateTool> {
        if self.find(&tool.spec().name).is_some() {
            return Err(DuplicateTool(tool.spec().name.clone()));
        }
        let at = self
            .tools
            .partition_point(|other| other.spec().name < tool.spec().name);
        self.tools.insert(at, tool);
        Ok(())
    }

    /// Takes the tool with this name out; tells whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|tool| tool.spec().name != name);
        self.tools.len() < before
    }

    /// The tool with this name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// The tools' names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.tools
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect()
    }

    /// What the model is told, sorted by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }
}

fn built_in(name: &str) -> Option<Arc<dyn Tool>> {
    match name {
        "bash" => Some(Arc::new(bash::Bash::new())),
        "edit" => Some(Arc::new(edit::Edit::new())),
        "find" => Some(Arc::new(find::Find::new())),
        "grep" => Some(Arc::new(grep::Grep::new())),
        "ls" => Some(Arc::new(ls::Ls::new())),
        "read" => Some(Arc::new(read::Read::new())),
        "write" => Some(Arc::new(write::Write::new())),
        _ => None,
    }
}

/// Reads the arguments of a call into a tool's own shape.
fn arguments<T: serde::de::DeserializeOwned>(args: &Value) -> Result<T, String> {
    T::deserialize(args).map_err(|error| format!("the arguments do not fit: {error}"))
}

/// A text argument for a title: one clean line of at most 120 characters.
fn title_text<'a>(args: &'a Value, key: &str) -> std::borrow::Cow<'a, str> {
    let text = args.get(key).and_then(Value::as_str).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let short = line.chars().count() <= 120 && line.len() == text.len();
    if short && !line.contains(char::is_control) {
        return line.into();
    }
    let kept: String = line.chars().filter(|c| !c.is_control()).take(120).collect();
    format!("{kept}…").into()
}
