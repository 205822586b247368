//! The shapes of well-known tokens, recognised without knowing their values.
//!
//! Each decision looks at a bounded piece of text, so that a stream never has
//! to hold back more than a few hundred bytes.

use super::field;
use super::separator::{goes_on, is_hidden};
use super::shapes::SHAPES;

/// A kind of token: a fixed beginning and enough characters of its alphabet.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    start: &'static str,
    /// How many characters must follow the beginning.
    chars_min: usize,
    /// Which characters may follow beside letters and digits.
    joints: &'static [u8],
    /// What the characters that must follow look like.
    body: Body,
    before: Before,
    role: Role,
}

/// What the characters of a token look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// No matter how.
    Any,
    /// There is a digit among them, which most words lack.
    Mixed,
    /// There is a digit, or an upper-case letter behind a lower-case one.
    Coded,
    /// Digits of base 16, in lower case.
    Hex,
    /// Upper-case letters and digits.
    Upper,
}

/// What stands before a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Whatever.
    Anything,
    /// Neither a letter nor a digit: it would be part of another word.
    Border,
    /// A number.
    Number,
}

/// What the beginning is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A part of the token.
    Part,
    /// A label that stays.
    Label,
}

/// A token whose beginning is in no other word.
pub(super) const fn token(start: &'static str, chars_min: usize, joints: &'static [u8]) -> Shape {
    Shape {
        start,
        chars_min,
        joints,
        body: Body::Any,
        before: Before::Anything,
        role: Role::Part,
    }
}

/// A token whose beginning may end another word.
pub(super) const fn word(start: &'static str, chars_min: usize, joints: &'static [u8]) -> Shape {
    let before = Before::Border;
    Shape {
        before,
        ..token(start, chars_min, joints)
    }
}

/// A credential behind a label, perhaps with quotes and blanks between them.
pub(super) const fn label(start: &'static str, chars_min: usize, joints: &'static [u8]) -> Shape {
    let role = Role::Label;
    Shape {
        role,
        ..word(start, chars_min, joints)
    }
}

/// The beginning of a JSON Web Token: `{"` in base64.
const JWT: &str = "eyJ";
/// The most characters of a token's header: more is something else.
const JWT_HEADER_MAX: usize = 512;
/// The least characters of its header and of its payload.
const JWT_PART_MIN: usize = 10;

const PEM: &str = "-----BEGIN ";
/// The most bytes between `BEGIN` and the key itself.
const PEM_HEAD_MAX: usize = 80;
/// The least characters of a key that follow its first line.
const PEM_BODY_MIN: usize = 16;
/// What a login in a URL begins with; it ends with `@`.
const LOGIN: &str = "://";
/// The characters of a login beside letters and digits. Those of placeholders,
/// as `$` and `{`, are none.
const LOGIN_JOINTS: &[u8] = b"-._~!&*+,;=:%^|";
/// The most characters of a login.
const LOGIN_CHARS_MAX: usize = 256;
/// A shorter password may be an example's.
const PASSWORD_CHARS_MIN: usize = 8;
/// A shorter login that is one word may be a name.
const LOGIN_CHARS_MIN: usize = 20;
/// What may stand between a label and its credential, and how much of it.
const GAP: &[u8] = b" \t\"'=:";
const GAP_MAX: usize = 8;

/// The most bytes of a private key; a 16,384-bit one has 13,000.
const PEM_BYTES_MAX: u32 = 16 * 1024;
/// More backslashes than that are not an escaped line break.
const BACKSLASHES_MAX: usize = 8;

/// An answer that more text may be needed for.
pub(super) enum Verdict {
    /// A token covers the character, and this goes on.
    Yes(Inside),
    /// It depends on what follows; when nothing does, none covers it.
    Open,
    /// It depends on what follows; when nothing does, a token covers it.
    Likely(Inside),
    /// No token does.
    No,
}

