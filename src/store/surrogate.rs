//! Halves of surrogate pairs in JSON texts.
//!
//! Programs that count in UTF-16 may cut a text inside a pair and write the
//! half as an escape. No Rust string can hold it.

use std::borrow::Cow;

/// `line` with the replacement character for each half that stands alone.
pub(crate) fn mend(line: &str) -> Cow<'_, str> {
    if !line.contains(r"\ud") && !line.contains(r"\uD") {
        return Cow::Borrowed(line);
    }
    let mut mended = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        let (len, shown) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
            (Some(0xd800..=0xdfff), _) => (6, Some(r"\ufffd")),
            _ => (2, None),
        };
        let Some((this, after)) = escape.split_at_checked(len) else {
            rest = escape;
            break;
        };
        mended.push_str(shown.unwrap_or(this));
        rest = after;
    }
    mended.push_str(rest);
    Cow::Owned(mended)
}

/// The code unit of the escape with which `text` begins.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(r"\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}
