//! Tokens of a well-known shape with separators between their characters.

use super::separator::{self, Reading, readings};
use super::shape::{Shape, Verdict};
use super::value::Standing;

/// The most characters of such a token, and the most bytes of its separators.
const CHARS_MAX: usize = 1024;
const SEPARATORS_BYTES_MAX: usize = 4 * 1024;

/// What a token may have beside letters and digits.
const JOINTS: &[u8] = b"-_.~+/=%";

/// The characters that a reader sees from some place on, up to one that no
/// token has.
#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    /// Where in the text each of them ends.
    ends: Vec<usize>,
    /// Before which of them a separator stands, and whether that is hidden.
    separators: Vec<(usize, bool)>,
    /// Whether the text ended first.
    open: bool,
}

/// The token that begins at `start` and that separators interrupt before it is
/// long enough. One that is long enough without them is found as it is.
pub(super) fn standing(text: &str, start: usize, before: [u8; 2]) -> Standing {
    let seen = Seen::of(text, start);
    let Some((first, _)) = seen.separators.first() else {
        return Standing::default();
    };
    if seen.has_token(*first, before) {
        return Standing::default();
    }
    // A quote or a line break may be the end of the token, once it is whole.
    let visible = seen.separators.iter().filter(|(_, hidden)| !hidden);
    let end = visible
        .map(|(at, _)| *at)
        .find(|at| seen.has_token(*at, before));
    if let Some(end) = end {
        return Standing {
            end: seen.covered(end, before),
            open: false,
        };
    }
    match Shape::alone(&seen.bytes, before) {
        Verdict::Yes(_) => Standing {
            end: seen.covered(seen.ends.len(), before),
            open: seen.open,
        },
        Verdict::Open | Verdict::Likely(_) => Standing {
            end: None,
            open: seen.open,
        },
        Verdict::No => Standing::default(),
    }
}

/// Whether a token may have this byte.
pub(super) fn may_have(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || JOINTS.contains(&byte)
}

impl Seen {
    fn of(text: &str, start: usize) -> Self {
        let mut seen = Self::default();
        let (mut at, mut skipped) = (start, 0);
        while seen.ends.len() < CHARS_MAX && skipped <= SEPARATORS_BYTES_MAX {
            let rest = text.get(at..).unwrap_or_default();
            let (reading, length, open) = longest(rest);
            if rest.is_empty() || open {
                // Half a separator is one already.
                let half = open.then_some((seen.ends.len(), true));
                seen.separators.extend(half);
                seen.open = true;
                return seen;
            }
            at += length;
            match reading {
                Reading::Character(character) => match u8::try_from(character) {
                    Ok(byte) if may_have(byte) => {
                        seen.bytes.push(byte);
                        seen.ends.push(at);
                    }
                    Ok(_) | Err(_) => break,
                },
                Reading::Nothing => {
                    let hidden = rest.chars().next().is_some_and(separator::is_hidden);
                    seen.separators.push((seen.ends.len(), hidden));
                    skipped += length;
                }
            }
        }
        seen.bytes.push(b' ');
        seen
    }

    /// Whether the first `count` characters are a token.
    fn has_token(&self, count: usize, before: [u8; 2]) -> bool {
        matches!(Shape::alone(&self.ended(count), before), Verdict::Yes(_))
    }

    /// Where in the text the token ends that the first `count` characters hold.
    fn covered(&self, count: usize, before: [u8; 2]) -> Option<usize> {
        let bytes = self.ended(count);
        let Verdict::Yes(mut inside) = Shape::alone(&bytes, before) else {
            return None;
        };
        let mut covered = 1;
        while let Some(byte) = bytes.get(covered)
            && let rest = bytes.get(covered..).unwrap_or_default()
            && let Verdict::Yes(next) = inside.step(char::from(*byte), rest)
        {
            (inside, covered) = (next, covered + 1);
        }
        self.ends.get(covered - 1).copied()
    }

    /// The first `count` characters and one that no token has.
    fn ended(&self, count: usize) -> Vec<u8> {
        let mut bytes = self.bytes.get(..count).unwrap_or_default().to_vec();
        bytes.push(b' ');
        bytes
    }
}

/// The reading that takes the most, and as nothing rather than as a character.
/// The last says that it may depend on what follows.
fn longest(rest: &str) -> (Reading, usize, bool) {
    let mut best = (Reading::Nothing, 0);
    let open = readings(rest, &mut |reading, length| {
        if length > best.1 || (length == best.1 && reading == Reading::Nothing) {
            best = (reading, length);
        }
    });
    (best.0, best.1, open)
}