/// The token that covers the text at some place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// A label that stays, with how much of it is left; then a run.
    Label { left: u8, joints: &'static [u8] },
    /// The beginning of a token, in the same way.
    Start { left: u8, joints: &'static [u8] },
    /// A run of letters, digits and these.
    Run(&'static [u8]),
    /// A private key, with the bytes it may still have, and how much of
    /// `-----END` was just seen.
    Pem { left: u32, seen: u8 },
    /// The last line of a private key.
    PemEnd,
}

/// The beginnings of all tokens.
pub(super) fn beginnings() -> impl Iterator<Item = &'static str> {
    SHAPES
        .iter()
        .map(|shape| shape.start)
        .chain([JWT, PEM, LOGIN])
        .chain(field::beginnings())
}

/// The beginnings of the tokens that [`Shape::alone`] knows.
pub(super) fn beginnings_alone() -> impl Iterator<Item = &'static str> {
    let parts = SHAPES.iter().filter(|shape| shape.role == Role::Part);
    parts.map(|shape| shape.start).chain([JWT])
}

/// Whether `text` begins like a token that may stand inside of a word.
pub(super) fn begins_anywhere(text: &[u8]) -> bool {
    let anywhere = |shape: &&Shape| shape.role == Role::Part && shape.before == Before::Anything;
    let mut shapes = SHAPES.iter().filter(anywhere);
    shapes.any(|shape| text.starts_with(shape.start.as_bytes()))
}

impl Shape {
    /// A token behind a number, which stays.
    pub(super) const fn number(
        start: &'static str,
        chars_min: usize,
        joints: &'static [u8],
    ) -> Self {
        let before = Before::Number;
        Self {
            before,
            ..token(start, chars_min, joints)
        }
    }

    /// The same with characters that look so.
    pub(super) const fn of(self, body: Body) -> Self {
        Self { body, ..self }
    }

    /// Whether a token begins at the start of `text`, which `before` precedes.
    pub(super) fn at(text: &[u8], before: [u8; 2]) -> Verdict {
        let known = Self::known(text, before, |_| true);
        let other = match text.first() {
            _ if matches!(known, Verdict::Yes(_)) => return known,
            Some(b'e') if !is_word(before) => jwt(text),
            Some(b'-') => pem(text),
            Some(b':') => login(text),
            _ => field::at(text),
        };
        match other {
            Verdict::No => known,
            other => other,
        }
    }

    /// The same of a token that nothing but its own characters gives away.
    pub(super) fn alone(text: &[u8], before: [u8; 2]) -> Verdict {
        let known = Self::known(text, before, |shape| shape.role == Role::Part);
        match known {
            Verdict::No if text.starts_with(b"e") && !is_word(before) => jwt(text),
            known => known,
        }
    }

    /// Whether one of the `wanted` shapes begins here.
    fn known(text: &[u8], before: [u8; 2], wanted: impl Fn(&Self) -> bool) -> Verdict {
        let in_word = is_word(before);
        let mut open = false;
        for shape in SHAPES
            .iter()
            .filter(|shape| shape.start.as_bytes().first() == text.first() && wanted(shape))
        {
            let fits = match shape.before {
                Before::Anything => true,
                Before::Border => !in_word,
                Before::Number => before.iter().all(u8::is_ascii_digit),
            };
            match shape.begins(text) {
                Verdict::Yes(inside) if fits => return Verdict::Yes(inside),
                Verdict::Open if fits => open = true,
                Verdict::Yes(_) | Verdict::Likely(_) | Verdict::Open | Verdict::No => {}
            }
        }
        open_if(open)
    }

    fn begins(&self, text: &[u8]) -> Verdict {
        let Some(rest) = text.strip_prefix(self.start.as_bytes()) else {
            return open_if(self.start.as_bytes().starts_with(text));
        };
        let gap = match self.role {
            Role::Label => label_gap(rest),
            Role::Part => 0,
        };
        let body = rest.get(gap..).unwrap_or_default();
        let count = run(body, self.joints);
        let needed = body.get(..count.min(self.chars_min)).unwrap_or_default();
        if gap > GAP_MAX || !self.may_be(needed) {
            return Verdict::No;
        }
        if count < self.chars_min {
            return open_if(count == body.len());
        }
        let joints = self.joints;
        let left = u8::try_from(self.start.len() + gap - 1).unwrap_or(u8::MAX);
        Verdict::Yes(match self.role {
            Role::Label => Inside::Label { left, joints },
            Role::Part => Inside::Start { left, joints },
        })
    }

