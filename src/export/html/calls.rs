//! A call of a tool and what came of it, folded under a line that says what
//! matters.

use std::io;

use serde_json::Value;

use crate::message::{ToolCall, ToolResult};
use crate::store::BashExecution;

use super::diff::{Counts, Diff};
use super::layout::Layout;
use super::output;
use super::page::Page;
use super::reply::Answer;
use super::title;

/// Details that the diff shows already.
const SHOWN_DETAILS: &[&str] = &["path", "diff", "additions", "deletions"];
/// The most characters of an error in a title.
const WHY_CHARS: usize = 160;

/// Writes a call with its result.
pub(super) fn write(
    page: &mut Page<'_>,
    layout: &Layout<'_>,
    call: &ToolCall,
    answer: Option<Answer<'_>>,
) -> io::Result<()> {
    let result = answer.map(|answer| answer.result);
    let made = Diff::of_details(result.and_then(|result| result.details.as_ref()));
    let asked = match (&made, call.name.as_str()) {
        (None, "edit") => Diff::of_edit(&call.arguments),
        _ => None,
    };
    let title = title::of(call);
    page.raw(match result {
        Some(result) if result.is_error => "<details class=\"call bad\">",
        Some(_) => "<details class=\"call\">",
        None => "<details class=\"call open-call\">",
    })?;
    page.raw("<summary><span class=\"name\">")?;
    page.text(&call.name)?;
    page.raw("</span> <span class=\"what\">")?;
    page.preview(&title.text, title::TITLE_CHARS)?;
    page.raw("</span>")?;
    outcome(page, result, made.as_ref().map(Diff::counts))?;
    page.raw("</summary>\n<div class=\"body\">\n")?;
    match made.as_ref().or(asked.as_ref()) {
        Some(diff) => arguments(
            page,
            call,
            &title.told,
            &["edits", "oldText", "newText", "content"],
        )
        .and_then(|()| diff.write(page))?,
        None => arguments(page, call, &title.told, &[])?,
    }
    let Some(answer) = answer else {
        return page.raw(
            "<p class=\"empty\">The session has no result of this call.</p>\n</div></details>\n",
        );
    };
    page.raw("<section class=\"came\" id=\"")?;
    page.anchor(&layout.anchor(answer.at))?;
    page.raw("\"><h4>Result</h4>\n")?;
    came(page, answer.result, made.is_some())?;
    page.raw("</section>\n</div></details>\n")
}

/// Writes a result whose call is not in the session.
pub(super) fn lone(page: &mut Page<'_>, result: &ToolResult) -> io::Result<()> {
    let made = Diff::of_details(result.details.as_ref());
    page.raw(if result.is_error {
        "<details class=\"call bad\"><summary><span class=\"name\">"
    } else {
        "<details class=\"call\"><summary><span class=\"name\">"
    })?;
    page.text(&result.tool_name)?;
    page.raw("</span> <span class=\"what\"></span>")?;
    outcome(page, Some(result), made.as_ref().map(Diff::counts))?;
    page.raw("</summary>\n<div class=\"body\">\n")?;
    if let Some(diff) = &made {
        diff.write(page)?;
    }
    came(page, result, made.is_some())?;
    page.raw("</div></details>\n")
}

/// Writes a command that the user ran.
pub(super) fn by_user(page: &mut Page<'_>, ran: &BashExecution) -> io::Result<()> {
    let failed = ran.cancelled || ran.exit_code != Some(0);
    page.raw(if failed {
        "<details class=\"call bad\"><summary><span class=\"name\">$</span> <span class=\"what\">"
    } else {
        "<details class=\"call\"><summary><span class=\"name\">$</span> <span class=\"what\">"
    })?;
    page.preview(&ran.command, title::TITLE_CHARS)?;
    page.raw("</span>")?;
    let ended = match ran.exit_code {
        _ if ran.cancelled => Some("cancelled".to_owned()),
        Some(0) => None,
        Some(code) => Some(format!("exit code {code}")),
        None => Some("killed".to_owned()),
    };
    if let Some(ended) = ended {
        page.raw(" <span class=\"chip bad\">")?;
        page.text(&ended)?;
        page.raw("</span>")?;
    }
    page.raw("</summary>\n<div class=\"body\">\n")?;
    if ran.exclude_from_context {
        page.raw("<p class=\"empty\">The model did not see this.</p>\n")?;
    }
    if title::is_cut(&ran.command) {
        output::printed(page, &ran.command)?;
    }
    output::printed(page, &ran.output)?;
    if ran.truncated {
        page.raw("<p class=\"empty\">This is the end of the output")?;
        if let Some(file) = &ran.full_output_path {
            page.raw("; all of it was in <code>")?;
            page.text(file)?;
            page.raw("</code>")?;
        }
        page.raw(".</p>\n")?;
    }
    page.raw("</div></details>\n")
}

