//! A value inside a longer base64 text, wherever in it, on one line or many.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// A text of one line holds one of these.
pub(super) fn plain(value: &[u8], found: &mut impl FnMut(String)) {
    for offset in 0..3 {
        let (text, _) = stable(value, offset);
        found(text.replace('/', "\\/"));
        found(text.replace('+', "%2B").replace('/', "%2F"));
        found(text.replace('+', "%2b").replace('/', "%2f"));
        found(text.replace('+', "-").replace('/', "_"));
        found(text);
    }
}

/// Of lines between which the value goes on, one of these covers each piece.
///
/// All that wrap base64 do so behind a multiple of four characters, so there
/// are few places where the line can break. A piece beside a break is covered
/// with it, as far as the next three places; more of the line by windows of
/// four of them.
pub(super) fn wrapped(value: &str, found: &mut impl FnMut(String)) {
    const AROUND: usize = 4;
    for offset in 0..3 {
        let (text, first) = stable(value.as_bytes(), offset);
        let mut places = vec![0];
        let aligned = (1..text.len()).filter(|at| (at + first).is_multiple_of(4));
        places.extend(aligned);
        places.push(text.len());
        let piece = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        for window in places.windows(AROUND + 1) {
            if let [from, .., to] = window {
                found(piece(*from, *to).to_owned());
            }
        }
        for (at, place) in places.iter().enumerate() {
            let from = places.get(at.saturating_sub(AROUND));
            let to = places.get((at + AROUND).min(places.len() - 1));
            if let (Some(from), Some(to)) = (from, to)
                && from < place
                && place < to
            {
                let (before, after) = (piece(*from, *place), piece(*place, *to));
                found(format!("{before}\n{after}"));
                found(format!("{before}\r\n{after}"));
            }
        }
    }
}

/// The base64 of the value `offset` bytes after a border of three, without the
/// characters that also hold bits of the neighbours, and how many of those
/// stand before it.
fn stable(value: &[u8], offset: usize) -> (String, usize) {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(value);
    let first = [0, 2, 3].get(offset).copied().unwrap_or(0);
    let shared = usize::from(!bytes.len().is_multiple_of(3));
    let text = STANDARD_NO_PAD.encode(&bytes);
    let last = text.len().saturating_sub(shared);
    let stable = text.get(first..last).unwrap_or_default();
    (stable.to_owned(), first)
}