    /// Whether the characters look as those of this token, so far.
    fn may_be(&self, body: &[u8]) -> bool {
        match self.body {
            Body::Any => true,
            Body::Mixed => body.len() < self.chars_min || body.iter().any(u8::is_ascii_digit),
            Body::Coded => {
                let case = |pair: &[u8]| matches!(pair, [b'a'..=b'z', b'A'..=b'Z']);
                body.len() < self.chars_min
                    || body.iter().any(u8::is_ascii_digit)
                    || body.windows(2).any(case)
            }
            Body::Hex => body
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
            Body::Upper => body
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'Z')),
        }
    }
}

impl Inside {
    /// Whether what it covers is not shown.
    pub(super) fn hides(self) -> bool {
        !matches!(self, Self::Label { .. })
    }

    /// Whether the token covers `symbol`, with which `rest` begins, too.
    pub(super) fn step(self, symbol: char, rest: &[u8]) -> Verdict {
        match self {
            Self::Label { left: 0, joints } | Self::Start { left: 0, joints } => {
                Self::Run(joints).step(symbol, rest)
            }
            Self::Label { left, joints } => {
                let left = left - 1;
                Verdict::Yes(Self::Label { left, joints })
            }
            Self::Start { left, joints } => {
                let left = left - 1;
                Verdict::Yes(Self::Start { left, joints })
            }
            // Of a longer character the first byte is in when all of it is.
            Self::Run(joints) => match rest.first() {
                Some(byte) if is_of(*byte, joints) => Verdict::Yes(self),
                _ if is_hidden(symbol) => match goes_on(rest, |byte| is_of(byte, joints)) {
                    Some(true) => Verdict::Yes(self),
                    Some(false) => Verdict::No,
                    None => Verdict::Open,
                },
                Some(_) | None => Verdict::No,
            },
            Self::Pem { left, seen } if left > 0 && is_hidden(symbol) => {
                let left = left - 1;
                Verdict::Yes(Self::Pem { left, seen })
            }
            Self::Pem { left: 0, .. } => Verdict::No,
            Self::Pem { left, seen } => match u8::try_from(symbol) {
                Ok(b'\\') => escaped_break(
                    rest,
                    Self::Pem {
                        left: left - 1,
                        seen: 0,
                    },
                ),
                Ok(byte) if is_of(byte, b"+/=-:,. \t\r\n") => {
                    Verdict::Yes(match end_seen(byte, seen) {
                        8 => Self::PemEnd,
                        seen => Self::Pem {
                            left: left - 1,
                            seen,
                        },
                    })
                }
                // A quote, a bracket: the text around a key that was cut off.
                Ok(_) | Err(_) => Verdict::No,
            },
            Self::PemEnd if matches!(symbol, 'A'..='Z' | ' ' | '-') => Verdict::Yes(self),
            Self::PemEnd => Verdict::No,
        }
    }
}

/// How much of `-----END` was seen after `byte`; 8 is the whole.
fn end_seen(byte: u8, seen: u8) -> u8 {
    match (byte, seen) {
        (b'-', 0..=4) => seen + 1,
        (b'-', 5) => 5,
        (b'E', 5) | (b'N', 6) | (b'D', 7) => seen + 1,
        (b'-', _) => 1,
        _ => 0,
    }
}

/// A key in a JSON string has `\n` for its line breaks, or `\\n`.
fn escaped_break(rest: &[u8], go_on: Inside) -> Verdict {
    let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    match rest.get(backslashes) {
        _ if backslashes > BACKSLASHES_MAX => Verdict::No,
        Some(b'n' | b'r' | b't') => Verdict::Yes(go_on),
        Some(_) => Verdict::No,
        None => Verdict::Open,
    }
}

/// The length of what stands between a label and its credential. A backslash
/// belongs to it before a quote only: that of a `\n` must keep its letter.
fn label_gap(text: &[u8]) -> usize {
    let mut gap = 0;
    loop {
        let rest = text.get(gap..).unwrap_or_default();
        let backslashes = run_of(rest, |byte| byte == b'\\');
        gap += match rest.get(backslashes) {
            Some(b'"' | b'\'') => backslashes + 1,
            Some(byte) if backslashes == 0 && GAP.contains(byte) => 1,
            Some(_) => return gap,
            None => return text.len(),
        };
    }
}

