//! The shapes of well-known tokens, recognised without knowing their values.
//!
//! Each decision looks at a bounded piece of text, so that a stream never has
//! to hold back more than a few hundred bytes.

/// A kind of token: a fixed beginning and enough characters of its alphabet.
pub(super) struct Shape {
    start: &'static str,
    /// How many characters must follow the beginning.
    chars_min: usize,
    /// Which characters may stand between words of the token beside letters and digits.
    joints: &'static [u8],
    /// Whether a letter or digit before it makes it part of another word.
    word: bool,
}

const fn shape(start: &'static str, chars_min: usize, joints: &'static [u8], word: bool) -> Shape {
    Shape {
        start,
        chars_min,
        joints,
        word,
    }
}

/// The minimal lengths are a little below those of real tokens, and far above
/// those of the words people write in examples.
const SHAPES: &[Shape] = &[
    shape("ghp_", 30, b"_", false),
    shape("gho_", 30, b"_", false),
    shape("ghu_", 30, b"_", false),
    shape("ghs_", 30, b"_", false),
    shape("ghr_", 30, b"_", false),
    shape("github_pat_", 40, b"_", false),
    shape("glpat-", 20, b"_-.", false),
    shape("sk-ant-", 24, b"_-", false),
    shape("sk-proj-", 24, b"_-", false),
    shape("sk-", 32, b"_", true),
    shape("AKIA", 16, b"", true),
    shape("ASIA", 16, b"", true),
    shape("AIza", 35, b"_-", true),
    shape("xoxb-", 20, b"-", false),
    shape("xoxp-", 20, b"-", false),
    shape("xapp-", 20, b"-", false),
    shape("npm_", 36, b"", true),
    shape("hf_", 34, b"", true),
];

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
/// The most bytes of a private key; a 16,384-bit one has 13,000.
const PEM_BYTES_MAX: u32 = 16 * 1024;
/// More backslashes than that are not an escaped line break.
const BACKSLASHES_MAX: usize = 8;

/// An answer that more text may be needed for.
pub(super) enum Verdict {
    /// A token covers the character, and this goes on.
    Yes(Inside),
    /// It depends on what follows.
    Open,
    /// No token does.
    No,
}

/// The token that covers the text at some place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
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
    SHAPES.iter().map(|shape| shape.start).chain([JWT, PEM])
}

/// The longest beginning has this many bytes.
const START_BYTES_MAX: usize = 11;

/// Whether a token may begin at `at`, where the beginning with this number
/// stands: many words have one inside them.
pub(super) fn may_begin(beginning: usize, text: &[u8], at: usize) -> bool {
    let alone = match SHAPES.get(beginning) {
        Some(shape) => shape.word,
        None => beginning == SHAPES.len(),
    };
    match at.checked_sub(2).and_then(|from| text.get(from..at)) {
        Some([first, last]) if alone => !is_word([*first, *last]),
        Some(_) | None => true,
    }
}

/// Where in the end of `text` a beginning may stand that is cut off by it.
pub(super) fn cut_off(text: &[u8]) -> impl Iterator<Item = usize> {
    (text.len().saturating_sub(START_BYTES_MAX)..text.len()).filter(|start| {
        let rest = text.get(*start..).unwrap_or_default();
        beginnings().any(|beginning| beginning.as_bytes().starts_with(rest))
    })
}

impl Shape {
    /// Whether a token begins at the start of `text`, which `before` precedes.
    pub(super) fn at(text: &[u8], before: [u8; 2]) -> Verdict {
        let in_word = is_word(before);
        let first = text.first().copied().unwrap_or(0);
        let mut open = false;
        for shape in SHAPES
            .iter()
            .filter(|shape| shape.start.as_bytes().first() == Some(&first))
        {
            if shape.word && in_word {
                continue;
            }
            match shape.begins(text) {
                Verdict::No => {}
                Verdict::Open => open = true,
                Verdict::Yes(inside) => return Verdict::Yes(inside),
            }
        }
        let other = match first {
            b'e' if !in_word => jwt(text),
            b'-' => pem(text),
            _ => Verdict::No,
        };
        match other {
            Verdict::No if open => Verdict::Open,
            other => other,
        }
    }

    fn begins(&self, text: &[u8]) -> Verdict {
        let Some(rest) = text.strip_prefix(self.start.as_bytes()) else {
            return open_if(self.start.as_bytes().starts_with(text));
        };
        match run(rest, self.joints) {
            count if count >= self.chars_min => Verdict::Yes(Inside::Run(self.start_joints())),
            count => open_if(count == rest.len()),
        }
    }

    /// What the whole token is made of, its beginning included.
    fn start_joints(&self) -> &'static [u8] {
        match self.start.as_bytes().last() {
            Some(b'-') if self.joints.is_empty() || self.joints == b"_" => b"_-",
            Some(b'_') if self.joints.is_empty() => b"_",
            _ => self.joints,
        }
    }
}

impl Inside {
    /// Whether the token covers `symbol`, with which `rest` begins, too.
    pub(super) fn step(self, symbol: char, rest: &[u8]) -> Verdict {
        match self {
            Self::Run(joints) => match u8::try_from(symbol) {
                Ok(byte) if is_of(byte, joints) => Verdict::Yes(self),
                Ok(_) | Err(_) => Verdict::No,
            },
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

fn run(text: &[u8], joints: &[u8]) -> usize {
    text.iter().take_while(|byte| is_of(**byte, joints)).count()
}

fn is_of(byte: u8, joints: &[u8]) -> bool {
    byte.is_ascii_alphanumeric() || joints.contains(&byte)
}

/// Whether the text goes on with a word; the letter of an escape like `\n` is none.
fn is_word(before: [u8; 2]) -> bool {
    let [first, last] = before;
    let escape = first == b'\\' && matches!(last, b'n' | b'r' | b't');
    !escape && (last.is_ascii_alphanumeric() || last == b'_')
}

fn open_if(open: bool) -> Verdict {
    if open { Verdict::Open } else { Verdict::No }
}
