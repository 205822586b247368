//! Reading one line of a session file.
//!
//! A line is split into its fields as raw text first; each field is then read
//! straight into its type, so that long texts are not copied through a generic
//! value on the way.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::message::{Content, Message, UserMessage};
use crate::store::entry::{Entry, EntryId, EntryKind, Header, SESSION_VERSION};

/// What the first line of a session file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeaderLine {
    pub(crate) header: Header,
    /// 1 when the line names none.
    pub(crate) version: u32,
    /// The provider and the model that version 1 keeps here.
    pub(crate) model: Option<(String, String)>,
    /// The thinking level that version 1 keeps here.
    pub(crate) thinking_level: Option<String>,
}

impl HeaderLine {
    /// Reads the first line; none when it is no session header.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut fields: Fields = serde_json::from_str(line).ok()?;
        if fields.take::<Cow<str>>("type").ok()? != "session" {
            return None;
        }
        let id: String = fields.take("id").ok()?;
        let mut text = |name| fields.take_some::<String>(name).ok().flatten();
        let header = Header {
            id,
            timestamp: text("timestamp").unwrap_or_default(),
            cwd: text("cwd").unwrap_or_default(),
            parent_session: text("parentSession").or_else(|| text("branchedFrom")),
        };
        let model = text("provider").zip(text("modelId"));
        let thinking_level = text("thinkingLevel");
        let version = fields.take_some("version").ok()?.unwrap_or(1);
        Some(Self {
            header,
            version,
            model,
            thinking_level,
        })
    }

    /// The line of a new session.
    pub(crate) fn new(header: Header) -> Self {
        Self {
            header,
            version: SESSION_VERSION,
            model: None,
            thinking_level: None,
        }
    }
}

impl Entry {
    /// Reads one line.
    ///
    /// # Errors
    /// When the line is no JSON object with the four fields of every entry, or
    /// lacks a field of its type, or holds a message of a known role that does
    /// not have its shape.
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        let mut fields: Fields = serde_json::from_str(line)?;
        let type_name = fields.take::<Cow<str>>("type")?;
        let id = fields.take("id")?;
        let parent_id = fields.take_some("parentId")?;
        let timestamp = fields.take("timestamp")?;
        let kind = parse_kind(&type_name, fields)?;
        Ok(Self {
            id,
            parent_id,
            timestamp,
            kind,
        })
    }
}

fn parse_kind(type_name: &str, mut of: Fields) -> Result<EntryKind, serde_json::Error> {
    Ok(match type_name {
        "message" => return parse_message(of),
        "model_change" => EntryKind::ModelChange {
            provider: of.take("provider")?,
            model_id: of.take("modelId")?,
        },
        "thinking_level_change" => EntryKind::ThinkingLevelChange {
            thinking_level: of.take("thinkingLevel")?,
        },
        "compaction" => EntryKind::Compaction {
            summary: of.take("summary")?,
            first_kept_entry_id: of.take("firstKeptEntryId")?,
            tokens_before: of.take("tokensBefore")?,
            details: of.take_some("details")?,
            from_hook: of.take_some("fromHook")?,
        },
        "branch_summary" => EntryKind::BranchSummary {
            from_id: of.take("fromId")?,
            summary: of.take("summary")?,
            details: of.take_some("details")?,
        },
        "custom" => EntryKind::Custom {
            custom_type: of.take("customType")?,
            data: of.take_some("data")?,
        },
        "custom_message" => EntryKind::CustomMessage {
            custom_type: of.take("customType")?,
            content: of.take::<Blocks>("content")?.0,
            display: of.take("display")?,
            details: of.take_some("details")?,
        },
        "label" => EntryKind::Label {
            target_id: of.take("targetId")?,
            label: of.take_some("label")?,
        },
        "session_info" => EntryKind::SessionInfo {
            name: of.take_some("name")?,
        },
        _ => of.unknown(type_name)?,
    })
}

fn parse_message(mut fields: Fields) -> Result<EntryKind, serde_json::Error> {
    let message = fields.raw("message")?;
    let Role { role } = read(message, "message")?;
    Ok(match role.as_ref() {
        "user" => {
            let UserLine { content, timestamp } = read(message, "message")?;
            EntryKind::message(Message::User(UserMessage {
                content: content.0,
                timestamp,
            }))
        }
        "assistant" => EntryKind::message(Message::Assistant(read(message, "message")?)),
        "toolResult" => EntryKind::message(Message::ToolResult(read(message, "message")?)),
        "bashExecution" => EntryKind::BashExecution(Arc::new(read(message, "message")?)),
        // The name of the role before version 3 is the second one.
        "custom" | "hookMessage" => {
            let of: CustomLine = read(message, "message")?;
            EntryKind::CustomMessage {
                custom_type: of.custom_type,
                content: of.content.0,
                display: of.display,
                details: of.details,
            }
        }
        _ => fields.unknown("message")?,
    })
}

