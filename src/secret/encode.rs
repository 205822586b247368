//! The encodings in which programs print a secret value.

use super::base64;

/// Gives every form of `value` to `found`, repeated ones too.
pub(super) fn forms(value: &str, found: &mut impl FnMut(String)) {
    // A text inside a line of JSON shows as JSON escapes it.
    let mut found = |form: String| {
        let quoted = json(&form);
        if quoted != form {
            found(quoted);
        }
        found(form);
    };
    let plain = value.replace("\r\n", "\n");
    every(&plain, &mut found);
    base64::wrapped(&plain, &mut found);
    if plain.contains('\n') {
        every(&plain.replace('\n', "\r\n"), &mut found);
    }
    // A key that was put into one line has these for its line breaks.
    let unfolded = plain.replace("\\n", "\n");
    if unfolded.contains('\n') {
        for line in unfolded.lines().map(str::trim) {
            // The border of a key says nothing of it.
            if !line.starts_with("-----") {
                every(line, &mut found);
            }
        }
    }
}

fn every(value: &str, found: &mut impl FnMut(String)) {
    found(value.to_owned());
    found(value.chars().rev().collect());
    strings(value, found);
    shells(value, found);
    markups(value, found);
    for upper in [true, false] {
        found(hex(value.as_bytes(), upper));
        percents(value, upper, found);
        found(units(value, |_| true, upper));
    }
    base64::plain(value.as_bytes(), found);
    // UTF-16, as a shell of Windows wants its commands, and as it shows in UTF-8.
    let wide: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
    base64::plain(&wide, found);
    let spaced: Vec<String> = value.chars().map(String::from).collect();
    found(spaced.join("\0"));
}

/// The value inside the string literals of JSON and of programs.
fn strings(value: &str, found: &mut impl FnMut(String)) {
    let once = json(value);
    found(once.replace('/', "\\/"));
    for upper in [true, false] {
        let ascii = units(&once, |symbol| !symbol.is_ascii(), upper);
        found(ascii.replace('/', "\\/"));
        found(ascii);
        // Encoders that think of web pages write these so too.
        for marks in ["<>&", "<>&'=", "<>&'+`"] {
            found(units(&once, |symbol| marks.contains(symbol), upper));
            let marked = |symbol: char| marks.contains(symbol) || !symbol.is_ascii();
            found(units(&once, marked, upper));
        }
    }
    found(once.replace('\'', "\\'"));
    found(value.replace('\\', r"\\").replace('\'', r"\'"));
    found(once);
}

/// The value in quotes of a shell, of SQL, of YAML, or with backslashes.
fn shells(value: &str, found: &mut impl FnMut(String)) {
    found(value.replace('\'', r"'\''"));
    found(value.replace('\'', r#"'"'"'"#));
    found(value.replace('\'', "''"));
    found(value.replace('"', "\"\""));
    found(escaped(value, |symbol| "\"$`\\".contains(symbol)));
    found(escaped(value, |symbol| "\"$`\\!".contains(symbol)));
    let special = |symbol: char| symbol.is_ascii() && !symbol.is_ascii_alphanumeric();
    found(escaped(value, special));
    for plain in ["_", "-_./", "%+,-./:=@_", "%+-./:=@_"] {
        found(escaped(value, |symbol| {
            special(symbol) && !plain.contains(symbol)
        }));
    }
}

fn escaped(value: &str, special: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(value.len() + 8);
    for symbol in value.chars() {
        if special(symbol) {
            text.push('\\');
        }
        text.push(symbol);
    }
    text
}

/// The value in HTML and XML.
fn markups(value: &str, found: &mut impl FnMut(String)) {
    let markup = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    for (double, single) in [
        ("&quot;", "'"),
        ("&quot;", "&#39;"),
        ("&quot;", "&#x27;"),
        ("&quot;", "&#039;"),
        ("&quot;", "&apos;"),
        ("&#34;", "&#39;"),
        ("\"", "'"),
    ] {
        let quoted = markup.replace('"', double).replace('\'', single);
        found(quoted.replace('/', "&#x2F;"));
        found(quoted);
    }
    found(entities(value, |symbol| {
        format!("&#{};", u32::from(symbol))
    }));
    found(entities(value, |symbol| {
        format!("&#x{:x};", u32::from(symbol))
    }));
    found(entities(value, |symbol| {
        format!("&#x{:X};", u32::from(symbol))
    }));
}

fn entities(value: &str, entity: impl Fn(char) -> String) -> String {
    value.chars().map(entity).collect()
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

/// The text with `\uXXXX` for the characters that are `chosen`.
fn units(text: &str, chosen: impl Fn(char) -> bool, upper: bool) -> String {
    let mut changed = String::with_capacity(text.len());
    for symbol in text.chars() {
        if !chosen(symbol) {
            changed.push(symbol);
            continue;
        }
        for unit in symbol.encode_utf16(&mut [0; 2]) {
            changed.push_str("\\u");
            changed.push_str(&hex(&unit.to_be_bytes(), upper));
        }
    }
    changed
}

fn hex(bytes: &[u8], upper: bool) -> String {
    let digits = match upper {
        true => b"0123456789ABCDEF",
        false => b"0123456789abcdef",
    };
    let digit = |at: u8| digits.get(usize::from(at)).copied().map_or('0', char::from);
    let pairs = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    pairs.map(digit).collect()
}

/// The value in URLs and forms: encoders differ in what they leave alone.
fn percents(value: &str, upper: bool, found: &mut impl FnMut(String)) {
    for (kept, space) in [
        ("-_.~", "%20"),
        ("-_.~", "+"),
        ("-_.!~*'()", "%20"),
        ("-_.*", "+"),
        ("-_.~/", "%20"),
        ("-_.~!$&'()*+,", "%20"),
        ("-_.~!$&'()*+,;=:@/", "%20"),
        ("-_.!~*'();/?:@&=+$,#", "%20"),
    ] {
        found(percent(value, upper, |byte| match byte {
            b' ' => Some(space),
            _ if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => Some(""),
            _ => None,
        }));
    }
    found(percent(value, upper, |_| None));
}

/// Every byte encoded for which `plain` has nothing; an empty text stands for
/// the byte itself.
fn percent(value: &str, upper: bool, plain: impl Fn(u8) -> Option<&'static str>) -> String {
    let mut text = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        match plain(byte) {
            Some("") => text.push(char::from(byte)),
            Some(other) => text.push_str(other),
            None => {
                text.push('%');
                text.push_str(&hex(&[byte], upper));
            }
        }
    }
    text
}
