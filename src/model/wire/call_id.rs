//! Ids of calls, as the dialects take them: a model's own ids go back as they
//! came, except where they would be refused.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::fingerprint::Fnv1a;
use crate::model::assemble::is_fresh_id;
use crate::model::description::{Api, Model};

/// The longest id that Anthropic takes.
const ANTHROPIC_CHARS_MAX: usize = 64;
/// The longest id that the responses dialect takes.
const RESPONSES_CHARS_MAX: usize = 64;
/// What ids of items begin with, behind the id of their call.
const RESPONSES_ITEM: &str = "|fc";
/// The longest id that chat endpoints take.
const CHAT_CHARS_MAX: usize = 40;
/// The length of ids where only one length is taken.
const NINE: usize = 9;

/// The ids of a conversation so far. Weak servers count from zero in each reply,
/// and some providers refuse an id that comes twice.
#[derive(Default)]
pub(super) struct CallIds {
    /// Each with its number.
    given: HashMap<String, usize>,
}

impl CallIds {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.given.len()
    }

    /// Forgets all but the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        if count < self.count() {
            self.given.retain(|_, number| *number < count);
        }
    }

    /// The id under which a call is sent; empty where it needs none. A changed
    /// id keeps a hash of the old one, so that two never become the same.
    pub(super) fn fit<'a>(&mut self, model: &Model, id: &'a str, own: bool) -> Cow<'a, str> {
        let fitted = fit(model, id, own);
        if fitted.is_empty() {
            return fitted;
        }
        // The item of a call is no part of its id.
        let call = |id: &str| match model.api {
            Api::OpenaiResponses => id.split('|').next().unwrap_or_default().to_owned(),
            Api::AnthropicMessages | Api::OpenaiChat | Api::GoogleGenerativeAi => id.to_owned(),
        };
        let mut unique = fitted;
        let mut again = 0_usize;
        while self.given.contains_key(&call(&unique)) {
            again += 1;
            unique = Cow::Owned(hashed(id, &format!("{id}#{again}"), Shape::of(model)));
        }
        self.given.insert(call(&unique), self.given.len());
        unique
    }
}

/// What ids look like.
#[derive(Clone, Copy)]
enum Shape {
    /// Letters, digits, `_` and `-`, so many at most.
    Word(usize),
    /// Nine letters or digits.
    Nine,
}

impl Shape {
    fn of(model: &Model) -> Self {
        match model.api {
            Api::OpenaiChat if model.quirks.nine_letter_ids => Self::Nine,
            Api::OpenaiChat => Self::Word(CHAT_CHARS_MAX),
            Api::AnthropicMessages => Self::Word(ANTHROPIC_CHARS_MAX),
            Api::OpenaiResponses | Api::GoogleGenerativeAi => Self::Word(RESPONSES_CHARS_MAX),
        }
    }

    fn has(self, id: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
        match self {
            Self::Word(chars_max) => {
                !id.is_empty()
                    && id.len() <= chars_max
                    && id
                        .bytes()
                        .all(|byte| is_plain(byte) || matches!(byte, b'_' | b'-'))
            }
            Self::Nine => id.len() == NINE && id.bytes().all(is_plain),
        }
    }
}

fn fit<'a>(model: &Model, mut id: &'a str, own: bool) -> Cow<'a, str> {
    let shape = Shape::of(model);
    match model.api {
        // Where calls need no ids, only those that the model itself gave are kept.
        Api::GoogleGenerativeAi if own && !is_fresh_id(id) => return Cow::Borrowed(id),
        Api::GoogleGenerativeAi => return Cow::Borrowed(""),
        Api::OpenaiResponses if own && !id.is_empty() => return Cow::Borrowed(id),
        Api::OpenaiResponses => {
            // The item is another model's.
            id = id.split_once(RESPONSES_ITEM).map_or(id, |(call, _)| call);
        }
        Api::OpenaiChat if own && !id.is_empty() && !model.quirks.nine_letter_ids => {
            return Cow::Borrowed(id);
        }
        Api::AnthropicMessages | Api::OpenaiChat => {}
    }
    if shape.has(id) {
        return Cow::Borrowed(id);
    }
    Cow::Owned(hashed(id, id, shape))
}

/// As much of `id` as fits, and a hash of `whole`.
fn hashed(id: &str, whole: &str, shape: Shape) -> String {
    let hash = Fnv1a::of(whole.as_bytes());
    let Shape::Word(chars_max) = shape else {
        return nine_letters(hash.number());
    };
    let suffix = format!("_{hash}");
    let kept: String = id
        .chars()
        .take(chars_max - suffix.len())
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
            _ => '_',
        })
        .collect();
    kept + &suffix
}

fn nine_letters(mut hash: u64) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut letters = String::with_capacity(NINE);
    for _ in 0..NINE {
        let at = usize::try_from(hash % 36).unwrap_or_default();
        letters.extend(LETTERS.get(at).map(|letter| char::from(*letter)));
        hash /= 36;
    }
    letters
}
