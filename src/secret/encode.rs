//! The encodings in which programs print a secret value.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Gives every form of `value` to `found`, repeated ones too.
pub(super) fn forms(value: &str, found: &mut impl FnMut(String)) {
    found(value.to_owned());
    if value.contains('\n') {
        for line in value.lines() {
            plain_and_escaped(line.trim(), found);
        }
    }
    plain_and_escaped(value, found);
    for upper in [true, false] {
        found(hex(value, upper));
        for (kept, space) in [("-_.~", "%20"), ("-_.!~*'()", "%20"), ("-_.*", "+")] {
            found(percent(value, kept, space, upper));
        }
    }
    for offset in 0..3 {
        base64(value, offset, found);
    }
}

/// The value as text formats and shells write it.
fn plain_and_escaped(value: &str, found: &mut impl FnMut(String)) {
    found(value.to_owned());
    let once = json(value);
    let ascii = json_ascii(&once);
    found(json(&once));
    found(json(&ascii));
    found(once.replace('/', "\\/"));
    found(once);
    found(ascii);
    found(value.replace('\'', r"'\''"));
    let markup = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    found(markup.replace('"', "&quot;").replace('\'', "&#39;"));
    found(markup);
}

/// The inside of a JSON string.
fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(&quoted)
        .to_owned()
}

/// The same with every character outside ASCII as `\uXXXX`.
fn json_ascii(escaped: &str) -> String {
    let mut text = String::with_capacity(escaped.len());
    let mut units = [0; 2];
    for symbol in escaped.chars() {
        if symbol.is_ascii() {
            text.push(symbol);
        } else {
            for unit in symbol.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

fn hex(value: &str, upper: bool) -> String {
    value.bytes().map(|byte| hex_byte(byte, upper)).collect()
}

fn hex_byte(byte: u8, upper: bool) -> String {
    if upper {
        format!("{byte:02X}")
    } else {
        format!("{byte:02x}")
    }
}

fn percent(value: &str, kept: &str, space: &str, upper: bool) -> String {
    let mut text = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            text.push(char::from(byte));
        } else if byte == b' ' {
            text.push_str(space);
        } else {
            text.push('%');
            text.push_str(&hex_byte(byte, upper));
        }
    }
    text
}

/// The value inside a longer base64 text, `offset` bytes after a border of
/// three. Characters that also hold bits of the neighbours are left out.
fn base64(value: &str, offset: usize, found: &mut impl FnMut(String)) {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(value.as_bytes());
    let first = [0, 2, 3].get(offset).copied().unwrap_or(0);
    let shared = usize::from(!bytes.len().is_multiple_of(3));
    for text in [
        STANDARD_NO_PAD.encode(&bytes),
        URL_SAFE_NO_PAD.encode(&bytes),
    ] {
        let last = text.len().saturating_sub(shared);
        if let Some(stable) = text.get(first..last) {
            found(stable.to_owned());
            found(stable.replace('/', "\\/"));
        }
    }
}
