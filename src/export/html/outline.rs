//! The outline: what a reader looks for, each with a link to its place.

use std::io;

use crate::store::EntryKind;

use super::layout::{Layout, said};
use super::page::Page;
use super::transcript;

/// The most characters of a prompt.
const PROMPT_CHARS: usize = 90;

/// Writes the outline of the main line: prompts, compactions, bookmarks, and
/// the branches that leave it.
pub(super) fn write(page: &mut Page<'_>, layout: &Layout<'_>) -> io::Result<()> {
    // A narrow screen folds the list away by what stands before it: so it can
    // be open on a wide one, without a script.
    page.raw(
        "<nav class=\"outline\" aria-labelledby=\"outline-title\">\n\
         <details class=\"unfold\"><summary>Outline</summary></details>\n\
         <h2 id=\"outline-title\">Outline</h2>\n<ol>\n",
    )?;
    for start in layout.branches(None) {
        branch(page, layout, start)?;
    }
    for at in layout.main_line() {
        item(page, layout, at)?;
        for start in layout.branches(Some(at)) {
            branch(page, layout, start)?;
        }
    }
    page.raw("</ol>\n</nav>\n")
}

fn item(page: &mut Page<'_>, layout: &Layout<'_>, at: usize) -> io::Result<()> {
    let Some(entry) = layout.entry(at) else {
        return Ok(());
    };
    let prompt = said(entry);
    let class = match &entry.kind {
        _ if prompt.is_some() => "<li class=\"prompt\">",
        EntryKind::Compaction { .. } | EntryKind::BranchSummary { .. } => "<li class=\"summary\">",
        _ if layout.label_of(at).is_some() => "<li>",
        _ => return Ok(()),
    };
    page.raw(class)?;
    page.raw("<a href=\"#")?;
    page.anchor(&layout.anchor(at))?;
    page.raw("\">")?;
    if let Some(label) = layout.label_of(at) {
        page.raw("<span class=\"tag\">")?;
        page.text(label)?;
        page.raw("</span> ")?;
    }
    match &entry.kind {
        EntryKind::Compaction { .. } => page.raw("Context compacted")?,
        EntryKind::BranchSummary { .. } => page.raw("Branch left")?,
        _ => match prompt {
            Some(text) => {
                page.raw("<span class=\"clamped\">")?;
                page.preview(text, PROMPT_CHARS)?;
                page.raw("</span>")?;
            }
            None => page.raw("bookmark")?,
        },
    }
    page.raw("</a></li>\n")
}

fn branch(page: &mut Page<'_>, layout: &Layout<'_>, start: usize) -> io::Result<()> {
    page.raw("<li class=\"fork\"><a href=\"#b-")?;
    page.anchor(&layout.anchor(start))?;
    page.raw("\"><span class=\"tag\">Branch</span> ")?;
    transcript::branch_title(page, layout, &layout.line(start))?;
    page.raw("</a></li>\n")
}
