//! One entry of a session and the header of its file: the durable shapes of
//! the version-3 session format, one JSON object a line.
//!
//! Writing streams an entry straight into its line; reading is in `line`. What
//! is not known is kept: an entry of another type, or a message of another
//! role, becomes [`EntryKind::Unknown`] with all its fields.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::clock;
use crate::message::{Content, Message};
use crate::store::bash_execution::BashExecution;
use crate::store::message_line::MessageLine;

/// The version of the session format.
pub const SESSION_VERSION: u32 = 3;

/// The first line of a session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// A UUID of version 7.
    pub id: String,
    /// RFC 3339 in UTC with milliseconds.
    pub timestamp: String,
    /// The absolute path of the session's working directory.
    pub cwd: String,
    /// The file of the session that this one was forked from.
    pub parent_session: Option<String>,
}

impl Header {
    /// The header of a session that begins now in `cwd`.
    pub fn new(cwd: impl Into<String>) -> Self {
        Self {
            id: clock::new_id(),
            timestamp: clock::timestamp(),
            cwd: cwd.into(),
            parent_session: None,
        }
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "session")?;
        map.serialize_entry("version", &SESSION_VERSION)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        map.serialize_entry("cwd", &self.cwd)?;
        if let Some(parent) = &self.parent_session {
            map.serialize_entry("parentSession", parent)?;
        }
        map.end()
    }
}

/// The id of an entry: eight hexadecimal digits, unique in its session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(String);

impl EntryId {
    /// A random id. Whether it is free is for the tree to say.
    pub fn random() -> Self {
        Self(clock::short_id())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for EntryId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One entry of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Unique in its session.
    pub id: EntryId,
    /// The entry that this one follows; none for the first.
    pub parent_id: Option<EntryId>,
    /// RFC 3339 in UTC with milliseconds.
    pub timestamp: String,
    /// What it says.
    pub kind: EntryKind,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryKind {
    /// `message`: a message of the conversation.
    Message(Arc<Message>),
    /// `message` of the role `bashExecution`: a command that the user ran.
    BashExecution(Arc<BashExecution>),
    /// `model_change`: another model answers from here on.
    ModelChange {
        /// The provider's id.
        provider: String,
        /// The model's id at its provider.
        model_id: String,
    },
    /// `thinking_level_change`: the model thinks more or less from here on.
    ThinkingLevelChange {
        /// The level's name, `medium` for example.
        thinking_level: String,
    },
    /// `compaction`: a summary stands for what came before `first_kept_entry_id`.
    Compaction {
        /// The summary that the model sees.
        summary: String,
        /// The oldest entry that the model still sees.
        first_kept_entry_id: EntryId,
        /// The tokens of the context before.
        tokens_before: u64,
        /// More, for viewers.
        details: Option<Value>,
        /// Whether a hook wrote the summary.
        from_hook: Option<bool>,
    },
    /// `branch_summary`: what happened on a branch that was left.
    BranchSummary {
        /// The entry at which that branch ended.
        from_id: EntryId,
        /// The summary that the model sees.
        summary: String,
        /// More, for viewers.
        details: Option<Value>,
    },
    /// `custom`: state of an extension, never sent to a model.
    Custom {
        /// Whose it is.
        custom_type: String,
        /// The state.
        data: Option<Value>,
    },
    /// `custom_message`: a message of an extension, sent as the user's.
    CustomMessage {
        /// Whose it is.
        custom_type: String,
        /// Text and images, in order.
        content: Vec<Content>,
        /// Whether viewers show it.
        display: bool,
        /// More, for viewers.
        details: Option<Value>,
    },
    /// `label`: a bookmark at an entry; without a label the bookmark goes.
    Label {
        /// The entry.
        target_id: EntryId,
        /// Its label.
        label: Option<String>,
    },
    /// `session_info`: the session's name.
    SessionInfo {
        /// The name.
        name: Option<String>,
    },
    /// Anything else, kept and written back as it was.
    Unknown {
        /// The `type`.
        type_name: String,
        /// All fields but `type`, `id`, `parentId` and `timestamp`.
        fields: Map<String, Value>,
    },
}

impl EntryKind {
    /// A message of the conversation.
    pub fn message(message: Message) -> Self {
        Self::Message(Arc::new(message))
    }

    /// The `type` of the entry's line.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Message(_) | Self::BashExecution(_) => "message",
            Self::ModelChange { .. } => "model_change",
            Self::ThinkingLevelChange { .. } => "thinking_level_change",
            Self::Compaction { .. } => "compaction",
            Self::BranchSummary { .. } => "branch_summary",
            Self::Custom { .. } => "custom",
            Self::CustomMessage { .. } => "custom_message",
            Self::Label { .. } => "label",
            Self::SessionInfo { .. } => "session_info",
            Self::Unknown { type_name, .. } => type_name,
        }
    }

    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Message(message) => map.serialize_entry("message", &MessageLine(message)),
            Self::BashExecution(ran) => map.serialize_entry("message", ran.as_ref()),
            Self::ModelChange { provider, model_id } => {
                map.serialize_entry("provider", provider)?;
                map.serialize_entry("modelId", model_id)
            }
            Self::ThinkingLevelChange { thinking_level } => {
                map.serialize_entry("thinkingLevel", thinking_level)
            }
            Self::Compaction {
                summary,
                first_kept_entry_id,
                tokens_before,
                details,
                from_hook,
            } => {
                map.serialize_entry("summary", summary)?;
                map.serialize_entry("firstKeptEntryId", first_kept_entry_id)?;
                map.serialize_entry("tokensBefore", tokens_before)?;
                write_some(map, "details", details.as_ref())?;
                write_some(map, "fromHook", from_hook.as_ref())
            }
            Self::BranchSummary {
                from_id,
                summary,
                details,
            } => {
                map.serialize_entry("fromId", from_id)?;
                map.serialize_entry("summary", summary)?;
                write_some(map, "details", details.as_ref())
            }
            Self::Custom { custom_type, data } => {
                map.serialize_entry("customType", custom_type)?;
                write_some(map, "data", data.as_ref())
            }
            Self::CustomMessage {
                custom_type,
                content,
                display,
                details,
            } => {
                map.serialize_entry("customType", custom_type)?;
                map.serialize_entry("content", content)?;
                map.serialize_entry("display", display)?;
                write_some(map, "details", details.as_ref())
            }
            Self::Label { target_id, label } => {
                map.serialize_entry("targetId", target_id)?;
                write_some(map, "label", label.as_ref())
            }
            Self::SessionInfo { name } => write_some(map, "name", name.as_ref()),
            Self::Unknown { fields, .. } => {
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                Ok(())
            }
        }
    }
}

fn write_some<M: SerializeMap, T: Serialize>(
    map: &mut M,
    name: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, value),
        None => Ok(()),
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind.type_name())?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("parentId", &self.parent_id)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        self.kind.write_fields(&mut map)?;
        map.end()
    }
}
