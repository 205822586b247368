//! Where a value stands in a text, also with separators between its characters.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::separator::{Reading, may_separate, readings};

/// The most bytes of separators in one value.
const SEPARATORS_BYTES_MAX: usize = 4 * 1024;
/// The most readings that are tried from one place.
const STEPS_MAX: usize = 16 * 1024;

/// All forms of all values, sorted: those with the same beginning stand
/// together, so a beginning is a range.
#[derive(Default)]
pub(super) struct Forms {
    sorted: Vec<String>,
    /// The forms that begin with each byte.
    first: Vec<Range<usize>>,
    /// Which pairs of bytes begin a form: a set of bits.
    pairs: Vec<u64>,
}

/// What stands at a place.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    /// Where the longest that is whole ends.
    pub(super) end: Option<usize>,
    /// Whether more text could make it longer, or whole.
    pub(super) open: bool,
}

/// What the readings from a place have found.
#[derive(Default)]
struct Found {
    /// Where each form that is whole ends. Of several readings the shortest counts:
    /// a longer one takes what follows a value for its last character.
    ends: BTreeMap<usize, usize>,
    open: bool,
}

/// A place up to which a text agrees with some forms.
struct State {
    at: usize,
    /// Where the last character that was read ends.
    end: usize,
    forms: Range<usize>,
    /// How many bytes of the forms were read.
    depth: usize,
    /// How many bytes of the text were separators.
    skipped: usize,
}

impl Forms {
    /// Knows `sorted`.
    pub(super) fn new(sorted: Vec<String>) -> Self {
        let mut forms = Self {
            first: Vec::with_capacity(256),
            pairs: vec![0; 1024],
            sorted,
        };
        for byte in 0..=u8::MAX {
            let range = forms.narrowed(0..forms.sorted.len(), 0, byte);
            forms.first.push(range);
        }
        for form in &forms.sorted {
            if let [first, second, ..] = form.as_bytes() {
                let pair = pair(*first, *second);
                if let Some(bits) = forms.pairs.get_mut(pair / 64) {
                    *bits |= 1 << (pair % 64);
                }
            }
        }
        forms
    }

    /// The forms, sorted.
    pub(super) fn sorted(&self) -> &[String] {
        &self.sorted
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Whether a form begins with this byte.
    pub(super) fn begin_with(&self, byte: u8) -> bool {
        !self.of_first(byte).is_empty()
    }

    /// The longest value that stands at `start`.
    pub(super) fn standing(&self, text: &str, start: usize) -> Standing {
        let mut found = Found::default();
        let mut states = vec![State {
            at: start,
            end: start,
            forms: 0..self.sorted.len(),
            depth: 0,
            skipped: 0,
        }];
        // Separators lead to the same place in very many ways.
        let mut tried = HashSet::new();
        for _ in 0..STEPS_MAX {
            let Some(state) = states.pop() else { break };
            let place = (state.at, state.end, state.depth, state.forms.start);
            if state.at > start && !tried.insert(place) {
                continue;
            }
            self.go_on(text, state, &mut states, &mut found);
        }
        Standing {
            end: found.ends.into_values().max(),
            open: found.open,
        }
    }

    fn go_on(&self, text: &str, state: State, states: &mut Vec<State>, found: &mut Found) {
        let Some(state) = self.literally(text, state, found) else {
            return;
        };
        let rest = text.get(state.at..).unwrap_or_default();
        let tried = states.len();
        let open = readings(rest, &mut |reading, length| {
            let mut next = State {
                at: state.at + length,
                forms: state.forms.clone(),
                ..state
            };
            match reading {
                Reading::Character(character) => {
                    for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                        next.forms = self.narrowed_by_pairs(next.forms, next.depth, byte);
                        next.depth += 1;
                    }
                    next.end = next.at;
                    if !next.forms.is_empty() {
                        states.push(next);
                    }
                }
                Reading::Nothing => {
                    next.skipped += length;
                    if next.depth > 0 && next.skipped <= SEPARATORS_BYTES_MAX {
                        states.push(next);
                    }
                }
            }
        });
        // The last one is gone on with first: that should be what stands there.
        if let Some(new) = states.get_mut(tried..) {
            new.reverse();
        }
        found.open |= open;
    }

    /// Goes on up to the first byte that can be read in several ways; none when
    /// the forms or the text end before.
    fn literally(&self, text: &str, mut state: State, found: &mut Found) -> Option<State> {
        loop {
            let shortest = self.sorted.get(state.forms.start).map_or(0, String::len);
            if shortest == state.depth {
                let ends = found.ends.entry(state.forms.start);
                ends.and_modify(|end| *end = state.end.min(*end))
                    .or_insert(state.end);
                if state.forms.len() == 1 {
                    return None;
                }
            }
            let Some(byte) = text.as_bytes().get(state.at) else {
                found.open = true;
                return None;
            };
            if may_separate(*byte) {
                return Some(state);
            }
            state.forms = self.narrowed_by_pairs(state.forms, state.depth, *byte);
            if state.forms.is_empty() {
                return None;
            }
            state.at += 1;
            state.end = state.at;
            state.depth += 1;
        }
    }

    fn of_first(&self, byte: u8) -> Range<usize> {
        self.first.get(usize::from(byte)).cloned().unwrap_or(0..0)
    }

    /// As [`Self::narrowed`], with the tables for the first bytes.
    fn narrowed_by_pairs(&self, range: Range<usize>, depth: usize, byte: u8) -> Range<usize> {
        match depth {
            _ if range.is_empty() => range,
            0 => self.of_first(byte),
            1 => {
                let form = self.sorted.get(range.start).map(String::as_bytes);
                let first = form.and_then(<[u8]>::first).copied().unwrap_or(0);
                match self.begin_with_pair(first, byte) {
                    true => self.narrowed(range, depth, byte),
                    false => 0..0,
                }
            }
            _ => self.narrowed(range, depth, byte),
        }
    }

    /// Whether a form begins with these two bytes.
    pub(super) fn begin_with_pair(&self, first: u8, second: u8) -> bool {
        let pair = pair(first, second);
        let bits = self.pairs.get(pair / 64).copied().unwrap_or(0);
        bits & (1 << (pair % 64)) != 0
    }

    /// Those of `range`, which agree in `depth` bytes, that go on with `byte`.
    fn narrowed(&self, range: Range<usize>, depth: usize, byte: u8) -> Range<usize> {
        let forms = self.sorted.get(range.clone()).unwrap_or_default();
        let next = |form: &String| form.as_bytes().get(depth).copied();
        // Far from their beginning few forms are left, and those often agree.
        let ends = [forms.first(), forms.last()];
        if ends.iter().all(|form| form.and_then(next) == Some(byte)) {
            return range;
        }
        let start = forms.partition_point(|form| next(form) < Some(byte));
        let end = forms.partition_point(|form| next(form) <= Some(byte));
        range.start + start..range.start + end
    }
}

fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}
