//! The windows of the session's models: as they are described, until a provider
//! refuses a request that should have fitted.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::model::Model;

use super::stop::Stop;

/// No window is taken for smaller than this: a refusal may mean something else.
const WINDOW_TOKENS_MIN: u64 = 1_024;

/// Windows that turned out to be smaller than assumed, by model.
#[derive(Debug, Default)]
pub(super) struct Windows {
    learned: BTreeMap<String, Learned>,
}

/// What a refusal says of a window.
#[derive(Debug, Clone, Copy)]
struct Learned {
    tokens: u64,
    /// Whether the provider states it; else it is an estimate.
    stated: bool,
}

impl Windows {
    /// The tokens of a model's window.
    pub(super) fn of(&self, model: &Model) -> u64 {
        let learned = self.learned.get(&model.full_id()).copied();
        learned.map_or(model.context_window, |learned| {
            learned.tokens.min(model.context_window)
        })
    }

    /// The most tokens that a reply to a prompt may have, where the provider
    /// states the window: a part of it at least, for the prompt is estimated.
    pub(super) fn output_max(&self, model: &Model, prompt_tokens: u64) -> u64 {
        match self.learned.get(&model.full_id()) {
            Some(Learned {
                tokens,
                stated: true,
            }) => tokens.saturating_sub(prompt_tokens).max(tokens / 4),
            Some(_) | None => u64::MAX,
        }
    }

    /// Learns from the refusal of a request with this estimate: the window that
    /// it states, else the estimate. Returns whether the window is smaller now.
    pub(super) fn learn(&mut self, model: &Model, stop: &Stop, prompt_tokens: u64) -> bool {
        let Stop::Model { error, .. } = stop else {
            return false;
        };
        let tokens = error.context_window.map_or(prompt_tokens, NonZeroU64::get);
        let learned = Learned {
            tokens: tokens.max(WINDOW_TOKENS_MIN),
            stated: error.context_window.is_some(),
        };
        let smaller = stop.is_overflow() && learned.tokens < self.of(model);
        if smaller {
            self.learned.insert(model.full_id(), learned);
        }
        smaller
    }
}

/// Whether a refusal counts the room for the reply, too, so that a shorter one may
/// do.
pub(super) fn counts_reply(stop: &Stop) -> bool {
    const WORDS: &[&str] = &[
        "completion",
        "max_tokens",
        "max_new_tokens",
        "output tokens",
    ];
    let Stop::Model { error, .. } = stop else {
        return false;
    };
    let message = error.message.to_ascii_lowercase();
    error.context_window.is_some() && WORDS.iter().any(|word| message.contains(word))
}
