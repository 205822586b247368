//! Blocks of what was said or printed, shown as they are: text, images, JSON.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

use crate::message::{Content, Image};

use super::page::Page;

/// Longer texts scroll, and can be reached with the keyboard.
const LINES_MAX: usize = 24;
/// A line may wrap; so many characters are about as high as that many lines.
const CHARS_MAX: usize = 2_000;
/// The kinds of images that every browser shows and that hold no markup.
const IMAGES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
];

/// Writes blocks in their order.
pub(super) fn content(page: &mut Page<'_>, blocks: &[Content]) -> io::Result<()> {
    for block in blocks {
        match block {
            Content::Text(text) => printed(page, &text.text)?,
            Content::Image(picture) => image(page, picture)?,
            Content::Thinking(_) | Content::ToolCall(_) => json(page, block)?,
        }
    }
    Ok(())
}

/// Writes what a person wrote, with its line breaks.
pub(super) fn plain(page: &mut Page<'_>, text: &str) -> io::Result<()> {
    page.raw(if is_long(text) {
        "<div class=\"plain long\" tabindex=\"0\">"
    } else {
        "<div class=\"plain\">"
    })?;
    page.text(text.trim_matches('\n'))?;
    page.raw("</div>\n")
}

/// Writes what a program printed.
pub(super) fn printed(page: &mut Page<'_>, text: &str) -> io::Result<()> {
    let text = text.trim_end();
    if text.is_empty() {
        return page.raw("<p class=\"empty\">nothing</p>\n");
    }
    open(page, text)?;
    // A browser drops a line feed that stands first.
    if text.starts_with('\n') {
        page.raw("\n")?;
    }
    page.text(text)?;
    page.raw("</pre>\n")
}

fn open(page: &mut Page<'_>, text: &str) -> io::Result<()> {
    page.raw(if is_long(text) {
        "<pre class=\"long\" tabindex=\"0\">"
    } else {
        "<pre>"
    })
}

/// Whether a text is higher than what is shown of it at once.
pub(super) fn is_long(text: &str) -> bool {
    text.len() > CHARS_MAX || text.lines().nth(LINES_MAX).is_some()
}

/// Writes a value as JSON.
pub(super) fn json<T: Serialize>(page: &mut Page<'_>, value: &T) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    printed(page, &text)
}

/// Writes a value as JSON behind a title.
pub(super) fn folded_json(
    page: &mut Page<'_>,
    title: &'static str,
    value: &Value,
) -> io::Result<()> {
    page.raw("<details class=\"fold\"><summary>")?;
    page.raw(title)?;
    page.raw("</summary>\n")?;
    json(page, value)?;
    page.raw("</details>\n")
}

/// Writes an image into the page, if it is one.
pub(super) fn image(page: &mut Page<'_>, image: &Image) -> io::Result<()> {
    let data = page.redact(&image.data);
    let kind = IMAGES.iter().find(|kind| **kind == image.mime_type);
    let (Some(kind), Ok(bytes)) = (kind, STANDARD.decode(data.as_bytes())) else {
        page.raw("<p class=\"fault\">An image of type <code>")?;
        page.text(&image.mime_type)?;
        return page.raw("</code>, which cannot be shown</p>\n");
    };
    page.raw("<figure><img loading=\"lazy\" decoding=\"async\" alt=\"An image of the session\" src=\"data:")?;
    page.raw(kind)?;
    page.raw(";base64,")?;
    page.text(&data)?;
    page.raw("\"><figcaption>")?;
    page.raw(kind)?;
    page.raw(", ")?;
    page.count(bytes.len() as u64, "byte", "bytes")?;
    page.raw("</figcaption></figure>\n")
}
