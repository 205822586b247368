//! `[[ … ]]`: it compares texts, but some operators evaluate expressions.

use super::plain::is_name;
use super::state::State;
use super::syntax::Word;
use super::walk::Walker;
use super::{Refusal, UNKNOWN, refuse};

/// Operators whose sides are arithmetic.
const ARITHMETIC: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Walker {
    /// Looks at the words of a `[[`.
    pub(super) fn test(&mut self, words: &[Word], state: &mut State) -> Result<(), Refusal> {
        let mut texts = Vec::new();
        for word in words {
            texts.push(self.text(&word.pieces, state)?);
        }
        for (at, word) in words.iter().enumerate() {
            let Some(operator) = word.bare() else {
                continue;
            };
            if ARITHMETIC.contains(&operator) {
                for side in [at.checked_sub(1), Some(at + 1)].into_iter().flatten() {
                    if let Some(word) = words.get(side) {
                        self.arithmetic(&word.pieces, state)?;
                    }
                }
            }
            if matches!(operator, "-v" | "-R") {
                let next = texts.get(at + 1).map_or("", String::as_str);
                if !is_name(next) || next.contains(UNKNOWN) {
                    return refuse("`[[ -v` evaluates the name of a variable, which is not plain");
                }
            }
        }
        Ok(())
    }
}
