//! The lines of a cassette, as they stand in the file.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::Content;
use crate::model::description::Model;
use crate::model::error::{ModelError, ModelErrorKind};

use super::request::Head;

/// The version that is written, and the newest that is read.
pub(super) const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    /// The first one.
    Cassette(Opening),
    /// A model, before its first call.
    Model(Box<Model>),
    /// A call, whole.
    Call(Box<Call>),
    /// What a tool answered.
    Tool(Box<ToolAnswer>),
    /// The last one.
    End(End),
}

/// What the file is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    pub(super) version: u32,
    /// The version of the program that wrote it.
    pub(super) agent: String,
    /// When, for people.
    pub(super) created: String,
}

/// How much there is, so that a file that was cut is known.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    pub(super) calls: u32,
    pub(super) tools: u32,
}

/// What the calls of a run belong to; each has an order of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Conversation {
    pub(super) job: String,
    /// The session, from 1: forks have further ones.
    pub(super) session: u32,
    pub(super) talk: Talk,
}

/// What a model is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Talk {
    /// The next reply of the conversation.
    #[default]
    Turn,
    /// A summary of a part of it.
    Summary,
}

impl Talk {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Turn => "the conversation",
            Self::Summary => "its summaries",
        }
    }
}

/// One call of a model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) conversation: Conversation,
    pub(super) request: Asked,
    pub(super) answer: Answer,
}

/// A request, as it differs from the one before it in its conversation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    pub(super) fingerprint: String,
    /// All but the messages; none when it is as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<Head>,
    /// How many messages are as before; the rest follows.
    pub(super) kept: usize,
    pub(super) messages: Vec<Value>,
}

/// What came of a call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// None when there was no head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) headers: BTreeMap<String, String>,
    /// The body in pieces, a frame each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) frames: Vec<String>,
    /// What the connection ended with instead of the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<Failed>,
    /// Whether the run broke the call off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cancelled: bool,
}

/// A failure that is not in the bytes of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failed {
    pub(super) kind: String,
    /// Of a proxy, which answers in place of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) hints: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) permanent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retry_after_ms: Option<u64>,
}

impl Failed {
    pub(super) fn of(error: &ModelError) -> Self {
        Self {
            kind: error.kind.name().to_owned(),
            status: error.http_status,
            message: error.message.clone(),
            hints: error.hints.clone(),
            permanent: error.permanent,
            retry_after_ms: error
                .retry_after
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// The error again.
    pub(super) fn error(&self) -> ModelError {
        // What a connection can end with; anything else was its breaking.
        let kinds = [
            ModelErrorKind::Timeout,
            ModelErrorKind::Auth,
            ModelErrorKind::InvalidRequest,
            ModelErrorKind::BadResponse,
            ModelErrorKind::Truncated,
            ModelErrorKind::Setup,
        ];
        let kind = kinds.into_iter().find(|kind| kind.name() == self.kind);
        let mut error =
            ModelError::new(kind.unwrap_or(ModelErrorKind::Unavailable), &*self.message);
        error.http_status = self.status;
        error.hints.clone_from(&self.hints);
        error.permanent = self.permanent;
        error.retry_after = self.retry_after_ms.map(Duration::from_millis);
        error
    }
}

/// What a tool answered to one call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolAnswer {
    pub(super) job: String,
    pub(super) session: u32,
    /// Turn, step and place in the reply, as `1-2-1`.
    pub(super) place: String,
    pub(super) name: String,
    pub(super) arguments: Value,
    pub(super) output: TapedOutput,
}

/// The output of a tool, as a cassette keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TapedOutput {
    /// What the model is told.
    pub content: Vec<Content>,
    /// One line for people.
    pub summary: String,
    /// How it failed, in a word; none is success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Facts for viewers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// A command's exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether the content is a part of the whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Files that were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A call of a tool, as a cassette knows it again.
#[derive(Debug, Clone, Copy)]
pub struct TapedCall<'c> {
    /// The id of its session.
    pub session: &'c str,
    /// Where it stands in the session.
    pub place: &'c str,
    /// The tool.
    pub name: &'c str,
    /// What it is called with.
    pub arguments: &'c Value,
}
