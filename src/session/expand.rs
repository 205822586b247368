//! What a prompt becomes before the model sees it: the skill or template that
//! it begins with, and behind its text the files that it mentions.
//!
//! A mentioned file is read by the `read` tool under the decision that a call
//! of it would get, whether the session has that tool or not: a mention gives
//! nothing that the model could not have read by itself, cut in the same way,
//! and what was attached counts as read.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::clock::Activity;
use crate::context::{Mention, PromptText, Resources, data_block, mentions};
use crate::event::{EventKind, FileReference, FileReferences, ReferenceKind, Warning};
use crate::message::Content;
use crate::tool::{CallContext, Tool, ToolOutput, Toolset};

use super::engine::Engine;
use super::feed::Feed;
use super::interrupt::Interrupt;
use super::queue::Input;
use super::workbench::Workbench;

/// The tool that reads, and whose permissions count.
const READ: &str = "read";
/// The most files of one prompt.
const REFERENCES_MAX: usize = 32;
/// The most text of them together, in bytes.
const REFERENCES_BYTES_MAX: usize = 256 * 1024;

/// What of a prompt's text may stand for more than itself: a skill or a
/// template that it begins with, files that it mentions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Expand {
    /// All of it: whoever prompts believes every word.
    #[default]
    All,
    /// All but these parts, which come from elsewhere: byte ranges, in order.
    Except(Vec<Range<usize>>),
    /// Nothing: the model gets the text as it is.
    Nothing,
}

impl Expand {
    /// The same for a text that a hook made of the one it was meant for. What
    /// became of data in it nobody knows, so with data nothing is expanded.
    pub(super) fn carried(self, from: &str, to: &str) -> Self {
        match &self {
            Self::Except(data) if from != to && !data.is_empty() => Self::Nothing,
            Self::Except(_) | Self::All | Self::Nothing => self,
        }
    }

    /// The parts that are data; none when nothing may be expanded, also when
    /// they do not fit the text.
    fn data(&self, text: &str) -> Option<&[Range<usize>]> {
        match self {
            Self::All => Some(&[]),
            Self::Except(data) => {
                let fits = data.iter().all(|part| text.get(part.clone()).is_some());
                fits.then_some(data)
            }
            Self::Nothing => None,
        }
    }
}

impl Engine {
    /// What the model is given for what somebody says.
    pub(super) async fn expand(&self, input: &Input, interrupt: &Interrupt) -> Expanded {
        let mut expanded = match input.expand.data(&input.text) {
            Some(data) => {
                let text = &input.text;
                let expander = Expander {
                    resources: &self.words.resources,
                    workbench: &self.workbench,
                    activity: &self.activity,
                    cancel: interrupt.token(),
                };
                expander.expand(PromptText { text, data }).await
            }
            None => Expanded {
                text: input.text.clone(),
                ..Expanded::default()
            },
        };
        let images = input.images.iter().cloned();
        expanded.attached.extend(images.map(Content::Image));
        expanded
    }
}

/// What expanding a prompt needs of its session.
struct Expander<'s> {
    resources: &'s Resources,
    workbench: &'s Workbench,
    activity: &'s Activity,
    /// Ends reading.
    cancel: &'s CancellationToken,
}

/// A prompt for the model.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    /// What the user says: the prompt, or the skill or template in its place.
    pub(super) text: String,
    /// What is attached: a block of text for each file, its image, and the
    /// images that were given.
    attached: Vec<Content>,
    /// The files for whoever listens.
    references: Vec<FileReference>,
    /// What did not become what it may have been meant to be.
    warnings: Vec<Warning>,
}

impl Expanded {
    /// The content of the user's message.
    pub(super) fn content(&self) -> Vec<Content> {
        let text = Content::text(self.text.clone());
        [text].into_iter().chain(self.attached.clone()).collect()
    }

    /// Tells what was attached, and what was not.
    pub(super) async fn tell(&self, feed: &Feed) {
        feed.warn_of(self.warnings.iter().cloned()).await;
        if !self.references.is_empty() {
            let references = self.references.clone();
            feed.send(EventKind::FileReferences(FileReferences { references }))
                .await;
        }
    }
}

