//! Where in a text known values stand, and where tokens may begin.
//!
//! The many forms of many values would make a large automaton, slow to build
//! and to walk. So only their first bytes are searched for, together with the
//! beginnings of tokens; what stands there is compared with the forms.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::encode;
use super::separator::{may_separate, separates};
use super::shape::{self, Shape, Verdict};
use super::token;
use super::value::{Forms, Standing};
use super::weakness::CHARS_MIN;

/// How much of a value is searched for. Every form has at least 8 characters.
const PREFIX_BYTES: usize = 4;
/// An automaton for this many bytes may take the memory of the fastest kind.
const FAST_BYTES_MAX: usize = 8 * 1024;

/// What is searched for.
pub(super) struct Index {
    /// The values in all their forms.
    values: Forms,
    /// The beginnings of tokens and, after them, of values.
    automaton: AhoCorasick,
    /// How many beginnings of tokens there are.
    tokens: usize,
    /// The beginnings of tokens that need no label.
    alone: Forms,
    /// The longest form, in bytes.
    longest: usize,
    /// Which bytes begin a token.
    token_starts: [bool; 256],
    /// The longest beginning of a token, in bytes.
    longest_token_start: usize,
}

/// What was found in a text.
#[derive(Debug)]
pub(super) struct Found {
    /// Where values stand; sorted.
    pub(super) spans: Vec<(usize, usize)>,
    /// Where tokens stand that separators interrupt.
    pub(super) interrupted: BTreeMap<usize, usize>,
    /// Where tokens may begin; sorted.
    pub(super) starts: Vec<usize>,
    /// Where one that more text could change begins.
    pub(super) open: usize,
}

impl Found {
    fn add_value(&mut self, start: usize, standing: Standing) {
        self.spans.extend(standing.end.map(|end| (start, end)));
        self.hold(start, standing);
    }

    fn add_token(&mut self, start: usize, standing: Standing) {
        if let Some(end) = standing.end {
            self.interrupted.insert(start, end);
            self.starts.push(start);
        }
        self.hold(start, standing);
    }

    fn hold(&mut self, start: usize, standing: Standing) {
        if standing.open {
            self.open = self.open.min(start);
        }
    }
}

impl Index {
    pub(super) fn build(secrets: &[String]) -> Self {
        let mut forms = BTreeSet::new();
        for secret in secrets {
            encode::forms(secret, &mut |form| {
                if form.chars().count() >= CHARS_MIN {
                    forms.insert(form);
                }
            });
        }
        let values: Vec<String> = forms.into_iter().collect();
        let mut searched: Vec<&[u8]> = shape::beginnings().map(str::as_bytes).collect();
        let tokens = searched.len();
        for group in values.chunk_by(|one, other| prefix(one) == prefix(other)) {
            searched.extend(group.first().map(|form| prefix(form)));
        }
        let bytes: usize = searched.iter().map(|start| start.len()).sum();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind((bytes <= FAST_BYTES_MAX).then_some(AhoCorasickKind::DFA))
            .build(searched)
            .expect("far fewer patterns than the automaton's ids");
        let mut token_starts = [false; 256];
        for byte in shape::beginnings().filter_map(|start| start.bytes().next()) {
            if let Some(known) = token_starts.get_mut(usize::from(byte)) {
                *known = true;
            }
        }
        let alone: BTreeSet<&str> = shape::beginnings_alone().collect();
        Self {
            longest: values.iter().map(String::len).max().unwrap_or(0),
            token_starts,
            longest_token_start: shape::beginnings().map(str::len).max().unwrap_or(0),
            values: Forms::new(values),
            automaton,
            tokens,
            alone: Forms::new(alone.into_iter().map(str::to_owned).collect()),
        }
    }

    /// Whether the whole `text` holds neither a value nor a token.
    pub(super) fn is_clean(&self, text: &str) -> bool {
        let found = self.find(text, [0; 2]);
        found.spans.is_empty() && found.starts.is_empty()
    }

    /// What stands in `text`, which `before` precedes.
    pub(super) fn find(&self, text: &str, before: [u8; 2]) -> Found {
        let mut found = Found {
            spans: Vec::new(),
            interrupted: BTreeMap::new(),
            starts: Vec::new(),
            open: text.len(),
        };
        for hit in self.automaton.find_overlapping_iter(text) {
            let at = hit.start();
            if hit.pattern().as_usize() >= self.tokens {
                found.add_value(at, self.values.standing(text, at));
                continue;
            }
            if may_begin(text.as_bytes(), at) {
                found.starts.push(at);
            }
            let before = preceding(text.as_bytes(), at, before);
            let rest = text.as_bytes().get(at..).unwrap_or_default();
            if !shape::is_word(before) || shape::begins_anywhere(rest) {
                found.add_token(at, token::standing(text, at, before));
            }
        }
        self.find_interrupted(text, before, &mut found);
        found.spans.sort_unstable();
        found.starts.sort_unstable();
        found
    }

