//! The counts of tokens that providers send.

use crate::message::Usage;
use crate::model::StreamEvent;
use crate::model::wire::Events;

/// A count as providers send it, some of them as `12.0`: a negative one or none
/// is not known.
pub(super) fn count(value: Option<f64>) -> Option<u64> {
    value
        .filter(|count| *count >= 0.0)
        .map(|count| count.round() as u64)
}

/// Counts of which the prompt's includes the cached tokens; ours does not.
#[derive(Default)]
pub(super) struct Tokens {
    pub(super) prompt: Option<f64>,
    pub(super) output: Option<f64>,
    pub(super) cache_read: Option<f64>,
    pub(super) cache_write: Option<f64>,
    pub(super) reasoning: Option<f64>,
}

impl Tokens {
    /// Reports the usage, when prompt and output are known. No request has an
    /// empty prompt: a count of zero is a server that does not count.
    pub(super) fn tell(self, events: &mut Events) {
        let (Some(prompt), Some(output)) = (count(self.prompt), count(self.output)) else {
            return;
        };
        if prompt == 0 {
            return;
        }
        let cache_read = count(self.cache_read).unwrap_or(0).min(prompt);
        let cache_write = count(self.cache_write)
            .unwrap_or(0)
            .min(prompt - cache_read);
        events.push_back(StreamEvent::Usage(Usage {
            input: prompt - cache_read - cache_write,
            output,
            cache_read,
            cache_write,
            reasoning: count(self.reasoning).unwrap_or(0),
            ..Usage::default()
        }));
    }
}