/// How it went, at the end of the title.
fn outcome(
    page: &mut Page<'_>,
    result: Option<&ToolResult>,
    counts: Option<Counts>,
) -> io::Result<()> {
    let Some(result) = result else {
        return page.raw(" <span class=\"chip warn\">no result</span>");
    };
    if let Some(counts) = counts {
        page.raw(" <span class=\"chip\"><span class=\"plus\">+")?;
        page.number(counts.added as u64)?;
        page.raw("</span> <span class=\"minus\">−")?;
        page.number(counts.removed as u64)?;
        page.raw("</span></span>")?;
    }
    if !result.is_error {
        return Ok(());
    }
    let text = result.text();
    page.raw(" <span class=\"chip bad\">")?;
    let ended = (result.tool_name == "bash").then(|| command_end(&text));
    match ended.flatten() {
        Some(ended) => {
            page.text(ended)?;
            page.raw("</span>")
        }
        None => {
            page.raw("failed</span> <span class=\"why\">")?;
            page.preview(&text, WHY_CHARS)?;
            page.raw("</span>")
        }
    }
}

/// How a command that failed says that it ended, in its last line.
fn command_end(text: &str) -> Option<&str> {
    let last = text.trim_end().lines().next_back()?;
    if let Some(code) = last.strip_prefix("Command exited with ") {
        return Some(code);
    }
    let told = last.strip_prefix('[')?.strip_suffix(']')?;
    let known = [
        "exit code ",
        "killed by signal ",
        "timed out ",
        "cancelled ",
    ];
    known
        .iter()
        .any(|start| told.starts_with(start))
        .then_some(told)
}

fn arguments(
    page: &mut Page<'_>,
    call: &ToolCall,
    told: &[&str],
    shown: &[&str],
) -> io::Result<()> {
    if let Some(raw) = &call.invalid_arguments {
        page.raw("<p class=\"fault\">The arguments were no JSON object:</p>\n")?;
        return output::printed(page, raw);
    }
    let Some(all) = call.arguments.as_object() else {
        return output::json(page, &call.arguments);
    };
    let mut rest = all
        .iter()
        .filter(|(name, _)| !told.contains(&name.as_str()) && !shown.contains(&name.as_str()))
        .peekable();
    if rest.peek().is_none() {
        return Ok(());
    }
    page.raw("<dl class=\"arguments\">\n")?;
    for (name, value) in rest {
        page.raw("<dt>")?;
        page.text(name)?;
        page.raw("</dt><dd>")?;
        match value {
            Value::String(text) => output::printed(page, text)?,
            value => output::json(page, value)?,
        }
        page.raw("</dd>\n")?;
    }
    page.raw("</dl>\n")
}

/// What the model was told, and what else the tool noted.
fn came(page: &mut Page<'_>, result: &ToolResult, diff_is_shown: bool) -> io::Result<()> {
    if result.content.is_empty() {
        page.raw("<p class=\"empty\">no output</p>\n")?;
    }
    output::content(page, &result.content)?;
    let Some(details) = &result.details else {
        return Ok(());
    };
    let rest = match details {
        Value::Object(fields) if diff_is_shown => {
            let mut rest = fields.clone();
            rest.retain(|name, _| !SHOWN_DETAILS.contains(&name.as_str()));
            Value::Object(rest)
        }
        other => other.clone(),
    };
    match &rest {
        Value::Null => Ok(()),
        Value::Object(fields) if fields.is_empty() => Ok(()),
        rest => output::folded_json(page, "Details", rest),
    }
}
