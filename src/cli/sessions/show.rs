//! `agent sessions show`.

use std::fmt::Write;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::event::PendingCounts;
use crate::report::{counted, dollars, grouped, neutral};
use crate::session::Stats;
use crate::store::SessionTree;

use super::line;
use super::place::{Opened, PlaceFlags, SessionArgument};

/// Shows a session: its header, its counts, its entries.
#[derive(Debug, Args)]
pub(super) struct ShowCommand {
    #[command(flatten)]
    session: SessionArgument,

    #[command(flatten)]
    place: PlaceFlags,
}

impl ShowCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let opened = match self.place.dirs.open(&self.session, console) {
            Ok(opened) => opened,
            Err(exit) => return exit,
        };
        let stats = Stats::of(&opened.tree, PendingCounts::default());
        let text = text(&opened, &stats);
        self.place.print(&text, &document(&opened, &stats), console)
    }
}

fn text(opened: &Opened, stats: &Stats) -> String {
    let tree = &opened.tree;
    let header = tree.header();
    let path = tree.path();
    let model = tree
        .model()
        .map(|(provider, model)| format!("{provider}/{model}"));
    let mut text = format!("session {}\n", neutral(&header.id));
    let mut field = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:9} {}", neutral(&value));
        }
    };
    field("name", tree.name().map(str::to_owned));
    field("file", Some(opened.path.display().to_string()));
    field("directory", Some(header.cwd.clone()));
    field("parent", header.parent_session.clone());
    field("begun", Some(header.timestamp.clone()));
    field(
        "last",
        tree.entries().last().map(|last| last.timestamp.clone()),
    );
    field("model", model);
    field("thinking", tree.thinking_level().map(str::to_owned));
    field(
        "messages",
        Some(format!(
            "{} of the user, {} of the model with {}, {}",
            grouped(stats.user_messages),
            grouped(stats.assistant_messages),
            counted(stats.tool_calls, "tool call"),
            counted(stats.tool_results, "tool result"),
        )),
    );
    field(
        "usage",
        Some(format!(
            "{}, {}",
            counted(stats.usage.total_tokens(), "token"),
            dollars(stats.usage.cost.total)
        )),
    );
    let _ = writeln!(
        text,
        "  entries   {} on the path to the leaf, {} in all",
        grouped(path.len() as u64),
        grouped(stats.entries)
    );
    text.push('\n');
    for entry in path {
        let label = tree
            .label(&entry.id)
            .map(|label| format!("[{}] ", neutral(label)));
        let _ = writeln!(
            text,
            "{}  {:14} {}{}",
            neutral(entry.id.as_str()),
            neutral(line::kind_of(entry)),
            label.unwrap_or_default(),
            line::preview(entry)
        );
    }
    text
}

fn document(opened: &Opened, stats: &Stats) -> Value {
    let tree: &SessionTree = &opened.tree;
    let header = tree.header();
    json!({
        "id": header.id,
        "path": opened.path,
        "cwd": header.cwd,
        "created": header.timestamp,
        "modified": tree.entries().last().map(|last| &last.timestamp),
        "parentSession": header.parent_session,
        "name": tree.name(),
        "model": tree.model().map(|(provider, model)| format!("{provider}/{model}")),
        "thinkingLevel": tree.thinking_level(),
        "leaf": tree.leaf().map(|leaf| &leaf.id),
        "stats": {
            "entries": stats.entries,
            "userMessages": stats.user_messages,
            "assistantMessages": stats.assistant_messages,
            "toolCalls": stats.tool_calls,
            "toolResults": stats.tool_results,
            "usage": stats.usage,
        },
        "entries": tree.path().into_iter().map(|entry| line::document(entry, tree)).collect::<Vec<_>>(),
    })
}
