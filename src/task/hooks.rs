//! The programs of a task's `hooks`: as they are written, and as what runs.
//!
//! Only what a program can answer is here: forks, moves in the tree and
//! switches of sessions have no place in a job.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::PermissionsExt as _;

use crate::hook::{HookCommand, HookPoint, Matcher, TIMEOUT_DEFAULT, TIMEOUT_MAX};
use crate::task::duration::{self, HumanDuration};
use crate::task::job::tidy;
use crate::task::resolve::Resolution;
use crate::task::tree::Node;
use crate::tool::Toolset;

/// What the name of a tool of an MCP server begins with.
const MCP_PREFIX: &str = "mcp__";
/// The longest name of a hook in the log, in characters.
const NAME_CHARS_MAX: usize = 120;

/// Programs that are asked or told at points of the session. Each reads JSON on
/// standard input. Exit status 0 goes on, 2 blocks with standard error as the
/// reason, anything else is a failure of the hook.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HooksSection {
    /// Told when the input of a turn was accepted.
    #[schemars(length(max = 50))]
    pub on_turn_start: Vec<HookEntry>,
    /// Told of a call before it runs.
    #[schemars(length(max = 50))]
    pub on_action: Vec<ToolHookEntry>,
    /// Told of a result once it is in the conversation.
    #[schemars(length(max = 50))]
    pub on_observation: Vec<ToolHookEntry>,
    /// Told how a turn ended.
    #[schemars(length(max = 50))]
    pub on_final: Vec<HookEntry>,
    /// May change, answer or block a prompt.
    #[schemars(length(max = 50))]
    pub input: Vec<HookEntry>,
    /// May add messages to a run and replace its system prompt.
    #[schemars(length(max = 50))]
    pub before_agent_start: Vec<HookEntry>,
    /// May replace the messages of a request.
    #[schemars(length(max = 50))]
    pub context: Vec<HookEntry>,
    /// May block a call or replace its arguments, before the permissions
    /// decide. One that fails blocks the call.
    #[schemars(length(max = 50))]
    pub before_tool: Vec<ToolHookEntry>,
    /// May replace or withhold the result of a call.
    #[schemars(length(max = 50))]
    pub after_tool: Vec<ToolHookEntry>,
    /// May cancel a compaction or supply its summary.
    #[schemars(length(max = 50))]
    pub before_compact: Vec<HookEntry>,
    /// May replace the body of a request to the provider.
    #[schemars(length(max = 50))]
    pub before_request: Vec<HookEntry>,
}

/// A program.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookEntry {
    /// The program and its arguments; no shell reads them. A program with a
    /// `/` that is not absolute starts at the task file's directory.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// How long it may take: 60s by default, at most 10m.
    #[serde(default = "timeout")]
    pub timeout: HumanDuration,
}

/// A program for calls of tools.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolHookEntry {
    /// The tools that it is for: names, or globs such as `mcp__*`, with `|`
    /// between them. By default all.
    #[serde(default, rename = "match")]
    pub matching: Option<String>,
    /// The program and its arguments; no shell reads them. A program with a
    /// `/` that is not absolute starts at the task file's directory.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// How long it may take: 60s by default, at most 10m.
    #[serde(default = "timeout")]
    pub timeout: HumanDuration,
}

fn timeout() -> HumanDuration {
    HumanDuration(TIMEOUT_DEFAULT)
}

/// An entry of either kind.
struct Written<'a> {
    matching: Option<&'a str>,
    command: &'a [String],
    timeout: HumanDuration,
}

impl<'a> From<&'a HookEntry> for Written<'a> {
    fn from(entry: &'a HookEntry) -> Self {
        Self {
            matching: None,
            command: &entry.command,
            timeout: entry.timeout,
        }
    }
}

impl<'a> From<&'a ToolHookEntry> for Written<'a> {
    fn from(entry: &'a ToolHookEntry) -> Self {
        Self {
            matching: entry.matching.as_deref(),
            command: &entry.command,
            timeout: entry.timeout,
        }
    }
}

