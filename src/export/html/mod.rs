//! A session as one page of HTML that needs nothing else: no network, no
//! script to read it, no style sheet beside it.
//!
//! Whatever a session says is hostile text. Markup comes from literals of this
//! module only ([`page::Page::raw`] takes nothing else); everything else is
//! redacted and escaped on its way out. The page's own policy forbids every
//! load and every script but the one it carries, by their hashes.
//!
//! The page is written as it is made, in time linear in the session: the path
//! to the leaf is the main line, and every other branch stands folded where
//! it leaves its line.

mod calls;
mod card;
mod diff;
mod file;
mod layout;
mod opening;
mod outline;
mod output;
mod page;
mod prose;
mod reply;
mod title;
mod totals;
mod transcript;
mod when;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest;

use crate::secret::Redactor;
use crate::store::SessionTree;

use layout::Layout;
use page::Page;
use totals::Totals;
use transcript::Transcript;

pub use file::save_session_html;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes `tree`, all branches of it, as one page without the secrets that
/// `redactor` knows. The bytes depend on nothing else.
///
/// It writes many small pieces: `out` should be buffered.
///
/// # Errors
/// When `out` cannot be written; part of the page is then in it.
pub fn session_html(
    tree: &SessionTree,
    redactor: &Redactor,
    out: &mut dyn Write,
) -> io::Result<()> {
    let layout = Layout::of(tree);
    let totals = Totals::of(tree, &layout);
    let mut page = Page::new(out, redactor);
    head(&mut page, &totals)?;
    page.raw("<body>\n<a class=\"skip\" href=\"#transcript\">Skip to the transcript</a>\n")?;
    opening::write(&mut page, tree, &layout, &totals)?;
    page.raw("<div class=\"frame\">\n")?;
    outline::write(&mut page, &layout)?;
    page.raw("<main id=\"transcript\" tabindex=\"-1\">\n<h2 class=\"unseen\">Transcript</h2>\n")?;
    opening::toolbar(&mut page, &totals)?;
    Transcript::new(&mut page, &layout).write()?;
    page.raw("</main>\n</div>\n<footer class=\"end\">End of session ")?;
    page.text(&tree.header().id)?;
    page.raw(".</footer>\n<script>")?;
    page.raw(SCRIPT)?;
    page.raw("</script>\n</body>\n</html>\n")
}

fn head(page: &mut Page<'_>, totals: &Totals<'_>) -> io::Result<()> {
    page.raw(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\"",
    )?;
    // Nothing may be loaded, sent or run but what is named here.
    page.attribute(
        "content",
        &format!(
            "default-src 'none'; img-src data:; style-src '{}'; script-src '{}'; \
             base-uri 'none'; form-action 'none'",
            source(STYLE),
            source(SCRIPT)
        ),
    )?;
    page.raw(
        ">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"agent\">\n<title>",
    )?;
    page.preview(totals.title, opening::TITLE_CHARS)?;
    page.raw("</title>\n<style>")?;
    page.raw(STYLE)?;
    page.raw("</style>\n</head>\n")
}

/// How a content security policy names an inline text.
fn source(text: &str) -> String {
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    format!("sha256-{}", STANDARD.encode(hash))
}
