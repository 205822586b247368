//! Known secret values and the redaction of every outgoing byte.
//!
//! Three things are replaced by `***`: the values that the task or the
//! environment declares secret, in every encoding in which programs usually
//! print them; and, whoever owns them, texts in the shape of a well-known kind
//! of token, and values beside a name that tells what they are. Values and tokens
//! are found in the text as a reader, a shell or a JSON parser takes it: what they
//! leave out may stand between any two characters. Redacting a text in pieces
//! gives the same bytes as redacting the whole, and a redacted line of JSON stays
//! JSON.

mod base64;
mod encode;
mod field;
mod index;
mod json;
mod leap;
mod separator;
mod shape;
mod shapes;
mod token;
mod value;
mod weakness;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use self::index::Index;
use self::shape::{Inside, Shape, Verdict};

pub use self::weakness::weakness;

/// What stands for a secret.
const STARS: &str = "***";

/// Replaces known secrets by `***`. Cheap to clone; costs nothing until it is
/// used. Clones share what one of them learns.
#[derive(Clone, Default)]
pub struct Redactor {
    shared: Arc<RwLock<Arc<Known>>>,
}

#[derive(Default)]
struct Known {
    values: Vec<String>,
    ignored: usize,
    index: OnceLock<Index>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.known().values.len())
    }
}

impl Redactor {
    /// Knows `secrets` and their usual encodings, without surrounding white
    /// space. One that has a [`weakness`] is ignored: see [`Redactor::ignored`].
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut known = Known::default();
        known.add(secrets);
        Self {
            shared: Arc::new(RwLock::new(Arc::new(known))),
        }
    }

    /// From now on also knows `secrets`, as do all clones. Gives the number of
    /// new ones.
    pub fn learn(&self, secrets: impl IntoIterator<Item = String>) -> usize {
        let mut shared = self.shared.write().unwrap_or_else(PoisonError::into_inner);
        let mut known = Known {
            values: shared.values.clone(),
            ignored: shared.ignored,
            index: OnceLock::new(),
        };
        let before = known.values.len();
        known.add(secrets);
        let new = known.values.len() - before;
        if new > 0 {
            *shared = Arc::new(known);
        }
        new
    }

    /// How many values cannot be hidden without hiding innocent text.
    pub fn ignored(&self) -> usize {
        self.known().ignored
    }

    fn known(&self) -> Arc<Known> {
        let shared = self.shared.read();
        Arc::clone(&shared.unwrap_or_else(PoisonError::into_inner))
    }

    /// `text` without any known secret; borrowed when there is none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.known().index().is_clean(text) {
            return Cow::Borrowed(text);
        }
        let mut stream = self.stream();
        stream.held.push_str(text);
        let shown = stream.advance(Edge::Last);
        if shown == text {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(shown)
        }
    }

    /// A redactor for text that arrives in pieces.
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor {
            redactor: self.clone(),
            held: String::new(),
            at: Position::default(),
        }
    }
}

impl Known {
    fn add(&mut self, secrets: impl IntoIterator<Item = String>) {
        for secret in secrets {
            let value = secret.trim();
            match weakness(value) {
                None if self.values.iter().any(|known| known == value) => {}
                None => self.values.push(value.to_owned()),
                Some(_) if value.is_empty() => {}
                Some(_) => self.ignored += 1,
            }
        }
    }

    fn index(&self) -> &Index {
        /// Of those who know no values, which are many.
        static NONE: LazyLock<Index> = LazyLock::new(|| Index::build(&[]));
        if self.values.is_empty() {
            return &NONE;
        }
        self.index.get_or_init(|| Index::build(&self.values))
    }
}

/// Redacts text that arrives in pieces: a secret split over pieces is caught.
#[derive(Debug)]
pub struct StreamRedactor {
    redactor: Redactor,
    /// What arrived and is not decided yet.
    held: String,
    at: Position,
}

/// What must be known of everything before the held text.
#[derive(Debug, Default)]
struct Position {
    /// How many of the held bytes belong to a value that began before.
    covered: usize,
    /// The token that reaches into the held text.
    inside: Option<Inside>,
    /// Whether the last byte was hidden, so that the next needs no new stars.
    hidden: bool,
    /// The last two bytes.
    before: [u8; 2],
    /// Whether the last byte is a backslash that escapes the next one.
    escaping: bool,
}

/// Whether more text may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    More,
    Last,
}

