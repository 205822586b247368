//! A value beside a name that tells what it is: `"password": "…"`,
//! `PGPASSWORD=…`.
//!
//! A name alone tells little: code is full of such names. So a value is hidden
//! only where it is data, in quotes or right behind the `=` of a variable in
//! capitals, and only when it looks like no word, path or placeholder. Behind
//! other names without quotes it has to be longer than anything in code.

use super::shape::{Inside, Verdict, open_if, run, run_of};

/// What the values of a name look like.
#[derive(Clone, Copy)]
enum Looks {
    /// What people choose: short, with a digit.
    Password,
    /// What machines make.
    Key,
}

use Looks::{Key, Password};

/// The ends of names.
const NAMES: &[(&str, Looks)] = &[
    ("password", Password),
    ("Password", Password),
    ("PASSWORD", Password),
    ("passwd", Password),
    ("Passwd", Password),
    ("PASSWD", Password),
    ("passphrase", Password),
    ("Passphrase", Password),
    ("PASSPHRASE", Password),
    ("MYSQL_PWD", Password),
    ("secret", Key),
    ("Secret", Key),
    ("SECRET", Key),
    ("secret_key", Key),
    ("secretKey", Key),
    ("SecretKey", Key),
    ("SECRET_KEY", Key),
    ("access_key", Key),
    ("accessKey", Key),
    ("AccessKey", Key),
    ("ACCESS_KEY", Key),
    ("account_key", Key),
    ("accountKey", Key),
    ("ACCOUNT_KEY", Key),
    ("private_key", Key),
    ("privateKey", Key),
    ("PRIVATE_KEY", Key),
    ("api_key", Key),
    ("apiKey", Key),
    ("apikey", Key),
    ("ApiKey", Key),
    ("API_KEY", Key),
    ("api-key", Key),
    ("Api-Key", Key),
    ("api_token", Key),
    ("apiToken", Key),
    ("API_TOKEN", Key),
    ("access_token", Key),
    ("accessToken", Key),
    ("AccessToken", Key),
    ("auth_token", Key),
    ("authToken", Key),
    ("AuthToken", Key),
    ("refresh_token", Key),
    ("refreshToken", Key),
    ("RefreshToken", Key),
    ("_TOKEN", Key),
];

/// How much of a value is looked at.
const CHARS_MAX: usize = 256;
const PASSWORD_CHARS_MIN: usize = 8;
const KEY_CHARS_MIN: usize = 16;
/// The most blanks on a side of the separator, and backslashes of a quote.
const GAP_MAX: usize = 8;
/// What a value that no quote ends is not followed by: it would be code.
const CODE: &[u8] = b"([{<$`";

/// The bytes of letters beyond ASCII whose alphabets put blanks between words. Of
/// others whole sentences would look like one value.
const LETTERS_START: u8 = 0x80;
const LETTERS_COUNT: usize = 0x60;

/// Where a value stands.
struct Place {
    /// The characters of a value beside ASCII letters and digits. Those of
    /// placeholders and of code, as `{` and `(`, are in none; where `$` is, what
    /// follows it decides.
    joints: &'static [u8],
    chars_min: usize,
    /// Whether a value may be followed by this.
    ends: fn(u8) -> bool,
}

const QUOTED: Place = Place {
    joints: &and_letters::<{ 19 + LETTERS_COUNT }>(b"-._~!@#%^&*+=?/|;,$"),
    chars_min: 0,
    ends: |next| b"\"'`\\".contains(&next),
};

/// Right behind the `=` of a variable in capitals.
const VARIABLE: Place = Place {
    joints: &and_letters::<{ 12 + LETTERS_COUNT }>(b"-._~!@%^+=/$"),
    chars_min: 0,
    ends: |next| !CODE.contains(&next),
};

/// Behind any name, without quotes: longer than the names in code.
const BARE: Place = Place {
    joints: b"+/=",
    chars_min: 32,
    ends: |next| !CODE.contains(&next) && !b"._-:".contains(&next),
};

/// These bytes and those of the letters.
const fn and_letters<const N: usize>(ascii: &[u8]) -> [u8; N] {
    assert!(N == ascii.len() + LETTERS_COUNT, "all of them fit");
    let mut all = [LETTERS_START; N];
    let mut index = 0;
    while index < N {
        match index.checked_sub(ascii.len()) {
            None => all[index] = ascii[index],
            Some(letter) => all[index] += letter as u8,
        }
        index += 1;
    }
    all
}

/// The beginnings of what is looked at here.
pub(super) fn beginnings() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

/// Whether a field of a document with this name has a secret for its value.
pub(super) fn hides(name: &str, value: &str) -> bool {
    let value = value.as_bytes();
    run(value, QUOTED.joints) == value.len()
        && NAMES
            .iter()
            .any(|(end, looks)| name.ends_with(end) && looks.fit(value))
}