impl HooksSection {
    /// All entries with their points.
    fn entries(&self) -> [(HookPoint, Vec<Written<'_>>); 11] {
        fn all<'a, T>(entries: &'a [T]) -> Vec<Written<'a>>
        where
            Written<'a>: From<&'a T>,
        {
            entries.iter().map(Written::from).collect()
        }
        [
            (HookPoint::OnTurnStart, all(&self.on_turn_start)),
            (HookPoint::OnAction, all(&self.on_action)),
            (HookPoint::OnObservation, all(&self.on_observation)),
            (HookPoint::OnFinal, all(&self.on_final)),
            (HookPoint::Input, all(&self.input)),
            (HookPoint::BeforeAgentStart, all(&self.before_agent_start)),
            (HookPoint::Context, all(&self.context)),
            (HookPoint::BeforeTool, all(&self.before_tool)),
            (HookPoint::AfterTool, all(&self.after_tool)),
            (HookPoint::BeforeCompact, all(&self.before_compact)),
            (HookPoint::BeforeRequest, all(&self.before_request)),
        ]
    }
}

impl Resolution<'_> {
    /// The programs to run; what is wrong with them is reported.
    pub(super) fn hooks(&mut self, section: &HooksSection, root: &Node) -> Vec<HookCommand> {
        let mut commands = Vec::new();
        for (point, entries) in section.entries() {
            let nodes = root
                .at_path(&["hooks", point.name()])
                .map_or(&[][..], Node::items);
            for (entry, node) in entries.into_iter().zip(nodes) {
                commands.extend(self.hook(point, &entry, node));
            }
        }
        commands
    }

    fn hook(&mut self, point: HookPoint, entry: &Written<'_>, node: &Node) -> Option<HookCommand> {
        let matcher = match entry.matching {
            Some(text) => Some(self.matcher(text, node)?),
            None => None,
        };
        let program = self.program(entry, node)?;
        if entry.timeout.0 > TIMEOUT_MAX {
            let at = node.get("timeout").map_or(node.at, |node| node.at);
            let most = duration::format(TIMEOUT_MAX);
            let message = format!("a hook may take at most {most}, not {}", entry.timeout);
            self.report.error(at, "out_of_range", message);
        }
        Some(HookCommand {
            point,
            matcher,
            name: entry
                .command
                .join(" ")
                .chars()
                .take(NAME_CHARS_MAX)
                .collect(),
            program,
            args: entry.command.get(1..).unwrap_or_default().to_vec(),
            timeout: entry.timeout.0,
        })
    }

    /// A matcher that can match: one that never does would be a guard who is
    /// never there.
    fn matcher(&mut self, text: &str, node: &Node) -> Option<Matcher> {
        let at = node.get("match").map_or(node.at, |node| node.at);
        let matcher = match Matcher::parse(text) {
            Ok(matcher) => matcher,
            Err(error) => {
                self.report.error(at, "bad_match", error.to_string());
                return None;
            }
        };
        let idle = matcher
            .idle(Toolset::BUILT_IN)
            .find(|glob| !glob.starts_with(MCP_PREFIX));
        if let Some(glob) = idle {
            let message = format!("`{glob}` matches no tool");
            let hint = format!("the tools are {}", Toolset::BUILT_IN.join(", "));
            self.report.error_with(at, "bad_match", message, hint);
            return None;
        }
        Some(matcher)
    }

    /// The program, which is there when it is named by its path.
    fn program(&mut self, entry: &Written<'_>, node: &Node) -> Option<PathBuf> {
        let command = node.get("command").unwrap_or(node);
        let at = command.items().first().map_or(command.at, |node| node.at);
        let Some(name) = entry.command.first().filter(|name| !name.is_empty()) else {
            self.report
                .error(at, "out_of_range", "a hook's command is empty");
            return None;
        };
        if !name.contains('/') {
            return Some(PathBuf::from(name));
        }
        let path = tidy(&self.base(at).join(self.expand_home(name)));
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() && meta.permissions().mode() & 0o111 != 0 => Some(path),
            Ok(meta) if meta.is_file() => {
                let message = format!("{} is not executable", path.display());
                let hint = format!("chmod +x {name}");
                self.report.error_with(at, "not_executable", message, hint);
                None
            }
            _ => {
                self.report
                    .no_input(at, format!("there is no file {}", path.display()));
                None
            }
        }
    }
}