#[derive(Deserialize)]
struct Role<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
}

#[derive(Deserialize)]
struct UserLine {
    content: Blocks,
    timestamp: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomLine {
    #[serde(default)]
    custom_type: String,
    content: Blocks,
    #[serde(default)]
    display: bool,
    #[serde(default)]
    details: Option<Value>,
}

/// Content blocks; the format also permits plain text for one block of text.
struct Blocks(Vec<Content>);

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBlocks;
        impl<'de> Visitor<'de> for TextOrBlocks {
            type Value = Blocks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or an array of content blocks")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Blocks, E> {
                Ok(Blocks(vec![Content::text(text)]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Blocks, A::Error> {
                let mut all = Vec::new();
                while let Some(block) = blocks.next_element()? {
                    all.push(block);
                }
                Ok(Blocks(all))
            }
        }
        deserializer.deserialize_any(TextOrBlocks)
    }
}

/// The fields of a JSON object as raw text, in order.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    all.push((name, value));
                }
                Ok(Fields(all))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'a> Fields<'a> {
    fn remove(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(found, _)| found == name)?;
        Some(self.0.remove(at).1)
    }

    fn take<T: Deserialize<'a>>(&mut self, name: &str) -> Result<T, serde_json::Error> {
        let value = self.remove(name).ok_or_else(|| missing(name))?;
        read(value, name)
    }

    fn take_some<T: Deserialize<'a>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, serde_json::Error> {
        match self.remove(name) {
            Some(value) => read(value, name),
            None => Ok(None),
        }
    }

    /// The field's text; it stays among the fields.
    fn raw(&mut self, name: &str) -> Result<&'a RawValue, serde_json::Error> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| *value).ok_or_else(|| missing(name))
    }

    /// All fields that are left, as an entry that is only kept.
    fn unknown(self, type_name: &str) -> Result<EntryKind, serde_json::Error> {
        let mut fields = Map::new();
        for (name, value) in self.0 {
            fields.insert(name.into_owned(), serde_json::from_str(value.get())?);
        }
        Ok(EntryKind::Unknown {
            type_name: type_name.to_owned(),
            fields,
        })
    }
}

fn missing(name: &str) -> serde_json::Error {
    serde_json::Error::custom(format!("missing field `{name}`"))
}

fn read<'a, T: Deserialize<'a>>(value: &'a RawValue, name: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(value.get())
        .map_err(|error| serde_json::Error::custom(format!("field `{name}`: {}", reason(&error))))
}

/// What is wrong with a line, without the place inside it: fields are read one
/// by one, so the place would be that of the field.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// The id of an entry's line, without reading the rest.
pub(crate) fn entry_id(line: &str) -> Result<EntryId, serde_json::Error> {
    #[derive(Deserialize)]
    struct Identified {
        id: EntryId,
    }
    serde_json::from_str::<Identified>(line).map(|line| line.id)
}

/// What a listing reads of an entry.
#[derive(Default)]
pub(crate) struct Glance {
    /// Whether it is a message of any role.
    pub(crate) is_message: bool,
    pub(crate) timestamp: Option<String>,
    /// The text, when it is a message of the user.
    pub(crate) user_text: Option<String>,
    /// The name of the session, when the entry gives it one.
    pub(crate) name: Option<String>,
}

impl Glance {
    /// Looks at a line; the user's text only when `wanted`.
    pub(crate) fn at(line: &str, wanted: Wanted) -> Result<Self, serde_json::Error> {
        let mut fields: Fields = serde_json::from_str(line)?;
        let type_name = fields.take::<Cow<str>>("type")?;
        let mut glance = Self {
            is_message: type_name == "message",
            timestamp: fields.take_some("timestamp").unwrap_or_default(),
            ..Self::default()
        };
        if type_name == "session_info" {
            glance.name = fields.take_some("name").unwrap_or_default();
        } else if glance.is_message && wanted == Wanted::UserText {
            let message = fields.raw("message")?;
            let Role { role } = read(message, "message")?;
            if role == "user" {
                let line: UserLine = read(message, "message")?;
                glance.user_text = Some(text_of(&line.content.0));
            }
        }
        Ok(glance)
    }
}

/// What a glance at a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Counting and dating.
    Kind,
    /// The user's text too.
    UserText,
}

fn text_of(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Content::Text(text) => Some(text.text.as_str()),
        Content::Thinking(_) | Content::Image(_) | Content::ToolCall(_) => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}
