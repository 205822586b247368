//! Entries that are no reply of the model: prompts, summaries, notes on the
//! session, and whatever else its file holds.

use std::io;

use serde_json::Value;

use crate::message::{Content, Message, ToolResult, UserMessage};
use crate::report::grouped;
use crate::store::{BashExecution, Entry, EntryId, EntryKind};

use super::layout::Layout;
use super::page::Page;
use super::when::When;
use super::{calls, output, prose};

/// An entry of this type only says where the session stands.
const LEAF: &str = "leaf";

/// Whether an entry is a short note, which joins the notes beside it.
pub(super) fn is_note(entry: &Entry) -> bool {
    match &entry.kind {
        EntryKind::ModelChange { .. }
        | EntryKind::ThinkingLevelChange { .. }
        | EntryKind::Label { .. }
        | EntryKind::SessionInfo { .. } => true,
        EntryKind::Custom { custom_type, data } => custom_type == LEAF && data.is_none(),
        EntryKind::Message(_)
        | EntryKind::BashExecution(_)
        | EntryKind::Compaction { .. }
        | EntryKind::BranchSummary { .. }
        | EntryKind::CustomMessage { .. }
        | EntryKind::Unknown { .. } => false,
    }
}

/// Writes a note.
pub(super) fn note(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    entry: &Entry,
    at: usize,
) -> io::Result<()> {
    page.raw("<p class=\"note\" id=\"")?;
    page.anchor(&layout.anchor(at))?;
    page.raw("\">")?;
    match &entry.kind {
        EntryKind::ModelChange { provider, model_id } => {
            page.raw("model <b>")?;
            page.text(&format!("{provider}/{model_id}"))?;
            page.raw("</b>")?;
        }
        EntryKind::ThinkingLevelChange { thinking_level } => {
            page.raw("thinking <b>")?;
            page.text(thinking_level)?;
            page.raw("</b>")?;
        }
        EntryKind::Label { target_id, label } => {
            page.raw(if label.is_some() {
                "label <b>"
            } else {
                "label removed"
            })?;
            if let Some(label) = label {
                page.text(label)?;
                page.raw("</b>")?;
            }
            page.raw(" at ")?;
            place(page, layout, target_id)?;
        }
        EntryKind::SessionInfo { name } => {
            page.raw("named <b>")?;
            page.text(name.as_deref().unwrap_or_default())?;
            page.raw("</b>")?;
        }
        _ => page.raw("the session stood here")?,
    }
    page.raw("</p>\n")
}

/// Writes an entry that is neither a note nor a reply.
pub(super) fn entry(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    entry: &Entry,
    at: usize,
) -> io::Result<()> {
    match &entry.kind {
        EntryKind::Message(message) => match message.as_ref() {
            Message::User(user) => prompt(page, layout, (entry, at), user),
            Message::ToolResult(result) => lone_result(page, layout, (entry, at), result),
            // Replies are written with the results of their calls.
            Message::Assistant(_) => Ok(()),
        },
        EntryKind::BashExecution(ran) => command(page, layout, (entry, at), ran),
        EntryKind::Compaction { .. } => compaction(page, layout, entry, at),
        EntryKind::BranchSummary { .. } => branch_summary(page, layout, entry, at),
        EntryKind::CustomMessage { .. } => custom_message(page, layout, entry, at),
        EntryKind::Custom { custom_type, data } => {
            let state = data.clone().unwrap_or_default();
            let title = ("State of an extension, not sent", custom_type.as_str());
            unread(page, layout, at, title, &state)
        }
        EntryKind::Unknown { type_name, fields } => {
            let title = ("Entry of an unknown type", type_name.as_str());
            unread(page, layout, at, title, &Value::Object(fields.clone()))
        }
        EntryKind::ModelChange { .. }
        | EntryKind::ThinkingLevelChange { .. }
        | EntryKind::Label { .. }
        | EntryKind::SessionInfo { .. } => note(page, layout, entry, at),
    }
}

/// Opens an article for an entry and writes its head line.
fn open(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    (entry, at): (&Entry, usize),
    (class, who): (&'static str, &'static str),
) -> io::Result<()> {
    page.raw("<article class=\"entry ")?;
    page.raw(class)?;
    page.raw("\" id=\"")?;
    page.anchor(&layout.anchor(at))?;
    page.raw("\">\n<header class=\"head\"><h3>")?;
    page.raw(who)?;
    page.raw("</h3>")?;
    label(page, layout, at)?;
    page.raw(" ")?;
    time(page, layout, (entry, at))?;
    page.raw("</header>\n")
}

/// Writes the time of an entry as a link to it.
pub(super) fn time(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    (entry, at): (&Entry, usize),
) -> io::Result<()> {
    page.raw("<a class=\"time\" href=\"#")?;
    page.anchor(&layout.anchor(at))?;
    page.raw("\">")?;
    When::of(&entry.timestamp).clock(page)?;
    page.raw("</a>")
}

