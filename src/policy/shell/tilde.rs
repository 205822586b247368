//! Tildes that stand for directories where the shell is or was.

use super::syntax::Piece;
use super::{Refusal, UNKNOWN, refuse};

/// Refuses `~+`, `~-` and `~1`: directories where the shell is or was.
pub(super) fn no_visited_directory(pieces: &[Piece]) -> Result<(), Refusal> {
    let plain = |piece: &Piece| match piece {
        Piece::Text {
            text,
            quoted: false,
        } => text.clone(),
        _ => UNKNOWN.to_string(),
    };
    let text: String = pieces.iter().map(plain).collect();
    // A tilde counts where a word or a value begins.
    let visited = |(at, _): (usize, &str)| {
        let (before, rest) = text.split_at(at);
        (before.is_empty() || before.ends_with(['=', ':']))
            && rest.get(1..).is_some_and(|rest| {
                rest.starts_with(|c: char| "+-".contains(c) || c.is_ascii_digit())
            })
    };
    match text.match_indices('~').any(visited) {
        true => refuse("`~+`, `~-` or `~` with a number is a directory that is not followed"),
        false => Ok(()),
    }
}