impl StreamRedactor {
    /// What may be shown after `piece` arrived; the rest is held back.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        self.advance(Edge::More)
    }

    /// What was held back, at the end of the text.
    pub fn finish(&mut self) -> String {
        let rest = self.advance(Edge::Last);
        self.at = Position::default();
        rest
    }

    /// Decides as much of the held text as no continuation can change.
    fn advance(&mut self, edge: Edge) -> String {
        let text = std::mem::take(&mut self.held);
        let known = self.redactor.known();
        let index = known.index();
        let mut found = index.find(&text, self.at.before);
        let limit = match edge {
            Edge::More => {
                found.starts.extend(index.cut_off(&text));
                // One that is cut off may have another one inside.
                found.starts.sort_unstable();
                index.open_from(&text).min(found.open)
            }
            Edge::Last => text.len(),
        };
        let mut pass = Pass {
            text: &text,
            spans: &found.spans,
            starts: &found.starts,
            interrupted: &found.interrupted,
            next: 0,
            edge,
            at: &mut self.at,
        };
        let mut shown = String::new();
        let cut = pass.run(limit, &mut shown);
        self.at.covered = self.at.covered.saturating_sub(cut);
        text.get(cut..)
            .unwrap_or_default()
            .clone_into(&mut self.held);
        shown
    }
}

/// One walk over the held text.
struct Pass<'a> {
    text: &'a str,
    /// Where values stand, sorted by start.
    spans: &'a [(usize, usize)],
    /// Where a token begins, or may begin once there is more text; sorted.
    starts: &'a [usize],
    /// Where tokens stand that separators interrupt.
    interrupted: &'a BTreeMap<usize, usize>,
    /// The first span that the walk has not reached.
    next: usize,
    edge: Edge,
    at: &'a mut Position,
}

impl Pass<'_> {
    /// Walks up to `limit` or to the first undecided character, and gives its place.
    fn run(&mut self, limit: usize, shown: &mut String) -> usize {
        let mut place = 0;
        while place < self.text.len() {
            place = self.leap(place, limit, shown);
            let rest = self.text.get(place..).unwrap_or_default();
            let Some(symbol) = rest.chars().next() else {
                break;
            };
            if place >= limit {
                return place;
            }
            let token = self.token_covers(place, symbol);
            // One inside of another token, or of a value, is covered anyway.
            if let (Some(None), Some(end)) = (&token, self.interrupted.get(&place))
                && place >= self.at.covered
            {
                self.at.covered = *end;
            }
            let value = self.value_covers(place, symbol, limit);
            let (Some(token), Some(value)) = (token, value) else {
                return place;
            };
            let hidden = token.is_some_and(Inside::hides) || value;
            if hidden && !self.at.hidden {
                shown.push_str(STARS);
            } else if !hidden {
                shown.push(symbol);
            }
            self.at.inside = token;
            self.at.hidden = hidden;
            self.at.escaping = symbol == '\\' && !self.at.escaping;
            self.at.before = [self.at.before[1], leap::byte_of(symbol)];
            place += symbol.len_utf8();
        }
        self.text.len()
    }

    /// Whether a value covers the character; none when more text must tell.
    fn value_covers(&mut self, place: usize, symbol: char, limit: usize) -> Option<bool> {
        while let Some((start, end)) = self.spans.get(self.next).copied()
            && start <= place
        {
            self.at.covered = self.at.covered.max(end);
            self.next += 1;
        }
        if place < self.at.covered {
            return Some(true);
        }
        // A value behind a backslash takes it along: half an escape sequence
        // would be left otherwise, and the line no longer be JSON.
        if symbol == '\\' && !self.at.escaping {
            let after = place + 1;
            if self.edge == Edge::More && after >= limit {
                return None;
            }
            return Some(
                self.spans
                    .get(self.next)
                    .is_some_and(|(start, _)| *start == after),
            );
        }
        Some(false)
    }

    /// The token that covers the character, if one does; the outer none says
    /// that more text must tell.
    fn token_covers(&self, place: usize, symbol: char) -> Option<Option<Inside>> {
        let rest = self.text.get(place..).unwrap_or_default().as_bytes();
        if let Some(inside) = self.at.inside {
            match inside.step(symbol, rest) {
                Verdict::Yes(inside) => return Some(Some(inside)),
                Verdict::Open | Verdict::Likely(_) if self.edge == Edge::More => return None,
                Verdict::Open | Verdict::Likely(_) | Verdict::No => {}
            }
        }
        // The letter of an escape sequence is not the first one of a token.
        if self.at.escaping && matches!(symbol, 'n' | 'r' | 't' | 'b' | 'f' | 'u') {
            return Some(None);
        }
        if self.starts.binary_search(&place).is_err() {
            return Some(None);
        }
        match Shape::at(rest, self.at.before) {
            Verdict::Yes(inside) => Some(Some(inside)),
            Verdict::Open | Verdict::Likely(_) if self.edge == Edge::More => None,
            Verdict::Likely(inside) => Some(Some(inside)),
            Verdict::Open | Verdict::No => Some(None),
        }
    }
}
