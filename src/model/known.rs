//! What is known of single providers and the catalog does not say.

use crate::model::description::Quirks;

impl Quirks {
    /// These, and what is known of `provider/id` besides.
    pub(super) fn with_known(self, provider: &str, id: &str) -> Self {
        // `~anthropic/…` is the newest of a family.
        let id = id.strip_prefix('~').unwrap_or(id);
        let routed = provider == "openrouter";
        Self {
            session_id: self.session_id || routed,
            relays_anthropic: self.relays_anthropic || (routed && id.starts_with("anthropic/")),
            // Whoever serves Mistral's models checks ids as Mistral does.
            nine_letter_ids: self.nine_letter_ids
                || provider == "mistral"
                || id.starts_with("mistralai/"),
            ..self
        }
    }
}
