//! Lines of the format's versions 1 and 2 as version 3 has them.
//!
//! Nothing of a line is lost: fields that nobody knows stay. The ids that
//! version 1 lacks come from the place of the line in its file, so that reading
//! a file twice gives the same entries.

use serde_json::{Map, Value};

use crate::store::entry::{EntryId, SESSION_VERSION};

/// Where a line stands among the lines of its file that are not blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The version that the file's header names.
    pub(crate) version: u32,
    /// 0 is the header.
    pub(crate) position: usize,
}

/// The header's line with the current version.
pub(crate) fn upgrade_header(line: &str) -> Result<String, serde_json::Error> {
    let mut fields: Map<String, Value> = serde_json::from_str(line)?;
    let kind = fields.shift_remove("type").unwrap_or_default();
    fields.shift_remove("version");
    let parent = fields.shift_remove("branchedFrom");
    let mut upgraded = Map::new();
    upgraded.insert("type".to_owned(), kind);
    upgraded.insert("version".to_owned(), SESSION_VERSION.into());
    upgraded.append(&mut fields);
    if let Some(parent) = parent {
        upgraded.entry("parentSession").or_insert(parent);
    }
    serde_json::to_string(&upgraded)
}

/// An entry's line with the fields of the current version.
pub(crate) fn upgrade_entry(line: &str, at: Place) -> Result<String, serde_json::Error> {
    let mut fields: Map<String, Value> = serde_json::from_str(line)?;
    if at.version < 2 {
        fields = with_ids(fields, at.position);
    }
    if let Some(role) = fields
        .get_mut("message")
        .and_then(|message| message.get_mut("role"))
        && role == "hookMessage"
    {
        *role = "custom".into();
    }
    serde_json::to_string(&fields)
}

/// Version 1 has no ids: each entry follows the one before it.
fn with_ids(mut fields: Map<String, Value>, position: usize) -> Map<String, Value> {
    let kind = fields.shift_remove("type").unwrap_or_default();
    if kind == "compaction" {
        // It counts lines of the file. What is not before the compaction, like
        // the compaction itself, keeps nothing.
        let index = fields
            .shift_remove("firstKeptEntryIndex")
            .and_then(|index| index.as_u64())
            .and_then(|index| usize::try_from(index).ok())
            .map_or(position, |index| index.clamp(1, position));
        fields
            .entry("firstKeptEntryId")
            .or_insert_with(|| id_at(index).as_str().into());
    }
    let parent = position.checked_sub(1).filter(|before| *before > 0);
    let mut upgraded = Map::new();
    upgraded.insert("type".to_owned(), kind);
    upgraded.insert("id".to_owned(), id_at(position).as_str().into());
    let parent = parent.map(|before| id_at(before).as_str().into());
    upgraded.insert("parentId".to_owned(), parent.unwrap_or_default());
    for (name, value) in fields {
        upgraded.entry(name).or_insert(value);
    }
    upgraded
}

fn id_at(position: usize) -> EntryId {
    EntryId::from(format!("{position:08x}").as_str())
}