impl Expander<'_> {
    /// Expands a prompt. Both looks are taken at the text as it was given, so
    /// nothing that an expansion brings in is expanded itself.
    async fn expand(&self, prompt: PromptText<'_>) -> Expanded {
        let expansion = self.resources.expand(prompt);
        let mut expanded = Expanded {
            text: expansion.text,
            warnings: expansion.warning.into_iter().collect(),
            ..Expanded::default()
        };
        let mentions = mentions(prompt);
        if mentions.is_empty() {
            return expanded;
        }
        let tools = Toolset::built_in(&[READ.to_owned()]);
        let Some(read) = tools.find(READ) else {
            return expanded;
        };
        let mut seen = Vec::new();
        let mut bytes = 0;
        for mention in mentions {
            let found = match self.find(&mention, read) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(warning) => {
                    expanded.warnings.push(warning);
                    continue;
                }
            };
            if seen.contains(&found.access) {
                continue;
            }
            if seen.len() == REFERENCES_MAX || bytes >= REFERENCES_BYTES_MAX {
                let limit = format!(
                    "a prompt takes at most {REFERENCES_MAX} files and {} KiB",
                    REFERENCES_BYTES_MAX / 1024
                );
                expanded
                    .warnings
                    .push(stays(found.name, "reference_skipped", &limit));
                continue;
            }
            seen.push(found.access.clone());
            let output = self.read(&found, read).await;
            match attach(&found, &output, &mut expanded) {
                Ok(length) => bytes += length,
                Err(warning) => expanded.warnings.push(warning),
            }
        }
        expanded
    }

    /// The file or directory of a mention; none when it names nothing, which
    /// most often means that it was no mention.
    fn find<'m>(
        &self,
        mention: &Mention<'m>,
        read: &Arc<dyn Tool>,
    ) -> Result<Option<Found<'m>>, Warning> {
        for name in &mention.names {
            let Ok(accesses) = read.accesses(&json!({"path": name}), self.workbench.place()) else {
                continue;
            };
            let Some(Access::Read(path)) = accesses.first() else {
                continue;
            };
            if path.symlink_metadata().is_err() {
                continue;
            }
            let decision = self.workbench.policy().decide(READ, &accesses);
            if !decision.is_allowed() {
                return Err(stays(name, "reference_denied", &decision.reason));
            }
            let kind = match path.is_dir() {
                true => ReferenceKind::Dir,
                false => ReferenceKind::File,
            };
            return Ok(Some(Found {
                name,
                kind,
                access: Access::Read(path.clone()),
            }));
        }
        match mention.names.last() {
            Some(name) if mention.quoted || self.looks_meant(name) => {
                let why = "there is no such file";
                Err(stays(name, "reference_missing", why))
            }
            _ => Ok(None),
        }
    }

    /// Whether a name that names nothing was meant as a path: it is written as
    /// one, or the directory that it names exists. `@scope/package` is not.
    fn looks_meant(&self, name: &str) -> bool {
        if ["./", "../", "~/"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            return true;
        }
        let parent = Path::new(name).parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        let workspace = &self.workbench.place().workspace;
        parent.is_some_and(|parent| parent != Path::new("/") && workspace.join(parent).is_dir())
    }

    async fn read(&self, found: &Found<'_>, read: &Arc<dyn Tool>) -> ToolOutput {
        let permit = self.workbench.permit(READ);
        let (updates, _unheard) = mpsc::channel(1);
        let watched = (self.cancel, self.activity);
        let context = CallContext {
            // What is attached is all there is of it.
            output_dir: None,
            ..self
                .workbench
                .context("reference", &permit, updates, watched)
        };
        read.call(json!({"path": found.name}), context).await
    }
}

/// What a mention names.
struct Found<'m> {
    name: &'m str,
    kind: ReferenceKind,
    access: Access,
}

/// Attaches what was read and gives the length of its text.
fn attach(
    found: &Found<'_>,
    output: &ToolOutput,
    expanded: &mut Expanded,
) -> Result<usize, Warning> {
    let mut text = String::new();
    let mut images = Vec::new();
    for block in &output.content {
        match block {
            Content::Text(block) => text.push_str(&block.text),
            Content::Image(_) => images.push(block.clone()),
            Content::Thinking(_) | Content::ToolCall(_) => {}
        }
    }
    if output.failure.is_some() {
        return Err(stays(found.name, "reference_unreadable", &text));
    }
    let tag = match found.kind {
        ReferenceKind::File => "file",
        ReferenceKind::Dir => "directory",
    };
    let block = data_block(tag, &[("path", found.name)], &text);
    let length = block.len();
    expanded.attached.push(Content::text(block));
    expanded.attached.extend(images);
    expanded.references.push(FileReference {
        kind: found.kind,
        name: found.name.to_owned(),
        content: text,
    });
    Ok(length)
}

fn stays(name: &str, code: &str, why: &str) -> Warning {
    Warning {
        code: code.to_owned(),
        message: format!("`@{name}` stays as text: {why}"),
    }
}
