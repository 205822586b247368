//! Markdown of the model, as a safe part of HTML: no raw markup, no image that
//! would be loaded, no link but to the web or to mail.

use std::borrow::Cow;
use std::io;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::output;
use super::page::Page;

/// A longer text is shown as it is.
const BYTES_MAX: usize = 512 * 1024;
/// Blocks and spans that are deeper than this stand in the one around them:
/// browsers give up on a deep tree.
const DEPTH_MAX: usize = 32;
/// Where a link may lead.
const SCHEMES: &[&str] = &["http", "https", "mailto"];

/// Writes `text` as blocks.
pub(super) fn write(page: &mut Page<'_>, text: &str) -> io::Result<()> {
    if text.len() > BYTES_MAX {
        return output::plain(page, text);
    }
    // Whole, because the parser hands it on in pieces.
    let clean = page.redact(text).into_owned();
    if shows_more(page, &clean) {
        return output::plain(page, &clean);
    }
    let mut prose = Prose {
        page,
        ends: Vec::new(),
        columns: Vec::new(),
        column: 0,
        in_head: false,
    };
    for event in Parser::new_ext(&clean, options()) {
        prose.event(event)?;
    }
    Ok(())
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Whether a secret shows once marks and entities are gone.
fn shows_more(page: &Page<'_>, text: &str) -> bool {
    let mut visible = String::with_capacity(text.len());
    for event in Parser::new_ext(text, options()) {
        match event {
            Event::Text(text) | Event::Code(text) => visible.push_str(&text),
            Event::Start(_)
            | Event::End(
                TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link,
            ) => {}
            _ => visible.push_str(" | "),
        }
    }
    matches!(page.redact(&visible), Cow::Owned(_))
}

struct Prose<'p, 'a> {
    page: &'p mut Page<'a>,
    /// What ends each open element.
    ends: Vec<End>,
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
}

/// What ends an element.
enum End {
    Markup(&'static str),
    /// The target of a link that may not be one.
    Target(String),
}

impl Prose<'_, '_> {
    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.page.text(&text),
            Event::Code(code) => {
                self.page.raw("<code>")?;
                self.page.text(&code)?;
                self.page.raw("</code>")
            }
            Event::SoftBreak => self.page.raw("\n"),
            Event::HardBreak => self.page.raw("<br>\n"),
            Event::Rule => self.page.raw("<hr>\n"),
            Event::TaskListMarker(done) => self.page.raw(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) -> io::Result<()> {
        if self.ends.len() >= DEPTH_MAX {
            self.ends.push(End::Markup(""));
            return Ok(());
        }
        let end = match tag {
            Tag::CodeBlock(kind) => self.code_block(&kind)?,
            Tag::List(Some(first)) => {
                self.page.raw("<ol")?;
                if first != 1 {
                    self.page.attribute("start", &first.to_string())?;
                }
                self.opened(">\n", "</ol>\n")?
            }
            Tag::Table(columns) => {
                self.columns = columns;
                self.opened("<div class=\"table\"><table>\n", "</tbody></table></div>\n")?
            }
            Tag::TableHead => {
                self.in_head = true;
                self.column = 0;
                self.opened("<thead><tr>", "</tr></thead>\n<tbody>\n")?
            }
            Tag::TableRow => {
                self.column = 0;
                self.opened("<tr>", "</tr>\n")?
            }
            Tag::TableCell => self.cell()?,
            Tag::Link { dest_url, .. } => self.link(&dest_url)?,
            Tag::Image { dest_url, .. } => {
                self.page.raw("<span class=\"elsewhere\">image: ")?;
                End::Target(dest_url.into_string())
            }
            other => {
                let (start, end) = plain_element(&other);
                self.opened(start, end)?
            }
        };
        self.ends.push(end);
        Ok(())
    }

    fn opened(&mut self, start: &'static str, end: &'static str) -> io::Result<End> {
        self.page.raw(start)?;
        Ok(End::Markup(end))
    }

    fn end(&mut self, end: TagEnd) -> io::Result<()> {
        if matches!(end, TagEnd::TableHead) {
            self.in_head = false;
        }
        match self.ends.pop() {
            None => Ok(()),
            Some(End::Markup(markup)) => self.page.raw(markup),
            Some(End::Target(target)) => {
                self.page.raw(" ⟨")?;
                self.page.text(&target)?;
                self.page.raw("⟩</span>")
            }
        }
    }

    fn code_block(&mut self, kind: &CodeBlockKind<'_>) -> io::Result<End> {
        self.page.raw("<pre")?;
        if let CodeBlockKind::Fenced(info) = kind
            && let Some(language) = info.split_whitespace().next()
        {
            self.page.attribute("data-language", language)?;
        }
        self.opened(" tabindex=\"0\"><code>", "</code></pre>\n")
    }

    fn cell(&mut self) -> io::Result<End> {
        let column = self.columns.get(self.column);
        let to_the_right = matches!(column, Some(Alignment::Right));
        let centred = matches!(column, Some(Alignment::Center));
        self.column += 1;
        match (self.in_head, to_the_right, centred) {
            (true, true, _) => self.opened("<th class=\"right\">", "</th>"),
            (true, _, true) => self.opened("<th class=\"middle\">", "</th>"),
            (true, ..) => self.opened("<th>", "</th>"),
            (false, true, _) => self.opened("<td class=\"right\">", "</td>"),
            (false, _, true) => self.opened("<td class=\"middle\">", "</td>"),
            (false, ..) => self.opened("<td>", "</td>"),
        }
    }

    /// A link that leads nowhere else than it may, or its text and target.
    fn link(&mut self, target: &str) -> io::Result<End> {
        if !may_lead_to(target) {
            self.page.raw("<span class=\"elsewhere\">")?;
            return Ok(End::Target(target.to_owned()));
        }
        self.page.raw("<a rel=\"noopener noreferrer nofollow\"")?;
        self.page.attribute("href", target)?;
        self.page.attribute("title", target)?;
        self.opened(">", "</a>")
    }
}

/// The markup of elements without attributes.
fn plain_element(tag: &Tag<'_>) -> (&'static str, &'static str) {
    match tag {
        Tag::Paragraph => ("<p>", "</p>\n"),
        // The page's own headings are the first three levels.
        Tag::Heading { level, .. } => match level {
            HeadingLevel::H1 | HeadingLevel::H2 => ("<h4>", "</h4>\n"),
            _ => ("<h5>", "</h5>\n"),
        },
        Tag::BlockQuote(_) => ("<blockquote>\n", "</blockquote>\n"),
        Tag::HtmlBlock => ("<p class=\"markup\">", "</p>\n"),
        Tag::List(_) => ("<ul>\n", "</ul>\n"),
        Tag::Item => ("<li>", "</li>\n"),
        Tag::Emphasis => ("<em>", "</em>"),
        Tag::Strong => ("<strong>", "</strong>"),
        Tag::Strikethrough => ("<del>", "</del>"),
        // What is not switched on, or written elsewhere.
        _ => ("", ""),
    }
}

/// Whether a browser that opens `target` can only go to the web or to mail.
fn may_lead_to(target: &str) -> bool {
    let Some((scheme, rest)) = target.split_once(':') else {
        return false;
    };
    let scheme = scheme.to_ascii_lowercase();
    !rest.is_empty() && SCHEMES.contains(&scheme.as_str())
}
