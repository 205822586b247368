//! The top of the page: which session this is, what it came to, and the
//! switches of the transcript.

use std::io;

use crate::report::{dollars, duration, grouped};
use crate::store::SessionTree;

use super::layout::Layout;
use super::page::Page;
use super::totals::{Spent, Totals};
use super::when::When;

/// The most characters of the page's title.
pub(super) const TITLE_CHARS: usize = 90;

/// Writes the page's header.
pub(super) fn write(
    page: &mut Page<'_>,
    tree: &SessionTree,
    layout: &Layout<'_>,
    totals: &Totals<'_>,
) -> io::Result<()> {
    page.raw("<header class=\"opening\">\n<p class=\"kind\">Agent session</p>\n<h1")?;
    if !totals.named {
        page.raw(" class=\"quoted\"")?;
    }
    page.raw(">")?;
    page.preview(totals.title, TITLE_CHARS)?;
    page.raw("</h1>\n")?;
    facts(page, tree, totals)?;
    tiles(page, totals)?;
    scope(page, layout, totals)?;
    models(page, totals)?;
    page.raw("</header>\n")
}

fn facts(page: &mut Page<'_>, tree: &SessionTree, totals: &Totals<'_>) -> io::Result<()> {
    let header = tree.header();
    page.raw("<dl class=\"facts\">\n<div><dt>Session</dt><dd><code>")?;
    page.text(&header.id)?;
    page.raw("</code></dd></div>\n<div><dt>Directory</dt><dd><code>")?;
    page.text(&header.cwd)?;
    page.raw("</code></dd></div>\n<div><dt>Started</dt><dd>")?;
    When::of(&header.timestamp).whole(page)?;
    page.raw("</dd></div>\n")?;
    if let Some(milliseconds) = totals.duration_ms {
        page.raw("<div><dt>From first to last entry</dt><dd>")?;
        page.text(&duration(milliseconds))?;
        page.raw("</dd></div>\n")?;
    }
    if !totals.models.is_empty() {
        page.raw("<div><dt>Models</dt><dd>")?;
        for (place, model) in totals.models.iter().enumerate() {
            page.raw(if place > 0 { ", <code>" } else { "<code>" })?;
            page.text(&format!("{}/{}", model.provider, model.model))?;
            page.raw("</code>")?;
        }
        page.raw("</dd></div>\n")?;
    }
    if let Some(parent) = &header.parent_session {
        page.raw("<div><dt>Forked from</dt><dd><code>")?;
        page.text(parent)?;
        page.raw("</code></dd></div>\n")?;
    }
    page.raw("</dl>\n")
}

fn tiles(page: &mut Page<'_>, totals: &Totals<'_>) -> io::Result<()> {
    page.raw("<dl class=\"tiles\">\n")?;
    let usage = &totals.all.usage;
    tile(page, "Prompts", &grouped(totals.prompts))?;
    tile(page, "Replies", &grouped(totals.replies))?;
    tile(page, "Tool calls", &grouped(totals.calls))?;
    if totals.failures > 0 {
        tile(page, "Failed calls", &grouped(totals.failures))?;
    }
    tile(page, "Tokens in", &short(usage.prompt_tokens()))?;
    tile(page, "Tokens out", &short(usage.output))?;
    match cost(&totals.all) {
        (cost, unpriced) if unpriced > 0 && cost.starts_with('$') => {
            tile(page, "Known cost", &cost)?;
        }
        (cost, _) => tile(page, "Cost", &cost)?,
    }
    page.raw("</dl>\n")
}

fn tile(page: &mut Page<'_>, name: &'static str, value: &str) -> io::Result<()> {
    page.raw("<div><dt>")?;
    page.raw(name)?;
    page.raw("</dt><dd>")?;
    page.text(value)?;
    page.raw("</dd></div>\n")
}

/// What the numbers are of.
fn scope(page: &mut Page<'_>, layout: &Layout<'_>, totals: &Totals<'_>) -> io::Result<()> {
    page.raw("<p class=\"scope\">Of the whole session: ")?;
    page.count(totals.entries, "entry", "entries")?;
    if totals.branches > 0 {
        page.raw(", ")?;
        page.number(totals.aside)?;
        page.raw(" of them on ")?;
        page.count(totals.branches, "branch", "branches")?;
        page.raw(" beside the main line")?;
    }
    if totals.compactions > 0 {
        page.raw(", what was compacted included")?;
    }
    if totals.all.unpriced > 0 {
        page.raw(". The price of ")?;
        page.count(totals.all.unpriced, "reply is", "replies is")?;
        page.raw(" unknown")?;
    }
    let main = layout.main_count() as u64;
    if main == 0 && totals.entries > 0 {
        page.raw(". The session stands before its first entry")?;
    }
    page.raw(". Times are UTC.</p>\n")
}

