//! Passing over text in which nothing can be secret: most text is such, and
//! looking at each of its characters would cost far more than searching it.

use super::Pass;

impl Pass<'_> {
    /// Shows the text from `place` up to where a value or a token might begin
    /// or must be decided, and gives that place; `place` itself when there is
    /// nothing to pass over.
    pub(super) fn leap(&mut self, place: usize, limit: usize, shown: &mut String) -> usize {
        if self.at.inside.is_some() || place < self.at.covered {
            return place;
        }
        let token = self.starts.partition_point(|start| *start < place);
        let token = self.starts.get(token).copied();
        let value = self.spans.get(self.next).map(|(start, _)| *start);
        let most = limit.min(self.text.len());
        let mut stop = token.into_iter().chain(value).fold(most, usize::min);
        let before = |stop: usize| self.text.get(place..stop).unwrap_or_default();
        // What follows a backslash decides about it.
        if before(stop).ends_with('\\') {
            stop -= 1;
        }
        let passed = before(stop);
        if passed.is_empty() {
            return place;
        }
        shown.push_str(passed);
        let backslashes = passed.len() - passed.trim_end_matches('\\').len();
        let escaped_before = backslashes == passed.len() && self.at.escaping;
        self.at.escaping = (backslashes % 2 == 1) != escaped_before;
        self.at.hidden = false;
        let mut last = passed.chars().rev().map(byte_of);
        let newest = last.next().unwrap_or(0);
        let older = last.next().unwrap_or(self.at.before[1]);
        self.at.before = [older, newest];
        stop
    }
}

/// A character as the rules for words look at it.
pub(super) fn byte_of(symbol: char) -> u8 {
    u8::try_from(symbol).unwrap_or(0)
}
