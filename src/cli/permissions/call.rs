//! What a call touches, by its tool's name and as much of its input as says so.

use serde_json::{Map, Value, json};

use crate::access::{Access, host_of};
use crate::policy::server_access;
use crate::tool::{Place, Toolset};

/// A call, as policy judges it.
#[derive(Debug)]
pub(super) struct Call {
    /// The tool's name as the model calls it.
    pub(super) tool: String,
    pub(super) accesses: Vec<Access>,
}

/// Reads a call. Names of tools are taken without case; of the input only what
/// is touched has to be there.
///
/// # Errors
/// What is missing, or that there is no such tool.
pub(super) fn read(
    tool: &str,
    input: &Value,
    tools: &Toolset,
    place: &Place,
) -> Result<Call, String> {
    let Some(input) = input.as_object() else {
        return Err("the input of a call is a JSON object".to_owned());
    };
    let lower = tool.to_ascii_lowercase();
    let accesses = match lower.as_str() {
        "webfetch" => {
            let url = text(input, &["url"])?;
            vec![Access::Network(
                host_of(url).map_err(|error| error.to_string())?,
            )]
        }
        "task" => vec![Access::Agent(
            text(input, &["subagent_type", "agent"])?.to_owned(),
        )],
        "skill" => vec![Access::Skill(text(input, &["name", "skill"])?.to_owned())],
        name if name.starts_with("mcp__") => {
            let access = server_access(tool).ok_or_else(|| {
                format!("`{tool}` is no tool of a server: their names are `mcp__server__tool`")
            })?;
            vec![access]
        }
        name => {
            let known = tools.find(name).ok_or_else(|| {
                format!(
                    "there is no tool `{tool}`; there are {}, webfetch, task, skill and \
                     mcp__server__tool",
                    tools.names().join(", ")
                )
            })?;
            known.accesses(&touching(name, input), place)?
        }
    };
    Ok(Call {
        tool: lower,
        accesses,
    })
}

/// The value of the first of these keys.
fn text<'a>(input: &'a Map<String, Value>, keys: &[&str]) -> Result<&'a str, String> {
    let value = keys.iter().find_map(|key| input.get(*key)?.as_str());
    value
        .filter(|value| !value.trim().is_empty())
        .ok_or_else(|| format!("the input has no text `{}`", keys.join("` or `")))
}

/// An input of a built-in tool that touches the same and is complete.
fn touching(tool: &str, input: &Map<String, Value>) -> Value {
    let mut all = match tool {
        "edit" => json!({"edits": [{"oldText": "a", "newText": "b"}]}),
        "write" => json!({"content": ""}),
        "grep" | "find" => json!({"pattern": "*"}),
        _ => json!({}),
    };
    let path = ["path", "file_path", "notebook_path"]
        .iter()
        .find_map(|key| input.get(*key));
    if let Some(path) = path.filter(|_| tool != "bash") {
        all["path"] = path.clone();
    }
    if let Some(command) = input.get("command").filter(|_| tool == "bash") {
        all["command"] = command.clone();
    }
    all
}
