//! What a command hook says: its standard output as verdicts, strictly.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::message::{Content, Message};

use super::Fault;
use super::payload::Injected;
use super::verdict::{
    AgentStart, CompactVerdict, ContextVerdict, InputVerdict, RequestVerdict, ResultVerdict,
    ToolVerdict,
};

/// What a command hook may answer at one point.
pub(super) trait Answer: Sized {
    /// What is written on standard output; nothing stands for the first verdict.
    type Written: DeserializeOwned + Into<Self>;

    /// What is meant when nothing is written.
    fn nothing() -> Self;

    /// What exit status 2 means, with its reason; none when nothing can be blocked.
    fn blocked(reason: String) -> Option<Self>;
}

/// How a command ended that did not fail.
pub(super) enum Said {
    /// With status 0 and this output.
    Output(Vec<u8>),
    /// With status 2, for this reason.
    Block(String),
}

impl Said {
    /// The verdict.
    ///
    /// # Errors
    /// When the output is none, or there is nothing that could be blocked.
    pub(super) fn verdict<A: Answer>(self) -> Result<A, Fault> {
        match self {
            Self::Output(output) if output.trim_ascii().is_empty() => Ok(A::nothing()),
            Self::Output(output) => serde_json::from_slice::<A::Written>(&output)
                .map(Into::into)
                .map_err(|error| {
                    Fault::Failed(format!("its output is no verdict for this point: {error}"))
                }),
            Self::Block(reason) => A::blocked(reason).ok_or_else(|| {
                Fault::failed("exit status 2 means to block, which is not possible here")
            }),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenInput {
    Continue {},
    Transform { text: String },
    Handled { answer: String },
    Block { reason: String },
}

impl From<WrittenInput> for InputVerdict {
    fn from(written: WrittenInput) -> Self {
        match written {
            WrittenInput::Continue {} => Self::Continue,
            WrittenInput::Transform { text } => Self::Transform(text),
            WrittenInput::Handled { answer } => Self::Handled(answer),
            WrittenInput::Block { reason } => Self::Block(reason),
        }
    }
}

impl Answer for InputVerdict {
    type Written = WrittenInput;

    fn nothing() -> Self {
        Self::Continue
    }

    fn blocked(reason: String) -> Option<Self> {
        Some(Self::Block(reason))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenStart {
    #[serde(default)]
    messages: Vec<WrittenMessage>,
    system_prompt: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMessage {
    content: String,
    #[serde(default = "custom_type")]
    custom_type: String,
    #[serde(default = "yes")]
    display: bool,
}

fn custom_type() -> String {
    "hook".to_owned()
}

fn yes() -> bool {
    true
}

impl From<WrittenStart> for AgentStart {
    fn from(written: WrittenStart) -> Self {
        let injected = |message: WrittenMessage| Injected {
            custom_type: message.custom_type,
            content: vec![Content::text(message.content)],
            display: message.display,
        };
        Self {
            messages: written.messages.into_iter().map(injected).collect(),
            system_prompt: written.system_prompt,
        }
    }
}

impl Answer for AgentStart {
    type Written = WrittenStart;

    fn nothing() -> Self {
        Self::default()
    }

    fn blocked(_reason: String) -> Option<Self> {
        None
    }
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenContext {
    Continue {},
    Replace { messages: Vec<Message> },
}

impl From<WrittenContext> for ContextVerdict {
    fn from(written: WrittenContext) -> Self {
        match written {
            WrittenContext::Continue {} => Self::Continue,
            WrittenContext::Replace { messages } => {
                Self::Replace(messages.into_iter().map(Arc::new).collect())
            }
        }
    }
}

impl Answer for ContextVerdict {
    type Written = WrittenContext;

    fn nothing() -> Self {
        Self::Continue
    }

    fn blocked(_reason: String) -> Option<Self> {
        None
    }
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenTool {
    Continue {},
    Replace {
        input: serde_json::Map<String, Value>,
    },
    Block {
        reason: String,
    },
}

impl From<WrittenTool> for ToolVerdict {
    fn from(written: WrittenTool) -> Self {
        match written {
            WrittenTool::Continue {} => Self::Continue,
            WrittenTool::Replace { input } => Self::Replace(Value::Object(input)),
            WrittenTool::Block { reason } => Self::Block(reason),
        }
    }
}

impl Answer for ToolVerdict {
    type Written = WrittenTool;

    fn nothing() -> Self {
        Self::Continue
    }

    fn blocked(reason: String) -> Option<Self> {
        Some(Self::Block(reason))
    }
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenResult {
    Continue {},
    Replace { content: String },
}

impl From<WrittenResult> for ResultVerdict {
    fn from(written: WrittenResult) -> Self {
        match written {
            WrittenResult::Continue {} => Self::Continue,
            WrittenResult::Replace { content } => Self::Replace(vec![Content::text(content)]),
        }
    }
}

impl Answer for ResultVerdict {
    type Written = WrittenResult;

    fn nothing() -> Self {
        Self::Continue
    }

    /// What was done cannot be undone, but its result can be withheld.
    fn blocked(reason: String) -> Option<Self> {
        let text = format!("The result is withheld by a hook: {reason}");
        Some(Self::Replace(vec![Content::text(text)]))
    }
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenCompact {
    Continue {},
    Summary { text: String },
    Cancel { reason: String },
}

impl From<WrittenCompact> for CompactVerdict {
    fn from(written: WrittenCompact) -> Self {
        match written {
            WrittenCompact::Continue {} => Self::Continue,
            WrittenCompact::Summary { text } => Self::Summary(text),
            WrittenCompact::Cancel { reason } => Self::Cancel(reason),
        }
    }
}

impl Answer for CompactVerdict {
    type Written = WrittenCompact;

    fn nothing() -> Self {
        Self::Continue
    }

    fn blocked(reason: String) -> Option<Self> {
        Some(Self::Cancel(reason))
    }
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WrittenRequest {
    Continue {},
    Replace {
        payload: serde_json::Map<String, Value>,
    },
}

impl From<WrittenRequest> for RequestVerdict {
    fn from(written: WrittenRequest) -> Self {
        match written {
            WrittenRequest::Continue {} => Self::Continue,
            WrittenRequest::Replace { payload } => Self::Replace(Value::Object(payload)),
        }
    }
}

impl Answer for RequestVerdict {
    type Written = WrittenRequest;

    fn nothing() -> Self {
        Self::Continue
    }

    fn blocked(_reason: String) -> Option<Self> {
        None
    }
}