/// Whether the end of a name and its value begin at the start of `text`.
pub(super) fn at(text: &[u8]) -> Verdict {
    let mut open = false;
    for (name, looks) in NAMES {
        let verdict = match text.strip_prefix(name.as_bytes()) {
            Some(rest) => value_behind(name, *looks, rest).unwrap_or_else(|other| other),
            None => open_if(name.as_bytes().starts_with(text)),
        };
        match verdict {
            Verdict::Yes(_) | Verdict::Likely(_) => return verdict,
            Verdict::Open => open = true,
            Verdict::No => {}
        }
    }
    open_if(open)
}

/// The verdict about the value behind a name; as an error when what stands
/// between them tells already.
fn value_behind(name: &str, looks: Looks, rest: &[u8]) -> Result<Verdict, Verdict> {
    let closing = quote(rest, 0)?;
    let blanks_before = skip(rest, closing, b" \t")?;
    let separator = separator(rest, blanks_before)?;
    let blanks_after = skip(rest, separator, b" \t")?;
    let opening = quote(rest, blanks_after)?;
    let is_tight = blanks_before == 0 && separator == 1 && blanks_after == 1;
    let is_variable = !name.contains(|symbol: char| symbol.is_ascii_lowercase());
    let place = match looks {
        _ if opening > blanks_after => QUOTED,
        _ if closing > 0 => return Err(Verdict::No),
        _ if is_tight && is_variable && rest.starts_with(b"=") => VARIABLE,
        Key => BARE,
        Password => return Err(Verdict::No),
    };
    let value = rest.get(opening..).unwrap_or_default();
    let count = run(value, place.joints).min(CHARS_MAX);
    let fits = count >= place.chars_min && looks.fit(value.get(..count).unwrap_or_default());
    let joints = place.joints;
    let left = u8::try_from(name.len() + opening - 1).unwrap_or(u8::MAX);
    let label = Inside::Label { left, joints };
    Ok(match value.get(count) {
        None if count < CHARS_MAX && fits => Verdict::Likely(label),
        None if count < CHARS_MAX => Verdict::Open,
        Some(next) if count < CHARS_MAX && !(place.ends)(*next) => Verdict::No,
        Some(_) | None if fits => Verdict::Yes(label),
        Some(_) | None => Verdict::No,
    })
}

/// The place behind the quote at `at`, if there is one, with its backslashes.
fn quote(text: &[u8], at: usize) -> Result<usize, Verdict> {
    let mark = skip(text, at, b"\\")?;
    match text.get(mark) {
        Some(b'"' | b'\'' | b'`') => Ok(mark + 1),
        _ if mark > at => Err(Verdict::No),
        _ => Ok(at),
    }
}

/// The place behind the separator at `at`.
fn separator(text: &[u8], at: usize) -> Result<usize, Verdict> {
    match text.get(at..).unwrap_or_default() {
        [] | [b':' | b'='] => Err(Verdict::Open),
        [b':', b'=', ..] | [b'=', b'>', ..] => Ok(at + 2),
        [b':' | b'=', ..] => Ok(at + 1),
        _ => Err(Verdict::No),
    }
}

/// The place behind those of `bytes` that stand at `at`. More text must tell
/// when nothing else stands behind them.
fn skip(text: &[u8], at: usize, bytes: &[u8]) -> Result<usize, Verdict> {
    let rest = text.get(at..).unwrap_or_default();
    let count = run_of(rest, |byte| bytes.contains(&byte));
    match count {
        _ if count > GAP_MAX => Err(Verdict::No),
        _ if count == rest.len() => Err(Verdict::Open),
        _ => Ok(at + count),
    }
}

impl Looks {
    fn fit(self, value: &[u8]) -> bool {
        let value = value.get(..CHARS_MAX).unwrap_or(value);
        let has = |is: fn(&u8) -> bool| value.iter().any(is);
        let is_place = matches!(value, [b'/' | b'.' | b'~' | b'$', ..]);
        if is_place || names_variable(value) || !has(u8::is_ascii_digit) {
            return false;
        }
        match self {
            Password => {
                let chars = String::from_utf8_lossy(value).chars().count();
                let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
                chars >= PASSWORD_CHARS_MIN && has(is_letter)
            }
            Key => {
                let cases = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
                let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
                value.len() >= KEY_CHARS_MIN && (cases || digits >= 3 && !value.contains(&b'/'))
            }
        }
    }
}

/// Whether a variable stands in the value, as `$NAME`. Of two `$` neither begins one.
fn names_variable(value: &[u8]) -> bool {
    let mut rest = value;
    while let [first, others @ ..] = rest {
        rest = match (first, others) {
            (b'$', [b'$', behind @ ..]) => behind,
            (b'$', [next, ..]) if next.is_ascii_alphabetic() || *next == b'_' => return true,
            _ => others,
        };
    }
    false
}