    /// Adds what the automaton cannot find: where a separator stands within the
    /// bytes that it searches for.
    fn find_interrupted(&self, text: &str, before: [u8; 2], found: &mut Found) {
        let bytes = text.as_bytes();
        let mut next = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if !may_separate(*byte) {
                continue;
            }
            let symbol = || text.get(at..).and_then(|rest| rest.chars().next());
            if !byte.is_ascii() && !symbol().is_some_and(separates) {
                continue;
            }
            for start in next.max(at.saturating_sub(PREFIX_BYTES - 1))..=at {
                if self.value_may_begin(bytes, start) && text.is_char_boundary(start) {
                    found.add_value(start, self.values.standing(text, start));
                }
            }
            next = at + 1;
            self.find_token(text, at, before, found);
        }
    }

    /// Whether the first bytes at `start` allow a value.
    fn value_may_begin(&self, bytes: &[u8], start: usize) -> bool {
        let second = bytes.get(start + 1);
        match bytes.get(start) {
            None => false,
            // The value's first character may be escaped.
            Some(b'\\') if matches!(second, Some(b'u' | b'x' | b'0')) => !self.values.is_empty(),
            Some(first) => match second {
                Some(second) if !may_separate(*second) => {
                    self.values.begin_with_pair(*first, *second)
                }
                Some(_) | None => self.values.begin_with(*first),
            },
        }
    }

    /// Looks for a token whose beginning the separator at `at` interrupts.
    fn find_token(&self, text: &str, at: usize, before: [u8; 2], found: &mut Found) {
        let bytes = text.as_bytes();
        for start in (at.saturating_sub(self.longest_token_start)..at).rev() {
            let Some(first) = bytes.get(start).filter(|byte| token::may_have(**byte)) else {
                return;
            };
            let may_begin = match bytes.get(start + 1) {
                Some(second) if start + 1 < at => self.alone.begin_with_pair(*first, *second),
                Some(_) | None => self.alone.begin_with(*first),
            };
            if !may_begin {
                continue;
            }
            let before = preceding(bytes, start, before);
            let beginning = self.alone.standing(text, start);
            if !shape::is_word(before) && (beginning.open || beginning.end.is_some()) {
                let standing = token::standing(text, start, before);
                let open = beginning.open || standing.open;
                found.add_token(start, Standing { open, ..standing });
            }
        }
    }

    /// Where a value that is not whole yet may begin.
    pub(super) fn open_from(&self, text: &str) -> usize {
        let from = text.len().saturating_sub(self.longest);
        let bytes = text.as_bytes();
        let begins = |at: &usize| {
            bytes
                .get(*at)
                .is_some_and(|byte| self.values.begin_with(*byte))
        };
        let open = |at: &usize| text.get(*at..).is_some_and(|tail| self.begins_with(tail));
        let mut places = (from..text.len()).filter(begins);
        places.find(open).unwrap_or(text.len())
    }

    /// Where in the end of `text` the beginning of a token may stand that is cut
    /// off by it.
    pub(super) fn cut_off(&self, text: &str) -> impl Iterator<Item = usize> {
        let from = text.len().saturating_sub(self.longest_token_start);
        (from..text.len()).filter(move |at| {
            let rest = text.as_bytes().get(*at..).unwrap_or_default();
            let first = rest.first().map_or(0, |byte| usize::from(*byte));
            self.token_starts.get(first) == Some(&true)
                && shape::beginnings().any(|beginning| beginning.as_bytes().starts_with(rest))
        })
    }

    fn begins_with(&self, tail: &str) -> bool {
        // The forms are sorted: those with this beginning follow at once.
        let forms = self.values.sorted();
        let at = forms.partition_point(|form| form.as_str() < tail);
        forms.get(at).is_some_and(|form| form.starts_with(tail))
    }
}

fn prefix(form: &str) -> &[u8] {
    let bytes = form.as_bytes();
    bytes.get(..PREFIX_BYTES).unwrap_or(bytes)
}

/// The two bytes before the place `at` of a text that `before` precedes.
fn preceding(text: &[u8], at: usize, before: [u8; 2]) -> [u8; 2] {
    let back = |count: usize| at.checked_sub(count).and_then(|at| text.get(at)).copied();
    let [_, last] = before;
    match (back(2), back(1)) {
        (Some(first), Some(second)) => [first, second],
        (None, Some(second)) => [last, second],
        _ => before,
    }
}

/// Whether a token begins at `at`, or may when there is more text. What stands
/// before the text is not known here.
fn may_begin(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    match at.checked_sub(2) {
        None => true,
        Some(_) => !matches!(Shape::at(rest, preceding(text, at, [0; 2])), Verdict::No),
    }
}
