//! The windows of the session's models: as they are described, until a provider
//! refuses a request that should have fitted.

use std::collections::BTreeMap;

use crate::model::Model;

use super::stop::Stop;

/// No window is taken for smaller than this: a refusal may mean something else.
const WINDOW_TOKENS_MIN: u64 = 1_024;

/// Windows that turned out to be smaller than assumed, by model.
#[derive(Debug, Default)]
pub(super) struct Windows {
    learned: BTreeMap<String, u64>,
}

impl Windows {
    /// The tokens of a model's window.
    pub(super) fn of(&self, model: &Model) -> u64 {
        let learned = self.learned.get(&model.full_id()).copied();
        learned.map_or(model.context_window, |window| {
            window.min(model.context_window)
        })
    }

    /// The most tokens that a reply to a prompt may have, where the window is
    /// not as the model is described: a part of it at least, for an estimate may
    /// be too high.
    pub(super) fn output_max(&self, model: &Model, prompt_tokens: u64) -> u64 {
        match self.learned.get(&model.full_id()) {
            Some(window) => window.saturating_sub(prompt_tokens).max(window / 4),
            None => u64::MAX,
        }
    }

    /// Learns from the refusal of a request with this estimate: the window that
    /// it states, else the estimate. Returns whether the window is smaller now.
    pub(super) fn learn(&mut self, model: &Model, stop: &Stop, prompt_tokens: u64) -> bool {
        let Stop::Model { error, .. } = stop else {
            return false;
        };
        let window = error.context_window.unwrap_or(prompt_tokens);
        let window = window.max(WINDOW_TOKENS_MIN);
        let smaller = stop.is_overflow() && window < self.of(model);
        if smaller {
            self.learned.insert(model.full_id(), window);
        }
        smaller
    }
}