/// Writes the bookmark at an entry.
pub(super) fn label(page: &mut Page<'_>, layout: &Layout<'_>, at: usize) -> io::Result<()> {
    let Some(label) = layout.label_of(at) else {
        return Ok(());
    };
    page.raw(" <span class=\"tag\">")?;
    page.text(label)?;
    page.raw("</span>")
}

fn prompt(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    place: (&Entry, usize),
    user: &UserMessage,
) -> io::Result<()> {
    open(page, layout, place, ("user", "User"))?;
    for block in &user.content {
        match block {
            Content::Text(text) => output::plain(page, &text.text)?,
            Content::Image(image) => output::image(page, image)?,
            // No user's message holds these.
            Content::Thinking(_) | Content::ToolCall(_) => output::json(page, block)?,
        }
    }
    page.raw("</article>\n")
}

fn command(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    place: (&Entry, usize),
    ran: &BashExecution,
) -> io::Result<()> {
    open(page, layout, place, ("ran", "User ran a command"))?;
    calls::by_user(page, ran)?;
    page.raw("</article>\n")
}

fn lone_result(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    place: (&Entry, usize),
    result: &ToolResult,
) -> io::Result<()> {
    open(page, layout, place, ("result", "Result without its call"))?;
    calls::lone(page, result)?;
    page.raw("</article>\n")
}

fn compaction(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    entry: &Entry,
    at: usize,
) -> io::Result<()> {
    let EntryKind::Compaction {
        summary,
        first_kept_entry_id,
        tokens_before,
        details,
        from_hook,
    } = &entry.kind
    else {
        return Ok(());
    };
    open(page, layout, (entry, at), ("summary", "Context compacted"))?;
    page.raw("<p>From here on the model saw a summary of what came before ")?;
    place(page, layout, first_kept_entry_id)?;
    page.raw(", instead of ")?;
    page.text(&grouped(*tokens_before))?;
    page.raw(" tokens.")?;
    if *from_hook == Some(true) {
        page.raw(" A hook wrote it.")?;
    }
    page.raw("</p>\n")?;
    summary_text(page, summary, details.as_ref())
}

fn branch_summary(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    entry: &Entry,
    at: usize,
) -> io::Result<()> {
    let EntryKind::BranchSummary {
        from_id,
        summary,
        details,
    } = &entry.kind
    else {
        return Ok(());
    };
    open(page, layout, (entry, at), ("summary", "Branch left"))?;
    page.raw("<p>The model was told what had happened on the branch that ended at ")?;
    place(page, layout, from_id)?;
    page.raw(".</p>\n")?;
    summary_text(page, summary, details.as_ref())
}

fn summary_text(page: &mut Page<'_>, summary: &str, details: Option<&Value>) -> io::Result<()> {
    page.raw("<details class=\"fold\"><summary>The summary</summary>\n<div class=\"prose\">\n")?;
    prose::write(page, summary)?;
    page.raw("</div></details>\n")?;
    if let Some(details) = details {
        output::folded_json(page, "Details", details)?;
    }
    page.raw("</article>\n")
}

fn custom_message(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    entry: &Entry,
    at: usize,
) -> io::Result<()> {
    let EntryKind::CustomMessage {
        custom_type,
        content,
        display,
        details,
    } = &entry.kind
    else {
        return Ok(());
    };
    open(page, layout, (entry, at), ("custom", "Added for the model"))?;
    page.raw("<p>By <b>")?;
    page.text(custom_type)?;
    page.raw("</b></p>\n")?;
    if !display {
        page.raw("<details class=\"fold\"><summary>Not meant for display</summary>\n")?;
    }
    output::content(page, content)?;
    if !display {
        page.raw("</details>\n")?;
    }
    if let Some(details) = details {
        output::folded_json(page, "Details", details)?;
    }
    page.raw("</article>\n")
}

/// Something that this page does not know how to show.
fn unread(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    at: usize,
    (what, name): (&'static str, &str),
    value: &Value,
) -> io::Result<()> {
    page.raw("<details class=\"entry fold unread\" id=\"")?;
    page.anchor(&layout.anchor(at))?;
    page.raw("\"><summary>")?;
    page.raw(what)?;
    page.raw(": <b>")?;
    page.text(name)?;
    page.raw("</b></summary>\n")?;
    output::json(page, value)?;
    page.raw("</details>\n")
}

/// Writes a link to an entry, or its id when it is not in the session.
fn place(page: &mut Page<'_>, layout: &Layout<'_>, id: &EntryId) -> io::Result<()> {
    let Some(at) = layout.find(id) else {
        page.raw("<code>")?;
        page.text(id.as_str())?;
        return page.raw("</code> (not in this session)");
    };
    page.raw("<a href=\"#")?;
    page.anchor(&layout.anchor(at))?;
    page.raw("\">")?;
    page.text(id.as_str())?;
    page.raw("</a>")
}
