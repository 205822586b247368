//! Brace expansion: `{a,b}` and `{1..3}`, before all others.

use super::syntax::Piece;
use super::{Refusal, refuse};

/// More words than this are not made of one.
const WORDS_MAX: usize = 256;

/// More braces than this are not looked at in one word.
const BRACES_MAX: usize = 16;

/// A character of a word that is not quoted, or a piece as it is.
#[derive(Debug, Clone)]
enum Atom {
    Char(char),
    Piece(Piece),
}

/// The words that a word becomes.
pub(super) fn expand(pieces: &[Piece]) -> Result<Vec<Vec<Piece>>, Refusal> {
    let has_brace = pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Text { text, quoted: false } if text.contains('{')));
    if !has_brace {
        return Ok(vec![pieces.to_vec()]);
    }
    let mut atoms = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text {
                text,
                quoted: false,
            } => atoms.extend(text.chars().map(Atom::Char)),
            other => atoms.push(Atom::Piece(other.clone())),
        }
    }
    let braces = atoms.iter().filter(|atom| matches!(atom, Atom::Char('{')));
    if braces.count() > BRACES_MAX {
        return refuse("a word has too many braces");
    }
    let mut made = 0;
    let words = alternatives(&atoms, &mut made)?;
    let expands = words.len() > 1 || words.iter().any(|word| word.len() != atoms.len());
    if expands && words.iter().any(|word| lengthens_name(word)) {
        return refuse("braces may make the name of a variable longer");
    }
    Ok(words.into_iter().map(rejoin).collect())
}

/// Whether a variable without braces of its own gets to stand before a letter:
/// bash looks for variables afterwards, and `$v{a,b}` is `$va $vb`.
fn lengthens_name(atoms: &[Atom]) -> bool {
    atoms.windows(2).any(|pair| match pair {
        [Atom::Piece(Piece::Parameter(parameter)), Atom::Char(next)] => {
            !parameter.quoted
                && !parameter.name.starts_with(|c: char| c.is_ascii_digit())
                && (next.is_ascii_alphanumeric() || *next == '_')
        }
        _ => false,
    })
}

fn alternatives(atoms: &[Atom], made: &mut usize) -> Result<Vec<Vec<Atom>>, Refusal> {
    let is = |atom: &Atom, c: char| matches!(atom, Atom::Char(have) if *have == c);
    for open in 0..atoms.len() {
        if !atoms.get(open).is_some_and(|atom| is(atom, '{')) {
            continue;
        }
        let Some((close, commas)) = matching(atoms, open) else {
            continue;
        };
        let inside = atoms.get(open + 1..close).unwrap_or_default();
        let parts: Vec<Vec<Atom>> = if commas.is_empty() {
            match sequence(inside)? {
                Some(parts) => parts,
                None => continue,
            }
        } else {
            let mut from = open + 1;
            let mut parts = Vec::new();
            for end in commas.iter().copied().chain([close]) {
                parts.extend(alternatives(
                    atoms.get(from..end).unwrap_or_default(),
                    made,
                )?);
                from = end + 1;
            }
            parts
        };
        let before = atoms.get(..open).unwrap_or_default();
        let mut words = Vec::new();
        let tails = alternatives(atoms.get(close + 1..).unwrap_or_default(), made)?;
        for part in &parts {
            for tail in &tails {
                *made += 1;
                if *made > WORDS_MAX {
                    return refuse("its braces expand to too many words");
                }
                words.push([before, part.as_slice(), tail.as_slice()].concat());
            }
        }
        return Ok(words);
    }
    Ok(vec![atoms.to_vec()])
}

/// Where the brace at `open` is closed, and the commas directly in it.
fn matching(atoms: &[Atom], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    for (at, atom) in atoms.iter().enumerate().skip(open) {
        match atom {
            Atom::Char('{') => depth += 1,
            Atom::Char('}') => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, commas));
                }
            }
            Atom::Char(',') if depth == 1 => commas.push(at),
            Atom::Char(_) | Atom::Piece(_) => {}
        }
    }
    None
}

/// The words of `1..3`; none when it is no such thing.
fn sequence(inside: &[Atom]) -> Result<Option<Vec<Vec<Atom>>>, Refusal> {
    let text: String = inside
        .iter()
        .map(|atom| match atom {
            Atom::Char(c) => *c,
            Atom::Piece(_) => super::UNKNOWN,
        })
        .collect();
    let Some((first, last)) = text.split_once("..") else {
        return Ok(None);
    };
    let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) else {
        // Letters, steps and leading zeros: bash may make words of it.
        return refuse("a `{…..…}` is no range of plain numbers");
    };
    let padded = |text: &str| text.trim_start_matches('-').starts_with('0') && text.len() > 1;
    if text.split("..").any(padded) || first.abs_diff(last) as usize >= WORDS_MAX {
        return refuse("a `{…..…}` is too long or has leading zeros");
    }
    let numbers: Vec<i32> = if first <= last {
        (first..=last).collect()
    } else {
        (last..=first).rev().collect()
    };
    let atoms = |number: &i32| number.to_string().chars().map(Atom::Char).collect();
    Ok(Some(numbers.iter().map(atoms).collect()))
}

fn rejoin(atoms: Vec<Atom>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for atom in atoms {
        match (atom, pieces.last_mut()) {
            (Atom::Piece(piece), _) => pieces.push(piece),
            (
                Atom::Char(c),
                Some(Piece::Text {
                    text,
                    quoted: false,
                }),
            ) => text.push(c),
            (Atom::Char(c), _) => pieces.push(Piece::Text {
                text: c.to_string(),
                quoted: false,
            }),
        }
    }
    pieces
}
