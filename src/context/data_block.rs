//! Text from elsewhere between two tags that it cannot contain.

use std::borrow::Cow;

use crate::message::is_unseen;

/// `content` as an element named `tag`, on lines of its own. The tag gets a
/// number when the content has the tag itself, so that no content can end its
/// own block; the same content always gives the same block.
pub fn data_block(tag: &str, attributes: &[(&str, &str)], content: &str) -> String {
    let tag = free_tag(tag, content);
    let mut text = format!("<{tag}");
    for (name, value) in attributes {
        text.push_str(&format!(" {name}=\"{}\"", escaped(value)));
    }
    text.push_str(">\n");
    text.push_str(content);
    if !content.is_empty() && !content.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("</{tag}>"));
    text
}

/// `tag`, or the first `tag-2`, `tag-3`, … whose end does not stand in `content`,
/// nor anything that a reader would take for it.
fn free_tag<'t>(tag: &'t str, content: &str) -> Cow<'t, str> {
    let content: String = content
        .chars()
        .filter(|c| !c.is_whitespace() && !is_unseen(*c))
        .flat_map(char::to_lowercase)
        .collect();
    let stands = |tag: &str| content.contains(&format!("</{tag}"));
    if !stands(tag) {
        return Cow::Borrowed(tag);
    }
    let mut number = 2_u32;
    while stands(&format!("{tag}-{number}")) {
        number += 1;
    }
    Cow::Owned(format!("{tag}-{number}"))
}

/// A value that stays within its quotes and on its line.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => text.push_str("&amp;"),
            '"' => text.push_str("&quot;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            c if c.is_control() => text.push(char::REPLACEMENT_CHARACTER),
            c => text.push(c),
        }
    }
    text
}
