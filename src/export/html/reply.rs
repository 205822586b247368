//! One reply of the model: its text, its thinking, its calls with what came of
//! them, and what it cost.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::io;

use crate::message::{AssistantMessage, Content, Message, StopReason, Thinking, ToolResult, Usage};
use crate::report::dollars;
use crate::store::{Entry, EntryKind};

use super::layout::Layout;
use super::page::Page;
use super::totals::is_unpriced;
use super::{calls, card, output, prose};

/// The most characters of thinking that show while it is folded.
const THOUGHT_CHARS: usize = 90;

/// The result of a call and its place in the session.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) at: usize,
    pub(super) result: &'a ToolResult,
}

/// Whether the reply needs to say who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// The speaker or the model is another than before.
    New,
    /// The same model goes on.
    Same,
}

/// The results of a reply's calls, in the order of the calls. They stand in
/// the line before the next reply.
pub(super) fn answers<'a>(
    layout: &Layout<'a>,
    reply: &AssistantMessage,
    later: &[usize],
) -> Vec<Option<Answer<'a>>> {
    let mut found: HashMap<&str, VecDeque<Answer<'a>>> = HashMap::new();
    if reply.tool_calls().next().is_none() {
        return Vec::new();
    }
    for at in later {
        let Some(Entry {
            kind: EntryKind::Message(message),
            ..
        }) = layout.entry(*at)
        else {
            continue;
        };
        match message.as_ref() {
            Message::Assistant(_) => break,
            Message::ToolResult(result) => {
                let same = found.entry(&result.tool_call_id).or_default();
                same.push_back(Answer { at: *at, result });
            }
            Message::User(_) => {}
        }
    }
    reply
        .tool_calls()
        .map(|call| found.get_mut(call.id.as_str())?.pop_front())
        .collect()
}

/// Writes the reply at its place.
pub(super) fn write(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    place: (&Entry, usize),
    (reply, head): (&AssistantMessage, Head),
    answers: &[Option<Answer<'_>>],
) -> io::Result<()> {
    open(page, layout, place.1, (reply, head))?;
    let mut answers = answers.iter();
    for block in &reply.content {
        match block {
            Content::Text(text) => {
                if !text.text.trim().is_empty() {
                    page.raw("<div class=\"prose\">\n")?;
                    prose::write(page, &text.text)?;
                    page.raw("</div>\n")?;
                }
            }
            Content::Thinking(thinking) => thought(page, thinking)?,
            Content::Image(image) => output::image(page, image)?,
            Content::ToolCall(call) => {
                let answer = answers.next().copied().flatten();
                calls::write(page, layout, call, answer)?;
            }
        }
    }
    ending(page, reply)?;
    page.raw("<footer class=\"usage\">")?;
    usage(page, &reply.usage)?;
    page.raw(" · ")?;
    card::time(page, layout, place)?;
    page.raw("</footer>\n</article>\n")
}

fn open(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    at: usize,
    (reply, head): (&AssistantMessage, Head),
) -> io::Result<()> {
    let speaks = reply.content.iter().any(|block| match block {
        Content::Text(text) => !text.text.trim().is_empty(),
        Content::Image(_) => true,
        Content::Thinking(_) | Content::ToolCall(_) => false,
    });
    let only_calls = !speaks && reply.tool_calls().next().is_some() && fault(reply).is_none();
    page.raw(if only_calls {
        "<article class=\"entry reply only-calls\" id=\""
    } else {
        "<article class=\"entry reply\" id=\""
    })?;
    page.anchor(&layout.anchor(at))?;
    page.raw(match head {
        Head::New => "\">\n<header class=\"head\"><h3>Assistant</h3> <span class=\"model\">",
        Head::Same => "\">\n<header class=\"head same\"><h3>Assistant</h3> <span class=\"model\">",
    })?;
    page.text(&format!("{}/{}", reply.provider, reply.model))?;
    page.raw("</span>")?;
    card::label(page, layout, at)?;
    page.raw("</header>\n")
}

fn thought(page: &mut Page<'_>, thinking: &Thinking) -> io::Result<()> {
    if thinking.thinking.trim().is_empty() {
        return page
            .raw("<p class=\"thought hidden\">Thinking, which the provider does not show</p>\n");
    }
    page.raw("<details class=\"thought\"><summary><span class=\"name\">Thinking</span> <span class=\"what\">")?;
    page.preview(&thinking.thinking, THOUGHT_CHARS)?;
    page.raw("</span></summary>\n<div class=\"prose\">\n")?;
    prose::write(page, &thinking.thinking)?;
    page.raw("</div></details>\n")
}

/// Why a reply is not what was asked for, in words.
fn fault(reply: &AssistantMessage) -> Option<&'static str> {
    match reply.stop_reason {
        StopReason::Stop | StopReason::ToolUse => None,
        StopReason::Length => Some("Cut by the output limit"),
        StopReason::Pause => Some("Paused by the provider"),
        StopReason::Refusal => Some("Refused"),
        StopReason::Error => Some("The call failed"),
        StopReason::Aborted => Some("Cancelled"),
    }
}

fn ending(page: &mut Page<'_>, reply: &AssistantMessage) -> io::Result<()> {
    let message = reply.error_message.as_deref();
    let Some(fault) = fault(reply).or_else(|| message.map(|_| "The call failed")) else {
        return Ok(());
    };
    page.raw("<p class=\"fault\"><b>")?;
    page.raw(fault)?;
    page.raw("</b>")?;
    if let Some(message) = message {
        page.raw(" ")?;
        page.text(message)?;
    }
    page.raw("</p>\n")
}

fn usage(page: &mut Page<'_>, usage: &Usage) -> io::Result<()> {
    if usage.total_tokens() == 0 {
        return page.raw("no usage reported");
    }
    page.number(usage.prompt_tokens())?;
    page.raw(" in")?;
    if usage.cache_read > 0 || usage.cache_write > 0 {
        page.raw(" (")?;
        page.number(usage.cache_read)?;
        page.raw(" from cache, ")?;
        page.number(usage.cache_write)?;
        page.raw(" to cache)")?;
    }
    page.raw(" · ")?;
    page.number(usage.output)?;
    page.raw(" out")?;
    if usage.reasoning > 0 {
        page.raw(" (")?;
        page.number(usage.reasoning)?;
        page.raw(" thinking)")?;
    }
    page.raw(" · ")?;
    if is_unpriced(usage) {
        page.raw("cost unknown")
    } else {
        page.text(&dollars(usage.cost.total))
    }
}