/// What each model took, for whoever wants to know.
fn models(page: &mut Page<'_>, totals: &Totals<'_>) -> io::Result<()> {
    if totals.all.replies == 0 {
        return Ok(());
    }
    page.raw(
        "<details class=\"fold spent\"><summary>Tokens and cost by model</summary>\n\
         <div class=\"table\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">Model</th>\
         <th scope=\"col\">Replies</th><th scope=\"col\">Input</th><th scope=\"col\">From cache</th>\
         <th scope=\"col\">To cache</th><th scope=\"col\">Output</th>\
         <th scope=\"col\">Of it thinking</th><th scope=\"col\">Cost</th></tr></thead>\n<tbody>\n",
    )?;
    for model in &totals.models {
        let name = format!("{}/{}", model.provider, model.model);
        row(page, &name, &model.spent)?;
    }
    page.raw("</tbody>\n")?;
    if totals.models.len() > 1 {
        page.raw("<tfoot>\n")?;
        row(page, "Together", &totals.all)?;
        page.raw("</tfoot>\n")?;
    }
    page.raw("</table></div></details>\n")
}

fn row(page: &mut Page<'_>, name: &str, spent: &Spent) -> io::Result<()> {
    page.raw("<tr><th scope=\"row\">")?;
    page.text(name)?;
    page.raw("</th>")?;
    let usage = &spent.usage;
    for number in [
        spent.replies,
        usage.input,
        usage.cache_read,
        usage.cache_write,
        usage.output,
        usage.reasoning,
    ] {
        page.raw("<td>")?;
        page.number(number)?;
        page.raw("</td>")?;
    }
    page.raw("<td>")?;
    match cost(spent) {
        (cost, unpriced) if unpriced > 0 && cost.starts_with('$') => {
            page.text(&cost)?;
            page.raw(" and ")?;
            page.count(unpriced, "unknown", "unknown")?;
        }
        (cost, _) => page.text(&cost)?,
    }
    page.raw("</td></tr>\n")
}

/// The cost as far as it is known, and the number of replies of which it is not.
fn cost(spent: &Spent) -> (String, u64) {
    let known = spent.usage.cost.total;
    if known == 0.0 && spent.unpriced > 0 {
        return ("unknown".to_owned(), spent.unpriced);
    }
    (dollars(known), spent.unpriced)
}

/// Three digits of a large number: `12.3 M`.
fn short(number: u64) -> String {
    let scaled = |unit: u64, name: &str| {
        let tenths = number / (unit / 10);
        format!("{}.{} {name}", grouped(tenths / 10), tenths % 10)
    };
    match number {
        0..100_000 => grouped(number),
        100_000..1_000_000 => format!("{} k", number / 1000),
        _ => scaled(1_000_000, "M"),
    }
}

/// Writes the switches. Those of what is shown need no script; the buttons
/// stay hidden without one.
pub(super) fn toolbar(page: &mut Page<'_>, totals: &Totals<'_>) -> io::Result<()> {
    page.raw(
        "<div class=\"toolbar\" role=\"group\" aria-label=\"What is shown\">\n\
         <label><input type=\"checkbox\" id=\"show-calls\" checked autocomplete=\"off\"> Tool calls</label>\n\
         <label><input type=\"checkbox\" id=\"show-thinking\" checked autocomplete=\"off\"> Thinking</label>\n\
         <span id=\"actions\" hidden>\n\
         <button type=\"button\" data-do=\"open\">Expand all</button>\n\
         <button type=\"button\" data-do=\"diffs\">Show diffs</button>\n\
         <button type=\"button\" data-do=\"close\">Collapse all</button>\n",
    )?;
    if totals.failures > 0 {
        page.raw("<button type=\"button\" data-do=\"failure\">Next failure</button>\n")?;
    }
    page.raw("</span>\n</div>\n")
}
