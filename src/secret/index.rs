//! Where in a text known values stand, and where tokens may begin.
//!
//! The many forms of many values would make a large automaton, slow to build
//! and to walk. So only their first bytes are searched for, together with the
//! beginnings of tokens; what stands there is compared with the forms.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::encode;
use super::shape::{self, Verdict};
use super::weakness::CHARS_MIN;

/// How much of a value is searched for. Every form has at least 8 characters.
const PREFIX_BYTES: usize = 4;
/// An automaton for this many bytes may take the memory of the fastest kind.
const FAST_BYTES_MAX: usize = 8 * 1024;

/// What is searched for.
pub(super) struct Index {
    /// The values in all their forms, sorted.
    values: Vec<String>,
    /// The beginnings of tokens and, after them, of values.
    automaton: AhoCorasick,
    /// How many beginnings of tokens there are.
    tokens: usize,
    /// For each beginning of a value, where the forms with it stand.
    groups: Vec<(usize, usize)>,
    /// The longest form, in bytes.
    longest: usize,
    /// Which bytes begin a form.
    form_starts: Starts,
    /// Which bytes begin a token.
    token_starts: Starts,
    /// The longest beginning of a token, in bytes.
    longest_token_start: usize,
}

/// A set of bytes.
struct Starts([bool; 256]);

impl Starts {
    fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut known = [false; 256];
        for byte in texts.filter_map(|text| text.bytes().next()) {
            if let Some(known) = known.get_mut(usize::from(byte)) {
                *known = true;
            }
        }
        Self(known)
    }

    /// The places from `from` on at which one of them stands.
    fn places(&self, text: &str, from: usize) -> impl Iterator<Item = usize> {
        let tail = text.as_bytes().get(from..).unwrap_or_default();
        let begins = |byte: &u8| self.0.get(usize::from(*byte)) == Some(&true);
        let places = tail.iter().enumerate();
        places.filter_map(move |(at, byte)| begins(byte).then_some(from + at))
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
        let (tokens, mut groups) = (searched.len(), Vec::new());
        let mut start = 0;
        for group in values.chunk_by(|one, other| prefix(one) == prefix(other)) {
            groups.push((start, start + group.len()));
            start += group.len();
            searched.extend(group.first().map(|form| prefix(form)));
        }
        let bytes: usize = searched.iter().map(|start| start.len()).sum();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind((bytes <= FAST_BYTES_MAX).then_some(AhoCorasickKind::DFA))
            .build(searched)
            .expect("far fewer patterns than the automaton's ids");
        Self {
            longest: values.iter().map(String::len).max().unwrap_or(0),
            form_starts: Starts::of(values.iter().map(String::as_str)),
            token_starts: Starts::of(shape::beginnings()),
            longest_token_start: shape::beginnings().map(str::len).max().unwrap_or(0),
            values,
            automaton,
            tokens,
            groups,
        }
    }

    /// Whether the whole `text` holds neither a value nor a token.
    pub(super) fn is_clean(&self, text: &str) -> bool {
        if !self.automaton.is_match(text) {
            return true;
        }
        let (spans, starts) = self.find(text);
        spans.is_empty() && starts.is_empty()
    }

    /// Where values stand, and where tokens may begin; both sorted.
    pub(super) fn find(&self, text: &str) -> (Vec<(usize, usize)>, Vec<usize>) {
        let (mut spans, mut starts) = (Vec::new(), Vec::new());
        for found in self.automaton.find_overlapping_iter(text) {
            let (number, at) = (found.pattern().as_usize(), found.start());
            match number.checked_sub(self.tokens) {
                Some(group) => spans.extend(self.value_at(group, text, at)),
                None if may_begin(text.as_bytes(), at) => starts.push(at),
                None => {}
            }
        }
        spans.sort_unstable();
        starts.sort_unstable();
        (spans, starts)
    }

    /// The longest form of this group that stands at `at`.
    fn value_at(&self, group: usize, text: &str, at: usize) -> Option<(usize, usize)> {
        let (from, to) = self.groups.get(group)?;
        let forms = self.values.get(*from..*to)?;
        let rest = text.as_bytes().get(at..)?;
        let standing = forms
            .iter()
            .filter(|form| rest.starts_with(form.as_bytes()));
        let longest = standing.map(String::len).max()?;
        Some((at, at + longest))
    }

    /// Where a value that is not whole yet may begin.
    pub(super) fn open_from(&self, text: &str) -> usize {
        let from = text.len().saturating_sub(self.longest);
        let open = |at: &usize| text.get(*at..).is_some_and(|tail| self.begins_with(tail));
        let mut places = self.form_starts.places(text, from);
        places.find(open).unwrap_or(text.len())
    }

    /// Where in the end of `text` the beginning of a token may stand that is cut
    /// off by it.
    pub(super) fn cut_off(&self, text: &str) -> impl Iterator<Item = usize> {
        let from = text.len().saturating_sub(self.longest_token_start);
        self.token_starts.places(text, from).filter(move |at| {
            let rest = text.as_bytes().get(*at..).unwrap_or_default();
            shape::beginnings().any(|beginning| beginning.as_bytes().starts_with(rest))
        })
    }

    fn begins_with(&self, tail: &str) -> bool {
        // The forms are sorted: those with this beginning follow at once.
        let at = self.values.partition_point(|form| form.as_str() < tail);
        self.values
            .get(at)
            .is_some_and(|form| form.starts_with(tail))
    }
}

fn prefix(form: &str) -> &[u8] {
    let bytes = form.as_bytes();
    bytes.get(..PREFIX_BYTES).unwrap_or(bytes)
}

/// Whether a token begins at `at`, or may when there is more text. What stands
/// before the text is not known here.
fn may_begin(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let before = match at.checked_sub(2).and_then(|from| text.get(from..at)) {
        Some([first, last]) => [*first, *last],
        Some(_) | None => return true,
    };
    !matches!(shape::Shape::at(rest, before), Verdict::No)
}