fn jwt(text: &[u8]) -> Verdict {
    let Some(rest) = text.strip_prefix(JWT.as_bytes()) else {
        return open_if(JWT.as_bytes().starts_with(text));
    };
    let header = run(rest, b"_-");
    if header > JWT_HEADER_MAX {
        return Verdict::No;
    }
    match rest.get(header) {
        None => return Verdict::Open,
        Some(b'.') if header >= JWT_PART_MIN => {}
        Some(_) => return Verdict::No,
    }
    let payload = rest.get(header + 1..).unwrap_or_default();
    match run(payload, b"_-") {
        count if count >= JWT_PART_MIN => Verdict::Yes(Inside::Run(b"_-.")),
        count => open_if(count == payload.len()),
    }
}

/// The first line of a private key, a line break and enough of the key.
fn pem(text: &[u8]) -> Verdict {
    let Some(rest) = text.strip_prefix(PEM.as_bytes()) else {
        return open_if(PEM.as_bytes().starts_with(text));
    };
    let head = rest.get(..rest.len().min(PEM_HEAD_MAX)).unwrap_or_default();
    let name = head
        .iter()
        .take_while(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b' '))
        .count();
    let (name, after) = head.split_at(name);
    let body = match after.strip_prefix(b"-----") {
        None => return open_if(head.len() < PEM_HEAD_MAX && b"-----".starts_with(after)),
        Some(_) if !name.ends_with(b"PRIVATE KEY") && !name.ends_with(b"PRIVATE KEY BLOCK") => {
            return Verdict::No;
        }
        Some(body) => body,
    };
    let gap = gap(body);
    let body = body.get(gap..).unwrap_or_default();
    match run(body, b"+/=-:") {
        count if count >= PEM_BODY_MIN => Verdict::Yes(Inside::Pem {
            left: PEM_BYTES_MAX,
            seen: 1,
        }),
        count => open_if(count == body.len() && head.len() < PEM_HEAD_MAX),
    }
}

/// The length of the white space, plain or escaped, with which `text` begins.
fn gap(text: &[u8]) -> usize {
    let mut backslash = false;
    text.iter()
        .take_while(|byte| {
            let of_gap = matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'\\')
                || backslash && matches!(byte, b'n' | b'r' | b't');
            backslash = **byte == b'\\';
            of_gap
        })
        .count()
}

/// The name and the password of a URL, unless they look like an example.
fn login(text: &[u8]) -> Verdict {
    let Some(rest) = text.strip_prefix(LOGIN.as_bytes()) else {
        return open_if(LOGIN.as_bytes().starts_with(text));
    };
    let count = run(rest, LOGIN_JOINTS);
    match rest.get(count) {
        _ if count > LOGIN_CHARS_MAX => return Verdict::No,
        None => return Verdict::Open,
        Some(b'@') => {}
        Some(_) => return Verdict::No,
    }
    let login = rest.get(..count).unwrap_or_default();
    let colon = login.iter().position(|byte| *byte == b':');
    let (secret, chars_min) = match colon.and_then(|at| login.get(at + 1..)) {
        Some(password) => (password, PASSWORD_CHARS_MIN),
        None => (login, LOGIN_CHARS_MIN),
    };
    let digits = secret.iter().any(u8::is_ascii_digit);
    let letters = secret.iter().any(u8::is_ascii_alphabetic);
    if secret.len() < chars_min || !digits || !letters {
        return Verdict::No;
    }
    let (left, joints) = (2, LOGIN_JOINTS);
    Verdict::Yes(Inside::Label { left, joints })
}

pub(super) fn run(text: &[u8], joints: &[u8]) -> usize {
    run_of(text, |byte| is_of(byte, joints))
}

pub(super) fn run_of(text: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|byte| belongs(**byte)).count()
}

fn is_of(byte: u8, joints: &[u8]) -> bool {
    byte.is_ascii_alphanumeric() || joints.contains(&byte)
}

/// Whether the text goes on with a word; the letter of an escape like `\n` is none.
pub(super) fn is_word(before: [u8; 2]) -> bool {
    let [first, last] = before;
    let escape = first == b'\\' && matches!(last, b'n' | b'r' | b't' | b'b' | b'f');
    !escape && (last.is_ascii_alphanumeric() || last == b'_')
}

pub(super) fn open_if(open: bool) -> Verdict {
    if open { Verdict::Open } else { Verdict::No }
}
