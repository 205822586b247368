//! `agent sessions tree`.

use std::fmt::Write;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::flags::ColorChoice;
use crate::report::neutral;
use crate::store::{Entry, EntryId, EntryKind, SessionTree};

use super::line;
use super::place::{PlaceFlags, SessionArgument};

/// Draws the branches of a session.
#[derive(Debug, Args)]
pub(super) struct TreeCommand {
    #[command(flatten)]
    session: SessionArgument,

    #[command(flatten)]
    place: PlaceFlags,
}

impl TreeCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let opened = match self.place.dirs.open(&self.session, console) {
            Ok(opened) => opened,
            Err(exit) => return exit,
        };
        let tree = &opened.tree;
        let unicode = console.style(ColorChoice::Never).unicode;
        let pen = if unicode { &LINES } else { &PLAIN };
        let document = json!({
            "id": tree.header().id,
            "path": opened.path,
            "leaf": tree.leaf().map(|leaf| &leaf.id),
            "entries": tree.entries().iter().map(|entry| node(entry, tree)).collect::<Vec<_>>(),
        });
        self.place.print(&draw(tree, pen), &document, console)
    }
}

fn node(entry: &Entry, tree: &SessionTree) -> Value {
    let children = tree.children(Some(&entry.id));
    json!({
        "id": entry.id,
        "parentId": entry.parent_id,
        "timestamp": entry.timestamp,
        "type": entry.kind.type_name(),
        "kind": line::kind_of(entry),
        "text": line::preview(entry),
        "label": tree.label(&entry.id),
        "children": children.into_iter().map(|child| &child.id).collect::<Vec<_>>(),
    })
}

/// What branches are drawn with.
struct Pen {
    /// Before a branch with others below it, and before what follows on it.
    branch: [&'static str; 2],
    /// The same of the last one.
    last: [&'static str; 2],
    leaf: &'static str,
}

const LINES: Pen = Pen {
    branch: ["├─ ", "│  "],
    last: ["└─ ", "   "],
    leaf: "  ← leaf",
};
const PLAIN: Pen = Pen {
    branch: ["|- ", "|  "],
    last: ["`- ", "   "],
    leaf: "  <- leaf",
};

/// An entry that is still to be drawn.
struct Waiting<'t> {
    entry: &'t Entry,
    /// Before the entry itself, and before what follows it.
    indents: [String; 2],
}

/// One line an entry; only branches are indented. What only sets something is
/// left out.
fn draw(tree: &SessionTree, pen: &Pen) -> String {
    let leaf = tree.path().into_iter().rev().find(|entry| is_drawn(entry));
    let mut text = String::new();
    let mut waiting = Vec::new();
    branch_out(drawn_below(tree, None), "", pen, &mut waiting);
    while let Some(Waiting { entry, indents }) = waiting.pop() {
        let [own, next] = indents;
        let label = tree.label(&entry.id);
        let label = label.map(|label| format!("  [{}]", neutral(label)));
        let is_leaf = leaf.is_some_and(|leaf| leaf.id == entry.id);
        let _ = writeln!(
            text,
            "{own}{} {}: {}{}{}",
            neutral(entry.id.as_str()),
            neutral(line::kind_of(entry)),
            line::preview(entry),
            label.unwrap_or_default(),
            if is_leaf { pen.leaf } else { "" }
        );
        branch_out(drawn_below(tree, Some(&entry.id)), &next, pen, &mut waiting);
    }
    text
}

fn branch_out<'t>(
    children: Vec<&'t Entry>,
    indent: &str,
    pen: &Pen,
    waiting: &mut Vec<Waiting<'t>>,
) {
    let count = children.len();
    // The one that waits last is drawn first.
    for (at, entry) in children.into_iter().enumerate().rev() {
        let indents = match at + 1 {
            _ if count == 1 => [indent.to_owned(), indent.to_owned()],
            place if place == count => pen.last.map(|part| format!("{indent}{part}")),
            _ => pen.branch.map(|part| format!("{indent}{part}")),
        };
        waiting.push(Waiting { entry, indents });
    }
}

/// The nearest entries below `id` that are drawn, oldest first.
fn drawn_below<'t>(tree: &'t SessionTree, id: Option<&EntryId>) -> Vec<&'t Entry> {
    let mut found = Vec::new();
    let mut open = tree.children(id);
    open.reverse();
    while let Some(entry) = open.pop() {
        if is_drawn(entry) {
            found.push(entry);
        } else {
            open.extend(tree.children(Some(&entry.id)).into_iter().rev());
        }
    }
    found
}

fn is_drawn(entry: &Entry) -> bool {
    match &entry.kind {
        EntryKind::Message(_)
        | EntryKind::BashExecution(_)
        | EntryKind::Compaction { .. }
        | EntryKind::BranchSummary { .. }
        | EntryKind::CustomMessage { .. }
        | EntryKind::Unknown { .. } => true,
        EntryKind::ModelChange { .. }
        | EntryKind::ThinkingLevelChange { .. }
        | EntryKind::Custom { .. }
        | EntryKind::Label { .. }
        | EntryKind::SessionInfo { .. } => false,
    }
}
